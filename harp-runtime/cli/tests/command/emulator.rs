//! `harp emu`: input and output, reports, exit codes, limits.

use std::fs;
use std::io::Read;
use std::process::Stdio;

use tempfile::TempDir;

use super::*;

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
