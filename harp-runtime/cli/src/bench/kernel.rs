//! `harp bench kernel`: a kernel of a program under every strategy.

use clap::{Args, ValueEnum};
use harp_jit::CompileOptions;
use serde::Serialize;

use super::super::Target;
use super::super::divergence::Strategy;
use super::super::error::CliError;
use super::super::files::Output;
use super::super::run::Launch;
use super::super::source::ProgramFile;
use super::table;

/// Run a kernel of a program under every strategy that needs no profile
///
/// Programs and arguments are those of `harp run`, which explains how they are written.
#[derive(Args)]
#[command(after_help = "Example:
  harp bench kernel -a harp32 --kernel bfs bfs.spv --grid 1024 --arg @rows.bin --arg @columns.bin --arg i32x1024:-1 --arg 0 --arg 0")]
pub(super) struct Kernel {
    #[command(flatten)]
    program: ProgramFile,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    launch: Launch,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// What a launch took.
#[derive(Debug, Serialize)]
struct Row {
    kernel: String,
    strategy: String,
    code_bytes: usize,
    warp_instructions: u64,
    lane_instructions: u64,
    run_ms: f64,
}

impl Kernel {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let arch = self.target.arch;
        let source = self.launch.load(&self.program, arch)?;
        let kernel = self.program.one_kernel(&source, arch)?;
        let mut rows = Vec::new();
        for &strategy in Strategy::value_variants() {
            if strategy == Strategy::Profile {
                continue;
            }
            let divergence = strategy.into();
            let options = CompileOptions { divergence, ..CompileOptions::default() };
            let prepared = self.launch.prepare(&kernel, &kernel.parameters()?, options, arch)?;
            let report = prepared.launch(self.launch.config(&kernel)?)?;
            let name = strategy.to_possible_value().map(|name| name.get_name().to_owned());
            rows.push(Row {
                kernel: kernel.name().to_owned(),
                strategy: name.unwrap_or_default(),
                code_bytes: prepared.kernel.stats().code_bytes,
                warp_instructions: report.warp_instructions(),
                lane_instructions: report.lane_instructions(),
                run_ms: report.run_time.as_secs_f64() * 1e3,
            });
        }
        let text = if self.json { rows.iter().map(table::line).collect() } else { text(&rows) };
        Output::Stdout.write(text.as_bytes())
    }
}

fn text(rows: &[Row]) -> String {
    let head =
        ["kernel", "strategy", "code bytes", "warp instructions", "lane instructions", "run ms"];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    cells.extend(rows.iter().map(|row| {
        vec![
            row.kernel.clone(),
            row.strategy.clone(),
            row.code_bytes.to_string(),
            row.warp_instructions.to_string(),
            row.lane_instructions.to_string(),
            format!("{:.3}", row.run_ms),
        ]
    }));
    table::aligned(&cells, 2)
}
