//! `y[i] = a * x[i] + y[i]` over the machine's native float: `f32` on 4-byte words, `f64` on 8-byte
//! words. Product and sum are rounded each.

use std::error::Error;
use std::ops::{Add, Mul};

use harp_isa::{ArchId, WordSize};
use harp_jit::{BuildError, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_runtime::{Arg, Device, Element, LaunchConfig, Report};

use harp_bench::Generator;

/// The factor of every run.
pub const FACTOR: f32 = 2.5;

/// The kernel: parameters `x`, `y` and the factor. No error as long as the builder takes what it is given.
pub fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("saxpy", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (x, y) = (b.param(ParamType::Pointer), b.param(ParamType::Pointer));
    let factor = b.param(match arch.word() {
        WordSize::Four => ParamType::F32,
        WordSize::Eight => ParamType::F64,
    });
    let i = b.global_id(0);
    let float = b.word_float();
    let xi = b.load_elem(float, x, i);
    let yi = b.load_elem(float, y, i);
    let product = b.ins().fmul(factor, xi);
    let sum = b.ins().fadd(product, yi);
    b.store_elem(sum, y, i);
    b.return_();
    b.finalize()?;
    Ok(source)
}

/// `x` and `y`: whole numbers below 1024, taken in turn from the generator.
pub fn inputs(len: usize) -> (Vec<f32>, Vec<f32>) {
    let mut numbers = Generator::new().map(|n| (n & 1023) as f32);
    let mut next = move || numbers.next().expect("the generator never ends");
    (0..len).map(|_| (next(), next())).unzip()
}

/// The same computation on the host.
pub fn on_host<T: Float>(factor: T, x: &[T], y: &[T]) -> Vec<T> {
    x.iter().zip(y).map(|(&x, &y)| factor * x + y).collect()
}

/// The native float of some machine.
pub trait Float: Element + From<f32> + Into<Arg> + Mul<Output = Self> + Add<Output = Self> {}

impl Float for f32 {}
impl Float for f64 {}

/// Runs the kernel on `device` and gives the resulting `y`. Fails with whatever the device reports.
pub fn run<T: Float>(
    device: &Device,
    kernel: &Kernel,
    x: &[f32],
    y: &[f32],
) -> Result<(Vec<T>, Report), Box<dyn Error>> {
    let native = |values: &[f32]| values.iter().map(|&v| T::from(v)).collect::<Vec<T>>();
    let x = device.buffer_from_slice(&native(x))?;
    let y = device.buffer_from_slice(&native(y))?;
    let args = [Arg::from(&x), Arg::from(&y), T::from(FACTOR).into()];
    let report = device.launch(kernel, LaunchConfig::grid_1d(y.len()), &args)?;
    Ok((device.read(&y)?, report))
}
