//! Control flow, calls, and variables of a work-item's own.

use std::sync::Arc;

use crate::support::{Level, bytes, everywhere, file};
use harp_jit::{CompileOptions, DivergenceStrategy, Kernel};
use harp_runtime::{Arg, LaunchConfig};
use harp_spirv::SpirvModule;

/// Runs a kernel that takes and gives an integer for each work-item.
fn each(kernel: &str, inputs: &[i32], host: impl Fn(i32) -> i32) {
    everywhere("control", |case| {
        let (x, out) = (case.buffer(inputs), case.zeros::<i32>(inputs.len()));
        case.line(kernel, inputs.len(), &[Arg::from(&x), Arg::from(&out)]);
        for (&n, given) in inputs.iter().zip(case.read(&out)) {
            assert_eq!(given, host(n), "{kernel} of {n} on {case}");
        }
    });
}

fn collatz(mut n: i32) -> i32 {
    let mut steps = 0;
    while n != 1 {
        n = if n % 2 != 0 { 3 * n + 1 } else { n / 2 };
        steps += 1;
    }
    steps
}

#[test]
fn instructions_for_debuggers_may_stand_before_phis() {
    everywhere("lines", |case| {
        let (x, out) = (case.buffer(&[3, 1, 4, 1, 5]), case.zeros::<i32>(40));
        case.line("sums", 40, &[Arg::from(&x), Arg::from(&out), Arg::from(5)]);
        assert_eq!(case.read(&out), [46; 40], "{case}");
    });
}

/// A module in which blocks that begin with a phi begin with merge instructions, two of them, as some translators write them.
fn merges_before_phis(module: &[u8]) -> Vec<u8> {
    const PHI: u32 = 245;
    const LOOP_MERGE: u32 = 246;
    const LABEL: u32 = 248;
    let words = module.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let words: Vec<u32> = words.collect();
    let (header, mut rest) = words.split_at(5);
    let (mut changed, mut label) = (header.to_vec(), None);
    while let Some(&first) = rest.first() {
        let (inst, others) = rest.split_at((first >> 16) as usize);
        if let (PHI, Some(label)) = (first & 0xffff, label) {
            changed.extend([4 << 16 | LOOP_MERGE, label, label, 0].repeat(2));
        }
        label = (first & 0xffff == LABEL).then(|| inst[1]);
        changed.extend(inst);
        rest = others;
    }
    changed.into_iter().flat_map(u32::to_le_bytes).collect()
}

#[test]
fn merge_instructions_may_stand_before_phis() {
    everywhere("control", |case| {
        let original = bytes(&file("control", case.arch.word(), case.level));
        let changed = merges_before_phis(&original);
        assert!(case.level == Level::Unoptimized || changed.len() > original.len(), "{case}");
        let module = SpirvModule::parse(&changed).unwrap();
        let kernel = module.kernel("loops", case.arch).unwrap();
        let kernel = kernel.compile(&CompileOptions::default()).unwrap();
        let x = case.buffer(&[5, 70, 0, 23]);
        let run = |kernel: &Kernel| {
            let out = case.zeros::<i32>(4);
            case.run(kernel, LaunchConfig::grid_1d(4), &[Arg::from(&x), Arg::from(&out)]);
            case.read(&out)
        };
        assert_eq!(run(&kernel), run(&case.kernel("loops")), "{case}");
    });
}

#[test]
fn loops_end_where_they_should() {
    let inputs: Vec<i32> = (0..70).collect();
    each("loops", &inputs, |x| {
        let (mut n, mut sum) = (x, 0);
        for k in 0..n {
            if k % 7 == 3 {
                continue;
            }
            if sum > 1000 {
                break;
            }
            sum += k * k;
            let mut j = k;
            while j > 0 {
                if (j ^ n) & 4 != 0 {
                    sum += j;
                } else {
                    sum -= 1;
                }
                j /= 2;
            }
        }
        loop {
            sum ^= n;
            n -= 3;
            if n <= 0 {
                break;
            }
        }
        sum + collatz(x + 1)
    });
}

fn classify(n: i32) -> i32 {
    match n {
        0 => 100,
        1 | 2 => (n + 5) * 2,
        3 => 6,
        -4 => -1,
        1000 => 6,
        _ if n < 0 => n - 1,
        _ => 9,
    }
}

