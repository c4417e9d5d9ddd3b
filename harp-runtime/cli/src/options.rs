//! Options that say how code is generated, the same for all commands that do.

use clap::{Args, ValueEnum};
use harp_jit::{CompileOptions, Execution, OptLevel};

use super::divergence::Divergence;
use super::error::CliError;

/// How code is generated.
#[derive(Args)]
pub(super) struct CodeOptions {
    /// How much to optimize
    #[arg(long, value_name = "LEVEL", default_value = "speed")]
    opt: Opt,
    #[command(flatten)]
    divergence: Divergence,
}

/// How much functions are optimized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Opt {
    /// Only what code generation needs
    None,
    /// Cranelift's mid-end
    Speed,
}

impl From<Opt> for OptLevel {
    fn from(opt: Opt) -> OptLevel {
        match opt {
            Opt::None => OptLevel::None,
            Opt::Speed => OptLevel::Speed,
        }
    }
}

impl CodeOptions {
    /// The options for code that so many lanes of a warp run.
    pub(super) fn compile_options(&self, execution: Execution) -> Result<CompileOptions, CliError> {
        Ok(CompileOptions {
            opt_level: self.opt.into(),
            divergence: self.divergence.strategy(),
            execution,
            profile: self.divergence.profile()?,
            ..CompileOptions::default()
        })
    }
}
