//! Which registers and words of the frame are read again.
//!
//! Facts about what nobody reads are of no use to the proof, and where ways meet their number decides what it
//! costs. A place that is taken to be read although it is not costs time, nothing else; so a load from the frame
//! counts as a read of all of it where it is not known which word it is.

use harp_isa::abi::RegisterRoles;
use harp_isa::{Instruction, Op, OpcodeFlags, Pred};
use hashbrown::HashMap;
use smallvec::{SmallVec, smallvec};

use crate::available::Available;
use crate::code::{Code, Flow, Placed};
use crate::copies::Copies;
use crate::frame::{Accessed, Frame};
use crate::number::Precision;
use crate::numbering::Numbering;
use crate::op::sources;
use crate::places::{Place, Places};
use crate::record::{Holder, Role, Selected};
use crate::repeats::{self, Repeated};
use crate::skeleton::Skeleton;
use crate::structure::{Block, Structure};

/// Manager of places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    read: Vec<bool>,
    compared: Vec<bool>,
    shared: Vec<bool>,
}

impl Live {
    fn new(places: &Places) -> Live {
        let none = vec![false; places.count()];
        Live { read: none.clone(), compared: none.clone(), shared: none }
    }

    pub(crate) fn is_live(&self, place: Place) -> bool {
        self.read[place.index()]
    }

    /// Whether what is in a place, or a copy of it, is read to make a predicate, so that it may matter
    /// which number it is. That is a guess, which costs proofs if it is wrong, and nothing else.
    pub(crate) fn is_compared(&self, place: Place) -> bool {
        place.is_pred() || self.compared[place.index()]
    }

    /// Whether something on which a warp must agree may come from what is in a place: a guess, too.
    pub(crate) fn is_shared(&self, place: Place) -> bool {
        self.shared[place.index()]
    }

    fn set(&mut self, place: Place, live: bool) {
        self.read[place.index()] = live;
    }

    /// Nobody asks what is in a place.
    fn lose(&mut self, place: Place) {
        for set in [&mut self.read, &mut self.compared, &mut self.shared] {
            set[place.index()] = false;
        }
    }

    fn add(&mut self, other: &Live) {
        let read = self.read.iter_mut().zip(&other.read);
        let compared = self.compared.iter_mut().zip(&other.compared);
        let shared = self.shared.iter_mut().zip(&other.shared);
        for (own, other) in read.chain(compared).chain(shared) {
            *own |= other;
        }
    }

    /// `op` makes what is in `to` from what is in `from`, in some lanes only or in all.
    fn compare(&mut self, from: &[Place], to: Place, guarded: bool) {
        let wanted = self.is_compared(to);
        if !guarded {
            self.compared[to.index()] = false;
        }
        for place in from.iter().filter(|_| wanted) {
            self.compared[place.index()] = true;
        }
    }

    fn share(&mut self, from: &[Place], to: Place, guarded: bool) {
        let wanted = self.shared[to.index()];
        if !guarded {
            self.shared[to.index()] = false;
        }
        for place in from.iter().filter(|_| wanted) {
            self.shared[place.index()] = true;
        }
    }
}

/// What is read in each block or later, and behind each instruction.
#[derive(Debug)]
pub(crate) struct Lives {
    /// At the beginning of each block.
    pub(crate) blocks: Vec<Live>,
    /// By instruction.
    pub(crate) after: Vec<After>,
    /// What is remembered from block to block.
    pub(crate) available: Available,
}

/// What is read behind an instruction.
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
    /// The places of which it tells whether they are zero, if it may matter which number that is.
    pub(crate) tested: SmallVec<[Place; 1]>,
    /// What it computes again.
    pub(crate) repeated: Repeated,
}

/// Whether callers know of something that is returned there.
fn promises(inst: &Placed<'_>) -> bool {
    let role = inst.note.map(|note| &note.role);
    matches!(role, Some(Role::Leave { depends, .. }) if !depends.is_empty())
}

