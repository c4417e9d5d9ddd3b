//! Floats of 32 and 64 bits, and halves.

use crate::support::{Case, everywhere, numbers};
use harp_runtime::Arg;

/// Edges and numbers of all magnitudes around 1.
fn singles() -> Vec<f32> {
    let mut values = vec![0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.25, 1e-40, -1e-40];
    values.extend([f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN_POSITIVE]);
    values.extend(numbers(11).take(40).map(|n| {
        let exponent = (n >> 40) as i32 % 16 - 8;
        ((n % 4096) as f32 / 1024.0 - 2.0) * (exponent as f32).exp2()
    }));
    values
}

fn pairs() -> (Vec<f32>, Vec<f32>) {
    let values = singles();
    let pairs = values.iter().flat_map(|&x| values.iter().step_by(3).map(move |&y| (x, y)));
    pairs.unzip()
}

macro_rules! same {
    ($given:expr, $wanted:expr, $($what:tt)*) => {{
        let (given, wanted) = ($given, $wanted);
        let same = given.to_bits() == wanted.to_bits() || (given.is_nan() && wanted.is_nan());
        assert!(same, "{}: {given}, not {wanted}", format!($($what)*));
    }};
}

macro_rules! operations {
    ($name:ident, $float:ident, $int:ident, $kernel:literal) => {
        fn $name(case: &Case) {
            let (x, y) = pairs();
            let (x, y): (Vec<$float>, Vec<$float>) = (
                x.into_iter().map($float::from).collect(),
                y.into_iter().map($float::from).collect(),
            );
            let (out, ints) =
                (case.zeros::<$float>(16 * x.len()), case.zeros::<$int>(12 * x.len()));
            let (xs, ys) = (case.buffer(&x), case.buffer(&y));
            let args = [Arg::from(&xs), Arg::from(&ys), Arg::from(&out), Arg::from(&ints)];
            case.line($kernel, x.len(), &args);
            let (out, ints) = (case.read(&out), case.read(&ints));
            for (i, (&a, &b)) in x.iter().zip(&y).enumerate() {
                let given = &out[16 * i..][..16];
                let small = a.abs() < 1e9;
                let pi = std::f64::consts::PI;
                let clamped = a.max(-1.0).min(2.0);
                let wanted = [
                    a + b,
                    a - b,
                    a * b,
                    a / b,
                    -a,
                    if small { a as $int as $float } else { given[5] },
                    if b.abs() < 256.0 { b.abs() as u8 as $float } else { given[6] },
                    if a.is_nan() {
                        b
                    } else if b < a {
                        b
                    } else {
                        a
                    },
                    if a.is_nan() {
                        b
                    } else if b > a {
                        b
                    } else {
                        a
                    },
                    a.abs(),
                    a.copysign(b),
                    if a.is_nan() { given[11] } else { clamped },
                    if b < a { 0.0 } else { 1.0 },
                    if a.is_nan() {
                        0.0
                    } else if a == 0.0 {
                        a
                    } else {
                        a.signum()
                    },
                    a + (b - a) * 0.25,
                    a * ((180.0 / pi) as $float) + b * ((pi / 180.0) as $float),
                ];
                for (op, (&given, &wanted)) in given.iter().zip(&wanted).enumerate() {
                    // Either zero is the smaller or larger one.
                    let zeros = matches!(op, 7 | 8) && a == 0.0 && b == 0.0;
                    // A NaN that is chosen may lose its sign, and sums may be contracted.
                    if zeros || matches!(op, 14 | 15) {
                        continue;
                    }
                    same!(given, wanted, "{} result {op} of {a} and {b} on {case}", $kernel);
                }
                let given = &ints[12 * i..][..12];
                let wanted = [
                    a < b,
                    a <= b,
                    a == b,
                    a != b,
                    false,
                    a.is_nan(),
                    b.is_infinite(),
                    a.is_finite(),
                    b.is_normal(),
                    a.is_sign_negative(),
                    a.is_nan() || b.is_nan(),
                    a != b && !a.is_nan() && !b.is_nan(),
                ];
                for (op, (&given, wanted)) in given.iter().zip(wanted).enumerate() {
                    let wanted =
                        if op == 4 { if a > b { 3 } else { 4 } } else { $int::from(wanted) };
                    if op == 9 && a.is_nan() {
                        continue;
                    }
                    assert_eq!(given, wanted, "{} truth {op} of {a} and {b} on {case}", $kernel);
                }
            }
        }
    };
}

operations!(float, f32, i32, "ops_float");
operations!(double, f64, i64, "ops_double");

#[test]
fn arithmetic_is_the_hosts() {
    everywhere("floats", |case| {
        float(case);
        double(case);
    });
}

