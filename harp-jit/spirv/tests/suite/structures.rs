//! Structures and arrays in memory.

use crate::support::{Case, Level, MACHINES, bytes, everywhere};
use harp_jit::DivergenceStrategy;
use harp_runtime::{Arg, Checks, Device, DeviceConfig, FindingKind, LaunchConfig};
use harp_spirv::SpirvModule;

const INPUTS: [i32; 9] = [0, 1, 2, 3, 17, 100, 6, 5, 4];

#[test]
fn members_are_where_c_puts_them() {
    everywhere("structures", |case| {
        // tag at 0, id at 2, place at 16, weight at 32, bytes at 40; 48 in all.
        let (x, out) = (case.buffer(&INPUTS), case.buffer(&[0xee_u8; 48 * INPUTS.len()]));
        case.line("layout", INPUTS.len(), &[Arg::from(&out), Arg::from(&x)]);
        for (&n, given) in INPUTS.iter().zip(case.read(&out).chunks(48)) {
            let mut wanted = [0xee_u8; 48];
            wanted[0] = n as u8;
            wanted[2..4].copy_from_slice(&(n as i16 * 3).to_le_bytes());
            for part in 0..3 {
                let at = 16 + 4 * part;
                wanted[at..at + 4].copy_from_slice(&(n + part as i32).to_le_bytes());
            }
            wanted[32..40].copy_from_slice(&(f64::from(n) * 0.5).to_le_bytes());
            wanted[40 + (n % 3) as usize] = 77;
            // The fourth component of `place` is nobody's.
            wanted[28..32].copy_from_slice(&given[28..32]);
            assert_eq!(given, wanted, "{n} on {case}");
        }
    });
}

#[test]
fn packed_members_need_not_be_aligned() {
    everywhere("structures", |case| {
        let (x, out) = (case.buffer(&INPUTS), case.zeros::<u8>(7 * INPUTS.len()));
        case.line("packed", INPUTS.len(), &[Arg::from(&out), Arg::from(&x)]);
        for (&n, given) in INPUTS.iter().zip(case.read(&out).chunks(7)) {
            let wanted =
                [&[1][..], &(n * 1_000_003).to_le_bytes(), &(n as i16).to_le_bytes()].concat();
            assert_eq!(given, wanted, "{n} on {case}");
        }
    });
}

#[test]
fn structures_by_value_are_arguments_for_each_member() {
    everywhere("structures", |case| {
        let kernel = case.kernel("by_value");
        let names: Vec<_> = kernel.params().iter().map(|param| param.name().unwrap()).collect();
        assert_eq!(names, ["p.0", "p.1", "p.2[0]", "p.2[1]", "x", "out", "q.x", "q.y"]);
        let (x, out) = (case.buffer(&INPUTS), case.zeros::<f32>(INPUTS.len()));
        let args = [
            Arg::from(2.0_f32),
            Arg::from(0.5_f32),
            Arg::from(3),
            Arg::from(4),
            Arg::from(&x),
            Arg::from(&out),
            Arg::from(7.0_f32),
            Arg::from(0.25_f32),
        ];
        case.line("by_value", INPUTS.len(), &args);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let mut at = [3, 4];
            at[i & 1] += INPUTS[i];
            let sum = 2.0 * INPUTS[i] as f32 + 0.5 + (at[0] * 100) as f32 + (at[1] * 10000) as f32;
            assert_eq!(given, sum + 7.0 - 0.25, "{i} on {case}");
        }
    });
}

#[test]
fn structures_are_copied() {
    everywhere("structures", |case| {
        let words: Vec<u32> = (0..20_u32)
            .flat_map(|n| [(n as f32 + 0.5).to_bits(), 2.0_f32.to_bits(), n, n * 10])
            .collect();
        let (out, floats) = (case.zeros::<u32>(words.len()), case.zeros::<f32>(20));
        case.line(
            "copies",
            20,
            &[Arg::from(&case.buffer(&words)), Arg::from(&out), Arg::from(&floats)],
        );
        let (given, floats) = (case.read(&out), case.read(&floats));
        for n in 0..20_u32 {
            let k = n % 3;
            let x = n as f32 + 0.5;
            let wanted = [(x + k as f32).to_bits(), 2.0_f32.to_bits(), n, (n * 10).wrapping_sub(k)];
            assert_eq!(given[n as usize * 4..][..4], wanted, "{n} on {case}");
            assert_eq!(floats[n as usize], -x, "{n} on {case}");
        }
    });
}

