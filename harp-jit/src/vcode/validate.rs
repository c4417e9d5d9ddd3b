//! Checks the invariants of VCode that its [documentation](super) lists.
//!
//! Dominance is computed with the iteration of Cooper, Harvey and Kennedy, "A simple, fast dominance
//! algorithm" (2001), over the blocks in the order of their numbers.

use harp_isa::RegClass;
use thiserror::Error;

use super::{BlockId, MInst, MOperand, Reg, VCode};

/// An invariant that is violated, and where.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Invalid {
    #[error("the blocks' instructions do not lie one after the other at {block}")]
    Layout { block: BlockId },
    #[error("{block} does not end in its only terminator")]
    Terminator { block: BlockId },
    #[error("the successors or predecessors of {block} are not those of the instructions")]
    Edges { block: BlockId },
    #[error("{block} is not reached before the blocks that it leads to")]
    Order { block: BlockId },
    #[error("{block} is the target of a branch and has parameters or other predecessors")]
    Critical { block: BlockId },
    #[error("the arguments that {block} passes are not of its successor's parameters")]
    Arguments { block: BlockId },
    #[error("a join inside of {block}")]
    Join { block: BlockId },
    #[error("{reg} is defined twice, again in {block}")]
    Redefined { reg: Reg, block: BlockId },
    #[error("{reg} is used in {block}, which its definition does not dominate")]
    Undefined { reg: Reg, block: BlockId },
    #[error("{reg} in {block} is of the wrong class")]
    Class { reg: Reg, block: BlockId },
}

/// The place of a register's definition: the block, and the instruction unless it is a block parameter.
type Definition = (BlockId, Option<usize>);

