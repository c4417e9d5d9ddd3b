//! Jumps, calls, stops.
//!
//! The row format is explained in [`super`].

macro_rules! control {
    ($next:ident; $callback:ident; [$($rows:tt)*] $($rest:ident)*) => { $next! { $callback; [$($rows)*
    /// Does nothing.
    base 0x00 Nop nop "nop" () [];
    /// Stops the warp.
    base 0x2d Halt halt "halt" () [];
    /// Interrupt 0.
    base 0x2e Trap trap "trap" () [CONTROL];
    /// `link` = next pc, then jumps to next pc + `rel`.
    base 0x1b Jali jali "jali" (link: Def Gpr, rel: Imm Rel) [CONTROL];
    /// `link` = next pc, then jumps to `target`, which is read after the link is written.
    base 0x1c Jalr jalr "jalr" (link: Def Gpr, target: Use Gpr) [CONTROL];
    /// Jumps to next pc + `rel`.
    base 0x1d Jmpi jmpi "jmpi" (rel: Imm Rel) [CONTROL];
    /// Jumps to `target`.
    base 0x1e Jmpr jmpr "jmpr" (target: Use Gpr) [CONTROL];
    ] $($rest)* } };
}
pub(super) use control;
