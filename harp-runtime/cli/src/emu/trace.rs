//! Traces that are printed during a run.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use clap::{Args, ValueEnum};
use harp_emu::{Machine, Trace, TraceFormat, TraceWriter, Trap};

use super::super::error::CliError;
use super::super::files::Output;
use super::report::Format;

#[derive(Args)]
pub(super) struct Tracing {
    /// What to trace
    #[arg(long, value_name = "WHAT", default_value = "none")]
    trace: What,
    /// The format of the trace
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    trace_format: Format,
    /// Where the trace goes; `-` is standard output [default: standard error]
    #[arg(long, value_name = "FILE")]
    trace_file: Option<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    /// Nothing
    None,
    /// Every `split` and `join`, with the masks before, pushed or popped, and after
    Divergence,
    /// Every instruction, with what it writes
    Instructions,
}

impl Tracing {
    /// Runs a machine and traces it. The inner result is the run's.
    pub(super) fn run(&self, machine: &mut Machine<'_>) -> Result<Result<(), Box<Trap>>, CliError> {
        let what = match self.trace {
            What::None => return Ok(machine.run().map(drop)),
            What::Divergence => Trace::Divergence,
            What::Instructions => Trace::Instructions,
        };
        let format = match self.trace_format {
            Format::Text => TraceFormat::Text,
            Format::Json => TraceFormat::JsonLines,
        };
        let failed = |source| match &self.trace_file {
            Some(file) => CliError::Write { file: file.clone(), source },
            None => CliError::Trace { source },
        };
        let out: Box<dyn Write> = match &self.trace_file {
            // Standard output has a buffer of its own, which keeps the order with the console's.
            Some(Output::Stdout) => Box::new(io::stdout()),
            Some(Output::File(path)) => {
                Box::new(BufWriter::new(File::create(path).map_err(failed)?))
            }
            None => Box::new(BufWriter::new(io::stderr())),
        };
        let mut writer = TraceWriter::new(what, format, out);
        let outcome = machine.run_observed(&mut writer).map(drop);
        writer.finish().map_err(failed)?;
        Ok(outcome)
    }
}