impl VCode {
    /// Checks every invariant that does not depend on the machine.
    ///
    /// # Errors
    ///
    /// The first violation, from the entry on.
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        self.validate_layout()?;
        self.validate_edges()?;
        self.validate_registers()
    }

    fn validate_layout(&self) -> Result<(), Invalid> {
        let mut end = 0;
        for (block, data) in self.blocks() {
            if data.insts.start != end || data.insts.end > self.insts.len() {
                return Err(Invalid::Layout { block });
            }
            end = data.insts.end;
            let code = &self.insts[data.insts.clone()];
            let first = code.iter().position(MInst::is_terminator);
            if first.is_none_or(|first| first + 1 != code.len()) {
                return Err(Invalid::Terminator { block });
            }
            if code.iter().skip(1).any(|inst| matches!(inst, MInst::Join)) {
                return Err(Invalid::Join { block });
            }
        }
        if end != self.insts.len() || self.srclocs.len() != end {
            let block = BlockId::new(self.blocks.len().saturating_sub(1));
            return Err(Invalid::Layout { block });
        }
        Ok(())
    }

    fn validate_edges(&self) -> Result<(), Invalid> {
        let mut preds = vec![Vec::new(); self.blocks.len()];
        for (block, data) in self.blocks() {
            let terminator = &self.insts[data.insts.end - 1];
            let succs = match terminator {
                MInst::Jump { target, .. } => vec![*target],
                MInst::CondBr { taken, not_taken, .. } => vec![*taken, *not_taken],
                _ => Vec::new(),
            };
            let exist = succs.iter().all(|succ| succ.index() < self.blocks.len());
            if !exist || data.succs.as_slice() != succs {
                return Err(Invalid::Edges { block });
            }
            for &succ in &succs {
                preds[succ.index()].push(block);
                let params = &self.blocks[succ.index()].params;
                if let MInst::Jump { args, .. } = terminator {
                    let classes = |regs: &[Reg]| regs.iter().map(|r| r.class()).collect::<Vec<_>>();
                    if classes(args) != classes(params) {
                        return Err(Invalid::Arguments { block });
                    }
                }
            }
        }
        for (block, data) in self.blocks() {
            let preds = &mut preds[block.index()];
            let branches = |&from: &BlockId| self.blocks[from.index()].succs.len() > 1;
            if preds.iter().any(branches) && (preds.len() > 1 || !data.params.is_empty()) {
                return Err(Invalid::Critical { block });
            }
            let mut known = data.preds.to_vec();
            known.sort_unstable();
            if *preds != known {
                return Err(Invalid::Edges { block });
            }
            if block.index() > 0 && preds.iter().all(|&from| from >= block) {
                return Err(Invalid::Order { block });
            }
        }
        Ok(())
    }

    fn validate_registers(&self) -> Result<(), Invalid> {
        let homes = self.definitions()?;
        let idoms = self.immediate_dominators();
        let dominates = |above: BlockId, mut below: BlockId| {
            while below > above {
                below = idoms[below.index()];
            }
            below == above
        };
        for (block, data) in self.blocks() {
            for at in data.insts.clone() {
                let inst = &self.insts[at];
                let mut undefined = None;
                inst.for_each_reg(|reg, access| {
                    let defined = match homes.get(reg.index()).copied().flatten() {
                        Some((home, Some(def))) if home == block => def < at,
                        Some((home, _)) => dominates(home, block),
                        None => false,
                    };
                    if !access.is_def() && !defined {
                        undefined.get_or_insert(reg);
                    }
                });
                if let Some(reg) = undefined {
                    return Err(Invalid::Undefined { reg, block });
                }
                self.validate_classes(inst, block)?;
            }
        }
        Ok(())
    }

    /// Where each register is defined.
    fn definitions(&self) -> Result<Vec<Option<Definition>>, Invalid> {
        let mut homes = vec![None; self.num_regs];
        for (block, data) in self.blocks() {
            let mut twice = None;
            let mut define = |reg: Reg, at| match homes.get_mut(reg.index()) {
                Some(home @ None) => *home = Some((block, at)),
                _ => {
                    twice.get_or_insert(reg);
                }
            };
            data.params.iter().for_each(|&param| define(param, None));
            for at in data.insts.clone() {
                self.insts[at].for_each_reg(|reg, access| {
                    if access.is_def() {
                        define(reg, Some(at));
                    }
                });
            }
            if let Some(reg) = twice {
                return Err(Invalid::Redefined { reg, block });
            }
        }
        Ok(homes)
    }

    fn immediate_dominators(&self) -> Vec<BlockId> {
        let mut idoms: Vec<Option<BlockId>> = vec![None; self.blocks.len()];
        let entry = BlockId::new(0);
        if let Some(first) = idoms.first_mut() {
            *first = Some(entry);
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (block, data) in self.blocks().skip(1) {
                let mut common: Option<BlockId> = None;
                for &pred in data.preds.iter().filter(|pred| idoms[pred.index()].is_some()) {
                    common = Some(common.map_or(pred, |other| meet(&idoms, other, pred)));
                }
                changed |= idoms[block.index()] != common;
                idoms[block.index()] = common;
            }
        }
        idoms.into_iter().map(|idom| idom.unwrap_or(entry)).collect()
    }

    fn validate_classes(&self, inst: &MInst, block: BlockId) -> Result<(), Invalid> {
        let expect = |reg: Reg, class: RegClass| match reg.class() == class {
            true => Ok(()),
            false => Err(Invalid::Class { reg, block }),
        };
        match inst {
            MInst::CondBr { condition, .. } => expect(*condition, RegClass::Pred),
            MInst::Op { opcode, guard, operands } => {
                guard.map_or(Ok(()), |guard| expect(guard, RegClass::Pred))?;
                for (operand, description) in operands.iter().zip(opcode.operands()) {
                    let Some((class, _)) = description.kind.register() else { continue };
                    match *operand {
                        MOperand::Def(reg) | MOperand::Use(reg) => expect(reg, class)?,
                        MOperand::Mod { old, new } => {
                            expect(old, class)?;
                            expect(new, class)?;
                        }
                        MOperand::Imm(_) | MOperand::StackSlots => {}
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The closest common dominator of both.
fn meet(idoms: &[Option<BlockId>], mut a: BlockId, mut b: BlockId) -> BlockId {
    while a != b {
        let later = if a > b { &mut a } else { &mut b };
        // Dominators come before the blocks that they dominate, so the loop ends at the entry at the latest.
        *later = idoms[later.index()].unwrap_or(BlockId::new(0));
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vcode::VBlock;
    use cranelift_codegen::ir::SourceLoc;
    use harp_isa::Opcode;
    use smallvec::{SmallVec, smallvec};

    /// A diamond: `b0` branches on `%v0 != 0`, `b3` adds its parameter to itself.
    fn diamond() -> (VCode, [Reg; 5]) {
        let mut vcode = VCode::default();
        let [x, y, param] = [(); 3].map(|()| vcode.new_reg(RegClass::Gpr));
        let sum = vcode.new_reg(RegClass::Gpr);
        let condition = vcode.new_reg(RegClass::Pred);
        let id = BlockId::new;
        let rtop = MInst::Op {
            opcode: Opcode::Rtop,
            guard: None,
            operands: smallvec![MOperand::Def(condition), MOperand::Use(x)],
        };
        let branch =
            MInst::CondBr { condition, taken: id(1), not_taken: id(2), split: false, site: None };
        let jump = |arg| MInst::Jump { target: id(3), args: smallvec![arg] };
        let add = MInst::Op {
            opcode: Opcode::Add,
            guard: None,
            operands: smallvec![MOperand::Def(sum), MOperand::Use(param), MOperand::Use(param)],
        };
        let blocks = [
            (vec![], vec![MInst::Const { dst: x, value: 1 }, rtop, branch]),
            (vec![], vec![MInst::Const { dst: y, value: 2 }, jump(y)]),
            (vec![], vec![jump(x)]),
            (vec![param], vec![add, MInst::Ret { results: smallvec![] }]),
        ];
        for (params, code) in blocks {
            let start = vcode.insts.len();
            let succs = match code.last() {
                Some(MInst::Jump { target, .. }) => smallvec![*target],
                Some(MInst::CondBr { taken, not_taken, .. }) => smallvec![*taken, *not_taken],
                _ => smallvec![],
            };
            vcode.insts.extend(code);
            vcode.srclocs.resize(vcode.insts.len(), SourceLoc::default());
            let insts = start..vcode.insts.len();
            vcode.blocks.push(VBlock { insts, params, succs, preds: SmallVec::new() });
        }
        vcode.compute_preds();
        (vcode, [x, y, param, sum, condition])
    }

    fn broken(change: impl FnOnce(&mut VCode, [Reg; 5])) -> Invalid {
        let (mut vcode, regs) = diamond();
        change(&mut vcode, regs);
        vcode.validate().unwrap_err()
    }

    #[test]
    fn a_diamond_is_valid() {
        assert_eq!(diamond().0.validate(), Ok(()));
    }

    #[test]
    fn every_broken_invariant_is_found() {
        let id = BlockId::new;
        type Break<'a> = &'a dyn Fn(&mut VCode, [Reg; 5]);
        let cases: [(Invalid, Break<'_>); 11] = [
            (Invalid::Layout { block: id(1) }, &|v, _| v.blocks[1].insts.start += 1),
            (Invalid::Layout { block: id(3) }, &|v, _| {
                v.srclocs.pop();
            }),
            (Invalid::Terminator { block: id(0) }, &|v, _| {
                v.insts[1] = MInst::Trap { code: cranelift_codegen::ir::TrapCode::unwrap_user(1) }
            }),
            (Invalid::Edges { block: id(2) }, &|v, _| v.blocks[2].succs = smallvec![id(1)]),
            (Invalid::Edges { block: id(3) }, &|v, _| {
                v.blocks[3].preds.pop();
            }),
            (Invalid::Arguments { block: id(1) }, &|v, [.., p]| {
                v.insts[4] = MInst::Jump { target: id(3), args: smallvec![p] };
            }),
            (Invalid::Join { block: id(1) }, &|v, _| {
                v.insts.insert(4, MInst::Join);
                v.srclocs.push(SourceLoc::default());
                v.blocks[1].insts.end += 1;
                v.blocks[2].insts = 6..7;
                v.blocks[3].insts = 7..9;
            }),
            (Invalid::Critical { block: id(1) }, &|v, [x, ..]| {
                v.insts[5] = MInst::Jump { target: id(1), args: smallvec![] };
                v.blocks[2].succs = smallvec![id(1)];
                v.insts[4] = MInst::Jump { target: id(3), args: smallvec![x] };
                v.compute_preds();
            }),
            (Invalid::Redefined { reg: diamond().1[0], block: id(1) }, &|v, [x, ..]| {
                v.insts[3] = MInst::Const { dst: x, value: 2 };
            }),
            (Invalid::Undefined { reg: diamond().1[1], block: id(2) }, &|v, [_, y, ..]| {
                v.insts[5] = MInst::Jump { target: id(3), args: smallvec![y] };
            }),
            (Invalid::Class { reg: diamond().1[0], block: id(0) }, &|v, [x, ..]| {
                let (taken, not_taken) = (id(1), id(2));
                v.insts[2] =
                    MInst::CondBr { condition: x, taken, not_taken, split: false, site: None };
            }),
        ];
        for (wanted, change) in cases {
            assert_eq!(broken(change), wanted);
        }
    }

    #[test]
    fn blocks_come_after_one_that_leads_to_them() {
        let (mut vcode, _) = diamond();
        vcode.insts[2] = MInst::Jump { target: BlockId::new(3), args: smallvec![diamond().1[0]] };
        vcode.blocks[0].succs = smallvec![BlockId::new(3)];
        vcode.compute_preds();
        assert_eq!(vcode.validate(), Err(Invalid::Order { block: BlockId::new(1) }));
    }
}
