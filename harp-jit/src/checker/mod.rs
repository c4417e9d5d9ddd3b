//! A checker of finished machine code.
//!
//! It knows instructions, not how they came about: it shares nothing with the analyses, the planner and the
//! emission whose work it checks. From the bytes of a function, decoded, and a [record] of what
//! machine code cannot show, it proves for all paths that
//!
//! * what is pushed on the divergence stack is popped ([`structure`]);
//! * whatever acts on a warp as a whole, a branch without a split, a jump to an address, a barrier, a
//!   vote, a trap, finds active lanes that agree on its guard and its target;
//! * what is written in some lanes only, or in none, is seen in no other: it reaches no store, no address, no
//!   branch, no vote, no divisor, no call and no result;
//! * other functions get the uniform arguments and results that they rely on ([`assumption`]);
//! * control goes through the blocks that were selected, and guards and predicate operands are the
//!   predicates that were selected ([`skeleton`], [`selection`]).
//!
//! The proof is an abstract interpretation to a fixpoint, from nothing known to be reached on. Uniformity
//! is simpler here than before code was generated: active lanes go in lockstep, so what they compute from
//! equal values by the same instruction is equal, and it is only at a `join` and under guards that lanes with
//! different pasts come together ([`join`]). So what is known is known of active lanes and of pairs of them
//! ([`state`], [`fact`]): which predicates and other few numbers they can hold at a time, exactly, as decision
//! diagrams ([`sets`], [`lanes`]), and in which pairs everything else may differ. In which lanes a value is meant to be
//! read is such a set, too. What both sides of a split made of what they found there, be it in loops, is given a
//! name ([`origins`], [`derived`], [`regions`]). Conditions that are computed again are found to be the same
//! ([`repeats`], [`available`]), what is found out about a value is known of its copies ([`copies`]), and what nobody
//! reads any more is forgotten at once ([`live`]).
//!
//! What it costs is a matter of how many numbers are told apart. By numbers in general registers lanes are told
//! apart only where a condition depends on them of which the record says that it *steers*: it sends lanes
//! where they are bound for, since control flow was rearranged. Others are looked at if that is not enough: nothing is
//! taken to be true because of what the record says there.
//!
//! It proves less than is true. What is not proved is tried again with more found out; proofs that take too many nodes
//! are given up, as an error of their own.
//!
//! It is assumed, and made sure elsewhere, that stacks do not overlap, that all lanes enter a function
//! with equally high stack pointers, and that functions that are called keep to the convention.

mod assumption;
mod available;
mod code;
mod copies;
mod derived;
mod error;
mod fact;
mod frame;
mod join;
mod lanes;
mod live;
mod merge;
mod names;
mod numbering;
mod origins;
mod places;
mod record;
mod regions;
mod repeats;
mod selection;
mod sets;
mod skeleton;
mod solve;
mod state;
mod structure;
#[cfg(test)]
mod testing;
mod transfer;
mod value;

pub(crate) use code::Bytes;
pub use error::{CodeError, CodeFault};
pub(crate) use record::{
    Claims, Entry, Holder, Holders, Name, Named, Note, Passes, Record, Regs, Role, Selected,
};

use code::Code;
use structure::Structure;

/// Checks the code of one function.
///
/// # Errors
///
/// What cannot be proved, the first in the order of the proof.
pub(crate) fn check(bytes: Bytes<'_>, record: &Record) -> Result<(), CodeError> {
    let code = Code::decode(bytes, &record.notes)?;
    let structure = Structure::new(&code)?;
    skeleton::check(&code, &structure, record)?;
    selection::check(&code, &structure)?;
    solve::check(&code, &structure, record)
}