/// The value of a half (IEEE 754, section 3.4).
fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        0 => fraction * (-24_f64).exp2(),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction / 1024.0) * f64::from(exponent - 15).exp2(),
    }
}

/// The halves of one sign in their order, with the infinity.
fn neighbors(x: f64) -> (u16, u16) {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let below = (0..=0x7c00_u16).rev().find(|&bits| half(bits) <= x.abs()).unwrap();
    let above = if half(below) == x.abs() { below } else { below + 1 };
    (sign | below, sign | above)
}

/// The half nearest to a number; beyond the largest, a step further is the limit for infinity.
fn nearest(x: f64) -> u16 {
    let (small, large) = neighbors(x);
    let wide = |bits: u16| if bits & 0x7fff == 0x7c00 { 65536.0 } else { half(bits & 0x7fff) };
    let (down, up) = (x.abs() - wide(small), wide(large) - x.abs());
    if x.is_infinite() {
        return large;
    }
    match down.partial_cmp(&up).unwrap() {
        std::cmp::Ordering::Less => small,
        std::cmp::Ordering::Greater => large,
        std::cmp::Ordering::Equal if small & 1 == 0 => small,
        std::cmp::Ordering::Equal => large,
    }
}

fn near_halves() -> Vec<f32> {
    let mut values: Vec<f32> = (0..0x7c00_u16)
        .step_by(97)
        .flat_map(|bits| {
            let (x, next) = (half(bits), half(bits + 1).min(65536.0));
            [x, (x + next) / 2.0, x + (next - x) * 0.3, -x - (next - x) * 0.7]
        })
        .map(|x| x as f32)
        .collect();
    values.extend([65504.0, 65519.0, 65520.0, 65536.0, 1e10, -1e10, 1e-10, -1e-10, -0.0]);
    values.extend([f32::INFINITY, f32::NEG_INFINITY]);
    values
}

#[test]
fn halves_are_rounded_in_all_directions() {
    everywhere("floats", |case| {
        let x = near_halves();
        let (h, back) = (case.zeros::<u16>(5 * x.len()), case.zeros::<f32>(x.len()));
        case.line(
            "halves",
            x.len(),
            &[Arg::from(&case.buffer(&x)), Arg::from(&h), Arg::from(&back)],
        );
        let (h, back) = (case.read(&h), case.read(&back));
        for (i, &x) in x.iter().enumerate() {
            let (small, large) = neighbors(x.into());
            let (up, down) = if x.is_sign_negative() { (small, large) } else { (large, small) };
            let near = nearest(x.into());
            assert_eq!(h[5 * i..][..5], [near, small, up, down, near], "{x} on {case}");
            assert_eq!(f64::from(back[i]), half(near), "{x} on {case}");
        }
        let doubles: Vec<f64> = x.iter().map(|&x| f64::from(x) * (1.0 + 1e-12)).collect();
        let h = case.zeros::<u16>(x.len());
        case.line("half_from_double", x.len(), &[Arg::from(&case.buffer(&doubles)), Arg::from(&h)]);
        for (x, given) in doubles.into_iter().zip(case.read(&h)) {
            assert_eq!(given, nearest(x), "{x} on {case}");
        }
    });
}

#[test]
fn vectors_of_halves_are_dense_or_aligned() {
    everywhere("floats", |case| {
        let x: Vec<f32> = near_halves().into_iter().take(300).collect();
        let (h, aligned) = (case.zeros::<u16>(300), case.zeros::<u16>(400));
        let back = case.zeros::<f32>(300);
        let args =
            [Arg::from(&case.buffer(&x)), Arg::from(&h), Arg::from(&aligned), Arg::from(&back)];
        case.line("half_vectors", 100, &args);
        let (h, aligned, back) = (case.read(&h), case.read(&aligned), case.read(&back));
        for (i, &x) in x.iter().enumerate() {
            let wanted = nearest(x.into());
            assert_eq!((h[i], aligned[i / 3 * 4 + i % 3]), (wanted, wanted), "{x} on {case}");
            assert_eq!(f64::from(back[i]), 2.0 * half(wanted), "{x} on {case}");
        }
    });
}

#[test]
fn arithmetic_of_halves_is_rounded_once() {
    everywhere("floats", |case| {
        let x: Vec<u16> = (0..0x7c00).step_by(311).collect();
        let y: Vec<u16> = x.iter().rev().map(|bits| bits ^ 0x8001).collect();
        let out = case.zeros::<u16>(4 * x.len());
        let args = [Arg::from(&case.buffer(&x)), Arg::from(&case.buffer(&y)), Arg::from(&out)];
        case.line("half_arithmetic", x.len(), &args);
        for (i, given) in case.read(&out).chunks(4).enumerate() {
            let (a, b) = (half(x[i]), half(y[i]));
            let other = match x[i] & 0x7c00 {
                0 => y[i],
                _ if a < b => x[i],
                _ => y[i] ^ 0x8000,
            };
            let wanted = [nearest(a + b), nearest(a * b), nearest(a / b), other];
            assert_eq!(given, wanted, "{a} and {b} on {case}");
        }
    });
}

