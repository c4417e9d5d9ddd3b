//! Tests of the public API, in one binary so that they link once.
#![expect(clippy::unwrap_used, reason = "a failure of a helper is a failure of the test")]

mod collective;
mod constants;
mod control;
mod errors;
mod floats;
mod groups;
mod hostile;
mod imported;
mod integers;
mod lanes;
mod locks;
mod peers;
mod programs;
mod scalar;
mod shaders;
mod structures;
mod support;
mod unwritten;
mod vectors;
