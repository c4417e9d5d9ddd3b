//! Plans for how a grid is distributed over the warps of a machine.

use harp_isa::abi::{
    ArgumentBlock, GroupField, LaneField, LaunchMemory, stack_reserve_bytes, stack_skew_bytes,
};
use harp_isa::{ArchId, WordSize};
use harp_library::{Descriptor, Walk};
use harp_monitor::GroupPlaces;

use crate::config::LaunchConfig;
use crate::error::LaunchError;
use crate::heap::ALIGNMENT;
use crate::kernel::KernelParts;

/// The numbers that the runtime library needs about a grid, and the memory that lanes and work-groups
/// need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Warps to start on each core.
    pub(super) warps: u64,
    grid: [u64; 3],
    /// Work-items, or work-groups, of the grid.
    items: u64,
    /// The lanes of all warps, or the distance from a place's group to its next.
    stride: u64,
    /// Lanes of a warp, and lanes of all warps that have work.
    lanes: u64,
    lanes_with_work: u64,
    groups: Option<Groups>,
    walk: Walk,
    /// The length of a row, with its surplus lanes in a walk by rows.
    row: u64,
}

/// The work-groups of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Groups {
    /// Work-items of a group in each dimension.
    extent: [u64; 3],
    /// Groups in each dimension.
    count: [u64; 3],
    /// Warps of a group.
    warps: u64,
    /// Groups that a core runs at a time.
    places: u64,
}

/// Addresses that a launch needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// The address of the kernel.
    pub(super) kernel: u64,
    /// The address of the first lane's stack.
    pub(super) stacks: u64,
    /// The size of a stack, a power of two.
    pub(super) stack_bytes: u64,
    /// The address of the memory for work-groups, of [`GroupSpace::bytes`] bytes.
    pub(super) group_space: u64,
}

/// The memory of the places for work-groups, one after the other. Each place has the control blocks of its
/// warps, then its group's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GroupSpace {
    /// Bytes of the control blocks.
    blocks: u64,
    /// Bytes of a place.
    place: u64,
    /// Bytes of all places.
    pub(super) bytes: u64,
}

/// The walk of a kernel's launches that have groups or have not. If groups make no difference to it, they are ignored.
pub(super) fn walk(kernel: KernelParts<'_>, has_groups: bool) -> Walk {
    match has_groups && kernel.sees_groups {
        true => Walk::Groups,
        false if kernel.by_rows => Walk::Rows,
        false => Walk::Chunks,
    }
}

impl Plan {
    /// A plan for a launch on `cores` cores of `arch`; `None` if the grid is empty.
    ///
    /// # Errors
    ///
    /// If the grid is too large: work-item numbers, also those of surplus lanes and of a stride
    /// beyond the end, must be positive as signed words, so that differences have a sign. If a work-group
    /// is empty, or has more work-items than a core has lanes.
    pub(super) fn new(
        config: LaunchConfig,
        arch: ArchId,
        cores: u16,
        walk: Walk,
    ) -> Result<Option<Plan>, LaunchError> {
        let lanes = u64::from(arch.lanes());
        let cores = u64::from(cores);
        let core = u64::from(arch.warps()) * lanes;
        let grid = config.grid;
        if let Some(group) = config.group {
            check_group(group, core)?;
        }
        if grid.contains(&0) {
            return Ok(None);
        }
        let limit = (arch.word().mask() >> 1) - cores * core - lanes;
        let is_line = grid[1..] == [1, 1];
        let row = match walk {
            Walk::Rows if !is_line => grid[0].checked_next_multiple_of(lanes),
            _ => Some(grid[0]),
        };
        let items = row.and_then(|row| volume([row, grid[1], grid[2]]));
        let Some((row, items)) = row.zip(items.filter(|&items| items <= limit)) else {
            return Err(LaunchError::GridTooLarge { given: grid, limit });
        };
        let limit = arch.word().mask();
        let end = |(extent, offset): (&u64, u64)| extent.checked_add(offset);
        if !grid.iter().zip(config.offset).all(|dim| end(dim).is_some_and(|end| end <= limit)) {
            return Err(LaunchError::OffsetTooLarge { given: config.offset, grid, limit });
        }
        let mut plan = Plan {
            warps: 0,
            grid,
            items,
            stride: 0,
            lanes,
            lanes_with_work: 0,
            groups: None,
            walk,
            row,
        };
        match config.group.filter(|_| walk == Walk::Groups) {
            None => plan.deal_chunks(arch, cores),
            Some(group) => plan.deal_groups(group, arch, cores),
        }
        Ok(Some(plan))
    }