#[test]
fn switches_take_the_right_case() {
    everywhere("control", |case| {
        let x = [0, 1, 2, 3, 4, -4, -5, 1000, 999, i32::MAX, i32::MIN + 1];
        let y = [1_i64 << 32, -1, 5, 0, 6, 5, 4, -1, 1 << 32, 0xffff_ffff, 1];
        let z = [-100_i8, 100, 0, -100, 99, 100, -1, 0, 1, 2, 3];
        let out = case.zeros::<i32>(x.len());
        let (xs, ys, zs) = (case.buffer(&x), case.buffer(&y), case.buffer(&z));
        let args = [Arg::from(&xs), Arg::from(&ys), Arg::from(&zs), Arg::from(&out)];
        case.line("switches", x.len(), &args);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let by_long = match y[i] {
                0x1_0000_0000 => 1000,
                -1 => 2000,
                5 => 3000,
                _ => 0,
            };
            let by_char = match z[i] {
                -100 => 10000,
                100 => 20000,
                _ => 30000,
            };
            assert_eq!(given, classify(x[i]) + by_long + by_char, "{i} on {case}");
        }
    });
}

#[test]
fn early_returns_leave_others_running() {
    let inputs: Vec<i32> = (-5..40).collect();
    each("early", &inputs, |x| match x {
        ..0 => 1,
        _ => (0..x).find(|k| k * k == x).map_or(3, |k| k + 10),
    });
}

#[test]
fn loops_with_two_entries_run() {
    let inputs: Vec<i32> = (-3..30).collect();
    each("jumps", &inputs, |x| {
        let (mut n, mut sum) = (x, 0_i32);
        let mut at_middle = n & 1 != 0;
        loop {
            if !at_middle {
                sum += n;
                n -= 1;
            }
            at_middle = false;
            sum = sum.wrapping_mul(3).wrapping_add(1);
            if n <= 0 {
                return sum;
            }
            n -= 2;
        }
    });
}

#[test]
fn functions_call_themselves() {
    fn fibonacci(n: i32) -> i32 {
        if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
    }
    each("recursion", &[0, 1, 2, 5, 8, 3, 7, 6, 4, 9, 10, 1, 0, 2, 6, 5, 11], fibonacci);
}

#[test]
fn functions_that_are_called_know_their_work_item() {
    everywhere("control", |case| {
        let x: Vec<i32> = (0..20).map(|n| n * 7 % 11).collect();
        let out = case.zeros::<i32>(20);
        let config = LaunchConfig::grid_1d(20).with_groups_1d(4);
        case.launch("climbing", config, &[Arg::from(&case.buffer(&x)), Arg::from(&out)]);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let here = x[i] + (i % 4) as i32 * 1000;
            let wanted = (0..i % 5).fold(here, |sum, _| 3 * sum - here);
            assert_eq!(given, wanted, "{i} on {case}");
        }
    });
}

#[test]
fn a_profile_is_of_the_kernel_and_not_of_its_functions() {
    everywhere("control", |case| {
        let (x, out) = (case.buffer(&[7, 1, 6, 0]), case.zeros::<i32>(4));
        let args = [Arg::from(&x), Arg::from(&out)];
        let kernel = case.module.kernel("recursion", case.arch).unwrap();
        let compiled = |divergence, profile| {
            let options = CompileOptions { divergence, profile, ..CompileOptions::default() };
            kernel.compile(&options).unwrap_or_else(|error| panic!("{case}: {error}"))
        };
        let observed = compiled(DivergenceStrategy::SplitJoin, None);
        let report = case.run(&observed, LaunchConfig::grid_1d(4).with_branch_profile(), &args);
        let profile = Arc::new(report.branches.unwrap());
        let again = compiled(DivergenceStrategy::Adaptive, Some(profile));
        case.run(&again, LaunchConfig::grid_1d(4), &args);
        assert_eq!(case.read(&out), [13, 1, 8, 0], "{case}");
    });
}

#[test]
fn structures_return_from_functions_that_call_each_other() {
    everywhere("control", |case| {
        let x: Vec<i32> = (0..24).map(|n| n * 7 % 11).collect();
        let out = case.zeros::<i64>(2 * 20);
        case.line("mutual", 20, &[Arg::from(&case.buffer(&x)), Arg::from(&out)]);
        for (i, given) in case.read(&out).chunks(2).enumerate() {
            let count = i + 1;
            let sum: i64 = x[..count].iter().copied().map(i64::from).sum();
            let mean = sum as f32 / count as f32;
            let signed = if x[i] % 2 == 0 { sum } else { -sum };
            let wanted = [signed, count as i64 * 1000 + (mean * 8.0) as i64];
            assert_eq!(given, wanted, "{i} on {case}");
        }
    });
}

#[test]
fn variables_are_indexed_and_passed_by_address() {
    everywhere("control", |case| {
        let x: Vec<i32> = crate::support::numbers(3).take(8 * 40).map(|n| n as i32).collect();
        let out = case.zeros::<i32>(x.len());
        case.line("sorting", x.len() / 8, &[Arg::from(&case.buffer(&x)), Arg::from(&out)]);
        let mut wanted = x;
        wanted.chunks_mut(8).for_each(<[i32]>::sort_unstable);
        assert_eq!(case.read(&out), wanted, "{case}");
    });
}
