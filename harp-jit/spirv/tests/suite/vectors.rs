//! Vectors of all lengths.

use crate::support::{Case, Level, MACHINES, STRATEGIES, bytes, everywhere, file, numbers};
use harp_isa::ArchId;
use harp_runtime::{Arg, Device, DeviceConfig};
use harp_spirv::SpirvModule;
use rspirv::spirv::Op;

const ITEMS: usize = 20;

/// The distance of vectors in memory: those of 3 components take the room of 4.
fn stride(length: usize) -> usize {
    length.next_power_of_two()
}

fn floats(seed: u64, count: usize) -> Vec<f32> {
    numbers(seed).take(count).map(|n| (n % 2000) as f32 / 8.0 - 100.0).collect()
}

#[test]
fn components_are_computed_one_by_one() {
    everywhere("vectors", |case| {
        for length in [2, 3, 4, 8, 16] {
            let count = ITEMS * stride(length);
            let (x, y) = (floats(1, count), floats(2, count));
            let scale: Vec<f32> = (0..length).map(|n| n as f32 - 1.5).collect();
            let out = case.buffer(&vec![9.0_f32; count]);
            let (xs, ys) = (case.buffer(&x), case.buffer(&y));
            let mut args = vec![Arg::from(&xs), Arg::from(&ys), Arg::from(&out)];
            args.extend(scale.iter().map(|&factor| Arg::from(factor)));
            case.line(&format!("sum{length}"), ITEMS, &args);
            let given = case.read(&out);
            for i in 0..count {
                let component = i % stride(length);
                if component >= length {
                    // clang writes four components.
                    continue;
                }
                let v = x[i] * scale[component] + y[i];
                let wanted = if x[i] < y[i] { -v } else { v };
                assert_eq!(given[i], wanted, "{i} of {length} on {case}");
            }
        }
    });
}

#[test]
fn vectors_load_and_store_at_any_element() {
    everywhere("vectors", |case| {
        for length in [2, 3, 4, 8, 16] {
            let x: Vec<i32> = numbers(3).take(ITEMS * length).map(|n| n as i32).collect();
            let out = case.zeros::<i32>(x.len());
            let args = [Arg::from(&case.buffer(&x)), Arg::from(&out), Arg::from(5)];
            case.line(&format!("data{length}"), ITEMS, &args);
            let wanted: Vec<i32> = x.iter().map(|&n| (n << 5) ^ (n >> 3)).collect();
            assert_eq!(case.read(&out), wanted, "{length} on {case}");
        }
    });
}

#[test]
fn vectors_convert() {
    everywhere("vectors", |case| {
        for length in [2, 3, 4, 8, 16] {
            let count = ITEMS * stride(length);
            let x = floats(4, count);
            let (bytes, near) = (case.zeros::<u8>(count), case.zeros::<i32>(count));
            let args = [Arg::from(&case.buffer(&x)), Arg::from(&bytes), Arg::from(&near)];
            case.line(&format!("convert{length}"), ITEMS, &args);
            let (bytes, near) = (case.read(&bytes), case.read(&near));
            for i in (0..count).filter(|i| i % stride(length) < length) {
                let wanted = (x[i] as u8, x[i].round_ties_even() as i32);
                assert_eq!((bytes[i], near[i]), wanted, "{} on {case}", x[i]);
            }
        }
    });
}

#[test]
fn components_are_rearranged() {
    everywhere("vectors", |case| {
        let x: Vec<i32> = numbers(5).take(4 * ITEMS).map(|n| (n % 9) as i32).collect();
        let out = case.zeros::<i32>(12 * ITEMS);
        case.line("swizzle", ITEMS, &[Arg::from(&case.buffer(&x)), Arg::from(&out)]);
        for (v, given) in x.chunks(4).zip(case.read(&out).chunks(12)) {
            let w = [v[3], v[2], v[1], 7, v[0], v[1], v[1], v[3]];
            let any = i32::from(v.iter().any(|&n| n > 3));
            let all = i32::from(v.iter().all(|&n| n > 3));
            let wanted = [
                [w[0], w[2], w[4], w[6]],
                [w[4] + 1, w[5] + 2, w[6] + 3, w[7] + 4],
                [w[7], w[6], any, all],
            ];
            assert_eq!(given, wanted.concat(), "{v:?} on {case}");
        }
    });
}

