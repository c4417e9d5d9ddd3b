//! Tests of the public API, in one binary so that they link once.
#![expect(clippy::unwrap_used, reason = "a failure of a helper is a failure of the test")]

mod arguments;
mod buffers;
mod cache;
mod categories;
mod checks;
mod control_flow;
mod faults;
mod launches;
mod names;
mod printing;
mod queues;
mod replay;
mod rows;
mod stacks;
mod tiers;
