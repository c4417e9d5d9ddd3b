//! `harp run` and `harp bench peers` as processes: files of every kind, arguments, results, and what is wrong with them.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

mod opencl;
mod shaders;

const MACHINE: &str = "4w32/16/32/16+x";

/// Runs a command with words separated by blanks in a folder.
fn harp(folder: &Path, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_harp"));
    command.env_remove("HARP_ARCH").stdin(Stdio::null()).current_dir(folder);
    command.args(words.split(' ')).output().unwrap()
}

/// What a command that succeeds prints.
fn succeeds(folder: &Path, words: &str) -> String {
    let Output { status, stdout, stderr } = harp(folder, words);
    let errors = String::from_utf8(stderr).unwrap();
    assert!(status.success() && errors.is_empty(), "harp {words}: {errors}");
    String::from_utf8(stdout).unwrap()
}

/// The exit code, standard output and standard error of a command that fails.
fn fails(folder: &Path, words: &str) -> (i32, String, String) {
    let Output { status, stdout, stderr } = harp(folder, words);
    assert!(!status.success(), "harp {words}");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A module of the front end's tests.
fn module(name: &str) -> PathBuf {
    let folder = "../../harp-jit/spirv/tests/modules";
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name)).unwrap()
}

/// A file of the OpenCL program that is run in turns with this.
fn peers(name: &str) -> PathBuf {
    let folder = "../../tests/bench/peers";
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name)).unwrap()
}

#[test]
fn buffers_go_through_files() {
    let folder = TempDir::new().unwrap();
    let (folder, file) = (folder.path(), peers("kernels.32.O2.spv"));
    let file = file.to_str().unwrap();
    let x: Vec<u8> = (0..100).flat_map(|i| (i as f32).to_le_bytes()).collect();
    fs::write(folder.join("x.bin"), &x).unwrap();
    let printed = succeeds(
        folder,
        &format!(
            "run {file} -a {MACHINE} --kernel saxpy --grid 100 --arg @x.bin --arg y=f32x100:1 --arg 2 --print 1:3 --save y=y.bin"
        ),
    );
    assert_eq!(printed, "y: 1 3 5 ... (100 elements)\n");
    let wanted: Vec<u8> = (0..100).flat_map(|i| (2.0 * i as f32 + 1.0).to_le_bytes()).collect();
    assert_eq!(fs::read(folder.join("y.bin")).unwrap(), wanted);

    // An input is not overwritten.
    let args = "--grid 100 --arg @x.bin --arg f32x100 --arg 2";
    let (code, _, message) =
        fails(folder, &format!("run {file} -a {MACHINE} --kernel saxpy {args} --save x={file}"));
    assert_eq!(code, 1);
    assert!(message.contains("is an input and would be overwritten"), "{message}");

    // A file of another length is no difference of elements.
    fs::write(folder.join("short.bin"), [0; 12]).unwrap();
    let (code, _, message) = fails(
        folder,
        &format!("run {file} -a {MACHINE} --kernel saxpy {args} --compare y=short.bin"),
    );
    assert_eq!(code, 1);
    assert!(message.contains("buffer `y` has 400 bytes, `short.bin` has 12"), "{message}");

    // Without a type it has bytes, for a kernel that does not say either of what it takes addresses.
    fs::write(folder.join("bytes.bin"), [7, 200, 3]).unwrap();
    let kernel = "function %second(i32, i32) {
        block0(v0: i32, v1: i32):
            v2 = load.i8 v0+1
            store v2, v1
            return
        }";
    fs::write(folder.join("second.clif"), kernel).unwrap();
    let run = "run second.clif -a harp32 --grid 1 --print 0 --print 1";
    let printed = succeeds(folder, &format!("{run} --arg @bytes.bin --arg u8x1"));
    assert_eq!(printed, "v0: 7 200 3\nv1: 200\n");
}

