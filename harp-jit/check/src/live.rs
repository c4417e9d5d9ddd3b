//! Which registers and words of the frame are read again.
//!
//! Facts about what nobody reads are of no use to the proof, and where ways meet their number decides what it
//! costs. A place that is taken to be read although it is not costs time, nothing else; so a load from the frame
//! counts as a read of all of it where it is not known which word it is.

use harp_isa::abi::RegisterRoles;
use harp_isa::{ArchId, Op, Pred};
use smallvec::{SmallVec, smallvec};

use crate::code::{Code, Flow};
use crate::frame::{Accessed, Frame};
use crate::number::Precision;
use crate::op::{WARP, sources};
use crate::places::{Place, Places};
use crate::record::{Holder, Role};
use crate::repeats::Repeats;
use crate::skeleton::Skeleton;
use crate::structure::{Block, Structure};

/// The properties of places that later instructions need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    arch: ArchId,
    asked: Vec<[bool; 3]>,
}

/// A property that may be needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Read,
    /// It, or a copy of it, is read to make a predicate, so that it may matter which number it is. That is a guess,
    /// which costs proofs if it is wrong, and nothing else.
    Compared,
    /// Something on which a warp must agree may come from it: a guess, too.
    Shared,
}

impl Live {
    pub(crate) fn is_live(&self, place: Place) -> bool {
        self.asks(Ask::Read, place)
    }

    pub(crate) fn is_compared(&self, place: Place) -> bool {
        self.asks(Ask::Compared, place)
    }

    pub(crate) fn is_shared(&self, place: Place) -> bool {
        self.asks(Ask::Shared, place)
    }

    fn asks(&self, ask: Ask, place: Place) -> bool {
        self.asked[place.index()][ask as usize] || ask == Ask::Compared && place.is_pred(self.arch)
    }

    fn set(&mut self, ask: Ask, place: Place, asked: bool) {
        self.asked[place.index()][ask as usize] = asked;
    }

    fn add(&mut self, other: &Live) {
        for (own, other) in self.asked.iter_mut().flatten().zip(other.asked.iter().flatten()) {
            *own |= other;
        }
    }
}

/// The live places before each block, and after each instruction.
#[derive(Debug)]
pub(crate) struct Lives {
    /// At the beginning of each block.
    pub(crate) blocks: Vec<Live>,
    /// By instruction.
    pub(crate) after: Vec<After>,
    pub(crate) repeats: Repeats,
}

/// The live places after an instruction.
#[derive(Clone, Debug, Default)]
pub(crate) struct After {
    /// The word of the frame that it is known to write.
    pub(crate) slot: Option<Place>,
    /// Places that it reads or writes, and that nobody reads any more.
    pub(crate) dead: SmallVec<[Place; 2]>,
    /// Whether it may matter which number its result is.
    pub(crate) compared: bool,
    /// Whether something on which a warp must agree may come from its result.
    pub(crate) shared: bool,
}

/// Computes liveness.
pub(crate) fn find(
    code: &Code<'_>,
    structure: &Structure,
    skeleton: &Skeleton<'_>,
    places: &Places,
    precision: Precision,
) -> Lives {
    let frame = Frame::new(code, structure, places);
    let successors = structure.successors();
    let mut roles = code.insts.iter().filter_map(|inst| inst.note).map(|note| &note.role);
    let promises =
        roles.any(|role| matches!(role, Role::Leave { depends, .. } if !depends.is_empty()));
    let roles = RegisterRoles::new(code.arch);
    let repeats = Repeats::find(&frame, structure, precision == Precision::Thorough);
    let liveness =
        Liveness { frame: &frame, repeats: &repeats, skeleton, roles, precision, promises };
    let none = Live { arch: code.arch, asked: vec![[false; 3]; places.count()] };
    let mut blocks = vec![none.clone(); structure.blocks.len()];
    let behind = |number: usize, blocks: &[Live]| {
        let mut live = none.clone();
        for &(successor, taken) in &successors[number] {
            let mut along = blocks[successor].clone();
            liveness.pass(&mut along, structure.blocks[number].last, taken);
            live.add(&along);
        }
        live
    };
    let mut todo: Vec<usize> = (0..blocks.len()).collect();
    while let Some(number) = todo.pop() {
        let block = &structure.blocks[number];
        let live = liveness.run(behind(number, &blocks), block, |_, _| {});
        if live != blocks[number] {
            blocks[number] = live;
            todo.extend(block.edges.iter().map(|edge| edge.from));
        }
    }
    let mut after = vec![After::default(); code.insts.len()];
    for (number, block) in structure.blocks.iter().enumerate() {
        liveness.run(behind(number, &blocks), block, |live, at| {
            after[at] = liveness.after(live, at);
            after[at].dead.extend(repeats.after[at].dead.iter().copied());
        });
    }
    for (live, available) in blocks.iter_mut().zip(&repeats.live) {
        for &place in available {
            live.set(Ask::Read, place, true);
            live.set(Ask::Compared, place, true);
        }
    }
    Lives { blocks, after, repeats }
}

