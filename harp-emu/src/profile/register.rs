//! Counts of reads and writes of registers.

use harp_isa::{Gpr, OpcodeFlags, Operand, Pred, RegClass, Role};

use super::Histogram;
use crate::observe::Issue;

/// How often registers were read and written.
///
/// An operand counts if any lane executes the instruction: as read, written or both, according to its role in
/// the instruction table, whether or not the instruction has a guard. A register that is an operand
/// twice counts twice. The guard counts as read in the active lanes, even if no lane executes the
/// instruction. `wspawn` and `bar` use their operands in one lane, the first that executes. The registers
/// that `clone` copies are not operands and do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisterCounts {
    gprs: Vec<RegisterCount>,
    preds: Vec<RegisterCount>,
    /// In how many lanes each read took place.
    pub reads: Histogram,
    /// In how many lanes each write took place.
    pub writes: Histogram,
}

/// How often a register was read and written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct RegisterCount {
    /// Reads: one for each operand of a warp instruction.
    pub reads: u64,
    /// Writes: one for each operand of a warp instruction.
    pub writes: u64,
    /// The sum of the lanes of all reads.
    pub lane_reads: u64,
    /// The sum of the lanes of all writes.
    pub lane_writes: u64,
}

impl RegisterCounts {
    /// The counts of a general register.
    pub fn gpr(&self, reg: Gpr) -> RegisterCount {
        self.gprs.get(usize::from(reg)).copied().unwrap_or_default()
    }

    /// The counts of a predicate.
    pub fn pred(&self, pred: Pred) -> RegisterCount {
        self.preds.get(usize::from(pred)).copied().unwrap_or_default()
    }

    /// Every register that was read or written: the general ones, then the predicates.
    pub fn registers(&self) -> impl Iterator<Item = (Operand, RegisterCount)> + '_ {
        let gprs = (0..).map(|index| Operand::Gpr(Gpr::new(index))).zip(&self.gprs);
        let preds = (0..).map(|index| Operand::Pred(Pred::new(index))).zip(&self.preds);
        let used = |&(_, count): &(Operand, &RegisterCount)| *count != RegisterCount::default();
        gprs.chain(preds).filter(used).map(|(register, &count)| (register, count))
    }

    pub(super) fn count(&mut self, issue: &Issue<'_>) {
        if let Some(guard) = issue.instruction.guard {
            self.read(RegClass::Pred, guard.into(), issue.state.active());
        }
        if issue.executing == 0 {
            return;
        }
        let op = issue.instruction.op;
        let once = op.opcode().flags().contains(OpcodeFlags::ONCE_PER_WARP);
        let lowest = issue.executing & issue.executing.wrapping_neg();
        let lanes = if once { lowest } else { issue.executing };
        // The roles of the table count. Those under the guard also read the old value of a destination, which
        // lanes that do not execute keep.
        let mut descriptions = op.opcode().operands().iter();
        op.for_each_operand(|operand| {
            let kind = descriptions.next().expect("the table describes every operand").kind;
            let index = match operand {
                Operand::Gpr(reg) => reg.into(),
                Operand::Pred(pred) => pred.into(),
                Operand::Imm(_) => return,
            };
            let Some((class, role)) = kind.register() else { return };
            if role != Role::Def {
                self.read(class, index, lanes);
            }
            if role != Role::Use {
                self.write(class, index, lanes);
            }
        });
    }

    fn read(&mut self, class: RegClass, index: usize, lanes: u64) {
        self.reads.add_lanes(lanes);
        let count = at(self.file(class), index);
        count.reads += 1;
        count.lane_reads += u64::from(lanes.count_ones());
    }

    fn write(&mut self, class: RegClass, index: usize, lanes: u64) {
        self.writes.add_lanes(lanes);
        let count = at(self.file(class), index);
        count.writes += 1;
        count.lane_writes += u64::from(lanes.count_ones());
    }

    fn file(&mut self, class: RegClass) -> &mut Vec<RegisterCount> {
        match class {
            RegClass::Gpr => &mut self.gprs,
            RegClass::Pred => &mut self.preds,
        }
    }

    pub(super) fn merge(&mut self, other: &RegisterCounts) {
        for (class, more) in [(RegClass::Gpr, &other.gprs), (RegClass::Pred, &other.preds)] {
            for (index, more) in more.iter().enumerate() {
                let count = at(self.file(class), index);
                count.reads += more.reads;
                count.writes += more.writes;
                count.lane_reads += more.lane_reads;
                count.lane_writes += more.lane_writes;
            }
        }
        self.reads.merge(&other.reads);
        self.writes.merge(&other.writes);
    }
}

/// The counts of register number `index`.
fn at(file: &mut Vec<RegisterCount>, index: usize) -> &mut RegisterCount {
    if file.len() <= index {
        file.resize(index + 1, RegisterCount::default());
    }
    &mut file[index]
}
