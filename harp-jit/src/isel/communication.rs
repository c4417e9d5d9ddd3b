//! Communication between the lanes of a warp and between the warps of a work-group.

use cranelift_codegen::ir::{SourceLoc, Value};
use harp_isa::abi::{GroupField, LaneField};
use harp_isa::{Opcode, RegClass};

use super::{Lower, rules};
use crate::abi::EntryKind;
use crate::vcode::{FrameValue, MInst, MOperand, Reg, Scratch};

/// Machines with fewer registers look up what a barrier or an exchange needs where it is: kept from the function's entry on,
/// it would be spilled, or other values in its place.
const ENOUGH_REGISTERS: u8 = 16;

/// The address of the warp's group control block, in a block of code.
pub(super) struct GroupBlock {
    reg: Reg,
    /// Where it is to be defined, once that is known: in front of so much code.
    at: Option<(usize, SourceLoc)>,
}

impl Lower<'_> {
    pub(super) fn barrier(&mut self) {
        let vcode = &mut self.vcode;
        let mut words = || [(); 2].map(|()| vcode.new_reg(RegClass::Gpr));
        let [id, warps] = if self.arch.gprs() < ENOUGH_REGISTERS {
            let words = words();
            let block = self.group_block();
            self.load_barrier_words(words, block);
            words
        } else {
            *self.barrier_words.get_or_insert_with(words)
        };
        self.inst_code.push(MInst::Barrier { id, warps });
    }

    /// At a function's entry, what its barriers need.
    pub(super) fn barrier_words(&mut self) {
        let Some(words) = self.barrier_words else { return };
        let block = self.group_block();
        self.define_group_block();
        self.load_barrier_words(words, block);
    }

    fn load_barrier_words(&mut self, [id, warps]: [Reg; 2], block: Reg) {
        let word = |dst, field| MInst::GroupWord { dst, block, field };
        let words = [word(id, GroupField::Barrier), word(warps, GroupField::BarrierWarps)];
        self.inst_code.extend(words);
    }

    /// The address of the group control block, which is loaded once in a block of code.
    pub(super) fn group_block(&mut self) -> Reg {
        let vcode = &mut self.vcode;
        let new = || GroupBlock { reg: vcode.new_reg(RegClass::Gpr), at: None };
        let known = self.group_block.get_or_insert_with(new);
        known.at = None;
        known.reg
    }

    /// What reads the address of the group control block is in front of all other code that does.
    pub(super) fn place_group_block(&mut self, place: SourceLoc) {
        if let Some(GroupBlock { at: at @ None, .. }) = &mut self.group_block {
            *at = Some((self.code.len(), place));
        }
    }

    /// Defines the address of the group control block, if the block of code that begins here reads it.
    pub(super) fn define_group_block(&mut self) {
        let Some(GroupBlock { reg: dst, at }) = self.group_block.take() else { return };
        let inst = MInst::LaneWord { dst, field: LaneField::Group };
        match at {
            Some((at, place)) => self.code.insert(at, (inst, place)),
            None => self.inst_code.push(inst),
        }
    }

    /// Whether the truth value holds in any executing lane.
    pub(super) fn any(&mut self, src: Reg) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Pred);
        if self.arch.has_extension() {
            let operands = [MOperand::Def(dst), MOperand::Use(src)];
            self.emit_op(Opcode::Anyp, operands);
        } else {
            let scratch = self.scratch();
            let temp = self.vcode.new_reg(RegClass::Gpr);
            self.inst_code.push(MInst::Any { dst, src, scratch, temp });
        }
        dst
    }

    /// Where the warp's scratch word is. What that is found by is computed once, at the function's entry, or each time, if
    /// there are few registers and it is easy to compute.
    fn scratch(&mut self) -> Scratch {
        let is_found = self.finds_first_block();
        let offset = if is_found { LaneField::ScratchWord.offset(self.arch.word()) } else { 0 };
        let address = if is_found && self.arch.gprs() < ENOUGH_REGISTERS {
            self.frame_value(FrameValue::FirstBlock)
        } else {
            let vcode = &mut self.vcode;
            *self.scratch_address.get_or_insert_with(|| vcode.new_reg(RegClass::Gpr))
        };
        Scratch { address, offset }
    }

    /// Whether the control block of the warp's lane 0 is found by the stack pointer. Functions that are no kernels may run on
    /// other stacks.
    fn finds_first_block(&self) -> bool {
        self.entry == EntryKind::Kernel && self.arch.lanes().is_power_of_two()
    }

    /// At a function's entry, what its scratch word is found by.
    pub(super) fn scratch_address(&mut self) {
        let Some(dst) = self.scratch_address else { return };
        self.inst_code.push(match self.finds_first_block() {
            true => MInst::FrameValue { dst, value: FrameValue::FirstBlock },
            false => MInst::LaneWord { dst, field: LaneField::ScratchAddress },
        });
    }

    /// Whether the truth value holds in all executing lanes. Without an instruction for that: whether it is
    /// false in none.
    pub(super) fn all(&mut self, src: Reg) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Pred);
        if self.arch.has_extension() {
            self.emit_op(Opcode::Allp, [MOperand::Def(dst), MOperand::Use(src)]);
            return dst;
        }
        let against = self.vcode.new_reg(RegClass::Pred);
        self.emit_op(Opcode::Notp, [MOperand::Def(against), MOperand::Use(src)]);
        let any = self.any(against);
        self.emit_op(Opcode::Notp, [MOperand::Def(dst), MOperand::Use(any)]);
        dst
    }

    /// The value of one executing lane.
    pub(super) fn of_some_lane(&mut self, src: Reg) -> Reg {
        let scratch = self.scratch();
        let dst = self.vcode.new_reg(RegClass::Gpr);
        self.inst_code.push(MInst::OfSomeLane { dst, src, scratch });
        dst
    }

    /// A word of the executing lanes in which the truth value holds. Legalization has left ballots only where
    /// there is an instruction for them.
    pub(super) fn ballot(&mut self, src: Reg, part: i64) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        let operands = [MOperand::Def(dst), MOperand::Use(src), MOperand::Imm(part)];
        self.emit_op(Opcode::Ballot, operands);
        dst
    }

    pub(super) fn shuffle(&mut self, value: Value, lane: Value) -> Reg {
        let lane = rules::constructor_zext(self, lane);
        let value = self.value_gpr(value);
        let dst = self.vcode.new_reg(RegClass::Gpr);
        if self.arch.has_extension() {
            let operands = [MOperand::Def(dst), MOperand::Use(value), MOperand::Use(lane)];
            self.emit_op(Opcode::Shfl, operands);
        } else {
            let temps = [(); 2].map(|()| self.vcode.new_reg(RegClass::Gpr));
            let preds = [(); 2].map(|()| self.vcode.new_reg(RegClass::Pred));
            self.inst_code.push(MInst::Shuffle { dst, value, lane, temps, preds });
        }
        dst
    }
}
