//! What random cases reached: operations, constructs, machines, strategies, endings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Endianness, Function, Inst, InstructionData, Opcode};
use harp_jit::{CodeError, CompileStats, Kernel};
use serde::{Serialize, Serializer};

use super::Target;
use crate::generate::Generated;
use crate::oracle::{Compiled, Effect, Ending, Observed, Trace};

/// How often something was reached, by name.
pub type Counts = BTreeMap<String, u64>;

/// These counts.
pub fn counts<const N: usize>(all: [(&str, usize); N]) -> Counts {
    all.map(|(name, count)| (name.to_owned(), count as u64)).into()
}

/// Adds to a count.
pub(crate) fn add(counts: &mut Counts, name: impl Into<String>, count: u64) {
    *counts.entry(name.into()).or_default() += count;
}

/// Adds counts to others.
pub fn merge(counts: &mut Counts, more: Counts) {
    more.into_iter().for_each(|(name, count)| add(counts, name, count));
}

/// Entries of the divergence stack that a split takes at most. The runtime library has one, around the
/// kernel, so that only more of them show that the kernel split.
const SPLIT_ENTRIES: usize = 2;

/// Finished code that is not proved to keep lanes together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unproved {
    /// The seed of the kernel, if it was made of one.
    pub seed: Option<u64>,
    /// What it was compiled for.
    pub target: Target,
    /// What could not be proved first.
    pub error: CodeError,
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unproved { seed, target, error } = self;
        if let Some(seed) = seed {
            write!(f, "seed {seed} on ")?;
        }
        write!(f, "{target}: {error}")
    }
}

impl Serialize for Unproved {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What runs came to, so that a vacuous one is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reached {
    /// Cases, and functions in them, kernels included.
    pub cases: u64,
    /// See `cases`.
    pub functions: u64,
    /// Calls and launches that agreed with the oracle.
    pub runs: u64,
    /// Functions that were compiled for them.
    pub compilations: u64,
    /// Instructions that machines issued in them.
    pub issued: u64,
    /// The same again by tier, and how many of them host code did.
    pub issued_again: Counts,
    /// See `issued_again`.
    pub issued_in_host_code: Counts,
    /// Conditional branches of what ran, and how many of them lanes may disagree on.
    pub branches: u64,
    /// See `branches`.
    pub divergent_branches: u64,
    /// Operations that the oracle executed, an instruction counted once: `iadd.i8`.
    pub operations: Counts,
    /// Operations of all functions, executed or not.
    pub compiled_operations: Counts,
    /// Cases with a construct that was executed; and, with `, some` behind its name, that some work-items executed and
    /// others did not.
    pub constructs: Counts,
    /// Agreeing runs by machine and level, and by strategy.
    pub machines: Counts,
    /// See `machines`.
    pub strategies: Counts,
    /// Divergent branches that became predicates, by strategy.
    pub predicated_branches: Counts,
    /// Launches that ended in a trap, so that there is no profile for the strategy that wants one.
    pub unprofiled: u64,
    /// Cases by how they end.
    pub endings: Counts,
    /// What was not compiled, and how often.
    pub refused: Counts,
    /// Finished code that was proved, where proofs were asked for.
    pub proved: u64,
    /// Finished code that was not.
    pub unproved: Vec<Unproved>,
}

impl AddAssign for Reached {
    fn add_assign(&mut self, other: Reached) {
        macro_rules! each {
            ($sum:expr; $($field:ident)*) => { $($sum(&mut self.$field, other.$field);)* };
        }
        each!(u64::add_assign; cases functions runs compilations issued branches divergent_branches
            unprofiled proved);
        each!(merge; issued_again issued_in_host_code operations compiled_operations constructs machines strategies predicated_branches
            endings refused);
        self.unproved.extend(other.unproved);
    }
}

impl Reached {
    /// What the oracle says about a case.
    pub(super) fn of(generated: &Generated, expected: &Effect, trace: &Trace) -> Reached {
        let case = &generated.case;
        let mut reached =
            Reached { cases: 1, functions: case.functions.len() as u64, ..Reached::default() };
        for (index, func) in case.functions.iter().enumerate() {
            for inst in insts(func) {
                let name = operation(func, inst);
                if trace.executed.contains_key(&(index, inst)) {
                    add(&mut reached.operations, name.as_str(), 1);
                }
                add(&mut reached.compiled_operations, name, 1);
            }
        }
        let found = constructs(generated, expected, trace);
        reached.constructs = found.into_iter().map(|name| (name, 1)).collect();
        let ending = match &expected.ending {
            Ending::Values(_) => "results".to_owned(),
            Ending::Traps(traps) => traps[0].stop.to_string(),
        };
        reached.endings.insert(ending, 1);
        reached
    }

