//! Regions: the blocks of instructions that are reachable from a hot address, and what is known before each.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use crate::body::{Body, Inst};
use crate::class::Class;
use crate::faint::mark_faint;
use crate::rules::{Assumed, Lanes, Rules, lanes};
use crate::state::{Bits, Level, Need, State};

/// A block: its first address, and whether all lanes of the machine are known to be active.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) pc: u64,
    pub(crate) full: bool,
    /// Whether the innermost loop around it has gone round: see [`Loops`].
    pub(crate) again: bool,
}

impl Key {
    pub(crate) fn new(pc: u64, full: bool) -> Key {
        Key { pc, full, again: false }
    }

    /// The same in a loop's first round.
    pub(crate) fn first(self) -> Key {
        Key { again: false, ..self }
    }
}

/// The loops of a region. Where words of memory are followed, a loop's blocks stand there twice: for its first round, and
/// for all others, before which it is known what the round before has loaded and stored. Warps enter in a first round.
#[derive(Clone, Debug)]
pub(crate) struct Loops {
    heads: BTreeSet<u64>,
    are_followed: bool,
}

impl Loops {
    /// The block to which control goes from `inst` in block `from`, if that is `to` or the same in another round.
    pub(crate) fn target(&self, from: Key, inst: &Inst, to: Key) -> Key {
        let again = match may_enter(inst, to.pc) {
            _ if !self.are_followed => false,
            _ if self.heads.contains(&to.pc) => to.pc <= inst.pc,
            true => false,
            false => from.again,
        };
        Key { again, ..to }
    }

    /// Where control may go after `inst`, the last of block `from`, before which `state` holds; and where a warp enters that
    /// has left there.
    pub(crate) fn edges(&self, rules: Rules, from: Key, state: &State, inst: &Inst) -> Vec<Edge> {
        let mut edges = rules.edges(state, inst, from.full);
        if !self.are_followed {
            return edges;
        }
        let mut entered = Vec::new();
        for (to, state) in &mut edges {
            *to = self.target(from, inst, *to);
            if !to.full {
                state.slots.clear();
            }
            let is_entry = may_enter(inst, to.pc) || self.heads.contains(&to.pc);
            let mut first = state.clone();
            first.slots.clear();
            first.garbage = Bits::default();
            rules.arrive(&mut first, to.pc, to.full);
            match to.again {
                true if is_entry => entered.push((to.first(), first)),
                false if is_entry => *state = first,
                _ => {}
            }
        }
        edges.extend(entered);
        edges
    }
}

/// Instructions that the same lanes execute one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) insts: Vec<Inst>,
    /// What is known before it.
    pub(crate) state: State,
    /// The registers that may have changed since the region was entered, as bits, before it.
    pub(crate) changed: u64,
}

/// The blocks that are reachable from the address at which a warp is.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) head: Key,
    pub(crate) blocks: BTreeMap<Key, Block>,
    /// Blocks at which warps may enter it; the first is the head.
    pub(crate) entries: Vec<Key>,
    /// The divergence stack that each expects.
    levels: Vec<Vec<Level>>,
    /// The registers that it reads or writes, as bits.
    pub(crate) registers: u64,
    pub(crate) loops: Loops,
}

impl Region {
    /// What holds before each block, of which `before` tells that of one from what holds before all, as far as that is known:
    /// the least that agrees with itself.
    pub(crate) fn backward<T: Clone + Default + PartialEq>(
        &self,
        before: impl Fn(Key, &BTreeMap<Key, T>) -> T,
    ) -> BTreeMap<Key, T> {
        let mut all: BTreeMap<Key, T> =
            self.blocks.keys().map(|&key| (key, T::default())).collect();
        loop {
            let mut changed = false;
            for &key in self.blocks.keys().rev() {
                let new = before(key, &all);
                let old = all.insert(key, new.clone());
                changed |= old != Some(new);
            }
            if !changed {
                return all;
            }
        }
    }

