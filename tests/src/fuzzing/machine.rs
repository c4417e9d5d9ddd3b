//! Random programs on random machines: every way to run a machine must give the same results.
//!
//! Most programs are built from statements (loops, splits and joins, barriers, atomic operations, loads and
//! stores in windows of each lane's own), which are free of races: besides the ways through the
//! emulator, schedules and host threads must agree. The rest is such a program with instructions
//! replaced by any others, or noise; there a single core under one schedule at a time must come to
//! the same state whatever the way.

mod program;
mod writer;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use arbitrary::Unstructured;
use harp_emu::{
    Collect, HostTier, Issue, Machine, MachineConfig, Memory, Observer, Path, Reconvergence,
    Retire, Schedule, Simd, Stats, Translation, Trap, TrapKind,
};
use harp_isa::{Gpr, Op, Operand, Pred, Role, Sharing};
use harp_native::{LeaveCounts, Native, TierStats, When};

use crate::random::{Counts, add};
use program::{Kind, Program};

/// Runs the program that `bytes` stand for in all ways that must agree. Panics if they do not.
pub fn check(bytes: &[u8]) -> Counts {
    check_on(bytes, false)
}

/// The same on machines with shared registers.
pub fn check_shared(bytes: &[u8]) -> Counts {
    check_on(bytes, true)
}

fn check_on(bytes: &[u8], is_shared: bool) -> Counts {
    match Program::new(&mut Unstructured::new(bytes), is_shared) {
        Ok(program) => check_program(&program),
        Err(_) => Counts::new(),
    }
}

fn check_program(program: &Program) -> Counts {
    let config = &program.config;
    let (seen, reference) = watched(program, config);
    let mut reached = seen.reached;
    add(&mut reached, "programs", 1);
    add(&mut reached, "instructions", reference.stats.issued());
    add(&mut reached, reference.trap.as_ref().map_or("ended".to_owned(), trap_name), 1);
    if seen.made_nan {
        add(&mut reached, "nans", 1);
        return reached;
    }
    let ways =
        [(Path::Fast, Simd::Detect), (Path::Fast, Simd::Baseline), (Path::Precise, Simd::Baseline)];
    for (path, simd) in ways {
        let config = MachineConfig { path, simd, ..config.clone() };
        run(program, &config).assert_same(&reference, program, &config);
    }
    if config.arch.has_shared() {
        check_audit(program, &reference, &mut reached);
    }
    add(&mut reached, "rounds", check_rounds(program));
    check_host_code(program, &reference, &mut reached);
    // A trap stops the other warps and cores where they are, and that depends on the schedule.
    let ends = match &reference.trap {
        None => true,
        Some(trap) => config.cores == 1 && matches!(trap.kind, TrapKind::Deadlock { .. }),
    };
    if program.kind != Kind::RaceFree || !ends {
        return reached;
    }
    add(&mut reached, "schedules", 1);
    let reference = reference.without_order();
    for schedule in program::schedules() {
        for threads in 1..=config.cores.into() {
            let host_threads = NonZeroUsize::new(threads);
            let config = MachineConfig { schedule, host_threads, ..config.clone() };
            run(program, &config).without_order().assert_same(&reference, program, &config);
        }
    }
    reached
}

/// Audits a program: the audit changes nothing but that it may find something.
fn check_audit(program: &Program, reference: &Outcome, reached: &mut Counts) {
    let config = MachineConfig { audit_shared: true, ..program.config.clone() };
    let audited = run(program, &config);
    match audited.trap {
        Some(Trap { kind: TrapKind::SharedMismatch { .. }, .. }) => add(reached, "mismatches", 1),
        // The first trap hides those of other cores, which may be a mismatch.
        Some(_) if config.cores > 1 => {}
        _ => {
            audited.assert_same(reference, program, &config);
            add(reached, "audits without a mismatch", 1);
        }
    }
}

