//! What tests and the table of errors share: runs on the emulator, references, samples, errors in ulps.
#![allow(dead_code, reason = "each program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

pub mod exact;
pub mod host;
pub mod machine;
pub mod samples;
pub mod ulps;
pub mod wide;

/// Up to three arguments, or up to two results; integers and floats of both formats fit exactly.
pub type Numbers<const N: usize> = [f64; N];
