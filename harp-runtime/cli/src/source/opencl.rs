//! OpenCL C and C++ for OpenCL, which clang turns into SPIR-V, alone or with llvm-spirv, if they are installed.

use std::env::{self, consts};
use std::io::{self, Write};
use std::iter;
use std::path::Path;
use std::process::Command;

use harp_isa::{ArchId, WordSize};
use tempfile::TempDir;

use super::super::error::CliError;
use super::super::files::Input;
use super::SourceError;

/// Programs of the host that make SPIR-V of OpenCL C.
#[derive(Clone, Copy)]
struct Tools {
    clang: &'static str,
    /// What translates clang's code; none if clang does that itself.
    translator: Option<&'static str>,
}

/// The tools, in the order in which they are looked for. Those that this was tested with most come first. Of clang's own
/// translations, those of version 22 were tested.
const TOOLS: [Tools; 5] = [
    Tools { clang: "clang-14", translator: Some("llvm-spirv-14") },
    Tools { clang: "clang-15", translator: Some("llvm-spirv-15") },
    Tools { clang: "clang", translator: Some("llvm-spirv") },
    Tools { clang: "clang-22", translator: None },
    Tools { clang: "clang", translator: None },
];

/// Extensions of SPIR-V that clang may use in its own translations, beside what is in its core.
const EXTENSIONS: &str = "-spirv-ext=+SPV_EXT_relaxed_printf_string_address_space,\
    +SPV_EXT_shader_atomic_float_add,+SPV_EXT_shader_atomic_float_min_max,+SPV_KHR_bit_instructions,\
    +SPV_INTEL_subgroups";

/// Those that translators may use. For others they leave calls of functions, whose names are known.
const TRANSLATED: &str = "-spirv-ext=+SPV_INTEL_subgroups";

/// The module of a program for a machine with words of this size, without unsupported constructs of newer versions of the
/// language. What the compiler warns about goes to standard error.
///
/// The program is in the language of the last option that says so, at first `standard`, and is optimized at the level of the
/// last option that says so, at first `level`.
///
/// Some optimized code cannot be translated: llvm-spirv refuses `freeze`, which clang makes where a quotient and its remainder
/// are used, and integers of odd widths. Then the program is compiled without optimization, whatever the options ask for.
pub(super) fn compile(
    file: &Input,
    arch: ArchId,
    standard: &str,
    level: &str,
    options: &[String],
) -> Result<Vec<u8>, CliError> {
    let Input::File(source) = file else {
        return Err(SourceError::StandardInput { file: file.clone(), tool: "clang" }.into());
    };
    // A missing file is reported as for all others.
    file.read()?;
    let tools = Tools::installed(file)?;
    let target = match (arch.word(), tools.translator) {
        (WordSize::Four, Some(_)) => "spir",
        (WordSize::Eight, Some(_)) => "spir64",
        (WordSize::Four, None) => "spirv32-unknown-unknown",
        (WordSize::Eight, None) => "spirv64-unknown-unknown",
    };
    let folder = TempDir::new().map_err(|source| SourceError::Folder { source })?;
    let module = folder.path().join("program.spv");
    let fixed = ["-c", "-target", target, standard];
    let mut given = options.iter().map(String::as_str).rev();
    let asked = given.find(|option| option.starts_with("-cl-std=")).unwrap_or(standard);
    let is_cpp = asked.to_ascii_lowercase().contains("c++");
    // Functions that are just `inline` have no code in C99; programs expect that of OpenCL's compilers, where they have it.
    let inline = (!is_cpp).then_some("-fgnu89-inline");
    // Programs look at the same memory by pointers to other types, and OpenCL's compilers let them.
    let aliases = ["-fno-strict-aliasing"];
    // For the names of parameters, and for places in messages.
    let names = ["-fno-discard-value-names", "-gline-tables-only"];
    let header = ["-Xclang", "-finclude-default-header"];
    let code = match tools.translator {
        Some(_) => &["-emit-llvm"][..],
        None => &["-mllvm", EXTENSIONS],
    };
    let args = fixed.iter().chain(&inline).chain(&aliases).chain(&names).chain(&header).chain(code);
    let args: Vec<&str> = args.copied().collect();
    let translate = |level: &str, options: &[&str]| {
        let args = args.iter().copied().chain([level]).chain(options.iter().copied());
        tools.run(file, &args.collect::<Vec<_>>(), source, &module)
    };
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    translate(level, &options).or_else(|error| match error {
        SourceError::Refused { tool, message, .. } if tools.is_translation(tool, &message) => {
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

impl Tools {
    /// The first tools that are installed.
    fn installed(file: &Input) -> Result<Tools, SourceError> {
        let is_there =
            |tools: &Tools| iter::once(tools.clang).chain(tools.translator).all(is_installed);
        let missing = || SourceError::NoCompiler { file: file.clone() };
        TOOLS.into_iter().find(is_there).ok_or_else(missing)
    }

    /// Makes a `module` of a program.
    fn run(
        self,
        file: &Input,
        args: &[&str],
        source: &Path,
        module: &Path,
    ) -> Result<(), SourceError> {
        let clang = |to: &Path| {
            let mut command = Command::new(self.clang);
            run(file, self.clang, command.args(args).arg(source).arg("-o").arg(to))
        };
        let Some(translator) = self.translator else { return clang(module) };
        let bitcode = module.with_extension("bc");
        clang(&bitcode)?;
        let mut command = Command::new(translator);
        run(file, translator, command.arg(TRANSLATED).arg(&bitcode).arg("-o").arg(module))
    }

    /// Whether it was the translation that failed, by what a tool said.
    fn is_translation(self, tool: &str, message: &str) -> bool {
        match self.translator {
            Some(translator) => tool == translator,
            None => message.contains("error in backend"),
        }
    }
}

/// Whether a program of this name is in one of the folders where programs are looked for.
fn is_installed(name: &str) -> bool {
    let name = format!("{name}{}", consts::EXE_SUFFIX);
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .any(|folder| !folder.as_os_str().is_empty() && folder.join(&name).is_file())
}

fn run(file: &Input, tool: &'static str, command: &mut Command) -> Result<(), SourceError> {
    let output = command.output().map_err(|source| SourceError::Tool { tool, source })?;
    if output.status.success() {
        // Warnings; if standard error is closed, nobody reads them.
        let _ = io::stderr().write_all(&output.stderr);
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(SourceError::Refused { file: file.clone(), tool, message })
}
