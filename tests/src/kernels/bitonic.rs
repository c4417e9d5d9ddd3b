//! Bitonic sort of integers: a launch is one step of comparing and exchanging.

use std::error::Error;

use cranelift_codegen::ir::condcodes::IntCC;
use harp_isa::ArchId;
use harp_jit::{BuildError, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_runtime::{Device, LaunchConfig};

use super::array::{Array, int};
use super::{Generator, index_type};

/// The kernel: parameters `d`, the length of the runs that are merged, and the distance of the elements that
/// are compared.
///
/// # Errors
///
/// None as long as the builder takes what it is given.
pub fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("bitonic", arch);
    let mut b = KernelBuilder::new(&mut source);
    let d = b.param(ParamType::Pointer);
    let (k, j) = (b.param(index_type(arch)), b.param(index_type(arch)));
    let i = b.global_id(0);
    let word = b.word_int();
    let l = b.ins().bxor(i, j);
    let is_lower = b.ins().icmp(IntCC::SignedGreaterThan, l, i);
    b.if_then(is_lower, |b| {
        let low = b.load_elem(word, d, i);
        let high = b.load_elem(word, d, l);
        let bit = b.ins().band(i, k);
        let up = b.ins().icmp_imm_s(IntCC::Equal, bit, 0);
        let above = b.ins().icmp(IntCC::SignedGreaterThan, low, high);
        let exchange = b.ins().icmp(IntCC::Equal, above, up);
        b.if_then(exchange, |b| {
            b.store_elem(high, d, i);
            b.store_elem(low, d, l);
        });
    });
    b.return_();
    b.finalize()?;
    Ok(source)
}

fn input(scale: u32) -> Vec<i32> {
    let length = 1 << 16 >> (scale - 1);
    Generator::new().take(length).map(u32::cast_signed).collect()
}

/// Runs all steps; the sorted elements.
///
/// # Errors
///
/// Whatever the device reports.
pub fn run(device: &mut Device, kernel: &Kernel, scale: u32) -> Result<Vec<u32>, Box<dyn Error>> {
    let numbers = input(scale);
    let array = Array::of_ints(device, &numbers)?;
    let mut run = 2;
    while run <= numbers.len() {
        let mut distance = run / 2;
        while distance > 0 {
            let steps = [run, distance].map(|step| int(device, step as i32));
            let [run, distance_arg] = steps;
            let args = [array.arg(), run, distance_arg];
            device.launch(kernel, LaunchConfig::grid_1d(numbers.len()), &args)?;
            distance /= 2;
        }
        run *= 2;
    }
    Ok(array.words(device)?)
}

/// What sorting gives, on the host.
pub fn on_host(scale: u32) -> Vec<u32> {
    let mut numbers = input(scale);
    numbers.sort_unstable();
    numbers.into_iter().map(i32::cast_unsigned).collect()
}
