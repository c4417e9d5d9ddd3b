//! The device to which a kernel reports what it does.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use harp_emu::{Device, DeviceStore, LaneStore};
use harp_isa::WordSize;
use harp_isa::abi::{LaneField, MonitorWord, Order};
use harp_jit::{AccessKind, MemoryAccess, SourcePlace};

use crate::checks::Checks;
use crate::finding::Finding;
use crate::items::Items;
use crate::ordered::Ordered;
use crate::races::{Do, Now, Races, Stamp};
use crate::regions::{Allowed, GroupPlaces, InGroup, Regions, Slot};
use crate::unwritten::Unwritten;

mod found;

use found::Wrong;

/// Bytes between lanes' addresses up to which it pays to look at all at once.
const LARGEST_HULL: u64 = 4096;

/// The code of a function that reports its accesses.
#[derive(Clone, Debug)]
pub struct CheckedFunction {
    /// Its addresses.
    pub code: Range<u64>,
    /// The accesses by the numbers with which it reports them.
    pub accesses: Vec<MemoryAccess>,
}

/// What was found in a launch.
#[derive(Debug)]
pub struct Found {
    /// The findings, in the order in which they were made, [`Checks::limit`] at most.
    pub list: Vec<Finding>,
    /// How many others there were, at other places.
    pub more: u64,
    /// What was not written when the launch ended, if that was followed.
    pub unwritten: Option<Unwritten>,
    /// For the next launch.
    pub races: Races,
}

/// Where the code at an address comes from, and the function that it is in, if that is not the kernel itself.
pub type PlaceOf<'a> = dyn Fn(u64) -> (Option<SourcePlace>, Option<String>) + 'a;

/// Reads a word of the device's memory.
pub type WordAt = dyn Fn(u64) -> u64 + Send;

/// A device that takes all reports and does nothing with them.
#[derive(Clone, Copy, Debug)]
pub struct Ignored;

impl Device for Ignored {
    fn store(&mut self, _: &DeviceStore<'_>) {}
}

/// An access in the program, and what it may be to.
struct Site {
    /// The address of the instruction that reports it; 0: nothing was reported yet.
    pc: u64,
    access: MemoryAccess,
    allowed: Allowed,
    /// For a store in a copy, the site of the load.
    copy_of: Option<u32>,
}

/// Checks what a launch does, as the device at [`MonitorWord::first_address`] and all addresses behind it.
pub struct Monitor {
    word: WordSize,
    checks: Checks,
    regions: Regions,
    grid: [u64; 3],
    numbers_of_items: Items,
    /// The buffers that nothing may change, and the numbers of the parameters that promise it.
    constants: Vec<(Range<u64>, u32)>,
    /// The code of functions, and the numbers of their sites.
    functions: Vec<(Range<u64>, Range<u32>)>,
    sites: Vec<Site>,
    lanes: usize,
    warps: usize,
    word_at: Box<WordAt>,
    /// By core, warp and lane, as the three that follow: the work-item that the lane runs, the barriers that it has passed.
    stamps: Vec<Stamp>,
    /// What these have ordered.
    ordered: Vec<Ordered>,
    /// What it stores next.
    values: Vec<u64>,
    /// The address of the stack slot that it accesses next.
    slots: Vec<u64>,
    /// By core and warp: the lanes whose work-item follows that of the lane before and has passed the same barriers.
    following: Vec<u64>,
    /// The number of the group that each place runs, once it has begun.
    groups: Vec<Option<u32>>,
    /// By place: the last work-item that has passed a barrier, and where.
    passed: Vec<Stamp>,
    races: Races,
    unwritten: Unwritten,
    /// Which bytes were not written of those that a lane's last load at a site has read to copy them, if there are any.
    copied: HashMap<(usize, u32), u64>,
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
pub struct Extents {
    /// The size of the machine's words.
    pub word: WordSize,
    /// Lanes of a warp.
    pub lanes: u8,
    /// Warps that are started on each core.
    pub warps: u64,
    /// Work-items in each dimension.
    pub grid: [u64; 3],
    /// Work-items of a group in each dimension, if there are groups.
    pub group: Option<[u64; 3]>,
    /// Whether the program accesses stack slots.
    pub uses_slots: bool,
}

impl Monitor {
    /// A monitor of a launch with these extents, of which the addresses in `unwritten` were not written before. `functions`
    /// are the kernel and the functions that it calls; `word_at` reads from the memory that they run in. `last_races` are
    /// those of the launch before, whose tables are used again: they say nothing about this one.
    pub fn new(
        checks: Checks,
        extents: Extents,
        regions: Regions,
        unwritten: Unwritten,
        functions: impl Iterator<Item = CheckedFunction>,
        word_at: Box<WordAt>,
        last_races: Races,
    ) -> Monitor {
        let Extents { word, lanes, warps, grid, group, uses_slots } = extents;
        let items = Items::new(grid, group);
        let mut sites = Vec::new();
        let numbered = functions.map(|CheckedFunction { code, accesses }| {
            let first = sites.len() as u32;
            sites.extend(accesses.into_iter().map(|access| {
                let allowed = regions.allowed(&access);
                let copy_of = access.copy_of.and_then(|load| first.checked_add(load));
                Site { pc: 0, access, allowed, copy_of }
            }));
            (code, first..sites.len() as u32)
        });
        let functions = numbered.collect();
        let constants = match checks.constants {
            true => regions.constants().collect(),
            false => Vec::new(),
        };
        Monitor {
            word,
            checks,
            regions,
            grid,
            numbers_of_items: items,
            constants,
            functions,
            sites,
            lanes: lanes.into(),
            warps: warps as usize,
            word_at,
            stamps: Vec::new(),
            ordered: Vec::new(),
            values: Vec::new(),
            slots: Vec::new(),
            following: Vec::new(),
            groups: Vec::new(),
            passed: Vec::new(),
            races: last_races.restart(items),
            unwritten,
            copied: HashMap::new(),
            tracks_written: checks.uninitialized,
            forgets_stacks: checks.uninitialized && uses_slots,
            findings: Vec::new(),
            numbers: HashMap::new(),
            more: 0,
        }
    }

