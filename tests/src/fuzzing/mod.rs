//! Generators and oracles of machine code, assembly text, object files, builder calls and modules of SPIR-V, which the
//! fuzz targets call.
//! Those of CLIF are in [`random`](crate::random).
//!
//! Each check gives counts of what cases came to: how much of them was more than noise.

pub mod asm;
pub mod builder;
pub mod hof;
pub mod isa;
pub mod machine;
pub mod spirv;