#[test]
fn work_groups_have_local_memory() {
    let folder = TempDir::new().unwrap();
    for (file, arch) in [("kernels.32.O2.spv", "harp32"), ("kernels.64.O2.spv", "8w32/32/16/16+x")]
    {
        let file = peers(file);
        let line = format!("run {} -a {arch} --kernel reduce --grid 512", file.display());
        for local in ["local:512", "local:i32x128", "tmp=local:512"] {
            let args = format!("--arg {local} --arg in=i32:0..512 --arg out=i32x4 --print out");
            let args = args.replace("--arg local", "--arg tmp=local");
            let printed = succeeds(folder.path(), &format!("{line} --group 128 {args}"));
            assert_eq!(printed, "out: 8128 24512 40896 57280\n", "{arch}");
        }
        let (code, _, message) =
            fails(folder.path(), &format!("{line} --arg i32:0..512 --arg i32x4 --arg local:512"));
        assert_eq!(code, 1);
        assert!(message.contains("give their size with `--group`"), "{message}");
    }
}

#[test]
fn a_part_of_a_grid_has_its_place_in_the_whole() {
    let file = peers("kernels.64.O2.spv");
    let line = format!("run {} -a harp64 --kernel saxpy --grid 3", file.display());
    let args = "--arg f32x8:1 --arg f32:0..8 --arg 10 --print y";
    let printed = succeeds(Path::new("."), &format!("{line} {args} --offset 4"));
    assert_eq!(printed, "y: 0 1 2 3 14 15 16 7\n");
    let (code, _, message) =
        fails(Path::new("."), &format!("{line} {args} --offset 18446744073709551615"));
    assert_eq!(code, 1);
    assert!(message.contains("an offset of 18446744073709551615, 0, 0"), "{message}");
    let (code, _, message) = fails(Path::new("."), &format!("{line} {args} --offset 1,2,3,4"));
    assert_eq!(code, 2);
    assert!(message.contains("there are three dimensions at most"), "{message}");
}

#[test]
fn kernels_print_and_constants_are_specialized() {
    let folder = TempDir::new().unwrap();
    let line = format!(
        "run {} -a {MACHINE} --kernel lines --grid 2",
        module("printing.32.O2.spv").display()
    );
    let printed = succeeds(folder.path(), &format!("{line} --arg i32x2:7 --arg f32:1,2"));
    assert!(printed.starts_with("[0] 0:  1.00|7"), "{printed}");
    let object =
        json(&succeeds(folder.path(), &format!("{line} --arg i32x2:7 --arg f32:1,2 --json")));
    assert_eq!(object["printed"][0]["work_item"], serde_json::json!([0, 0, 0]));

    let line = format!("run {} -a harp64 --grid 4", module("specialized.spv").display());
    let of = |options: &str| {
        succeeds(folder.path(), &format!("{line} --arg i32x4 --print numbers:1{options}"))
    };
    assert_ne!(of(""), of(" --spec 7=9"));
    assert_ne!(of(""), of(" --spec 9=false"));
    assert_eq!(of(""), of(" --spec 10=f32:0.5"));
    let (code, _, message) = fails(folder.path(), &format!("{line} --arg i32x4 --spec 1=5"));
    assert_eq!(code, 1);
    assert!(message.contains("there is no specialization constant 1"), "{message}");
}

#[test]
fn kernels_work_in_place() {
    let file = peers("kernels.32.O2.spv");
    let line = format!("run {} -a harp32 --grid 4 --kernel saxpy", file.display());
    for args in ["f32:0..4 --arg same:x", "y=f32:0..4 --arg x=same:1"] {
        let words = format!("{line} --arg {args} --arg a=2 --print x --print y");
        assert_eq!(succeeds(Path::new("."), &words), "x: 0 3 6 9\ny: 0 3 6 9\n");
    }
}

#[test]
fn variables_that_are_read_before_they_are_written_are_found() {
    let line = |options: &str| {
        let module = module("unwritten.32.O0.spv");
        format!(
            "run {} -a harp32 --kernel number --grid 4 --arg i32x4 --arg 3{options}",
            module.display()
        )
    };
    succeeds(Path::new("."), &line(""));
    let (code, _, message) = fails(Path::new("."), &line(" --check"));
    assert_eq!(code, 1);
    assert!(message.contains("uninitialized: load of i32 by work-item (3, 0, 0)"), "{message}");
}

