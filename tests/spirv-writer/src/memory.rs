//! Memory: loads, stores, atomic accesses, addresses.

use cranelift_codegen::ir::{
    AtomicRmwOp, Endianness, GlobalValue, GlobalValueData, Inst, InstructionData, MemFlagsData,
    Opcode, Type, types,
};
use harp_isa::abi::ArgumentBlock;
use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, MemoryAccess, MemorySemantics, Op, Scope, StorageClass, Word};

use super::function::Body;
use super::{Result, Unwritable};
use harp_oracle::functions::name;
use harp_oracle::{Address, Argument, Start};

impl Body<'_, '_> {
    /// Writes an instruction of this family; false if it is of another one.
    pub(super) fn memory(&mut self, inst: Inst, args: &[Word]) -> Result<bool> {
        let func = self.func;
        let data = &func.dfg.insts[inst];
        let flags = data.memflags_data(&func.dfg).unwrap_or_else(MemFlagsData::new);
        let first = func.dfg.inst_results(inst).first();
        let ty = first.map_or(self.w.word, |&result| func.dfg.value_type(result));
        let result = match *data {
            InstructionData::Load { arg, offset, .. } if self.is_argument_block(arg) => {
                self.argument(offset.into(), ty)?
            }
            InstructionData::Load { opcode, offset, .. } => {
                let part = part(opcode).unwrap_or(ty);
                let loaded = self.load(part, args[0], offset.into(), flags);
                match opcode {
                    Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => {
                        self.of(Op::SConvert, ty, &[loaded])
                    }
                    _ => self.resized(loaded, part, ty),
                }
            }
            InstructionData::Store { opcode, args: [value, _], offset, .. } => {
                let own = func.dfg.value_type(value);
                let part = part(opcode).unwrap_or(own);
                let value = self.resized(args[0], own, part);
                self.store(part, value, args[1], offset.into(), flags);
                return Ok(true);
            }
            InstructionData::LoadNoOffset { opcode: Opcode::AtomicLoad, .. } => {
                if self.is_atomic(ty, flags) {
                    self.atomic(Op::AtomicLoad, ty, args[0], &[])
                } else {
                    self.load(ty, args[0], 0, flags)
                }
            }
            InstructionData::StoreNoOffset {
                opcode: Opcode::AtomicStore,
                args: [value, _],
                ..
            } => {
                let ty = func.dfg.value_type(value);
                if self.is_atomic(ty, flags) {
                    self.atomic(Op::AtomicStore, ty, args[1], &[args[0]]);
                } else {
                    self.store(ty, args[0], args[1], 0, flags);
                }
                return Ok(true);
            }
            InstructionData::AtomicRmw { op, .. } => self.exchange(op, ty, args, flags),
            InstructionData::AtomicCas { .. } => self.compare_exchange(ty, args, flags),
            InstructionData::NullAry { opcode: Opcode::Fence } => {
                let [scope, semantics] = self.ordered();
                let operands = vec![Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)];
                self.push(Op::MemoryBarrier, None, operands);
                return Ok(true);
            }
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                let variable = self.slots[&stack_slot];
                let start = self.of(Op::ConvertPtrToU, self.w.word, &[variable]);
                self.moved(start, offset.into())
            }
            InstructionData::UnaryGlobalValue { opcode: Opcode::SymbolValue, global_value } => {
                self.global(global_value)?
            }
            InstructionData::FuncAddr { func_ref, .. } => match self.callee(func_ref) {
                Some(callee) => self.w.function_address(callee),
                None => return Err(self.unwritable(inst)),
            },
            _ => return Ok(false),
        };
        self.set(inst, &[result]);
        Ok(true)
    }

    /// What the kernel loads from this offset of the block with its arguments.
    fn argument(&mut self, offset: i64, ty: Type) -> Result<Word> {
        let word = self.w.case.word;
        let is_at = |at: u32| i64::from(at) == offset;
        if let Some(dim) = (0..3).find(|&dim| is_at(ArgumentBlock::grid_extent(dim, word))) {
            return Ok(self.size(BuiltIn::GlobalSize, dim.into()));
        }
        let case = self.w.case;
        let Start::Launch { args, .. } = &case.start else { return Err(Unwritable::new("a call")) };
        let mut numbered = (0..).zip(args);
        let found = numbered.find(|(index, _)| is_at(ArgumentBlock::argument(*index, word)));
        let Some((index, arg)) = found else {
            return Err(Unwritable::new("a load of something else than an argument"));
        };
        let param = self.params[index as usize];
        let own = arg.ty().clif_type(word);
        match arg {
            Argument::Buffer(..) => Ok(self.of(Op::ConvertPtrToU, self.w.word, &[param])),
            Argument::Scalar(..) if own == ty => Ok(param),
            Argument::Scalar(..) if own.is_int() && ty.is_int() => Ok(self.resized(param, own, ty)),
            Argument::Scalar(..) => Err(Unwritable::new("an argument loaded as another type")),
        }
    }

    fn global(&mut self, global: GlobalValue) -> Result<Word> {
        let func = self.func;
        match &func.global_values[global] {
            GlobalValueData::Symbol { name: wanted, offset, .. } => {
                let wanted = wanted.display(None).to_string();
                let wanted = wanted.trim_start_matches('%');
                let case = self.w.case;
                let address = match case.data.iter().position(|datum| datum.name == wanted) {
                    Some(index) => Address::Datum(index),
                    None => {
                        let index = case.functions.iter().position(|func| name(func) == wanted);
                        let unknown = || Unwritable::new(format_args!("the symbol {wanted}"));
                        Address::Function(index.ok_or_else(unknown)?)
                    }
                };
                let start = match address {
                    Address::Function(index) => self.w.function_address(index),
                    Address::Datum(index) => {
                        let variable = self.w.datum(index)?.variable;
                        self.of(Op::ConvertPtrToU, self.w.word, &[variable])
                    }
                };
                Ok(self.moved(start, offset.bits()))
            }
            GlobalValueData::IAddImm { base, offset, .. } => {
                let base = self.global(*base)?;
                Ok(self.moved(base, offset.bits()))
            }
            GlobalValueData::Load { base, offset, global_type, flags } => {
                let (base, flags) = (self.global(*base)?, func.dfg.mem_flags[*flags]);
                Ok(self.load(*global_type, base, (*offset).into(), flags))
            }
            other => Err(Unwritable::new(format_args!("the global {other}"))),
        }
    }

    /// An address behind or before another one.
    fn moved(&mut self, address: Word, by: i64) -> Word {
        if by == 0 {
            return address;
        }
        let by = self.constant(self.w.word, by.cast_unsigned());
        self.of(Op::IAdd, self.w.word, &[address, by])
    }

    /// A pointer to a number of a type, at an offset from an address.
    fn place(&mut self, ty: Type, address: Word, offset: i64) -> Word {
        let pointer = self.w.pointer(StorageClass::Generic, ty);
        if offset == 0 {
            return self.op(Op::ConvertUToPtr, pointer, &[address]);
        }
        let bytes = self.w.pointer(StorageClass::Generic, types::I8);
        let start = self.op(Op::ConvertUToPtr, bytes, &[address]);
        let offset = self.constant(types::I32, offset.cast_unsigned());
        let place = self.op(Op::InBoundsPtrAccessChain, bytes, &[start, offset]);
        if bytes == pointer { place } else { self.op(Op::Bitcast, pointer, &[place]) }
    }

    /// The operands that say how an access is aligned. A large one that is, is aligned to a word.
    fn alignment(&self, ty: Type, flags: MemFlagsData) -> [Operand; 2] {
        let align = if flags.aligned() { ty.bytes().min(self.w.word.bytes()) } else { 1 };
        [Operand::MemoryAccess(MemoryAccess::ALIGNED), Operand::LiteralBit32(align)]
    }

    fn load(&mut self, ty: Type, address: Word, offset: i64, flags: MemFlagsData) -> Word {
        let place = Operand::IdRef(self.place(ty, address, offset));
        let operands = [place].into_iter().chain(self.alignment(ty, flags)).collect();
        let result = self.w.ty(ty);
        let loaded = self.push(Op::Load, Some(result), operands);
        self.in_order(ty, loaded, flags)
    }

    fn store(&mut self, ty: Type, value: Word, address: Word, offset: i64, flags: MemFlagsData) {
        let value = self.in_order(ty, value, flags);
        let place = self.place(ty, address, offset);
        let operands = [place, value].map(Operand::IdRef).into_iter();
        let operands = operands.chain(self.alignment(ty, flags)).collect();
        self.push(Op::Store, None, operands);
    }

    /// A number with its bytes the other way round, if the access is big-endian.
    fn in_order(&mut self, ty: Type, value: Word, flags: MemFlagsData) -> Word {
        if flags.explicit_endianness() != Some(Endianness::Big) || ty == types::I8 {
            return value;
        }
        let int = ty.as_int();
        let bits = if ty.is_float() { self.of(Op::Bitcast, int, &[value]) } else { value };
        let turned = self.turned(int, bits);
        if ty.is_float() { self.of(Op::Bitcast, ty, &[turned]) } else { turned }
    }

    /// Whether SPIR-V for OpenCL has atomic accesses like this.
    fn is_atomic(&self, ty: Type, flags: MemFlagsData) -> bool {
        ty.bits() >= 32 && flags.explicit_endianness() != Some(Endianness::Big)
    }

    /// Waits for all other work-items of the group, whose accesses to memory are seen then.
    pub(super) fn barrier(&mut self) {
        let group = self.constant(types::I32, (Scope::Workgroup as u32).into());
        let [scope, semantics] = self.ordered();
        let operands = vec![
            Operand::IdScope(group),
            Operand::IdScope(scope),
            Operand::IdMemorySemantics(semantics),
        ];
        self.push(Op::ControlBarrier, None, operands);
    }

    /// The scope and the semantics of an atomic access: on the device, acquiring and releasing all memory.
    fn ordered(&mut self) -> [Word; 2] {
        let semantics = MemorySemantics::SEQUENTIALLY_CONSISTENT
            | MemorySemantics::WORKGROUP_MEMORY
            | MemorySemantics::CROSS_WORKGROUP_MEMORY;
        [Scope::Device as u32, semantics.bits()].map(|bits| self.constant(types::I32, bits.into()))
    }

    /// An atomic access to a number, with other operands.
    fn atomic(&mut self, op: Op, ty: Type, address: Word, args: &[Word]) -> Word {
        let place = self.place(ty, address, 0);
        let [scope, semantics] = self.ordered();
        let mut operands = vec![
            Operand::IdRef(place),
            Operand::IdScope(scope),
            Operand::IdMemorySemantics(semantics),
        ];
        if op == Op::AtomicCompareExchange {
            let acquire = MemorySemantics::SEQUENTIALLY_CONSISTENT.bits();
            let unequal = self.constant(types::I32, acquire.into());
            operands.push(Operand::IdMemorySemantics(unequal));
        }
        operands.extend(args.iter().map(|&arg| Operand::IdRef(arg)));
        let result = self.w.ty(ty);
        self.push(op, (op != Op::AtomicStore).then_some(result), operands)
    }

    fn exchange(&mut self, op: AtomicRmwOp, ty: Type, args: &[Word], flags: MemFlagsData) -> Word {
        use AtomicRmwOp::*;
        let native = match op {
            Add => Some(Op::AtomicIAdd),
            Sub => Some(Op::AtomicISub),
            And => Some(Op::AtomicAnd),
            Or => Some(Op::AtomicOr),
            Xor => Some(Op::AtomicXor),
            Xchg => Some(Op::AtomicExchange),
            Umin => Some(Op::AtomicUMin),
            Umax => Some(Op::AtomicUMax),
            Smin => Some(Op::AtomicSMin),
            Smax => Some(Op::AtomicSMax),
            Nand => None,
        };
        if let Some(native) = native.filter(|_| self.is_atomic(ty, flags)) {
            return self.atomic(native, ty, args[0], &[args[1]]);
        }
        let old = self.load(ty, args[0], 0, flags);
        let new = self.updated(op, ty, old, args[1]);
        self.store(ty, new, args[0], 0, flags);
        old
    }

    fn compare_exchange(&mut self, ty: Type, args: &[Word], flags: MemFlagsData) -> Word {
        let [address, expected, new] = [args[0], args[1], args[2]];
        if self.is_atomic(ty, flags) {
            return self.atomic(Op::AtomicCompareExchange, ty, address, &[new, expected]);
        }
        let old = self.load(ty, address, 0, flags);
        let same = self.compare(Op::IEqual, old, expected);
        let stored = self.of(Op::Select, ty, &[same, new, old]);
        self.store(ty, stored, address, 0, flags);
        old
    }
}

/// The type that a narrow access moves; none for other instructions.
fn part(opcode: Opcode) -> Option<Type> {
    Some(match opcode {
        Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => types::I8,
        Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => types::I16,
        Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => types::I32,
        _ => return None,
    })
}