#[test]
fn halves_are_arguments_as_their_bits() {
    everywhere("floats", |case| {
        // 1.5, -3, 1000
        let x = case.buffer(&[0x3e00_u16, 0xc200, 0x63d0]);
        let args = [Arg::from(&x), 0x4000_u16.into(), 0xc000_u16.into(), 0x5640_u16.into()];
        case.line("half_arguments", 3, &args);
        assert_eq!(case.read(&x), [0x4200, 0xc000, 0x5640], "3, -2, 100 on {case}");
    });
}

/// The floats next to a number: towards zero, up, down, nearest.
fn rounded(exact: i128) -> [f32; 4] {
    let near = exact as f32;
    let error = near as i128 - exact;
    let (up, down) = match error.signum() {
        0 => (near, near),
        1 => (near, near.next_down()),
        _ => (near.next_up(), near),
    };
    [if exact < 0 { up } else { down }, up, down, near]
}

#[test]
fn numbers_are_rounded_in_all_directions() {
    everywhere("floats", |case| {
        let mut x = vec![0, 1, -1, i32::MAX, i32::MIN, i32::MAX - 64, 0x0100_0001, -0x0100_0003];
        x.extend(numbers(12).take(40).map(|n| n as i32));
        let mut y = vec![0, u64::MAX, u64::MAX - 1, 1 << 40 | 1, 1 << 63];
        y.extend(numbers(13).take(x.len() - y.len()));
        let d: Vec<f64> = y.iter().map(|&y| (y as f64 - 2e18) * 1.234e-9).collect();
        let out = case.zeros::<f32>(12 * x.len());
        let args = [
            Arg::from(&case.buffer(&x)),
            Arg::from(&case.buffer(&y)),
            Arg::from(&out),
            Arg::from(&case.buffer(&d)),
        ];
        case.line("rounded", x.len(), &args);
        for (i, given) in case.read(&out).chunks(12).enumerate() {
            assert_eq!(given[..4], rounded(x[i].into()), "{} on {case}", x[i]);
            assert_eq!(given[4..8], rounded(y[i].into()), "{} on {case}", y[i]);
            let near = d[i] as f32;
            let up = if f64::from(near) < d[i] { near.next_up() } else { near };
            let down = if f64::from(near) > d[i] { near.next_down() } else { near };
            let zero = if d[i] < 0.0 { up } else { down };
            assert_eq!(given[8..], [zero, up, down, near], "{} on {case}", d[i]);
        }
    });
}

#[test]
fn floats_become_integers() {
    everywhere("floats", |case| {
        let x: Vec<f32> =
            singles().into_iter().filter(|x| x.abs() < 1e5 || x.is_infinite()).collect();
        let out = case.zeros::<i32>(8 * x.len());
        case.line("to_integers", x.len(), &[Arg::from(&case.buffer(&x)), Arg::from(&out)]);
        for (&x, given) in x.iter().zip(case.read(&out).chunks(8)) {
            let wanted = [
                x.round_ties_even() as i32,
                x.ceil() as i32,
                x.floor() as i32,
                (x * 1e9) as i32,
                (x * 1e9).floor() as u32 as i32,
                i32::from(x as i8),
                i32::from((x * 100.0).ceil() as i16),
                i32::from(x as u8),
            ];
            for (op, (&given, wanted)) in given.iter().zip(wanted).enumerate() {
                // Without saturation, what is out of range may become anything.
                if op < 3 && x.is_infinite() {
                    continue;
                }
                assert_eq!(given, wanted, "result {op} of {x} on {case}");
            }
        }
    });
}

