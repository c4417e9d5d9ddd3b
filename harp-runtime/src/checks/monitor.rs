//! The device to which a kernel reports what it does.

use std::collections::HashMap;
use std::ops::Range;

use harp_emu::{Device, DeviceStore, LaneStore};
use harp_isa::WordSize;
use harp_isa::abi::MonitorWord;
use harp_jit::{AccessKind, MemoryAccess, SourcePlace};

use super::Checks;
use super::items::{Items, Numbering};
use super::races::{Do, Races, Stamp};
use super::regions::{Allowed, Regions};
use crate::finding::{Access, Finding, FindingKind};
use crate::memory::Unwritten;

/// Bytes between lanes' addresses up to which it pays to look at all at once.
const LARGEST_HULL: u64 = 4096;

/// The code of a function that reports its accesses.
#[derive(Clone, Debug)]
pub(crate) struct CheckedFunction {
    /// Its addresses.
    pub(crate) code: Range<u64>,
    /// The accesses by the numbers with which it reports them.
    pub(crate) accesses: Vec<MemoryAccess>,
}

/// What was found in a launch.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) list: Vec<Finding>,
    pub(crate) more: u64,
    /// What was not written when the launch ended, if that was followed.
    pub(crate) unwritten: Option<Unwritten>,
    /// For the next launch.
    pub(crate) races: Races,
}

/// Where the code at an address comes from, and the function that it is in, if that is not the kernel itself.
pub(crate) type PlaceOf<'a> = dyn Fn(u64) -> (Option<SourcePlace>, Option<String>) + 'a;

/// A device that takes all reports and does nothing with them.
pub(crate) struct Ignored;

impl Device for Ignored {
    fn store(&mut self, _: &DeviceStore<'_>) {}
}

/// A work-item while a lane runs it.
#[derive(Clone, Copy, Debug, Default)]
struct WorkItem {
    position: [u64; 3],
    /// The address of the stack slot that it accesses next.
    slot: u64,
}

/// An access in the program, and what it may be to.
struct Site {
    /// The address of the instruction that reports it.
    pc: u64,
    access: MemoryAccess,
    allowed: Allowed,
}

/// Checks what a launch does.
pub(crate) struct Monitor {
    word: WordSize,
    checks: Checks,
    regions: Regions,
    grid: [u64; 3],
    numbers_of_items: Items,
    functions: Vec<CheckedFunction>,
    sites: Vec<Site>,
    site_numbers: HashMap<u64, Option<u32>>,
    lanes: usize,
    warps: usize,
    /// By core, warp and lane, as the two that follow.
    items: Vec<WorkItem>,
    stamps: Vec<Stamp>,
    /// What they store next.
    values: Vec<u64>,
    /// The number of the group that each place runs, once it has begun.
    groups: Vec<Option<u32>>,
    races: Races,
    unwritten: Unwritten,
    tracks_written: bool,
    /// Whether the program accesses its stack.
    forgets_stacks: bool,
    findings: Vec<Finding>,
    /// By the kind of the finding, the site, and the site of the other access of a race.
    numbers: HashMap<(u8, u32, u32), Option<usize>>,
    more: u64,
}

/// The sizes of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extents {
    pub(crate) word: WordSize,
    pub(crate) lanes: u8,
    pub(crate) warps: u8,
    pub(crate) grid: [u64; 3],
    pub(crate) group: Option<[u64; 3]>,
    /// Whether the program accesses stack slots.
    pub(crate) uses_slots: bool,
}

impl Monitor {
    /// A monitor of a launch with these extents, of which `unwritten` was not written before. `last_races` are those of
    /// the launch before.
    pub(crate) fn new(
        checks: Checks,
        extents: Extents,
        regions: Regions,
        unwritten: Unwritten,
        functions: Vec<CheckedFunction>,
        last_races: Races,
    ) -> Monitor {
        let Extents { word, lanes, warps, grid, group, uses_slots } = extents;
        let items = Items::new(grid, group);
        Monitor {
            word,
            checks,
            regions,
            grid,
            numbers_of_items: items,
            functions,
            sites: Vec::new(),
            site_numbers: HashMap::new(),
            lanes: lanes.into(),
            warps: warps.into(),
            items: Vec::new(),
            stamps: Vec::new(),
            values: Vec::new(),
            groups: Vec::new(),
            races: last_races.restart(items),
            unwritten,
            tracks_written: checks.uninitialized,
            forgets_stacks: checks.uninitialized && uses_slots,
            findings: Vec::new(),
            numbers: HashMap::new(),
            more: 0,
        }
    }

