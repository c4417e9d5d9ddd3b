//! Where this emulator does something else than the original, or decides what the original left
//! open: a program that would run into each difference gets what is documented.

use harp_emu::{
    BarrierWait, DivergentBarriers, Floats, Interrupts, MachineConfig, Path, Reconvergence,
    Schedule, SpawnPolicy, TrapKind,
};
use harp_isa::{ArchId, Instruction, Op, Opcode};

use crate::common::*;

/// The original's machine.
fn original(config: &mut MachineConfig) {
    config.schedule = Schedule::Step;
    config.interrupts = Interrupts::Guest;
    config.spawn = SpawnPolicy::Original;
    config.divergent_barriers = DivergentBarriers::Allow;
}

/// Runs on both paths, which agree, with all lanes of a machine of 4 active and their numbers in
/// `%r0`.
fn both(arch: &str, code: &[Instruction], adjust: impl Fn(&mut MachineConfig)) -> Run {
    let id: ArchId = arch.parse().unwrap();
    let mut all = all_lanes(id).to_vec();
    all.push(Op::Tid { dst: r(0) }.into());
    all.extend_from_slice(code);
    let [fast, precise] = [Path::Fast, Path::Precise].map(|path| {
        run(arch, &all, |config| {
            adjust(config);
            config.path = path;
        })
    });
    assert_eq!(
        (&fast.trap, &fast.stats, &fast.console),
        (&precise.trap, &precise.stats, &precise.console)
    );
    fast
}

// Section 4: instructions.

#[test]
fn register_targets_must_agree() {
    // The original follows the first lane.
    let code = [Op::Jmpr { target: r(0) }.into()];
    let run = both("4w16/8/4/1+x", &code, original);
    assert_eq!(*run.kind(), TrapKind::DivergentTarget { opcode: Opcode::Jmpr });
    assert_eq!(run.trap.unwrap().lanes, 0b1110);
}

#[test]
fn a_link_is_written_before_its_target_is_read() {
    for arch in ["4w16/8/4/1+x", "8w16/8/4/1+x"] {
        let width = i64::from(arch.parse::<ArchId>().unwrap().word().bytes());
        // `jalr %r5, %r5` goes on behind itself whatever %r5 was.
        let code = [
            ldi(5, 0),
            Op::Jalr { link: r(5), target: r(5) }.into(),
            ldi(6, OUT),
            st(5, 6, 0),
            halt(),
        ];
        let run = both(arch, &code, original);
        assert_eq!((run.trap.clone(), run.word(OUT as u64)), (None, 5 * width as u64));
    }
}

#[test]
fn more_lanes_than_there_are() {
    // The original writes beyond its arrays.
    let code = [ldi(3, 5), Op::Jalis { link: r(5), lanes: r(3), rel: 0 }.into()];
    let run = both("4w16/8/4/1+x", &code, original);
    assert_eq!(*run.kind(), TrapKind::TooManyLanes { given: 5, limit: 4 });
    let code = [ldi(3, 4), Op::Clone { lane: r(3) }.into()];
    let run = both("4w16/8/4/1+x", &code, original);
    assert_eq!(*run.kind(), TrapKind::NoSuchLane { given: 4, limit: 4 });
}

#[test]
fn no_lanes_stop_the_warp() {
    let code =
        [ldi(3, 0), Op::Jalis { link: r(5), lanes: r(3), rel: 0 }.into(), Op::Trap {}.into()];
    let run = both("4w16/8/4/1+x", &code, original);
    assert_eq!((run.trap, run.stats.issued()), (None, 5));
}

#[test]
fn spawning_beyond_the_last_warp() {
    let spawn = Op::Wspawn { dst: r(5), pc: r(3), src: r(3) };
    let code = [ldi(3, 20), spawn.into(), halt()];
    let strict = both("4w16/8/4/1+x", &code, |_| {});
    assert_eq!(*strict.kind(), TrapKind::NoWarpLeft { limit: 1 });
    assert_eq!(both("4w16/8/4/1+x", &code, original).trap, None);
}

#[test]
fn words_at_odd_addresses_end_with_their_word() {
    let code =
        [ldi(3, OUT + 1), ldi(4, -1), st(4, 3, 0), ld(5, 3, 1), ldi(3, OUT), st(5, 3, 4), halt()];
    let run = both("4w16/8/1/1+x", &code, original);
    assert_eq!((run.word(OUT as u64), run.word(OUT as u64 + 4)), (0xffff_ff00, 0xffff));
}

