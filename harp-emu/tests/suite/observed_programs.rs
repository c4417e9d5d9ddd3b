//! Random programs: profiles agree with statistics, traces with the state in which runs end, and
//! whether somebody watches changes nothing.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use harp_emu::{
    AccessKind, Collect, Issue, Machine, MachineConfig, Memory, Observer, Profile, Retire, Stats,
    Trace, TraceFormat, TraceWriter, Trap, TrapKind,
};
use harp_isa::{ArchId, Instruction, Op, Opcode};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::Value;

use crate::common::*;

/// Registers: 0 the lane, 1 to 4 values, 5 an address, 6 and 7 count the rounds of loops.
/// Predicates: 0 and 1 are values, 2 belongs to branches, 3 to loops.
#[derive(Clone, Debug)]
enum Statement {
    Simple(Option<u8>, Op),
    /// `%dst` := memory at a place that depends on the register `by`, through `%r5`.
    Load {
        guard: Option<u8>,
        dst: u8,
        by: u8,
        scale: i64,
    },
    Store {
        value: u8,
        by: u8,
        scale: i64,
    },
    Atomic {
        dst: u8,
        value: u8,
    },
    If {
        by: u8,
        bit: i64,
        then: Vec<Statement>,
        otherwise: Vec<Statement>,
    },
    /// So many rounds, counted in `%r6`, or in `%r7` within another.
    Loop {
        rounds: i64,
        body: Vec<Statement>,
    },
    /// A jump to the next instruction; a trap if lanes disagree.
    Jump {
        guard: Option<u8>,
    },
}

fn simple() -> impl Strategy<Value = Statement> {
    let guard = prop::option::weighted(0.3, 0_u8..2);
    let value = || 1_u8..5;
    let source = || 0_u8..5;
    let op = prop_oneof![
        (value(), source(), source()).prop_map(|(d, a, b)| Op::Add { dst: r(d), a: r(a), b: r(b) }),
        (value(), source(), source()).prop_map(|(d, a, b)| Op::Xor { dst: r(d), a: r(a), b: r(b) }),
        (value(), source(), source()).prop_map(|(d, a, b)| Op::Mul { dst: r(d), a: r(a), b: r(b) }),
        (value(), source(), -9_i64..9).prop_map(|(d, a, imm)| Op::Addi {
            dst: r(d),
            src: r(a),
            imm
        }),
        (value(), 0_i64..99).prop_map(|(d, imm)| Op::Ldi { dst: r(d), imm }),
        (0_u8..2, source()).prop_map(|(d, a)| Op::Rtop { dst: p(d), src: r(a) }),
        (0_u8..2, 0_u8..2, 0_u8..2).prop_map(|(d, a, b)| Op::Xorp { dst: p(d), a: p(a), b: p(b) }),
        (value(), source(), source()).prop_map(|(d, v, l)| Op::Shfl {
            dst: r(d),
            value: r(v),
            lane: r(l)
        }),
        (value(), 0_u8..2).prop_map(|(d, s)| Op::Ballot { dst: r(d), src: p(s), index: 0 }),
        Just(Op::Tid { dst: r(4) }),
        Just(Op::Nop {}),
    ];
    (guard, op).prop_map(|(guard, op)| Statement::Simple(guard, op))
}

fn statement() -> impl Strategy<Value = Statement> {
    let scale = || prop::sample::select(vec![0_i64, 1, 4, 8, 64]);
    let leaf = prop_oneof![
        6 => simple(),
        2 => (prop::option::weighted(0.3, 0_u8..2), 1_u8..5, 0_u8..5, scale())
            .prop_map(|(guard, dst, by, scale)| Statement::Load { guard, dst, by, scale }),
        2 => (0_u8..5, 0_u8..5, scale())
            .prop_map(|(value, by, scale)| Statement::Store { value, by, scale }),
        1 => (1_u8..5, 0_u8..5).prop_map(|(dst, value)| Statement::Atomic { dst, value }),
        1 => Just(Statement::Jump { guard: None }),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        let block = || prop::collection::vec(inner.clone(), 0..5);
        prop_oneof![
            3 => (0_u8..5, 0_i64..5, block(), block()).prop_map(|(by, bit, then, otherwise)| {
                Statement::If { by, bit, then, otherwise }
            }),
            1 => (1_i64..4, block()).prop_map(|(rounds, body)| Statement::Loop { rounds, body }),
        ]
    })
}

