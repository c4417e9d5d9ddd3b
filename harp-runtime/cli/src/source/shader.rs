//! WGSL and GLSL, which naga turns into SPIR-V, if this command is built with it.

#[cfg(feature = "naga")]
pub(super) use with_naga::{from_glsl, from_wgsl};
#[cfg(not(feature = "naga"))]
pub(super) use without_naga::{from_glsl, from_wgsl};

#[cfg(feature = "naga")]
mod with_naga {
    use std::borrow::Cow;

    use naga::back::pipeline_constants::process_overrides;
    use naga::back::spv::{self, DebugInfo, Options, SourceLanguage, WriterFlags};
    use naga::front::{glsl, wgsl};
    use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
    use naga::valid::{Capabilities, ValidationFlags, Validator};
    use naga::{Module, ShaderStage};

    use super::super::super::files::Input;
    use super::super::{Form, SourceError};

    /// The module of a program in WGSL, with values for its `override`s. An index out of bounds stays within its array, as
    /// WGSL says, but in a program as it is written, where checks are to find it.
    pub(in super::super) fn from_wgsl(
        file: &Input,
        text: &str,
        constants: Vec<(String, f64)>,
        form: Form,
    ) -> Result<Vec<u8>, SourceError> {
        let module = wgsl::parse_str(text);
        let module = module
            .map_err(|error| refused(file, error.emit_to_string_with_path(text, &file.name())))?;
        let policy = match form {
            Form::Optimized => BoundsCheckPolicy::Restrict,
            Form::AsWritten => BoundsCheckPolicy::Unchecked,
        };
        written(file, text, &module, constants, SourceLanguage::WGSL, policy)
    }

    /// The module of a compute shader in GLSL, with values for its specialization constants.
    pub(in super::super) fn from_glsl(
        file: &Input,
        text: &str,
        constants: Vec<(String, f64)>,
        _: Form,
    ) -> Result<Vec<u8>, SourceError> {
        let options = glsl::Options::from(ShaderStage::Compute);
        let module = glsl::Frontend::default().parse(&options, &of_known_version(text));
        let module = module.map_err(|errors| {
            let message = errors.emit_to_string_with_path(text, &file.name());
            refused(file, format!("{}\n{OTHER_COMPILER}", message.trim_end()))
        })?;
        let policy = BoundsCheckPolicy::Unchecked;
        written(file, text, &module, constants, SourceLanguage::GLSL, policy)
    }

    /// What to do about GLSL that naga does not read, such as operations of subgroups.
    const OTHER_COMPILER: &str = "help: glslc of shaderc reads more of GLSL: \
        `glslc -fshader-stage=compute FILE -o FILE.spv` makes a module to run";

    /// The versions with compute shaders that naga does not read. What they have is in version 4.50 as well.
    const OLDER: [&str; 6] = ["310 es", "320 es", "420", "420 core", "430", "430 core"];

    /// The same text, in places of the same numbers, in a version that naga reads.
    fn of_known_version(text: &str) -> Cow<'_, str> {
        let Some((before, rest)) = text.split_once("#version") else { return text.into() };
        let line = rest.lines().next().unwrap_or_default();
        if !OLDER.contains(&line.split_whitespace().collect::<Vec<_>>().join(" ").as_str()) {
            return text.into();
        }
        let (version, width) = (" 450", line.len());
        format!("{before}#version{version:width$}{}", &rest[width..]).into()
    }

    fn refused(file: &Input, message: String) -> SourceError {
        SourceError::Refused { file: file.clone(), tool: "naga", message }
    }

    fn written(
        file: &Input,
        text: &str,
        module: &Module,
        constants: Vec<(String, f64)>,
        language: SourceLanguage,
        policy: BoundsCheckPolicy,
    ) -> Result<Vec<u8>, SourceError> {
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
        let info = validator.validate(module);
        let info = info
            .map_err(|error| refused(file, error.emit_to_string_with_path(text, &file.name())))?;
        let constants = constants.into_iter().collect();
        let specialized = process_overrides(module, &info, None, &constants);
        let (module, info) = specialized.map_err(|error| refused(file, error.to_string()))?;
        let name = file.name();
        let debug_info = DebugInfo { source_code: text, file_name: &name, language };
        let options = Options {
            lang_version: (1, 3),
            flags: WriterFlags::DEBUG,
            debug_info: Some(debug_info),
            bounds_check_policies: BoundsCheckPolicies {
                index: policy,
                buffer: policy,
                binding_array: policy,
                ..BoundsCheckPolicies::default()
            },
            ..Options::default()
        };
        let words = spv::write_vec(&module, &info, &options, None);
        let words = words.map_err(|error| refused(file, error.to_string()))?;
        Ok(words.into_iter().flat_map(u32::to_le_bytes).collect())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn versions_with_compute_shaders_are_read() {
            let known = |text: &str| of_known_version(text).into_owned();
            assert_eq!(known("#version 310 es\nx"), "#version 450   \nx");
            assert_eq!(known("// a\n #version  430\r\nx"), "// a\n #version 450 \r\nx");
            assert_eq!(known("#version 430 core\n"), "#version 450     \n");
            for text in ["#version 460\n", "#version 300 es\n", "#version 330", "x", "#version"] {
                assert_eq!(known(text), text);
            }
        }
    }
}

#[cfg(not(feature = "naga"))]
mod without_naga {
    use super::super::super::files::Input;
    use super::super::{Form, SourceError};

    /// Says that WGSL cannot be read.
    pub(in super::super) fn from_wgsl(
        file: &Input,
        _: &str,
        _: Vec<(String, f64)>,
        _: Form,
    ) -> Result<Vec<u8>, SourceError> {
        Err(SourceError::NoNaga { file: file.clone(), language: "WGSL" })
    }

    /// Says that GLSL cannot be read.
    pub(in super::super) fn from_glsl(
        file: &Input,
        _: &str,
        _: Vec<(String, f64)>,
        _: Form,
    ) -> Result<Vec<u8>, SourceError> {
        Err(SourceError::NoNaga { file: file.clone(), language: "GLSL" })
    }
}
