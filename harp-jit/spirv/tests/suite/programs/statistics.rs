//! Statistics of columns.

use harp_runtime::{Arg, LaunchConfig};

use super::products::{product, transposed};
use super::{close, floats, groups, opencl, tiles, wide};

/// The columns with their means subtracted, and the sums of their products.
fn centred(data: &[f64], columns: usize) -> (Vec<f64>, Vec<f64>) {
    let rows = data.len() / columns;
    let mean = |j: usize| data.iter().skip(j).step_by(columns).sum::<f64>() / rows as f64;
    let centred: Vec<f64> =
        data.iter().enumerate().map(|(at, value)| value - mean(at % columns)).collect();
    let sums = product(&transposed(&centred, columns), &centred, rows);
    (centred, sums)
}

#[test]
fn columns_correlate() {
    let (rows, columns) = (14, 6);
    let mut data = floats(121, rows * columns, -3.0..5.0);
    for row in data.chunks_mut(columns) {
        row[1] = 0.5 * row[0] + 0.125 * row[1];
        row[4] = 2.0;
    }
    let (_, sums) = centred(&wide(&data), columns);
    let wanted: Vec<f64> = (0..columns * columns)
        .map(|at| {
            let (a, b) = (at / columns, at % columns);
            let size = (sums[a * (columns + 1)] * sums[b * (columns + 1)]).sqrt();
            if a == b {
                1.0
            } else if size == 0.0 {
                0.0
            } else {
                sums[at] / size
            }
        })
        .collect();
    opencl("correlation", |case| {
        let data = case.buffer(&data);
        let (means, deviations) = (case.zeros::<f32>(columns), case.zeros::<f32>(columns));
        let result = case.zeros::<f32>(columns * columns);
        let sizes = [rows as i32, columns as i32].map(Arg::from);
        let launch = |kernel, config, buffers: &[Arg]| {
            case.launch(kernel, config, &[buffers, &sizes].concat());
        };
        let line = LaunchConfig::grid_1d(columns);
        launch("mean", line, &[&data, &means].map(Arg::from));
        launch("deviation", line, &[&data, &means, &deviations].map(Arg::from));
        let all = tiles([columns, rows], [8, 4]);
        launch("normalize_all", all, &[&data, &means, &deviations].map(Arg::from));
        launch("correlate", line, &[&data, &result].map(Arg::from));
        close(&case.read(&result), &wanted, 1e-5, case);
    });
}

#[test]
fn columns_vary_together() {
    let (rows, columns) = (11, 5);
    let data = wide(&floats(122, rows * columns, -3.0..5.0));
    let (wanted_data, sums) = centred(&data, columns);
    let wanted: Vec<f64> = sums.into_iter().map(|sum| sum / (rows as f64 - 1.0)).collect();
    opencl("covariance", |case| {
        let (data, result) = (case.buffer(&data), case.zeros::<f64>(columns * columns));
        let [height, width] = [rows as i32, columns as i32].map(Arg::from);
        let args = [(&data).into(), height.clone(), width.clone(), Arg::group::<f64>(4)];
        case.launch("centre", groups(4 * columns, 4), &args);
        close(&case.read(&data), &wanted_data, 1e-14, case);
        let args = [(&data).into(), (&result).into(), height, width];
        case.launch("covary", LaunchConfig::grid_2d(columns, columns), &args);
        close(&case.read(&result), &wanted, 1e-13, case);
    });
}
