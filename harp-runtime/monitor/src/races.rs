//! Who accessed each part of memory last, and which accesses nothing orders.
//!
//! Of each part of memory the last store is kept and up to two loads, as in FastTrack (Flanagan and Freund 2009), whose
//! clocks become simple here: a work-group's barriers order what its work-items do before and after them, and nothing
//! else orders work-items. So an access is known by its work-item, its group and the barriers that the work-item has
//! passed. Barriers may order only the accesses to some memory: the last one that has ordered such an access as the one at hand
//! counts, and it is in order with what was done before that barrier. Of loads that may be forgotten, one of another group is kept first, because a barrier of its own group
//! orders the others with a store to come.
//!
//! Parts are words of four bytes; pages with smaller accesses are divided into bytes. Mostly work-items that follow each
//! other access parts that follow each other: then the access to the first part of a line tells those to the others, and
//! all of a line are compared at once.

use std::ops::Range;

use harp_jit::AccessKind;

use crate::items::Items;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Parts of a line.
const PARTS: u32 = 32;

/// An access as it is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The [number](Items::number) of the work-item; 0: no access.
    pub(crate) item: u32,
    /// Barriers that it had passed.
    pub(crate) barriers: u32,
    /// Which access of the program it is, and whether that is atomic, in the lowest bit.
    site: u32,
}

impl Stamp {
    /// A work-item that begins.
    pub(crate) fn new(item: u32) -> Stamp {
        Stamp { item, barriers: 0, site: 0 }
    }

    /// The same work-item at an access of the program.
    pub(crate) fn at(self, site: u32, is_atomic: bool) -> Stamp {
        Stamp { site: site << 1 | u32::from(is_atomic), ..self }
    }

    /// Which access of the program it is.
    pub(crate) fn site(self) -> u32 {
        self.site >> 1
    }

    /// The same access by the work-item with a number that is larger by `count`.
    pub(crate) fn plus(self, count: u32) -> Stamp {
        Stamp { item: self.item.wrapping_add(count), ..self }
    }

    fn is_atomic(self) -> bool {
        self.site & 1 != 0
    }

    /// Whether nothing orders it before `now`.
    fn races(self, now: Now, items: &Items) -> bool {
        self.item != 0
            && self.item != now.stamp.item
            && !self.is_ordered_before(now, items)
            && !(self.is_atomic() && now.stamp.is_atomic())
    }

    /// Whether it need not be kept beside `now`: it is of the same work-item, or the group's barriers order it before
    /// all that `now` and its group do from now on.
    fn is_replaced_by(self, now: Now, items: &Items) -> bool {
        self.item == 0 || self.item == now.stamp.item || self.is_ordered_before(now, items)
    }

    fn is_ordered_before(self, now: Now, items: &Items) -> bool {
        self.barriers < now.ordered && items.are_of_one_group(self.item, now.stamp.item)
    }
}

/// An access that happens now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Now {
    pub(crate) stamp: Stamp,
    /// Barriers that its work-item had passed with the last one that ordered accesses to such memory.
    pub(crate) ordered: u32,
}

impl Now {
    /// The same access by the work-item with a number that is larger by `count`.
    fn plus(self, count: u32) -> Now {
        Now { stamp: self.stamp.plus(count), ..self }
    }
}

/// What accesses one after the other do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do<'a> {
    Load,
    /// Each stores bytes, over and over; each part of memory keeps its own. Of atomic ones they mean nothing.
    Store(&'a [u64]),
}

impl<'a> Do<'a> {
    /// What accesses of this kind do, with these values.
    pub(crate) fn by(kind: AccessKind, values: &'a [u64]) -> Do<'a> {
        match kind {
            AccessKind::Load => Do::Load,
            _ => Do::Store(values),
        }
    }

    /// What some of them do.
    fn of(self, row: Range<usize>) -> Do<'a> {
        match self {
            Do::Load => Do::Load,
            Do::Store(values) => Do::Store(&values[row]),
        }
    }
}

/// Is told which access races, by its place in the row, and with what.
pub(crate) type Raced<'a> = dyn FnMut(usize, Stamp) + 'a;

