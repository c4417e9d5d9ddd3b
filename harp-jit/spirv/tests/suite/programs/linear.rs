//! Products of matrices with vectors.

use harp_runtime::{Arg, LaunchConfig};

use super::products::{combined, product, transposed};
use super::{close, floats, groups, opencl, wide};

#[test]
fn the_transpose_times_a_product() {
    let (rows, columns) = (13, 10);
    let (a, x) = (floats(31, rows * columns, -1.0..1.0), floats(32, columns, -1.0..1.0));
    let wide_a = wide(&a);
    let t = product(&wide_a, &wide(&x), columns);
    let wanted = product(&transposed(&wide_a, columns), &t, rows);
    opencl("atax", |case| {
        let (a, x) = (case.buffer(&a), case.buffer(&x));
        let (t, y) = (case.zeros::<f32>(rows), case.zeros::<f32>(columns));
        let sizes = [rows as i32, columns as i32].map(Arg::from);
        for (kernel, from, to) in [("times", &x, &t), ("transposed", &t, &y)] {
            let args = [&[(&a).into(), from.into(), to.into()], &sizes[..]].concat();
            case.launch(kernel, groups(rows.max(columns), 8), &args);
        }
        close(&case.read(&y), &wanted, 1e-5, case);
    });
}

#[test]
fn both_products_of_a_step() {
    let (rows, columns) = (9, 12);
    let a = floats(33, rows * columns, -1.0..1.0);
    let (r, p) = (floats(34, rows, -1.0..1.0), floats(35, columns, -1.0..1.0));
    let wide_a = wide(&a);
    let by_columns = product(&transposed(&wide_a, columns), &wide(&r), rows);
    let by_rows = product(&wide_a, &wide(&p), columns);
    opencl("bicg", |case| {
        let (a, r, p) = (case.buffer(&a), case.buffer(&r), case.buffer(&p));
        let (s, q) = (case.zeros::<f32>(columns), case.zeros::<f32>(rows));
        let args = [(&a).into(), (&r).into(), (&s).into(), (rows as i32).into()];
        case.line("by_columns", columns / 4, &args);
        let args = [(&a).into(), (&p).into(), (&q).into(), (columns as i32 / 4).into()];
        case.line("by_rows", rows, &args);
        close(&case.read(&s), &by_columns, 1e-5, case);
        close(&case.read(&q), &by_rows, 1e-5, case);
    });
}

#[test]
fn groups_add_up_rows() {
    let size = 11;
    let (a, b) = (floats(36, size * size, -1.0..1.0), floats(37, size * size, -1.0..1.0));
    let x = floats(38, size, -1.0..1.0);
    let [left, right] = [&a, &b].map(|matrix| product(&wide(matrix), &wide(&x), size));
    let wanted = combined(1.5, &left, -2.5, &right);
    opencl("gesummv", |case| {
        let (a, b, x, y) =
            (case.buffer(&a), case.buffer(&b), case.buffer(&x), case.zeros::<f32>(size));
        let numbers = [(size as i32).into(), 1.5_f32.into(), (-2.5_f32).into()];
        let buffers = [&a, &b, &x, &y].map(Arg::from);
        let args = [&buffers[..], &numbers, &[Arg::group::<f32>(2 * 4)]].concat();
        case.launch("sum", LaunchConfig::grid_1d(4 * size).with_groups_1d(4), &args);
        close(&case.read(&y), &wanted, 1e-5, case);
    });
}

#[test]
fn functions_take_strides() {
    let size = 12;
    let a = floats(39, size * size, -1.0..1.0);
    let (x, y) = (floats(40, size, -1.0..1.0), floats(41, size, -1.0..1.0));
    let wide_a = wide(&a);
    opencl("mvt", |case| {
        for (kernel, matrix) in
            [("plain", wide_a.clone()), ("transposed", transposed(&wide_a, size))]
        {
            let wanted = combined(1.0, &wide(&x), 1.0, &product(&matrix, &wide(&y), size));
            let (a, x, y) = (case.buffer(&a), case.buffer(&x), case.buffer(&y));
            let args = [(&a).into(), (&x).into(), (&y).into(), (size as i32).into()];
            case.line(kernel, size, &args);
            close(&case.read(&x), &wanted, 1e-5, case);
        }
    });
}
