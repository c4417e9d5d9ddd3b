//! Stack frames.
//!
//! From the stack pointer upwards:
//!
//! ```text
//!     arguments and results of functions that are called
//!     spill slots
//!     saved callee-saved registers
//!     stack slots
//!     %ra, where the function changes it
//!     room for arguments of a tail call beyond this function's own
//!     ---- the stack pointer at the entry ----
//!     stack arguments of this function, then stack results
//! ```
//!
//! All offsets are from the stack pointer, which does not move between prologue and epilogue, so no frame
//! pointer is needed. A function that uses none of these words has no frame and no prologue.

use std::ops::Range;

use cranelift_codegen::ir::TrapCode;
use harp_isa::abi::{LaneField, RegisterRoles, stack_reserve_bytes, stack_skew_bytes};
use harp_isa::{ArchId, Gpr, Op, Opcode, Pred, WordSize};

use super::Emitter;
use crate::forms;
use crate::regalloc::{Allocated, Location, Step};
use crate::vcode::{FrameNeeds, FrameValue, FrameWord, MInst, MOperand, VCode};

/// The largest number of general registers of a machine.
const MAX_GPRS: usize = 64;

#[derive(Debug)]
pub(super) struct Frame {
    word: WordSize,
    needs: FrameNeeds,
    spills: u32,
    saved: Vec<Gpr>,
    saves_return_address: bool,
}

impl Frame {
    pub(super) fn new(vcode: &VCode, allocated: &Allocated, arch: ArchId) -> Frame {
        let roles = RegisterRoles::new(arch);
        let mut touched = [false; MAX_GPRS];
        let mut changes_return_address = false;
        let mut touch = |location: Location| {
            if let Location::Gpr(reg) = location {
                touched[usize::from(reg)] = true;
            }
        };
        for (id, _) in vcode.blocks() {
            for step in allocated.steps(id) {
                match step {
                    Step::Inst(inst) => {
                        allocated.operands(inst).for_each(&mut touch);
                        changes_return_address |= matches!(vcode.insts[inst], MInst::Call { .. });
                    }
                    Step::Move(edit) => {
                        touch(edit.to);
                        changes_return_address |= edit.is_predicate_spill();
                    }
                }
            }
        }
        let mut frame = Frame {
            word: arch.word(),
            needs: vcode.frame,
            spills: allocated.slots(),
            saved: roles.callee_saved().filter(|&reg| touched[usize::from(reg)]).collect(),
            saves_return_address: true,
        };
        frame.saves_return_address = changes_return_address || frame.needs_scratch(vcode, arch);
        frame
    }

    /// Whether an offset or the frame's size does not fit an immediate.
    fn needs_scratch(&self, vcode: &VCode, arch: ArchId) -> bool {
        let size = self.bytes().cast_signed();
        let fits = |offset: i64, opcodes: &[Opcode]| {
            opcodes.iter().all(|&opcode| forms::fits(arch, opcode, offset))
        };
        let words = [Opcode::Ld, Opcode::St];
        let frame_fits = fits(size, &words) && fits(-size, &[Opcode::Addi]);
        let mut far = !(frame_fits && fits(size, &[Opcode::Addi]));
        for inst in &vcode.insts {
            far |= match inst {
                MInst::LoadWord { word, .. } | MInst::StoreWord { word, .. } => {
                    !fits(self.word_offset(*word), &words)
                }
                MInst::Op { opcode, operands, .. } => match operands.as_slice() {
                    [.., MOperand::StackSlots, MOperand::Imm(imm)] => {
                        !fits(self.stack_slot_offset(*imm), &[*opcode])
                    }
                    _ => false,
                },
                _ => false,
            };
        }
        far
    }

    fn word_bytes(&self) -> u64 {
        self.word.bytes().into()
    }

    fn words_to_bytes(&self, words: u32) -> u64 {
        u64::from(words) * self.word_bytes()
    }

    /// The size of the frame.
    pub(super) fn bytes(&self) -> u64 {
        let words = u64::from(self.needs.outgoing_words)
            + u64::from(self.spills)
            + self.saved.len() as u64
            + u64::from(self.saves_return_address)
            + u64::from(self.needs.tail_growth_words);
        words.saturating_mul(self.word_bytes()).saturating_add(self.needs.slot_bytes)
    }

    /// The bytes from the stack pointer at the entry down to where `%ra` is saved.
    fn return_address_depth(&self) -> i64 {
        (self.words_to_bytes(self.needs.tail_growth_words) + self.word_bytes()).cast_signed()
    }

