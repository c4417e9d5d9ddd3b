//! Functions from CLIF text.
//!
//! [`TextFile::parse`] parses what Cranelift's own tools read and print: functions, comments, and the lines
//! `test`, `set`, `target` and `feature` before the functions. Every instruction gets its line and column as
//! its source place, so errors of the code generator and traps can name them. Names in the text are the
//! linker's: `%f` is `f`, `u0:1` is `u0:1`.
//!
//! The parser is Cranelift's reader. That one reports lines only, and asserts some properties that a text may
//! violate. So it gets the text with one token per line and without constructs known to make it panic; as the
//! last resort, its panics are caught and become errors about the text.
//!
//! ```
//! use harp_jit::text::TextFile;
//! use harp_jit::{CompileOptions, Module};
//!
//! let text = "function %f(i32) -> i32 {
//! block0(v0: i32):
//!     v1 = iadd v0, v0
//!     return v1
//! }";
//! let file = TextFile::parse(text, "f.clif")?;
//! let mut module = Module::new("harp32".parse()?, CompileOptions::default());
//! file.define(&mut module)?;
//! assert!(module.finish()?.function("f").is_some());
//!
//! let error = TextFile::parse(&text.replace("v0, v0", "v0, v7"), "f.clif").unwrap_err();
//! assert_eq!(error.to_string(), "f.clif:3:19: undefined operand value v7");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::borrow::Cow;
use std::ops::Range;
use std::panic;

use cranelift_codegen::entity::packed_option::ReservedValue;
use cranelift_codegen::ir::entities::AnyEntity;
use cranelift_codegen::ir::{
    ExternalName, Function, GlobalValueData, SigRef, Signature, UserFuncName,
};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Flags};
use cranelift_module::{FuncId, Linkage};
use cranelift_reader::{Details, ParseError, ParseOptions, parse_test};
use harp_isa::ArchId;
use hashbrown::HashMap;

mod data;
mod error;
mod tokens;
mod value;
mod words;

pub use data::TextData;
pub use error::{TextError, TextErrorKind};
pub use value::{Call, CallError, ValueError, parse_value};
pub use words::{argument_words, result_values};

/// The values of run commands in comments.
pub use cranelift_codegen::data_value::{DataValue, DisplayDataValues};
/// Run commands in comments.
pub use cranelift_reader::{Comparison, Invocation, RunCommand, parse_run_command};

use crate::function::CompiledFunction;
use crate::module::{DataAccess, Module, ModuleError};
use crate::options::CompileOptions;
use crate::precheck::{precheck_form, readable, verify};
use crate::source::{SourceMap, SourcePlace};
use tokens::Tokens;

/// The functions of a file and the rest of its contents.
#[derive(Clone, Debug)]
pub struct TextFile {
    functions: Vec<TextFunction>,
    data: Vec<TextData>,
    header: Vec<TextLine>,
    sources: SourceMap,
    /// The byte ranges, in the text, of functions and instructions.
    spans: HashMap<SourcePlace, Range<usize>>,
}

/// A function of a text.
#[derive(Clone, Debug)]
pub struct TextFunction {
    /// The linker's name.
    pub name: String,
    /// The function; its source locations are numbers of [`TextFile::sources`].
    pub func: Function,
    /// The place where the function begins.
    pub place: SourcePlace,
    /// The comments in the function and after it, up to the next function.
    pub comments: Vec<TextLine>,
}

/// A comment from its `;` on, or a line before the functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLine {
    /// The text without the line's end.
    pub text: String,
    /// The place where it begins.
    pub place: SourcePlace,
}

impl TextFile {
    /// Parses a text. Errors and traps name it as `file`.
    ///
    /// # Errors
    ///
    /// The first error in the text.
    pub fn parse(text: &str, file: &str) -> Result<TextFile, TextError> {
        Reader { text, file, lines: line_starts(text) }.read()
    }

    /// The functions in order.
    pub fn functions(&self) -> &[TextFunction] {
        &self.functions
    }

    /// The first function with this linker's name.
    pub fn function(&self, name: &str) -> Option<&TextFunction> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// The data that comments define: `; data: %name type value...`.
    pub fn data(&self) -> &[TextData] {
        &self.data
    }

