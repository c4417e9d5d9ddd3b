//! What the lanes of a warp do together in shaders.

use harp_runtime::Arg;
use harp_spirv::SpirvModule;

use crate::shaders::{everywhere, groups};
use crate::support::{Case, bytes};

#[test]
fn lanes_of_a_warp_work_together() {
    everywhere("warps", |case| {
        let (len, group) = (48, 24);
        let x: Vec<i32> = (0..len).map(|n| n * 37 % 53 - 12).collect();
        let lanes = usize::from(case.arch.lanes());
        let (out, ballots) = (case.zeros::<i32>(16 * x.len()), case.zeros::<u32>(4 * x.len()));
        let args = [Arg::from(&case.buffer(&x)), Arg::from(&out), Arg::from(&ballots)];
        case.launch("lanes", groups(x.len(), group), &args);
        let (out, ballots) = (case.read(&out), case.read(&ballots));
        for i in 0..x.len() {
            let first = i / group * group;
            let start = first + (i - first) / lanes * lanes;
            let (end, lane) = ((start + lanes).min(first + group), i - start);
            let (all, before) = (&x[start..end], &x[start..i]);
            // A lane that is not there gives the own value.
            let of =
                |lane: Option<usize>| lane.and_then(|lane| all.get(lane)).copied().unwrap_or(x[i]);
            let factor = |n: &i32| n % 3 + 4;
            let product = |of: &[i32]| of.iter().map(factor).fold(1, i32::wrapping_mul);
            let bits =
                |combine: fn(i32, i32) -> i32, start| all.iter().copied().fold(start, combine);
            let quad = lane & !3;
            let wanted = [
                (lanes * 100 + lane) as i32,
                all.iter().sum(),
                before.iter().sum(),
                before.iter().sum::<i32>() + x[i],
                product(all),
                *all.iter().min().unwrap(),
                *all.iter().max().unwrap(),
                bits(|a, n| a & (n | 16), -1)
                    + bits(|a, n| a | n, 0) * 3
                    + bits(|a, n| a ^ n, 0) * 5,
                all[0] * 3,
                of(Some(lane ^ 1)),
                of(Some(lane ^ 1)),
                of(lane.checked_sub(1)),
                of(Some(lane + 1)),
                i32::from(all.iter().all(|&n| n > 0)) + 2 * i32::from(all.iter().any(|&n| n > 30)),
                of(Some(lane ^ 1)) + of(Some(quad | 1)) * 100,
                product(before),
            ];
            assert_eq!(out[16 * i..][..16], wanted, "work-item {i} on {case}");
            let mask = all.iter().rev().fold(0_u64, |mask, n| mask << 1 | u64::from(n & 1 == 1));
            assert_eq!(ballots[4 * i..][..4], [mask as u32, (mask >> 32) as u32, 0, 0], "{case}");
        }
    });
}

#[test]
fn sets_of_lanes() {
    everywhere("rare", |case| {
        let out = case.zeros::<u32>(8 * 5);
        case.launch("masks", groups(8, 8), &[Arg::from(&out)]);
        let lanes = u32::from(case.arch.lanes());
        for (item, given) in (0..).zip(case.read(&out).chunks(5)) {
            let lane = item % lanes;
            let set = |holds: fn(&u32, &u32) -> bool| -> u32 {
                (0..lanes.min(32)).filter(|other| holds(other, &lane)).map(|other| 1 << other).sum()
            };
            let wanted = [set(u32::eq), set(u32::ge), set(u32::gt), set(u32::le), set(u32::lt)];
            assert_eq!(given, wanted, "lane {lane} on {case}");
        }
    });
}

/// A module with votes of quads in the place of those of subgroups.
fn with_quads(bytes: &[u8]) -> SpirvModule {
    let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap()));
    let mut words: Vec<u32> = words.collect();
    let mut at = 5;
    while at < words.len() {
        let (count, op) = (words[at] >> 16, words[at] & 0xffff);
        let all_and_any = [(4428, 5110), (4429, 5111)];
        let quad = all_and_any.into_iter().find(|(subgroup, _)| *subgroup == op);
        words[at] = count << 16 | quad.map_or(op, |(_, quad)| quad);
        at += count as usize;
    }
    let bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    SpirvModule::parse(&bytes).unwrap()
}

