//! Parameters with names and types: what kernels get, and what launches refuse.

use harp_runtime::LaunchError as E;
use harp_runtime::jit::{self, DataAccess, DataDescription, Linkage, MAX_GROUP_BYTES, Module};
use harp_runtime::prelude::*;

const MACHINES: [&str; 6] =
    ["harp32", "harp64", "4w32/16/32/16+x", "4b16/16/16/8+x", "4w8/2/1/1", "8b32/32/8/8"];

fn machines() -> impl Iterator<Item = ArchId> {
    MACHINES.into_iter().map(|id| id.parse().expect("the list holds ids"))
}

fn device(arch: ArchId) -> Device {
    Device::new(DeviceConfig { cores: 2, ..DeviceConfig::new(arch) }).expect("there is memory")
}

fn built(arch: ArchId, build: impl FnOnce(&mut KernelBuilder<'_>)) -> Kernel {
    let mut source = KernelSource::new("k", arch);
    let mut b = KernelBuilder::new(&mut source);
    build(&mut b);
    b.return_();
    b.finalize().expect("the kernel is well formed");
    source.compile(&CompileOptions::default()).expect("the kernel compiles")
}

#[test]
fn typed_buffers_and_scalars_are_passed() {
    for arch in machines() {
        let kernel = built(arch, |b| {
            let (x, y) = (b.buffer::<f64>("x"), b.buffer::<f64>("y"));
            let (a, negate) = (b.scalar::<f64>("a"), b.scalar::<bool>("negate"));
            let (n, i) = (b.scalar::<usize>("n"), b.global_id(0));
            let outside = b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, i, n);
            b.return_if(outside);
            let (xi, yi) = (b.load(x, i), b.load(y, i));
            let product = b.ins().fmul(a, xi);
            let negated = b.ins().fneg(product);
            let product = b.select(negate, negated, product);
            let sum = b.ins().fadd(product, yi);
            b.store(y, i, sum);
        });
        let names: Vec<_> = kernel.params().iter().map(ToString::to_string).collect();
        let wanted =
            ["x: pointer of f64", "y: pointer of f64", "a: f64", "negate: bool", "n: word"];
        assert_eq!(names, wanted);
        let device = device(arch);
        let x = device.buffer_from_slice(&[1_f64, 2.0, 3.0, 4.0]).unwrap();
        for (negate, wanted) in [(false, [12_f64, 14.0, 16.0, 10.0]), (true, [8.0, 6.0, 4.0, 10.0])]
        {
            let y = device.buffer_from_slice(&[10_f64; 4]).unwrap();
            let args = [(&x).into(), (&y).into(), 2_f64.into(), negate.into(), 3_usize.into()];
            device.launch(&kernel, LaunchConfig::grid_1d(4), &args).unwrap();
            assert_eq!(device.read(&y).unwrap(), wanted, "{arch}");
        }
    }
}

#[test]
fn scalars_of_all_types_arrive() {
    for arch in machines() {
        let kernel = built(arch, |b| {
            let out = b.buffer::<u64>("out");
            let ints = [
                b.scalar::<u8>("u8"),
                b.scalar::<i16>("i16"),
                b.scalar::<u32>("u32"),
                b.scalar::<i64>("i64"),
                b.scalar::<bool>("bool"),
                b.scalar::<usize>("usize"),
            ];
            let float = b.scalar::<f64>("f64");
            let float = b.ins().bitcast(types::I64, MemFlagsData::new(), float);
            for (index, value) in ints.into_iter().chain([float]).enumerate() {
                let wide = match b.inner().func.dfg.value_type(value) {
                    types::I64 => value,
                    _ => b.ins().uextend(types::I64, value),
                };
                let index = b.word_const(index as i64);
                b.store(out, index, wide);
            }
        });
        let device = device(arch);
        let out = device.buffer_zeroed::<u64>(7).unwrap();
        let largest = usize::try_from(arch.word().mask()).unwrap();
        let args = [
            Arg::from(&out),
            0xfe_u8.into(),
            (-2_i16).into(),
            u32::MAX.into(),
            (-3_i64).into(),
            true.into(),
            largest.into(),
            1.5_f64.into(),
        ];
        device.launch(&kernel, LaunchConfig::grid_1d(1), &args).unwrap();
        let wanted = [
            0xfe,
            0xfffe,
            u64::from(u32::MAX),
            -3_i64 as u64,
            1,
            arch.word().mask(),
            1.5_f64.to_bits(),
        ];
        assert_eq!(device.read(&out).unwrap(), wanted, "{arch}");
    }
}

