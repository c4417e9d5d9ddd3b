//! Memory accesses: pairs are stored as two halves, and addresses that are pairs are truncated to their low
//! halves.
//!
//! An address with more bits than the machine's is truncated to the word: addresses wrap around anyway, and
//! all valid ones are zero-extended.

use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{
    Endianness, Inst, InstBuilder, InstructionData, MemFlagsData, Opcode, Value, types,
};

use super::{Pair, Wide};

impl Wide<'_> {
    /// The word of an address.
    fn address(&self, address: Value) -> Value {
        if self.is_wide(address) { self.parts(address)[0] } else { address }
    }

    /// Truncates operand `index` of an instruction to a word if it is an address that is a pair.
    pub(super) fn cut_address(&mut self, inst: Inst, index: usize) {
        let address = self.address(self.at.func.dfg.inst_args(inst)[index]);
        self.at.func.dfg.inst_args_mut(inst)[index] = address;
    }

    /// The address of half `index`, counted in the order of addresses.
    fn place(&mut self, address: Value, offset: Offset32, index: u32) -> (Value, Offset32) {
        let bytes = i64::from(index * self.half.bytes());
        match offset.try_add_i64(bytes) {
            Some(offset) => (address, offset),
            None => {
                let ty = self.at.func.dfg.value_type(address);
                let bytes = self.at.ins().iconst(ty, bytes);
                (self.at.ins().iadd(address, bytes), offset)
            }
        }
    }

    /// A load with a pair as its result.
    pub(super) fn load(&mut self, data: InstructionData) -> Option<Pair> {
        let InstructionData::Load { opcode, arg, offset, .. } = data else { return None };
        let flags = data.memflags_data(&self.at.func.dfg)?;
        let address = self.address(arg);
        if opcode == Opcode::Load {
            let [first, second] = [0, 1].map(|index| {
                let (address, offset) = self.place(address, offset, index);
                self.at.ins().load(self.half, flags, address, offset)
            });
            return Some(if is_big(flags) { [second, first] } else { [first, second] });
        }
        let (half, ins) = (self.half, self.at.ins());
        let low = match opcode {
            Opcode::Uload8 => ins.uload8(half, flags, address, offset),
            Opcode::Sload8 => ins.sload8(half, flags, address, offset),
            Opcode::Uload16 => ins.uload16(half, flags, address, offset),
            Opcode::Sload16 => ins.sload16(half, flags, address, offset),
            Opcode::Uload32 | Opcode::Sload32 if half == types::I32 => {
                ins.load(half, flags, address, offset)
            }
            _ => return None,
        };
        let high = match opcode {
            Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => self.signs(low),
            _ => self.konst(0),
        };
        Some([low, high])
    }

    /// A store of a pair. None if it is not supported.
    pub(super) fn store(&mut self, data: InstructionData) -> Option<()> {
        let InstructionData::Store { opcode, args: [value, address], offset, .. } = data else {
            return None;
        };
        let flags = data.memflags_data(&self.at.func.dfg)?;
        let address = self.address(address);
        let [low, high] = self.parts(value);
        if opcode == Opcode::Store {
            let halves = if is_big(flags) { [high, low] } else { [low, high] };
            for (index, half) in (0..).zip(halves) {
                let (address, offset) = self.place(address, offset, index);
                self.at.ins().store(flags, half, address, offset);
            }
            return Some(());
        }
        match opcode {
            Opcode::Istore8 => self.at.ins().istore8(flags, low, address, offset),
            Opcode::Istore16 => self.at.ins().istore16(flags, low, address, offset),
            Opcode::Istore32 if self.half == types::I32 => {
                self.at.ins().store(flags, low, address, offset)
            }
            _ => return None,
        };
        Some(())
    }

    /// An address, of a stack slot or symbol, as a pair.
    pub(super) fn address_of(&mut self, data: InstructionData) -> Option<Pair> {
        let (half, ins) = (self.half, self.at.ins());
        let low = match data {
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                ins.stack_addr(half, stack_slot, offset)
            }
            InstructionData::FuncAddr { func_ref, .. } => ins.func_addr(half, func_ref),
            InstructionData::UnaryGlobalValue {
                opcode: Opcode::SymbolValue, global_value, ..
            } => ins.symbol_value(half, global_value),
            InstructionData::NullAry { opcode: Opcode::GetStackPointer } => {
                ins.get_stack_pointer(half)
            }
            _ => return None,
        };
        Some([low, self.konst(0)])
    }
}

fn is_big(flags: MemFlagsData) -> bool {
    flags.explicit_endianness() == Some(Endianness::Big)
}
