//! Predicates: tests, logic, comparisons.
//!
//! The row format is explained in [`super`].

macro_rules! predicate {
    ($next:ident; $callback:ident; [$($rows:tt)*] $($rest:ident)*) => { $next! { $callback; [$($rows)*
    /// `dst = (src != 0)`.
    base 0x26 Rtop rtop "rtop" (dst: Def Pred, src: Use Gpr) [];
    /// `dst = a & b`.
    base 0x27 Andp andp "andp" (dst: Def Pred, a: Use Pred, b: Use Pred) [];
    /// `dst = a | b`.
    base 0x28 Orp orp "orp" (dst: Def Pred, a: Use Pred, b: Use Pred) [];
    /// `dst = a ^ b`.
    base 0x29 Xorp xorp "xorp" (dst: Def Pred, a: Use Pred, b: Use Pred) [];
    /// `dst = !src`.
    base 0x2a Notp notp "notp" (dst: Def Pred, src: Use Pred) [];
    /// `dst` = the top bit of `src`.
    base 0x2b Isneg isneg "isneg" (dst: Def Pred, src: Use Gpr) [];
    /// `dst = (src == 0)`.
    base 0x2c Iszero iszero "iszero" (dst: Def Pred, src: Use Gpr) [];
    /// `dst = (a == b)`.
    ext 0x10 Eqp eqp "eqp" (dst: Def Pred, a: Use Gpr, b: Use Gpr) [];
    /// `dst = (a < b)`, signed.
    ext 0x11 Ltp ltp "ltp" (dst: Def Pred, a: Use Gpr, b: Use Gpr) [];
    /// `dst = (a < b)`, unsigned.
    ext 0x12 Ltup ltup "ltup" (dst: Def Pred, a: Use Gpr, b: Use Gpr) [];
    /// `dst = src ? 1 : 0`.
    ext 0x3e Ptor ptor "ptor" (dst: Def Gpr, src: Use Pred) [];
    ] $($rest)* } };
}
pub(super) use predicate;
