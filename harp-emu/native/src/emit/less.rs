//! Comparisons that machines without an instruction for them do in several, found in the values of which these are made.
//!
//! The identities hold for all words (Warren, Hacker's Delight, section 2-12).

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{DataFlowGraph, InstructionData, Opcode, Value, ValueDef};

/// What is compared, and how, if a word is negative if and only if that holds.
pub(super) fn comparison(dfg: &DataFlowGraph, word: Value) -> Option<(IntCC, [Value; 2])> {
    let values = Values { dfg };
    let signed = || Some((IntCC::SignedLessThan, values.signed_less(word)?));
    signed().or_else(|| Some((IntCC::UnsignedLessThan, values.unsigned_less(word)?)))
}

struct Values<'a> {
    dfg: &'a DataFlowGraph,
}

impl Values<'_> {
    /// `a` and `b`, if the word is their difference with its sign corrected if the subtraction overflows:
    /// `(a - b) ^ ((a ^ b) & ((a - b) ^ a))`.
    fn signed_less(&self, word: Value) -> Option<[Value; 2]> {
        let [x, y] = self.operands(Opcode::Bxor, word)?;
        either(x, y, |difference, overflow| {
            let [a, b] = self.operands(Opcode::Isub, difference)?;
            let [x, y] = self.operands(Opcode::Band, overflow)?;
            either(x, y, |signs, changed| {
                let is_of = |word, [a, b]: [Value; 2]| {
                    let are = |x, y| self.is_same(x, a) && self.is_same(y, b);
                    self.combines(Opcode::Bxor, word, are)
                };
                (is_of(signs, [a, b]) && is_of(changed, [difference, a])).then_some([a, b])
            })
        })
    }

    /// `a` and `b`, if the word's top bit is the borrow of their difference: `(!a & b) | ((!a | b) & (a - b))`.
    fn unsigned_less(&self, word: Value) -> Option<[Value; 2]> {
        let [x, y] = self.operands(Opcode::Bor, word)?;
        either(x, y, |below, borrowed| {
            let [x, y] = self.operands(Opcode::Band, borrowed)?;
            either(x, y, |not_above, difference| {
                let [a, b] = self.operands(Opcode::Isub, difference)?;
                let are = |x, y| self.inverts(x, a) && self.is_same(y, b);
                let is_it = self.combines(Opcode::Band, below, are)
                    && self.combines(Opcode::Bor, not_above, are);
                is_it.then_some([a, b])
            })
        })
    }

    /// What an instruction with two operands has made the word of, if it is this one.
    fn operands(&self, wanted: Opcode, word: Value) -> Option<[Value; 2]> {
        match self.made_by(word)? {
            InstructionData::Binary { opcode, args } if opcode == wanted => Some(args),
            _ => None,
        }
    }

    fn made_by(&self, word: Value) -> Option<InstructionData> {
        match self.dfg.value_def(self.dfg.resolve_aliases(word)) {
            ValueDef::Result(inst, 0) => Some(self.dfg.insts[inst]),
            _ => None,
        }
    }

    /// Whether this instruction has made a word of two that are as wanted, in any order.
    fn combines(&self, opcode: Opcode, word: Value, are: impl Fn(Value, Value) -> bool) -> bool {
        self.operands(opcode, word).is_some_and(|[x, y]| are(x, y) || are(y, x))
    }

    /// Whether a word is this one with all bits inverted.
    fn inverts(&self, word: Value, a: Value) -> bool {
        let made_by = self.made_by(word);
        matches!(made_by, Some(InstructionData::Unary { opcode: Opcode::Bnot, arg }) if self.is_same(arg, a))
    }

    fn is_same(&self, a: Value, b: Value) -> bool {
        self.dfg.resolve_aliases(a) == self.dfg.resolve_aliases(b)
    }
}

/// What `f` finds in two values in this order, or else in the other.
fn either<T>(a: Value, b: Value, f: impl Fn(Value, Value) -> Option<T>) -> Option<T> {
    f(a, b).or_else(|| f(b, a))
}
