//! What is known of registers, predicates and the divergence stack before an instruction, without running it.

use std::collections::BTreeMap;

use crate::body::Src;
use crate::class::Class;
use crate::shape::Shape;

/// A `split` whose entries of the divergence stack are known to lie there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// The address behind the `split`.
    pub(crate) behind: u64,
    /// Whether all lanes of the machine were active before it, if that is known.
    pub(crate) was_full: Option<bool>,
}

impl Level {
    /// What holds if either holds; `None` if the splits differ.
    fn join(self, other: Level) -> Option<Level> {
        let was_full = self.was_full.filter(|_| self.was_full == other.was_full);
        (self.behind == other.behind).then_some(Level { was_full, ..self })
    }
}

/// How many of the topmost levels of the divergence stack matter in a block and behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Need {
    /// Those that are removed.
    pub(crate) removed: usize,
    /// Those that tell what waiting lanes read.
    pub(crate) asked: usize,
}

impl Need {
    pub(crate) fn or(self, other: Need) -> Need {
        Need { removed: self.removed.max(other.removed), asked: self.asked.max(other.asked) }
    }

    /// What is needed before a split adds a level.
    pub(crate) fn before_split(self) -> Need {
        Need { removed: self.removed.saturating_sub(1), asked: self.asked.saturating_sub(1) }
    }

    /// What is needed before a join removes a level.
    pub(crate) fn before_join(self) -> Need {
        let asked = if self.asked > 0 { self.asked + 1 } else { 0 };
        Need { removed: self.removed + 1, asked }
    }

    /// Forgets what does not matter of levels, of which the last is the topmost.
    pub(crate) fn cut(self, levels: &mut Vec<Level>) {
        let known = self.removed.max(self.asked).min(levels.len());
        levels.drain(..levels.len() - known);
        let passed = known.saturating_sub(self.removed);
        for level in &mut levels[..passed] {
            // A level before which some lanes were active tells nothing.
            level.was_full = level.was_full.filter(|&was_full| was_full);
        }
    }
}

/// Registers and predicates, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    pub(crate) regs: u64,
    pub(crate) preds: u64,
}

impl Bits {
    pub(crate) const ALL: Bits = Bits { regs: u64::MAX, preds: u64::MAX };

    pub(crate) fn or(self, other: Bits) -> Bits {
        Bits { regs: self.regs | other.regs, preds: self.preds | other.preds }
    }

    pub(crate) fn and(self, other: Bits) -> Bits {
        Bits { regs: self.regs & other.regs, preds: self.preds & other.preds }
    }

    pub(crate) fn without(self, other: Bits) -> Bits {
        Bits { regs: self.regs & !other.regs, preds: self.preds & !other.preds }
    }
}

/// The class of registers of which nothing is known: those of a single lane are the same in all lanes.
pub(crate) fn any(shape: Shape) -> Class {
    if shape.lanes == 1 { Class::Uniform } else { Class::Vector }
}

/// What is known before an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) regs: [Class; 64],
    /// The predicates that have the same value in all lanes, as bits.
    pub(crate) uniform_preds: u64,
    /// The topmost entries of the divergence stack, by their splits; the last is the topmost.
    pub(crate) stack: Vec<Level>,
    /// What nobody reads before it is written, by the calling convention.
    pub(crate) garbage: Bits,
    /// What all lanes have loaded or stored before, by the register that the address is relative to, which is affine, and
    /// the distance.
    pub(crate) slots: BTreeMap<(u8, u64), Class>,
}

impl State {
    /// Nothing is known, but for what lanes share.
    pub(crate) fn unknown(shape: Shape) -> State {
        let arch = shape.arch;
        let mut regs = [any(shape); 64];
        regs[arch.gprs().into()..arch.all_gprs().into()].fill(Class::Uniform);
        let shared = (arch.preds()..arch.all_preds()).fold(0, |bits, p| bits | 1u64 << p);
        let uniform_preds = if shape.lanes == 1 { u64::MAX } else { shared };
        let (stack, garbage, slots) = Default::default();
        State { regs, uniform_preds, stack, garbage, slots }
    }

    /// What holds if either holds.
    pub(crate) fn join(&self, other: &State) -> State {
        let regs = std::array::from_fn(|r| self.regs[r].join(other.regs[r]));
        let pairs = self.stack.iter().rev().zip(other.stack.iter().rev());
        let mut stack: Vec<Level> = pairs.map_while(|(a, b)| a.join(*b)).collect();
        stack.reverse();
        let both = |(&place, class): (&(u8, u64), &Class)| {
            let joined = class.join(*other.slots.get(&place)?);
            matches!(regs[usize::from(place.0)], Class::Affine(_)).then_some((place, joined))
        };
        let slots = self.slots.iter().filter_map(both).collect();
        State {
            slots,
            regs,
            uniform_preds: self.uniform_preds & other.uniform_preds,
            stack,
            garbage: self.garbage.and(other.garbage),
        }
    }

    /// Whether this holds wherever `other` does, as far as it is about these registers and predicates, or no
    /// register.
    pub(crate) fn covers(&self, other: &State, matter: Bits) -> bool {
        let joined = self.join(other);
        let is_same = |r: usize| matter.regs >> r & 1 == 0 || joined.regs[r] == self.regs[r];
        (0..self.regs.len()).all(is_same)
            && self.uniform_preds & !joined.uniform_preds & matter.preds == 0
            && joined.stack == self.stack
            && joined.garbage == self.garbage
            && joined.slots == self.slots
    }

    /// Whether the divergence stack is as `expected` says.
    pub(crate) fn has_stack(&self, expected: &[Level]) -> bool {
        let pairs = self.stack.iter().rev().zip(expected.iter().rev());
        self.stack.len() >= expected.len()
            && pairs.into_iter().all(|(known, level)| known.join(*level) == Some(*level))
    }

    pub(crate) fn source(&self, src: Src) -> Class {
        match src {
            Src::Reg(r) => self.regs[usize::from(r)],
            Src::Imm(value) => Class::Const(value),
        }
    }

    pub(crate) fn is_uniform_pred(&self, pred: u8) -> bool {
        self.uniform_preds >> pred & 1 != 0
    }

    pub(crate) fn set_pred(&mut self, pred: u8, is_uniform: bool) {
        self.uniform_preds &= !(1 << pred);
        self.uniform_preds |= u64::from(is_uniform) << pred;
    }
}
