//! Work-groups: memory, barriers, copies, atomic operations, ids; and what kernels print.

use crate::support::{Case, everywhere};
use harp_runtime::{Arg, Checks, Finding, FindingKind, LaunchConfig, Target};

#[test]
fn groups_share_arrays_of_all_kinds() {
    everywhere("groups", |case| {
        let (len, group) = (48, 12);
        let input: Vec<i32> = (0..len).map(|n| n * 5 % 17).collect();
        let out = case.zeros::<i32>(input.len());
        let config = LaunchConfig::grid_1d(input.len()).with_groups_1d(group);
        let args = [Arg::from(&case.buffer(&input)), Arg::from(&out), Arg::group::<i32>(group)];
        case.launch("tiles", config, &args);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let (l, first) = (i % group, i / group * group);
            let tile = &input[first..first + group];
            let sum = |odd: usize| -> i32 {
                (0..group).filter(|l| l & 1 == odd).map(|l| tile[group - 1 - l]).sum()
            };
            let wanted =
                tile[(l + 1) % group] + 1000 * sum(0) + 1_000_000 * sum(1) + group as i32 + 4;
            assert_eq!(given, wanted, "{i} on {case}");
        }
    });
}

#[test]
fn it_is_known_whose_memory_a_pointer_is_in() {
    everywhere("generic", |case| {
        let (len, group) = (14, 7);
        let [out, data] = [4 * len, len].map(|len| case.zeros::<i32>(len));
        let config = LaunchConfig::grid_1d(len).with_groups_1d(group);
        let args = [Arg::from(&out), Arg::from(&data), Arg::group::<i32>(group)];
        case.launch("classify", config, &args);
        for (i, given) in (0..).zip(case.read(&out).chunks(4)) {
            let (all, of_group, own) = ([1, 2, 1000, i + 3], [2, 1, 1000 + i, i + 3], 2000 + i);
            let wanted = match i % 7 {
                0 | 5 => all,
                1..=3 => of_group,
                4 => [4, 0, own, own],
                _ => [0, 3, -1, i + 3],
            };
            assert_eq!(given, wanted, "{i} on {case}");
        }
        let written = |i| if i % 7 == 0 { 1000 } else { 0 };
        assert_eq!(case.read(&data), (0..len).map(written).collect::<Vec<i32>>(), "{case}");

        let out = case.zeros::<i32>(len);
        case.line("alone", len, &[Arg::from(&out)]);
        let wanted = |i: i32| if i & 1 == 1 { 1 + i } else { 4 - 1 };
        assert_eq!(case.read(&out), (0..len as i32).map(wanted).collect::<Vec<_>>(), "{case}");
    });
}

#[test]
fn volatile_memory_is_read_again_after_others_have_written() {
    everywhere("groups", |case| {
        let group = case.arch.lanes() as usize;
        let out = case.zeros::<i32>(3 * group);
        // All work-items store their number to one word: a race, of which any outcome is right.
        let config = LaunchConfig::grid_1d(3 * group).with_groups_1d(group);
        let config = config.with_checks(Checks::none());
        case.launch("elect", config, &[Arg::from(&out), Arg::group::<i32>(1)]);
        // The lanes of a warp store before any of them loads.
        for seen in case.read(&out).chunks(group) {
            assert!(seen.iter().all(|winner| *winner == seen[0]), "{seen:?} on {case}");
        }
    });
}

#[test]
fn work_items_wait_together_wherever_they_come_from() {
    everywhere("groups", |case| {
        let group = 16;
        let input: Vec<i32> = (0..3 * group as i32).map(|n| n * 5 % 17).collect();
        let out = case.zeros::<i32>(input.len());
        let config = LaunchConfig::grid_1d(input.len()).with_groups_1d(group);
        let args = [Arg::from(&case.buffer(&input)), Arg::from(&out), Arg::group::<i32>(group)];
        case.launch("tree", config, &args);
        for (i, given) in case.read(&out).into_iter().enumerate() {
            let span = if i % group == 0 { group } else { 1 << (i % group).trailing_zeros() };
            assert_eq!(given, input[i..i + span].iter().sum::<i32>(), "{i} on {case}");
        }
    });
}

/// The defaults are those of the OpenCL C specification, section 6.15.1.
#[test]
fn dimensions_that_there_are_not_have_an_extent_of_one() {
    everywhere("groups", |case| {
        let out = case.zeros::<u32>(9);
        let config =
            LaunchConfig::grid_3d(1, 1, 6).with_groups([1, 1, 6]).with_checks(Checks::none());
        let given = |dim: i32| {
            case.launch("beyond", config, &[Arg::from(&out), Arg::from(dim)]);
            case.read(&out)
        };
        assert_eq!(given(2)[4..], [6, 6, 1, 1, 0], "{case}");
        for dim in [3, 4, 16, -1] {
            assert_eq!(given(dim), [0, 0, 0, 0, 1, 1, 1, 1, 0], "{dim} on {case}");
        }
    });
}

