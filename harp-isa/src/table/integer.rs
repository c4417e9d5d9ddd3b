//! Integer arithmetic, logic, shifts and constants.
//!
//! The row format is explained in [`super`].

macro_rules! integer {
    ($next:ident; $callback:ident; [$($rows:tt)*] $($rest:ident)*) => { $next! { $callback; [$($rows)*
    /// `dst = -src`.
    base 0x05 Neg neg "neg" (dst: Def Gpr, src: Use Gpr) [];
    /// `dst = !src`, bit by bit.
    base 0x06 Not not "not" (dst: Def Gpr, src: Use Gpr) [];
    /// `dst = a & b`.
    base 0x07 And and "and" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a | b`.
    base 0x08 Or or "or" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a ^ b`.
    base 0x09 Xor xor "xor" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a + b`.
    base 0x0a Add add "add" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a - b`.
    base 0x0b Sub sub "sub" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a * b`, low word.
    base 0x0c Mul mul "mul" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a / b`, unsigned.
    base 0x0d Div div "div" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [DIVIDES];
    /// `dst = a % b`, unsigned.
    base 0x0e Mod mod_ "mod" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [DIVIDES];
    /// `dst = a << b`; 0 for counts at or above the word width.
    base 0x0f Shl shl "shl" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a >> b`: logical on 4-byte words, arithmetic on 8-byte words; counts at or above the
    /// word width give 0 or the sign.
    base 0x10 Shr shr "shr" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = src & imm`.
    base 0x11 Andi andi "andi" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [];
    /// `dst = src | imm`.
    base 0x12 Ori ori "ori" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [];
    /// `dst = src ^ imm`.
    base 0x13 Xori xori "xori" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [];
    /// `dst = src + imm`.
    base 0x14 Addi addi "addi" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [];
    /// `dst = src - imm`.
    base 0x15 Subi subi "subi" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [];
    /// `dst = src * imm`.
    base 0x16 Muli muli "muli" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [];
    /// `dst = src / imm`, unsigned.
    base 0x17 Divi divi "divi" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [DIVIDES];
    /// `dst = src % imm`, unsigned.
    base 0x18 Modi modi "modi" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [DIVIDES];
    /// `dst = src << imm`.
    base 0x19 Shli shli "shli" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [];
    /// `dst = src >> imm`, like `shr`.
    base 0x1a Shri shri "shri" (dst: Def Gpr, src: Use Gpr, imm: Imm Imm) [];
    /// `dst = imm`.
    base 0x25 Ldi ldi "ldi" (dst: Def Gpr, imm: Imm Imm) [];
    /// `dst = a >> b`, arithmetic on both word sizes.
    ext 0x0a Sra sra "sra" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a >> b`, logical on both word sizes.
    ext 0x0b Srl srl "srl" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// `dst = a / b`, signed; the most negative value divided by -1 wraps.
    ext 0x0c Divs divs "divs" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [DIVIDES];
    /// `dst = a % b`, signed, with the sign of `a`.
    ext 0x0d Mods mods "mods" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [DIVIDES];
    /// The high word of the signed product.
    ext 0x0e Mulh mulh "mulh" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    /// The high word of the unsigned product.
    ext 0x0f Mulhu mulhu "mulhu" (dst: Def Gpr, a: Use Gpr, b: Use Gpr) [];
    ] $($rest)* } };
}
pub(super) use integer;
