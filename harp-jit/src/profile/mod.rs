//! Profiles: what the branches of a kernel did in a run, for the strategies that use it.
//!
//! There are two ways to count. The emulator can observe a run without changing the code. Its counts are
//! exact for branches that are executed as branches; predicated branches cannot be observed, so compile with
//! [`DivergenceStrategy::SplitJoin`](crate::DivergenceStrategy::SplitJoin) to profile. Or the [code
//! counts](crate::CompileOptions::count_branches) itself, on any machine: [`BranchCounters`].
//!
//! Profiles are plain data for serde; the user chooses the file format.

use serde::{Deserialize, Serialize};
use thiserror::Error;

mod counters;
mod ids;
mod instrument;

pub use counters::BranchCounters;
pub(crate) use counters::CounterLayout;
pub(crate) use ids::Branches;
pub use ids::{BranchId, BranchSite};
pub(crate) use instrument::instrument;

/// What the branches of a function did in a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BranchProfile {
    /// The version of the format, [`BranchProfile::VERSION`].
    pub version: u32,
    /// The name of the kernel or function.
    pub function: String,
    /// The [`Kernel::branch_fingerprint`](crate::Kernel::branch_fingerprint) of the code that ran.
    pub fingerprint: u64,
    /// The branches that were executed.
    pub branches: Vec<BranchCounts>,
}

/// The counts of one branch in a run.
///
/// A warp is *unanimous* at an execution if all its active lanes take the same side.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BranchCounts {
    /// The branch.
    pub id: BranchId,
    /// How often a warp executed it.
    pub executed: u64,
    /// How often all active lanes found the condition true.
    pub unanimous_true: u64,
    /// How often all active lanes found the condition false.
    pub unanimous_false: u64,
    /// How often active lanes disagreed.
    pub divergent: u64,
    /// The counts by lane, for each warp that executed the branch.
    pub warps: Vec<WarpCounts>,
}

/// How often the lanes of one warp executed a branch.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WarpCounts {
    /// The core.
    pub core: u16,
    /// The warp's number in its core.
    pub warp: u8,
    /// How often each lane executed it.
    pub executed: Vec<u64>,
    /// How often each lane found the condition true.
    pub taken: Vec<u64>,
}

/// Why a profile cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The strategy needs a profile.
    #[error("`{function}`: the strategy needs a profile, and none was given")]
    Missing {
        /// The kernel or function that is compiled.
        function: String,
    },
    /// The profile has another version of the format.
    #[error("the profile has version {given}, expected {expected}")]
    Version {
        /// The version of the profile.
        given: u32,
        /// [`BranchProfile::VERSION`].
        expected: u32,
    },
    /// The profile belongs to another function.
    #[error("the profile is of `{given}`, not of `{expected}`")]
    Function {
        /// The function that the profile names.
        given: String,
        /// The function that is compiled.
        expected: String,
    },
    /// The profile is of an older version of the function, or of other options: the branches differ.
    #[error(
        "a stale profile of `{function}`: its branches have the fingerprint {given:#018x}, \
         expected {expected:#018x}"
    )]
    Stale {
        /// The kernel or function that is compiled.
        function: String,
        /// The fingerprint in the profile.
        given: u64,
        /// The fingerprint of the function.
        expected: u64,
    },
    /// The counts of a branch contradict each other.
    #[error("the profile of `{function}` is inconsistent at branch {branch}: {what}")]
    Inconsistent {
        /// The kernel or function that is compiled.
        function: String,
        /// The branch.
        branch: BranchId,
        /// What is wrong.
        what: &'static str,
    },
    /// The code counted its branches, and a counter is full.
    #[error("`{function}`: a counter of branch {branch} is full")]
    Full {
        /// The kernel.
        function: String,
        /// The branch.
        branch: BranchId,
    },
}

impl BranchProfile {
    /// The version of the format.
    pub const VERSION: u32 = 1;

