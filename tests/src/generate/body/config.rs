//! The configurations of the generator: statements, their weights and limits.

use cranelift_frontend::FunctionBuilder as Builder;

use super::Body;

/// A method that makes a statement.
pub(super) type Statement = fn(&mut Body<'_, '_>, &mut Builder<'_>);

/// Lists of statements, each behind how many times as often as others they come.
macro_rules! statements {
    ($($weight:literal: $($name:ident)*;)*) => {
        &[$(($weight, &[$(|body, b| body.$name(b)),*])),*]
    };
}

/// A configuration of the generator.
#[derive(Debug)]
pub(in super::super) struct Config {
    /// Whether work-items run it, in lanes; else one lane does.
    pub(super) lanes: bool,
    /// Whether numbers are of all types, by all operations, and in memory in all widths. Else operations are those that
    /// do harm in lanes that should not execute them (divisions, accesses, calls, traps), and some others.
    pub(super) rich: bool,
    /// Statements with their weights.
    pub(super) statements: &'static [(usize, &'static [Statement])],
    /// The number of statements, from the first on and counted by weight, that hold no others.
    pub(super) flat: usize,
    /// How deep they are nested.
    pub(super) depth: usize,
    /// The fewest statements within another one, and how many numbers of them there are from that on.
    pub(super) nested: (usize, usize),
    /// One of so many nested lists of statements ends the function.
    pub(super) ends: usize,
    /// Graphs have two blocks or more: how many numbers of them there are.
    pub(super) graphs: usize,
    /// The number of blocks of a graph, of sixteen, that have two successors.
    pub(super) branches: usize,
    /// Loops of a graph go round, at most.
    pub(super) fuel: usize,
    /// One of so many functions may trap.
    pub(super) traps: usize,
}

impl Config {
    /// The statements, each as often as it comes among others.
    pub(super) fn all(&self) -> impl Iterator<Item = Statement> {
        let weighed = |&(weight, it): &(usize, &'static [Statement])| {
            it.iter().flat_map(move |&it| std::iter::repeat_n(it, weight))
        };
        self.statements.iter().flat_map(weighed)
    }
}

/// Functions that one lane calls.
pub(in super::super) const FUNCTIONS: Config = Config {
    lanes: false,
    rich: true,
    statements: statements! {
        1: assign;
        2: store_statement;
        1: value_statement;
        2: call atomic trap_or_merge merge if_else;
        1: leave_if carried_loop while_loop do_loop endless_loop escape_if switch shared_block irreducible;
        2: graph;
    },
    flat: 12,
    depth: 3,
    nested: (1, 3),
    ends: 16,
    graphs: 6,
    branches: 8,
    fuel: 12,
    traps: 4,
};

/// Kernels with the same operations.
pub(in super::super) const LOWERINGS: Config = Config {
    lanes: true,
    statements: statements! {
        1: assign;
        3: store_statement;
        2: value_statement atomic trap_or_merge;
        1: merge;
        3: if_else;
        1: leave_if guarded;
        2: uniform_loop;
        1: carried_loop while_loop endless_loop escape_if switch;
    },
    flat: 11,
    traps: 6,
    ..FUNCTIONS
};

/// Kernels with all control flow, and the functions that they call.
pub(in super::super) const KERNELS: Config = Config {
    lanes: true,
    rich: false,
    statements: statements! {
        2: assign store_statement;
        1: call trap_or_merge note_place;
        3: if_else;
        1: leave_if guarded uniform_loop own_loop while_loop do_loop endless_loop;
        2: escape_if switch;
        1: shared_block irreducible graph;
    },
    flat: 7,
    depth: 4,
    nested: (0, 4),
    ends: 12,
    graphs: 7,
    branches: 9,
    fuel: 10,
    traps: 6,
};
