//! If-conversion: turns the blocks of acyclic regions into straight-line code under predicates.
//!
//! It works on VCode, before registers are allocated, so that every region can be converted: one more
//! predicate is one more virtual register. All blocks of a region are appended to its head, in topological
//! order.
//!
//! * A block's guard is true in the lanes that would run the block: the disjunction of its incoming edges'
//!   predicates, each the conjunction of a guard and a condition. Guards are compared as functions of the
//!   conditions ([`functions`]). So a block that runs whenever the head does has no guard, two blocks that
//!   are run by the same lanes share one, and each guard is computed when it is first needed, from what is in
//!   registers at that time ([`guards`]).
//! * Instructions that have a side effect or can trap (loads, stores, atomics, divisions) get the guard. All
//!   others are executed in all lanes: their result registers are fresh, and what they compute in lanes
//!   outside the block is not read in lanes inside. The same is true of the result of a guarded load, so it
//!   is a plain definition to the allocator.
//! * A block parameter becomes a chain of predicated moves ([`merge`]).
//!
//! Assumes the [invariants](crate::vcode) of VCode and that regions have no members in common. Keeps the
//! invariants. The whole region is executed with the lanes that are active at its head, so its instructions
//! must not depend on which lanes these are: calls, traps, votes, barriers, splits and joins are refused,
//! before anything is changed.

use harp_isa::{ArchId, Opcode, OpcodeFlags};
use smallvec::smallvec;
use thiserror::Error;

use crate::vcode::{BlockId, MInst, VBlock, VCode};

mod convert;
mod functions;
mod guards;
mod merge;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod tests;

use convert::{Converter, Placed};

/// A region that is entered only through its head and left only to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// A block that ends in a branch; it is not a member.
    pub(crate) head: BlockId,
    /// The block where all paths from the head lead; it is not a member. It may be the head, or lie before
    /// it, if the region ends a loop's body.
    pub(crate) end: BlockId,
}

/// Why a region cannot be converted, which is an error of the caller that chose it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum NotPredicable {
    #[error("{head} does not end in a branch without split")]
    Head { head: BlockId },
    #[error("{block} has an entry that does not lead through {head}")]
    Entry { block: BlockId, head: BlockId },
    #[error("{block} has a back edge")]
    Cycle { block: BlockId },
    #[error("{block} contains `{inst}`")]
    Instruction { block: BlockId, inst: String },
}

/// The result of conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Predicated {
    /// The number of branches removed.
    pub(crate) branches: usize,
}

/// Converts `regions` of `vcode`, which is code for `arch`.
///
/// # Errors
///
/// If a region cannot be converted. `vcode` is unchanged then.
pub(crate) fn convert(
    vcode: &mut VCode,
    regions: &[Region],
    arch: ArchId,
) -> Result<Predicated, NotPredicable> {
    if regions.is_empty() {
        return Ok(Predicated::default());
    }
    let members = regions
        .iter()
        .map(|&region| members(vcode, region))
        .collect::<Result<Vec<_>, NotPredicable>>()?;
    let mut result = Predicated::default();
    let mut rewrite =
        Rewrite { code: vec![None; vcode.blocks.len()], removed: vec![false; vcode.blocks.len()] };
    let mut converter = Converter::new(vcode, arch);
    for (&region, members) in regions.iter().zip(&members) {
        let (code, branches) = converter.region(region, members);
        rewrite.code[region.head.index()] = Some(code);
        members.iter().for_each(|member| rewrite.removed[member.index()] = true);
        result.branches += branches;
    }
    let aliases = converter.into_aliases();
    rewrite.apply(vcode);
    for block in &mut vcode.blocks {
        block.params.iter_mut().for_each(|reg| *reg = aliases.resolve(*reg));
    }
    for inst in &mut vcode.insts {
        inst.rewrite_regs(|reg| *reg = aliases.resolve(*reg));
    }
    Ok(result)
}

/// Converts regions on trial, to look at the code.
pub(crate) struct Trial<'a> {
    converter: Converter<'a>,
}

