//! Programs in files: whatever the language, they come in as CLIF text or as a SPIR-V module.

mod error;
mod kernel;
mod opencl;
mod shader;

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
use super::numbers::number;
use super::values::{Element, ValueError};

/// The word with which a SPIR-V module begins.
const SPIRV_MAGIC: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// A program, and how it is made ready for the code generator.
#[derive(Args)]
pub(super) struct ProgramFile {
    /// The program: SPIR-V (.spv), CLIF text (.clif), OpenCL C (.cl, by clang and llvm-spirv, which must be installed), WGSL
    /// (.wgsl) or GLSL (.glsl, .comp); `-` is standard input, with SPIR-V or CLIF
    #[arg(value_name = "FILE")]
    file: Input,
    /// The kernel, if the program has several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Give a specialization constant of SPIR-V a value, such as `0=64`, `3=true` or `1=f32:0.5`; may be given several times
    #[arg(long, value_name = "ID=VALUE", value_parser = specialization)]
    spec: Vec<(u32, u64)>,
    /// Pass an option to the compiler of OpenCL C, such as `-DSIZE=16`; may be given several times
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    cl_option: Vec<String>,
}

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
    OpenCl,
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
        let language = self.language();
        if language == Some(Language::OpenCl) {
            return self.spirv(&opencl::compile(&self.file, arch, &self.cl_option)?);
        }
        if !self.cl_option.is_empty() {
            return Err(SourceError::NotOpenCl { file: self.file.clone() }.into());
        }
        match language {
            Some(Language::Wgsl) => {
                self.spirv(&shader::from_wgsl(&self.file, &self.file.read_text()?)?)
            }
            Some(Language::Glsl) => {
                self.spirv(&shader::from_glsl(&self.file, &self.file.read_text()?)?)
            }
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
            "cl" => Language::OpenCl,
            "wgsl" => Language::Wgsl,
            "glsl" | "comp" => Language::Glsl,
            _ => return None,
        })
    }

    fn spirv(&self, bytes: &[u8]) -> Result<Source, CliError> {
        let module = SpirvModule::parse_specialized(bytes, &self.spec);
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

/// A specialization constant: its number and the bits of its value.
fn specialization(text: &str) -> Result<(u32, u64), SpecializationError> {
    let wrong = || SpecializationError::Form;
    let (id, value) = text.split_once('=').ok_or_else(wrong)?;
    let id = number(id).ok().and_then(|id| u32::try_from(id).ok()).ok_or_else(wrong)?;
    let (element, value) = match value.split_once(':') {
        Some((name, value)) => (Element::named(name).ok_or_else(wrong)?, value),
        None => (Element::I64, value),
    };
    let bits = match value {
        "true" => 1,
        "false" => 0,
        value => element.parse(value)?,
    };
    Ok((id, bits))
}

/// Why a text is not the value of a specialization constant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum SpecializationError {
    #[error("expected the number of a constant and its value, such as 0=64, 3=true or 1=f32:0.5")]
    Form,
    #[error(transparent)]
    Value(#[from] ValueError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specialization_constants_have_numbers_and_values() {
        assert_eq!(specialization("0=64"), Ok((0, 64)));
        assert_eq!(specialization("7=-1"), Ok((7, u64::MAX)));
        assert_eq!(specialization("3=true"), Ok((3, 1)));
        assert_eq!(specialization("1=f32:0.5"), Ok((1, 0.5_f32.to_bits().into())));
        for text in ["", "5", "x=5", "5=x", "5=f31:1", "-1=0", "1=i8:300"] {
            assert!(specialization(text).is_err(), "{text}");
        }
    }
}
