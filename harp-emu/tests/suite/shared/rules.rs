//! How instructions are carried out, by rule, on 1 to 64 lanes and all paths.

use std::sync::{Arc, Mutex};

use harp_emu::{
    Collect, Device, DeviceStore, Interrupts, Machine, MachineConfig, Memory, Path, Schedule,
    SpawnPolicy, Trace, TraceFormat, TraceWriter, TrapKind,
};
use harp_isa::{ArchId, Op, Opcode};

use super::{MEMORY, OUT, all_lanes, bytes, lanes, machines, run, run_with};
use crate::common::{assemble_text, on, p, r};

#[test]
fn the_first_executing_lane_computes_for_all() {
    for arch in machines() {
        let n = lanes(arch);
        let first_odd = if n > 1 { 1 } else { 0 };
        let end = run(
            arch,
            &all_lanes(
                arch,
                // The odd lanes.
                "addi %r3 %r0 #7; andi %r4 %r0 #1; rtop @p0 %r4
                 ori %s0 %r3 #0; add %s1 %r3 %s0; muli %s2 %s1 #3; ldi %s5 #9
                 @p0 ? ori %s3 %r3 #0; @p0 ? subi %s4 %s3 #2; @p0 ? tid %s5
                 rtop @s0 %r4; @p0 ? notp @s1 @s0; ptor %r5 @s1",
            ),
        );
        assert_eq!(end.trap, None, "{arch}");
        assert_eq!([end.s(0), end.s(1), end.s(2)], [7, 14, 42]);
        let odd = first_odd == 1;
        let mask = |value: u64| value & arch.word().mask();
        let expected = if odd { [8, 6, 1] } else { [0, 0, 9] };
        assert_eq!([end.s(3), end.s(4), end.s(5)], expected.map(mask), "{arch}");
        assert_eq!((end.sp(0), end.sp(1)), (false, odd));
        assert!(end.r(5).iter().all(|&bit| bit == u64::from(odd)));
    }
}

/// One operation and one lane, however many are active; the others count in all lanes.
#[test]
fn what_is_done_once_counts_once() {
    for arch in machines() {
        let n = lanes(arch);
        let text = "ori %s0 %r0 #0; addi %s0 %s0 #1; add %r3 %s0 %s0; st %s0 %s0 #4095
             ldi %s1 #0x1000; ld %s2 %s1 #0; ld %r4 %s1 #0; st %r4 %s1 #8; st %s1 %s1 #0";
        let text = text.replace("#4095", &format!("#{}", OUT - 1));
        let end = run(arch, &all_lanes(arch, &text));
        assert_eq!(end.trap, None);
        let stats = end.stats.cores[0].warps[0];
        // `ldi` and `jalis` by one lane, `halt`; seven once, four in all lanes.
        assert_eq!((stats.insts, stats.steps), (3 + 6 + 4 * n, 3 + 10), "{arch}");
        assert_eq!((stats.loads, stats.stores), (1 + n, 2 + n), "{arch}");
    }
}

#[test]
fn a_shared_source_is_one_value() {
    for arch in machines() {
        let end = run(
            arch,
            &all_lanes(
                arch,
                "ldi %s0 #40; add %r3 %r0 %s0; sub %r4 %s0 %r0; st %s0 %r0 #0x1000
                 ldi %s1 #2; ltup @p0 %r0 %s1; eqp @p1 %s0 %s0; andp @s0 @p1 @p1; andp @p2 @p0 @s0
                 ptor %r5 @p2; shl %r6 %s1 %r0",
            ),
        );
        // The stores are at misaligned addresses, but must not trap.
        assert_eq!(end.trap, None);
        for lane in 0..lanes(arch) {
            let at = |reg: usize| end.r(reg)[lane as usize];
            let mask = arch.word().mask();
            assert_eq!([at(3), at(4)], [40 + lane, 40_u64.wrapping_sub(lane) & mask]);
            assert_eq!(at(5), u64::from(lane < 2));
            let bits = u64::from(arch.word().bits());
            let expected = if lane >= bits { 0 } else { 2_u64.wrapping_shl(lane as u32) & mask };
            assert_eq!(at(6), expected, "{arch} lane {lane}");
        }
    }
}