/// Accesses of work-items that follow each other to parts of a line that follow each other.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The first part.
    part: u32,
    count: u32,
    /// The access to it.
    now: Now,
}

impl Row {
    /// A bit for each part.
    fn parts(self) -> u32 {
        (u32::MAX >> (PARTS - self.count)) << self.part
    }

    /// What an access to the first part of the line would be.
    fn first(self) -> Stamp {
        self.now.stamp.plus(0_u32.wrapping_sub(self.part))
    }

    /// One after the other.
    fn each(self) -> impl Iterator<Item = Row> {
        (0..self.count).map(move |at| Row {
            part: self.part + at,
            count: 1,
            now: self.now.plus(at),
        })
    }
}

/// The accesses of a kind to the parts of a line.
#[derive(Clone, Debug, Default)]
struct Kept {
    /// Which parts have one, a bit each.
    parts: u32,
    /// Whether `each` holds them.
    differ: bool,
    /// If they do not differ, that of the line's first part. The numbers of work-items grow by one from part to part.
    first: Stamp,
    /// Those of all parts, if they have ever differed.
    each: Option<Box<[Stamp; PARTS as usize]>>,
}

impl Kept {
    /// The access to a part, if there is one.
    fn at(&self, part: u32) -> Stamp {
        match &self.each {
            _ if self.parts >> part & 1 == 0 => Stamp::default(),
            Some(each) if self.differ => each[part as usize],
            _ => self.first.plus(part),
        }
    }

    /// Puts a row in the place of what was kept of its parts.
    fn set(&mut self, row: Row) {
        let (parts, first) = (row.parts(), row.first());
        if self.parts & !parts == 0 {
            (self.differ, self.first) = (false, first);
        } else if self.differ || self.first != first {
            let each = self.each();
            row.each().for_each(|one| each[one.part as usize] = one.now.stamp);
        }
        self.parts |= parts;
    }

    /// The accesses to all parts, which may differ from now on.
    fn each(&mut self) -> &mut [Stamp; PARTS as usize] {
        if !self.differ {
            let all = std::array::from_fn(|part| self.at(part as u32));
            match &mut self.each {
                Some(each) => **each = all,
                each => *each = Some(Box::new(all)),
            }
            self.differ = true;
        }
        self.each.get_or_insert_default()
    }

    /// Whether only the row's work-items have accessed its parts, each its own.
    fn is_own(&self, row: Row) -> bool {
        self.parts & row.parts() == 0 || (!self.differ && self.first.item == row.first().item)
    }

    /// Whether all of the row's parts were accessed by other work-items that follow each other, which no barrier
    /// orders before the row's.
    fn is_unordered(&self, row: Row) -> bool {
        let parts = row.parts();
        self.parts & parts == parts
            && !self.differ
            && self.first.item != row.first().item
            && self.first.barriers >= row.now.ordered
    }
}

/// The accesses to parts of memory that follow each other.
#[derive(Clone, Debug, Default)]
struct Line {
    stores: Kept,
    /// What the stores have stored.
    values: Option<Box<[u32; PARTS as usize]>>,
    /// The first load of each part that is kept.
    loads: Kept,
    /// The second one.
    more_loads: Kept,
}

impl Line {
    /// Forgets the accesses to these parts, and keeps the memory.
    fn forget(&mut self, parts: u32) {
        for kept in [&mut self.stores, &mut self.loads, &mut self.more_loads] {
            kept.parts &= !parts;
        }
    }

    /// The four lines of bytes in place of this line of words.
    fn in_bytes(&self) -> [Line; 4] {
        std::array::from_fn(|quarter| {
            let word = |byte: usize| (quarter * PARTS as usize + byte) / 4;
            let split = |kept: &Kept| {
                let mut own = Kept::default();
                for (byte, part) in (0..PARTS).map(|byte| (byte, word(byte as usize) as u32)) {
                    own.each()[byte as usize] = kept.at(part);
                    own.parts |= (kept.parts >> part & 1) << byte;
                }
                own
            };
            let bytes = |values: &[u32; PARTS as usize]| {
                let byte = |at| values[word(at)] >> (8 * (at % 4)) & 0xff;
                Box::new(std::array::from_fn(byte))
            };
            Line {
                stores: split(&self.stores),
                values: self.values.as_deref().map(bytes),
                loads: split(&self.loads),
                more_loads: split(&self.more_loads),
            }
        })
    }