/// Finds what is read again.
pub(crate) fn find(
    code: &Code<'_>,
    structure: &Structure,
    skeleton: &Skeleton<'_>,
    places: &Places,
    precision: Precision,
) -> Lives {
    let none = Live::new(places);
    let frame = Frame::new(code, structure, places);
    let mut blocks = vec![none.clone(); structure.blocks.len()];
    let mut todo: Vec<usize> = (0..blocks.len()).collect();
    let mut successors: Vec<Vec<(usize, Option<bool>)>> = vec![Vec::new(); blocks.len()];
    for (number, block) in structure.blocks.iter().enumerate() {
        for edge in &block.edges {
            successors[edge.from].push((number, edge.taken));
        }
    }
    let roles = RegisterRoles::new(code.arch);
    let copies = HashMap::new();
    let promises = code.insts.iter().any(promises);
    let mut liveness =
        Liveness { code, places, frame: &frame, skeleton, roles, precision, promises, copies };
    let copies = Copies { structure, skeleton, frame: &frame };
    liveness.copies = copies.find(|at| tested(code.insts[at].instruction));
    let behind = |number: usize, blocks: &[Live]| {
        let last = structure.blocks[number].last;
        let mut live = none.clone();
        for &(successor, taken) in &successors[number] {
            let mut along = blocks[successor].clone();
            liveness.pass(&mut along, last, taken);
            live.add(&along);
        }
        live
    };
    while let Some(number) = todo.pop() {
        let block = &structure.blocks[number];
        let mut live = behind(number, &blocks);
        for at in (block.first..=block.last).rev() {
            liveness.step(&mut live, at);
            liveness.begin(&mut live, block, at);
        }
        if live != blocks[number] {
            blocks[number] = live;
            todo.extend(block.edges.iter().map(|edge| edge.from));
        }
    }
    let mut after = vec![After::default(); code.insts.len()];
    let mut repeated = vec![Repeated::default(); code.insts.len()];
    let mut numbering = Numbering::new(places);
    let thorough = precision == Precision::Thorough;
    let mut tested = Vec::new();
    for (number, block) in structure.blocks.iter().enumerate() {
        let mut live = behind(number, &blocks);
        for at in (block.first..=block.last).rev() {
            after[at] = liveness.after(&live, at);
            liveness.step(&mut live, at);
            liveness.begin(&mut live, block, at);
        }
        let insts = block.first..=block.last;
        let elsewhere = thorough.then_some(&mut tested);
        repeats::find(&frame, insts, &mut numbering, &mut repeated, elsewhere);
    }
    let available = match thorough {
        true => Available::find(&frame, structure, &tested),
        false => Available::default(),
    };
    for &(at, known) in &available.tests {
        repeated[at].known.push(known);
        repeated[at].remembered.push(known);
    }
    for (after, repeated) in after.iter_mut().zip(repeated) {
        after.dead.extend(repeated.dead.iter().copied());
        after.repeated = repeated;
    }
    for (live, available) in blocks.iter_mut().zip(&available.live) {
        for place in available {
            live.read[place.index()] = true;
            live.compared[place.index()] = true;
        }
    }
    Lives { blocks, after, available }
}

struct Liveness<'a> {
    code: &'a Code<'a>,
    places: &'a Places,
    frame: &'a Frame<'a>,
    skeleton: &'a Skeleton<'a>,
    roles: RegisterRoles,
    precision: Precision,
    /// Whether callers know of results, which may be by the way that lanes take.
    promises: bool,
    /// By instruction, what else holds what it tests.
    copies: HashMap<usize, SmallVec<[Place; 2]>>,
}

/// The register of which an instruction tells whether it is zero.
fn tested(instruction: Instruction) -> Option<Place> {
    match instruction.op {
        Op::Rtop { src, .. } | Op::Iszero { src, .. } if instruction.guard.is_none() => {
            Some(Places::gpr(src))
        }
        _ => None,
    }
}