/// All loads and stores, full rows and rows with gaps, in memory that nothing else touches.
#[test]
fn rows_follow_each_other() {
    for arch in machines() {
        let (n, width) = (lanes(arch), bytes(arch));
        for (suffix, size) in [("", width), ("b", 1), ("h", 2), ("w", 4)] {
            for guard in ["", "@p0 ? "] {
                let text = format!(
                    "andi %r3 %r0 #3; rtop @p0 %r3; muli %r4 %r0 #5; addi %r4 %r4 #17
                     ldi %s0 #{OUT}; ldi %r5 #0; {guard}st{suffix} %r4 %s0 #{width}
                     {guard}ld{suffix} %r5 %s0 #{width}; ld{suffix} %s1 %s0 #{width}"
                );
                let end = run(arch, &all_lanes(arch, &text));
                assert_eq!(end.trap, None, "{arch} {text}");
                let mut expected = vec![0; (n * size) as usize + 8];
                let ones = u64::MAX >> (64 - 8 * size);
                for lane in 0..n {
                    let executes = guard.is_empty() || lane & 3 != 0;
                    let value = if executes { (lane * 5 + 17) & ones } else { 0 };
                    assert_eq!(end.r(5)[lane as usize], value, "{arch} {text} lane {lane}");
                    let at = (lane * size) as usize;
                    let bytes = &value.to_le_bytes()[..size as usize];
                    expected[at..at + size as usize].copy_from_slice(bytes);
                }
                let start = (OUT + width) as usize;
                assert_eq!(end.memory[start..start + expected.len()], expected, "{arch} {text}");
                assert_eq!(end.s(1), if guard.is_empty() { 17 & ones } else { 0 });
            }
        }
    }
}

#[test]
fn signed_rows() {
    for arch in machines() {
        let end = run(
            arch,
            &all_lanes(
                arch,
                "neg %r3 %r0; ldi %s0 #0x1000; stb %r3 %s0 #1; ldbs %r4 %s0 #1; ldb %r5 %s0 #1
                 ldi %s0 #0x1100; sth %r3 %s0 #1; ldhs %r6 %s0 #1; ldbs %s1 %s0 #3",
            ),
        );
        assert_eq!(end.trap, None);
        for lane in 0..lanes(arch) {
            let minus = 0_u64.wrapping_sub(lane) & arch.word().mask();
            let at = |reg: usize| end.r(reg)[lane as usize];
            assert_eq!([at(4), at(5), at(6)], [minus, minus & 0xff, minus], "{arch} lane {lane}");
        }
        let expected = if lanes(arch) > 1 { arch.word().mask() } else { 0 };
        assert_eq!(end.s(1), expected);
    }
}

/// As of any lanes: a row that leaves memory traps in those that do, and nothing is stored.
#[test]
fn a_row_that_runs_out_of_memory() {
    for arch in machines() {
        let (n, width) = (lanes(arch), bytes(arch));
        if n < 4 {
            continue;
        }
        let text = format!("ldi %s0 #{}; st %r0 %s0 #0", MEMORY - 3 * width);
        let end = run(arch, &all_lanes(arch, &text));
        let trap = end.trap.clone().unwrap();
        assert_eq!(trap.kind, TrapKind::BadAddress { address: MEMORY, store: true });
        assert_eq!(trap.lanes, (u64::MAX >> (64 - n)) & !0b111);
        assert!(end.memory[MEMORY as usize - 64..].iter().all(|&byte| byte == 0));
        // Once: only the first lane's address counts.
        let text = format!("shli %r3 %r0 #13; ldi %r4 #1; ld %s0 %r3 #{OUT}; amoadd %s1 %r3 %r4");
        let end = run(arch, &all_lanes(arch, &text));
        assert_eq!(end.trap, None, "{arch}");
    }
}

/// A misaligned row: each word is cut off where its memory word ends.
#[test]
fn a_misaligned_row() {
    for arch in machines() {
        let width = bytes(arch);
        let text =
            format!("ldi %s0 #{OUT}; ldi %r3 #-1; st %r3 %s0 #1; ld %r4 %s0 #1; ld %s1 %s0 #1");
        let end = run(arch, &all_lanes(arch, &text));
        assert_eq!(end.trap, None);
        let word = arch.word().mask() & !0xff;
        for lane in 0..lanes(arch) {
            assert_eq!(end.word((OUT + lane * width) as usize), word);
            assert_eq!(end.r(4)[lane as usize], word >> 8);
        }
        assert_eq!(end.s(1), word >> 8);
    }
}

