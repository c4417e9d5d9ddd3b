//! Atomic accesses.
//!
//! Extension X has atomic accesses for 4 bytes and for words. An access to fewer bytes works on the 4 bytes
//! around them. Bitwise operations get an operand that leaves the other bytes unchanged. The other operations
//! are loops, which compute the 4 bytes from the old ones and write them if they have not changed meanwhile.
//! Lanes of a warp may leave such a loop in different iterations.
//!
//! Big-endian values are byte-swapped on the way to memory and back. An operation on the number in memory,
//! rather than on its bits, is then a loop.
//!
//! Without extension X, and on all machines if they are wider than a word, they are plain accesses under a lock, where
//! several lanes run; those that both read and write are done in [turns](super::turns), and so are stores to a part of a
//! word. A fence takes the lock and releases it.

use cranelift_codegen::cursor::Cursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode,
    StackSlotData, StackSlotKind, Type, Value,
};

use super::{Memory, little_endian};
use crate::abi::word_int;
use crate::error::Unsupported;
use crate::legalize::resized;

/// An atomic access.
#[derive(Clone, Copy)]
pub(super) enum Atomic {
    Load { address: Value },
    Store { address: Value, value: Value },
    Update { op: AtomicRmwOp, address: Value, value: Value },
    Exchange { address: Value, expected: Value, value: Value },
    Fence,
}

/// Some of the 4 bytes at an address.
#[derive(Clone, Copy)]
struct Part {
    ty: Type,
    /// The address of the 4 bytes.
    address: Value,
    /// The position of the part's lowest bit, and a mask of its bits; none if it is all 4 bytes.
    within: Option<(Value, Value)>,
    order: Endianness,
}

