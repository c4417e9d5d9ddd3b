//! Plans how each branch is executed when lanes disagree.
//!
//! A uniform branch is a plain branch. At a divergent one the machine `split`s: it runs the true side
//! with some lanes and then the false side with the others, each up to the `join` of this split. Here
//! every divergent branch gets a join block of its own, in front of the branch's immediate
//! post-dominator (Gupta 2016, algorithms 1 to 4): all edges that lead there from the branch and its
//! region are sent through the new block.
//!
//! That is right only if
//!
//! * the region is entered through the branch alone; else lanes that never split would join. The
//!   block that `a || b` leads to is such a case;
//! * lanes cannot come back to the branch before they join: the branch of a loop that lanes leave in
//!   different iterations is such a case.
//!
//! Both are refused. Blocks that end in a trap may lie in a region, also shared ones: who enters them
//! stops the launch. The function must be legalized.
//!
//! [`check()`] proves, without the plan's reasons, that every path joins what it split.

use std::fmt;

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, Opcode};

use crate::analysis::{Flow, Uniformity, ends_in_trap, reachable};
use crate::error::Unsupported;

mod check;
pub(crate) mod decide;
pub(crate) mod predicate;
pub(crate) mod profile;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod simulator;
#[cfg(test)]
mod tests;

pub(crate) use check::check;
use decide::{Decisions, Region};

/// A divergent branch and the block where its lanes come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Split {
    /// The `brif`, emitted with a `split` in front of it.
    pub(crate) branch: Inst,
    /// The block that begins with the `join`. None if no lane comes back: all ways end in traps or
    /// run for ever.
    pub(crate) join: Option<Block>,
}

/// How the branches of a function are executed. What is not in it is a plain branch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    splits: Vec<Split>,
    branches: EntitySet<Inst>,
    joins: EntitySet<Block>,
    predicated: Vec<Region>,
    predicated_divergent: usize,
}

impl Plan {
    /// Whether a `split` belongs in front of this branch.
    pub(crate) fn is_split(&self, branch: Inst) -> bool {
        self.branches.contains(branch)
    }

    /// Whether this block begins with a `join`.
    pub(crate) fn is_join(&self, block: Block) -> bool {
        self.joins.contains(block)
    }

    /// The divergent branches with their joins, inner ones before those around them.
    pub(crate) fn splits(&self) -> impl ExactSizeIterator<Item = &Split> {
        self.splits.iter()
    }

    /// The regions that are to be predicated once instructions are selected.
    pub(crate) fn predicated(&self) -> &[Region] {
        &self.predicated
    }

    /// How many divergent branches are in these regions.
    pub(crate) fn predicated_divergent(&self) -> usize {
        self.predicated_divergent
    }

    fn add(&mut self, split: Split) {
        self.branches.insert(split.branch);
        self.joins.extend(split.join);
        self.splits.push(split);
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Split { branch, join } in &self.splits {
            match join {
                Some(join) => writeln!(f, "{branch}: split, join in {join}")?,
                None => writeln!(f, "{branch}: split, no join")?,
            }
        }
        for Region { head, end, .. } in &self.predicated {
            writeln!(f, "{head} to {end}: predicated")?;
        }
        Ok(())
    }
}

