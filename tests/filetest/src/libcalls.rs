//! The library routines that CLIF can name, as functions that consist of the corresponding operations.

use std::sync::OnceLock;

use harp_jit::text::{TextFile, TextFunction};

const TEXT: &str = "
function %CeilF32(f32) -> f32 { block0(v0: f32): v1 = ceil v0 return v1 }
function %CeilF64(f64) -> f64 { block0(v0: f64): v1 = ceil v0 return v1 }
function %FloorF32(f32) -> f32 { block0(v0: f32): v1 = floor v0 return v1 }
function %FloorF64(f64) -> f64 { block0(v0: f64): v1 = floor v0 return v1 }
function %TruncF32(f32) -> f32 { block0(v0: f32): v1 = trunc v0 return v1 }
function %TruncF64(f64) -> f64 { block0(v0: f64): v1 = trunc v0 return v1 }
function %NearestF32(f32) -> f32 { block0(v0: f32): v1 = nearest v0 return v1 }
function %NearestF64(f64) -> f64 { block0(v0: f64): v1 = nearest v0 return v1 }
function %FmaF32(f32, f32, f32) -> f32 {
block0(v0: f32, v1: f32, v2: f32): v3 = fma v0, v1, v2 return v3 }
function %FmaF64(f64, f64, f64) -> f64 {
block0(v0: f64, v1: f64, v2: f64): v3 = fma v0, v1, v2 return v3 }
";

/// All routines, as a CLIF file.
fn file() -> &'static TextFile {
    static FILE: OnceLock<TextFile> = OnceLock::new();
    FILE.get_or_init(|| TextFile::parse(TEXT, "library").expect("the text is CLIF"))
}

/// The routine of this name.
pub(super) fn routine(name: &str) -> Option<(&'static TextFile, &'static TextFunction)> {
    file().function(name).map(|function| (file(), function))
}
