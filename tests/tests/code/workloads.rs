//! The benchmark kernels against the host and against other implementations' checksums, and the
//! functions that compile times are measured with against the interpreter.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use cranelift_codegen::data_value::DataValue;
use harp_isa::ArchId;
use harp_jit::{CompileOptions, OptLevel};
use harp_runtime::{Device, DeviceConfig};
use harp_tests::functions::{checked, compiled, expected, observed, parse, single_lane};
use harp_tests::kernels::{WORKLOADS, Workload, checksum};
use harp_tests::workloads::{DRIVER, HELPER, generated, handwritten};

fn output(workload: &Workload, arch: ArchId, scale: u32) -> Vec<u32> {
    let options = checked();
    let kernel = (workload.source)(arch).unwrap().compile(&options).unwrap();
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    (workload.run)(&device, &kernel, scale).unwrap()
}

#[test]
fn kernels_agree_with_the_host() {
    for arch in ["harp32", "harp64", "4w32/16/32/16+x", "4b16/16/8/4", "8w64/64/8/4"] {
        for workload in &WORKLOADS {
            let output = output(workload, arch.parse().unwrap(), 4);
            assert_eq!(output, (workload.on_host)(4), "{} on {arch}", workload.name);
        }
    }
}

/// The checksums that OpenCL implementations print for the same kernels and inputs.
#[test]
fn checksums_are_those_of_opencl() {
    for workload in &WORKLOADS {
        let output = output(workload, "4w32/16/32/16+x".parse().unwrap(), 1);
        assert_eq!(checksum(output), workload.checksum, "{}", workload.name);
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
