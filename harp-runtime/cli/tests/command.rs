//! The command `harp` as a process: the recordings of the original toolchain, and what the shell sees.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

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

/// The recorded files with an extension, as paths and their architecture ids.
fn recorded(extension: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in fs::read_dir(golden("")).unwrap().map(|entry| entry.unwrap()) {
        let arch = folder.file_name().into_string().unwrap().replace('_', "/");
        for file in fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|ext| ext == extension) {
                found.push((file, arch.clone()));
            }
        }
    }
    found.sort();
    found
}

fn stem(path: &Path) -> &str {
    path.file_stem().unwrap().to_str().unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Assembles a recorded source into `folder`; the object file.
fn assembled(source: &str, arch: &str, folder: &Path) -> PathBuf {
    let object = folder.join(source).with_extension("hof");
    let source = golden("src").join(source).with_extension("s");
    assert_eq!(succeeds(&["asm", "-a", arch, "-o", text(&object), text(&source)]), b"");
    object
}

/// Assembles and links what a recorded image consists of; the image.
fn linked(program: &str, arch: &str, folder: &Path) -> PathBuf {
    let parts = match program {
        "link" => ["link_a", "lib", "link_b"],
        program => ["boot", "lib", program],
    };
    let objects = parts.map(|part| assembled(part, arch, folder));
    let image = folder.join(program).with_extension("bin");
    let mut args = vec!["ld", "-o", text(&image)];
    args.extend(objects.iter().map(|object| text(object)));
    assert_eq!(succeeds(&args), b"");
    image
}

#[test]
fn assembling_gives_the_originals_object_files() {
    let folder = TempDir::new().unwrap();
    let objects = recorded("hof");
    assert_eq!(objects.len(), 49);
    for (recording, arch) in objects {
        let ours = assembled(stem(&recording), &arch, folder.path());
        assert!(read(&ours) == read(&recording), "{}", recording.display());
    }
}

/// Not all sources have a recorded object.
#[test]
fn every_source_assembles_for_every_machine() {
    let folder = TempDir::new().unwrap();
    let arches: BTreeSet<String> = recorded("hof").into_iter().map(|(_, arch)| arch).collect();
    assert_eq!(arches.len(), 7);
    let sources: Vec<PathBuf> =
        fs::read_dir(golden("src")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(sources.len(), 13);
    for arch in arches {
        for source in &sources {
            assembled(stem(source), &arch, folder.path());
        }
    }
}

#[test]
fn linking_gives_the_originals_images() {
    let folder = TempDir::new().unwrap();
    let images = recorded("bin");
    assert_eq!(images.len(), 52);
    for (recording, arch) in images {
        let ours = linked(stem(&recording), &arch, folder.path());
        assert!(read(&ours) == read(&recording), "{}", recording.display());
    }
}

#[test]
fn disassembling_gives_the_originals_text() {
    let texts = recorded("dis");
    assert_eq!(texts.len(), 49);
    for (recording, _) in texts {
        let ours = succeeds(&["disasm", text(&recording.with_extension("hof"))]);
        assert!(ours == read(&recording), "{}", recording.display());
    }
}

#[test]
fn exact_text_assembles_to_the_same_object_file() {
    for (recording, arch) in recorded("hof") {
        let exact = succeeds(&["disasm", "--exact", text(&recording)]);
        let args = ["asm", "-a", &arch, "-"];
        let again = output_of(harp_with(&args, &exact), &args);
        assert!(again == read(&recording), "{}", recording.display());
    }
}

/// Options of the original for a recorded run.
fn options(program: &str) -> &'static [&'static str] {
    match program {
        "faults" => &["-i", "-s"],
        "float" => &["-i", "-s", "-b", "--reference-floats"],
        _ => &["-i", "-s", "-b"],
    }
}

fn emulated(image: &Path, arch: &str) -> Output {
    let mut args = vec!["emu", "-a", arch];
    args.extend(options(stem(image)));
    args.extend(["-c", text(image)]);
    harp(&args)
}

#[test]
fn runs_print_what_the_original_printed() {
    let runs = recorded("out");
    assert_eq!(runs.len(), 52);
    let mut deadlocks = 0;
    for (recording, arch) in runs {
        let output = emulated(&recording.with_extension("bin"), &arch);
        let ours = String::from_utf8(output.stdout.clone()).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        let original = String::from_utf8(read(&recording)).unwrap();
        assert_eq!(ours, original, "{}: {errors}", recording.display());
        // The worker warps of one run do not exist; the original ends there without a word.
        if (stem(&recording), arch.as_str()) == ("warps", "4b16/16/2/1") {
            let (code, errors) = fails(&output);
            assert_eq!(code, EXIT_DEADLOCK);
            assert!(errors.contains("deadlock: warp 0 at barrier"), "{errors}");
            deadlocks += 1;
        } else {
            assert!(output.status.success(), "{}: {errors}", recording.display());
            assert_eq!(errors, "");
        }
    }
    assert_eq!(deadlocks, 1);
}

/// What the original cannot link runs like the same program in the other encoding: it has the same
/// instructions.
#[test]
fn byte_encoded_programs_of_eight_byte_words_run() {
    let folder = TempDir::new().unwrap();
    let peers: Vec<PathBuf> = recorded("out")
        .into_iter()
        .filter(|(_, arch)| arch == "8w32/32/8/8")
        .map(|(recording, _)| recording)
        .collect();
    assert_eq!(peers.len(), 9);
    for recording in peers {
        let image = linked(stem(&recording), "8b32/32/8/8", folder.path());
        let ours = output_of(emulated(&image, "8b32/32/8/8"), &[stem(&recording)]);
        let expected = String::from_utf8(read(&recording)).unwrap();
        assert_eq!(String::from_utf8(ours).unwrap(), expected, "{}", recording.display());
    }
}

/// The original crashes.
#[test]
fn a_program_for_more_lanes_than_there_are_traps() {
    let folder = TempDir::new().unwrap();
    for (arch, lanes) in [("4b16/16/2/1", 2), ("4w32/32/4/4", 4)] {
        let image = linked("lanes8", arch, folder.path());
        let (code, errors) = fails(&emulated(&image, arch));
        assert_eq!(code, EXIT_TRAP);
        // The first of the lanes that there are not.
        let expected = format!("`clone` to lane {lanes}, a warp has {lanes} lanes");
        assert!(errors.contains(&expected), "{errors}");
    }
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
fn standard_input_and_output_are_files_and_the_console() {
    let folder = TempDir::new().unwrap();
    for arch in ["harp32", "harp64", "8b32/32/8/8", "4b8/2/1/1+x"] {
        let image = image(ECHO, arch, &[]);
        let file = folder.path().join("echo.bin");
        fs::write(&file, &image).unwrap();
        let args = ["emu", "-b", "-a", arch, text(&file)];
        assert_eq!(output_of(harp_with(&args, b"one\ntwo"), &args), b"one\ntwo");
        let batch = ["emu", "-bi", "-a", arch, text(&file)];
        assert_eq!(output_of(harp_with(&batch, b"not read"), &batch), b"");
        let piped = ["emu", "-b", "-a", arch, "-"];
        assert_eq!(output_of(harp_with(&piped, &image), &piped), b"");
    }
}

/// The original's memory ends with the image: one that makes a call brings along its stack.
#[test]
fn images_that_make_a_call_run_in_memory_of_their_size() {
    const SUM: &str = "function %sum(i32, i32) -> i32 {
        block0(v0: i32, v1: i32):
            v2 = iadd v0, v1
            return v2
        }";
    for arch in ["harp32", "harp64", "4b16/16/2/1", "8b32/32/4/4"] {
        let call =
            ["compile", "-a", arch, "--emit", "image", "--call", "%sum(4, 38)", "-o", "-", "-"];
        let image = output_of(harp_with(&call, SUM.as_bytes()), &call);
        let size = image.len().to_string();
        let run = ["emu", "-a", arch, "--ram", size.as_str(), "-"];
        let printed = output_of(harp_with(&run, &image), &run);
        assert!(printed.ends_with(b"0000002a\n"), "{arch}: {}", String::from_utf8_lossy(&printed));
    }
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

#[test]
fn the_reports_of_a_run_tell_the_same() {
    let (file, arch) = (golden("4w16_16_8_8/warps.bin"), "4w16/16/8/8");
    let args = ["emu", "-a", arch, "-bis", text(&file)];
    let lines = String::from_utf8(succeeds(&args)).unwrap();
    let json = succeeds(&["emu", "-a", arch, "-bis", "--stats-format", "json", text(&file)]);
    let json = String::from_utf8(json).unwrap();
    let (console, json) = json.trim_end().rsplit_once('\n').unwrap();
    assert!(lines.starts_with(console));
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let json = &json["stats"];
    let mut expected = format!("Total steps: {}\nTotal insts: {}\n", json["steps"], json["insts"]);
    for (index, warp) in json["cores"][0]["warps"].as_array().unwrap().iter().enumerate() {
        expected += &format!(
            "=== Warp {index} ===\nSteps: {}\nInsts: {}\nLoads: {}\nStores: {}\n",
            warp["steps"], warp["insts"], warp["loads"], warp["stores"]
        );
    }
    assert_eq!(&lines[lines.find("Total steps").unwrap()..], expected);
}

/// Prints a letter on each core.
const LETTER: &str = "
.perm x
        andi %r2, %r0, #15
        addi %r2, %r2, #65
        ldi %r1, #1
        shli %r1, %r1, (__WORD*8 - 1)
        st %r2, %r1, #0
        rtop @p0, %r2
        @p0 ? split
        join
        halt
";

#[test]
fn traces_and_profiles_are_json() {
    let folder = TempDir::new().unwrap();
    let (file, trace) = (folder.path().join("letter.bin"), folder.path().join("trace"));
    fs::write(&file, image(LETTER, "harp64", &[])).unwrap();
    let run = |options: &[&str]| {
        let mut args = vec!["emu", "-bi", "-a", "harp64", "--cores", "3", text(&file)];
        args.extend(options);
        String::from_utf8(succeeds(&args)).unwrap()
    };
    for (what, lines) in [("divergence", 3 * 2), ("instructions", 3 * (9 + 2))] {
        let options = ["--trace", what, "--trace-format", "json", "--trace-file", text(&trace)];
        assert_eq!(run(&options), "ABC");
        let trace = fs::read_to_string(&trace).unwrap();
        assert_eq!(trace.lines().count(), lines, "{what}");
        for line in trace.lines() {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            assert!(event["event"].is_string() && event["core"].is_u64(), "{line}");
        }
    }
    assert_eq!(run(&["--trace", "divergence", "--trace-file", "-"]).lines().count(), 3 * 2 + 1);

    let counted = run(&["--collect", "opcodes,lanes", "--collect", "depth", "--stats-format=json"]);
    let (console, counted) = counted.split_once('\n').unwrap();
    assert_eq!(console, "ABC");
    let counted: serde_json::Value = serde_json::from_str(counted).unwrap();
    let parts: Vec<&String> = counted["profile"].as_object().unwrap().keys().collect();
    for part in ["opcodes", "lanes", "depth"] {
        assert!(parts.iter().any(|name| *name == part), "{part} in {parts:?}");
    }
    assert!(!parts.iter().any(|name| *name == "branches"), "{parts:?}");
    assert!(counted.get("stats").is_none());
}

#[test]
fn exit_codes_tell_how_a_run_ended() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("test.bin");
    let run = |source: &str, options: &[&str]| {
        fs::write(&file, image(&format!(".perm x\n{source}"), "harp32", &[])).unwrap();
        let mut args = vec!["emu", "-i", "-a", "harp32", text(&file)];
        args.extend(options);
        harp(&args).status.code()
    };
    let forever = "start: jmpi start";
    assert_eq!(run("halt", &[]), Some(0));
    assert_eq!(run("ldi %r1, #7; not %r1, %r1; jmpr %r1", &[]), Some(EXIT_TRAP));
    assert_eq!(run("ldi %r1, #2; bar %r1, %r1", &[]), Some(EXIT_DEADLOCK));
    assert_eq!(run(forever, &["--fuel", "1000"]), Some(EXIT_OUT_OF_FUEL));
    assert_eq!(run("halt", &["--ram", "2"]), Some(EXIT_INPUT));
    assert_eq!(run("halt", &["--cores", "0"]), Some(EXIT_USAGE));
    // Every core halts.
    assert_eq!(run("halt", &["--cores", "3"]), Some(0));
}

#[test]
fn memory_is_as_large_as_asked_for() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("test.bin");
    let source = ".perm x\nldi %r1, #1; shli %r1, %r1, N; ld %r1, %r1, #0; halt";
    for (shift, options, code) in [
        ("23", &[] as &[&str], Some(0)),
        ("24", &[], Some(EXIT_TRAP)),
        ("24", &["--ram", "32M"], Some(0)),
        ("12", &["--ram", "4K"], Some(EXIT_TRAP)),
        ("11", &["--ram", "4096"], Some(0)),
    ] {
        fs::write(&file, image(source, "harp64", &[&format!("N={shift}")])).unwrap();
        let mut args = vec!["emu", "-bi", "-a", "harp64", text(&file)];
        args.extend(options);
        assert_eq!(harp(&args).status.code(), code, "{shift} {options:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let folder = TempDir::new().unwrap();
    let (zeros, forever) = (folder.path().join("zeros.hof"), folder.path().join("forever.bin"));
    let args = ["asm", "-a", "harp32", "-"];
    fs::write(&zeros, output_of(harp_with(&args, b".space 100000"), &args)).unwrap();
    let source = ".perm x
        ldi %r1, #1
        shli %r1, %r1, (__WORD*8 - 1)
        ldi %r2, #10
next:   st %r2, %r1, #0
        jmpi next";
    fs::write(&forever, image(source, "harp32", &[])).unwrap();
    // The fuel is for far more than fits a pipe: running out of it is a failure.
    let run = ["emu", "-bi", "-a", "harp32", "--fuel", "100000000", text(&forever)];
    for args in [&["disasm", text(&zeros)] as &[&str], &run] {
        let mut child =
            command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 8];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{args:?}: {:?}", output.status);
        assert_eq!(output.stderr, b"");
    }
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

/// A launch that fails is kept in a file, which the command runs, explains and traces.
#[test]
fn replays_run_again() {
    use harp_runtime::prelude::*;
    use harp_runtime::{Checks, Replay, SavedReplay};

    let folder = TempDir::new().unwrap();
    let arch: ArchId = "4w16/8/4/2+x".parse().unwrap();
    let replays = Some(folder.path().to_owned());
    let device = Device::new(DeviceConfig { replays, ..DeviceConfig::new(arch) }).unwrap();
    let kernel = |options: &CompileOptions| {
        let mut source = KernelSource::new("halves", arch);
        let mut b = KernelBuilder::new(&mut source);
        let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
        let x = b.load(data, i);
        b.print("{}", &[x]);
        let rest = b.ins().band_imm_u(x, 1);
        let is_even = b.ins().bxor_imm_u(rest, 1);
        b.assert(is_even, "it is even");
        let half = b.ins().ushr_imm_u(x, 1);
        b.store(data, i, half);
        b.return_();
        b.finalize().unwrap();
        source.compile(options).unwrap()
    };
    let data = device.buffer_from_slice(&[2, 4, 6, 7, 8]).unwrap();
    let grid = LaunchConfig::grid_1d(5);
    let plain = kernel(&CompileOptions::default());
    let error = device.launch(&plain, grid, &[Arg::from(&data)]).unwrap_err();
    let Some(SavedReplay::File(file)) = error.replay() else { panic!("{error}") };
    let file = file.to_str().unwrap();

    let output = harp(&["replay", file]);
    let (code, message) = fails(&output);
    assert_eq!(code, EXIT_TRAP);
    let first = error.to_string();
    assert!(message.contains(first.lines().next().unwrap()), "{message}");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("[0] 2\n[1] 4\n[2] 6\n[3] 7\n"));

    let explained = harp(&["replay", "--explain", file]);
    let text = String::from_utf8(explained.stdout).unwrap();
    let stopped: Vec<&str> = text.lines().filter(|line| line.starts_with('>')).collect();
    assert!(matches!(stopped[..], [line] if line.contains("trap")), "{text}");
    assert!(text.contains("halves:") && text.contains("command.rs:"), "{text}");

    let steps = folder.path().join("steps.txt");
    let steps = steps.to_str().unwrap();
    let traced = harp(&["replay", "--trace", "instructions", "--trace-file", steps, file]);
    assert_eq!(traced.status.code(), Some(EXIT_TRAP));
    assert!(fs::read_to_string(steps).unwrap().lines().last().unwrap().contains("trap"));

    // What was not checked can be checked now, if the kernel reports what it does.
    assert_eq!(fails(&harp(&["replay", "--checks", file])).0, EXIT_INPUT);
    let reporting = kernel(&CompileOptions { report_accesses: true, ..CompileOptions::default() });
    device.write(&data, &[2; 5]).unwrap();
    let right = folder.path().join("right.harpreplay");
    let replay = Replay::new(&device, &reporting, grid, &[Arg::from(&data)]).unwrap();
    replay.write(&right).unwrap();
    let right = right.to_str().unwrap();
    for options in [&["replay", right][..], &["replay", "--checks", right]] {
        let report = String::from_utf8(succeeds(options)).unwrap();
        assert!(report.contains("kernel `halves`, grid 5 x 1 x 1"), "{report}");
    }
    let far = LaunchConfig::grid_1d(6).with_checks(Checks::all());
    let wrong = folder.path().join("wrong.harpreplay");
    replay.with_launch_config(far).write(&wrong).unwrap();
    let (code, message) = fails(&harp(&["replay", wrong.to_str().unwrap()]));
    assert_eq!(code, EXIT_INPUT);
    assert!(message.contains("out of bounds: load of i32 by work-item (5, 0, 0)"), "{message}");

    let (code, message) = fails(&harp(&["replay", steps]));
    assert_eq!(code, EXIT_INPUT);
    assert!(message.contains("it does not start with `HARPplay`"), "{message}");
}

/// A program that never ends is stopped.
#[test]
fn time_is_limited() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("f.bin");
    fs::write(&path, image(".perm x\n.entry\n.global\nentry: jmpi entry;\n", "harp32", &[]))
        .unwrap();
    let image = path.to_str().unwrap();
    let output = harp(&["emu", "-a", "harp32", "-b", "--time-limit", "0.05", image]);
    let (code, message) = fails(&output);
    assert_eq!(code, EXIT_OUT_OF_FUEL, "{message}");
    let bad = harp(&["emu", "-a", "harp32", "-b", "--time-limit", "-1", image]);
    assert_eq!(fails(&bad).0, EXIT_USAGE);
}