#[test]
fn shifts_by_the_word_or_more() {
    let code = |op: fn(harp_isa::Gpr, harp_isa::Gpr) -> Op, count| {
        [ldi(3, -8), ldi(4, count), op(r(3), r(4)).into(), ldi(4, OUT), st(5, 4, 0), halt()]
    };
    let right = |a, b| Op::Shr { dst: r(5), a, b };
    let left = |a, b| Op::Shl { dst: r(5), a, b };
    let result = |arch, op, count| both(arch, &code(op, count), original).word(OUT as u64);
    assert_eq!(result("4w16/8/1/1+x", right, 32), 0);
    assert_eq!(result("4w16/8/1/1+x", right, 31), 1);
    assert_eq!(result("8w16/8/1/1+x", right, 64), u64::MAX);
    assert_eq!(result("8w16/8/1/1+x", right, -1), u64::MAX);
    assert_eq!(result("4w16/8/1/1+x", left, 32), 0);
    assert_eq!(result("8w16/8/1/1+x", left, 64), 0);
}

#[test]
fn negative_immediates_of_or_and_divi_are_cut_to_the_word() {
    // The original computes these on 64 bits of the host, on 4-byte machines too.
    let code = [
        ldi(3, 0x10),
        Op::Divi { dst: r(4), src: r(3), imm: -1 }.into(),
        Op::Ori { dst: r(3), src: r(3), imm: -1 }.into(),
        Op::Shri { dst: r(3), src: r(3), imm: 1 }.into(),
        ldi(5, OUT),
        st(3, 5, 0),
        st(4, 5, 4),
        halt(),
    ];
    let run = both("4w16/8/1/1+x", &code, original);
    assert_eq!((run.word(OUT as u64), run.word(OUT as u64 + 4)), (0x7fff_ffff, 0));
}

#[test]
fn itof_of_negative_numbers() {
    let code =
        [ldi(3, -2), Op::Itof { dst: r(3), src: r(3) }.into(), ldi(5, OUT), st(3, 5, 0), halt()];
    let run = both("4w16/8/1/1+x", &code, original);
    assert_eq!(run.word(OUT as u64), u64::from((-2_f32).to_bits()));
    let run = both("4w16/8/1/1+x", &code, |config| config.floats = Floats::Reference);
    // 2^32 - 2, truncated.
    assert_eq!(run.word(OUT as u64), 0x4f7f_ffff);
}

#[test]
fn registers_and_predicates_start_as_zero() {
    let code = [
        on(1, Op::Trap {}),
        Op::Notp { dst: p(1), src: p(1) }.into(),
        ldi(5, OUT),
        on(1, Op::St { value: r(7), base: r(5), offset: 0 }),
        halt(),
    ];
    let run = both("4w16/8/4/1+x", &code, original);
    assert_eq!((run.trap.clone(), run.stats.stores()), (None, 4));
}

// Section 5: the divergence stack.

#[test]
fn the_stack_has_a_bottom_and_a_top() {
    let run = both("4w16/8/4/1+x", &[Op::Join {}.into()], original);
    assert_eq!(*run.kind(), TrapKind::StackUnderflow);
    let endless = [Op::Split {}.into(), Op::Jmpi { rel: -8 }.into()];
    let run = both("4w16/8/4/1+x", &endless, original);
    assert_eq!(*run.kind(), TrapKind::StackOverflow { limit: 4096 });
    assert_eq!(run.stats.divergence_high_water(), 4096);
}

#[test]
fn unanimity_looks_at_active_lanes_only() {
    // Only lanes 0 and 1 are active, and agree. The original would look at lanes 2 and 3 too and run
    // the empty other side.
    let code = [
        ldi(3, 2),
        Op::Jalis { link: r(5), lanes: r(3), rel: 0 }.into(),
        ldi(4, 1),
        Op::Rtop { dst: p(1), src: r(4) }.into(),
        on(1, Op::Split {}),
        on(1, Op::Jmpi { rel: 4 }),
        Op::Trap {}.into(),
        Op::Join {}.into(),
        halt(),
    ];
    let run = both("4w16/8/4/1+x", &code, original);
    assert_eq!((run.trap.clone(), run.stats.divergence_high_water()), (None, 1));
}

#[test]
fn a_join_needs_no_lane_to_pop() {
    // The guard of `split` selects the side, that of `join` means nothing.
    let code = [Op::Split {}.into(), on(1, Op::Join {}), Op::Join {}.into()];
    let run = both("4w16/8/4/1+x", &code, original);
    assert_eq!((run.kind(), run.trap.as_ref().unwrap().pc), (&TrapKind::StackUnderflow, 20));
}