    /// What was found.
    pub(crate) fn finish(&mut self, place_of: &PlaceOf<'_>) -> Found {
        let mut list = std::mem::take(&mut self.findings);
        let describe = |access: &mut Access, site: u32| {
            (access.place, access.function) = place_of(self.sites[site as usize].pc);
        };
        for (&(_, site, other), index) in &self.numbers {
            let Some(finding) = index.and_then(|index| list.get_mut(index)) else { continue };
            describe(&mut finding.access, site);
            if let FindingKind::Race { other: access } = &mut finding.kind {
                describe(access, other);
            }
        }
        let unwritten = self.tracks_written.then(|| std::mem::take(&mut self.unwritten));
        Found { list, more: self.more, unwritten, races: std::mem::take(&mut self.races) }
    }

    /// The number of the first of a warp's work-items.
    fn first_item(&mut self, core: u16, warp: u8) -> usize {
        let first = (usize::from(core) * self.warps + usize::from(warp)) * self.lanes;
        if self.items.len() < first + self.lanes {
            self.items.resize(first + self.lanes, WorkItem::default());
            self.stamps.resize(first + self.lanes, Stamp::default());
            self.values.resize(first + self.lanes, 0);
        }
        first
    }

    /// Tells each work-item of a warp what its lane has stored.
    fn set(&mut self, store: &DeviceStore<'_>, first: usize, set: impl Fn(&mut WorkItem, u64)) {
        if self.is_whole(store) {
            let items = self.items[first..first + self.lanes].iter_mut();
            items.zip(store.values).for_each(|(item, &value)| set(item, value));
            return;
        }
        for lane in store.lanes() {
            set(&mut self.items[first + usize::from(lane.lane)], lane.value);
        }
    }

    /// Whether all lanes of a warp execute.
    fn is_whole(&self, store: &DeviceStore<'_>) -> bool {
        store.executing == u64::MAX >> (64 - self.lanes)
    }

    /// Work-items begin, whose positions are known.
    fn begin(&mut self, store: &DeviceStore<'_>, first: usize) {
        let mut numbering = Numbering::new(self.numbers_of_items);
        let mut number = 0;
        for lane in store.lanes() {
            let item = first + usize::from(lane.lane);
            number = numbering.number(self.items[item].position);
            self.stamps[item] = Stamp::new(number);
        }
        let Some(places) = self.regions.groups else { return };
        let (place, memory) = places.of_warp(store.core, store.warp);
        if self.groups.len() <= place {
            self.groups.resize(place + 1, None);
        }
        let group = Some(self.numbers_of_items.group(number));
        if self.groups[place] != group {
            self.groups[place] = group;
            self.races.forget(memory.start..memory.end.next_multiple_of(4));
            if self.tracks_written {
                self.unwritten.forget(memory);
            }
        }
    }

    /// The number of the site that reports access `index` at `pc`.
    fn site(&mut self, pc: u64, index: u32) -> Option<u32> {
        if let Some(&number) = self.site_numbers.get(&pc) {
            return number;
        }
        let mut functions = self.functions.iter();
        let function = functions.find(|function| function.code.contains(&pc));
        let access = function.and_then(|function| function.accesses.get(index as usize)).cloned();
        let number = access.map(|access| {
            let allowed = self.regions.allowed(&access);
            self.sites.push(Site { pc, access, allowed });
            self.sites.len() as u32 - 1
        });
        self.site_numbers.insert(pc, number);
        number
    }

    /// Checks the accesses of a warp's lanes.
    fn access(&mut self, store: &DeviceStore<'_>, first: usize, number: u32) {
        let site = &self.sites[number as usize];
        let (kind, bytes) = (site.access.kind, u64::from(site.access.ty.bytes()));
        let group = self.regions.groups.map(|places| places.of_warp(store.core, store.warp).1);
        let group = group.as_ref();
        if self.checks.types
            && site.allowed.wrong_type.is_some()
            && let Some(lane) = store.lanes().next()
        {
            self.found(Wrong::Type, lane, first, number, group);
        }
        // What holds for all bytes between the lanes' addresses need not be looked up for each lane.
        let hull = hull(store, bytes);
        let allowed = &self.sites[number as usize].allowed;
        let all_allowed = self.is_allowed(allowed, &hull, group);
        let all_written = !self.tracks_written
            || (hull.end - hull.start <= LARGEST_HULL && !self.unwritten.has_any(hull.clone()));
        let mut followed = store.executing;
        if !all_allowed || !all_written {
            for lane in store.lanes() {
                let range = lane.value..lane.value.saturating_add(bytes);
                if !all_allowed && !self.is_allowed_to(first, number, lane, &range, group) {
                    if self.checks.bounds {
                        self.found(Wrong::Bounds, lane, first, number, group);
                    }
                    followed &= !(1 << lane.lane);
                } else if !all_written {
                    if kind != AccessKind::Store && self.unwritten.has_any(range.clone()) {
                        self.found(Wrong::Uninitialized, lane, first, number, group);
                    }
                    if kind != AccessKind::Load {
                        self.unwritten.write(range);
                    }
                }
            }
        }
        let stacks = &self.regions.stacks;
        let is_in_stack = stacks.start <= hull.start && hull.end <= stacks.end;
        if self.checks.races && !is_in_stack {
            for (lane, other) in self.races_of(store, followed, &hull, first, number) {
                self.found(Wrong::Race(other), lane, first, number, group);
            }
        }
    }

