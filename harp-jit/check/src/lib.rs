//! A checker of finished machine code: it proves that the lanes of a warp keep together as they must.
//!
//! It knows instructions, not how they came about: it shares nothing with the analyses, the planner and the
//! emission whose work it checks. [`check`] takes the bytes of a function and a [`Record`] of what machine
//! code cannot show, and proves for all paths that
//!
//! 1. what is pushed on the divergence stack is popped: each split has one join, on all paths (`structure`);
//! 2. what acts on a warp as a whole (a branch without a split, a jump to an address, a barrier, a trap)
//!    finds active lanes that agree on its guard and its operands; a vote, on its guard;
//! 3. what was written in some lanes only is read in no other by a store, an address, a branch, a vote, a
//!    divisor, a call or a result;
//! 4. callers and functions that are called get the uniform arguments and results that they rely on
//!    (`assumption`), and functions leave the shared registers alone that are the kernel's (`shared`);
//! 5. control goes through the blocks that were selected, and guards and predicate operands are the
//!    predicates that were selected (`skeleton`, `selection`).
//!
//! Points 2 to 4, and the predicates of point 5, are proved by abstract interpretation. The rest of this page
//! says of what.
//!
//! # Registers that lanes share
//!
//! The state says of a shared register what each lane *means* by it: what it would have computed for itself. In truth all
//! lanes hold what the first one computed. So an instruction may take it for the lane's own only where lanes agree on it;
//! that is proved like point 2. Where they do not agree, it may only be the address of a row, or an operand of what is done
//! once for another shared register, on which lanes do not agree either. If what it is computed from is not meant in some
//! lanes, it is meant in none.
//!
//! The sides of a split run one after the other. So what one of them may write is not meant on the way into the other, nor
//! behind the join (`shared`).
//!
//! # Concrete states
//!
//! A *place* is a general register, a predicate register, or a word of the frame that the record calls
//! private. A *lane* assigns a number to each place. A concrete state is a set of active lanes together.
//! Active lanes go in lockstep. Besides, a concrete execution marks the value in each place of each lane as
//! *meant* or not: what a lane did not write, or wrote before the record says that it is dead, is not meant.
//! What is computed from a value that is not meant is not meant either, unless the other operands decide the
//! result alone.
//!
//! # Abstract states and what they mean
//!
//! A *condition* `place = n` says of a lane that a place holds one of a few numbers, which `value` tells
//! apart from all others; `0` is the absence of all of a place's conditions. A set of lanes is a boolean
//! function of the conditions of one lane, a set of pairs a function of those of two lanes: both are decision
//! diagrams ([`harp_bdd`], `lanes`). An abstract state (`state`) consists of
//!
//! | part | a concrete state is described by it if |
//! |---|---|
//! | `active` | each active lane is in this set |
//! | `pairs` | each two active lanes are a pair in this set |
//! | `numbers` of a place | each active lane holds one of these numbers there, where that is meant |
//! | `differs` of a place | two active lanes that hold different numbers there, and neither one that is told apart, are a pair in this set |
//! | `undefined` of a place | an active lane in which the value is not meant is in this set |
//! | `form` of a place | where it is meant, it is such a number: a constant, an address in the lane's stack, ... |
//! | `equal` of two places | both hold the same in each active lane of this set, meant or not |
//! | `names` of a place | it is not zero just where each of these selected predicates is true, and meant |
//! | `provenance` of an open split | what the place holds in a lane is what the named term came to in that lane when the split was executed |
//! | `scratch` | what the warp's scratch word holds: something else than zero if one of these lanes is active |
//!
//! The *concretization* of an abstract state is the set of all concrete states described by all of its parts.
//! A value that is not meant may be taken to be any number: nothing that can be seen depends on it, which is
//! what point 3 proves. So a place may be described as any number, a different one each time, in lanes of
//! `undefined`.
//!
//! # Order and join
//!
//! `a ⊑ b` if the concretization of `a` is part of that of `b`: less is known in `b`. The least element is
//! "not reached", `None` in the solver. The greatest one knows nothing: all sets are `ALL`.
//!
//! Of several states the least upper bound is approximated in two ways.
//!
//! * Where paths meet behind a uniform branch, all active lanes came by the same one. `merge` describes the
//!   union: a pair is possible if both of its lanes came by the same path, and was possible there.
//! * Where the sides of a split meet, at a `join` instruction, lanes of both run on together. Besides, there are
//!   pairs of lanes of different sides (`join`). Each was a pair at the split, so what was known of it there and is
//!   about places that neither side changed is known still; and what both sides made of such places by the same
//!   computation is the same in both (`term`, `provenance`). A copy comes from where the other place does, in the
//!   lanes that hold the same in both: so lanes that left a loop earlier and kept the copy agree with those that copy later.
//!   What was in several places at the split comes from the first of them on either side.
//!
//! Both forget what nobody reads any more (`live`), and project conditions out of the sets (`exists`) that do
//! not exist on all sides.
//!
//! # Terms
//!
//! A `term` is a name for what was computed since a split from what places held there: an operation of terms
//! (hash consing, as in value numbering), a selection by a guard, and, as in gated single assignment, a
//! *gamma* where paths meet and a *mu* at the head of a loop. Equal terms are equal values if the lanes took
//! the same way wherever a gamma or a mu stands in them. So each has a set of places that its way depends on:
//! the branches in the region between a block and its dominator, or in the loop (`regions`). It is taken to
//! depend on nothing at first, and the proof starts over from where it stands as often as more is found.
//!
//! # Transfer
//!
//! | instruction | what becomes of the state |
//! |---|---|
//! | copies, loads and stores of tracked words | all parts of the source are those of the target |
//! | operations of few numbers (`and`, `addi`, `rtop`, ...) | the exact numbers of the result, by the numbers of the operands |
//! | other pure operations | `differs` and `undefined` are the unions of those of the operands |
//! | the same computed again in a block, or around a loop while nothing changes | equal to what was remembered of it (`repeats`) |
//! | guarded by `@p` | the result where `@p` is true, the old value elsewhere, by `ite` of all sets |
//! | loads | differ anywhere, unless the address is uniform and nobody writes the memory (claimed, or known of code and control blocks) |
//! | stores elsewhere, atomics | words of the frame that are exposed differ anywhere |
//! | `anyp`, `allp`, a vote by the scratch word | the result is uniform and implied by, or implies, the predicate |
//! | `split` | a provenance is opened on each side |
//! | a branch by `@p` | `active` is restricted to `@p`, or to its opposite; without a split, that is of all lanes |
//! | a call | caller-saved registers are not meant; results are uniform as far as is recorded and proved |
//!
//! Before each transfer the points 2 to 4 are checked against the state, and what cannot be proved is an
//! error. What was found in a block's last visit counts, where its state was that of the fixpoint.
//!
//! # Why it ends
//!
//! States at block ends are recomputed until none changes (`solve`). There are finitely many places and, with
//! at most 16 numbers a place, finitely many conditions, terms of bounded depth, and so finitely many states. They
//! need not become greater in each round, as terms are named anew: from the 13th visit of a block on, its start is
//! merged with the one before, so they ascend. Visits of a block and nodes of diagrams are bounded besides;
//! whatever exceeds that is [`CodeFault::TooLong`], never a proof.
//!
//! # Three attempts
//!
//! A proof is attempted with three precisions, as the first one is enough for nearly all functions and costs
//! a fraction. All are sound; a function is proved if one of them proves it.
//!
//! # Out of reach
//!
//! Functions of many places whose lanes part in many ways take too many steps: three of 1,500 random control-flow graphs.
//! [`CodeError::undecided`] says so.
//!
//! It proves less than is true, so that two more of these 1,500 are not proved: relations between places are known by
//! conditions of few numbers only, and memory other than the frame is not followed. What is computed is checked by other means.
//! It is assumed, and made sure elsewhere, that stacks do not overlap, that those of a warp are aligned to all of them
//! ([`warp_alignment`](harp_isa::abi::warp_alignment)), that all lanes enter a function with equally high
//! stack pointers, that functions that are called keep to the convention, and that the claims in the record
//! about memory and users' promises are true. The record's hints about which conditions *steer* lanes only
//! say where to look closely.
//!
//! # Use
//!
//! A function that traps if its argument is not zero. It is right if callers make sure that the lanes agree on it.
//!
//! ```
//! use harp_check::{Bytes, Claims, CodeFault, Entry, Named, Note, Record, Role, Selected, check};
//! use harp_isa::abi::RegisterRoles;
//! use harp_isa::{ArchId, Gpr, Instruction, Op, Opcode, Pred, encode};
//! use smallvec::smallvec;
//!
//! let arch: ArchId = "harp32".parse()?;
//! let (argument, taken) = (Gpr::new(0), Pred::new(0));
//! let target = RegisterRoles::new(arch).return_address();
//! let code = [
//!     Instruction::new(Op::Rtop { dst: taken, src: argument }),
//!     Instruction::new(Op::Trap {}).guarded_by(taken),
//!     Instruction::new(Op::Jmpr { target }),
//! ];
//! let mut bytes = Vec::new();
//! let mut offsets = Vec::new();
//! for instruction in &code {
//!     offsets.push(bytes.len() as u32);
//!     encode(instruction, arch, &mut bytes)?;
//! }
//!
//! // Predicate 0 is what was selected, before it got a register.
//! let selected = |opcode, guard, predicates| {
//!     Role::Selected(Selected { opcode, guard, predicates, claims: Claims::default(), steers: true })
//! };
//! let roles = [
//!     selected(Opcode::Rtop, None, smallvec![Named::Def(0)]),
//!     selected(Opcode::Trap, Some(0), smallvec![]),
//!     Role::Leave { hands: smallvec![], asks: smallvec![], depends: vec![] },
//! ];
//! let notes = offsets.into_iter().zip(roles).zip(0..);
//! let note = |((offset, role), position)| {
//!     (offset, Note { block: 0, position, undefined: smallvec![], role })
//! };
//! let mut record = Record {
//!     entry: Entry { arguments: vec![argument], ..Entry::default() },
//!     successors: vec![smallvec![]],
//!     passes: vec![smallvec![]],
//!     undefined: vec![smallvec![]],
//!     notes: notes.map(note).collect(),
//!     ..Record::default()
//! };
//! let bytes = Bytes { arch, bytes: &bytes, literals: &[], linked: &[] };
//! let error = check(bytes, &record).unwrap_err();
//! println!("{error}");
//! record.entry.uniform.push(argument);
//! check(bytes, &record)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Public types
//!
//! | type | what it is for |
//! |---|---|
//! | [`Bytes`] | the code to check, with where data and the linker's places are |
//! | [`Record`] | all that is said about a function; its parts are [`Entry`] and [`Note`] |
//! | [`Note`], [`Role`], [`Selected`], [`Named`], [`Claims`] | what is said of an instruction: its place among the blocks, what it is there for, the predicates that were selected, what code cannot show |
//! | [`Name`], [`Passes`], [`Holder`], [`Holders`], [`Regs`] | predicates before allocation, block parameters, places, and lists of these |
//! | [`CodeError`], [`CodeFault`], [`OpenSplit`], [`MachineRegister`] | the first thing that is not proved, with lanes and path |
#![forbid(unsafe_code)]

mod assumption;
mod code;
mod error;
mod fact;
mod frame;
mod join;
mod lanes;
mod live;
mod merge;
mod names;
mod number;
mod numbering;
mod op;
mod places;
mod provenance;
mod record;
mod regions;
mod repeats;
mod selection;
mod shared;
mod skeleton;
mod solve;
mod state;
mod structure;
mod term;
mod transfer;
mod value;

pub use code::Bytes;
pub use error::{CodeError, CodeFault, MachineRegister, OpenSplit};
pub use record::{
    Claims, Entry, Holder, Holders, Name, Named, Note, Passes, Record, Regs, Role, Selected,
};

use code::Code;
use structure::Structure;

/// Checks the code of one function.
///
/// # Errors
///
/// What cannot be proved, the first in the order of the proof.
pub fn check(bytes: Bytes<'_>, record: &Record) -> Result<(), CodeError> {
    let code = Code::decode(bytes, &record.notes)?;
    code.check_names(record)?;
    let structure = Structure::new(&code)?;
    skeleton::check(&code, &structure, record)?;
    selection::check(&code, &structure)?;
    shared::check(&code, &structure, record)?;
    solve::check(&code, &structure, record)
}