    /// The topmost levels of the divergence stack that entry number `entry` expects.
    pub(crate) fn levels(&self, entry: usize) -> &[Level] {
        self.levels.get(entry).map_or(&[], |levels| levels)
    }
}

/// Where control may go, and what is known there.
pub(crate) type Edge = (Key, State);

impl Rules {
    /// Where control may go after `inst`, the last of a block, before which `state` holds.
    pub(crate) fn edges(self, state: &State, inst: &Inst, full: bool) -> Vec<Edge> {
        let mut state = state.clone();
        self.arrive(&mut state, inst.pc, full);
        let mut edges = self.plain_edges(&state, inst, full);
        for (to, state) in &mut edges {
            if may_enter(inst, to.pc) {
                // A warp that enters there may have come another way.
                state.garbage = Bits::default();
            }
            self.arrive(state, to.pc, to.full);
        }
        edges
    }

    fn plain_edges(self, state: &State, inst: &Inst, full: bool) -> Vec<Edge> {
        let by_jump = |pc: Option<u64>| {
            let mut edges = Vec::new();
            if let Some(pc) = pc {
                let mut taken = state.clone();
                // Whoever jumps does it together.
                let inst = Inst { guard: None, ..*inst };
                self.step(&mut taken, &inst, full);
                edges.push((Key::new(pc, full), taken));
            }
            if inst.guard.is_some() {
                edges.push((Key::new(inst.next, full), state.clone()));
            }
            edges
        };
        match inst.body {
            Body::Jump { target, .. } => by_jump(Some(target)),
            Body::JumpTo { link, target } => by_jump(self.target(state, inst, link, target)),
            Body::Split => self.after_split(state, inst, full),
            Body::Join => self.after_join(state, inst, full),
            Body::Unknown => Vec::new(),
            _ => {
                let mut after = state.clone();
                self.step(&mut after, inst, full);
                vec![(Key::new(inst.next, full), after)]
            }
        }
    }

    /// The constant to which `inst` jumps, if it is one.
    pub(crate) fn target(
        self,
        state: &State,
        inst: &Inst,
        link: Option<u8>,
        target: u8,
    ) -> Option<u64> {
        match state.regs[usize::from(target)] {
            _ if link == Some(target) => Some(inst.next),
            Class::Const(pc) => Some(pc),
            _ => None,
        }
    }

    fn after_split(self, state: &State, inst: &Inst, full: bool) -> Vec<Edge> {
        let mut after = state.clone();
        after.stack.push(Level { behind: inst.next, was_full: Some(full) });
        if after.stack.len() > KNOWN_LEVELS {
            after.stack.remove(0);
        }
        let mut edges = vec![(Key::new(inst.next, full), after.clone())];
        if full && lanes(state, inst, full) == Lanes::Some {
            edges.push((Key::new(inst.next, false), after));
        }
        edges
    }

    fn after_join(self, state: &State, inst: &Inst, full: bool) -> Vec<Edge> {
        let mut popped = state.clone();
        let next = |full| Key::new(inst.next, full);
        match popped.stack.pop() {
            _ if full => vec![(next(true), popped)],
            None | Some(Level { was_full: None, .. }) => {
                let edges = [(next(true), popped.clone()), (next(false), popped)];
                let other = state.stack.last().map(|level| level.behind);
                let other = other.map(|pc| (Key::new(pc, false), state.clone()));
                other.into_iter().chain(edges).collect()
            }
            Some(Level { behind, was_full: Some(was_full) }) => {
                vec![(Key::new(behind, false), state.clone()), (next(was_full), popped)]
            }
        }
    }
}

/// Whether warps may enter a region at `to`, where control comes from `inst`.
fn may_enter(inst: &Inst, to: u64) -> bool {
    to <= inst.pc || inst.is_foreign()
}

/// The most splits of the divergence stack that are remembered.
const KNOWN_LEVELS: usize = 16;

