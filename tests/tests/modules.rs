//! Modules: data, function pointers in it, the stack's limit, the reach of calls, and kernels that call
//! functions.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fmt::Write as _;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, InstBuilder, MemFlagsData, types};
use harp_emu::TrapKind;
use harp_isa::ArchId;
use harp_isa::abi::{LaneField, stack_reserve_bytes};
use harp_jit::{
    CompileError, CompileOptions, DataAccess, DataDescription, Execution, FuncId, KernelBuilder,
    KernelSource, Linkage, Module, ModuleError, OptLevel, ParamType,
};
use harp_runtime::{
    Arg, Device, DeviceConfig, LaunchConfig, LaunchError, Program, ProgramError, TrapSite,
};
use harp_tests::functions::{Result, module, observed, word_type};

const ARCHS: [&str; 6] =
    ["4w8/2/4/4", "harp32", "harp64", "4w64/64/4/4", "8b32/32/8/8", "4w32/16/8/8+x"];

fn archs() -> impl Iterator<Item = ArchId> {
    ARCHS.into_iter().map(|id| id.parse().unwrap())
}

fn single_lane() -> CompileOptions {
    CompileOptions { execution: Execution::SingleLane, verify: true, ..CompileOptions::default() }
}

fn simt() -> CompileOptions {
    CompileOptions { verify: true, ..CompileOptions::default() }
}

