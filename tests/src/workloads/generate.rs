//! The generator of functions.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    Block, FuncRef, Function, InstBuilder, MemFlagsData, Opcode, Type, Value, types,
};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use harp_isa::WordSize;

use crate::functions::word_type;
use crate::generate::clif::{self, import, signature};
use harp_bench::Generator;

/// Bytes of memory that a generated function is given.
pub const MEMORY_BYTES: u32 = 1024;

/// Variables of a function.
const VARIABLES: u32 = 10;
/// Functions of fewer instructions are straight code, and give what they computed last.
const SMALL: usize = 50;
/// How deep conditions and loops lie in each other.
const DEPTH: u32 = 3;

/// `%generated(address, i64, i64) -> i64` of about `insts` CLIF instructions: an address of
/// [`MEMORY_BYTES`] bytes, aligned to 8, and two numbers.
///
/// Ten variables of `i64` take part in four of ten statements that are arithmetic; others read and write
/// memory at computed addresses, compare and select, compute with `i32`, divide, call `%helper`, and hold
/// statements of their own: conditions and loops of a few rounds.
pub fn generated(insts: usize, word: WordSize) -> Function {
    let (address, number) = (word_type(word), types::I64);
    let own = signature(CallConv::Fast, [address, number, number], [number]);
    clif::function("generated", &own, word, &mut FunctionBuilderContext::new(), |b, params| {
        b.seal_block(b.current_block().expect("the entry"));
        let helper =
            import(b.func, "helper", signature(CallConv::Fast, [number; 2], [number]), true);
        let vars: Vec<Variable> = (0..VARIABLES).map(|_| b.declare_var(number)).collect();
        for (index, &var) in vars.iter().enumerate() {
            b.def_var(var, params[1 + index % 2]);
        }
        let (memory, last) = (params[0], vars[0]);
        let mut writer =
            Writer { b, memory, address, helper, vars, last, numbers: Generator::new() };
        while writer.written() < insts.saturating_sub(2) {
            writer.statement(if insts < SMALL { 0 } else { DEPTH });
        }
        let mut result = writer.b.use_var(writer.last);
        if insts >= SMALL {
            for &var in &writer.vars {
                let value = writer.b.use_var(var);
                result = writer.b.ins().bxor(result, value);
            }
        }
        writer.b.ins().return_(&[result]);
    })
}

struct Writer<'a, 'f> {
    b: &'a mut FunctionBuilder<'f>,
    memory: Value,
    address: Type,
    helper: FuncRef,
    vars: Vec<Variable>,
    /// What was written last.
    last: Variable,
    numbers: Generator,
}

impl Writer<'_, '_> {
    fn written(&self) -> usize {
        self.b.func.dfg.num_insts()
    }

    fn below(&mut self, limit: u32) -> u32 {
        // The upper bits of this generator are the better ones.
        let number = self.numbers.next().expect("the generator never ends");
        (number >> 4) % limit
    }

    fn var(&mut self) -> Variable {
        let index = self.below(VARIABLES);
        self.vars[index as usize]
    }

    fn read(&mut self) -> Value {
        let var = self.var();
        self.b.use_var(var)
    }

    fn write(&mut self, value: Value) {
        self.last = self.var();
        self.b.def_var(self.last, value);
    }

    /// A variable, or sometimes a constant, mostly a small one.
    fn operand(&mut self) -> Value {
        let constant = match self.below(12) {
            0 | 1 => i64::from(self.below(64)) - 8,
            2 => i64::from(self.below(1 << 20)) << self.below(40),
            _ => return self.read(),
        };
        self.b.ins().iconst(types::I64, constant)
    }

    fn statement(&mut self, depth: u32) {
        match self.below(100) {
            0..40 => self.arithmetic(),
            40..54 => self.load(),
            54..64 => self.store(),
            64..72 => self.choice(),
            72..78 => self.narrow(),
            78..82 => self.call(),
            82..84 => self.division(),
            84..95 if depth > 0 => self.condition(depth - 1),
            95..100 if depth > 0 => self.repeat(depth - 1),
            _ => self.arithmetic(),
        }
    }

    fn block_of_statements(&mut self, depth: u32) {
        for _ in 0..2 + self.below(5) {
            self.statement(depth);
        }
    }

    fn arithmetic(&mut self) {
        let (x, y) = (self.read(), self.operand());
        let amount = i64::from(self.below(63) + 1);
        let operations = {
            use Opcode::*;
            [Iadd, Iadd, Iadd, Isub, Imul, Band, Bor, Bxor]
        };
        let result = match self.below(10) as usize {
            8 => self.b.ins().ishl_imm_u(x, amount),
            9 => self.b.ins().ushr_imm_u(x, amount),
            at => clif::binary(self.b, operations[at], x, y),
        };
        self.write(result);
    }

