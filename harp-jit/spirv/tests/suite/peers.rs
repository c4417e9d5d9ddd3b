//! The kernels of an OpenCL benchmark, from modules that clang made, do what the host and the OpenCL program do.

use crate::support::{Level, STRATEGIES};
use harp_bench::peers::{self, SCALES, WORKLOADS, Workload, checksum};
use harp_isa::ArchId;
use harp_jit::{CompileOptions, DivergenceStrategy, Kernel};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig};
use harp_spirv::SpirvModule;

/// A scale at which a machine emulates a workload in little time.
const SCALE: usize = 2;

/// One that leaves a work-group or two, for what is run many times.
const SMALL: u32 = 6;

const MACHINES: [&str; 6] =
    ["harp32", "harp64", "4w32/16/32/16+x", "8w16/16/4/32+x", "4w16/4/2/64", "8b16/2/16/8+x"];

fn module(arch: ArchId, level: Level) -> SpirvModule {
    let bytes = peers::module(arch.word(), level == Level::Optimized);
    SpirvModule::parse(bytes).unwrap()
}

fn everywhere(level: Level, scale: u32, strategies: &[DivergenceStrategy]) {
    for arch in MACHINES.map(|id| id.parse().unwrap()) {
        let module = module(arch, level);
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        for workload in WORKLOADS {
            let wanted = (workload.on_host)(scale);
            let kernel = module.kernel(workload.name, arch).unwrap();
            for &divergence in strategies {
                let options = CompileOptions { divergence, ..CompileOptions::default() };
                let kernel = kernel.compile(&options).unwrap();
                let given = workload.run(&device, &kernel, scale).unwrap();
                assert!(given == wanted, "{} on {arch} with {divergence:?}", workload.name);
            }
        }
    }
}

/// Warp instructions of all launches of a workload.
fn instructions(workload: &Workload, device: &Device, kernel: &Kernel, scale: u32) -> u64 {
    let mut sum = 0;
    let mut launch = |config: LaunchConfig, args: &[Arg]| {
        let report = device.launch(kernel, config, args)?;
        sum += report.warp_instructions();
        Ok(report)
    };
    (workload.launches)(device, &mut launch, scale).unwrap();
    sum
}

#[test]
fn peers_take_hardly_more_instructions_than_those_of_the_builder() {
    for arch in MACHINES.map(|id| id.parse().unwrap()) {
        let module = module(arch, Level::Optimized);
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        for workload in WORKLOADS {
            let options = CompileOptions::default();
            let built = (workload.source)(arch).unwrap().compile(&options).unwrap();
            let kernel = module.kernel(workload.name, arch).unwrap().compile(&options).unwrap();
            let count = |kernel| instructions(&workload, &device, kernel, SCALES[SCALE]);
            let (given, built) = (count(&kernel), count(&built));
            assert!(
                given * 10 <= built * 11,
                "{} takes {given} instructions, {built} from the builder, on {arch}",
                workload.name
            );
        }
    }
}

#[test]
fn optimized_peers_give_the_checksums_of_the_opencl_program() {
    for workload in WORKLOADS {
        let wanted = (workload.on_host)(SCALES[SCALE]);
        assert_eq!(checksum(wanted), workload.checksums[SCALE], "{}", workload.name);
    }
    everywhere(Level::Optimized, SCALES[SCALE], &[DivergenceStrategy::default()]);
}

#[test]
fn optimized_peers_give_the_same_results_under_every_strategy() {
    everywhere(Level::Optimized, SMALL, &STRATEGIES);
}

#[test]
fn unoptimized_peers_give_the_same_results() {
    everywhere(Level::Unoptimized, SMALL, &[DivergenceStrategy::default()]);
}