fn parse(arch: ArchId, text: &str) -> Vec<Function> {
    let text = text.replace("word", &word_type(arch).to_string());
    cranelift_reader::parse_functions(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn word(arch: ArchId, value: i64) -> DataValue {
    DataValue::from_integer(i128::from(value), word_type(arch)).unwrap()
}

fn word_bytes(arch: ArchId, values: &[i64]) -> Box<[u8]> {
    let bytes = usize::from(arch.word().bytes());
    values.iter().flat_map(|value| value.to_le_bytes().into_iter().take(bytes)).collect()
}

/// Adds functions of CLIF text to a module in which their names may be declared already.
fn define(module: &mut Module, functions: &[Function]) {
    let mut ids = Vec::new();
    for func in functions {
        let name = harp_tests::functions::name(func);
        ids.push(module.declare_function(&name, Linkage::Local, &func.signature).unwrap());
    }
    for (id, func) in ids.into_iter().zip(functions) {
        module.define_function(id, func).unwrap();
    }
}

#[test]
fn what_modules_refuse() {
    let arch = ArchId::HARP32;
    let mut module = Module::new(arch, single_lane());
    let functions = parse(arch, "function %f() {\nblock0:\nreturn\n}");
    let signature = &functions[0].signature;
    for name in ["", "a\0b", "runtime.kernel"] {
        let error = module.declare_function(name, Linkage::Local, signature).unwrap_err();
        assert!(matches!(error, ModuleError::Name { .. }), "{error}");
    }
    let f = module.declare_function("f", Linkage::Local, signature).unwrap();
    let imported = module.declare_function("imported", Linkage::Import, signature).unwrap();
    let mut other = signature.clone();
    other.params.push(cranelift_codegen::ir::AbiParam::new(types::I32));
    let error = module.declare_function("f", Linkage::Local, &other).unwrap_err();
    assert!(matches!(error, ModuleError::Declaration { signatures: Some(_), .. }), "{error}");
    let error = module.declare_data("f", Linkage::Local, DataAccess::ReadOnly).unwrap_err();
    assert!(matches!(error, ModuleError::Declaration { signatures: None, .. }), "{error}");
    let error = module.define_function(imported, &functions[0]).unwrap_err();
    assert!(matches!(error, ModuleError::Imported { .. }), "{error}");
    module.define_function(f, &functions[0]).unwrap();
    let error = module.define_function(f, &functions[0]).unwrap_err();
    assert!(matches!(error, ModuleError::Duplicate { .. }), "{error}");
    let data = module.declare_data("d", Linkage::Export, DataAccess::ReadOnly).unwrap();
    let mut description = DataDescription::new();
    assert!(matches!(module.define_data(data, &description), Err(ModuleError::Data { .. })));
    description.define_zeroinit(6);
    let reference = module.declare_func_in_data(f, &mut description);
    description.write_function_addr(4, reference);
    let error = module.define_data(data, &description).unwrap_err();
    assert!(matches!(error, ModuleError::Data { given: 4, limit: 2, .. }), "{error}");
    let foreign = FuncId::from_u32(77);
    let error = module.define_function(foreign, &functions[0]).unwrap_err();
    assert!(matches!(error, ModuleError::Undeclared { .. }), "{error}");
    let error = module.finish().unwrap_err();
    assert_eq!(error, ModuleError::Undefined { names: vec!["d".to_owned()] });

    let options = CompileOptions { stack_bytes: 3000, ..single_lane() };
    let error = harp_jit::compile_function(&functions[0], arch, &options).unwrap_err();
    assert!(matches!(error, CompileError::StackBytes { given: 3000, .. }), "{error}");
}

const DEEP: &str = "function %leaf(word) -> word {
    block0(v0: word):
        v1 = iadd v0, v0
        return v1
    }
    function %deep(word) -> word {
        ss0 = explicit_slot SLOT
        fn0 = %deep(word) -> word
        fn1 = %leaf(word) -> word
    block0(v0: word):
        v9 = stack_addr.word ss0
        store notrap aligned v0, v9
        brif v0, block1, block2
    block1:
        v1 = iconst.word -1
        v2 = iadd v0, v1
        v3 = call fn0(v2)
        v4 = load.word notrap aligned v9
        v5 = call fn1(v4)
        v6 = iadd v3, v5
        return v6
    block2:
        return v0
    }";

/// Deeper and deeper until the stack is full: the trap names the function, and no step before it
/// changed anything outside of the stack.
#[test]
fn recursion_to_the_limit() {
    for arch in archs() {
        for (slot, stack_bytes) in [(16, 4096), (200, 4096), (3000, 1 << 16), (16, 1 << 20)] {
            let functions = parse(arch, &DEEP.replace("SLOT", &slot.to_string()));
            let options = CompileOptions { stack_bytes, ..single_lane() };
            let module = module(&functions, arch, &options).unwrap().finish().unwrap();
            let program = Program::new(&module, "deep", &functions[1].signature).unwrap();
            // The lane control block, the reserve and the word at the top are no room for frames.
            let id = FuncId::from_u32(1);
            let mut again = harp_tests::functions::module(&functions[..1], arch, &options).unwrap();
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
        let functions = parse(arch, &DEEP.replace("SLOT", "16"));
        let mut module = Module::new(arch, single_lane());
        let ids: Vec<_> = functions
            .iter()
            .map(|func| {
                let name = harp_tests::functions::name(func);
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
            arch,
            "function %caller(word) -> word {\nfn0 = %leaf(word) -> word\nblock0(v0: word):\nv1 = call fn0(v0)\nv2 = iadd v1, v0\nreturn v2\n}",
        );
        let id = module.declare_function("caller", Linkage::Local, &caller[0].signature).unwrap();
        let caller = module.compile(id, &caller[0], &Default::default()).unwrap();
        assert!(!caller.checks_stack() && caller.frame_bytes() > 0, "{arch}");
    }
}

/// A function of `count` operations that the mid-end cannot fold, on `v0`.
fn filler(name: &str, count: usize) -> String {
    let mut text = format!("function %{name}(word) -> word {{\nblock0(v0: word):\n");
    for i in 0..count {
        let op = ["iadd", "bxor", "imul"][i % 3];
        let _ = writeln!(text, "v{} = {op} v{i}, v0", i + 1);
    }
    let _ = writeln!(text, "return v{count}\n}}");
    text
}

/// Calls over distances that their immediates do not hold, forwards and backwards, in modules of small
/// and large functions; and calls that do reach stay one instruction.
#[test]
fn calls_beyond_their_reach() {
    let arch: ArchId = "4w64/64/2/2".parse().unwrap();
    // `jali` reaches 4 KiB here, `jmpi` 256 KiB.
    let caller = |name: &str, callee: &str| {
        format!(
            "function %{name}(word) -> word {{\nfn0 = %{callee}(word) -> word\nblock0(v0: word):\n\
             v1 = call fn0(v0)\nv2 = iadd v1, v0\nreturn v2\n}}\n"
        )
    };
    for size in [10, 900, 1100, 5000] {
        let text = caller("first", "last")
            + &filler("middle", size)
            + &caller("last", "neighbour")
            + "function %neighbour(word) -> word {\nblock0(v0: word):\nreturn v0\n}\n"
            + &caller("back", "first");
        let functions = parse(arch, &text);
        let options = CompileOptions { opt_level: OptLevel::None, ..single_lane() };
        let module = module(&functions, arch, &options).unwrap().finish().unwrap();
        let given = observed(&module, &functions, "back", &[word(arch, 21)]).unwrap();
        assert_eq!(given, Result::Values(vec![word(arch, 84)]), "{size}");
        let uses = |name: &str, mnemonic: &str| {
            module.function(name).unwrap().disassembly().contains(mnemonic)
        };
        assert_eq!(uses("first", "jalr"), size > 1000, "{size}");
        assert_eq!(uses("back", "jalr"), size > 1000, "{size}");
        assert!(!uses("last", "jalr"), "{size}");
    }
}

/// Arguments in all registers leave none for the address of a function out of reach: a value that lives
/// across the call gives way.
#[test]
fn far_calls_without_a_free_register() {
    for (id, in_registers) in [("4w64/64/2/2", 32), ("4w8/2/2/2", 4)] {
        let arch: ArchId = id.parse().unwrap();
        // As many as there are registers, some on the stack, and so many that their places in the
        // frame are out of reach as well.
        for count in [in_registers, in_registers + 5, in_registers + 60] {
            let list = vec!["word"; count].join(", ");
            let names = |from: usize| {
                (from..from + count).map(|i| format!("v{i}")).collect::<Vec<_>>().join(", ")
            };
            let mut make = String::new();
            for i in 0..count {
                let _ = writeln!(
                    make,
                    "v{0} = iconst.word {i}\nv{1} = iadd v0, v{0}",
                    1000 + i,
                    2000 + i
                );
            }
            let params: Vec<_> = (0..count).map(|i| format!("v{i}: word")).collect();
            let text = format!(
                "function %f(word) -> word {{\nfn0 = %g({list}) -> word\nblock0(v0: word):\n{make}\
                 v5 = call fn0({0})\nv6 = isub v5, v2003\nv7 = call fn0({0})\nv8 = iadd v6, v7\n\
                 v9 = isub v8, v2001\nreturn v9\n}}
                {1}function %g({list}) -> word {{\nblock0({2}):\nv5000 = isub v{3}, v1\n\
                 v5001 = imul v2, v5000\nv5002 = isub v5001, v0\nreturn v5002\n}}",
                names(2000),
                filler("middle", 1500),
                params.join(", "),
                count - 1
            );
            let functions = parse(arch, &text);
            let options = CompileOptions { opt_level: OptLevel::None, ..single_lane() };
            let compiled = module(&functions, arch, &options).unwrap().finish().unwrap();
            let far = compiled.function("f").unwrap().disassembly().contains("jalr");
            assert!(far || in_registers == 4, "{id}: the call reaches");
            let given = observed(&compiled, &functions, "f", &[word(arch, 10)]).unwrap();
            // g(10, 11, 12, ...) = 12 * (count - 2) - 10.
            let one = 12 * (count as i64 - 2) - 10;
            assert_eq!(given, Result::Values(vec![word(arch, 2 * one - 13 - 11)]), "{id} {count}");
        }
    }
}

/// A loop around more code than a jump reaches.
#[test]
fn branches_beyond_their_reach() {
    let arch: ArchId = "4w64/64/2/2".parse().unwrap();
    let count = 70_000;
    let mut text = "function %f(word, word) -> word {\nblock0(v0: word, v1: word):\njump block1(v0, v1)\n\
                    block1(v2: word, v3: word):\nbrif v2, block2, block3\nblock2:\nv10 = iadd v3, v0\n"
        .to_owned();
    for i in 0..count {
        let op = ["iadd", "bxor"][i % 2];
        let _ = writeln!(text, "v{} = {op} v{}, v3", 11 + i, 10 + i);
    }
    let _ = writeln!(
        text,
        "v4 = iconst.word -1\nv5 = iadd v2, v4\njump block1(v5, v{})\nblock3:\nreturn v3\n}}",
        10 + count
    );
    let functions = parse(arch, &text);
    let options = CompileOptions { opt_level: OptLevel::None, verify: false, ..single_lane() };
    let module = module(&functions, arch, &options).unwrap().finish().unwrap();
    let code = module.function("f").unwrap().code().len();
    assert!(code > 1 << 18, "{code} bytes are in reach");
    let mut x: u32 = 7;
    for _ in 0..3 {
        let start = x;
        x = x.wrapping_add(3);
        for i in 0..count {
            x = if i % 2 == 0 { x.wrapping_add(start) } else { x ^ start };
        }
    }
    let given = observed(&module, &functions, "f", &[word(arch, 3), word(arch, 7)]).unwrap();
    assert_eq!(given, Result::Values(vec![word(arch, i64::from(x.cast_signed()))]));
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
        let functions = parse(arch, &text);
        let options = CompileOptions { stack_bytes: 1 << 16, ..single_lane() };
        let module = module(&functions, arch, &options).unwrap().finish().unwrap();
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
        let functions = parse(arch, text);
        let module = module(&functions, arch, &single_lane()).unwrap().finish().unwrap();
        let program = Program::new(&module, "f", &functions[0].signature).unwrap();
        let results = program.call(&[77], None).unwrap().results;
        assert_eq!((results[0] % 256, results[1] % 32, results[2]), (0, 8, 77), "{arch}");
    }
}

fn device(arch: ArchId) -> Device {
    Device::new(DeviceConfig { fuel: Some(50_000_000), ..DeviceConfig::new(arch) }).unwrap()
}

/// Lanes copy structures of their own, small ones and large ones, in calls that not all of them make; and each has
/// a frame.
#[test]
fn kernels_pass_structures_by_value() {
    let text = "function %spoil(word sarg(BYTES)) -> word {
        block0(v0: word):
            v1 = load.word notrap aligned v0
            v2 = load.word notrap aligned v0+LAST
            v3 = iadd v1, v2
            v4 = iconst.word -1
            store notrap aligned v4, v0
            store notrap aligned v4, v0+LAST
            return v3
        }
        function %f(word) -> word {
            ss0 = explicit_slot BYTES, align = 8
            fn0 = %spoil(word sarg(BYTES)) -> word
        block0(v0: word):
            v1 = stack_addr.word ss0
            store notrap aligned v0, v1
            v2 = imul v0, v0
            store notrap aligned v2, v1+LAST
            v3 = call fn0(v1)
            v11 = iconst.word 1
            v12 = band v0, v11
            brif v12, block1, block2(v3)
        block1:
            v4 = call fn0(v1)
            v5 = iadd v3, v4
            jump block2(v5)
        block2(v6: word):
            v7 = get_frame_pointer.word
            v8 = get_stack_pointer.word
            v9 = icmp ugt v7, v8
            v10 = select v9, v6, v0
            return v10
        }";
    for (arch, words) in archs().flat_map(|arch| [(arch, 3), (arch, 50)]) {
        let bytes = i64::from(arch.word().bytes());
        let text = text
            .replace("BYTES", &(words * bytes).to_string())
            .replace("LAST", &((words - 1) * bytes).to_string());
        let functions = parse(arch, &text);
        let mut module = Module::new(arch, CompileOptions { check_code: true, ..simt() });
        define(&mut module, &functions);
        let signature = &functions[1].signature;
        let f = module.declare_function("f", Linkage::Import, signature).unwrap();
        let mut source = KernelSource::new("k", arch);
        let mut b = KernelBuilder::new(&mut source);
        let out = b.param(ParamType::Pointer);
        let i = b.global_id(0);
        let callee = module.declare_func_in_func(f, b.inner().func).unwrap();
        let call = b.ins().call(callee, &[i]);
        let value = b.inner().func.dfg.first_result(call);
        b.store_elem(value, out, i);
        b.return_();
        b.finalize().unwrap();
        let kernel = module.compile_kernel(&source).unwrap();
        let mut device = device(arch);
        let out = device.buffer_zeroed::<u8>(37 * bytes as usize).unwrap();
        device.launch(&kernel, LaunchConfig::grid_1d(37), &[Arg::from(&out)]).unwrap();
        let wanted: Vec<i64> = (0..37).map(|i| (i + i * i) * (1 + i % 2)).collect();
        assert_eq!(device.read(&out).unwrap(), &*word_bytes(arch, &wanted), "{arch} {words}");
    }
}

/// A kernel calls functions on all lanes of a warp, also where only some of them run, and the functions
/// branch on what differs between lanes.
#[test]
fn kernels_call_functions() {
    let text = "function %clamp(word, word) -> word {
        block0(v0: word, v1: word):
            v2 = icmp ugt v0, v1
            brif v2, block1, block2(v0)
        block1:
            v3 = isub v0, v1
            jump block2(v3)
        block2(v4: word):
            return v4
        }
        function %poly(word, word) -> word {
            fn0 = %clamp(word, word) -> word
            gv0 = symbol %offset
        block0(v0: word, v1: word):
            v2 = call fn0(v0, v1)
            v3 = imul v2, v0
            v4 = symbol_value.word gv0
            v5 = load.word notrap aligned readonly v4
            v6 = call fn0(v3, v5)
            v7 = iadd v6, v5
            return v7
        }";
    for arch in archs() {
        let functions = parse(arch, text);
        let mut module = Module::new(arch, simt());
        let offset = module.declare_data("offset", Linkage::Local, DataAccess::ReadOnly).unwrap();
        let mut data = DataDescription::new();
        data.define(word_bytes(arch, &[1000]));
        module.define_data(offset, &data).unwrap();
        define(&mut module, &functions);
        let poly =
            module.declare_function("poly", Linkage::Import, &functions[1].signature).unwrap();

        let mut source = KernelSource::new("k", arch);
        let mut b = KernelBuilder::new(&mut source);
        let out = b.param(ParamType::Pointer);
        let i = b.global_id(0);
        let callee = module.declare_func_in_func(poly, b.inner().func).unwrap();
        let limit = b.ins().iconst(word_type(arch), 40);
        let call = b.ins().call(callee, &[i, limit]);
        let value = b.inner().func.dfg.first_result(call);
        b.store_elem(value, out, i);
        let odd = b.ins().band_imm_u(i, 1);
        b.if_then(odd, |b| {
            let call = b.ins().call(callee, &[value, i]);
            let value = b.inner().func.dfg.first_result(call);
            b.store_elem(value, out, i);
        });
        b.return_();
        b.finalize().unwrap();
        let kernel = module.compile_kernel(&source).unwrap();
        assert_eq!(kernel.functions().len(), 2, "{arch}");
        assert_eq!(kernel.lane_stack_bytes(), 16 << 10);

        let mut device = device(arch);
        let count = 100;
        let bytes = usize::from(arch.word().bytes());
        let out = device.buffer_from_slice(&vec![0_u8; count * bytes]).unwrap();
        device.launch(&kernel, LaunchConfig::grid_1d(count), &[Arg::from(&out)]).unwrap();
        let clamp = |x: i64, limit: i64| if x > limit { x - limit } else { x };
        let poly = |x: i64, limit: i64| clamp(clamp(x, limit) * x, 1000) + 1000;
        let wanted: Vec<i64> = (0..count as i64)
            .map(|i| if i % 2 == 1 { poly(poly(i, 40), i) } else { poly(i, 40) })
            .collect();
        assert_eq!(device.read(&out).unwrap(), &*word_bytes(arch, &wanted), "{arch}");
    }
}

