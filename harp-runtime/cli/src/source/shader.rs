//! WGSL and GLSL, which naga turns into SPIR-V, if this command is built with it.

#[cfg(feature = "naga")]
pub(super) use with_naga::{from_glsl, from_wgsl};
#[cfg(not(feature = "naga"))]
pub(super) use without_naga::{from_glsl, from_wgsl};

#[cfg(feature = "naga")]
mod with_naga {
    use naga::back::spv::{self, DebugInfo, Options, SourceLanguage, WriterFlags};
    use naga::front::{glsl, wgsl};
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    use naga::{Module, ShaderStage};

    use super::super::super::files::Input;
    use super::super::SourceError;

    /// The module of a program in WGSL.
    pub(in super::super) fn from_wgsl(file: &Input, text: &str) -> Result<Vec<u8>, SourceError> {
        let module = wgsl::parse_str(text);
        let module = module
            .map_err(|error| refused(file, error.emit_to_string_with_path(text, &file.name())))?;
        written(file, text, &module, SourceLanguage::WGSL)
    }

    /// The module of a compute shader in GLSL.
    pub(in super::super) fn from_glsl(file: &Input, text: &str) -> Result<Vec<u8>, SourceError> {
        let module =
            glsl::Frontend::default().parse(&glsl::Options::from(ShaderStage::Compute), text);
        let module = module
            .map_err(|errors| refused(file, errors.emit_to_string_with_path(text, &file.name())))?;
        written(file, text, &module, SourceLanguage::GLSL)
    }

    fn refused(file: &Input, message: String) -> SourceError {
        SourceError::Refused { file: file.clone(), tool: "naga", message }
    }

    fn written(
        file: &Input,
        text: &str,
        module: &Module,
        language: SourceLanguage,
    ) -> Result<Vec<u8>, SourceError> {
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
        let info = validator.validate(module);
        let info = info
            .map_err(|error| refused(file, error.emit_to_string_with_path(text, &file.name())))?;
        let name = file.name();
        let debug_info = DebugInfo { source_code: text, file_name: &name, language };
        let options = Options {
            lang_version: (1, 3),
            flags: WriterFlags::DEBUG,
            debug_info: Some(debug_info),
            ..Options::default()
        };
        let words = spv::write_vec(module, &info, &options, None);
        let words = words.map_err(|error| refused(file, error.to_string()))?;
        Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
    }
}

#[cfg(not(feature = "naga"))]
mod without_naga {
    use super::super::super::files::Input;
    use super::super::SourceError;

    /// Says that WGSL cannot be read.
    pub(in super::super) fn from_wgsl(file: &Input, _: &str) -> Result<Vec<u8>, SourceError> {
        Err(SourceError::NoNaga { file: file.clone(), language: "WGSL" })
    }

    /// Says that GLSL cannot be read.
    pub(in super::super) fn from_glsl(file: &Input, _: &str) -> Result<Vec<u8>, SourceError> {
        Err(SourceError::NoNaga { file: file.clone(), language: "GLSL" })
    }
}
