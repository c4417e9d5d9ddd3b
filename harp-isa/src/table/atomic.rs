//! Atomic read-modify-write of extension X.
//!
//! The row format is explained in [`super`].

macro_rules! atomic {
    ($next:ident; $callback:ident; [$($rows:tt)*] $($rest:ident)*) => { $next! { $callback; [$($rows)*
    /// `dst` = the old word; adds `value`.
    ext 0x20 AmoAdd amoadd "amoadd" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// `dst` = the old word; ands `value`.
    ext 0x21 AmoAnd amoand "amoand" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// `dst` = the old word; ors `value`.
    ext 0x22 AmoOr amoor "amoor" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// `dst` = the old word; xors `value`.
    ext 0x23 AmoXor amoxor "amoxor" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// `dst` = the old word; the signed minimum with `value`.
    ext 0x24 AmoMin amomin "amomin" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// `dst` = the old word; the signed maximum with `value`.
    ext 0x25 AmoMax amomax "amomax" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// `dst` = the old word; the unsigned minimum with `value`.
    ext 0x26 AmoMinu amominu "amominu" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// `dst` = the old word; the unsigned maximum with `value`.
    ext 0x27 AmoMaxu amomaxu "amomaxu" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// `dst` = the old word; stores `value`.
    ext 0x28 AmoSwap amoswap "amoswap" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC];
    /// If memory equals `dst`, stores `new`; `dst` = the old word.
    ext 0x29 Cas cas "cas" (dst: Mod Gpr, addr: Use Gpr, new: Use Gpr) [ATOMIC];
    /// `dst` = the old 4 bytes, zero-extended; adds `value`.
    ext 0x2e AmoAddw amoaddw "amoaddw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// `dst` = the old 4 bytes, zero-extended; ands `value`.
    ext 0x2f AmoAndw amoandw "amoandw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// `dst` = the old 4 bytes, zero-extended; ors `value`.
    ext 0x30 AmoOrw amoorw "amoorw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// `dst` = the old 4 bytes, zero-extended; xors `value`.
    ext 0x31 AmoXorw amoxorw "amoxorw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// `dst` = the old 4 bytes, zero-extended; the signed minimum with `value`.
    ext 0x32 AmoMinw amominw "amominw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// `dst` = the old 4 bytes, zero-extended; the signed maximum with `value`.
    ext 0x33 AmoMaxw amomaxw "amomaxw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// `dst` = the old 4 bytes, zero-extended; the unsigned minimum with `value`.
    ext 0x34 AmoMinuw amominuw "amominuw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// `dst` = the old 4 bytes, zero-extended; the unsigned maximum with `value`.
    ext 0x35 AmoMaxuw amomaxuw "amomaxuw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// `dst` = the old 4 bytes, zero-extended; stores `value`.
    ext 0x36 AmoSwapw amoswapw "amoswapw" (dst: Def Gpr, addr: Use Gpr, value: Use Gpr) [ATOMIC WORD8];
    /// If memory equals `dst`, stores `new`; `dst` = the old 4 bytes, zero-extended.
    ext 0x37 Casw casw "casw" (dst: Mod Gpr, addr: Use Gpr, new: Use Gpr) [ATOMIC WORD8];
    ] $($rest)* } };
}
pub(super) use atomic;
