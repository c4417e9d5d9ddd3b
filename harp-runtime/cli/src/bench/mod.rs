//! `harp bench`: runs the programs of harpbench under every strategy of divergence management, and the kernels on which
//! OpenCL implementations are compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand, ValueEnum};
use harp_isa::ArchId;
use harp_jit::BranchProfile;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

use super::error::CliError;
use super::files::{Input as InputFile, Output};
use harp_bench::{
    Bench as Case, Best, Figure, Found, GUPTA, HarpbenchError, Input, PROGRAMS, Program, Row,
    Scale, Strategy, Summary, branch_figure, convergence_figure, run_figures, structure_figure,
};

mod kernel;
mod peers;
mod plot;
mod scalar;
mod table;

/// Benchmark the strategies of divergence management, and kernels that OpenCL has, too
#[derive(Args)]
pub(super) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Harpbench(Harpbench),
    Best(Search),
    Peers(peers::Peers),
    Kernel(Box<kernel::Kernel>),
    Scalar(scalar::Scalar),
}

/// Run harpbench's programs under every strategy and count instructions
///
/// Each program runs with each input under each strategy: split-join and predicate alone, static and
/// profile as in Gupta's thesis (2016), adaptive without and with a profile, and best, the cheapest
/// assignment of techniques to branches. The text format adds a summary and the numbers of the thesis's
/// figures 17, 18, 20, 21 and 22.
#[derive(Args)]
#[command(after_help = "Examples:
  harp bench harpbench
  harp bench harpbench --program scan --program bfs --input worst --format json
  harp bench harpbench --cross --best best.jsonl --plots plots")]
struct Harpbench {
    #[command(flatten)]
    cases: Cases,
    /// Only this strategy; may be given several times
    #[arg(long, value_name = "NAME", value_parser = strategy)]
    strategy: Vec<Strategy>,
    /// Results of `harp bench best`; assignments that are not in it are searched for
    #[arg(long, value_name = "FILE")]
    best: Option<InputFile>,
    /// Run adaptive-profile also with the profiles of the other inputs
    #[arg(long)]
    cross: bool,
    /// The format of the tables
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Print the figures' numbers instead of the runs
    #[arg(long)]
    figures: bool,
    /// Write a plot of each figure to this folder, as SVG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

/// Search for the cheapest assignment of techniques to branches
///
/// Each program and input is searched on its own, by running the program: all assignments if there are
/// few, else a greedy search. The result is one JSON object per line, which `harp bench harpbench --best`
/// reads.
#[derive(Args)]
#[command(after_help = "Example:
  harp bench best -o best.jsonl")]
struct Search {
    #[command(flatten)]
    cases: Cases,
    /// Where to write it; `-` is standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: Output,
}

#[derive(Args)]
struct Cases {
    /// The machine [default: the thesis's, harp32]
    #[arg(short, long, value_name = "ARCH", env = "HARP_ARCH")]
    arch: Option<ArchId>,
    /// Only this program; may be given several times
    #[arg(long, value_name = "NAME", value_parser = program)]
    program: Vec<&'static Program>,
    /// Only this input; may be given several times
    #[arg(long, value_name = "NAME", value_parser = input)]
    input: Vec<Input>,
    /// The size of the programs' inputs
    #[arg(long, value_name = "SCALE", default_value = "full")]
    scale: Size,
    /// Host threads [default: as many as the host offers]
    #[arg(long, value_name = "COUNT")]
    threads: Option<std::num::NonZeroUsize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned columns, a summary, and the figures
    Text,
    /// One JSON object per line
    Json,
    /// Comma-separated values
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Size {
    /// The size for comparisons
    Full,
    /// An eighth of the full size
    Small,
}

fn program(name: &str) -> Result<&'static Program, String> {
    Program::by_name(name).ok_or_else(|| {
        let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
        format!("the programs are {}", names.join(", "))
    })
}

fn input(name: &str) -> Result<Input, String> {
    let names = Input::ALL.map(Input::name).join(", ");
    let found = Input::ALL.into_iter().find(|input| input.name() == name);
    found.ok_or_else(|| format!("the inputs are {names}"))
}

fn strategy(name: &str) -> Result<Strategy, String> {
    let names = Strategy::ALL.map(Strategy::name).join(", ");
    let found = Strategy::ALL.into_iter().find(|strategy| strategy.name() == name);
    found.ok_or_else(|| format!("the strategies are {names}"))
}

impl Bench {
    pub(super) fn run(self) -> Result<(), CliError> {
        match self.what {
            What::Harpbench(harpbench) => harpbench.run(),
            What::Best(search) => search.run(),
            What::Peers(peers) => peers.run(),
            What::Kernel(kernel) => kernel.run(),
            What::Scalar(scalar) => scalar.run(),
        }
    }
}

impl Cases {
    fn arch(&self) -> ArchId {
        self.arch.unwrap_or(GUPTA)
    }

    fn scale(&self) -> Scale {
        match self.scale {
            Size::Full => Scale::Full,
            Size::Small => Scale::Small,
        }
    }

    fn programs(&self) -> Vec<&'static Program> {
        if self.program.is_empty() { PROGRAMS.iter().collect() } else { self.program.clone() }
    }