#[test]
fn recursion_in_a_kernel_to_the_limit() {
    for arch in archs() {
        let functions = parse(arch, &DEEP.replace("SLOT", "48"));
        // A recursion's depth differs between lanes: all recur alike here.
        let text = format!("{}", functions[1].display())
            .replace("brif v0,", "v90 = call fn2(v0)\nbrif v90,");
        let text = text.replace(
            "block0(",
            &format!("fn2 = %harp_assume_uniform({0}) -> {0}\nblock0(", word_type(arch)),
        );
        let deep = cranelift_reader::parse_functions(&text).unwrap().remove(0);
        let functions = [functions[0].clone(), deep];
        let mut module = Module::new(arch, CompileOptions { stack_bytes: 4096, ..simt() });
        define(&mut module, &functions);
        let deep =
            module.declare_function("deep", Linkage::Import, &functions[1].signature).unwrap();
        let mut source = KernelSource::new("k", arch);
        let mut b = KernelBuilder::new(&mut source);
        let depth = b.param(ParamType::Pointer);
        let callee = module.declare_func_in_func(deep, b.inner().func).unwrap();
        b.ins().call(callee, &[depth]);
        b.return_();
        b.finalize().unwrap();
        let kernel = module.compile_kernel(&source).unwrap();
        let mut device = device(arch);
        device.launch(&kernel, LaunchConfig::grid_1d(20), &[Arg::address(10)]).unwrap();
        let error = device.launch(&kernel, LaunchConfig::grid_1d(20), &[Arg::address(1000)]);
        let Err(LaunchError::Trap(trap)) = error else { panic!("{arch}: {error:?}") };
        assert_eq!(trap.trap_code.as_deref(), Some("stk_ovf"), "{arch}: {trap}");
        assert!(matches!(&trap.site, TrapSite::Function { name, .. } if name == "deep"), "{trap}");
        assert!(trap.to_string().contains("function `deep`"), "{trap}");
    }
}

