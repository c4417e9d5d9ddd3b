//! How each instruction changes what is [known](State) before it, and what is assumed of it.

use harp_emu::compute;
use harp_isa::abi::{KernelEntry, RegisterRoles, SharedRoles};
use harp_isa::{Gpr, Opcode, Pred, Sharing};

use crate::body::{Access, Body, Compare, Inst, Src, Waiting};
use crate::calls::{Callee, HeldLanes};
use crate::class::Class;
use crate::shape::Shape;
use crate::state::{Bits, Level, State, any};

/// Machines with this many registers or more seldom keep values in memory.
pub(crate) const MANY_REGISTERS: u8 = 16;

/// Which lanes execute an instruction. What is done once for all is done for all of the machine, active or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lanes {
    /// All of the machine.
    All,
    /// All of the machine, if any executes, or none, by its guard.
    AllOrNone,
    /// Any.
    Some,
}

/// Which lanes execute `inst` if the active lanes are all (`full`) or any.
pub(crate) fn lanes(state: &State, inst: &Inst, full: bool) -> Lanes {
    match inst.guard {
        None if full || inst.is_once() => Lanes::All,
        Some(_) if inst.is_once() => Lanes::AllOrNone,
        Some(guard) if full && state.is_uniform_pred(guard) => Lanes::AllOrNone,
        _ => Lanes::Some,
    }
}

/// Whether the operation is one on integers that never stops and that the host does in few instructions.
pub(crate) fn is_integer(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::And
            | Opcode::Or
            | Opcode::Xor
            | Opcode::Add
            | Opcode::Sub
            | Opcode::Mul
            | Opcode::Shl
            | Opcode::Srl
            | Opcode::Sra
            | Opcode::Neg
            | Opcode::Not
    )
}

/// What is assumed because it usually holds, and guarded. Each includes those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assumed {
    Nothing,
    /// That operations on affine values have results of a known stride, and that the head's registers stay as they were.
    Operations,
    /// That loads go on to yield such values, where they were seen to.
    Loads,
}

impl Assumed {
    /// The next smaller assumption.
    pub(crate) fn less(self) -> Assumed {
        match self {
            Assumed::Loads => Assumed::Operations,
            Assumed::Operations | Assumed::Nothing => Assumed::Nothing,
        }
    }
}

/// How an operation on an affine value keeps it affine, under a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// If the lanes agree on all bits from this one on.
    SameAbove(u64),
    /// If no lane's value wraps, as a signed number or not.
    NoWrap { signed: bool },
}

/// The rules of a translation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) shape: Shape,
    pub(crate) assumed: Assumed,
    /// If it is known, registers that are dead need not be exact.
    pub(crate) callee: Option<Callee>,
    /// Whether the frame says where to leave in any case.
    pub(crate) leaves: bool,
    /// Whether words of memory are followed through blocks and loops: where there are few registers, values are kept there.
    pub(crate) follows: bool,
    /// Whether accesses of words to any addresses need not be aligned, which costs something: programs for machines without
    /// narrow accesses find parts of words so. They are of what lies before the next aligned address.
    pub(crate) odd_words: bool,
    /// Whether barriers may turn out to be for one warp, which passes them.
    pub(crate) passes: bool,
}

impl Rules {
    /// What an operation makes of these sources.
    pub(crate) fn mapped(self, opcode: Opcode, sources: &[Class]) -> Class {
        let shape = self.shape;
        let constants = |k: usize| match sources.get(k) {
            Some(Class::Const(value)) => Some(*value),
            Some(_) => None,
            None => Some(0),
        };
        if let (true, Some(a), Some(b)) = (is_integer(opcode), constants(0), constants(1)) {
            return compute(opcode, shape.word, [a, b, 0]).map_or(Class::Uniform, Class::Const);
        }
        if sources.iter().all(|class| class.is_uniform()) || shape.lanes == 1 {
            return match self.copied(opcode, sources) {
                Some(source) => sources[source],
                None => Class::Uniform,
            };
        }
        if let Some(source) = self.copied(opcode, sources) {
            return sources[source];
        }
        let stride = |k: usize| sources.get(k).and_then(|class| class.stride());
        let cut = |stride: u64| shape.cut(stride);
        let both = stride(0).zip(stride(1));
        Class::of_stride(match opcode {
            Opcode::Add => both.map(|(a, b)| cut(a.wrapping_add(b))),
            Opcode::Sub => both.map(|(a, b)| cut(a.wrapping_sub(b))),
            Opcode::Neg => stride(0).map(|a| cut(a.wrapping_neg())),
            Opcode::Mul => match (sources[0], sources[1]) {
                (Class::Affine(a), Class::Const(k)) | (Class::Const(k), Class::Affine(a)) => {
                    Some(cut(a.wrapping_mul(k)))
                }
                _ => None,
            },
            Opcode::Shl => match (sources[0], sources[1]) {
                (Class::Affine(a), Class::Const(k)) if k < shape.word.bits().into() => {
                    Some(cut(a << k))
                }
                _ => None,
            },
            Opcode::Div if self.divides_once(sources) => Some(0),
            Opcode::Mod if self.divides_once(sources) => stride(0),
            _ => self.kept(opcode, sources).map(|(_, stride)| stride),
        })
    }

