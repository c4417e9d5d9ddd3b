//! Machines in the original's order, many rounds at once and round by round.

use harp_emu::{
    DivergentBarriers, Interrupts, Machine, MachineConfig, Memory, PageMapping, Schedule, Spare,
    SpawnPolicy, Stats, Trap, WarpStatus,
};
use harp_isa::{ArchId, Instruction, Op};

use super::{MEMORY, p, r};

/// Everything that there is to see.
#[derive(Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) trap: Option<Trap>,
    pub(crate) stats: Stats,
    pub(crate) console: Vec<u8>,
    pub(crate) memory: Vec<u8>,
    pub(crate) mappings: Vec<PageMapping>,
    /// Of each warp the status, the mode, then pc, active lanes, registers and predicates.
    pub(crate) warps: Vec<(WarpStatus, bool, Vec<u64>)>,
}

/// The original's machine, with input and enough fuel for what is tested.
pub(crate) fn round_config(arch: ArchId) -> MachineConfig {
    MachineConfig {
        schedule: Schedule::Step,
        interrupts: Interrupts::Guest,
        spawn: SpawnPolicy::Original,
        divergent_barriers: DivergentBarriers::Allow,
        fuel: Some(20_000),
        input: b"xyz".to_vec(),
        ..MachineConfig::new(arch)
    }
}

fn outcome(config: &MachineConfig, image: &[u8], fuel: u64, at_once: bool) -> Outcome {
    let config = MachineConfig { fuel: Some(fuel), ..config.clone() };
    outcome_with(config, image, at_once, None).0
}

/// Runs what lies in memory on a machine that is made of what another has left, and what it leaves.
pub(crate) fn run_with(
    config: &MachineConfig,
    image: &[u8],
    spare: Option<Spare>,
) -> (Outcome, Spare) {
    outcome_with(config.clone(), image, true, spare)
}

fn outcome_with(
    config: MachineConfig,
    image: &[u8],
    at_once: bool,
    spare: Option<Spare>,
) -> (Outcome, Spare) {
    let arch = config.arch;
    let memory = Memory::new(arch.word(), MEMORY).unwrap();
    memory.write(0, image).unwrap();
    let mut machine = match spare {
        Some(spare) => Machine::with_spare(config, &memory, spare),
        None => Machine::new(config, &memory),
    }
    .unwrap();
    let trap = loop {
        let goes_on = match at_once {
            true => machine.run().map(|_| false),
            false => machine.step(),
        };
        match goes_on {
            Ok(true) => {}
            Ok(false) => break None,
            Err(trap) => break Some(*trap),
        }
    };
    let mut bytes = vec![0; MEMORY as usize];
    memory.read(0, &mut bytes).unwrap();
    let all = u64::MAX >> (64 - u32::from(arch.lanes()));
    let warps = machine.warps().map(|(_, _, warp)| {
        let lanes = |reg| (0..arch.lanes()).map(move |lane| warp.gpr(r(reg), lane).unwrap());
        let gprs = (0..arch.gprs()).flat_map(lanes);
        let preds = (0..arch.preds()).map(|pred| warp.pred(p(pred)) & all);
        let words = [warp.pc(), warp.active()].into_iter().chain(gprs).chain(preds);
        (warp.status(), warp.is_supervisor(), words.collect())
    });
    let outcome = Outcome {
        trap,
        stats: machine.stats(),
        console: machine.console(),
        memory: bytes,
        mappings: machine.page_mappings(0),
        warps: warps.collect(),
    };
    (outcome, machine.into_spare())
}

/// Runs what lies in memory, to the end of the fuel if it has to be.
pub(crate) fn run_to_end(config: &MachineConfig, image: &[u8]) -> Outcome {
    outcome(config, image, config.fuel.expect("what is tested ends"), true)
}

/// Compares both ways to run what lies in memory, for the fuel that there is and for every end of less fuel,
/// or for each `every`th; the outcome of the former.
pub(crate) fn compare_rounds(config: &MachineConfig, image: &[u8], every: usize) -> Outcome {
    let arch = config.arch;
    let fuel = config.fuel.expect("what is tested ends");
    let whole = run_to_end(config, image);
    for fuel in (0..whole.stats.issued() + 2).step_by(every).chain([fuel]) {
        let [given, expected] = [true, false].map(|at_once| outcome(config, image, fuel, at_once));
        assert_eq!(given, expected, "{arch}, {fuel} instructions");
    }
    whole
}

/// So many instructions that concern nobody else.
pub(crate) fn quiet(count: usize) -> impl Iterator<Item = Instruction> {
    let ops = [
        Op::Addi { dst: r(6), src: r(6), imm: 3 },
        Op::Xor { dst: r(6), a: r(6), b: r(4) },
        Op::Muli { dst: r(6), src: r(6), imm: 5 },
        Op::Divi { dst: r(7), src: r(6), imm: 3 },
    ];
    ops.into_iter().cycle().take(count).map(Instruction::from)
}
