//! Oracles, generators and benchmark kernels.

pub mod fuzzing;
pub mod generate;
pub mod kernels;
pub mod oracle;
