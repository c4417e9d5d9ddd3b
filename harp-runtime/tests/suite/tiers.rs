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

/// Values of the mixing kernels that are the same in a work-group.
const MIXED: usize = 10;
/// Rounds in which they are mixed.
const MIXING_ROUNDS: u32 = 20;

/// Mixes values that are the same in all work-items of a group, or of the grid, more than machines have registers for, and one
/// of each work-item's own. Groups meet at a barrier in each round.
fn mixing_kernel(arch: ArchId, has_groups: bool) -> Kernel {
    let mut source = KernelSource::new("mixes", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (seeds, results) = (b.buffer::<u32>("seeds"), b.buffer::<u32>("results"));
    let i = b.global_id(0);
    let place = if has_groups { b.group_id(0) } else { b.word_const(0) };
    let seed = b.load(seeds, place);
    let own = b.load(results, i);
    let mut initial = [seed; MIXED + 2];
    for (j, value) in (0..).zip(&mut initial[2..]) {
        *value = b.ins().iadd_imm_s(seed, j);
    }
    (initial[0], initial[1]) = (b.ins().iconst(types::I32, 0), own);
    let [_, own, mixed @ ..] = b.loop_with(initial, |b, values| {
        let [k, own, mixed @ ..] = values;
        let is_end = b.ins().icmp_imm_u(IntCC::Equal, k, i64::from(MIXING_ROUNDS));
        b.break_if(is_end);
        if has_groups {
            b.barrier();
        }
        let mut next = values;
        next[0] = b.ins().iadd_imm_s(k, 1);
        let own = b.ins().imul_imm_s(own, 5);
        next[1] = b.ins().bxor(own, mixed[0]);
        for j in 0..MIXED {
            let three = b.ins().imul_imm_s(mixed[j], 3);
            next[2 + j] = b.ins().iadd(three, mixed[(j + 1) % MIXED]);
        }
        next
    });
    let result = mixed.into_iter().fold(own, |result, value| b.ins().bxor(result, value));
    b.store(results, i, result);
    b.return_();
    b.finalize().unwrap();
    source.compile(&CompileOptions::default()).unwrap()
}

fn mixed(seed: u32, mut own: u32) -> u32 {
    let mut values: [u32; MIXED] = std::array::from_fn(|j| seed.wrapping_add(j as u32));
    for _ in 0..MIXING_ROUNDS {
        own = own.wrapping_mul(5) ^ values[0];
        let old = values;
        values = std::array::from_fn(|j| old[j].wrapping_mul(3).wrapping_add(old[(j + 1) % MIXED]));
    }
    values.iter().fold(own, |result, value| result ^ value)
}

/// Lanes that have no work-item wait while the others run the kernel, and have one in the next group.
#[test]
fn lanes_without_a_work_item_keep_what_they_need() {
    let machines = ["harp32", "harp64+x", "4w32/16/32/16+x", "4w16/8/32/2+x+s8/4", "8w32/16/8/4+x"];
    for arch in machines.map(|id| id.parse::<ArchId>().unwrap()) {
        let kernels = [false, true].map(|has_groups| mixing_kernel(arch, has_groups));
        for tier in [Tier::Interpreter, Tier::Native, Tier::Recorded, Tier::Tiered] {
            let device = device(arch, tier);
            let lanes = usize::from(arch.lanes());
            for size in [1, 3, lanes / 4, 5 * lanes / 8, lanes + 5] {
                let groups = 3 * usize::from(arch.warps()) + 1;
                let items = size * groups;
                let seeds: Vec<u32> = (0..groups as u32).map(|group| 7 * group + 1).collect();
                let owns: Vec<u32> =
                    (0..items as u32).map(|item| item.wrapping_mul(item)).collect();
                for (has_groups, kernel) in [false, true].into_iter().zip(&kernels) {
                    let [seeds_there, results] =
                        [&seeds, &owns].map(|data| device.buffer_from_slice(data).unwrap());
                    let args = [Arg::from(&seeds_there), Arg::from(&results)];
                    let config = match has_groups {
                        true => LaunchConfig::grid_1d(items).with_groups_1d(size),
                        false => LaunchConfig::grid_1d(items),
                    };
                    device.launch(kernel, config, &args).unwrap();
                    let seed = |item: usize| seeds[if has_groups { item / size } else { 0 }];
                    let expected: Vec<u32> = owns
                        .iter()
                        .enumerate()
                        .map(|(item, &own)| mixed(seed(item), own))
                        .collect();
                    let what = format!("{arch}, {tier:?}, groups: {has_groups}, size {size}");
                    assert_eq!(device.read(&results).unwrap(), expected, "{what}");
                }
            }
        }
    }
}

/// A warp that has a work-group alone does not leave host code for barriers.
#[cfg(feature = "native")]
#[test]
fn barriers_of_one_warp_are_passed_in_host_code() {
    let arch: ArchId = "4w32/16/32/16+x".parse().unwrap();
    let kernel = mixing_kernel(arch, true);
    let device = device(arch, Tier::Native);
    for (size, waits) in [(8, false), (32, false), (64, true)] {
        let seeds = device.buffer_zeroed::<u32>(100).unwrap();
        let results = device.buffer_zeroed::<u32>(100 * size).unwrap();
        let args = [Arg::from(&seeds), Arg::from(&results)];
        let config = LaunchConfig::grid_1d(100 * size).with_groups_1d(size);
        device.launch(&kernel, config, &args).unwrap();
        let Some(stats) = device.tier_stats() else { return };
        assert_eq!(stats.left.barrier > 0, waits, "groups of {size}: {stats:?}");
    }
}

/// Tickets that each work-item draws, and counters from which they come.
#[cfg(feature = "native")]
const DRAWS: u32 = 16;
#[cfg(feature = "native")]
const COUNTERS: u32 = 3;

/// Atomic operations of cores that run at the same time: each ticket is drawn once.
#[cfg(feature = "native")]
#[test]
fn cores_draw_each_ticket_once() {
    for arch in ["4w32/16/32/4+x", "8w32/16/8/4+x", "4w16/8/4/2+x"].map(|id| id.parse().unwrap()) {
        let mut source = KernelSource::new("draws", arch);
        let mut b = KernelBuilder::new(&mut source);
        let [counters, sums] = ["counters", "sums"].map(|name| b.buffer::<u32>(name));
        let i = b.global_id(0);
        let number = b.word_const(COUNTERS.into());
        let counter = b.ins().urem(i, number);
        let [zero, one] = [0, 1].map(|value| b.ins().iconst(types::I32, value));
        let [_, sum] = b.loop_with([zero, zero], |b, [k, sum]| {
            let is_end = b.ins().icmp_imm_u(IntCC::Equal, k, i64::from(DRAWS));
            b.break_if(is_end);
            let ticket = b.atomic(AtomicRmwOp::Add, counters, counter, one);
            [b.ins().iadd(k, one), b.ins().iadd(sum, ticket)]
        });
        b.store(sums, i, sum);
        b.return_();
        b.finalize().unwrap();
        let kernel = source.compile(&CompileOptions::default()).unwrap();
        for tier in [Tier::Interpreter, Tier::Native, Tier::Tiered] {
            let device =
                Device::new(DeviceConfig { cores: 4, tier, ..DeviceConfig::new(arch) }).unwrap();
            let items = 6000;
            let counters = device.buffer_zeroed::<u32>(COUNTERS as usize).unwrap();
            let sums = device.buffer_zeroed::<u32>(items).unwrap();
            let args = [Arg::from(&counters), Arg::from(&sums)];
            device.launch(&kernel, LaunchConfig::grid_1d(items), &args).unwrap();
            let drawn = items as u32 / COUNTERS * DRAWS;
            assert_eq!(device.read(&counters).unwrap(), [drawn; COUNTERS as usize], "{arch}");
            let sums = device.read(&sums).unwrap();
            for counter in 0..COUNTERS as usize {
                let of_counter = sums.iter().skip(counter).step_by(COUNTERS as usize);
                let sum = of_counter.fold(0u32, |all, &sum| all.wrapping_add(sum));
                let all = u64::from(drawn) * u64::from(drawn - 1) / 2;
                assert_eq!(sum, all as u32, "{arch}, {tier:?}, counter {counter}");
            }
            if tier == Tier::Native
                && let Some(stats) = device.tier_stats()
            {
                let chunks = items as u64 / u64::from(arch.lanes());
                assert!(stats.left.foreign < chunks, "{arch}: {stats:?}");
            }
        }
    }
}