#[test]
fn constants_are_data() {
    everywhere("structures", |case| {
        let x: Vec<i32> = (0..12).collect();
        let more: Vec<i16> = (0..12).map(|n| n * 5).collect();
        let out = case.zeros::<i32>(x.len());
        let args = [Arg::from(&case.buffer(&x)), Arg::from(&out), Arg::from(&case.buffer(&more))];
        case.line("constants", x.len(), &args);
        for (k, given) in x.iter().copied().zip(case.read(&out)) {
            let table = (k % 4) * 3 + k % 3 + 1;
            let (y, at) = if k % 2 == 0 { (25, 4) } else { (-25, -4) };
            let length = ["one", "two", "three"][k as usize % 3].len() as i32;
            let z = if k & 1 == 0 { 3 } else { 6 };
            let wanted = table + y + at * 1000 + length * 100_000 + k * 5 + z * 10_000_000;
            assert_eq!(given, wanted, "{k} on {case}");
        }
    });
}

#[test]
fn what_is_not_aligned_as_the_module_says_is_found() {
    everywhere("structures", |case| {
        let bytes: Vec<u8> = (0..64_u8).map(|n| n.wrapping_mul(37)).collect();
        let number = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
        let (given, out) = (case.buffer(&bytes), case.zeros::<u32>(8));
        let args = |by: u32| [Arg::from(&given), by.into(), Arg::from(&out)];
        case.line("apart", 8, &args(4));
        let wanted = |i: usize| number(4 * i + 4).wrapping_add(number(4 * i + 1).wrapping_mul(2));
        assert_eq!(case.read(&out), (0..8).map(wanted).collect::<Vec<_>>(), "{case}");

        let mut checks = Checks::none();
        checks.alignment = true;
        let config = LaunchConfig::grid_1d(8).with_checks(checks);
        let Some(found) = case.found("apart", config, &args(2)) else { return };
        let (one, wanted) = (&found.list[0], FindingKind::Misaligned { alignment: 4 });
        assert_eq!((found.list.len(), &one.kind, one.count), (1, &wanted, 8), "{found} on {case}");
    });
}

#[test]
fn what_is_between_members_may_be_copied() {
    everywhere("structures", |case| {
        let (len, shift) = (10, 1);
        let out = case.zeros::<f64>(len);
        case.line("sparse_copies", len, &[Arg::from(&out), Arg::from(shift)]);
        let wanted = |i: i32| {
            let from = |n: i32| if n == shift % 3 { (i + shift) % 3 } else { n };
            let n = f64::from(from((i + 2 * shift) % 3));
            let i = f64::from(i);
            i + n + 0.5 * n + 100.0 * i + 1000.0 * n - 10000.0 * i
        };
        assert_eq!(case.read(&out), (0..len as i32).map(wanted).collect::<Vec<_>>(), "{case}");
    });
}

#[test]
fn structures_point_to_structures() {
    everywhere("structures", |case| {
        let len = 12;
        let word = usize::from(case.arch.word().bytes());
        let (nodes, sums) = (case.zeros::<u8>(2 * word * len), case.zeros::<i32>(len));
        let config = LaunchConfig::grid_1d(len).with_groups_1d(len);
        case.launch("linked", config, &[Arg::from(&nodes), Arg::from(&sums)]);
        let wanted = (0..len as i32).scan(0, |sum, i| {
            *sum += i * i;
            Some(*sum)
        });
        assert_eq!(case.read(&sums), wanted.collect::<Vec<_>>(), "{case}");
        let out = case.zeros::<i32>(len);
        case.line("owned", len, &[Arg::from(&out)]);
        let wanted = (0..len as i32).map(|i| 100 * (i + (i & 1)) + 10 * i);
        assert_eq!(case.read(&out), wanted.collect::<Vec<_>>(), "{case}");
    });
}

/// Tests the module of assembly about addresses on machines with words of 8 bytes.
fn with_addresses(test: impl Fn(&Case)) {
    for id in &MACHINES[2..] {
        let (arch, level) = (id.parse().unwrap(), Level::Optimized);
        let module = SpirvModule::parse(&bytes("addresses.spv")).unwrap();
        let device = Device::new(DeviceConfig::new(arch)).unwrap();
        test(&Case { arch, level, divergence: DivergenceStrategy::SplitJoin, module, device });
    }
}

#[test]
fn private_variables_of_a_module_are_data() {
    everywhere("structures", |case| {
        let x: Vec<i32> = (0..12).collect();
        let out = case.zeros::<i32>(x.len());
        case.line("tallied", x.len(), &[Arg::from(&out), Arg::from(&case.buffer(&x))]);
        for (k, given) in x.iter().copied().zip(case.read(&out)) {
            let mut of = [1, -2, 3, -4, 5, -6, 7, -8, 9];
            (0..4).for_each(|n| of[((k + n) & 7) as usize] += k);
            let wanted = of.iter().fold(0, |sum, value| sum * 3 + value);
            assert_eq!(given, wanted, "{k} on {case}");
        }
    });
}

