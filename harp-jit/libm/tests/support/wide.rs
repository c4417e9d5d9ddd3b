//! References with more digits than `f64`.
