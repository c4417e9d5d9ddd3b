//! Products of matrices.

use harp_runtime::{Arg, LaunchConfig};

use super::{close, floats, opencl, tiles, wide};
use crate::support::numbers;

/// The product of two matrices; `inner` columns and rows meet.
pub(crate) fn product(a: &[f64], b: &[f64], inner: usize) -> Vec<f64> {
    let columns = b.len() / inner;
    let element = |row: &[f64], x: usize| {
        row.iter().zip(b.chunks(columns)).map(|(a, b)| a * b[x]).sum::<f64>()
    };
    a.chunks(inner).flat_map(|row| (0..columns).map(move |x| element(row, x))).collect()
}

pub(crate) fn transposed(a: &[f64], columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|x| a.chunks(columns).map(move |row| row[x])).collect()
}

/// `alpha a + beta b`
pub(crate) fn combined(alpha: f64, a: &[f64], beta: f64, b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| alpha * a + beta * b).collect()
}

#[test]
fn blocks_and_tiles_multiply() {
    let size = 16;
    let (a, b) = (floats(11, size * size, -1.0..1.0), floats(12, size * size, -1.0..1.0));
    let wanted = product(&wide(&a), &wide(&b), size);
    opencl("matrix_multiplication", |case| {
        let (a, b) = (case.buffer(&a), case.buffer(&b));
        let config = LaunchConfig::grid_2d(size / 4, size / 4);
        for (kernel, count, config) in
            [("blocks", size / 4, config), ("tiles", size, tiles([size; 2], [4, 4]))]
        {
            let c = case.zeros::<f32>(size * size);
            let args = [(&a).into(), (&b).into(), (&c).into(), (count as u32).into()];
            case.launch(kernel, config, &args);
            close(&case.read(&c), &wanted, 1e-5, case);
        }
    });
}

#[test]
fn two_products_add_up() {
    let (rows, inner, middle, columns) = (5, 6, 7, 4);
    let doubles = |seed, count| wide(&floats(seed, count, -1.0..1.0));
    let (a, b) = (doubles(13, rows * inner), doubles(14, inner * middle));
    let (c, d) = (doubles(15, middle * columns), doubles(16, rows * columns));
    let (alpha, beta) = (1.5, -0.75);
    let product_of_two = product(&a, &b, inner);
    let wanted = combined(alpha, &product(&product_of_two, &c, middle), beta, &d);
    opencl("two_products", |case| {
        let product = case.zeros::<f64>(rows * middle);
        let (a, b, c, d) = (case.buffer(&a), case.buffer(&b), case.buffer(&c), case.buffer(&d));
        let args =
            [(&a).into(), (&b).into(), (&product).into(), (inner as i32).into(), alpha.into()];
        case.launch("first", LaunchConfig::grid_2d(middle, rows), &args);
        let args =
            [(&product).into(), (&c).into(), (&d).into(), (middle as i32).into(), beta.into()];
        case.launch("second", LaunchConfig::grid_2d(columns, rows), &args);
        close(&case.read(&d), &wanted, 1e-13, case);
    });
}

#[test]
fn products_take_structures_and_integers() {
    let (rows, inner, columns) = (6, 9, 7);
    let floats = [rows * inner, inner * columns, rows * columns]
        .map(|count| floats(17 + count as u64, count, -2.0..2.0));
    let (alpha, beta) = (0.5, 1.25);
    let [a, b, c] = floats.each_ref().map(|values| wide(values));
    let wanted = combined(alpha, &product(&a, &b, inner), beta, &c);
    let longs = [rows * inner, inner * columns, rows * columns]
        .map(|count| numbers(count as u64).map(u64::cast_signed).take(count).collect::<Vec<_>>());
    opencl("gemm", |case| {
        let config = LaunchConfig::grid_2d(columns, rows);
        let [a, b, c] = floats.each_ref().map(|values| case.buffer(values));
        let terms = [(alpha as f32).into(), (beta as f32).into(), (inner as i32).into()];
        let args = [&[(&a).into(), (&b).into(), (&c).into()], &terms[..]].concat();
        case.launch("floats", config, &args);
        close(&case.read(&c), &wanted, 1e-5, case);
        let [a, b, c] = longs.each_ref().map(|values| case.buffer(values));
        let terms = [(inner as i32).into(), (-3_i64).into(), (1_i64 << 33).into()];
        let args = [&[(&a).into(), (&b).into(), (&c).into()], &terms[..]].concat();
        case.launch("integers", config, &args);
        let [a, b, old]: &[Vec<i64>; 3] = &longs;
        for (at, given) in case.read(&c).into_iter().enumerate() {
            let sum = (0..inner).fold(0_i64, |sum, k| {
                let term = a[at / columns * inner + k].wrapping_mul(b[k * columns + at % columns]);
                sum.wrapping_add(term)
            });
            let wanted = sum.wrapping_mul(-3).wrapping_add(old[at].wrapping_mul(1 << 33));
            assert_eq!(given, wanted, "{at} on {case}");
        }
    });
}

#[test]
fn triangles_are_updated() {
    let (size, inner) = (7, 5);
    let (a, b) = (floats(21, size * inner, -1.0..1.0), floats(22, size * inner, -1.0..1.0));
    let c = floats(23, size * size, -1.0..1.0);
    let (alpha, beta) = (1.5, -0.5);
    let (wide_a, wide_b) = (wide(&a), wide(&b));
    let one = product(&wide_a, &transposed(&wide_a, inner), inner);
    let mixed = product(&wide_a, &transposed(&wide_b, inner), inner);
    let two = combined(1.0, &mixed, 1.0, &transposed(&mixed, size));
    let wanted = |sums: &[f64]| {
        let mut wanted = combined(alpha, sums, beta, &wide(&c));
        for (at, value) in wanted.iter_mut().enumerate() {
            if at % size > at / size {
                *value = c[at].into();
            }
        }
        wanted
    };
    opencl("syrk", |case| {
        let (a, b) = (case.buffer(&a), case.buffer(&b));
        let numbers = [(inner as i32).into(), (alpha as f32).into(), (beta as f32).into()];
        for (kernel, inputs, sums) in
            [("one", vec![Arg::from(&a)], &one), ("two", vec![(&a).into(), (&b).into()], &two)]
        {
            let c = case.buffer(&c);
            let args = [&inputs[..], &[(&c).into()], &numbers[..]].concat();
            case.launch(kernel, LaunchConfig::grid_2d(size, size), &args);
            close(&case.read(&c), &wanted(sums), 1e-5, case);
        }
    });
}
