//! The file tests in `tests/filetests`, by the rows of the table of code generation tests in the thesis
//! (Gupta 2016, table 3), and the runner itself.
//!
//! Expected values stand in the files. cranelift-interpreter, which knows nothing of HARP, judges them
//! where it can run the function.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fs;
use std::path::{Path, PathBuf};

use cranelift_codegen::data_value::DataValue;
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::ControlFlow;
use harp_filetest::{Case, FileTestConfig, Tally, Verdict, run_text, tally};
use harp_isa::ArchId;
use harp_jit::OptLevel;
use harp_jit::text::{Comparison, RunCommand, TextFile, parse_run_command};
use walkdir::WalkDir;

/// The presets, with and without the extension, and machines with few registers, with many and small
/// immediates, and of the other encoding.
const ARCHS: [&str; 9] = [
    "harp32",
    "harp64",
    "harp32+x",
    "harp64+x",
    "4w32/16/8/8+x",
    "4b8/2/1/1",
    "4w64/64/4/4",
    "8w9/3/2/2",
    "8b64/2/4/1+x",
];

fn config() -> FileTestConfig {
    FileTestConfig {
        archs: ARCHS.map(|id| id.parse().unwrap()).to_vec(),
        opt_levels: vec![OptLevel::None, OptLevel::Speed],
        ..FileTestConfig::default()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests")
}

/// The files below `name`, a folder or a file, with their texts.
fn files(name: &str) -> Vec<(String, String)> {
    let files: Vec<_> = WalkDir::new(folder().join(name))
        .sort_by_file_name()
        .into_iter()
        .map(Result::unwrap)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| {
            let name = entry.path().strip_prefix(folder()).unwrap().display().to_string();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    assert!(!files.is_empty(), "{name}");
    files
}

/// Runs a row's files; `lines` is how many lines they have.
fn row(name: &str, lines: usize) {
    let config = config();
    let mut total = Tally::default();
    for (file, text) in files(name) {
        let cases = run_text(&text, &file, &config).unwrap_or_else(|error| panic!("{error}"));
        for case in &cases {
            assert_eq!(
                case.verdict,
                Verdict::Passed,
                "{} {:?} {}",
                case.arch,
                case.opt_level,
                show(case)
            );
        }
        total += tally(&cases);
    }
    assert_eq!(total.passed, lines * config.archs.len() * config.opt_levels.len(), "{name}");
}

fn show(case: &Case) -> String {
    format!("{}: {}", case.place, case.line)
}

#[test]
fn table_3_arithmetic_logic_bitwise() {
    row("arithmetic", 102);
}

#[test]
fn table_3_load_store_pointer_arithmetic() {
    row("memory", 14);
}

#[test]
fn table_3_floating_point() {
    row("floats", 38);
}

#[test]
fn table_3_call_return_indirect_call() {
    row("calls", 16);
}

#[test]
fn table_3_calling_convention() {
    row("conventions", 18);
}

#[test]
fn table_3_structures_strings() {
    row("structures", 11);
}

#[test]
fn table_3_control_flow() {
    row("control", 28);
}

#[test]
fn table_3_small_and_large_immediates() {
    row("immediates", 10);
}

#[test]
fn table_3_global_variables_stack_allocation() {
    row("globals", 12);
}

#[test]
fn table_3_quick_sort() {
    row("programs/quick_sort.clif", 3);
}

#[test]
fn table_3_bubble_sort() {
    row("programs/bubble_sort.clif", 2);
}

#[test]
fn table_3_shuffle() {
    row("programs/shuffle.clif", 3);
}

#[test]
fn no_file_is_outside_of_the_table() {
    let rows = [
        "arithmetic",
        "calls",
        "control",
        "conventions",
        "floats",
        "globals",
        "immediates",
        "memory",
        "programs",
        "structures",
    ];
    let mut found: Vec<_> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, rows);
    assert_eq!(files("programs").len(), 3);
}

/// What the interpreter says about a call; none if it cannot run the function.
fn interpreted(file: &TextFile, name: &str, args: &[DataValue]) -> Option<Vec<DataValue>> {
    let mut store = FunctionStore::default();
    for function in file.functions() {
        store.add(function.func.name.to_string(), &function.func);
    }
    let state = InterpreterState::default().with_function_store(store);
    let mut interpreter = Interpreter::new(state).with_fuel(Some(5_000_000));
    match interpreter.call_by_name(&format!("%{name}"), args) {
        Ok(ControlFlow::Return(values)) => Some(values.into_iter().collect()),
        _ => None,
    }
}

/// The interpreter calls itself for calls, so it gets a stack that lasts.
#[test]
fn the_interpreter_agrees_with_what_the_files_expect() {
    let thread = std::thread::Builder::new().stack_size(1 << 30).spawn(interpret_all);
    thread.unwrap().join().unwrap();
}

fn interpret_all() {
    let (mut agreed, mut not_run, mut machines_only) = (0, Vec::new(), 0);
    for (name, text) in files("") {
        let file = TextFile::parse(&text, &name).unwrap();
        if !file.header().iter().any(|line| line.text == "test interpret") {
            machines_only += 1;
            continue;
        }
        for function in file.functions() {
            for comment in &function.comments {
                let command = parse_run_command(&comment.text, &function.func.signature).unwrap();
                let Some(RunCommand::Run(call, comparison, expected)) = command else { continue };
                assert_eq!(comparison, Comparison::Equals);
                assert_eq!(call.func, function.name, "{}", comment.place);
                let Some(values) = interpreted(&file, &function.name, &call.args) else {
                    not_run.push(format!("{}: {}", comment.place, comment.text));
                    continue;
                };
                let equal = values.iter().zip(&expected).all(|(a, b)| a.bitwise_eq(b));
                assert!(
                    equal && values.len() == expected.len(),
                    "{}: {}: the interpreter says {values:?}",
                    comment.place,
                    comment.text
                );
                agreed += 1;
            }
        }
    }
    // It has neither data nor aligned stack slots, copies no structures and has no frames, and panics if
    // it is asked for some of them.
    assert_eq!(machines_only, 5);
    // What it lacks are addresses that are compared with others.
    assert!(agreed > 220, "{agreed} lines agreed");
    assert!(not_run.len() < 20, "{} lines were not run:\n{}", not_run.len(), not_run.join("\n"));
}

/// The verdicts of a text's lines on one machine.
fn verdicts(text: &str, arch: &str) -> Vec<Verdict> {
    let config = FileTestConfig { archs: vec![arch.parse().unwrap()], ..FileTestConfig::default() };
    let cases = run_text(text, "test.clif", &config).unwrap_or_else(|error| panic!("{error}"));
    cases.into_iter().map(|case| case.verdict).collect()
}

fn failed(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Failed(why) => why,
        other => panic!("{other:?}"),
    }
}

