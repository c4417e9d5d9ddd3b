//! Programs in SPIR-V, made from OpenCL C after the benchmarks of Rodinia, with their data. What they compute is tested
//! by harp-spirv.

use crate::Generator;

/// A program: its kernels, their data, and how they are launched.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) name: &'static str,
    /// For addresses of 4 and of 8 bytes.
    pub(super) code: [&'static [u8]; 2],
    pub(super) data: &'static [Data],
    pub(super) launches: &'static [Step],
}

/// The words of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Data {
    Floats(fn() -> Vec<u32>),
    Others(fn() -> Vec<u32>),
}

/// A launch.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) kernel: &'static str,
    pub(super) grid: [usize; 2],
    pub(super) group: [usize; 2],
    pub(super) args: &'static [Given],
}

/// An argument.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given {
    /// A buffer, by its index.
    Buffer(usize),
    Int(i32),
    Float(f32),
    /// Memory of the group, in words.
    Local(usize),
    /// Memory of the group, in floats.
    LocalFloats(usize),
}

use Data::{Floats, Others};
use Given::{Buffer as B, Float as F, Int as I, Local as L, LocalFloats as LF};

/// Numbers from `low` to `high`.
fn floats(count: usize, low: f32, high: f32) -> Vec<u32> {
    let numbers = Generator::new().take(count);
    numbers.map(|n| (low + (high - low) * (n as f32 / (1 << 24) as f32)).to_bits()).collect()
}

/// Whole numbers below `limit`.
fn integers(count: usize, limit: u32) -> Vec<u32> {
    Generator::new().take(count).map(|n| (n >> 4) % limit).collect()
}

/// Bytes below `limit`, four a word.
fn bytes(count: usize, limit: u32) -> Vec<u32> {
    let bytes: Vec<u32> = integers(count.next_multiple_of(4), limit);
    bytes.chunks(4).map(|four| four.iter().rev().fold(0, |word, byte| word << 8 | byte)).collect()
}

fn zeros(words: usize) -> Vec<u32> {
    vec![0; words]
}

/// A square matrix whose diagonal outweighs the rest.
fn dominant(size: usize) -> Vec<u32> {
    let mut words = floats(size * size, -1.0, 1.0);
    for n in 0..size {
        let own = f32::from_bits(words[n * (size + 1)]) + size as f32;
        words[n * (size + 1)] = own.to_bits();
    }
    words
}

/// Boxes of eight particles, each with the two next ones as neighbours.
fn boxes(count: u32) -> Vec<u32> {
    let one = |n: u32| {
        let mut words = vec![n * 8, 2, (n + 1) % count, (n + 2) % count];
        words.resize(10, 0);
        words
    };
    (0..count).flat_map(one).collect()
}

/// Nodes with up to seven edges, each of two words: the first edge and how many.
fn nodes(count: usize) -> Vec<u32> {
    let mut first = 0;
    let node = |edges: u32| {
        let words = [first, edges];
        first += edges;
        words
    };
    integers(count, 8).into_iter().flat_map(node).collect()
}

/// Points of a weight, a cost and an owner.
fn points(count: usize) -> Vec<u32> {
    let weights = floats(2 * count, 0.5, 2.0);
    let owners = integers(count, 9);
    (0..count).flat_map(|n| [weights[2 * n], weights[2 * n + 1], owners[n]]).collect()
}

macro_rules! code {
    ($name:literal) => {
        [
            include_bytes!(concat!(
                "../../../../harp-jit/spirv/tests/programs/opencl/",
                $name,
                ".32.O2.spv"
            )),
            include_bytes!(concat!(
                "../../../../harp-jit/spirv/tests/programs/opencl/",
                $name,
                ".64.O2.spv"
            )),
        ]
    };
}

macro_rules! step {
    ($kernel:literal, $grid:expr, $group:expr, [$($arg:expr),*]) => {
        Step { kernel: $kernel, grid: $grid, group: $group, args: &[$($arg),*] }
    };
}