    /// How a shift or a mask of an affine value is assumed to stay affine, and the stride then.
    pub(crate) fn kept(self, opcode: Opcode, sources: &[Class]) -> Option<(Kept, u64)> {
        let shape = self.shape;
        let &[Class::Affine(stride), Class::Const(count), ..] = sources else { return None };
        let signed = shape.word.sign_extend(stride);
        let span = signed.unsigned_abs().saturating_mul(shape.lanes as u64 - 1);
        let bits = u64::from(shape.word.bits());
        if self.assumed < Assumed::Operations || span >> (bits - 1) != 0 {
            return None;
        }
        match opcode {
            Opcode::Srl | Opcode::Sra
                if count < bits && u64::from(signed.trailing_zeros()) >= count =>
            {
                let kept = Kept::NoWrap { signed: opcode == Opcode::Sra };
                Some((kept, shape.cut((signed >> count).cast_unsigned())))
            }
            Opcode::Srl | Opcode::Sra if count < bits && span >> count == 0 => {
                Some((Kept::SameAbove(count), 0))
            }
            Opcode::And if count & count.wrapping_add(1) == 0 && span <= count => {
                let above = u64::from(count.trailing_ones());
                (above < bits).then_some((Kept::SameAbove(above), stride))
            }
            _ => None,
        }
    }

    /// Whether one quotient for all lanes is assumed.
    pub(crate) fn divides_once(self, sources: &[Class]) -> bool {
        let Class::Affine(stride) = sources[0] else { return false };
        self.assumed >= Assumed::Operations
            && sources[1].is_uniform()
            && stride.saturating_mul(self.shape.lanes as u64) < 1 << 20
    }

    /// The source that the operation copies, if it does that.
    pub(crate) fn copied(self, opcode: Opcode, sources: &[Class]) -> Option<usize> {
        let is_neutral = |k: usize| sources.get(k) == Some(&Class::Const(0));
        match opcode {
            Opcode::Add | Opcode::Or | Opcode::Xor if is_neutral(1) => Some(0),
            Opcode::Add | Opcode::Or | Opcode::Xor if is_neutral(0) => Some(1),
            Opcode::Sub | Opcode::Shl | Opcode::Srl | Opcode::Sra if is_neutral(1) => Some(0),
            _ => None,
        }
    }

    /// What is known of a source, in the lanes that execute.
    fn source(self, state: &State, inst: &Inst, src: Src) -> Class {
        let class = state.source(src);
        if inst.is_once() { class.in_one_lane() } else { class }
    }

    /// The distance of the lanes' addresses in a row.
    pub(crate) fn row_stride(self, access: Access) -> u64 {
        if self.shape.lanes == 1 { 0 } else { access.bytes as u64 }
    }