    fn deal_chunks(&mut self, arch: ArchId, cores: u64) {
        let chunks = self.items.div_ceil(self.lanes);
        self.warps = chunks.div_ceil(cores).min(arch.warps().into());
        self.stride = cores * self.warps * self.lanes;
        self.lanes_with_work = self.rounded().min(self.stride);
    }

    /// In each dimension, a group that is larger than the grid is as large as the grid.
    fn deal_groups(&mut self, extent: [u64; 3], arch: ArchId, cores: u64) {
        let count = std::array::from_fn(|dim| self.grid[dim].div_ceil(extent[dim]));
        let largest: u64 =
            self.grid.iter().zip(extent).map(|(&all, group)| all.min(group)).product();
        let warps = largest.div_ceil(self.lanes);
        self.items = count.iter().product();
        let places = self.items.div_ceil(cores).min(u64::from(arch.warps()) / warps);
        self.warps = places * warps;
        self.stride = cores * places;
        self.lanes_with_work = self.items.min(self.stride) * warps * self.lanes;
        self.groups = Some(Groups { extent, count, warps, places });
    }

    /// The walk over the grid.
    pub(super) fn walk(&self) -> Walk {
        self.walk
    }

    /// Lanes that run work-items, hence stacks.
    pub(super) fn stacks(&self) -> u64 {
        self.lanes_with_work
    }

    /// The memory for work-groups with `group_bytes` each; `None` if there are no groups.
    pub(super) fn group_space(&self, group_bytes: u32, word: WordSize) -> Option<GroupSpace> {
        let Groups { warps, .. } = self.groups?;
        let blocks = warps * u64::from(GroupField::block_bytes(word));
        let blocks = blocks.next_multiple_of(ALIGNMENT);
        let place = blocks + u64::from(group_bytes).next_multiple_of(ALIGNMENT);
        let bytes = place.saturating_mul(self.items.min(self.stride));
        Some(GroupSpace { blocks, place, bytes })
    }

    /// Where the memory of groups with `group_bytes` each is.
    pub(super) fn group_places(
        &self,
        places: Places,
        space: GroupSpace,
        group_bytes: u32,
    ) -> GroupPlaces {
        let (warps, of_core) = self.groups.map_or((1, 1), |groups| (groups.warps, groups.places));
        GroupPlaces {
            first: places.group_space + space.blocks,
            distance: space.place,
            bytes: group_bytes.into(),
            of_core,
            warps,
        }
    }

    /// The words about the memory that lanes and work-groups have.
    pub(super) fn launch_memory(
        &self,
        places: Places,
        space: Option<GroupSpace>,
    ) -> [u64; LaunchMemory::ALL.len()] {
        let Places { stacks, stack_bytes, group_space, .. } = places;
        let group_bytes = space.map_or(0, |space| space.bytes);
        let mut words = [0; _];
        for (word, value) in [
            (LaunchMemory::Stacks, stacks),
            (LaunchMemory::StacksEnd, stacks + self.stacks() * stack_bytes),
            (LaunchMemory::Groups, group_space),
            (LaunchMemory::GroupsEnd, group_space + group_bytes),
        ] {
            words[word as usize] = value;
        }
        words
    }

    /// The words before the arguments.
    pub(super) fn header(&self) -> [u64; ArgumentBlock::HEADER_WORDS as usize] {
        let (extent, count) = self.groups.map_or(([0; 3], [0; 3]), |g| (g.extent, g.count));
        let mut words = [0; _];
        for (word, value) in words.iter_mut().zip([self.grid, extent, count].as_flattened()) {
            *word = *value;
        }
        words
    }