#[test]
fn atomic_operations_at_a_shared_address_are_no_row() {
    for arch in machines() {
        let n = lanes(arch);
        let text = format!(
            "ldi %s0 #{OUT}; ldi %s1 #2; amoadd %r3 %s0 %s1; amoadd %s2 %s0 %s1
             addi %r3 %r3 #{OUT}; amoadd %s3 %r3 %s1"
        );
        let end = run(arch, &all_lanes(arch, &text));
        assert_eq!(end.trap, None);
        assert_eq!(end.word(OUT as usize), 2 * n + 4);
        assert_eq!([end.s(2), end.s(3)], [2 * n, 2 * n + 2]);
        assert!((0..n).all(|lane| end.r(3)[lane as usize] == OUT + 2 * lane));
    }
}

#[test]
fn a_shared_guard_holds_in_all_lanes_or_none() {
    for arch in machines() {
        let end = run(
            arch,
            &all_lanes(
                arch,
                // Lanes disagree on @p0, but what the first one has is everyone's.
                "rtop @p0 %r0; andp @s0 @p0 @p0; notp @s1 @p0
                 ldi %r3 #1; @s0 ? ldi %r3 #2; @s1 ? ldi %r4 #3; @s0 ? jmpi no; @s1 ? jmpi yes
                 no: trap
                 yes: @s1 ? split; @s1 ? jalr %r5 %r6",
            )
            .replace("tid %r0", "tid %r0; ldi %r6 past")
            .replace("halt", "past: join; @s0 ? trap; halt"),
        );
        assert_eq!(end.trap, None, "{arch}");
        assert!(
            end.r(3).iter().all(|&value| value == 1) && end.r(4).iter().all(|&value| value == 3)
        );
    }
}

/// A guard of a lane's own still must be the same in all.
#[test]
fn control_under_an_own_guard_must_converge() {
    for arch in machines().filter(|arch| arch.lanes() > 1) {
        for (text, opcode) in [
            ("@p0 ? jali %s0 next", Opcode::Jali),
            ("ldi %s0 next; @p0 ? jmpr %s0", Opcode::Jmpr),
            ("ldi %s0 #0; @p0 ? clone %s0", Opcode::Clone),
        ] {
            let text = format!("rtop @p0 %r0; {text}; next:");
            let end = run(arch, &all_lanes(arch, &text));
            let trap = end.trap.unwrap();
            assert_eq!(trap.kind, TrapKind::DivergentBranch { opcode }, "{arch} {text}");
            assert_eq!(trap.lanes, (u64::MAX >> (64 - lanes(arch))) & !1);
        }
    }
}

#[test]
fn calls_and_returns_through_shared_registers() {
    for arch in machines() {
        let end = run(
            arch,
            &all_lanes(
                arch,
                // The lanes' targets differ, but the first one's counts.
                "ldi %r3 other; add %r3 %r3 %r0; jalr %s0 %r3; addi %r4 %r4 #1; jmpi end
                 other: addi %r4 %r4 #2; jali %s1 third; addi %r4 %r4 #8; jmpr %s0
                 third: addi %r4 %r4 #4; jmpr %s1
                 end:",
            ),
        );
        assert_eq!(end.trap, None, "{arch}");
        assert!(end.r(4).iter().all(|&value| value == 15), "{arch}");
        assert_ne!(end.s(0), end.s(1));
    }
}