#[test]
fn functions_have_their_results() {
    everywhere("floats", |case| {
        let x: Vec<f32> =
            singles().into_iter().filter(|x| x.is_normal() && x.abs() < 1e3).collect();
        let (out, ints) = (case.zeros::<f32>(16 * x.len()), case.zeros::<i32>(2 * x.len()));
        case.line(
            "math",
            x.len(),
            &[Arg::from(&case.buffer(&x)), Arg::from(&out), Arg::from(&ints)],
        );
        let (out, ints) = (case.read(&out), case.read(&ints));
        for (i, &x) in x.iter().enumerate() {
            let wide = f64::from(x);
            let given = &out[16 * i..][..16];
            let rest = wide - 3.0 * (wide / 3.0).round_ties_even();
            let wanted = [
                wide.fract(),
                wide.trunc(),
                (wide - wide.floor()).min(1.0 - f64::EPSILON),
                wide.floor(),
                wide / f64::from(ints[2 * i]).exp2(),
                wide * 8.0,
                wide.abs().sqrt(),
                wide.floor()
                    + wide.ceil() * 2.0
                    + wide.trunc() * 4.0
                    + wide.round_ties_even() * 8.0
                    + wide.round() * 16.0,
                wide * 3.0 + 1.0,
                wide.sin(),
                wide.cos(),
                rest,
                (wide * f64::from(0.1_f32)).exp(),
                wide.abs().powf(1.5),
                wide.atan2(2.0),
                wide % 1.25,
            ];
            for (op, (&given, wanted)) in given.iter().zip(wanted).enumerate() {
                let error = (f64::from(given) - wanted).abs();
                assert!(
                    error <= wanted.abs() * 1e-6 + 1e-7,
                    "result {op} of {x}: {given}, not {wanted} on {case}"
                );
            }
            assert!((0.5..1.0).contains(&given[4].abs()), "{x} on {case}");
            let quotient = (wide / 3.0).round_ties_even() as i64;
            assert_eq!(i64::from(ints[2 * i + 1]), quotient & 7, "{x} on {case}");
        }
    });
}

#[test]
fn halves_are_vectors_and_matrices() {
    crate::shaders::everywhere("halves", |case| {
        // Vectors of small integers, of which the first two of three are not parallel.
        let mut random = numbers(23).map(|n| (n % 7) as f64 - 3.0);
        let mut given = Vec::new();
        while given.len() < 16 {
            let six: [f64; 6] = std::array::from_fn(|_| random.next().unwrap());
            if six[0] * six[3] != six[1] * six[2] {
                given.push(six);
            }
        }
        let bits: Vec<u16> = given.as_flattened().iter().map(|&x| neighbors(x).0).collect();
        let out = case.zeros::<u16>(16 * 12);
        let args = [Arg::from(&case.buffer(&bits)), Arg::from(&out)];
        case.launch("main", crate::shaders::groups(16, 4), &args);
        for (&[x0, x1, y0, y1, z0, z1], found) in given.iter().zip(case.read(&out).chunks(12)) {
            let dot = x0 * y0 + x1 * y1;
            let turned = if z0 * y0 + z1 * y1 < 0.0 { 1.0 } else { -1.0 };
            let k = 1.0 - 0.25 * (1.0 - dot * dot);
            let refracted = |x: f64, y: f64| match k < 0.0 {
                true => 0.0,
                false => 0.5 * x - (0.5 * dot + k.sqrt()) * y,
            };
            let determinant = x0 * y1 - y0 * x1;
            let inverse = [y1, -x1, -y0, x0].map(|part| part / determinant);
            let mut wanted = vec![turned * x0, turned * x1];
            wanted.extend([x0 - 2.0 * dot * y0, x1 - 2.0 * dot * y1]);
            wanted.extend([refracted(x0, y0), refracted(x1, y1), determinant, determinant]);
            wanted.extend(inverse);
            for (&found, wanted) in found.iter().zip(wanted) {
                let near = (half(found) - wanted).abs() <= wanted.abs() / 1024.0;
                assert!(near, "{} for {wanted}, of {x0} {x1}, {y0} {y1} on {case}", half(found));
            }
        }
    });
}

#[test]
fn exponents_have_any_width() {
    let exponents = [0, 1, -1, 10, -20, 100, 127, -128, 126, -149, 300, -300];
    let cases: Vec<(f32, i32)> =
        singles().into_iter().flat_map(|x| exponents.map(|e| (x, e))).take(240).collect();
    let (xs, es): (Vec<_>, Vec<_>) = cases.iter().copied().unzip();
    crate::shaders::everywhere("exponents", |case| {
        let out = case.zeros::<f32>(3 * cases.len());
        let args = [Arg::from(&case.buffer(&xs)), Arg::from(&case.buffer(&es)), Arg::from(&out)];
        case.launch("main", crate::shaders::groups(cases.len(), 4), &args);
        for (&(x, e), found) in cases.iter().zip(case.read(&out).chunks(3)) {
            let by = |exponent: i32| (f64::from(x) * f64::from(exponent).exp2()) as f32;
            // 2 to the power of 32 and more leaves nothing, or all.
            let far = by(e.signum() * 600);
            for (given, wanted) in found.iter().zip([by(e), by(i32::from(e as i8)), far]) {
                same!(*given, wanted, "{x} times 2 to the {e} on {case}");
            }
        }
    });
}