    /// What the instruction writes to its general register, where it executes.
    fn result(self, state: &State, inst: &Inst, lanes: Lanes) -> Class {
        let shape = self.shape;
        let uniform_if = |is: bool| if is { Class::Uniform } else { any(shape) };
        let result = match inst.body {
            Body::Map { opcode, sources, count, .. } => {
                let sources = sources.map(|src| self.source(state, inst, src));
                self.mapped(opcode, &sources[..count])
            }
            Body::Load { base, .. } => match self.loaded(state, inst, lanes) {
                Some(class) => class,
                None => {
                    let is_one =
                        state.regs[usize::from(base)].is_uniform() && inst.sharing != Sharing::Row;
                    uniform_if(is_one)
                }
            },
            Body::Csr { index: 0, .. } if shape.lanes == 1 => Class::Const(0),
            Body::Csr { index: 0, .. } => Class::Affine(1),
            Body::Csr { index: 3, .. } => Class::Const(shape.lanes as u64),
            Body::Csr { index: 4, .. } => Class::Const(shape.arch.warps().into()),
            Body::Csr { .. } | Body::Ballot { .. } => Class::Uniform,
            Body::FromPred { src, .. } => uniform_if(state.is_uniform_pred(src)),
            Body::Jump { .. } | Body::JumpTo { .. } => Class::Const(inst.next),
            _ => any(shape),
        };
        if inst.is_once() { result.in_one_lane() } else { result }
    }

    /// Whether words of memory are followed: not where nothing is assumed, as that says what is live.
    pub(crate) fn follows_slots(self) -> bool {
        self.follows && self.assumed >= Assumed::Operations
    }

    /// The key of what an access of all lanes loads or stores, if that is to be followed.
    fn slot(self, state: &State, inst: &Inst) -> Option<(u8, u64)> {
        let (Body::Load { base, offset, access, .. } | Body::Store { base, offset, access, .. }) =
            inst.body
        else {
            return None;
        };
        let Class::Affine(stride) = state.regs[usize::from(base)] else { return None };
        let is_word = access.bytes == self.shape.bytes() && self.is_row(stride, access);
        let is_followed = self.follows_slots() && is_word && !inst.is_once();
        is_followed.then_some((base, self.shape.cut(offset)))
    }

    /// Whether two words of each lane, at these distances from addresses with that stride, are different words, of any two
    /// lanes.
    pub(crate) fn are_apart(self, one: u64, other: u64, stride: u64) -> bool {
        let signed = |distance: u64| self.shape.word.sign_extend(self.shape.cut(distance));
        let (distance, bytes) = (signed(one.wrapping_sub(other)), self.shape.bytes() as u64);
        let room = signed(stride).unsigned_abs().saturating_sub(bytes);
        (bytes..=room).contains(&distance.unsigned_abs())
    }

    /// What a load is known, or assumed, to yield.
    pub(crate) fn loaded(self, state: &State, inst: &Inst, lanes: Lanes) -> Option<Class> {
        let Body::Load { base, access, .. } = inst.body else { return None };
        let known = self.slot(state, inst).filter(|_| lanes == Lanes::All);
        let known = known.and_then(|slot| state.slots.get(&slot));
        known.copied().or_else(|| self.loads(state.regs[usize::from(base)], access, inst, lanes))
    }

    /// Follows what an instruction does to words of memory; `new` is what it writes to a register.
    fn follow(self, state: &mut State, inst: &Inst, lanes: Lanes, new: Option<Class>) {
        if let Some(dst) = inst.registers().1 {
            state.slots.retain(|&(base, _), _| base != dst);
        }
        let slot = self.slot(state, inst);
        match inst.body {
            Body::Load { dst, base, .. } => {
                if let (Some(slot), Lanes::All, Some(new)) = (slot, lanes, new)
                    && base != dst
                {
                    state.slots.insert(slot, new);
                }
            }
            Body::Store { value, base, .. } => {
                let stride = state.regs[usize::from(base)].stride().unwrap_or(0);
                state.slots.retain(|&(other, distance), _| {
                    slot.is_some_and(|(base, offset)| {
                        base == other && self.are_apart(distance, offset, stride)
                    })
                });
                if let (Some(slot), Lanes::All) = (slot, lanes) {
                    state.slots.insert(slot, state.regs[usize::from(value)]);
                }
            }
            Body::Atomic { .. } | Body::Foreign { .. } | Body::Barrier { .. } | Body::Unknown => {
                state.slots.clear();
            }
            _ => {}
        }
    }

