//! Counters of branches that a kernel keeps itself: their layout in memory, and how to read them.
//!
//! Every warp has a record for each branch, in the order of the warps' numbers, then the branches':
//!
//! | word | counts, for the warp |
//! |---|---|
//! | 0 | executions |
//! | 1 | executions at which all active lanes found the condition true |
//! | 2 | executions at which all found it false |
//! | 3 + 2·lane | executions of the lane |
//! | 4 + 2·lane | how often the lane found it true |
//!
//! A counter saturates at the largest value of a word.

use harp_isa::{ArchId, WordSize};

use super::{BranchCounts, BranchId, BranchProfile, Branches, ProfileError, WarpCounts};

/// The counters that a kernel compiled with
/// [`CompileOptions::count_branches`](crate::CompileOptions::count_branches) keeps, on any machine that it
/// runs on.
///
/// They are words in memory that the launch provides: the argument after the kernel's last one is the address
/// of [`bytes`](BranchCounters::bytes) bytes, initially zero and aligned to words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCounters {
    function: String,
    fingerprint: u64,
    layout: CounterLayout,
    branches: Vec<BranchId>,
}

/// The layout of counters in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CounterLayout {
    arch: ArchId,
    branches: u64,
}

/// One counter of a warp's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counter {
    Executed,
    UnanimousTrue,
    UnanimousFalse,
    /// For a lane: relative to the lane's [pair](CounterLayout::pair_bytes) of counters.
    LaneExecuted,
    LaneTaken,
}

impl Counter {
    fn word(self) -> u64 {
        match self {
            Counter::Executed => 0,
            Counter::UnanimousTrue => 1,
            Counter::UnanimousFalse => 2,
            Counter::LaneExecuted => 3,
            Counter::LaneTaken => 4,
        }
    }
}

impl CounterLayout {
    pub(crate) fn new(arch: ArchId, branches: &Branches) -> CounterLayout {
        CounterLayout { arch, branches: branches.ids().count() as u64 }
    }

    pub(crate) fn arch(self) -> ArchId {
        self.arch
    }

    fn word_bytes(self) -> u64 {
        self.arch.word().bytes().into()
    }

    /// The distance between the counters of consecutive lanes.
    pub(crate) fn pair_bytes(self) -> u64 {
        2 * self.word_bytes()
    }

    fn record_bytes(self) -> u64 {
        Counter::LaneExecuted.word() * self.word_bytes()
            + u64::from(self.arch.lanes()) * self.pair_bytes()
    }

    /// The distance between the records of consecutive warps.
    pub(crate) fn warp_bytes(self) -> u64 {
        self.branches * self.record_bytes()
    }

    /// The offset of a counter in a warp's records; for a lane's counter that of lane 0.
    pub(crate) fn offset(self, branch: u64, counter: Counter) -> u64 {
        branch * self.record_bytes() + counter.word() * self.word_bytes()
    }
}

impl BranchCounters {
    /// The counters of a function with these branches, in the order of their records, and this fingerprint of
    /// them.
    pub(crate) fn new(
        function: &str,
        arch: ArchId,
        branches: Vec<BranchId>,
        fingerprint: u64,
    ) -> BranchCounters {
        let layout = CounterLayout { arch, branches: branches.len() as u64 };
        BranchCounters { function: function.to_owned(), fingerprint, layout, branches }
    }

    /// The branches, in the order of their records.
    pub(crate) fn branches(&self) -> &[BranchId] {
        &self.branches
    }

    /// The size of the counters for this many cores, in bytes.
    pub fn bytes(&self, cores: u16) -> u64 {
        u64::from(cores) * u64::from(self.layout.arch.warps()) * self.layout.warp_bytes()
    }

