//! Launches that follow each other on a device, in each tier.

use harp_runtime::Tier;
use harp_runtime::prelude::*;

const MACHINES: [&str; 4] = ["harp32", "harp64+x", "4w32/16/32/16+x", "4w8/2/1/1"];

/// `data[i] = (data[i] + more) / divisor`.
fn kernel(arch: ArchId, more: i64) -> Kernel {
    let mut source = KernelSource::new("divides", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (data, divisor) = (b.buffer::<u32>("data"), b.scalar::<u32>("divisor"));
    let i = b.global_id(0);
    let old = b.load(data, i);
    let sum = b.ins().iadd_imm_s(old, more);
    let new = b.ins().udiv(sum, divisor);
    b.store(data, i, new);
    b.return_();
    b.finalize().unwrap();
    source.compile(&CompileOptions::default()).unwrap()
}

fn device(arch: ArchId, tier: Tier) -> Device {
    Device::new(DeviceConfig { tier, ..DeviceConfig::new(arch) }).unwrap()
}

/// What a device takes over from one launch is right for the next: for the same kernel or another one, behind a trap, with
/// more warps or fewer.
#[test]
fn launches_do_not_depend_on_those_before() {
    for arch in MACHINES.map(|id| id.parse::<ArchId>().unwrap()) {
        let kernels = [kernel(arch, 1), kernel(arch, 5)];
        let devices =
            [Tier::Interpreter, Tier::Native, Tier::Tiered].map(|tier| device(arch, tier));
        for round in 0..60_u32 {
            let kernel = &kernels[usize::from(round % 7 > 3)];
            let (items, divisor) = ((round * 37 % 400 + 1) as usize, round % 5);
            let [expected, host_code, tiered] = devices.each_ref().map(|device| {
                let values: Vec<u32> = (0..items as u32).map(|i| i * round).collect();
                let data = device.buffer_from_slice(&values).unwrap();
                let args = [Arg::from(&data), divisor.into()];
                let report = device.launch(kernel, LaunchConfig::grid_1d(items), &args);
                let outcome = report.map(|report| report.stats).map_err(|error| error.to_string());
                (outcome, device.read(&data).unwrap())
            });
            assert_eq!(expected.0.is_err(), divisor == 0, "{arch}, {round}");
            assert_eq!(host_code, expected, "{arch}, {round}");
            assert_eq!(tiered, expected, "{arch}, {round}");
        }
    }
}

/// Where launches are short, host code begins where warps do.
#[cfg(feature = "native")]
#[test]
fn short_launches_come_to_run_in_host_code() {
    for arch in MACHINES[..3].iter().map(|id| id.parse::<ArchId>().unwrap()) {
        let (kernel, device) = (kernel(arch, 1), device(arch, Tier::Tiered));
        let lanes = usize::from(arch.lanes()) * usize::from(arch.warps());
        let data = device.buffer_zeroed::<u32>(lanes).unwrap();
        let args = [Arg::from(&data), 1_u32.into()];
        let launch = || {
            let report = device.launch(&kernel, LaunchConfig::grid_1d(lanes), &args).unwrap();
            report.warp_instructions()
        };
        // What is being translated is waited for. None if there is no code generator for the host.
        let issued = || device.tier_stats().map(|stats| stats.issued);
        let Some(_) = issued() else { return };
        let is_in_host_code = || {
            let before = issued();
            let all = launch();
            issued().zip(before).is_some_and(|(after, before)| 3 * (after - before) > all)
        };
        let in_host_code = (0..400).any(|_| is_in_host_code());
        assert!(in_host_code, "{arch}");
    }
}
