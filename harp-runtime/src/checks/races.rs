//! Who accessed each part of memory last, and which accesses nothing orders.
//!
//! Of each part of memory the last store is kept and up to two loads, as in FastTrack (Flanagan and Freund 2009), whose
//! clocks become simple here: a work-group's barriers order all that its work-items do before and after them, and nothing
//! else orders work-items. So an access is known by its work-item, its group and the barriers that the work-item has
//! passed. Of loads that may be forgotten, one of another group is kept first, because a barrier of its own group
//! orders the others with a store to come.
//!
//! Parts are words of four bytes; pages with smaller accesses are divided into bytes.

use std::ops::Range;

/// Bytes of a page.
const PAGE: u64 = 1024;

/// An access as it is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The number of the work-item, from 1; 0: no access.
    pub(super) item: u32,
    /// The number of its group.
    pub(super) group: u32,
    /// Barriers that it had passed.
    pub(super) barriers: u32,
    /// Which access of the program it is, and whether that is atomic, in the lowest bit.
    site: u32,
}

impl Stamp {
    /// A work-item that begins.
    pub(super) fn new(item: u32, group: u32) -> Stamp {
        Stamp { item, group, barriers: 0, site: 0 }
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
    fn races(self, other: Stamp) -> bool {
        let same_group = self.group == other.group;
        self.item != 0
            && self.item != other.item
            && (!same_group || self.barriers == other.barriers)
            && !(self.is_atomic() && other.is_atomic())
    }

    /// Whether the group's barriers order it before all that `now` and its group do from now on.
    fn is_past(self, now: Stamp) -> bool {
        self.item == 0 || (self.group == now.group && self.barriers < now.barriers)
    }
}

/// What is known about a part of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    store: Stamp,
    /// What differs where the stored values differ.
    value: u64,
    loads: [Stamp; 2],
}

impl Part {
    fn access(&mut self, now: Stamp, stored: Option<Option<u64>>) -> Option<Stamp> {
        match stored {
            None => self.load(now),
            Some(value) => self.store(now, value),
        }
    }

    /// Notes a load; an access that races with it.
    fn load(&mut self, now: Stamp) -> Option<Stamp> {
        let [first, second] = &mut self.loads;
        if first.item == now.item || first.is_past(now) {
            *first = now;
        } else if second.item == now.item || second.is_past(now) || first.group == second.group {
            *second = now;
        }
        Some(self.store).filter(|store| store.races(now))
    }

    /// Notes a store of `value`, or an atomic access; an access that races with it.
    fn store(&mut self, now: Stamp, value: Option<u64>) -> Option<Stamp> {
        let is_same = value == Some(self.value) && !self.store.is_atomic();
        let store = Some(self.store).filter(|store| !is_same && store.races(now));
        let load = || self.loads.into_iter().find(|load| load.races(now));
        let found = store.or_else(load);
        (self.store, self.value) = (now, value.unwrap_or(u64::MAX));
        found
    }
}

/// A page, in words or in bytes.
#[derive(Clone, Debug)]
enum Page {
    Words(Box<[Part; PAGE as usize / 4]>),
    Bytes(Box<[Part]>),
}

impl Page {
    fn part_bytes(&self) -> u64 {
        match self {
            Page::Words(_) => 4,
            Page::Bytes(_) => 1,
        }
    }

    fn parts(&mut self) -> &mut [Part] {
        match self {
            Page::Words(parts) => &mut parts[..],
            Page::Bytes(parts) => parts,
        }
    }
}

/// The last accesses to all memory.
#[derive(Debug, Default)]
pub(super) struct Races {
    pages: Vec<Option<Page>>,
}

impl Races {
    /// Notes an access to `bytes` from `address` on: a store of `value`, or an atomic access, unless it is a load.
    /// Returns an access that races with it.
    pub(super) fn access(
        &mut self,
        address: u64,
        bytes: u64,
        now: Stamp,
        stored: Option<Option<u64>>,
    ) -> Option<Stamp> {
        let number = (address / PAGE) as usize;
        // Nearly all accesses are to one word.
        if bytes == 4
            && address.is_multiple_of(4)
            && let Some(Some(Page::Words(parts))) = self.pages.get_mut(number)
        {
            return parts[(address % PAGE / 4) as usize].access(now, stored);
        }
        let mut found = None;
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let page = self.page((at / PAGE) as usize, !(address | bytes).is_multiple_of(4));
            let part_bytes = page.part_bytes();
            let raced = page.parts()[(at % PAGE / part_bytes) as usize].access(now, stored);
            found = found.or(raced);
            at += part_bytes;
        }
        found
    }

    /// Forgets all accesses to a range, whole words.
    pub(super) fn forget(&mut self, range: Range<u64>) {
        let mut at = range.start;
        while at < range.end {
            let end = (at / PAGE * PAGE + PAGE).min(range.end);
            if let Some(Some(page)) = self.pages.get_mut((at / PAGE) as usize) {
                let first = (at % PAGE / page.part_bytes()) as usize;
                let count = ((end - at) / page.part_bytes()) as usize;
                page.parts()[first..first + count].fill(Part::default());
            }
            at = end;
        }
    }

    /// A page, in bytes if that is asked for.
    fn page(&mut self, number: usize, in_bytes: bool) -> &mut Page {
        if self.pages.len() <= number {
            self.pages.resize(number + 1, None);
        }
        let new = || Page::Words(Box::new([Part::default(); _]));
        let page = self.pages[number].get_or_insert_with(new);
        if let (true, Page::Words(parts)) = (in_bytes, &*page) {
            *page = Page::Bytes(parts.iter().flat_map(|&part| [part; 4]).collect());
        }
        page
    }
}
