//! Boolean functions, as reduced ordered decision diagrams (R. Bryant, "Graph-based algorithms for boolean function
//! manipulation", 1986) with opposites that take no nodes, and tables for what is there and what was computed (K. Brace, R.
//! Rudell and R. Bryant, "Efficient implementation of a BDD package", 1990).
//!
//! A function is a [`Set`] of assignments of variables. Equal functions are equal numbers, so comparing sets takes no time,
//! and they can be kept and copied as numbers can. Variables are ordered by their numbers.
//!
//! A proof must succeed or be given up in the same way each time. So [`Limits`] bound the nodes and the work, and do not
//! depend on time, on threads or on the host's memory. Once one is exceeded, what is computed means nothing, and
//! [`Manager::is_full`] says so: nothing has to be asked before. What was computed is looked up, unless something else took
//! its place in the table since. Nodes that are not kept make room when the owner of all sets says which ones are.
//!
//! # Pairs
//!
//! Functions may be about two things of a kind, such as two lanes of a warp. Then the even variables say something of the
//! one, and the odd one behind each says the same of the other: see [`Set::other`] and [`Set::both`].
//!
//! # Use
//!
//! ```
//! use harp_bdd::{Limits, Manager, Set};
//!
//! let sets = Manager::new(Limits { nodes: 1000, made: 10_000 });
//! let [a, b] = [0, 2].map(|variable| sets.variable(variable));
//! assert_eq!(!(a & b), !a | !b);
//! assert!((a & b).disjoint(a ^ b));
//! // For some `a`, one of the two is true.
//! assert_eq!((a | b).exists(a), Set::ALL);
//! assert!(!sets.is_full());
//! ```
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::fmt;
use std::ops::{BitAnd, BitOr, BitXor, Not};

mod tables;
#[cfg(test)]
mod tests;

pub use tables::Limits;
use tables::{ALL, EVERY, Edge, Exchange, NONE, Node, OPPOSITE, Tables, is_constant};

/// Variables that become others, all at once.
///
/// It is of one manager, and good until that makes room the next time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renaming(Exchange);

/// Makes and keeps sets. Those of different managers must not be mixed: what is computed of them means nothing, and may
/// panic.
#[derive(Debug)]
pub struct Manager(RefCell<Tables>);

/// A boolean function: the set of assignments for which it is true. Constants are of any manager.
#[derive(Clone, Copy)]
pub struct Set<'a> {
    edge: Edge,
    manager: Option<&'a Manager>,
}

impl Manager {
    /// No sets yet.
    pub fn new(limits: Limits) -> Manager {
        Manager(RefCell::new(Tables::new(limits)))
    }

    #[inline]
    fn set(&self, edge: Edge) -> Set<'_> {
        Set { edge, manager: Some(self) }
    }

    /// Whether there were too many nodes: then no result can be relied on.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.0.borrow().is_full()
    }

    /// Makes room, if it is time to: only these sets are kept, and no renaming. Others must not be used any more.
    pub fn collect_garbage<'a>(&self, sets: impl Iterator<Item = Set<'a>>) {
        let mut tables = self.0.borrow_mut();
        if tables.is_crowded() {
            tables.collect_garbage(sets.map(|set| set.edge).collect());
        }
    }

    /// Where a variable is true: any number but `u32::MAX`.
    #[inline]
    pub fn variable(&self, variable: u32) -> Set<'_> {
        self.set(self.0.borrow_mut().node(variable, NONE, ALL))
    }

    /// Variables that become others, all at once.
    pub fn renaming(&self, others: impl IntoIterator<Item = (u32, u32)>) -> Renaming {
        Renaming(self.0.borrow_mut().exchange(others.into_iter().collect()))
    }
}

impl<'a> Set<'a> {
    /// Nothing is in it.
    pub const NONE: Set<'static> = Set { edge: NONE, manager: None };
    /// All is in it.
    pub const ALL: Set<'static> = Set { edge: ALL, manager: None };

    /// Whether it says nothing of any variable.
    #[inline]
    pub fn is_constant(self) -> bool {
        is_constant(self.edge)
    }