/// Lanes that call different functions by address do so in turn, also instead of returning.
#[test]
fn indirect_calls_on_whose_target_lanes_disagree() {
    let text = "function %twice(word) -> word tail {
        block0(v0: word):
            v1 = iadd v0, v0
            return v1
        }
        function %square(word) -> word tail {
        block0(v0: word):
            v1 = imul v0, v0
            return v1
        }
        function %next(word) -> word tail {
        block0(v0: word):
            v1 = iconst.word 1
            v2 = iadd v0, v1
            return v2
        }
        function %either(word, word) -> word tail {
            sig0 = (word) -> word tail
            fn0 = %next(word) -> word tail
        block0(v0: word, v1: word):
            v2 = iconst.word 4
            v3 = icmp ult v1, v2
            brif v3, block1, block2
        block1:
            return_call fn0(v1)
        block2:
            return_call_indirect sig0, v0(v1)
        }
        function %choose(word) -> word {
            sig0 = (word) -> word tail
            fn0 = %twice(word) -> word tail
            fn1 = %square(word) -> word tail
            fn2 = %either(word, word) -> word tail
        block0(v0: word):
            v1 = func_addr.word fn0
            v2 = func_addr.word fn1
            v3 = iconst.word 3
            v4 = band v0, v3
            v5 = select v4, v1, v2
            v6 = call_indirect sig0, v5(v0)
            v7 = call fn2(v5, v0)
            v8 = iadd v6, v7
            return v8
        }";
    for arch in archs() {
        let functions = parse(arch, text);
        let mut module = Module::new(arch, simt());
        define(&mut module, &functions);
        let mut source = KernelSource::new("k", arch);
        let mut b = KernelBuilder::new(&mut source);
        let out = b.param(ParamType::Pointer);
        let i = b.global_id(0);
        let choose = module.declare_function("choose", Linkage::Import, &functions[4].signature);
        let callee = module.declare_func_in_func(choose.unwrap(), b.inner().func).unwrap();
        let call = b.ins().call(callee, &[i]);
        let value = b.inner().inst_results(call)[0];
        b.store_elem(value, out, i);
        b.return_();
        b.finalize().unwrap();
        let kernel = module.compile_kernel(&source).unwrap();
        let mut device = device(arch);
        let count = 37;
        let bytes = usize::from(arch.word().bytes());
        let out = device.buffer_from_slice(&vec![0_u8; count * bytes]).unwrap();
        device.launch(&kernel, LaunchConfig::grid_1d(count), &[Arg::from(&out)]).unwrap();
        let chosen = |i: i64| if i % 4 == 0 { i * i } else { 2 * i };
        let wanted = |i: i64| chosen(i) + if i < 4 { i + 1 } else { chosen(i) };
        let wanted: Vec<i64> = (0..count as i64).map(wanted).collect();
        assert_eq!(device.read(&out).unwrap(), &*word_bytes(arch, &wanted), "{arch}");
    }
}

