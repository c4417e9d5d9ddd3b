//! What is wrong with modules is said with the instruction, and specialization constants are set.

use crate::support::{Level, MACHINES, bytes, module};
use harp_jit::CompileOptions;
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig};
use harp_spirv::{SpirvErrorKind, SpirvModule};

#[test]
fn specialization_constants_are_set_when_a_module_is_read() {
    let bytes = bytes("specialized.spv");
    let module = SpirvModule::parse(&bytes).unwrap();
    let constants: Vec<_> = module
        .spec_constants()
        .iter()
        .map(|constant| (constant.id, constant.name.as_deref(), constant.bits))
        .collect();
    let half = u64::from(0.5_f32.to_bits());
    let minus = u64::from((-3_i32).cast_unsigned());
    assert_eq!(constants, [(7, Some("size"), 4), (8, None, minus), (9, None, 1), (10, None, half)]);
    assert_eq!(module.entry_points()[0].local_size(), Some([4, 1, 1]));

    let error = SpirvModule::parse_specialized(&bytes, &[(11, 0)]).unwrap_err();
    assert_eq!(error.to_string(), "there is no specialization constant 11");

    let run = |values: &[(u32, u64)]| {
        let module = SpirvModule::parse_specialized(&bytes, values).unwrap();
        let arch = MACHINES[0].parse().unwrap();
        let kernel = module.kernel("main", arch).unwrap();
        let size = kernel.entry_point().local_size().unwrap()[0] as usize;
        let kernel = kernel.compile(&CompileOptions::default()).unwrap();
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let out = device.buffer_zeroed::<u32>(20).unwrap();
        let config = LaunchConfig::grid_1d(20).with_groups_1d(size);
        device.launch(&kernel, config, &[Arg::from(&out)]).unwrap();
        let all = device.read(&out).unwrap();
        assert!(all.iter().all(|&n| n == all[0]), "{all:?}");
        all[0]
    };
    let host = |size: u32, factor: i32, flag: bool, fraction: f32| {
        let more = size + 3;
        let sum = more + (factor * factor).cast_unsigned();
        let picked = if flag { (sum as f32 * fraction) as u32 } else { sum };
        picked + more - 1
    };
    assert_eq!(run(&[]), host(4, -3, true, 0.5));
    let (factor, fraction) = (20_i32, 0.099_516_f32);
    let nearest_half = 1630.0 / 16384.0;
    assert_ne!(host(9, factor, true, nearest_half), host(9, factor, true, fraction));
    let values = [(7, 9), (8, factor.cast_unsigned().into()), (10, fraction.to_bits().into())];
    assert_eq!(run(&values), host(9, factor, true, nearest_half));
    assert_eq!(run(&[(9, 0)]), host(4, -3, false, 0.5));
}

