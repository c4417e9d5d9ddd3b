//! The command `harp` as a process: the recordings of the original toolchain, and what the shell sees.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

mod emulator;
mod golden;
mod replays;

const HARP: &str = env!("CARGO_BIN_EXE_harp");

const EXIT_INPUT: i32 = 1;
const EXIT_USAGE: i32 = 2;
const EXIT_TRAP: i32 = 3;
const EXIT_DEADLOCK: i32 = 4;
const EXIT_OUT_OF_FUEL: i32 = 5;

fn command() -> Command {
    let mut command = Command::new(HARP);
    command.env_remove("HARP_ARCH").stdin(Stdio::null());
    command
}

fn harp(args: &[&str]) -> Output {
    command().args(args).output().unwrap()
}

fn harp_with(args: &[&str], input: &[u8]) -> Output {
    let mut command = command();
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // What is not read is not wanted: the command may end before.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// Standard output of a command that must succeed without a word on standard error.
fn succeeds(args: &[&str]) -> Vec<u8> {
    output_of(harp(args), args)
}

fn output_of(output: Output, args: &[&str]) -> Vec<u8> {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "harp {args:?}: {errors}");
    output.stdout
}

/// The exit code and standard error of a command that must fail.
fn fails(output: &Output) -> (i32, String) {
    let code = output.status.code().expect("it is not killed by a signal");
    assert_ne!(code, 0);
    (code, String::from_utf8(output.stderr.clone()).unwrap())
}

fn golden(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(path)
}

fn read(path: impl AsRef<Path>) -> Vec<u8> {
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.as_ref().display()))
}

fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Copies its input to its output until there is no more.
const ECHO: &str = "
.perm x
.entry
.global
start:  ldi %r1, #1
        shli %r1, %r1, (__WORD*8 - 1)
next:   ld %r2, %r1, #0
        iszero @p0, %r2
        @p0 ? halt
        st %r2, %r1, #0
        jmpi next
";

/// Assembles and links a text through pipes; the image.
fn image(source: &str, arch: &str, definitions: &[&str]) -> Vec<u8> {
    let mut args = vec!["asm", "-a", arch];
    args.extend(definitions.iter().flat_map(|definition| ["-D", definition]));
    args.push("-");
    let object = output_of(harp_with(&args, source.as_bytes()), &args);
    let args = ["ld", "-o", "-", "-"];
    output_of(harp_with(&args, &object), &args)
}

#[test]
fn results_go_beside_their_sources() {
    let folder = TempDir::new().unwrap();
    let source = folder.path().join("echo.s");
    fs::write(&source, ECHO).unwrap();
    succeeds(&["asm", "-a", "harp64", text(&source)]);
    let output = command().current_dir(&folder).args(["ld", "echo.hof"]).output().unwrap();
    output_of(output, &[]);
    assert_eq!(read(folder.path().join("a.bin")), image(ECHO, "harp64", &[]));
}

#[test]
fn disassembled_text_goes_to_a_file() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("echo.s"), ECHO).unwrap();
    succeeds(&["asm", "-a", "harp64", &path("echo.s")]);
    let (object, listing) = (path("echo.hof"), path("echo.txt"));
    let shown = succeeds(&["disasm", &object]);
    assert_eq!(succeeds(&["disasm", "-o", &listing, &object]), b"");
    assert_eq!(read(&listing), shown);
}

#[test]
fn functions_are_compiled_by_the_strategy_that_is_asked_for() {
    let clif = "function %f(i32, i32) -> i32 {
        block0(v0: i32, v1: i32): brif v0, block1, block2(v0)
        block1: v2 = iadd v0, v1 jump block2(v2)
        block2(v3: i32): return v3
    }";
    let asm = |strategy: &str| {
        let args = ["compile", "-a", "harp32", "--execution", "simt", "--emit", "asm"];
        let args = [&args[..], &["--strategy", strategy, "-"]].concat();
        String::from_utf8(output_of(harp_with(&args, clif.as_bytes()), &args)).unwrap()
    };
    assert!(asm("split-join").contains("split"));
    assert!(!asm("predicate").contains("split"));
}

