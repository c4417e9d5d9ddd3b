//! Compute shaders in WGSL.

use harp_runtime::{Arg, LaunchConfig};

use super::products::product;
use super::{close, floats, groups, integers, tiles, webgpu, wide};
use crate::support::numbers;

#[test]
fn boids_flock() {
    let count = 20;
    let boids: Vec<f32> = floats(131, 2 * count, -0.5..0.5)
        .chunks(2)
        .zip(floats(132, 2 * count, -0.05..0.05).chunks(2))
        .flat_map(|(position, velocity)| [position, velocity].concat())
        .collect();
    let rules = [2.0_f32, 0.3, 0.1, 0.2, 0.02, 0.05, 0.1];
    let [step, near, tight, along, cohesion, separation, alignment] = rules.map(f64::from);
    let all = wide(&boids);
    let mut wanted = Vec::new();
    for (own, boid) in all.chunks(4).enumerate() {
        let others =
            || all.chunks(4).enumerate().filter(|(n, _)| *n != own).map(|(_, other)| other);
        let far = |other: &&[f64]| (other[0] - boid[0]).hypot(other[1] - boid[1]);
        let mean = |limit: f64, what: usize| {
            let near: Vec<f64> = others().filter(|o| far(o) < limit).map(|o| o[what]).collect();
            (!near.is_empty()).then(|| near.iter().sum::<f64>() / near.len() as f64)
        };
        let mut next = [0.0; 4];
        for axis in 0..2 {
            let centre = mean(near, axis).map_or(0.0, |mean| mean - boid[axis]);
            let heading = mean(along, 2 + axis).unwrap_or(0.0);
            let away: f64 = others().filter(|o| far(o) < tight).map(|o| boid[axis] - o[axis]).sum();
            let change = centre * cohesion + away * separation + heading * alignment;
            next[2 + axis] = boid[2 + axis] + change;
        }
        let speed = next[2].hypot(next[3]);
        for axis in 0..2 {
            next[2 + axis] *= speed.clamp(0.0, 0.1) / speed;
            next[axis] = boid[axis] + next[2 + axis] * step;
            if next[axis].abs() > 1.0 {
                next[axis] = -next[axis].signum();
            }
        }
        wanted.extend(next);
    }
    webgpu("boids", |case| {
        let (before, after) = (case.buffer(&boids), case.zeros::<f32>(boids.len()));
        let args = [&case.buffer(&rules), &before, &after].map(Arg::from);
        case.launch("update", groups(count, 16), &args);
        close(&case.read(&after), &wanted, 1e-5, case);
    });
}

#[test]
fn cells_live_and_die() {
    let [width, height] = [11_usize, 7];
    let start: Vec<u32> = numbers(133).map(|n| (n >> 40) as u32 & 1).take(width * height).collect();
    let mut wanted = start.clone();
    for _ in 0..3 {
        let old = wanted.clone();
        for (i, cell) in wanted.iter_mut().enumerate() {
            let at = |n: usize| {
                let (x, y) = (i % width + n % 3 + width - 1, i / width + n / 3 + height - 1);
                old[y % height * width + x % width]
            };
            let living = (0..9).map(at).sum::<u32>() - old[i];
            *cell = u32::from(living == 3 || living == 2 && old[i] == 1);
        }
    }
    webgpu("life", |case| {
        let size = case.buffer(&[width as u32, height as u32]);
        let mut cells = [case.buffer(&start), case.zeros(start.len())];
        let kernel = case.kernel("generation");
        for _ in 0..3 {
            let args = [&size, &cells[0], &cells[1]].map(Arg::from);
            case.run(&kernel, tiles([width, height], [4, 4]), &args);
            cells.reverse();
        }
        assert_eq!(case.read(&cells[0]), wanted, "{case}");
    });
}

/// The picture blurred along an axis, in steps of colours.
fn blurred(picture: &[u32], size: [usize; 2], radius: usize, axis: usize) -> Vec<u32> {
    let stride = [1, size[0]][axis];
    let colour = |i: usize, shift: usize| {
        let place = i / stride % size[axis];
        let sum: u32 = (0..=2 * radius)
            .map(|n| (place + n).saturating_sub(radius).min(size[axis] - 1))
            .map(|other| picture[i - place * stride + other * stride] >> shift & 255)
            .sum();
        let mean = f64::from(sum) / (2 * radius + 1) as f64;
        (mean.round() as u32) << shift
    };
    (0..picture.len()).map(|i| (0..4).map(|n| colour(i, 8 * n)).sum()).collect()
}

