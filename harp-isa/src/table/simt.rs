//! Warps, lanes, the divergence stack, votes and shuffles.
//!
//! The row format is explained in [`super`].

macro_rules! simt {
    ($next:ident; $callback:ident; [$($rows:tt)*] $($rest:ident)*) => { $next! { $callback; [$($rows)*
    /// Copies the executing lane's general registers to the lane numbered `lane`.
    base 0x1f Clone clone "clone" (lane: Use Gpr) [CONTROL];
    /// `jali` with lanes 0 to `lanes` - 1 active; 0 stops the warp.
    base 0x20 Jalis jalis "jalis" (link: Def Gpr, lanes: Use Gpr, rel: Imm Rel) [CONTROL];
    /// `jalr` with lanes 0 to `lanes` - 1 active; 0 stops the warp.
    base 0x21 Jalrs jalrs "jalrs" (link: Def Gpr, lanes: Use Gpr, target: Use Gpr) [CONTROL];
    /// Jumps to `target` with only lane 0 active.
    base 0x22 Jmprt jmprt "jmprt" (target: Use Gpr) [CONTROL];
    /// Starts the lowest warp that was never started, at `pc`, with `src` in that warp's register `dst`.
    base 0x3a Wspawn wspawn "wspawn" (dst: Def Gpr, pc: Use Gpr, src: Use Gpr) [ONCE_PER_WARP];
    /// Pushes the active mask; if lanes disagree, also pushes and deactivates those whose predicate is false.
    base 0x3b Split split "split" () [ONCE_PER_WARP];
    /// Pops an entry of the divergence stack.
    base 0x3c Join join "join" () [ONCE_PER_WARP];
    /// The warp waits until exactly `warps` warps wait at barrier `id`.
    base 0x3d Bar bar "bar" (id: Use Gpr, warps: Use Gpr) [ONCE_PER_WARP];
    /// `dst` = the lane's number (`csr` 0).
    base 0x3e Tid tid "tid" (dst: Def Gpr) [EXTENSION];
    /// `dst` = control register `index`: 0 lane, 1 warp, 2 core, 3 lanes, 4 warps, 5 cores,
    /// 6 instructions issued by the warp, 8 and 9 words of the active mask.
    ext 0x00 Csr csr "csr" (dst: Def Gpr, index: Imm Imm) [];
    /// `dst` = word `index` of the mask of executing lanes where `src` is true.
    ext 0x1c Ballot ballot "ballot" (dst: Def Gpr, src: Use Pred, index: Imm Imm) [CROSS_LANE];
    /// `dst` = whether `src` is true in any executing lane.
    ext 0x1d Anyp anyp "anyp" (dst: Def Pred, src: Use Pred) [CROSS_LANE];
    /// `dst` = whether `src` is true in all executing lanes.
    ext 0x1e Allp allp "allp" (dst: Def Pred, src: Use Pred) [CROSS_LANE];
    /// `dst` = `value` of the lane numbered `lane`; the lane's own if that is out of range or not
    /// executing.
    ext 0x1f Shfl shfl "shfl" (dst: Def Gpr, value: Use Gpr, lane: Use Gpr) [CROSS_LANE];
    ] $($rest)* } };
}
pub(super) use simt;
