//! Pseudo-instructions for communication between warps of a work-group and between lanes of a warp.

use harp_isa::abi::LaneField;
use harp_isa::{Gpr, Op, Pred};

use super::Emitter;

/// Registers that a shuffle changes besides its destination.
pub(super) struct ShuffleTemps {
    pub(super) gprs: [Gpr; 2],
    pub(super) preds: [Pred; 2],
}

impl Emitter<'_> {
    /// `dst` := the `value` of the lane with number `lane`, by base instructions. Every executing lane clears
    /// the mark of the lane that it reads from, then sets its own mark and stores its value beside it. If a
    /// lane then finds the mark set, the lane that it reads from executes this, too. The mark of a lane that
    /// does not execute it stays cleared.
    pub(super) fn shuffle(&mut self, dst: Gpr, value: Gpr, lane: Gpr, temps: ShuffleTemps) {
        let ShuffleTemps { gprs: [own, other], preds: [exists, negative] } = temps;
        let bits = i64::from(self.lane_stack_log2);
        let field = |field: LaneField| i64::from(field.offset(self.word));
        let (present, offered) = (field(LaneField::Present), field(LaneField::Offered));
        let lanes = field(LaneField::Lanes);
        let number = field(LaneField::Lane);

        // The address of the own control block, and of that of the lane to read from, which is as many stacks
        // away as the lanes' numbers differ. A lane number that the warp does not have is replaced by the own
        // one.
        self.op(Op::Shri { dst: own, src: self.roles.stack_pointer(), imm: bits });
        self.op(Op::Shli { dst: own, src: own, imm: bits });
        self.op(Op::Ld { dst: other, base: own, offset: lanes });
        self.op(Op::Sub { dst: other, a: lane, b: other });
        self.op(Op::Isneg { dst: exists, src: other });
        self.op(Op::Isneg { dst: negative, src: lane });
        self.op(Op::Notp { dst: negative, src: negative });
        self.op(Op::Andp { dst: exists, a: exists, b: negative });
        self.op(Op::Ldi { dst: other, imm: 0 });
        self.op(Op::Ld { dst, base: own, offset: number });
        self.guarded(exists, Op::Sub { dst: other, a: lane, b: dst });
        self.op(Op::Shli { dst: other, src: other, imm: bits });
        self.op(Op::Add { dst: other, a: other, b: own });

        self.op(Op::Ldi { dst, imm: 0 });
        self.op(Op::St { value: dst, base: other, offset: present });
        self.op(Op::Ldi { dst, imm: 1 });
        self.op(Op::St { value: dst, base: own, offset: present });
        self.op(Op::St { value, base: own, offset: offered });
        self.op(Op::Ld { dst, base: other, offset: present });
        self.op(Op::Rtop { dst: exists, src: dst });
        self.op(Op::Ori { dst, src: value, imm: 0 });
        self.guarded(exists, Op::Ld { dst, base: other, offset: offered });
    }
}
