//! Options that say how divergence is managed.

use std::sync::Arc;

use clap::{Args, ValueEnum};
use harp_jit::{BranchProfile, DivergenceStrategy, ProfileParams};

use super::error::CliError;
use super::files::Input;
use harp_runtime::profile_from_json;

/// How divergence is managed.
#[derive(Args)]
pub(super) struct Divergence {
    /// The strategy that decides how the divergence of branches is managed
    #[arg(long, value_name = "NAME", default_value = "adaptive")]
    strategy: Strategy,
    /// A profile of the one function of the file, as JSON
    #[arg(long, value_name = "FILE", required_if_eq("strategy", "profile"))]
    profile: Option<Input>,
}

/// The strategies by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Strategy {
    /// Split and join everywhere
    SplitJoin,
    /// Predication wherever it is possible
    Predicate,
    /// Predicate branches whose conditions depend on the lane's number
    Static,
    /// Predicate branches at which lanes disagreed in a profiled run
    Profile,
    /// Whatever is expected to cost the fewest warp instructions
    Adaptive,
}

impl From<Strategy> for DivergenceStrategy {
    fn from(strategy: Strategy) -> DivergenceStrategy {
        match strategy {
            Strategy::SplitJoin => DivergenceStrategy::SplitJoin,
            Strategy::Predicate => DivergenceStrategy::Predicate,
            Strategy::Static => DivergenceStrategy::Static,
            Strategy::Profile => DivergenceStrategy::Profile(ProfileParams::default()),
            Strategy::Adaptive => DivergenceStrategy::Adaptive,
        }
    }
}

impl Divergence {
    pub(super) fn strategy(&self) -> DivergenceStrategy {
        self.strategy.into()
    }

    /// Reads the profile.
    pub(super) fn profile(&self) -> Result<Option<Arc<BranchProfile>>, CliError> {
        let Some(file) = &self.profile else { return Ok(None) };
        let profile = profile_from_json(&file.read_text()?)
            .map_err(|source| CliError::Profile { file: file.clone(), source: Box::new(source) })?;
        Ok(Some(Arc::new(profile)))
    }
}
