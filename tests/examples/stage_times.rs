//! How long the stages of compilation take for functions of several sizes on which lanes disagree, and what
//! share of it the analyses have. For [`Shape`]s of control flow also how fast times grow.
#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::error::Error;
use std::time::Instant;

use clap::Parser;
use cranelift_codegen::ir::Function;
use harp_jit::{
    ArchId, CompileError, CompileOptions, Compiler, DivergenceStrategy, SourceMap, Stage,
    StageTimes,
};
use harp_tests::workloads::{Shape, generated};

/// Prints how long the stages of compilation take
#[derive(Parser)]
struct Options {
    /// About how many instructions the functions have; of shapes, how many blocks
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000")]
    insts: Vec<usize>,
    /// The machines
    #[arg(long, value_delimiter = ',', default_value = "harp32,harp64+x")]
    arch: Vec<ArchId>,
    /// Compilations of each function, of which the one with the median of the times is shown
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// Functions of these shapes of control flow, or of `all`, instead of what a front end makes
    #[arg(long, value_delimiter = ',')]
    shape: Vec<String>,
    /// With the checks of each stage
    #[arg(long)]
    verify: bool,
}

impl Options {
    /// The shapes that are asked for; none for what a front end makes.
    fn shapes(&self) -> Result<Vec<Option<Shape>>, String> {
        if self.shape.is_empty() {
            return Ok(vec![None]);
        }
        if self.shape == ["all"] {
            return Ok(Shape::ALL.map(Some).to_vec());
        }
        let find = |name: &String| {
            let found = Shape::ALL.into_iter().find(|shape| shape.name() == name);
            found.map(Some).ok_or_else(|| format!("there is no shape {name}"))
        };
        self.shape.iter().map(find).collect()
    }

    /// The median of several runs.
    fn times(&self, func: &Function, arch: ArchId, options: &CompileOptions) -> Times {
        let mut runs: Vec<StageTimes> = Vec::new();
        for _ in 0..self.runs.max(1) {
            runs.push(Compiler::new(arch, options.clone()).compile_function(func)?.stage_times());
        }
        runs.sort_by_key(StageTimes::total);
        Ok(runs[runs.len() / 2])
    }
}

type Times = Result<StageTimes, CompileError>;

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    print!("{:16} {:14} {:>6} {:12}", "machine", "shape", "size", "strategy");
    Stage::ALL.iter().for_each(|stage| print!(" {stage:>12}"));
    println!(" {:>12} {:>8} {:>8} {:>12}", "all", "analysis", "exponent", "explain");
    for &arch in &options.arch {
        for shape in options.shapes()? {
            for (strategy, divergence) in [
                ("split-join", DivergenceStrategy::SplitJoin),
                ("adaptive", DivergenceStrategy::Adaptive),
            ] {
                let compile_options = CompileOptions {
                    divergence,
                    verify: options.verify,
                    ..CompileOptions::default()
                };
                let mut before: Option<(usize, f64)> = None;
                for &size in &options.insts {
                    let func = match shape {
                        Some(shape) => shape.function(size, arch.word()),
                        None => generated(size, arch.word()),
                    };
                    let name = shape.map_or("generated", Shape::name);
                    print!("{arch:16} {name:14} {size:>6} {strategy:12}");
                    let times = match options.times(&func, arch, &compile_options) {
                        Ok(times) => times,
                        Err(error) if shape.is_some() => {
                            println!(" {error}");
                            continue;
                        }
                        Err(error) => return Err(error.into()),
                    };
                    for stage in Stage::ALL {
                        print!(" {:>12.1?}", times.of(stage));
                    }
                    let all = times.total().as_secs_f64();
                    let share = times.of(Stage::Analysis).as_secs_f64() / all;
                    print!(" {:>12.1?} {:>7.1}%", times.total(), 100.0 * share);
                    let exponent = before
                        .replace((size, all))
                        .map(|(fewer, less)| (all / less).ln() / (size as f64 / fewer as f64).ln());
                    match exponent {
                        Some(exponent) => print!(" {exponent:>8.2}"),
                        None => print!(" {:>8}", ""),
                    }
                    let start = Instant::now();
                    Compiler::new(arch, compile_options.clone())
                        .explain_function(&func, &SourceMap::new())?;
                    println!(" {:>12.1?}", start.elapsed());
                }
            }
        }
    }
    Ok(())
}