/// So many arguments that the kernel lies beyond the reach of the library's call.
#[test]
fn wide_parameters_of_kernels() {
    use ParamType::{F64, I8, I32, I64, Pointer};
    for arch in archs() {
        let mut source = KernelSource::new("wide", arch);
        let mut b = KernelBuilder::new(&mut source);
        let [a, wide, float, small, out] = [I32, I64, F64, I8, Pointer].map(|ty| b.param(ty));
        let a = b.ins().sextend(types::I64, a);
        let small = b.ins().uextend(types::I64, small);
        for (index, value) in [wide, float, a, small].into_iter().enumerate() {
            b.ins().store(MemFlagsData::trusted(), value, out, 8 * index as i32);
        }
        b.return_();
        b.finalize().unwrap();
        let kernel = source.compile(&simt()).unwrap();
        let mut device = device(arch);
        let out = device.buffer_zeroed::<u64>(4).unwrap();
        let wide = 0x8000_0001_9abc_def0_u64;
        let args =
            [Arg::from(-5), wide.into(), (-1.5e300_f64).into(), 0x81_u8.into(), Arg::from(&out)];
        device.launch(&kernel, LaunchConfig::grid_1d(3), &args).unwrap();
        let wanted = [wide, (-1.5e300_f64).to_bits(), (-5_i64).cast_unsigned(), 0x81];
        assert_eq!(device.read(&out).unwrap(), wanted, "{arch}");
    }
}

