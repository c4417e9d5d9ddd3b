//! What the tier does for a core: which regions are translated, when, and how warps get there.

use std::collections::HashMap;
use std::mem::take;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use harp_emu::{BarrierRule, Frame, HostCode, HostEnd, Resume};

use crate::adopted::{Adopted, Entrance, Place};
use crate::calls::Callee;
use crate::frame::Leave;
use crate::known::{GivenUp, Program};
use crate::lent::Lent;
use crate::observe::digest;
use crate::record::{Recorder, Seen, Step};
use crate::region::Key;
use crate::rules::{Assumed, MANY_REGISTERS, Rules};
use crate::shape::Shape;
use crate::shared::{Shared, State, When};
use crate::translated::{Formed, Tally, Translated};

/// The instructions that the interpreter issues at first before it asks again, where there is no host code.
const FIRST_PAUSE: u64 = 32;
/// Behind host code it asks at the ends of so many blocks first, where there is host code for warps that begin: the warp may
/// end soon.
const BLOCKS: u32 = 8;

/// What comes behind a visit of host code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Barrier,
    /// The interpreter should issue this many instructions before it asks again, or ask at once.
    Pause(u64),
}

/// Places that a core remembers.
const RECENT: usize = 64;

/// Host code for a core.
pub(crate) struct CoreCode {
    shared: Arc<Shared>,
    shape: Shape,
    barriers: BarrierRule,
    callee: Option<Callee>,
    program: Program,
    /// The version of the regions when it last looked, none if memory has changed since.
    version: Option<u64>,
    adopted: Vec<Adopted>,
    places: HashMap<u64, Place>,
    /// The places that were last looked up, by the low bits of their addresses.
    recent: [(u64, Option<Place>); RECENT],
    /// By the numbers of warps.
    lent: Vec<Lent>,
    range: Range<u64>,
    pause: u64,
    /// At the ends of so many blocks more it asks sooner.
    blocks: u32,
    /// Whether there is host code for warps that begin.
    begins: bool,
    recorder: Recorder,
    /// Which of the places at which host code can be left is next, where that is wanted.
    turn: u64,
    /// What is not in the tier's [`TierStats`](crate::stats::TierStats) yet: of the tallies, what is told.
    told: Tally,
    went_on: u64,
}

impl HostCode for CoreCode {
    /// Runs regions as long as one follows the other.
    fn run(&mut self, frame: &mut Frame<'_>) -> HostEnd {
        loop {
            self.adopt(frame);
            let full = *frame.active == self.shape.full();
            let place = self.place(*frame.pc);
            let Some((left, entry)) =
                place.map(|place| (place.left, place.entries[usize::from(full)]))
            else {
                match self.outside(frame) {
                    Some(pause) => return HostEnd::Pause(pause),
                    None => continue,
                }
            };
            self.pause = FIRST_PAUSE;
            self.blocks = if self.begins { BLOCKS } else { 0 };
            let Some(entrance) = entry else { return HostEnd::Pause(left) };
            let end = self.enter(entrance, frame);
            let pause = match end {
                End::Barrier => return self.lent[usize::from(frame.place[0])].barrier(),
                End::Pause(pause) => pause,
            };
            self.settle(frame);
            if pause > 0 {
                return HostEnd::Pause(pause);
            }
        }
    }

    fn go_on(&mut self, warp: &mut Resume<'_>) -> Option<HostEnd> {
        if self.version != Some(self.shared.version.load(Ordering::Acquire)) {
            return None;
        }
        let index = usize::from(warp.warp);
        let lent = self.lent.get_mut(index)?;
        let number = lent.waited_before(warp.pc)?;
        let adopted = self.adopted.get_mut(number)?;
        if !lent.go_on(&adopted.translated.rows, &self.shape, warp) {
            return None;
        }
        self.went_on += 1;
        let Resume { registers, predicates, memory, .. } = warp;
        let visit = adopted.visit(lent, &mut self.turn, true, (registers, predicates, *memory));
        (warp.pc, warp.budget) = (lent.raw.pc, lent.raw.budget);
        Some(match self.end(number, index, visit) {
            End::Barrier => self.lent[index].barrier(),
            End::Pause(pause) => HostEnd::Pause(pause),
        })
    }

    fn settle(&mut self, frame: &mut Frame<'_>) {
        if let Some(lent) = self.lent.get_mut(usize::from(frame.place[0])) {
            lent.settle(&self.shape, frame);
        }
    }

