//! Functions that call each other: one lane of a machine against cranelift-interpreter.
//!
//! The interpreter runs the CLIF as it was written; the machine runs what the code generator made of
//! it, with all checks on. Names in CLIF are the linker's.

use std::slice;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{AbiParam, Function, TrapCode, Type, types};
use cranelift_interpreter::environment::FunctionStore;
use cranelift_interpreter::interpreter::{Interpreter, InterpreterState};
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap};
use harp_isa::{ArchId, WordSize};
use harp_jit::text::{argument_words, result_values};
use harp_jit::{CompileOptions, CompiledModule, Execution, Linkage, Module, ModuleError};
use harp_runtime::{Program, ProgramError};

/// Instructions that a call may take.
const FUEL: u64 = 50_000_000;

/// What a call came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Result {
    /// It returned these values.
    Values(Vec<DataValue>),
    /// It trapped.
    Trap(TrapCode),
}

/// Options for code that runs on warps, with all checks on: of each stage, and of what comes out.
pub fn checked() -> CompileOptions {
    CompileOptions { verify: true, check_code: true, ..CompileOptions::default() }
}

/// Options for code that runs on one lane, with the checks of each stage on.
pub fn single_lane() -> CompileOptions {
    CompileOptions { execution: Execution::SingleLane, verify: true, ..CompileOptions::default() }
}

/// The functions of a text in which `word` stands for the machine's integer. Panics if it is no CLIF.
pub fn parse(word: WordSize, text: &str) -> Vec<Function> {
    let text = text.replace("word", &word_type(word).to_string());
    cranelift_reader::parse_functions(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A module of these functions, all exported, in which the names after `%` are declared and defined
/// in order. Fails if one of them does not compile.
pub fn module(
    functions: &[Function],
    arch: ArchId,
    options: &CompileOptions,
) -> std::result::Result<Module, ModuleError> {
    let mut module = Module::new(arch, options.clone());
    let mut ids = Vec::new();
    for func in functions {
        ids.push(module.declare_function(&name(func), Linkage::Export, &func.signature)?);
    }
    for (&id, func) in ids.iter().zip(functions) {
        module.define_function(id, func)?;
    }
    Ok(module)
}

/// The [`module`] of these functions, finished. Panics if one of them does not compile.
pub fn compiled(functions: &[Function], arch: ArchId, options: &CompileOptions) -> CompiledModule {
    let finished = module(functions, arch, options).and_then(Module::finish);
    finished.unwrap_or_else(|error| panic!("{arch}: {error}"))
}

/// The linker's name of a function from CLIF text.
pub fn name(func: &Function) -> String {
    func.name.to_string().trim_start_matches('%').to_owned()
}

/// What cranelift-interpreter says about a call of the function named `entry`.
/// Panics if the interpreter cannot run it.
pub fn expected(functions: &[Function], entry: &str, args: &[DataValue]) -> Result {
    let mut store = FunctionStore::default();
    for func in functions {
        store.add(func.name.to_string(), func);
    }
    let state = InterpreterState::default().with_function_store(store);
    let mut interpreter = Interpreter::new(state).with_fuel(Some(FUEL));
    let flow = interpreter.call_by_name(&format!("%{entry}"), args);
    match flow.unwrap_or_else(|error| panic!("the interpreter at %{entry}: {error}")) {
        ControlFlow::Return(values) => Result::Values(values.into_iter().collect()),
        ControlFlow::Trap(CraneliftTrap::User(code)) => Result::Trap(code),
        other => panic!("the interpreter at %{entry}: {other:?}"),
    }
}

/// What the machine does in a call of the function named `entry`.
/// Fails if the program does not link, or stops otherwise than by a `trap` with a code.
pub fn observed(
    module: &CompiledModule,
    functions: &[Function],
    entry: &str,
    args: &[DataValue],
) -> std::result::Result<Result, ProgramError> {
    let found = functions.iter().find(|func| name(func) == entry);
    let func = found.ok_or_else(|| ProgramError::NoFunction { name: entry.to_owned() })?;
    let word = module.object().arch.word();
    let words: Vec<u64> = args.iter().flat_map(|value| words_of(value, word)).collect();
    let program = Program::new(module, entry, &func.signature)?;
    match program.call(&words, Some(FUEL)) {
        Ok(outcome) => {
            Ok(Result::Values(result_values(&outcome.results, &func.signature.returns, word)))
        }
        Err(ProgramError::Trap(trap)) => {
            let code = trap.trap_code.as_deref().and_then(|code| code.parse().ok());
            let divides = trap.trap.kind == harp_emu::TrapKind::DivideByZero;
            let code = code.or(divides.then_some(TrapCode::INTEGER_DIVISION_BY_ZERO));
            code.map(Result::Trap).ok_or(ProgramError::Trap(trap))
        }
        Err(error) => Err(error),
    }
}

/// The words of an argument, the lowest first. The upper bits of a narrow one are noise.
pub(crate) fn words_of(value: &DataValue, word: WordSize) -> Vec<u64> {
    let noise = u64::MAX.checked_shl(value.ty().bits()).unwrap_or(0) & 0xa5a5_a5a5_a5a5_a5a5;
    let mut words = argument_words(slice::from_ref(value), &[AbiParam::new(value.ty())], word);
    words[0] |= noise & word.mask();
    words
}

/// The integer type of a machine's word.
pub fn word_type(word: WordSize) -> Type {
    match word {
        WordSize::Four => types::I32,
        WordSize::Eight => types::I64,
    }
}

/// The low bits of a value as the machine's word.
pub fn word(arch: ArchId, value: i64) -> DataValue {
    match arch.word() {
        WordSize::Four => DataValue::I32(value as i32),
        WordSize::Eight => DataValue::I64(value),
    }
}
