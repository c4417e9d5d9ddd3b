//! Profiles as text.

use std::cmp::Reverse;
use std::fmt;

use super::scalar::name;
use super::{Activity, Histogram, Profile};
use crate::config::Collect;
use crate::notation::Register;

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.collect.iter() {
            match part {
                Collect::OPCODES => self.write_opcodes(f)?,
                Collect::LANES => self.write_lanes(f)?,
                Collect::DEPTH => self.write_depth(f)?,
                Collect::BRANCHES => self.write_branches(f)?,
                Collect::REGISTERS => self.write_registers(f)?,
                Collect::MEMORY => self.write_memory(f)?,
                Collect::SCALARS => self.write_scalars(f)?,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Profile {
    fn write_opcodes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== Opcodes ===")?;
        writeln!(f, "{:<10} {:>12} {:>12} {:>14}", "opcode", "issued", "skipped", "lanes")?;
        let mut rows: Vec<_> = self.opcodes.iter().collect();
        rows.sort_by_key(|(_, counts)| Reverse(counts.issued));
        for (opcode, counts) in rows {
            let mnemonic = opcode.mnemonic();
            let super::OpcodeCounts { issued, skipped, lanes } = counts;
            writeln!(f, "{mnemonic:<10} {issued:>12} {skipped:>12} {lanes:>14}")?;
        }
        Ok(())
    }

    fn write_lanes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== Lanes ===")?;
        let efficiency =
            |part: Option<f64>| part.map_or("-".into(), |part| format!("{:.2} %", 100.0 * part));
        writeln!(f, "active efficiency: {}", efficiency(self.active_efficiency()))?;
        writeln!(f, "executing efficiency: {}", efficiency(self.executing_efficiency()))?;
        writeln!(f, "{:<10} {:>12} {:>12}", "lanes", "active", "executing")?;
        for lanes in 0..=usize::from(self.arch.lanes()) {
            let (active, executing) =
                (self.lanes.active.count(lanes), self.lanes.executing.count(lanes));
            if active != 0 || executing != 0 {
                writeln!(f, "{lanes:<10} {active:>12} {executing:>12}")?;
            }
        }
        Ok(())
    }

    fn write_depth(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== Divergence stack ===")?;
        writeln!(f, "{:<10} {:>12}", "entries", "issued")?;
        for (depth, issued) in self.depth.counts().iter().enumerate().filter(|&(_, &n)| n != 0) {
            writeln!(f, "{depth:<10} {issued:>12}")?;
        }
        Ok(())
    }

    fn write_branches(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== Branches ===")?;
        writeln!(
            f,
            "{:<10} {:<10} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>8}",
            "pc",
            "branch",
            "executed",
            "all true",
            "all false",
            "divergent",
            "lanes",
            "taken",
            "masks"
        )?;
        for (pc, branch) in &self.branches {
            let name = match branch.guard {
                Some(guard) => {
                    format!("{} {}", self.arch.pred_name(guard), branch.opcode.mnemonic())
                }
                None => branch.opcode.mnemonic().to_owned(),
            };
            let more = if branch.unlisted == 0 { "" } else { "+" };
            writeln!(
                f,
                "{:<10} {name:<10} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>8}",
                format!("{pc:#x}"),
                branch.executed,
                branch.unanimous_true,
                branch.unanimous_false,
                branch.divergent,
                branch.active.sum(),
                branch.taken.sum(),
                format!("{}{more}", branch.masks.len()),
            )?;
        }
        Ok(())
    }

    fn write_registers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== Registers ===")?;
        writeln!(
            f,
            "{:<10} {:>12} {:>14} {:>12} {:>14}",
            "register", "reads", "lane reads", "writes", "lane writes"
        )?;
        for (register, count) in self.registers.registers() {
            let register = Register(register, self.arch).to_string();
            let super::RegisterCount { reads, writes, lane_reads, lane_writes } = count;
            writeln!(
                f,
                "{register:<10} {reads:>12} {lane_reads:>14} {writes:>12} {lane_writes:>14}"
            )?;
        }
        Ok(())
    }

    fn write_scalars(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== Once or in each lane ===")?;
        writeln!(
            f,
            "{:<10} {:<5} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}  instruction",
            "pc",
            "done",
            "issued",
            "together",
            "operations",
            "reads",
            "writes",
            "addresses",
            "data"
        )?;
        for (pc, counts) in &self.scalars {
            let super::ScalarCounts { issued, together, activity, .. } = counts;
            let Activity { operations, reads, writes, addresses, data } = activity;
            let (pc, done) = (format!("{pc:#x}"), name(counts.sharing));
            write!(f, "{pc:<10} {done:<5} {issued:>12} {together:>12} {operations:>12} ")?;
            write!(f, "{reads:>12} {writes:>12} {addresses:>12} {data:>12}  ")?;
            writeln!(f, "{}", counts.instruction.display(self.arch))?;
        }
        Ok(())
    }

    fn write_memory(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "=== Memory, segments of {} bytes ===", self.segment_bytes)?;
        writeln!(
            f,
            "{:<10} {:<10} {:>12} {:>12} {:>14} {:>14} {:>14}",
            "pc", "opcode", "executed", "skipped", "lanes", "addresses", "segments"
        )?;
        let mean =
            |numbers: &Histogram| numbers.mean().map_or("-".into(), |mean| format!("{mean:.2}"));
        for (pc, memory) in &self.memory {
            writeln!(
                f,
                "{:<10} {:<10} {:>12} {:>12} {:>14} {:>14} {:>14}",
                format!("{pc:#x}"),
                memory.opcode.mnemonic(),
                memory.addresses.total(),
                memory.lanes.count(0),
                memory.lanes.sum(),
                format!("{} ({})", memory.addresses.sum(), mean(&memory.addresses)),
                format!("{} ({})", memory.segments.sum(), mean(&memory.segments)),
            )?;
        }
        Ok(())
    }
}
