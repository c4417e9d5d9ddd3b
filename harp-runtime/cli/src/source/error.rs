//! Why a program does not become a kernel.

use harp_jit::{BuildError, ModuleError};
use harp_spirv::SpirvError;
use thiserror::Error;

use super::super::files::Input;

/// Why a program does not become a kernel.
#[derive(Debug, Error)]
pub(in super::super) enum SourceError {
    #[error("{file}: {message}")]
    Spirv { file: Input, message: String },
    #[error("{file} has no kernels")]
    NoKernels { file: Input },
    #[error("{file} has several kernels: choose one with `--kernel`: {}", names.join(", "))]
    SeveralKernels { file: Input, names: Vec<String> },
    #[error("{file} has no kernel `{name}`, but {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    NoSuchKernel { file: Input, name: String, known: Vec<String> },
    #[error("kernel `{kernel}`: parameter {number} is of type {ty}, which no argument has")]
    ParameterType { kernel: String, number: usize, ty: String },
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Compile(#[from] ModuleError),
    #[error("{file}: `{option}` is for SPIR-V, WGSL and GLSL")]
    NotSpirv { file: Input, option: &'static str },
    #[error("{file}: constants of SPIR-V have numbers, and `{constant}` is none")]
    NamedConstant { file: Input, constant: String },
    #[error(
        "{file}: {value} for constant {constant} needs a type, such as `{constant}=f32:{value}`"
    )]
    UntypedConstant { file: Input, constant: String, value: f64 },
    #[error("{file}: `--call` calls a function, and `harp run` runs kernels")]
    CallOfKernel { file: Input },
    #[error("{file}: `--cl-option` is for OpenCL C")]
    NotOpenCl { file: Input },
    #[error(
        "{file}: no compiler of OpenCL C was found: clang and llvm-spirv of the same version, or clang 22. Install one, for \
         example with `apt-get install clang-14 llvm-spirv-14`, or compile the program to SPIR-V elsewhere"
    )]
    NoCompiler { file: Input },
    #[error("cannot run `{tool}`")]
    Tool { tool: &'static str, source: std::io::Error },
    /// A tool has refused the program; what it says is shown as it is.
    #[error("{file}: `{tool}` refused it\n{}", message.trim_end())]
    Refused { file: Input, tool: &'static str, message: String },
    #[error("{file} must be a file: `{tool}` reads it")]
    StandardInput { file: Input, tool: &'static str },
    #[error("cannot make a folder for what clang writes")]
    Folder { source: std::io::Error },
    #[cfg_attr(
        feature = "naga",
        expect(dead_code, reason = "without naga it says that it is missing")
    )]
    #[error("{file}: this `harp` was built without the feature `naga`, which reads {language}")]
    NoNaga { file: Input, language: &'static str },
}

impl SourceError {
    pub(super) fn spirv(file: &Input, error: SpirvError) -> SourceError {
        SourceError::Spirv { file: file.clone(), message: error.to_string() }
    }
}