    /// Adds the counts of another run of the same code.
    ///
    /// # Errors
    ///
    /// If the other profile has another version, function or fingerprint. Nothing is added then.
    pub fn merge(&mut self, other: &BranchProfile) -> Result<(), ProfileError> {
        check_version(other.version)?;
        if other.function != self.function {
            let (given, expected) = (other.function.clone(), self.function.clone());
            return Err(ProfileError::Function { given, expected });
        }
        if other.fingerprint != self.fingerprint {
            let (function, given) = (self.function.clone(), other.fingerprint);
            return Err(ProfileError::Stale { function, given, expected: self.fingerprint });
        }
        for counts in &other.branches {
            match self.branches.iter_mut().find(|known| known.id == counts.id) {
                Some(known) => known.add(counts),
                None => self.branches.push(counts.clone()),
            }
        }
        Ok(())
    }

    /// The counts of a branch; none if it was never executed.
    pub fn branch(&self, id: BranchId) -> Option<&BranchCounts> {
        self.branches.iter().find(|counts| counts.id == id)
    }

    /// Checks that this is a profile of `function` with these branches.
    pub(crate) fn check(&self, function: &str, branches: &Branches) -> Result<(), ProfileError> {
        check_version(self.version)?;
        if self.function != function {
            let (given, expected) = (self.function.clone(), function.to_owned());
            return Err(ProfileError::Function { given, expected });
        }
        let expected = branches.fingerprint();
        if self.fingerprint != expected {
            let (function, given) = (function.to_owned(), self.fingerprint);
            return Err(ProfileError::Stale { function, given, expected });
        }
        for counts in &self.branches {
            if let Some(what) = counts.contradiction(branches) {
                let (function, branch) = (function.to_owned(), counts.id);
                return Err(ProfileError::Inconsistent { function, branch, what });
            }
        }
        Ok(())
    }
}

impl BranchCounts {
    /// The counts of a branch that was never executed.
    pub fn new(id: BranchId) -> BranchCounts {
        let [executed, unanimous_true, unanimous_false, divergent] = [0; 4];
        BranchCounts { id, executed, unanimous_true, unanimous_false, divergent, warps: Vec::new() }
    }

    fn add(&mut self, other: &BranchCounts) {
        self.executed += other.executed;
        self.unanimous_true += other.unanimous_true;
        self.unanimous_false += other.unanimous_false;
        self.divergent += other.divergent;
        for counts in &other.warps {
            let same =
                |warp: &&mut WarpCounts| (warp.core, warp.warp) == (counts.core, counts.warp);
            let Some(warp) = self.warps.iter_mut().find(same) else {
                self.warps.push(counts.clone());
                continue;
            };
            let pairs = [(&mut warp.executed, &counts.executed), (&mut warp.taken, &counts.taken)];
            for (sums, added) in pairs {
                sums.resize(sums.len().max(added.len()), 0);
                sums.iter_mut().zip(added).for_each(|(sum, added)| *sum += added);
            }
        }
    }

    fn contradiction(&self, branches: &Branches) -> Option<&'static str> {
        let ways = [self.unanimous_true, self.unanimous_false, self.divergent];
        let sum = ways.iter().try_fold(0_u64, |sum, &way| sum.checked_add(way));
        let ordered = |warp: &WarpCounts| {
            warp.executed.len() == warp.taken.len()
                && warp.executed.iter().zip(&warp.taken).all(|(executed, taken)| taken <= executed)
        };
        if !branches.ids().any(|id| id == self.id) {
            Some("there is no such branch")
        } else if sum != Some(self.executed) {
            Some("the executions are not the sum of the ways")
        } else if !self.warps.iter().all(ordered) {
            Some("a lane took it more often than it executed it")
        } else {
            None
        }
    }
}

fn check_version(given: u32) -> Result<(), ProfileError> {
    let expected = BranchProfile::VERSION;
    if given == expected { Ok(()) } else { Err(ProfileError::Version { given, expected }) }
}
