//! Counts of what lanes do each for themselves, and what is done once for all of them, as in figures 5 and 6 of Lee et
//! al. (CGO 2013).

use std::iter::Sum;
use std::ops::AddAssign;

use harp_isa::{ArchId, Instruction, Op, OpcodeFlags, Operand, Role, Sharing};

use crate::observe::{AccessKind, Issue};

/// What an instruction has cost, counted in lanes.
///
/// What lanes share counts once, what each has for itself once a lane. So on a machine without shared registers all
/// counts are those of lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarCounts {
    /// The instruction; the first one, if code has changed.
    pub instruction: Instruction,
    /// How it counts: as its [`Op::sharing`](harp_isa::Op::sharing) says. On machines with shared registers one whose
    /// guard and operands name no register of a lane, such as a jump under a shared guard, is also done once.
    pub sharing: Sharing,
    /// How often a warp issued it (figure 6a).
    pub issued: u64,
    /// How often all lanes that were last activated together were active then.
    pub together: u64,
    /// What it did.
    pub activity: Activity,
}

/// What instructions did, counted in lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct Activity {
    /// Operations (figure 6b): 1 for what is done once and for the access to a row, else the lanes that execute. What may
    /// change the pc or the active lanes is an operation of all active ones, whatever its guard.
    pub operations: u64,
    /// Operands that were read (6c), the guard included: 1 if it is shared, else the lanes that read it. All active
    /// lanes read the guard.
    pub reads: u64,
    /// Operands that were written (6d).
    pub writes: u64,
    /// Addresses of memory (6e): 1 for what is done once and for a row, else the lanes.
    pub addresses: u64,
    /// Words or parts of words of memory (6f): 1 for what is done once, else the lanes.
    pub data: u64,
}

/// How many registers instructions name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegistersNamed {
    /// General registers of each lane.
    pub gprs: u32,
    /// Predicates of each lane.
    pub preds: u32,
    /// General registers that lanes share.
    pub shared_gprs: u32,
    /// Predicates that lanes share.
    pub shared_preds: u32,
}

impl ScalarCounts {
    pub(super) fn new(instruction: Instruction, arch: ArchId) -> ScalarCounts {
        let sharing = match instruction.op.sharing(arch) {
            Sharing::Each if arch.has_shared() && !names_own(&instruction, arch) => Sharing::Once,
            sharing => sharing,
        };
        let activity = Activity::default();
        ScalarCounts { instruction, sharing, issued: 0, together: 0, activity }
    }

    pub(super) fn count(&mut self, issue: &Issue<'_>) {
        let active = issue.state.active();
        let activated = u64::MAX >> (64 - u32::from(issue.state.active_count()));
        self.issued += 1;
        self.together += u64::from(active == activated);
        self.count_operands(issue);
        let executing = if steers(issue.instruction.op) { active } else { issue.enabled };
        let lanes = u64::from(executing.count_ones());
        let once = lanes.min(1);
        let is_each = self.sharing == Sharing::Each;
        self.activity.operations += if is_each { lanes } else { once };
        if AccessKind::of(issue.instruction.op.opcode()).is_some() {
            self.activity.addresses += if is_each { lanes } else { once };
            self.activity.data += if self.sharing == Sharing::Once { once } else { lanes };
        }
    }

    fn count_operands(&mut self, issue: &Issue<'_>) {
        let Issue { arch, instruction, enabled, .. } = *issue;
        if let Some(guard) = instruction.guard {
            let shared = arch.is_shared(guard);
            let active = issue.state.active().count_ones();
            self.activity.reads += if shared { 1 } else { active.into() };
        }
        if enabled == 0 {
            return;
        }
        // What is done once takes a lane's own operands from one of them, but for votes and shuffles.
        let flags = instruction.op.opcode().flags();
        let in_one = flags.contains(OpcodeFlags::ONCE_PER_WARP)
            || (self.sharing == Sharing::Once && !flags.contains(OpcodeFlags::CROSS_LANE));
        let lanes = if in_one { 1 } else { u64::from(enabled.count_ones()) };
        // The roles of the table: a destination under a guard is not read.
        Instruction::new(instruction.op).for_each_register(|operand, _, role| {
            let count = if arch.is_shared(operand) { 1 } else { lanes };
            self.activity.reads += if role == Role::Def { 0 } else { count };
            self.activity.writes += if role == Role::Use { 0 } else { count };
        });
    }

    pub(super) fn merge(&mut self, other: &ScalarCounts) {
        self.issued += other.issued;
        self.together += other.together;
        self.activity += other.activity;
    }
}

impl RegistersNamed {
    /// How many registers these instructions name on `arch`.
    pub fn of(instructions: impl IntoIterator<Item = Instruction>, arch: ArchId) -> RegistersNamed {
        let (mut gprs, mut preds) = (0u64, 0u64);
        let mut name = |operand| match operand {
            Operand::Gpr(reg) => gprs |= 1 << (reg.index() % 64),
            Operand::Pred(pred) => preds |= 1 << (pred.index() % 64),
            Operand::Imm(_) => {}
        };
        for instruction in instructions {
            instruction.guard.into_iter().for_each(|guard| name(guard.into()));
            instruction.op.for_each_operand(&mut name);
        }
        let own = |count: u8| u64::MAX >> (64 - u32::from(count));
        let (own_gprs, own_preds) = (own(arch.gprs()), own(arch.preds()));
        RegistersNamed {
            gprs: (gprs & own_gprs).count_ones(),
            preds: (preds & own_preds).count_ones(),
            shared_gprs: (gprs & !own_gprs).count_ones(),
            shared_preds: (preds & !own_preds).count_ones(),
        }
    }

    /// The registers that a warp of `lanes` lanes needs (figure 5b): general ones and predicates.
    pub fn in_warp(self, lanes: u8) -> [u32; 2] {
        let lanes = u32::from(lanes);
        [lanes * self.gprs + self.shared_gprs, lanes * self.preds + self.shared_preds]
    }
}

impl AddAssign for Activity {
    fn add_assign(&mut self, more: Activity) {
        self.operations += more.operations;
        self.reads += more.reads;
        self.writes += more.writes;
        self.addresses += more.addresses;
        self.data += more.data;
    }
}

impl Sum for Activity {
    fn sum<I: Iterator<Item = Activity>>(activities: I) -> Activity {
        activities.fold(Activity::default(), |mut sum, more| {
            sum += more;
            sum
        })
    }
}

/// Whether it may change the pc or the active lanes.
fn steers(op: Op) -> bool {
    op.opcode().flags().contains(OpcodeFlags::CONTROL)
        || matches!(op, Op::Split {} | Op::Join {} | Op::Halt {})
}

/// Whether its guard or an operand is a register of a lane's own.
fn names_own(instruction: &Instruction, arch: ArchId) -> bool {
    let mut found = instruction.guard.is_some_and(|guard| !arch.is_shared(guard));
    instruction.for_each_register(|operand, _, _| found |= !arch.is_shared(operand));
    found
}

/// `once`, `row` or `each`.
pub(super) fn name(sharing: Sharing) -> &'static str {
    match sharing {
        Sharing::Once => "once",
        Sharing::Row => "row",
        Sharing::Each => "each",
    }
}
