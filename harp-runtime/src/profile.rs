//! Profiles of a kernel's branches in a launch, for [strategies](harp_jit::DivergenceStrategy) that use
//! them.

use std::collections::{BTreeMap, HashMap};

use harp_emu::Issue;
use harp_jit::{
    BranchCounts, BranchId, BranchProfile, BranchSite, Kernel, ProfileError, WarpCounts,
};
use serde::Deserialize;
use thiserror::Error;

use crate::observe::LaunchObserver;

/// Why a text is not a profile.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProfileTextError {
    /// It is not JSON, or not the JSON of a profile.
    #[error("the text is not the JSON of a profile")]
    Json(#[from] serde_json::Error),
    /// It has another version.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// Writes a profile as JSON: an object on one line.
pub fn profile_to_json(profile: &BranchProfile) -> String {
    serde_json::to_string(profile).expect("numbers and names are JSON")
}

/// Reads a profile from JSON. Compilation checks that it belongs to the kernel that it is used for.
///
/// # Errors
///
/// If the text is not a profile, or has another version.
pub fn profile_from_json(text: &str) -> Result<BranchProfile, ProfileTextError> {
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    // Another version may have other fields, so the version is read first.
    let Version { version: given } = serde_json::from_str(text)?;
    let expected = BranchProfile::VERSION;
    if given != expected {
        return Err(ProfileError::Version { given, expected }.into());
    }
    Ok(serde_json::from_str(text)?)
}

/// Counts the branches of a kernel as they are executed.
pub(crate) struct BranchCounter {
    /// The branches, by offset in the kernel.
    sites: HashMap<u64, BranchSite>,
    /// The counts of each branch, and where each warp's counts are in them.
    counts: BTreeMap<BranchId, (BranchCounts, WarpPlaces)>,
}

/// The index in [`BranchCounts::warps`] of each core's warps.
type WarpPlaces = HashMap<(u16, u8), usize>;

impl BranchCounter {
    /// A counter of the branches of `kernel`. Those of functions that the kernel calls are not counted.
    pub(crate) fn new(kernel: &Kernel) -> BranchCounter {
        let exact = |(_, site): &(u64, BranchSite)| site.exact;
        let sites = kernel.entry().branches().filter(exact).collect();
        BranchCounter { sites, counts: BTreeMap::new() }
    }

    /// What was counted in a launch of `kernel`.
    pub(crate) fn profile(self, kernel: &Kernel) -> BranchProfile {
        BranchProfile {
            version: BranchProfile::VERSION,
            function: kernel.name().to_owned(),
            fingerprint: kernel.branch_fingerprint(),
            branches: self.counts.into_values().map(|(counts, _)| counts).collect(),
        }
    }
}

impl LaunchObserver for BranchCounter {
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>) {
        let site = offset.and_then(|offset| self.sites.get(&offset));
        let Some(&BranchSite { id, inverted, .. }) = site else { return };
        let active = issue.state.active();
        let taken = if inverted { active & !issue.executing } else { issue.executing };
        let (counts, places) =
            self.counts.entry(id).or_insert_with(|| (BranchCounts::new(id), HashMap::new()));
        counts.executed += 1;
        *match taken {
            _ if taken == active => &mut counts.unanimous_true,
            0 => &mut counts.unanimous_false,
            _ => &mut counts.divergent,
        } += 1;
        let place = *places.entry((issue.core, issue.warp)).or_insert_with(|| {
            let lanes = vec![0; issue.arch.lanes().into()];
            let (core, warp) = (issue.core, issue.warp);
            counts.warps.push(WarpCounts { core, warp, executed: lanes.clone(), taken: lanes });
            counts.warps.len() - 1
        });
        let warp = &mut counts.warps[place];
        for (masks, lanes) in [(active, &mut warp.executed), (taken, &mut warp.taken)] {
            for (lane, count) in lanes.iter_mut().enumerate() {
                *count += masks >> lane & 1;
            }
        }
    }
}