    /// The number of a warp's first lane.
    fn first_lane(&mut self, core: u16, warp: u8) -> usize {
        let warp = usize::from(core) * self.warps + usize::from(warp);
        let (first, lanes) = (warp * self.lanes, (warp + 1) * self.lanes);
        if self.stamps.len() < lanes {
            self.stamps.resize(lanes, Stamp::default());
            self.ordered.resize(lanes, Ordered::default());
            self.values.resize(lanes, 0);
            self.slots.resize(lanes, 0);
            self.following.resize(warp + 1, 0);
        }
        first
    }

    /// Work-items begin, whose positions in the first dimension are stored.
    fn begin(&mut self, store: &DeviceStore<'_>, first: usize) {
        let mut last = LaneStore::default();
        let mut number = 0_u32;
        for lane in store.lanes() {
            // Lanes that follow each other run work-items that do, row by row of the grid or of the group.
            let follows = lane.lane == last.lane + 1 && lane.value == last.value + 1;
            number = match follows && number != 0 {
                true => number.saturating_add(1),
                false => self.number(first + usize::from(lane.lane), lane.value),
            };
            self.stamps[first + usize::from(lane.lane)] = Stamp::new(number);
            self.ordered[first + usize::from(lane.lane)] = Ordered::default();
            last = lane;
        }
        self.follow(first);
        let Some(places) = self.regions.groups else { return };
        let (place, memory) = places.of_warp(store.core, store.warp);
        if self.groups.len() <= place {
            self.groups.resize(place + 1, None);
            self.passed.resize(place + 1, Stamp::default());
        }
        let group = Some(self.numbers_of_items.group(number));
        if self.groups[place] != group {
            self.groups[place] = group;
            self.passed[place] = Stamp::default();
            self.races.forget(memory.start..memory.end.next_multiple_of(4));
            if self.tracks_written {
                self.unwritten.forget(memory);
            }
        }
    }

    /// The number of the work-item that a lane begins, which is at `x` in the first dimension.
    fn number(&self, lane: usize, x: u64) -> u32 {
        let control = self.regions.stacks.start + lane as u64 * self.regions.stack_bytes;
        let position = |dim: usize, field: LaneField| match self.grid[dim] {
            1 => 0,
            _ => (self.word_at)(control + u64::from(field.offset(self.word))),
        };
        let (y, z) = (position(1, LaneField::GlobalIdY), position(2, LaneField::GlobalIdZ));
        self.numbers_of_items.number([x, y, z])
    }

