//! Smaller cases that fail as larger ones do.

use super::reduce::{fewer_bytes, fewer_instructions, instruction_count};
use super::{Failure, Machines, check_generated};
use crate::generate::{Family, Generated, Kind};
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
    let astray = |case: &Case| match case.expected(arch.lanes()) {
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
    let lanes = like.target.arch.lanes();
    (same && (failure.code.is_none() || case.is_determined(lanes))).then_some(failure)
}

/// What stands before the details of a message.
fn kind(message: &str) -> &str {
    if message.contains(" expected, ") {
        return "a difference";
    }
    message.split([':', '`', '(']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use harp_isa::{ArchId, WordSize};
    use harp_jit::OptLevel;

    use super::super::{Target, WAYS};
    use super::*;
    use crate::oracle::{Argument, Elements, Start};

    #[test]
    fn lanes_that_share_a_place_determine_nothing() {
        let text = |step: &str| {
            format!(
                "function %kernel(i32) fast {{
                fn0 = %harp_global_id_x() -> i32
            block0(v0: i32):
                v1 = load.i32 notrap aligned v0+36
                v2 = call fn0()
                v3 = iconst.i32 {step}
                v4 = imul v2, v3
                v5 = iadd v1, v4
                v6 = load.i32 v5
                v7 = iconst.i32 1
                v8 = iadd v6, v7
                store v8, v5
                return
            }}"
            )
        };
        let case = |step: &str| {
            let func = cranelift_reader::parse_functions(&text(step)).unwrap().remove(0);
            let buffer = Argument::Buffer(Elements::Ints, vec![0; 16]);
            Case::kernel(func, WordSize::Four, [4, 1, 1], vec![buffer])
        };
        // Backwards, the sum is the same.
        assert!(!case("0").is_determined(4));
        assert!(case("4").is_determined(4));
    }

    #[test]
    fn only_what_fails_is_left() {
        // Something that the oracle does not know, in the false side of a branch, among much else.
        let text = "function %kernel(i32) fast {
                fn0 = %harp_global_id_x() -> i32
                fn1 = %harp_warp_id() -> i32
                fn2 = %g(i32) -> i32
            block0(v0: i32):
                v1 = call fn0()
                v2 = call fn2(v1)
                v3 = iconst.i32 1
                v4 = band v1, v3
                brif v4, block1, block2(v2)
            block1:
                v5 = imul v2, v1
                jump block2(v5)
            block2(v6: i32):
                v7 = call fn1()
                v8 = iadd v6, v7
                brif v8, block3, block4
            block3:
                trap user1
            block4:
                return
            }
            function %g(i32) -> i32 {
            block0(v0: i32):
                v1 = imul v0, v0
                return v1
            }";
        let start = Start::Launch { extents: [5, 1, 1], args: Vec::new() };
        let failure = failure(text, WordSize::Four, start, ArchId::HARP32);
        assert!(failure.message.contains("the oracle does not know"), "{failure}");
        let smaller = shrink(Kind::Kernels, &[], failure, 2000);
        assert!(smaller.message.contains("the oracle does not know"), "{smaller}");
        assert_eq!(smaller.case.functions.len(), 1, "{smaller}");
        // The call and an end.
        assert_eq!(instruction_count(&smaller.case), 2, "{smaller}");
    }

    #[test]
    fn only_what_fails_is_left_of_functions() {
        let text = "function %f(i64, i32) -> i64 {
                ss0 = explicit_slot 16
                fn0 = %g(i64) -> i64
                fn1 = %harp_warp_id() -> i64
            block0(v0: i64, v1: i32):
                v2 = stack_addr.i64 ss0
                store v0, v2
                v3 = call fn0(v0)
                br_table v1, block3, [block1(v3), block2]
            block1(v4: i64):
                v5 = iadd v4, v0
                v6 = call fn1()
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
        let start = Start::Call(vec![0_i64.into(), 0_i32.into()]);
        let failure = failure(text, WordSize::Eight, start, ArchId::HARP64);
        let smaller = shrink(Kind::Functions, &[], failure, 1000);
        assert!(smaller.message.contains("the oracle does not know"), "{smaller}");
        assert_eq!(smaller.case.functions.len(), 1, "{smaller}");
        // The call, and an end with its operand.
        assert!(instruction_count(&smaller.case) <= 4, "{smaller}");
        assert!(smaller.case.functions[0].sized_stack_slots.is_empty(), "{smaller}");
    }

    /// What comes of a text that fails.
    fn failure(text: &str, word: WordSize, start: Start, arch: ArchId) -> Box<Failure> {
        let functions = cranelift_reader::parse_functions(text).unwrap();
        let case = Case { word, functions, data: Vec::new(), start };
        let target = Target::new(arch, OptLevel::Speed, WAYS[0]);
        check_generated(&case.into(), &[target], &mut Machines::default()).unwrap_err()
    }
}