#[test]
fn calls_of_lanes_inside_a_split_leave_those_out_that_it_holds_back() {
    // The even lanes call all four, of which the original lets A and C print.
    let call = |count| {
        [
            Op::Andi { dst: r(3), src: r(0), imm: 1 }.into(),
            Op::Iszero { dst: p(1), src: r(3) }.into(),
            ldi(4, 1),
            Op::Shli { dst: r(4), src: r(4), imm: 31 }.into(),
            Op::Addi { dst: r(5), src: r(0), imm: 65 }.into(),
            ldi(6, count),
            on(1, Op::Split {}),
            on(1, Op::Jmpi { rel: 4 }),
            Op::Jmpi { rel: 4 }.into(),
            Op::Jalis { link: r(7), lanes: r(6), rel: 8 }.into(),
            Op::Join {}.into(),
            halt(),
            st(5, 4, 0),
            Op::Jmpr { target: r(7) }.into(),
        ]
    };
    let run = both("4w16/8/4/1+x", &call(4), original);
    assert_eq!((run.trap.clone(), run.console.as_slice()), (None, &b"AC"[..]));
    let run = both("4w16/8/4/1+x", &call(1), original);
    assert_eq!((run.trap.clone(), run.console.as_slice()), (None, &b"A"[..]));
}

#[test]
fn a_trap_counts_one_however_many_lanes_execute_it() {
    // The handler ends the program.
    let code = |first: Op| {
        [ldi(3, 7 * 4), Op::Skep { entry: r(3) }.into(), first.into(), Op::Trap {}.into(), halt()]
    };
    // ldi and jalis by one lane, tid and what follows by 4, `trap` one, `halt` one.
    let run = both("4w16/8/4/1+x", &code(Op::Nop {}), original);
    assert_eq!((run.trap.clone(), run.stats.insts()), (None, 1 + 1 + 4 + 4 + 4 + 4 + 1 + 1));
    // With interrupts off it does nothing, in each lane.
    let run = both("4w16/8/4/1+x", &code(Op::Di {}), original);
    assert_eq!((run.trap.clone(), run.stats.insts()), (None, 1 + 1 + 4 + 4 + 4 + 4 + 4 + 1));
}

/// Lane i counts to i + 1 in `%r4`; without a `join` in the loop.
fn divergent_loop() -> Vec<Instruction> {
    vec![
        ldi(4, 0),
        Op::Addi { dst: r(4), src: r(4), imm: 1 }.into(),
        Op::Sub { dst: r(5), a: r(4), b: r(0) }.into(),
        Op::Subi { dst: r(5), src: r(5), imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(5) }.into(),
        on(1, Op::Split {}),
        on(1, Op::Jmpi { rel: -24 }),
        Op::Muli { dst: r(6), src: r(0), imm: 4 }.into(),
        st(4, 6, OUT),
        halt(),
    ]
}

#[test]
fn loops_reconverge_at_their_split_on_request() {
    let pdom = |config: &mut MachineConfig| config.reconvergence = Reconvergence::Pdom;
    let run = both("4w16/8/4/1+x", &divergent_loop(), pdom);
    assert_eq!(run.trap, None);
    let counts: Vec<_> = (0..4).map(|lane| run.word(OUT as u64 + 4 * lane)).collect();
    assert_eq!(counts, [1, 2, 3, 4]);
    assert_eq!(run.stats.divergence_high_water(), 2);
    // All lanes store together.
    assert_eq!(run.stats.stores(), 4);
    // Without it the last lane ends the program while the others wait.
    let run = both("4w16/8/4/1+x", &divergent_loop(), original);
    assert_eq!((run.trap.clone(), run.stats.stores()), (None, 1));
}

#[test]
fn loops_whose_lanes_agree_at_first_reconverge_too() {
    // Every lane goes three rounds more.
    let mut code = divergent_loop();
    code[0] = ldi(4, -3);
    let run = both("4w16/8/4/1+x", &code, |config| config.reconvergence = Reconvergence::Pdom);
    let counts: Vec<_> = (0..4).map(|lane| run.word(OUT as u64 + 4 * lane)).collect();
    assert_eq!((run.trap.clone(), counts), (None, vec![1, 2, 3, 4]));
    assert_eq!((run.stats.stores(), run.stats.divergence_high_water()), (4, 2));
    // And a loop whose lanes agree to the end leaves nothing behind: a `join` finds nothing.
    let mut code = divergent_loop();
    code[2] = Op::Subi { dst: r(5), src: r(4), imm: 2 }.into();
    code[8] = Op::Join {}.into();
    let run = both("4w16/8/4/1+x", &code, |config| config.reconvergence = Reconvergence::Pdom);
    assert_eq!(*run.kind(), TrapKind::StackUnderflow);
}

