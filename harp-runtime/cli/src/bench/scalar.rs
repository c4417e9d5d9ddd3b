//! `harp bench scalar`: what shared registers save, as in the figures of Lee et al. (CGO 2013).

use std::error::Error;
use std::path::PathBuf;

use clap::Args;
use harp_bench::scalar::{Compared, Measured, WIDTHS, programs, scalar_figures};
use harp_isa::ArchId;
use harp_jit::{CompileOptions, Kernel};
use harp_spirv::SpirvModule;
use rayon::prelude::*;

use super::super::error::CliError;
use super::super::files::Output;
use super::{plots, table};

/// Count what lanes share on machines with shared registers
///
/// Each program runs on machines of 4, 8, 16 and 32 lanes, without shared registers and with, and must compute the same. The
/// figures are 4, 5 and 6 of Lee et al. (CGO 2013), whose own results are beside the means. Counted are the kernels and their
/// functions, not the runtime library. At the end stands how many places of each program would take a `syncwarp`, as a machine
/// without divergence stacks has it.
#[derive(Args)]
#[command(after_help = "Examples:
  harp bench scalar
  harp bench scalar --program fir --program matmul --json
  harp bench scalar --plots plots")]
pub(super) struct Scalar {
    /// Only this program; may be given several times
    #[arg(long, value_name = "NAME", value_parser = program)]
    program: Vec<Measured>,
    /// Print one JSON object per program and number of lanes, with all counts
    #[arg(long)]
    json: bool,
    /// Write a plot of each figure to this folder, as SVG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

fn program(name: &str) -> Result<Measured, String> {
    let found = programs().into_iter().find(|program| program.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = programs().iter().map(|program| program.name).collect();
        format!("the programs are {}", names.join(", "))
    })
}

impl Scalar {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let chosen = if self.program.is_empty() { programs() } else { self.program.clone() };
        let cases: Vec<(Measured, u8)> =
            chosen.iter().flat_map(|&program| WIDTHS.map(|lanes| (program, lanes))).collect();
        let runs = cases.par_iter().map(|(program, lanes)| program.compare(*lanes, &read));
        let runs: Vec<Compared> =
            runs.collect::<Result<_, _>>().map_err(|source| CliError::Scalar { source })?;
        let figures = scalar_figures(&runs);
        if let Some(folder) = &self.plots {
            plots(&figures, folder)?;
        }
        let text = if self.json {
            runs.iter().map(table::line).collect()
        } else {
            let figures: Vec<String> = figures.iter().map(table::figure_text).collect();
            figures.join("\n") + "\n" + &sync_places(&runs)
        };
        Output::Stdout.write(text.as_bytes())
    }
}

/// Compiles a kernel of a module.
fn read(
    module: &[u8],
    kernel: &str,
    arch: ArchId,
    options: &CompileOptions,
) -> Result<Kernel, Box<dyn Error>> {
    Ok(SpirvModule::parse(module)?.kernel(kernel, arch)?.compile(options)?)
}

fn sync_places(runs: &[Compared]) -> String {
    let mut cells = vec![vec!["places of syncwarp".to_owned(), "in the code".to_owned()]];
    for run in runs.iter().filter(|run| run.lanes == WIDTHS[0]) {
        cells.push(vec![run.program.to_owned(), run.base.sync_places.to_string()]);
    }
    table::aligned(&cells, 1)
}