    fn inputs(&self) -> Vec<Input> {
        if self.input.is_empty() { Input::ALL.to_vec() } else { self.input.clone() }
    }

    /// Every program with every input.
    fn all(&self) -> Result<Vec<Case>, CliError> {
        let inputs = self.inputs();
        let pairs = self
            .programs()
            .into_iter()
            .flat_map(|program| inputs.iter().map(move |&input| (program, input)));
        let case = |(program, input)| Case::new(program, input, self.scale(), self.arch());
        Ok(pairs.map(case).collect::<Result<_, HarpbenchError>>()?)
    }

    /// Does `work` on every item, several at a time, with a progress bar.
    fn each<T: Sync, R: Send>(
        &self,
        items: &[T],
        name: impl Fn(&T) -> String + Sync,
        work: impl Fn(&T) -> Result<R, HarpbenchError> + Sync,
    ) -> Result<Vec<R>, CliError> {
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg}");
        let bar = ProgressBar::new(items.len() as u64)
            .with_style(style.expect("the template is well-formed"));
        let one = |item: &T| {
            bar.set_message(name(item));
            let result = work(item);
            bar.inc(1);
            result
        };
        let threads = self.threads.map_or(0, usize::from);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let results = pool
            .map_err(|source| CliError::Threads { source })?
            .install(|| items.par_iter().map(one).collect::<Result<Vec<R>, HarpbenchError>>());
        bar.finish_and_clear();
        Ok(results?)
    }
}

impl Search {
    fn run(&self) -> Result<(), CliError> {
        let cases = self.cases.all()?;
        let mut best = Best::default();
        for found in self.cases.each(&cases, title, Found::search)? {
            best.add(found);
        }
        self.output.write(best.text().as_bytes())
    }
}

fn title(case: &Case) -> String {
    format!("{} {}", case.program.name, case.input.name())
}

impl Harpbench {
    fn run(&self) -> Result<(), CliError> {
        let rows = self.rows()?;
        let mut parts = Vec::new();
        if !self.figures {
            parts.push(match self.format {
                Format::Text => table::text(&rows) + "\n" + &Summary::new(&rows).to_string(),
                Format::Json => table::json(&rows),
                Format::Csv => table::csv(&rows)?,
            });
        }
        let with_figures = self.figures || self.format == Format::Text;
        if with_figures || self.plots.is_some() {
            let figures = self.all_figures(&rows)?;
            if let Some(folder) = &self.plots {
                plots(&figures, folder)?;
            }
            if with_figures {
                match self.format {
                    Format::Text => parts.extend(figures.iter().map(table::figure_text)),
                    Format::Json => parts.extend(figures.iter().map(table::figure_json)),
                    Format::Csv => parts.push(table::figures_csv(&figures)?),
                }
            }
        }
        let between = if self.format == Format::Text { "\n" } else { "" };
        Output::Stdout.write(parts.join(between).as_bytes())
    }

    fn all_figures(&self, rows: &[Row]) -> Result<Vec<Figure>, CliError> {
        let (programs, arch) = (self.cases.programs(), self.cases.arch());
        let mut figures = vec![
            structure_figure(&programs, self.cases.scale(), arch)?,
            branch_figure(&programs, arch)?,
        ];
        figures.extend(run_figures(rows));
        let cases = self.cases.all()?;
        let found = self.cases.each(&cases, title, Case::convergence)?;
        figures.push(convergence_figure(cases.iter().map(title).zip(found)));
        Ok(figures)
    }

    fn strategies(&self) -> Vec<Strategy> {
        match self.strategy.as_slice() {
            [] => Strategy::ALL.to_vec(),
            some => Strategy::ALL.into_iter().filter(|one| some.contains(one)).collect(),
        }
    }

    fn rows(&self) -> Result<Vec<Row>, CliError> {
        let best = match &self.best {
            Some(file) => {
                let text = file.read_text()?;
                Best::parse(&text)
                    .map_err(|source| CliError::Best { file: file.clone(), source })?
            }
            None => Best::default(),
        };
        let cases = self.cases.all()?;
        let strategies = self.strategies();
        let all = self.cases.each(&cases, title, |case| case.rows(&strategies, &best))?;
        let (rows, profiles): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
        if self.cross {
            let crossed = self.cases.each(&cases, title, |case| {
                let profiles = cases.iter().zip(&profiles);
                let others = profiles.filter(|(other, _)| {
                    other.program.name == case.program.name && other.input != case.input
                });
                let row = |(other, profile): (&Case, &Arc<BranchProfile>)| {
                    case.crossed(other.input, Arc::clone(profile))
                };
                others.map(row).collect::<Result<Vec<_>, _>>()
            })?;
            rows.extend(crossed.into_iter().flatten());
        }
        Ok(rows)
    }
}

/// Writes a plot of each figure.
fn plots(figures: &[Figure], folder: &Path) -> Result<(), CliError> {
    let failed = |file: &Path| {
        let file = Output::File(file.to_owned());
        move |source| CliError::Write { file, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for figure in figures {
        let file = folder.join(format!("{}.svg", figure.kind.name()));
        fs::write(&file, plot::svg(figure)?).map_err(failed(&file))?;
    }
    Ok(())
}
