//! Programs that the original toolchain assembled, linked and ran: console and statistics must be
//! the same, byte for byte.
//!
//! `tests/golden/<ArchID, / written _>/<program>.bin`, from the workspace's root, is a flat image for
//! address 0, `.out` what the original emulator printed. It could not link 8-byte byte-encoded
//! programs; those are assembled here, and must print what the word-encoded ones print.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use harp_emu::{
    DivergentBarriers, Floats, Interrupts, Machine, MachineConfig, Memory, Path as Way, Schedule,
    Simd, SpawnPolicy, Translation, Trap, TrapKind,
};
use harp_isa::ArchId;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden")
}

/// Every image with its architecture.
fn programs() -> impl Iterator<Item = (ArchId, PathBuf)> {
    let folders = sorted(&root()).into_iter().filter(|folder| folder.file_name().unwrap() != "src");
    folders.flat_map(|folder| {
        let name = folder.file_name().unwrap().to_str().unwrap().replace('_', "/");
        let is_image = |file: &PathBuf| file.extension().unwrap() == "bin";
        let images = sorted(&folder).into_iter().filter(is_image);
        iter::repeat(name.parse().unwrap()).zip(images)
    })
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    entries
}

fn name(image: &Path) -> &str {
    image.file_stem().unwrap().to_str().unwrap()
}

/// The original's machine: `faults` was run with address translation, the rest without.
fn original(arch: ArchId, program: &str) -> MachineConfig {
    MachineConfig {
        schedule: Schedule::Step,
        interrupts: Interrupts::Guest,
        translation: match program {
            "faults" => Translation::Tlb,
            _ => Translation::Physical,
        },
        floats: Floats::Reference,
        divergent_barriers: DivergentBarriers::Allow,
        spawn: SpawnPolicy::Original,
        fuel: Some(1_000_000),
        ..MachineConfig::new(arch)
    }
}

/// Runs an image; the console's bytes, the text of the statistics and the trap.
fn run(image: &[u8], config: MachineConfig) -> (String, String, Option<Trap>) {
    let memory = Memory::new(config.arch.word(), 16 << 20).unwrap();
    memory.write(0, image).unwrap();
    let mut machine = Machine::new(config, &memory).unwrap();
    let trap = machine.run().err().map(|trap| *trap);
    let console = String::from_utf8(machine.console()).unwrap();
    (console, machine.stats().to_string(), trap)
}

/// In one program the worker warps are missing and the barrier is never complete; the original
/// ends there without a word.
fn is_expected(arch: ArchId, program: &str, trap: Option<&Trap>) -> bool {
    let deadlocks = arch.warps() < 4 && program == "warps";
    match trap {
        Some(trap) => match &trap.kind {
            TrapKind::Deadlock { waiting } => deadlocks && waiting.len() == 1,
            _ => false,
        },
        None => !deadlocks,
    }
}

#[test]
fn stepwise_runs_equal_the_originals() {
    let mut count = 0;
    for (arch, image) in programs() {
        let program = name(&image);
        let config = original(arch, program);
        // IEEE floats let everything but `float` and `faults` take the fast path.
        let fast = |simd| MachineConfig { floats: Floats::Ieee, simd, ..config.clone() };
        let mut configs = vec![
            MachineConfig { path: Way::Precise, ..config.clone() },
            fast(Simd::Detect),
            fast(Simd::Baseline),
        ];
        if program == "float" {
            configs.truncate(1);
        }
        let expected = fs::read_to_string(image.with_extension("out")).unwrap();
        let image = fs::read(&image).unwrap();
        for config in configs {
            let (console, stats, trap) = run(&image, config);
            assert!(is_expected(arch, program, trap.as_ref()), "{program} on {arch}: {trap:?}");
            assert_eq!(console + &stats, expected, "{program} on {arch}");
        }
        count += 1;
    }
    assert_eq!(count, 52, "images in the folder");
}