    fn code(&self) -> Range<u64> {
        self.range.clone()
    }

    fn forget(&mut self) {
        self.recorder.forget();
        self.lent.clear();
        self.version = None;
    }

    fn rest(&mut self) {
        self.lent.iter_mut().for_each(Lent::forget);
        self.recorder.go_on();
        (self.pause, self.blocks) = (FIRST_PAUSE, 0);
        self.tell();
        let mut state = self.shared.state();
        let stats = &mut state.stats;
        let Tally { left, issued, .. } = take(&mut self.told);
        stats.visits += left.sum();
        stats.went_on += take(&mut self.went_on);
        stats.issued += issued;
        stats.left.add(left);
    }
}

impl CoreCode {
    /// The code of a core that has run nothing yet.
    pub(crate) fn new(
        shared: Arc<Shared>,
        shape: Shape,
        barriers: BarrierRule,
        callee: Option<Callee>,
    ) -> CoreCode {
        CoreCode {
            shared,
            shape,
            barriers,
            callee,
            program: 0,
            version: None,
            adopted: Vec::new(),
            places: HashMap::new(),
            recent: [(u64::MAX, None); RECENT],
            lent: Vec::new(),
            range: 0..0,
            pause: FIRST_PAUSE,
            blocks: 0,
            begins: false,
            recorder: Recorder::default(),
            turn: 0,
            told: Tally::default(),
            went_on: 0,
        }
    }

    /// Whether it is code of this tier, for programs that promise this, on such a machine.
    pub(crate) fn is_of(
        &self,
        shared: &Arc<Shared>,
        shape: Shape,
        barriers: BarrierRule,
        callee: Option<Callee>,
    ) -> bool {
        Arc::ptr_eq(&self.shared, shared)
            && (self.shape, self.barriers, self.callee) == (shape, barriers, callee)
    }

    /// The place of the instruction at `pc`, if host code has it.
    fn place(&mut self, pc: u64) -> Option<&Place> {
        let recent = &mut self.recent[(pc ^ pc >> 6) as usize % RECENT];
        if recent.0 != pc {
            *recent = (pc, self.places.get(&pc).copied());
        }
        recent.1.as_ref()
    }

    /// Looks for regions whose instructions are in memory, if there may be others than before.
    fn adopt(&mut self, frame: &mut Frame<'_>) {
        let version = self.shared.version.load(Ordering::Acquire);
        if self.version != Some(version) {
            self.adopt_all(version, frame);
        }
    }

    #[cold]
    #[inline(never)]
    fn adopt_all(&mut self, version: u64, frame: &mut Frame<'_>) {
        self.program =
            self.callee.map_or(0, |callee| digest(frame.memory, callee.start..callee.end()));
        self.tell();
        self.adopted.clear();
        // What is not written yet stays.
        self.lent.iter_mut().for_each(Lent::forget_region);
        self.places.clear();
        self.recent = [(u64::MAX, None); RECENT];
        self.begins = false;
        let callee = self.callee.as_ref();
        self.range = callee.map_or(0..0, |callee| callee.start..callee.end());
        let all = self.shared.state().programs.of(self.program).regions.clone();
        let memory = frame.memory;
        let here =
            all.into_iter().filter(|translated| translated.holds(self.shape, self.callee, memory));
        let here: Vec<_> = here.collect();
        for translated in here {
            self.add(translated);
        }
        if self.recorder.is_idle()
            && let Some(recorder) = self.shared.state().programs.of(self.program).recorder.take()
        {
            self.recorder = recorder;
        }
        let behind = self.range.end.next_multiple_of(self.shape.bytes() as u64);
        frame.plain_stores_from = frame.plain_stores_from.max(behind);
        self.version = Some(version);
    }