    /// Notes which work-items of a warp follow each other.
    fn follow(&mut self, first: usize) {
        let lanes = first..first + self.lanes;
        let (stamps, ordered) = (&self.stamps[lanes.clone()], &self.ordered[lanes]);
        let follows = |lane: usize| {
            let (last, own) = (stamps[lane - 1], stamps[lane]);
            last.item != 0 && last.plus(1) == own && ordered[lane - 1] == ordered[lane]
        };
        let bits = (1..self.lanes).map(|lane| u64::from(follows(lane)) << lane);
        self.following[first / self.lanes] = bits.fold(0, |all, bit| all | bit);
    }

    /// The number of the site that reports access `index` at `pc`.
    fn site(&mut self, pc: u64, index: u64) -> Option<u32> {
        let mut functions = self.functions.iter();
        let (_, sites) = functions.find(|(code, _)| code.contains(&pc))?;
        let number = sites.clone().nth(index as usize)?;
        self.sites[number as usize].pc = pc;
        Some(number)
    }

    /// Lanes of a warp have passed a barrier or a fence.
    fn order(&mut self, at: &Reported<'_>) {
        let DeviceStore { core, warp, .. } = *at.store;
        for lane in at.store.lanes() {
            let own = at.first + usize::from(lane.lane);
            self.ordered[own].order(&mut self.stamps[own], lane.value);
        }
        self.follow(at.first);
        let barrier = at.store.lanes().find(|lane| lane.value & Order::BARRIER != 0);
        let place = self.regions.groups.map(|places| places.of_warp(core, warp).0);
        let (Some(lane), Some(place)) = (barrier, place) else { return };
        let Some(last) = self.passed.get_mut(place) else { return };
        let now = self.stamps[at.first + usize::from(lane.lane)].at(at.site, false);
        let last = std::mem::replace(last, now);
        let is_same = last.barriers == now.barriers && last.item != 0;
        if self.checks.races && is_same && last.site() != now.site() {
            self.found(Wrong::Barrier(last), at, lane.lane);
        }
    }

    /// Checks the accesses of a warp's lanes.
    fn access(&mut self, at: &Reported<'_>) {
        let Reported { store, site, .. } = *at;
        let Site { access, allowed, copy_of, .. } = &self.sites[site as usize];
        let (is_copied, copy_of) = (access.is_copied, *copy_of);
        let (kind, bytes) = (access.kind, u64::from(access.ty.bytes()));
        let misaligned = match self.checks.alignment {
            true => u64::from(access.alignment).saturating_sub(1),
            false => 0,
        };
        let is_wrong_type = self.checks.types && allowed.wrong_type.is_some();
        // What holds for all bytes between the lanes' addresses need not be looked up for each lane.
        let hull = hull(store, bytes);
        let all_allowed = self.is_allowed(allowed, &hull, at.group.as_ref());
        let all_written = !self.tracks_written
            || (hull.end - hull.start <= LARGEST_HULL && !self.unwritten.has_any(hull.clone()));
        if is_wrong_type && let Some(lane) = store.lanes().next() {
            self.found(Wrong::Type, at, lane.lane);
        }
        if misaligned != 0 {
            for lane in store.lanes().filter(|lane| lane.value & misaligned != 0) {
                self.found(Wrong::Alignment, at, lane.lane);
            }
        }
        if kind != AccessKind::Load && self.promised(&hull).is_some() {
            for LaneStore { lane, value, .. } in store.lanes() {
                let range = value..value.saturating_add(bytes);
                let Some(parameter) = self.promised(&range) else { continue };
                // What is out of bounds is found as that.
                let is_meant = all_allowed || self.is_allowed_to(at, lane, &range);
                if is_meant || !self.checks.bounds {
                    self.found(Wrong::Constant(parameter), at, lane);
                }
            }
        }
        let mut followed = store.executing;
        let follows_copies = !self.copied.is_empty() && (is_copied || copy_of.is_some());
        if !all_allowed || !all_written || follows_copies {
            for LaneStore { lane, value, .. } in store.lanes() {
                let range = value..value.saturating_add(bytes);
                if !all_allowed && !self.is_allowed_to(at, lane, &range) {
                    if self.checks.bounds {
                        self.found(Wrong::Bounds, at, lane);
                    }
                    followed &= !(1 << lane);
                } else if is_copied {
                    self.copy_from(range, (at.first + usize::from(lane), site));
                } else if !all_written || follows_copies {
                    if kind != AccessKind::Store && self.unwritten.has_any(range.clone()) {
                        self.found(Wrong::Uninitialized, at, lane);
                    }
                    if kind != AccessKind::Load {
                        self.unwritten.write(range);
                    }
                    let load = copy_of.map(|load| (at.first + usize::from(lane), load));
                    if let Some(&missing) = load.and_then(|load| self.copied.get(&load)) {
                        self.copy_to(value, missing);
                    }
                }
            }
        }
        let stacks = &self.regions.stacks;
        let is_in_stack = stacks.start <= hull.start && hull.end <= stacks.end;
        if self.checks.races && !is_in_stack {
            for (lane, other) in self.races_of(at, followed) {
                self.found(Wrong::Race(other), at, lane);
            }
        }
    }

