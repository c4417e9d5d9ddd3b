//! Traces of a run, one line per event, as text or as JSON.
//!
//! The formats are described at [`TraceWriter`] and are stable, but new fields may be added to the
//! JSON objects.

#[cfg(feature = "json")]
mod json;
mod text;

use std::io::{self, Write};

use harp_isa::{Op, Operand, Role};

use super::{AccessKind, Issue, Observer, Retire};
use crate::inspect::StackEntry;
use crate::notation::{LaneMask, lanes_of};
use crate::trap::TrapKind;

/// What is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Trace {
    /// Nothing.
    #[default]
    None,
    /// Every `split` and `join`.
    Divergence,
    /// Every instruction; every `split` and `join` has a second line as in `Divergence`.
    Instructions,
}

/// How a trace is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceFormat {
    /// Human-readable text.
    #[default]
    Text,
    /// One JSON object per line; with feature `json`.
    #[cfg(feature = "json")]
    JsonLines,
}

/// An observer that writes a trace.
///
/// Errors are only reported by [`finish`](Self::finish), which must be called in the end.
/// Addresses, values and pcs are hexadecimal, everything else is decimal. **Masks have a digit for each
/// lane, lane 0 first**: `1000` is lane 0 of four.
///
/// # Text
///
/// A `split` or `join`:
///
/// ```text
/// core C warp W pc PC split: BEFORE -> AFTER, push MASK MASK@PC, depth D -> D
/// core C warp W pc PC join: BEFORE -> AFTER, pop MASK@PC, depth D -> D
/// ```
///
/// `BEFORE` and `AFTER` are the active masks. Entries of the divergence stack are listed in the order in
/// which they are pushed or popped; an entry with an `@` sends its lanes to that address. An entry that is on
/// the stack before and after is not listed. `push` or `pop` is missing if nothing is pushed or popped. A
/// `split` that traps: `core C warp W pc PC split: BEFORE, trap: MESSAGE`.
///
/// An instruction:
///
/// ```text
/// core C warp W pc PC active MASK executing MASK: INSTRUCTION | EFFECT | EFFECT ...
/// ```
///
/// The instruction is printed as by the disassembler. The possible effects are:
///
/// * `%rN = VALUES`, `@pN = VALUES`: the new value of the destination;
/// * `load ADDRESSES`, `atomic ADDRESSES`, `store ADDRESSES = VALUES`: accesses to memory, with the values
///   that are stored;
/// * `trap: MESSAGE`; destinations are not shown then.
///
/// `VALUES` and `ADDRESSES` have one number for each executing lane, lowest lane first, or a single number if
/// all are equal. What `clone` and `wspawn` write to other lanes is not shown.
///
/// # JSON lines
///
/// ```text
/// {"event":"split","core":0,"warp":0,"pc":"0xc","before":"1111","executing":"1100",
///  "pushed":[{"mask":"1111","resume":null},{"mask":"0011","resume":"0x10"}],"popped":[],
///  "after":"1100","depth_before":0,"depth_after":2,"trap":null}
/// {"event":"instruction","core":0,"warp":0,"pc":"0x4","text":"ld %r1 %r0 #0x8;","active":"1000",
///  "executing":"1000","writes":[{"register":"%r1","values":["0x7"]}],
///  "access":{"kind":"load","addresses":["0x108"],"values":[]},"next":"0x8","trap":null}
/// ```
///
/// `event` is `split`, `join` or `instruction`; `access` is `null` for instructions that do not access memory;
/// lists of values always have one value for each executing lane.
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    trace: Trace,
    format: TraceFormat,
    /// The first error; nothing is written after it.
    error: Option<io::Error>,
    before: Before,
}

/// The state before an instruction, as far as its trace needs it.
#[derive(Debug, Default)]
struct Before {
    active: u64,
    depth: usize,
    /// The topmost entries of the divergence stack, as many as an instruction can pop, top first.
    top: Vec<StackEntry>,
    access: Option<Access>,
}

/// The memory that an instruction accesses.
#[derive(Debug)]
struct Access {
    kind: AccessKind,
    addresses: Vec<u64>,
    /// The values that a plain store writes.
    values: Vec<u64>,
}

/// A `split` or a `join`.
struct Divergence<'a> {
    retire: &'a Retire<'a>,
    before: LaneMask,
    after: LaneMask,
    /// In the order in which they were pushed.
    pushed: Vec<StackEntry>,
    /// In the order in which they were popped.
    popped: &'a [StackEntry],
    depth_before: usize,
    depth_after: usize,
}

/// An instruction.
struct Executed<'a> {
    retire: &'a Retire<'a>,
    active: LaneMask,
    writes: Vec<(Operand, Vec<u64>)>,
    access: Option<&'a Access>,
}

impl<W: Write> TraceWriter<W> {
    /// A trace writer to `out`, which should be buffered: each line is a write.
    pub fn new(trace: Trace, format: TraceFormat, out: W) -> TraceWriter<W> {
        TraceWriter { out, trace, format, error: None, before: Before::default() }
    }

