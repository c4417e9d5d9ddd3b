//! Dynamic programming.

use std::mem::swap;

use harp_runtime::{Arg, LaunchConfig};

use super::{groups, integers, opencl};

#[test]
fn paths_are_cheap() {
    let (columns, rows, group) = (37, 11, 16);
    let wall = integers(101, columns * rows, 0..10);
    let mut wanted = wall[..columns].to_vec();
    for row in wall.chunks(columns).skip(1) {
        let old = wanted.clone();
        for (x, cost) in wanted.iter_mut().enumerate() {
            let near = &old[x.saturating_sub(1)..(x + 2).min(columns)];
            *cost = row[x] + near.iter().min().unwrap();
        }
    }
    opencl("pathfinder", |case| {
        let kernel = case.kernel("rows");
        let wall_buffer = case.buffer(&wall);
        let (mut before, mut after) = (case.buffer(&wall[..columns]), case.zeros::<i32>(columns));
        let mut row = 1;
        while row < rows {
            let count = (rows - row).min(4);
            let grid = columns.div_ceil(group - 2 * count) * group;
            let buffers = [&wall_buffer, &before, &after].map(Arg::from);
            let numbers = [columns, row, count].map(|n| Arg::from(n as i32));
            let parts = [Arg::group::<i32>(group), Arg::group::<i32>(group)];
            case.run(&kernel, groups(grid, group), &[&buffers[..], &numbers, &parts].concat());
            swap(&mut before, &mut after);
            row += count;
        }
        assert_eq!(case.read(&before), wanted, "{case}");
    });
}

#[test]
fn sequences_align() {
    let (tile, tiles, penalty) = (8, 3, 4);
    let len = tile * tiles;
    let width = len + 1;
    let letters = |seed| integers(seed, len, 0..4).into_iter().map(|n| n as u8).collect::<Vec<_>>();
    let (down, across) = (letters(102), letters(103));
    let scores: Vec<i8> = integers(104, 16, -4..6).into_iter().map(|n| n as i8).collect();
    let edge = |at: usize| match (at / width, at % width) {
        (0, n) | (n, 0) => -penalty * n as i32,
        _ => 0,
    };
    let start: Vec<i32> = (0..width * width).map(edge).collect();
    let mut wanted = start.clone();
    for y in 1..width {
        for x in 1..width {
            let score = scores[usize::from(down[y - 1] * 4 + across[x - 1])];
            let matched = wanted[(y - 1) * width + x - 1] + i32::from(score);
            let skipped = wanted[(y - 1) * width + x].max(wanted[y * width + x - 1]) - penalty;
            wanted[y * width + x] = matched.max(skipped);
        }
    }
    opencl("needleman_wunsch", |case| {
        let (down, across) = (case.buffer(&down), case.buffer(&across));
        let (scores, table) = (case.buffer(&scores), case.buffer(&start));
        let kernel = case.kernel("diagonal");
        for number in 0..2 * tiles - 1 {
            let first = (number + 1).saturating_sub(tiles);
            let count = number.min(tiles - 1) - first + 1;
            let buffers = [(&down).into(), (&across).into(), (&scores).into(), (&table).into()];
            let numbers = [width as i32, number as i32, first as i32, penalty].map(Arg::from);
            let grid = LaunchConfig::grid_1d(count * tile).with_groups_1d(tile);
            case.run(&kernel, grid, &[&buffers[..], &numbers].concat());
        }
        assert_eq!(case.read(&table), wanted, "{case}");
    });
}
