//! The command `harp`: assembler, linker, disassembler, compiler, kernel launches, file tests, benchmarks and emulator
//! for the shell.
//!
//! Each subcommand has a file: its options for clap, and a `run` that does the work through the library
//! crates. None of them looks at the process's arguments.
//!
//! Results go to standard output or a file, diagnostics to standard error, in colour where that is a
//! terminal. If the reader of standard output closes the pipe, as `head` does, the command ends without an
//! error.
#![forbid(unsafe_code)]

mod asm;
mod bench;
mod compile;
mod disasm;
mod divergence;
mod emu;
mod error;
mod explain;
mod files;
mod filetest;
mod ld;
mod numbers;
mod options;
mod replay;
mod run;
mod source;
mod values;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

use error::CliError;

/// Compiling a kernel allocates a thousand times, which takes a tenth of the time with what systems have.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The meanings of the exit codes. clap uses 2 for bad usage.
const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  an input is wrong, a file cannot be read or written, a file test failed, results differ, or checks found
     something
  2  bad usage
  3  the emulated program ended in a trap
  4  the emulated program ended in a deadlock
  5  the emulated program ran out of fuel or time";

#[derive(Parser)]
#[command(
    name = "harp",
    bin_name = "harp",
    version,
    about = "Assembler, linker, disassembler, compiler and emulator for HARP, a family of SIMT machines",
    after_help = EXIT_CODES,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Asm(asm::Asm),
    Ld(ld::Ld),
    Disasm(disasm::Disasm),
    Compile(compile::Compile),
    Explain(explain::Explain),
    Run(run::Run),
    #[command(name = "filetest")]
    FileTest(filetest::FileTest),
    Emu(emu::Emu),
    Replay(replay::Replay),
    Bench(bench::Bench),
    Completions(Completions),
}

/// Print a script that completes the arguments of `harp` in a shell
#[derive(Args)]
#[command(after_help = "Example:
  harp completions bash > ~/.local/share/bash-completion/completions/harp")]
struct Completions {
    /// The shell
    shell: Shell,
}

/// The architecture id of the command line.
#[derive(Args)]
struct Target {
    /// The machine, such as 4w16/16/8/8 (bytes of a word, encoding, GPRs, predicates, lanes, warps),
    /// harp32 or harp64; +x at the end adds the extension
    #[arg(short, long, value_name = "ARCH", env = "HARP_ARCH")]
    arch: harp_isa::ArchId,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // `--help` comes here too. If printing fails there is nowhere to report it.
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(error::USAGE));
        }
    };
    match cli.command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // As above.
            let _ = anstream::stderr().write_all(error.report().as_bytes());
            ExitCode::from(error.exit_code())
        }
    }
}

impl Command {
    fn run(self) -> Result<(), CliError> {
        match self {
            Command::Asm(asm) => asm.run(),
            Command::Ld(ld) => ld.run(),
            Command::Disasm(disasm) => disasm.run(),
            Command::Compile(compile) => compile.run(),
            Command::Explain(explain) => explain.run(),
            Command::Run(run) => run.run(),
            Command::FileTest(filetest) => filetest.run(),
            Command::Emu(emu) => emu.run(),
            Command::Replay(replay) => replay.run(),
            Command::Bench(bench) => bench.run(),
            Command::Completions(Completions { shell }) => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut Cli::command(), "harp", &mut script);
                io::stdout().write_all(&script).map_err(CliError::stdout)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// clap looks for contradictions between options in debug builds only, when it parses.
    #[test]
    fn the_options_are_consistent() {
        Cli::command().debug_assert();
    }
}