    /// The error that stopped the trace, if there was one.
    pub fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Flushes the output and returns it.
    ///
    /// # Errors
    ///
    /// The first error of all; the trace ends where it happened.
    pub fn finish(mut self) -> io::Result<W> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    /// Writes a line, unless an earlier one failed.
    fn write(&mut self, line: &str) {
        if self.error.is_none() {
            self.error = self.out.write_all(line.as_bytes()).err();
        }
    }
}

impl<W: Write> Observer for TraceWriter<W> {
    fn issue(&mut self, issue: &Issue<'_>) {
        if self.error.is_some() || !self.trace.covers(issue.instruction.op) {
            return;
        }
        let stack = issue.state.stack();
        self.before = Before {
            active: issue.state.active(),
            depth: stack.len(),
            top: stack.rev().take(MOST_POPPED).collect(),
            access: if self.trace == Trace::Instructions { Access::of(issue) } else { None },
        };
    }

    fn retire(&mut self, retire: &Retire<'_>) {
        let op = retire.instruction.op;
        if self.error.is_some() || !self.trace.covers(op) {
            return;
        }
        let mut line = String::new();
        if self.trace == Trace::Instructions {
            let executed = Executed::new(retire, &self.before);
            match self.format {
                TraceFormat::Text => text::instruction(&mut line, &executed),
                #[cfg(feature = "json")]
                TraceFormat::JsonLines => json::instruction(&mut line, &executed),
            }
        }
        if is_divergence(op) {
            let divergence = Divergence::new(retire, &self.before);
            match self.format {
                TraceFormat::Text => text::divergence(&mut line, &divergence),
                #[cfg(feature = "json")]
                TraceFormat::JsonLines => json::divergence(&mut line, &divergence),
            }
        }
        self.write(&line);
    }
}

/// The most entries of the divergence stack that an instruction pops: a loop's `split` may pop the
/// pair that it pushed.
const MOST_POPPED: usize = 2;

fn is_divergence(op: Op) -> bool {
    matches!(op, Op::Split {} | Op::Join {})
}

impl Trace {
    fn covers(self, op: Op) -> bool {
        match self {
            Trace::None => false,
            Trace::Divergence => is_divergence(op),
            Trace::Instructions => true,
        }
    }
}

impl Access {
    fn of(issue: &Issue<'_>) -> Option<Access> {
        let access = issue.memory_access()?;
        let stored = match issue.instruction.op {
            Op::St { value, .. }
            | Op::Stb { value, .. }
            | Op::Sth { value, .. }
            | Op::Stw { value, .. } => Some(value),
            _ => None,
        };
        let lanes = access.lanes.iter();
        let values = lanes.filter_map(|at| issue.state.gpr(stored?, at.lane)).collect();
        let addresses = access.lanes.iter().map(|at| at.address).collect();
        Some(Access { kind: access.kind, addresses, values })
    }
}

impl<'a> Divergence<'a> {
    fn new(retire: &'a Retire<'a>, before: &'a Before) -> Divergence<'a> {
        let depth_after = retire.state.stack().len();
        // The entries below are unchanged; of those above, find the ones that are still there.
        let below = before.depth - before.top.len();
        let above = before.top.iter().rev().zip(retire.state.stack().skip(below));
        let kept = below + above.take_while(|(old, new)| *old == new).count();
        Divergence {
            retire,
            before: mask(retire, before.active),
            after: mask(retire, retire.state.active()),
            pushed: retire.state.stack().skip(kept).collect(),
            popped: &before.top[..before.depth - kept],
            depth_before: before.depth,
            depth_after,
        }
    }
}

impl<'a> Executed<'a> {
    fn new(retire: &'a Retire<'a>, before: &'a Before) -> Executed<'a> {
        let mut writes = Vec::new();
        // The destination of a `wspawn` belongs to another warp.
        let here = !matches!(retire.instruction.op, Op::Wspawn { .. });
        if here && retire.trap.is_none() && retire.executing != 0 {
            retire.instruction.for_each_register(|operand, _, role| {
                if role != Role::Use {
                    writes.push((operand, values(retire, operand)));
                }
            });
        }
        let active = mask(retire, before.active);
        Executed { retire, active, writes, access: before.access.as_ref() }
    }
}

/// The values of a register in the lanes that executed.
fn values(retire: &Retire<'_>, operand: Operand) -> Vec<u64> {
    let in_lane = |lane| match operand {
        Operand::Gpr(reg) => retire.state.gpr(reg, lane).unwrap_or(0),
        Operand::Pred(pred) => retire.state.pred(pred) >> lane & 1,
        Operand::Imm(imm) => imm.cast_unsigned(),
    };
    lanes_of(retire.executing).map(in_lane).collect()
}

fn mask(retire: &Retire<'_>, mask: u64) -> LaneMask {
    LaneMask { mask, lanes: retire.arch.lanes() }
}

/// The message of a trap in traces.
fn message(trap: Option<&TrapKind>) -> Option<String> {
    trap.map(ToString::to_string)
}
