//! Saxpy through the whole house, bit for bit against the host.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use harp_isa::{ArchId, WordSize};
use harp_jit::{CompileOptions, Kernel, OptLevel};
use harp_runtime::{Device, DeviceConfig};
use harp_tests::functions::checked;
use harp_tests::harpbench::peers::checksum;
use harp_tests::saxpy;

/// Eight registers without extension; the wide machine; the extension; the byte encoding in both
/// word sizes; the fewest and the most registers and lanes.
const ARCHS: &[&str] = &[
    "harp32",
    "harp64",
    "4w32/16/32/16+x",
    "4b16/16/8/4",
    "8b32/8/4/2+x",
    "4w8/2/1/1",
    "8w64/64/64/2",
];

fn compile(arch: ArchId, opt_level: OptLevel) -> Kernel {
    let options = CompileOptions { opt_level, ..checked() };
    saxpy::source(arch).unwrap().compile(&options).unwrap()
}

fn device(arch: ArchId, cores: u16) -> Device {
    let mut config = DeviceConfig::new(arch);
    config.cores = cores;
    Device::new(config).unwrap()
}

/// Compares a run with the host's result, bit for bit.
fn check<T: saxpy::Float + Into<f64>>(device: &Device, kernel: &Kernel, len: usize) {
    let (x, y) = saxpy::inputs(len);
    let (result, report) = saxpy::run::<T>(device, kernel, &x, &y).unwrap();
    let native = |values: &[f32]| values.iter().map(|&v| T::from(v)).collect::<Vec<_>>();
    let expected = saxpy::on_host(T::from(saxpy::FACTOR), &native(&x), &native(&y));
    let bits = |value: &T| Into::<f64>::into(*value).to_bits();
    let wrong = result.iter().zip(&expected).position(|(a, b)| bits(a) != bits(b));
    assert_eq!(wrong, None, "{len} elements on {}", kernel.arch());
    assert_eq!((result.len(), report.work_items()), (len, len as u64));
}

fn check_any(device: &Device, kernel: &Kernel, len: usize) {
    match kernel.arch().word() {
        WordSize::Four => check::<f32>(device, kernel, len),
        WordSize::Eight => check::<f64>(device, kernel, len),
    }
}

#[test]
fn every_machine_agrees_with_the_host() {
    for arch in ARCHS {
        let arch = arch.parse().unwrap();
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let (kernel, device) = (compile(arch, opt_level), device(arch, 1));
            for len in [0, 1, 7, 31, 32, 33] {
                check_any(&device, &kernel, len);
            }
        }
    }
}

#[test]
fn a_million_and_three_elements() {
    for arch in &ARCHS[..4] {
        let arch = arch.parse().unwrap();
        check_any(&device(arch, 1), &compile(arch, OptLevel::Speed), 1_000_003);
    }
}

#[test]
fn cores_share_the_work() {
    for arch in ["harp32", "8b32/8/4/2+x"] {
        let arch = arch.parse().unwrap();
        let kernel = compile(arch, OptLevel::Speed);
        for cores in [2, 3, 7] {
            for len in [1, 33, 10_007] {
                check_any(&device(arch, cores), &kernel, len);
            }
        }
    }
}

/// The checksum that OpenCL implementations print for the same kernel and input.
#[test]
fn the_checksum_is_that_of_opencl() {
    let arch = "4w32/16/32/16+x".parse().unwrap();
    let (x, y) = saxpy::inputs(1 << 20);
    let kernel = compile(arch, OptLevel::Speed);
    let (result, _) = saxpy::run::<f32>(&device(arch, 1), &kernel, &x, &y).unwrap();
    assert_eq!(checksum(result.into_iter().map(f32::to_bits)), 113_679_813);
}
