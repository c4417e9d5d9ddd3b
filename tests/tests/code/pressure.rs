//! More live values than registers, in both register files, up to frames that immediates do not reach.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use harp_isa::ArchId;
use harp_jit::CompileStats;
use harp_jit::prelude::*;
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig};
use harp_tests::functions::checked;

/// Values that each work-item keeps alive at once. At 4 bytes a slot far more than the 63 bytes that
/// the immediates of the widest register files reach.
const VALUES: i64 = 100;
const ITEMS: usize = 37;

const ARCHS: &[&str] =
    &["harp32", "harp64", "4w8/2/4/2+x", "4w64/64/8/2", "4b8/2/4/2", "8w8/2/4/2", "8b64/64/4/1+x"];

fn launch(arch: ArchId, source: &KernelSource, opt_level: OptLevel) -> (Vec<u64>, Kernel) {
    let options = CompileOptions { opt_level, ..checked() };
    let kernel = source.compile(&options).unwrap();
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    let word = usize::from(arch.word().bytes());
    let buffer = device.buffer_zeroed::<u8>(ITEMS * word).unwrap();
    device.launch(&kernel, LaunchConfig::grid_1d(ITEMS), &[Arg::from(&buffer)]).unwrap();
    let bytes = device.read(&buffer).unwrap();
    let value = |word: &[u8]| word.iter().rev().fold(0, |v, &b| v << 8 | u64::from(b));
    (bytes.chunks(word).map(value).collect(), kernel)
}

/// Compares with the host, and wants spills at the levels `spilling`: those that `spills` counts.
fn each_run(
    kernel: impl Fn(ArchId) -> KernelSource,
    host: impl Fn(u64) -> u64,
    spilling: &[OptLevel],
    spills: impl Fn(CompileStats) -> usize,
) {
    for arch in ARCHS {
        let arch: ArchId = arch.parse().unwrap();
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            let (results, kernel) = launch(arch, &kernel(arch), opt_level);
            let expected: Vec<u64> =
                (0..ITEMS as u64).map(|i| host(i) & arch.word().mask()).collect();
            assert_eq!(results, expected, "{arch} {opt_level:?}");
            let enough = spills(kernel.stats()) > 0 || !spilling.contains(&opt_level);
            assert!(enough, "{arch} {opt_level:?}: nothing was spilled");
        }
    }
}

/// What the work-item's word of the buffer holds after each of many additions, kept until the last
/// is there, then folded from the last to the first. Accesses that may trap stay where they are, so
/// the mid-end cannot shorten the values' lives.
#[test]
fn general_registers_spill() {
    let fold = |sum: u64, value: u64| sum.wrapping_mul(31).wrapping_add(value);
    let host = |i: u64| (0..VALUES as u64).rev().fold(0, |sum, k| fold(sum, (k + 1) * i));
    let kernel = |arch| {
        let mut source = KernelSource::new("general", arch);
        let mut b = KernelBuilder::new(&mut source);
        let word = b.word_int();
        let out = b.param(ParamType::Pointer);
        let i = b.global_id(0);
        let mut values = Vec::new();
        for _ in 0..VALUES {
            let value = b.load_elem(word, out, i);
            let sum = b.ins().iadd(value, i);
            b.store_elem(sum, out, i);
            values.push(sum);
        }
        let mut sum = b.ins().iconst(word, 0);
        for value in values.into_iter().rev() {
            let product = b.ins().imul_imm_s(sum, 31);
            sum = b.ins().iadd(product, value);
        }
        b.store_elem(sum, out, i);
        b.return_();
        b.finalize().unwrap();
        source
    };
    each_run(kernel, host, &[OptLevel::None, OptLevel::Speed], |s| s.spill_slots as usize);
}

/// Whether 3i is above k for all k, kept as truth values until the last is there: on all machines more
/// than predicates. The mid-end compares where the truth value is used instead.
#[test]
fn predicates_spill() {
    let bit = |i: u64, k: u64| u64::from(i * 3 > k) * (k + 1);
    let fold = |sum: u64, value: u64| sum.wrapping_mul(3).wrapping_add(value);
    let host = |i: u64| (0..VALUES as u64).map(|k| bit(i, k)).fold(0, fold);
    let kernel = |arch| {
        let mut source = KernelSource::new("predicates", arch);
        let mut b = KernelBuilder::new(&mut source);
        let word = b.word_int();
        let out = b.param(ParamType::Pointer);
        let i = b.global_id(0);
        let threefold = b.ins().imul_imm_s(i, 3);
        let above: Vec<Value> = (0..VALUES)
            .map(|k| b.ins().icmp_imm_s(IntCC::UnsignedGreaterThan, threefold, k))
            .collect();
        let zero = b.ins().iconst(word, 0);
        let mut sum = zero;
        for (k, above) in (1..).zip(above) {
            let number = b.ins().iconst(word, k);
            let value = b.ins().select(above, number, zero);
            let product = b.ins().imul_imm_s(sum, 3);
            sum = b.ins().iadd(product, value);
        }
        b.store_elem(sum, out, i);
        b.return_();
        b.finalize().unwrap();
        source
    };
    each_run(kernel, host, &[OptLevel::None], |s| s.predicate_spills);
}
