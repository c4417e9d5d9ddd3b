//! Validation of values: a function whose control flow was rearranged must do in each lane what it did
//! before.
//!
//! Both functions are interpreted on random inputs. The *effects* of each lane are compared, in order and
//! with all their operands: loads, stores, atomic operations, calls, barriers, votes and shuffles of the
//! program, divisions and other instructions that can trap, traps, and returned values.
//!
//! * [`rearranged`] compares a legal function with its structurized form and [`Plan`]. A warp runs the new
//!   function by the machine's rules for `split` and `join`; each lane alone runs the old one. This also
//!   finds branches without `split` on which lanes disagree, joins without a split, and returns while others
//!   wait.
//! * [`converted`] compares VCode before and after [if-conversion](crate::if_convert), one lane at a time,
//!   because no instruction in a converted region depends on other lanes.
//!
//! The new function runs first and is recorded; in the old one the same effects get the same results. So
//! results can be arbitrary: they are random for each effect, mostly small, so that loops end. Regions to be
//! predicated are plain branches in CLIF, which each lane follows alone.
//!
//! *What is computed exactly*: what the transformations themselves make, i.e. constants, comparisons,
//! choices, logic, extension and truncation; in every other round also sums and products. All other
//! instructions are opaque functions of opcode, type, immediates and operands, so that a different operand
//! gives a different result.
//!
//! *What is assumed*: what the analysis may rely on, and no more. Parameters are uniform as far as they are
//! [known](Known) to be; ids as far as their [rule](crate::intrinsic::Intrinsic::rule) says. Loads that are
//! `readonly` depend on their address alone, and divisions on their operands. Results of calls that are known
//! to be uniform are so among lanes that call together and agree on the arguments that count. Assumptions by
//! `%harp_assume_uniform` hold.
//!
//! *What it cannot find*: errors on paths that no round takes, or after the fuel is spent; which lanes vote
//! together, since the old function takes the results of votes from the new one; values without effects; the
//! counters of branches, which [`instrument`](crate::profile::instrument) adds with effects of its own; and
//! errors of other stages, i.e. the mid-end, selection and allocation.
//!
//! A value of `%harp_undef` in the old function may be anything, and so may all that depends on it. In the
//! new one, those that the compiler has inserted differ from lane to lane and from time to time.

use cranelift_codegen::ir::Function;
#[cfg(test)]
use cranelift_codegen::ir::Inst;
use harp_isa::WordSize;
use thiserror::Error;

use crate::analysis::Known;
use crate::plan::Plan;
use crate::vcode::VCode;

mod clif;
mod inputs;
mod program;
mod record;
#[cfg(test)]
pub(crate) mod tests;
mod vcode;
mod warp;

pub(crate) use inputs::Inputs;
use inputs::mix;
use program::Program;
pub(crate) use record::End;
use record::{Fault, Record};
use warp::Warp;

/// The number of comparisons per function, each with its own inputs and number of lanes.
const ROUNDS: usize = 3;

/// The fuel of the new function per round, in operations of a lane: this many, and this many times its size.
const FUEL: u64 = 1500;
const FUEL_PER_OP: u64 = 4;

/// The limit of its fuel if each lane alone has ended.
const ENDLESS: u64 = 1 << 18;