    /// The words of the launch descriptor.
    pub(super) fn descriptor(
        &self,
        places: Places,
        space: Option<GroupSpace>,
        word: WordSize,
    ) -> [u64; Descriptor::COUNT] {
        let mut words = [0; Descriptor::COUNT];
        let mut set = |word: Descriptor, value| words[word as usize] = value;
        set(Descriptor::Warps, self.warps);
        set(Descriptor::Items, self.items);
        set(Descriptor::Stride, self.stride);
        set(Descriptor::StackShift, places.stack_bytes.ilog2().into());
        set(Descriptor::Stacks, places.stacks);
        set(Descriptor::StackTop, places.stack_bytes - u64::from(word.bytes()));
        set(Descriptor::StackSkew, stack_skew_bytes(places.stack_bytes));
        set(Descriptor::Spatial, (self.grid[1..] != [1, 1]).into());
        let limit = LaneField::block_bytes(word) + stack_reserve_bytes(word);
        set(Descriptor::StackLimit, limit.into());
        set(Descriptor::Kernel, places.kernel);
        match self.groups.zip(space) {
            None => {
                if self.walk == Walk::Rows {
                    set(Descriptor::ROW, self.row);
                }
                let (chunks, warps) = (self.rounded() / self.lanes, self.stride / self.lanes);
                set(Descriptor::RUN, chunks / warps * self.lanes);
                set(Descriptor::LONGER, chunks % warps * self.lanes);
                set(Descriptor::Full, self.items / self.lanes * self.lanes);
                set(Descriptor::Rounded, self.rounded());
            }
            Some((groups, space)) => {
                set(Descriptor::Rounded, self.lanes_with_work);
                set(Descriptor::GroupWarps, groups.warps);
                set(Descriptor::CoreGroups, groups.places);
                set(Descriptor::GroupBytes, space.place);
                set(Descriptor::GroupSpace, places.group_space + space.blocks);
            }
        }
        words
    }

    fn rounded(&self) -> u64 {
        self.items.next_multiple_of(self.lanes)
    }
}

/// Checks that a group has work-items and fits the lanes of one core, `core` in number.
fn check_group(group: [u64; 3], core: u64) -> Result<(), LaunchError> {
    match volume(group) {
        Some(0) => Err(LaunchError::GroupEmpty { given: group }),
        Some(items) if items <= core => Ok(()),
        _ => Err(LaunchError::GroupTooLarge { given: group, limit: core }),
    }
}

