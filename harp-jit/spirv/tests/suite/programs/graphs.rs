//! Graphs and trees.

use std::collections::VecDeque;

use harp_runtime::{Arg, LaunchConfig};

use super::{groups, integers, opencl};

#[test]
fn frontiers_reach_all_nodes() {
    let count = 60;
    let neighbours: Vec<Vec<i32>> = integers(81, count, 0..5)
        .into_iter()
        .enumerate()
        .map(|(n, edges)| integers(82 + n as u64, edges as usize, 0..count as i32))
        .collect();
    let mut costs = vec![-1; count];
    costs[3] = 0;
    let mut queue = VecDeque::from([3]);
    while let Some(n) = queue.pop_front() {
        for &other in &neighbours[n] {
            let other = other as usize;
            if costs[other] < 0 {
                costs[other] = costs[n] + 1;
                queue.push_back(other);
            }
        }
    }
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    for of_node in &neighbours {
        nodes.extend([edges.len() as i32, of_node.len() as i32]);
        edges.extend(of_node);
    }
    opencl("breadth_first_search", |case| {
        let (nodes, edges) = (case.buffer(&nodes), case.buffer(&edges));
        let only_first: Vec<u8> = (0..count).map(|n| u8::from(n == 3)).collect();
        let (frontier, visited) = (case.buffer(&only_first), case.buffer(&only_first));
        let updating = case.zeros::<u8>(count);
        let start: Vec<i32> = (0..count).map(|n| if n == 3 { 0 } else { -1 }).collect();
        let reached = case.buffer(&start);
        let [visit, update] = ["visit", "update"].map(|kernel| case.kernel(kernel));
        let (line, len) = (groups(count, 16), Arg::from(count as i32));
        for round in 0.. {
            assert!(round < count, "{case}");
            let graph = [&nodes, &edges].map(Arg::from);
            let flags = [&frontier, &updating, &visited].map(Arg::from);
            let last = [(&reached).into(), len.clone()];
            case.run(&visit, line, &[&graph[..], &flags, &last].concat());
            let more = case.zeros::<i32>(1);
            let last = [(&more).into(), len.clone()];
            case.run(&update, line, &[&flags[..], &last].concat());
            if case.read(&more) == [0] {
                break;
            }
        }
        assert_eq!(case.read(&reached), costs, "{case}");
    });
}

const ORDER: usize = 8;

/// The words of a node: keys and a last limit, children, and whether it is a leaf.
fn node(keys: &[i32], limit: i32, children: &[usize], leaf: bool) -> Vec<i32> {
    let mut words = keys.to_vec();
    words.resize(ORDER + 1, limit);
    words.extend(children.iter().map(|&child| child as i32));
    words.resize(2 * (ORDER + 1), 0);
    words.push(leaf.into());
    words
}

/// A root and its leaves. Keys are three apart; what is below the first is sought in the first leaf.
fn tree(keys: &[i32]) -> Vec<i32> {
    let leaves: Vec<&[i32]> = keys.chunks(ORDER).collect();
    let mut firsts: Vec<i32> = leaves.iter().map(|leaf| leaf[0]).collect();
    firsts[0] = i32::MIN;
    let children: Vec<usize> = (1..=leaves.len()).collect();
    let mut words = node(&firsts, i32::MAX, &children, false);
    for (number, leaf) in leaves.into_iter().enumerate() {
        let records: Vec<usize> = (0..leaf.len()).map(|n| number * ORDER + n).collect();
        words.extend(node(leaf, i32::MAX, &records, true));
    }
    words
}

#[test]
fn trees_are_searched() {
    let keys: Vec<i32> = (0..44).map(|n| 3 * n - 20).collect();
    let records = integers(83, keys.len(), 0..1_000_000);
    let nodes = tree(&keys);
    let queries = integers(84, 20, -25..120);
    let answers: Vec<i32> = queries
        .iter()
        .map(|query| keys.iter().position(|key| key == query).map_or(-1, |n| records[n]))
        .collect();
    let ranges: Vec<i32> =
        queries.chunks(2).flat_map(|q| [q[0].min(q[1]), q[0].max(q[1])]).collect();
    let counts: Vec<i32> = ranges
        .chunks(2)
        .map(|range| keys.iter().filter(|&&key| (range[0]..=range[1]).contains(&key)).count())
        .map(|count| count as i32)
        .collect();
    opencl("b_plus_tree", |case| {
        let (nodes, records) = (case.buffer(&nodes), case.buffer(&records));
        let groups_of = |count: usize| LaunchConfig::grid_1d(count * ORDER).with_groups_1d(ORDER);
        let (input, out) = (case.buffer(&queries), case.zeros::<i32>(queries.len()));
        let buffers = [&nodes, &records, &input, &out].map(Arg::from);
        let height = [Arg::from(1_i32)];
        case.launch("find", groups_of(queries.len()), &[&buffers[..], &height].concat());
        assert_eq!(case.read(&out), answers, "{case}");
        let (input, out) = (case.buffer(&ranges), case.zeros::<i32>(counts.len()));
        let buffers = [&nodes, &input, &out].map(Arg::from);
        case.launch("count", groups_of(counts.len()), &[&buffers[..], &height].concat());
        assert_eq!(case.read(&out), counts, "{case}");
    });
}
