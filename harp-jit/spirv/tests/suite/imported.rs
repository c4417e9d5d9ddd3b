//! Modules of LLVM's own back end for SPIR-V, which imports functions of OpenCL C.

use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig};
use harp_spirv::SpirvModule;
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, Operand};
use rspirv::spirv::{
    AddressingModel, Capability, Decoration, ExecutionModel, FunctionControl, LinkageType,
    MemoryModel, StorageClass,
};

use crate::support::everywhere;

#[test]
fn imported_atomic_functions_lose_nothing() {
    everywhere("imported", |case| {
        let n = 50;
        let cells = case.buffer(&[0, 0, 5, -5, 0, 0]);
        let more = case.buffer(&[u32::MAX, 1]);
        let wide = case.buffer(&[-1_i64, -1]);
        let (swapped, object) = (case.zeros::<f32>(1), case.buffer(&[3]));
        let old = case.zeros::<i32>(n);
        let args = [
            Arg::from(&cells),
            Arg::from(&more),
            Arg::from(&wide),
            Arg::from(&swapped),
            Arg::from(&object),
            Arg::from(&old),
        ];
        case.line("atomics", n, &args);
        assert_eq!(case.read(&cells), [50, -50, -49, 49, 7, 50], "{case}");
        assert_eq!(case.read(&more), [0, u32::MAX], "{case}");
        assert_eq!(case.read(&wide), [49 << 33, 0], "{case}");
        assert_eq!((case.read(&swapped), case.read(&object)), (vec![2.5], vec![-49]), "{case}");
        let mut old = case.read(&old);
        old.sort_unstable();
        assert!(old.into_iter().eq(0..n as i32), "{case}");
    });
}

#[test]
fn imported_conversions_are_exact() {
    everywhere("imported", |case| {
        let x = [0, 1, -1, i32::MIN, i32::MAX, 0x1234_5678];
        let y = [0, 1, u64::MAX, 1 << 63 | 1, (1 << 53) + 1, (1 << 54) - 1];
        let f = [0.0_f32, -0.0, 1e-45, f32::MAX, f32::INFINITY, 0.1];
        let out = case.zeros::<f64>(8 * x.len());
        let args = [
            Arg::from(&case.buffer(&x)),
            Arg::from(&case.buffer(&y)),
            Arg::from(&case.buffer(&f)),
            Arg::from(&out),
        ];
        case.line("numbers", x.len(), &args);
        for (i, given) in case.read(&out).chunks(8).enumerate() {
            let (x, y, nearest) = (x[i], y[i], y[i] as f64);
            let below = if nearest as u128 > u128::from(y) { nearest.next_down() } else { nearest };
            let above = if (nearest as u128) < u128::from(y) { nearest.next_up() } else { nearest };
            let bytes = [x as i8, (x >> 8) as i8].map(f64::from);
            let wanted = [x.into(), (x as u32).into(), f[i].into(), nearest, below, above];
            assert_eq!(given, [wanted.as_slice(), &bytes].concat(), "{i} on {case}");
        }
    });
}

#[test]
fn imported_functions_know_whose_memory_a_pointer_is_in() {
    everywhere("imported", |case| {
        let (x, out) = (case.zeros::<i32>(24), case.zeros::<i32>(24));
        let config = LaunchConfig::grid_1d(24).with_groups_1d(8);
        case.launch("kinds", config, &[Arg::from(&x), Arg::from(&out)]);
        let wanted = (0..24).map(|i| [1, 12, 24][i % 3]);
        assert!(case.read(&out).into_iter().eq(wanted), "{case}");
    });
}

#[test]
fn pointers_are_variables_and_constants() {
    everywhere("imported", |case| {
        let x = [5, -7, 100, 0, 1, 2, -1000, 3];
        let out = case.zeros::<i32>(2 * x.len());
        case.line("pointers", x.len(), &[Arg::from(&case.buffer(&x)), Arg::from(&out)]);
        for (i, given) in (0..).zip(case.read(&out).chunks(2)) {
            let x = x[i as usize];
            let [first, second] = if i % 2 == 0 { [i + x, 2 * i] } else { [i, 2 * i + x] };
            let v = [x, i, -i, 0];
            let any = i32::from(v.iter().any(|&v| v > 3));
            let all = i32::from(v.iter().all(|&v| v > -3));
            assert_eq!(given, [first + 1000 * second, any + 10 * all], "{i} on {case}");
        }
    });
}

