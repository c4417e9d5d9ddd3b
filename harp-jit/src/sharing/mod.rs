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
//!    ([`liveness`]): the sides of a split run one after the other, so what one side writes, the other finds. Both know of the
//!    code only where candidates are mentioned ([`mentions`]);
//! 3. lets accesses whose addresses follow each other from lane to lane be of rows ([`rows`]), where the address gets a
//!    shared register;
//! 4. mends what the machine would take otherwise ([`rewrite`]): a plain access of a lane's own register at a shared
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
//! register that is kept free for that. Divergence management relies on this, too, where loads decide branches: it has
//! lanes exchange what they load, and there is nothing to exchange where one load is for all ([`once`]).
//!
//! Positions in the grid follow each other from lane to lane where launches walk by rows of the grid: for kernels to which
//! work-groups mean nothing.
//!
//! Functions change only the lower half of the shared registers, so that kernels keep values in the upper half over calls.
//! Arguments and results are in the lanes' own.

use harp_isa::ArchId;
use hashbrown::HashSet;

use crate::abi::EntryKind;
use crate::vcode::{Reg, VCode};

mod candidates;
mod check;
mod colour;
mod entry;
mod explain;
mod liveness;
mod mentions;
mod nesting;
mod once;
mod rewrite;
mod rows;
#[cfg(test)]
mod tests;
mod uniform;

pub(crate) use check::check;
use colour::Palette;
use entry::Arrivals;
pub use explain::ValueReport;
pub(crate) use explain::explain;
use mentions::Mentions;
use nesting::Nesting;
use uniform::Uniform;

/// How often rows are looked for again without those that got no shared register.
const ROW_TRIALS: usize = 4;

/// What is known of a function beside its code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) arch: ArchId,
    pub(crate) entry: EntryKind,
    /// Whether the lanes of a warp have positions in the grid that follow each other in the first dimension, and the
    /// same in the others.
    pub(crate) by_rows: bool,
}

/// Gives registers of the function a place among the shared registers of its machine, if that has any.
pub(crate) fn share(vcode: &mut VCode, setting: Setting) {
    let Setting { arch, entry, .. } = setting;
    let Some(palette) = Palette::new(arch, entry) else { return };
    let Some(nesting) = Nesting::compute(vcode) else { return };
    let mut uniform = Uniform::compute(vcode, &nesting, setting);
    if once::fold(vcode, &nesting, &uniform) {
        uniform = Uniform::compute(vcode, &nesting, setting);
    }
    let facts = rows::Facts { nesting: &nesting, uniform: &uniform, setting };
    let strides = rows::Strides::compute(vcode, &facts);
    let mut left_out = HashSet::new();
    for _ in 0..ROW_TRIALS {
        let Some((mut tried, made)) = rows::find(vcode, arch, &strides, &left_out) else { break };
        let arrivals = Arrivals::new(&tried, arch, entry, made.position);
        let uses = Uses { arrivals: &arrivals, relied_on: &made.relied_on };
        let uniform = Uniform::compute(&tried, &nesting, setting);
        place(&mut tried, &nesting, uniform, &palette, uses);
        let lost = made.lost(&tried);
        if lost.is_empty() {
            arrivals.settle(&mut tried, arch, &nesting);
            *vcode = tried;
            return;
        }
        left_out.extend(lost);
    }
    let arrivals = Arrivals::new(vcode, arch, entry, None);
    let uses = Uses { arrivals: &arrivals, relied_on: &HashSet::new() };
    place(vcode, &nesting, uniform, &palette, uses);
    arrivals.settle(vcode, arch, &nesting);
}

/// What is known of single registers.
#[derive(Clone, Copy)]
struct Uses<'a> {
    arrivals: &'a Arrivals,
    /// Registers in which lanes must have the same, beside those that others are computed from for all.
    relied_on: &'a HashSet<Reg>,
}

/// Places registers, and mends what that breaks.
///
/// Where the result of a load from a uniform address gets no shared register, it is loaded into one that is free there
/// and copied. Only if there is none, one is kept free for that.
fn place(
    vcode: &mut VCode,
    nesting: &Nesting,
    mut uniform: Uniform,
    palette: &Palette,
    Uses { arrivals, relied_on }: Uses<'_>,
) {
    let mut loads = rewrite::Loads::default();
    for kept_free in [None, None, palette.spare()] {
        let candidates = candidates::choose(vcode, nesting, &uniform, palette, arrivals, &loads);
        let mentions = Mentions::new(vcode, &candidates);
        let live = liveness::Live::compute(vcode, nesting, &candidates, &mentions);
        let wishes = colour::Wishes { arrivals, first: &loads.loaded, kept_free };
        vcode.shared = colour::colour(vcode, live, &candidates, &mentions, palette, &wishes);
        if !loads.divide(vcode, &mut uniform, relied_on, kept_free) {
            break;
        }
    }
    rewrite::rewrite(vcode);
}