/// The region of the warp at `head`, of whose registers `state` is known. `fetch` gives the instruction at an address,
/// if there is one. `None` if there is nothing to gain.
pub(crate) fn form(
    rules: Rules,
    head: Key,
    state: State,
    bounds: Bounds<'_>,
    fetch: &mut dyn FnMut(u64) -> Option<Inst>,
) -> Option<Region> {
    // Where it returns to, if that is known.
    let behind = match state.regs[rules.shape.link()] {
        Class::Const(pc) => Some(pc),
        _ => None,
    };
    let starts = [head.pc].into_iter().chain(behind).collect();
    let Leaders { all: leaders, loops } = leaders(starts, bounds.room.known, fetch);
    let loops = Loops { heads: loops, are_followed: rules.follows_slots() };
    let (blocks, order) = Default::default();
    let mut maker = Maker { rules, head, leaders, loops, bounds, blocks, order, fetch };
    maker.spread(state)?;
    maker.cut()?;
    maker.finish()
}

/// What blocks need of the divergence stack.
pub(crate) type Needs = BTreeMap<Key, Need>;

/// What is known at entries to which warps came that were not as a region expected.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met(HashMap<Key, State>);

impl Met {
    /// The same of `state`, so that such a warp may come.
    pub(crate) fn at(&self, key: Key, state: State) -> State {
        match self.0.get(&key.first()) {
            Some(met) => state.join(met),
            None => state,
        }
    }

    /// Adds what is known at an entry.
    pub(crate) fn add(&mut self, key: Key, state: State) {
        let joined = self.at(key, state);
        self.0.insert(key.first(), joined);
    }

    /// Adds all of `more`. Returns whether there is anything.
    pub(crate) fn add_all(&mut self, more: Met) -> bool {
        let is_any = !more.0.is_empty();
        more.0.into_iter().for_each(|(key, state)| self.add(key, state));
        is_any
    }
}

/// What bounds a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds<'a> {
    pub(crate) room: Room,
    /// Of what control reaches by jumps, only these blocks are part of it, if given.
    pub(crate) seen: Option<&'a HashSet<Key>>,
    /// What its blocks need, where that is known. What its entries do not need they do not expect.
    pub(crate) needs: &'a Needs,
    /// What else is to be expected of warps that enter.
    pub(crate) met: &'a Met,
}

/// How many instructions the blocks may have together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Those of the region.
    pub(crate) inside: usize,
    /// Those of which it is known what they change before control comes to the region's.
    pub(crate) known: usize,
}

/// The addresses at which blocks begin.
struct Leaders {
    /// Where control arrives other than from the instruction before.
    all: BTreeSet<u64>,
    /// Where it arrives from behind.
    loops: BTreeSet<u64>,
}

/// The last comparison before a jump that it guards decides it.
fn mark_decision(insts: &mut [Inst]) {
    let Some((last, before)) = insts.split_last_mut() else { return };
    let Some(guard) = last.guard.filter(|_| matches!(last.body, Body::Jump { .. })) else { return };
    for inst in before.iter_mut().rev() {
        if matches!(inst.body, Body::Split) {
            return;
        }
        if inst.pred_written() == Some(guard) {
            inst.decides = matches!(inst.body, Body::Test { .. });
            return;
        }
    }
}

/// The leaders of what is reachable from `starts` by constant jumps.
fn leaders(
    starts: BTreeSet<u64>,
    room: usize,
    fetch: &mut dyn FnMut(u64) -> Option<Inst>,
) -> Leaders {
    let mut loops = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut todo: VecDeque<u64> = starts.iter().copied().collect();
    let mut found = starts;
    while let Some(start) = todo.pop_front() {
        let mut pc = start;
        while seen.len() < 4 * room && seen.insert(pc) {
            let Some(inst) = fetch(pc) else { break };
            pc = inst.next;
            if !inst.ends_block() {
                continue;
            }
            let mut places = Vec::new();
            if inst.goes_on() {
                places.push(inst.next);
            }
            if let Body::Jump { target, .. } = inst.body {
                places.push(target);
                if target <= inst.pc {
                    loops.insert(target);
                }
            }
            for place in places {
                if found.insert(place) {
                    todo.push_back(place);
                }
            }
            break;
        }
    }
    Leaders { all: found, loops }
}

