//! Times a workload from nothing, as `clBuildProgram` and the first launch are timed for OpenCL
//! implementations, and prints one JSON object: milliseconds to build and compile the kernel, of the
//! first launch, of the best later launch, and the checksum of the output.
//!
//! ```text
//! cargo run --release --example workload -p harp-tests [ARCH] [CORES]
//! ```
#![expect(clippy::print_stdout, reason = "the result is for a shell")]

use std::error::Error;
use std::time::{Duration, Instant};

use harp_jit::CompileOptions;
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig};
use harp_tests::kernels::{checksum, saxpy};

const LEN: usize = 1 << 20;
const LATER_LAUNCHES: usize = 9;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let arch = args.next().unwrap_or_else(|| "4w32/16/32/16+x".to_owned()).parse()?;
    let mut config = DeviceConfig::new(arch);
    config.cores = args.next().map_or(Ok(1), |cores| cores.parse())?;

    let start = Instant::now();
    let kernel = saxpy::source(arch)?.compile(&CompileOptions::default())?;
    let build = start.elapsed();
    let start = Instant::now();
    let device = Device::new(config)?;
    let device_time = start.elapsed();

    let (x, y) = saxpy::inputs(LEN);
    let (x, y) = (device.buffer_from_slice(&x)?, device.buffer_from_slice(&y)?);
    let args = [Arg::from(&x), Arg::from(&y), Arg::from(saxpy::FACTOR)];
    let launch = |device: &Device| {
        let start = Instant::now();
        device.launch(&kernel, LaunchConfig::grid_1d(LEN), &args).map(|_| start.elapsed())
    };
    let first = launch(&device)?;
    let sum = checksum(device.read(&y)?.into_iter().map(f32::to_bits));
    let mut best = first;
    for _ in 0..LATER_LAUNCHES {
        best = best.min(launch(&device)?);
    }
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{{\"kernel\":\"saxpy\",\"arch\":\"{arch}\",\"items\":{LEN},\"device_ms\":{:.3},\
         \"build_ms\":{:.3},\"first_ms\":{:.3},\"best_ms\":{:.4},\"checksum\":{sum}}}",
        ms(device_time),
        ms(build),
        ms(first),
        ms(best)
    );
    Ok(())
}