    fn add(&mut self, translated: Arc<Translated>) {
        let number = self.adopted.len();
        for (key, block) in &translated.region.blocks {
            let count = block.insts.len();
            for (index, inst) in block.insts.iter().enumerate() {
                let place = Place { left: (count - index) as u64, entries: [None; 2] };
                self.places.entry(inst.pc).or_insert(place);
            }
            if let Some(entry) = translated.region.entries.iter().position(|entry| entry == key)
                && let Some(place) = self.places.get_mut(&key.pc)
            {
                let entrance = Entrance { number, entry };
                place.entries[usize::from(key.full)].get_or_insert(entrance);
                place.left = count as u64;
            }
        }
        self.begins |= !translated.ways.is_empty();
        // Where a warp starts, the interpreter goes on until it begins.
        for (&from, &left) in &translated.ways {
            if left > 0 {
                self.places.entry(from).or_insert(Place { left, entries: [None; 2] });
            }
        }
        let range = translated.range();
        self.range = match self.range.is_empty() {
            true => range,
            false => self.range.start.min(range.start)..self.range.end.max(range.end),
        };
        self.adopted.push(Adopted::new(translated));
    }

    /// Runs a region from an entry on. What the warp has become is not given back, apart from pc, budget and steps.
    fn enter(&mut self, entrance: Entrance, frame: &mut Frame<'_>) -> End {
        let Entrance { number, entry } = entrance;
        let warp = usize::from(frame.place[0]);
        if self.lent.len() <= warp {
            self.lent.resize_with(warp + 1, || Lent::nowhere(self.barriers));
        }
        let (lent, adopted) = (&mut self.lent[warp], &mut self.adopted[number]);
        let is_as_expected = lent.arrive(&adopted.translated, [number, entry], &self.shape, frame);
        let Frame { registers, predicates, memory, .. } = frame;
        let pieces = (&mut *registers, &mut **predicates, *memory);
        let visit = adopted.visit(lent, &mut self.turn, is_as_expected, pieces);
        if lent.is_refused() {
            adopted.look_at(entry, frame);
        }
        let end = self.end(number, warp, visit);
        let raw = &self.lent[warp].raw;
        *frame.pc = raw.pc;
        frame.stats.steps += frame.budget - raw.budget;
        frame.budget = raw.budget;
        end
    }

    /// Counts a visit. Returns what comes behind it.
    #[inline(always)]
    fn end(&mut self, number: usize, warp: usize, visit: Option<(Leave, u64)>) -> End {
        match visit {
            Some((why @ Leave::Barrier, issued)) if self.lent[warp].raw.may_wait() => {
                self.count(number, why, issued, false);
                End::Barrier
            }
            _ => End::Pause(self.pause_behind(number, warp, visit)),
        }
    }

    #[inline(always)]
    fn count(&mut self, number: usize, why: Leave, issued: u64, is_nowhere: bool) {
        if self.adopted[number].count(why, issued, is_nowhere) {
            self.judge(number);
        }
    }

    /// Counts a visit that is not at a barrier. Returns for how many instructions the interpreter should go on behind it.
    #[inline(never)]
    fn pause_behind(&mut self, number: usize, warp: usize, visit: Option<(Leave, u64)>) -> u64 {
        let Some((why, issued)) = visit else { return 1 };
        let raw = &self.lent[warp].raw;
        let (pc, left, full) = (raw.pc, raw.budget, raw.active == self.shape.full());
        let place = self.place(pc);
        let is_nowhere = why == Leave::End
            && place.is_none_or(|place| place.entries[usize::from(full)].is_none());
        let pause = match why {
            Leave::Foreign | Leave::Barrier => 1,
            // It goes on where another entry may be.
            Leave::End if left > 0 => 0,
            _ => place.map_or(1, |place| place.left),
        };
        self.count(number, why, issued, is_nowhere);
        pause
    }

    /// Adds what was seen of all regions to what others have seen.
    fn tell(&mut self) {
        for adopted in &mut self.adopted {
            adopted.tell(&mut self.told);
        }
    }

    /// Gives a region up that is not worth it.
    #[inline(never)]
    fn judge(&mut self, number: usize) {
        let Some(adopted) = self.adopted.get_mut(number) else { return };
        let Some(fault) = adopted.judge(self.shared.when.pace(), &mut self.told) else { return };
        let (translated, met) = (adopted.translated.clone(), adopted.take_met());
        let mut state = self.shared.state();
        let State { programs, stats, .. } = &mut *state;
        match programs.of(self.program).give_up(&translated, fault, met) {
            GivenUp::Now => stats.given_up += 1,
            GivenUp::Before => {}
            GivenUp::Not => return,
        }
        drop(state);
        // Where it is forgotten already, this core must forget it, too.
        self.shared.version.fetch_add(1, Ordering::Release);
    }

