//! Breadth-first search: each launch handles one level, each work-item a vertex of a graph in compressed rows.
//!
//! Whether a vertex belongs to the level, how many edges it has, and whether their ends are new depends on
//! the data and on the number of the work-item, which is that of its vertex.

use std::collections::VecDeque;

use harp_isa::ArchId;
use harp_jit::ir::condcodes::IntCC;
use harp_jit::{BuildError, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_runtime::{Device, LaunchConfig};

use super::array::{Array, int};
use super::data::{index_type, numbers};
use super::{HarpbenchError, Input, Launch, Outcome, Scale, Work, buffers, word};

/// Parameters: the starts of the rows, the ends of the edges, distances (negative: not reached), a word
/// that is set if a vertex was reached, and the level. Several lanes may reach a vertex at the same time:
/// they store the same.
pub(super) fn source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("bfs", arch);
    let mut builder = KernelBuilder::new(&mut source);
    let b = &mut builder;
    let [rows, ends, distances, changed] = std::array::from_fn(|_| b.param(ParamType::Pointer));
    let level = b.param(index_type(arch));
    let (vertex, word) = (b.global_id(0), b.word_int());
    let distance = b.load_elem(word, distances, vertex);
    let is_here = b.ins().icmp(IntCC::Equal, distance, level);
    b.if_then(is_here, |b| {
        let first = b.load_elem(word, rows, vertex);
        let next = b.ins().iadd_imm_s(vertex, 1);
        let end = b.load_elem(word, rows, next);
        let one = b.ins().iconst(word, 1);
        b.for_range_unsigned(first, end, one, |b, edge| {
            let other = b.load_elem(word, ends, edge);
            let known = b.load_elem(word, distances, other);
            let is_new = b.ins().icmp_imm_s(IntCC::SignedLessThan, known, 0);
            b.if_then(is_new, |b| {
                let further = b.ins().iadd_imm_s(level, 1);
                b.store_elem(further, distances, other);
                let zero = b.ins().iconst(word, 0);
                b.store_elem(one, changed, zero);
            });
        });
    });
    b.return_();
    builder.finalize()?;
    Ok(source)
}

pub(super) fn work(input: Input, scale: Scale, _arch: ArchId) -> Work {
    let vertices = scale.of(2048);
    let mut next = numbers();
    let mut rows = vec![0];
    let mut ends = Vec::new();
    for vertex in 0..vertices {
        let degree = match input {
            Input::Random => next() % 16,
            Input::Skewed if vertex.is_multiple_of(61) => 96,
            Input::Skewed => 2,
            Input::Unanimous => 8,
            Input::Worst => 1 + 31 * (vertex % 2),
        };
        ends.extend((0..degree).map(|edge| {
            let other = match input {
                // Neighbours of neighbours are adjacent, so whole warps belong to one level.
                Input::Unanimous => (vertex * 8 + edge + 1) % vertices,
                _ => next() % vertices,
            };
            other as i32
        }));
        rows.push(ends.len() as i32);
    }
    let mut distances = vec![-1; vertices];
    // The search starts at a vertex with edges.
    let start = (0..vertices).find(|&v| rows[v] < rows[v + 1]).unwrap_or_default();
    distances[start] = 0;
    Work {
        arrays: vec![rows, ends, distances, vec![0]],
        result: 2,
        params: Vec::new(),
        config: LaunchConfig::grid_1d(vertices),
    }
}

/// Launches the kernel for one level after the other, until a level reaches no vertex.
pub(super) fn run(
    device: &Device,
    kernel: &Kernel,
    work: &Work,
    launch: Launch<'_>,
) -> Result<Outcome, HarpbenchError> {
    let arrays = buffers(device, work)?;
    let mut reports = Vec::new();
    for level in 0.. {
        let changed = Array::of_ints(device, &[0])?;
        let mut args: Vec<_> = arrays.iter().take(3).map(Array::arg).collect();
        args.extend([changed.arg(), int(device, level)]);
        reports.push(launch(device, kernel, work.config, &args)?);
        if changed.words(device)? == [0] {
            break;
        }
    }
    Ok(Outcome { result: arrays[work.result].words(device)?, reports })
}

pub(super) fn on_host(work: &Work) -> Vec<u32> {
    let [rows, ends, distances, ..] = work.arrays.as_slice() else {
        unreachable!("the work has four arrays")
    };
    let mut distances = distances.clone();
    let mut queue: VecDeque<usize> =
        (0..distances.len()).filter(|&vertex| distances[vertex] == 0).collect();
    while let Some(vertex) = queue.pop_front() {
        for &end in &ends[rows[vertex] as usize..rows[vertex + 1] as usize] {
            let end = end as usize;
            if distances[end] < 0 {
                distances[end] = distances[vertex] + 1;
                queue.push_back(end);
            }
        }
    }
    distances.into_iter().map(word).collect()
}