    /// The offset of a spill slot from the stack pointer, in bytes.
    pub(super) fn spill_offset(&self, index: u32) -> i64 {
        self.words_to_bytes(self.needs.outgoing_words + index).cast_signed()
    }

    /// The offset from the stack pointer of `offset` in the stack slots, in bytes.
    pub(super) fn stack_slot_offset(&self, offset: i64) -> i64 {
        self.spill_offset(self.spills + self.saved.len() as u32).wrapping_add(offset)
    }

    /// The ranges of spill slots and of saved and kept registers, in bytes from the stack pointer at the
    /// entry.
    pub(super) fn private(&self) -> Vec<Range<i64>> {
        let base = -self.bytes().cast_signed();
        let saved = u32::try_from(self.saved.len()).expect("registers have numbers of 8 bits");
        let first = self.spill_offset(0)
            - self.words_to_bytes(self.needs.keeps_register.into()).cast_signed();
        let kept = base + first..base + self.spill_offset(self.spills + saved);
        let link = -self.return_address_depth();
        let link = link..link + self.word_bytes().cast_signed();
        if self.saves_return_address { vec![kept, link] } else { vec![kept] }
    }

    /// The range where the prologue keeps registers temporarily, in the same unit.
    pub(super) fn scratch(&self) -> Range<i64> {
        let word = self.word_bytes().cast_signed();
        let near = self.return_address_depth().min(stack_reserve_bytes(self.word).into());
        -near - word..0
    }

    /// The offset of an argument or result from the stack pointer, in bytes.
    pub(super) fn word_offset(&self, word: FrameWord) -> i64 {
        let bytes = i64::from(self.word.bytes());
        match word {
            FrameWord::Outgoing(index) => i64::from(index) * bytes,
            FrameWord::Incoming(index) => self.bytes().cast_signed() + index * bytes,
        }
    }
}

/// The smallest stack that a lane is given, in bytes.
const MIN_LANE_STACK: u64 = 256;

/// The stack size that a lane needs for a kernel whose frames take `bytes`, at most 2^32: a power of two.
pub(crate) fn lane_stack_bytes(bytes: u64, arch: ArchId) -> u64 {
    let size = (bytes + besides_frames(arch.word())).next_power_of_two().max(MIN_LANE_STACK);
    // The skew takes half a stack at most.
    if frame_room(size, arch) < bytes { 2 * size } else { size }
}

/// The number of bytes for frames in a stack of this size: without the lane control block, the word above the first stack
/// pointer, and by how much that of the last lane is lower than that of the first.
pub(crate) fn frame_room(stack_bytes: u64, arch: ArchId) -> u64 {
    let skew = (u64::from(arch.lanes()) - 1) * stack_skew_bytes(stack_bytes);
    stack_bytes.saturating_sub(besides_frames(arch.word()) + skew)
}

/// The size of the lane control block and of the word that keeps the stack pointer inside the stack.
fn besides_frames(word: WordSize) -> u64 {
    u64::from(LaneField::block_bytes(word)) + u64::from(word.bytes())
}