/// A vote sees all executing lanes, whoever gets its result.
#[test]
fn votes_for_a_shared_destination() {
    for arch in machines() {
        let n = lanes(arch);
        let last = n - 1;
        let end = run(
            arch,
            &all_lanes(
                arch,
                &format!(
                    "ldi %r3 #{last}; eqp @p0 %r0 %r3; rtop @p1 %r0; anyp @s0 @p0; allp @s1 @p0
                     ballot %s0 @p1 #0; ballot %s1 @p1 #1; addi %r4 %r0 #100; shfl %s2 %r4 %r3
                     ldi %r5 #64; shfl %s3 %r4 %r5; @p1 ? ballot %s4 @s0 #0; ldi %s5 #{last}
                     @p1 ? shfl %s5 %r4 %s5"
                ),
            ),
        );
        assert_eq!(end.trap, None, "{arch}");
        assert_eq!((end.sp(0), end.sp(1)), (true, n == 1));
        let set = (u64::MAX >> (64 - n)) & !1;
        let word = arch.word().mask();
        let high = if word == u64::MAX { 0 } else { set >> 32 };
        let executing = if n > 1 { set & word } else { 0 };
        assert_eq!([end.s(0), end.s(1), end.s(4)], [set & word, high, executing], "{arch}");
        assert_eq!([end.s(2), end.s(3)], [100 + last, 100]);
        assert_eq!(end.s(5), if n > 1 { 100 + last } else { last });
    }
}

#[test]
fn clones_leave_shared_registers_alone() {
    for arch in machines() {
        let last = lanes(arch) - 1;
        let text = format!("ldi %r3 #5; ldi %s0 #{last}; ldi %s1 #77; clone %s0; ldi %r3 #6; halt");
        let end = run(arch, &text);
        assert_eq!((end.trap.clone(), end.s(0), end.s(1)), (None, last, 77));
        assert_eq!(end.r(3)[last as usize], if last == 0 { 6 } else { 5 }, "{arch}");
        // Once: from the first lane, and not each of them in turn.
        let text = format!("addi %r3 %r0 #5; ldi %s0 #{last}; clone %s0");
        let end = run(arch, &all_lanes(arch, &text));
        assert_eq!(end.r(3)[last as usize], 5, "{arch}");
    }
}

#[test]
fn a_warp_starts_with_a_shared_register() {
    for arch in machines() {
        let end = run_with(
            arch,
            "ldi %s1 #3; ldi %r3 other; ldi %s2 #42; wspawn %s0 %r3 %s2; wspawn %r5 %r3 %s2; halt
             other: addi %s3 %s0 #1; halt",
            |config| {
                config.spawn = SpawnPolicy::Original;
                config.schedule = Schedule::Step;
            },
        );
        assert_eq!(end.trap, None);
        assert_eq!([end.s(0), end.s(1), end.s(2), end.s(3)], [0, 3, 42, 0]);
        let other = |warp| [0, 1, 3].map(|number| end.s_of(warp, number));
        assert_eq!([other(1), other(2)], [[42, 0, 43], [0, 0, 1]], "{arch}");
    }
}

/// What a handler does to shared registers is undone in all lanes, not only where it ran.
#[test]
fn interrupts_save_shared_registers() {
    for arch in machines() {
        let end = run_with(
            arch,
            &all_lanes(
                arch,
                "ldi %r3 handler; skep %r3; ldi %s0 #5; ldi %s1 #6; eqp @s0 %s0 %s0
                 ldi %r4 #0; div %r5 %s0 %r4; add %r6 %s0 %s1; ptor %r7 @s0; ptor %r8 @s1; halt
                 handler: ldi %s0 #0; ldi %s1 #1; ldi %s2 #2; xorp @s0 @s0 @s0; notp @s1 @s0; reti",
            ),
            |config| config.interrupts = Interrupts::Guest,
        );
        assert_eq!(end.trap, None, "{arch}");
        assert_eq!([end.s(0), end.s(1), end.s(2)], [5, 6, 0]);
        assert_eq!((end.sp(0), end.sp(1)), (true, false));
        for lane in 0..lanes(arch) as usize {
            assert_eq!([end.r(6)[lane], end.r(7)[lane], end.r(8)[lane]], [11, 1, 0], "{arch}");
        }
    }
}

#[test]
fn once_only_the_first_lane_divides() {
    for arch in machines() {
        // Only lane 0 has a divisor.
        let text = "iszero @p0 %r0; ldi %r3 #0; @p0 ? ldi %r3 #3; ldi %r4 #14; div %s0 %r4 %r3
             mod %s1 %r4 %r3; modi %s2 %r4 #4; divs %s3 %r4 %r3";
        let end = run(arch, &all_lanes(arch, text));
        assert_eq!((end.trap.clone(), end.s(0), end.s(1)), (None, 4, 2), "{arch}");
        assert_eq!([end.s(2), end.s(3)], [2, 4]);
        let end = run(arch, &all_lanes(arch, "ldi %s0 #1; ldi %r3 #0; div %s1 %s0 %r3"));
        let trap = end.trap.clone().unwrap();
        assert_eq!((trap.kind, trap.lanes, end.s(1)), (TrapKind::DivideByZero, 1, 0));
    }
}