#[test]
fn pictures_blur() {
    let (size, radius) = ([21, 9], 3);
    let picture: Vec<u32> =
        numbers(134).map(|n| (n >> 32) as u32).take(size[0] * size[1]).collect();
    let across = blurred(&picture, size, radius, 0);
    let wanted = blurred(&across, size, radius, 1);
    webgpu("blur", |case| {
        let kernel = case.kernel("blur");
        let buffers = [case.buffer(&picture), case.zeros(picture.len()), case.zeros(picture.len())];
        for axis in [0, 1] {
            let words = [size[0] as u32, size[1] as u32, radius as u32, axis as u32];
            let settings = case.buffer(&words);
            let args = [&settings, &buffers[axis], &buffers[axis + 1]].map(Arg::from);
            case.run(&kernel, tiles([size[axis], size[1 - axis]], [16, 1]), &args);
        }
        assert_eq!(case.read(&buffers[1]), across, "{case}");
        assert_eq!(case.read(&buffers[2]), wanted, "{case}");
    });
}

#[test]
fn prefixes_add_up() {
    let data: Vec<u32> = numbers(135).map(|n| (n >> 30) as u32).take(77).collect();
    let sums = |data: &[u32]| -> Vec<u32> {
        let mut sum = 0_u32;
        let next = |n: &u32| {
            let before = sum;
            sum = sum.wrapping_add(*n);
            before
        };
        data.iter().map(next).collect()
    };
    webgpu("prefix_sum", |case| {
        let (buffer, totals) = (case.buffer(&data), case.zeros::<u32>(3));
        let (scan, add) = (case.kernel("scan"), case.kernel("add"));
        case.run(&scan, groups(3 * 16, 16), &[&buffer, &totals].map(Arg::from));
        let of_groups: Vec<u32> =
            data.chunks(32).map(|part| part.iter().copied().fold(0, u32::wrapping_add)).collect();
        assert_eq!(case.read(&totals), of_groups, "{case}");
        case.device.write(&totals, &sums(&of_groups)).unwrap();
        case.run(&add, groups(data.len(), 16), &[&buffer, &totals].map(Arg::from));
        assert_eq!(case.read(&buffer), sums(&data), "{case}");
    });
}

#[test]
fn groups_reduce() {
    let data = integers(136, 100, -1000..1000);
    webgpu("reduction", |case| {
        let result = case.buffer(&[5, i32::MAX, i32::MIN, 0, 0]);
        case.launch("reduce", groups(64, 32), &[&case.buffer(&data), &result].map(Arg::from));
        let odd = data.iter().filter(|n| *n & 1 == 1).count() as i32;
        let (least, greatest) = (*data.iter().min().unwrap(), *data.iter().max().unwrap());
        let sum = data.iter().sum::<i32>() + 5;
        let wanted = [sum, least, greatest, data.len() as i32 - odd, odd];
        assert_eq!(case.read(&result), wanted, "{case}");
    });
}

#[test]
fn floats_are_sorted() {
    let data = floats(137, 128, -50.0..50.0);
    let mut wanted = data.clone();
    wanted.sort_unstable_by(f32::total_cmp);
    webgpu("bitonic_sort", |case| {
        let buffer = case.buffer(&data);
        case.launch("local_sort", groups(data.len() / 2, 16), &[(&buffer).into()]);
        let kernel = case.kernel("global_step");
        for height in [64_u32, 128] {
            for shift in 1..=height.ilog2() {
                let step = case.buffer(&[height, height >> shift]);
                let args = [(&buffer).into(), (&step).into()];
                case.run(&kernel, groups(data.len() / 2, 16), &args);
            }
        }
        assert_eq!(case.read(&buffer), wanted, "{case}");
    });
}

#[test]
fn matrices_of_any_size_multiply() {
    let [rows, inner, columns] = [7, 10, 5];
    let (a, b) = (floats(138, rows * inner, -1.0..1.0), floats(139, inner * columns, -1.0..1.0));
    let wanted = product(&wide(&a), &wide(&b), inner);
    webgpu("matrix_multiplication", |case| {
        let (a, b) = (case.buffer(&a), case.buffer(&b));
        let c = case.zeros::<f32>(rows * columns);
        let sizes = case.buffer(&[rows, inner, columns].map(|n| n as u32));
        let args = [(&a).into(), (&b).into(), (&c).into(), (&sizes).into()];
        case.launch("multiply", tiles([columns, rows], [4, 4]), &args);
        close(&case.read(&c), &wanted, 1e-5, case);
    });
}

#[test]
fn brightness_is_counted() {
    let colours: Vec<u32> = numbers(140).map(|n| (n >> 32) as u32).take(150).collect();
    let mut wanted = [0_u32; 16];
    for colour in &colours {
        let [r, g, b, _] = colour.to_le_bytes().map(u32::from);
        wanted[((54 * r + 183 * g + 19 * b) >> 8) as usize / 16] += 1;
    }
    webgpu("histogram", |case| {
        let counts = case.zeros::<u32>(16);
        let args = [&case.buffer(&colours), &counts].map(Arg::from);
        case.launch("count", tiles([64, 4], [8, 2]), &args);
        assert_eq!(case.read(&counts), wanted, "{case}");
    });
}

