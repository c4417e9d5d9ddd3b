//! Short seeded runs of all generators that the fuzz targets call, and inputs that once failed.

use std::env;
use std::fs::read_dir;

use harp_isa::{Opcode, Role};
use harp_tests::fuzzing::{asm, builder, hof, isa, machine, spirv};
use harp_tests::generate::Kind;
use harp_tests::random::{Counts, counts, fuzz, merge};
use harp_tests::seeds::random_bytes;

/// A number that the environment gives, or the usual one.
fn from_environment(name: &str, usual: u64) -> u64 {
    env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Checks seeds, `length` bytes of each, which together must come to more than so many of these. `HARP_FIRST_SEED` is the
/// first one, for a long run in parts.
#[expect(clippy::print_stdout, reason = "the output of tests is captured, and shown if they fail")]
fn smoke(
    seeds: u64,
    length: fn(usize) -> usize,
    check: fn(&[u8]) -> Counts,
    least: &[(&str, u64)],
) -> Counts {
    let mut reached = Counts::new();
    let first = from_environment("HARP_FIRST_SEED", 0);
    for seed in first..first + seeds {
        // Whose output is captured, and shown if the check fails.
        println!("seed {seed}");
        merge(&mut reached, check(&random_bytes(seed, length(seed as usize))));
    }
    println!("{reached:?}");
    for (what, least) in least {
        assert!(reached.get(*what) > Some(least), "{what}: {reached:?}");
    }
    reached
}

#[test]
fn decode() {
    let least = [("instructions", 1000), ("extension", 100), ("guarded", 100), ("errors", 100)];
    smoke(2000, |_| 256, isa::check_guarded, &least);
}

#[test]
fn hof() {
    let least =
        [("objects", 300), ("chunks", 600), ("references", 600), ("linked", 30), ("errors", 300)];
    smoke(3000, |_| 600, hof::check, &least);
}

#[test]
fn asm() {
    let least = [
        ("assembled", 300),
        ("bytes", 3000),
        ("references", 100),
        ("linked", 100),
        ("refused", 300),
        ("wrong", 600),
    ];
    // Short texts assemble, long ones have errors in the middle of much else.
    smoke(3000, |seed| 20 + (seed * 7) % 300, asm::check, &least);
}

/// `HARP_SEQUENCES` is how many.
#[test]
fn builder() {
    let count = from_environment("HARP_SEQUENCES", 400);
    let least = ["misused", "refused", "compiled"].map(|what| (what, count / 20));
    smoke(count, |seed| 200 + seed % 800, builder::check, &least);
}

#[test]
fn spirv() {
    let least = [("modules", 80), ("compiled", 30), ("refused", 80), ("unreadable", 30)];
    smoke(200, |seed| 100 + (seed * 7) % 300, spirv::check, &least);
}

/// What programs for machines must reach at least.
const PROGRAMS: [(&str, u64); 7] = [
    ("programs", 150),
    ("ended", 60),
    ("schedules", 40),
    ("rounds", 800),
    ("instructions", 30_000),
    ("divergent", 300),
    ("interrupts", 20),
];

/// How many programs for machines the environment's `HARP_PROGRAMS` asks for.
fn programs(usual: u64) -> u64 {
    from_environment("HARP_PROGRAMS", usual)
}

#[test]
fn machine() {
    let least = [&PROGRAMS[..], &[("changed code", 5)]].concat();
    let reached = smoke(programs(2000), |_| 1500, machine::check, &least);
    assert_host_code(&reached, 1);
    assert!(reached["nans"] * 4 < reached["programs"], "{reached:?}");
    let kinds = |of: &str| reached.keys().filter(|name| name.starts_with(of)).count();
    assert!(kinds("opcode ") * 10 > Opcode::ALL.len() * 8, "{reached:?}");
    assert!(kinds("trap ") > 10, "{reached:?}");
}

/// Where there is host code, it must have run, and left for all reasons: as often as in an ordinary run of `machine`, or so
/// many times less.
fn assert_host_code(reached: &Counts, less: u64) {
    if harp_native::Native::new(harp_native::When::AtOnce).is_none() {
        return;
    }
    for (what, least) in [
        ("host code regions", 200),
        ("host code instructions", 50_000),
        ("host code left for budget", 300),
        ("host code left for foreign", 2000),
        ("host code left for a barrier", 1000),
        ("host code went on behind a barrier", 300),
        ("host code left for access", 500),
        ("host code left for trap", 300),
        ("host code left for guard", 100),
        ("host code left for end", 10),
        ("host code left for entry", 200),
        ("recorded code regions", 200),
        ("recorded code instructions", 100_000),
        ("recorded code left for budget", 300),
        ("recorded code left for foreign", 5000),
        ("recorded code left for guard", 50),
        ("recorded code left for entry", 180),
    ] {
        assert!(reached[what] > least / less, "{what}: {reached:?}");
    }
}

/// On machines with shared registers. `HARP_PROGRAMS` is how many programs; with 20,000 every opcode must be seen with
/// a shared destination, source and guard, as far as it has operands.
#[test]
fn machine_with_shared_registers() {
    let programs = programs(350);
    let audits = [("mismatches", 20), ("audits without a mismatch", 80)];
    let least = [&PROGRAMS[..], &audits].concat();
    let reached = smoke(programs, |_| 1500, machine::check_shared, &least);
    assert_host_code(&reached, 4);
    assert!(reached["nans"] * 4 < reached["programs"], "{reached:?}");
    let kinds = |of: &str| reached.keys().filter(|name| name.starts_with(of)).count();
    assert!(kinds("trap ") > 10 && kinds("shared row ") == 11, "{reached:?}");
    let unseen: Vec<_> = shared_uses().filter(|used| !reached.contains_key(used)).collect();
    let permitted = if programs < 20_000 { 120 } else { 0 };
    assert!(unseen.len() <= permitted, "{} unseen: {unseen:?}", unseen.len());
}

/// Every way in which an instruction can use a shared register, by the names of its counts.
fn shared_uses() -> impl Iterator<Item = String> {
    Opcode::ALL.iter().flat_map(|opcode| {
        let has = |is_wanted: fn(Role) -> bool| {
            let mut operands = opcode.operands().iter();
            operands.any(|o| o.kind.register().is_some_and(|(_, role)| is_wanted(role)))
        };
        let ways = [
            ("guard", true),
            ("source", has(|role| role == Role::Use)),
            ("destination", has(|role| role != Role::Use)),
        ];
        let name = opcode.mnemonic();
        ways.into_iter()
            .filter(|(_, is_there)| *is_there)
            .map(move |(way, _)| format!("shared {way} {name}"))
    })
}

/// Runs `check` on all files of `fuzz/regressions/<target>`: seeds, and inputs that once failed.
#[expect(clippy::print_stdout, reason = "the output of tests is captured, and shown if they fail")]
fn replay(target: &str, check: impl Fn(&[u8]) -> Counts) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/regressions");
    let Ok(files) = read_dir(format!("{folder}/{target}")) else { return };
    let mut reached = Counts::new();
    for file in files {
        let path = file.expect("the folder can be read").path();
        println!("{}", path.display());
        merge(&mut reached, check(&std::fs::read(&path).expect("the file can be read")));
    }
    assert_ne!(reached, Counts::new(), "the files of {target} come to nothing");
}

#[test]
fn regressions() {
    replay("decode", isa::check);
    replay("hof", hof::check);
    replay("asm", asm::check);
    replay("builder", builder::check);
    replay("machine", machine::check);
    replay("machine", machine::check_shared);
    replay("spirv", spirv::check);
    for kind in Kind::ALL {
        replay(kind.name(), |bytes| {
            fuzz(kind, bytes);
            counts([("cases", 1)])
        });
    }
}
