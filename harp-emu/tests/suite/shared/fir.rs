//! The filter of Lee et al. (CGO 2013, figure 1), by hand: what it computes, and what it costs as counted there.

use harp_emu::{Activity, Collect, Machine, MachineConfig, Memory, Path, Profile, RegistersNamed};
use harp_isa::ArchId;
use harp_isa::Sharing;

use crate::common::assemble_text;

/// Coefficients, and with them rounds of the loop.
const LENGTH: u64 = 7;
const SAMPLES: u64 = 0x1000;
const COEFFICIENTS: u64 = 0x800;
const RESULTS: u64 = 0x1800;

/// Registers as in figure 1(b), in machine `4w32/16/32/16+x`. `loop` and `end` are where the loop begins and ends.
fn in_each_lane() -> String {
    format!(
        "ldi %r10 #32; jalis %r11 %r10 all
         all: tid %r9; ldi %r1 #{SAMPLES}; ldi %r2 #{COEFFICIENTS}; ldi %r3 #{LENGTH}; ldi %r4 #{RESULTS}
         ldi %r6 #0; shli %r5 %r9 #2; add %r1 %r1 %r5; ldi %r7 #0
         loop: ld %r5 %r2 #0; ld %r8 %r1 #0; ffma %r6 %r5 %r8
         addi %r7 %r7 #1; addi %r1 %r1 #4; addi %r2 %r2 #4; ltp @p0 %r7 %r3; @p0 ? jmpi loop
         end: shli %r5 %r9 #2; add %r4 %r4 %r5; st %r6 %r4 #0; halt"
    )
}

/// Registers as in figure 1(c), in machine `4w24/12/32/16+x+s8/4`.
fn with_shared_registers() -> String {
    format!(
        "ldi %r10 #32; jalis %r11 %r10 all
         all: ldi %s1 #{SAMPLES}; ldi %s2 #{COEFFICIENTS}; ldi %s3 #{LENGTH}; ldi %s4 #{RESULTS}
         ldi %r6 #0; ldi %s7 #0
         loop: ld %s5 %s2 #0; ld %r8 %s1 #0; ffma %r6 %s5 %r8
         addi %s7 %s7 #1; addi %s1 %s1 #4; addi %s2 %s2 #4; ltp @s0 %s7 %s3; @s0 ? jmpi loop
         end: st %r6 %s4 #0; halt"
    )
}

fn sample(i: u64) -> f32 {
    (i * i % 11) as f32 - 4.5
}

fn coefficient(i: u64) -> f32 {
    1.0 / (i + 1) as f32
}

/// Runs the filter, checks its results, and returns what the instructions between `loop` and `end` have cost.
fn loop_of(id: &str, text: &str) -> (Profile, Vec<u64>) {
    let arch: ArchId = id.parse().unwrap();
    let object = harp_isa::assemble(text, arch, &[]).unwrap();
    let image = harp_isa::link(&[&object], 0).unwrap();
    let of = |path, collect| {
        let memory = Memory::new(arch.word(), 0x2000).unwrap();
        memory.write(0, &assemble_text(arch, text)).unwrap();
        for i in 0..LENGTH + 32 {
            memory.write(SAMPLES + 4 * i, &sample(i).to_le_bytes()).unwrap();
        }
        for i in 0..LENGTH {
            memory.write(COEFFICIENTS + 4 * i, &coefficient(i).to_le_bytes()).unwrap();
        }
        let config = MachineConfig {
            path,
            collect,
            audit_shared: path == Path::Precise,
            ..MachineConfig::new(arch)
        };
        let mut machine = Machine::new(config, &memory).unwrap();
        machine.run().unwrap();
        let profile = machine.profile();
        drop(machine);
        for lane in 0..32 {
            let terms = (0..LENGTH).map(|i| (coefficient(i), sample(lane + i)));
            let expected = terms.fold(0f32, |sum, (a, b)| a.mul_add(b, sum));
            let mut bytes = [0; 4];
            memory.read(RESULTS + 4 * lane, &mut bytes).unwrap();
            assert_eq!(f32::from_le_bytes(bytes), expected, "{id} lane {lane}");
        }
        profile
    };
    of(Path::Fast, Collect::empty());
    let profile = of(Path::Precise, Collect::SCALARS);
    let range = image.symbol("loop").unwrap()..image.symbol("end").unwrap();
    (profile, range.step_by(4).collect())
}

fn sum(profile: &Profile, pcs: &[u64]) -> Activity {
    pcs.iter().map(|pc| profile.scalars[pc].activity).sum()
}

#[test]
fn a_round_costs_what_is_published() {
    let rounds = |operations, reads, writes, addresses, data| Activity {
        operations: operations * LENGTH,
        reads: reads * LENGTH,
        writes: writes * LENGTH,
        addresses: addresses * LENGTH,
        data: data * LENGTH,
    };
    let (each, at) = loop_of("4w32/16/32/16+x", &in_each_lane());
    assert_eq!((at.len(), sum(&each, &at)), (8, rounds(256, 352, 224, 64, 64)));
    let (shared, at) = loop_of("4w24/12/32/16+x+s8/4", &with_shared_registers());
    assert_eq!((at.len(), sum(&shared, &at)), (8, rounds(39, 73, 69, 2, 33)));
    let done: Vec<_> = at.iter().map(|pc| shared.scalars[pc].sharing).collect();
    let [once, row, each] = [Sharing::Once, Sharing::Row, Sharing::Each];
    assert_eq!(done, [once, row, each, once, once, once, once, once]);
    assert!(at.iter().all(|pc| shared.scalars[pc].together == LENGTH));
}

/// 9 registers of each lane, or 2 and 6 shared ones; with predicates, which the publication has in registers.
#[test]
fn registers_of_a_warp() {
    let named = |id: &str, text: &str| {
        let (profile, _) = loop_of(id, text);
        // Without those by which lanes are activated.
        let behind = profile.scalars.range(8..).map(|(_, counts)| counts.instruction);
        RegistersNamed::of(behind, profile.arch)
    };
    let each = named("4w32/16/32/16+x", &in_each_lane());
    assert_eq!(each, RegistersNamed { gprs: 9, preds: 1, ..RegistersNamed::default() });
    assert_eq!(each.in_warp(32), [288, 32]);
    let shared = named("4w24/12/32/16+x+s8/4", &with_shared_registers());
    let expected = RegistersNamed { gprs: 2, preds: 0, shared_gprs: 6, shared_preds: 1 };
    assert_eq!((shared, shared.in_warp(32)), (expected, [70, 1]));
}