    /// An address in the function's memory, and an offset.
    fn place(&mut self) -> (Value, i32) {
        let offset = self.below(64) * 8;
        let base = if self.below(2) == 0 {
            self.memory
        } else {
            let number = self.read();
            let index = self.b.ins().band_imm_u(number, 63);
            let bytes = self.b.ins().ishl_imm_u(index, 3);
            let bytes = clif::resized(self.b, bytes, self.address);
            self.b.ins().iadd(self.memory, bytes)
        };
        (base, offset.cast_signed())
    }

    fn load(&mut self) {
        let (address, offset) = self.place();
        let value = if self.below(4) == 0 {
            self.b.ins().uload8(types::I64, MemFlagsData::trusted(), address, offset)
        } else {
            self.b.ins().load(types::I64, MemFlagsData::trusted(), address, offset)
        };
        self.write(value);
    }

    fn store(&mut self) {
        let value = self.read();
        let (address, offset) = self.place();
        self.b.ins().store(MemFlagsData::trusted(), value, address, offset);
    }

    fn compare(&mut self) -> Value {
        let (x, y) = (self.read(), self.operand());
        let conditions = ["eq", "ne", "slt", "sge", "ult", "ugt"];
        let cc: IntCC = conditions[self.below(6) as usize].parse().expect("a condition's name");
        self.b.ins().icmp(cc, x, y)
    }

    fn choice(&mut self) {
        let condition = self.compare();
        let (x, y) = (self.read(), self.operand());
        let value = self.b.ins().select(condition, x, y);
        self.write(value);
    }

    fn narrow(&mut self) {
        let (x, y) = (self.read(), self.read());
        let [x, y] = [x, y].map(|it| self.b.ins().ireduce(types::I32, it));
        let sum = self.b.ins().iadd(x, y);
        let value = if self.below(2) == 0 {
            self.b.ins().sextend(types::I64, sum)
        } else {
            self.b.ins().uextend(types::I64, sum)
        };
        self.write(value);
    }

    fn division(&mut self) {
        let (x, y) = (self.read(), self.read());
        let y = self.b.ins().bor_imm_u(y, 1);
        let opcode = if self.below(2) == 0 { Opcode::Udiv } else { Opcode::Urem };
        let value = clif::binary(self.b, opcode, x, y);
        self.write(value);
    }

    fn call(&mut self) {
        let args = [self.read(), self.operand()];
        let call = self.b.ins().call(self.helper, &args);
        let result = self.b.inst_results(call)[0];
        self.write(result);
    }

    /// Goes on in `block`, to which there are no more jumps to come.
    fn enter(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    fn condition(&mut self, depth: u32) {
        let condition = self.compare();
        let [then, otherwise, end] = std::array::from_fn(|_| self.b.create_block());
        self.b.ins().brif(condition, then, &[], otherwise, &[]);
        self.enter(then);
        self.block_of_statements(depth);
        self.b.ins().jump(end, &[]);
        self.enter(otherwise);
        if self.below(2) == 0 {
            self.block_of_statements(depth);
        }
        self.b.ins().jump(end, &[]);
        self.enter(end);
    }

    fn repeat(&mut self, depth: u32) {
        let counter = self.b.declare_var(types::I64);
        let rounds = i64::from(self.below(4) + 2);
        let start = self.b.ins().iconst(types::I64, rounds);
        self.b.def_var(counter, start);
        let [header, body, end] = std::array::from_fn(|_| self.b.create_block());
        self.b.ins().jump(header, &[]);
        self.b.switch_to_block(header);
        let rest = self.b.use_var(counter);
        self.b.ins().brif(rest, body, &[], end, &[]);
        self.enter(body);
        self.block_of_statements(depth);
        let rest = self.b.use_var(counter);
        let less = self.b.ins().iadd_imm_s(rest, -1);
        self.b.def_var(counter, less);
        self.b.ins().jump(header, &[]);
        self.b.seal_block(header);
        self.enter(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_about_the_size_that_was_asked_for() {
        for word in [WordSize::Four, WordSize::Eight] {
            for insts in [10, 100, 1000, 10_000] {
                let written = generated(insts, word).dfg.num_insts();
                assert!((insts - 1..insts + 100 + insts / 10).contains(&written), "{written}");
            }
        }
    }
}