/// A lane that does not do what it did before, or lanes that wrongly diverge.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("with {lanes} lanes and inputs {seed:#018x}: {what}")]
pub(crate) struct Difference {
    lanes: usize,
    /// The seed that determines all inputs.
    seed: u64,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum What {
    #[error(
        "lane {lane} has {given:#x} as operand {index} of {new}, where {wanted:#x} is expected, which is \
        that of {old} before"
    )]
    Operand { lane: usize, index: usize, wanted: u64, given: u64, old: String, new: String },
    #[error("lane {lane} executes {new} as its effect number {number}, where {old} is expected")]
    Effect { lane: usize, number: usize, old: String, new: String },
    #[error("lane {lane} ends where {old} is expected")]
    Missing { lane: usize, old: String },
    #[error("lanes {one} and {other} disagree on {new}, which has no split")]
    Parted { one: usize, other: usize, new: String },
    #[error("block {block} joins, but no split is open")]
    NothingToJoin { block: usize },
    #[error("lanes wait elsewhere at {new}")]
    OpenReturn { new: String },
    #[error("block {block} has no code that ends it")]
    NoCode { block: usize },
    #[error(
        "the warp has not ended after {blocks} blocks; before, all lanes ended after {alone} in total"
    )]
    Endless { blocks: u64, alone: u64 },
    #[error("lane {lane} ends after {blocks} blocks, but before had not ended after {before}")]
    Ends { lane: usize, blocks: u64, before: u64 },
}

/// The result of a comparison.
#[cfg_attr(not(test), expect(dead_code, reason = "tests ask for it"))]
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    /// How the new function ended.
    pub(crate) end: End,
    /// The number of splits at which lanes disagreed.
    pub(crate) parted: usize,
    /// The number of effects compared.
    pub(crate) effects: usize,
}

/// Compares a legal function with its rearranged form; a warp has at most `lanes` lanes. `known` is what is
/// known about the function.
///
/// # Errors
///
/// The first difference found.
pub(crate) fn rearranged(
    before: &Function,
    after: &Function,
    plan: &Plan,
    known: Known<'_>,
    lanes: u8,
) -> Result<(), Difference> {
    let old = Program::of_function(before, None, known);
    let new = Program::of_function(after, Some(plan), known);
    rounds(&old, &new, lanes.into(), ROUNDS)
}

/// Compares code before and after if-conversion.
///
/// # Errors
///
/// The first difference found.
pub(crate) fn converted(before: &VCode, after: &VCode, word: WordSize) -> Result<(), Difference> {
    rounds(&Program::of_vcode(before, word), &Program::of_vcode(after, word), 1, ROUNDS)
}

/// Whether a comparison with `times` as many rounds as usual sees a difference to the rearranged form.
#[cfg(test)]
pub(crate) fn is_different(
    before: &Function,
    (after, plan): (&Function, &Plan),
    times: usize,
) -> bool {
    let old = Program::of_function(before, None, Known::KERNEL);
    let new = Program::of_function(after, Some(plan), Known::KERNEL);
    rounds(&old, &new, 16, times * ROUNDS).is_err()
}

/// Compares a legal kernel with its rearranged form on the given inputs.
#[cfg(test)]
pub(super) fn compared(
    before: &Function,
    (after, plan): (&Function, &Plan),
    inputs: &Inputs,
    fuel: u64,
) -> Result<Compared, Difference> {
    let old = Program::of_function(before, None, Known::KERNEL);
    compare(&old, &Program::of_function(after, Some(plan), Known::KERNEL), inputs, fuel)
}

/// An effect of one lane.
#[cfg(test)]
pub(super) struct Seen {
    pub(super) inst: Inst,
    /// The time of the effect: equal for lanes that executed it together.
    pub(super) time: u64,
    pub(super) operands: Vec<u64>,
}

/// All effects of all lanes of a kernel, lane by lane.
#[cfg(test)]
pub(super) fn effects(func: &Function, plan: &Plan, inputs: &Inputs, fuel: u64) -> Vec<Seen> {
    let program = Program::of_function(func, Some(plan), Known::KERNEL);
    let mut warp = Warp::recording(&program, inputs);
    warp.run(fuel).unwrap_or_else(|fault| panic!("{}", stuck(fault, &program)));
    let seen = |record: &Record, event: &record::Event| Seen {
        inst: Inst::from_u32(u32::try_from(program.ops[event.op].source).unwrap()),
        time: event.time,
        operands: record.values[event.operands.clone()].to_vec(),
    };
    let records = warp.into_records();
    records.iter().flat_map(|record| record.events.iter().map(|e| seen(record, e))).collect()
}