struct Maker<'a> {
    rules: Rules,
    head: Key,
    leaders: BTreeSet<u64>,
    loops: Loops,
    bounds: Bounds<'a>,
    blocks: BTreeMap<Key, Block>,
    /// The blocks as they were found.
    order: Vec<Key>,
    fetch: &'a mut dyn FnMut(u64) -> Option<Inst>,
}

impl Maker<'_> {
    /// Finds blocks, and what is known before them, until nothing changes.
    fn spread(&mut self, state: State) -> Option<()> {
        self.add(self.head, &state)?;
        let mut todo = VecDeque::from([self.head]);
        while let Some(key) = todo.pop_front() {
            for (to, state) in self.edges(key) {
                let (is_guarded, is_wanted) = (self.is_guarded(key, to), self.is_wanted(key, to));
                let changed = match self.blocks.get_mut(&to) {
                    None if !is_wanted => false,
                    None => self.add(to, &state).is_some(),
                    Some(_) if is_guarded => false,
                    Some(block) => {
                        let joined = block.state.join(&state);
                        let changed = joined != block.state;
                        block.state = joined;
                        changed
                    }
                };
                if changed && !todo.contains(&to) {
                    todo.push_back(to);
                }
            }
        }
        Some(())
    }

    /// Whether what was seen at the head is assumed to hold whenever control comes from block `from`, which is not in
    /// the head's loop as far as the order of addresses shows.
    fn is_guarded(&self, from: Key, to: Key) -> bool {
        self.rules.assumed >= Assumed::Operations && to == self.head && from.pc < to.pc
    }

    /// Whether block `to`, to which control comes from block `from`, should be part of the region.
    fn is_wanted(&self, from: Key, to: Key) -> bool {
        let falls = self.blocks[&from].insts.last().is_some_and(|last| !last.ends_block());
        falls || self.bounds.seen.is_none_or(|seen| seen.contains(&to.first()))
    }

    /// Adds a block, if there is room and there are instructions.
    fn add(&mut self, key: Key, state: &State) -> Option<()> {
        let mut insts: Vec<Inst> = Vec::new();
        let mut pc = key.pc;
        while let Some(inst) = (self.fetch)(pc) {
            insts.push(inst);
            pc = inst.next;
            if insts.len() >= LONGEST {
                break;
            }
            if let Some(target) = self.follows(&insts, key.full) {
                pc = target;
            } else if inst.ends_block() || self.leaders.contains(&pc) {
                break;
            }
        }
        mark_decision(&mut insts);
        if let Some(callee) = self.rules.callee {
            mark_faint(&mut insts, &callee.returns, self.rules.caller_saved().regs);
        }
        if insts.is_empty() || insts.len() > self.bounds.room.known {
            return None;
        }
        self.bounds.room.known -= insts.len();
        self.order.push(key);
        self.blocks.insert(key, Block { insts, state: state.clone(), changed: 0 });
        Some(())
    }

    /// The address at which the block goes on behind the jump that is its last instruction so far, if it is to.
    fn follows(&self, insts: &[Inst], full: bool) -> Option<u64> {
        let (last, before) = insts.split_last()?;
        let target = match last.body {
            _ if last.guard.is_some() => None,
            Body::Jump { target, .. } => Some(target),
            Body::JumpTo { link: None, target } => {
                let mut writers = before.iter().rev();
                let writer = writers.find(|inst| inst.registers().1 == Some(target))?;
                let is_call = writer.guard.is_none() && matches!(writer.body, Body::Jump { .. });
                is_call.then_some(writer.next)
            }
            _ => None,
        }?;
        let is_new = insts.iter().all(|inst| inst.pc != target);
        let is_wanted = self.bounds.seen.is_none_or(|seen| seen.contains(&Key::new(target, full)));
        (is_new && is_wanted && !self.loops.heads.contains(&target)).then_some(target)
    }

    fn edges(&self, key: Key) -> Vec<Edge> {
        let Some(last) = self.blocks[&key].insts.last() else { return Vec::new() };
        let mut edges = self.loops.edges(self.rules, key, &self.before_last(key), last);
        for (to, state) in edges.iter_mut().filter(|(to, _)| may_enter(last, to.pc)) {
            if let Some(need) = self.bounds.needs.get(&to.first()) {
                need.cut(&mut state.stack);
            }
            *state = self.bounds.met.at(*to, state.clone());
        }
        edges
    }

    /// What is known before a block's last instruction.
    fn before_last(&self, key: Key) -> State {
        let block = &self.blocks[&key];
        let mut state = block.state.clone();
        let insts = block.insts.split_last().map_or(&[][..], |(_, insts)| insts);
        insts.iter().for_each(|inst| self.rules.step(&mut state, inst, key.full));
        state
    }

    /// Drops blocks for which there is no room inside, the last ones that were found. What they do stays known. `None` if
    /// the head is one.
    fn cut(&mut self) -> Option<()> {
        let mut left = self.bounds.room.inside;
        for key in &self.order {
            let count = self.blocks[key].insts.len();
            match left.checked_sub(count) {
                Some(rest) => left = rest,
                None => drop(self.blocks.remove(key)),
            }
        }
        self.blocks.contains_key(&self.head).then_some(())
    }

    /// Drops what has turned out not to be reachable, and finds entries and what changes.
    fn finish(mut self) -> Option<Region> {
        let mut entries = vec![self.head];
        let mut reached = BTreeSet::from([self.head]);
        let mut todo = vec![self.head];
        while let Some(key) = todo.pop() {
            let written = self.blocks[&key].insts.iter().filter_map(|inst| inst.registers().1);
            let changed = written.fold(self.blocks[&key].changed, |bits, r| bits | 1 << r);
            let last = *self.blocks[&key].insts.last()?;
            let state = self.before_last(key);
            // Nobody reads how garbage has changed.
            let last_written = last.registers().1.map_or(0, |r| 1u64 << r);
            let changed = changed & (!state.garbage.regs | last_written);
            for (to, _) in self.loops.edges(self.rules, key, &state, &last) {
                let Some(block) = self.blocks.get_mut(&to) else { continue };
                let is_entry = may_enter(&last, to.pc) && !to.again;
                if is_entry && !entries.contains(&to) && entries.len() < MOST_ENTRIES {
                    entries.push(to);
                }
                let grows = block.changed | changed != block.changed;
                block.changed |= changed;
                if reached.insert(to) || grows {
                    todo.push(to);
                }
            }
        }
        self.blocks.retain(|key, _| reached.contains(key));
        let insts = self.blocks.values().flat_map(|block| &block.insts);
        let registers = insts.clone().fold(0u64, |bits, inst| {
            let (read, written) = inst.registers();
            read.into_iter().chain(written).fold(bits, |bits, r| bits | 1 << r)
        });
        let does = |inst: &Inst| !inst.is_foreign() && !matches!(inst.body, Body::Unknown);
        let is_worth_it = insts.clone().filter(|inst| does(inst)).count() >= LEAST;
        let Maker { head, blocks, loops, .. } = self;
        let levels = entries.iter().map(|key| blocks[key].state.stack.clone()).collect();
        is_worth_it.then_some(Region { head, blocks, entries, levels, registers, loops })
    }
}

/// The most instructions of a block.
const LONGEST: usize = 64;
/// The most blocks at which warps may enter a region.
const MOST_ENTRIES: usize = 8;
/// Regions of fewer instructions are not worth it.
const LEAST: usize = 4;
