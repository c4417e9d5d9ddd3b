//! Traces that are printed during a run.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use clap::{Args, ValueEnum};
use harp_emu::{Trace, TraceFormat, TraceWriter};

use super::super::error::CliError;
use super::super::files::Output;
use super::report::Format;

#[derive(Args)]
pub(crate) struct Tracing {
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
    /// The observer that writes the trace; `None` if nothing is traced.
    pub(crate) fn writer(&self) -> Result<Option<TraceWriter<Box<dyn Write>>>, CliError> {
        let what = match self.trace {
            What::None => return Ok(None),
            What::Divergence => Trace::Divergence,
            What::Instructions => Trace::Instructions,
        };
        let format = match self.trace_format {
            Format::Text => TraceFormat::Text,
            Format::Json => TraceFormat::JsonLines,
        };
        let out: Box<dyn Write> = match &self.trace_file {
            // Standard output has a buffer of its own, which keeps the order with the console's.
            Some(Output::Stdout) => Box::new(io::stdout()),
            Some(Output::File(path)) => {
                let file = File::create(path).map_err(|source| self.failed(source))?;
                Box::new(BufWriter::new(file))
            }
            None => Box::new(BufWriter::new(io::stderr())),
        };
        Ok(Some(TraceWriter::new(what, format, out)))
    }

    /// Writes what is left of the trace.
    pub(crate) fn finish(&self, writer: TraceWriter<Box<dyn Write>>) -> Result<(), CliError> {
        writer.finish().map(drop).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> CliError {
        match &self.trace_file {
            Some(file) => CliError::Write { file: file.clone(), source },
            None => CliError::Trace { source },
        }
    }
}
