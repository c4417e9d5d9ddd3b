//! The rules of the house that no compiler checks: who may know whom, and that documents name
//! things that exist.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

mod floors;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Which of the workspace's and the code generator's crates each crate may depend upon, by folder.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    let runtime: &[&str] = &["harp-isa", "harp-emu", "harp-jit", "harp-runtime"];
    BTreeMap::from([
        ("harp-isa", &[] as &[_]),
        ("harp-emu", &["harp-isa"]),
        ("harp-emu/native", &["harp-isa", "harp-emu", "cranelift-*"]),
        ("harp-jit/check/bdd", &[]),
        ("harp-jit/check", &["harp-isa", "harp-bdd"]),
        ("harp-jit", &["harp-isa", "harp-check", "cranelift-*", "regalloc2"]),
        ("harp-jit/spirv", &["harp-isa", "harp-jit", "harp-libm", "cranelift-*"]),
        ("harp-runtime/library", &["harp-isa"]),
        ("harp-runtime/monitor", &["harp-isa", "harp-emu", "harp-jit"]),
        (
            "harp-runtime",
            &["harp-isa", "harp-emu", "harp-native", "harp-jit", "harp-library", "harp-monitor"],
        ),
        ("tests/bench", runtime),
        ("tests/filetest", runtime),
        ("tests/oracle", &["harp-isa", "harp-emu", "harp-jit", "harp-runtime", "cranelift-*"]),
        (
            "tests/spirv-writer",
            &["harp-isa", "harp-jit", "harp-oracle", "harp-spirv", "cranelift-*"],
        ),
        ("harp-runtime/cli", &["harp-*"]),
    ])
}

/// The folders of all crates, those within others not by themselves.
const CRATES: [&str; 5] = ["harp-isa", "harp-emu", "harp-jit", "harp-runtime", "tests"];

fn is_watched(dependency: &str) -> bool {
    ["harp-", "cranelift", "regalloc2"].iter().any(|prefix| dependency.starts_with(prefix))
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

/// Rust files below a folder, as paths from the root with their text.
fn rust_files(folder: &str) -> Vec<(String, String)> {
    let root = root();
    let files: Vec<_> = WalkDir::new(root.join(folder))
        .sort_by_file_name()
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.path().extension().is_some_and(|ext| ext == "rs"))
        .map(|entry| {
            let name = entry.path().strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    assert!(!files.is_empty(), "no Rust files in {folder}");
    files
}

/// Those of them that are no tests or examples.
fn sources(folder: &str) -> impl Iterator<Item = (String, String)> {
    rust_files(folder).into_iter().filter(|(name, _)| name.contains("/src/"))
}

/// The code of a file, without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim_start()))
        .filter(|(_, line)| !line.starts_with("//"))
}

#[test]
fn crates_depend_only_on_those_they_may_know() {
    for (name, allowed) in allowed() {
        let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        let dependencies = manifest["dependencies"].as_table().unwrap();
        for dependency in dependencies.keys().filter(|name| is_watched(name)) {
            assert!(
                allowed.iter().any(|pattern| matches(pattern, dependency)),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn only_fuzz_targets_are_left_out_of_ordinary_builds() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let mut members = manifest["workspace"]["members"].as_array().unwrap().clone();
    members.retain(|member| member.as_str() != Some("fuzz"));
    assert_eq!(manifest["workspace"]["default-members"].as_array(), Some(&members));
}

#[test]
fn regalloc2_stays_in_its_adapter() {
    let mut seen = false;
    for (file, text) in rust_files("harp-jit/src") {
        let inside = file.starts_with("harp-jit/src/regalloc/");
        for (line, code) in code_lines(&text) {
            let named = code.contains("regalloc2::");
            seen |= named;
            assert!(inside || !named, "{file}:{line} names regalloc2 outside its adapter");
        }
    }
    assert!(seen, "the adapter names regalloc2: is it looked for in the right place?");
}

#[test]
fn bit_positions_stay_in_the_encoding() {
    // Whoever assembles or takes apart instruction words needs the numbers of opcodes.
    for folder in ["harp-emu", "harp-jit", "harp-runtime", "tests/bench", "tests/filetest"] {
        for (file, text) in sources(folder) {
            for (line, code) in code_lines(&text) {
                assert!(!code.contains("Space::"), "{file}:{line} looks at opcode numbers");
            }
        }
    }
}

#[test]
fn unsafe_code_is_argued_in_its_modules() {
    let mut with_unsafe = Vec::new();
    for folder in CRATES {
        for (file, text) in sources(folder) {
            let is_use = |line: &str| line.contains("unsafe {") || line.contains("unsafe fn");
            if code_lines(&text).any(|(_, line)| is_use(line)) {
                assert!(text.contains("SAFETY:"), "{file}: unsafe code without its argument");
                with_unsafe.push(file);
            }
        }
    }
    // Vector instructions that the host may lack; host code that is made at run time.
    let argued = ["harp-emu/native/src/code.rs", "harp-emu/src/exec/simd.rs"];
    assert_eq!(with_unsafe, argued, "the modules with unsafe code");
}

#[test]
fn documents_name_files_that_exist() {
    let root = root();
    for document in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"] {
        let text = fs::read_to_string(root.join(document)).unwrap();
        // Every piece of inline code that looks like a path of this repository.
        for piece in text.split('`').skip(1).step_by(2) {
            let top = piece.split('/').next().unwrap_or_default();
            let is_path = piece.contains('/')
                && !piece.contains(char::is_whitespace)
                && [
                    "harp-isa",
                    "harp-emu",
                    "harp-jit",
                    "harp-runtime",
                    "tests",
                    "fuzz",
                    "docs",
                    ".ci",
                ]
                .contains(&top);
            if is_path {
                assert!(
                    root.join(piece).exists(),
                    "{document} names `{piece}`, which is not there"
                );
            }
        }
    }
}

#[test]
fn the_readme_and_ci_run_the_same_tests() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
    let command = "cargo test --workspace";
    assert!(readme.contains(command) && ci.lines().any(|line| line == command));
    assert!(readme.contains("cargo run --release --example saxpy -p harp-runtime"));
}

#[test]
fn files_stay_readable() {
    for folder in CRATES {
        for (file, text) in rust_files(folder) {
            let lines = text.lines().count();
            assert!(lines <= 800, "{file} has {lines} lines");
            assert!(
                text.starts_with("//!") || !file.contains("/src/"),
                "{file} does not say what it is for"
            );
        }
    }
}