    /// The lines `test`, `set`, `target` and `feature` before the functions.
    pub fn header(&self) -> &[TextLine] {
        &self.header
    }

    /// The source places that the functions' source locations refer to.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// Checks that a function is valid CLIF. Compiling it finds the same errors, but not their places.
    ///
    /// # Errors
    ///
    /// The first error of Cranelift's verifier.
    pub fn verify(&self, function: &TextFunction) -> Result<(), TextError> {
        let func = &function.func;
        let error = |place: &SourcePlace, message: String| TextError {
            place: place.clone(),
            span: self.spans.get(place).cloned().unwrap_or_default(),
            kind: TextErrorKind::Invalid { function: function.name.clone(), message },
        };
        let of_inst = |inst| self.sources.place(func.srcloc(inst));
        precheck_form(func).map_err(|(inst, message)| {
            error(inst.and_then(of_inst).unwrap_or(&function.place), message)
        })?;
        let flags = Flags::new(settings::builder());
        let Err(errors) = verify(func, &flags) else { return Ok(()) };
        let Some(first) = errors.0.first() else { return Ok(()) };
        let inst = match first.location {
            AnyEntity::Inst(inst) => Some(inst),
            AnyEntity::Block(block) if func.layout.is_block_inserted(block) => {
                func.layout.first_inst(block)
            }
            _ => None,
        };
        let place = inst.and_then(of_inst);
        Err(error(place.unwrap_or(&function.place), readable(&first.message)))
    }

    /// Declares and defines all functions and data in a module, all of them exported.
    ///
    /// # Errors
    ///
    /// If a name is defined twice or declared as something else, or if a function does not compile.
    pub fn define(&self, module: &mut Module) -> Result<(), ModuleError> {
        self.define_data(module)?;
        let ids = self.functions.iter().map(|function| {
            module.declare_function(&function.name, Linkage::Export, &function.func.signature)
        });
        let ids = ids.collect::<Result<Vec<FuncId>, _>>()?;
        for (&id, function) in ids.iter().zip(&self.functions) {
            let compiled = module.compile(id, &function.func, &self.sources)?;
            module.define_compiled(id, compiled)?;
        }
        Ok(())
    }

    /// Declares and defines the data in a module, all of it exported.
    ///
    /// # Errors
    ///
    /// If a name is defined twice or declared as something else.
    pub fn define_data(&self, module: &mut Module) -> Result<(), ModuleError> {
        for data in &self.data {
            let id = module.declare_data(&data.name, Linkage::Export, DataAccess::ReadWrite)?;
            module.define_data(id, &data.description())?;
        }
        Ok(())
    }

    /// Compiles one of the functions on its own, as [`define`](Self::define) does.
    ///
    /// # Errors
    ///
    /// If it does not compile.
    pub fn compile(
        &self,
        function: &TextFunction,
        arch: ArchId,
        options: &CompileOptions,
    ) -> Result<CompiledFunction, ModuleError> {
        let mut module = Module::new(arch, options.clone());
        let signature = &function.func.signature;
        let id = module.declare_function(&function.name, Linkage::Export, signature)?;
        module.compile(id, &function.func, &self.sources)
    }
}

/// The offsets at which the lines of a text begin.
fn line_starts(text: &str) -> Vec<usize> {
    let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
    [0].into_iter().chain(after_newlines).collect()
}

struct Reader<'a> {
    text: &'a str,
    file: &'a str,
    lines: Vec<usize>,
}

