//! Generators and oracles that the fuzz targets call, each with a short seeded run in `cargo test`.

pub mod isa;
pub mod kernels;