    /// Notes which of the bytes that a lane loads at a site, to copy them, were not written.
    fn copy_from(&mut self, range: Range<u64>, load: (usize, u32)) {
        let bytes = range.zip(0..u64::BITS);
        let missing = bytes.filter(|&(byte, _)| self.unwritten.has_any(byte..byte + 1));
        match missing.fold(0, |all, (_, bit)| all | 1 << bit) {
            0 => drop(self.copied.remove(&load)),
            missing => drop(self.copied.insert(load, missing)),
        }
    }

    /// Takes bytes that were stored from an address on for not written, as they were not where they come from.
    fn copy_to(&mut self, address: u64, missing: u64) {
        for bit in (0..u64::BITS).filter(|bit| missing >> bit & 1 != 0) {
            let byte = address + u64::from(bit);
            self.unwritten.forget(byte..byte + 1);
        }
    }

    /// The accesses of the lanes in `followed` that race with others, and one of those each.
    fn races_of(&mut self, at: &Reported<'_>, followed: u64) -> Vec<(u8, Stamp)> {
        let access = &self.sites[at.site as usize].access;
        let (kind, bytes) = (access.kind, u64::from(access.ty.bytes()));
        let lanes = at.first..at.first + self.lanes;
        let (stamps, ordered) = (&self.stamps[lanes.clone()], &self.ordered[lanes.clone()]);
        let values = &self.values[lanes];
        let addresses = at.store.values;
        let following = self.following[at.first / self.lanes] & followed;
        let mut found = Vec::new();
        let (mut rest, mut last, mut loads) = (followed, None, 0);
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            let (address, mut count) = (addresses[lane], 1);
            let is_of_group = at.group.as_ref().is_some_and(|memory| memory.contains(&address));
            let stamp = stamps[lane].at(at.site, kind == AccessKind::Atomic);
            let now = Now { stamp, ordered: ordered[lane].to(is_of_group) };
            // Of loads from one place, two are enough to find each store that races with one of them.
            loads = if last == Some(address) { loads + 1 } else { 1 };
            last = Some(address);
            let is_known = kind == AccessKind::Load && loads > 2;
            if is_known || self.regions.stacks.contains(&address) {
            } else if bytes == 4 && address.is_multiple_of(4) {
                let is_next = |&next: &usize| {
                    following >> next & 1 != 0
                        && addresses[next] == address + 4 * (next - lane) as u64
                };
                count += (lane + 1..self.lanes).take_while(is_next).count();
                let does = Do::by(kind, &values[lane..lane + count]);
                let mut raced = |at, other| found.push(((lane + at) as u8, other));
                self.races.access_row(address, count as u32, now, does, &mut raced);
                last = Some(addresses[lane + count - 1]);
            } else {
                // What is wider than a word differs in all words where the word that is reported differs.
                let value = match values[lane] {
                    value if bytes > self.word.bytes().into() => value << 32 | value,
                    value => value,
                };
                let other = self.races.access(address, bytes, now, Do::by(kind, &[value]));
                found.extend(other.map(|other| (lane as u8, other)));
            }
            rest &= !(u64::MAX >> (64 - count) << lane);
        }
        found
    }

    /// The parameter that promises that nothing changes any byte of `range`.
    fn promised(&self, range: &Range<u64>) -> Option<u32> {
        let overlaps = |all: &Range<u64>| range.start < all.end && all.start < range.end;
        self.constants.iter().find(|(all, _)| overlaps(all)).map(|&(_, parameter)| parameter)
    }