    /// Notes loads; tells `raced` which stores race with which of them.
    fn load(&mut self, row: Row, items: &Items, raced: &mut Raced<'_>) {
        if !self.stores.is_own(row) {
            for (at, Row { part, now, .. }) in row.each().enumerate() {
                let last = self.stores.at(part);
                if last.races(now, items) {
                    raced(at, last);
                }
            }
        }
        if self.loads.is_own(row) {
            self.loads.set(row);
        } else if self.loads.is_unordered(row) && self.more_loads.is_own(row) {
            self.more_loads.set(row);
        } else if !(items.are_alone()
            && self.loads.is_unordered(row)
            && self.more_loads.is_unordered(row))
        {
            row.each().for_each(|one| self.load_one(one, items));
        }
    }

    /// Notes a load that may have to be kept beside others.
    fn load_one(&mut self, one: Row, items: &Items) {
        let (load, second) = (self.loads.at(one.part), self.more_loads.at(one.part));
        if load.is_replaced_by(one.now, items) {
            self.loads.set(one);
        } else if second.is_replaced_by(one.now, items)
            || items.are_of_one_group(load.item, second.item)
        {
            self.more_loads.set(one);
        }
    }

    /// Notes stores, as [`Line::load`] does.
    fn store(
        &mut self,
        row: Row,
        values: impl Iterator<Item = u32>,
        items: &Items,
        raced: &mut Raced<'_>,
    ) {
        let all = [&self.stores, &self.loads, &self.more_loads];
        let may_race = !all.iter().all(|kept| kept.is_own(row));
        let own_values = self.values.get_or_insert_default();
        for (at, (Row { part, now, .. }, value)) in row.each().zip(values).enumerate() {
            let last_value = &mut own_values[part as usize];
            if may_race {
                let last = self.stores.at(part);
                let is_same = value == *last_value && !now.stamp.is_atomic() && !last.is_atomic();
                let store = Some(last).filter(|last| !is_same && last.races(now, items));
                let loads = [&self.loads, &self.more_loads].map(|loads| loads.at(part));
                let load = || loads.into_iter().find(|load| load.races(now, items));
                if let Some(other) = store.or_else(load) {
                    raced(at, other);
                }
            }
            *last_value = value;
        }
        self.stores.set(row);
    }
}

/// The lines of a page.
#[derive(Clone, Debug)]
struct Page {
    /// The launch whose accesses these are.
    launch: u64,
    part_bytes: u64,
    lines: Vec<Line>,
}

impl Page {
    fn new(launch: u64) -> Page {
        let lines = vec![Line::default(); (PAGE / 4) as usize / PARTS as usize];
        Page { launch, part_bytes: 4, lines }
    }

    /// Forgets all accesses.
    fn restart(&mut self, launch: u64) {
        if self.part_bytes == 4 {
            self.launch = launch;
            self.lines.iter_mut().for_each(|line| line.forget(u32::MAX));
        } else {
            *self = Page::new(launch);
        }
    }

    /// The same page in bytes.
    fn in_bytes(&self) -> Page {
        let lines = self.lines.iter().flat_map(Line::in_bytes).collect();
        Page { launch: self.launch, part_bytes: 1, lines }
    }

    /// The line of an address, and the part in it.
    fn line(&mut self, address: u64) -> (&mut Line, u32) {
        let part = (address % PAGE / self.part_bytes) as u32;
        (&mut self.lines[(part / PARTS) as usize], part % PARTS)
    }
}

/// The last accesses to all memory.
///
/// The memory that this takes is taken over by the next launch: to get it from the system anew takes longer than to
/// check the accesses.
#[derive(Debug, Default)]
pub struct Races {
    items: Items,
    /// Counts launches.
    launch: u64,
    pages: Vec<Option<Page>>,
}