#[test]
fn wrong_arguments_are_errors_that_name_the_parameter() {
    let arch = ArchId::HARP32;
    let kernel = built(arch, |b| {
        b.buffer::<f32>("x");
        b.param(ParamType::Pointer);
        b.scalar::<usize>("n");
        b.scalar::<bool>("flag");
    });
    let device = device(arch);
    let (floats, ints) =
        (device.buffer_zeroed::<f32>(1).unwrap(), device.buffer_zeroed::<u32>(1).unwrap());
    let foreign = self::device(arch).buffer_zeroed::<f32>(1).unwrap();
    let good = [Arg::from(&floats), (&ints).into(), 1_usize.into(), true.into()];
    let grid = LaunchConfig::grid_1d(1);
    device.launch(&kernel, grid, &good).unwrap();
    let error = |index: usize, arg: Arg| {
        let mut args: Vec<Arg> = good.to_vec();
        args[index] = arg;
        device.launch(&kernel, grid, &args).unwrap_err()
    };
    let elements = error(0, (&ints).into());
    assert!(matches!(elements, E::ElementType { .. }));
    assert_eq!(
        elements.to_string(),
        "kernel `k`, parameter `x` has elements of type f32, those of its argument are of type i32"
    );
    let text = error(0, 1_i32.into()).to_string();
    assert_eq!(text, "kernel `k`, parameter `x` has type pointer, its argument has type i32");
    let text = error(1, 1_i32.into()).to_string();
    assert_eq!(text, "kernel `k`, parameter 1 has type pointer, its argument has type i32");
    let text = error(0, (&foreign).into()).to_string();
    assert_eq!(text, "kernel `k`, parameter `x`: the argument is a buffer of another device");
    let wide = error(2, (1_usize << 32).into());
    assert!(matches!(wide, E::ArgumentTooWide { given: 0x1_0000_0000, word_bytes: 4, .. }));
    let wanted = "kernel `k`, parameter `n`: the argument 4294967296 does not fit the machine's \
                  word of 4 bytes";
    assert_eq!(wide.to_string(), wanted);
    assert!(matches!(error(2, 1_u32.into()), E::ArgumentType { .. }));
    assert!(matches!(error(3, 1_u8.into()), E::ArgumentType { .. }));
    // An address says nothing about what is there.
    let args = [Arg::address(1 << 20), (&floats).into(), 1_usize.into(), false.into()];
    device.launch(&kernel, grid, &args).unwrap();
    let few = device.launch(&kernel, grid, &args[..2]).unwrap_err();
    assert_eq!(few.to_string(), "kernel `k` takes 4 arguments, 2 given");
}

