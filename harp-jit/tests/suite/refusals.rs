//! Unsupported code is refused by name; it is never miscompiled, and the compiler never panics.

use harp_jit::{
    ArchId, CompileError, CompileOptions, Compiler, KernelBuilder, KernelSource, Module,
    ModuleError, OptLevel, ParamType,
};

/// A kernel for `arch` from CLIF text: declarations, then the body of the entry block, whose only
/// parameter is `v0`.
fn compile(arch: &str, declarations: &str, body: &str) -> Result<(), CompileError> {
    let arch: ArchId = arch.parse().unwrap();
    let word = if arch.word().bytes() == 4 { "i32" } else { "i64" };
    let text = format!("function %k({word}) {{\n{declarations}\nblock0(v0: {word}):\n{body}\n}}");
    let func = cranelift_reader::parse_functions(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let func = func.into_iter().next().unwrap();
    let source = KernelSource::from_function(func, arch, &[ParamType::Pointer])?;
    for opt_level in [OptLevel::None, OptLevel::Speed] {
        let options = CompileOptions { opt_level, verify: true, ..CompileOptions::default() };
        source.compile(&options)?;
    }
    Ok(())
}

/// Checks that the kernel is refused because of the instruction that begins with `inst`.
fn refused(arch: &str, declarations: &str, body: &str, inst: &str) {
    match compile(arch, declarations, body) {
        Err(CompileError::Unsupported { inst: given, block, .. }) => {
            let operation = given.split_once(" = ").map_or(given.as_str(), |(_, right)| right);
            assert!(operation.starts_with(inst), "{arch}: `{given}`, not `{inst}`");
            assert!(block.starts_with("block"), "{block}");
        }
        other => panic!("{arch}: {other:?}\n{body}"),
    }
}

#[test]
fn values_wider_than_a_word() {
    let wide =
        "v1 = uextend.i64 v0\nv2 = imul v1, v1\nv3 = ireduce.i32 v2\nstore aligned v3, v0\nreturn";
    compile("harp32", "", wide).unwrap();
    compile("4w16/16/4/2+x", "", wide).unwrap();
    let atomic = "v1 = iconst.i64 1\nv2 = atomic_rmw.i64 add v0, v1\nreturn";
    compile("harp32", "", atomic).unwrap();
    compile("4w16/16/4/2+x", "", atomic).unwrap();
    let wide =
        "v1 = uextend.i128 v0\nv2 = imul v1, v1\nv3 = ireduce.i64 v2\nstore aligned v3, v0\nreturn";
    refused("harp64+x", "", wide, "uextend.i128");
    compile("harp32", "", "v1 = load.f64 v0\nstore aligned v1, v0\nreturn").unwrap();
    let vector = "v1 = load.i32x4 v0\nv2 = iadd v1, v1\nstore v2, v0\nreturn";
    refused("harp64+x", "", vector, "load.i32x4");
    let half = "v1 = load.f16 v0\nv2 = fpromote.f32 v1\nstore v2, v0\nreturn";
    refused("4w16/16/4/2+x", "", half, "load.f16");
}

/// Parts of words, words at any address, atomic accesses: lanes take turns where the machine has no instruction.
#[test]
fn base_machines_store_and_update_parts_of_words() {
    for arch in ["harp32", "harp64", "4w16/16/4/2+x", "4w8/2/1/1"] {
        for ty in ["i8", "i16"] {
            let store = format!("v1 = ireduce.{ty} v0\nstore aligned v1, v0\nreturn");
            compile(arch, "", &store).unwrap();
        }
        for body in ["store v0, v0", "fence"] {
            compile(arch, "", &format!("{body}\nreturn")).unwrap();
        }
        let word = if arch == "harp64" { "i64" } else { "i32" };
        compile(arch, "", &format!("v1 = atomic_rmw.{word} add v0, v0\nreturn")).unwrap();
    }
    compile("harp64", "", "istore32 aligned v0, v0\nreturn").unwrap();
}

/// Operations without an instruction become sequences of others.
#[test]
fn floats_are_covered_everywhere() {
    for arch in ["harp32", "4w16/16/4/2+x", "harp64", "harp64+x"] {
        for ty in ["f32", "f64"] {
            let operations = [
                "fadd v1, v1",
                "fdiv v1, v1",
                "sqrt v1",
                "fma v1, v1, v1",
                "fmin v1, v1",
                "ceil v1",
                "floor v1",
                "trunc v1",
                "nearest v1",
            ];
            for operation in operations {
                let body = format!(
                    "v1 = load.{ty} aligned v0\nv2 = {operation}\nv3 = fcvt_to_sint.i32 v2\n\
                     v4 = sextend.i64 v3\nstore aligned v4, v0\nreturn"
                );
                compile(arch, "", &body).unwrap_or_else(|e| panic!("{arch} {ty} {operation}: {e}"));
            }
        }
    }
}

#[test]
fn operations_that_are_not_covered() {
    let narrow = "v1 = ireduce.i32 v0\nv2 = load.i32 v1\nstore v2, v0\nreturn";
    refused("harp64+x", "", narrow, "load.i32");
    let narrow = "v1 = ireduce.i32 v0\nv2 = atomic_rmw.i32 add v1, v1\nreturn";
    refused("harp64+x", "", narrow, "atomic_rmw.i32");
    let big = "v1 = atomic_load.i32 big v0\nreturn";
    compile("4w16/16/4/2+x", "", big).unwrap();
    let byte = "v1 = ireduce.i8 v0\nv2 = atomic_rmw.i8 add v0, v1\nreturn";
    compile("4w16/16/4/2+x", "", byte).unwrap();
    compile("4w16/16/4/2+x", "", &byte.replace("add", "or")).unwrap();
}

#[test]
fn calls_and_addresses() {
    // In a kernel the address of a function that comes from memory may differ between lanes.
    let indirect = "v1 = load.i32 aligned v0\ncall_indirect sig0, v1(v0)\nreturn";
    compile("harp32", "sig0 = (i32)", indirect).unwrap();
    compile("harp32", "sig0 = (i32)", "call_indirect sig0, v0(v0)\nreturn").unwrap();
    let structure = "call fn0(v0)\nreturn";
    compile("harp32", "fn0 = %g(i32 sarg(64))", structure).unwrap();
    refused("harp32", "fn0 = %g(i32 sarg(99999999))", structure, "call fn0");
    let narrow = "v1 = ireduce.i16 v0\ncall fn0(v1)\nreturn";
    refused("harp32", "fn0 = %g(i16 sarg(8))", narrow, "call fn0");
    let thread = "v1 = tls_value.i32 gv0\nstore aligned v1, v0\nreturn";
    refused("harp32", "gv0 = symbol tls %data", thread, "tls_value");
    let thread = "v1 = symbol_value.i32 gv0\nstore aligned v1, v0\nreturn";
    refused("harp32", "gv0 = symbol tls %data", thread, "symbol_value");
    let slot = "v1 = stack_addr.i32 ss0\nstore aligned v0, v1\nreturn";
    refused("harp32", "ss0 = explicit_slot 8, align = 8192", slot, "stack_addr.i32");
    for opcode in ["get_stack_pointer", "get_frame_pointer", "get_return_address"] {
        let ask = format!("v1 = {opcode}.i32\nstore aligned v1, v0\nreturn");
        compile("harp32", "", &ask).unwrap();
        compile("4w16/16/4/2+x", "", &ask).unwrap();
    }
    let narrow = "v1 = get_stack_pointer.i32\nstore aligned v1, v0\nreturn";
    refused("harp64+x", "", narrow, "get_stack_pointer");
    // The name of an intrinsic, but not its signature.
    let declaration = "fn0 = %harp_lane_id(i32) -> i32";
    let call = "v1 = call fn0(v0)\nstore aligned v1, v0\nreturn";
    refused("harp32", declaration, call, "call fn0");
}

#[test]
fn any_control_flow_but_a_way_back_to_the_entry() {
    let lane = "fn0 = %harp_lane_id() -> i32";
    let divergent_loop = "v1 = call fn0()\njump block1(v1)\nblock1(v2: i32):\nv4 = iconst.i32 -1\nv3 = iadd v2, v4\nbrif v3, block1(v3), block2\nblock2:\nreturn";
    compile("harp32", lane, divergent_loop).unwrap();
    let either = "v1 = call fn0()\nbrif v1, block2, block1\nblock1:\nv3 = iconst.i32 3\nv2 = icmp eq v1, v3\nbrif v2, block2, block3\nblock2:\nstore aligned v1, v0\njump block3\nblock3:\nreturn";
    compile("harp32", lane, either).unwrap();
    let two_entries = "v1 = call fn0()\nbrif v1, block1, block2\nblock1:\njump block2\nblock2:\nbrif v1, block1, block3\nblock3:\nreturn";
    compile("harp32", lane, two_entries).unwrap();
    let uniform = divergent_loop.replace("call fn0()", "load.i32 notrap aligned readonly v0");
    compile("harp32", lane, &uniform).unwrap();
    // A loop back to the entry block.
    let entry = "v1 = iadd v0, v0\njump block0(v1)";
    assert!(compile("harp32", "", entry).is_err());
}

#[test]
fn functions_that_are_no_kernels() {
    let text = "function %k(i32, i32) -> i32 {\nblock0(v0: i32, v1: i32):\nreturn v0\n}";
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let error = KernelSource::from_function(func, ArchId::HARP32, &[]).unwrap_err();
    assert!(error.to_string().contains("i32"), "{error}");
    // Ill-typed CLIF is refused by the verifier.
    let text =
        "function %k(i32) {\nblock0(v0: i32):\nv1 = iconst.i8 1\nv2 = iadd.i8 v1, v0\nreturn\n}";
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    let source = KernelSource::from_function(func, ArchId::HARP32, &[]).unwrap();
    let error = source.compile(&CompileOptions::default()).unwrap_err();
    let CompileError::Invalid { kernel, message } = error else { panic!("{error}") };
    assert!(kernel == "k" && message.contains("v2"), "{message}");
}

/// Functions on which Cranelift's verifier itself panics, or that it accepts wrongly.
#[test]
fn functions_that_no_verifier_expects() {
    let mut empty = cranelift_codegen::ir::Function::new();
    let word = cranelift_codegen::ir::AbiParam::new(cranelift_codegen::ir::types::I32);
    empty.signature.params.push(word);
    let text = "function %k(i32) {\nblock0(v0: i32):\nv1 = swiden_low v0\nreturn\n}";
    let scalar = std::panic::catch_unwind(|| cranelift_reader::parse_functions(text));
    let scalar = scalar.ok().and_then(Result::ok).map(|mut functions| functions.remove(0));
    for func in scalar.into_iter().chain([empty]) {
        let source = KernelSource::from_function(func, ArchId::HARP32, &[]).unwrap();
        let error = source.compile(&CompileOptions::default()).unwrap_err();
        assert!(matches!(error, CompileError::Invalid { .. }), "{error}");
    }
}

#[test]
fn a_kernel_for_another_machine_is_refused() {
    let [built, wanted] = ["harp32", "harp64"].map(|id| id.parse::<ArchId>().unwrap());
    let mut source = KernelSource::new("k", built);
    let mut b = KernelBuilder::new(&mut source);
    b.return_();
    b.finalize().unwrap();
    let compiler = Compiler::new(wanted, CompileOptions::default());
    let error = compiler.compile_kernel(&source).unwrap_err();
    let expected = CompileError::Machine { kernel: "k".into(), given: built, wanted };
    assert_eq!(error, expected);
    let module = Module::new(wanted, CompileOptions::default());
    assert_eq!(module.compile_kernel(&source).unwrap_err(), ModuleError::Compile(expected));
}