    /// Reads the counters, for as many cores as `memory` has complete records of.
    ///
    /// # Errors
    ///
    /// If a counter is full.
    pub fn profile(&self, memory: &[u8]) -> Result<BranchProfile, ProfileError> {
        let mut branches = Vec::new();
        let warp_bytes = usize::try_from(self.layout.warp_bytes()).unwrap_or(usize::MAX).max(1);
        for (number, &id) in self.branches.iter().enumerate() {
            let mut counts = BranchCounts::new(id);
            for (place, records) in memory.chunks_exact(warp_bytes).enumerate() {
                let record = Record { layout: self.layout, branch: number as u64, records };
                let full = || ProfileError::Full { function: self.function.clone(), branch: id };
                record.add_to(&mut counts, place).ok_or_else(full)?;
            }
            if counts.executed > 0 {
                branches.push(counts);
            }
        }
        Ok(BranchProfile {
            version: BranchProfile::VERSION,
            function: self.function.clone(),
            fingerprint: self.fingerprint,
            branches,
        })
    }
}

/// The counts of one warp for one branch.
struct Record<'a> {
    layout: CounterLayout,
    branch: u64,
    /// All records of the warp.
    records: &'a [u8],
}

impl Record<'_> {
    /// Adds the record to `counts`. None if a counter is full.
    fn add_to(&self, counts: &mut BranchCounts, place: usize) -> Option<()> {
        let executed = self.read(Counter::Executed, 0)?;
        if executed == 0 {
            return Some(());
        }
        let unanimous_true = self.read(Counter::UnanimousTrue, 0)?;
        let unanimous_false = self.read(Counter::UnanimousFalse, 0)?;
        let divergent = executed.saturating_sub(unanimous_true.saturating_add(unanimous_false));
        // A kernel may have written anything over its counters.
        for (sum, added) in [
            (&mut counts.executed, executed),
            (&mut counts.unanimous_true, unanimous_true),
            (&mut counts.unanimous_false, unanimous_false),
            (&mut counts.divergent, divergent),
        ] {
            *sum = sum.saturating_add(added);
        }
        let warps = usize::from(self.layout.arch.warps());
        let lanes = |counter| -> Option<Vec<u64>> {
            (0..u64::from(self.layout.arch.lanes())).map(|lane| self.read(counter, lane)).collect()
        };
        counts.warps.push(WarpCounts {
            core: u16::try_from(place / warps).ok()?,
            warp: u8::try_from(place % warps).ok()?,
            executed: lanes(Counter::LaneExecuted)?,
            taken: lanes(Counter::LaneTaken)?,
        });
        Some(())
    }

    fn read(&self, counter: Counter, lane: u64) -> Option<u64> {
        let offset = self.layout.offset(self.branch, counter) + lane * self.layout.pair_bytes();
        let word: WordSize = self.layout.arch.word();
        let bytes = self.records.get(usize::try_from(offset).ok()?..)?;
        let bytes = bytes.get(..word.bytes().into())?;
        let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        (value != word.mask()).then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_read() {
        let arch: ArchId = "4w8/2/2/2".parse().unwrap();
        let ids = [0, 1].map(|ordinal| BranchId { place: 7, ordinal });
        let counters = BranchCounters {
            function: "k".to_owned(),
            fingerprint: 5,
            layout: CounterLayout { arch, branches: 2 },
            branches: ids.to_vec(),
        };
        // Two warps and two branches; three words per warp, and two for each of two lanes.
        assert_eq!(counters.bytes(1), 2 * 2 * (3 + 2 * 2) * 4);
        let mut words = vec![0_u32; 28];
        // The record of the second warp for the second branch.
        words[21..].copy_from_slice(&[9, 1, 3, 9, 5, 4, 1]);
        let bytes = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
        let profile = counters.profile(&bytes(&words)).unwrap();
        let warp = WarpCounts { core: 0, warp: 1, executed: vec![9, 4], taken: vec![5, 1] };
        let counts = BranchCounts {
            executed: 9,
            unanimous_true: 1,
            unanimous_false: 3,
            divergent: 5,
            warps: vec![warp],
            ..BranchCounts::new(ids[1])
        };
        assert_eq!(profile.branches, [counts]);
        words[24] = u32::MAX;
        let full = ProfileError::Full { function: "k".to_owned(), branch: ids[1] };
        assert_eq!(counters.profile(&bytes(&words)), Err(full));
    }
}
