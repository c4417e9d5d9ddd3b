//! What the checks of a launch find.

use std::fmt;

use harp_monitor::Finding;

use crate::kept::SavedReplay;
use crate::report::Report;

/// What the checks of a launch have found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The kernel.
    pub kernel: String,
    /// The findings, in the order in which they were made.
    pub list: Vec<Finding>,
    /// How many others there were at other places: see [`Checks::limit`](crate::Checks::limit).
    pub more: u64,
    /// What the launch did and cost; none if it trapped.
    pub report: Option<Report>,
    /// Where the launch was kept, if the device [does that](crate::DeviceConfig::replays) and the launch did not trap.
    pub replay: Option<SavedReplay>,
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.list.len() as u64 + self.more;
        let noun = if count == 1 { "finding" } else { "findings" };
        write!(f, "kernel `{}`: {count} {noun}", self.kernel)?;
        for finding in &self.list {
            write!(f, "\n  {finding}")?;
        }
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        self.replay.as_ref().map_or(Ok(()), |replay| write!(f, "\n{replay}"))
    }
}

impl std::error::Error for Findings {}