/// A barrier with shared operands waits for all lanes as any other.
#[test]
fn barriers_with_shared_operands() {
    for arch in machines() {
        let text = "ldi %s0 #3; ldi %s1 #1; bar %s0 %s1; ldi %s2 #1";
        let end = run(arch, &all_lanes(arch, text));
        assert_eq!((end.trap.clone(), end.s(2)), (None, 1), "{arch}");
        if lanes(arch) > 1 {
            let text = format!("rtop @p0 %r0; {}", text.replace("bar", "@p0 ? bar"));
            let trap = run(arch, &all_lanes(arch, &text)).trap.unwrap();
            assert!(matches!(trap.kind, TrapKind::DivergentBarrier { .. }), "{arch} {trap}");
        }
    }
}

/// Shared results in the middle of a run, and beside what would make a pair.
#[test]
fn pairs_keep_to_lanes_registers() {
    for arch in machines() {
        let text = "ldi %r3 #3; ldi %s0 #4; shli %s1 %r3 #2; add %r4 %s0 %s1; muli %r5 %r0 #3
             add %s2 %s0 %r5; subi %s3 %s3 #1; rtop @p0 %s3; subi %r6 %s0 #4; iszero @s0 %r6";
        let end = run(arch, &all_lanes(arch, text));
        assert_eq!(end.trap, None, "{arch}");
        assert_eq!([end.s(1), end.s(2), end.s(3)], [12, 4, arch.word().mask()]);
        assert!(end.r(4).iter().all(|&value| value == 16) && end.sp(0));
        let all = u64::MAX >> (64 - lanes(arch));
        assert_eq!(end.warps[0].1[0], all);
    }
}

/// The names of the registers in messages and listings are those of the machine.
#[test]
fn instructions_are_printed_with_shared_names() {
    let arch: ArchId = "4b10/6/4/3+x+s6/2".parse().unwrap();
    let add = on(6, Op::Add { dst: r(10), a: r(9), b: r(15) });
    assert_eq!(add.display(arch).to_string(), "@s0 ? add %s0 %r9 %s5 ;");
    assert_eq!(arch.pred_name(p(7)).to_string(), "@s1");
}

/// What a device gets: a row from each lane, what is done once from the first.
#[test]
fn stores_to_a_device() {
    #[derive(Default)]
    struct Stores(Vec<Vec<[u64; 3]>>);
    impl Device for Stores {
        fn store(&mut self, store: &DeviceStore<'_>) {
            let lanes = store.lanes();
            self.0.push(lanes.map(|at| [at.lane.into(), at.address, at.value]).collect());
        }
    }
    for arch in machines() {
        let (n, width) = (lanes(arch), bytes(arch));
        let top = arch.word().bits() - 1;
        let device = (1 << top) + 0x100;
        let text = format!(
            "andi %r3 %r0 #1; rtop @p0 %r3; ldi %s0 #1; shli %s0 %s0 #{top}; addi %s0 %s0 #0x100
             addi %r4 %r0 #9; st %r4 %s0 #8; @p0 ? st %r4 %s0 #0; st %s0 %s0 #0
             @p0 ? st %s0 %s0 #8"
        );
        for path in [Path::Fast, Path::Precise] {
            let stores = Arc::new(Mutex::new(Stores::default()));
            let memory = Memory::new(arch.word(), MEMORY).unwrap();
            memory.write(0, &assemble_text(arch, &all_lanes(arch, &text))).unwrap();
            let config = MachineConfig { path, ..MachineConfig::new(arch) };
            let mut machine = Machine::new(config, &memory).unwrap();
            machine.set_device(device..device + 0x400, stores.clone());
            machine.run().unwrap();
            let row = |first: u64, skip: usize| {
                let lanes = (0..n).skip(skip).step_by(1 + skip);
                lanes.map(|lane| [lane, first + lane * width, lane + 9]).collect::<Vec<_>>()
            };
            let mut expected = vec![row(device + 8, 0)];
            if n > 1 {
                expected.push(row(device, 1));
            }
            expected.push(vec![[0, device, device]]);
            if n > 1 {
                expected.push(vec![[1, device + 8, device]]);
            }
            assert_eq!(stores.lock().unwrap().0, expected, "{arch} {path:?}");
            let stats = machine.stats().cores[0].warps[0];
            let odd = n / 2;
            assert_eq!(stats.stores, n + odd + 1 + u64::from(odd > 0), "{arch} {path:?}");
        }
    }
}