impl Races {
    /// Forgets all accesses: a launch of these work-items begins.
    pub(crate) fn restart(self, items: Items) -> Races {
        Races { items, launch: self.launch + 1, pages: self.pages }
    }

    /// Notes an access to `bytes` from `address` on. Returns an access that races with it.
    pub(crate) fn access(
        &mut self,
        address: u64,
        bytes: u64,
        now: Now,
        does: Do<'_>,
    ) -> Option<Stamp> {
        let items = self.items;
        let mut found = None;
        let mut raced = |_, other| found = found.or(Some(other));
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let page = self.page((at / PAGE) as usize, !(address | bytes).is_multiple_of(4));
            let part_bytes = page.part_bytes;
            let (line, part) = page.line(at);
            let row = Row { part, count: 1, now };
            match does {
                Do::Load => line.load(row, &items, &mut raced),
                Do::Store(values) => {
                    let own = u64::MAX >> (64 - 8 * part_bytes);
                    let value = |value: &u64| (value >> (8 * ((at - address) % 8)) & own) as u32;
                    line.store(row, values.iter().map(value), &items, &mut raced);
                }
            }
            at += part_bytes;
        }
        found
    }

    /// Notes `count` accesses to words from `address` on, by work-items that follow each other from that of `now` on, as
    /// [`Races::access`] does one by one. Tells `raced` which of them race with what.
    pub(crate) fn access_row(
        &mut self,
        address: u64,
        count: u32,
        now: Now,
        does: Do<'_>,
        raced: &mut Raced<'_>,
    ) {
        let items = self.items;
        let mut done = 0;
        while done < count {
            let (address, now) = (address + 4 * u64::from(done), now.plus(done));
            let page = self.page((address / PAGE) as usize, false);
            if page.part_bytes != 4 {
                let own = does.of(done as usize..done as usize + 1);
                if let Some(other) = self.access(address, 4, now, own) {
                    raced(done as usize, other);
                }
                done += 1;
                continue;
            }
            let (line, part) = page.line(address);
            let row = Row { part, count: (count - done).min(PARTS - part), now };
            let before = done as usize;
            let raced = &mut |at, other| raced(before + at, other);
            match does.of(before..before + row.count as usize) {
                Do::Load => line.load(row, &items, raced),
                Do::Store(values) => {
                    let values = values.iter().map(|&value| value as u32);
                    line.store(row, values, &items, raced);
                }
            }
            done += row.count;
        }
    }

    /// Forgets all accesses to a range, whole words.
    pub(crate) fn forget(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let Some(Some(page)) = self.pages.get_mut((at / PAGE) as usize) else {
                at = (at / PAGE + 1) * PAGE;
                continue;
            };
            let part_bytes = page.part_bytes;
            let (line, part) = page.line(at);
            let count = ((range.end - at) / part_bytes).min(u64::from(PARTS - part)) as u32;
            line.forget(Row { part, count, now: Now::default() }.parts());
            at += u64::from(count) * part_bytes;
        }
    }

    /// A page, in bytes if that is asked for.
    fn page(&mut self, number: usize, in_bytes: bool) -> &mut Page {
        if self.pages.len() <= number {
            self.pages.resize(number + 1, None);
        }
        let launch = self.launch;
        let page = self.pages[number].get_or_insert_with(|| Page::new(launch));
        if page.launch != launch {
            page.restart(launch);
        }
        if in_bytes && page.part_bytes != 1 {
            *page = page.in_bytes();
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The accesses to a byte, each on its own.
    #[derive(Clone, Copy, Default)]
    struct Byte {
        store: Stamp,
        value: u8,
        loads: [Stamp; 2],
    }

    impl Byte {
        /// Notes an access of a value, if it stores one. Returns whether it races with another.
        fn access(&mut self, now: Now, value: Option<u8>, items: &Items) -> bool {
            let Some(value) = value else {
                let [first, second] = &mut self.loads;
                if first.is_replaced_by(now, items) {
                    *first = now.stamp;
                } else if second.is_replaced_by(now, items)
                    || items.are_of_one_group(first.item, second.item)
                {
                    *second = now.stamp;
                }
                return self.store.races(now, items);
            };
            let is_same = value == self.value && !now.stamp.is_atomic() && !self.store.is_atomic();
            let store = !is_same && self.store.races(now, items);
            let races = store || self.loads.iter().any(|load| load.races(now, items));
            (self.store, self.value) = (now.stamp, value);
            races
        }
    }

    /// Random numbers: a linear congruence, the upper bits of which are good enough here.
    fn below(state: &mut u64, limit: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
        (*state >> 33) % limit
    }

    #[test]
    fn rows_race_as_bytes_do() {
        let (mut all, mut raced) = (0, 0);
        let mut races = Races::default();
        for seed in 0..300 {
            let mut state = seed;
            let state = &mut state;
            let group =
                [None, Some([4, 1, 1]), Some([32, 1, 1]), Some([128, 1, 1])][seed as usize % 4];
            let items = Items::new([256, 1, 1], group);
            races = races.restart(items);
            // Around the border of two pages.
            let start = PAGE - 300;
            let mut bytes = [Byte::default(); 600];
            let mut passed = [(0, 0); 256];
            for _ in 0..60 {
                let one = below(state, 8) == 0;
                let count = if one { 1 } else { below(state, 40) as u32 };
                let item = 1 + below(state, if seed % 2 == 0 { 200 } else { 3 * 32 }) as u32;
                let (at, size) = match one && seed % 3 == 0 {
                    true => (below(state, 590), 1 + below(state, 8)),
                    // Mostly what the work-item itself has accessed.
                    false if below(state, 3) != 0 => (4 * u64::from(item % 64), 4),
                    false => (4 * below(state, 100), 4),
                };
                let (barriers, ordered) = &mut passed[items.group(item) as usize];
                if below(state, 6) == 0 {
                    *barriers += 1;
                    // Now and then one that orders other memory.
                    *ordered = if below(state, 3) == 0 { *ordered } else { *barriers };
                }
                let kind = [AccessKind::Load, AccessKind::Store, AccessKind::Atomic];
                let kind = kind[[0, 0, 0, 1, 1, 2][below(state, 6) as usize]];
                let stamp = Stamp { item, barriers: *barriers, site: 0 };
                let stamp = stamp.at(below(state, 3) as u32, kind == AccessKind::Atomic);
                let now = Now { stamp, ordered: *ordered };
                let values: Vec<u64> = (0..count).map(|_| below(state, 2) * 0x0101).collect();
                let mut given = Vec::new();
                if (at | size).is_multiple_of(4) && size == 4 {
                    let does = Do::by(kind, &values);
                    races.access_row(start + at, count, now, does, &mut |lane, _| given.push(lane));
                } else if let [value] = values[..] {
                    let found = races.access(start + at, size, now, Do::by(kind, &[value]));
                    given.extend(found.map(|_| 0));
                }
                let wanted: Vec<usize> = (0..values.len())
                    .filter(|&lane| {
                        let (first, now) = (at as usize + 4 * lane, now.plus(lane as u32));
                        let own = &mut bytes[first..first + size as usize];
                        let value = |byte: usize| (values[lane] >> (8 * byte)) as u8;
                        let stored = |byte| (kind != AccessKind::Load).then(|| value(byte));
                        own.iter_mut().enumerate().fold(false, |any, (byte, one)| {
                            any | one.access(now, stored(byte), &items)
                        })
                    })
                    .collect();
                assert_eq!(given, wanted, "seed {seed}: {kind:?} by {now:?} at {at}");
                all += 1;
                raced += usize::from(!wanted.is_empty());
                if below(state, 30) == 0 {
                    let (from, words) = (4 * below(state, 100), 4 * below(state, 50));
                    races.forget(start + from..start + from + words);
                    bytes[from as usize..(from + words) as usize].fill(Byte::default());
                }
            }
        }
        assert!(raced * 10 > all && raced * 10 < all * 9, "{raced} of {all}");
    }
}
