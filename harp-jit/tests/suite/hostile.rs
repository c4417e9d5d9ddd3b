//! Functions that are built wrongly on purpose: each is compiled, or refused by a typed error; none makes the
//! compiler panic or run for ever.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F16, I16X4, I32, I32X4, I64};
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, FuncRef, Function, GlobalValue, InstBuilder, JumpTable,
    MemFlagsData, SigRef, Signature, StackSlot, UserFuncName, Value,
};
use harp_jit::{
    ArchId, BuildErrorKind, CallConv, CompileError, CompileOptions, Compiler, Execution,
    KernelBuilder, KernelSource,
};

const ARCHS: [&str; 6] =
    ["harp32", "harp64", "4w32/16/8/2+x", "8w32/16/8/2+x", "4b16/16/2/1", "8b64/64/16/1"];

fn options() -> [CompileOptions; 2] {
    [true, false].map(|verify_input| CompileOptions {
        verify_input,
        verify: false,
        ..CompileOptions::default()
    })
}

/// The errors for a function of CLIF text, with the verifier and without.
fn errors(arch: &str, text: &str) -> [CompileError; 2] {
    let func = cranelift_reader::parse_functions(text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let arch: ArchId = arch.parse().unwrap();
    options().map(|options| {
        Compiler::new(arch, options.clone())
            .compile_function(&func[0])
            .expect_err("no machine has the type")
    })
}

/// Types that no machine has, anywhere in the function, used or not.
#[test]
fn foreign_types_are_refused_before_anything_looks_at_them() {
    for body in [
        "v1 = bitcast.i16x4 little v0\n    v2 = isub v1, v1",
        "v1 = splat.i32x4 v9\n    v2 = bxor v1, v1",
        "v1 = splat.i32x4 v9\n    v2 = icmp eq v1, v1",
        "v1 = f16const 0x1.0\n    v2 = bxor v1, v1",
        "v1 = scalar_to_vector.i8x16 v8\n    v2 = isub v1, v1",
        "v1 = uextend.i128 v0",
        "v1 = load.f128 v0\n    v2 = bxor v1, v1",
        "v1 = load.i8x8 v0",
    ] {
        let text = format!(
            "function %f(i64) {{\nblock0(v0: i64):\n    v9 = ireduce.i32 v0\n    \
             v8 = ireduce.i8 v0\n    {body}\n    return\n}}"
        );
        for arch in ARCHS {
            for error in errors(arch, &text) {
                let CompileError::Unsupported { what, block, .. } = &error else {
                    panic!("{arch}: {error}\n{body}")
                };
                assert!(what.starts_with("a value of type ") && block == "block0", "{error}");
            }
        }
    }
    for declaration in [
        "sig0 = (i32x4) fast",
        "fn0 = %g(i8) -> f128 fast",
        "fn0 = %g(i128) fast",
        "gv0 = vmctx\n gv1 = load.i16x4 notrap aligned gv0",
    ] {
        let text =
            format!("function %f(i64 vmctx) {{\n{declaration}\nblock0(v0: i64):\n    return\n}}");
        for error in errors("harp64+x", &text) {
            assert!(matches!(error, CompileError::UnsupportedDeclaration { .. }), "{error}");
        }
    }
    let text = "function %f() -> i32x4 {\nblock0:\n    trap user1\n}";
    for error in errors("harp32", text) {
        assert!(matches!(error, CompileError::UnsupportedDeclaration { .. }), "{error}");
    }
}

/// A function whose first instruction is made by `build`.
fn built<R>(build: impl FnOnce(&mut FuncCursor<'_>, Value) -> R) -> Function {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.push(AbiParam::new(I32));
    let mut func = Function::with_name_signature(UserFuncName::testcase("f"), signature);
    let entry = func.dfg.make_block();
    let param = func.dfg.append_block_param(entry, I32);
    func.layout.append_block(entry);
    let mut at = FuncCursor::new(&mut func).at_bottom(entry);
    build(&mut at, param);
    if !at
        .func
        .layout
        .last_inst(entry)
        .is_some_and(|inst| at.func.dfg.insts[inst].opcode().is_terminator())
    {
        at.ins().return_(&[]);
    }
    func
}

/// References to entities that the function does not have, and blocks without the structure that passes
/// assume.
#[test]
fn references_and_shape_are_looked_at_with_and_without_the_verifier() {
    let (value, block) = (Value::from_u32(101), Block::from_u32(77));
    let functions = [
        built(|at, x| at.ins().iadd(x, value)),
        built(|at, x| at.ins().icmp(IntCC::Equal, x, value)),
        built(|at, x| at.ins().store(MemFlagsData::new(), x, value, 0)),
        built(|at, _| at.ins().jump(block, &[])),
        built(|at, _| at.ins().return_(&[value])),
        built(|at, _| at.ins().stack_addr(I32, StackSlot::from_u32(9), 0)),
        built(|at, _| at.ins().symbol_value(I32, GlobalValue::from_u32(9))),
        built(|at, _| at.ins().func_addr(I32, FuncRef::from_u32(9))),
        built(|at, x| at.ins().br_table(x, JumpTable::from_u32(9))),
        // To the entry, and out of the layout.
        built(|at, x| at.ins().jump(Block::from_u32(0), &[BlockArg::Value(x)])),
        built(|at, _| {
            let outside = at.func.dfg.make_block();
            at.ins().jump(outside, &[]);
        }),
        built(|at, _| {
            let target = at.func.dfg.make_block();
            at.func.dfg.append_block_param(target, I32);
            at.ins().jump(target, &[]);
            at.func.layout.append_block(target);
            at.goto_bottom(target);
            at.ins().return_(&[]);
        }),
        Function::new(),
    ];
    for (number, func) in functions.iter().enumerate() {
        for options in options() {
            let error =
                Compiler::new(ArchId::HARP32, options.clone()).compile_function(func).unwrap_err();
            assert!(matches!(error, CompileError::Invalid { .. }), "{number}: {error}");
        }
    }
}

/// The first misuse of a builder's instruction methods.
fn misuse<R>(build: impl FnOnce(&mut KernelBuilder<'_>) -> R) -> BuildErrorKind {
    let mut source = KernelSource::new("k", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let line = line!() + 100_000;
    build(&mut b);
    b.return_();
    let error = b.finalize().unwrap_err();
    let place = error.place.unwrap();
    assert!(place.file.ends_with("hostile.rs") && place.line < line, "{place}");
    // The instruction that was built instead can be printed.
    assert!(!source.to_string().is_empty());
    error.kind
}

#[test]
fn instruction_methods_do_not_panic() {
    use BuildErrorKind as E;
    for number in [101, (1 << 30) + 1, u32::MAX - 1] {
        let value = Value::from_u32(number);
        let unknown = E::UnknownValue { value };
        assert_eq!(misuse(|b| b.ins().ineg(value)), unknown);
        assert_eq!(misuse(|b| b.ins().iadd_imm_s(value, 1)), unknown);
        assert_eq!(misuse(|b| b.ins().isplit(value)), unknown);
        assert_eq!(
            misuse(|b| {
                let x = b.lane_id();
                b.ins().store(MemFlagsData::new(), x, value, 0);
            }),
            unknown
        );
        assert_eq!(
            misuse(|b| {
                let block = b.create_block();
                b.ins().brif(value, block, &[], block, &[]);
            }),
            unknown
        );
        assert_eq!(
            misuse(|b| {
                let block = b.create_block();
                b.ins().jump(block, &[value.into()]);
            }),
            unknown
        );
        assert_eq!(misuse(|b| b.ins().return_(&[value])), unknown);
        let block = Block::from_u32(number);
        assert_eq!(misuse(|b| b.ins().jump(block, &[])), E::UnknownBlock { block });
        let entity = |kind| matches!(kind, E::UnknownEntity { .. });
        assert!(entity(misuse(|b| b.ins().call(FuncRef::from_u32(number), &[]))));
        assert!(entity(misuse(|b| b.ins().stack_addr(I32, StackSlot::from_u32(number), 0))));
        assert!(entity(misuse(|b| {
            let x = b.lane_id();
            b.ins().call_indirect(SigRef::from_u32(number), x, &[]);
        })));
    }
    let entry = Block::from_u32(0);
    assert_eq!(misuse(|b| b.ins().jump(entry, &[])), E::BlockSealed { block: entry });
    let wrong = |kind, given| matches!(kind, E::ControllingType { given: ty, .. } if ty == given);
    assert!(wrong(
        misuse(|b| {
            let x = b.lane_id();
            let x = b.ins().ireduce(harp_jit::ir::types::I8, x);
            b.ins().isplit(x);
        }),
        harp_jit::ir::types::I8
    ));
    assert!(wrong(misuse(|b| b.ins().iconst(I32X4, 1)), I32X4));
    let argument = BlockArg::TryCallRet(1 << 30);
    assert_eq!(
        misuse(|b| {
            let block = b.create_block();
            b.ins().jump(block, &[argument]);
        }),
        E::BlockArgument { argument }
    );
    // Types that CLIF has but no machine can be built; they are refused when the kernel is compiled.
    for ty in [F16, I16X4] {
        let mut source = KernelSource::new("k", "harp64".parse().unwrap());
        let mut b = KernelBuilder::new(&mut source);
        let x = b.lane_id();
        let loaded = b.ins().load(ty, MemFlagsData::new(), x, 0);
        b.ins().bxor(loaded, loaded);
        b.return_();
        b.finalize().unwrap();
        let error = source.compile(&CompileOptions::default()).unwrap_err();
        assert!(matches!(error, CompileError::Unsupported { place: Some(_), .. }), "{error}");
    }
}

/// Every intrinsic with every type as its result's, on every machine, optimized or not.
#[test]
fn intrinsics_of_every_type_compile_or_are_refused() {
    let ids = [
        "lane_id",
        "warp_id",
        "core_id",
        "lane_count",
        "global_id_x",
        "global_id_y",
        "global_id_z",
        "local_id_x",
        "local_id_y",
        "local_id_z",
        "local_index",
        "local_size_x",
        "group_id_x",
        "group_memory",
        "undef",
        "frame_end",
        "return_address",
    ];
    let types = ["i8", "i16", "i32", "i64", "f32", "f64"];
    let mut calls = Vec::new();
    for ty in types {
        calls.extend(ids.map(|name| (format!("{name}() -> {ty}"), "")));
        for name in ["assume_uniform", "of_some_lane"] {
            calls.push((format!("{name}({ty}) -> {ty}"), "v1"));
        }
        for name in ["any", "all", "ballot", "ballot_high"] {
            calls.push((format!("{name}(i8) -> {ty}"), "v2"));
        }
        for (lane, value) in
            [("i8", "v2"), ("i16", "v3"), ("i32", "v4"), ("i64", "v5"), ("f64", "v6")]
        {
            calls.push((format!("shuffle({ty}, {lane}) -> {ty}"), value));
        }
    }
    let (mut compiled, mut refused) = (0, 0);
    for (call, args) in &calls {
        let ty = call.rsplit(' ').next().unwrap();
        let own = call.contains(&format!("({ty}"));
        let args = match *args {
            lane if call.starts_with("shuffle") => format!("v1, {lane}"),
            args => args.to_owned(),
        };
        let load = if own { format!("v1 = load.{ty} v0") } else { String::new() };
        for arch in ARCHS {
            let arch: ArchId = arch.parse().unwrap();
            let word = if arch.word().bytes() == 4 { "i32" } else { "i64" };
            let text = format!(
                "function %k({word}) {{\nfn0 = %harp_{call}\nblock0(v0: {word}):\n    {load}\n    \
                 v2 = load.i8 v0\n    v3 = load.i16 v0\n    v4 = load.i32 v0\n    \
                 v5 = load.i64 v0\n    v6 = load.f64 v0\n    v7 = call fn0({args})\n    \
                 store v7, v0\n    return\n}}"
            );
            let func =
                cranelift_reader::parse_functions(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let source = KernelSource::from_function(func[0].clone(), arch, &[]).unwrap();
            for execution in [Execution::Simt, Execution::SingleLane] {
                let options =
                    CompileOptions { execution, verify: true, ..CompileOptions::default() };
                match source.compile(&options) {
                    Ok(_) => compiled += 1,
                    Err(CompileError::Unsupported { .. }) => refused += 1,
                    Err(error) => panic!("{arch}: {error}\n{text}"),
                }
            }
        }
    }
    assert!(compiled > 500 && refused > 100, "{compiled} compiled, {refused} refused");
    // Two words of a ballot, or of a value of some lane, are what they are of one.
    for call in ["ballot(i8) -> i64", "ballot_high(i8) -> i64"] {
        let text = format!(
            "function %k(i32) {{\nfn0 = %harp_{call}\nblock0(v0: i32):\n    v1 = load.i8 v0\n    \
             v2 = call fn0(v1)\n    store aligned v2, v0\n    return\n}}"
        );
        let func = cranelift_reader::parse_functions(&text).unwrap();
        let arch = "4w32/16/8/2+x".parse().unwrap();
        let source = KernelSource::from_function(func[0].clone(), arch, &[]).unwrap();
        source.compile(&CompileOptions::default()).unwrap();
        assert_eq!(func[0].dfg.value_type(Value::from_u32(2)), I64);
    }
}

/// Lanes wait for each other, then some of them go round for ever, in a loop with two entries that is left by nobody.
#[test]
fn loops_without_an_end_may_write_what_others_wait_for() {
    let text = "function %f(i32) fast {
            fn0 = %harp_lane_id() -> i32 fast
        block0(v0: i32):
            v1 = call fn0()
            v2 = iconst.i32 1
            jump block1
        block1:
            v3 = atomic_load.i32 v0
            brif v3, block2, block1
        block2:
            br_table v1, block5, [block5, block3, block4(v1)]
        block3:
            v4 = atomic_rmw.i32 xor v0, v2
            jump block4(v2)
        block4(v5: i32):
            v6 = iadd v5, v2
            jump block3
        block5:
            atomic_store v2, v0
            return
        }";
    let func = cranelift_reader::parse_functions(text).unwrap().remove(0);
    for arch in ["harp32", "4w32/16/8/2+x"] {
        for options in options() {
            Compiler::new(arch.parse().unwrap(), options).compile_function(&func).unwrap();
        }
    }
}