/// Runs a program in host code, to its end and until the fuel ends anywhere, under its own schedule and others; under its
/// own also in such as leaves wherever it may.
fn check_host_code(program: &Program, reference: &Outcome, reached: &mut Counts) {
    let whens = [When::AtOnce, When::Leaving, When::Recorded];
    let natives: Vec<_> =
        whens.into_iter().filter_map(|when| Some((when, Native::new(when)?))).collect();
    if natives.is_empty() {
        return;
    }
    let config = &program.config;
    let scheduled = |schedule| MachineConfig { schedule, ..config.clone() };
    let mut configs: Vec<_> = program::schedules().into_iter().map(scheduled).collect();
    if config.cores == 1 {
        let fuels = places(program, reference.stats.issued());
        configs.extend(fuels.map(|fuel| MachineConfig { fuel: Some(fuel), ..config.clone() }));
    }
    let watched = |config| (config, watched(program, config));
    let cases: Vec<_> = configs.iter().map(watched).collect();
    for (when, native) in natives {
        let tier: Arc<dyn HostTier> = Arc::new(native.clone());
        let check = |config: &MachineConfig, expected: &Outcome| {
            let outcome = run_by(program, config, |machine| {
                machine.set_host_tier(&tier);
                machine.run().map(drop)
            });
            outcome.assert_same(expected, program, config);
        };
        check(config, reference);
        // Behind another warp's trap a schedule may make NaNs that the program's own does not.
        let others = cases.iter().filter(|(_, (seen, _))| !seen.made_nan && when != When::Leaving);
        for (config, (_, expected)) in others {
            check(config, expected);
        }
        count_tier(&native, when, reached);
    }
}

/// Counts what a tier has done; of recordings, apart from the others.
fn count_tier(native: &Native, when: When, reached: &mut Counts) {
    let code = if when == When::Recorded { "recorded code" } else { "host code" };
    let TierStats { regions, visits, went_on, issued, left, .. } = native.stats();
    let LeaveCounts { budget, foreign, barrier, access, trap, guard, end, entry, .. } = left;
    for (name, count) in [
        ("regions", regions as u64),
        ("visits", visits),
        ("went on behind a barrier", went_on),
        ("instructions", issued),
        ("left for budget", budget),
        ("left for foreign", foreign),
        ("left for a barrier", barrier),
        ("left for access", access),
        ("left for trap", trap),
        ("left for guard", guard),
        ("left for end", end),
        ("left for entry", entry),
    ] {
        add(reached, format!("{code} {name}"), count);
    }
}

/// Places all over a run of that many instructions, the same for the same program.
fn places(program: &Program, issued: u64) -> impl Iterator<Item = u64> {
    let sum = program.image.iter().fold(1u64, |sum, &byte| sum.wrapping_mul(31) + u64::from(byte));
    (0..6).map(move |i| sum.rotate_left(11 * i) % (issued + 1))
}

/// Runs a program in the original's order, many rounds at once and round by round, to its end and until the
/// fuel ends anywhere: how many runs were compared.
fn check_rounds(program: &Program) -> u64 {
    let config = &program.config;
    if config.cores > 1 {
        // After a trap the others stand where their turns have ended.
        return 0;
    }
    let step = MachineConfig { schedule: Schedule::Step, ..config.clone() };
    let mut configs = vec![
        MachineConfig { translation: Translation::Tlb, ..step.clone() },
        MachineConfig { reconvergence: Reconvergence::Pdom, ..step.clone() },
        MachineConfig { collect: Collect::OPCODES, ..step.clone() },
    ];
    let places = places(program, round_by_round(program, &step).stats.issued());
    configs.extend(places.map(|fuel| MachineConfig { fuel: Some(fuel), ..step.clone() }));
    configs.push(step);
    for config in &configs {
        let expected = round_by_round(program, config);
        for path in [Path::Fast, Path::Precise] {
            let config = MachineConfig { path, ..config.clone() };
            run(program, &config).assert_same(&expected, program, &config);
        }
    }
    configs.len() as u64
}

