//! Smaller kernels that fail as larger ones do.

use cranelift_codegen::ir::Function;

use super::super::reduce::{Subject, fewer_bytes, fewer_instructions, instruction_count};
use super::{Failure, Machines, check_generated};
use crate::generate::Family;
use crate::generate::divergent::{Generated, kernel};
use crate::oracle::{Datum, Expected, KernelCase, Stop};

impl Subject for KernelCase {
    fn functions(&self) -> &[Function] {
        &self.module.functions
    }

    fn functions_mut(&mut self) -> &mut Vec<Function> {
        &mut self.module.functions
    }

    fn data_mut(&mut self) -> &mut Vec<Datum> {
        &mut self.module.data
    }
}

/// A kernel that fails on the same target as `bytes` do, but is smaller; `failure` itself if none is
/// found.
///
/// First fewer bytes are tried, then instructions are left out or become constants, and branches become
/// jumps. Takes `attempts` at most.
pub fn shrink(bytes: &[u8], failure: Box<Failure>, attempts: usize) -> Box<Failure> {
    let family = Family::of(failure.target.arch);
    let mut machines = Machines::default();
    let mut smallest = failure;
    fewer_bytes(bytes, &mut { attempts / 2 }, |candidate| {
        let case = kernel(candidate, family).case;
        if instruction_count(&case) > instruction_count(&*smallest.case) {
            return false;
        }
        fails(&case, &smallest, &mut machines).map(|smaller| smallest = smaller).is_some()
    });
    let case = (*smallest.case).clone();
    let astray = |case: &KernelCase| match case.expected() {
        Ok((Expected::Trap(traps), _)) => traps.iter().any(|trap| trap.stop == Stop::BadAddress),
        Ok(_) => false,
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
fn fails(case: &KernelCase, like: &Failure, machines: &mut Machines) -> Option<Box<Failure>> {
    let generated = Generated { case: case.clone(), marks: Vec::new() };
    let failure = check_generated(&generated, &[like.target], machines).err()?;
    let same = kind(&failure.message) == kind(&like.message);
    (same && (failure.code.is_none() || case.is_determined())).then_some(failure)
}

/// What stands before the details of a message.
fn kind(message: &str) -> &str {
    if message.starts_with("buffer ") {
        return "a difference";
    }
    message.split([':', '`', '(']).next().unwrap_or_default()
}
