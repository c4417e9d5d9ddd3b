//! What the fast way for all lanes does next: an instruction, or a pair of them in one step.
//!
//! The second instruction of a pair takes an operand from what the first has just computed: an
//! address from a scaled index, a sum from a product, a mix of a value and itself shifted; or it tests
//! that value, as comparisons without the extension and the ends of loops do. The host
//! then has that operand in its registers, and finds the way to the operations once instead of
//! twice. Both results are written, so there is nothing to see of it, and what the operations do is
//! said where it is said for all (see `visitor`).

use harp_isa::{Gpr, Imm, Op, Pred, Rel, Visitor};

use super::Flow;

/// The operands of a pair: `t := first(x, y)` or `t := first(x, imm)`, then `dst := second(a, t)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    t: Gpr,
    x: Gpr,
    y: Gpr,
    dst: Gpr,
    a: Gpr,
    imm: i32,
}

/// The operands of a tested value: `t := first(x, y)` or `t := first(x, imm)`, then `dst := test(t)`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tested {
    t: Gpr,
    x: Gpr,
    y: Gpr,
    dst: Pred,
    imm: i32,
}

/// Defines [`Step`]. A row of a pair is a first instruction, whether its last operand is an immediate
/// or a register, and the names of its pairs with `add`, `sub`, `xor` and `or`, among the tests with
/// `rtop`, `iszero` and `isneg`; the rows of instructions follow.
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
        /// What the fast way for all lanes does next.
        ///
        /// Not an [`Op`] beside the pairs: one list means one jump to the operation.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Step {
            $($variant { $($field: $ty),* },)*
            $($add(Pair), $sub(Pair), $xor(Pair), $or(Pair),)*
            $($rtop(Tested), $iszero(Tested), $isneg(Tested),)*
        }

        impl Step {
            /// One instruction.
            pub(crate) fn one(op: Op) -> Step {
                match op {
                    $(Op::$variant { $($field),* } => Step::$variant { $($field),* },)*
                }
            }

            /// Two instructions that follow each other, if they make a pair.
            pub(crate) fn two(first: Op, second: Op) -> Option<Step> {
                Step::mix(first, second).or_else(|| Step::test(first, second))
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
                        Some(step(Tested { t, x, y, dst, imm }))
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
            pub(crate) fn accept<V: Visitor<Output = Flow>>(
                &self,
                visitor: &mut V,
                skip: impl FnOnce(),
            ) -> Flow {
                match *self {
                    $(Step::$variant { $($field),* } => visitor.$method($($field),*),)*
                    $(
                        Step::$add(pair) => {
                            steps!(run $kind $first_method visitor pair)?;
                            skip();
                            visitor.add(pair.dst, pair.a, pair.t)
                        }
                        Step::$sub(pair) => {
                            steps!(run $kind $first_method visitor pair)?;
                            skip();
                            visitor.sub(pair.dst, pair.a, pair.t)
                        }
                        Step::$xor(pair) => {
                            steps!(run $kind $first_method visitor pair)?;
                            skip();
                            visitor.xor(pair.dst, pair.a, pair.t)
                        }
                        Step::$or(pair) => {
                            steps!(run $kind $first_method visitor pair)?;
                            skip();
                            visitor.or(pair.dst, pair.a, pair.t)
                        }
                    )*
                    $(
                        Step::$rtop(pair) => {
                            steps!(run $tested_kind $tested_method visitor pair)?;
                            skip();
                            visitor.rtop(pair.dst, pair.t)
                        }
                        Step::$iszero(pair) => {
                            steps!(run $tested_kind $tested_method visitor pair)?;
                            skip();
                            visitor.iszero(pair.dst, pair.t)
                        }
                        Step::$isneg(pair) => {
                            steps!(run $tested_kind $tested_method visitor pair)?;
                            skip();
                            visitor.isneg(pair.dst, pair.t)
                        }
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
    (run immediate $method:ident $visitor:ident $pair:ident) => {
        $visitor.$method($pair.t, $pair.x, $pair.imm.into())
    };
    (run register $method:ident $visitor:ident $pair:ident) => {
        $visitor.$method($pair.t, $pair.x, $pair.y)
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
