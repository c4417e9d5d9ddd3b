//! Smaller cases that fail as larger ones do.

use super::reduce::{fewer_bytes, fewer_instructions, instruction_count};
use super::{Failure, check_generated};
use crate::generate::{Family, Generated, Kind};
use crate::machines::Machines;
use crate::oracle::{Case, Ending, Stop};

/// A case that fails on the same target as `bytes` do, but is smaller; `failure` itself if none is
/// found.
///
/// First fewer bytes are tried, then instructions are left out or become constants, and branches become
/// jumps. Takes `attempts` at most.
pub fn shrink(kind: Kind, bytes: &[u8], failure: Box<Failure>, attempts: usize) -> Box<Failure> {
    let arch = failure.target.arch;
    let family = Family::of(arch);
    let mut machines = Machines::default();
    let mut smallest = failure;
    fewer_bytes(bytes, &mut { attempts / 2 }, |candidate| {
        let case = kind.generate(candidate, family).case;
        if instruction_count(&case) > instruction_count(&smallest.case) {
            return false;
        }
        fails(&case, &smallest, &mut machines).map(|smaller| smallest = smaller).is_some()
    });
    let case = (*smallest.case).clone();
    let astray = |case: &Case| match case.expected(arch) {
        Ok((effect, _)) => match effect.ending {
            Ending::Traps(traps) => traps.iter().any(|trap| trap.stop == Stop::BadAddress),
            Ending::Values(_) => false,
        },
        Err(_) => true,
    };
    let before = astray(&case);
    fewer_instructions(case, attempts - attempts / 2, |case| {
        // Addresses that became numbers are no finding.
        if !before && astray(case) {
            return false;
        }
        fails(case, &smallest, &mut machines).map(|smaller| smallest = smaller).is_some()
    });
    smallest
}

/// The failure of a case on the target of another one, if it is of the same kind.
fn fails(case: &Case, like: &Failure, machines: &mut Machines) -> Option<Box<Failure>> {
    let generated = Generated { asks_for_lane: true, ..case.clone().into() };
    let failure = check_generated(&generated, &[like.target], machines).err()?;
    let same = kind(&failure.message) == kind(&like.message);
    (same && (failure.code.is_none() || case.is_determined(like.target.arch))).then_some(failure)
}

/// What stands before the details of a message.
fn kind(message: &str) -> &str {
    if message.contains(" expected, ") {
        return "a difference";
    }
    message.split([':', '`', '(']).next().unwrap_or_default()
}
