//! `harp explain`: how the divergence of branches is managed, why, and what the alternatives cost; and what lanes share.

use clap::{Args, ValueEnum};
use harp_jit::text::TextFunction;
use harp_jit::{
    BranchReport, Compiler, DivergenceReport, Execution, ModuleError, RegionReport, ValueReport,
};
use serde_json::{Value, json};

use super::Target;
use super::error::CliError;
use super::files::Output;
use super::options::CodeOptions;
use super::source::{KernelOf, ProgramFile, Source};

mod dot;

/// Explain how the divergence of branches is managed
///
/// For every branch: whether lanes may disagree and why, how it is executed, and how often warps are
/// expected to take each side or both. For every region in which divergence is managed: the technique, and
/// what each alternative is expected to cost, in warp instructions per entry of the region. Functions are
/// compiled for all lanes of a warp; their parameters may differ from lane to lane. With `--kernel` a function of CLIF text is
/// a kernel: its parameters are the launch's arguments, the same in all lanes.
///
/// On machines whose lanes share registers (`+s8/4`) also for every value of the selected code: the shared register that it is
/// in, or that lanes have it in their `own`, and why.
#[derive(Args)]
#[command(after_help = "Examples:
  harp explain -a harp32 gcd.clif
  harp explain -a harp32 --strategy split-join --format json gcd.clif
  harp explain -a harp32 --dot gcd.dot gcd.clif && dot -Tsvg gcd.dot -o gcd.svg
  harp explain -a harp32 --kernel bfs bfs.spv
  harp explain -a 4w24/12/32/16+x+s8/4 --kernel bfs bfs.spv")]
pub(super) struct Explain {
    #[command(flatten)]
    program: ProgramFile,
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    code: CodeOptions,
    /// The format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,
    /// Where to write the control-flow graphs for Graphviz, with divergence in colour
    #[arg(long, value_name = "FILE")]
    dot: Option<Output>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Human-readable text
    Text,
    /// One JSON object per line, for each branch, region and shared or own value of a function
    Json,
}

impl Explain {
    pub(super) fn run(self) -> Result<(), CliError> {
        if let Some(dot) = &self.dot {
            dot.spares([self.program.input()])?;
        }
        let (mut answer, mut graphs) = (String::new(), String::new());
        for report in self.reports()? {
            answer += &match self.format {
                Format::Text => report.to_string(),
                Format::Json => json_lines(&report),
            };
            graphs += &dot::graph(&report);
        }
        if let Some(output) = &self.dot {
            output.write(graphs.as_bytes())?;
        }
        Output::Stdout.write(answer.as_bytes())
    }

    /// What is to be said of each function or kernel.
    fn reports(&self) -> Result<Vec<DivergenceReport>, CliError> {
        let arch = self.target.arch;
        let source = self.program.load(arch)?;
        let compiler = Compiler::new(arch, self.code.compile_options(Execution::Simt)?);
        let failed = |source| CliError::Compile { source: ModuleError::Compile(source) };
        match source {
            Source::Clif(file) if !self.program.names_kernel() => {
                let functions = file.functions().iter();
                let report = |function: &TextFunction| {
                    compiler.explain_function(&function.func, file.sources()).map_err(failed)
                };
                functions.map(report).collect()
            }
            source => {
                let kernels = self.program.kernels(&source, arch)?;
                let report = |kernel: &KernelOf<'_>| {
                    kernel.look(|source| compiler.explain_kernel(source))?.map_err(failed)
                };
                kernels.iter().map(report).collect()
            }
        }
    }
}

/// The branches, then the regions, then the values, as JSON lines.
fn json_lines(report: &DivergenceReport) -> String {
    let branches = report.branches.iter().map(|branch| branch_json(&report.function, branch));
    let regions = report.regions.iter().enumerate();
    let regions = regions.map(|(number, region)| region_json(&report.function, number, region));
    let values = report.values.iter().map(|value| value_json(&report.function, value));
    branches.chain(regions).chain(values).map(|object| format!("{object}\n")).collect()
}

fn value_json(function: &str, value: &ValueReport) -> Value {
    json!({
        "function": function,
        "value": value.name,
        "block": value.block,
        "instruction": value.instruction,
        "place": value.place.as_ref().map(ToString::to_string),
        "shared": value.shared,
        "reason": value.reason,
    })
}

fn branch_json(function: &str, branch: &BranchReport) -> Value {
    json!({
        "function": function,
        "branch": branch.id.to_string(),
        "block": branch.block,
        "place": branch.place.as_ref().map(ToString::to_string),
        "divergent": branch.divergent.is_some(),
        "cause": branch.divergent,
        "technique": branch.technique,
        "region": branch.region,
        "all_true": branch.odds.all_true,
        "all_false": branch.odds.all_false,
        "both": branch.odds.divergent,
        "counted": branch.odds.counted,
    })
}

fn region_json(function: &str, number: usize, region: &RegionReport) -> Value {
    let otherwise = if region.nested { "split-join" } else { "linear" };
    let costs = region
        .costs
        .map(|costs| json!({ otherwise: costs.branches, "predicate": costs.predicated }));
    json!({
        "function": function,
        "region": number,
        "head": region.head,
        "blocks": region.blocks,
        "size": region.size,
        "end": region.end,
        "inside": region.parent,
        "technique": region.technique,
        "costs": costs,
    })
}
