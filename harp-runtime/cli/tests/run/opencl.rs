//! OpenCL C and C++ for OpenCL: how clang and llvm-spirv are called, and what is said if they are not there.

use std::fs;
use std::process::Command;

use tempfile::TempDir;

use super::peers;

#[test]
fn without_clang_the_message_says_what_to_install() {
    let folder = TempDir::new().unwrap();
    fs::copy(peers("kernels.cl"), folder.path().join("kernels.cl")).unwrap();
    for command in ["run --list", "compile", "explain"] {
        let mut harp = Command::new(env!("CARGO_BIN_EXE_harp"));
        harp.env("PATH", "").current_dir(folder.path()).args(command.split(' '));
        let output = harp.args(["-a", "harp32", "kernels.cl"]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(
            message,
            "error: `kernels.cl`: no compiler of OpenCL C was found: clang and llvm-spirv of the same version, or clang 22. \
             Install one, for example with `apt-get install clang-14 llvm-spirv-14`, or compile the program to SPIR-V \
             elsewhere\n"
        );
    }
}

/// A compiler that is not clang shows how clang is called, and what becomes of its answers.
#[test]
#[cfg(unix)]
fn opencl_c_goes_through_clang_and_llvm_spirv() {
    use std::os::unix::fs::PermissionsExt;

    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let tool = |name: &str, script: &str| {
        fs::write(path.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    fs::write(path.join("k.cl"), "kernel").unwrap();
    fs::copy(path.join("k.cl"), path.join("k.clcpp")).unwrap();
    let run_file = |file: &str, options: &[&str]| {
        let mut harp = Command::new(env!("CARGO_BIN_EXE_harp"));
        let paths = format!("{}:/usr/bin:/bin", path.display());
        harp.env("PATH", paths).env("HERE", path).current_dir(path);
        harp.args(["run", file, "-a", "harp64", "--list", "--cl-option", "-DN=3"]);
        harp.args(options).output().unwrap()
    };
    let run = || run_file("k.cl", &[]);
    tool("clang-14", "echo \"$*\" > $HERE/clang.args; echo careful >&2");
    let copy = format!("cp {} \"$4\"", peers("kernels.64.O2.spv").display());
    tool("llvm-spirv-14", &copy);
    let output = run();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().starts_with("saxpy\n  x: a buffer of f32\n"));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "careful\n");
    let args = fs::read_to_string(path.join("clang.args")).unwrap();
    assert!(args.starts_with("-c -target spir64 -cl-std=CL1.2 "), "{args}");
    assert!(args.contains(" -O2 -DN=3 k.cl -o "), "{args}");
    assert!(args.contains(" -fgnu89-inline -fno-strict-aliasing "), "{args}");

    // Checks are about the program as it is written.
    for (options, level) in
        [(&["--check"][..], "-O0"), (&["--check", "--cl-option=-O1"], "-O0 -DN=3 -O1")]
    {
        assert!(run_file("k.cl", options).status.success());
        let args = fs::read_to_string(path.join("clang.args")).unwrap();
        assert!(args.contains(&format!(" {level} ")), "{args}");
    }

    // C++ has no such functions, and refuses the option.
    for (file, standard) in
        [("k.clcpp", None), ("k.cl", Some("-cl-std=clc++1.0")), ("k.cl", Some("-cl-std=CLC++"))]
    {
        let option = standard.map(|standard| format!("--cl-option={standard}"));
        let options: Vec<&str> = option.iter().map(String::as_str).collect();
        assert!(run_file(file, &options).status.success());
        let args = fs::read_to_string(path.join("clang.args")).unwrap();
        assert!(args.contains(standard.unwrap_or("-cl-std=clc++ ")), "{args}");
        assert!(!args.contains("-fgnu89-inline"), "{args}");
    }
    assert!(run_file("k.clcpp", &["--cl-option=-cl-std=CL2.0"]).status.success());
    assert!(fs::read_to_string(path.join("clang.args")).unwrap().contains(" -fgnu89-inline "));

    // What clang has optimized is not always translated.
    let refuse = "if grep -q -e -O2 $HERE/clang.args; then echo freeze >&2; exit 1; fi";
    tool("llvm-spirv-14", &format!("{refuse}\n{copy}"));
    assert!(run().status.success());
    let args = fs::read_to_string(path.join("clang.args")).unwrap();
    assert!(args.contains(" -O0 -DN=3 k.cl -o "), "{args}");
    let refuse = refuse.replace("-O2", "-O1");
    tool("llvm-spirv-14", &format!("{refuse}\n{copy}"));
    assert!(run_file("k.cl", &["--cl-option=-O1"]).status.success());
    let args = fs::read_to_string(path.join("clang.args")).unwrap();
    assert!(args.contains(" -O0 -DN=3 k.cl -o "), "{args}");
    tool("llvm-spirv-14", "echo no >&2; exit 1");
    let message = String::from_utf8(run().stderr).unwrap();
    assert!(message.ends_with("error: `k.cl`: `llvm-spirv-14` refused it\nno\n"), "{message}");

    tool("clang-14", "echo 'k.cl:1:1: error: no' >&2; exit 1");
    let output = run();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message, "error: `k.cl`: `clang-14` refused it\nk.cl:1:1: error: no\n");
}

#[test]
#[cfg(unix)]
fn new_versions_of_clang_make_spirv_themselves() {
    use std::os::unix::fs::PermissionsExt;

    let folder = TempDir::new().unwrap();
    let path = folder.path();
    let clang = |script: &str| {
        let copy = format!(
            "for last; do :; done; /bin/cp {} \"$last\"",
            peers("kernels.64.O2.spv").display()
        );
        let script = format!("#!/bin/sh\necho \"$*\" > $HERE/clang.args\n{script}\n{copy}\n");
        fs::write(path.join("clang-22"), script).unwrap();
        fs::set_permissions(path.join("clang-22"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    fs::write(path.join("k.cl"), "kernel").unwrap();
    let run = || {
        let mut harp = Command::new(env!("CARGO_BIN_EXE_harp"));
        harp.env("PATH", path).env("HERE", path).current_dir(path);
        let output = harp.args(["run", "k.cl", "-a", "harp64", "--list"]).output().unwrap();
        let args = fs::read_to_string(path.join("clang.args")).unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap(), args)
    };
    clang("");
    let (is_right, _, args) = run();
    assert!(is_right && args.starts_with("-c -target spirv64-unknown-unknown "), "{args}");
    assert!(args.contains(" -mllvm -spirv-ext=+SPV_") && args.contains(" -O2 k.cl "), "{args}");
    clang("case \"$*\" in *-O2*) echo 'fatal error: error in backend: no' >&2; exit 1;; esac");
    let (is_right, _, args) = run();
    assert!(is_right && args.contains(" -O0 k.cl "), "{args}");
    clang("echo 'k.cl:1:1: error: no' >&2; exit 1");
    let (is_right, message, _) = run();
    assert!(!is_right);
    assert_eq!(message, "error: `k.cl`: `clang-22` refused it\nk.cl:1:1: error: no\n");
}
