//! The benchmark kernels against the host and against other implementations' checksums, and the
//! functions that compile times are measured with against the interpreter.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::sync::Arc;

use cranelift_codegen::data_value::DataValue;
use harp_isa::ArchId;
use harp_jit::{CompileOptions, DivergenceStrategy, OptLevel};
use harp_runtime::{Device, DeviceConfig};
use harp_tests::functions::{checked, compiled, expected, observed, parse, single_lane};
use harp_tests::harpbench::peers::{SCALES, WORKLOADS, Workload, checksum};
use harp_tests::random::{WAYS, Way};
use harp_tests::workloads::{DRIVER, HELPER, generated, handwritten};

/// All machines of the workloads: few and many registers, both words, both encodings, with and without the
/// extension, and one with a single lane.
const MACHINES: [&str; 6] =
    ["harp32", "harp64", "harp64+x", "4w32/16/32/16+x", "4b16/16/16/8+x", "4w8/2/1/1"];

/// Runs a workload; the machines that are too small for its groups say so.
fn check(workload: &Workload, arch: ArchId, scale: usize, way: Way) {
    let source = (workload.source)(arch).unwrap();
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    let name = workload.name;
    let lanes = u32::from(arch.lanes()) * u32::from(arch.warps());
    let options = |divergence, profile| CompileOptions { divergence, profile, ..checked() };
    let compiled = |way: Way| {
        let profile = way.profile.then(|| {
            let splits = source.compile(&options(DivergenceStrategy::SplitJoin, None)).unwrap();
            Arc::new(workload.profile(&device, &splits, SCALES[2]).unwrap())
        });
        source.compile(&options(way.strategy, profile)).unwrap()
    };
    let is_small = name == "reduce" && lanes < 128;
    let kernel = compiled(if is_small { WAYS[0] } else { way });
    match workload.run(&device, &kernel, SCALES[scale]) {
        Ok(output) => {
            let sum = checksum(output);
            assert_eq!(sum, workload.checksums[scale], "{name} on {arch}, {}", way.name);
        }
        Err(error) => {
            assert!(is_small, "{name} on {arch}: {error}");
            let expected = format!("128 x 1 x 1 work-items, a core has {lanes} lanes");
            assert!(error.to_string().contains(&expected), "{name} on {arch}: {error}");
        }
    }
}

/// The checksums that OpenCL programs print for the same kernels and inputs, and the host's results.
#[test]
fn checksums_are_those_of_opencl() {
    for workload in &WORKLOADS {
        for (scale, expected) in SCALES.into_iter().zip(workload.checksums) {
            assert_eq!(checksum((workload.on_host)(scale)), expected, "{}", workload.name);
        }
        check(workload, "4w32/16/32/16+x".parse().unwrap(), 0, WAYS[4]);
    }
}

/// All workloads on all machines, and under all strategies, which take turns. `--example workload` runs them all.
#[test]
fn workloads_run_on_every_machine() {
    for (turn, arch) in MACHINES.into_iter().enumerate() {
        for (at, workload) in WORKLOADS.iter().enumerate() {
            check(workload, arch.parse().unwrap(), 2, WAYS[(turn + at) % WAYS.len()]);
        }
    }
}

#[test]
fn generated_functions_agree_with_the_interpreter() {
    for arch in ["harp64+x", "harp32"].map(|id| id.parse::<ArchId>().unwrap()) {
        for insts in [10, 200, 1000] {
            let mut functions = parse(arch.word(), HELPER);
            functions.push(generated(insts, arch.word()));
            functions.extend(parse(arch.word(), DRIVER));
            let args = [7, -1_000_003].map(DataValue::I64);
            let expected = expected(&functions, "driver", &args);
            for opt_level in [OptLevel::None, OptLevel::Speed] {
                let options = CompileOptions { opt_level, ..single_lane() };
                let compiled = compiled(&functions, arch, &options);
                let observed = observed(&compiled, &functions, "driver", &args).unwrap();
                assert_eq!(observed, expected, "{insts} instructions on {arch}");
            }
        }
    }
}

/// The verifier of functions as they come only refuses.
#[test]
fn code_is_the_same_without_the_verifier() {
    for arch in ["harp64+x", "harp32"].map(|id| id.parse::<ArchId>().unwrap()) {
        let mut functions = handwritten(arch.word());
        functions.extend(parse(arch.word(), HELPER));
        functions.push(generated(300, arch.word()));
        let [code, unverified] = [true, false].map(|verify_input| {
            let options = CompileOptions { verify_input, verify: false, ..single_lane() };
            let module = compiled(&functions, arch, &options);
            let code = module.functions().iter().map(|function| function.code().to_vec());
            code.collect::<Vec<Vec<u8>>>()
        });
        assert_eq!(code, unverified, "{arch}");
    }
}