#[test]
fn stacks_have_room_for_large_arrays_beside_calls() {
    everywhere("imported", |case| {
        let out = case.zeros::<f32>(9);
        case.line("large", 9, &[Arg::from(&out)]);
        let rest = |n: i32| (n + 3).rem_euclid(7) - 3;
        for (i, given) in (0..).zip(case.read(&out)) {
            let terms = (0..5000).step_by(11).map(|k| rest((k * 13 + i) % 5000 + i) * (k % 4));
            assert_eq!(given, terms.sum::<i32>() as f32, "{i} on {case}");
        }
    });
}

/// A kernel that compares its parameter with no address as if both were integers, and prints by a function with one parameter.
fn of_an_older_translator() -> Vec<u32> {
    let mut b = Builder::new();
    b.set_version(1, 0);
    for capability in
        [Capability::Addresses, Capability::Linkage, Capability::Kernel, Capability::Int8]
    {
        b.capability(capability);
    }
    b.memory_model(AddressingModel::Physical32, MemoryModel::OpenCL);
    let (void, truth, uint, byte) =
        (b.type_void(), b.type_bool(), b.type_int(32, 0), b.type_int(8, 0));
    let text = b"%d %d\0".map(|byte_of| b.constant_bit32(byte, byte_of.into()));
    let len = b.constant_bit32(uint, text.len() as u32);
    let array = b.type_array(byte, len);
    let [to_array, to_byte] =
        [array, byte].map(|to| b.type_pointer(None, StorageClass::UniformConstant, to));
    let to_uint = b.type_pointer(None, StorageClass::CrossWorkgroup, uint);
    let text = b.constant_composite(array, text);
    let format = b.variable(to_array, None, StorageClass::UniformConstant, Some(text));
    let [zero, one, seven] = [0, 1, 7].map(|n| b.constant_bit32(uint, n));
    let nowhere = b.constant_null(to_uint);

    let printing = b.type_function(uint, [to_byte]);
    let printf = b.begin_function(uint, None, FunctionControl::NONE, printing).unwrap();
    b.function_parameter(to_byte).unwrap();
    b.end_function().unwrap();
    let name = [Operand::from("printf"), Operand::LinkageType(LinkageType::Import)];
    b.decorate(printf, Decoration::LinkageAttributes, name);

    let taking = b.type_function(void, [to_uint]);
    let kernel = b.begin_function(void, None, FunctionControl::NONE, taking).unwrap();
    let out = b.function_parameter(to_uint).unwrap();
    b.begin_block(None).unwrap();
    let is_nowhere = b.i_equal(truth, None, out, nowhere).unwrap();
    let number = b.select(uint, None, is_nowhere, zero, one).unwrap();
    let start = b.in_bounds_access_chain(to_byte, None, format, [zero]).unwrap();
    b.function_call(uint, None, printf, [start, number, seven]).unwrap();
    b.ret().unwrap();
    b.end_function().unwrap();
    b.entry_point(ExecutionModel::Kernel, kernel, "prints", []);
    b.module().assemble()
}

#[test]
fn habits_of_older_translators_are_known() {
    let words = of_an_older_translator();
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let module = SpirvModule::parse(&bytes).unwrap();
    let device = Device::new(DeviceConfig::new("harp32".parse().unwrap())).unwrap();
    let kernel = module.kernel("prints", device.arch()).unwrap();
    let kernel = kernel.compile(&Default::default()).unwrap();
    let out = device.buffer_zeroed::<u32>(1).unwrap();
    for (arg, wanted) in [(Arg::from(&out), "[0] 1 7\n"), (Arg::address(0), "[0] 0 7\n")] {
        let report = device.launch(&kernel, LaunchConfig::grid_1d(1), &[arg]).unwrap();
        assert_eq!(report.printed.to_string(), wanted);
    }
}