    /// The accesses of the lanes in `followed` that race with others, and one of those each.
    fn races_of(
        &mut self,
        store: &DeviceStore<'_>,
        followed: u64,
        hull: &Range<u64>,
        first: usize,
        number: u32,
    ) -> Vec<(LaneStore, Stamp)> {
        let access = &self.sites[number as usize].access;
        let (kind, bytes) = (access.kind, u64::from(access.ty.bytes()));
        let (stamps, values) = (&self.stamps[first..], &self.values[first..]);
        let now = |lane: usize| stamps[lane].at(number, kind == AccessKind::Atomic);
        let mut found = Vec::new();
        if bytes == 4 && followed == store.executing && self.is_row(store, hull) {
            let count = followed.count_ones() as usize;
            let mut nows = [Stamp::default(); 64];
            nows.iter_mut().take(count).enumerate().for_each(|(lane, stamp)| *stamp = now(lane));
            let does = match kind {
                AccessKind::Load => Do::Load,
                _ => Do::Store(&values[..count]),
            };
            let mut raced = |lane, other| found.extend(store.lanes().nth(lane).zip(Some(other)));
            self.races.access_row(hull.start, &nows[..count], does, &mut raced);
            return found;
        }
        // Of loads from one place, two are enough to find each store that races with one of them.
        let (mut last, mut loads) = (None, 0);
        for lane in store.lanes().filter(|lane| followed >> lane.lane & 1 != 0) {
            loads = if last == Some(lane.value) { loads + 1 } else { 1 };
            last = Some(lane.value);
            let is_known = kind == AccessKind::Load && loads > 2;
            if is_known || self.regions.stacks.contains(&lane.value) {
                continue;
            }
            let index = usize::from(lane.lane);
            // What is wider than a word differs in all words where the word that is reported differs.
            let value = match values[index] {
                value if bytes > self.word.bytes().into() => value << 32 | value,
                value => value,
            };
            let does = match kind {
                AccessKind::Load => Do::Load,
                _ => Do::Store(&[value]),
            };
            let other = self.races.access(lane.value, bytes, now(index), does);
            found.extend(other.map(|other| (lane, other)));
        }
        found
    }

    /// Whether the lowest lanes execute and access words that follow each other, none on a stack.
    fn is_row(&self, store: &DeviceStore<'_>, hull: &Range<u64>) -> bool {
        let (executing, start) = (store.executing, store.values[0]);
        let count = u64::from(executing.count_ones());
        let follows = |(lane, &address): (usize, &u64)| address == start + 4 * lane as u64;
        executing & executing.wrapping_add(1) == 0
            && start.is_multiple_of(4)
            && hull.end - hull.start == 4 * count
            && store.values[..count as usize].iter().enumerate().all(follows)
            && (hull.end <= self.regions.stacks.start || self.regions.stacks.end <= hull.start)
    }

    /// Whether a lane may access `range` at a site.
    fn is_allowed_to(
        &self,
        first: usize,
        site: u32,
        lane: LaneStore,
        range: &Range<u64>,
        group: Option<&Range<u64>>,
    ) -> bool {
        let allowed = &self.sites[site as usize].allowed;
        let slot = self.items[first + usize::from(lane.lane)].slot;
        let in_slot = |bytes| slot <= range.start && range.end <= slot.saturating_add(bytes);
        allowed.slot.is_some_and(in_slot) || self.is_allowed(allowed, range, group)
    }

    /// Whether all work-items of a group may access `range`, wherever their own stack slots are.
    fn is_allowed(
        &self,
        allowed: &Allowed,
        range: &Range<u64>,
        group: Option<&Range<u64>>,
    ) -> bool {
        let inside = |start: u64, end: u64| start <= range.start && range.end <= end;
        let in_group = |bytes: &Range<u64>| {
            group.is_some_and(|memory| inside(memory.start + bytes.start, memory.start + bytes.end))
        };
        allowed.ranges.iter().any(|(range, _)| inside(range.start, range.end))
            || allowed.in_group.iter().any(in_group)
            || (allowed.anywhere && self.regions.is_anywhere(range, group))
    }