#[test]
fn what_is_changed_while_the_group_copies_is_found() {
    everywhere("groups", |case| {
        let (given, out) = (case.buffer(&[-1; 40]), case.zeros::<i32>(40));
        let config = LaunchConfig::grid_1d(40).with_groups_1d(40).with_checks(Checks::all());
        let args = [Arg::from(&given), Arg::from(&out), Arg::group::<i32>(40)];
        let Some(found) = case.found("early", config, &args) else { return };
        let is_race = |kind: &FindingKind| matches!(kind, FindingKind::Race { .. });
        let races = found.list.iter().filter(|finding| is_race(&finding.kind));
        assert_eq!(races.map(|finding| finding.count).sum::<u64>(), 40, "{found} on {case}");
    });
}

#[test]
fn words_of_8_bytes_change_at_once_on_all_machines() {
    everywhere("groups", |case| {
        let len = 100;
        let (p, q) = (case.zeros::<i64>(3), case.zeros::<u64>(4));
        let seen = case.zeros::<i64>(len as usize);
        case.line("wide_atomics", len as usize, &[Arg::from(&p), Arg::from(&q), Arg::from(&seen)]);
        let both = |n: i64| n << 32 | n;
        assert_eq!(
            case.read(&p),
            [(1..=len).map(both).sum::<i64>(), 49 << 33, -49 << 33],
            "{case}"
        );
        let flips = (0..len).fold(0, |bits, i| bits ^ u64::MAX >> (i & 63));
        let changed = both(66).cast_unsigned();
        assert_eq!(case.read(&q), [changed, len.cast_unsigned(), u64::MAX, flips], "{case}");
        // In which order is open, but each work-item has seen the sum of those before it.
        let mut seen = case.read(&seen);
        seen.sort_unstable();
        let steps: Vec<i64> = seen.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(seen[0] == 0 && steps.iter().all(|step| both(step & 0xff) == *step), "{case}");
    });
}

#[test]
fn groups_copy_together() {
    everywhere("groups", |case| {
        let (len, group, stride) = (32, 8, 3);
        let input: Vec<f32> = (0..len * 4).map(|n| n as f32).collect();
        let out = case.zeros::<f32>(input.len());
        let config = LaunchConfig::grid_1d(len).with_groups_1d(group);
        let args = [
            Arg::from(&case.buffer(&input)),
            Arg::from(&out),
            Arg::group::<f32>(2 * 4 * group),
            Arg::from(stride),
        ];
        case.launch("async", config, &args);
        for (i, given) in case.read(&out).chunks(4).enumerate() {
            let other = (i % group + 1) % group * stride as usize;
            let wanted: Vec<f32> =
                (0..4).map(|c| input[4 * i + c] + input[4 * other + c]).collect();
            assert_eq!(given, wanted, "{i} on {case}");
        }
    });
}

#[test]
fn atomic_operations_lose_nothing() {
    everywhere("groups", |case| {
        let n = 50;
        let cells = case.buffer(&[0, 0, 5, -5, -1, 0, 0, 0, 0, 0, 0]);
        let unsigned = case.buffer(&[u32::MAX, 1]);
        let (old, swapped) = (case.zeros::<i32>(n), case.zeros::<f32>(1));
        let args = [Arg::from(&cells), Arg::from(&unsigned), Arg::from(&old), Arg::from(&swapped)];
        case.line("atomics", n, &args);
        let cells = case.read(&cells);
        let all = n as i32 * (n as i32 - 1) / 2;
        let xor = (0..n as i32).fold(0, |all, i| all ^ i);
        assert_eq!(cells[..9], [all, -all, -49, 49, 0, -1, xor, 50, -50], "{case}");
        assert!((1..=50).contains(&cells[9]), "{case}");
        assert_eq!(cells[10], 7, "{case}");
        assert_eq!(case.read(&unsigned), [0, u32::MAX], "{case}");
        let mut old = case.read(&old);
        old.sort_unstable();
        assert!(old.into_iter().eq(0..n as i32), "{case}");
        assert_eq!(case.read(&swapped), [2.5], "{case}");
    });
}