#[test]
fn kernels_test_for_the_null_pointer_and_are_found_to_use_it() {
    let line =
        |file: &Path, rest: &str| format!("run {} -a harp32 --grid 3 {rest}", file.display());
    let optional = |given| {
        let rest = format!("--kernel optional --arg i32x3 --arg {given} --print 0 --check");
        succeeds(Path::new("."), &line(&module("generic.32.O2.spv"), &rest))
    };
    assert_eq!(optional("i32:7,8,9"), "out: 7 8 9\n");
    assert_eq!(optional("null"), "out: 0 1 2\n");
    let saxpy = line(
        &peers("kernels.32.O2.spv"),
        "--kernel saxpy --arg null --arg f32x3:1 --arg 2 --check",
    );
    let (code, _, message) = fails(Path::new("."), &saxpy);
    assert_eq!(code, 1);
    assert!(message.contains("out of bounds: load of f32 by work-item (0, 0, 0)"), "{message}");
    let scalar =
        line(&peers("kernels.32.O2.spv"), "--kernel saxpy --arg null --arg null --arg null");
    let (code, _, message) = fails(Path::new("."), &scalar);
    assert_eq!(code, 1);
    assert!(message.contains("`a` (one f32)\n  caused by: it is the null pointer"), "{message}");
}

#[test]
fn promises_of_kernels_are_listed() {
    let file = module("constants.64.O2.spv");
    let list = |kernel: &str| {
        let words = format!("run {} -a harp64 --list --kernel {kernel}", file.display());
        succeeds(Path::new("."), &words)
    };
    let [constant, plain] = [list("from_constant"), list("from_global")];
    assert!(constant.contains("  sizes: a buffer of i32, constant\n  out: a buffer of i32\n"));
    assert!(plain.contains("  sizes: a buffer of i32\n"), "{plain}");
}

#[test]
fn kernels_that_are_not_supported_are_listed_with_the_reason() {
    let list =
        |arch: &str| format!("run {} -a {arch} --list", module("images.32.O2.spv").display());
    let text = succeeds(Path::new("."), &list("harp32"));
    let reason = text.strip_prefix("with_image\n  error: `").unwrap();
    assert!(reason.ends_with("OpTypeImage, is not supported\nwithout\n  out: a buffer of i32\n"));
    // Where there is nothing else to be listed, that is why.
    let (code, _, message) = fails(Path::new("."), &list("harp32 --kernel with_image"));
    assert!(code == 1 && message.contains("OpTypeImage, is not supported"), "{message}");
    let (code, _, message) = fails(Path::new("."), &list("harp64"));
    assert!(code == 1 && message.contains("the module has 4-byte addresses"), "{message}");
}

#[test]
fn programs_see_everything_as_json() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    fs::write(folder.join("zeros.bin"), [0; 40]).unwrap();
    let line = format!(
        "run {} -a {MACHINE} --kernel saxpy --grid 11 --arg f32x10:1 --arg f32x10:nan --arg 2",
        peers("kernels.32.O2.spv").display()
    );
    let (code, out, message) =
        fails(folder, &format!("{line} --check --json --print y:1 --compare y=zeros.bin"));
    assert_eq!(code, 1);
    assert!(message.contains("kernel `saxpy`: 3 findings"), "{message}");
    let object = json(&out);
    assert_eq!(object["grid"], serde_json::json!([11, 1, 1]));
    assert_eq!(object["buffers"][0]["values"], serde_json::json!(["NaN"]));
    assert_eq!(object["compared"][0]["differing"], 10);
    assert_eq!(object["findings"].as_array().unwrap().len(), 3);
    assert_eq!(object["findings"][0]["kind"], "out of bounds");
    assert_eq!(object["findings"][0]["work_item"], serde_json::json!([10, 0, 0]));
    assert!(object["stats"]["issued"].as_u64().unwrap() > 0);
}