    /// What a load from rows of words that are no neighbours is assumed to yield: such words are the lanes' own, and
    /// often the same for all, or their numbers.
    pub(crate) fn loads(
        self,
        base: Class,
        access: Access,
        inst: &Inst,
        lanes: Lanes,
    ) -> Option<Class> {
        let Class::Affine(stride) = base else { return None };
        let distance = self.shape.word.sign_extend(stride).unsigned_abs();
        let is_own = distance > self.shape.bytes() as u64 && self.is_row(stride, access);
        let is_each = lanes == Lanes::All && !inst.is_once();
        let assumes = self.assumed >= Assumed::Loads && is_own && is_each;
        inst.loaded.filter(|class| assumes && class.stride().is_some())
    }

    /// Whether addresses with that stride can be checked together.
    pub(crate) fn is_row(self, stride: u64, access: Access) -> bool {
        let aligned = !access.aligned || stride.is_multiple_of(access.bytes as u64);
        aligned && self.span(stride) < 1 << 24
    }

    /// The distance between the lowest and the highest lane's address.
    pub(crate) fn span(self, stride: u64) -> u64 {
        let stride = self.shape.word.sign_extend(stride).unsigned_abs();
        stride.saturating_mul(self.shape.lanes as u64 - 1)
    }

    /// The registers that lanes which are not active before `inst` may read, as bits.
    pub(crate) fn waiting_read(self, state: &State, inst: &Inst, full: bool) -> u64 {
        match full {
            true => 0,
            false => self.all_waiting(state, inst).map_or(u64::MAX, |(_, read)| read),
        }
    }

    /// How many of the topmost levels of the divergence stack tell something of lanes that are not active before `inst`.
    pub(crate) fn levels_asked(self, state: &State, inst: &Inst, full: bool) -> usize {
        let arrives = self.arrives(inst.pc) && self.held(state.stack.last()).is_some();
        match full {
            true => 0,
            false => {
                self.all_waiting(state, inst).map_or(usize::from(arrives), |(above, _)| above + 1)
            }
        }
    }

    /// The level since which all lanes wait that are not active before `inst`, by the number of those above it, and the
    /// registers that they may read, as bits.
    fn all_waiting(self, state: &State, inst: &Inst) -> Option<(usize, u64)> {
        let mut levels = state.stack.iter().rev();
        let Waiting { depth, read } = inst.waiting.unwrap_or_default();
        // If all lanes of the machine were active before one of these splits, all others wait for the end of one.
        let mut own = levels.by_ref().take(depth);
        if let Some(above) = own.position(|level| level.was_full == Some(true)) {
            return Some((above, read));
        }
        self.held(levels.next()).map(|held| (depth, read | held.reads))
    }

    /// All lanes that are not active, if these wait around the call of the function since that level.
    fn held(self, level: Option<&Level>) -> Option<HeldLanes> {
        let held = self.callee?.held_back?;
        let level = level?;
        (level.behind == held.behind && level.was_full == Some(true)).then_some(held)
    }

    /// Whether the function begins at that address, or goes on there behind a call.
    fn arrives(self, pc: u64) -> bool {
        self.callee.is_some_and(|callee| callee.start == pc || callee.returns.contains(&Some(pc)))
    }

    /// Adds what is garbage at an address, however control has come there. Of lanes that are not active it is known only where
    /// they are held back; not what they know of predicates.
    pub(crate) fn arrive(self, state: &mut State, pc: u64, full: bool) {
        let Some(callee) = self.callee.filter(|_| self.arrives(pc)) else { return };
        if !full && self.held(state.stack.last()).is_none() {
            return;
        }
        let mut garbage = self.caller_saved();
        if !full {
            garbage.preds = 0;
        }
        if callee.start == pc {
            let arch = self.shape.arch;
            let shared = [KernelEntry::shared_arguments(arch), KernelEntry::shared_position(arch)];
            let own = (1u64 << callee.arguments) - 1;
            let regs = shared.into_iter().flatten().fold(own, |bits, r| bits | 1 << r.index());
            garbage = garbage.without(Bits { regs, preds: 0 });
        }
        state.garbage = state.garbage.or(garbage);
    }

