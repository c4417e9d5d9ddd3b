//! Particles and networks.

use harp_runtime::{Arg, LaunchConfig};

use super::{close, floats, groups, opencl, tiles, wide};
use crate::support::numbers;

fn uniform(state: &mut u32) -> f64 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    f64::from((*state >> 8) + 1) / f64::from(1 << 24)
}

fn normal(state: &mut u32) -> f64 {
    let radius = (-2.0 * uniform(state).ln()).sqrt();
    radius * (2.0 * std::f64::consts::PI * uniform(state)).cos()
}

#[test]
fn particles_follow_measurements() {
    let count = 32;
    let particles = floats(111, 2 * count, -4.0..4.0);
    let seeds: Vec<u32> = numbers(112).map(|n| (n >> 32) as u32).take(count).collect();
    let (speed, measured) = ([1.0_f32, -2.0], [0.5_f32, -1.5]);
    let (mut moved, mut states, mut weights) = (wide(&particles), seeds.clone(), Vec::new());
    for (p, state) in moved.chunks_mut(2).zip(&mut states) {
        p[0] += f64::from(speed[0]) + normal(state);
        p[1] += f64::from(speed[1]) + 2.0 * normal(state);
        let away = (p[0] - f64::from(measured[0])).hypot(p[1] - f64::from(measured[1]));
        weights.push((-0.5 * away * away / 25.0).exp());
    }
    opencl("particle_filter", |case| {
        let (p, s) = (case.buffer(&particles), case.buffer(&seeds));
        let (w, sums) = (case.zeros::<f32>(count), case.zeros::<f32>(count));
        let vectors = [speed, measured].concat().into_iter().map(Arg::from).collect::<Vec<_>>();
        let args = [&[(&p).into(), (&s).into(), (&w).into()], &vectors[..]].concat();
        case.line("weigh", count, &args);
        assert_eq!(case.read(&s), states, "{case}");
        close(&case.read(&p), &moved, 1e-5, case);
        close(&case.read(&w), &weights, 1e-5, case);
        let len = Arg::from(count as i32);
        case.line("add_up", 1, &[(&w).into(), (&sums).into(), len.clone()]);
        let mut sum = 0.0;
        let wanted: Vec<f32> = case
            .read(&w)
            .into_iter()
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        assert_eq!(case.read(&sums), wanted, "{case}");
        let (drawn, indices) = (case.zeros::<f32>(2 * count), case.zeros::<i32>(count));
        let buffers = [(&p).into(), (&sums).into(), (&drawn).into(), (&indices).into()];
        case.line("draw", count, &[&buffers[..], &[len, 0.25_f32.into()]].concat());
        let (p, drawn) = (case.read(&p), case.read(&drawn));
        for (i, index) in case.read(&indices).into_iter().enumerate() {
            let sought = (0.25 + i as f32) / count as f32 * sum;
            let index = index as usize;
            assert_eq!(drawn[2 * i..][..2], p[2 * index..][..2], "{i} on {case}");
            // A division may be rounded in another way.
            assert!(wanted[index] >= sought * 0.999_999, "{i} on {case}");
            assert!(index == 0 || wanted[index - 1] <= sought * 1.000_001, "{i} on {case}");
        }
    });
}

#[test]
fn boxes_pull_each_other() {
    let (boxes, particles, alpha) = (4, 8, 0.5);
    let count = boxes * particles;
    let (positions, charges) = (floats(113, 4 * count, 0.0..2.0), floats(114, count, -1.0..1.0));
    let neighbours = [vec![1, 2], vec![0], vec![], vec![0, 1, 2]];
    let mut words = Vec::new();
    for (n, others) in neighbours.iter().enumerate() {
        words.extend([(n * particles) as i32, others.len() as i32]);
        words.extend(others);
        words.resize((n + 1) * 10, 0);
    }
    let (p, q) = (wide(&positions), wide(&charges));
    let mut wanted = Vec::new();
    for own in 0..count {
        let home = own / particles;
        let mut force = [0.0; 4];
        for near in [&[home as i32][..], &neighbours[home]].concat() {
            for other in (0..particles).map(|n| near as usize * particles + n) {
                let d = [0, 1, 2].map(|axis| p[4 * own + axis] - p[4 * other + axis]);
                let square: f64 = d.iter().map(|d| d * d).sum();
                let potential = q[other] * (-2.0 * alpha * alpha * square).exp();
                force[3] += potential;
                for axis in 0..3 {
                    force[axis] += 2.0 * potential * d[axis];
                }
            }
        }
        wanted.extend(force);
    }
    opencl("molecular_dynamics", |case| {
        let out = case.zeros::<f32>(4 * count);
        let (boxes, positions) = (case.buffer(&words), case.buffer(&positions));
        let charges = case.buffer(&charges);
        let floats = [&positions, &charges, &out].map(Arg::from);
        let args = [&[(&boxes).into()], &floats[..], &[(alpha as f32).into()]].concat();
        case.launch("forces", groups(count, particles), &args);
        close(&case.read(&out), &wanted, 1e-5, case);
    });
}

#[test]
fn layers_learn() {
    let (inputs, outputs, rows) = (16, 4, 8);
    let input: Vec<f32> = floats(115, inputs, -1.0..1.0);
    let weights = floats(116, inputs * outputs, -1.0..1.0);
    let (deltas, momenta) =
        (floats(117, outputs, -1.0..1.0), floats(118, inputs * outputs, -1.0..1.0));
    let activation = |output: usize| {
        let sum: f64 = (0..inputs)
            .map(|n| f64::from(input[n]) * f64::from(weights[n * outputs + output]))
            .sum();
        1.0 / (1.0 + (-sum).exp())
    };
    let activations: Vec<f64> = (0..outputs).map(activation).collect();
    let changes: Vec<f64> = (0..inputs * outputs)
        .map(|i| {
            let (delta, input) = (deltas[i % outputs], input[i / outputs]);
            0.3 * f64::from(delta) * f64::from(input) + 0.3 * f64::from(momenta[i])
        })
        .collect();
    let learned: Vec<f64> = changes.iter().zip(wide(&weights)).map(|(c, w)| c + w).collect();
    opencl("back_propagation", |case| {
        let [input, weights, deltas, momenta] =
            [&input, &weights, &deltas, &momenta].map(|values| case.buffer(values));
        let parts = inputs / rows;
        let (partial, out) = (case.zeros::<f32>(parts * outputs), case.zeros::<f32>(outputs));
        let grid = tiles([outputs, inputs], [outputs, rows]);
        let products = Arg::group::<f32>(outputs * rows);
        case.launch(
            "forward",
            grid,
            &[(&input).into(), (&weights).into(), (&partial).into(), products],
        );
        let args = [(&partial).into(), (&out).into(), (parts as i32).into()];
        case.line("activate", outputs, &args);
        close(&case.read(&out), &activations, 1e-6, case);
        let args = [&deltas, &input, &weights, &momenta].map(Arg::from);
        case.launch("adjust", LaunchConfig::grid_2d(outputs, inputs), &args);
        close(&case.read(&weights), &learned, 1e-6, case);
        close(&case.read(&momenta), &changes, 1e-6, case);
    });
}
