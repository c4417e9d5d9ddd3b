//! Random kernels that call functions whose effect on divergence the compiler can analyze: bytes give a kernel, the
//! functions, a grid and arguments.
//!
//! Functions are called by their names alone, and compute from arguments and from memory that is never written.
//! So callers decide whether lanes diverge in them, and functions decide whether lanes diverge by their results.
//! Arguments are words that are uniform or differ between lanes, at random. Each function calls none but later
//! ones, and has one loop at the most, so that everything ends.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{FuncRef, InstBuilder, MemFlagsData, Opcode, Signature, Type, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::{FunctionBuilder as Builder, FunctionBuilderContext, Variable};
use harp_isa::abi::ArgumentBlock;
use harp_jit::DataAccess;

use super::choices::Choices;
use super::clif::{self, element, import, intrinsic, signature, symbol};
use super::{Family, Generated};
use crate::oracle::{Argument, Case, Datum, Elements, Start};

/// Words that each work-item has of its own: what it computed, and one that it reads.
const OWN_WORDS: usize = 2;

/// Words that all work-items read, a power of two, and the name of the datum with them.
const SHARED_WORDS: usize = 8;
const SHARED: &str = "shared";

/// Numbers that all work-items are given.
const NUMBERS: u32 = 3;

/// Statements nest this deep.
const MAX_DEPTH: usize = 3;

/// The kernel that `bytes` stand for on machines of this family.
pub(super) fn kernel(bytes: &[u8], family: Family) -> Generated {
    let mut choices = Choices::new(bytes);
    let extents = [1 + choices.below(80) as u64, 1, 1];
    let signatures = signatures(&mut choices, family.word_int());
    let mut context = FunctionBuilderContext::new();
    let functions = signatures.iter().enumerate().map(|(index, signature)| {
        clif::function(&name(index), signature, family.word, &mut context, |b, values| {
            let (sum, signatures) = (b.declare_var(family.word_int()), &signatures[..]);
            let (choices, own, loops, depth) = (&mut choices, None, 1, 0);
            Body { signatures, index, family, choices, values, sum, own, loops, depth }.make(b);
        })
    });
    let functions = functions.collect();
    let own = choices.words(OWN_WORDS * extents[0] as usize, family.word);
    let shared = choices.words(SHARED_WORDS, family.word);
    let shared = Datum::new(SHARED, shared, DataAccess::ReadOnly);
    let mut args = vec![Argument::Buffer(Elements::Ints, own)];
    let mut number =
        || Argument::Scalar(family.word_param(), choices.int(family.word.bits().into()));
    args.extend((0..NUMBERS).map(|_| number()));
    let start = Start::Launch { extents, args };
    Case { word: family.word, functions, data: vec![shared], start, waits: false }.into()
}

/// The kernel's, and those of one to four functions.
fn signatures(choices: &mut Choices<'_>, word: Type) -> Vec<Signature> {
    let mut all = vec![signature(CallConv::Fast, [word], [])];
    for _ in 0..1 + choices.below(4) {
        let again = all.len() > 1 && choices.once_in(3);
        all.push(if again {
            all[1 + choices.below(all.len() - 1)].clone()
        } else {
            let conv = choices.one(&[CallConv::Tail, CallConv::Fast]);
            // Some are passed on the stack where registers are few.
            let mut words = |count| vec![word; 1 + choices.below(count)];
            signature(conv, words(5), words(3))
        });
    }
    all
}

fn name(index: usize) -> String {
    if index == 0 { "kernel".to_owned() } else { format!("f{index}") }
}

/// A function in the making.
struct Body<'p, 'u> {
    signatures: &'p [Signature],
    index: usize,
    family: Family,
    choices: &'p mut Choices<'u>,
    /// Words that can be used here.
    values: Vec<Value>,
    /// The function's running result, which depends on the path taken.
    sum: Variable,
    /// The address of the work-item's memory, in the kernel.
    own: Option<Value>,
    /// Loops that may still be made.
    loops: usize,
    depth: usize,
}

impl Body<'_, '_> {
    fn word(&self) -> Type {
        self.family.word_int()
    }

    fn make(&mut self, b: &mut Builder<'_>) {
        if self.index == 0 {
            self.enter_kernel(b);
        }
        let start = b.ins().iconst(self.word(), 1);
        b.def_var(self.sum, start);
        for _ in 0..1 + self.choices.below(5) {
            self.statement(b);
        }
        self.end(b);
    }

    /// Finds the work-item's memory. Its address and contents differ between work-items, the numbers do not.
    fn enter_kernel(&mut self, b: &mut Builder<'_>) {
        let (word, size) = (self.word(), self.family.word);
        let block = self.values[0];
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let args: Vec<Value> = (0..=NUMBERS)
            .map(|index| {
                let offset = ArgumentBlock::argument(index, size);
                b.ins().load(word, flags, block, offset.cast_signed())
            })
            .collect();
        let item = intrinsic(b, "harp_global_id_x", &[], word);
        let own = element(b, args[0], item, OWN_WORDS as u32 * word.bytes());
        let read = b.ins().load(word, MemFlagsData::trusted(), own, i32::from(size.bytes()));
        self.values = [&args[1..], &[item, read]].concat();
        self.own = Some(own);
    }

    fn one(&mut self) -> Value {
        self.choices.one(&self.values)
    }

    fn statement(&mut self, b: &mut Builder<'_>) {
        let kinds = if self.depth < MAX_DEPTH { 11 } else { 7 };
        match self.choices.below(kinds) {
            0 | 1 => {
                let value = self.operation(b);
                self.values.push(value);
            }
            2 | 3 => self.add(b),
            4 => self.load_shared(b),
            5 | 6 => self.call(b),
            7 | 8 => self.if_else(b),
            9 => self.end_if(b),
            _ => self.counted_loop(b),
        }
    }

