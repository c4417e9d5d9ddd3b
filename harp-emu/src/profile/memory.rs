//! Counts of how instructions use memory.

use std::num::NonZeroU32;

use harp_isa::Opcode;

use super::Histogram;
use crate::observe::MemoryAccess;

/// How an instruction used memory.
///
/// Addresses are those that the guest computes, the console's included: before any translation, and
/// whether or not there is memory or a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct MemoryCounts {
    /// The instruction.
    #[cfg_attr(feature = "json", serde(serialize_with = "crate::json::opcode"))]
    pub opcode: Opcode,
    /// How many lanes executed it each time, 0 if it was skipped. The sum is the number of accesses.
    pub lanes: Histogram,
    /// How many different addresses its lanes had each time it was not skipped.
    pub addresses: Histogram,
    /// How many different segments of memory its lanes used each time it was not skipped. A segment has
    /// [`segment_bytes`](crate::Profile::segment_bytes) bytes and starts at a multiple of that; an access may
    /// lie in several.
    pub segments: Histogram,
}

impl MemoryCounts {
    pub(super) fn new(opcode: Opcode) -> MemoryCounts {
        MemoryCounts {
            opcode,
            lanes: Histogram::default(),
            addresses: Histogram::default(),
            segments: Histogram::default(),
        }
    }

    pub(super) fn count(&mut self, access: &MemoryAccess, segment_bytes: NonZeroU32) {
        self.lanes.add(access.lanes.len());
        if access.lanes.is_empty() {
            return;
        }
        self.addresses.add(distinct(access.lanes.iter().map(|at| at.address)));
        let size = u64::from(segment_bytes.get());
        self.segments.add(distinct(access.lanes.iter().flat_map(|at| {
            // An access at the end of the address space is cut off there and does not wrap around.
            let last = at.address.saturating_add(u64::from(at.bytes) - 1);
            at.address / size..=last / size
        })));
    }

    pub(super) fn merge(&mut self, other: &MemoryCounts) {
        self.lanes.merge(&other.lanes);
        self.addresses.merge(&other.addresses);
        self.segments.merge(&other.segments);
    }
}

/// How many different values there are.
fn distinct(values: impl Iterator<Item = u64>) -> usize {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}
