//! `y[i] = a * x[i] + y[i]` over 1,048,576 elements, compared with the host's result bit by bit.
//!
//! ```text
//! cargo run --release --example saxpy -p harp-runtime [ARCH]
//! ```
//!
//! `ARCH` is an architecture id such as `harp32`, `harp64` or `4w32/16/32/16+x` (the default). The
//! elements are of the machine's native float: `f32` on 4-byte words, `f64` on 8-byte words.
#![expect(clippy::print_stdout, reason = "an example talks to its user")]

use std::error::Error;
use std::time::Instant;

use harp_runtime::prelude::*;

const LEN: usize = 1 << 20;
const LAUNCHES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let arch = std::env::args().nth(1).unwrap_or_else(|| "4w32/16/32/16+x".to_owned());
    let arch: ArchId = arch.parse()?;

    let start = Instant::now();
    let source = saxpy(arch)?;
    let built = start.elapsed();
    let kernel = source.compile(&CompileOptions::default())?;
    let compiled = start.elapsed() - built;
    println!("{arch}: built in {built:.1?}, compiled in {compiled:.1?}\n{}", kernel.disassembly());

    // Small whole numbers: exact in both float formats.
    let x: Vec<f32> = (0..LEN).map(|i| (i % 1021) as f32).collect();
    let y: Vec<f32> = (0..LEN).map(|i| (i % 509) as f32).collect();
    let a = 2.5_f32;
    let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| a * x + y).collect();

    let device = Device::new(DeviceConfig::new(arch))?;
    let (result, report) = match arch.word().bytes() {
        4 => run(&device, &kernel, &x, &y, a)?,
        _ => {
            let wide = |values: &[f32]| values.iter().copied().map(f64::from).collect::<Vec<_>>();
            let (result, report) = run(&device, &kernel, &wide(&x), &wide(&y), f64::from(a))?;
            (result.into_iter().map(|v| v as f32).collect(), report)
        }
    };
    println!("{report}");

    let differing = result.iter().zip(&expected).filter(|(a, b)| a.to_bits() != b.to_bits());
    match differing.count() {
        0 => println!("all {LEN} elements equal the host's"),
        wrong => return Err(format!("{wrong} of {LEN} elements differ from the host's").into()),
    }
    Ok(())
}

/// The kernel.
fn saxpy(arch: ArchId) -> Result<KernelSource, Box<dyn Error>> {
    let mut source = KernelSource::new("saxpy", arch);
    let mut b = KernelBuilder::new(&mut source);
    let float = b.word_float();
    let x = b.param(ParamType::Pointer);
    let y = b.param(ParamType::Pointer);
    let a = b.param(if float == types::F32 { ParamType::F32 } else { ParamType::F64 });
    let i = b.global_id(0);
    let xi = b.load_elem(float, x, i);
    let yi = b.load_elem(float, y, i);
    let product = b.ins().fmul(a, xi);
    let sum = b.ins().fadd(product, yi);
    b.store_elem(sum, y, i);
    b.return_();
    b.finalize()?;
    Ok(source)
}

/// Launches the kernel several times, each on fresh data; gives the result and the fastest launch.
fn run<T: Element + Into<Arg>>(
    device: &Device,
    kernel: &Kernel,
    x: &[T],
    y: &[T],
    a: T,
) -> Result<(Vec<T>, Report), Box<dyn Error>> {
    let x = device.buffer_from_slice(x)?;
    let result = device.buffer_from_slice(y)?;
    let mut best: Option<Report> = None;
    for _ in 0..LAUNCHES {
        device.write(&result, y)?;
        let args = [Arg::from(&x), Arg::from(&result), a.into()];
        let report = device.launch(kernel, LaunchConfig::grid_1d(y.len()), &args)?;
        if best.as_ref().is_none_or(|best| report.run_time < best.run_time) {
            best = Some(report);
        }
    }
    Ok((device.read(&result)?, best.ok_or("no launch")?))
}