#[test]
fn what_is_wrong_is_named() {
    let folder = TempDir::new().unwrap();
    let file = peers("kernels.32.O2.spv");
    let line = format!("run {} -a harp32 --grid 8 --kernel", file.display());
    for (code, args, wanted) in [
        (1, "nothing", "has no kernel `nothing`, but `saxpy`, `matmul`"),
        (
            1,
            "saxpy --arg f32x8 --arg b=5",
            "argument `b=5`: the kernel has no parameter `b`; the parameters that it uses are `x`, `y`, `a`",
        ),
        (
            1,
            "saxpy --arg x=f32x8 --arg x=f32x9",
            "`x=f32x9`: parameter `x` (a buffer of f32) has an argument already",
        ),
        (
            1,
            "saxpy --arg 1",
            "argument `1` does not fit parameter `x` (a buffer of f32)\n  caused by: it is a number",
        ),
        (
            1,
            "saxpy --arg f32x8 --arg f32x8 --arg f32x8",
            "does not fit parameter `a` (one f32)\n  caused by: it is a buffer",
        ),
        (
            1,
            "saxpy --arg f32x8 --arg f32x8 --arg x",
            "caused by: `x` is not a number of type f32: expected such as 0.5",
        ),
        (1, "saxpy --arg f32x8 --arg f32x8 --arg i32:5", "caused by: it is of type i32"),
        (1, "saxpy --arg f32x8 --arg f32x8 --arg same:x", "caused by: it is a buffer"),
        (
            1,
            "saxpy --arg same:a --arg f32x8 --arg 1",
            "argument `same:a` does not fit parameter `x` (a buffer of f32)\n  caused by: parameter `a` gets no buffer",
        ),
        (1, "saxpy --arg f32x8 --arg y=same:z --arg 1", "caused by: parameter `z` gets no buffer"),
        (2, "saxpy --arg same:", "the name of a parameter is missing"),
        (1, "saxpy --arg f32x8 --arg f32x8 --arg 1 --arg 2", "argument `2` is one too many"),
        (1, "saxpy --arg f32@none.bin --arg f32x8 --arg 1", "caused by: cannot read `none.bin`"),
        (
            1,
            "saxpy --arg f32x99999999999 --arg f32x8 --arg 1",
            "caused by: it takes 399999999996 bytes, the memory has 268435456",
        ),
        (
            1,
            "saxpy --arg f32x8 --arg f32x8 --arg 1 --print a",
            "the kernel has no buffer `a`; its buffers are `x`, `y`",
        ),
        (
            1,
            "bitonic --arg i32x8 --arg 300 --arg 3000000000000",
            "`3000000000000` is not a number of type i32",
        ),
        (
            1,
            "reduce --arg i32x8 --arg i32x8 --arg local:7",
            "caused by: 7 bytes of local memory are no multiple of the 4",
        ),
        (
            1,
            "reduce --arg i32x8 --arg i32x8 --arg i32x8",
            "does not fit parameter `tmp` (local memory for elements of i32)",
        ),
        (2, "saxpy --arg f33x8", "invalid value 'f33x8:1' for"),
        (2, "saxpy --arg f32x8:random:x", "`x` is not a seed"),
        (2, "saxpy --print :3", "expected the name of a parameter"),
        (2, "saxpy --compare y", "expected the name of a parameter and a file"),
        (2, "saxpy --group 0", "expected one to three positive numbers"),
        (2, "saxpy --spec x", "expected a constant and its value"),
        (1, "saxpy --spec x=1", "constants of SPIR-V have numbers, and `x` is none"),
        (1, "saxpy --spec 0=0.5", "0.5 for constant 0 needs a type, such as `0=f32:0.5`"),
    ] {
        let args = args.replace("f33x8", "f33x8:1");
        let (given, _, message) = fails(folder.path(), &format!("{line} {args}"));
        assert_eq!(given, code, "{args}: {message}");
        assert!(message.contains(wanted), "{args}: {message}");
    }
    let (_, _, message) = fails(folder.path(), &format!("run {} -a harp64 --list", file.display()));
    assert!(message.contains("the module has 4-byte addresses"), "{message}");
    let (_, _, message) =
        fails(folder.path(), &format!("run {} -a harp32 --grid 1", file.display()));
    assert!(
        message.contains("has several kernels: choose one with `--kernel`: `saxpy`"),
        "{message}"
    );
}

