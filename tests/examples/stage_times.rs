//! How long the stages of compilation take for functions of several sizes on which lanes disagree, and what
//! share of it the analyses have.
#![expect(clippy::print_stdout, reason = "it is what the example is for")]

use std::error::Error;

use clap::Parser;
use harp_jit::{ArchId, CompileOptions, DivergenceStrategy, Stage, StageTimes, compile_function};
use harp_tests::workloads::generated;

/// Prints how long the stages of compilation take
#[derive(Parser)]
struct Options {
    /// About how many instructions the functions have
    #[arg(long, value_delimiter = ',', default_value = "100,1000,10000")]
    insts: Vec<usize>,
    /// The machines
    #[arg(long, value_delimiter = ',', default_value = "harp32,harp64+x")]
    arch: Vec<ArchId>,
    /// Compilations of each function, of which the one with the median of the times is shown
    #[arg(long, default_value_t = 5)]
    runs: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    print!("{:16} {:>6} {:12}", "machine", "insts", "strategy");
    Stage::ALL.iter().for_each(|stage| print!(" {stage:>12}"));
    println!(" {:>12} {:>8}", "all", "analysis");
    for &arch in &options.arch {
        for &insts in &options.insts {
            let func = generated(insts, arch.word());
            for (name, divergence) in [
                ("split-join", DivergenceStrategy::SplitJoin),
                ("adaptive", DivergenceStrategy::Adaptive),
            ] {
                let compile_options =
                    CompileOptions { divergence, verify: false, ..CompileOptions::default() };
                let mut runs: Vec<StageTimes> = Vec::new();
                for _ in 0..options.runs.max(1) {
                    runs.push(compile_function(&func, arch, &compile_options)?.stage_times());
                }
                runs.sort_by_key(StageTimes::total);
                let times = runs[runs.len() / 2];
                print!("{arch:16} {insts:>6} {name:12}");
                for stage in Stage::ALL {
                    print!(" {:>12.1?}", times.of(stage));
                }
                let share = times.of(Stage::Analysis).as_secs_f64() / times.total().as_secs_f64();
                println!(" {:>12.1?} {:>7.1}%", times.total(), 100.0 * share);
            }
        }
    }
    Ok(())
}
