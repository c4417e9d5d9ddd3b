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

    /// Whether the group's barriers order it before all that `now` and its group do from now on.
    fn is_past(self, now: Stamp, items: &Items) -> bool {
        self.item == 0
            || (self.barriers < now.barriers && items.are_of_one_group(self.item, now.item))
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    Load,
    /// It stores these bytes, over and over; each part of memory keeps its own.
    Store(u64),
    Atomic,
}

/// The last store to a part of memory.
#[derive(Clone, Copy, Debug, Default)]
struct Store {
    stamp: Stamp,
    /// What was stored to that part.
    value: u32,
}

/// The loads of a part of memory that are kept.
#[derive(Clone, Copy, Debug, Default)]
struct Loads([Stamp; 2]);

impl Loads {
    fn add(&mut self, now: Stamp, items: &Items) {
        let [first, second] = &mut self.0;
        if first.item == now.item || first.is_past(now, items) {
            *first = now;
        } else if second.item == now.item
            || second.is_past(now, items)
            || items.are_of_one_group(first.item, second.item)
        {
            *second = now;
        }
    }
}

/// A page, in words or in bytes; none of what never happened there.
#[derive(Clone, Debug)]
struct Page {
    part_bytes: u64,
    stores: Option<Box<[Store]>>,
    loads: Option<Box<[Loads]>>,
}

impl Page {
    fn new(part_bytes: u64) -> Page {
        Page { part_bytes, stores: None, loads: None }
    }

    /// The same page in bytes.
    fn in_bytes(&self) -> Page {
        fn split<T: Copy>(parts: &[T]) -> Box<[T]> {
            parts.iter().flat_map(|&part| [part; 4]).collect()
        }
        let (stores, loads) = (self.stores.as_deref().map(split), self.loads.as_deref().map(split));
        Page { part_bytes: 1, stores, loads }
    }

    /// Notes an access to a part; an access that races with it.
    fn access(&mut self, part: usize, now: Stamp, does: Does, items: &Items) -> Option<Stamp> {
        let count = (PAGE / self.part_bytes) as usize;
        let last = self.stores.as_ref().map(|stores| stores[part]).unwrap_or_default();
        let races = |stamp: &Stamp| stamp.races(now, items);
        let value = match does {
            Does::Load => {
                let loads = self.loads.get_or_insert_with(|| vec![Loads::default(); count].into());
                loads[part].add(now, items);
                return Some(last.stamp).filter(races);
            }
            Does::Store(value) => value as u32,
            Does::Atomic => 0,
        };
        let is_same = does != Does::Atomic && value == last.value && !last.stamp.is_atomic();
        let store = Some(last.stamp).filter(|stamp| !is_same && races(stamp));
        let loads = self.loads.as_ref().map(|loads| loads[part]).unwrap_or_default();
        let stores = self.stores.get_or_insert_with(|| vec![Store::default(); count].into());
        stores[part] = Store { stamp: now, value };
        store.or_else(|| loads.0.into_iter().find(races))
    }
}

/// The last accesses to all memory.
#[derive(Debug)]
pub(super) struct Races {
    items: Items,
    pages: Vec<Option<Page>>,
}

impl Races {
    pub(super) fn new(items: Items) -> Races {
        Races { items, pages: Vec::new() }
    }

    /// Notes an access to `bytes` from `address` on. Returns an access that races with it.
    pub(super) fn access(
        &mut self,
        address: u64,
        bytes: u64,
        now: Stamp,
        does: Does,
    ) -> Option<Stamp> {
        let items = self.items;
        let number = (address / PAGE) as usize;
        // Nearly all accesses are to one word.
        if bytes == 4
            && address.is_multiple_of(4)
            && let Some(Some(page @ Page { part_bytes: 4, .. })) = self.pages.get_mut(number)
        {
            return page.access((address % PAGE / 4) as usize, now, does, &items);
        }
        let mut found = None;
        let mut at = address;
        let end = address.saturating_add(bytes);
        while at < end {
            let page = self.page((at / PAGE) as usize, !(address | bytes).is_multiple_of(4));
            let part_bytes = page.part_bytes;
            let does = match does {
                Does::Store(value) => {
                    let own = u64::MAX >> (64 - 8 * part_bytes);
                    Does::Store(value >> (8 * ((at - address) % 8)) & own)
                }
                other => other,
            };
            let raced = page.access((at % PAGE / part_bytes) as usize, now, does, &items);
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
                let first = (at % PAGE / page.part_bytes) as usize;
                let count = ((end - at) / page.part_bytes) as usize;
                if let Some(stores) = &mut page.stores {
                    stores[first..first + count].fill(Store::default());
                }
                if let Some(loads) = &mut page.loads {
                    loads[first..first + count].fill(Loads::default());
                }
            }
            at = end;
        }
    }

    /// A page, in bytes if that is asked for.
    fn page(&mut self, number: usize, in_bytes: bool) -> &mut Page {
        if self.pages.len() <= number {
            self.pages.resize(number + 1, None);
        }
        let page = self.pages[number].get_or_insert_with(|| Page::new(4));
        if in_bytes && page.part_bytes != 1 {
            *page = page.in_bytes();
        }
        page
    }
}
