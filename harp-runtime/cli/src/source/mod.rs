//! Programs in files: whatever the language, they come in as CLIF text or as a SPIR-V module.

mod error;
mod kernel;
mod opencl;
mod shader;
mod specialization;

use std::ffi::OsStr;
use std::path::Path;

use clap::Args;
use harp_isa::ArchId;
use harp_isa::asm::Colors;
use harp_jit::text::{TextError, TextFile};
use harp_spirv::SpirvModule;

pub(super) use error::SourceError;
pub(super) use kernel::{KernelOf, Named, Parameter, Takes};

use super::error::CliError;
use super::files::Input;
use specialization::Specialization;

/// The word with which a SPIR-V module begins.
const SPIRV_MAGIC: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// A program, and how it is made ready for the code generator.
#[derive(Args)]
pub(super) struct ProgramFile {
    /// The program: SPIR-V (.spv), CLIF text (.clif), OpenCL C (.cl) or C++ for OpenCL (.clcpp; by clang, which
    /// must be installed, and llvm-spirv up to version 21), WGSL (.wgsl) or GLSL (.glsl, .comp); `-` is standard input, with SPIR-V or CLIF
    #[arg(value_name = "FILE")]
    file: Input,
    /// The kernel, if the program has several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Give a specialization constant of SPIR-V or GLSL or an `override` of WGSL a value, by its number or else its name, such as
    /// `0=64`, `3=true`, `1=f32:0.5` or `size=64`; may be given several times
    #[arg(long, value_name = "CONSTANT=VALUE", value_parser = Specialization::parse)]
    spec: Vec<Specialization>,
    /// Pass an option to the compiler of OpenCL C, such as `-DSIZE=16`; may be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    cl_option: Vec<String>,
}

/// How near to its text a program is translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Optimized,
    /// With all accesses to memory that the program has, for checks. What is not written before it is read, say, compilers
    /// take for whatever suits them.
    AsWritten,
}

/// Makes a SPIR-V module of the text of a shader, with values for its constants.
type Translate = fn(&Input, &str, Vec<(String, f64)>, Form) -> Result<Vec<u8>, SourceError>;

/// A program that was read.
pub(super) enum Source {
    /// Functions, all of them verified.
    Clif(TextFile),
    /// Kernels, and functions that they call.
    Spirv(Box<SpirvModule>),
}

/// The languages of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Clif,
    Spirv,
    /// By the standard of the language that clang is told.
    OpenCl(&'static str),
    Wgsl,
    Glsl,
}

impl ProgramFile {
    /// The file.
    pub(super) fn input(&self) -> &Input {
        &self.file
    }

    /// Reads the program, and compiles it to SPIR-V if it is in another language than this and CLIF.
    pub(super) fn load(&self, arch: ArchId) -> Result<Source, CliError> {
        self.load_in(Form::Optimized, arch)
    }

    /// The same with all accesses to memory that the program has, for checks.
    pub(super) fn load_as_written(&self, arch: ArchId) -> Result<Source, CliError> {
        Ok(match self.load_in(Form::AsWritten, arch)? {
            Source::Spirv(module) => Source::Spirv(Box::new(module.with_variables_in_memory())),
            clif @ Source::Clif(_) => clif,
        })
    }

    fn load_in(&self, form: Form, arch: ArchId) -> Result<Source, CliError> {
        let language = self.language();
        if let Some(Language::OpenCl(standard)) = language {
            // Options of the command line may say something else.
            let level = match form {
                Form::Optimized => "-O2",
                Form::AsWritten => "-O0",
            };
            let bytes = opencl::compile(&self.file, arch, standard, level, &self.cl_option)?;
            return self.spirv(&bytes);
        }
        if !self.cl_option.is_empty() {
            return Err(SourceError::NotOpenCl { file: self.file.clone() }.into());
        }
        match language {
            Some(Language::Wgsl) => self.shader(shader::from_wgsl, form),
            Some(Language::Glsl) => self.shader(shader::from_glsl, form),
            Some(Language::Clif) => self.clif(self.file.read()?),
            Some(Language::Spirv) => self.spirv(&self.file.read()?),
            _ => {
                let bytes = self.file.read()?;
                match bytes.starts_with(&SPIRV_MAGIC) {
                    true => self.spirv(&bytes),
                    false => self.clif(bytes),
                }
            }
        }
    }

    /// The language by the file's name; none if its contents must tell.
    fn language(&self) -> Option<Language> {
        let Input::File(path) = &self.file else { return None };
        Some(match Path::new(path).extension().and_then(OsStr::to_str)? {
            "spv" => Language::Spirv,
            "clif" => Language::Clif,
            "cl" => Language::OpenCl("-cl-std=CL1.2"),
            "clcpp" => Language::OpenCl("-cl-std=clc++"),
            "wgsl" => Language::Wgsl,
            "glsl" | "comp" => Language::Glsl,
            _ => return None,
        })
    }

    /// A program in a language that naga reads, which also gives its constants their values.
    fn shader(&self, translate: Translate, form: Form) -> Result<Source, CliError> {
        let constants = self.spec.iter().map(Specialization::of_shader).collect();
        let bytes = translate(&self.file, &self.file.read_text()?, constants, form)?;
        self.module(&bytes, &[])
    }

    fn spirv(&self, bytes: &[u8]) -> Result<Source, CliError> {
        let constants = self.spec.iter().map(|constant| constant.of_spirv(&self.file));
        self.module(bytes, &constants.collect::<Result<Vec<_>, _>>()?)
    }

    fn module(&self, bytes: &[u8], constants: &[(u32, u64)]) -> Result<Source, CliError> {
        let module = SpirvModule::parse_specialized(bytes, constants);
        let module = module.map_err(|error| SourceError::spirv(&self.file, error))?;
        Ok(Source::Spirv(Box::new(module)))
    }

    fn clif(&self, bytes: Vec<u8>) -> Result<Source, CliError> {
        if !self.spec.is_empty() {
            return Err(SourceError::NotSpirv { file: self.file.clone(), option: "--spec" }.into());
        }
        let text = self.file.text(bytes)?;
        let rendered =
            |error: TextError| CliError::Rendered { text: error.render(&text, Colors::Ansi) };
        let file = TextFile::parse(&text, &self.file.name()).map_err(rendered)?;
        for function in file.functions() {
            file.verify(function).map_err(rendered)?;
        }
        Ok(Source::Clif(file))
    }

    /// Whether a kernel was asked for: of CLIF text then that function, as a kernel, instead of all functions as such.
    pub(super) fn names_kernel(&self) -> bool {
        self.kernel.is_some()
    }
}
