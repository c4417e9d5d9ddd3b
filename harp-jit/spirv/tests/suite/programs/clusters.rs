//! Nearest points and clusters.

use harp_runtime::{Arg, LaunchConfig};

use super::{close, floats, groups, integers, opencl, wide};

#[test]
fn points_find_their_centres() {
    let (count, clusters, features, room) = (70, 5, 3, 8);
    let points: Vec<f32> =
        integers(61, features * count, 0..100).into_iter().map(|n| n as f32).collect();
    let start: Vec<f32> = points[..features * clusters].to_vec();
    let mut centres = start.clone();
    let mut owners = vec![-1_i32; count];
    let mut steps = Vec::new();
    for _ in 0..3 {
        let mut changes = 0;
        let (mut sums, mut sizes) = (vec![0; features * room], vec![0; room]);
        for i in 0..count {
            let distance = |c: usize| -> f32 {
                (0..features)
                    .map(|f| (points[f * count + i] - centres[c * features + f]).powi(2))
                    .sum()
            };
            let best = (1..clusters)
                .fold(0, |best, c| if distance(c) < distance(best) { c } else { best });
            changes += i32::from(owners[i] != best as i32);
            owners[i] = best as i32;
            sizes[best] += 1;
            for f in 0..features {
                sums[best * features + f] += points[f * count + i] as i32;
            }
        }
        for (n, centre) in centres.iter_mut().enumerate() {
            if sizes[n / features] > 0 {
                *centre = sums[n] as f32 / sizes[n / features] as f32;
            }
        }
        steps.push((owners.clone(), changes, sums, sizes));
    }
    opencl("k_means", |case| {
        let (points, centres) = (case.buffer(&points), case.buffer(&start));
        let owners = case.buffer(&vec![-1_i32; count]);
        let [assign, add_up, advance] =
            ["assign", "add_up", "move"].map(|kernel| case.kernel(kernel));
        let (len, line) = (Arg::from(count as i32), groups(count, 16));
        for (wanted_owners, wanted_changes, wanted_sums, wanted_sizes) in &steps {
            let changes = case.zeros::<i32>(1);
            let (sums, sizes) = (case.zeros::<i32>(features * room), case.zeros::<i32>(room));
            let buffers = [&owners, &changes].map(Arg::from);
            let floats = [&points, &centres].map(Arg::from);
            let args = [&floats[..], &buffers, &[len.clone(), (clusters as i32).into()]].concat();
            case.run(&assign, line, &args);
            assert_eq!(case.read(&owners), *wanted_owners, "{case}");
            assert_eq!(case.read(&changes), [*wanted_changes], "{case}");
            let args =
                [(&points).into(), (&owners).into(), (&sums).into(), (&sizes).into(), len.clone()];
            case.run(&add_up, line, &args);
            assert_eq!(case.read(&sums), *wanted_sums, "{case}");
            assert_eq!(case.read(&sizes), *wanted_sizes, "{case}");
            let args = [(&centres).into(), (&sums).into(), (&sizes).into()];
            case.run(&advance, LaunchConfig::grid_1d(features * clusters), &args);
        }
        close(&case.read(&centres), &wide(&self::centres(&steps, &start)), 1e-6, case);
    });
}

type Step = (Vec<i32>, i32, Vec<i32>, Vec<i32>);

/// Where the centres are after the last of the steps.
fn centres(steps: &[Step], start: &[f32]) -> Vec<f32> {
    let mut centres = start.to_vec();
    for (.., sums, sizes) in steps {
        for (n, centre) in centres.iter_mut().enumerate() {
            if sizes[n / 3] > 0 {
                *centre = sums[n] as f32 / sizes[n / 3] as f32;
            }
        }
    }
    centres
}

#[test]
fn groups_find_the_nearest() {
    let (count, group) = (50, 16);
    let places = floats(62, 2 * count, -60.0..60.0);
    let target = [7.5_f32, -20.25];
    let distances: Vec<f64> = wide(&places)
        .chunks(2)
        .map(|p| (p[0] - f64::from(target[0])).hypot(p[1] - f64::from(target[1])))
        .collect();
    opencl("nearest_neighbor", |case| {
        let (input, out) = (case.buffer(&places), case.zeros::<f32>(count));
        let buffers = [(&input).into(), (&out).into(), Arg::from(count as i32)];
        let args = [&buffers[..], &target.map(Arg::from)].concat();
        case.launch("distances", groups(count, group), &args);
        let given = case.read(&out);
        close(&given, &distances, 1e-6, case);
        let parts = count.div_ceil(group);
        let best = case.zeros::<u32>(2 * parts);
        let candidates = Arg::group::<u32>(2 * group);
        let args = [(&out).into(), (&best).into(), (count as i32).into(), candidates];
        case.launch("nearest", groups(count, group), &args);
        let best = case.read(&best);
        for (part, (best, given)) in best.chunks(2).zip(given.chunks(group)).enumerate() {
            let least = (0..given.len()).min_by(|&a, &b| given[a].total_cmp(&given[b])).unwrap();
            assert_eq!(f32::from_bits(best[0]), given[least], "{part} on {case}");
            assert_eq!(best[1] as usize, part * group + least, "{part} on {case}");
        }
    });
}

#[test]
fn candidates_gain() {
    let (count, features, centres, candidate) = (45, 6, 4, 17);
    let coordinates = floats(63, features * count, -1.0..1.0);
    let (weights, costs) = (floats(64, count, 0.5..2.0), floats(65, count, 0.0..4.0));
    let owners = integers(66, count, 0..9);
    let table: Vec<i32> = (0..9).map(|n| n * 7 % centres).collect();
    let points: Vec<u32> = (0..count)
        .flat_map(|i| [weights[i].to_bits(), costs[i].to_bits(), owners[i] as u32])
        .collect();
    let row = centres as usize + 1;
    let mut lower = vec![0.0; count * row];
    let mut switches = vec![0_u8; count];
    for i in 0..count {
        let at = |f: usize, i: usize| f64::from(coordinates[f * count + i]);
        let distance: f64 = (0..features).map(|f| (at(f, i) - at(f, candidate)).powi(2)).sum();
        let cost = distance * f64::from(weights[i]) - f64::from(costs[i]);
        if cost < 0.0 {
            switches[i] = 1;
            lower[i * row + row - 1] = cost;
        } else {
            lower[i * row + table[owners[i] as usize] as usize] = -cost;
        }
    }
    opencl("stream_cluster", |case| {
        let (points, coordinates) = (case.buffer(&points), case.buffer(&coordinates));
        let (out, flags) = (case.zeros::<f32>(lower.len()), case.zeros::<u8>(count));
        let table = case.buffer(&table);
        let numbers = [count, features, candidate, row - 1].map(|n| Arg::from(n as i32));
        let buffers = [
            (&points).into(),
            (&coordinates).into(),
            (&out).into(),
            (&table).into(),
            (&flags).into(),
        ];
        case.launch("gain", groups(count, 8), &[&buffers[..], &numbers].concat());
        assert_eq!(case.read(&flags), switches, "{case}");
        close(&case.read(&out), &lower, 1e-5, case);
    });
}
