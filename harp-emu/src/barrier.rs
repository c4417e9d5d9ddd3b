//! Which lanes of a warp must come to a barrier together.

use harp_isa::{ArchId, Op};

use crate::config::DivergentBarriers;
use crate::inspect::StackEntry;

/// The lanes that must execute a `bar` together, on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarrierRule {
    /// Any may.
    Any,
    /// All that were last activated together must, except those that a `split` holds back which pushed the lowest entry of
    /// the divergence stack, if it is this one.
    All {
        /// The address behind that `split`.
        behind_outer_split: Option<u64>,
    },
}

impl BarrierRule {
    pub(crate) fn new(divergent: DivergentBarriers, arch: ArchId) -> BarrierRule {
        match divergent {
            DivergentBarriers::Allow => BarrierRule::Any,
            DivergentBarriers::Trap { outer_split } => {
                let behind =
                    |split: u64| split.wrapping_add(split_bytes(arch)) & arch.word().mask();
                BarrierRule::All { behind_outer_split: outer_split.map(behind) }
            }
        }
    }

    /// The lanes that must, of a warp of which so many were last activated, and with these two lowest entries of the
    /// divergence stack. `None` if any may.
    #[inline(always)]
    pub fn expected(self, activated: u8, lowest: [Option<StackEntry>; 2]) -> Option<u64> {
        let BarrierRule::All { behind_outer_split } = self else { return None };
        let ours = |entry: Option<StackEntry>| {
            entry.filter(|entry| Some(entry.behind) == behind_outer_split)
        };
        // No method of arrays, which would be called: this is asked for each warp at each barrier.
        let [first, second] = lowest;
        let Some(all) = ours(first) else {
            return Some(u64::MAX >> (64 - u32::from(activated.max(1))));
        };
        let held = ours(second).filter(|entry| entry.resume.is_some());
        Some(held.map_or(all.mask, |held| all.mask & !held.mask))
    }
}

/// Bytes of a `split`.
fn split_bytes(arch: ArchId) -> u64 {
    let mut bytes = Vec::new();
    harp_isa::encode(&Op::Split {}.into(), arch, &mut bytes).expect("every machine has it");
    bytes.len() as u64
}
