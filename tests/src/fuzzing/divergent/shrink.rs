//! Smaller kernels that fail as larger ones do.

use cranelift_codegen::ir::Function;

use super::super::reduce::{Subject, fewer_bytes, fewer_instructions, instruction_count};
use super::{Failure, Kernels, Machines, check_generated};
use crate::generate::Family;
use crate::generate::divergent::Generated;
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
pub fn shrink(
    kernels: Kernels,
    bytes: &[u8],
    failure: Box<Failure>,
    attempts: usize,
) -> Box<Failure> {
    let arch = failure.target.arch;
    let family = Family::of(arch);
    let mut machines = Machines::default();
    let mut smallest = failure;
    fewer_bytes(bytes, &mut { attempts / 2 }, |candidate| {
        let case = kernels.generate(candidate, family).case;
        if instruction_count(&case) > instruction_count(&*smallest.case) {
            return false;
        }
        fails(&case, &smallest, &mut machines).map(|smaller| smallest = smaller).is_some()
    });
    let case = (*smallest.case).clone();
    let astray = |case: &KernelCase| match case.expected(arch.lanes()) {
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
    let generated = Generated { case: case.clone(), marks: Vec::new(), asks_for_lane: true };
    let failure = check_generated(&generated, &[like.target], machines).err()?;
    let same = kind(&failure.message) == kind(&like.message);
    let lanes = like.target.arch.lanes();
    (same && (failure.code.is_none() || case.is_determined(lanes))).then_some(failure)
}

/// What stands before the details of a message.
fn kind(message: &str) -> &str {
    if message.starts_with("buffer ") {
        return "a difference";
    }
    message.split([':', '`', '(']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use harp_isa::{ArchId, WordSize};
    use harp_jit::OptLevel;

    use super::super::{Target, WAYS, check_generated};
    use super::*;
    use crate::oracle::{Argument, Elements, ModuleCase};

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
            let functions = cranelift_reader::parse_functions(&text(step)).unwrap();
            let module =
                ModuleCase { word: WordSize::Four, functions, data: Vec::new(), args: Vec::new() };
            let buffer = Argument::Buffer(Elements::Ints, vec![0; 16]);
            KernelCase { module, extents: [4, 1, 1], args: vec![buffer] }
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
        let functions = cranelift_reader::parse_functions(text).unwrap();
        let (data, args) = (Vec::new(), Vec::new());
        let module = ModuleCase { word: WordSize::Four, functions, data, args };
        let case = KernelCase { module, extents: [5, 1, 1], args: Vec::new() };
        let generated = Generated { case, marks: Vec::new(), asks_for_lane: false };
        let target = Target::new(ArchId::HARP32, OptLevel::Speed, WAYS[0]);
        let mut machines = Machines::default();
        let failure = check_generated(&generated, &[target], &mut machines).unwrap_err();
        assert!(failure.message.contains("the oracle does not know"), "{failure}");
        let smaller = shrink(Kernels::ControlFlow, &[], failure, 2000);
        assert!(smaller.message.contains("the oracle does not know"), "{smaller}");
        assert_eq!(smaller.case.module.functions.len(), 1, "{smaller}");
        // The call and an end.
        assert_eq!(instruction_count(&*smaller.case), 2, "{smaller}");
    }
}
