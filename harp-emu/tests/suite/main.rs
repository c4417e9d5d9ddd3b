//! Tests of the public API, in one binary so that they link once.
#![expect(clippy::unwrap_used, reason = "a failure of a helper is a failure of the test")]

mod alu;
mod common;
mod differences;
mod golden;
mod host_threads;
mod idle_cores;
mod interrupts;
mod machine;
mod observe;
mod observed_programs;
mod optimistic;
mod paged_rounds;
mod pages;
mod pairs;
mod pdom;
mod profile;
mod rounds;
mod shared;
mod stop;
mod traps;
