//! How a grid is dealt out to the warps of a machine.

use harp_isa::abi::{LaneField, stack_reserve_bytes};
use harp_isa::{ArchId, WordSize};

use super::LaunchError;
use crate::library::Descriptor;

/// The numbers that the runtime library needs about a grid, and the stacks that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Warps to start on each core.
    pub(super) warps: u64,
    items: u64,
    lanes: u64,
    stride: u64,
    spatial: bool,
}

impl Plan {
    /// A plan for `grid` on `cores` cores of `arch`; `None` if the grid holds nothing.
    ///
    /// # Errors
    ///
    /// If the grid is too large: work-item numbers, also those of surplus lanes and of a stride
    /// beyond the end, must be positive as signed words, so that differences have a sign.
    pub(super) fn new(
        grid: [u64; 3],
        arch: ArchId,
        cores: u16,
    ) -> Result<Option<Plan>, LaunchError> {
        let [x, y, z] = grid;
        if x == 0 || y == 0 || z == 0 {
            return Ok(None);
        }
        let lanes = u64::from(arch.lanes());
        let cores = u64::from(cores);
        let machine = cores * u64::from(arch.warps()) * lanes;
        let limit = (arch.word().mask() >> 1) - machine - lanes;
        let items = x.checked_mul(y).and_then(|plane| plane.checked_mul(z));
        let Some(items) = items.filter(|&items| items <= limit) else {
            return Err(LaunchError::GridTooLarge { given: grid, limit });
        };
        let chunks = items.div_ceil(lanes);
        let warps = chunks.div_ceil(cores).min(arch.warps().into());
        let stride = cores * warps * lanes;
        Ok(Some(Plan { warps, items, lanes, stride, spatial: y > 1 || z > 1 }))
    }

    /// Lanes that run work-items, hence stacks.
    pub(super) fn stacks(&self) -> u64 {
        self.rounded().min(self.stride)
    }

    /// The words of the launch descriptor for a kernel at address `kernel` and stacks of
    /// `stack_bytes`, a power of two, from `stacks` on.
    pub(super) fn descriptor(
        &self,
        kernel: u64,
        stacks: u64,
        stack_bytes: u64,
        word: WordSize,
    ) -> [u64; Descriptor::COUNT] {
        let mut words = [0; Descriptor::COUNT];
        let mut set = |word: Descriptor, value| words[word as usize] = value;
        set(Descriptor::Warps, self.warps);
        set(Descriptor::Items, self.items);
        set(Descriptor::Full, self.items / self.lanes * self.lanes);
        set(Descriptor::Rounded, self.rounded());
        set(Descriptor::Stride, self.stride);
        set(Descriptor::StackShift, stack_bytes.ilog2().into());
        set(Descriptor::Stacks, stacks);
        set(Descriptor::StackTop, stack_bytes - u64::from(word.bytes()));
        set(Descriptor::Spatial, self.spatial.into());
        let limit = LaneField::block_bytes(word) + stack_reserve_bytes(word);
        set(Descriptor::StackLimit, limit.into());
        set(Descriptor::Kernel, kernel);
        words
    }

    fn rounded(&self) -> u64 {
        self.items.next_multiple_of(self.lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arch(id: &str) -> ArchId {
        id.parse().unwrap()
    }

    #[test]
    fn an_extent_of_zero_is_an_empty_grid_whatever_the_others() {
        for grid in [[0, 1, 1], [u64::MAX, 0, u64::MAX], [1, u64::MAX, 0]] {
            assert_eq!(Plan::new(grid, ArchId::HARP32, 1).unwrap(), None);
        }
    }

    #[test]
    fn small_grids_start_no_more_warps_than_they_have_chunks() {
        let warps = |items, cores| {
            Plan::new([items, 1, 1], arch("4w8/8/16/16"), cores).unwrap().unwrap().warps
        };
        assert_eq!((warps(1, 1), warps(16, 1), warps(17, 1), warps(1 << 20, 1)), (1, 1, 2, 16));
        assert_eq!((warps(33, 2), warps(1, 4), warps(16 * 5, 4)), (2, 1, 2));
    }

    #[test]
    fn grids_are_limited_by_the_signed_word() {
        let arch = arch("4w8/8/16/16");
        let limit = (1 << 31) - 1 - 2 * 16 * 16 - 16;
        assert!(Plan::new([limit, 1, 1], arch, 2).is_ok());
        for grid in [[limit + 1, 1, 1], [1 << 16, 1 << 16, 1], [u64::MAX, u64::MAX, 2]] {
            let error = Plan::new(grid, arch, 2).unwrap_err();
            assert!(
                matches!(error, LaunchError::GridTooLarge { given, limit: l } if given == grid && l == limit),
                "{error:?}"
            );
        }
    }
}
