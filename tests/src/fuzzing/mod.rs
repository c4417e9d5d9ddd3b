//! Generators and oracles of machine code, assembly text, object files and builder calls, which the fuzz targets call,
//! each with a short seeded run in `cargo test`. Those of CLIF are in [`random`](crate::random).

pub mod asm;
pub mod builder;
pub mod hof;
pub mod isa;
pub mod machine;

/// Runs `check` on all files of `fuzz/regressions/<target>`: seeds, and inputs that once failed. How
/// many there are.
#[cfg(test)]
pub(crate) fn replay(target: &str, mut check: impl FnMut(&[u8])) -> usize {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/regressions");
    let Ok(files) = std::fs::read_dir(format!("{folder}/{target}")) else {
        return 0;
    };
    let mut paths: Vec<_> =
        files.map(|file| file.expect("the folder can be read").path()).collect();
    paths.sort();
    for path in &paths {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        // Whose output is captured, and shown if the check fails.
        println!("{}", path.display());
        check(&bytes);
    }
    paths.len()
}