/// Each group reverses its elements, in memory that is sized at the launch, beside another array of another
/// element size, and one of fixed size.
#[test]
fn groups_get_arrays_sized_at_the_launch() {
    for arch in machines() {
        let kernel = built(arch, |b| {
            let data = b.buffer::<u64>("data");
            let (bytes, tile) = (b.group_param::<u8>("bytes"), b.group_param::<u64>("tile"));
            let fixed = b.group_buffer::<u64>("fixed", 1);
            let (i, own, size) = (b.global_id(0), b.local_id(0), b.local_size(0));
            let value = b.load(data, i);
            b.store(tile, own, value);
            let one = b.word_const(1);
            let first = b.ins().icmp_imm_s(IntCC::Equal, own, 0);
            b.if_then(first, |b| {
                // What is beside must not be hit.
                let all = b.word_const(-1);
                let zero = b.word_const(0);
                b.store_elem(all, bytes.base(), zero);
                b.store_elem(all, fixed.base(), zero);
            });
            b.barrier();
            let last = b.ins().isub(size, one);
            let other = b.ins().isub(last, own);
            let value = b.load(tile, other);
            b.store(data, i, value);
        });
        let lanes = usize::from(arch.lanes()) * usize::from(arch.warps());
        let device = device(arch);
        for (size, items) in [(1, 5), (2, 7), (7, 50)] {
            if size > lanes {
                continue;
            }
            let numbers: Vec<u64> = (0..items).collect();
            let data = device.buffer_from_slice(&numbers).unwrap();
            let args = [Arg::from(&data), Arg::group::<u8>(9), Arg::group::<i64>(size)];
            let config = LaunchConfig::grid_1d(numbers.len()).with_groups_1d(size);
            device.launch(&kernel, config, &args).unwrap();
            let wanted: Vec<u64> =
                numbers.chunks(size).flat_map(|group| group.iter().rev().copied()).collect();
            assert_eq!(device.read(&data).unwrap(), wanted, "{arch}");
        }
        let error = |device: &Device, arg| {
            let data = device.buffer_zeroed::<u64>(1).unwrap();
            let args = [Arg::from(&data), Arg::group::<u8>(9), arg];
            let config = LaunchConfig::grid_1d(1).with_groups_1d(1);
            device.launch(&kernel, config, &args).unwrap_err()
        };
        let limit = u64::from(MAX_GROUP_BYTES);
        let large = error(&device, Arg::group::<u64>(1 << 25));
        assert!(
            matches!(large, E::GroupMemory { given, limit: l, .. } if given > limit && l == limit)
        );
        assert!(large.to_string().starts_with("kernel `k`, parameter `tile`: "), "{large}");
        assert!(matches!(error(&device, Arg::group::<u64>(usize::MAX)), E::GroupMemory { .. }));
        assert!(matches!(error(&device, Arg::group::<f32>(1)), E::ElementType { .. }));
        assert!(matches!(error(&device, 4_usize.into()), E::ArgumentType { .. }));
        let data = device.buffer_zeroed::<u64>(1).unwrap();
        let args = [Arg::from(&data), Arg::group::<u8>(9), Arg::group::<u64>(1)];
        let no_groups = device.launch(&kernel, LaunchConfig::grid_1d(1), &args).unwrap_err();
        assert!(matches!(no_groups, E::NoGroups { .. }));
    }
}

#[test]
fn atomics_of_handles_count() {
    for arch in machines() {
        let kernel = built(arch, |b| {
            let counts = b.buffer::<u32>("counts");
            let (i, one) = (b.global_id(0), b.ins().iconst(types::I32, 1));
            let bin = b.ins().band_imm_u(i, 3);
            b.atomic(AtomicRmwOp::Add, counts, bin, one);
            let (last, zero) = (b.word_const(4), b.ins().iconst(types::I32, 0));
            b.compare_exchange(counts, last, zero, one);
        });
        let device = device(arch);
        let counts = device.buffer_zeroed::<u32>(5).unwrap();
        device.launch(&kernel, LaunchConfig::grid_1d(50), &[Arg::from(&counts)]).unwrap();
        assert_eq!(device.read(&counts).unwrap(), [13, 13, 12, 12, 1]);
    }
}

/// Two kernels of one module use its function and its data.
#[test]
fn kernels_share_a_module() {
    for arch in machines() {
        let mut module = Module::new(arch, CompileOptions::default());
        let mut signature = module.make_signature();
        signature.params.push(jit::ir::AbiParam::new(types::I32));
        signature.returns.push(jit::ir::AbiParam::new(types::I32));
        let square = module.declare_function("square", Linkage::Local, &signature).unwrap();
        let name = jit::ir::UserFuncName::testcase("square");
        let mut func = jit::ir::Function::with_name_signature(name, signature);
        let mut context = jit::FunctionBuilderContext::new();
        let mut f = jit::FunctionBuilder::new(&mut func, &mut context);
        let block = f.create_block();
        f.append_block_params_for_function_params(block);
        f.switch_to_block(block);
        let x = f.block_params(block)[0];
        let product = f.ins().imul(x, x);
        f.ins().return_(&[product]);
        f.seal_all_blocks();
        f.finalize(jit::frontend_config(&arch.into()).unwrap());
        module.define_function(square, &func).unwrap();
        let table = module.declare_data("table", Linkage::Local, DataAccess::ReadOnly).unwrap();
        let mut contents = DataDescription::new();
        contents.define([3_u32, 5, 7].iter().flat_map(|x| x.to_le_bytes()).collect());
        contents.set_align(4);
        module.define_data(table, &contents).unwrap();

        let kernel = |name: &str, add: bool| {
            let mut source = KernelSource::new(name, arch);
            let mut b = KernelBuilder::new(&mut source);
            let (out, i) = (b.buffer::<u64>("out"), b.global_id(0));
            let table = b.data::<u32>(&module, table);
            let x = b.load(table, i);
            let [product] = b.call(&module, square, &[x]);
            let result = if add { b.ins().iadd(product, x) } else { product };
            let result = b.ins().uextend(types::I64, result);
            b.store(out, i, result);
            b.return_();
            b.finalize().unwrap();
            module.compile_kernel(&source).unwrap()
        };
        let kernels = [kernel("squares", false), kernel("sums", true)];
        let device = device(arch);
        for (kernel, wanted) in kernels.iter().zip([[9, 25, 49], [12, 30, 56]]) {
            let out = device.buffer_zeroed::<u64>(3).unwrap();
            device.launch(kernel, LaunchConfig::grid_1d(3), &[Arg::from(&out)]).unwrap();
            assert_eq!(device.read(&out).unwrap(), wanted, "{arch}");
        }
    }
}

