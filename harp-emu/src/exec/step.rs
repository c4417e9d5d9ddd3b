//! Steps of the fast path: an instruction, or a pair of them in one step.
//!
//! The second instruction of a pair has the result of the first as an operand: an address from a scaled
//! index, a sum from a product, a mix of a value and itself shifted. Or it tests that result, as comparisons
//! without the extension and the ends of loops do. One kernel then does both, with that operand in the host's
//! registers. Both results are written, so a guest cannot observe it.

use std::marker::PhantomData;

use harp_isa::{Gpr, Imm, Op, Opcode, OpcodeFlags, Pred, Rel, Visitor};

use super::kernels::{Immediate, Operation, Two};
use super::operand::{Number, Operand};
use super::simd::{self, Handler};
use super::{Exec, Fast, Flow, NEXT, OTHER, kernels};
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

impl<W: Word, const C: usize> Exec<'_, W, C, Fast> {
    /// `t` := `first(x, y)`, then `dst` := `second(a, t)`.
    #[inline(always)]
    fn mix(&mut self, pair: Pair, first: impl Operation<W, W>, second: impl Fn(W, W) -> W) -> Flow {
        let Pair { t, x, y, dst, a, .. } = pair;
        let (rows, select) = self.rows([t, x, y, dst, a].map(Gpr::given));
        kernels::mix(rows, select, first, second);
        NEXT
    }

    /// `t` := `first(x, y)`, then `dst` := whether `second(t)` holds.
    #[inline(always)]
    fn map_and_test(
        &mut self,
        tested: Tested,
        first: impl Operation<W, W>,
        second: impl Fn(W) -> bool + Copy,
    ) -> Flow {
        let Tested { t, x, y, dst, .. } = tested;
        let (rows, select) = self.rows([t, x, y].map(Gpr::given));
        let bits = kernels::map_and_test(rows, select, first, second);
        self.set_pred(Pred::given(dst), bits)
    }
}

/// Carries out steps of one kind.
pub(super) trait Handle {
    fn handle<W: Word, const C: usize>(exec: &mut Exec<'_, W, C, Fast>, step: &Step) -> Flow;
}

/// Steps of the kind with this number.
pub(super) struct On<const KIND: u8>;

/// Instructions of the kind with this number that are carried out once.
pub(super) struct OnceOn<const KIND: u8>;

/// The number of the handler of a step: first those of steps that are carried out in each lane, by kind, then those of
/// instructions that are carried out once. One byte, so that a table needs no check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandlerNumber(pub(super) u8);

impl HandlerNumber {
    /// Of steps that are carried out in each lane.
    pub(crate) const fn each(kind: Kind) -> HandlerNumber {
        HandlerNumber(kind as u8)
    }