#[test]
fn definitions_reach_the_text_and_offsets_the_image() {
    let source = ".perm x\nstart: ldi %r1, N; .perm r\n.align 4\n.word N start";
    let args = ["asm", "-a", "4w8/8/2/2", "-DN=-2", "-"];
    let object = output_of(harp_with(&args, source.as_bytes()), &args);
    let args = ["ld", "--offset", "0x1000", "-o", "-", "-"];
    let image = output_of(harp_with(&args, &object), &args);
    assert_eq!(image[4..], [0xfe, 0xff, 0xff, 0xff, 0x00, 0x10, 0x00, 0x00]);
}

/// What was read is not written over, whatever name it goes by.
#[test]
fn no_output_destroys_an_input() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (source, clif) = (path("f.s"), path("f.clif"));
    fs::write(&source, ".perm x\nhalt").unwrap();
    fs::write(&clif, "function %f(i32) { block0(v0: i32): return }").unwrap();
    let other = format!("{}/./f.s", folder.path().display());
    for args in [
        ["asm", "-a", "harp32", &source, "-o", &source],
        ["asm", "-a", "harp32", &source, "-o", &other],
        ["compile", "-a", "harp32", &clif, "-o", &clif],
        ["disasm", "-a", "harp32", &source, "-o", &source],
        ["explain", "-a", "harp32", &clif, "--dot", &clif],
    ] {
        let before = read(args[3]);
        let (code, errors) = fails(&harp(&args));
        assert_eq!(code, EXIT_INPUT);
        assert!(errors.contains("is an input and would be overwritten"), "{errors}");
        assert_eq!(read(args[3]), before);
    }
    // Only an image makes a call.
    let args = ["compile", "-a", "harp32", "--call", "%f(1)", &clif, "-o", &path("f.hof")];
    let (code, errors) = fails(&harp(&args));
    assert_eq!(code, EXIT_USAGE);
    assert!(errors.contains("`--emit image`"), "{errors}");
    // A file that is not text is a failure of its own: the others are run.
    fs::write(path("a.clif"), [0xff, 0xfe]).unwrap();
    fs::write(
        path("b.clif"),
        "function %g() -> i32 { block0: v0 = iconst.i32 7 return v0 }\n; run: %g() == 7\n",
    )
    .unwrap();
    let output = harp(&["filetest", "-a", "harp32", folder.path().to_str().unwrap()]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(fails(&output).0, EXIT_INPUT);
    assert!(
        text.contains("is not a text file") && text.ends_with("1 passed, 1 failed, 0 skipped\n"),
        "{text}"
    );
}

#[test]
fn the_environment_may_name_the_machine() {
    let (source, args) = (b".perm x\nhalt", ["asm", "-"]);
    let (code, errors) = fails(&harp_with(&args, source));
    assert_eq!(code, EXIT_USAGE);
    assert!(errors.contains("--arch <ARCH>"), "{errors}");
    let (code, errors) = fails(&harp_with(&["disasm", "-"], b"no object"));
    assert_eq!(code, EXIT_INPUT);
    assert!(errors.contains("a flat image needs `--arch`"), "{errors}");
    let mut child = command();
    child.args(["asm", "-", "-o", "-"]).env("HARP_ARCH", "4b8/2/1/1");
    let object = child.output().unwrap();
    assert!(object.stdout.starts_with(b"HARP4b8/2/1/1\0"));
}

#[test]
fn help_has_examples_and_completions_exist() {
    let help = String::from_utf8(succeeds(&["--help"])).unwrap();
    assert!(help.contains("Exit codes:\n  0  success"), "{help}");
    for command in ["asm", "ld", "disasm", "compile", "filetest", "emu", "completions"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        let help = String::from_utf8(succeeds(&[command, "--help"])).unwrap();
        assert!(help.contains("Example") && help.contains(&format!("harp {command} ")), "{help}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = String::from_utf8(succeeds(&["completions", shell])).unwrap();
        assert!(script.contains("disasm"), "{shell}");
    }
}
