//! Profiles and statistics of a small program, every number worked out by hand.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroUsize};

use expect_test::expect;
use harp_emu::{
    BranchMasks, Collect, LISTED_BRANCH_MASKS, Machine, MachineConfig, Memory, OpcodeCounts, Path,
    Profile, RegisterCount, Stats,
};
use harp_isa::{ArchId, Instruction, Op, Opcode};

use crate::common::*;

const ARCH: &str = "4w8/8/4/1+x";

/// 19 instructions are issued: the seven up to the `split` at 0x18; for lanes 1 and 3 those at 0x1c,
/// 0x28 and 0x2c; for lanes 0 and 2 those at 0x1c, 0x20, 0x24 and 0x2c; and the five from 0x30 on.
fn program() -> Vec<Instruction> {
    vec![
        ldi(1, 4),
        Op::Jalis { link: r(2), lanes: r(1), rel: 0 }.into(),
        Op::Tid { dst: r(0) }.into(),
        Op::Andi { dst: r(3), src: r(0), imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(3) }.into(),
        on(1, Op::Addi { dst: r(3), src: r(3), imm: 1 }),
        on(1, Op::Split {}),
        on(1, Op::Jmpi { rel: 8 }),
        ldi(4, 0),
        Op::Jmpi { rel: 4 }.into(),
        ldi(4, 1),
        Op::Join {}.into(),
        Op::Shli { dst: r(5), src: r(0), imm: 2 }.into(),
        st(4, 5, 0x100),
        ld(6, 5, 0x13c),
        ld(6, 7, 0x100),
        halt(),
    ]
}

/// Runs `code` and collects everything.
fn collect(
    arch: &str,
    code: &[Instruction],
    adjust: impl FnOnce(&mut MachineConfig),
) -> (Profile, Stats) {
    let arch: ArchId = arch.parse().unwrap();
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, code)).unwrap();
    let collect = Collect::all();
    let mut config = MachineConfig { collect, fuel: Some(100_000), ..MachineConfig::new(arch) };
    adjust(&mut config);
    let mut machine = Machine::new(config, &memory).unwrap();
    let stats = machine.run().unwrap();
    (machine.profile(), stats)
}

fn profile() -> Profile {
    collect(ARCH, &program(), |_| {}).0
}

#[test]
fn opcodes() {
    let count = |issued, skipped, lanes| OpcodeCounts { issued, skipped, lanes };
    let expected = BTreeMap::from([
        (Opcode::Ldi, count(3, 0, 5)),
        (Opcode::Jalis, count(1, 0, 1)),
        (Opcode::Tid, count(1, 0, 4)),
        (Opcode::Andi, count(1, 0, 4)),
        (Opcode::Rtop, count(1, 0, 4)),
        (Opcode::Addi, count(1, 0, 2)),
        (Opcode::Split, count(1, 0, 2)),
        (Opcode::Jmpi, count(3, 1, 4)),
        (Opcode::Join, count(2, 0, 4)),
        (Opcode::Shli, count(1, 0, 4)),
        (Opcode::St, count(1, 0, 4)),
        (Opcode::Ld, count(2, 0, 8)),
        (Opcode::Halt, count(1, 0, 4)),
    ]);
    assert_eq!(profile().opcodes, expected);
}

#[test]
fn lanes() {
    let profile = profile();
    assert_eq!(profile.lanes.active.counts(), [0, 2, 7, 0, 10]);
    assert_eq!(profile.lanes.executing.counts(), [1, 2, 8, 0, 8]);
    assert_eq!(profile.active_efficiency(), Some(56.0 / 76.0));
    assert_eq!(profile.executing_efficiency(), Some(50.0 / 76.0));
}

#[test]
fn depth() {
    assert_eq!(profile().depth.counts(), [12, 4, 3]);
}