#[test]
fn quantum_runs_print_the_same() {
    for (arch, image) in programs() {
        let program = name(&image);
        let quantum = |n| Schedule::Quantum(NonZeroU32::new(n).unwrap());
        let expected = fs::read_to_string(image.with_extension("out")).unwrap();
        let (expected_console, expected_stats) = expected.split_once("Total steps").unwrap();
        let image = fs::read(&image).unwrap();
        for schedule in [quantum(1), quantum(7), quantum(4096), Schedule::Seeded(1)] {
            let config = MachineConfig { schedule, ..original(arch, program) };
            let config = match program {
                "float" => config,
                _ => MachineConfig { floats: Floats::Ieee, ..config },
            };
            let (console, stats, trap) = run(&image, config);
            assert!(is_expected(arch, program, trap.as_ref()), "{program} on {arch}: {trap:?}");
            assert_eq!(console, expected_console, "{program} on {arch}");
            // Machine steps depend on the schedule, what each warp did does not.
            let per_warp = |text: &str| text.split_once('\n').unwrap().1.to_owned();
            assert_eq!(per_warp(&stats), per_warp(expected_stats), "{program} on {arch}");
        }
    }
}

/// The program's image, from source, laid out as the recorded ones are.
fn built(program: &str, arch: ArchId) -> Vec<u8> {
    let files: &[&str] = match program {
        "link" => &["link_a", "lib", "link_b"],
        program => &["boot", "lib", program],
    };
    let objects: Vec<_> = files
        .iter()
        .map(|file| {
            let text = fs::read_to_string(root().join("src").join(format!("{file}.s"))).unwrap();
            harp_isa::assemble(&text, arch, &[]).unwrap()
        })
        .collect();
    harp_isa::link(&objects.iter().collect::<Vec<_>>(), 0).unwrap().bytes
}

#[test]
fn eight_byte_byte_encoded_programs_run() {
    let programs = ["alu", "faults", "float", "lanes", "lanes8", "link", "mem", "preds", "warps"];
    for program in programs {
        let wide: ArchId = "8w32/32/8/8".parse().unwrap();
        let expected =
            fs::read_to_string(root().join("8w32_32_8_8").join(format!("{program}.out")));
        let expected = expected.unwrap();
        let (expected_console, expected_stats) = expected.split_once("Total steps").unwrap();
        let word_encoded = built(program, wide);
        assert_eq!(
            word_encoded,
            fs::read(root().join("8w32_32_8_8").join(format!("{program}.bin"))).unwrap()
        );
        let bytes: ArchId = "8b32/32/8/8".parse().unwrap();
        let image = built(program, bytes);
        assert_ne!(image, word_encoded);
        for path in [Way::Fast, Way::Precise] {
            let config = MachineConfig { path, ..original(bytes, program) };
            let (console, stats, trap) = run(&image, config);
            assert_eq!(trap, None, "{program}");
            // Code addresses differ, so a program that printed one would not do; none does.
            assert_eq!(console, expected_console, "{program}");
            assert_eq!(stats.split_once("Total steps").unwrap().1, expected_stats, "{program}");
        }
    }
}

/// The original crashes on these. Eight lanes are asked for where there are fewer.
#[test]
fn eight_lanes_on_smaller_machines_are_a_typed_trap() {
    for (shape, lanes) in
        [("4w16/16/2/8", 2), ("4w16/16/4/4", 4), ("8w32/32/4/8", 4), ("8b32/32/2/1", 2)]
    {
        let arch: ArchId = shape.parse().unwrap();
        let image = built("lanes8", arch);
        for path in [Way::Fast, Way::Precise] {
            let config = MachineConfig { path, floats: Floats::Ieee, ..original(arch, "lanes8") };
            let trap = run(&image, config).2.expect("a trap");
            match trap.kind {
                TrapKind::TooManyLanes { given: 8, limit } | TrapKind::NoSuchLane { limit, .. } => {
                    assert_eq!(limit, lanes);
                }
                kind => panic!("{shape}: {kind}"),
            }
        }
    }
}