#[test]
fn kernels_are_measured_under_every_strategy() {
    let folder = TempDir::new().unwrap();
    let line = format!(
        "bench kernel {} -a harp32 --kernel mandelbrot --arg i32x256 --arg 16 --arg 16 --arg 50",
        peers("kernels.32.O2.spv").display()
    );
    let rows = succeeds(folder.path(), &format!("{line} --grid 16,16 --json"));
    let names: Vec<Value> = rows.lines().map(|row| json(row)["strategy"].clone()).collect();
    assert_eq!(names, ["split-join", "predicate", "static", "adaptive"]);
    assert!(json(&rows[..rows.find('\n').unwrap()])["warp_instructions"].as_u64() > Some(0));
    let table = succeeds(folder.path(), &format!("{line} --grid 16,16"));
    assert!(table.starts_with("kernel      strategy    code bytes"), "{table}");
    let (code, _, message) = fails(folder.path(), &line);
    assert_eq!(code, 2);
    assert!(message.contains("Say it with `--grid`"), "{message}");
}

#[test]
fn modules_are_compiled_and_explained() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let file = peers("kernels.32.O2.spv");
    let file = file.to_str().unwrap();
    let text = succeeds(path, &format!("compile {file} -a harp32 --emit clif"));
    assert_eq!(text.matches("function ").count(), 8, "{text}");
    let text = succeeds(path, &format!("compile {file} -a harp32 --emit asm --kernel bfs"));
    assert!(text.contains(".chunk \"bfs\""), "{text}");
    succeeds(path, &format!("compile {file} -a harp32 --kernel bfs -o bfs.hof"));
    assert!(succeeds(path, "disasm bfs.hof").contains("bfs:"));
    let (_, _, message) = fails(path, &format!("compile {file} -a harp32 -o all.hof"));
    assert!(message.contains("has several kernels"), "{message}");
    let (_, _, message) =
        fails(path, &format!("compile {file} -a harp32 --emit image --call %bfs() -o bfs.bin"));
    assert!(
        message.contains("`--call` calls a function, and `harp run` runs kernels"),
        "{message}"
    );
    let text = succeeds(path, &format!("explain {file} -a harp32 --kernel bitonic"));
    assert!(text.starts_with("`bitonic`: 2 branches"), "{text}");
    fs::write(path.join("f.clif"), "function %f() {\nblock0:\n    return\n}\n").unwrap();
    let (_, _, message) = fails(path, "explain f.clif -a harp32 --kernel g");
    assert!(message.contains("has no kernel `g`, but `f`"), "{message}");
    for options in ["--spec 0=1", "--cl-option -DX"] {
        let (code, _, message) = fails(path, &format!("explain f.clif -a harp32 {options}"));
        assert_eq!(code, 1);
        assert!(message.contains(options.split(' ').next().unwrap()), "{message}");
    }
}

