//! What random kernels reached: constructs, machines, strategies, endings.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::AddAssign;

use cranelift_codegen::dominator_tree::DominatorTree;
use cranelift_codegen::flowgraph::ControlFlowGraph;
use cranelift_codegen::ir::{Block, Function};

use harp_jit::{CodeError, CodeFault, Kernel};

use super::Target;
use crate::generate::divergent::Generated;
use crate::oracle::{CompiledKernel, Expected, KernelCase, Observed, Stop, Trace};

/// How often something was reached, by name.
pub type Counts = BTreeMap<String, u64>;

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

impl Unproved {
    /// Whether the proof only takes more steps than it is given.
    pub fn is_too_long(&self) -> bool {
        self.error.fault == CodeFault::TooLong
    }
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

/// What runs came to, so that a vacuous one is seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// Kernels, and functions in them, kernels included.
    pub kernels: u64,
    /// See `kernels`.
    pub functions: u64,
    /// Launches that agreed with the oracle.
    pub launches: u64,
    /// Instructions that machines issued in them.
    pub issued: u64,
    /// Conditional branches of what was launched, and how many of them lanes may disagree on.
    pub branches: u64,
    /// See `branches`.
    pub divergent_branches: u64,
    /// Kernels with a construct that work-items executed; and, with `, some` behind its name, that some
    /// of them executed and others did not.
    pub constructs: Counts,
    /// Agreeing launches by machine and level, and by strategy.
    pub machines: Counts,
    /// See `machines`.
    pub strategies: Counts,
    /// Divergent branches that became predicates, by strategy.
    pub predicated_branches: Counts,
    /// Launches that ended in a trap, so that there is no profile for the strategy that wants one.
    pub unprofiled: u64,
    /// Kernels by how they end.
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
        self.kernels += other.kernels;
        self.functions += other.functions;
        self.launches += other.launches;
        self.issued += other.issued;
        self.branches += other.branches;
        self.divergent_branches += other.divergent_branches;
        self.unprofiled += other.unprofiled;
        self.proved += other.proved;
        self.unproved.extend(other.unproved);
        let all = [
            (&mut self.constructs, other.constructs),
            (&mut self.machines, other.machines),
            (&mut self.strategies, other.strategies),
            (&mut self.predicated_branches, other.predicated_branches),
            (&mut self.endings, other.endings),
            (&mut self.refused, other.refused),
        ];
        for (counts, more) in all {
            for (name, count) in more {
                *counts.entry(name).or_default() += count;
            }
        }
    }
}