#[test]
fn components_are_indexed() {
    everywhere("vectors", |case| {
        let x: Vec<i32> = (0..4 * ITEMS as i32).collect();
        let at: Vec<i32> = numbers(6).take(ITEMS).map(|n| n as i32).collect();
        let out = case.zeros::<i32>(ITEMS);
        let args = [Arg::from(&case.buffer(&x)), Arg::from(&case.buffer(&at)), Arg::from(&out)];
        case.line("indexed", ITEMS, &args);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let k = (at[i] & 3) as usize;
            let wanted = x[4 * i + (k + 1) % 4] + x[4 * i + k] + 100;
            assert_eq!(given, wanted, "{i} on {case}");
        }
    });
}

#[test]
fn components_are_chosen_by_others() {
    everywhere("vectors", |case| {
        let mut random = numbers(7);
        let mut next = |_| random.next().unwrap() as u16;
        let x: Vec<u16> = (0..8 * ITEMS).map(&mut next).collect();
        let mask: Vec<u16> = (0..8 * ITEMS).map(next).collect();
        let out = case.zeros::<u16>(16 * ITEMS);
        let args = [Arg::from(&case.buffer(&x)), Arg::from(&case.buffer(&mask)), Arg::from(&out)];
        case.line("shuffled", ITEMS, &args);
        for (i, given) in case.read(&out).chunks(16).enumerate() {
            let picked = |n: usize| x[8 * i + (mask[8 * i + n] & 7) as usize];
            let wanted: Vec<u16> = (0..16).map(|n| picked(n % 8)).collect();
            assert_eq!(given, wanted, "{i} on {case}");
        }
    });
}

#[test]
fn bits_stay_the_same_in_other_types() {
    everywhere("vectors", |case| {
        let x: Vec<u32> = numbers(8).take(2 * ITEMS).map(|n| n as u32 >> 2).collect();
        let (halves, wide) = (case.zeros::<u16>(4 * ITEMS), case.zeros::<u64>(ITEMS));
        let floats = case.zeros::<f32>(2 * ITEMS);
        let args =
            [Arg::from(&case.buffer(&x)), Arg::from(&halves), Arg::from(&wide), Arg::from(&floats)];
        case.line("recast", ITEMS, &args);
        let halves: Vec<u32> = case
            .read(&halves)
            .chunks(2)
            .map(|pair| u32::from(pair[1]) << 16 | u32::from(pair[0]))
            .collect();
        assert_eq!(halves, x, "{case}");
        let wide: Vec<u32> =
            case.read(&wide).iter().flat_map(|n| [*n as u32, (n >> 32) as u32]).collect();
        assert_eq!(wide, x, "{case}");
        let floats: Vec<u32> = case.read(&floats).into_iter().map(f32::to_bits).collect();
        assert_eq!(floats, x, "{case}");
    });
}

#[test]
fn geometry_is_accurate() {
    everywhere("vectors", |case| {
        let mut x = floats(9, 4 * ITEMS);
        let y = floats(10, 4 * ITEMS);
        // Squares of these are beyond the range of floats, or below it.
        x[..8].copy_from_slice(&[3e30, 0.0, 4e30, 0.0, 3e-30, 0.0, 4e-30, 0.0]);
        let out = case.zeros::<f32>(16 * ITEMS);
        let args = [Arg::from(&case.buffer(&x)), Arg::from(&case.buffer(&y)), Arg::from(&out)];
        case.line("geometry", ITEMS, &args);
        let close = |given: f32, wanted: f64, what: &str| {
            let error = (f64::from(given) - wanted).abs();
            assert!(error <= wanted.abs() * 1e-5 + 1e-2, "{what}: {given}, not {wanted} on {case}");
        };
        for (i, given) in case.read(&out).chunks(16).enumerate().skip(2) {
            let wide = |v: &[f32]| [0, 1, 2, 3].map(|c| f64::from(v[4 * i + c]));
            let (a, b) = (wide(&x), wide(&y));
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let difference: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
            close(given[0], dot(&a, &b), "dot");
            close(given[1], dot(&a, &a).sqrt(), "length");
            close(given[2], dot(&difference, &difference).sqrt(), "distance");
            close(given[3], dot(&a[..3], &a[..3]).sqrt(), "fast length");
            let cross = [
                a[1] * b[2] - a[2] * b[1],
                a[2] * b[0] - a[0] * b[2],
                a[0] * b[1] - a[1] * b[0],
                0.0,
            ];
            for c in 0..4 {
                close(given[4 + c], cross[c], "cross");
                close(given[8 + c], b[c] / dot(&b, &b).sqrt(), "normalize");
            }
            for c in 0..3 {
                close(given[12 + c], cross[c], "cross of 3");
            }
            close(given[15], dot(&a[..2], &b[2..]), "dot of 2");
        }
        let lengths: Vec<f32> = case.read(&out).chunks(16).take(2).map(|given| given[1]).collect();
        assert!((lengths[0] / 5e30 - 1.0).abs() < 1e-6, "{lengths:?} on {case}");
        assert!((lengths[1] / 5e-30 - 1.0).abs() < 1e-6, "{lengths:?} on {case}");
    });
}