    /// Whether a lane may access `range`.
    fn is_allowed_to(&self, at: &Reported<'_>, lane: u8, range: &Range<u64>) -> bool {
        let allowed = &self.sites[at.site as usize].allowed;
        let slot = self.slots[at.first + usize::from(lane)];
        // A work-item that has written over its stack may report anything as its slot.
        let stacks = &self.regions.stacks;
        let is_in_stack = stacks.start <= range.start && range.end <= stacks.end;
        let in_slot = |&Slot { bytes, .. }: &Slot| {
            is_in_stack && slot <= range.start && range.end <= slot.saturating_add(bytes)
        };
        allowed.slot.as_ref().is_some_and(in_slot)
            || self.is_allowed(allowed, range, at.group.as_ref())
    }

    /// Whether all work-items of a group may access `range`, wherever their own stack slots are.
    fn is_allowed(
        &self,
        allowed: &Allowed,
        range: &Range<u64>,
        group: Option<&Range<u64>>,
    ) -> bool {
        let inside = |start: u64, end: u64| start <= range.start && range.end <= end;
        let in_group = |InGroup { bytes, .. }: &InGroup| {
            group.is_some_and(|memory| inside(memory.start + bytes.start, memory.start + bytes.end))
        };
        allowed.ranges.iter().any(|(range, _)| inside(range.start, range.end))
            || allowed.in_group.iter().any(in_group)
            || (allowed.anywhere && self.regions.is_anywhere(range, group))
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Monitor");
        text.field("checks", &self.checks).field("findings", &self.findings);
        text.field("more", &self.more).finish_non_exhaustive()
    }
}

/// All bytes from the first to the last that the lanes access.
fn hull(store: &DeviceStore<'_>, bytes: u64) -> Range<u64> {
    let addresses = || store.lanes().map(|lane| lane.value);
    let (first, last) = addresses().fold((u64::MAX, 0), |(a, b), x| (a.min(x), b.max(x)));
    first..last.saturating_add(bytes)
}

impl Device for Monitor {
    fn store(&mut self, store: &DeviceStore<'_>) {
        let DeviceStore { core, warp, pc, executing, .. } = *store;
        let first = self.first_lane(core, warp);
        let lanes = first..first + self.lanes;
        // Code that reports stores to one address in all lanes.
        let address = store.addresses[executing.trailing_zeros() as usize];
        let word = u64::from(self.word.bytes());
        let index = (address - MonitorWord::first_address(self.word)) / word;
        match MonitorWord::ALL.get(index as usize) {
            Some(MonitorWord::Begin) => self.begin(store, first),
            Some(MonitorWord::Stack) if self.forgets_stacks => {
                let Range { start, end } = self.regions.stacks;
                for lane in store.lanes().filter(|lane| (start..=end).contains(&lane.value)) {
                    let base = lane.value & !(self.regions.stack_bytes - 1);
                    self.unwritten.forget(base..lane.value);
                }
            }
            Some(MonitorWord::Stack) => {}
            Some(MonitorWord::Value) => keep(&mut self.values[lanes], store),
            Some(MonitorWord::Slot) => keep(&mut self.slots[lanes], store),
            _ => {
                let index = index - MonitorWord::ALL.len() as u64;
                if let Some(site) = self.site(pc, index) {
                    let memory = |places: GroupPlaces| places.of_warp(core, warp).1;
                    let group = self.regions.groups.map(memory);
                    let at = Reported { store, first, site, group };
                    match self.sites[site as usize].access.kind {
                        AccessKind::Order => self.order(&at),
                        _ => self.access(&at),
                    }
                }
            }
        }
    }
}

/// A report of a warp's accesses.
struct Reported<'a> {
    store: &'a DeviceStore<'a>,
    /// The number of the warp's first lane.
    first: usize,
    site: u32,
    /// The memory of the warp's group.
    group: Option<Range<u64>>,
}

/// Keeps what each lane of a warp has stored.
fn keep(all: &mut [u64], store: &DeviceStore<'_>) {
    if all.len() == store.executing.count_ones() as usize {
        all.copy_from_slice(&store.values[..all.len()]);
        return;
    }
    for lane in store.lanes() {
        all[usize::from(lane.lane)] = lane.value;
    }
}
