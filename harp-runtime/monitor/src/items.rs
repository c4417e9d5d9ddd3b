//! Numbers of work-items.

/// Numbers the work-items of a launch from 1, those of a group one after the other, with room for a power of two of
/// them in each: whether two are of one group is seen from their numbers. A work-item without a group is one of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Items {
    grid: [u64; 3],
    group: Option<[u64; 3]>,
    /// Bits of a number that tell the work-items of a group apart.
    bits: u32,
}

impl Items {
    pub(crate) fn new(grid: [u64; 3], group: Option<[u64; 3]>) -> Items {
        let count = group.map_or(1, |extent| extent.iter().product());
        Items { grid, group, bits: count.next_power_of_two().ilog2() }
    }

    /// The most numbers that work-items can have: one less than there are, so that no other has the largest one.
    pub(crate) const MOST: u64 = u32::MAX as u64 - 1;

    /// How many numbers a launch needs; none if more than can be counted.
    pub(crate) fn needed(&self) -> Option<u64> {
        let groups = self.group.map_or(self.grid, |extent| self.groups(extent));
        let mut all = [1 << self.bits].into_iter().chain(groups);
        all.try_fold(1_u64, u64::checked_mul)
    }

    /// The number of the work-item at a position; the largest one for all that would have larger ones. A kernel may
    /// report any position.
    pub(crate) fn number(&self, position: [u64; 3]) -> u32 {
        let index = match self.group {
            None => linear(position, self.grid),
            Some(extent) => {
                let group = linear(quotients(position, extent), self.groups(extent));
                let own = linear(std::array::from_fn(|dim| position[dim] % extent[dim]), extent);
                group.checked_mul(1 << self.bits).map_or(u64::MAX, |first| first | own)
            }
        };
        u32::try_from(index).map_or(u32::MAX, |index| index.saturating_add(1))
    }

    /// The position of the work-item with this number. A kernel that was changed may report accesses before it has reported
    /// a work-item, whose number is 0: they are taken for those of the first one.
    pub(crate) fn position(&self, number: u32) -> [u64; 3] {
        let index = u64::from(number.saturating_sub(1));
        let Some(extent) = self.group else { return position(index, self.grid) };
        let group = position(index >> self.bits, self.groups(extent));
        let own = position(index & ((1 << self.bits) - 1), extent);
        std::array::from_fn(|dim| group[dim] * extent[dim] + own[dim])
    }

    /// The position of a work-item's group.
    pub(crate) fn group_of(&self, position: [u64; 3]) -> Option<[u64; 3]> {
        self.group.map(|extent| quotients(position, extent))
    }

    /// The number of the group of the work-item with this number.
    pub(crate) fn group(&self, number: u32) -> u32 {
        number.saturating_sub(1) >> self.bits
    }

    /// Whether two work-items with these numbers are of one group.
    pub(crate) fn are_of_one_group(&self, a: u32, b: u32) -> bool {
        self.group(a) == self.group(b)
    }

    /// Whether each work-item is a group of its own.
    pub(crate) fn are_alone(&self) -> bool {
        self.bits == 0
    }

    /// How many groups there are.
    fn groups(&self, extent: [u64; 3]) -> [u64; 3] {
        std::array::from_fn(|dim| self.grid[dim].div_ceil(extent[dim]))
    }
}

fn quotients(position: [u64; 3], extent: [u64; 3]) -> [u64; 3] {
    std::array::from_fn(|dim| position[dim] / extent[dim])
}

/// The number of a position, along the first dimension first.
fn linear([x, y, z]: [u64; 3], [columns, rows, _]: [u64; 3]) -> u64 {
    z.wrapping_mul(rows).wrapping_add(y).wrapping_mul(columns).wrapping_add(x)
}

/// The position with a number.
fn position(index: u64, [columns, rows, _]: [u64; 3]) -> [u64; 3] {
    [index % columns, index / columns % rows, index / columns / rows]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_positions() {
        for group in [None, Some([4, 1, 1]), Some([3, 2, 2])] {
            let items = Items::new([7, 3, 4], group);
            let mut seen = std::collections::HashSet::new();
            for index in 0..7 * 3 * 4 {
                let at = position(index, [7, 3, 4]);
                let number = items.number(at);
                assert!(number > 0 && seen.insert(number), "{at:?}");
                assert_eq!(items.position(number), at);
                let other = items.number([0, 0, 0]);
                let in_first = items.group_of(at) == items.group_of([0, 0, 0]);
                assert_eq!(
                    items.are_of_one_group(number, other),
                    (in_first && group.is_some()) || index == 0
                );
            }
            assert_eq!(items.number([u64::MAX; 3]), u32::MAX);
        }
    }

    #[test]
    fn the_last_work_item_has_the_largest_number_that_is_needed() {
        for (grid, group) in
            [([7, 3, 4], None), ([8, 4, 2], Some([4, 2, 1])), ([9, 1, 1], Some([3, 1, 1]))]
        {
            let items = Items::new(grid, group);
            let last = u64::from(items.number(grid.map(|extent| extent - 1)));
            let unused = group.map_or(0, |extent| {
                let items: u64 = extent.iter().product();
                items.next_power_of_two() - items
            });
            assert_eq!(items.needed(), Some(last + unused), "{grid:?} {group:?}");
        }
        assert_eq!(Items::new([u64::MAX, 2, 1], None).needed(), None);
    }
}