impl Reader<'_> {
    fn read(&self) -> Result<TextFile, TextError> {
        let tokens = Tokens::new(self.text).map_err(|(span, kind)| self.error(span, kind))?;
        // The reader takes the host's convention if the text says `test run`; it does not see that line.
        let options =
            ParseOptions { default_calling_convention: CallConv::Fast, ..ParseOptions::default() };
        let parsed = panic::catch_unwind(|| parse_test(&tokens.text, options));
        let parsed = match parsed {
            Ok(parsed) => parsed.map_err(|error| self.syntax(&tokens, error))?,
            Err(payload) => {
                let message = panic_message(payload.as_ref());
                return Err(self.error(0..0, TextErrorKind::Reader(message)));
            }
        };
        let mut file = TextFile {
            functions: Vec::new(),
            data: Vec::new(),
            header: tokens.header.iter().map(|span| self.line(span)).collect(),
            sources: SourceMap::new(),
            spans: HashMap::new(),
        };
        let mut starts = Vec::new();
        for (func, details) in parsed.functions {
            starts.push(tokens.span(details.location.line_number, self.text).start);
            self.function(&tokens, func, &details, &mut file)?;
        }
        for span in &tokens.comments {
            let line = self.line(span);
            if let Some(data) = TextData::parse(&line.text) {
                let data = data.map_err(|e| self.error(span.clone(), TextErrorKind::Data(e)))?;
                file.data.push(data);
            } else if let Some(index) = starts.partition_point(|&s| s < span.start).checked_sub(1) {
                file.functions[index].comments.push(line);
            }
        }
        Ok(file)
    }

    /// Adds a function, with source places for its instructions and resolved names.
    fn function(
        &self,
        tokens: &Tokens,
        mut func: Function,
        details: &Details<'_>,
        file: &mut TextFile,
    ) -> Result<(), TextError> {
        let insts: Vec<_> =
            func.layout.blocks().flat_map(|block| func.layout.block_insts(block)).collect();
        for inst in insts {
            if let Some(location) = details.map.location(inst.into()) {
                let span = tokens.span(location.line_number, self.text);
                let place = self.place(span.start);
                func.set_srcloc(inst, file.sources.intern(place.clone()));
                file.spans.insert(place, span);
            }
        }
        let span = tokens.span(details.location.line_number, self.text);
        let place = self.place(span.start);
        let name = linker_name(&func.name);
        if !plain_names(&mut func) {
            return Err(self.error(span, TextErrorKind::ExternalName { function: name }));
        }
        // The reader fills gaps in the numbers of functions with functions without a signature.
        if func.dfg.ext_funcs.values().any(|data| data.signature == SigRef::reserved_value()) {
            let nothing = func.import_signature(Signature::new(CallConv::Fast));
            for data in func.dfg.ext_funcs.values_mut() {
                if data.signature == SigRef::reserved_value() {
                    data.signature = nothing;
                }
            }
        }
        file.spans.insert(place.clone(), span);
        file.functions.push(TextFunction { name, func, place, comments: Vec::new() });
        Ok(())
    }

    fn line(&self, span: &Range<usize>) -> TextLine {
        TextLine { text: self.text[span.clone()].to_owned(), place: self.place(span.start) }
    }

    fn place(&self, at: usize) -> SourcePlace {
        let line = self.lines.partition_point(|&start| start <= at);
        let start = line.checked_sub(1).map_or(0, |index| self.lines[index]);
        let column = self.text[start..at].chars().count() + 1;
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        SourcePlace {
            file: Cow::Owned(self.file.to_owned()),
            line: number(line.max(1)),
            column: number(column),
        }
    }

    fn syntax(&self, tokens: &Tokens, error: ParseError) -> TextError {
        // Some errors concern an operand, but are placed at the instruction: the message ends with the
        // operand.
        let named = error.message.split(' ').next_back().unwrap_or_default();
        let span = tokens.named_on_line(error.location.line_number, named, self.text);
        self.error(span, TextErrorKind::Syntax(error.message))
    }

    fn error(&self, span: Range<usize>, kind: TextErrorKind) -> TextError {
        TextError { place: self.place(span.start), span, kind }
    }
}

fn linker_name(name: &UserFuncName) -> String {
    let text = name.to_string();
    text.strip_prefix('%').map_or(text.clone(), str::to_owned)
}

/// Turns names such as `u0:1` into plain ones, because in modules their numbers mean something else. Returns
/// false if a name has no number.
fn plain_names(func: &mut Function) -> bool {
    let users = func.params.user_named_funcs().clone();
    let plain = |name: &mut ExternalName| {
        let ExternalName::User(reference) = *name else { return true };
        let Some(user) = users.get(reference) else { return false };
        *name = ExternalName::testcase(user.to_string());
        true
    };
    let mut known = true;
    for data in func.dfg.ext_funcs.values_mut() {
        known &= plain(&mut data.name);
    }
    for data in func.global_values.values_mut() {
        if let GlobalValueData::Symbol { name, .. } = data {
            known &= plain(name);
        }
    }
    known
}

fn panic_message(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("it panicked").to_owned()
}
