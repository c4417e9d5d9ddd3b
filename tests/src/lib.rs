//! Generators of cases, what compares them with the oracle, and benchmark kernels.

pub mod base_forms;
pub mod fuzzing;
pub mod generate;
pub mod machines;
pub mod mutate;
pub mod progress;
pub mod quality;
pub mod random;
pub mod saxpy;
pub mod seeds;
pub mod workloads;

pub use harp_bench as harpbench;
pub use harp_oracle::{self as oracle, functions};
pub use harp_spirv_writer as spirv;

/// The README's examples, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;

/// Those of the page for beginners.
#[cfg(doctest)]
#[doc = include_str!("../../docs/getting-started.md")]
struct GettingStartedExamples;

/// Those of the page about divergence.
#[cfg(doctest)]
#[doc = include_str!("../../docs/divergence.md")]
struct DivergenceExamples;