    /// Of an instruction that is carried out once.
    pub(crate) const fn once(opcode: Opcode) -> HandlerNumber {
        HandlerNumber(ONCE[opcode as usize])
    }
}

/// How many handlers a table has room for.
pub(super) const HANDLERS: usize = 256;

/// The numbers of handlers of instructions that are carried out once. Those that are rare have none: they are left to
/// the precise path.
const ONCE: [u8; OPCODES] = {
    let rare = OpcodeFlags::PRIVILEGED.union(OpcodeFlags::ATOMIC).union(OpcodeFlags::ONCE_PER_WARP);
    let (mut numbers, mut next) = ([Kind::Other as u8; OPCODES], KINDS);
    let mut i = 0;
    while i < OPCODES {
        let opcode = Opcode::ALL[i];
        if !opcode.flags().intersects(rare) && !opcode.operands().is_empty() {
            assert!(next < HANDLERS, "the numbers of handlers do not fit a byte");
            numbers[i] = next as u8;
            next += 1;
        }
        i += 1;
    }
    numbers
};

/// The table of these handlers: `each` by kind, `once` by opcode.
const fn table<W: Word, const C: usize>(
    each: [Handler<W, C>; KINDS],
    once: [Handler<W, C>; OPCODES],
) -> [Handler<W, C>; HANDLERS] {
    let mut table = [each[Kind::Other as usize]; HANDLERS];
    let mut i = 0;
    while i < KINDS {
        table[i] = each[i];
        i += 1;
    }
    let mut i = 0;
    while i < OPCODES {
        if ONCE[i] as usize >= KINDS {
            table[ONCE[i] as usize] = once[i];
        }
        i += 1;
    }
    table
}

/// The functions that carry out steps, each with the operations on the registers of all lanes inside.
pub(super) struct Handlers<W, const C: usize>(PhantomData<W>);

impl Handle for On<{ Kind::Row as u8 }> {
    #[inline(always)]
    fn handle<W: Word, const C: usize>(exec: &mut Exec<'_, W, C, Fast>, step: &Step) -> Flow {
        exec.access_row(step)
    }
}

impl Handle for On<{ Kind::Other as u8 }> {
    #[inline(always)]
    fn handle<W: Word, const C: usize>(_: &mut Exec<'_, W, C, Fast>, _: &Step) -> Flow {
        OTHER
    }
}

/// Defines [`Step`]. A row of `pairs` or `tests` has a first instruction, whether its last operand is an
/// immediate or a register, what it computes, and the names of its pairs: with `add`, `sub`, `xor` and `or`, or, in
/// `tests`, with `rtop`, `iszero` and `isneg`. The rows of single instructions follow.
macro_rules! steps {
    (
        pairs {
            $($first:ident $first_function:ident $kind:ident
                => $add:ident $sub:ident $xor:ident $or:ident;)*
        }
        tests {
            $($tested:ident $tested_function:ident $tested_kind:ident
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

            /// The number of its handler.
            pub(crate) fn kind(&self) -> Kind {
                match self {
                    $(Step::$variant { .. } => Kind::$variant,)*
                    $(
                        Step::$add(_) => Kind::$add,
                        Step::$sub(_) => Kind::$sub,
                        Step::$xor(_) => Kind::$xor,
                        Step::$or(_) => Kind::$or,
                    )*
                    $(
                        Step::$rtop(_) => Kind::$rtop,
                        Step::$iszero(_) => Kind::$iszero,
                        Step::$isneg(_) => Kind::$isneg,
                    )*
                }
            }
        }

        /// The kinds of steps.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Kind {
            $($variant,)*
            $($add, $sub, $xor, $or,)*
            $($rtop, $iszero, $isneg,)*
            /// An access to a row.
            Row,
            /// Left to the precise path.
            Other,
        }

        /// How many kinds there are, and how many of them are single instructions, which come first.
        const KINDS: usize =
            [$(Kind::$variant,)* $(Kind::$add, Kind::$sub, Kind::$xor, Kind::$or,)*
             $(Kind::$rtop, Kind::$iszero, Kind::$isneg,)* Kind::Row, Kind::Other].len();
        const OPCODES: usize = [$(Kind::$variant,)*].len();

        $(steps!(handle [$variant { $($field),* }] exec => {
            Visitor::$method(exec, $(<$ty as Operand>::given($field)),*)
        });)*
        $(
            impl Handle for OnceOn<{ Kind::$variant as u8 }> {
                #[inline(always)]
                fn handle<W: Word, const C: usize>(
                    exec: &mut Exec<'_, W, C, Fast>,
                    step: &Step,
                ) -> Flow {
                    match *step {
                        // Not in a closure, which would not have the features of the handler.
                        Step::$variant { $($field),* } => {
                            let mut once = exec.once();
                            Visitor::$method(&mut once, $(<$ty as Operand>::given($field)),*)?;
                            let next = once.next;
                            exec.was_once(next)
                        }
                        // There is no such step.
                        _ => OTHER,
                    }
                }
            }
        )*
        $(
            steps!(handle [$add(pair)] exec =>
                exec.mix(pair, steps!(first $kind $first_function pair), W::add));
            steps!(handle [$sub(pair)] exec =>
                exec.mix(pair, steps!(first $kind $first_function pair), W::sub));
            steps!(handle [$xor(pair)] exec =>
                exec.mix(pair, steps!(first $kind $first_function pair), W::bitxor));
            steps!(handle [$or(pair)] exec =>
                exec.mix(pair, steps!(first $kind $first_function pair), W::bitor));
        )*
        $(
            steps!(handle [$rtop(pair)] exec =>
                exec.map_and_test(pair, steps!(first $tested_kind $tested_function pair), W::is_not_zero));
            steps!(handle [$iszero(pair)] exec =>
                exec.map_and_test(pair, steps!(first $tested_kind $tested_function pair), W::is_zero));
            steps!(handle [$isneg(pair)] exec =>
                exec.map_and_test(pair, steps!(first $tested_kind $tested_function pair), W::is_negative));
        )*

        impl<W: Word, const C: usize> Handlers<W, C> {
            /// For any host, by kind.
            pub(super) const ANY: [Handler<W, C>; HANDLERS] = table([
                $(simd::on_any::<W, C, On<{ Kind::$variant as u8 }>>,)*
                $(
                    simd::on_any::<W, C, On<{ Kind::$add as u8 }>>,
                    simd::on_any::<W, C, On<{ Kind::$sub as u8 }>>,
                    simd::on_any::<W, C, On<{ Kind::$xor as u8 }>>,
                    simd::on_any::<W, C, On<{ Kind::$or as u8 }>>,
                )*
                $(
                    simd::on_any::<W, C, On<{ Kind::$rtop as u8 }>>,
                    simd::on_any::<W, C, On<{ Kind::$iszero as u8 }>>,
                    simd::on_any::<W, C, On<{ Kind::$isneg as u8 }>>,
                )*
                simd::on_any::<W, C, On<{ Kind::Row as u8 }>>,
                simd::on_any::<W, C, On<{ Kind::Other as u8 }>>,
            ], [
                $(simd::on_any::<W, C, OnceOn<{ Kind::$variant as u8 }>>,)*
            ]);

            /// For hosts with AVX2, by kind.
            #[cfg(target_arch = "x86_64")]
            pub(super) const AVX2: [Handler<W, C>; HANDLERS] = table([
                $(simd::on_avx2::<W, C, On<{ Kind::$variant as u8 }>>,)*
                $(
                    simd::on_avx2::<W, C, On<{ Kind::$add as u8 }>>,
                    simd::on_avx2::<W, C, On<{ Kind::$sub as u8 }>>,
                    simd::on_avx2::<W, C, On<{ Kind::$xor as u8 }>>,
                    simd::on_avx2::<W, C, On<{ Kind::$or as u8 }>>,
                )*
                $(
                    simd::on_avx2::<W, C, On<{ Kind::$rtop as u8 }>>,
                    simd::on_avx2::<W, C, On<{ Kind::$iszero as u8 }>>,
                    simd::on_avx2::<W, C, On<{ Kind::$isneg as u8 }>>,
                )*
                simd::on_avx2::<W, C, On<{ Kind::Row as u8 }>>,
                simd::on_avx2::<W, C, On<{ Kind::Other as u8 }>>,
            ], [
                $(simd::on_avx2::<W, C, OnceOn<{ Kind::$variant as u8 }>>,)*
            ]);
        }
    };
    (handle [$variant:ident $operands:tt] $exec:ident => $effect:expr) => {
        impl Handle for On<{ Kind::$variant as u8 }> {
            #[inline(always)]
            fn handle<W: Word, const C: usize>(
                $exec: &mut Exec<'_, W, C, Fast>,
                step: &Step,
            ) -> Flow {
                match *step {
                    steps!(of $variant $operands) => $effect,
                    // There is no such step.
                    _ => OTHER,
                }
            }
        }
    };
    (of $variant:ident { $($field:ident),* }) => { Step::$variant { $($field),* } };
    (of $variant:ident ($pair:ident)) => { Step::$variant($pair) };
    (pattern immediate $first:ident $t:ident $x:ident $y:ident $imm:ident) => {
        Op::$first { dst: $t, src: $x, imm: $imm }
    };
    (pattern register $first:ident $t:ident $x:ident $y:ident $imm:ident) => {
        Op::$first { dst: $t, a: $x, b: $y }
    };
    (operands immediate $x:ident $y:ident $imm:ident) => { ($x, $imm) };
    (operands register $x:ident $y:ident $imm:ident) => { ($y, 0i64) };
    (first immediate $method:ident $pair:ident) => {
        Immediate(W::from_u64(i64::from($pair.imm).cast_unsigned()), W::$method)
    };
    (first register $method:ident $pair:ident) => {
        Two(W::$method)
    };
}

harp_isa::for_each_instruction! { steps! {
    pairs {
        Shli shl_less immediate => ShliAdd ShliSub ShliXor ShliOr;
        Shri shr_less immediate => ShriAdd ShriSub ShriXor ShriOr;
        Muli mul immediate => MuliAdd MuliSub MuliXor MuliOr;
        Mul mul register => MulAdd MulSub MulXor MulOr;
        Add add register => AddAdd AddSub AddXor AddOr;
    }
    tests {
        Subi sub immediate => SubiRtop SubiIszero SubiIsneg;
        Andi bitand immediate => AndiRtop AndiIszero AndiIsneg;
        Sub sub register => SubRtop SubIszero SubIsneg;
        Xor bitxor register => XorRtop XorIszero XorIsneg;
    }
} }
