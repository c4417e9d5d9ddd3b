//! Float operations that only 8-byte machines have: on binary32 numbers in the low half of a word.

use crate::word::Word;

/// The low 4 bytes.
#[inline(always)]
fn low<W: Word>(word: W) -> u32 {
    word.to_u64() as u32
}

/// Defines operations on the low 4 bytes of words, whose results are zero-extended.
macro_rules! low {
    ($($name:ident: $operation:path, ($($x:ident),*);)*) => {
        $(
            #[inline(always)]
            pub(super) fn $name<W: Word>($($x: W),*) -> W {
                W::from_u64($operation($(low($x)),*).into())
            }
        )*
    };
}

low! {
    fadds: Word::fadd, (a, b);
    fsubs: Word::fsub, (a, b);
    fmuls: Word::fmul, (a, b);
    fdivs: Word::fdiv, (a, b);
    fsqrts: Word::fsqrt, (a);
    ffmas: Word::ffma, (acc, a, b);
}

#[inline(always)]
pub(super) fn fcvtsd<W: Word>(a: W) -> W {
    W::from_u64(f64::from(f32::from_bits(low(a))).to_bits())
}

#[inline(always)]
pub(super) fn fcvtds<W: Word>(a: W) -> W {
    W::from_u64((f64::from_bits(a.to_u64()) as f32).to_bits().into())
}
