//! Registers that the lanes of a warp share.
//!
//! What one side of a split writes to them, the other side finds, and what lies behind the join finds what the last one
//! wrote. So on the way into a side nothing is known any more of what the other one may write, and behind it the same.
//! Which registers these are, the blocks say that the sides come through before their lanes meet.

use harp_isa::abi::SharedRoles;
use harp_isa::{ArchId, Gpr, Operand, Pred, Role as Access};
use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::code::{Code, Flow};
use crate::error::{CodeError, CodeFault};
use crate::op::registers;
use crate::places::{Place, Places};
use crate::record::Record;
use crate::structure::{Open, Structure};

/// The shared registers that each side of the splits may write: the one where the predicate is false, and the other.
#[derive(Debug, Default)]
pub(crate) struct Sides(HashMap<Open, [Vec<Place>; 2]>);

impl Sides {
    pub(crate) fn find(code: &Code<'_>, structure: &Structure) -> Sides {
        let mut sides = Sides::default();
        if !code.arch.has_shared() {
            return sides;
        }
        let successors = structure.successors();
        for (block, after) in structure.blocks.iter().zip(&successors) {
            let branch = block.last;
            for &(to, taken) in after.iter().filter(|_| code.is_split_branch(branch)) {
                if let Some(side) = taken {
                    let written = written_from(code, structure, &successors, (to, branch));
                    sides.0.entry(branch).or_default()[usize::from(side)] = written;
                }
            }
        }
        sides
    }

    /// What lanes of one side of a split lose to those of the other.
    pub(crate) fn lost(&self, branch: Open, side: bool) -> &[Place] {
        self.0.get(&branch).map_or(&[], |sides| &sides[usize::from(!side)])
    }
}

/// The shared registers that are written from a block on until the split of a branch is joined, on ways that lead there:
/// behind others no lane runs on.
fn written_from(
    code: &Code<'_>,
    structure: &Structure,
    successors: &[Vec<(usize, Option<bool>)>],
    (from, branch): (usize, Open),
) -> Vec<Place> {
    let blocks = &structure.blocks;
    let mut inside = vec![false; blocks.len()];
    let mut ends = Vec::new();
    let mut todo = vec![from];
    while let Some(number) = todo.pop() {
        if blocks[number].joins == Some(branch) {
            ends.extend(blocks[number].edges.iter().map(|edge| edge.from));
        } else if !std::mem::replace(&mut inside[number], true) {
            todo.extend(successors[number].iter().map(|&(to, _)| to));
        }
    }
    let mut written = Vec::new();
    while let Some(number) = ends.pop() {
        if std::mem::replace(&mut inside[number], false) {
            let block = &blocks[number];
            let written_at = |at| writes(code, at).into_iter().filter_map(Places::operand);
            written.extend((block.first..=block.last).flat_map(written_at));
            ends.extend(block.edges.iter().map(|edge| edge.from));
        }
    }
    written.sort_unstable();
    written.dedup();
    written
}

/// The shared registers that an instruction writes, and those that a function may write that it calls.
fn writes(code: &Code<'_>, at: usize) -> SmallVec<[Operand; 2]> {
    let placed = &code.insts[at];
    if placed.flow == Flow::Call {
        return of_functions(code.arch).collect();
    }
    let registers = registers(placed.instruction.op).into_iter();
    let written = registers.filter(|(_, access)| *access != Access::Use);
    written.map(|(operand, _)| operand).filter(|&operand| code.arch.is_shared(operand)).collect()
}

/// The shared registers that any function may write.
pub(crate) fn of_functions(arch: ArchId) -> impl Iterator<Item = Operand> {
    let roles = SharedRoles::new(arch);
    let gprs = (arch.gprs()..).take(arch.shared_gprs().into()).map(Gpr::new);
    let preds = (arch.preds()..).take(arch.shared_preds().into()).map(Pred::new);
    let gprs = gprs.filter(move |&reg| !roles.is_of_kernel(reg)).map(Operand::Gpr);
    gprs.chain(preds.filter(move |&reg| !roles.is_pred_of_kernel(reg)).map(Operand::Pred))
}

/// Proves that a function changes none of the shared registers that only kernels do.
pub(crate) fn check(
    code: &Code<'_>,
    structure: &Structure,
    record: &Record,
) -> Result<(), CodeError> {
    let may_write: SmallVec<[Operand; 16]> = of_functions(code.arch).collect();
    let insts = structure.blocks.iter().flat_map(|block| block.first..=block.last);
    for at in insts.filter(|_| !record.entry.kernel) {
        if let Some(&operand) = writes(code, at).iter().find(|&reg| !may_write.contains(reg)) {
            return Err(code.error(at, CodeFault::OfKernel(code.register(operand))));
        }
    }
    Ok(())
}