/// A program, most of the time without a jump that may trap at its end.
fn program() -> impl Strategy<Value = Vec<Statement>> {
    let trap = prop::option::weighted(0.2, 0_u8..2);
    (prop::collection::vec(statement(), 1..8), trap).prop_map(|(mut statements, trap)| {
        if trap.is_some() {
            statements.push(Statement::Jump { guard: trap });
        }
        statements
    })
}

/// `op` under the guard, if there is one.
fn maybe_on(guard: Option<u8>, op: Op) -> Instruction {
    guard.map_or(op.into(), |guard| on(guard, op))
}

/// `%r5` := an address of [`DATA`] words that depends on `%by`.
fn address(by: u8, scale: i64) -> [Instruction; 3] {
    [
        Op::Andi { dst: r(5), src: r(by), imm: 15 }.into(),
        Op::Muli { dst: r(5), src: r(5), imm: scale }.into(),
        Op::Addi { dst: r(5), src: r(5), imm: DATA }.into(),
    ]
}

const DATA: i64 = 0x1800;

/// Bytes of a machine's instructions, which have 4 each.
fn bytes(code: &[Instruction]) -> i64 {
    4 * code.len() as i64
}

fn emit(statements: &[Statement], loops: u8, code: &mut Vec<Instruction>) {
    for statement in statements {
        match statement {
            Statement::Simple(guard, op) => code.push(maybe_on(*guard, *op)),
            Statement::Load { guard, dst, by, scale } => {
                code.extend(address(*by, *scale));
                code.push(maybe_on(*guard, ld(*dst, 5, 0).op));
            }
            Statement::Store { value, by, scale } => {
                code.extend(address(*by, *scale));
                code.push(st(*value, 5, 0));
            }
            Statement::Atomic { dst, value } => {
                code.push(ldi(5, DATA));
                let (dst, value) = (r(*dst), r(*value));
                code.push(Op::AmoAdd { dst, addr: r(5), value }.into());
            }
            Statement::If { by, bit, then, otherwise } => {
                let [mut yes, mut no] = [Vec::new(), Vec::new()];
                emit(then, loops, &mut yes);
                emit(otherwise, loops, &mut no);
                no.push(Op::Jmpi { rel: bytes(&yes) }.into());
                code.extend([
                    Op::Shri { dst: r(5), src: r(*by), imm: *bit }.into(),
                    Op::Andi { dst: r(5), src: r(5), imm: 1 }.into(),
                    Op::Rtop { dst: p(2), src: r(5) }.into(),
                    on(2, Op::Split {}),
                    on(2, Op::Jmpi { rel: bytes(&no) }),
                ]);
                code.extend(no);
                code.extend(yes);
                code.push(Op::Join {}.into());
            }
            Statement::Loop { rounds, body } if loops < 2 => {
                let counter = 6 + loops;
                let mut inner = Vec::new();
                emit(body, loops + 1, &mut inner);
                inner.push(Op::Subi { dst: r(counter), src: r(counter), imm: 1 }.into());
                inner.push(Op::Rtop { dst: p(3), src: r(counter) }.into());
                let back = -bytes(&inner) - 4;
                inner.push(on(3, Op::Jmpi { rel: back }));
                code.push(ldi(counter, *rounds));
                code.extend(inner);
            }
            Statement::Loop { body, .. } => emit(body, loops, code),
            Statement::Jump { guard } => code.push(maybe_on(*guard, Op::Jmpi { rel: 0 })),
        }
    }
}

/// Two warps run the statements in all lanes; at first `@p0` is true but in lane 0.
fn assembled(arch: ArchId, statements: &[Statement]) -> Vec<Instruction> {
    let mut code = vec![ldi(1, 8), Op::Wspawn { dst: r(2), pc: r(1), src: r(1) }.into()];
    code.extend(all_lanes(arch));
    code.push(Op::Tid { dst: r(0) }.into());
    code.push(Op::Rtop { dst: p(0), src: r(0) }.into());
    emit(statements, 0, &mut code);
    code.push(halt());
    assert!(bytes(&code) <= DATA);
    code
}

fn machine(memory: &Memory, arch: ArchId, collect: Collect) -> Machine<'_> {
    let config = MachineConfig { collect, fuel: Some(20_000), ..MachineConfig::new(arch) };
    Machine::new(config, memory).unwrap()
}

