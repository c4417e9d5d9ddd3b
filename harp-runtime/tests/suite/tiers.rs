//! Launches that follow each other on a device, in each tier.

use harp_runtime::Tier;
#[cfg(feature = "native")]
use harp_runtime::jit::{DivergenceStrategy, ir::AtomicRmwOp};
use harp_runtime::prelude::*;

const MACHINES: [&str; 4] = ["harp32", "harp64+x", "4w32/16/32/16+x", "4w8/2/1/1"];

/// `data[i] = (data[i] + more) / divisor`.
fn kernel(arch: ArchId, more: i64) -> Kernel {
    let mut source = KernelSource::new("divides", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (data, divisor) = (b.buffer::<u32>("data"), b.scalar::<u32>("divisor"));
    let i = b.global_id(0);
    let old = b.load(data, i);
    let sum = b.ins().iadd_imm_s(old, more);
    let new = b.ins().udiv(sum, divisor);
    b.store(data, i, new);
    b.return_();
    b.finalize().unwrap();
    source.compile(&CompileOptions::default()).unwrap()
}

/// Adds up numbers below a limit of each work-item, `limits[i]`, if that is above 100. Every other one is counted in `rounds`.
#[cfg(feature = "native")]
fn counting_kernel(arch: ArchId) -> Kernel {
    let mut source = KernelSource::new("counts", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (limits, rounds) = (b.buffer::<u32>("limits"), b.buffer::<u32>("rounds"));
    let sums = b.buffer::<u32>("sums");
    let i = b.global_id(0);
    let limit = b.load(limits, i);
    let [zero, one] = [0, 1].map(|number| b.ins().iconst(types::I32, number));
    let first = b.word_const(0);
    let [begin, head, body, counts, next, end] = [0; 6].map(|_| b.create_block());
    let [k, sum] = [0; 2].map(|_| b.append_block_param(head, types::I32));
    let total = b.append_block_param(end, types::I32);
    let is_long = b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, limit, 100);
    b.ins().brif(is_long, begin, &[], end, &[zero.into()]);
    b.switch_to_block(begin);
    b.ins().jump(head, &[zero.into(), zero.into()]);
    b.switch_to_block(head);
    let goes_on = b.ins().icmp(IntCC::UnsignedLessThan, k, limit);
    b.ins().brif(goes_on, body, &[], end, &[sum.into()]);
    b.switch_to_block(body);
    let mixed = b.ins().bxor(k, limit);
    let is_odd = b.ins().band_imm_u(mixed, 1);
    b.ins().brif(is_odd, counts, &[], next, &[]);
    b.switch_to_block(counts);
    b.atomic(AtomicRmwOp::Add, rounds, first, one);
    b.ins().jump(next, &[]);
    b.switch_to_block(next);
    let (sum_after, k_after) = (b.ins().iadd(sum, mixed), b.ins().iadd(k, one));
    b.ins().jump(head, &[k_after.into(), sum_after.into()]);
    b.switch_to_block(end);
    b.store(sums, i, total);
    b.return_();
    b.finalize().unwrap();
    let divergence = DivergenceStrategy::SplitJoin;
    let options = CompileOptions { divergence, ..CompileOptions::default() };
    source.compile(&options).unwrap()
}

fn device(arch: ArchId, tier: Tier) -> Device {
    Device::new(DeviceConfig { tier, ..DeviceConfig::new(arch) }).unwrap()
}

/// What a device takes over from one launch is right for the next: for the same kernel or another one, behind a trap, with
/// more warps or fewer.
#[test]
fn launches_do_not_depend_on_those_before() {
    for arch in MACHINES.map(|id| id.parse::<ArchId>().unwrap()) {
        let kernels = [kernel(arch, 1), kernel(arch, 5)];
        let devices = [Tier::Interpreter, Tier::Native, Tier::Recorded, Tier::Tiered]
            .map(|tier| device(arch, tier));
        for round in 0..60_u32 {
            let kernel = &kernels[usize::from(round % 7 > 3)];
            let (items, divisor) = ((round * 37 % 400 + 1) as usize, round % 5);
            let [expected, in_host_code @ ..] = devices.each_ref().map(|device| {
                let values: Vec<u32> = (0..items as u32).map(|i| i * round).collect();
                let data = device.buffer_from_slice(&values).unwrap();
                let args = [Arg::from(&data), divisor.into()];
                let report = device.launch(kernel, LaunchConfig::grid_1d(items), &args);
                let outcome = report.map(|report| report.stats).map_err(|error| error.to_string());
                (outcome, device.read(&data).unwrap())
            });
            assert_eq!(expected.0.is_err(), divisor == 0, "{arch}, {round}");
            for seen in in_host_code {
                assert_eq!(seen, expected, "{arch}, {round}");
            }
        }
    }
}

/// Where launches are short, host code begins where warps do.
#[cfg(feature = "native")]
#[test]
fn short_launches_come_to_run_in_host_code() {
    for arch in MACHINES[..3].iter().map(|id| id.parse::<ArchId>().unwrap()) {
        let (kernel, device) = (kernel(arch, 1), device(arch, Tier::Tiered));
        let lanes = usize::from(arch.lanes()) * usize::from(arch.warps());
        let data = device.buffer_zeroed::<u32>(lanes).unwrap();
        let args = [Arg::from(&data), 1_u32.into()];
        let launch = || {
            let report = device.launch(&kernel, LaunchConfig::grid_1d(lanes), &args).unwrap();
            report.warp_instructions()
        };
        // What is being translated is waited for. None if there is no code generator for the host.
        let issued = || device.tier_stats().map(|stats| stats.issued);
        let Some(_) = issued() else { return };
        let is_in_host_code = || {
            let before = issued();
            let all = launch();
            issued().zip(before).is_some_and(|(after, before)| 3 * (after - before) > all)
        };
        let in_host_code = (0..400).any(|_| is_in_host_code());
        assert!(in_host_code, "{arch}");
    }
}

/// Of a work-item that goes round a loop alone, host code keeps what others have other values for, also where the interpreter
/// does an instruction in between.
#[cfg(feature = "native")]
#[test]
fn a_lane_that_goes_on_alone_keeps_its_limit() {
    for arch in ["harp64+x", "4w32/16/32/16+x", "4w32/16/16/32+x"].map(|id| id.parse().unwrap()) {
        let kernel = counting_kernel(arch);
        let devices = [Tier::Interpreter, Tier::Recorded].map(|tier| device(arch, tier));
        let lanes = u32::from(arch.lanes());
        for round in 0..6 {
            let limits: Vec<u32> = (0..lanes)
                .map(|lane| if lane == lanes - 2 { 300 + round } else { lane % 5 + round })
                .collect();
            let [expected, recorded] = devices.each_ref().map(|device| {
                let (limits, rounds) = (device.buffer_from_slice(&limits), device.buffer_zeroed(1));
                let (limits, rounds) = (limits.unwrap(), rounds.unwrap());
                let sums = device.buffer_zeroed::<u32>(lanes as usize).unwrap();
                let args = [Arg::from(&limits), Arg::from(&rounds), Arg::from(&sums)];
                device.launch(&kernel, LaunchConfig::grid_1d(lanes as usize), &args).unwrap();
                (device.read::<u32>(&rounds).unwrap(), device.read(&sums).unwrap())
            });
            assert_eq!(recorded, expected, "{arch}, {round}");
        }
    }
}

/// Numbers about which dividers err.
const EDGES: [u32; 16] = [
    0,
    1,
    2,
    3,
    7,
    10,
    0xffff,
    0x1_0000,
    0x7fff_fffe,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fff9,
    0xffff_fffd,
    0xffff_fffe,
    0xffff_ffff,
];

/// Quotients and remainders, unsigned and signed.
#[test]
fn all_divide_alike() {
    let all = || EDGES.iter().flat_map(|&a| EDGES.iter().map(move |&b| (a, b)));
    let is_defined = |&(a, b): &(u32, u32)| b != 0 && (a, b) != (0x8000_0000, u32::MAX);
    let (a, b): (Vec<u32>, Vec<u32>) = all().filter(is_defined).unzip();
    let expected = a.iter().zip(&b).flat_map(|(&a, &b)| {
        let (signed_a, signed_b) = (a as i32, b as i32);
        [a / b, a % b, (signed_a / signed_b) as u32, (signed_a % signed_b) as u32]
    });
    let expected: Vec<u32> = expected.collect();
    for arch in MACHINES.map(|arch| arch.parse::<ArchId>().unwrap()) {
        let mut source = KernelSource::new("divides", arch);
        let mut builder = KernelBuilder::new(&mut source);
        let [x, y, results] = ["x", "y", "results"].map(|name| builder.buffer::<u32>(name));
        let i = builder.global_id(0);
        let (x, y) = (builder.load(x, i), builder.load(y, i));
        let each = [
            builder.ins().udiv(x, y),
            builder.ins().urem(x, y),
            builder.ins().sdiv(x, y),
            builder.ins().srem(x, y),
        ];
        for (number, result) in (0..).zip(each) {
            let at = builder.ins().imul_imm_s(i, 4);
            let at = builder.ins().iadd_imm_s(at, number);
            builder.store(results, at, result);
        }
        builder.return_();
        builder.finalize().unwrap();
        let kernel = source.compile(&CompileOptions::default()).unwrap();
        for tier in [Tier::Interpreter, Tier::Native] {
            let device = device(arch, tier);
            let [x, y] = [&a, &b].map(|data| device.buffer_from_slice(data).unwrap());
            let results = device.buffer_zeroed::<u32>(4 * a.len()).unwrap();
            let args = [Arg::from(&x), Arg::from(&y), Arg::from(&results)];
            device.launch(&kernel, LaunchConfig::grid_1d(a.len()), &args).unwrap();
            assert_eq!(device.read(&results).unwrap(), expected, "{arch}, {tier:?}");
        }
    }
}