    /// Where there is no host code: translates, or returns for how many instructions it does not want to be asked.
    #[inline(never)]
    fn outside(&mut self, frame: &Frame<'_>) -> Option<u64> {
        let key = Key::new(*frame.pc, *frame.active == self.shape.full());
        let Some(pace) = self.shared.when.pace() else {
            let formed = self.form(key, frame);
            let is_there = formed.is_some_and(|formed| self.shared.translate(self.program, formed));
            return if is_there { None } else { Some(1) };
        };
        if self.recorder.is_idle() {
            let pause = match self.blocks {
                0 => self.pause,
                _ => self.recorder.span(key.pc, self.shape, frame).0,
            };
            if !self.is_hot(key, pace.after, pause) {
                match self.blocks {
                    0 => self.pause = (2 * pause).min(pace.longest_pause),
                    _ => self.blocks -= 1,
                }
                return Some(pause);
            }
            self.recorder.start();
        }
        let step = self.recorder.step(pace, key, self.shape, frame);
        if let Step::Wait(pause) = step {
            return Some(pause);
        }
        let is_found = matches!(step, Step::Found);
        if let Some(formed) = is_found.then(|| self.form(key, frame)).flatten() {
            self.shared.translate_recorded(self.program, formed);
        } else if !is_found || !self.recorder.give_up(key) {
            let mut state = self.shared.state();
            let place = state.programs.of(self.program).hot(key.pc);
            place.patience = (place.patience + 2).min(20);
        }
        Some(self.pause)
    }

    /// Whether the interpreter has been here for long, where it goes on for `pause` instructions: for `limit`, or more where
    /// that was in vain.
    fn is_hot(&mut self, key: Key, limit: u64, pause: u64) -> bool {
        let mut state = self.shared.state();
        let is_busy = state.is_busy;
        let known = state.programs.of(self.program);
        let is_hopeless = known.is_hopeless();
        let place = known.hot(key.pc);
        place.issued += pause;
        let is_hot = place.issued >= limit << place.patience && !is_busy && !is_hopeless;
        if is_hot {
            place.issued = 0;
        }
        is_hot
    }

    /// What was seen, and what regions had that were known in part. Where warps begin, other regions go on.
    fn seen(&self, begins: bool) -> Seen {
        let mut seen = self.recorder.seen().clone();
        seen.blocks.extend(&self.shared.state().programs.of(self.program).parts.blocks);
        let others = self.adopted.iter().filter(|_| begins);
        for entry in others.flat_map(|other| &other.translated.region.entries) {
            seen.blocks.remove(&entry.first());
        }
        seen
    }

    /// Forms a region at the warp's pc, if one is wanted there.
    fn form(&self, key: Key, frame: &Frame<'_>) -> Option<Formed> {
        let (assumed, met, has_odd_words) = {
            let programs = &mut self.shared.state().programs;
            if programs.of(self.program).refused.contains(&key) || !programs.make_room(self.program)
            {
                return None;
            }
            let known = programs.of(self.program);
            let assumed = known.assumed.get(&key).copied();
            (assumed.unwrap_or(Assumed::Loads), known.met.clone(), known.has_odd_words)
        };
        let when = self.shared.when;
        let ways = self.recorder.ways(key);
        let seen = (!when.is_at_once()).then(|| self.seen(ways.is_some()));
        let shape = self.shape;
        // In tests, programs for machines with many registers see all that is done for others.
        let follows = shape.arch.gprs() < MANY_REGISTERS || when.is_at_once();
        let (callee, leaves) = (self.callee, when == When::Leaving);
        // Where warps wait for each other, code for those that do not is in the way.
        let passes = seen.as_ref().is_none_or(|seen| !seen.waited);
        let odd_words = has_odd_words || when.is_at_once() && !shape.arch.has_extension();
        let rules = Rules { shape, assumed, callee, leaves, follows, odd_words, passes };
        let Some(mut formed) = Formed::new(frame, rules, seen.as_ref(), &met) else {
            self.shared.state().programs.of(self.program).refused.insert(key);
            return None;
        };
        formed.ways = ways.cloned().unwrap_or_default();
        Some(formed)
    }
}

impl Drop for CoreCode {
    fn drop(&mut self) {
        self.rest();
        // Short launches would never end a recording. Only what is promised tells programs apart.
        if !self.recorder.is_idle() && self.program != 0 {
            let recorder = take(&mut self.recorder);
            self.shared.state().programs.of(self.program).recorder = Some(recorder);
        }
    }
}
