//! Tests of the public API, in one binary so that they link once.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

mod arch;
mod assembler;
mod chunks;
mod diagnostics;
mod differences;
mod encoding;
mod exact;
mod golden;
mod linker;
mod object_file;
mod random;
mod robustness;
mod table;
