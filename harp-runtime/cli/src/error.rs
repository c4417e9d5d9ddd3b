//! The errors of subcommands, how they are shown, and their exit codes.

use std::error::Error;
use std::io;
use std::str::Utf8Error;

use anstyle::{AnsiColor, Style};
use harp_emu::{MachineError, MemoryError, Trap, TrapKind};
use harp_isa::LinkErrors;
use harp_isa::object::hof::HofError;
use harp_jit::ModuleError;
use harp_jit::text::CallError;
use thiserror::Error;

use super::files::{Input, Output};
use super::run::ArgumentError;
use super::source::SourceError;
use harp_bench::{BestError, HarpbenchError};
use harp_runtime::{
    BufferError, DeviceError, LaunchError, ProfileTextError, ProgramError, ReplayError,
};

/// The exit code of wrong inputs.
const INPUT: u8 = 1;
/// The exit code of bad usage.
pub(super) const USAGE: u8 = 2;
const TRAP: u8 = 3;
const DEADLOCK: u8 = 4;
const OUT_OF_FUEL: u8 = 5;

/// Why a subcommand failed.
#[derive(Debug, Error)]
pub(super) enum CliError {
    #[error("cannot read {file}")]
    Read { file: Input, source: io::Error },
    #[error("cannot write {file}")]
    Write { file: Output, source: io::Error },
    #[error("{file} is an input and would be overwritten: choose another output with `--output`")]
    SameFile { file: Output },
    #[error("{file} cannot be shown exactly")]
    NotExact { file: Input, source: HofError },
    #[error("`--call` needs `--emit image`")]
    CallWithoutImage,
    #[error("{file} is not a text file in UTF-8")]
    NotText { file: Input, source: Utf8Error },
    /// All errors of a text, as they are shown, styled.
    #[error("{rendered}")]
    Asm { rendered: String },
    /// The error of a text, as it is shown, styled.
    #[error("{text}")]
    Rendered { text: String },
    #[error(transparent)]
    Compile { source: ModuleError },
    #[error(transparent)]
    Call { source: CallError },
    #[error(transparent)]
    Program { source: ProgramError },
    #[error("{folder} holds no `*.clif` files")]
    NoFileTests { folder: Input },
    #[error(transparent)]
    Harpbench(#[from] HarpbenchError),
    #[error("a program was not measured")]
    Scalar { source: harp_bench::scalar::ScalarError },
    #[error("{file} does not hold results of `harp bench best`")]
    Best { file: Input, source: BestError },
    #[error("{file} is not a profile")]
    Profile { file: Input, source: Box<ProfileTextError> },
    #[error("cannot start threads")]
    Threads { source: rayon::ThreadPoolBuildError },
    #[error("cannot write the table")]
    Csv { source: csv::Error },
    #[error("cannot plot {figure}: {message}")]
    Plot { figure: &'static str, message: String },
    /// File tests failed; the failures have been printed already.
    #[error("file tests failed")]
    TestsFailed,
    #[error("{file} cannot be read as an object file")]
    ReadObject { file: Input, source: HofError },
    #[error("the object cannot be written as an object file")]
    WriteObject { source: HofError },
    #[error(transparent)]
    Link(#[from] LinkErrors),
    #[error("{file} is not an object file, and a flat image needs `--arch`")]
    FlatNeedsArch { file: Input },
    #[error("{file} does not fit the machine's memory")]
    Memory { file: Input, source: MemoryError },
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("cannot write the trace to standard error")]
    Trace { source: io::Error },
    #[error(transparent)]
    Replay(#[from] ReplayError),
    #[error(transparent)]
    Launch { source: LaunchError },
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Argument(#[from] ArgumentError),
    #[error("work-groups of {} x {} x {} work-items, but `{kernel}` is for {} x {} x {}",
        given[0], given[1], given[2], fixed[0], fixed[1], fixed[2])]
    GroupSize { kernel: String, given: [u64; 3], fixed: [u64; 3] },
    #[error(transparent)]
    Device { source: DeviceError },
    #[error(transparent)]
    Buffer { source: BufferError },
    #[error("buffer `{buffer}` has {given} bytes, {file} has {expected}")]
    ComparedLength { buffer: String, given: usize, file: Input, expected: usize },
    #[error("how many work-items are to run? Say it with `--grid`, such as 1024 or 64,64")]
    NoGrid,
    #[error("kernel `{kernel}` uses work-groups: give their size with `--group`")]
    NoGroups { kernel: String },
    #[error("cannot run the kernel `{kernel}`")]
    Peer { kernel: &'static str, source: Box<dyn Error> },
    #[error("the result of `{kernel}`, of checksum {checksum}, is not the host's")]
    WrongPeer { kernel: &'static str, checksum: u32 },
    /// Buffers are not as expected; the differences have been printed already.
    #[error("results differ from what was expected")]
    Differences,
    /// The emulated program stopped before its end.
    #[error("{trap}")]
    Trap {
        #[source]
        trap: Box<Trap>,
        /// The instruction at which it stopped.
        instruction: Option<String>,
    },
}

impl CliError {
    /// A failure to write to standard output.
    pub(super) fn stdout(source: io::Error) -> CliError {
        CliError::Write { file: Output::Stdout, source }
    }

    /// The exit code for this kind of error.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            CliError::Trap { trap, .. } => of_trap(&trap.kind),
            CliError::Launch { source: LaunchError::Trap(trap) } => of_trap(&trap.trap.kind),
            CliError::CallWithoutImage | CliError::NoGrid => USAGE,
            _ => INPUT,
        }
    }

    /// Whether the reader of standard output has closed the pipe.
    pub(super) fn is_broken_pipe(&self) -> bool {
        matches!(self, CliError::Write { file: Output::Stdout, source }
            if source.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The message with its causes, one per line and styled.
    pub(super) fn report(&self) -> String {
        match self {
            CliError::Asm { rendered } => rendered.clone(),
            CliError::Rendered { text } => text.clone(),
            CliError::Link(errors) | CliError::Program { source: ProgramError::Link(errors) } => {
                let messages = errors.iter().map(|error| message(&error.to_string()));
                let omitted = match errors.omitted() {
                    0 => String::new(),
                    omitted => message(&format!("{omitted} more errors are not shown")),
                };
                messages.chain([omitted]).collect()
            }
            _ => message(&self.to_string()) + &self.causes() + &self.more(),
        }
    }

    /// What else helps to understand a trap.
    fn more(&self) -> String {
        match self {
            CliError::Trap { trap, instruction: Some(instruction) } => {
                format!("  at {:#x}: {instruction}\n", trap.pc)
            }
            CliError::Launch { source: LaunchError::Trap(trap) }
                if trap.findings.is_none() && is_by_memory(&trap.trap.kind) =>
            {
                "  note: `harp run --check` says what the kernel did wrong with memory before\n"
                    .to_owned()
            }
            _ => String::new(),
        }
    }

    /// Every cause on a line, except where the message above already contains it.
    fn causes(&self) -> String {
        let (mut lines, mut last) = (String::new(), self.to_string());
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !last.contains(&text) {
                lines += &format!("  caused by: {text}\n");
                last = text;
            }
            cause = error.source();
        }
        lines
    }
}

/// The exit code of a program that stopped before its end.
fn of_trap(kind: &TrapKind) -> u8 {
    match kind {
        TrapKind::Deadlock { .. } => DEADLOCK,
        TrapKind::OutOfFuel { .. } | TrapKind::TimeLimit { .. } => OUT_OF_FUEL,
        _ => TRAP,
    }
}

/// Whether a kernel gets there by an address that is wrong, or after it has written over its own stack.
fn is_by_memory(kind: &TrapKind) -> bool {
    matches!(
        kind,
        TrapKind::BadAddress { .. }
            | TrapKind::ReadOnly { .. }
            | TrapKind::Misaligned { .. }
            | TrapKind::DivergentBranch { .. }
            | TrapKind::DivergentTarget { .. }
            | TrapKind::InvalidInstruction(_)
            | TrapKind::Privileged { .. }
            | TrapKind::StackUnderflow
    )
}

/// A line that says that `text` is an error.
fn message(text: &str) -> String {
    let style = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
    format!("{style}error{style:#}: {text}\n")
}
