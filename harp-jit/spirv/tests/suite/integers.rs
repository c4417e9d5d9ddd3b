//! Operations on integers of all widths.

use crate::support::{Case, dot_of_bytes, everywhere, numbers};
use harp_runtime::Arg;

/// Operands: the edges of the type with each other, and random ones of all magnitudes.
macro_rules! operands {
    ($ty:ty) => {{
        let edges: [$ty; 7] = [0, 1, 2, <$ty>::MAX, <$ty>::MIN, <$ty>::MAX / 3, !0];
        let mut pairs: Vec<($ty, $ty)> =
            edges.iter().flat_map(|&x| edges.iter().map(move |&y| (x, y))).collect();
        let mut random = numbers(7);
        let mut next = || {
            let magnitude = random.next().unwrap() % u64::from(<$ty>::BITS);
            (random.next().unwrap() as $ty) >> magnitude
        };
        pairs.extend((0..30).map(|_| (next(), next())));
        pairs
    }};
}

fn columns<T: Copy>(pairs: &[(T, T)]) -> (Vec<T>, Vec<T>) {
    pairs.iter().copied().unzip()
}

macro_rules! arithmetic {
    ($($name:ident: $ty:ident, $unsigned:ident, $signed:ident;)*) => { $(
        fn $name(case: &Case) {
            let pairs = operands!($ty);
            let (x, y) = columns(&pairs);
            let (x, y) = (case.buffer(&x), case.buffer(&y));
            let out = case.zeros::<$ty>(24 * pairs.len());
            let kernel = concat!("ops_", stringify!($name));
            case.line(kernel, pairs.len(), &[Arg::from(&x), Arg::from(&y), Arg::from(&out)]);
            let results = case.read(&out);
            for (&(a, b), given) in pairs.iter().zip(results.chunks(24)) {
                let minus_one = !0 as $ty;
                let divisor = if b == minus_one { 1 } else { b };
                let odd = b | 1;
                let shift = (b & 7) as u32;
                let truth = |truth: bool| truth as $ty;
                let wanted = [
                    a.wrapping_add(b),
                    a.wrapping_sub(b),
                    a.wrapping_mul(b),
                    a.checked_div(divisor).unwrap_or(0),
                    if odd == minus_one { 0 } else { a % odd },
                    a & b,
                    a | b,
                    a ^ b,
                    !a,
                    a.wrapping_neg(),
                    a.wrapping_shl(shift),
                    a.wrapping_shr(shift),
                    truth(a < b),
                    truth(a <= b),
                    truth(a == b),
                    a.max(b),
                    a as $unsigned as $ty,
                    b as $signed as $ty,
                    a as i8 as $ty,
                    b as u16 as $ty,
                    a as i16 as f32 as $ty,
                    truth(a == 0),
                    truth(a != 0 && b != 0),
                    truth(a != 0 || b != 0),
                ];
                for (op, (given, wanted)) in given.iter().zip(wanted).enumerate() {
                    // A negative float has no unsigned integer.
                    if op == 20 && (a as i16) < 0 && $ty::MIN == 0 { continue; }
                    // Of 8 bits not all shorts have one either.
                    if op == 20 && $ty::BITS < 16 { continue; }
                    assert_eq!(*given, wanted, "{kernel}, result {op} of {a} and {b} on {case}");
                }
            }
        }
    )* };
}

arithmetic! {
    char: i8, u8, i8;
    uchar: u8, u8, i8;
    short: i16, u16, i16;
    ushort: u16, u16, i16;
    int: i32, u32, i32;
    uint: u32, u32, i32;
    long: i64, u64, i64;
    ulong: u64, u64, i64;
}

#[test]
fn arithmetic_is_the_hosts() {
    everywhere("integers", |case| {
        for test in [char, uchar, short, ushort, int, uint, long, ulong] {
            test(case);
        }
    });
}

/// The functions of OpenCL.std, computed in 128 bits.
macro_rules! builtins {
    ($($name:ident: $ty:ident $kernel:literal;)*) => { $(
        fn $name(case: &Case) {
            let pairs = operands!($ty);
            let (x, y) = columns(&pairs);
            let z: Vec<$ty> = x.iter().rev().copied().collect();
            let out = case.zeros::<$ty>(20 * pairs.len());
            let (xs, ys, zs) = (case.buffer(&x), case.buffer(&y), case.buffer(&z));
            let args = [Arg::from(&xs), Arg::from(&ys), Arg::from(&zs), Arg::from(&out)];
            case.line($kernel, pairs.len(), &args);
            let results = case.read(&out);
            for (number, given) in results.chunks(20).enumerate() {
                let (a, b, c) = (x[number], y[number], z[number]);
                let (wa, wb, wc) = (i128::from(a), i128::from(b), i128::from(c));
                let sat = |value: i128| value.clamp($ty::MIN.into(), $ty::MAX.into()) as $ty;
                let high = (wa.wrapping_mul(wb) >> $ty::BITS) as $ty;
                // Two factors of 64 bits are too large for the type that is computed in.
                let product = wa.checked_mul(wb).unwrap_or(i128::MAX / 2);
                let (lo, hi) = (a.min(b), a.max(b));
                let wanted = [
                    wa.unsigned_abs() as $ty,
                    (wa - wb).unsigned_abs() as $ty,
                    sat(wa + wb),
                    sat(wa - wb),
                    ((wa + wb) >> 1) as $ty,
                    ((wa + wb + 1) >> 1) as $ty,
                    c.clamp(lo, hi),
                    a.leading_zeros() as $ty,
                    high.wrapping_add(c),
                    sat(product + wc),
                    lo,
                    hi,
                    high,
                    a.rotate_left(b.rem_euclid($ty::BITS as $ty) as u32),
                    a.count_ones() as $ty,
                    (a & !c) | (b & c),
                    if c != 0 { b } else { a },
                ];
                for (op, (given, wanted)) in given.iter().zip(wanted).enumerate() {
                    let kernel = $kernel;
                    assert_eq!(*given, wanted, "{kernel}, result {op} of {a}, {b}, {c} on {case}");
                }
            }
        }
    )* };
}