/// What the statistics should say, from the documentation of each count.
#[derive(Default)]
struct Expected {
    insts: u64,
    loads: u64,
    stores: u64,
    high_water: usize,
    /// Those of the instruction being carried out.
    activated: u64,
}

impl Observer for Expected {
    fn issue(&mut self, issue: &Issue<'_>) {
        self.activated = issue.state.active_count().into();
        let lanes = u64::from(issue.executing.count_ones());
        match AccessKind::of(issue.instruction.op.opcode()) {
            Some(AccessKind::Load) => self.loads += lanes,
            Some(AccessKind::Store) => self.stores += lanes,
            Some(AccessKind::Atomic) => {
                self.loads += lanes;
                self.stores += lanes;
            }
            Some(other) => panic!("{other:?}: not known here"),
            None => {}
        }
    }

    fn retire(&mut self, retire: &Retire<'_>) {
        self.high_water = self.high_water.max(retire.state.stack().len());
        self.insts += match (retire.instruction.op, retire.trap) {
            (_, Some(TrapKind::DivergentBranch { .. })) => 0,
            (Op::Split {} | Op::Join {}, _) => self.activated,
            (Op::Halt {}, _) => 1,
            _ => retire.executing.count_ones().into(),
        };
    }
}

/// What the runs came to, so that a generator that reaches nothing is noticed.
#[derive(Default)]
struct Reached {
    runs: u64,
    traps: u64,
    divergent_splits: u64,
    unanimous_splits: u64,
    deep: u64,
    back_jumps: u64,
    partial_loads: u64,
}

fn check_profile(profile: &Profile, stats: &Stats, trap: Option<&Trap>) {
    let opcodes = &profile.opcodes;
    let issued: u64 = opcodes.values().map(|count| count.issued).sum();
    let executing: u64 = opcodes.values().map(|count| count.lanes).sum();
    assert_eq!(issued, stats.issued());
    assert_eq!(profile.lanes.active.total(), issued);
    assert_eq!(profile.lanes.executing.total(), issued);
    assert_eq!(profile.lanes.executing.sum(), executing);
    assert!(profile.lanes.active.sum() >= executing);
    let skipped: u64 = opcodes.values().map(|count| count.skipped).sum();
    assert_eq!(profile.lanes.executing.count(0), skipped);

    assert_eq!(profile.depth.total(), issued);
    // Whatever a split pushes is there when the next instruction is issued.
    if trap.is_none() {
        assert_eq!(profile.depth.counts().len(), stats.divergence_high_water() + 1);
    }

    for branch in profile.branches.values() {
        let decisions = [branch.unanimous_true, branch.unanimous_false, branch.divergent];
        assert_eq!(decisions.iter().sum::<u64>(), branch.executed);
        assert_eq!(branch.active.total(), branch.executed);
        assert_eq!(branch.taken.total(), branch.executed);
        assert_eq!(branch.taken.count(0), branch.unanimous_false);
        assert_eq!(branch.masks.values().sum::<u64>() + branch.unlisted, branch.executed);
        if branch.unlisted == 0 {
            let masks = branch.masks.iter();
            let taken = masks.map(|(masks, times)| u64::from(masks.taken.count_ones()) * times);
            assert_eq!(taken.sum::<u64>(), branch.taken.sum());
        }
    }
    let splits = profile.branches.values().filter(|branch| branch.opcode == Opcode::Split);
    let split = opcodes.get(&Opcode::Split).copied().unwrap_or_default();
    assert_eq!(splits.map(|branch| branch.executed).sum::<u64>(), split.issued);

    let registers = &profile.registers;
    let sum = |field: fn(&harp_emu::RegisterCount) -> u64| -> u64 {
        registers.registers().map(|(_, count)| field(&count)).sum()
    };
    assert_eq!(registers.reads.total(), sum(|count| count.reads));
    assert_eq!(registers.reads.sum(), sum(|count| count.lane_reads));
    assert_eq!(registers.writes.total(), sum(|count| count.writes));
    assert_eq!(registers.writes.sum(), sum(|count| count.lane_writes));

    let accesses = |kind| -> u64 {
        let rows = profile.memory.values();
        rows.filter(|row| AccessKind::of(row.opcode) == Some(kind)).map(|row| row.lanes.sum()).sum()
    };
    assert_eq!(accesses(AccessKind::Load) + accesses(AccessKind::Atomic), stats.loads());
    assert_eq!(accesses(AccessKind::Store) + accesses(AccessKind::Atomic), stats.stores());
    for row in profile.memory.values() {
        let executed = row.lanes.total() - row.lanes.count(0);
        assert_eq!(row.addresses.total(), executed);
        assert_eq!(row.segments.total(), executed);
        assert!((executed..=row.lanes.sum()).contains(&row.addresses.sum()));
        // Words do not straddle segments of 64 bytes.
        assert!((executed..=row.addresses.sum()).contains(&row.segments.sum()));
    }
}

