//! What fails, made smaller: fewer bytes for a generator, then simpler functions.

mod bytes;
mod clif;

pub(super) use bytes::fewer_bytes;
pub(super) use clif::{fewer_instructions, instruction_count};
