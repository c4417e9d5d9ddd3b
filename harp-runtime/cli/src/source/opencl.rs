//! OpenCL C and C++ for OpenCL, which clang and llvm-spirv turn into SPIR-V, if they are installed.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Write};
use std::iter;
use std::path::Path;
use std::process::{Command, Output};

use harp_isa::{ArchId, WordSize};
use tempfile::TempDir;

use super::super::error::CliError;
use super::super::files::Input;
use super::SourceError;

/// A program of the host, with the names it may have.
struct Tool {
    what: &'static str,
    names: &'static [&'static str],
    /// What to install.
    package: &'static str,
}

const CLANG: Tool = Tool {
    what: "compiler of OpenCL C",
    names: &["clang-14", "clang"],
    package: "clang-14 llvm-spirv-14",
};

const LLVM_SPIRV: Tool = Tool {
    what: "translator from LLVM to SPIR-V",
    names: &["llvm-spirv-14", "llvm-spirv"],
    package: "llvm-spirv-14",
};

/// The module of a program for a machine with words of this size, without unsupported constructs of newer versions of the
/// language. What the compiler warns about goes to standard error.
///
/// The program is in the language of the last option that says so, at first `standard`, and is optimized at the level of the
/// last option that says so, at first `level`.
///
/// Of optimized code llvm-spirv refuses some: `freeze`, which clang makes where a quotient and its remainder are used, and
/// integers of odd widths. Then the program is compiled without optimization, whatever the options ask for.
pub(super) fn compile(
    file: &Input,
    arch: ArchId,
    standard: &str,
    level: &str,
    options: &[String],
) -> Result<Vec<u8>, CliError> {
    let Input::File(source) = file else {
        let (file, tool) = (file.clone(), CLANG.names[1]);
        return Err(SourceError::StandardInput { file, tool }.into());
    };
    // A missing file is reported as for all others.
    file.read()?;
    let target = match arch.word() {
        WordSize::Four => "spir",
        WordSize::Eight => "spir64",
    };
    let folder = TempDir::new().map_err(|source| SourceError::Folder { source })?;
    let (bitcode, module) = (folder.path().join("program.bc"), folder.path().join("program.spv"));
    let fixed = ["-c", "-target", target, standard];
    let mut given = options.iter().map(String::as_str).rev();
    let asked = given.find(|option| option.starts_with("-cl-std=")).unwrap_or(standard);
    let is_cpp = asked.to_ascii_lowercase().contains("c++");
    // Functions that are just `inline` have no code in C99; programs expect that of OpenCL's compilers, where they have it.
    let inline = (!is_cpp).then_some("-fgnu89-inline");
    // For the names of parameters, and for places in messages.
    let names = ["-fno-discard-value-names", "-gline-tables-only"];
    let header = ["-Xclang", "-finclude-default-header", "-emit-llvm"];
    let args = fixed.iter().chain(&inline).chain(&names).chain(&header);
    let args: Vec<&OsStr> = args.map(OsStr::new).collect();
    let files = [source.as_os_str(), OsStr::new("-o"), bitcode.as_os_str()];
    let translate = |level: &str, options: &[&str]| {
        let options = iter::once(level).chain(options.iter().copied()).map(OsStr::new);
        CLANG.run(file, &args.iter().copied().chain(options).chain(files).collect::<Vec<_>>())?;
        LLVM_SPIRV.run(file, &[bitcode.as_os_str(), OsStr::new("-o"), module.as_os_str()])
    };
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    translate(level, &options).or_else(|error| match error {
        SourceError::Refused { tool, .. } if LLVM_SPIRV.names.contains(&tool) => {
            // A level that was asked for would win.
            let is_level = |option: &&str| option.starts_with("-O");
            let options: Vec<&str> = options.into_iter().filter(|o| !is_level(o)).collect();
            translate("-O0", &options)
        }
        error => Err(error),
    })?;
    Ok(read(&module)?)
}

fn read(module: &Path) -> Result<Vec<u8>, SourceError> {
    std::fs::read(module).map_err(|source| SourceError::Folder { source })
}

impl Tool {
    /// Runs the first of the names that is installed.
    fn run(&self, file: &Input, args: &[&OsStr]) -> Result<(), SourceError> {
        for &name in self.names {
            match Command::new(name).args(args).output() {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(SourceError::Tool { tool: name, source }),
                Ok(output) => return finished(file, name, output),
            }
        }
        let Tool { what, names: tools, package } = *self;
        Err(SourceError::NoTool { file: file.clone(), what, tools, package })
    }
}

fn finished(file: &Input, tool: &'static str, output: Output) -> Result<(), SourceError> {
    if output.status.success() {
        // Warnings; if standard error is closed, nobody reads them.
        let _ = io::stderr().write_all(&output.stderr);
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(SourceError::Refused { file: file.clone(), tool, message })
}
