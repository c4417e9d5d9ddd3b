//! `harp compile`: programs to any stage on the way to a bootable image.

use clap::{Args, ValueEnum};
use harp_isa::object::hof;
use harp_isa::{Object, link_named};
use harp_jit::ir::Signature;
use harp_jit::text::{Call, TextFile};
use harp_jit::{
    CompileError, CompileOptions, CompileStages, CompiledModule, Compiler, Execution, Module,
    ModuleError,
};

use super::Target;
use super::error::CliError;
use super::files::Output;
use super::options::CodeOptions;
use super::source::{ProgramFile, Source, SourceError};
use harp_filetest::STACK_BYTES;
use harp_jit::text::argument_words;
use harp_runtime::Program;

/// Compile functions from CLIF text, or kernels from SPIR-V
#[derive(Args)]
#[command(
    long_about = "Compile functions from CLIF text, or kernels from SPIR-V and what is compiled to it

Of a SPIR-V module the texts show all kernels or the one that `--kernel` names; object files and flat images are of one. They
are compiled for all lanes of a warp, and `harp run` runs them.

A file of CLIF text may hold several functions, which can call each other by name, and data that they refer to, in
comments `; data: %name type value...`. Functions are compiled for one lane of a warp, where divergence
does not arise, or, with `--execution simt`, for all of them. With `--kernel` the one that it names is compiled as `harp run`
does it: as a kernel, whose parameters are the launch's arguments.

With `--emit image --call '%f(3, 4)'` the result is an image that boots at address 0, calls the function
on one lane, prints each result as a line of hex digits on the console, and halts. All digits of a word
are printed; a result wider than a word, such as an i64 on a machine with 4-byte words, is printed word by
word, the lowest first. With `--execution simt` the function may start warps and lanes, by `spawn_warp` and
`call_par` of the runtime library. Without the extension (`+x`) the image holds base instructions only, and it is
padded with zeros up to the end of its stack. So any HARP machine runs it, also the original, whose memory
ends with the image. A trap in the function ends the run.",
    after_help = "Examples:
  harp compile -a harp32 --emit asm gcd.clif
  harp compile -a harp64+x gcd.clif -o gcd.hof
  harp compile -a harp32 --emit image --call '%gcd(12, 18)' gcd.clif -o gcd.bin
  harp compile -a harp32 --emit image --call '%half(-0x1.8p1)' -o - half.clif | harp emu -a harp32 -
  harp compile -a harp32 --emit asm --kernel saxpy saxpy.cl"
)]
pub(super) struct Compile {
    #[command(flatten)]
    program: ProgramFile,
    #[command(flatten)]
    target: Target,
    /// What to write
    #[arg(long, value_name = "WHAT", default_value = "hof")]
    emit: Emit,
    /// Where to write it; `-` is standard output [default: text to standard output, an object to
    /// FILE.hof, an image to FILE.bin]
    #[arg(short, long, value_name = "FILE")]
    output: Option<Output>,
    #[command(flatten)]
    code: CodeOptions,
    /// How many lanes of a warp run the code together [default: single-lane for CLIF text, simt for kernels]
    #[arg(long, value_name = "MODE")]
    execution: Option<Lanes>,
    /// The call that the image makes, such as '%f(3, -0x10, 0x1.8p0)'
    #[arg(long, value_name = "CALL", allow_hyphen_values = true, required_if_eq("emit", "image"))]
    call: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// CLIF as instructions are selected from it: optimized, legal for the machine
    Clif,
    /// Machine instructions before registers are allocated
    Vcode,
    /// Assembly text, which `harp asm` takes
    Asm,
    /// An object file, to be linked
    Hof,
    /// A flat image of the functions alone
    Bin,
    /// A bootable image that makes a call
    Image,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lanes {
    /// One, with any control flow
    SingleLane,
    /// All, as for functions that kernels call
    Simt,
}

impl Compile {
    pub(super) fn run(self) -> Result<(), CliError> {
        if self.call.is_some() && self.emit != Emit::Image {
            return Err(CliError::CallWithoutImage);
        }
        let output = self.output();
        output.spares([self.program.input()])?;
        let bytes = match self.program.load(self.target.arch)? {
            Source::Clif(file) if !self.program.names_kernel() => self.functions(&file)?,
            source => self.kernels(&source)?,
        };
        output.write(&bytes)
    }

    /// The functions of CLIF text.
    fn functions(&self, file: &TextFile) -> Result<Vec<u8>, CliError> {
        Ok(match self.emit {
            Emit::Clif => self.stages(file, |stages| stages.clif)?.into_bytes(),
            Emit::Vcode => self.stages(file, |stages| stages.vcode)?.into_bytes(),
            Emit::Asm => self.module(file)?.object().display_exact().to_string().into_bytes(),
            Emit::Hof => object_file(self.module(file)?.object())?,
            Emit::Bin => self.flat(self.module(file)?.object())?,
            Emit::Image => self.image(file)?,
        })
    }