#[test]
fn ids_are_those_of_the_work_item() {
    everywhere("groups", |case| {
        let (grid, group) = ([6, 4, 2], [3, 2, 2]);
        let out = case.zeros::<u32>(48 * 24);
        let config = LaunchConfig::grid_3d(6, 4, 2).with_groups([3, 2, 2]);
        case.launch("ids", config, &[Arg::from(&out)]);
        for (i, given) in case.read(&out).chunks(24).enumerate() {
            let i = i as u32;
            let id = [i % 6, i / 6 % 4, i / 24];
            for d in 0..3 {
                let wanted = [
                    id[d],
                    id[d] % group[d],
                    id[d] / group[d],
                    group[d],
                    grid[d] / group[d],
                    grid[d],
                    0,
                ];
                let given: Vec<u32> = (0..7).map(|what| given[3 * what + d]).collect();
                assert_eq!(given, wanted, "work-item {i}, dimension {d} on {case}");
            }
            assert_eq!(given[21], 3, "{case}");
        }
    });
}

#[test]
fn a_grid_has_as_many_dimensions_as_the_host_says() {
    everywhere("groups", |case| {
        let mut flat = LaunchConfig::grid_3d(4, 2, 1);
        flat.dimensions = 1;
        for (config, wanted) in [
            (LaunchConfig::grid_1d(8), 1),
            (LaunchConfig::grid_2d(8, 1), 2),
            (LaunchConfig::grid_3d(8, 1, 1), 3),
            (flat, 2),
        ] {
            let out = case.zeros::<u32>(8);
            case.launch("dimensions", config, &[Arg::from(&out)]);
            let items = config.grid[0] as usize;
            assert_eq!(case.read(&out)[..items], vec![wanted; items], "{case}");
        }
    });
}

#[test]
fn a_launch_with_an_offset_shifts_positions_only() {
    everywhere("groups", |case| {
        let (grid, offset) = ([4, 3, 2], [100, 2, 1]);
        let module = case.module.clone().with_global_offset();
        let case = &Case { module, device: case.device.clone(), ..*case };
        let place = |[x, y, z]: [u32; 3]| ((z * grid[1] + y) * grid[0] + x) as usize * 24;
        let last = place([0, 1, 2].map(|d| offset[d] + grid[d] - 1));
        let out = case.zeros::<u32>(last + 24);
        let config = LaunchConfig::grid_3d(4, 3, 2).with_groups([2, 3, 1]);
        let config = config.with_offset(offset.map(|n| n as usize));
        case.launch("ids", config, &[Arg::from(&out)]);
        let (mut items, all) = (0, case.read(&out));
        for z in 0..grid[2] {
            for (y, x) in (0..grid[1]).flat_map(|y| (0..grid[0]).map(move |x| (y, x))) {
                let own = [x, y, z];
                let shifted = [0, 1, 2].map(|d| offset[d] + own[d]);
                let given = &all[place(shifted)..][..24];
                assert_eq!(given[..3], shifted, "{case}");
                assert_eq!(given[3..6], [x % 2, y, 0], "{case}");
                assert_eq!(given[6..9], [x / 2, 0, z], "{case}");
                assert_eq!(given[15..21], [grid, offset].concat(), "{case}");
                items += 1;
            }
        }
        assert_eq!(items, 24);
    });
}

#[test]
fn barriers_in_functions_hold() {
    everywhere("groups", |case| {
        let input: Vec<i32> = (0..60).map(|n| n % 7).collect();
        let out = case.zeros::<i32>(60);
        let config = LaunchConfig::grid_1d(60).with_groups_1d(20);
        let args = [Arg::from(&case.buffer(&input)), Arg::from(&out), Arg::group::<i32>(20)];
        case.launch("prefix", config, &args);
        let wanted: Vec<i32> = input
            .chunks(20)
            .flat_map(|group| {
                group.iter().scan(0, |sum, n| {
                    *sum += n;
                    Some(*sum)
                })
            })
            .collect();
        assert_eq!(case.read(&out), wanted, "{case}");
    });
}

#[test]
fn kernels_print_as_in_c() {
    everywhere("printing", |case| {
        let (x, f) = (case.buffer(&[1, -2, 3]), case.buffer(&[0.5_f32, 1.25, -3.0]));
        let report = case.line("lines", 3, &[Arg::from(&x), Arg::from(&f)]);
        let wanted = "\
            [0] 0:  0.50|1     |000001|1|a|text\n[0] 100%\n\
            [1] 1:  1.25|-2    |-00002|fffffffe|b|text\n[1] 100%\n\
            [2] 2: -3.00|3     |000003|3|c|text\n[2] 3,1,2,3 -3.000000,0.500000\n[2] 100%\n";
        assert_eq!(report.printed.to_string(), wanted, "{case}");
    });
}