struct Liveness<'a> {
    frame: &'a Frame<'a>,
    repeats: &'a Repeats,
    skeleton: &'a Skeleton<'a>,
    roles: RegisterRoles,
    precision: Precision,
    /// Whether callers know of results, which may be by the way that lanes take.
    promises: bool,
}

impl Liveness<'_> {
    /// The live places before a block, from those after it; `visit` gets those after each instruction.
    fn run(&self, mut live: Live, block: &Block, mut visit: impl FnMut(&Live, usize)) -> Live {
        for at in (block.first..=block.last).rev() {
            visit(&live, at);
            self.step(&mut live, at);
            if at != block.first {
                self.pass(&mut live, at - 1, None);
            }
        }
        live
    }

    /// What is to be known behind an instruction of which `live` is read later.
    fn after(&self, live: &Live, at: usize) -> After {
        let Accessed { to, from } = self.frame.accessed(at);
        let instruction = self.frame.code.insts[at].instruction;
        let guard = instruction.guard.map(Places::pred);
        let accessed = from.into_iter().chain(to).chain(guard);
        After {
            slot: to.filter(|&to| self.frame.places.is_slot(to)),
            dead: accessed.filter(|&place| !live.is_live(place)).collect(),
            compared: to.is_some_and(|to| live.is_compared(to)),
            shared: to.is_some_and(|to| live.is_shared(to)),
        }
    }

    /// The live places before an instruction, from those after it.
    fn step(&self, live: &mut Live, at: usize) {
        let Frame { code, places, .. } = self.frame;
        let placed = &code.insts[at];
        let guard = placed.instruction.guard;
        let role = placed.note.map(|note| &note.role);
        let old_is_dead = matches!(role, Some(Role::Selected(s)) if s.claims.old_is_dead);
        if placed.flow == Flow::Call {
            let preds = (0..code.arch.preds()).map(Pred::new).map(Places::pred);
            let gprs = self.roles.caller_saved().map(Places::gpr);
            gprs.chain(preds).for_each(|place| live.set(Ask::Read, place, false));
        }
        self.guess(live, at);
        let Accessed { to, from: mut reads } = self.frame.accessed(at);
        // What is not written in all lanes is kept in the others, in the frame in any case.
        let written = |place: Place| guard.is_none() || old_is_dead && !places.is_slot(place);
        match to {
            Some(place) if written(place) => live.set(Ask::Read, place, false),
            // It is looked at which predicate is kept, even if nobody reads it.
            Some(place) if place.is_pred(code.arch) => reads.push(place),
            _ => {}
        }
        if self.frame.reads_any_slot(at) {
            reads.extend(places.slots());
        }
        reads.extend(guard.map(Places::pred));
        if let Some(Role::Call { hands, .. } | Role::Leave { hands, .. }) = role {
            reads.extend(hands.iter().copied().map(Places::gpr));
        }
        if placed.flow == Flow::Leave {
            reads.extend(self.roles.callee_saved().map(Places::gpr));
        }
        reads.extend([self.roles.stack_pointer(), self.roles.return_address()].map(Places::gpr));
        reads.into_iter().for_each(|place| live.set(Ask::Read, place, true));
        // What is read of it is not what was there before.
        self.lose(live, placed.note.map_or(&[], |note| &note.undefined));
    }

    /// What is live before what blocks pass on that end between `at` and the next instruction.
    fn pass(&self, live: &mut Live, at: usize, taken: Option<bool>) {
        self.skeleton.each_passed(at, taken, |block| {
            self.lose(live, self.skeleton.undefined(block));
        });
    }

    fn lose(&self, live: &mut Live, undefined: &[Holder]) {
        self.frame.places.of(undefined).for_each(|place| live.asked[place.index()] = [false; 3]);
    }

    /// What is compared and shared before an operation, from what is behind it.
    fn guess(&self, live: &mut Live, at: usize) {
        let placed = &self.frame.code.insts[at];
        let op = placed.instruction.op;
        let Accessed { to, mut from } = self.frame.accessed(at);
        let mut base = None;
        match op {
            Op::St { value, base: address, .. } => {
                (from, base) = (smallvec![Places::gpr(value)], Some(Places::gpr(address)));
            }
            Op::Ld { .. } if self.frame.reads_any_slot(at) => {
                from = self.frame.places.slots().collect();
            }
            Op::Ld { .. } if self.frame.slot(at).is_some() => {
                from.retain(|place| self.frame.places.is_slot(*place));
            }
            _ => {}
        }
        let role = placed.note.map(|note| &note.role);
        let selected = match role {
            Some(Role::Selected(selected)) => Some(selected),
            _ => None,
        };
        let is_slot = |place: &Place| self.frame.places.is_slot(*place);
        let mut numbers: SmallVec<[Place; 4]> = match op {
            Op::St { .. } => from.clone(),
            Op::Ld { .. } => from.iter().copied().filter(is_slot).collect(),
            op => sources(op).unwrap_or_default().into_iter().collect(),
        };
        // Conditions of the program itself tell lanes apart, what they are computed from need not, mostly.
        let is_own = selected.is_some_and(|selected| !selected.steers);
        let thorough = self.precision == Precision::Thorough;
        let is_truth = |to: Place| to.is_pred(self.frame.code.arch);
        if to.is_some_and(|to| is_truth(to) && is_own && !(thorough && live.is_shared(to))) {
            numbers.clear();
        }
        let guard = placed.instruction.guard.map(Places::pred);
        from.extend(guard);
        for (ask, from) in [(Ask::Compared, &numbers), (Ask::Shared, &from)] {
            let Some(to) = to else { break };
            // A condition decides which way lanes go, and so what they hold later.
            let decides = ask == Ask::Shared && self.repeats.is_remembered_everywhere(at);
            let wanted = live.asks(ask, to) || decides;
            if guard.is_none() {
                live.set(ask, to, false);
            }
            from.iter().filter(|_| wanted).for_each(|&place| live.set(ask, place, true));
        }
        // All lanes get what the first one computes, and read what it did.
        let is_shared = |place: &Place| place.is_shared(self.frame.code.arch);
        let of_all = to.is_some_and(|to| is_shared(&to));
        from.iter()
            .chain(&base)
            .filter(|place| of_all || is_shared(place))
            .for_each(|&place| live.set(Ask::Shared, place, true));
        let splits = self.frame.code.is_split(at) || self.frame.code.is_split_branch(at);
        // Lanes that are bound for the same place run on together there.
        let steers = selected.is_some_and(|selected| selected.steers);
        let parts = splits && !self.promises;
        if op.opcode().flags().intersects(WARP) && !parts || steers {
            from.iter().for_each(|&place| live.set(Ask::Shared, place, true));
        }
        if let Some(Role::Call { asks, depends, .. } | Role::Leave { asks, depends, .. }) = role {
            let all = depends.iter().flat_map(|(_, regs)| regs).chain(asks);
            all.for_each(|&reg| live.set(Ask::Shared, Places::gpr(reg), true));
        }
    }
}
