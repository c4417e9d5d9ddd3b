//! Floating point: binary32 on 4-byte words, binary64 on 8-byte words.
//!
//! The row format is explained in [`super`].

macro_rules! float {
    ($next:ident; $callback:ident; [$($rows:tt)*] $($rest:ident)*) => { $next! { $callback; [$($rows)*
    /// Signed integer to float.
    base 0x33 Itof itof "itof" (dst: Def Gpr, src: Use Gpr) [FLOAT];
    /// Float to signed integer: truncates and saturates, NaN gives 0.
    base 0x34 Ftoi ftoi "ftoi" (dst: Def Gpr, src: Use Gpr) [FLOAT];
    /// `dst = a + b`.
    base 0x35 Fadd fadd "fadd" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// `dst = a - b`.
    base 0x36 Fsub fsub "fsub" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// `dst = a * b`.
    base 0x37 Fmul fmul "fmul" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// `dst = a / b`.
    base 0x38 Fdiv fdiv "fdiv" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// `dst = -src`.
    base 0x39 Fneg fneg "fneg" (dst: Def Gpr, src: Use Gpr) [FLOAT];
    /// `dst = (a == b)`, false if unordered.
    ext 0x13 Feqp feqp "feqp" (dst: Def Pred, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// `dst = (a < b)`, false if unordered.
    ext 0x14 Fltp fltp "fltp" (dst: Def Pred, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// `dst = (a <= b)`, false if unordered.
    ext 0x15 Flep flep "flep" (dst: Def Pred, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// The lesser of `a` and `b`; NaN if either is.
    ext 0x16 Fmin fmin "fmin" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// The greater of `a` and `b`; NaN if either is.
    ext 0x17 Fmax fmax "fmax" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// Square root.
    ext 0x18 Fsqrt fsqrt "fsqrt" (dst: Def Gpr, src: Use Gpr) [FLOAT];
    /// Absolute value: clears the sign.
    ext 0x19 Fabs fabs "fabs" (dst: Def Gpr, src: Use Gpr) [FLOAT];
    /// Rounds toward zero to an integral value.
    ext 0x1a Ftrunc ftrunc "ftrunc" (dst: Def Gpr, src: Use Gpr) [FLOAT];
    /// `acc = a * b + acc`, rounded once.
    ext 0x1b Ffma ffma "ffma" (acc: Mod Gpr, a: Use Gpr, b: Use Gpr) [FLOAT];
    /// The binary32 in the low half of `src` to binary64.
    ext 0x2a Fcvtsd fcvtsd "fcvtsd" (dst: Def Gpr, src: Use Gpr) [FLOAT WORD8];
    /// Binary64 to the binary32 in the low half of `dst`, high half zero.
    ext 0x2b Fcvtds fcvtds "fcvtds" (dst: Def Gpr, src: Use Gpr) [FLOAT WORD8];
    /// Unsigned integer to float.
    ext 0x2c Utof utof "utof" (dst: Def Gpr, src: Use Gpr) [FLOAT];
    /// Float to unsigned integer: truncates and saturates, NaN gives 0.
    ext 0x2d Ftou ftou "ftou" (dst: Def Gpr, src: Use Gpr) [FLOAT];
    /// Binary32 `dst = a + b` in the low halves.
    ext 0x38 Fadds fadds "fadds" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT WORD8];
    /// Binary32 `dst = a - b` in the low halves.
    ext 0x39 Fsubs fsubs "fsubs" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT WORD8];
    /// Binary32 `dst = a * b` in the low halves.
    ext 0x3a Fmuls fmuls "fmuls" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT WORD8];
    /// Binary32 `dst = a / b` in the low halves.
    ext 0x3b Fdivs fdivs "fdivs" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [FLOAT WORD8];
    /// Binary32 square root in the low half.
    ext 0x3c Fsqrts fsqrts "fsqrts" (dst: Def Gpr, src: Use Gpr) [FLOAT WORD8];
    /// Binary32 `acc = a * b + acc` in the low halves, rounded once.
    ext 0x3d Ffmas ffmas "ffmas" (acc: Mod Gpr, a: Use Gpr, b: Use Gpr) [FLOAT WORD8];
    ] $($rest)* } };
}
pub(super) use float;
