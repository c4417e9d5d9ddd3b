//! Prints a line for each compilation of texts: what it is, and numbers that differ, all but certainly, if objects or
//! explanations do. What must not change anything is checked by comparing the lines of before and after.
//!
//! ```text
//! cargo run --release --example random -p harp-tests -- kernels --print --seed 7 --count 1 > texts/7.clif
//! cargo run --release --example fingerprints -p harp-tests -- texts tests/filetests > before
//! ```
//!
//! Texts of kernels say for which machines they are and what arguments they take, as `random` prints them, and are
//! compiled for these by every strategy. Functions of other texts are compiled for a few machines, for one lane and for
//! all.
#![expect(clippy::print_stdout, reason = "the result is for a shell")]

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use harp_isa::object::hof;
use harp_isa::{ArchId, Object};
use harp_jit::text::TextFile;
use harp_jit::{
    CompileError, CompileOptions, Compiler, DataAccess, DivergenceStrategy, Execution,
    KernelSource, Module, ModuleError, OptLevel, ParamType,
};
use harp_tests::oracle::{Argument, Case, Datum, Elements, Start};
use walkdir::WalkDir;

/// Machines of functions that do not say for which they are.
const MACHINES: [&str; 6] =
    ["harp32", "harp64+x", "4b8/2/8/2", "8w63/64/1/1", "4w24/12/32/16+x+s8/4", "8b8/8/64/2+s24/8"];

const STRATEGIES: [DivergenceStrategy; 4] = [
    DivergenceStrategy::SplitJoin,
    DivergenceStrategy::Predicate,
    DivergenceStrategy::Static,
    DivergenceStrategy::Adaptive,
];

/// Prints a line for each compilation of texts.
#[derive(Debug, Parser)]
struct Options {
    /// Files and folders with CLIF texts.
    #[arg(required = true)]
    texts: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let mut compilations = 0;
    for folder in &Options::parse().texts {
        let files = WalkDir::new(folder).sort_by_file_name().into_iter().filter_map(Result::ok);
        let texts = files.filter(|file| file.path().extension().is_some_and(|ext| ext == "clif"));
        for file in texts {
            let name = file.path().strip_prefix(folder).unwrap_or(file.path()).display();
            let text = fs::read_to_string(file.path()).unwrap_or_default();
            // The reader cannot tell the types of some values that are used above their definitions.
            let Ok(parsed) = TextFile::parse(&text, "text") else {
                println!("{name} cannot be read");
                continue;
            };
            let lines = match kernel(&text, &parsed) {
                Some(case) => kernel_lines(&case, &machines(&text)),
                None => function_lines(&parsed),
            };
            compilations += lines.len();
            lines.iter().for_each(|line| println!("{name} {line}"));
        }
    }
    println!("{compilations} compilations");
    if compilations == 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The machines that a text of a kernel names, with how much is optimized.
fn machines(text: &str) -> Vec<(ArchId, OptLevel)> {
    let machine = |line: &str| {
        let mut words = line.strip_prefix("; ")?.split(' ');
        let arch = words.next()?.parse().ok()?;
        let level = if words.next()? == "None" { OptLevel::None } else { OptLevel::Speed };
        Some((arch, level))
    };
    text.lines().filter_map(machine).collect()
}

/// The kernel of a text that says what arguments it takes.
fn kernel(text: &str, parsed: &TextFile) -> Option<Case> {
    let words = |line: &str| Some(line.strip_prefix("; argument ")?.split_once(": ")?.1.to_owned());
    let argument = |text: String| match text.split(' ').next() {
        Some("i32") => Argument::Scalar(ParamType::I32, 0),
        Some("i64") => Argument::Scalar(ParamType::I64, 0),
        Some("f32") => Argument::Scalar(ParamType::F32, 0),
        Some("f64") => Argument::Scalar(ParamType::F64, 0),
        _ => Argument::Buffer(Elements::Ints, Vec::new()),
    };
    let args: Vec<Argument> = text.lines().filter_map(words).map(argument).collect();
    let arch = machines(text).first()?.0;
    let data = parsed.data().iter();
    let data = data.map(|it| Datum::new(&it.name, it.bytes.clone(), DataAccess::ReadWrite));
    let functions = parsed.functions().iter().map(|function| function.func.clone()).collect();
    let start = Start::Launch { extents: [1, 1, 1], args };
    Some(Case { word: arch.word(), functions, data: data.collect(), start, waits: false })
}

fn kernel_lines(case: &Case, machines: &[(ArchId, OptLevel)]) -> Vec<String> {
    let mut lines = Vec::new();
    for &(arch, opt_level) in machines {
        for divergence in STRATEGIES {
            let options = CompileOptions { opt_level, divergence, ..CompileOptions::default() };
            let code = case
                .compile(arch, options.clone())
                .map(|it| object(it.kernel().expect("it is launched").object()));
            let Start::Launch { args, .. } = &case.start else { continue };
            let params: Vec<ParamType> = args.iter().map(Argument::ty).collect();
            let entry = case.functions[0].clone();
            let explained = KernelSource::from_function(entry, arch, &params)
                .map_err(CompileError::from)
                .and_then(|source| source.explain(&options))
                .map(|report| report.to_string());
            lines.push(line(&options, arch, &code, &explained));
        }
    }
    lines
}

fn function_lines(parsed: &TextFile) -> Vec<String> {
    let mut lines = Vec::new();
    for arch in MACHINES.map(|arch| arch.parse::<ArchId>().expect("a machine")) {
        for opt_level in [OptLevel::None, OptLevel::Speed] {
            for execution in [Execution::SingleLane, Execution::Simt] {
                let options = CompileOptions { opt_level, execution, ..CompileOptions::default() };
                let mut module = Module::new(arch, options.clone());
                let code = parsed.define(&mut module).and_then(|()| module.finish());
                let code = code.map(|code| object(code.object()));
                let compiler = Compiler::new(arch, options.clone());
                let explained: Result<String, CompileError> = parsed
                    .functions()
                    .iter()
                    .map(|it| compiler.explain_function(&it.func, parsed.sources()))
                    .map(|report| report.map(|report| report.to_string()))
                    .collect();
                lines.push(line(&options, arch, &code, &explained));
            }
        }
    }
    lines
}

/// The object's file.
fn object(object: &Object) -> Vec<u8> {
    hof::write(object).expect("what is compiled fits a file")
}

fn line(
    options: &CompileOptions,
    arch: ArchId,
    code: &Result<Vec<u8>, ModuleError>,
    explained: &Result<String, CompileError>,
) -> String {
    let CompileOptions { opt_level, divergence, execution, .. } = options;
    let code = code.as_ref().map_or_else(|_| 0, number);
    let explained = explained.as_ref().map_or_else(|_| 0, number);
    format!("{arch} {opt_level:?} {divergence:?} {execution:?} {code:016x} {explained:016x}")
}

fn number(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