/// Runs a property on random programs, the same ones each time.
fn for_random_programs(cases: u32, property: impl Fn(ArchId, &[Statement])) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let arch = prop::sample::select(vec![
        "4w8/8/1/2+x",
        "4w8/8/4/2+x",
        "4w8/8/7/2+x",
        "4w8/8/16/2+x",
        "4w8/8/33/2+x",
    ]);
    let result = runner.run(&(arch, program()), |(arch, statements)| {
        property(arch.parse().unwrap(), &statements);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

#[test]
fn profiles_agree_with_statistics() {
    let reached = RefCell::new(Reached::default());
    for_random_programs(200, |arch, statements| {
        let code = assemble(arch, &assembled(arch, statements));
        let [plain, collected] = [(); 2].map(|()| fresh(arch, &code));
        let mut fast = machine(&plain, arch, Collect::empty());
        let trap = fast.run().err();
        let mut profiled = machine(&collected, arch, Collect::all());
        assert_eq!(profiled.run().err(), trap);

        // Collecting changes nothing, and neither does watching it.
        let stats = fast.stats();
        assert_eq!(profiled.stats(), stats);
        assert_eq!(contents(&plain), contents(&collected));
        let profile = profiled.profile();
        check_profile(&profile, &stats, trap.as_deref());
        collected.write(0, &contents(&fresh(arch, &code))).unwrap();
        profiled.reset();
        let mut expected = Expected::default();
        let mut own = Profile::new(arch, Collect::all(), profile.segment_bytes);
        assert_eq!(profiled.run_observed(&mut (&mut expected, &mut own)).err(), trap);
        assert_eq!(own, profile);
        assert_eq!(profiled.profile(), profile);
        assert_eq!(contents(&plain), contents(&collected));
        let counted = (stats.insts(), stats.loads(), stats.stores(), stats.divergence_high_water());
        let Expected { insts, loads, stores, high_water, .. } = expected;
        assert_eq!(counted, (insts, loads, stores, high_water));

        let mut reached = reached.borrow_mut();
        reached.runs += 1;
        reached.traps += u64::from(trap.is_some());
        for branch in profile.branches.values() {
            match branch.opcode {
                Opcode::Split => {
                    reached.divergent_splits += branch.divergent;
                    reached.unanimous_splits += branch.executed - branch.divergent;
                }
                _ if branch.guard == Some(p(3)) => reached.back_jumps += branch.unanimous_true,
                _ => {}
            }
        }
        reached.deep += u64::from(stats.divergence_high_water() > 3);
        let loads = profile.memory.values().filter(|row| row.opcode == Opcode::Ld);
        reached.partial_loads +=
            loads.map(|row| row.lanes.total() - row.lanes.count(arch.lanes().into())).sum::<u64>();
    });
    let Reached {
        runs,
        traps,
        divergent_splits,
        unanimous_splits,
        deep,
        back_jumps,
        partial_loads,
    } = reached.into_inner();
    assert!(runs >= 200);
    let reached = [traps, divergent_splits, unanimous_splits, deep, back_jumps, partial_loads];
    assert!(reached.iter().all(|&count| count >= 5), "reached only {reached:?}");
    assert!(traps < runs / 2, "{traps} traps in {runs} runs");
}

fn fresh(arch: ArchId, code: &[u8]) -> Memory {
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, code).unwrap();
    memory
}

fn contents(memory: &Memory) -> Vec<u8> {
    let mut bytes = vec![0; MEMORY as usize];
    memory.read(0, &mut bytes).unwrap();
    bytes
}

/// A warp as a trace tells of it.
#[derive(Default)]
struct Replayed {
    active: String,
    /// Masks, and where they go on.
    stack: Vec<(String, Option<u64>)>,
    /// By register and lane.
    registers: BTreeMap<(String, usize), u64>,
}

fn text(value: &Value) -> String {
    value.as_str().expect("a string").to_owned()
}

fn number(value: &Value) -> u64 {
    u64::from_str_radix(text(value).strip_prefix("0x").unwrap(), 16).unwrap()
}

/// Lane 0 comes first.
fn mask(text: &str) -> u64 {
    text.chars().rev().fold(0, |mask, digit| mask << 1 | u64::from(digit == '1'))
}

impl Replayed {
    fn line(&mut self, line: &Value) {
        if line["event"] == "instruction" {
            // Only splits, joins and jumps with a number of lanes change the mask.
            let active = text(&line["active"]);
            let jumped = self.active.len() != active.len();
            assert!(jumped || self.active == active, "{line}");
            self.active = if line["text"].as_str().unwrap().starts_with("jalis") {
                String::new()
            } else {
                active
            };
            let executing = text(&line["executing"]);
            for write in line["writes"].as_array().unwrap() {
                let lanes = executing.match_indices('1').map(|(lane, _)| lane);
                let values = write["values"].as_array().unwrap();
                assert_eq!(lanes.clone().count(), values.len());
                for (lane, value) in lanes.zip(values) {
                    self.registers.insert((text(&write["register"]), lane), number(value));
                }
            }
            return;
        }
        assert_eq!(line["before"], self.active.as_str());
        assert_eq!(line["depth_before"], self.stack.len());
        let entry = |entry: &Value| {
            let resume = &entry["resume"];
            (text(&entry["mask"]), (!resume.is_null()).then(|| number(resume)))
        };
        for popped in line["popped"].as_array().unwrap() {
            assert_eq!(self.stack.pop(), Some(entry(popped)));
        }
        self.stack.extend(line["pushed"].as_array().unwrap().iter().map(entry));
        assert_eq!(line["depth_after"], self.stack.len());
        self.active = text(&line["after"]);
    }
}

#[test]
fn replayed_traces_end_in_the_state_of_the_machine() {
    let compared = Cell::new(0);
    for_random_programs(60, |arch, statements| {
        let memory = fresh(arch, &assemble(arch, &assembled(arch, statements)));
        let mut machine = machine(&memory, arch, Collect::empty());
        let mut trace = TraceWriter::new(Trace::Instructions, TraceFormat::JsonLines, Vec::new());
        let mut divergence =
            TraceWriter::new(Trace::Divergence, TraceFormat::JsonLines, Vec::new());
        let _ = machine.run_observed(&mut (&mut trace, &mut divergence));
        let [trace, divergence] =
            [trace, divergence].map(|trace| String::from_utf8(trace.finish().unwrap()).unwrap());
        // The short trace is a part of the long one.
        let is_divergence = |line: &&str| !line.starts_with(r#"{"event":"instruction""#);
        assert!(trace.lines().filter(is_divergence).eq(divergence.lines()));

        let mut warps: BTreeMap<u64, Replayed> = BTreeMap::new();
        for line in trace.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            warps.entry(line["warp"].as_u64().unwrap()).or_default().line(&line);
        }
        // After a trap of warp 0 its fellow may not have begun.
        let begun = || machine.warps().filter(|(_, _, warp)| warp.stats().steps != 0);
        assert_eq!(warps.len(), begun().count());
        for (_, number, warp) in begun() {
            let replayed = &warps[&number.into()];
            assert_eq!(mask(&replayed.active), warp.active());
            let stack = warp.stack().map(|entry| (entry.mask, entry.resume));
            let replayed_stack = replayed.stack.iter().map(|(text, resume)| (mask(text), *resume));
            assert!(replayed_stack.eq(stack));
            for lane in 0..arch.lanes() {
                // Registers 0 to 2 of lane 0 had a value before.
                for reg in 0..arch.gprs() {
                    let key = (r(reg).to_string(), usize::from(lane));
                    let value = replayed.registers.get(&key).copied();
                    let before = if lane == 0 && reg < 3 { value.unwrap() } else { 0 };
                    assert_eq!(warp.gpr(r(reg), lane), Some(value.unwrap_or(before)));
                    compared.set(compared.get() + 1);
                }
                for pred in 0..arch.preds() {
                    let key = (p(pred).to_string(), usize::from(lane));
                    let value = replayed.registers.get(&key).copied().unwrap_or(0);
                    assert_eq!(warp.pred(p(pred)) >> lane & 1, value);
                }
            }
        }
    });
    assert!(compared.get() > 1000);
}
