//! Programs that the original toolchain assembled, linked and ran: console and statistics must be
//! the same, byte for byte.
//!
//! `tests/golden/<ArchID, / written _>/<program>.bin`, from the workspace's root, is a flat image for
//! address 0, `.out` what the original emulator printed. It could not link 8-byte byte-encoded
//! programs, so there are none.
#![allow(clippy::unwrap_used, reason = "a failure of a helper is a failure of the test")]

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use harp_emu::{Machine, MachineConfig, Memory, Schedule, Simd, SpawnPolicy, Trap, TrapKind};
use harp_isa::ArchId;

/// Programs for what the emulator does not have yet: guest handlers of interrupts, and the original's
/// own rounding of floats.
const LATER: [&str; 2] = ["faults", "float"];

/// Every image with its architecture.
fn programs() -> impl Iterator<Item = (ArchId, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let folders = sorted(&root).into_iter().filter(|folder| folder.file_name().unwrap() != "src");
    folders.flat_map(|folder| {
        let name = folder.file_name().unwrap().to_str().unwrap().replace('_', "/");
        let images = sorted(&folder).into_iter().filter(|file| {
            let later = LATER.iter().any(|&name| file.file_stem().unwrap() == name);
            file.extension().unwrap() == "bin" && !later
        });
        iter::repeat(name.parse().unwrap()).zip(images)
    })
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    entries
}

/// Runs an image; the console's bytes, the text of the statistics and the trap.
fn run(
    arch: ArchId,
    image: &Path,
    schedule: Schedule,
    simd: Simd,
) -> (String, String, Option<Trap>) {
    let memory = Memory::new(arch.word(), 16 << 20).unwrap();
    memory.write(0, &fs::read(image).unwrap()).unwrap();
    let config = MachineConfig {
        schedule,
        simd,
        spawn: SpawnPolicy::Original,
        fuel: Some(1_000_000),
        ..MachineConfig::new(arch)
    };
    let mut machine = Machine::new(config, &memory).unwrap();
    let trap = machine.run().err().map(|trap| *trap);
    let console = String::from_utf8(machine.console().to_vec()).unwrap();
    (console, machine.stats().to_string(), trap)
}

/// In one program the worker warps are missing and the barrier is never complete; the original
/// ends there without a word.
fn is_expected(arch: ArchId, image: &Path, trap: Option<&Trap>) -> bool {
    let deadlocks = arch.warps() < 4 && image.file_stem().unwrap() == "warps";
    match trap {
        Some(trap) => deadlocks && matches!(trap.kind, TrapKind::Deadlock { waiting: 1, .. }),
        None => !deadlocks,
    }
}

#[test]
fn stepwise_runs_equal_the_originals() {
    let mut count = 0;
    for (arch, image) in programs() {
        for simd in [Simd::Detect, Simd::Baseline] {
            let (console, stats, trap) = run(arch, &image, Schedule::Step, simd);
            assert!(is_expected(arch, &image, trap.as_ref()), "{}: {trap:?}", image.display());
            let expected = fs::read_to_string(image.with_extension("out")).unwrap();
            assert_eq!(console + &stats, expected, "{}", image.display());
        }
        count += 1;
    }
    assert_eq!(count, 40, "images in the folder");
}

#[test]
fn quantum_runs_print_the_same() {
    for (arch, image) in programs() {
        for quantum in [1, 7, 4096] {
            let schedule = Schedule::Quantum(NonZeroU32::new(quantum).unwrap());
            let (console, stats, trap) = run(arch, &image, schedule, Simd::Detect);
            assert!(is_expected(arch, &image, trap.as_ref()), "{}: {trap:?}", image.display());
            let expected = fs::read_to_string(image.with_extension("out")).unwrap();
            let (expected_console, expected_stats) = expected.split_once("Total steps").unwrap();
            assert_eq!(console, expected_console, "{}", image.display());
            // Machine steps depend on the schedule, what each warp did does not.
            let per_warp = |text: &str| text.split_once('\n').unwrap().1.to_owned();
            assert_eq!(per_warp(&stats), per_warp(expected_stats), "{}", image.display());
        }
    }
}
