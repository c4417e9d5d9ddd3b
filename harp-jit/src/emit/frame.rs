//! Stack frames.
//!
//! From the stack pointer upwards: the spill slots, the saved callee-saved registers, and, as the
//! topmost word, `%ra` where it is used as scratch. Everything is addressed from the stack pointer,
//! which does not move between prolog and epilog, so no frame pointer is needed.

use std::collections::BTreeSet;

use harp_isa::abi::{LaneField, RegisterRoles};
use harp_isa::{ArchId, Gpr, Layout, Op, Opcode, WordSize};

use super::Emitter;
use crate::regalloc::{Allocated, Location, Step};
use crate::vcode::VCode;

/// The smallest stack that a lane is given, in bytes.
const MIN_LANE_STACK: u64 = 256;

#[derive(Debug)]
pub(super) struct Frame {
    word: WordSize,
    slots: u32,
    saved: Vec<Gpr>,
    saves_return_address: bool,
}

impl Frame {
    pub(super) fn new(vcode: &VCode, allocated: &Allocated, arch: ArchId) -> Frame {
        let roles = RegisterRoles::new(arch);
        let callee_saved: BTreeSet<Gpr> = roles.callee_saved().collect();
        let mut saved = BTreeSet::new();
        let mut spills_predicates = false;
        let mut touch = |location: Location| {
            if let Location::Gpr(reg) = location
                && callee_saved.contains(&reg)
            {
                saved.insert(reg);
            }
        };
        for (id, _) in vcode.blocks() {
            for step in allocated.steps(id) {
                match step {
                    Step::Inst(inst) => allocated.operands(inst).for_each(&mut touch),
                    Step::Move(edit) => {
                        touch(edit.to);
                        spills_predicates |= edit.is_predicate_spill();
                    }
                }
            }
        }
        let mut frame = Frame {
            word: arch.word(),
            slots: allocated.slots(),
            saved: saved.into_iter().collect(),
            saves_return_address: spills_predicates,
        };
        let last = frame.bytes() as i64;
        let layout = Layout::new(arch);
        let far = [Opcode::Ld, Opcode::St, Opcode::Addi]
            .into_iter()
            .any(|opcode| !layout.fits(opcode, last));
        frame.saves_return_address |= far;
        frame
    }

    fn words(&self) -> u64 {
        u64::from(self.slots) + self.saved.len() as u64 + u64::from(self.saves_return_address)
    }

    /// The size of the frame.
    pub(super) fn bytes(&self) -> u64 {
        self.words() * u64::from(self.word.bytes())
    }

    /// The stack that a lane needs for a kernel with this frame: the lane control block, the word
    /// above the initial stack pointer and the frame, rounded up to a power of two.
    pub(super) fn lane_stack_bytes(&self) -> u64 {
        lane_stack_bytes(self.bytes(), self.word)
    }

    /// The offset of a spill slot from the stack pointer, in bytes.
    pub(super) fn slot_offset(&self, index: u32) -> i64 {
        i64::from(index) * i64::from(self.word.bytes())
    }
}

/// The stack that a lane needs for a kernel whose frame takes `frame_bytes`.
pub(crate) fn lane_stack_bytes(frame_bytes: u64, word: WordSize) -> u64 {
    let needed = u64::from(LaneField::block_bytes(word)) + u64::from(word.bytes()) + frame_bytes;
    needed.next_power_of_two().max(MIN_LANE_STACK)
}

impl Emitter<'_> {
    /// Takes the frame and saves registers in it.
    pub(super) fn prolog(&mut self) {
        let word = i64::from(self.word.bytes());
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        if self.frame.saves_return_address {
            self.op(Op::St { value: ra, base: sp, offset: -word });
        }
        self.move_stack_pointer(-(self.frame.bytes() as i64));
        for (index, reg) in self.saved_registers() {
            self.store_slot(reg, index);
        }
    }

    /// Gives everything back and returns.
    pub(super) fn epilog(&mut self) {
        let word = i64::from(self.word.bytes());
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        for (index, reg) in self.saved_registers() {
            self.load_slot(reg, index);
        }
        self.move_stack_pointer(self.frame.bytes() as i64);
        if self.frame.saves_return_address {
            self.op(Op::Ld { dst: ra, base: sp, offset: -word });
        }
        self.op(Op::Jmpr { target: ra });
    }

    /// Saved registers with the numbers of their slots, which follow the spill slots.
    fn saved_registers(&self) -> Vec<(u32, Gpr)> {
        (self.frame.slots..).zip(self.frame.saved.iter().copied()).collect()
    }

    /// Adds to the stack pointer; over large distances by way of the scratch register.
    pub(super) fn move_stack_pointer(&mut self, bytes: i64) {
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        if bytes == 0 {
            return;
        }
        if self.layout.fits(Opcode::Addi, bytes) {
            self.op(Op::Addi { dst: sp, src: sp, imm: bytes });
        } else {
            self.constant(ra, bytes);
            self.op(Op::Add { dst: sp, a: sp, b: ra });
        }
    }
}
