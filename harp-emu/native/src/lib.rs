//! Host code for HARP programs.
mod body;
mod class;
mod code;
mod emit;
mod frame;
mod live;
mod region;
mod shape;
mod tier;
mod translated;

pub use tier::{LeaveCounts, Native, TierStats, USUAL, When};
