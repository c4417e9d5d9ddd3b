//! Traces as text. The lines are described at [`TraceWriter`](super::TraceWriter).

use std::fmt::{self, Write};

use super::{Access, Divergence, Executed, Retire, mask, message};
use crate::inspect::StackEntry;
use crate::notation::{LaneMask, Register};

/// Appends the line of an instruction.
pub(super) fn instruction(line: &mut String, executed: &Executed<'_>) {
    append(line, format_args!("{}\n", InstructionLine(executed)));
}

/// Appends the line of a `split` or `join`.
pub(super) fn divergence(line: &mut String, divergence: &Divergence<'_>) {
    append(line, format_args!("{}\n", DivergenceLine(divergence)));
}

fn append(line: &mut String, text: fmt::Arguments<'_>) {
    line.write_fmt(text).expect("a string takes everything");
}

/// The core, warp and pc of an instruction.
struct Place<'a>(&'a Retire<'a>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Retire { core, warp, pc, .. } = self.0;
        write!(f, "core {core} warp {warp} pc {pc:#x}")
    }
}

struct InstructionLine<'a>(&'a Executed<'a>);

impl fmt::Display for InstructionLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Executed { retire, active, writes, access } = self.0;
        let executing = mask(retire, retire.executing);
        write!(f, "{} active {active} executing {executing}: ", Place(retire))?;
        write!(f, "{}", retire.instruction.display(retire.arch))?;
        if let Some(Access { kind, addresses, values }) = access
            && !addresses.is_empty()
        {
            write!(f, " | {} {}", kind.name(), Values(addresses))?;
            if !values.is_empty() {
                write!(f, " = {}", Values(values))?;
            }
        }
        for (register, values) in writes {
            write!(f, " | {} = {}", Register(*register, retire.arch), Values(values))?;
        }
        match message(retire.trap) {
            Some(message) => write!(f, " | trap: {message}"),
            None => Ok(()),
        }
    }
}

struct DivergenceLine<'a>(&'a Divergence<'a>);

impl fmt::Display for DivergenceLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Divergence { retire, before, after, pushed, popped, depth_before, depth_after } =
            self.0;
        let mnemonic = retire.instruction.op.opcode().mnemonic();
        write!(f, "{} {mnemonic}: {before}", Place(retire))?;
        if let Some(message) = message(retire.trap) {
            return write!(f, ", trap: {message}");
        }
        write!(f, " -> {after}")?;
        for (name, entries) in [("push", pushed.as_slice()), ("pop", popped)] {
            if !entries.is_empty() {
                write!(f, ", {name}")?;
            }
            for StackEntry { mask, resume, .. } in entries {
                write!(f, " {}", LaneMask { mask: *mask, lanes: retire.arch.lanes() })?;
                if let Some(pc) = resume {
                    write!(f, "@{pc:#x}")?;
                }
            }
        }
        write!(f, ", depth {depth_before} -> {depth_after}")
    }
}

/// Values of lanes: a single one if all are equal.
struct Values<'a>(&'a [u64]);

impl fmt::Display for Values<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all_equal = self.0.windows(2).all(|pair| pair[0] == pair[1]);
        let shown = if all_equal { &self.0[..1.min(self.0.len())] } else { self.0 };
        for (i, value) in shown.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            write!(f, "{gap}{value:#x}")?;
        }
        Ok(())
    }
}
