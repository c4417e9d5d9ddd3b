//! What barriers and fences order.

use harp_isa::abi::Order;

use crate::races::Stamp;

/// What a work-item's barriers and fences have ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ordered {
    /// The barriers that it had passed with the last one that ordered accesses to its group's memory.
    group: u32,
    /// The same of all other memory.
    other: u32,
    /// Bits of [`Order`]: what fences have ordered since the last barrier. That one makes it seen by others.
    fenced: u64,
}

impl Ordered {
    /// The work-item, whose barriers are counted in `stamp`, has ordered what the bits of [`Order`] say.
    pub(crate) fn order(&mut self, stamp: &mut Stamp, bits: u64) {
        self.fenced |= bits;
        if bits & Order::BARRIER == 0 {
            return;
        }
        stamp.barriers += 1;
        if self.fenced & Order::GROUP != 0 {
            self.group = stamp.barriers;
        }
        if self.fenced & Order::OTHER != 0 {
            self.other = stamp.barriers;
        }
        self.fenced = 0;
    }

    /// Barriers that the work-item had passed with the last one that ordered accesses to such memory.
    pub(crate) fn to(self, is_of_group: bool) -> u32 {
        if is_of_group { self.group } else { self.other }
    }
}