pub(super) static MODULES: [Module; 14] = [
    Module {
        name: "back_propagation",
        code: code!("back_propagation"),
        data: &[
            Floats(|| floats(64, -1.0, 1.0)),
            Floats(|| floats(64 * 16, -1.0, 1.0)),
            Floats(|| zeros(4 * 16)),
            Floats(|| floats(64 * 16, -0.5, 1.0)),
        ],
        launches: &[
            step!("forward", [16, 64], [16, 16], [B(0), B(1), B(2), LF(256)]),
            step!("activate", [16, 1], [16, 1], [B(2), B(3), I(4)]),
            step!("adjust", [16, 64], [16, 16], [B(2), B(0), B(1), B(3)]),
        ],
    },
    Module {
        name: "breadth_first_search",
        code: code!("breadth_first_search"),
        data: &[
            Others(|| nodes(512)),
            Others(|| integers(8 * 512, 512)),
            Others(|| bytes(512, 2)),
            Others(|| zeros(128)),
            Others(|| bytes(512, 2)),
            Others(|| zeros(512)),
            Others(|| zeros(1)),
        ],
        launches: &[
            step!("visit", [512, 1], [64, 1], [B(0), B(1), B(2), B(3), B(4), B(5), I(512)]),
            step!("update", [512, 1], [64, 1], [B(2), B(3), B(4), B(6), I(512)]),
            step!("visit", [512, 1], [64, 1], [B(0), B(1), B(2), B(3), B(4), B(5), I(512)]),
        ],
    },
    Module {
        name: "gaussian",
        code: code!("gaussian"),
        data: &[
            Floats(|| dominant(32)),
            Floats(|| floats(32, -4.0, 4.0)),
            Floats(|| zeros(32 * 32)),
        ],
        launches: &[
            step!("multipliers", [32, 1], [32, 1], [B(0), B(2), I(32), I(0)]),
            step!("subtract", [32, 32], [8, 8], [B(0), B(1), B(2), I(32), I(0)]),
            step!("multipliers", [32, 1], [32, 1], [B(0), B(2), I(32), I(1)]),
            step!("subtract", [32, 32], [8, 8], [B(0), B(1), B(2), I(32), I(1)]),
        ],
    },
    Module {
        name: "hotspot",
        code: code!("hotspot"),
        data: &[
            Floats(|| floats(32 * 32, 0.0, 2.0)),
            Floats(|| floats(32 * 32, 60.0, 90.0)),
            Floats(|| zeros(32 * 32)),
        ],
        launches: &[step!(
            "heat",
            [64, 64],
            [8, 8],
            [B(0), B(1), B(2), I(32), I(32), I(2), F(0.5), F(0.2), F(0.25), F(0.0625)]
        )],
    },
    Module {
        name: "k_means",
        code: code!("k_means"),
        data: &[
            Floats(|| floats(3 * 512, 0.0, 100.0)),
            Floats(|| floats(3 * 8, 0.0, 100.0)),
            Others(|| zeros(512)),
            Others(|| zeros(1)),
            Others(|| zeros(3 * 8)),
            Others(|| zeros(8)),
        ],
        launches: &[
            step!("assign", [512, 1], [64, 1], [B(0), B(1), B(2), B(3), I(512), I(8)]),
            step!("add_up", [512, 1], [64, 1], [B(0), B(2), B(4), B(5), I(512)]),
            step!("move", [24, 1], [24, 1], [B(1), B(4), B(5)]),
        ],
    },
    Module {
        name: "lu_decomposition",
        code: code!("lu_decomposition"),
        data: &[Floats(|| dominant(32))],
        launches: &[
            step!("diagonal", [4, 1], [4, 1], [B(0), I(32), I(0)]),
            step!("perimeter", [56, 1], [8, 1], [B(0), I(32), I(0)]),
            step!("internal", [28, 28], [4, 4], [B(0), I(32), I(0)]),
        ],
    },
    Module {
        name: "molecular_dynamics",
        code: code!("molecular_dynamics"),
        data: &[
            Others(|| boxes(16)),
            Floats(|| floats(4 * 128, 0.0, 2.0)),
            Floats(|| floats(128, -1.0, 1.0)),
            Floats(|| zeros(4 * 128)),
        ],
        launches: &[step!("forces", [128, 1], [8, 1], [B(0), B(1), B(2), B(3), F(0.5)])],
    },
    Module {
        name: "nearest_neighbor",
        code: code!("nearest_neighbor"),
        data: &[
            Floats(|| floats(2 * 512, -60.0, 60.0)),
            Floats(|| zeros(512)),
            Others(|| zeros(2 * 8)),
        ],
        launches: &[
            step!("distances", [512, 1], [64, 1], [B(0), B(1), I(512), F(7.5), F(-20.25)]),
            step!("nearest", [512, 1], [64, 1], [B(1), B(2), I(512), L(2 * 64)]),
        ],
    },
    Module {
        name: "needleman_wunsch",
        code: code!("needleman_wunsch"),
        data: &[
            Others(|| bytes(32, 4)),
            Others(|| bytes(32, 4)),
            Others(|| bytes(16, 6)),
            Others(|| zeros(33 * 33)),
        ],
        launches: &[
            step!("diagonal", [8, 1], [8, 1], [B(0), B(1), B(2), B(3), I(33), I(0), I(0), I(4)]),
            step!("diagonal", [16, 1], [8, 1], [B(0), B(1), B(2), B(3), I(33), I(1), I(0), I(4)]),
            step!("diagonal", [24, 1], [8, 1], [B(0), B(1), B(2), B(3), I(33), I(2), I(0), I(4)]),
            step!("diagonal", [32, 1], [8, 1], [B(0), B(1), B(2), B(3), I(33), I(3), I(0), I(4)]),
        ],
    },
    Module {
        name: "particle_filter",
        code: code!("particle_filter"),
        data: &[
            Floats(|| floats(2 * 128, -4.0, 4.0)),
            Others(|| integers(128, 1 << 20)),
            Floats(|| zeros(128)),
            Floats(|| zeros(128)),
            Floats(|| zeros(2 * 128)),
            Others(|| zeros(128)),
        ],
        launches: &[
            step!("weigh", [128, 1], [64, 1], [B(0), B(1), B(2), F(1.0), F(-2.0), F(0.5), F(-1.5)]),
            step!("add_up", [1, 1], [1, 1], [B(2), B(3), I(128)]),
            step!("draw", [128, 1], [64, 1], [B(0), B(3), B(4), B(5), I(128), F(0.25)]),
        ],
    },
    Module {
        name: "pathfinder",
        code: code!("pathfinder"),
        data: &[
            Others(|| integers(448 * 5, 10)),
            Others(|| integers(448, 10)),
            Others(|| zeros(448)),
        ],
        launches: &[step!(
            "rows",
            [512, 1],
            [64, 1],
            [B(0), B(1), B(2), I(448), I(1), I(4), L(64), L(64)]
        )],
    },
    Module {
        name: "speckle_reduction",
        code: code!("speckle_reduction"),
        data: &[
            Floats(|| floats(32 * 16, 10.0, 250.0)),
            Floats(|| zeros(2 * 8)),
            Floats(|| zeros(32 * 16)),
            Floats(|| zeros(4 * 32 * 16)),
        ],
        launches: &[
            step!("extract", [512, 1], [64, 1], [B(0)]),
            step!("sums", [512, 1], [64, 1], [B(0), B(1), LF(2 * 64)]),
            step!("coefficients", [512, 1], [64, 1], [B(0), B(3), B(2), I(32), I(16), F(0.25)]),
            step!("diffuse", [512, 1], [64, 1], [B(0), B(3), B(2), I(32), I(16), F(0.5)]),
            step!("compress", [512, 1], [64, 1], [B(0)]),
        ],
    },
    Module {
        name: "stream_cluster",
        code: code!("stream_cluster"),
        data: &[
            Others(|| points(512)),
            Floats(|| floats(6 * 512, -1.0, 1.0)),
            Floats(|| zeros(512 * 5)),
            Others(|| integers(9, 4)),
            Others(|| zeros(128)),
        ],
        launches: &[step!(
            "gain",
            [512, 1],
            [64, 1],
            [B(0), B(1), B(2), B(3), B(4), I(512), I(6), I(17), I(4)]
        )],
    },
    Module {
        name: "jacobi",
        code: code!("jacobi"),
        data: &[Floats(|| floats(34 * 34, -1.0, 1.0)), Floats(|| floats(34 * 34, -1.0, 1.0))],
        launches: &[
            step!("plane", [32, 32], [32, 2], [B(0), B(1), I(34)]),
            step!("plane", [32, 32], [32, 2], [B(1), B(0), I(34)]),
        ],
    },
];
