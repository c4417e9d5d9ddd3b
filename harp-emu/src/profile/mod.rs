//! Profiles, which count on demand what a run did.
//!
//! The counts of branches serve decisions about divergence: how often lanes agree, and on which side.

mod branch;
mod histogram;
#[cfg(feature = "json")]
mod json;
mod memory;
mod register;
mod scalar;
mod text;

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use harp_isa::{ArchId, Opcode};

pub use branch::{BranchCounts, BranchMasks, LISTED_BRANCH_MASKS};
pub use histogram::Histogram;
pub use memory::MemoryCounts;
pub use register::{RegisterCount, RegisterCounts};
pub use scalar::{Activity, RegistersNamed, ScalarCounts};

use crate::config::{Collect, MachineConfig};
use crate::observe::{Issue, Observer};

/// A profile: counts of what a run did.
///
/// [`Machine::profile`](crate::Machine::profile) gives the profile of a machine that
/// [collects](crate::MachineConfig::collect) one. A profile is also an [`Observer`], for parts of a run.
///
/// It counts *before* each instruction. So it contains every instruction issued, and one that traps as if it
/// had been carried out. An instruction that is issued again after a guest's handler counts again.
/// Instructions whose fetch fails are not issued.
///
/// *Executing* lanes are those that are active and whose guard is true, or the first of them if the instruction is carried
/// out once ([`Sharing::Once`](harp_isa::Sharing)); an instruction that no lane
/// executes is *skipped* (a `split` or `join` that is counted as skipped still has its effect).
/// Parts that [`collect`](Self::collect) does not name are empty.
///
/// Its text form has a table for each part. In JSON it is an object with a field for each part that was
/// collected; maps by pc or opcode are lists of objects there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The machine.
    pub arch: ArchId,
    /// What is counted.
    pub collect: Collect,
    /// Bytes of the segments of [`MemoryCounts::segments`].
    pub segment_bytes: NonZeroU32,
    /// Each opcode that was issued.
    pub opcodes: BTreeMap<Opcode, OpcodeCounts>,
    /// How many lanes were active, and how many executed, in each instruction.
    pub lanes: LaneCounts,
    /// How many entries the warp's divergence stack held before each issued instruction.
    pub depth: Histogram,
    /// Each branch that was issued, by pc: the instructions that may change the pc or the active
    /// mask and have a guard, and every `split`.
    pub branches: BTreeMap<u64, BranchCounts>,
    /// How often registers were read and written.
    pub registers: RegisterCounts,
    /// Each instruction that uses memory and was issued, by pc.
    pub memory: BTreeMap<u64, MemoryCounts>,
    /// What each instruction that was issued has cost in lanes, by pc.
    pub scalars: BTreeMap<u64, ScalarCounts>,
}

/// How often an opcode was issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct OpcodeCounts {
    /// How often a warp issued it.
    pub issued: u64,
    /// How often no lane executed it.
    pub skipped: u64,
    /// The sum of the executing lanes.
    pub lanes: u64,
}

/// How many lanes were active, and how many executed, in each instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "json", derive(serde::Serialize))]
pub struct LaneCounts {
    /// The active lanes of each instruction issued.
    pub active: Histogram,
    /// The executing lanes of each instruction issued.
    pub executing: Histogram,
}

impl Profile {
    /// An empty profile.
    pub fn new(arch: ArchId, collect: Collect, segment_bytes: NonZeroU32) -> Profile {
        Profile {
            arch,
            collect,
            segment_bytes,
            opcodes: BTreeMap::new(),
            lanes: LaneCounts::default(),
            depth: Histogram::default(),
            branches: BTreeMap::new(),
            registers: RegisterCounts::default(),
            memory: BTreeMap::new(),
            scalars: BTreeMap::new(),
        }
    }

    /// An empty profile for a core, if it is to collect anything.
    pub(crate) fn wanted(config: &MachineConfig) -> Option<Box<Profile>> {
        let MachineConfig { arch, collect, segment_bytes, .. } = *config;
        (!collect.is_empty()).then(|| Box::new(Profile::new(arch, collect, segment_bytes)))
    }

    /// Adds what another profile has counted, of the same program on the same machine.
    ///
    /// Everything is summed up. If a branch had more pairs of masks than can be listed, those of this profile
    /// stay.
    pub fn merge(&mut self, other: &Profile) {
        for (&opcode, more) in &other.opcodes {
            let counts = self.opcodes.entry(opcode).or_default();
            counts.issued += more.issued;
            counts.skipped += more.skipped;
            counts.lanes += more.lanes;
        }
        self.lanes.active.merge(&other.lanes.active);
        self.lanes.executing.merge(&other.lanes.executing);
        self.depth.merge(&other.depth);
        for (&pc, more) in &other.branches {
            let new = || BranchCounts::new(more.opcode, more.guard);
            self.branches.entry(pc).or_insert_with(new).merge(more);
        }
        self.registers.merge(&other.registers);
        for (&pc, more) in &other.memory {
            self.memory.entry(pc).or_insert_with(|| MemoryCounts::new(more.opcode)).merge(more);
        }
        for (&pc, more) in &other.scalars {
            let new = || ScalarCounts::new(more.instruction, self.arch);
            self.scalars.entry(pc).or_insert_with(new).merge(more);
        }
    }

    /// SIMD efficiency: the active lanes of all instructions issued, as a fraction of the machine's
    /// lanes. `None` if nothing was counted.
    pub fn active_efficiency(&self) -> Option<f64> {
        self.efficiency(&self.lanes.active)
    }

    /// As [`active_efficiency`](Self::active_efficiency), of the executing lanes: lanes whose guard
    /// is false are wasted too.
    pub fn executing_efficiency(&self) -> Option<f64> {
        self.efficiency(&self.lanes.executing)
    }

    fn efficiency(&self, lanes: &Histogram) -> Option<f64> {
        lanes.mean().map(|mean| mean / f64::from(self.arch.lanes()))
    }
}

impl Observer for Profile {
    fn issue(&mut self, issue: &Issue<'_>) {
        let opcode = issue.instruction.op.opcode();
        let active = issue.state.active();
        let (executing, enabled) = (issue.executing, issue.enabled);
        if self.collect.contains(Collect::OPCODES) {
            let counts = self.opcodes.entry(opcode).or_default();
            counts.issued += 1;
            counts.skipped += u64::from(executing == 0);
            counts.lanes += u64::from(executing.count_ones());
        }
        if self.collect.contains(Collect::LANES) {
            self.lanes.active.add_lanes(active);
            self.lanes.executing.add_lanes(executing);
        }
        if self.collect.contains(Collect::DEPTH) {
            self.depth.add(issue.state.stack().len());
        }
        if self.collect.contains(Collect::BRANCHES) && branch::is_branch(issue.instruction) {
            let new = || BranchCounts::new(opcode, issue.instruction.guard);
            self.branches.entry(issue.pc).or_insert_with(new).count(active, enabled);
        }
        if self.collect.contains(Collect::REGISTERS) {
            self.registers.count(issue);
        }
        if self.collect.contains(Collect::MEMORY)
            && let Some(access) = issue.memory_access()
        {
            let counts = self.memory.entry(issue.pc).or_insert_with(|| MemoryCounts::new(opcode));
            counts.count(&access, self.segment_bytes);
        }
        if self.collect.contains(Collect::SCALARS) {
            let new = || ScalarCounts::new(issue.instruction, issue.arch);
            self.scalars.entry(issue.pc).or_insert_with(new).count(issue);
        }
    }
}