const IDENTITY: &str = "function %f(i32) -> i32 {\nblock0(v0: i32):\n    return v0\n}\n";

#[test]
fn wrong_expectations_fail_with_what_came() {
    let text = format!("{IDENTITY}; run: %f(3) == 4\n; run: %f(3) != 3\n; run: %f(3) != 4\n");
    let verdicts = verdicts(&text, "harp32");
    assert_eq!(failed(&verdicts[0]), "got 3");
    assert_eq!(failed(&verdicts[1]), "got 3");
    assert_eq!(verdicts[2], Verdict::Passed);
}

#[test]
fn files_say_how_they_are_optimized() {
    let levels = |header: &str, opt_levels: &[OptLevel]| {
        let config = FileTestConfig {
            archs: vec![ArchId::HARP32],
            opt_levels: opt_levels.to_vec(),
            ..FileTestConfig::default()
        };
        let text = format!("test run\n{header}\n{IDENTITY}; run: %f(3) == 3\n");
        let cases = run_text(&text, "test.clif", &config).unwrap();
        cases.into_iter().map(|case| case.opt_level).collect::<Vec<_>>()
    };
    let (none, speed) = (OptLevel::None, OptLevel::Speed);
    assert_eq!(levels("", &[]), [speed]);
    assert_eq!(levels("set opt_level=none", &[]), [none]);
    assert_eq!(levels("set enable_simd opt_level=speed_and_size", &[]), [speed]);
    let both = "set opt_level=none\ntarget x86_64\nset opt_level=speed\ntarget x86_64";
    assert_eq!(levels(both, &[]), [none, speed]);
    assert_eq!(levels("set opt_level=none", &[speed]), [speed]);
}

#[test]
fn headers_make_no_difference() {
    let text = format!(
        "test compile precise-output\ntest run\n; a comment\nset enable_simd foo=bar\n\
         target sparc9000 has_everything\ntarget riscv64\nset opt_level=none\nfeature \"x\"\n\n\
         {IDENTITY}; check: nothing\n; run: %f(3) == 3\n; print: %f(-1)\n; running is fun\n"
    );
    assert_eq!(verdicts(&text, "harp64"), [Verdict::Passed, Verdict::Printed("-1".to_owned())]);
}

#[test]
fn a_bare_run_wants_something_else_than_zero() {
    let text = |value| {
        format!("function %f() -> i32 {{ block0: v0 = iconst.i32 {value} return v0 }} ; run")
    };
    assert_eq!(verdicts(&text(7), "harp32"), [Verdict::Passed]);
    assert_eq!(failed(&verdicts(&text(0), "harp32")[0]), "got 0");
    assert_eq!(
        verdicts(&text(7).replace("run", "print"), "harp32"),
        [Verdict::Printed("7".to_owned())]
    );
}