#[test]
fn modes_that_machines_cannot_have_are_refused() {
    let module = SpirvModule::parse(&bytes("modes.spv")).unwrap();
    let refused = |name: &str, arch: &str| {
        module.kernel(name, arch.parse().unwrap()).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(refused("eight", "4w16/16/8/16"), Ok(()));
    for (name, wanted) in [
        ("eight", "the kernel is for subgroups of 8 work-items, the machine's have 16"),
        ("truncates", "the execution mode RoundingModeRTZ is not supported"),
        ("second", ", which the initializer `first` sets, is not supported"),
    ] {
        let message = refused(name, "4w16/16/16/16").unwrap_err();
        assert!(message.contains(wanted), "{message}");
    }
    assert_eq!(refused("first", "4w16/16/16/16"), Ok(()));
}

#[test]
fn a_module_is_for_machines_with_words_of_its_addresses() {
    let [narrow, wide] = [MACHINES[0], MACHINES[2]].map(|id| id.parse().unwrap());
    for (own, other) in [(narrow, wide), (wide, narrow)] {
        let module = module("groups", own, Level::Optimized);
        assert!(module.kernel("async", own).is_ok());
        let error = module.kernel("async", other).unwrap_err();
        assert!(matches!(error.kind, SpirvErrorKind::AddressSize { .. }), "{error}");
    }
    // Shaders are for both.
    let shader = SpirvModule::parse(&bytes("functions.spv")).unwrap();
    assert!(shader.kernel("flow", narrow).is_ok() && shader.kernel("flow", wide).is_ok());
}

#[test]
fn kernels_are_found_by_name() {
    let arch = MACHINES[0].parse().unwrap();
    let error = module("collective", arch, Level::Optimized).kernel("main", arch).unwrap_err();
    let wanted = "there is no kernel `main`; the module has `whole_groups`, `subgroups`, \
        `generic_pointers`, `atomic_objects`";
    assert_eq!(error.to_string(), wanted);
}

#[test]
fn parameters_have_names_and_types() {
    let arch = MACHINES[0].parse().unwrap();
    let module = module("groups", arch, Level::Optimized);
    let kernel = module.kernel("async", arch).unwrap().compile(&CompileOptions::default()).unwrap();
    let shown: Vec<String> = kernel.params().iter().map(ToString::to_string).collect();
    let wanted =
        ["in: pointer of f32", "out: pointer of f32", "tile: group memory of f32", "stride: i32"];
    assert_eq!(shown, wanted);
}

/// The words of a module with one changed.
fn changed(name: &str, change: impl Fn(&mut Vec<u32>)) -> Vec<u8> {
    let bytes = bytes(name);
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let mut words: Vec<u32> = words.collect();
    change(&mut words);
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn errors_name_the_instruction() {
    let why = |bytes: &[u8]| SpirvModule::parse(bytes).unwrap_err().to_string();
    assert_eq!(
        why(b"too short"),
        "this is no SPIR-V module: it is shorter than the header of 20 bytes"
    );
    let big_endian = changed("specialized.spv", |words| words[0] = words[0].swap_bytes());
    assert_eq!(why(&big_endian), "this is no SPIR-V module: its words are big-endian");
    let endless = changed("specialized.spv", |words| words[5] |= 0xffff_0000);
    assert!(why(&endless).starts_with("an instruction at word 5: an instruction of 65535 words"));
    // The last block ends in `OpReturn`, which becomes `OpKill`'s neighbour that only pixels have.
    let bytes = changed("specialized.spv", |words| {
        let at = words.len() - 2;
        words[at] = 1 << 16 | 4416;
    });
    assert!(SpirvModule::parse(&bytes).is_ok());
}

#[test]
fn traps_name_the_place_in_the_source() {
    for level in [Level::Unoptimized, Level::Optimized] {
        let arch = MACHINES[0].parse().unwrap();
        let kernel = module("lines", arch, level).kernel("wild", arch).unwrap();
        let kernel = kernel.compile(&CompileOptions::default()).unwrap();
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        let x = device.buffer_from_slice(&[1, 2, 3, 4]).unwrap();
        let out = device.buffer_zeroed::<i32>(4).unwrap();
        let args = [Arg::from(&x), Arg::from(&out)];
        let error = device.launch(&kernel, LaunchConfig::grid_1d(4), &args).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("lines.cl:9:25"), "{level:?}: {shown}");
    }
}

#[test]
fn kernels_with_images_are_refused_and_others_are_not() {
    let arch = MACHINES[0].parse().unwrap();
    let module = module("images", arch, Level::Optimized);
    let names: Vec<_> = module.entry_points().iter().map(harp_spirv::EntryPoint::name).collect();
    assert_eq!(names, ["with_image", "without"]);
    let error = module.kernel("with_image", arch).unwrap_err().to_string();
    assert!(error.starts_with("OpFunction %") && error.contains("OpTypeImage"), "{error}");
    assert!(module.kernel("without", arch).is_ok());
}

#[test]
fn scopes_are_constants() {
    use rspirv::spirv::Op;
    let bytes = changed("groups.32.O2.spv", |words| {
        let mut at = 5;
        let mut function = 0;
        while let Some(&first) = words.get(at) {
            match Op::from_u32(first & 0xffff) {
                Some(Op::Function) => function = words[at + 2],
                Some(Op::ControlBarrier) => words[at + 1] = function,
                _ => {}
            }
            at += (first >> 16) as usize;
        }
    });
    let module = SpirvModule::parse(&bytes).unwrap();
    let error = module.kernel("tree", MACHINES[0].parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("OpControlBarrier"), "{error}");
    assert!(error.ends_with("which is no constant, is not supported"), "{error}");
}

#[test]
fn constants_of_types_that_are_not_there_are_refused_by_these() {
    use rspirv::spirv::{MAGIC_NUMBER, Op};
    let instructions: [&[u32]; 5] = [
        // The shader's capability, and GLSL450's memory.
        &[Op::Capability as u32, 1],
        &[Op::MemoryModel as u32, 0, 1],
        &[Op::TypeInt as u32, 1, 32, 0],
        &[Op::TypeCooperativeMatrixKHR as u32, 2, 1, 3, 3, 3, 3],
        &[Op::ConstantComposite as u32, 2, 4, 3],
    ];
    let mut words = vec![MAGIC_NUMBER, 0x0001_0600, 0, 5, 0];
    for instruction in instructions {
        words.push((instruction.len() as u32) << 16 | instruction[0]);
        words.extend(&instruction[1..]);
    }
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    let error = SpirvModule::parse(&bytes).unwrap_err().to_string();
    assert!(error.contains("OpTypeCooperativeMatrixKHR"), "{error}");
}
