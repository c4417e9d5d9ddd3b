//! Breadth-first search over a graph in compressed sparse rows, a launch a level.

use harp_isa::ArchId;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, KernelSource};
use harp_runtime::{Arg, Device, LaunchConfig};

use super::int::{built, global_id, iconst, load, store};
use super::{Launch, Output};
use crate::Generator;

/// Edges of each node.
const DEGREE: usize = 8;

/// One level: parameters `row`, `col`, `dist`, `changed` and the level.
pub(super) fn bfs(arch: ArchId) -> Result<KernelSource, BuildError> {
    built("bfs", arch, |b| {
        let [rows, columns] = ["row", "col"].map(|name| b.buffer::<i32>(name));
        let [distances, changed] = ["dist", "changed"].map(|name| b.buffer::<i32>(name));
        let (level, node) = (b.scalar::<i32>("level"), global_id(b, 0));
        let distance = load(b, distances, node);
        let is_here = b.ins().icmp(IntCC::Equal, distance, level);
        b.if_then(is_here, |b| {
            let next = b.ins().iadd_imm_s(node, 1);
            let (start, end, one) = (load(b, rows, node), load(b, rows, next), iconst(b, 1));
            b.for_range(start, end, one, |b, edge| {
                let other = load(b, columns, edge);
                let distance = load(b, distances, other);
                let is_new = b.ins().icmp_imm_s(IntCC::SignedLessThan, distance, 0);
                b.if_then(is_new, |b| {
                    let (farther, zero) = (b.ins().iadd_imm_s(level, 1), iconst(b, 0));
                    store(b, distances, other, farther);
                    store(b, changed, zero, one);
                });
            });
        });
    })
}

/// The ends of all edges, node by node.
fn edges(scale: u32) -> Vec<i32> {
    let nodes = 1 << 15 >> (scale - 1);
    let numbers = Generator::new().take(nodes * DEGREE);
    numbers.map(|number| (number % nodes as u32).cast_signed()).collect()
}

/// Runs all levels from node 0 on; the distances.
pub(super) fn run_bfs(device: &Device, launch: &mut Launch<'_>, scale: u32) -> Output {
    let edges = edges(scale);
    let nodes = edges.len() / DEGREE;
    let rows: Vec<i32> = (0..=nodes).map(|node| (node * DEGREE) as i32).collect();
    let mut distances = vec![-1; nodes];
    distances[0] = 0;
    let (rows, columns) = (device.buffer_from_slice(&rows)?, device.buffer_from_slice(&edges)?);
    let distances = device.buffer_from_slice(&distances)?;
    let changed = device.buffer_zeroed::<i32>(1)?;
    for level in 0_i32.. {
        device.write(&changed, &[0])?;
        let graph = [Arg::from(&rows), Arg::from(&columns)];
        let state = [Arg::from(&distances), Arg::from(&changed), Arg::from(level)];
        let args: Vec<Arg> = graph.into_iter().chain(state).collect();
        launch(LaunchConfig::grid_1d(nodes), &args)?;
        if device.read(&changed)? == [0] {
            break;
        }
    }
    Ok(device.read(&distances)?.into_iter().map(i32::cast_unsigned).collect())
}

pub(super) fn host_bfs(scale: u32) -> Vec<u32> {
    let edges = edges(scale);
    let mut distances = vec![u32::MAX; edges.len() / DEGREE];
    let (mut level, mut distance) = (vec![0], 0);
    while !level.is_empty() {
        level.retain(|&node| distances[node] == u32::MAX);
        level.iter().for_each(|&node| distances[node] = distance);
        let ends = level.iter().flat_map(|&node| &edges[node * DEGREE..(node + 1) * DEGREE]);
        level = ends.map(|&end| end as usize).collect();
        distance += 1;
    }
    distances
}