/// Traces and profiles name shared registers as listings do, and show what the first lane has done.
#[test]
fn traces_and_profiles_name_shared_registers() {
    let arch: ArchId = "4b10/6/4/3+x+s6/2".parse().unwrap();
    let text = all_lanes(
        arch,
        "rtop @s1 %r0; @s1 ? ldi %s2 #3; ld %s3 %s2 #0; @s1 ? split; join; ldi %s2 #0x1000; sth %r0 %s2 #3",
    );
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble_text(arch, &text)).unwrap();
    let collect = Collect::REGISTERS | Collect::BRANCHES | Collect::MEMORY | Collect::SCALARS;
    let mut machine =
        Machine::new(MachineConfig { collect, ..MachineConfig::new(arch) }, &memory).unwrap();
    let mut trace = TraceWriter::new(Trace::Instructions, TraceFormat::Text, Vec::new());
    machine.run_observed(&mut trace).unwrap();
    let lines = String::from_utf8(trace.finish().unwrap()).unwrap();
    for line in [
        "active 1111 executing 1000: rtop @s1 %r0 ; | @s1 = 0x0",
        "active 1111 executing 0000: @s1 ? ldi %s2 #0x3;",
        "active 1111 executing 1000: ld %s3 %s2 #0x0; | load 0x0 | %s3 = 0x40125ff",
        "active 1111 executing 0000: @s1 ? split ;",
        "sth %r0 %s2 #0x3; | store 0x1003 0x1005 0x1007 0x1009 = 0x0 0x1 0x2 0x3",
    ] {
        assert!(lines.contains(line), "{line} in\n{lines}");
    }
    let text = machine.profile().to_string();
    for line in ["@s1 split ", "\n%s3 ", "\n@s1 ", " ld %s3 %s2 #0x0;\n"] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let json = serde_json::to_string(&machine.profile()).unwrap();
    for part in ["\"register\":\"%s3\"", "\"guard\":\"@s1\"", "\"done\":\"once\""] {
        assert!(json.contains(part), "{part} in {json}");
    }
}

/// Stores of rows and of one word see read-only memory.
#[test]
fn shared_stores_into_read_only_memory() {
    for arch in machines() {
        for value in ["%r0", "%s0"] {
            let address = OUT - bytes(arch);
            let text = all_lanes(arch, &format!("ldi %s0 #{address}; st {value} %s0 #0"));
            let trap = run_with(arch, &text, |config| config.read_only_below = OUT).trap.unwrap();
            let kind = TrapKind::ReadOnly { address, limit: OUT };
            assert_eq!((trap.kind, trap.lanes), (kind, 1), "{arch} {value}");
        }
    }
}

/// A machine that starts again has forgotten what its lanes shared.
#[test]
fn a_reset_clears_shared_registers() {
    for arch in machines() {
        // The results are these only if the registers are 0 at first.
        let text = "addi %s5 %s5 #7; ptor %s1 @s1; notp @s1 @s1; halt";
        let memory = Memory::new(arch.word(), MEMORY).unwrap();
        memory.write(0, &assemble_text(arch, text)).unwrap();
        let mut machine = Machine::new(MachineConfig::new(arch), &memory).unwrap();
        for _ in 0..2 {
            machine.run().unwrap();
            let [last, bit] = [5, 1].map(|number| arch.shared_gpr(number).unwrap());
            let warp = machine.warp(0, 0).unwrap();
            assert_eq!((warp.gpr(last, 0), warp.gpr(bit, 0)), (Some(7), Some(0)), "{arch}");
            machine.reset();
        }
    }
}