    /// What is computed of it; of constants, nothing is left to compute.
    #[inline]
    fn with(self, compute: impl FnOnce(&mut Tables) -> Edge) -> Set<'a> {
        let compute = |manager: &'a Manager| manager.set(compute(&mut manager.0.borrow_mut()));
        self.manager.map_or(self, compute)
    }

    /// `yes` where it is, `no` elsewhere.
    #[inline]
    pub fn ite(self, yes: Set<'a>, no: Set<'a>) -> Set<'a> {
        match self.edge {
            ALL => yes,
            NONE => no,
            _ => self.with(|sets| sets.ite(self.edge, yes.edge, no.edge)),
        }
    }

    /// Whether nothing is in both.
    #[inline]
    pub fn disjoint(self, other: Set<'a>) -> bool {
        self.and_exists(other, Set { edge: EVERY, manager: None }) == Set::NONE
    }

    /// Without what it says of the variables whose conjunction is `cube`: where there is a way to assign them.
    #[inline]
    pub fn exists(self, cube: Set<'a>) -> Set<'a> {
        self.and_exists(Set::ALL, cube)
    }

    /// As [`Set::exists`], of what is in both, which is not made itself: it can be much larger (J. Burch and others,
    /// "Symbolic model checking: 10^20 states and beyond", 1990: the relational product).
    #[inline]
    pub fn and_exists(self, other: Set<'a>, cube: Set<'a>) -> Set<'a> {
        let (one, other) = if self.is_constant() { (other, self) } else { (self, other) };
        match other.edge {
            NONE => other,
            _ => one.with(|sets| sets.and_exists(one.edge, other.edge, cube.edge)),
        }
    }

    /// Whether it says something of one of the variables whose conjunction is `cube`.
    #[inline]
    pub fn depends_on(self, cube: Set<'a>) -> bool {
        self.exists(cube) != self
    }

    /// A set that is the same among those in `care`, and whatever is simple elsewhere (O. Coudert and J. Madre, "A
    /// unified framework for the formal verification of sequential circuits", 1990: `restrict`).
    #[inline]
    pub fn restrict(self, care: Set<'a>) -> Set<'a> {
        self.with(|sets| sets.restrict(self.edge, care.edge))
    }

    /// The same, said of other variables.
    ///
    /// # Panics
    ///
    /// May panic if the renaming is of another manager, or was made before that made room.
    #[inline]
    pub fn rename(self, Renaming(exchange): Renaming) -> Set<'a> {
        self.with(|sets| sets.rename(self.edge, exchange))
    }

    /// The same, said of the other one of a pair: each even variable becomes the odd one behind it, and the other way
    /// round.
    #[inline]
    pub fn other(self) -> Set<'a> {
        self.rename(Renaming(Exchange::Swap))
    }

    /// The pairs of which both are in it.
    #[inline]
    pub fn both(self) -> Set<'a> {
        self & self.other()
    }

    /// What it says that it does not say any more without the variables in `cube`.
    #[inline]
    pub fn constraint_on(self, cube: Set<'a>) -> Set<'a> {
        self.restrict(self.exists(cube))
    }

    /// Variables with values for which it is true, whatever the others are; nothing if it is empty.
    pub fn model(self) -> Vec<(u32, bool)> {
        let mut model = Vec::new();
        let Some(manager) = self.manager else { return model };
        let mut at = self.edge;
        while !is_constant(at) {
            let Node { variable, low, high } = manager.0.borrow().at(at);
            let value = low == NONE;
            model.push((variable, value));
            at = if value { high } else { low };
        }
        model
    }
}

impl<'a> BitAnd for Set<'a> {
    type Output = Set<'a>;

    #[inline]
    fn bitand(self, other: Set<'a>) -> Set<'a> {
        self.ite(other, Set::NONE)
    }
}

impl<'a> BitOr for Set<'a> {
    type Output = Set<'a>;

    #[inline]
    fn bitor(self, other: Set<'a>) -> Set<'a> {
        self.ite(Set::ALL, other)
    }
}

impl<'a> BitXor for Set<'a> {
    type Output = Set<'a>;

    #[inline]
    fn bitxor(self, other: Set<'a>) -> Set<'a> {
        self.ite(!other, other)
    }
}

impl<'a> Not for Set<'a> {
    type Output = Set<'a>;

    #[inline]
    fn not(self) -> Set<'a> {
        Set { edge: self.edge ^ OPPOSITE, ..self }
    }
}

impl PartialEq for Set<'_> {
    #[inline]
    fn eq(&self, other: &Set<'_>) -> bool {
        self.edge == other.edge
    }
}

impl Eq for Set<'_> {}

impl fmt::Debug for Set<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "set {}", self.edge)
    }
}