// Section 6: memory and barriers; interrupts and pages have files of their own.

#[test]
fn addresses_that_nothing_answers_stop_the_run() {
    let code = [ldi(3, MEMORY as i64), st(0, 3, 0)];
    let run = both("4w16/8/4/1+x", &code, original);
    assert_eq!(*run.kind(), TrapKind::BadAddress { address: MEMORY, store: true });
    assert_eq!(
        *both("4w16/8/4/1+x", &[Op::Jmpr { target: r(0) }.into()], |config| {
            config.fuel = Some(3);
        })
        .kind(),
        TrapKind::OutOfFuel { limit: 3 }
    );
}

#[test]
fn barriers_that_some_lanes_miss() {
    let code = [
        Op::Rtop { dst: p(1), src: r(0) }.into(),
        ldi(3, 1),
        on(1, Op::Split {}),
        on(1, Op::Bar { id: r(3), warps: r(3) }),
        Op::Join {}.into(),
        halt(),
    ];
    let run = both("4w16/8/4/1+x", &code, |_| {});
    assert_eq!(*run.kind(), TrapKind::DivergentBarrier { expected: 0b1111 });
    assert_eq!(run.trap.unwrap().lanes, 0b1110);
    assert_eq!(both("4w16/8/4/1+x", &code, original).trap, None);
    // A guard is no better than a split.
    let code = [code[0], code[1], code[3], halt()];
    let run = both("4w16/8/4/1+x", &code, |_| {});
    assert_eq!(*run.kind(), TrapKind::DivergentBarrier { expected: 0b1111 });
}

#[test]
fn an_outer_split_may_hold_lanes_back_from_barriers() {
    // Lane 3 has no work; `inner` says whether lane 0 is sent away too.
    let code = |inner| {
        [
            Op::Subi { dst: r(3), src: r(0), imm: 3 }.into(),
            Op::Rtop { dst: p(1), src: r(3) }.into(),
            Op::Andi { dst: r(4), src: r(0), imm: inner }.into(),
            Op::Iszero { dst: p(2), src: r(4) }.into(),
            ldi(3, 1),
            on(1, Op::Split {}),
            on(1, Op::Jmpi { rel: 4 }),
            Op::Jmpi { rel: 20 }.into(),
            on(2, Op::Split {}),
            on(2, Op::Bar { id: r(3), warps: r(3) }),
            Op::Join {}.into(),
            Op::Nop {}.into(),
            Op::Nop {}.into(),
            Op::Join {}.into(),
            halt(),
        ]
    };
    let split = 8 * 4_u64;
    let outer = |config: &mut MachineConfig| {
        config.divergent_barriers = DivergentBarriers::Trap { outer_split: Some(split) };
    };
    assert_eq!(both("4w16/8/4/1+x", &code(0), outer).trap, None);
    let run = both("4w16/8/4/1+x", &code(3), outer);
    assert_eq!(*run.kind(), TrapKind::DivergentBarrier { expected: 0b0111 });
    assert_eq!(run.trap.unwrap().lanes, 0b0001);
    let strict = both("4w16/8/4/1+x", &code(0), |_| {});
    assert_eq!(*strict.kind(), TrapKind::DivergentBarrier { expected: 0b1111 });
}

// Section 12: what the original does not say.

#[test]
fn a_deadlock_names_everybody_who_waits() {
    // Warp i waits at barrier i + 7 for 2 + i warps.
    let code = [
        ldi(3, 12),
        ldi(4, 1),
        Op::Wspawn { dst: r(5), pc: r(3), src: r(4) }.into(),
        Op::Addi { dst: r(6), src: r(5), imm: 7 }.into(),
        Op::Addi { dst: r(7), src: r(5), imm: 2 }.into(),
        Op::Bar { id: r(6), warps: r(7) }.into(),
        halt(),
    ];
    for schedule in [Schedule::Step, Schedule::default(), Schedule::Seeded(3)] {
        let run = run("4w16/8/4/2", &code, |config| config.schedule = schedule);
        let wait = |warp: u8| BarrierWait {
            warp,
            pc: 20,
            lanes: 1,
            barrier: u64::from(warp) + 7,
            wanted: u64::from(warp) + 2,
        };
        assert_eq!(*run.kind(), TrapKind::Deadlock { waiting: vec![wait(0), wait(1)] });
    }
}

#[test]
fn one_warp_alone_does_not_wait() {
    let code = [ldi(3, 1), Op::Bar { id: r(3), warps: r(3) }.into(), halt()];
    let run = both("4w16/8/4/2+x", &code, original);
    assert_eq!((run.trap.clone(), run.stats.issued()), (None, 6));
}