#[test]
fn a_kernel_with_a_thousand_parameters() {
    for arch in archs() {
        let mut source = KernelSource::new("k", arch);
        let mut b = KernelBuilder::new(&mut source);
        let out = b.param(ParamType::Pointer);
        let params: Vec<_> = (0..1200).map(|_| b.param(ParamType::Pointer)).collect();
        let i = b.global_id(0);
        let sum = params.into_iter().fold(i, |sum, param| b.ins().iadd(sum, param));
        b.store_elem(sum, out, i);
        b.return_();
        b.finalize().unwrap();
        let kernel = source.compile(&simt()).unwrap();
        let mut device = device(arch);
        let bytes = usize::from(arch.word().bytes());
        for count in [1, 37] {
            let out = device.buffer_from_slice(&vec![0_u8; count * bytes]).unwrap();
            let mut args: Vec<Arg<'_>> = vec![Arg::from(&out)];
            for number in 0..1200 {
                args.push(Arg::address(number));
            }
            device.launch(&kernel, LaunchConfig::grid_1d(count), &args).unwrap();
            let wanted: Vec<i64> = (0..count as i64).map(|i| i + 1199 * 600).collect();
            assert_eq!(device.read(&out).unwrap(), &*word_bytes(arch, &wanted), "{arch}");
        }
    }
}

