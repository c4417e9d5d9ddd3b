//! Three programs that a report on PDOM reconvergence for HARP describes (a divergent warp, nested
//! divergence, a divergent loop; two warps of four lanes), with predicated splits: their results and
//! how their masks change, worked out by hand.

use expect_test::{Expect, expect};
use harp_emu::{Machine, MachineConfig, Memory, Reconvergence, Trace, TraceFormat, TraceWriter};
use harp_isa::{ArchId, assemble, link};

const PROLOGUE: &str = include_str!("pdom/prologue.s");
const EPILOGUE: &str = include_str!("pdom/epilogue.s");
const DIVERGENT_WARP: &str = include_str!("pdom/divergent_warp.s");
const NESTED: &str = include_str!("pdom/nested.s");
const LOOP_PDOM: &str = include_str!("pdom/loop_pdom.s");
const LOOP_JOIN: &str = include_str!("pdom/loop_join.s");

const OUT: u64 = 0x200;

/// The words that the lanes of both warps leave, and the divergence trace.
fn run(body: &str, reconvergence: Reconvergence) -> ([[u32; 4]; 2], String) {
    let arch: ArchId = "4w8/8/4/2+x".parse().unwrap();
    let text = [PROLOGUE, body, EPILOGUE].concat();
    let image = link(&[&assemble(&text, arch, &[]).unwrap()], 0).unwrap();
    let memory = Memory::new(arch.word(), 0x400).unwrap();
    memory.write(0, &image.bytes).unwrap();
    let config = MachineConfig { fuel: Some(1000), reconvergence, ..MachineConfig::new(arch) };
    let mut machine = Machine::new(config, &memory).unwrap();
    let mut trace = TraceWriter::new(Trace::Divergence, TraceFormat::Text, Vec::new());
    machine.run_observed(&mut trace).unwrap();
    let word = |warp: u64, lane: u64| {
        let mut bytes = [0; 4];
        memory.read(OUT + 16 * warp + 4 * lane, &mut bytes).unwrap();
        u32::from_le_bytes(bytes)
    };
    let results = [0, 1].map(|warp| [0, 1, 2, 3].map(|lane| word(warp, lane)));
    (results, String::from_utf8(trace.finish().unwrap()).unwrap())
}

/// Both warps do the same, warp 0 first.
fn check(body: &str, reconvergence: Reconvergence, results: [[u32; 4]; 2], of_a_warp: &Expect) {
    let (actual, trace) = run(body, reconvergence);
    assert_eq!(actual, results);
    let of = |warp| {
        let place = format!("core 0 warp {warp} pc ");
        trace
            .lines()
            .filter_map(|line| line.strip_prefix(&place))
            .fold(String::new(), |all, line| all + line + "\n")
    };
    of_a_warp.assert_eq(&of(0));
    of_a_warp.assert_eq(&of(1));
    assert_eq!(of(0).lines().count() + of(1).lines().count(), trace.lines().count());
}

#[test]
fn divergent_warp() {
    let trace = expect![[r#"
        0x3c split: 1111 -> 1100, push 1111 0011@0x40, depth 0 -> 2
        0x50 join: 1100 -> 0011, pop 0011@0x40, depth 2 -> 1
        0x50 join: 0011 -> 1111, pop 1111, depth 1 -> 0
    "#]];
    for reconvergence in [Reconvergence::Join, Reconvergence::Pdom] {
        check(DIVERGENT_WARP, reconvergence, [[3, 3, 4, 4], [6, 6, 7, 7]], &trace);
    }
}

#[test]
fn nested_divergence() {
    let trace = expect![[r#"
        0x3c split: 1111 -> 1100, push 1111 0011@0x40, depth 0 -> 2
        0x54 split: 1100 -> 1000, push 1100 0100@0x58, depth 2 -> 4
        0x68 join: 1000 -> 0100, pop 0100@0x58, depth 4 -> 3
        0x68 join: 0100 -> 1100, pop 1100, depth 3 -> 2
        0x6c join: 1100 -> 0011, pop 0011@0x40, depth 2 -> 1
        0x6c join: 0011 -> 1111, pop 1111, depth 1 -> 0
    "#]];
    for reconvergence in [Reconvergence::Join, Reconvergence::Pdom] {
        check(NESTED, reconvergence, [[5, 6, 4, 4], [8, 9, 7, 7]], &trace);
    }
}

const TABLES: [[u32; 4]; 2] = [[2, 4, 6, 8], [5, 10, 15, 20]];

#[test]
fn divergent_loop_with_pdom_reconvergence() {
    let trace = expect![[r#"
        0x48 split: 1111 -> 0111, push 1111 1000@0x4c, depth 0 -> 2
        0x48 split: 0111 -> 0011, depth 2 -> 2
        0x48 split: 0011 -> 0001, depth 2 -> 2
        0x48 split: 0001 -> 1111, pop 1000@0x4c 1111, depth 2 -> 0
    "#]];
    check(LOOP_PDOM, Reconvergence::Pdom, TABLES, &trace);
}

#[test]
fn divergent_loop_with_joins() {
    let trace = expect![[r#"
        0x40 split: 1111 -> 1111, push 1111, depth 0 -> 1
        0x54 join: 1111 -> 1111, pop 1111, depth 1 -> 0
        0x40 split: 1111 -> 0111, push 1111 1000@0x44, depth 0 -> 2
        0x54 join: 0111 -> 1000, pop 1000@0x44, depth 2 -> 1
        0x54 join: 1000 -> 1111, pop 1111, depth 1 -> 0
        0x40 split: 1111 -> 0011, push 1111 1100@0x44, depth 0 -> 2
        0x54 join: 0011 -> 1100, pop 1100@0x44, depth 2 -> 1
        0x54 join: 1100 -> 1111, pop 1111, depth 1 -> 0
        0x40 split: 1111 -> 0001, push 1111 1110@0x44, depth 0 -> 2
        0x54 join: 0001 -> 1110, pop 1110@0x44, depth 2 -> 1
        0x54 join: 1110 -> 1111, pop 1111, depth 1 -> 0
    "#]];
    for reconvergence in [Reconvergence::Join, Reconvergence::Pdom] {
        check(LOOP_JOIN, reconvergence, TABLES, &trace);
    }
}

/// Where splits always push, the lanes that leave the loop without a join wait for one for ever.
#[test]
fn a_loop_without_joins_needs_pdom_reconvergence() {
    let trace = expect![[r#"
        0x48 split: 1111 -> 0111, push 1111 1000@0x4c, depth 0 -> 2
        0x48 split: 0111 -> 0011, push 0111 0100@0x4c, depth 2 -> 4
        0x48 split: 0011 -> 0001, push 0011 0010@0x4c, depth 4 -> 6
        0x48 split: 0001 -> 0001, push 0001, depth 6 -> 7
    "#]];
    check(LOOP_PDOM, Reconvergence::Join, [[0, 0, 0, 8], [0, 0, 0, 20]], &trace);
}