#[test]
fn lanes_rotate_vote_in_quads_and_work_in_parts() {
    everywhere("partitions", |case| {
        let x: Vec<u32> = (0..64).map(|n| n * n * 7 % 31).collect();
        let out = case.zeros::<u32>(8 * x.len());
        let module = with_quads(&bytes("partitions.spv"));
        let case = &Case { module, device: case.device.clone(), ..*case };
        case.launch("main", groups(64, 64), &[Arg::from(&case.buffer(&x)), Arg::from(&out)]);
        let lanes = usize::from(case.arch.lanes());
        for (i, given) in case.read(&out).chunks(8).enumerate() {
            let (start, lane) = (i / lanes * lanes, i % lanes);
            let all = &x[start..start + lanes];
            let is_in = |n: &u32| n % 3 == x[i] % 3;
            let sum = |of: &[u32]| of.iter().filter(|n| is_in(n)).sum::<u32>();
            let part = all.iter().take(32).rev().fold(0, |set, n| set << 1 | u32::from(is_in(n)));
            let quad = all[lane & !3..][..4].iter().map(|n| n & 1);
            let wanted = [
                all[(lane + 3) % lanes],
                all[lane & !3 | (lane + 5) & 3],
                part,
                sum(all),
                sum(&all[..=lane]),
                sum(&all[..lane]),
                quad.clone().min().unwrap(),
                quad.max().unwrap(),
            ];
            assert_eq!(given, wanted, "work-item {i} on {case}");
        }
    });
}

#[test]
fn groups_multiply_and_combine_bits_and_truth_values() {
    everywhere("uniform", |case| {
        let group = 24;
        let x: Vec<u32> = (0..72).map(|n| (n * n * 7 % 31) | (n & 32)).collect();
        let out = case.zeros::<u32>(32 * x.len());
        case.launch(
            "main",
            groups(x.len(), group),
            &[Arg::from(&case.buffer(&x)), Arg::from(&out)],
        );
        let combined = |of: &[u32]| {
            let odd = |n: &u32| n & 1;
            [
                of.iter().copied().fold(1, u32::wrapping_mul),
                of.iter().map(|n| odd(n) + 1).product(),
                of.iter().copied().fold(u32::MAX, |all, n| all & n),
                of.iter().copied().fold(0, |all, n| all | n),
                of.iter().copied().fold(0, |all, n| all ^ n),
                u32::from(of.iter().all(|n| odd(n) == 1)),
                u32::from(of.iter().any(|n| odd(n) == 1)),
                of.iter().map(odd).sum::<u32>() & 1,
            ]
        };
        let lanes = usize::from(case.arch.lanes());
        for (i, given) in case.read(&out).chunks(32).enumerate() {
            let first = i / group * group;
            let all = &x[first..first + group];
            let start = (i - first) / lanes * lanes;
            let warp = &all[start..group.min(start + lanes)];
            let wanted = [all, &x[first..=i], &x[first..i], warp].map(combined);
            assert_eq!(given, wanted.as_flattened(), "{i} on {case}");
        }
    });
}

/// What lanes do before they leave a loop belongs to the round in which they leave it.
#[test]
fn lanes_leave_loops_in_rounds() {
    everywhere("rounds", |case| {
        let (len, group) = (48, 24);
        let keys: Vec<u32> = (0..len).map(|n| n * 7 % 5 * (n / 3 % 2)).collect();
        let lanes = usize::from(case.arch.lanes());
        let counts = case.zeros::<u32>(3 * keys.len());
        let args = [Arg::from(&case.buffer(&keys)), Arg::from(&counts)];
        case.launch("rounds", groups(keys.len(), group), &args);
        let counts = case.read(&counts);
        let mut start = 0;
        for warp in keys.chunks(group).flat_map(|group| group.chunks(lanes)) {
            let mut seen: Vec<u32> = Vec::new();
            for (i, key) in (start..).zip(warp) {
                let is_first = !seen.contains(key);
                if is_first {
                    seen.push(*key);
                }
                let round = seen.iter().position(|other| other == key).unwrap() as u32;
                let count = warp.iter().filter(|other| *other == key).count() as u32;
                let wanted = [count, round + if is_first { 100 } else { 0 }, count];
                assert_eq!(counts[3 * i..][..3], wanted, "work-item {i} on {case}");
            }
            start += warp.len();
        }

        let words = case.zeros::<u32>(2);
        case.launch("turns", groups(keys.len(), group), &[Arg::from(&words)]);
        assert_eq!(case.read(&words), [0, len], "{case}");
    });
}