#[test]
fn branches() {
    let profile = profile();
    assert_eq!(profile.branches.keys().collect::<Vec<_>>(), [&0x18, &0x1c]);
    let masks = |active, taken| BranchMasks { active, taken };

    let split = &profile.branches[&0x18];
    assert_eq!((split.opcode, split.guard), (Opcode::Split, Some(p(1))));
    assert_eq!((split.executed, split.unanimous_true, split.unanimous_false), (1, 0, 0));
    assert_eq!(split.divergent, 1);
    assert_eq!(split.active.counts(), [0, 0, 0, 0, 1]);
    assert_eq!(split.taken.counts(), [0, 0, 1]);
    assert_eq!(split.masks, BTreeMap::from([(masks(0b1111, 0b1010), 1)]));

    let jump = &profile.branches[&0x1c];
    assert_eq!((jump.opcode, jump.guard), (Opcode::Jmpi, Some(p(1))));
    assert_eq!((jump.executed, jump.unanimous_true, jump.unanimous_false), (2, 1, 1));
    assert_eq!(jump.divergent, 0);
    assert_eq!(jump.active.counts(), [0, 0, 2]);
    assert_eq!(jump.taken.counts(), [1, 0, 1]);
    let both = [(masks(0b1010, 0b1010), 1), (masks(0b0101, 0), 1)];
    assert_eq!(jump.masks, BTreeMap::from(both));
    assert_eq!((split.unlisted, jump.unlisted), (0, 0));
}

#[test]
fn registers() {
    let registers = profile().registers;
    let count = |reads, lane_reads, writes, lane_writes| RegisterCount {
        reads,
        writes,
        lane_reads,
        lane_writes,
    };
    let gprs = [
        count(2, 8, 1, 4), // read by andi, shli; written by tid
        count(1, 1, 1, 1), // read by jalis; written by ldi
        count(0, 0, 1, 1), // written by jalis
        count(2, 6, 2, 6), // read by rtop, addi; written by andi, addi
        count(1, 4, 2, 4), // read by st; written by ldi twice
        count(2, 8, 1, 4), // read by st, ld; written by shli
        count(0, 0, 2, 8), // written by ld twice
        count(1, 4, 0, 0), // read by ld
    ];
    for (index, expected) in (0..).zip(gprs) {
        assert_eq!(registers.gpr(r(index)), expected, "%r{index}");
    }
    // Guards of addi, split, and jmpi for each side; written by rtop.
    assert_eq!(registers.pred(p(1)), count(4, 12, 1, 4));
    assert_eq!(registers.registers().count(), 9);
    assert_eq!(registers.reads.counts(), [0, 1, 3, 0, 9]);
    assert_eq!(registers.writes.counts(), [0, 2, 3, 0, 6]);
}

#[test]
fn memory() {
    // The store uses 0x100 to 0x10f; the first load 0x13c to 0x14b; the second one address.
    for (segment_bytes, segments) in [(64, [1, 2, 1]), (8, [2, 3, 1]), (1, [16, 16, 4])] {
        let adjust = |config: &mut MachineConfig| {
            config.segment_bytes = NonZeroU32::new(segment_bytes).unwrap();
        };
        let (profile, _) = collect(ARCH, &program(), adjust);
        let rows = [(0x34, Opcode::St, 4), (0x38, Opcode::Ld, 4), (0x3c, Opcode::Ld, 1)];
        assert_eq!(profile.memory.len(), rows.len());
        for ((pc, opcode, addresses), segments) in rows.into_iter().zip(segments) {
            let row = &profile.memory[&pc];
            assert_eq!(row.opcode, opcode);
            assert_eq!((row.lanes.total(), row.lanes.sum()), (1, 4));
            assert_eq!((row.addresses.total(), row.addresses.sum()), (1, addresses));
            assert_eq!((row.segments.total(), row.segments.sum()), (1, segments));
        }
    }
}