/// The product of three extents; `None` if it overflows.
fn volume(extents: [u64; 3]) -> Option<u64> {
    if extents.contains(&0) {
        return Some(0);
    }
    extents.into_iter().try_fold(1_u64, u64::checked_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arch(id: &str) -> ArchId {
        id.parse().unwrap()
    }

    fn planned(
        config: LaunchConfig,
        arch: ArchId,
        cores: u16,
    ) -> Result<Option<Plan>, LaunchError> {
        let walk = if config.group.is_some() { Walk::Groups } else { Walk::Chunks };
        Plan::new(config, arch, cores, walk)
    }

    fn config(grid: [u64; 3]) -> LaunchConfig {
        LaunchConfig { grid, ..LaunchConfig::grid_1d(0) }
    }

    fn grouped(grid: [u64; 3], group: [u64; 3], arch: ArchId, cores: u16) -> Plan {
        let config = LaunchConfig { group: Some(group), ..config(grid) };
        planned(config, arch, cores).unwrap().unwrap()
    }

    #[test]
    fn an_extent_of_zero_is_an_empty_grid_whatever_the_others() {
        for grid in [[0, 1, 1], [u64::MAX, 0, u64::MAX], [1, u64::MAX, 0]] {
            assert_eq!(planned(config(grid), ArchId::HARP32, 1).unwrap(), None);
        }
    }

    #[test]
    fn small_grids_start_no_more_warps_than_they_have_chunks() {
        let warps = |items, cores| {
            planned(config([items, 1, 1]), arch("4w8/8/16/16"), cores).unwrap().unwrap().warps
        };
        assert_eq!((warps(1, 1), warps(16, 1), warps(17, 1), warps(1 << 20, 1)), (1, 1, 2, 16));
        assert_eq!((warps(33, 2), warps(1, 4), warps(16 * 5, 4)), (2, 1, 2));
    }

    #[test]
    fn grids_are_limited_by_the_signed_word() {
        let arch = arch("4w8/8/16/16");
        let limit = (1 << 31) - 1 - 2 * 16 * 16 - 16;
        assert!(planned(config([limit, 1, 1]), arch, 2).is_ok());
        for grid in [[limit + 1, 1, 1], [1 << 16, 1 << 16, 1], [u64::MAX, u64::MAX, 2]] {
            let error = planned(config(grid), arch, 2).unwrap_err();
            assert!(
                matches!(error, LaunchError::GridTooLarge { given, limit: l } if given == grid && l == limit),
                "{error:?}"
            );
        }
    }

    /// 16 warps of 16 lanes: groups of 96 work-items take 6 warps, so two fit a core.
    #[test]
    fn groups_share_a_core_if_they_fit() {
        let arch = arch("4w8/8/16/16");
        let figures = |plan: Plan| {
            let groups = plan.groups.unwrap();
            [groups.warps, groups.places, plan.warps, plan.stride, plan.stacks()]
        };
        let line = |x, group, cores| figures(grouped([x, 1, 1], [group, 1, 1], arch, cores));
        assert_eq!(line(1000, 96, 1), [6, 2, 12, 2, 12 * 16]);
        assert_eq!(line(1000, 96, 4), [6, 2, 12, 8, 8 * 6 * 16]);
        assert_eq!(line(96, 96, 4), [6, 1, 6, 4, 6 * 16]);
        assert_eq!(line(1000, 256, 1), [16, 1, 16, 1, 256]);
        assert_eq!(line(1000, 1, 1), [1, 16, 16, 16, 256]);
        // No group is larger than the grid.
        assert_eq!(line(10, 256, 1), [1, 1, 1, 1, 16]);
        let volume = grouped([10, 10, 3], [4, 8, 2], arch, 1);
        assert_eq!(volume.groups.unwrap().count, [3, 2, 2]);
        assert_eq!(figures(volume), [4, 4, 16, 4, 256]);
        assert_eq!(volume.header(), [10, 10, 3, 4, 8, 2, 3, 2, 2]);
    }

    #[test]
    fn groups_have_work_items_and_fit_a_core() {
        let new = |group| {
            let config = LaunchConfig { group: Some(group), ..config([0, 1, 1]) };
            planned(config, arch("4w8/8/16/16"), 8)
        };
        assert_eq!(new([256, 1, 1]), Ok(None));
        for given in [[0, 1, 1], [5, u64::MAX, 0]] {
            assert_eq!(new(given), Err(LaunchError::GroupEmpty { given }));
        }
        for given in [[257, 1, 1], [16, 17, 1], [u64::MAX, u64::MAX, 2]] {
            assert_eq!(new(given), Err(LaunchError::GroupTooLarge { given, limit: 256 }));
        }
    }

    #[test]
    fn rows_are_padded_to_chunks() {
        let arch = arch("4w24/8/16/16+s8");
        let by_rows = |grid| {
            let config = LaunchConfig { group: Some([2, 2, 1]), ..config(grid) };
            Plan::new(config, arch, 1, Walk::Rows).unwrap().unwrap()
        };
        let figures = |plan: Plan| (plan.walk, plan.items, plan.row);
        assert_eq!(figures(by_rows([20, 3, 2])), (Walk::Rows, 32 * 6, 32));
        assert_eq!(figures(by_rows([16, 3, 1])), (Walk::Rows, 48, 16));
        // A line has surplus lanes at its end only.
        assert_eq!(figures(by_rows([20, 1, 1])), (Walk::Rows, 20, 20));
    }
}