/// Optimized, the comparisons of an item are one vector that becomes an integer.
#[test]
fn truth_values_are_bits_of_an_integer() {
    everywhere("truths", |case| {
        let x: Vec<i32> = (0..16 * ITEMS as i32).collect();
        let mut y = x.clone();
        // One differs in each item but every fourth.
        for item in (0..ITEMS).filter(|item| item % 4 != 0) {
            y[16 * item + item * 7 % 16] += 1;
        }
        let (x, y) = (case.buffer(&x), case.buffer(&y));
        let found = case.zeros::<i32>(ITEMS);
        case.line("differ", ITEMS, &[Arg::from(&x), Arg::from(&y), Arg::from(&found)]);
        let wanted: Vec<i32> = (0..ITEMS).map(|item| i32::from(item % 4 != 0)).collect();
        assert_eq!(case.read(&found), wanted, "{case}");
    });
}

/// A module in which some instructions are others with the same operands.
fn changed(module: &[u8], from: Op, to: Op) -> Vec<u8> {
    let words = module.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let mut words: Vec<u32> = words.collect();
    let (mut at, mut found) = (5, 0);
    while at < words.len() {
        let count = words[at] >> 16;
        if words[at] & 0xffff == from as u32 {
            words[at] = count << 16 | to as u32;
            found += 1;
        }
        at += count as usize;
    }
    assert!(found > 0, "no {from:?}");
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// LLVM's `umax` of `i1` is such a comparison, which no compiler makes from a few lines.
#[test]
fn truth_values_are_compared_as_integers_of_one_bit() {
    type Holds = fn(i8, i8) -> bool;
    // With a sign, true is -1.
    let rows: [(Op, i8, Holds); 8] = [
        (Op::UGreaterThan, 1, |x, y| x > y),
        (Op::UGreaterThanEqual, 1, |x, y| x >= y),
        (Op::ULessThan, 1, |x, y| x < y),
        (Op::ULessThanEqual, 1, |x, y| x <= y),
        (Op::SGreaterThan, -1, |x, y| x > y),
        (Op::SGreaterThanEqual, -1, |x, y| x >= y),
        (Op::SLessThan, -1, |x, y| x < y),
        (Op::SLessThanEqual, -1, |x, y| x <= y),
    ];
    let pairs = [(false, false), (false, true), (true, false), (true, true)];
    let sign = |is_below: bool| if is_below { -1.0_f32 } else { 1.0 };
    for (number, id) in MACHINES.into_iter().enumerate() {
        let arch: ArchId = id.parse().unwrap();
        let original = bytes(&file("truths", arch.word(), Level::Optimized));
        for (op, truth, holds) in rows {
            let number_of = |value: bool| if value { truth } else { 0 };
            let wanted = pairs.map(|(x, y)| i32::from(holds(number_of(x), number_of(y))));
            let module = changed(&original, Op::LogicalNotEqual, op);
            let module = SpirvModule::parse(&module).unwrap();
            let device = Device::new(DeviceConfig::new(arch)).unwrap();
            let divergence = STRATEGIES[number];
            let case = Case { arch, level: Level::Optimized, divergence, module, device };
            let first = case.buffer(&pairs.map(|(x, _)| sign(x)));
            let second = case.buffer(&pairs.map(|(_, y)| sign(y)));
            let out = case.zeros::<i32>(4);
            case.line("signs", 4, &[Arg::from(&first), Arg::from(&second), Arg::from(&out)]);
            assert_eq!(case.read(&out), wanted, "{op:?} on {case}");
        }
    }
}
