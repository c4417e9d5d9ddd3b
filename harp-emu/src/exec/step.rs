//! Steps of the fast path for all lanes: an instruction, or a pair of them in one step.
//!
//! The second instruction of a pair has the result of the first as an operand: an address from a scaled
//! index, a sum from a product, a mix of a value and itself shifted. Or it tests that result, as comparisons
//! without the extension and the ends of loops do. The host then has that operand in its registers (see
//! [`First`] and [`Second`]), and dispatches once instead of twice. Both results are written, so a guest
//! cannot observe it, and the operations are those that `visitor` defines for all paths.

use harp_isa::{Gpr, Imm, Op, Pred, Rel, Visitor};

use super::operand::{Number, Operand};
use super::{Exec, First, Flow, Second, Way};
use crate::word::Word;

/// The operands of a pair: `t := first(x, y)` or `t := first(x, imm)`, then `dst := second(a, t)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    t: Number,
    x: Number,
    y: Number,
    dst: Number,
    a: Number,
    imm: i32,
}

/// The operands of a tested value: `t := first(x, y)` or `t := first(x, imm)`, then `dst := test(t)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tested {
    t: Number,
    x: Number,
    y: Number,
    dst: Number,
    imm: i32,
}

/// Defines [`Step`]. A row of `pairs` or `tests` has a first instruction, whether its last operand is an
/// immediate or a register, and the names of its pairs: with `add`, `sub`, `xor` and `or`, or, in `tests`, with
/// `rtop`, `iszero` and `isneg`. The rows of single instructions follow.
macro_rules! steps {
    (
        pairs {
            $($first:ident $first_method:ident $kind:ident
                => $add:ident $sub:ident $xor:ident $or:ident;)*
        }
        tests {
            $($tested:ident $tested_method:ident $tested_kind:ident
                => $rtop:ident $iszero:ident $isneg:ident;)*
        }
        $($variant:ident $method:ident($($field:ident: $ty:ident),*);)*
    ) => {
        /// What the fast path for all lanes does next.
        ///
        /// Instructions are variants beside the pairs, not one variant with an [`Op`], so that dispatch takes one
        /// jump.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Step {
            $($variant { $($field: <$ty as Operand>::Kept),* },)*
            $($add(Pair), $sub(Pair), $xor(Pair), $or(Pair),)*
            $($rtop(Tested), $iszero(Tested), $isneg(Tested),)*
        }

        impl Step {
            /// One instruction.
            pub(crate) fn one(op: Op) -> Step {
                match op {
                    $(Op::$variant { $($field),* } => {
                        Step::$variant { $($field: $field.keep()),* }
                    })*
                }
            }

            /// Two instructions that follow each other, if they make a pair on machines with words of
            /// `width` bits.
            pub(crate) fn two(first: Op, second: Op, width: u8) -> Option<Step> {
                match first {
                    // Pairs have no code for counts beyond the word.
                    Op::Shli { imm, .. } | Op::Shri { imm, .. }
                        if !(0..i64::from(width)).contains(&imm) => None,
                    _ => Step::mix(first, second).or_else(|| Step::test(first, second)),
                }
            }

            fn mix(first: Op, second: Op) -> Option<Step> {
                match first {
                    $(steps!(pattern $kind $first t x y imm) => {
                        let (y, imm) = steps!(operands $kind x y imm);
                        let imm = i32::try_from(imm).ok()?;
                        let (step, dst, a): (fn(Pair) -> Step, Gpr, Gpr) = match second {
                            Op::Add { dst, a, b } if b == t => (Step::$add, dst, a),
                            Op::Add { dst, a, b } if a == t => (Step::$add, dst, b),
                            Op::Sub { dst, a, b } if b == t => (Step::$sub, dst, a),
                            Op::Xor { dst, a, b } if b == t => (Step::$xor, dst, a),
                            Op::Xor { dst, a, b } if a == t => (Step::$xor, dst, b),
                            Op::Or { dst, a, b } if b == t => (Step::$or, dst, a),
                            Op::Or { dst, a, b } if a == t => (Step::$or, dst, b),
                            _ => return None,
                        };
                        let [t, x, y, dst, a] = [t, x, y, dst, a].map(Operand::keep);
                        Some(step(Pair { t, x, y, dst, a, imm }))
                    })*
                    _ => None,
                }
            }

            fn test(first: Op, second: Op) -> Option<Step> {
                match first {
                    $(steps!(pattern $tested_kind $tested t x y imm) => {
                        let (y, imm) = steps!(operands $tested_kind x y imm);
                        let imm = i32::try_from(imm).ok()?;
                        let (step, dst): (fn(Tested) -> Step, Pred) = match second {
                            Op::Rtop { dst, src } if src == t => (Step::$rtop, dst),
                            Op::Iszero { dst, src } if src == t => (Step::$iszero, dst),
                            Op::Isneg { dst, src } if src == t => (Step::$isneg, dst),
                            _ => return None,
                        };
                        let [t, x, y] = [t, x, y].map(Operand::keep);
                        Some(step(Tested { t, x, y, dst: dst.keep(), imm }))
                    })*
                    _ => None,
                }
            }

            /// Whether it is two instructions.
            pub(crate) fn is_pair(&self) -> bool {
                matches!(
                    self,
                    $(Step::$add(_) | Step::$sub(_) | Step::$xor(_) | Step::$or(_))|*
                    $(| Step::$rtop(_) | Step::$iszero(_) | Step::$isneg(_))*
                )
            }

            /// Carries it out; calls `skip` if that includes the next instruction.
            #[inline(always)]
            pub(crate) fn accept<W: Word, const C: usize, P: Way>(
                &self,
                exec: &mut Exec<'_, W, C, P>,
                skip: impl FnOnce(),
            ) -> Flow {
                match *self {
                    $(Step::$variant { $($field),* } => {
                        Visitor::$method(exec, $(<$ty as Operand>::given($field)),*)
                    })*
                    $(
                        Step::$add(pair) => steps!(mixed add $kind $first_method exec skip pair),
                        Step::$sub(pair) => steps!(mixed sub $kind $first_method exec skip pair),
                        Step::$xor(pair) => steps!(mixed xor $kind $first_method exec skip pair),
                        Step::$or(pair) => steps!(mixed or $kind $first_method exec skip pair),
                    )*
                    $(
                        Step::$rtop(pair) =>
                            steps!(tested rtop $tested_kind $tested_method exec skip pair),
                        Step::$iszero(pair) =>
                            steps!(tested iszero $tested_kind $tested_method exec skip pair),
                        Step::$isneg(pair) =>
                            steps!(tested isneg $tested_kind $tested_method exec skip pair),
                    )*
                }
            }
        }
    };
    (pattern immediate $first:ident $t:ident $x:ident $y:ident $imm:ident) => {
        Op::$first { dst: $t, src: $x, imm: $imm }
    };
    (pattern register $first:ident $t:ident $x:ident $y:ident $imm:ident) => {
        Op::$first { dst: $t, a: $x, b: $y }
    };
    (operands immediate $x:ident $y:ident $imm:ident) => { ($x, $imm) };
    (operands register $x:ident $y:ident $imm:ident) => { ($y, 0i64) };
    (mixed $second:ident $kind:ident $first:ident $exec:ident $skip:ident $pair:ident) => {{
        let mut first = $exec.in_way::<First>();
        steps!(run $kind $first first $pair)?;
        $skip();
        let (dst, a, t) = (Gpr::given($pair.dst), Gpr::given($pair.a), Gpr::given($pair.t));
        first.in_way::<Second>().$second(dst, a, t)
    }};
    (tested $second:ident $kind:ident $first:ident $exec:ident $skip:ident $pair:ident) => {{
        let mut first = $exec.in_way::<First>();
        steps!(run $kind $first first $pair)?;
        $skip();
        first.in_way::<Second>().$second(Pred::given($pair.dst), Gpr::given($pair.t))
    }};
    (run immediate $method:ident $visitor:ident $pair:ident) => {
        $visitor.$method(Gpr::given($pair.t), Gpr::given($pair.x), $pair.imm.into())
    };
    (run register $method:ident $visitor:ident $pair:ident) => {
        $visitor.$method(Gpr::given($pair.t), Gpr::given($pair.x), Gpr::given($pair.y))
    };
}

harp_isa::for_each_instruction! { steps! {
    pairs {
        Shli shli immediate => ShliAdd ShliSub ShliXor ShliOr;
        Shri shri immediate => ShriAdd ShriSub ShriXor ShriOr;
        Muli muli immediate => MuliAdd MuliSub MuliXor MuliOr;
        Addi addi immediate => AddiAdd AddiSub AddiXor AddiOr;
        Andi andi immediate => AndiAdd AndiSub AndiXor AndiOr;
        Mul mul register => MulAdd MulSub MulXor MulOr;
        And and register => AndAdd AndSub AndXor AndOr;
        Add add register => AddAdd AddSub AddXor AddOr;
    }
    tests {
        Subi subi immediate => SubiRtop SubiIszero SubiIsneg;
        Andi andi immediate => AndiRtop AndiIszero AndiIsneg;
        Sub sub register => SubRtop SubIszero SubIsneg;
        Xor xor register => XorRtop XorIszero XorIsneg;
    }
} }