impl Memory<'_> {
    pub(super) fn atomic(&self, inst: Inst) -> Option<Atomic> {
        Some(match self.at.func.dfg.insts[inst] {
            InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, arg, .. } => {
                Atomic::Load { address: arg }
            }
            InstructionData::StoreNoOffset {
                opcode: Opcode::AtomicStore,
                args: [value, address],
                ..
            } => Atomic::Store { address, value },
            InstructionData::AtomicRmw { args: [address, value], op, .. } => {
                Atomic::Update { op, address, value }
            }
            InstructionData::AtomicCas { args: [address, expected, value], .. } => {
                Atomic::Exchange { address, expected, value }
            }
            InstructionData::NullAry { opcode: Opcode::Fence } => Atomic::Fence,
            _ => return None,
        })
    }

    pub(super) fn replace_atomic(&mut self, inst: Inst, atomic: Atomic) -> Result<(), Unsupported> {
        let plain = !self.arch.has_extension();
        let dfg = &self.at.func.dfg;
        let ty = match atomic {
            Atomic::Fence => return self.replace_fence(inst, plain),
            Atomic::Store { value, .. } => dfg.value_type(value),
            _ => dfg.value_type(dfg.first_result(inst)),
        };
        if !ty.is_int() || ty.bits() > I64.bits() {
            return Err(self.refuse(inst, "an atomic access to more than 8 bytes".to_owned()));
        }
        let word = u32::from(self.arch.word().bits());
        let plain = plain || ty.bits() > word;
        let flags = dfg.insts[inst].memflags_data(dfg).unwrap_or(MemFlagsData::new());
        // A byte has only one byte order.
        let order = match flags.explicit_endianness() {
            Some(Endianness::Big) if ty != I8 => Endianness::Big,
            _ => Endianness::Little,
        };
        let native = is_whole(ty) && order == Endianness::Little;
        let flags = little_endian(flags).with_aligned();
        let value = if plain {
            match atomic {
                _ if !self.has_others => self.plain(atomic, ty, flags, order),
                Atomic::Load { .. } => self.locked(|x| x.plain(atomic, ty, flags, order)),
                Atomic::Store { .. } if ty.bits() >= word => {
                    self.locked(|x| x.plain(atomic, ty, flags, order))
                }
                Atomic::Store { address, .. } => {
                    let turns = self.turns_of_parts(ty.bytes(), address, 0);
                    self.in_turns(turns, |x| x.plain(atomic, ty, flags, order))
                }
                _ => {
                    let turns = self.turns_of_lanes();
                    self.in_turns(turns, |x| x.plain(atomic, ty, flags, order))
                }
            }
        } else {
            match atomic {
                Atomic::Update { op, .. } if op != AtomicRmwOp::Nand && native => return Ok(()),
                Atomic::Exchange { .. } if native => return Ok(()),
                _ => Some(self.in_memory(atomic, ty, flags, order)),
            }
        };
        self.replace(inst, value);
        Ok(())
    }

    /// A fence becomes an atomic access to a word of the function's own frame, because atomic accesses are
    /// ordered.
    fn replace_fence(&mut self, inst: Inst, plain: bool) -> Result<(), Unsupported> {
        if !plain {
            let word = word_int(self.arch.word());
            let align = self.arch.word().bytes().ilog2() as u8;
            let data = StackSlotData::new(StackSlotKind::ExplicitSlot, word.bytes(), align);
            let slot = self.at.func.create_sized_stack_slot(data);
            let address = self.at.ins().stack_addr(word, slot, 0);
            let zero = self.at.ins().iconst(word, 0);
            let flags = MemFlagsData::trusted();
            self.at.ins().atomic_rmw(word, flags, AtomicRmwOp::Or, address, zero);
        } else if self.has_others {
            self.locked(|_| None);
        }
        self.replace(inst, None);
        Ok(())
    }

    /// A plain access, for code in which no other access can come in between.
    fn plain(
        &mut self,
        atomic: Atomic,
        ty: Type,
        flags: MemFlagsData,
        order: Endianness,
    ) -> Option<Value> {
        let address = match atomic {
            Atomic::Load { address }
            | Atomic::Store { address, .. }
            | Atomic::Update { address, .. }
            | Atomic::Exchange { address, .. } => address,
            Atomic::Fence => return None,
        };
        let old = match atomic {
            Atomic::Store { .. } => None,
            _ => {
                let old = self.at.ins().load(ty, flags, address, 0);
                Some(self.ordered(order, old))
            }
        };
        let new = match (atomic, old) {
            (Atomic::Load { .. }, _) => return old,
            (Atomic::Store { value, .. }, _) => value,
            (_, Some(old)) => self.new_value(atomic, old),
            (_, None) => return None,
        };
        let new = self.ordered(order, new);
        self.at.ins().store(flags, new, address, 0);
        old
    }

    /// The atomic operation on memory; returns the old value.
    fn in_memory(
        &mut self,
        atomic: Atomic,
        ty: Type,
        flags: MemFlagsData,
        order: Endianness,
    ) -> Value {
        match atomic {
            Atomic::Load { address } => {
                let part = self.part(ty, address, order);
                let container = part.container();
                let zero = self.at.ins().iconst(container, 0);
                self.bitwise(part, flags, AtomicRmwOp::Or, zero)
            }
            Atomic::Store { address, value } => {
                let swap = Atomic::Update { op: AtomicRmwOp::Xchg, address, value };
                self.in_memory(swap, ty, flags, order)
            }
            Atomic::Update { op, address, value } => {
                let part = self.part(ty, address, order);
                match (op, part.within) {
                    (AtomicRmwOp::Or | AtomicRmwOp::Xor, Some((shift, _))) => {
                        let value = self.in_place(part, shift, value);
                        self.bitwise(part, flags, op, value)
                    }
                    (AtomicRmwOp::And, Some((shift, mask))) => {
                        let value = self.in_place(part, shift, value);
                        let others = self.at.ins().bnot(mask);
                        let value = self.at.ins().bor(value, others);
                        self.bitwise(part, flags, op, value)
                    }
                    (
                        AtomicRmwOp::And | AtomicRmwOp::Or | AtomicRmwOp::Xor | AtomicRmwOp::Xchg,
                        None,
                    ) => {
                        let value = self.ordered(order, value);
                        self.bitwise(part, flags, op, value)
                    }
                    _ => self.compare_and_swap_loop(part, flags, atomic),
                }
            }
            Atomic::Exchange { address, expected, value } => {
                let part = self.part(ty, address, order);
                if part.within.is_some() {
                    return self.compare_and_swap_loop(part, flags, atomic);
                }
                let expected = self.ordered(order, expected);
                let value = self.ordered(order, value);
                let seen = self.at.ins().atomic_cas(flags, address, expected, value);
                self.ordered(order, seen)
            }
            Atomic::Fence => unreachable!("fences are replaced on their own"),
        }
    }

    /// Converts a value to the byte order of memory, or back.
    fn ordered(&mut self, order: Endianness, value: Value) -> Value {
        match order {
            Endianness::Little => value,
            Endianness::Big => self.swap(value),
        }
    }

    fn part(&mut self, ty: Type, address: Value, order: Endianness) -> Part {
        if is_whole(ty) {
            return Part { ty, address, within: None, order };
        }
        let within = self.at.ins().band_imm_u(address, 3);
        let aligned = self.at.ins().bxor(address, within);
        let shift = self.at.ins().ishl_imm_u(within, 3);
        let shift = resized(&mut self.at, shift, I32);
        let ones = (1_i64 << ty.bits()) - 1;
        let ones = self.at.ins().iconst(I32, ones);
        let mask = self.at.ins().ishl(ones, shift);
        Part { ty, address: aligned, within: Some((shift, mask)), order }
    }

    /// The value at its position in the 4 bytes, with zeros around it.
    fn in_place(&mut self, part: Part, shift: Value, value: Value) -> Value {
        let value = self.ordered(part.order, value);
        let value = self.at.ins().uextend(I32, value);
        self.at.ins().ishl(value, shift)
    }

    /// One atomic operation with an operand for all 4 bytes.
    fn bitwise(&mut self, part: Part, flags: MemFlagsData, op: AtomicRmwOp, value: Value) -> Value {
        let old = self.at.ins().atomic_rmw(part.container(), flags, op, part.address, value);
        self.extract(part, old)
    }

    fn extract(&mut self, part: Part, whole: Value) -> Value {
        let value = match part.within {
            None => whole,
            Some((shift, _)) => {
                let low = self.at.ins().ushr(whole, shift);
                self.at.ins().ireduce(part.ty, low)
            }
        };
        self.ordered(part.order, value)
    }

    /// `whole` with the part replaced by `value`.
    fn insert(&mut self, part: Part, whole: Value, value: Value) -> Value {
        match part.within {
            None => self.ordered(part.order, value),
            Some((shift, mask)) => {
                let value = self.in_place(part, shift, value);
                let others = self.at.ins().band_not(whole, mask);
                self.at.ins().bor(others, value)
            }
        }
    }

    /// A loop that replaces what was read until no other access has changed it in between. The instruction at
    /// the cursor and everything after it move to a new block.
    fn compare_and_swap_loop(&mut self, part: Part, flags: MemFlagsData, atomic: Atomic) -> Value {
        let inst = self.at.current_inst().expect("the cursor stands at an instruction");
        let func = &mut *self.at.func;
        let before = func.layout.inst_block(inst).expect("it is in the layout");
        let [again, after] = std::array::from_fn(|_| func.dfg.make_block());
        func.layout.split_block(after, inst);
        func.layout.insert_block_after(again, before);
        let container = part.container();
        let old = func.dfg.append_block_param(again, container);

        self.at.goto_bottom(before);
        let first = self.at.ins().load(container, flags, part.address, 0);
        self.at.ins().jump(again, &[first.into()]);
        self.at.goto_bottom(again);
        let value = self.extract(part, old);
        let new = self.new_value(atomic, value);
        let new = self.insert(part, old, new);
        let seen = self.at.ins().atomic_cas(flags, part.address, old, new);
        let changed = self.at.ins().icmp(IntCC::NotEqual, seen, old);
        self.at.ins().brif(changed, again, &[seen.into()], after, &[]);
        self.at.goto_inst(inst);
        value
    }

    /// The new value of an update, computed from the old one.
    fn new_value(&mut self, atomic: Atomic, old: Value) -> Value {
        let ins = self.at.ins();
        match atomic {
            Atomic::Load { .. } | Atomic::Fence => old,
            Atomic::Store { value, .. } => value,
            Atomic::Exchange { expected, value, .. } => {
                let equal = ins.icmp(IntCC::Equal, old, expected);
                self.at.ins().select(equal, value, old)
            }
            Atomic::Update { op, value, .. } => match op {
                AtomicRmwOp::Add => ins.iadd(old, value),
                AtomicRmwOp::Sub => ins.isub(old, value),
                AtomicRmwOp::And => ins.band(old, value),
                AtomicRmwOp::Nand => {
                    let both = ins.band(old, value);
                    self.at.ins().bnot(both)
                }
                AtomicRmwOp::Or => ins.bor(old, value),
                AtomicRmwOp::Xor => ins.bxor(old, value),
                AtomicRmwOp::Xchg => value,
                AtomicRmwOp::Umin => ins.umin(old, value),
                AtomicRmwOp::Umax => ins.umax(old, value),
                AtomicRmwOp::Smin => ins.smin(old, value),
                AtomicRmwOp::Smax => ins.smax(old, value),
            },
        }
    }
}

impl Part {
    /// The type of the access.
    fn container(self) -> Type {
        if self.within.is_some() { I32 } else { self.ty }
    }
}

/// Whether extension X has atomic accesses of this type, provided that it is no wider than a word.
fn is_whole(ty: Type) -> bool {
    ty != I8 && ty != I16
}