#[test]
fn kernels_print_what_is_chosen() {
    everywhere("printing", |case| {
        let (x, f) = (case.buffer(&[1, -2, 3]), case.buffer(&[0.5_f32, 1.25, -3.0]));
        let report = case.line("chosen", 3, &[Arg::from(&x), Arg::from(&f)]);
        let wanted = "\
            [0] odd one|    on\n[0] small is 001\n[0] 0.500000 1|0\n[0] \n\
            [1] even zero|    on\n[1] small is -02\n[1] 1.250000 -2|1\n[1] \n\
            [2] odd many|    on\n[2] 3 is large\n[2] -3.000000 3|2\n[2] \n";
        assert_eq!(report.printed.to_string(), wanted, "{case}");
    });
}

#[test]
fn barriers_order_the_memory_that_they_name() {
    // Whether there are races in the memory of the group, and in other memory.
    let kernels = [
        ("passed_local", [false, true]),
        ("passed_global", [true, false]),
        ("passed_both", [false, false]),
        ("passed_none", [true, true]),
        ("passed_with_fence", [false, false]),
    ];
    everywhere("groups", |case| {
        let config = LaunchConfig::grid_1d(40).with_groups_1d(20).with_checks(Checks::all());
        let (data, out) = (case.zeros::<i32>(40), case.zeros::<i32>(40));
        let args = [Arg::from(&data), Arg::group::<i32>(20), Arg::from(&out)];
        for (name, raced) in kernels {
            if raced == [false, false] {
                case.launch(name, config, &args);
                continue;
            }
            let Some(found) = case.found(name, config, &args) else { return };
            let is_race =
                |one: &Finding| matches!(one.kind, FindingKind::Race { passes_barrier: true, .. });
            assert!(found.list.iter().all(is_race), "{name} on {case}: {found}");
            let is_of_group = |one: &Finding| matches!(one.target, Some(Target::Group { .. }));
            let any = [true, false]
                .map(|of_group| found.list.iter().any(|one| is_of_group(one) == of_group));
            assert_eq!(any, raced, "{name} on {case}: {found}");
        }
    });
}

#[test]
fn arrays_end_where_others_begin() {
    everywhere("groups", |case| {
        let out = case.zeros::<i32>(8);
        let config = LaunchConfig::grid_1d(8).with_groups_1d(4).with_checks(Checks::all());
        case.launch("neighbours", config, &[Arg::from(&out), Arg::from(0)]);
        assert_eq!(case.read(&out), [10, 11, 12, 13, 10, 11, 12, 13], "{case}");
        let Some(found) = case.found("neighbours", config, &[Arg::from(&out), Arg::from(2)]) else {
            return;
        };
        let [one] = &found.list[..] else { panic!("{case}: {found}") };
        assert_eq!((&one.kind, one.count), (&FindingKind::OutOfBounds, 4), "{case}: {found}");
        let Some(Target::Group { name: Some(name), bytes: 16, .. }) = &one.target else {
            panic!("{case}: {found}");
        };
        assert_eq!(name, "first", "{case}");
    });
}

/// All work-items come to a barrier together, though some are behind a branch from which others might have left.
#[test]
fn barriers_behind_ways_out_that_nobody_takes() {
    everywhere("groups", |case| {
        let group = case.arch.lanes().max(4) as usize / 2 * 2;
        let config = LaunchConfig::grid_1d(2 * group).with_groups_1d(group);
        let given = |kernel| {
            let out = case.zeros::<i32>(2 * group);
            let args = [Arg::from(&out), Arg::group::<i32>(group), 5.into()];
            case.launch(kernel, config, &args);
            case.read(&out)
        };
        let ids = || 0..group as i32;
        let mut x: Vec<i32> = ids().collect();
        for round in 0..3 {
            for (l, x) in ids().zip(&mut x) {
                match l & 1 {
                    1 => *x += round,
                    _ => *x = ((*x + 3)..).step_by(3).find(|x| x % 5 == 0).unwrap(),
                }
            }
            x = (0..group).map(|l| x[l] + x[(l + 1) % group]).collect();
        }
        assert_eq!(given("may_break"), x.repeat(2), "{case}");

        let quarter = group as i32 / 4;
        let x: Vec<i32> = ids().map(|l| if l > quarter { 2 * l + 7 } else { l }).collect();
        let wanted: Vec<i32> = (0..group).map(|l| x[l] + x[group - 1 - l]).collect();
        assert_eq!(given("may_return"), wanted.repeat(2), "{case}");
    });
}