/// The kind of a trap.
fn trap_name(trap: &Trap) -> String {
    let kind = format!("{:?}", trap.kind);
    format!("trap {}", kind.split([' ', '(']).next().unwrap_or_default())
}

/// Everything that there is to see of a machine.
#[derive(Debug, PartialEq)]
struct Outcome {
    trap: Option<Trap>,
    stats: Stats,
    console: Vec<u8>,
    memory: Vec<u8>,
    entries: Vec<Option<u64>>,
    /// The state of warps, and what registers hold, as far as the machine has them.
    warps: Vec<(String, Vec<u64>)>,
}

impl Outcome {
    fn of(machine: &Machine<'_>, memory: &Memory, trap: Option<Trap>) -> Outcome {
        let config = machine.config();
        let arch = config.arch;
        let mut bytes = vec![0; usize::try_from(memory.size()).expect("a small memory")];
        memory.read(0, &mut bytes).expect("all of it");
        let lanes = u64::MAX >> (64 - u32::from(arch.lanes()));
        let warps = machine.warps().map(|(_, _, warp)| {
            let state = format!(
                "{:x?}, {:?}, stack {:x?}, {:?}",
                (warp.pc(), warp.active(), warp.active_count(), warp.saved()),
                (warp.is_supervisor(), warp.interrupts_enabled(), warp.status()),
                warp.stack().collect::<Vec<_>>(),
                warp.stats(),
            );
            let gprs =
                (0..arch.all_gprs()).flat_map(|reg| (0..arch.lanes()).map(move |lane| (reg, lane)));
            let gprs = gprs.map(|(reg, lane)| warp.gpr(Gpr::new(reg), lane).expect("it has it"));
            let preds = (0..arch.all_preds()).map(|pred| warp.pred(Pred::new(pred)) & lanes);
            (state, gprs.chain(preds).collect())
        });
        Outcome {
            trap,
            stats: machine.stats(),
            console: machine.console(),
            memory: bytes,
            entries: (0..config.cores).map(|core| machine.interrupt_entry(core)).collect(),
            warps: warps.collect(),
        }
    }

    /// Without what schedules may change: machine steps and the order of output.
    fn without_order(mut self) -> Outcome {
        self.console.sort_unstable();
        for core in &mut self.stats.cores {
            core.steps = 0;
        }
        self
    }

    fn assert_same(&self, reference: &Outcome, program: &Program, config: &MachineConfig) {
        let differs = [
            ("traps", self.trap != reference.trap),
            ("statistics", self.stats != reference.stats),
            ("console", self.console != reference.console),
            ("entries of handlers", self.entries != reference.entries),
            ("memory", self.memory != reference.memory),
            ("warps", self.warps != reference.warps),
        ];
        let differs: Vec<_> =
            differs.iter().filter(|(_, differ)| *differ).map(|(what, _)| what).collect();
        if differs.is_empty() {
            return;
        }
        let warps = self.warps.iter().zip(&reference.warps).filter(|(a, b)| a != b);
        let place = self.memory.iter().zip(&reference.memory).position(|(a, b)| a != b);
        panic!(
            "{differs:?} differ\nunder {config:?}\n{program}\ntrap {:?}, expected {:?}\nfirst byte that \
             differs: {place:x?}\nfirst warp that differs and what was expected: {:x?}",
            self.trap,
            reference.trap,
            warps.into_iter().next(),
        );
    }
}

