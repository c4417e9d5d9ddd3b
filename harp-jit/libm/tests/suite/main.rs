//! Tests of the public API, in one binary so that they link once.

mod special;
mod support;
mod ulps;