/// Cranelift's interpreter calls whom a line names, its code generators whom it follows.
#[test]
fn lines_call_as_the_header_says() {
    let text = "function %f() -> i32 { block0: v0 = iconst.i32 1 return v0 }
        function %g() -> i32 { block0: v0 = iconst.i32 2 return v0 }
        ; print: %f()";
    let printed = |header: &str| verdicts(&format!("{header}\n{text}"), "harp32");
    let one = [Verdict::Printed("1".to_owned())];
    let two = [Verdict::Printed("2".to_owned())];
    assert_eq!(printed(""), one);
    assert_eq!(printed("test interpret\ntest run"), one);
    assert_eq!(printed("test run"), two);
}

#[test]
fn lines_that_are_no_commands_fail() {
    for line in ["run: %f() == 1", "run: %f(1)", "run: f(1) == 1", "run: %f(1) = 1", "print: %f(x)"]
    {
        let verdicts = verdicts(&format!("{IDENTITY}; {line}\n"), "harp32");
        assert!(!failed(&verdicts[0]).is_empty(), "{line}");
    }
}

#[test]
fn traps_and_endless_loops_fail() {
    let text = "function %f(i32) -> i32 {
block0(v0: i32):
    trapz v0, user7
    jump block1
block1:
    brif v0, block1, block2
block2:
    return v0
}
; run: %f(0) == 0
; run: %f(1) == 1
";
    let config = FileTestConfig {
        archs: vec!["harp32".parse().unwrap()],
        fuel: 10_000,
        ..FileTestConfig::default()
    };
    let cases = run_text(text, "t.clif", &config).unwrap();
    let why = failed(&cases[0].verdict);
    assert!(
        why.contains("function `f`") && why.contains("t.clif:3:5") && why.contains("user7"),
        "{why}"
    );
    let why = failed(&cases[1].verdict);
    assert!(why.contains("10000 instructions"), "{why}");
}

#[test]
fn what_no_machine_has_is_skipped_with_the_reason() {
    let wide =
        "function %f(i128) -> i128 {\nblock0(v0: i128):\n    return v0\n}\n; run: %f(1) == 1\n";
    let vector = "function %f(i32x4) -> i32x4 {\nblock0(v0: i32x4):\n    return v0\n}
; run: %f([1 2 3 4]) == [1 2 3 4]\n";
    let thread = "function %f() -> i32 {
    gv0 = symbol tls %x
block0:
    v0 = tls_value.i64 gv0
    v1 = ireduce.i32 v0
    return v1
}
; run: %f() == 1
";
    for (text, what) in [(wide, "i128"), (vector, "i32x4"), (thread, "thread")] {
        match &verdicts(text, "harp32+x")[0] {
            Verdict::Skipped { function, reason } => {
                assert_eq!(function, "f");
                assert!(reason.contains(what), "{reason}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// A line is skipped for what its function calls, and only for that.
#[test]
fn a_function_that_is_not_called_stops_nobody() {
    let text = format!(
        "function %wide(i128) -> i128 {{ block0(v0: i128): return v0 }}
         function %calls(i64) -> i64 {{
             fn0 = %wide(i128) -> i128
         block0(v0: i64):
             v1 = uextend.i128 v0
             v2 = call fn0(v1)
             v3 = ireduce.i64 v2
             return v3
         }}
         ; run: %calls(1) == 1\n{IDENTITY}; run: %f(1) == 1\n"
    );
    let verdicts = verdicts(&text, "harp64");
    assert!(matches!(&verdicts[0], Verdict::Skipped { .. }), "{verdicts:?}");
    assert_eq!(verdicts[1], Verdict::Passed);
}

/// On machines with the extension integers must compile, whatever the reason.
#[test]
fn skips_that_are_not_listed_fail() {
    let text = "function %f() -> i32 {
    fn0 = %nowhere() -> i32
block0:
    v0 = call fn0()
    return v0
}
; run: %f() == 1
";
    let verdict = &verdicts(text, "harp64+x")[0];
    assert!(failed(verdict).contains("nowhere"), "{verdict:?}");
}

#[test]
fn library_routines_are_the_operations() {
    let text = "function %f(f64) -> f64 {
    fn0 = %FloorF64(f64) -> f64
block0(v0: f64):
    v1 = call fn0(v0)
    return v1
}
; run: %f(-0x1.8p0) == -0x1.0p1
";
    assert_eq!(verdicts(text, "harp64+x"), [Verdict::Passed]);
}
