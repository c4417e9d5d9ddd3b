//! Stencils.

use std::mem::swap;

use harp_runtime::{Arg, LaunchConfig};

use super::{close, floats, groups, opencl, tiles, wide};

#[test]
fn heat_spreads() {
    let (columns, rows, side) = (13, 10, 8);
    let (power, start) =
        (floats(91, columns * rows, 0.0..2.0), floats(92, columns * rows, 60.0..90.0));
    let factors = [0.5_f32, 0.2, 0.25, 0.0625];
    let (source, f) = (wide(&power), wide(&factors));
    let mut wanted = wide(&start);
    let rounds = [1, 2, 2];
    for _ in 0..rounds.iter().sum() {
        let old = wanted.clone();
        for (i, value) in wanted.iter_mut().enumerate() {
            let (x, y, own) = (i % columns, i / columns, old[i]);
            let at = |x: usize, y: usize| old[y.min(rows - 1) * columns + x.min(columns - 1)];
            let vertical = at(x, y + 1) + at(x, y.saturating_sub(1)) - 2.0 * own;
            let horizontal = at(x + 1, y) + at(x.saturating_sub(1), y) - 2.0 * own;
            let change = vertical * f[1] + horizontal * f[2] + (80.0 - own) * f[3];
            *value += f[0] * (source[i] + change);
        }
    }
    opencl("hotspot", |case| {
        let kernel = case.kernel("heat");
        let power = case.buffer(&power);
        let (mut before, mut after) = (case.buffer(&start), case.zeros::<f32>(start.len()));
        for steps in rounds {
            let inner = side - 2 * steps;
            let grid = [columns, rows].map(|len| len.div_ceil(inner) * side);
            let buffers = [&power, &before, &after].map(Arg::from);
            let sizes = [columns, rows, steps].map(|n| Arg::from(n as i32));
            let args = [&buffers[..], &sizes, &factors.map(Arg::from)].concat();
            case.run(&kernel, tiles(grid, [side; 2]), &args);
            swap(&mut before, &mut after);
        }
        close(&case.read(&before), &wanted, 1e-6, case);
    });
}

#[test]
fn fields_change_each_other() {
    let (columns, rows, steps) = (8, 6, 3);
    let count = columns * rows;
    let [ex, ey, hz] = [93, 94, 95].map(|seed| floats(seed, count, -1.0..1.0));
    let source = floats(96, steps, -1.0..1.0);
    let [mut x, mut y, mut z] = [&ex, &ey, &hz].map(|field| wide(field));
    for pulse in wide(&source) {
        for i in 0..count {
            y[i] = if i < columns { pulse } else { y[i] - 0.5 * (z[i] - z[i - columns]) };
        }
        for i in (0..count).filter(|i| i % columns > 0) {
            x[i] -= 0.5 * (z[i] - z[i - 1]);
        }
        for i in (0..count - columns).filter(|i| (i + 1) % columns > 0) {
            z[i] -= 0.7 * (x[i + 1] - x[i] + y[i + columns] - y[i]);
        }
    }
    opencl("fdtd_2d", |case| {
        let [ex, ey, hz] = [&ex, &ey, &hz].map(|field| case.buffer(field));
        let source = case.buffer(&source);
        let [electric_y, electric_x, magnetic] =
            ["electric_y", "electric_x", "magnetic"].map(|kernel| case.kernel(kernel));
        let grid = LaunchConfig::grid_2d(columns, rows);
        let (width, height) = (Arg::from(columns as i32), Arg::from(rows as i32));
        for step in 0..steps as i32 {
            let buffers = [&source, &ey, &hz].map(Arg::from);
            case.run(&electric_y, grid, &[&buffers[..], &[width.clone(), step.into()]].concat());
            case.run(&electric_x, grid, &[(&ex).into(), (&hz).into(), width.clone()]);
            let buffers = [&ex, &ey, &hz].map(Arg::from);
            let sizes = [width.clone(), height.clone()];
            case.run(&magnetic, grid, &[&buffers[..], &sizes].concat());
        }
        for (field, wanted) in [(&ex, &x), (&ey, &y), (&hz, &z)] {
            close(&case.read(field), wanted, 1e-5, case);
        }
    });
}

#[test]
fn lines_and_planes_relax() {
    let (len, steps, size) = (24, 7, 10);
    let line = floats(97, 2 * len, -1.0..1.0);
    let wanted_line: Vec<f64> = wide(&line)
        .chunks(len)
        .flat_map(|part| {
            let mut now = part.to_vec();
            for _ in 0..steps {
                let next: Vec<f64> = now.windows(3).map(|v| v.iter().sum::<f64>() / 3.0).collect();
                now[1..len - 1].copy_from_slice(&next);
            }
            now
        })
        .collect();
    let plane = floats(98, size * size, -1.0..1.0);
    let mut wanted_plane = wide(&plane);
    for _ in 0..2 {
        let old = wanted_plane.clone();
        for i in size..size * (size - 1) {
            if i % size > 0 && (i + 1) % size > 0 {
                let others = old[i - 1] + old[i + 1] + old[i - size] + old[i + size];
                wanted_plane[i] = 0.2 * (old[i] + others);
            }
        }
    }
    opencl("jacobi", |case| {
        let a = case.buffer(&line);
        let part = Arg::group::<f32>(len);
        let args = [(&a).into(), steps.into(), part.clone(), part];
        case.launch("line", groups(2 * len, len), &args);
        close(&case.read(&a), &wanted_line, 1e-6, case);
        let (a, b, kernel) = (case.buffer(&plane), case.buffer(&plane), case.kernel("plane"));
        for (from, to) in [(&a, &b), (&b, &a)] {
            let args = [from.into(), to.into(), (size as i32).into()];
            case.run(&kernel, tiles([size - 2; 2], [4, 2]), &args);
        }
        close(&case.read(&a), &wanted_plane, 1e-6, case);
    });
}