#[test]
fn points_escape() {
    let ([width, height], limit) = ([24, 16], 40);
    // Steps of a power of two: the numbers of the first steps are exact.
    let (centre, scale) = ([-0.625_f32, 0.0], 0.125_f32);
    let steps = |x: f32, y: f32| {
        let mut z = [0.0_f32; 2];
        (0..limit)
            .find(|_| {
                let squares = [z[0] * z[0], z[1] * z[1]];
                let out = squares[0] + squares[1] > 4.0;
                z = [squares[0] - squares[1] + x, 2.0 * z[0] * z[1] + y];
                out
            })
            .unwrap_or(limit)
    };
    webgpu("mandelbrot", |case| {
        let words = [centre[0].to_bits(), centre[1].to_bits(), scale.to_bits(), limit];
        let out = case.zeros::<u32>(width * height);
        let args = [&case.buffer(&words), &out].map(Arg::from);
        case.launch("draw", tiles([width, height], [8, 4]), &args);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let offset = |at: usize, len: usize| (at as f32 - (len / 2) as f32) * scale;
            let (x, y) = (offset(i % width, width), offset(i / width, height));
            let n = steps(centre[0] + x, centre[1] + y);
            let wanted = 0xff00_0000 | if n == limit { 0 } else { n * 0x01_0305 };
            assert_eq!(given, wanted, "{i} on {case}");
        }
    });
}

#[test]
fn bodies_attract() {
    let (count, step) = (21, 0.125);
    let positions = floats(141, 3 * count, -1.0..1.0);
    let (masses, velocities) = (floats(142, count, 0.1..1.0), floats(143, 3 * count, -0.5..0.5));
    let mut bodies = Vec::new();
    for n in 0..count {
        bodies.extend(&positions[3 * n..][..3]);
        bodies.push(masses[n]);
        bodies.extend(&velocities[3 * n..][..3]);
        bodies.push(0.0);
    }
    let all = wide(&bodies);
    let mut wanted = all.clone();
    for body in wanted.chunks_mut(8) {
        let mut force = [0.0; 3];
        for other in all.chunks(8) {
            let d = [0, 1, 2].map(|axis| other[axis] - body[axis]);
            let root = (d.iter().map(|d| d * d).sum::<f64>() + 0.01).sqrt();
            for axis in 0..3 {
                force[axis] += d[axis] * other[3] / root.powi(3);
            }
        }
        for axis in 0..3 {
            body[4 + axis] += force[axis] * step;
            body[axis] += body[4 + axis] * step;
        }
    }
    webgpu("n_body", |case| {
        let (before, after) = (case.buffer(&bodies), case.zeros::<f32>(bodies.len()));
        let args = [&before, &after, &case.buffer(&[step as f32])].map(Arg::from);
        case.launch("advance", groups(count, 16), &args);
        close(&case.read(&after), &wanted, 1e-5, case);
    });
}

#[test]
fn numbers_come_to_one() {
    let mut start: Vec<u32> = (0..30).collect();
    start.extend([27, 97, 871, 6171, 77_031, u32::MAX, 0x5555_5555, 159_487]);
    let steps = |start: u32| {
        let (mut n, mut count) = (start, 0);
        while n > 1 {
            n = if n.is_multiple_of(2) {
                n / 2
            } else if let Some(n) = n.checked_mul(3).and_then(|n| n.checked_add(1)) {
                n
            } else {
                return u32::MAX;
            };
            count += 1;
        }
        count
    };
    let wanted: Vec<u32> = start.iter().copied().map(steps).collect();
    webgpu("collatz", |case| {
        let data = case.buffer(&start);
        let config = LaunchConfig::grid_1d(start.len()).with_groups_1d(1);
        case.launch("main", config, &[(&data).into()]);
        assert_eq!(case.read(&data), wanted, "{case}");
    });
}

#[test]
fn signals_are_transformed() {
    let len = 32;
    let signals = floats(144, 2 * len * 2, -1.0..1.0);
    let wanted: Vec<f64> = wide(&signals)
        .chunks(2 * len)
        .flat_map(|signal| {
            (0..len)
                .flat_map(|k| {
                    let mut sum = [0.0; 2];
                    for (n, value) in signal.chunks(2).enumerate() {
                        let angle = -std::f64::consts::TAU * (k * n % len) as f64 / len as f64;
                        let (sine, cosine) = angle.sin_cos();
                        sum[0] += value[0] * cosine - value[1] * sine;
                        sum[1] += value[0] * sine + value[1] * cosine;
                    }
                    sum
                })
                .collect::<Vec<_>>()
        })
        .collect();
    webgpu("fourier", |case| {
        let data = case.buffer(&signals);
        case.launch("transform", groups(2 * 16, 16), &[(&data).into()]);
        close(&case.read(&data), &wanted, 1e-5, case);
    });
}
