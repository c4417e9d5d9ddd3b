//! Kernels that call functions, and kernels of many parameters.

use harp_isa::ArchId;
use harp_jit::ir::{FuncRef, Function, MemFlagsData, types};
use harp_jit::{
    CompileOptions, DataAccess, DataDescription, Kernel, KernelBuilder, KernelSource, Linkage,
    Module, ParamType,
};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig, LaunchError, TrapSite};
use harp_tests::functions::{checked, name, parse, word_type};

use super::{DEEP, archs, define, word_bytes};

fn device(arch: ArchId) -> Device {
    Device::new(DeviceConfig { fuel: Some(50_000_000), ..DeviceConfig::new(arch) }).unwrap()
}

/// A kernel that calls `func`, which is defined in the module.
fn caller(
    module: &mut Module,
    func: &Function,
    build: impl FnOnce(&mut KernelBuilder<'_>, FuncRef),
) -> Kernel {
    let id = module.declare_function(&name(func), Linkage::Import, &func.signature).unwrap();
    let mut source = KernelSource::new("k", module.arch());
    let mut b = KernelBuilder::new(&mut source);
    let callee = module.declare_func_in_func(id, b.inner().func).unwrap();
    build(&mut b, callee);
    b.return_();
    b.finalize().unwrap();
    module.compile_kernel(&source).unwrap()
}

/// Stores what `callee` gives each work-item for its id.
fn store_results(b: &mut KernelBuilder<'_>, callee: FuncRef) {
    let (out, i) = (b.param(ParamType::Pointer), b.global_id(0));
    let call = b.ins().call(callee, &[i]);
    let value = b.inner().func.dfg.first_result(call);
    b.store_elem(value, out, i);
}

/// The words, as bytes, that `count` work-items store in an array, the kernel's first argument.
fn stored(kernel: &Kernel, count: usize, args: &[Arg]) -> Vec<u8> {
    let arch = kernel.arch();
    let device = device(arch);
    let out = device.buffer_zeroed::<u8>(count * usize::from(arch.word().bytes())).unwrap();
    let args = [&[Arg::from(&out)], args].concat();
    device.launch(kernel, LaunchConfig::grid_1d(count), &args).unwrap();
    device.read(&out).unwrap()
}

/// Lanes copy structures of their own, small ones and large ones, in calls that not all of them make; and
/// each has a frame.
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
        let functions = parse(arch.word(), &text);
        let mut module = Module::new(arch, checked());
        define(&mut module, &functions);
        let kernel = caller(&mut module, &functions[1], store_results);
        let wanted: Vec<i64> = (0..37).map(|i| (i + i * i) * (1 + i % 2)).collect();
        assert_eq!(*stored(&kernel, 37, &[]), *word_bytes(arch, &wanted), "{arch} {words}");
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
        let functions = parse(arch.word(), text);
        let mut module = Module::new(arch, checked());
        let offset = module.declare_data("offset", Linkage::Local, DataAccess::ReadOnly).unwrap();
        let mut data = DataDescription::new();
        data.define(word_bytes(arch, &[1000]));
        module.define_data(offset, &data).unwrap();
        define(&mut module, &functions);
        let kernel = caller(&mut module, &functions[1], |b, callee| {
            let (out, i) = (b.param(ParamType::Pointer), b.global_id(0));
            let limit = b.ins().iconst(word_type(arch.word()), 40);
            let call = b.ins().call(callee, &[i, limit]);
            let value = b.inner().func.dfg.first_result(call);
            b.store_elem(value, out, i);
            let odd = b.ins().band_imm_u(i, 1);
            b.if_then(odd, |b| {
                let call = b.ins().call(callee, &[value, i]);
                let value = b.inner().func.dfg.first_result(call);
                b.store_elem(value, out, i);
            });
        });
        assert_eq!(kernel.functions().len(), 2, "{arch}");
        assert_eq!(kernel.lane_stack_bytes(), 16 << 10);

        let count = 100;
        let clamp = |x: i64, limit: i64| if x > limit { x - limit } else { x };
        let poly = |x: i64, limit: i64| clamp(clamp(x, limit) * x, 1000) + 1000;
        let wanted: Vec<i64> = (0..count as i64)
            .map(|i| if i % 2 == 1 { poly(poly(i, 40), i) } else { poly(i, 40) })
            .collect();
        assert_eq!(*stored(&kernel, count, &[]), *word_bytes(arch, &wanted), "{arch}");
    }
}

#[test]
fn recursion_in_a_kernel_to_the_limit() {
    for arch in archs() {
        let functions = parse(arch.word(), &DEEP.replace("SLOT", "48"));
        // A recursion's depth differs between lanes: all recur alike here.
        let text = format!("{}", functions[1].display())
            .replace("brif v0,", "v90 = call fn2(v0)\nbrif v90,");
        let text = text.replace(
            "block0(",
            &format!("fn2 = %harp_assume_uniform({0}) -> {0}\nblock0(", word_type(arch.word())),
        );
        let deep = cranelift_reader::parse_functions(&text).unwrap().remove(0);
        let functions = [functions[0].clone(), deep];
        let mut module = Module::new(arch, CompileOptions { stack_bytes: 4096, ..checked() });
        define(&mut module, &functions);
        let kernel = caller(&mut module, &functions[1], |b, callee| {
            let depth = b.param(ParamType::Pointer);
            b.ins().call(callee, &[depth]);
        });
        let device = device(arch);
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
        let functions = parse(arch.word(), text);
        let mut module = Module::new(arch, checked());
        define(&mut module, &functions);
        let kernel = caller(&mut module, &functions[4], store_results);
        let count = 37;
        let chosen = |i: i64| if i % 4 == 0 { i * i } else { 2 * i };
        let wanted = |i: i64| chosen(i) + if i < 4 { i + 1 } else { chosen(i) };
        let wanted: Vec<i64> = (0..count as i64).map(wanted).collect();
        assert_eq!(*stored(&kernel, count, &[]), *word_bytes(arch, &wanted), "{arch}");
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
        let kernel = source.compile(&checked()).unwrap();
        let device = device(arch);
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
        let kernel = source.compile(&checked()).unwrap();
        let args: Vec<_> = (0..1200).map(Arg::address).collect();
        for count in [1, 37] {
            let wanted: Vec<i64> = (0..count as i64).map(|i| i + 1199 * 600).collect();
            assert_eq!(*stored(&kernel, count, &args), *word_bytes(arch, &wanted), "{arch}");
        }
    }
}
