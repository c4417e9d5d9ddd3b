//! Proves that a plan's splits and joins match on every path.
//!
//! The checker shares nothing with the planner but the plan: it walks the control-flow graph and computes for
//! each block the stack of splits that are open at its entry. It proves that
//!
//! * this stack is the same on all paths to a block, and empty at the entry and at returns;
//! * each join closes one split, always the same one, and each split is closed by one join only.
//!
//! So the machine's stack is balanced, and both sides of a split stop at the same join. Where no return is
//! reachable, the stack below does not matter any more: only splits pushed from there on count, and of these
//! only splits for which the plan has a join. The checker does not prove that unsplit branches are uniform.

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, Function, Inst};
use hashbrown::HashMap;
use thiserror::Error;

use crate::plan::Plan;

/// A path on which splits and joins do not match.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Imbalance {
    #[error("{block} is reached with {one:?} and with {other:?} open")]
    Stacks { block: Block, one: Vec<Inst>, other: Vec<Inst> },
    #[error("{block} joins, but no split is open")]
    NothingToJoin { block: Block },
    #[error("{block} closes {one} and {other}")]
    TwoSplits { block: Block, one: Inst, other: Inst },
    #[error("{split} is closed by {one} and by {other}")]
    TwoJoins { split: Inst, one: Block, other: Block },
    #[error("{block} returns with {open:?} open")]
    OpenAtReturn { block: Block, open: Vec<Inst> },
}

/// Checks `plan` against `func` with its join blocks.
///
/// # Errors
///
/// The first path from the entry whose splits and joins do not match.
pub(crate) fn check(func: &Function, plan: &Plan) -> Result<(), Imbalance> {
    let mut checker = Checker::default();
    let mut todo: Vec<Block> = func.layout.entry_block().into_iter().collect();
    for &entry in &todo {
        checker.stacks[entry] = Some(None);
    }
    let returns = returning(func);
    while let Some(block) = todo.pop() {
        let open = checker.run(func, plan, block, returns.contains(block))?;
        for successor in func.block_successors(block) {
            let falls = returns.contains(block) && !returns.contains(successor);
            if checker.enter(successor, if falls { None } else { open })? {
                todo.push(successor);
            }
        }
    }
    Ok(())
}

/// The blocks from which a return is reachable.
fn returning(func: &Function) -> EntitySet<Block> {
    let mut preds: SecondaryMap<Block, Vec<Block>> = SecondaryMap::new();
    let mut todo = Vec::new();
    for block in func.layout.blocks() {
        func.block_successors(block).for_each(|to| preds[to].push(block));
        let last = func.layout.last_inst(block);
        todo.extend(last.filter(|&i| func.dfg.insts[i].opcode().is_return()).map(|_| block));
    }
    let mut found = EntitySet::new();
    while let Some(block) = todo.pop() {
        if found.insert(block) {
            todo.extend(&preds[block]);
        }
    }
    found
}

/// A stack of open splits: none if it is empty, else the number of an [`Open`]. Equal stacks have equal
/// numbers.
type Stack = Option<usize>;

/// An open split on top of others.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Open {
    below: Stack,
    split: Inst,
}

#[derive(Default)]
struct Checker {
    /// All non-empty stacks.
    opens: Vec<Open>,
    numbers: HashMap<Open, usize>,
    /// The open splits at the entry of each block reached so far.
    stacks: SecondaryMap<Block, Option<Stack>>,
    /// The join of each split.
    closed: HashMap<Inst, Block>,
    /// The split of each join.
    closes: HashMap<Block, Inst>,
}

impl Checker {
    /// The open splits at the end of `block`, from which a return is reachable or not.
    fn run(
        &mut self,
        func: &Function,
        plan: &Plan,
        block: Block,
        returns: bool,
    ) -> Result<Stack, Imbalance> {
        let mut open = self.stacks[block].unwrap_or_default();
        if plan.is_join(block) {
            let top = open.ok_or(Imbalance::NothingToJoin { block })?;
            let Open { below, split } = self.opens[top];
            open = below;
            let one = *self.closed.entry(split).or_insert(block);
            if one != block {
                return Err(Imbalance::TwoJoins { split, one, other: block });
            }
            let one = *self.closes.entry(block).or_insert(split);
            if one != split {
                return Err(Imbalance::TwoSplits { block, one, other: split });
            }
        }
        if let Some(last) = func.layout.last_inst(block) {
            if plan.is_split(last) && (returns || !plan.is_unjoined(last)) {
                open = Some(self.push(Open { below: open, split: last }));
            }
            if func.dfg.insts[last].opcode().is_return() && open.is_some() {
                return Err(Imbalance::OpenAtReturn { block, open: self.splits(open) });
            }
        }
        Ok(open)
    }

    fn push(&mut self, open: Open) -> usize {
        *self.numbers.entry(open).or_insert_with(|| {
            self.opens.push(open);
            self.opens.len() - 1
        })
    }

    /// The splits of a stack, from the bottom to the top.
    fn splits(&self, stack: Stack) -> Vec<Inst> {
        let mut all: Vec<Inst> = std::iter::successors(stack, |&at| self.opens[at].below)
            .map(|at| self.opens[at].split)
            .collect();
        all.reverse();
        all
    }

    /// Follows an edge to `block`; returns whether the block is reached for the first time.
    fn enter(&mut self, block: Block, open: Stack) -> Result<bool, Imbalance> {
        match self.stacks[block] {
            None => {
                self.stacks[block] = Some(open);
                Ok(true)
            }
            Some(known) if known == open => Ok(false),
            Some(known) => {
                let (one, other) = (self.splits(known), self.splits(open));
                Err(Imbalance::Stacks { block, one, other })
            }
        }
    }
}
