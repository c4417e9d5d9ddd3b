//! How masks over lanes and registers are written, in text and in JSON.

use std::fmt;

use harp_isa::{ArchId, Operand};

/// A mask over the lanes of a machine, printed as a `0` or a `1` a lane, **lane 0 first**.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LaneMask {
    /// Lane 0 in the lowest bit.
    pub(crate) mask: u64,
    /// How many lanes the machine has.
    pub(crate) lanes: u8,
}

impl fmt::Display for LaneMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (0..self.lanes).try_for_each(|lane| write!(f, "{}", self.mask >> lane & 1))
    }
}

/// The numbers of the lanes in a mask, lowest first.
#[inline(always)]
pub(crate) fn lanes_of(mut mask: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let lane = mask.trailing_zeros() as u8;
        (mask != 0).then(|| {
            mask &= mask - 1;
            lane
        })
    })
}

/// A register by its name in assembly text for a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register(pub(crate) Operand, pub(crate) ArchId);

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Operand::Gpr(reg) => self.1.gpr_name(reg).fmt(f),
            Operand::Pred(pred) => self.1.pred_name(pred).fmt(f),
            Operand::Imm(imm) => write!(f, "#{imm:#x}"),
        }
    }
}
