//! Traces as JSON. The objects are described at [`TraceWriter`](super::TraceWriter).

use harp_isa::Operand;
use serde::Serialize;

use super::{Access, Divergence, Executed, mask, message};
use crate::inspect::StackEntry;
use crate::json::Hex;
use crate::notation::{LaneMask, Register};

/// Appends the line of an instruction.
pub(super) fn instruction(line: &mut String, executed: &Executed<'_>) {
    let Executed { retire, active, writes, access } = executed;
    let write = |(register, values): &(Operand, Vec<u64>)| WriteLine {
        register: Register(*register, retire.arch),
        values: hex(values),
    };
    append(
        line,
        &InstructionLine {
            event: "instruction",
            core: retire.core,
            warp: retire.warp,
            pc: Hex(retire.pc),
            text: retire.instruction.display(retire.arch).to_string(),
            active: *active,
            executing: mask(retire, retire.executing),
            writes: writes.iter().map(write).collect(),
            access: access.map(AccessLine::new),
            next: Hex(retire.next),
            trap: message(retire.trap),
        },
    );
}

/// Appends the line of a `split` or `join`.
pub(super) fn divergence(line: &mut String, divergence: &Divergence<'_>) {
    let Divergence { retire, before, after, pushed, popped, depth_before, depth_after } =
        divergence;
    let entry = |entry: &StackEntry| EntryLine {
        mask: mask(retire, entry.mask),
        resume: entry.resume.map(Hex),
    };
    append(
        line,
        &DivergenceLine {
            event: retire.instruction.op.opcode().mnemonic(),
            core: retire.core,
            warp: retire.warp,
            pc: Hex(retire.pc),
            before: *before,
            executing: mask(retire, retire.executing),
            pushed: pushed.iter().map(entry).collect(),
            popped: popped.iter().map(entry).collect(),
            after: *after,
            depth_before: *depth_before,
            depth_after: *depth_after,
            trap: message(retire.trap),
        },
    );
}

fn append(line: &mut String, value: &impl Serialize) {
    line.push_str(&serde_json::to_string(value).expect("strings, numbers and lists of them"));
    line.push('\n');
}

#[derive(Serialize)]
struct InstructionLine {
    event: &'static str,
    core: u16,
    warp: u8,
    pc: Hex,
    text: String,
    active: LaneMask,
    executing: LaneMask,
    writes: Vec<WriteLine>,
    access: Option<AccessLine>,
    next: Hex,
    trap: Option<String>,
}

#[derive(Serialize)]
struct WriteLine {
    register: Register,
    values: Vec<Hex>,
}

#[derive(Serialize)]
struct AccessLine {
    kind: &'static str,
    addresses: Vec<Hex>,
    values: Vec<Hex>,
}

#[derive(Serialize)]
struct DivergenceLine {
    event: &'static str,
    core: u16,
    warp: u8,
    pc: Hex,
    before: LaneMask,
    executing: LaneMask,
    pushed: Vec<EntryLine>,
    popped: Vec<EntryLine>,
    after: LaneMask,
    depth_before: usize,
    depth_after: usize,
    trap: Option<String>,
}

#[derive(Serialize)]
struct EntryLine {
    mask: LaneMask,
    resume: Option<Hex>,
}

impl AccessLine {
    fn new(access: &Access) -> AccessLine {
        AccessLine {
            kind: access.kind.name(),
            addresses: hex(&access.addresses),
            values: hex(&access.values),
        }
    }
}

fn hex(values: &[u64]) -> Vec<Hex> {
    values.iter().copied().map(Hex).collect()
}
