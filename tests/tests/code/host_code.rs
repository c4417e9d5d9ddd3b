//! How much of programs runs in host code once it is there.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use harp_bench::scalar::{Measured, programs};
use harp_isa::ArchId;
use harp_jit::{CompileOptions, Kernel};
use harp_runtime::{Device, DeviceConfig};
use rayon::prelude::*;

use super::scalar::read;

/// Instructions after which a device knows a program.
const WARM: u64 = 3_000_000;

/// The part of a program's instructions that host code issues in the last of many runs.
fn share(program: &Measured, arch: ArchId) -> f64 {
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    let in_host_code = || device.tier_stats().map_or(0, |stats| stats.issued);
    let mut all = 0;
    loop {
        // This waits for what is translated.
        let before = in_host_code();
        let mut issued = 0;
        let mut launch = |device: &Device, kernel: &Kernel, config, args: &[_]| {
            let report = device.launch(kernel, config, args)?;
            issued += report.warp_instructions();
            Ok(report)
        };
        program.run(&device, &CompileOptions::default(), &read, &mut launch).unwrap();
        all += issued;
        if all > WARM {
            return (in_host_code() - before) as f64 / issued as f64;
        }
    }
}

#[test]
fn programs_come_to_run_in_host_code() {
    let is_there = cfg!(target_arch = "x86_64");
    for (arch, least) in [("4w32/16/32/16+x", 0.87), ("harp32", 0.78)] {
        let arch = arch.parse().unwrap();
        let shares: Vec<(&str, f64)> =
            programs().par_iter().map(|program| (program.name, share(program, arch))).collect();
        let mean = shares.iter().map(|(_, share)| share).sum::<f64>() / shares.len() as f64;
        assert!(!is_there || mean >= least, "{arch}: {mean:.2} in the mean of {shares:.2?}");
    }
}
