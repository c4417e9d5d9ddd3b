//! The report at the end of a run: statistics, and the counts that `--collect` asked for.

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use harp_emu::{Collect, Machine};
use serde_json::json;

#[derive(Args)]
pub(super) struct Reporting {
    /// Print the statistics at the end
    #[arg(short, long)]
    stats: bool,
    /// Also count these, separated by commas, and print the counts at the end
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    collect: Vec<What>,
    /// The format of statistics. JSON is one object on the last line, with the fields `stats` and `profile`
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    stats_format: Format,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Human-readable lines
    Text,
    /// JSON, one object per line
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// How often each opcode was issued
    Opcodes,
    /// How many lanes were active, and how many executed, in each instruction
    Lanes,
    /// How many entries the divergence stacks held
    Depth,
    /// How often each branch was taken, and how often it diverged
    Branches,
    /// How often registers were read and written
    Registers,
    /// How many addresses and segments each instruction touched
    Memory,
    /// What is done once for all lanes, and what each instruction costs in lanes
    Scalars,
    /// All of these
    All,
}

impl Reporting {
    pub(super) fn collect(&self) -> Collect {
        let one = |what: &What| match what {
            What::Opcodes => Collect::OPCODES,
            What::Lanes => Collect::LANES,
            What::Depth => Collect::DEPTH,
            What::Branches => Collect::BRANCHES,
            What::Registers => Collect::REGISTERS,
            What::Memory => Collect::MEMORY,
            What::Scalars => Collect::SCALARS,
            What::All => Collect::all(),
        };
        self.collect.iter().map(one).collect()
    }

    /// Prints the requested statistics after the console's output, whose last byte was `last`.
    pub(super) fn print(&self, machine: &Machine<'_>, last: Option<u8>) -> io::Result<()> {
        let profiled = !self.collect.is_empty();
        let mut out = io::stdout().lock();
        match self.stats_format {
            Format::Text => {
                if self.stats {
                    write!(out, "{}", machine.stats())?;
                }
                if profiled {
                    write!(out, "{}", machine.profile())?;
                }
            }
            Format::Json if self.stats || profiled => {
                // The object has a line of its own, whatever the program printed last.
                if last.is_some_and(|last| last != b'\n') {
                    writeln!(out)?;
                }
                let mut report = serde_json::Map::new();
                if self.stats {
                    report.insert("stats".to_owned(), json!(machine.stats()));
                }
                if profiled {
                    report.insert("profile".to_owned(), json!(machine.profile()));
                }
                writeln!(out, "{}", serde_json::Value::Object(report))?;
            }
            Format::Json => {}
        }
        out.flush()
    }
}

/// Prints what all cores wrote to the console, and returns its last byte.
pub(super) fn print_console(console: &[u8]) -> io::Result<Option<u8>> {
    let mut out = io::stdout().lock();
    out.write_all(console)?;
    out.flush()?;
    Ok(console.last().copied())
}