impl Liveness<'_> {
    /// What is to be known behind an instruction of which `live` is read later.
    fn after(&self, live: &Live, at: usize) -> After {
        let Accessed { to, from } = self.frame.accessed(at);
        let instruction = self.code.insts[at].instruction;
        let guard = instruction.guard.map(Places::pred);
        let copies = self.copies.get(&at).into_iter().flatten().copied();
        let tested = tested(instruction).into_iter().chain(copies);
        let accessed = from.into_iter().chain(to).chain(guard);
        After {
            slot: to.filter(|&to| self.places.is_slot(to)),
            dead: accessed.filter(|&place| !live.is_live(place)).collect(),
            compared: to.is_some_and(|to| live.is_compared(to)),
            shared: to.is_some_and(|to| live.is_shared(to)),
            tested: tested.filter(|&src| live.is_live(src) && live.is_compared(src)).collect(),
            ..After::default()
        }
    }

    /// What is live before an instruction, from what is live behind it.
    fn step(&self, live: &mut Live, at: usize) {
        let placed = &self.code.insts[at];
        let guard = placed.instruction.guard;
        let role = placed.note.map(|note| &note.role);
        let old_is_dead = matches!(role, Some(Role::Selected(s)) if s.claims.old_is_dead);
        if placed.flow == Flow::Call {
            self.caller_saved().for_each(|place| live.set(place, false));
        }
        self.compare(live, at);
        let Accessed { to, from: mut reads } = self.frame.accessed(at);
        // What is not written in all lanes is kept in the others, in the frame in any case.
        let written =
            |place: &Place| guard.is_none() || old_is_dead && !self.places.is_slot(*place);
        match to {
            Some(place) if written(&place) => live.set(place, false),
            // It is looked at which predicate is kept, even if nobody reads it.
            Some(place) if place.is_pred() => reads.push(place),
            _ => {}
        }
        if self.frame.reads_any_slot(at) {
            reads.extend(self.places.slots());
        }
        reads.extend(guard.map(Places::pred));
        if let Some(Role::Call { hands, .. } | Role::Leave { hands, .. }) = role {
            reads.extend(hands.iter().copied().map(Places::gpr));
        }
        if placed.flow == Flow::Leave {
            reads.extend(self.roles.callee_saved().map(Places::gpr));
        }
        reads.extend([self.roles.stack_pointer(), self.roles.return_address()].map(Places::gpr));
        reads.into_iter().for_each(|place| live.set(place, true));
        // What is read of it is not what was there before.
        self.lose(live, placed.note.map(|note| note.undefined.as_slice()).unwrap_or_default());
    }

    /// What is live before what blocks pass on that end in front of an instruction of `block`.
    fn begin(&self, live: &mut Live, block: &Block, at: usize) {
        if at != block.first {
            self.pass(live, at - 1, None);
        }
    }

    /// What is live before what blocks pass on that end between `at` and the next instruction.
    fn pass(&self, live: &mut Live, at: usize, taken: Option<bool>) {
        self.skeleton.each_passed(at, taken, |block| {
            self.lose(live, self.skeleton.undefined(block));
        });
    }

    fn lose(&self, live: &mut Live, undefined: &[Holder]) {
        self.places.of(undefined).for_each(|place| live.lose(place));
    }

    /// What is compared and shared before an operation, from what is behind it.
    fn compare(&self, live: &mut Live, at: usize) {
        let placed = &self.code.insts[at];
        let Instruction { guard, op } = placed.instruction;
        let Accessed { to, mut from } = self.frame.accessed(at);
        let mut numbers = sources(op).unwrap_or_default();
        let role = placed.note.map(|note| &note.role);
        // Conditions of the program itself tell lanes apart, what they are computed from need not, mostly.
        let thorough = self.precision == Precision::Thorough;
        let own = |selected: &Selected| {
            let is_followed = |to| thorough && live.is_shared(to);
            !selected.steers && to.is_some_and(|to| to.is_pred() && !is_followed(to))
        };
        if matches!(role, Some(Role::Selected(selected)) if own(selected)) {
            numbers.clear();
        }
        match op {
            Op::St { value, .. } => {
                (numbers, from) = (smallvec![Places::gpr(value)], smallvec![Places::gpr(value)]);
            }
            Op::Ld { .. } => {
                if let Some(slot) = self.frame.slot(at) {
                    (numbers, from) = (smallvec![slot], smallvec![slot]);
                } else if self.frame.reads_any_slot(at) {
                    (numbers, from) =
                        (self.places.slots().collect(), self.places.slots().collect());
                }
            }
            _ => {}
        }
        let guarded = guard.is_some();
        from.extend(guard.map(Places::pred));
        if let Some(to) = to {
            live.compare(&numbers, to, guarded);
            live.share(&from, to, guarded);
        }
        let warp = OpcodeFlags::CONTROL | OpcodeFlags::ONCE_PER_WARP | OpcodeFlags::CROSS_LANE;
        let splits = self.code.is_split(at) || self.code.is_split_branch(at);
        // Lanes that are bound for the same place run on together there.
        let steers = matches!(role, Some(Role::Selected(selected)) if selected.steers);
        let parts = splits && !self.promises;
        if op.opcode().flags().intersects(warp) && !parts || steers {
            from.iter().for_each(|place| live.shared[place.index()] = true);
        }
        if let Some(Role::Call { asks, depends, .. } | Role::Leave { asks, depends, .. }) = role {
            let all = depends.iter().flat_map(|(_, regs)| regs).chain(asks);
            all.for_each(|&reg| live.shared[Places::gpr(reg).index()] = true);
        }
    }

    fn caller_saved(&self) -> impl Iterator<Item = Place> {
        let preds = (0..self.code.arch.preds()).map(Pred::new).map(Places::pred);
        self.roles.caller_saved().map(Places::gpr).chain(preds)
    }
}
