//! Tests of the public API, in one binary so that they link once.
#![expect(clippy::unwrap_used, reason = "a failure of a helper is a failure of the test")]

mod call_facts;
mod calls;
mod convergence;
mod hostile;
mod lowerings;
mod proofs;
mod refusals;
mod saved;
mod shared;