/// Plans all branches of `func`, of which `uniformity` is the facts, as `decisions` say, and inserts
/// the join blocks. The facts do not hold for the function afterwards.
///
/// # Errors
///
/// The first branch, in reverse post-order, that split and join cannot manage. The function is
/// unchanged then.
pub(crate) fn plan(
    func: &mut Function,
    uniformity: &Uniformity,
    decisions: Decisions,
) -> Result<Plan, Unsupported> {
    let flow = uniformity.flow();
    let mut divergent = Vec::new();
    let is_split = |&block: &Block| {
        uniformity.branch_divergence(block).is_some() && !decisions.predicates(block)
    };
    for block in flow.blocks().filter(is_split) {
        let inst = func.layout.last_inst(block).expect("a block with a branch has instructions");
        if let Some(reason) = obstacle(func, flow, block, inst) {
            let why = uniformity.explain_branch(func, block);
            let what = format!("{reason} (divergent: {why})");
            return Err(Unsupported { inst, block, what });
        }
        divergent.push((block, inst));
    }
    let mut plan = Plan::default();
    // A branch is dominated by those around it, which come before it in reverse post-order. Inner
    // ones go first, so that with a common post-dominator their joins lead into the outer ones'.
    for (block, branch) in divergent.into_iter().rev() {
        let end = flow.post_dominators().immediate(block);
        let join = end.map(|end| insert_join(func, block, branch, end));
        plan.add(Split { branch, join });
    }
    let is_divergent = |&block: &Block| uniformity.branch_divergence(block).is_some();
    plan.predicated_divergent =
        flow.blocks().filter(is_divergent).filter(|&block| decisions.predicates(block)).count();
    plan.predicated = decisions.into_predicated();
    for region in &mut plan.predicated {
        region.end = exit(func, region);
    }
    Ok(plan)
}

/// Where a region leads, which is now a join block if the region's end is the end of splits, too.
fn exit(func: &Function, region: &Region) -> Block {
    let blocks = region.blocks.iter().copied().chain([region.head]);
    let mut targets = blocks.flat_map(|block| func.block_successors(block));
    targets
        .find(|to| !region.blocks.contains(to))
        .expect("all ways through a region lead to its end")
}

/// What keeps the divergent branch at the end of `block` from being a split with one join.
fn obstacle(func: &Function, flow: &Flow, block: Block, inst: Inst) -> Option<String> {
    let opcode = func.dfg.insts[inst].opcode();
    if opcode != Opcode::Brif {
        return Some(format!("divergent `{opcode}`"));
    }
    let post_dominators = flow.post_dominators();
    if post_dominators.immediate(block).is_none() && post_dominators.reaches_return(block) {
        return Some("divergent branch to several returns".to_owned());
    }
    let region = flow.region(block);
    if region.contains(&block) {
        return Some("divergent loop: lanes leave it in different iterations".to_owned());
    }
    // To be dominated by the branch would not be enough: lanes can also come from behind the join,
    // if they cannot reach a return from there.
    let mut own = EntitySet::new();
    own.extend(region.iter().copied().chain([block]));
    let mut inside = region.iter().filter(|&&inside| !ends_in_trap(func, inside));
    let foreign =
        inside.find(|&&inside| !flow.predecessors(inside).all(|from| own.contains(from)))?;
    Some(format!("divergent branch into {foreign}, which other branches lead to as well"))
}

/// Sends all edges from `block` and its region to `end` through a new block.
fn insert_join(func: &mut Function, block: Block, branch: Inst, end: Block) -> Block {
    // Inner branches have got joins since the analysis, so the region is found anew.
    let region = reachable(func.block_successors(block), Some(end), |b| func.block_successors(b));
    let types: Vec<_> = func.dfg.block_param_types(end).collect();
    let join = func.dfg.make_block();
    for from in region.into_iter().chain([block]) {
        let Some(inst) = func.layout.last_inst(from) else { continue };
        let dfg = &mut func.dfg;
        let calls =
            dfg.insts[inst].branch_destination_mut(&mut dfg.jump_tables, &mut dfg.exception_tables);
        for call in calls {
            if call.block(&dfg.value_lists) == end {
                call.set_block(join, &mut dfg.value_lists);
            }
        }
    }
    let params = types.into_iter().map(|ty| func.dfg.append_block_param(join, ty));
    let params: Vec<BlockArg> = params.map(BlockArg::Value).collect();
    func.layout.insert_block(join, end);
    let place = func.srcloc(branch);
    FuncCursor::new(func).with_srcloc(place).at_bottom(join).ins().jump(end, &params);
    join
}
