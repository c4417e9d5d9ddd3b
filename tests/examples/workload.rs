//! Times the workloads from nothing, as `clBuildProgram` and the first launches are timed for OpenCL
//! implementations, and prints one JSON object each: milliseconds to build and compile the kernel, of the
//! first run, of the best of several runs, and the checksum of the output. The exit code is 1 if one is wrong.
//!
//! ```text
//! cargo run --release --example workload -p harp-tests [ARCH] [CORES] [SCALE] [STRATEGY] [RUNS]
//! ```
#![expect(clippy::print_stdout, reason = "the result is for a shell")]

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harp_jit::{CompileOptions, DivergenceStrategy};
use harp_runtime::{Device, DeviceConfig};
use harp_tests::harpbench::peers::{SCALES, WORKLOADS, checksum};
use harp_tests::random::WAYS;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let arch = args.next().unwrap_or_else(|| "4w32/16/32/16+x".to_owned()).parse()?;
    let cores = args.next().map_or(Ok(1), |cores| cores.parse())?;
    let scale = args.next().map_or(Ok(1), |scale| scale.parse())?;
    let strategy = args.next().unwrap_or_else(|| "adaptive".to_owned());
    let runs = args.next().map_or(Ok(5), |runs| runs.parse())?;
    let known = SCALES.iter().position(|&known| known == scale);
    let way = WAYS.into_iter().find(|way| way.name == strategy).ok_or("no such strategy")?;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let mut code = ExitCode::SUCCESS;
    for workload in WORKLOADS {
        let device = Device::new(DeviceConfig { cores, ..DeviceConfig::new(arch) })?;
        let start = Instant::now();
        let source = (workload.source)(arch)?;
        let mut options = CompileOptions { divergence: way.strategy, ..CompileOptions::default() };
        if way.profile {
            let (divergence, count_branches) = (DivergenceStrategy::SplitJoin, true);
            let counting = CompileOptions { divergence, count_branches, ..options.clone() };
            let splits = source.compile(&counting)?;
            match workload.profile(&device, &splits, scale) {
                Ok(profile) => options.profile = Some(Arc::new(profile)),
                Err(error) => {
                    println!(
                        "{{\"kernel\":\"{}\",\"arch\":\"{arch}\",\"error\":\"{error}\"}}",
                        workload.name
                    );
                    continue;
                }
            }
        }
        let kernel = source.compile(&options)?;
        let build = start.elapsed();
        let mut times = Vec::new();
        for _ in 0..runs {
            let start = Instant::now();
            let output = workload.run(&device, &kernel, scale);
            times.push(start.elapsed());
            let output = match output {
                Ok(output) => output,
                Err(error) => {
                    println!(
                        "{{\"kernel\":\"{}\",\"arch\":\"{arch}\",\"error\":\"{error}\"}}",
                        workload.name
                    );
                    break;
                }
            };
            let sum = checksum(output);
            if known.is_some_and(|known| workload.checksums[known] != sum) {
                println!("{} on {arch}: checksum {sum} is wrong", workload.name);
                code = ExitCode::FAILURE;
            }
            if times.len() == runs {
                let best = times.iter().min().copied().unwrap_or_default();
                println!(
                    "{{\"kernel\":\"{}\",\"arch\":\"{arch}\",\"scale\":{scale},\"strategy\":\"{}\",\
                     \"build_ms\":{:.3},\"first_ms\":{:.3},\"best_ms\":{:.4},\"checksum\":{sum}}}",
                    workload.name,
                    way.name,
                    ms(build),
                    ms(times[0]),
                    ms(best)
                );
            }
        }
    }
    Ok(code)
}
