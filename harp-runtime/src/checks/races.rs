//! Who accessed each part of memory last, and which accesses nothing orders.
//!
//! Of each part of memory the last store is kept and up to two loads, as in FastTrack (Flanagan and Freund 2009), whose
//! clocks become simple here: a work-group's barriers order all that its work-items do before and after them, and nothing
//! else orders work-items. So an access is known by its work-item, its group and the barriers that the work-item has
//! passed. Of loads that may be forgotten, one of another group is kept first, because a barrier of its own group
//! orders the others with a store to come.
//!
//! Parts are words of four bytes; pages with smaller accesses are divided into bytes. What is remembered of a page takes
//! many times its size, so there is only as much of it as there were accesses of a kind.

use std::ops::Range;

use super::items::Items;

/// Bytes of a page.
const PAGE: u64 = 1024;

/// An access as it is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The [number](Items::number) of the work-item; 0: no access.
    pub(super) item: u32,
    /// Barriers that it had passed.
    pub(super) barriers: u32,
    /// Which access of the program it is, and whether that is atomic, in the lowest bit.
    site: u32,
}

impl Stamp {
    /// A work-item that begins.
    pub(super) fn new(item: u32) -> Stamp {
        Stamp { item, barriers: 0, site: 0 }
    }

    /// The same work-item at an access of the program.
    pub(super) fn at(self, site: u32, is_atomic: bool) -> Stamp {
        Stamp { site: site << 1 | u32::from(is_atomic), ..self }
    }

    /// Which access of the program it is.
    pub(super) fn site(self) -> u32 {
        self.site >> 1
    }

    fn is_atomic(self) -> bool {
        self.site & 1 != 0
    }

    /// Whether nothing orders the two.
    fn races(self, other: Stamp, items: &Items) -> bool {
        self.item != 0
            && self.item != other.item
            && (self.barriers == other.barriers || !items.are_of_one_group(self.item, other.item))
            && !(self.is_atomic() && other.is_atomic())
    }

    /// Whether it need not be kept beside `now`: it is of the same work-item, or the group's barriers order it before
    /// all that `now` and its group do from now on.
    fn is_replaced_by(self, now: Stamp, items: &Items) -> bool {
        self.item == 0
            || self.item == now.item
            || (self.barriers < now.barriers && items.are_of_one_group(self.item, now.item))
    }
}

/// What accesses one after the other do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Do<'a> {
    Load,
    /// They store these bytes, over and over; each part of memory keeps its own. Of atomic ones they mean nothing.
    Store(&'a [u64]),
}

impl<'a> Do<'a> {
    /// What one of them does.
    fn of(self, index: usize) -> Do<'a> {
        match self {
            Do::Load => Do::Load,
            Do::Store(values) => Do::Store(&values[index..=index]),
        }
    }
}

/// Is told which access races, by its place in the row, and with what.
pub(super) type Raced<'a> = dyn FnMut(usize, Stamp) + 'a;

/// The last store to a part of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Store {
    stamp: Stamp,
    /// What was stored to that part.
    value: u32,
}

/// A page, in words or in bytes; none of what never happened there.
#[derive(Clone, Debug)]
struct Page {
    /// The launch whose accesses these are.
    launch: u64,
    part_bytes: u64,
    stores: Option<Box<[Store]>>,
    /// The first load of each part that is kept.
    loads: Option<Box<[Stamp]>>,
    /// The second one.
    more_loads: Option<Box<[Stamp]>>,
}

impl Page {
    fn new(launch: u64) -> Page {
        Page { launch, part_bytes: 4, stores: None, loads: None, more_loads: None }
    }

    /// Forgets all accesses, and keeps the memory.
    fn restart(&mut self, launch: u64) {
        if self.part_bytes == 4 {
            self.launch = launch;
            self.forget(0..(PAGE / 4) as usize);
        } else {
            *self = Page::new(launch);
        }
    }

    /// Forgets the accesses to these parts.
    fn forget(&mut self, parts: Range<usize>) {
        if let Some(stores) = &mut self.stores {
            stores[parts.clone()].fill(Store::default());
        }
        for loads in [&mut self.loads, &mut self.more_loads].into_iter().flatten() {
            loads[parts.clone()].fill(Stamp::default());
        }
    }

    /// The same page in bytes.
    fn in_bytes(&self) -> Page {
        fn split<T: Copy>(parts: &Option<Box<[T]>>) -> Option<Box<[T]>> {
            Some(parts.as_ref()?.iter().flat_map(|&part| [part; 4]).collect())
        }
        Page {
            launch: self.launch,
            part_bytes: 1,
            stores: split(&self.stores),
            loads: split(&self.loads),
            more_loads: split(&self.more_loads),
        }
    }