    /// What any function may change.
    pub(crate) fn caller_saved(self) -> Bits {
        let arch = self.shape.arch;
        let (roles, shared) = (RegisterRoles::new(arch), SharedRoles::new(arch));
        let is_shared = |r: &Gpr| arch.is_shared_gpr(*r) && !shared.is_of_kernel(*r);
        let regs = roles.caller_saved().chain((0..64).map(Gpr::new).filter(is_shared));
        let preds = (0..64).map(Pred::new).filter(|p| !shared.is_pred_of_kernel(*p));
        Bits {
            regs: regs.fold(0, |bits, r| bits | 1 << r.index()),
            preds: preds.fold(0, |bits, p| bits | 1 << p.index()),
        }
    }

    /// Changes the state to that after the instruction, apart from the divergence stack.
    pub(crate) fn step(self, state: &mut State, inst: &Inst, full: bool) {
        self.arrive(state, inst.pc, full);
        let lanes = lanes(state, inst, full);
        let new = inst.registers().1.map(|_| self.result(state, inst, lanes));
        self.follow(state, inst, lanes, new);
        match inst.body {
            Body::Unknown => {
                let stack = std::mem::take(&mut state.stack);
                *state = State { stack, ..State::unknown(self.shape) };
            }
            Body::Test { dst, a, b, .. } => {
                let is_uniform = |src| self.source(state, inst, src).is_uniform();
                let same = is_uniform(a) && is_uniform(b) || self.agrees(state, inst);
                self.set_pred(state, dst, same, lanes);
            }
            Body::Logic { logic, dst, a, b } => {
                let sources = state.is_uniform_pred(a) && state.is_uniform_pred(b);
                let same = sources || inst.is_once() || logic.is_vote() && lanes == Lanes::All;
                self.set_pred(state, dst, same, lanes);
            }
            _ => {
                let ((_, Some(dst)), Some(new)) = (inst.registers(), new) else { return };
                let old = state.regs[usize::from(dst)];
                let bit = 1u64 << dst;
                let replaces = self.replaces(state, inst, full);
                state.garbage.regs &= !bit;
                state.regs[usize::from(dst)] = match lanes {
                    _ if replaces => new,
                    Lanes::All => new,
                    Lanes::AllOrNone => old.join(new),
                    Lanes::Some if matches!(new, Class::Const(_)) && old == new => new,
                    Lanes::Some => any(self.shape),
                };
            }
        }
    }

    /// Whether nobody reads what the other lanes of the register held that the instruction writes, if it writes one: it may
    /// write all lanes.
    pub(crate) fn replaces(self, state: &State, inst: &Inst, full: bool) -> bool {
        let Some(dst) = inst.registers().1 else { return false };
        state.garbage.regs >> dst & 1 != 0
            || (inst.guard.is_none() || inst.is_faint)
                && !inst.is_once()
                && self.waiting_read(state, inst, full) >> dst & 1 == 0
    }

    /// Whether the register holds the address to return to.
    pub(crate) fn is_link(self, r: u8) -> bool {
        usize::from(r) == self.shape.link()
    }

    /// A predicate is written in these lanes, by the same value in all if `same`.
    fn set_pred(self, state: &mut State, dst: u8, same: bool, lanes: Lanes) {
        let was_garbage = state.garbage.preds >> dst & 1 != 0;
        state.garbage.preds &= !(1 << dst);
        let keeps = was_garbage || self.keeps(state.is_uniform_pred(dst), lanes);
        state.set_pred(dst, self.shape.lanes == 1 || same && keeps);
    }

    /// Whether it is assumed that all lanes agree on a comparison with 0, which decides a jump, of a value whose lanes
    /// differ.
    pub(crate) fn agrees(self, state: &State, inst: &Inst) -> bool {
        let Body::Test { compare: Compare::Less, a, b, .. } = inst.body else { return false };
        let Class::Affine(stride) = self.source(state, inst, a) else { return false };
        let stride = self.shape.word.sign_extend(stride).unsigned_abs();
        let distance = stride.saturating_mul(self.shape.lanes as u64);
        let is_short = distance < 1 << (self.shape.word.bits() - 1);
        self.assumed >= Assumed::Operations
            && inst.decides
            && is_short
            && state.source(b) == Class::Const(0)
    }

    /// Whether a predicate that gets a uniform value in these lanes is uniform afterwards, if it was as `old` says.
    fn keeps(self, old: bool, lanes: Lanes) -> bool {
        match lanes {
            Lanes::All => true,
            Lanes::AllOrNone => old,
            Lanes::Some => false,
        }
    }
}