    fn operation(&mut self, b: &mut Builder<'_>) -> Value {
        let (x, y) = (self.one(), self.one());
        match [Opcode::Iadd, Opcode::Bxor, Opcode::Band, Opcode::Imul].get(self.choices.below(5)) {
            Some(&opcode) => clif::binary(b, opcode, x, y),
            None => {
                let number = b.ins().iconst(self.word(), self.choices.below(40) as i64);
                b.ins().isub(x, number)
            }
        }
    }

    /// Mixes a value, or a constant that only occurs here, into the result.
    fn add(&mut self, b: &mut Builder<'_>) {
        let value = match self.choices.below(2) {
            0 => self.one(),
            _ => b.ins().iconst(self.word(), 1 + self.choices.below(200) as i64),
        };
        clif::note(b, self.sum, value);
    }

    fn load_shared(&mut self, b: &mut Builder<'_>) {
        let word = self.word();
        let global = symbol(b, SHARED, 0, true);
        let base = b.ins().symbol_value(word, global);
        let index = b.ins().band_imm_s(self.one(), SHARED_WORDS as i64 - 1);
        let place = element(b, base, index, word.bytes());
        let loaded = b.ins().load(word, MemFlagsData::trusted().with_readonly(), place, 0);
        self.values.push(loaded);
    }

    /// Calls a later function, if there is one.
    fn call(&mut self, b: &mut Builder<'_>) {
        let later = self.signatures.len() - self.index - 1;
        if later == 0 {
            return self.add(b);
        }
        let callee = self.index + 1 + self.choices.below(later);
        let (function, args) = self.passed(b, callee);
        let call = b.ins().call(function, &args);
        let results = b.inst_results(call).to_vec();
        self.values.extend(results);
    }

    /// The callee and its arguments.
    fn passed(&mut self, b: &mut Builder<'_>, callee: usize) -> (FuncRef, Vec<Value>) {
        let signature = &self.signatures[callee];
        let args = signature.params.iter().map(|_| self.one()).collect();
        (import(b.func, &name(callee), signature.clone(), self.choices.below(2) == 0), args)
    }

    /// Something to branch on.
    fn condition(&mut self, b: &mut Builder<'_>) -> Value {
        let x = self.one();
        match self.choices.below(3) {
            0 => b.ins().band_imm_s(x, 1 << self.choices.below(3)),
            1 => {
                let y = self.one();
                b.ins().icmp(IntCC::UnsignedLessThan, x, y)
            }
            _ => x,
        }
    }

    /// A few statements, after which the values made in them are out of reach.
    fn nested(&mut self, b: &mut Builder<'_>) {
        let values = self.values.len();
        self.depth += 1;
        for _ in 0..1 + self.choices.below(3) {
            self.statement(b);
        }
        self.depth -= 1;
        self.values.truncate(values);
    }

    fn if_else(&mut self, b: &mut Builder<'_>) {
        let [on_true, on_false, after] = [(); 3].map(|()| b.create_block());
        let merged = b.append_block_param(after, self.word());
        let condition = self.condition(b);
        b.ins().brif(condition, on_true, &[], on_false, &[]);
        for side in [on_true, on_false] {
            b.switch_to_block(side);
            self.nested(b);
            let value = self.one();
            b.ins().jump(after, &[value.into()]);
        }
        b.switch_to_block(after);
        self.values.push(merged);
    }

    /// Ends the function on a condition.
    fn end_if(&mut self, b: &mut Builder<'_>) {
        let [out, after] = [(); 2].map(|()| b.create_block());
        let condition = self.condition(b);
        b.ins().brif(condition, out, &[], after, &[]);
        b.switch_to_block(out);
        self.end(b);
        b.switch_to_block(after);
    }

    /// Goes round as often as a value says, three times at the most.
    fn counted_loop(&mut self, b: &mut Builder<'_>) {
        if self.loops == 0 {
            return self.add(b);
        }
        self.loops -= 1;
        let word = self.word();
        let [header, inside, after] = [(); 3].map(|()| b.create_block());
        let left = b.append_block_param(header, word);
        let count = b.ins().band_imm_s(self.one(), 3);
        b.ins().jump(header, &[count.into()]);
        b.switch_to_block(header);
        b.ins().brif(left, inside, &[], after, &[]);
        b.switch_to_block(inside);
        self.nested(b);
        let one = b.ins().iconst(word, 1);
        let next = b.ins().isub(left, one);
        b.ins().jump(header, &[next.into()]);
        b.switch_to_block(after);
    }

    /// Ends the function: the kernel with what it computed in memory, others with values or a call.
    fn end(&mut self, b: &mut Builder<'_>) {
        let sum = b.use_var(self.sum);
        if let Some(own) = self.own {
            b.ins().store(MemFlagsData::trusted(), sum, own, 0);
            b.ins().return_(&[]);
            return;
        }
        let Signature { returns, call_conv, .. } = &self.signatures[self.index];
        let fits = |other: &usize| {
            let other = &self.signatures[*other];
            *call_conv == CallConv::Tail
                && other.call_conv == *call_conv
                && other.returns == *returns
        };
        let fitting: Vec<usize> = (self.index + 1..self.signatures.len()).filter(fits).collect();
        if !fitting.is_empty() && self.choices.once_in(3) {
            let callee = self.choices.one(&fitting);
            let (function, args) = self.passed(b, callee);
            b.ins().return_call(function, &args);
            return;
        }
        let mut result = |_| if self.choices.below(3) == 0 { sum } else { self.one() };
        let results: Vec<Value> = returns.iter().map(&mut result).collect();
        b.ins().return_(&results);
    }
}