#[test]
fn statistics_as_json() {
    let (_, stats) = collect("4w8/8/4/2+x", &program(), |_| {});
    // Of the 50 executing lanes `split` and both `join`s have 2 and count 4, `halt` has 4 and counts 1.
    let expected = expect![[r#"
        {
          "steps": 19,
          "issued": 19,
          "insts": 53,
          "loads": 8,
          "stores": 4,
          "divergence_high_water": 2,
          "cores": [
            {
              "steps": 19,
              "issued": 19,
              "insts": 53,
              "loads": 8,
              "stores": 4,
              "divergence_high_water": 2,
              "warps": [
                {
                  "steps": 19,
                  "insts": 53,
                  "loads": 8,
                  "stores": 4,
                  "divergence_high_water": 2
                },
                {
                  "steps": 0,
                  "insts": 0,
                  "loads": 0,
                  "stores": 0,
                  "divergence_high_water": 0
                }
              ]
            }
          ]
        }"#]];
    expected.assert_eq(&serde_json::to_string_pretty(&stats).unwrap());
}

#[test]
fn traps_as_json() {
    let code = [
        ldi(1, 4),
        Op::Jalis { link: r(2), lanes: r(1), rel: 0 }.into(),
        Op::Tid { dst: r(0) }.into(),
        Op::Andi { dst: r(0), src: r(0), imm: 1 }.into(),
        Op::Div { dst: r(3), a: r(1), b: r(0) }.into(),
    ];
    let trap = run(ARCH, &code, |_| {}).trap.unwrap();
    expect![[
        r#"{"kind":"divide_by_zero","message":"division by zero","core":0,"warp":0,"pc":"0x10","lanes":[0,2]}"#
    ]]
    .assert_eq(&serde_json::to_string(&trap).unwrap());
}

#[test]
fn profile_as_json() {
    let adjust = |config: &mut MachineConfig| {
        config.collect = Collect::LANES | Collect::BRANCHES | Collect::REGISTERS | Collect::MEMORY;
    };
    let code = [
        Op::Rtop { dst: p(1), src: r(0) }.into(),
        on(1, Op::Split {}),
        Op::Join {}.into(),
        ld(2, 1, 8),
        halt(),
    ];
    let (profile, _) = collect("4w8/8/2/1", &code, adjust);
    let object = serde_json::to_value(&profile).unwrap();
    let lines = object.as_object().unwrap().iter();
    let text: String = lines.map(|(name, value)| format!("{name}: {value}\n")).collect();
    expect![[r#"
        arch: "4w8/8/2/1"
        branches: [{"active":{"counts":[0,1],"sum":1,"total":1},"divergent":0,"executed":1,"guard":"@p1","masks":[{"active":[0],"taken":[0],"times":1}],"opcode":"split","pc":"0x4","taken":{"counts":[0,1],"sum":1,"total":1},"unanimous_false":0,"unanimous_true":1,"unlisted":0}]
        lanes: {"active":{"counts":[0,5],"sum":5,"total":5},"executing":{"counts":[0,5],"sum":5,"total":5}}
        memory: [{"addresses":{"counts":[0,1],"sum":1,"total":1},"lanes":{"counts":[0,1],"sum":1,"total":1},"opcode":"ld","pc":"0xc","segments":{"counts":[0,1],"sum":1,"total":1}}]
        registers: {"reads":{"counts":[0,3],"sum":3,"total":3},"registers":[{"lane_reads":1,"lane_writes":0,"reads":1,"register":"%r0","writes":0},{"lane_reads":1,"lane_writes":0,"reads":1,"register":"%r1","writes":0},{"lane_reads":0,"lane_writes":1,"reads":0,"register":"%r2","writes":1},{"lane_reads":1,"lane_writes":1,"reads":1,"register":"@p1","writes":1}],"writes":{"counts":[0,2],"sum":2,"total":2}}
        segment_bytes: 64
    "#]].assert_eq(&text);
}

#[test]
fn profile_as_text() {
    expect![[r#"
        === Opcodes ===
        opcode           issued      skipped          lanes
        ldi                   3            0              5
        jmpi                  3            1              4
        ld                    2            0              8
        join                  2            0              4
        andi                  1            0              4
        addi                  1            0              2
        shli                  1            0              4
        rtop                  1            0              4
        st                    1            0              4
        halt                  1            0              4
        jalis                 1            0              1
        split                 1            0              2
        tid                   1            0              4
        === Lanes ===
        active efficiency: 73.68 %
        executing efficiency: 65.79 %
        lanes            active    executing
        0                     0            1
        1                     2            2
        2                     7            8
        4                    10            8
        === Divergence stack ===
        entries          issued
        0                    12
        1                     4
        2                     3
        === Branches ===
        pc         branch         executed     all true    all false    divergent        lanes        taken    masks
        0x18       @p1 split             1            0            0            1            4            2        1
        0x1c       @p1 jmpi              2            1            1            0            4            2        2
        === Registers ===
        register          reads     lane reads       writes    lane writes
        %r0                   2              8            1              4
        %r1                   1              1            1              1
        %r2                   0              0            1              1
        %r3                   2              6            2              6
        %r4                   1              4            2              4
        %r5                   2              8            1              4
        %r6                   0              0            2              8
        %r7                   1              4            0              0
        @p1                   4             12            1              4
        === Memory, segments of 64 bytes ===
        pc         opcode         executed      skipped          lanes      addresses       segments
        0x34       st                    1            0              4       4 (4.00)       1 (1.00)
        0x38       ld                    1            0              4       4 (4.00)       2 (2.00)
        0x3c       ld                    1            0              4       1 (1.00)       1 (1.00)
        === Once or in each lane ===
        pc         done        issued     together   operations        reads       writes    addresses         data  instruction
        0x0        each             1            1            1            0            1            0            0  ldi %r1 #0x4;
        0x4        each             1            1            1            1            1            0            0  jalis %r2 %r1 #0x0;
        0x8        each             1            1            4            0            4            0            0  tid %r0 ;
        0xc        each             1            1            4            4            4            0            0  andi %r3 %r0 #0x1;
        0x10       each             1            1            4            4            4            0            0  rtop @p1 %r3 ;
        0x14       each             1            1            2            6            2            0            0  @p1 ? addi %r3 %r3 #0x1;
        0x18       each             1            1            4            4            0            0            0  @p1 ? split ;
        0x1c       each             2            0            4            4            0            0            0  @p1 ? jmpi #0x8;
        0x20       each             1            0            2            0            2            0            0  ldi %r4 #0x0;
        0x24       each             1            0            2            0            0            0            0  jmpi #0x4;
        0x28       each             1            0            2            0            2            0            0  ldi %r4 #0x1;
        0x2c       each             2            0            4            0            0            0            0  join ;
        0x30       each             1            1            4            4            4            0            0  shli %r5 %r0 #0x2;
        0x34       each             1            1            4            8            0            4            4  st %r4 %r5 #0x100;
        0x38       each             1            1            4            4            4            4            4  ld %r6 %r5 #0x13c;
        0x3c       each             1            1            4            4            4            4            4  ld %r6 %r7 #0x100;
        0x40       each             1            1            4            0            0            0            0  halt ;
    "#]].assert_eq(&profile().to_string());
}

/// In round i of 200 the lanes whose bit in i is set take the branch.
#[test]
fn only_so_many_masks_are_listed() {
    let arch = "4w8/8/8/1+x";
    let mut code = all_lanes(arch.parse().unwrap()).to_vec();
    code.push(Op::Tid { dst: r(0) }.into());
    code.push(ldi(4, 200));
    code.extend([
        Op::Subi { dst: r(4), src: r(4), imm: 1 }.into(),
        Op::Shr { dst: r(3), a: r(4), b: r(0) }.into(),
        Op::Andi { dst: r(3), src: r(3), imm: 1 }.into(),
        Op::Rtop { dst: p(1), src: r(3) }.into(),
        Op::Rtop { dst: p(2), src: r(4) }.into(),
        on(1, Op::Split {}),
        Op::Join {}.into(),
        on(2, Op::Jmpi { rel: -32 }),
        halt(),
    ]);
    let (profile, _) = collect(arch, &code, |_| {});
    let split = &profile.branches[&0x24];
    assert_eq!((split.executed, split.unanimous_false, split.divergent), (200, 1, 199));
    assert_eq!(split.taken.sum(), (0..200_u64).map(|i| u64::from(i.count_ones())).sum::<u64>());
    assert_eq!(split.masks.len(), LISTED_BRANCH_MASKS);
    assert!(split.masks.values().all(|&times| times == 1));
    assert_eq!(split.unlisted, 200 - LISTED_BRANCH_MASKS as u64);
    // The rounds count down.
    let first = BranchMasks { active: 0xff, taken: 199 };
    assert!(split.masks.contains_key(&first));
    let jump = &profile.branches[&0x2c];
    assert_eq!((jump.unanimous_true, jump.unanimous_false, jump.divergent), (199, 1, 0));
}

#[test]
fn operands_of_a_warp_count_in_one_lane() {
    let code = [
        ldi(1, 4),
        Op::Jalis { link: r(2), lanes: r(1), rel: 0 }.into(),
        ldi(3, 1),
        Op::Bar { id: r(3), warps: r(3) }.into(),
        halt(),
    ];
    let (profile, _) = collect(ARCH, &code, |_| {});
    // `bar` has the register as an operand twice.
    let expected = RegisterCount { reads: 2, lane_reads: 2, writes: 1, lane_writes: 4 };
    assert_eq!(profile.registers.gpr(r(3)), expected);
}

#[test]
fn cores_add_up_whatever_the_host_threads() {
    let on_threads = |cores, threads| {
        let adjust = |config: &mut MachineConfig| {
            config.cores = cores;
            config.host_threads = NonZeroUsize::new(threads);
        };
        collect(ARCH, &program(), adjust)
    };
    let (one, _) = on_threads(1, 1);
    let (expected, stats) = on_threads(3, 1);
    for threads in [2, 3] {
        assert_eq!(on_threads(3, threads), (expected.clone(), stats.clone()));
    }
    // The cores do all the same, but for what they store.
    let mut sum = one.clone();
    sum.merge(&one);
    sum.merge(&one);
    assert_eq!(expected, sum);
    assert_eq!(expected.opcodes[&Opcode::Ldi].issued, 9);
    assert_eq!(expected.branches[&0x18].divergent, 3);
}

#[test]
fn only_what_is_asked_for_is_collected() {
    for part in Collect::all() {
        let (profile, _) = collect(ARCH, &program(), |config| config.collect = part);
        let parts = [
            (Collect::OPCODES, !profile.opcodes.is_empty()),
            (Collect::LANES, profile.lanes.active.total() != 0),
            (Collect::DEPTH, profile.depth.total() != 0),
            (Collect::BRANCHES, !profile.branches.is_empty()),
            (Collect::REGISTERS, profile.registers.registers().count() != 0),
            (Collect::MEMORY, !profile.memory.is_empty()),
        ];
        for (other, is_there) in parts {
            assert_eq!(is_there, other == part, "{other:?} with {part:?}");
        }
    }
    let (nothing, stats) = collect(ARCH, &program(), |config| config.collect = Collect::empty());
    assert_eq!(nothing.opcodes.len(), 0);
    assert_eq!(nothing.active_efficiency(), None);
    for path in [Path::Fast, Path::Precise] {
        assert_eq!(collect(ARCH, &program(), |config| config.path = path).1, stats);
    }
}

#[test]
fn reset_forgets() {
    let arch: ArchId = ARCH.parse().unwrap();
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, &assemble(arch, &program())).unwrap();
    let config = MachineConfig { collect: Collect::all(), ..MachineConfig::new(arch) };
    let mut machine = Machine::new(config, &memory).unwrap();
    machine.run().unwrap();
    let first = machine.profile();
    machine.reset();
    assert_eq!(machine.profile().opcodes.len(), 0);
    // Stepping counts as running does.
    while machine.step().unwrap() {}
    assert_eq!(machine.profile(), first);
}