/// Boot code, calls near and far, frames and checks of the stack in base instructions, in forms that all
/// machines agree on; and addresses among the code are not taken for instructions.
#[test]
fn programs_for_base_machines_are_base_images() {
    for arch in archs().filter(|arch| !arch.has_extension()) {
        let text = DEEP.replace("SLOT", "48")
            + &filler("middle", 1500)
            + "function %f(word) -> word {
                gv0 = symbol %number
                fn0 = %deep(word) -> word
            block0(v0: word):
                v1 = symbol_value.word gv0
                v2 = load.word notrap aligned v1
                v3 = call fn0(v2)
                return v3
            }";
        let functions = parse(arch, &text);
        let mut module = Module::new(arch, single_lane());
        let number = module.declare_data("number", Linkage::Local, DataAccess::ReadOnly).unwrap();
        let mut data = DataDescription::new();
        data.define(word_bytes(arch, &[-9]));
        module.define_data(number, &data).unwrap();
        define(&mut module, &functions);
        let module = module.finish().unwrap();
        let program = Program::new(&module, "f", &functions[3].signature).unwrap();
        let (violations, seen) = harp_tests::base_forms::violations(&program.image(&[0]).unwrap());
        assert!(violations.is_empty() && seen > 1500, "{arch}: {violations:?}");
    }
}