    /// Something that was not compiled.
    pub(super) fn refused(what: &str) -> Reached {
        // Without the names of blocks and without where divergence comes from.
        let (reason, _) = what.split_once(" (divergent").unwrap_or((what, ""));
        let reason = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
        Reached { refused: Counts::from([(reason, 1)]), ..Reached::default() }
    }

    /// Whether finished code is proved to keep lanes together.
    pub(super) fn proof(target: Target, kernel: &Kernel) -> Reached {
        match kernel.check() {
            Ok(()) => Reached { proved: 1, ..Reached::default() },
            Err(error) => {
                let unproved = vec![Unproved { seed: None, target, error }];
                Reached { unproved, ..Reached::default() }
            }
        }
    }

    /// A call or a launch that did as the oracle says.
    pub(super) fn agreed(target: Target, compiled: &Compiled, observed: &Observed) -> Reached {
        let Target { arch, opt_level, way, .. } = target;
        let stats = &compiled.stats;
        let sum = |of: fn(&CompileStats) -> usize| stats.iter().map(of).sum::<usize>() as u64;
        let (branches, divergent) = (sum(|it| it.branches), sum(|it| it.divergent_branches));
        let all_predicated = sum(|it| it.predicated_branches);
        let predicated = sum(|it| it.predicated_divergent_branches);
        let depth = observed.report.as_ref().map(|report| report.stats.divergence_high_water());
        let there = [
            ("spill slots", sum(|stats| stats.spill_slots as usize) > 0),
            ("spilled predicates", sum(|stats| stats.predicate_spills) > 0),
            ("uniform branches", branches > divergent),
            ("uniform branches that became predicates", all_predicated > predicated),
            ("splits", depth > Some(SPLIT_ENTRIES)),
            ("splits in splits", depth > Some(2 * SPLIT_ENTRIES)),
        ];
        let there = there.into_iter().filter(|(_, there)| *there);
        Reached {
            runs: 1,
            compilations: stats.len() as u64,
            issued: observed.issued,
            branches,
            divergent_branches: divergent,
            machines: Counts::from([(format!("{arch} {opt_level:?}"), 1)]),
            strategies: Counts::from([(way.name.to_owned(), 1)]),
            predicated_branches: Counts::from([(way.name.to_owned(), predicated)]),
            constructs: there.map(|(name, _)| (name.to_owned(), 1)).collect(),
            ..Reached::default()
        }
    }
}

fn insts(func: &Function) -> impl Iterator<Item = Inst> {
    func.layout.blocks().flat_map(|block| func.layout.block_insts(block))
}

/// An instruction's opcode with the type that decides about it, then what else does: the other type of
/// a conversion, the condition of a comparison, what an atomic access does.
fn operation(func: &Function, inst: Inst) -> String {
    let data = &func.dfg.insts[inst];
    let opcode = data.opcode();
    let ty = func.dfg.ctrl_typevar(inst);
    let mut name = opcode.to_string();
    if !ty.is_invalid() {
        name += &format!(".{ty}");
    }
    match data {
        InstructionData::IntCompare { cond, .. } => name += &format!(".{cond}"),
        InstructionData::FloatCompare { cond, .. } => name += &format!(".{cond}"),
        InstructionData::AtomicRmw { op, .. } => name += &format!(".{op}"),
        InstructionData::Unary { arg, .. } => {
            let from = func.dfg.value_type(*arg);
            if from != ty {
                name += &format!(".{from}");
            }
        }
        InstructionData::LoadNoOffset { arg, .. } if opcode == Opcode::Bitcast => {
            name += &format!(".{}", func.dfg.value_type(*arg));
        }
        _ => {}
    }
    name
}

/// Names of what a case has and work-items executed.
fn constructs(generated: &Generated, expected: &Effect, trace: &Trace) -> BTreeSet<String> {
    let case = &generated.case;
    let runs = |function: usize, inst| trace.executed.get(&(function, inst)).copied().unwrap_or(0);
    let executed = |function: usize, block: Block| {
        let first = case.functions[function].layout.first_inst(block);
        first.map_or(0, |inst| runs(function, inst))
    };
    let mut found = BTreeSet::new();
    let mut add = |name: &str, count: u64| {
        if count > 0 {
            found.insert(name.to_owned());
            if count < case.items() {
                found.insert(format!("{name}, some"));
            }
        }
    };
    for mark in &generated.marks {
        add(mark.construct, executed(mark.function, mark.block));
    }
    for (index, func) in case.functions.iter().enumerate() {
        for (block, is_loop) in cycles(func) {
            add(if is_loop { "loop" } else { "irreducible cycle" }, executed(index, block));
        }
        for inst in insts(func) {
            if let Some(name) = access(func, inst) {
                add(name, runs(index, inst));
            }
        }
        add("more than six parameters", u64::from(func.signature.params.len() > 6));
        add("more than four results", u64::from(func.signature.returns.len() > 4));
    }
    for ((function, inst), callees) in &trace.callees {
        if callees.len() > 1 {
            let opcode = case.functions[*function].dfg.insts[*inst].opcode();
            add(&format!("{opcode} of several functions"), runs(*function, *inst));
        }
    }
    if let Ending::Traps(traps) = &expected.ending {
        add("work-item that traps", traps.len() as u64);
    }
    add("lane", u64::from(generated.asks_for_lane));
    // The grid is no multiple of the smallest warps.
    add("surplus of work-items", case.items() % 8);
    found
}

/// What an access to memory is, if it is a plain or an atomic one.
fn access(func: &Function, inst: Inst) -> Option<&'static str> {
    let data = &func.dfg.insts[inst];
    let flags = data.memflags_data(&func.dfg)?;
    let big = flags.explicit_endianness() == Some(Endianness::Big);
    let is_atomic = match data.opcode() {
        Opcode::AtomicLoad | Opcode::AtomicStore | Opcode::AtomicRmw | Opcode::AtomicCas => true,
        Opcode::Load | Opcode::Store => false,
        _ => return None,
    };
    match (is_atomic, big, flags.aligned()) {
        (true, true, _) => Some("big-endian atomic access"),
        (true, ..) => None,
        (false, true, _) => Some("big-endian access"),
        (false, false, true) => Some("aligned access"),
        (false, false, false) => Some("access in any alignment"),
    }
}

/// Blocks that close a cycle: a way leads back to them (in post-order). Each with whether they dominate where it comes
/// from; if not, they are not the only entry.
fn cycles(func: &Function) -> Vec<(Block, bool)> {
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let post_order = dominators.cfg_postorder();
    let places: BTreeMap<Block, usize> =
        post_order.iter().enumerate().map(|(place, &block)| (block, place)).collect();
    let mut found = Vec::new();
    for (&block, place) in &places {
        let back = cfg.succ_iter(block).filter(|successor| places[successor] >= *place);
        found.extend(back.map(|to| (to, dominators.block_dominates(to, block))));
    }
    found
}