impl Reached {
    /// What the oracle says about a kernel.
    pub(super) fn of(generated: &Generated, expected: &Expected, trace: &Trace) -> Reached {
        let case = &generated.case;
        let found = constructs(generated, expected, trace);
        Reached {
            kernels: 1,
            functions: case.module.functions.len() as u64,
            constructs: found.into_iter().map(|name| (name, 1)).collect(),
            endings: Counts::from([(ending(expected), 1)]),
            ..Reached::default()
        }
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

    /// A launch that did as the oracle says.
    pub(super) fn agreed(
        target: Target,
        compiled: &CompiledKernel,
        observed: &Observed,
    ) -> Reached {
        let Target { arch, opt_level, way, .. } = target;
        let stats = &compiled.stats;
        let mut reached = Reached {
            launches: 1,
            branches: stats.iter().map(|stats| stats.branches as u64).sum(),
            divergent_branches: stats.iter().map(|stats| stats.divergent_branches as u64).sum(),
            machines: Counts::from([(format!("{arch} {opt_level:?}"), 1)]),
            strategies: Counts::from([(way.name.to_owned(), 1)]),
            predicated_branches: Counts::from([(
                way.name.to_owned(),
                stats.iter().map(|stats| stats.predicated_divergent_branches as u64).sum(),
            )]),
            ..Reached::default()
        };
        if let Observed::Memory(_, report) = observed {
            reached.issued = report.stats.issued();
        }
        let spills = stats.iter().any(|stats| stats.spill_slots > 0);
        let predicates = stats.iter().any(|stats| stats.predicate_spills > 0);
        for (name, there) in [("spill slots", spills), ("spilled predicates", predicates)] {
            if there {
                reached.constructs.insert(name.to_owned(), 1);
            }
        }
        reached
    }
}

fn ending(expected: &Expected) -> String {
    let Expected::Trap(traps) = expected else { return "results".to_owned() };
    match traps[0].stop {
        Stop::Code(code) => format!("trap {code}"),
        Stop::BadAddress => "bad address".to_owned(),
        Stop::DivideByZero => "division by zero".to_owned(),
    }
}

/// Names of what a kernel has and work-items executed.
fn constructs(generated: &Generated, expected: &Expected, trace: &Trace) -> BTreeSet<String> {
    let case = &generated.case;
    let items: u64 = case.extents.iter().product();
    let executed = |function: usize, block: Block| {
        let first = case.module.functions[function].layout.first_inst(block);
        first.and_then(|inst| trace.executed.get(&(function, inst)).copied()).unwrap_or(0)
    };
    let mut found = BTreeSet::new();
    let mut add = |name: &str, count: u64| {
        if count > 0 {
            found.insert(name.to_owned());
            if count < items {
                found.insert(format!("{name}, some"));
            }
        }
    };
    for mark in &generated.marks {
        add(mark.construct, executed(mark.function, mark.block));
    }
    for (index, func) in case.module.functions.iter().enumerate() {
        for block in entered_irreducibly(func) {
            add("irreducible cycle", executed(index, block));
        }
    }
    for ((function, inst), callees) in &trace.callees {
        if callees.len() > 1 {
            let opcode = case.module.functions[*function].dfg.insts[*inst].opcode();
            let count = trace.executed.get(&(*function, *inst)).copied().unwrap_or(0);
            add(&format!("{opcode} of several functions"), count);
        }
    }
    if let Expected::Trap(traps) = expected {
        add("work-item that traps", traps.len() as u64);
    }
    add("lane", u64::from(generated.asks_for_lane));
    add("surplus of work-items", u64::from(has_surplus(case)));
    found
}

/// Whether the grid is no multiple of the smallest warps.
fn has_surplus(case: &KernelCase) -> bool {
    case.extents.iter().product::<u64>() % 8 != 0
}

/// Blocks that close a cycle which they are not the only entry of: a way leads back to them (in post-order), and
/// they do not dominate where it comes from.
fn entered_irreducibly(func: &Function) -> Vec<Block> {
    let cfg = ControlFlowGraph::with_function(func);
    let dominators = DominatorTree::with_function(func, &cfg);
    let post_order = dominators.cfg_postorder();
    let places: BTreeMap<Block, usize> =
        post_order.iter().enumerate().map(|(place, &block)| (block, place)).collect();
    let mut found = Vec::new();
    for (&block, place) in &places {
        let back = cfg.succ_iter(block).filter(|successor| places[successor] >= *place);
        found.extend(back.filter(|&successor| !dominators.block_dominates(successor, block)));
    }
    found
}

/// The constructs that a run of a thousand kernels must have executed, each in some work-items and not in
/// others, except where a word on that makes no sense.
pub const CONSTRUCTS: [&str; 62] = [
    "if",
    "if, some",
    "short-circuit and, some",
    "short-circuit or, some",
    "early return",
    "early return, some",
    "break, some",
    "break of an outer loop, some",
    "continue, some",
    "continue of an outer loop, some",
    "return from a loop, some",
    "loop with a uniform count",
    "loop with a uniform count, some",
    "loop with a count of each lane's own",
    "loop with a count of each lane's own, some",
    "loop tested at the top",
    "loop tested at the top, some",
    "loop tested at the bottom",
    "loop tested at the bottom, some",
    "loop that only breaks leave",
    "loop that only breaks leave, some",
    "nested loop",
    "nested loop, some",
    "loop with two entries",
    "loop with two entries, some",
    "irreducible cycle",
    "irreducible cycle, some",
    "block of any graph",
    "block of any graph, some",
    "shared block",
    "shared block, some",
    "switch",
    "switch, some",
    "case that falls through",
    "case that falls through, some",
    "guarded division, some",
    "guarded access, some",
    "call",
    "call, some",
    "indirect call",
    "indirect call, some",
    "call_indirect of several functions",
    "call_indirect of several functions, some",
    "call that may be recursive, some",
    "tail call",
    "tail call, some",
    "indirect tail call",
    "indirect tail call, some",
    "return_call_indirect of several functions, some",
    "trap, some",
    "conditional trap",
    "conditional trap, some",
    "division, some",
    "access that may trap, some",
    "work-item that traps, some",
    "load of what all read, some",
    "stack slot, some",
    "store of a part of a word, some",
    "surplus of work-items",
    "lane",
    "spill slots",
    "spilled predicates",
];

/// The same for kernels from graphs.
pub const GRAPH_CONSTRUCTS: [&str; 45] = [
    "branch",
    "branch, some",
    "switch",
    "switch, some",
    "loop",
    "loop, some",
    "loop of one block",
    "loop of one block, some",
    "loop in a loop",
    "loop in a loop, some",
    "loop with several exits",
    "loop with several exits, some",
    "loop with several latches",
    "loop with several latches, some",
    "latch of two loops",
    "latch of two loops, some",
    "irreducible cycle",
    "irreducible cycle, some",
    "critical edge",
    "critical edge, some",
    "both ways to one block",
    "both ways to one block, some",
    "end",
    "end, some",
    "several ends",
    "dead block",
    "loop without an end that is never entered",
    "trap that is never taken",
    "traps that may be taken",
    "work-item that traps",
    "narrow values",
    "values of two words",
    "floats",
    "values alone",
    "count in memory",
    "count of a loop's rounds",
    "count of an inner loop's rounds",
    "count in a parameter of all blocks",
    "blocks in any order",
    "graph of the catalogue",
    "graph of the catalogue, changed",
    "graphs put together",
    "graph without a plan",
    "spill slots",
    "spilled predicates",
];