/// Runs a program on a machine of its own, by `ended`.
fn run_by(
    program: &Program,
    config: &MachineConfig,
    ended: impl FnOnce(&mut Machine<'_>) -> Result<(), Box<Trap>>,
) -> Outcome {
    let memory = Memory::new(config.arch.word(), program::MEMORY).expect("a small memory");
    memory.write(0, &program.image).expect("the image is smaller");
    let mut machine = Machine::new(config.clone(), &memory).expect("a small machine");
    let trap = ended(&mut machine).err().map(|trap| *trap);
    Outcome::of(&machine, &memory, trap)
}

fn run(program: &Program, config: &MachineConfig) -> Outcome {
    run_by(program, config, |machine| machine.run().map(drop))
}

/// Runs a program one round after the other.
fn round_by_round(program: &Program, config: &MachineConfig) -> Outcome {
    run_by(program, config, |machine| {
        while machine.step()? {}
        Ok(())
    })
}

/// Runs a program as its configuration says, watched.
fn watched(program: &Program, config: &MachineConfig) -> (Watcher, Outcome) {
    let mut watcher = Watcher::default();
    let outcome = run_by(program, config, |machine| machine.run_observed(&mut watcher).map(drop));
    let changed = watcher.issued.iter().any(|&pc| {
        let at = usize::try_from(pc).expect("a small memory");
        (at..at + 4).any(|at| outcome.memory.get(at) != program.image.get(at).or(Some(&0)))
    });
    add(&mut watcher.reached, "changed code", changed.into());
    (watcher, outcome)
}

impl Watcher {
    /// Counts in what ways the instruction called `name` uses shared registers.
    fn count_shared(&mut self, issue: &Issue<'_>, name: &str) {
        let (arch, instruction) = (issue.arch, issue.instruction);
        let mut count = |way| add(&mut self.reached, format!("shared {way} {name}"), 1);
        if instruction.guard.is_some_and(|guard| arch.is_shared(guard)) {
            count("guard");
        }
        instruction.for_each_register(|operand, _, role| match role {
            _ if !arch.is_shared(operand) => {}
            Role::Use => count("source"),
            Role::Def | Role::Mod => count("destination"),
        });
        if instruction.op.sharing(arch) == Sharing::Row {
            count("row");
        }
    }
}

/// Counts what a program reaches.
#[derive(Default)]
struct Watcher {
    reached: Counts,
    made_nan: bool,
    /// The addresses of instructions.
    issued: HashSet<u64>,
    /// Warps, by core and number, that were last seen outside of a handler.
    had_interrupts: HashSet<(u16, u8)>,
}

impl Observer for Watcher {
    fn issue(&mut self, issue: &Issue<'_>) {
        self.issued.insert(issue.pc);
        let who = (issue.core, issue.warp);
        if issue.state.saved().is_some() && !issue.state.interrupts_enabled() {
            add(&mut self.reached, "interrupts", self.had_interrupts.remove(&who).into());
        } else {
            self.had_interrupts.insert(who);
        }
        if issue.executing != 0 {
            let name = issue.instruction.op.opcode().mnemonic();
            add(&mut self.reached, format!("opcode {name}"), 1);
            self.count_shared(issue, name);
        }
        if issue.instruction.op == (Op::Split {}) {
            let diverges = issue.enabled != 0 && issue.enabled != issue.state.active();
            add(&mut self.reached, "divergent", diverges.into());
        }
    }

    fn retire(&mut self, retire: &Retire<'_>) {
        if !program::may_make_nan(retire.instruction.op.opcode()) {
            return;
        }
        let mut dst = None;
        retire.instruction.op.for_each_operand(|operand| {
            if let (None, Operand::Gpr(reg)) = (dst, operand) {
                dst = Some(reg);
            }
        });
        let dst = dst.expect("float instructions have a destination");
        let is_nan = |lane| {
            let bits = retire.state.gpr(dst, lane).unwrap_or(0);
            f32::from_bits(bits as u32).is_nan() || f64::from_bits(bits).is_nan()
        };
        let mut lanes = (0..64).filter(|lane| retire.executing >> lane & 1 != 0);
        self.made_nan |= lanes.any(is_nan);
    }
}
