//! Filters of pictures.

use harp_runtime::{Arg, LaunchConfig};

use super::{close, floats, groups, integers, opencl, wide};
use crate::support::numbers;

#[test]
fn masks_convolve() {
    let (size, mask_size) = ([12_u32, 9], [5_u32, 3]);
    let pixels: Vec<u32> =
        integers(51, 12 * 9, 0..256).into_iter().map(i32::cast_unsigned).collect();
    // Exact in single precision, whatever is added first.
    let mask: Vec<f32> = integers(52, 15, -8..24).into_iter().map(|n| n as f32 / 16.0).collect();
    let wanted = |x: i32, y: i32| {
        let mut sum = 0.0;
        for (n, factor) in (0..).zip(&mask) {
            let (x, y) = (x + n % 5 - 2, y + n / 5 - 1);
            if (0..12).contains(&x) && (0..9).contains(&y) {
                sum += pixels[(12 * y + x) as usize] as f32 * factor;
            }
        }
        sum.round_ties_even() as u32
    };
    opencl("simple_convolution", |case| {
        let (input, out) = (case.buffer(&pixels), case.zeros::<u32>(pixels.len()));
        let buffers = [(&input).into(), (&out).into(), Arg::from(&case.buffer(&mask))];
        let args = [&buffers[..], &size.map(Arg::from), &mask_size.map(Arg::from)].concat();
        case.line("convolve", pixels.len(), &args);
        for (at, given) in (0..).zip(case.read(&out)) {
            assert_eq!(given, wanted(at % 12, at / 12), "{at} on {case}");
        }
    });
}

#[test]
fn masks_that_are_products_take_two_passes() {
    let (width, height, mask) = (7, 6, [0.25_f32, 0.5, 0.375]);
    let colours: Vec<u8> = numbers(53).map(|n| (n >> 32) as u8).take(4 * width * height).collect();
    let pass = |input: &[f32], step: usize, len: usize| -> Vec<f32> {
        let value = |at: usize| -> f32 {
            let place = at / step % len;
            let other = |n: usize| (place + n).saturating_sub(1).min(len - 1);
            (0..3).map(|n| mask[n] * input[at - place * step + other(n) * step]).sum()
        };
        (0..input.len()).map(value).collect()
    };
    let input: Vec<f32> = colours.iter().map(|&c| c.into()).collect();
    let both = pass(&pass(&input, 4, width), 4 * width, height);
    let wanted: Vec<u8> = both.into_iter().map(|c| c.round_ties_even() as u8).collect();
    opencl("simple_convolution", |case| {
        let (input, between) = (case.buffer(&colours), case.zeros::<f32>(colours.len()));
        let (out, mask) = (case.zeros::<u8>(colours.len()), case.buffer(&mask));
        let grid = LaunchConfig::grid_2d(width, height);
        let args = [(&input).into(), (&between).into(), (&mask).into(), 1_i32.into()];
        case.launch("rows", grid, &args);
        let args = [(&between).into(), (&out).into(), (&mask).into(), 1_i32.into()];
        case.launch("columns", grid, &args);
        assert_eq!(case.read(&out), wanted, "{case}");
    });
}

/// One step of the diffusion.
fn diffused(picture: &[f64], columns: usize, speckle: f64, lambda: f64) -> Vec<f64> {
    let rows = picture.len() / columns;
    let at =
        |values: &[f64], x: usize, y: usize| values[y.min(rows - 1) * columns + x.min(columns - 1)];
    let differences = |i: usize| {
        let (x, y) = (i % columns, i / columns);
        let others = [(x, y.saturating_sub(1)), (x, y + 1), (x.saturating_sub(1), y), (x + 1, y)];
        others.map(|(x, y)| at(picture, x, y) - picture[i])
    };
    let c: Vec<f64> = (0..picture.len())
        .map(|i| {
            let (d, own) = (differences(i), picture[i]);
            let squares = d.iter().map(|d| d * d).sum::<f64>() / (own * own);
            let laplacian = d.iter().sum::<f64>() / own;
            let root = 1.0 + 0.25 * laplacian;
            let variation = (0.5 * squares - laplacian * laplacian / 16.0) / (root * root);
            (1.0 / (1.0 + (variation - speckle) / (speckle * (1.0 + speckle)))).clamp(0.0, 1.0)
        })
        .collect();
    let moved = |i: usize| {
        let ([north, south, west, east], x, y) = (differences(i), i % columns, i / columns);
        let sum = c[i] * (north + west) + at(&c, x, y + 1) * south + at(&c, x + 1, y) * east;
        picture[i] + 0.25 * lambda * sum
    };
    (0..picture.len()).map(moved).collect()
}

#[test]
fn speckle_goes() {
    let (columns, rows, lambda) = (8, 8, 0.5);
    let pixels = floats(54, columns * rows, 10.0..250.0);
    let count = pixels.len() as f64;
    let speckle = |sum: f64, squares: f64| {
        let mean = sum / count;
        (squares / count - mean * mean) / (mean * mean)
    };
    let mut wanted: Vec<f64> = wide(&pixels).into_iter().map(|p| (p / 255.0).exp()).collect();
    for _ in 0..2 {
        let squares = wanted.iter().map(|p| p * p).sum();
        wanted = diffused(&wanted, columns, speckle(wanted.iter().sum(), squares), lambda);
    }
    let wanted: Vec<f64> = wanted.into_iter().map(|p| p.ln() * 255.0).collect();
    opencl("speckle_reduction", |case| {
        let picture = case.buffer(&pixels);
        let (partial, c) = (case.zeros::<f32>(2 * 4), case.zeros::<f32>(pixels.len()));
        let differences = case.zeros::<f32>(4 * pixels.len());
        let [sums, coefficients, diffuse] =
            ["sums", "coefficients", "diffuse"].map(|name| case.kernel(name));
        let line = LaunchConfig::grid_1d(pixels.len());
        case.launch("extract", line, &[(&picture).into()]);
        for _ in 0..2 {
            let args = [(&picture).into(), (&partial).into(), Arg::group::<f32>(2 * 16)];
            case.run(&sums, groups(pixels.len(), 16), &args);
            let partial = wide(&case.read(&partial));
            let sum = |what: usize| partial.iter().skip(what).step_by(2).sum();
            let sizes = [columns as i32, rows as i32].map(Arg::from);
            let buffers = [&picture, &differences, &c].map(Arg::from);
            let speckle = [(speckle(sum(0), sum(1)) as f32).into()];
            case.run(&coefficients, line, &[&buffers[..], &sizes, &speckle].concat());
            let lambda = [(lambda as f32).into()];
            case.run(&diffuse, line, &[&buffers[..], &sizes, &lambda].concat());
        }
        case.launch("compress", line, &[(&picture).into()]);
        close(&case.read(&picture), &wanted, 1e-4, case);
    });
}