#[test]
fn misused_handles_are_errors_with_the_place() {
    let error = |build: &dyn Fn(&mut KernelBuilder<'_>)| {
        let mut source = KernelSource::new("k", ArchId::HARP32);
        let mut b = KernelBuilder::new(&mut source);
        build(&mut b);
        b.return_();
        b.finalize().unwrap_err()
    };
    let line = line!() + 4;
    let wrong = error(&|b| {
        let (x, i) = (b.buffer::<f32>("x"), b.global_id(0));
        b.ins().nop();
        b.store(x, i, i);
    });
    assert_eq!(wrong.place.as_ref().unwrap().line, line);
    let (role, expected, given) = ("element", types::F32, types::I32);
    assert_eq!(wrong.kind, BuildErrorKind::ValueType { role, expected, given });
    // The text has the kind already, so the kind is no source.
    assert!(wrong.to_string().contains(&wrong.kind.to_string()));
    assert!(std::error::Error::source(&wrong).is_none());

    let twice = error(&|b| {
        b.scalar::<u32>("n");
        b.buffer::<u32>("n");
    });
    assert_eq!(twice.kind, BuildErrorKind::DuplicateParameter { name: "n".to_owned() });
    let large = error(&|b| {
        b.group_buffer::<u64>("tile", 1 << 26);
    });
    assert!(large.to_string().ends_with(
        "536870912 bytes of memory for a work-group with `tile`: the limit is 268435456"
    ));
    let module = Module::new(ArchId::HARP32, CompileOptions::default());
    let unknown = error(&|b| {
        let _: [Value; 2] = b.call(&module, jit::FuncId::from_u32(3), &[]);
    });
    assert!(matches!(unknown.kind, BuildErrorKind::Undeclared { .. }));
    let unknown = error(&|b| {
        b.data_address(&module, jit::DataId::from_u32(3));
    });
    assert!(matches!(unknown.kind, BuildErrorKind::Undeclared { .. }));
    let mut module = module;
    let id =
        module.declare_function("f", Linkage::Import, &module.make_signature().clone()).unwrap();
    let counts = error(&|b| {
        let [] = b.call(&module, id, &[Value::from_u32(0)]);
    });
    assert!(counts.to_string().ends_with("`f` has 0 arguments, not 1"), "{counts}");
    let counts = error(&|b| {
        let [_] = b.call(&module, id, &[]);
    });
    assert!(counts.to_string().ends_with("`f` has 0 results, not 1"), "{counts}");
}

/// What the verifier finds comes on one line for each error, with the place.
#[test]
fn invalid_instructions_have_places_and_short_messages() {
    let mut source = KernelSource::new("k", ArchId::HARP32);
    let mut b = KernelBuilder::new(&mut source);
    let (small, i) = (b.ins().iconst(types::I8, 1), b.lane_id());
    let line = line!() + 1;
    let sum = b.ins().iadd(i, small);
    b.ins().fcvt_to_sint(types::I32, sum);
    b.return_();
    b.finalize().unwrap();
    let error = source.compile(&CompileOptions::default()).unwrap_err();
    let CompileError::Invalid { message, .. } = &error else { panic!("{error}") };
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 2, "{message}");
    for (text, line) in lines.iter().zip(line..) {
        assert!(text.contains("arguments.rs:") && text.len() < 200, "{message}");
        assert!(text.contains(&format!(":{line}:")), "{message}");
    }
    assert!(!message.contains("TypeSet") && !message.contains("ValueTypeSet"), "{message}");
}
