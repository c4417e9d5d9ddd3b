//! Images for machines without extension X hold base instructions only: boot code, library, kernel.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use harp_isa::ArchId;
use harp_jit::OptLevel;
use harp_runtime::{Device, DeviceConfig};
use harp_tests::base_forms::violations;
use harp_tests::generate::{Family, Kind};
use harp_tests::harpbench::PROGRAMS;
use harp_tests::oracle::options;
use harp_tests::saxpy;
use harp_tests::seeds::random_bytes;

const BASE: &[&str] =
    &["harp32", "harp64", "4w8/2/4/2", "4w64/64/1/1", "4b16/16/2/1", "8b64/64/16/1"];
/// Random kernels a machine.
const KERNELS: u64 = 60;

fn device(arch: ArchId) -> Device {
    Device::new(DeviceConfig::new(arch)).unwrap()
}

#[test]
fn saxpy_uses_base_instructions_only() {
    for arch in BASE {
        let arch = arch.parse().unwrap();
        let kernel = saxpy::source(arch).unwrap().compile(&Default::default()).unwrap();
        let (found, seen) = violations(&device(arch).image(&kernel).unwrap());
        assert!(found.is_empty(), "{arch}: {found:?}");
        assert!(seen > kernel.disassembly().lines().count() / 2, "{arch}: {seen} instructions");
    }
}

#[test]
fn harpbench_uses_base_instructions_only() {
    for arch in BASE {
        let arch = arch.parse().unwrap();
        let mut grouped = 0;
        for program in &PROGRAMS {
            let kernel = (program.source)(arch).unwrap().compile(&Default::default()).unwrap();
            let (found, _) = violations(&device(arch).image(&kernel).unwrap());
            assert!(found.is_empty(), "{}, {arch}: {found:?}", program.name);
            grouped += usize::from(kernel.uses_groups());
        }
        assert_eq!(grouped, 3, "vecsum, psum and scan-par have barriers");
    }
}

#[test]
fn random_kernels_use_base_instructions_only() {
    for arch in BASE {
        let arch: ArchId = arch.parse().unwrap();
        let device = device(arch);
        let mut images = 0;
        for seed in 0..KERNELS {
            let bytes = random_bytes(seed, 2048);
            let case = Kind::Lowerings.generate(&bytes, Family::of(arch)).case;
            for opt_level in [OptLevel::None, OptLevel::Speed] {
                let compiled = match case.compile(arch, options(opt_level)) {
                    Ok(compiled) => compiled,
                    Err(error) => panic!("{arch}, seed {seed}: {error}"),
                };
                let (found, _) = violations(&device.image(compiled.kernel().unwrap()).unwrap());
                assert!(found.is_empty(), "{arch}, seed {seed}, {opt_level:?}: {found:?}");
                images += 1;
            }
        }
        assert!(images > KERNELS / 2, "{arch}: only {images} kernels were compiled");
    }
}

/// The check itself: with the extension the same kernels do use it.
#[test]
fn the_extension_is_seen_where_it_is_used() {
    let arch: ArchId = "4w32/16/32/16+x".parse().unwrap();
    let device = device(arch);
    let found = (0..20).any(|seed| {
        let bytes = random_bytes(seed, 2048);
        let case = Kind::Lowerings.generate(&bytes, Family::of(arch)).case;
        let compiled = case.compile(arch, options(OptLevel::Speed)).unwrap();
        !violations(&device.image(compiled.kernel().unwrap()).unwrap()).0.is_empty()
    });
    assert!(found);
}