#[test]
fn clif_kernels_may_call_functions_and_use_data() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let text = "; data: %table i32 10 20 30 40
function %lookup(i32) -> i32 {
    gv0 = symbol %table
block0(v0: i32):
    v1 = symbol_value.i32 gv0
    v2 = iadd v0, v0
    v3 = iadd v2, v2
    v4 = iadd v1, v3
    v5 = load.i32 aligned v4
    return v5
}
function %shared(i32, i32, f32) {
    fn0 = %harp_global_id_x() -> i32
    fn1 = %lookup(i32) -> i32
    fn2 = %harp_local_id_x() -> i32
block0(v0: i32, v1: i32, v2: f32):
    v3 = call fn0()
    v4 = call fn2()
    v5 = iadd v4, v4
    v6 = iadd v5, v5
    v7 = iadd v1, v6
    v8 = call fn1(v3)
    store aligned v8, v7
    v9 = load.i32 aligned v7
    v10 = iadd v3, v3
    v11 = iadd v10, v10
    v12 = iadd v0, v11
    v13 = fcvt_to_sint_sat.i32 v2
    v14 = iadd v9, v13
    store aligned v14, v12
    return
}
function %bytes(i128) {
block0(v0: i128):
    return
}
";
    fs::write(path.join("k.clif"), text).unwrap();
    let line = "run k.clif -a harp32 --kernel shared --grid 4 --group 2";
    let printed =
        succeeds(path, &format!("{line} --arg i32x4 --arg local:8 --arg 2.5 --print v0 --check"));
    assert_eq!(printed, "v0: 12 22 32 42\n");
    let (code, _, message) = fails(path, &format!("{line} --arg local:8 --arg 5 --arg true"));
    assert_eq!(code, 1);
    assert!(message.contains("`true` is not a number of type f32"), "{message}");
    let (_, _, message) = fails(path, "run k.clif -a harp32 --kernel bytes --grid 1");
    assert!(message.contains("kernel `bytes`: parameter 0 is of type i128"), "{message}");
    // As kernels they take an argument block; as functions, words in registers.
    let text = succeeds(path, "compile k.clif -a harp32 --kernel shared --emit clif");
    assert!(text.starts_with("function %shared(i32) fast"), "{text}");
    let asm = succeeds(path, "compile k.clif -a harp32 --kernel shared --emit asm");
    assert!(asm.contains(".chunk \"lookup\""), "{asm}");
    let explained = succeeds(path, "explain k.clif -a harp32 --kernel shared");
    assert!(explained.starts_with("`shared`: "), "{explained}");
    let (_, _, message) = fails(path, "compile k.clif -a harp32 --kernel bytes --emit asm");
    assert!(message.contains("kernel `bytes`: parameter 0 is of type i128"), "{message}");
    let (_, _, message) = fails(path, "run k.clif -a harp32 --kernel lookup --grid 1");
    assert!(message.contains("has no kernel `lookup`, but `shared`, `bytes`"), "{message}");
}

#[test]
fn traps_and_endless_kernels_have_their_exit_codes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let text = "function %end() {
block0:
    trap user7
}
function %loop() {
block0:
    jump block1
block1:
    jump block1
}
";
    fs::write(path.join("k.clif"), text).unwrap();
    let (code, _, message) = fails(path, "run k.clif -a harp32 --kernel end --grid 1");
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("k.clif:3:5"), "{message}");
    let (code, _, message) =
        fails(path, "run k.clif -a harp32 --kernel loop --grid 1 --fuel 10000");
    assert_eq!(code, 5, "{message}");
}

#[test]
fn peers_print_the_fields_of_the_opencl_program() {
    let folder = TempDir::new().unwrap();
    let rows = succeeds(folder.path(), &format!("bench peers --scale 4 --json -a {MACHINE}"));
    let names =
        ["saxpy", "matmul", "mandelbrot", "bitonic", "reduce", "binsearch", "convolve", "bfs"];
    assert_eq!(rows.lines().count(), names.len());
    let start = "{\"kernel\":\"saxpy\",\"items\":131072,\"build_ms\":";
    assert!(rows.starts_with(start), "{rows}");
    for (row, name) in rows.lines().zip(names) {
        let row = json(row);
        assert_eq!(row["kernel"], name);
        let fields: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert_eq!(fields.len(), 6, "{row}");
        assert!(row["checksum"].is_u64() && row["first_ms"].is_f64() && row["best_ms"].is_f64());
    }
    let table =
        succeeds(folder.path(), "bench peers --scale 4 --kernel matmul --builder -a harp64");
    assert!(table.contains("418360773  correct"), "{table}");
    let (code, _, _) = fails(folder.path(), "bench peers --scale 0");
    assert_eq!(code, 2);
}
