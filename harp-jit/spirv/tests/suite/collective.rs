//! What work-groups and subgroups do together, and pointers to any memory.

use crate::support::everywhere;
use harp_runtime::{Arg, LaunchConfig};

fn inputs(len: i32) -> Vec<i32> {
    (0..len).map(|n| n * 37 % 53 - 12).collect()
}

#[test]
fn work_groups_combine_their_values() {
    everywhere("collective", |case| {
        let (len, group) = (52, 12);
        let x = inputs(len);
        let f: Vec<f32> = x.iter().map(|&n| n as f32 / 4.0).collect();
        let (out, floats) = (case.zeros::<i32>(12 * x.len()), case.zeros::<f32>(2 * x.len()));
        let config = LaunchConfig::grid_1d(x.len()).with_groups_1d(group);
        let args = [
            Arg::from(&case.buffer(&x)),
            Arg::from(&case.buffer(&f)),
            Arg::from(&out),
            Arg::from(&floats),
        ];
        case.launch("whole_groups", config, &args);
        let (out, floats) = (case.read(&out), case.read(&floats));
        for i in 0..x.len() {
            let first = i / group * group;
            let all = &x[first..x.len().min(first + group)];
            let (before, with) = (&x[first..i], &x[first..=i]);
            let unsigned = all.iter().map(|&n| n as u32).max().unwrap();
            let wanted = [
                all.iter().sum(),
                *all.iter().min().unwrap(),
                unsigned as i32,
                with.iter().sum(),
                before.iter().sum(),
                *with.iter().max().unwrap(),
                before.iter().copied().min().unwrap_or(i32::MAX),
                all[2],
                i32::from(all.iter().all(|&n| n > -20)),
                i32::from(all.iter().all(|&n| n > 0)),
                i32::from(all.iter().any(|&n| n > 30)),
                group as i32 * 1000 + i as i32,
            ];
            assert_eq!(out[12 * i..][..12], wanted, "work-item {i} on {case}");
            let sum: f32 = f[first..x.len().min(first + group)].iter().sum();
            let most = f[first..i].iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(floats[2 * i..][..2], [sum, most], "work-item {i} on {case}");
        }
    });
}

#[test]
fn a_subgroup_is_a_warp() {
    everywhere("collective", |case| {
        let (len, group) = (41, 24);
        let x = inputs(len);
        let lanes = usize::from(case.arch.lanes());
        let out = case.zeros::<i32>(16 * x.len());
        let config = LaunchConfig::grid_1d(x.len()).with_groups_1d(group);
        case.launch("subgroups", config, &[Arg::from(&case.buffer(&x)), Arg::from(&out)]);
        let out = case.read(&out);
        for i in 0..x.len() {
            let first = i / group * group;
            let items = group.min(x.len() - first);
            let own = (i - first) / lanes;
            let start = first + own * lanes;
            let end = (start + lanes).min(first + items);
            let (all, before, with) = (&x[start..end], &x[start..i], &x[start..=i]);
            let odd = |n: &&i32| *n & 1 == 1;
            let of_side: i32 = match x[i] & 1 {
                1 => with.iter().filter(odd).sum(),
                _ => -all.iter().filter(|n| !odd(n)).sum::<i32>(),
            };
            let wanted = [
                all.len() as i32,
                lanes as i32,
                items.div_ceil(lanes) as i32,
                own as i32,
                (i - start) as i32,
                all.iter().sum(),
                *all.iter().max().unwrap(),
                with.iter().sum(),
                before.iter().sum(),
                before.iter().copied().min().unwrap_or(i32::MAX),
                all[0],
                i32::from(all.iter().all(|&n| n > 0)),
                i32::from(all.iter().any(|&n| n > 30)),
                of_side,
            ];
            assert_eq!(out[16 * i..][..14], wanted, "work-item {i} on {case}");
        }
    });
}

#[test]
fn pointers_are_to_any_memory() {
    everywhere("collective", |case| {
        let group = 10;
        let x: Vec<i32> = (0..30).map(|n| n * n).collect();
        let out = case.zeros::<i32>(x.len());
        let config = LaunchConfig::grid_1d(x.len()).with_groups_1d(group);
        let args = [Arg::from(&case.buffer(&x)), Arg::from(&out), Arg::group::<i32>(group)];
        case.launch("generic_pointers", config, &args);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let sum = match i % 3 {
                0 => i as i32 + 5,
                1 => 1 + 4,
                _ => x[i / group * group..][..3].iter().sum(),
            };
            assert_eq!(given, sum + 3000 + 1_000_000, "{i} on {case}");
        }
    });
}

#[test]
fn atomic_objects_lose_nothing() {
    everywhere("collective", |case| {
        let n = 33;
        let (cells, out) = (case.buffer(&[0, -1, 0, 0, 0]), case.zeros::<i32>(2 * n));
        let args = [Arg::from(&cells), Arg::from(&out), Arg::from(&case.zeros::<i32>(1))];
        case.line("atomic_objects", n, &args);
        let (cells, out) = (case.read(&cells), case.read(&out));
        let winner = cells[2] - 1;
        assert_eq!(cells, [33 * 32 / 2, 32, winner + 1, 42, 8], "{case}");
        for (i, given) in (0..).zip(out.chunks(2)) {
            let won = i32::from(i == winner);
            let found = if i == winner { 0 } else { winner + 1 };
            assert_eq!(given, [won + 420, found], "{i} on {case}");
        }
    });
}

#[test]
fn lanes_have_neighbours_in_two_warps_and_parts_of_blocks() {
    everywhere("intel", |case| {
        let lanes = usize::from(case.arch.lanes());
        let x: Vec<u32> = (0..2 * lanes as u32).map(|n| n * n + 7).collect();
        let out = case.zeros::<u32>(9 * lanes);
        let config = LaunchConfig::grid_1d(lanes).with_groups_1d(lanes);
        case.launch("neighbours", config, &[Arg::from(&out), Arg::from(&case.buffer(&x))]);
        let own = &x[..lanes];
        let far: Vec<u32> = own.iter().map(|x| x + 1000).collect();
        let halves: Vec<u16> = x.iter().flat_map(|&x| [x as u16, (x >> 16) as u16]).collect();
        let rows: Vec<&[u16]> = halves.chunks(lanes).collect();
        let swapped = [rows[1], rows[0], rows[3], rows[2]].concat();
        let wanted = [
            (0..lanes).map(|lane| own[(lane + 3) % lanes]).collect(),
            // A lane that is not there gives the own value.
            (0..lanes).map(|lane| *own.get(lane ^ 1).unwrap_or(&own[lane])).collect(),
            [own, &far].concat()[3..][..lanes].to_vec(),
            [&far, own].concat()[lanes - 3..][..lanes].to_vec(),
            vec![2 * own[lanes - 1]; lanes],
            x[lanes..].to_vec(),
            own.to_vec(),
            swapped.chunks(2).map(|two| u32::from(two[0]) | u32::from(two[1]) << 16).collect(),
        ];
        assert_eq!(case.read(&out), wanted.concat(), "{case}");
    });
}
