//! Options that say how code is generated, the same for all commands that do.

use clap::{Args, ValueEnum};
use harp_jit::{CompileOptions, Execution, OptLevel};
use harp_native::{Native, USUAL, When};
use harp_runtime::Tier;

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

/// How instructions are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum TierOption {
    /// By the interpreter
    Interpreter,
    /// Translated to the host's instructions when they are first reached
    Native,
    /// By the interpreter, and translated where that goes on for long
    #[default]
    Tiered,
}

impl TierOption {
    /// A tier for machines that are not a device's.
    pub(super) fn native(self) -> Option<Native> {
        match self {
            TierOption::Interpreter => None,
            TierOption::Native => Native::new(When::AtOnce),
            TierOption::Tiered => Native::new(USUAL),
        }
    }
}

impl From<TierOption> for Tier {
    fn from(tier: TierOption) -> Tier {
        match tier {
            TierOption::Interpreter => Tier::Interpreter,
            TierOption::Native => Tier::Native,
            TierOption::Tiered => Tier::Tiered,
        }
    }
}
