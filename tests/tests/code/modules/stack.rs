//! The stack's limit, and frames.

use std::fmt::Write as _;

use harp_emu::TrapKind;
use harp_isa::abi::{LaneField, stack_reserve_bytes};
use harp_jit::{CompileOptions, FuncId, Linkage, Module};
use harp_runtime::{Program, ProgramError};
use harp_tests::functions::{Result, compiled, module, name, observed, parse, single_lane, word};

use super::{DEEP, archs};

/// Deeper and deeper until the stack is full: the trap names the function, and no step before it
/// changed anything outside of the stack.
#[test]
fn recursion_to_the_limit() {
    for arch in archs() {
        for (slot, stack_bytes) in [(16, 4096), (200, 4096), (3000, 1 << 16), (16, 1 << 20)] {
            let functions = parse(arch.word(), &DEEP.replace("SLOT", &slot.to_string()));
            let options = CompileOptions { stack_bytes, ..single_lane() };
            let finished = compiled(&functions, arch, &options);
            let program = Program::new(&finished, "deep", &functions[1].signature).unwrap();
            // The lane control block, the reserve and the word at the top are no room for frames.
            let id = FuncId::from_u32(1);
            let mut again = module(&functions[..1], arch, &options).unwrap();
            let declared = again.declare_function("deep", Linkage::Local, &functions[1].signature);
            assert_eq!(declared.unwrap(), id);
            let frame =
                again.compile(id, &functions[1], &Default::default()).unwrap().frame_bytes();
            assert!(frame > slot, "{frame}");
            let room = u64::from(stack_bytes)
                - u64::from(stack_reserve_bytes(arch.word()))
                - u64::from(LaneField::block_bytes(arch.word()))
                - u64::from(arch.word().bytes());
            // A call with 0 takes one frame.
            let last = room / frame - 1;
            let outcome = program.call(&[last], None).unwrap();
            let wanted = (last * (last + 1)) & arch.word().mask();
            assert_eq!(outcome.results, [wanted], "{arch} {slot}");
            match program.call(&[last + 1], None) {
                Err(ProgramError::Trap(trap)) => {
                    assert_eq!(trap.trap.kind, TrapKind::GuestTrap, "{arch}: {trap}");
                    assert_eq!(trap.trap_code.as_deref(), Some("stk_ovf"), "{arch}: {trap}");
                    assert_eq!(trap.function.as_ref().unwrap().0, "deep", "{arch}: {trap}");
                    assert!(trap.to_string().contains("`deep`"), "{trap}");
                }
                other => panic!("{arch}: {other:?}"),
            }
        }
    }
}

#[test]
fn functions_that_take_little_stack_do_not_look_at_the_limit() {
    for arch in archs() {
        let functions = parse(arch.word(), &DEEP.replace("SLOT", "16"));
        let mut module = Module::new(arch, single_lane());
        let ids: Vec<_> = functions
            .iter()
            .map(|func| {
                let name = name(func);
                module.declare_function(&name, Linkage::Local, &func.signature).unwrap()
            })
            .collect();
        let leaf = module.compile(ids[0], &functions[0], &Default::default()).unwrap();
        assert!(!leaf.checks_stack() && leaf.frame_bytes() == 0, "{arch}");
        module.define_compiled(ids[0], leaf).unwrap();
        let deep = module.compile(ids[1], &functions[1], &Default::default()).unwrap();
        assert!(deep.checks_stack(), "{arch}");
        // Callers of a leaf that is known do not either.
        let caller = parse(
            arch.word(),
            "function %caller(word) -> word {\nfn0 = %leaf(word) -> word\nblock0(v0: word):\nv1 = call fn0(v0)\nv2 = iadd v1, v0\nreturn v2\n}",
        );
        let id = module.declare_function("caller", Linkage::Local, &caller[0].signature).unwrap();
        let caller = module.compile(id, &caller[0], &Default::default()).unwrap();
        assert!(!caller.checks_stack() && caller.frame_bytes() > 0, "{arch}");
    }
}

/// Frames larger than any immediate, with slots at both ends.
#[test]
fn large_frames() {
    for arch in archs() {
        let slots = 40;
        let mut text = "function %f(word) -> word {\n".to_owned();
        for slot in 0..slots {
            let _ = writeln!(text, "ss{slot} = explicit_slot 1000");
        }
        text += "fn0 = %g(word) -> word\nblock0(v0: word):\nv1000 = iconst.word 0\n";
        for slot in 0..slots {
            let _ = writeln!(
                text,
                "v{0} = stack_addr.word ss{slot}+{1}\nv{2} = iconst.word {slot}\nv{3} = iadd v0, v{2}\nstore notrap aligned v{3}, v{0}",
                100 + slot,
                8 * slot,
                200 + slot,
                300 + slot
            );
        }
        text += "v1 = call fn0(v0)\nv2 = iadd v1, v1000\n";
        for slot in 0..slots {
            let previous = if slot == 0 { 2 } else { 499 + slot };
            let _ = writeln!(
                text,
                "v{0} = load.word notrap aligned v{1}\nv{2} = iadd v{previous}, v{0}",
                400 + slot,
                100 + slot,
                500 + slot
            );
        }
        let _ = writeln!(text, "return v{}\n}}", 499 + slots);
        text += "function %g(word) -> word {\nblock0(v0: word):\nv1 = imul v0, v0\nreturn v1\n}";
        let functions = parse(arch.word(), &text);
        let options = CompileOptions { stack_bytes: 1 << 16, ..single_lane() };
        let module = compiled(&functions, arch, &options);
        let given = observed(&module, &functions, "f", &[word(arch, 9)]).unwrap();
        let wanted = 81 + 9 * slots + slots * (slots - 1) / 2;
        assert_eq!(given, Result::Values(vec![word(arch, wanted)]), "{arch}");
    }
}

#[test]
fn aligned_stack_slots() {
    for arch in archs() {
        let text = "function %f(word) -> word, word, word {
            ss0 = explicit_slot 8
            ss1 = explicit_slot 24, align = 256
            ss2 = explicit_slot 8, align = 32
        block0(v0: word):
            v1 = stack_addr.word ss1
            v2 = stack_addr.word ss2+8
            v3 = stack_addr.word ss1+16
            v4 = stack_addr.word ss0
            store notrap aligned v0, v4
            store notrap aligned v1, v3
            store notrap aligned v2, v1
            v5 = load.word notrap aligned v4
            return v1, v2, v5
        }";
        let functions = parse(arch.word(), text);
        let module = compiled(&functions, arch, &single_lane());
        let program = Program::new(&module, "f", &functions[0].signature).unwrap();
        let results = program.call(&[77], None).unwrap().results;
        assert_eq!((results[0] % 256, results[1] % 32, results[2]), (0, 8, 77), "{arch}");
    }
}
