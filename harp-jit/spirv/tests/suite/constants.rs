//! Memory that nothing changes while a kernel runs.

use harp_jit::CompileOptions;
use harp_runtime::{Arg, Device, DeviceConfig, Finding, FindingKind, LaunchConfig};
use harp_spirv::{EntryParam, SpirvModule};

use crate::support::{Level, bytes, everywhere};

/// The sizes that kernels are given, and the sums that work-items compute.
const SIZES: [i32; 2] = [99, 6];

fn sums(len: usize) -> Vec<i32> {
    (0..len as i32).map(|i| (1 + 10 + 100 + 1000 + 1 + 10) * i).collect()
}

#[test]
fn lanes_agree_on_what_nothing_changes() {
    everywhere("constants", |case| {
        let (sizes, out) = (case.buffer(&SIZES), case.zeros::<i32>(50));
        // Those of the loop, and on some machines what a store of a part of a word takes.
        let most = case.kernel("from_global").stats().divergent_branches;
        for (name, is_constant) in [
            ("from_constant", true),
            // Only where clang has found that nothing is written through the pointer.
            ("from_restricted", case.level == Level::Optimized),
            ("from_global", false),
        ] {
            let kernel = case.kernel(name);
            let [first, second] = kernel.params() else { panic!("there are two") };
            assert_eq!((first.is_constant(), second.is_constant()), (is_constant, false), "{name}");
            let divergent = kernel.stats().divergent_branches;
            // Loops over variables in memory diverge in any case.
            let is_in_memory = case.is_checked() && case.level == Level::Unoptimized;
            assert_eq!(divergent < most, is_constant && !is_in_memory, "{name} on {case}");
            case.run(&kernel, LaunchConfig::grid_1d(50), &[Arg::from(&sizes), Arg::from(&out)]);
            assert_eq!(case.read(&out), sums(50), "{name} on {case}");
        }
    });
}

#[test]
fn changes_of_what_is_constant_are_found() {
    everywhere("constants", |case| {
        let data = case.buffer(&[SIZES[0], SIZES[1], 0, 0]);
        let config = LaunchConfig::grid_1d(1).with_checks(harp_runtime::Checks::all());
        let args = [Arg::from(&data), Arg::from(&data)];
        let Some(findings) = case.found("from_constant", config, &args) else { return };
        let is_constant =
            |found: &Finding| matches!(found.kind, FindingKind::Constant { parameter: 0, .. });
        assert!(findings.list.iter().any(is_constant), "{findings}");
    });
}

#[test]
fn shaders_promise_by_decorations() {
    let module = SpirvModule::parse(&bytes("variables.spv")).unwrap();
    let entry = &module.entry_points()[0];
    let constant = |param: &EntryParam| (param.name.clone().unwrap(), param.constant);
    let constant: Vec<_> = entry.params().iter().map(constant).collect();
    let wanted = [
        ("block", true),
        ("old", false),
        ("read", true),
        ("members", true),
        ("aliased", false),
        ("out", false),
        ("blocks[0]", true),
        ("blocks[1]", true),
        ("olds[0]", false),
        ("olds[1]", false),
    ];
    assert_eq!(constant, wanted.map(|(name, constant)| (name.to_owned(), constant)));
    let arch = "4w8/4/8/4".parse().unwrap();
    let kernel = module.kernel("main", arch).unwrap();
    let kernel = kernel.compile(&CompileOptions::default()).unwrap();
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    let buffers = [1, 20, 300, 4000, 50000, 0, 7, 100_000, 7, 2_000_000]
        .map(|x: i32| device.buffer_from_slice(&[x]).unwrap());
    let args: Vec<_> = buffers.iter().map(Arg::from).collect();
    device.launch(&kernel, LaunchConfig::grid_1d(1).with_groups_1d(1), &args).unwrap();
    assert_eq!(device.read(&buffers[5]).unwrap(), [2_154_321]);
}
