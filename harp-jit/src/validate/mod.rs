//! Validation of values: a function whose control flow was rearranged must do, in each lane, what it did before.
//!
//! Both functions are interpreted on random inputs. What is compared are the *effects* of each lane, in their order
//! and with all their operands: loads, stores, atomic operations, calls, barriers, votes and shuffles of the
//! program, divisions and whatever else can trap, traps, and what is returned.
//!
//! * [`rearranged`] compares a legal function with the same function in canonical form, structurized, with its
//!   [`Plan`]: the new one is run by a warp by the machine's rules for `split` and `join`, the old one by each lane
//!   alone. It also finds branches without `split` on which lanes disagree, joins without a split, and returns while
//!   others wait.
//! * [`converted`] compares VCode before and after [if-conversion](crate::if_convert), a lane at a time: nothing in a
//!   region that is converted depends on other lanes.
//!
//! The new function goes first and is recorded; in the old one the same effects have the same results. So results can
//! be anything: they are drawn anew for each effect, mostly small, so that loops end. Regions that are to be
//! predicated are plain branches in CLIF, which each lane follows alone.
//!
//! *What is computed as it is*: what the transformations make themselves, i.e. constants, comparisons, choices, logic,
//! extension and truncation; in every other round sums and products, too. All else is a function of opcode, type,
//! immediates and operands of which nothing is known, so that another operand is another result.
//!
//! *What is assumed*: what the analysis may rely on, and no more. Parameters are the same as far as they are
//! [known](Known) to be; ids as far as their [rule](crate::intrinsic::Intrinsic::rule) says; loads that are
//! `readonly` depend on their address alone,
//! and so does a division on its operands; results of calls that are known to be uniform are so among lanes that
//! call together and agree on the arguments that count. What is assumed by `%harp_assume_uniform` is true.
//!
//! *What it cannot see*: ways that no round takes, and what comes after the fuel is spent; which lanes vote together,
//! since the old function takes the results of votes from the new one; values that nothing depends on; what counts
//! branches, of which [`instrument`](crate::profile::instrument) puts in effects of its own; and all that comes before
//! and after, i.e. the mid-end, selection and allocation.
//!
//! A value of `%harp_undef` in the old function may be anything, and so may all that depends on it. In the new one,
//! those that the compiler has put in differ from lane to lane and from time to time.

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
#[cfg(test)]
mod tests;
mod vcode;
mod warp;

pub(crate) use inputs::Inputs;
use inputs::mix;
use program::Program;
pub(crate) use warp::End;
use warp::{Fault, Record, Warp};

/// How often functions are compared, with inputs and numbers of lanes of their own.
const ROUNDS: usize = 3;

/// What the new function may take a round, in operations of a lane: so many, and so many times its size.
const FUEL: u64 = 1500;
const FUEL_PER_OP: u64 = 4;

/// What it may take if each lane alone has come to an end.
const ENDLESS: u64 = 1 << 18;

/// A lane that does not do what it did, or lanes that do not keep together.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("with {lanes} lanes and inputs {seed:#018x}: {what}")]
pub(crate) struct Difference {
    lanes: usize,
    /// From this all inputs follow.
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
        "there is no end after {blocks} blocks, all lanes alone came to one within {alone} before"
    )]
    Endless { blocks: u64, alone: u64 },
    #[error(
        "lane {lane} comes to an end after {blocks} blocks, but did not within {before} before"
    )]
    Ends { lane: usize, blocks: u64, before: u64 },
}

/// What a comparison came to.
#[cfg_attr(not(test), expect(dead_code, reason = "tests ask for it"))]
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    /// How the new function ended.
    pub(crate) end: End,
    /// Splits whose lanes disagreed.
    pub(crate) parted: usize,
    /// Effects that were compared.
    pub(crate) effects: usize,
}

/// Compares a legal function, of which `known` is known, with what became of it; a warp has at most `lanes` lanes.
///
/// # Errors
///
/// The first difference that was found.
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
/// The first difference that was found.
pub(crate) fn converted(before: &VCode, after: &VCode, word: WordSize) -> Result<(), Difference> {
    rounds(&Program::of_vcode(before, word), &Program::of_vcode(after, word), 1, ROUNDS)
}

/// Compares a legal kernel with what became of it on the given inputs.
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
    /// When it was: equal for lanes that executed it together.
    pub(super) time: u64,
    pub(super) operands: Vec<u64>,
}

/// All effects of all lanes of a kernel, lane by lane.
#[cfg(test)]
pub(super) fn effects(func: &Function, plan: &Plan, inputs: &Inputs, fuel: u64) -> Vec<Seen> {
    let program = Program::of_function(func, Some(plan), Known::KERNEL);
    let mut warp = Warp::recording(&program, inputs);
    warp.run(fuel).unwrap_or_else(|fault| panic!("{}", stuck(fault, &program)));
    let seen = |record: &Record, event: &warp::Event| Seen {
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

/// Compares on these inputs; the new function may take `fuel`, and more if it seems never to end.
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
    // What lanes did is looked at first: why they went wrong is there more often than not.
    for (lane, record) in records.iter().enumerate() {
        let mut follower = Warp::following(old, inputs, lane, record, goes_on && all_end);
        // A block of the new function stands for those of a converted region at most.
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
        // Between two blocks that some lane runs alone, too, each of the others is run once at most.
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

/// What is wrong if a lane alone cannot follow the warp.
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
        Some(warp::Operand { index, wanted, given }) => {
            What::Operand { lane, index, wanted, given, old, new }
        }
    }
}

/// What is wrong if a warp cannot go on.
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
    /// A number that is the same for the same code.
    fn fingerprint(&self) -> u64 {
        let lists = self.lists.iter().map(|&register| u64::from(register));
        let kinds = self.ops.iter().map(|op| op.kind.fingerprint());
        kinds.chain(lists).fold(0, mix)
    }
}