    /// Kernels: text of those that were asked for, or code of one.
    fn kernels(&self, source: &Source) -> Result<Vec<u8>, CliError> {
        let arch = self.target.arch;
        let options = self.options(Lanes::Simt)?;
        let stages = |stage: fn(CompileStages) -> String| {
            let compiler = Compiler::new(arch, options.clone());
            let texts = self.program.kernels(source, arch)?.into_iter().map(|kernel| {
                let stages = kernel.look(|source| compiler.kernel_stages(source))?;
                stages.map(|stages| ending_in_newline(&stage(stages))).map_err(not_compiled)
            });
            Ok::<_, CliError>(texts.collect::<Result<Vec<_>, _>>()?.join("\n").into_bytes())
        };
        let kernel = || self.program.one_kernel(source, arch)?.compile(None, &options);
        Ok(match self.emit {
            Emit::Clif => stages(|stages| stages.clif)?,
            Emit::Vcode => stages(|stages| stages.vcode)?,
            Emit::Asm => kernel()?.object().display_exact().to_string().into_bytes(),
            Emit::Hof => object_file(kernel()?.object())?,
            Emit::Bin => self.flat(kernel()?.object())?,
            Emit::Image => {
                let file = self.program.input().clone();
                return Err(SourceError::CallOfKernel { file }.into());
            }
        })
    }

    fn output(&self) -> Output {
        match (&self.output, self.emit) {
            (Some(output), _) => output.clone(),
            (None, Emit::Clif | Emit::Vcode | Emit::Asm) => Output::Stdout,
            (None, Emit::Hof) => Output::beside(self.program.input(), "hof"),
            (None, Emit::Bin | Emit::Image) => Output::beside(self.program.input(), "bin"),
        }
    }

    fn options(&self, default: Lanes) -> Result<CompileOptions, CliError> {
        let execution = match self.execution.unwrap_or(default) {
            Lanes::SingleLane => Execution::SingleLane,
            Lanes::Simt => Execution::Simt,
        };
        let options = self.code.compile_options(execution)?;
        let stack_bytes = match (self.emit, execution) {
            (Emit::Image, Execution::SingleLane) => STACK_BYTES,
            _ => options.stack_bytes,
        };
        Ok(CompileOptions { stack_bytes, ..options })
    }

    fn stages(
        &self,
        file: &TextFile,
        stage: impl Fn(CompileStages) -> String,
    ) -> Result<String, CliError> {
        let compiler = Compiler::new(self.target.arch, self.options(Lanes::SingleLane)?);
        let texts = file.functions().iter().map(|function| {
            compiler
                .stages(&function.func, file.sources())
                .map(|stages| ending_in_newline(&stage(stages)))
                .map_err(not_compiled)
        });
        Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
    }

    fn module(&self, file: &TextFile) -> Result<CompiledModule, CliError> {
        let mut module = Module::new(self.target.arch, self.options(Lanes::SingleLane)?);
        let defined = file.define(&mut module);
        defined.and_then(|()| module.finish()).map_err(|source| CliError::Compile { source })
    }

    fn flat(&self, object: &Object) -> Result<Vec<u8>, CliError> {
        Ok(link_named(&[(self.program.input().name().as_str(), object)], 0)?.bytes)
    }

    fn image(&self, file: &TextFile) -> Result<Vec<u8>, CliError> {
        let text = self.call.as_deref().expect("clap asks for it");
        let signature = |name: &str| Some(&file.function(name)?.func.signature);
        let call = Call::parse(text, signature).map_err(|source| CliError::Call { source })?;
        let signature: &Signature = signature(&call.name).expect("the call has one");
        let module = self.module(file)?;
        let program = Program::printing(&module, &call.name, signature)
            .map_err(|source| CliError::Program { source })?;
        let word = self.target.arch.word();
        let words = argument_words(&call.args, &signature.params, word);
        let image = program.image(&words).map_err(|source| CliError::Program { source })?;
        let mut bytes = image.bytes;
        // The stack lies above the image, and the original machine's memory ends with the file.
        bytes.resize(program.memory_bytes() as usize, 0);
        Ok(bytes)
    }
}

fn object_file(object: &Object) -> Result<Vec<u8>, CliError> {
    hof::write(object).map_err(|source| CliError::WriteObject { source })
}

fn not_compiled(source: CompileError) -> CliError {
    CliError::Compile { source: ModuleError::Compile(source) }
}

fn ending_in_newline(text: &str) -> String {
    format!("{}\n", text.trim_end())
}
