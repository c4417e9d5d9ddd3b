//! Shared registers: what is the same in all lanes is computed once, on machines that have registers for it.
//!
//! A stage on VCode between if-conversion and allocation, for [machines with shared
//! registers](harp_isa::ArchId::with_shared). An instruction with a shared destination is executed once for all lanes
//! that execute it, and other instructions read a shared register as one value (Lee et al., "Convergence and
//! scalarization for data-parallel architectures", CGO 2013, sections 2.3 and 3). The stage
//!
//! 1. finds out which registers hold the same value in all lanes that execute their definition ([`uniform`]), under
//!    which splits each block runs ([`nesting`]), and chooses among them ([`candidates`]);
//! 2. gives as many as possible a shared register for life ([`colour`]). They interfere along what the *warp* executes
//!    ([`liveness`]): the sides of a split run one after the other, so what one side writes, the other finds;
//! 3. mends what the machine would take otherwise ([`rewrite`]): a plain access of a lane's own register at a shared
//!    address would access a row.
//!
//! # Why it is right
//!
//! A lane reads a shared register some time after the warp executed the definition. Between both, along what the warp
//! executes, no other definition writes it: that is what colours are for. The definition itself may have been executed
//! again, but then by this lane, too: until it leaves the splits that the definition is under, it is only ever
//! inactive under splits that are opened inside of them, and the stack of open splits at a block is always the same,
//! so that no block is executed both outside and inside of such a split. Where a lane may have left one of these
//! splits, the value does not count as uniform any more, and nothing that is used there is shared.
//!
//! Loads from a uniform address are a special case: what others write meanwhile makes them differ from lane to lane
//! unless they are executed once. So a load whose result is used as uniform is always executed so, if need be through a
//! register that is kept free for that.
//!
//! Calls change all shared registers, and arguments and results are in the lanes' own.

use harp_isa::ArchId;

use crate::abi::EntryKind;
use crate::vcode::VCode;

mod candidates;
mod check;
mod colour;
mod liveness;
mod nesting;
mod rewrite;
#[cfg(test)]
mod tests;
mod uniform;

pub(crate) use check::check;
use colour::Palette;
use nesting::Nesting;
use uniform::Uniform;

/// Gives registers of `vcode` a place among the shared registers of `arch`, if it has any.
pub(crate) fn share(vcode: &mut VCode, arch: ArchId, entry: EntryKind) {
    let Some(palette) = Palette::new(arch) else { return };
    let Some(nesting) = Nesting::compute(vcode) else { return };
    let uniform = Uniform::compute(vcode, &nesting, entry);
    let candidates = candidates::choose(vcode, &nesting, &uniform, &palette);
    let live = liveness::Live::compute(vcode, &nesting, &candidates);
    vcode.shared = colour::colour(vcode, live, &candidates, &palette);
    rewrite::rewrite(vcode, &uniform, &palette);
}