impl<'a> Trial<'a> {
    /// Prepares trials, which leave the code of `vcode` unchanged.
    pub(crate) fn new(vcode: &'a mut VCode, arch: ArchId) -> Trial<'a> {
        Trial { converter: Converter::new(vcode, arch) }
    }

    /// The code that conversion would append to the head's own, without the jump to the end; none if the
    /// region cannot be converted.
    pub(crate) fn convert(&mut self, region: Region) -> Option<Vec<MInst>> {
        let members = members(self.converter.vcode, region).ok()?;
        let num_regs = self.converter.vcode.num_regs;
        let (code, _) = self.converter.region(region, &members);
        self.converter.forget(num_regs);
        let own = self.converter.vcode.blocks[region.head.index()].insts.len() - 1;
        Some(code.into_iter().skip(own).map(|(inst, _)| inst).collect())
    }
}

/// The blocks of a region in topological order.
fn members(vcode: &VCode, region: Region) -> Result<Vec<BlockId>, NotPredicable> {
    let Region { head, end } = region;
    let terminator = |block: BlockId| &vcode.insts[vcode.blocks[block.index()].insts.end - 1];
    if !matches!(terminator(head), MInst::CondBr { split: false, .. }) {
        return Err(NotPredicable::Head { head });
    }
    let mut is_member = vec![false; vcode.blocks.len()];
    let mut members = Vec::new();
    let mut todo = vcode.blocks[head.index()].succs.to_vec();
    while let Some(block) = todo.pop() {
        if block != end && !std::mem::replace(&mut is_member[block.index()], true) {
            members.push(block);
            todo.extend(&vcode.blocks[block.index()].succs);
        }
    }
    members.sort_unstable();
    for &block in &members {
        let VBlock { insts, preds, succs, .. } = &vcode.blocks[block.index()];
        if let Some(inst) = vcode.insts[insts.clone()].iter().find(|inst| !is_predicable(inst)) {
            return Err(NotPredicable::Instruction { block, inst: inst.to_string() });
        }
        let own = |from: &BlockId| *from == head || is_member[from.index()];
        if block == head || !preds.iter().all(own) {
            return Err(NotPredicable::Entry { block, head });
        }
        if succs.iter().any(|&to| to != end && to <= block) {
            return Err(NotPredicable::Cycle { block });
        }
    }
    Ok(members)
}

/// Whether an instruction may be in a region that lanes outside the region execute along.
fn is_predicable(inst: &MInst) -> bool {
    match inst {
        MInst::Op { opcode, .. } => !opcode.flags().intersects(
            OpcodeFlags::CONTROL
                | OpcodeFlags::ONCE_PER_WARP
                | OpcodeFlags::CROSS_LANE
                | OpcodeFlags::PRIVILEGED,
        ),
        MInst::Const { .. }
        | MInst::Undef { .. }
        | MInst::LaneWord { .. }
        | MInst::GroupWord { .. }
        | MInst::LoadWord { .. }
        | MInst::FrameValue { .. }
        | MInst::Address { .. }
        | MInst::Jump { .. } => true,
        MInst::CondBr { split, .. } => !split,
        MInst::Args { .. }
        | MInst::StoreWord { .. }
        | MInst::Call { .. }
        | MInst::TailCall { .. }
        | MInst::Barrier { .. }
        | MInst::Shuffle { .. }
        | MInst::Any { .. }
        | MInst::OfSomeLane { .. }
        | MInst::Join
        | MInst::Trap { .. }
        | MInst::Ret { .. } => false,
    }
}

/// Whether lanes outside the block must not execute an instruction.
fn needs_guard(opcode: Opcode) -> bool {
    opcode.flags().intersects(
        OpcodeFlags::LOAD | OpcodeFlags::STORE | OpcodeFlags::ATOMIC | OpcodeFlags::DIVIDES,
    )
}

/// The new code of heads, and the blocks to remove.
struct Rewrite {
    code: Vec<Option<Vec<Placed>>>,
    removed: Vec<bool>,
}

impl Rewrite {
    fn apply(mut self, vcode: &mut VCode) {
        let mut ids = Vec::with_capacity(vcode.blocks.len());
        let mut kept = 0;
        for &removed in &self.removed {
            ids.push(BlockId::new(kept));
            kept += usize::from(!removed);
        }
        let new_id = |old: &mut BlockId| *old = ids[old.index()];
        let insts = std::mem::take(&mut vcode.insts);
        let srclocs = std::mem::take(&mut vcode.srclocs);
        // Mostly the code grows a little.
        vcode.insts.reserve(insts.len() + insts.len() / 4);
        vcode.srclocs.reserve(insts.len() + insts.len() / 4);
        let mut old = insts.into_iter().zip(srclocs);
        for (index, mut block) in std::mem::take(&mut vcode.blocks).into_iter().enumerate() {
            let unchanged = old.by_ref().take(block.insts.len());
            let start = vcode.insts.len();
            let push = |(inst, place): Placed| {
                vcode.insts.push(inst);
                vcode.srclocs.push(place);
            };
            match self.code[index].take() {
                _ if self.removed[index] => {
                    unchanged.for_each(drop);
                    continue;
                }
                Some(code) => {
                    unchanged.for_each(drop);
                    code.into_iter().for_each(push);
                }
                None => unchanged.for_each(push),
            }
            match vcode.insts.last_mut() {
                Some(MInst::Jump { target, .. }) => {
                    block.succs = smallvec![*target];
                    new_id(target);
                }
                Some(MInst::CondBr { taken, not_taken, .. }) => {
                    new_id(taken);
                    new_id(not_taken);
                }
                _ => {}
            }
            block.insts = start..vcode.insts.len();
            block.succs.iter_mut().for_each(new_id);
            vcode.blocks.push(block);
        }
        vcode.compute_preds();
    }
}
