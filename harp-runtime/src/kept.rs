//! What becomes of the replays of failed launches.

use std::fmt;
use std::path::PathBuf;

/// Where the replay of a failed launch is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SavedReplay {
    /// In this file.
    File(PathBuf),
    /// Nowhere: it could not be written.
    Failed(String),
}

impl fmt::Display for SavedReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SavedReplay::File(path) => write!(f, "replay it with: harp replay {}", path.display()),
            SavedReplay::Failed(reason) => f.write_str(reason),
        }
    }
}
