//! Files and the tools that make modules of them.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use harp_isa::WordSize;
use tempfile::TempDir;

use crate::report::least;

/// The target of objects for the host.
const HOST: &str = "x86_64-unknown-linux-gnu";

/// A module, and how many microseconds it takes to make an object for the host of its source, if that is timed.
pub(crate) struct Made {
    pub(crate) bytes: Vec<u8>,
    pub(crate) host: Option<f64>,
}

/// Adds the files under a path that have one of the extensions.
pub(crate) fn collect(path: &Path, only: &[String], files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), only, files)?;
        }
    } else if only.iter().any(|wanted| path.extension() == Some(OsStr::new(wanted))) {
        files.push(path.to_owned());
    }
    Ok(())
}

/// The commands, and a folder for what they write.
pub(crate) struct Tools {
    folder: TempDir,
    clang: Vec<String>,
    rounds: usize,
}

impl Tools {
    pub(crate) fn new(clang: Vec<String>, rounds: usize) -> io::Result<Tools> {
        Ok(Tools { folder: TempDir::new()?, clang, rounds })
    }

    /// Makes the module of a file, for machines with these words.
    pub(crate) fn module(&self, file: &Path, word: WordSize) -> Result<Made, String> {
        let result = self.folder.path().join("module.spv");
        let mut host = None;
        let module = match file.extension().and_then(OsStr::to_str) {
            Some("cl") => {
                self.opencl(file, word, &result)?;
                let times = (0..self.rounds).map(|_| self.for_host(file));
                let times = times.collect::<Result<Vec<_>, _>>()?;
                host = (!times.is_empty()).then(|| least(times));
                &*result
            }
            Some("wgsl") => {
                let version = ["--spirv-version", "1.3"];
                run(Command::new("naga").args(version).args([file, &result]))?;
                &*result
            }
            _ => file,
        };
        let bytes = fs::read(module).map_err(|error| error.to_string())?;
        Ok(Made { bytes, host })
    }

    /// Makes an object for the host, as far as clang and llc do that, and returns the microseconds.
    fn for_host(&self, file: &Path) -> Result<f64, String> {
        let [code, object] = ["host.bc", "host.o"].map(|name| self.folder.path().join(name));
        let start = Instant::now();
        run(self.clang(file, HOST, "-O2").arg("-o").arg(&code))?;
        run(Command::new("llc-14")
            .args(["-O2", "-filetype=obj"])
            .arg(&code)
            .arg("-o")
            .arg(object))?;
        Ok(start.elapsed().as_secs_f64() * 1e6)
    }

    fn opencl(&self, file: &Path, word: WordSize, result: &Path) -> Result<(), String> {
        let code = self.folder.path().join("module.bc");
        let target = match word {
            WordSize::Four => "spir",
            WordSize::Eight => "spir64",
        };
        let translate = |level| {
            run(self.clang(file, target, level).arg("-o").arg(&code))?;
            run(Command::new("llvm-spirv-14").arg(&code).arg("-o").arg(result))
        };
        // Of optimized code llvm-spirv refuses some, such as `freeze`.
        translate("-O2").or_else(|_| translate("-O0")).map(drop)
    }

    fn clang(&self, file: &Path, target: &str, level: &str) -> Command {
        let mut command = Command::new("clang-14");
        command.args(["-w", "-target", target, "-cl-std=CL1.2", level, "-fno-slp-vectorize"]);
        // C99 has `inline` functions without code of their own, and each place in memory its type; to the drivers that
        // programs are written for, `inline` functions have code, and places any type.
        command.args(["-fgnu89-inline", "-fno-strict-aliasing"]);
        command.args(["-Xclang", "-finclude-default-header", "-emit-llvm", "-c"]);
        command.args(&self.clang).arg(file);
        command
    }
}

/// Runs a command; the first line of what it complains about, if it fails.
fn run(command: &mut Command) -> Result<Output, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().map(str::trim).take(2).collect();
    Err(format!("{name}: {}", lines.join(" ")))
}