#[test]
fn splits_and_joins_count_every_lane_that_was_activated() {
    let code =
        [Op::Rtop { dst: p(1), src: r(0) }.into(), on(1, Op::Split {}), Op::Join {}.into(), halt()];
    let run = both("4w16/8/4/1+x", &code, original);
    // ldi and jalis by one lane, tid and rtop by 4; the `join` once for each side;
    // `halt` counts one.
    assert_eq!(run.stats.insts(), 1 + 1 + 4 + 4 + 4 + 4 + 4 + 1);
    assert_eq!(run.stats.issued(), 8);
}

/// A `join` brings lanes back that `jmprt` has stopped since the `split`. Then more lanes execute than were activated.
#[test]
fn splits_and_joins_count_no_lane_that_was_not_activated() {
    let split: Instruction = Op::Split {}.into();
    let code = [split, ldi(3, 24), Op::Jmprt { target: r(3) }.into(), Op::Join {}.into()];
    let code = [&code[..], &[split; 40], &[halt()]].concat();
    let run = both("4w16/8/4/1+x", &code, original);
    // ldi and jalis by one lane, tid, the first split and what follows up to `jmprt` by 4; the rest one each.
    assert_eq!((run.trap.clone(), run.stats.insts()), (None, 1 + 1 + 4 * 4 + 1 + 40 + 1));
}

#[test]
fn a_divergent_branch_counts_no_lane_but_a_step() {
    let code = [Op::Rtop { dst: p(1), src: r(0) }.into(), on(1, Op::Jmpi { rel: 0 })];
    let run = both("4w16/8/4/1+x", &code, |_| {});
    assert_eq!(*run.kind(), TrapKind::DivergentBranch { opcode: Opcode::Jmpi });
    assert_eq!((run.stats.insts(), run.stats.issued()), (1 + 1 + 4 + 4, 5));
}

#[test]
fn a_faulting_lane_counts_before_it_faults() {
    let code = [Op::Div { dst: r(3), a: r(0), b: r(0) }.into()];
    let run = both("4w16/8/4/1+x", &code, |_| {});
    assert_eq!((run.stats.insts(), run.stats.issued()), (1 + 1 + 4 + 4, 4));
    assert_eq!(run.stats.loads() + run.stats.stores(), 0);
}

// Code that changes: the original reads every instruction from memory.

#[test]
fn stores_to_code_are_seen_at_once() {
    for arch in ["4w16/8/4/1+x", "4b16/8/4/1+x", "8w16/8/4/1+x", "8b16/8/4/1+x"] {
        let id: ArchId = arch.parse().unwrap();
        let size = |code: &[Instruction]| assemble(id, code).len() as i64;
        // The loop's first instruction adds 1, until it is replaced by one that adds 16. Then it stops.
        let add = |imm| Instruction::from(Op::Addi { dst: r(5), src: r(5), imm });
        let replacement = assemble(id, &[add(16)]);
        let width = usize::from(id.word().bytes());
        let words = replacement.len().div_ceil(width);
        let body = |start: i64, source: i64| {
            let mut code = vec![ldi(6, source), ldi(7, start)];
            code.push(Op::Subi { dst: r(4), src: r(4), imm: 1 }.into());
            code.push(Op::Rtop { dst: p(1), src: r(4) }.into());
            // Byte by byte, for code may lie anywhere.
            for i in 0..words * width {
                let i = i as i64;
                if i < replacement.len() as i64 {
                    code.push(Op::Ldb { dst: r(3), base: r(6), offset: i }.into());
                    code.push(Op::Stb { value: r(3), base: r(7), offset: i }.into());
                }
            }
            code
        };
        let mut code = all_lanes(id).to_vec();
        code.extend([ldi(4, 3), ldi(5, 0)]);
        let start = size(&code);
        let mut around = vec![add(1)];
        around.extend(body(start, 0x2000));
        let back = size(&around) + size(&[on(1, Op::Jmpi { rel: 0 })]);
        around.push(on(1, Op::Jmpi { rel: -back }));
        code.extend(around);
        code.extend([ldi(6, OUT), st(5, 6, 0), halt()]);
        for path in [Path::Fast, Path::Precise] {
            let memory = harp_emu::Memory::new(id.word(), MEMORY).unwrap();
            memory.write(0, &assemble(id, &code)).unwrap();
            memory.write(0x2000, &replacement).unwrap();
            let run = run_in(id, memory, |config| config.path = path);
            assert_eq!(
                (run.trap.clone(), run.word(OUT as u64)),
                (None, 1 + 16 + 16),
                "{arch} {path:?}"
            );
        }
    }
}
