//! Functions in kernels whose lanes go different ways, at random: each lane gets what it gets alone.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types;
use harp_jit::{CompileOptions, DivergenceStrategy, KernelBuilder, KernelSource, ParamType};
use harp_libm::{Float, Fma, Math, Operand, expand};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig};

use crate::support::samples::{Random, edges};

/// Rounds that a lane may do.
const ROUNDS: usize = 6;

/// The functions of a number that give one.
fn functions() -> Vec<Math> {
    let is_plain =
        |math: &&Math| math.parameters() == [Operand::Float] && math.results() == [Operand::Float];
    Math::ALL.iter().filter(is_plain).copied().collect()
}

/// What work-items get that apply, in as many rounds as the number beside the argument says, one function in odd rounds
/// and the other one in even rounds.
fn results(
    arch: &str,
    divergence: DivergenceStrategy,
    [odd, even]: [Math; 2],
    numbers: &[f32],
    rounds: &[u32],
) -> Vec<u32> {
    let arch = arch.parse().unwrap();
    let mut source = KernelSource::new("alternate", arch);
    let mut b = KernelBuilder::new(&mut source);
    let [numbers_at, rounds_at] = [(); 2].map(|()| b.param(ParamType::Pointer));
    let i = b.global_id(0);
    let number = b.load_elem(types::F32, numbers_at, i);
    let rounds_to_do = b.load_elem(types::I32, rounds_at, i);
    let [result, _] = b.loop_with([number, rounds_to_do], |b, [number, rounds]| {
        let is_done = b.ins().icmp_imm_s(IntCC::Equal, rounds, 0);
        b.break_if(is_done);
        let next = b.inner().declare_var(types::F32);
        let is_odd = b.ins().band_imm_u(rounds, 1);
        let apply = |b: &mut KernelBuilder<'_>, math| {
            let results = expand(b.inner(), math, Float::F32, Fma::Fast, &[number]).unwrap();
            b.inner().def_var(next, results[0]);
        };
        b.if_else(is_odd, |b| apply(b, odd), |b| apply(b, even));
        [b.inner().use_var(next), b.ins().iadd_imm_s(rounds, -1)]
    });
    b.store_elem(result, numbers_at, i);
    b.return_();
    b.finalize().unwrap();
    let options = CompileOptions { divergence, ..CompileOptions::default() };
    let kernel = source.compile(&options).unwrap();
    let device = Device::new(DeviceConfig::new(arch)).unwrap();
    let buffer = device.buffer_from_slice(numbers).unwrap();
    let args = [Arg::from(&buffer), Arg::from(&device.buffer_from_slice(rounds).unwrap())];
    device.launch(&kernel, LaunchConfig::grid_1d(numbers.len()), &args).unwrap();
    device.read(&buffer).unwrap().into_iter().map(f32::to_bits).collect()
}

#[test]
fn each_lane_gets_what_it_gets_alone() {
    let (functions, edges) = (functions(), edges(Float::F32));
    let strategies = [
        DivergenceStrategy::SplitJoin,
        DivergenceStrategy::Predicate,
        DivergenceStrategy::Static,
        DivergenceStrategy::Adaptive,
    ];
    for (seed, divergence) in (0..).zip(strategies.into_iter().cycle().take(12)) {
        let mut random = Random(seed);
        let mut pick = |count: usize| (random.bits() % count as u64) as usize;
        let pair = [functions[pick(functions.len())], functions[pick(functions.len())]];
        let numbers: Vec<f32> = (0..96)
            .map(|item| match item % 3 {
                0 => edges[pick(edges.len())] as f32,
                1 => f32::from_bits(pick(1 << 32) as u32),
                _ => pick(4000) as f32 / 100.0 - 20.0,
            })
            .collect();
        let rounds: Vec<u32> = numbers.iter().map(|_| pick(ROUNDS) as u32).collect();
        let alone =
            results("4w32/16/1/1+x", DivergenceStrategy::SplitJoin, pair, &numbers, &rounds);
        let together = results("4w32/16/32/1+x", divergence, pair, &numbers, &rounds);
        for (item, (alone, together)) in alone.iter().zip(&together).enumerate() {
            let names = pair.map(Math::name);
            assert_eq!(
                together, alone,
                "seed {seed}, {names:?} by {divergence:?}: {:e}, {} rounds",
                numbers[item], rounds[item]
            );
        }
    }
}