builtins! {
    char_builtins: i8 "builtins_char";
    uchar_builtins: u8 "builtins_uchar";
    short_builtins: i16 "builtins_short";
    ushort_builtins: u16 "builtins_ushort";
    int_builtins: i32 "builtins_int";
    uint_builtins: u32 "builtins_uint";
    long_builtins: i64 "builtins_long";
    ulong_builtins: u64 "builtins_ulong";
}

#[test]
fn functions_of_integers_are_exact() {
    everywhere("integers", |case| {
        for test in [
            char_builtins,
            uchar_builtins,
            short_builtins,
            ushort_builtins,
            int_builtins,
            uint_builtins,
            long_builtins,
            ulong_builtins,
        ] {
            test(case);
        }
    });
}

#[test]
fn functions_of_several_widths_are_exact() {
    everywhere("integers", |case| {
        let pairs = operands!(i32);
        let (x, y) = columns(&pairs);
        let out = case.zeros::<i64>(8 * pairs.len());
        let (xs, ys) = (case.buffer(&x), case.buffer(&y));
        case.line("mixed", pairs.len(), &[Arg::from(&xs), Arg::from(&ys), Arg::from(&out)]);
        let results = case.read(&out);
        for (&(a, b), given) in pairs.iter().zip(results.chunks(8)) {
            let product = i64::from(a) * i64::from(b);
            let short = |x: i32| x << 8 >> 8;
            let wanted = [
                i64::from(a) << 32 | i64::from(b as u32),
                i64::from(a) << 32 | i64::from(b as u32),
                i64::from(i32::from(a as i16) << 16 | i32::from(b as u16)),
                i64::from(short(a).wrapping_mul(short(b)).wrapping_add(5)),
                i64::from((a as u32 & 0xff_ffff).wrapping_mul(b as u32 & 0xff_ffff)),
                i64::from(a.clamp(0, 255)) + (i64::from(b.clamp(-128, 127)) << 8),
                product.clamp(0, 65535),
                // The sum is one of unsigned integers of 32 bits.
                i64::from(
                    (product.clamp(0, u32::MAX.into()) as u32)
                        .wrapping_add(product.clamp(i32::MIN.into(), i32::MAX.into()) as u32),
                ),
            ];
            assert_eq!(given, wanted, "{a} and {b} on {case}");
        }
    });
}

#[test]
fn divisions_never_trap() {
    everywhere("integers", |case| {
        let pairs = operands!(i32);
        let (x, y) = columns(&pairs);
        let out = case.zeros::<i32>(4 * pairs.len());
        let (xs, ys) = (case.buffer(&x), case.buffer(&y));
        case.line("divisions", pairs.len(), &[Arg::from(&xs), Arg::from(&ys), Arg::from(&out)]);
        let results = case.read(&out);
        for (&(a, b), given) in pairs.iter().zip(results.chunks(4)) {
            let next = b.wrapping_add(1);
            if let Some(quotient) = a.checked_div(b) {
                assert_eq!(given[0], quotient, "{a} / {b} on {case}");
            }
            if let Some(rest) = a.checked_rem(next) {
                assert_eq!(given[1], rest, "{a} % {next} on {case}");
            }
            if let Some(quotient) = a.checked_div(-1) {
                assert_eq!(given[2], quotient, "{a} / -1 on {case}");
                assert_eq!(given[3], a / -7, "{a} % -1 + {a} / -7 on {case}");
            }
        }
    });
}

#[test]
fn dots_of_four_bytes() {
    everywhere("integers", |case| {
        let mut pairs = operands!(u32);
        // Sums that leave the range of the type on either side, and bytes of both signs.
        pairs.extend([0x7fff_ff80, 0x8000_0080, 0x8080_8080, u32::MAX].map(|a| (a, 0x8080_7f7f)));
        let (x, y) = columns(&pairs);
        let out = case.zeros::<u32>(12 * pairs.len());
        let (xs, ys) = (case.buffer(&x), case.buffer(&y));
        case.line("dots", pairs.len(), &[Arg::from(&xs), Arg::from(&ys), Arg::from(&out)]);
        for (&(a, b), given) in pairs.iter().zip(case.read(&out).chunks(12)) {
            let within = |sum: i64| sum.clamp(i32::MIN.into(), i32::MAX.into());
            let signs = [[false, false], [true, true], [false, true], [true, false]];
            let sums = signs.map(|signs| dot_of_bytes(a, b, signs));
            let mut more = sums.map(|sum| within(sum + i64::from(a.cast_signed())));
            more[0] = (sums[0] + i64::from(a)).min(u32::MAX.into());
            let wanted = [sums, more, more].concat();
            assert!(
                wanted.iter().map(|&sum| sum as u32).eq(given.iter().copied()),
                "{a:#x} and {b:#x} on {case}: {given:?}, not {wanted:?}"
            );
        }
    });
}
