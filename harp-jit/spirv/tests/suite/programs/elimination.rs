//! Decompositions of matrices, which take many launches.

use harp_runtime::{Arg, LaunchConfig};

use super::products::{product, transposed};
use super::{close, floats, groups, opencl, tiles, wide};

/// A matrix that needs no pivoting.
fn dominant(seed: u64, size: usize) -> Vec<f32> {
    let mut a = floats(seed, size * size, -1.0..1.0);
    for n in 0..size {
        a[n * size + n] += size as f32;
    }
    a
}

#[test]
fn gauss_eliminates() {
    let size = 9;
    let (a, b) = (dominant(71, size), floats(72, size, -4.0..4.0));
    opencl("gaussian", |case| {
        let (left, right) = (case.buffer(&a), case.buffer(&b));
        let m = case.zeros::<f32>(size * size);
        let [multipliers, subtract] = ["multipliers", "subtract"].map(|kernel| case.kernel(kernel));
        for pivot in 0..size - 1 {
            let numbers = [size as i32, pivot as i32].map(Arg::from);
            let args = [&[(&left).into(), (&m).into()], &numbers[..]].concat();
            case.run(&multipliers, groups(size, 4), &args);
            let args = [&[(&left).into(), (&right).into(), (&m).into()], &numbers[..]].concat();
            case.run(&subtract, tiles([size; 2], [4, 4]), &args);
        }
        let (upper, right) = (wide(&case.read(&left)), wide(&case.read(&right)));
        let mut x = vec![0.0; size];
        for row in (0..size).rev() {
            let known: f64 = (row + 1..size).map(|n| upper[row * size + n] * x[n]).sum();
            x[row] = (right[row] - known) / upper[row * size + row];
        }
        close(&b, &product(&wide(&a), &x, size), 1e-4, case);
    });
}

#[test]
fn blocks_decompose() {
    let (size, block) = (16, 4);
    let a = dominant(73, size);
    opencl("lu_decomposition", |case| {
        let data = case.buffer(&a);
        let [diagonal, perimeter, internal] =
            ["diagonal", "perimeter", "internal"].map(|kernel| case.kernel(kernel));
        for offset in (0..size).step_by(block) {
            let args = [(&data).into(), (size as i32).into(), (offset as i32).into()];
            case.run(&diagonal, groups(block, block), &args);
            let left = size - offset - block;
            if left > 0 {
                case.run(&perimeter, groups(2 * left, 2 * block), &args);
                case.run(&internal, tiles([left; 2], [block; 2]), &args);
            }
        }
        let both = wide(&case.read(&data));
        let part = |lower: bool| -> Vec<f64> {
            let of = |at: usize| match (at % size).cmp(&(at / size)) {
                std::cmp::Ordering::Equal if lower => 1.0,
                std::cmp::Ordering::Less if !lower => 0.0,
                std::cmp::Ordering::Greater if lower => 0.0,
                _ => both[at],
            };
            (0..size * size).map(of).collect()
        };
        close(&a, &product(&part(true), &part(false), size), 1e-5, case);
    });
}

#[test]
fn columns_become_orthonormal() {
    let (rows, columns) = (12, 5);
    let a = floats(74, rows * columns, -1.0..1.0);
    opencl("gram_schmidt", |case| {
        let data = case.buffer(&a);
        let (r, q) = (case.zeros::<f32>(columns * columns), case.zeros::<f32>(rows * columns));
        let [norm, divide, project] =
            ["norm", "divide", "project"].map(|kernel| case.kernel(kernel));
        for k in 0..columns {
            let numbers = [rows, columns, k].map(|n| Arg::from(n as i32));
            let sums = [Arg::group::<f32>(8)];
            let args = [&[&data, &r].map(Arg::from)[..], &numbers, &sums].concat();
            case.run(&norm, groups(8, 8), &args);
            let args = [&[&data, &r, &q].map(Arg::from)[..], &numbers].concat();
            case.run(&divide, LaunchConfig::grid_1d(rows), &args);
            case.run(&project, LaunchConfig::grid_1d(columns), &args);
        }
        let (q, r) = (wide(&case.read(&q)), wide(&case.read(&r)));
        close(&a, &product(&q, &r, columns), 1e-5, case);
        let squares = product(&transposed(&q, columns), &q, rows);
        let identity: Vec<f32> = (0..columns * columns)
            .map(|at| if at % (columns + 1) == 0 { 1.0 } else { 0.0 })
            .collect();
        close(&identity, &squares, 1e-4, case);
    });
}