fn rounds(
    old: &Program<'_>,
    new: &Program<'_>,
    lanes: usize,
    count: usize,
) -> Result<(), Difference> {
    let fingerprint = new.fingerprint();
    let fuel = FUEL + FUEL_PER_OP * new.ops.len() as u64;
    for round in 0..count {
        compare(old, new, &Inputs::of_round(fingerprint, round, lanes), fuel)?;
    }
    Ok(())
}

/// Compares on these inputs; the new function gets `fuel`, and more if it seems to run for ever.
fn compare(
    old: &Program<'_>,
    new: &Program<'_>,
    inputs: &Inputs,
    fuel: u64,
) -> Result<Compared, Difference> {
    let lanes = inputs.lanes.len();
    let wrong = |what| Difference { lanes, seed: inputs.seed, what };
    let mut warp = Warp::recording(new, inputs);
    let ended = warp.run(fuel);
    let (blocks, parted) = (warp.time, warp.parted);
    let records = warp.into_records();
    let mut compared = Compared { end: End::Undefined, parted, effects: 0 };
    let goes_on = ended == Ok(End::OutOfFuel);
    let (mut alone, mut all_end) = (0, true);
    // The lanes' effects are compared first, because they usually show what went wrong.
    for (lane, record) in records.iter().enumerate() {
        let mut follower = Warp::following(old, inputs, lane, record, goes_on && all_end);
        // A block of the new function stands for at most all blocks of a converted region.
        let limit = blocks.saturating_mul(old.count as u64);
        let end = follower.run(fuel);
        let before = follower.time;
        match end {
            Err(fault) => return Err(wrong(differs(fault, lane, record, old, new))),
            Ok(End::OutOfFuel) if record.ended && before > limit => {
                return Err(wrong(What::Ends { lane, blocks, before }));
            }
            Ok(end) => {
                compared.effects += follower.met().min(record.events.len());
                alone += before;
                all_end &= matches!(end, End::Returned | End::Trapped);
            }
        }
    }
    compared.end = ended.map_err(|fault| wrong(stuck(fault, new)))?;
    if goes_on && all_end {
        // Between two blocks that some lane alone runs too, each other block is run at most once.
        if blocks > (alone + 1).saturating_mul(new.count as u64) {
            return Err(wrong(What::Endless { blocks, alone }));
        }
        return match fuel.checked_mul(8).filter(|&more| more < ENDLESS) {
            Some(more) => compare(old, new, inputs, more),
            None => Ok(compared),
        };
    }
    Ok(compared)
}

/// The error if a lane alone cannot follow the warp's record.
fn differs(
    fault: Fault,
    lane: usize,
    record: &Record,
    old: &Program<'_>,
    new: &Program<'_>,
) -> What {
    let Fault::Differs { op, event, operand } = fault else { return stuck(fault, old) };
    let old = old.describe(op);
    let Some(number) = event else { return What::Missing { lane, old } };
    let new = new.describe(record.events[number].op);
    match operand {
        None => What::Effect { lane, number, old, new },
        Some(record::Operand { index, wanted, given }) => {
            What::Operand { lane, index, wanted, given, old, new }
        }
    }
}

/// The error if a warp is stuck.
fn stuck(fault: Fault, program: &Program<'_>) -> What {
    match fault {
        Fault::Parted { op, lanes: [one, other] } => {
            What::Parted { one, other, new: program.describe(op) }
        }
        Fault::NothingToJoin { block } => What::NothingToJoin { block },
        Fault::OpenReturn { op } => What::OpenReturn { new: program.describe(op) },
        Fault::NoCode { block } => What::NoCode { block },
        Fault::Differs { op, .. } => What::Missing { lane: 0, old: program.describe(op) },
    }
}

impl Program<'_> {
    /// A number that depends on the code alone.
    fn fingerprint(&self) -> u64 {
        let lists = self.lists.iter().map(|&register| u64::from(register));
        let kinds = self.ops.iter().map(|op| op.kind.fingerprint());
        kinds.chain(lists).fold(0, mix)
    }
}
