//! Oracles, generators and benchmark kernels.

pub mod fuzzing;
pub mod kernels;
