//! What the command `harp` prints, word by word: the examples of its documentation, and messages about
//! wrong inputs and wrong usage.
//!
//! A document is a Markdown text. Its `console` blocks are commands with what they print and, after
//! `?`, their exit code; they run in an empty folder, one after the other. Other blocks that follow a
//! file name and a colon are that file.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use trycmd::TestCases;

/// Files of a document: name and contents.
fn files(document: &str) -> Vec<(&str, String)> {
    let mut files = Vec::new();
    let mut name = None;
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            files.extend(name.take().map(|name| (name, body.join("\n") + "\n")));
        } else if !line.is_empty() {
            // The file's name begins the line, a colon ends it.
            let quoted = line.strip_prefix('`').filter(|line| line.ends_with(':'));
            name = quoted.and_then(|line| line.split_once('`')).map(|(name, _)| name);
            name = name.filter(|name| !name.contains(' '));
        }
    }
    files
}

/// Runs the commands of a document, which is named from the workspace's root.
fn check(document: &str, expected_files: usize) {
    check_with(document, expected_files, |_, text| text);
}

/// Does the same with a change of the text; `prepare` may also put files into the folder.
fn check_with(
    document: &str,
    expected_files: usize,
    prepare: impl FnOnce(&Path, String) -> String,
) {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(document);
    let text = fs::read_to_string(&document).unwrap();
    let files = files(&text);
    assert_eq!(files.len(), expected_files, "files in {}", document.display());
    let folder = TempDir::new().unwrap();
    let case = folder.path().join(document.file_name().unwrap());
    let inputs = case.with_extension("in");
    fs::create_dir(&inputs).unwrap();
    for (name, contents) in files {
        fs::write(inputs.join(name), contents).unwrap();
    }
    fs::write(&case, prepare(&inputs, text.clone())).unwrap();
    let harp = Path::new(env!("CARGO_BIN_EXE_harp"));
    TestCases::new().register_bin("harp", harp).case(&case).run();
}

#[test]
fn the_documentation_is_true() {
    check("docs/harp.md", 5);
    check("docs/divergence.md", 2);
}

/// Clang may be missing here, so a module that it made of the same text takes the place of `kernel.cl`.
#[test]
#[cfg(feature = "naga")]
fn a_session_goes_from_opencl_c_to_checked_results() {
    let session = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/session");
    check_with("docs/running.md", 3, |folder, text| {
        let source = fs::read_to_string(session.join("kernel.cl")).unwrap();
        assert_eq!(fs::read_to_string(folder.join("kernel.cl")).unwrap(), source);
        fs::copy(session.join("kernel.spv"), folder.join("kernel.spv")).unwrap();
        text.replace("$ harp run kernel.cl", "$ harp run kernel.spv")
    });
}

#[test]
fn messages() {
    check("harp-runtime/cli/tests/messages.md", 12);
}