    /// Notes loads of parts that follow each other; tells `raced` which stores race with which of them.
    #[inline]
    fn load(&mut self, first: usize, nows: &[Stamp], items: &Items, raced: &mut Raced<'_>) {
        let (count, parts) = ((PAGE / self.part_bytes) as usize, first..first + nows.len());
        if let Some(stores) = &self.stores {
            for (at, (last, now)) in stores[parts.clone()].iter().zip(nows).enumerate() {
                if last.stamp.races(*now, items) {
                    raced(at, last.stamp);
                }
            }
        }
        let loads = &mut of_all(&mut self.loads, count)[parts.clone()];
        for (part, (load, &now)) in parts.zip(loads.iter_mut().zip(nows)) {
            if load.is_replaced_by(now, items) {
                *load = now;
                continue;
            }
            let second = &mut of_all(&mut self.more_loads, count)[part];
            if second.is_replaced_by(now, items) || items.are_of_one_group(load.item, second.item) {
                *second = now;
            }
        }
    }

    /// Notes stores to parts that follow each other, as [`Page::load`] does.
    #[inline]
    fn store(
        &mut self,
        first: usize,
        nows: &[Stamp],
        values: impl Iterator<Item = u32>,
        items: &Items,
        raced: &mut Raced<'_>,
    ) {
        let (count, parts) = ((PAGE / self.part_bytes) as usize, first..first + nows.len());
        let stores = &mut of_all(&mut self.stores, count)[parts.clone()];
        for (at, ((last, &now), value)) in stores.iter_mut().zip(nows).zip(values).enumerate() {
            let is_same = value == last.value && !now.is_atomic() && !last.stamp.is_atomic();
            let races = |stamp: &Stamp| stamp.races(now, items);
            let store = Some(last.stamp).filter(|stamp| !is_same && races(stamp));
            let loads = [&self.loads, &self.more_loads].into_iter().flatten();
            if let Some(other) = store.or_else(|| loads.map(|all| all[first + at]).find(races)) {
                raced(at, other);
            }
            *last = Store { stamp: now, value };
        }
    }
}

/// What is known of all parts of a page: nothing yet, if it is the first time.
fn of_all<T: Copy + Default>(parts: &mut Option<Box<[T]>>, count: usize) -> &mut [T] {
    parts.get_or_insert_with(|| vec![T::default(); count].into())
}

/// The last accesses to all memory.
///
/// The memory that this takes is taken over by the next launch: to get it from the system anew takes longer than to
/// check the accesses.
#[derive(Debug, Default)]
pub(crate) struct Races {
    items: Items,
    /// Counts launches.
    launch: u64,
    pages: Vec<Option<Page>>,
}

impl Races {
    /// Forgets all accesses: a launch of these work-items begins.
    pub(super) fn restart(self, items: Items) -> Races {
        Races { items, launch: self.launch + 1, pages: self.pages }
    }

    /// Notes an access to `bytes` from `address` on. Returns an access that races with it.
    pub(super) fn access(
        &mut self,
        address: u64,
        bytes: u64,
        now: Stamp,
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
            let part = (at % PAGE / part_bytes) as usize;
            match does {
                Do::Load => page.load(part, &[now], &items, &mut raced),
                Do::Store(values) => {
                    let own = u64::MAX >> (64 - 8 * part_bytes);
                    let value = |value: &u64| (value >> (8 * ((at - address) % 8)) & own) as u32;
                    page.store(part, &[now], values.iter().map(value), &items, &mut raced);
                }
            }
            at += part_bytes;
        }
        found
    }

    /// Notes accesses to words that follow each other from `address` on, as [`Races::access`] does one by one. Tells
    /// `raced` which of them race with what.
    pub(super) fn access_row(
        &mut self,
        address: u64,
        nows: &[Stamp],
        does: Do<'_>,
        raced: &mut Raced<'_>,
    ) {
        let items = self.items;
        let mut done = 0;
        while done < nows.len() {
            let at = address + 4 * done as u64;
            let first = (at % PAGE / 4) as usize;
            let row = done..nows.len().min(done + (PAGE / 4) as usize - first);
            let page = self.page((at / PAGE) as usize, false);
            if page.part_bytes != 4 {
                for lane in row.clone() {
                    let address = address + 4 * lane as u64;
                    if let Some(other) = self.access(address, 4, nows[lane], does.of(lane)) {
                        raced(lane, other);
                    }
                }
            } else {
                let raced = &mut |lane, other| raced(done + lane, other);
                let nows = &nows[row.clone()];
                match does {
                    Do::Load => page.load(first, nows, &items, raced),
                    Do::Store(values) => {
                        let values = values[row.clone()].iter().map(|&value| value as u32);
                        page.store(first, nows, values, &items, raced);
                    }
                }
            }
            done = row.end;
        }
    }

    /// Forgets all accesses to a range, whole words.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let end = (at / PAGE * PAGE + PAGE).min(range.end);
            if let Some(Some(page)) = self.pages.get_mut((at / PAGE) as usize) {
                let first = (at % PAGE / page.part_bytes) as usize;
                page.forget(first..first + ((end - at) / page.part_bytes) as usize);
            }
            at = end;
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