#[test]
fn what_fills_memory_is_aligned() {
    everywhere("structures", |case| {
        let x: Vec<i32> = (0..12).map(|n| n * 5 % 31).collect();
        let out = case.zeros::<u32>(x.len());
        case.line("fills", x.len(), &[Arg::from(&out), Arg::from(&case.buffer(&x))]);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let mut of = [u32::MAX; 31];
            of[x[i] as usize] = (i + [1, 2, 3][i % 3] - 1) as u32;
            let wanted =
                of.iter().fold(0, |sum: u32, value| sum.wrapping_mul(3).wrapping_add(*value));
            assert_eq!(given, wanted, "{i} on {case}");
        }
    });
}

#[test]
fn structures_by_value_are_copies_for_functions() {
    everywhere("structures", |case| {
        let x: Vec<i32> = (0..12).map(|n| n * 7 % 12).collect();
        let out = case.zeros::<i32>(x.len());
        case.line("spending", x.len(), &[Arg::from(&out), Arg::from(&case.buffer(&x))]);
        let left = |i: i32, n: i32| (i * 100 - n) * 10 + i + (n & 3) - n;
        for (i, given) in (0..).zip(case.read(&out)) {
            let n = x[i as usize];
            let all: i32 = left(i, n) + (0..3).map(|k| left(i, k)).sum::<i32>();
            assert_eq!(given, all * 100 + i * 100 + i + (n & 3), "{i} on {case}");
        }
    });
}

#[test]
fn memory_is_aligned_as_types_are_large() {
    everywhere("structures", |case| {
        let (out, few) = (case.zeros::<u32>(9 * 6), case.buffer(&[5_u8, 0, 0]));
        let many = case.buffer(&[7_u64; 16]);
        let args = [
            Arg::from(&out),
            Arg::from(&few),
            Arg::from(&many),
            Arg::group::<u8>(3),
            Arg::group::<f64>(16),
        ];
        let wide = [10, 20, 30, 40].map(Arg::from);
        let args: Vec<Arg> = args.into_iter().chain([Arg::from(3_u8)]).chain(wide).collect();
        case.launch("alignments", LaunchConfig::grid_1d(6).with_groups_1d(6), &args);
        let wanted = [0, 0, 0, 0, 0, 0, 0, 0, 33];
        assert_eq!(case.read(&out), wanted.repeat(6), "{case}");
    });
}

#[test]
fn structures_may_have_no_members() {
    everywhere("structures", |case| {
        let out = case.zeros::<i32>(3);
        case.line("nothings", 3, &[Arg::from(&out)]);
        assert_eq!(case.read(&out), [1, 1, 1], "{case}");
    });
}

#[test]
fn variables_are_aligned_as_they_are_decorated() {
    with_addresses(|case| {
        let out = case.zeros::<u64>(4);
        case.launch("aligned", LaunchConfig::grid_1d(1).with_groups_1d(1), &[Arg::from(&out)]);
        let (one, other) = (0x0807_0605_0403_0201, 0x0102_0304_0506_0708);
        assert_eq!(case.read(&out), [one, other, one, other], "{case}");
    });
}

#[test]
fn indices_have_signs() {
    with_addresses(|case| {
        let ints = case.buffer(&[5_u32, 6, 7, 8, 9]);
        case.line("backwards", 5, &[Arg::from(&ints)]);
        assert_eq!(case.read(&ints), [6, 7, 8, 9, 10], "{case}");
    });
}

#[test]
fn hints_change_nothing() {
    with_addresses(|case| {
        let counts = case.buffer(&[5_u32, 0]);
        case.launch("hints", LaunchConfig::grid_1d(1), &[Arg::from(&counts)]);
        assert_eq!(case.read(&counts), [5, 5], "{case}");
    });
}

#[test]
fn phis_may_take_pointers_that_are_made_behind_them() {
    with_addresses(|case| {
        let out = case.zeros::<u32>(1);
        case.launch("late", LaunchConfig::grid_1d(1), &[Arg::from(&out)]);
        assert_eq!(case.read(&out), [3], "{case}");
    });
}

#[test]
fn functions_of_other_modules_are_named() {
    with_addresses(|case| {
        let error = case.module.kernel("calls", case.arch).unwrap_err();
        assert!(
            error.to_string().contains("the function `elsewhere`, which is imported"),
            "{error}"
        );
    });
}