impl Emitter<'_> {
    /// Emits the prologue: checks that there is room for the frame, allocates it and saves registers in it.
    pub(super) fn prolog(&mut self) {
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        let word = i64::from(self.word.bytes());
        let bytes = self.frame.bytes().cast_signed();
        let depth = self.frame.return_address_depth();
        let saves = self.frame.saves_return_address;
        let near = self.fits(Opcode::St, -depth);
        let mut saved = false;
        if self.checks_stack {
            // The check needs `%ra`. Every function has a reserve of a few words below the limit.
            let reserve = i64::from(stack_reserve_bytes(self.word));
            saved = saves && near && depth + word <= reserve;
            let place = if saved { depth } else { word };
            self.store_below(ra, place);
            self.check_stack(bytes, place + word);
            if !saved {
                self.load_below(ra, word);
            }
        }
        if saves && !saved && !near {
            self.step_stack_pointer(-depth);
            self.op(Op::St { value: ra, base: sp, offset: 0 });
            self.move_stack_pointer(depth - bytes);
        } else {
            if saves && !saved {
                self.op(Op::St { value: ra, base: sp, offset: -depth });
            }
            self.move_stack_pointer(-bytes);
        }
        for (index, reg) in self.saved_registers() {
            self.store_slot(reg, index);
        }
    }

    /// Stores a word `depth` bytes below the stack pointer.
    fn store_below(&mut self, value: Gpr, depth: i64) {
        self.access_below(depth, |base, offset| Op::St { value, base, offset });
    }

    /// Loads a word `depth` bytes below the stack pointer.
    fn load_below(&mut self, dst: Gpr, depth: i64) {
        self.access_below(depth, |base, offset| Op::Ld { dst, base, offset });
    }

    /// If an offset cannot be negative, moves the stack pointer down for the access and back.
    fn access_below(&mut self, depth: i64, access: impl Fn(Gpr, i64) -> Op) {
        let base = self.roles.stack_pointer();
        let at_once = access(base, -depth);
        if self.fits(at_once.opcode(), -depth) {
            self.op(at_once);
        } else {
            self.step_stack_pointer(-depth);
            self.op(access(base, 0));
            self.step_stack_pointer(depth);
        }
    }

    /// Traps if a frame of `bytes` would put the stack pointer below the limit. Changes `%ra` and the unused
    /// word `spare` bytes below the stack pointer.
    fn check_stack(&mut self, bytes: i64, spare: i64) {
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        self.lane_word(ra, LaneField::StackLimit);
        self.op(Op::Sub { dst: ra, a: sp, b: ra });
        if self.layout.fits(Opcode::Subi, bytes) {
            self.op(Op::Subi { dst: ra, src: ra, imm: bytes });
        } else {
            let other = Gpr::new(0);
            self.store_below(other, spare);
            self.constant(other, bytes);
            self.op(Op::Sub { dst: ra, a: ra, b: other });
            self.load_below(other, spare);
        }
        // All lanes that run this have the same depth of stack, so they agree.
        let none_left = Pred::new(0);
        self.op(Op::Isneg { dst: none_left, src: ra });
        self.code.set_trap(TrapCode::STACK_OVERFLOW);
        self.guarded(none_left, Op::Trap {});
    }

    /// Emits the epilogue: restores registers and frees the frame, with the stack pointer `shift` bytes above
    /// what it was at the entry. Changes no register of the lower half.
    pub(super) fn epilog(&mut self, shift: i64) {
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        for (index, reg) in self.saved_registers() {
            self.load_slot(reg, index);
        }
        let bytes = self.frame.bytes().cast_signed();
        if !self.frame.saves_return_address {
            self.step_stack_pointer(bytes + shift);
            return;
        }
        let depth = self.frame.return_address_depth();
        if self.fits(Opcode::Ld, -depth - shift) {
            self.move_stack_pointer(bytes + shift);
            self.op(Op::Ld { dst: ra, base: sp, offset: -depth - shift });
        } else {
            self.move_stack_pointer(bytes - depth);
            self.op(Op::Ld { dst: ra, base: sp, offset: 0 });
            self.step_stack_pointer(depth + shift);
        }
    }

    /// `dst` = a property of the frame.
    pub(super) fn frame_value(&mut self, dst: Gpr, value: FrameValue) {
        let (sp, ra) = (self.roles.stack_pointer(), self.roles.return_address());
        let bytes = self.frame.bytes().cast_signed();
        match value {
            FrameValue::Start => self.op(Op::Ori { dst, src: sp, imm: 0 }),
            FrameValue::End if self.layout.fits(Opcode::Addi, bytes) => {
                self.op(Op::Addi { dst, src: sp, imm: bytes });
            }
            FrameValue::End => {
                self.constant(dst, bytes);
                self.op(Op::Add { dst, a: sp, b: dst });
            }
            FrameValue::ReturnAddress if self.frame.saves_return_address => {
                self.load_word(dst, bytes - self.frame.return_address_depth());
            }
            FrameValue::ReturnAddress => self.op(Op::Ori { dst, src: ra, imm: 0 }),
            FrameValue::FirstBlock => self.first_block(dst),
        }
    }

    /// The saved registers with the numbers of their slots, which follow the spill slots.
    fn saved_registers(&self) -> Vec<(u32, Gpr)> {
        (self.frame.spills..).zip(self.frame.saved.iter().copied()).collect()
    }

    /// Adds to the stack pointer; for large distances through the scratch register.
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

    /// Adds to the stack pointer without another register, in several steps if needed.
    fn step_stack_pointer(&mut self, bytes: i64) {
        let sp = self.roles.stack_pointer();
        let word = i64::from(self.word.bytes());
        let range = self.layout.immediate_range(Opcode::Addi);
        let mut rest = bytes;
        while rest != 0 {
            // In words, so that the stack pointer stays aligned.
            let imm = rest.clamp(range.start() / word * word, range.end() / word * word);
            self.op(Op::Addi { dst: sp, src: sp, imm });
            rest -= imm;
        }
    }
}