    /// Notes a finding about the access of a lane at a site.
    fn found(
        &mut self,
        wrong: Wrong,
        lane: LaneStore,
        first: usize,
        number: u32,
        group: Option<&Range<u64>>,
    ) {
        let (code, other) = match wrong {
            Wrong::Bounds => (0, 0),
            Wrong::Uninitialized => (1, 0),
            Wrong::Type => (2, 0),
            Wrong::Race(other) => (3, other.site()),
        };
        let key = (code, number, other);
        if let Some(&index) = self.numbers.get(&key) {
            match index {
                Some(index) => self.findings[index].count += 1,
                None => self.more += 1,
            }
            return;
        }
        if self.findings.len() >= self.checks.limit {
            self.numbers.insert(key, None);
            self.more += 1;
            return;
        }
        let item = self.items[first + usize::from(lane.lane)];
        let allowed = &self.sites[number as usize].allowed;
        let access = self.described(number, lane.value, item.position);
        let target = self.regions.target(allowed, lane.value, group, item.slot);
        let kind = match wrong {
            Wrong::Bounds => FindingKind::OutOfBounds,
            Wrong::Uninitialized => FindingKind::Uninitialized,
            Wrong::Type => {
                let expected = allowed.wrong_type.unwrap_or(access.ty);
                FindingKind::ElementType { expected }
            }
            Wrong::Race(other) => {
                let position = self.numbers_of_items.position(other.item);
                FindingKind::Race { other: self.described(other.site(), lane.value, position) }
            }
        };
        self.numbers.insert(key, Some(self.findings.len()));
        self.findings.push(Finding { kind, access, target, count: 1 });
    }

    fn described(&self, site: u32, address: u64, work_item: [u64; 3]) -> Access {
        let access = &self.sites[site as usize].access;
        Access {
            kind: access.kind,
            ty: access.ty,
            address,
            work_item,
            group: self.numbers_of_items.group_of(work_item),
            place: None,
            function: None,
        }
    }
}

/// All bytes from the first to the last that the lanes access.
fn hull(store: &DeviceStore<'_>, bytes: u64) -> Range<u64> {
    let (mut first, mut last) = (u64::MAX, 0);
    for lane in store.lanes() {
        (first, last) = (first.min(lane.value), last.max(lane.value));
    }
    first..last.saturating_add(bytes)
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Bounds,
    Uninitialized,
    Type,
    Race(Stamp),
}

impl Device for Monitor {
    fn store(&mut self, store: &DeviceStore<'_>) {
        let Some(lane) = store.lanes().next() else { return };
        let DeviceStore { core, warp, pc, .. } = *store;
        let first = self.first_item(core, warp);
        // Code that reports stores to one address in all lanes.
        let word = u64::from(self.word.bytes());
        let index = (lane.address - MonitorWord::first_address(self.word)) / word;
        match MonitorWord::ALL.get(index as usize) {
            Some(MonitorWord::X) => self.set(store, first, |item, x| item.position[0] = x),
            // No work-item has another position than 0 there.
            Some(MonitorWord::Y) if self.grid[1] == 1 => {}
            Some(MonitorWord::Y) => self.set(store, first, |item, y| item.position[1] = y),
            Some(MonitorWord::Stack) if self.forgets_stacks => {
                for lane in store.lanes() {
                    let base = lane.value & !(self.regions.stack_bytes - 1);
                    self.unwritten.forget(base..lane.value);
                }
            }
            Some(MonitorWord::Stack) => {}
            Some(MonitorWord::Z) => {
                if self.grid[2] != 1 {
                    self.set(store, first, |item, z| item.position[2] = z);
                }
                self.begin(store, first);
            }
            Some(MonitorWord::Barrier) => {
                for lane in store.lanes() {
                    self.stamps[first + usize::from(lane.lane)].barriers += 1;
                }
            }
            Some(MonitorWord::Value) if self.is_whole(store) => {
                self.values[first..first + self.lanes].copy_from_slice(&store.values[..self.lanes]);
            }
            Some(MonitorWord::Value) => {
                for lane in store.lanes() {
                    self.values[first + usize::from(lane.lane)] = lane.value;
                }
            }
            Some(MonitorWord::Slot) => self.set(store, first, |item, slot| item.slot = slot),
            _ => {
                let number = index as usize - MonitorWord::ALL.len();
                let Ok(number) = u32::try_from(number) else { return };
                if let Some(site) = self.site(pc, number) {
                    self.access(store, first, site);
                }
            }
        }
    }
}
