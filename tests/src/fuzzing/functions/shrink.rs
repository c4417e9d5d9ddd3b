//! Smaller modules that fail as larger ones do.

use super::super::reduce::{fewer_bytes, fewer_instructions, instruction_count};
use super::{Failure, check_case};
use crate::generate::functions::module;
use crate::oracle::{Ending, ModuleCase, Stop};

/// A module that fails on the same machine and level as `bytes` do, but is smaller; `failure` itself if
/// none is found.
///
/// First fewer bytes are tried, then instructions are left out or become constants, and branches become
/// jumps. Takes `attempts` at most.
pub fn shrink(bytes: &[u8], failure: Box<Failure>, attempts: usize) -> Box<Failure> {
    let mut smallest = failure;
    fewer_bytes(bytes, &mut { attempts / 2 }, |candidate| {
        let case = module(candidate, smallest.arch.word());
        if instruction_count(&case) > instruction_count(&*smallest.case) {
            return false;
        }
        fails(&case, &smallest).map(|smaller| smallest = smaller).is_some()
    });
    simplify(smallest, attempts - attempts / 2)
}

/// The same, beginning with the module itself.
pub fn simplify(failure: Box<Failure>, attempts: usize) -> Box<Failure> {
    let ending = |case: &ModuleCase| case.expected().ok().map(|(effect, _)| effect.ending);
    let before = ending(&failure.case);
    let case = (*failure.case).clone();
    let mut smallest = failure;
    fewer_instructions(case, attempts, |case| {
        // Addresses that became numbers are no finding.
        let now = ending(case);
        if now == Some(Ending::Trap(Stop::BadAddress)) && now != before {
            return false;
        }
        fails(case, &smallest).map(|smaller| smallest = smaller).is_some()
    });
    smallest
}

/// The failure of a case on the machine and level of another one, if it is of the same kind.
fn fails(case: &ModuleCase, like: &Failure) -> Option<Box<Failure>> {
    let failure = check_case(case, &[(like.arch, like.opt_level)]).err()?;
    let same = kind(&failure.message) == kind(&like.message);
    (same && (failure.code.is_none() || case.is_determined())).then_some(failure)
}

/// What stands before the details of a message.
fn kind(message: &str) -> &str {
    if message.ends_with(" found") {
        return "a difference";
    }
    message.split([':', '`', '(']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use harp_isa::{ArchId, WordSize};
    use harp_jit::OptLevel;

    use super::*;

    #[test]
    fn only_what_fails_is_left() {
        // Something that is not supported, among much that is.
        let text = "function %f(i64, i32) -> i64 {
                ss0 = explicit_slot 16
                fn0 = %g(i64) -> i64
            block0(v0: i64, v1: i32):
                v2 = stack_addr.i64 ss0
                store v0, v2
                v3 = call fn0(v0)
                br_table v1, block3, [block1(v3), block2]
            block1(v4: i64):
                v5 = iadd v4, v0
                v6 = uextend.i128 v5
                v7, v8 = isplit v6
                jump block2
            block2:
                v9 = load.i64 v2
                brif v9, block3, block1(v9)
            block3:
                return v3
            }
            function %g(i64) -> i64 {
            block0(v0: i64):
                v1 = imul v0, v0
                return v1
            }";
        let functions = cranelift_reader::parse_functions(text).unwrap();
        let args = vec![0_i64.into(), 7_i32.into()];
        let case = ModuleCase { word: WordSize::Eight, functions, data: Vec::new(), args };
        let failure = check_case(&case, &[(ArchId::HARP64, OptLevel::Speed)]).unwrap_err();
        assert!(failure.message.contains("i128"), "{failure}");
        let smaller = simplify(failure, 1000);
        assert!(smaller.message.contains("i128"), "{smaller}");
        assert_eq!(smaller.case.functions.len(), 1, "{smaller}");
        let left = instruction_count(&*smaller.case);
        // A branch to the rest, it, its operand, the jump back and the return's operand.
        assert!(left <= 8, "{smaller}");
        assert!(smaller.case.functions[0].sized_stack_slots.is_empty(), "{smaller}");
    }
}
