//! Divergent control flow: lanes of one warp take different sides of nested branches, around a loop
//! that is uniform.
//!
//! ```text
//! cargo run --release --example divergence -p harp-runtime [ARCH]
//! ```
//!
//! Each work-item classifies its number and adds up in a way that depends on the class; the result is
//! compared with the host's, and the machine code shows `split` and `join`.
#![expect(clippy::print_stdout, reason = "an example talks to its user")]

use std::error::Error;

use harp_runtime::prelude::*;

const LEN: usize = 100_003;
const ROUNDS: u32 = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let arch = std::env::args().nth(1).unwrap_or_else(|| "4w32/16/32/16+x".to_owned());
    let arch: ArchId = arch.parse()?;
    let kernel = classify(arch)?.compile(&CompileOptions::default())?;
    let stats = kernel.stats();
    println!(
        "{arch}: {} of {} branches are divergent\n{}",
        stats.divergent_branches,
        stats.branches,
        kernel.disassembly()
    );

    let device = Device::new(DeviceConfig::new(arch))?;
    let out = device.buffer_zeroed::<u8>(LEN * usize::from(arch.word().bytes()))?;
    let args = [Arg::from(&out), Arg::from(ROUNDS)];
    let report = device.launch(&kernel, LaunchConfig::grid_1d(LEN), &args)?;
    println!("{report}");

    let word = usize::from(arch.word().bytes());
    let bytes = device.read(&out)?;
    let results = bytes.chunks(word).map(|w| w.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b)));
    for (i, result) in results.enumerate() {
        let expected = on_host(i as u64);
        if result != expected {
            return Err(format!("work-item {i}: {result}, the host says {expected}").into());
        }
    }
    println!("all {LEN} results equal the host's");
    Ok(())
}

/// The computation of one work-item, on the host.
fn on_host(i: u64) -> u64 {
    let mut value = i;
    if i % 2 == 1 {
        for round in 0..u64::from(ROUNDS) {
            value += if i % 4 == 1 { round } else { 3 * round };
        }
    } else {
        value *= 7;
    }
    value
}

/// The same as a kernel. Whether `i` is odd differs from lane to lane; the number of rounds does
/// not, so the loop on one side of the branch stays a plain loop.
fn classify(arch: ArchId) -> Result<KernelSource, Box<dyn Error>> {
    let mut source = KernelSource::new("classify", arch);
    let mut b = KernelBuilder::new(&mut source);
    let word = b.word_int();
    let out = b.param(ParamType::Pointer);
    let rounds = b.param(ParamType::I32);
    let rounds = if word == types::I32 { rounds } else { b.ins().uextend(word, rounds) };
    let i = b.global_id(0);
    let value = b.declare_var(word);
    b.def_var(value, i);

    let low = b.ins().band_imm_u(i, 1);
    let odd = b.ins().icmp_imm_s(IntCC::Equal, low, 1);
    b.if_else(
        odd,
        |b| {
            let (start, step) = (b.ins().iconst(word, 0), b.ins().iconst(word, 1));
            let class = b.ins().band_imm_u(i, 3);
            let first = b.ins().icmp_imm_s(IntCC::Equal, class, 1);
            b.for_range_unsigned(start, rounds, step, |b, round| {
                b.if_else(
                    first,
                    |b| {
                        let now = b.use_var(value);
                        let sum = b.ins().iadd(now, round);
                        b.def_var(value, sum);
                    },
                    |b| {
                        let now = b.use_var(value);
                        let threefold = b.ins().imul_imm_s(round, 3);
                        let sum = b.ins().iadd(now, threefold);
                        b.def_var(value, sum);
                    },
                );
            });
        },
        |b| {
            let now = b.use_var(value);
            let product = b.ins().imul_imm_s(now, 7);
            b.def_var(value, product);
        },
    );
    let result = b.use_var(value);
    b.store_elem(result, out, i);
    b.return_();
    b.finalize()?;
    Ok(source)
}
