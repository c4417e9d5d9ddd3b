//! A module of functions and data with a call of one of them, and the two ways to carry that out.
//!
//! cranelift-interpreter runs the CLIF as it was made; one lane of a machine runs what the code
//! generator made of it. What must agree is how the call ends and what the data hold then, also after a
//! trap. Addresses differ between the two, so functions must not let one of them reach a result or
//! memory. Neither specifies the bits of a NaN that an operation makes, so NaNs among the results are
//! made equal, and functions must not turn a NaN's bits into anything else.

use std::fmt;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Function, TrapCode, types};
use harp_emu::{Machine, MachineConfig, MachineError, Memory, MemoryError, Stats, Trap, TrapKind};
use harp_isa::{ArchId, Image, WordSize};
use harp_jit::{
    CompileOptions, CompileStats, CompiledModule, DataAccess, DataDescription, DataId, FuncId,
    KernelSource, Linkage, Module, ModuleError, OptLevel, SourceMap,
};
use harp_runtime::{Program, ProgramError};
use thiserror::Error;

use super::{OracleError, Stop};
use crate::functions::{name, single_lane, value_of, words_of};

mod interpret;
#[cfg(test)]
mod tests;

pub use interpret::{Executed, Trace};
pub(super) use interpret::{Order, Warps, interpret_items};

/// Instructions that the machine may take: far more than a call that the interpreter finishes needs.
const FUEL: u64 = 200_000_000;

/// The stack of the call.
const STACK_BYTES: u32 = 1 << 20;

/// What an address in data is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Address {
    /// The function with this index.
    Function(usize),
    /// The datum with this index.
    Datum(usize),
}

/// A datum of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// The linker's name.
    pub name: String,
    /// The initial contents.
    pub bytes: Vec<u8>,
    /// Whether functions may write it.
    pub access: DataAccess,
    /// The offsets of words that hold addresses.
    pub addresses: Vec<(usize, Address)>,
}

/// A module and a call of its first function. Names in CLIF are the linker's.
#[derive(Clone, Debug)]
pub struct ModuleCase {
    /// The word of the machines that it can run on.
    pub word: WordSize,
    /// The functions; the first one is called.
    pub functions: Vec<Function>,
    /// The data.
    pub data: Vec<Datum>,
    /// The arguments of the call.
    pub args: Vec<DataValue>,
}

/// How a call ends. Values are equal if their bits are.
#[derive(Clone, Debug)]
pub enum Ending {
    /// The results. All NaNs of a type are the same.
    Values(Vec<DataValue>),
    /// A trap.
    Trap(Stop),
}

impl PartialEq for Ending {
    fn eq(&self, other: &Ending) -> bool {
        match (self, other) {
            (Ending::Values(values), Ending::Values(others)) => {
                values.len() == others.len()
                    && values.iter().zip(others).all(|(value, other)| value.bitwise_eq(other))
            }
            (Ending::Trap(stop), Ending::Trap(other)) => stop == other,
            _ => false,
        }
    }
}

/// What a call does.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// How it ends.
    pub ending: Ending,
    /// What the data hold then that functions may write, in order.
    pub data: Vec<Vec<u8>>,
}

/// A case that was compiled.
#[derive(Debug)]
pub struct CompiledCase {
    /// The module.
    pub module: CompiledModule,
    /// What compiling each function came to.
    pub stats: Vec<CompileStats>,
}

/// Why a case did not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ModuleCaseError {
    /// The module did not compile.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// The oracle failed.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// The module does not link.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// There is no memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There is no machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The machine stopped for a reason that is none of CLIF's.
    #[error("the machine stopped: {0}")]
    Trap(Box<Trap>),
}

impl ModuleCase {
    /// What the interpreter says, and which instructions it executed.
    ///
    /// # Errors
    ///
    /// If the case holds something that the oracle does not know, or does not end.
    pub fn expected(&self) -> Result<(Effect, Executed), OracleError> {
        interpret::interpret(self, 0xd5)
    }

    /// Whether what the call does is the same whatever stack slots hold before they are written.
    pub fn is_determined(&self) -> bool {
        let [one, other] = [0xd5, 0x3a].map(|fill| interpret::interpret(self, fill).ok());
        one.is_some() && one == other
    }

    /// Compiles the module for one lane, with all checks.
    ///
    /// # Errors
    ///
    /// If it does not compile.
    pub fn compile(
        &self,
        arch: ArchId,
        opt_level: OptLevel,
    ) -> Result<CompiledCase, ModuleCaseError> {
        let options = CompileOptions { opt_level, stack_bytes: STACK_BYTES, ..single_lane() };
        let (module, stats) = self.build(arch, options, None, None)?;
        Ok(CompiledCase { module: module.finish()?, stats })
    }

    /// The data and all functions but the kernel, compiled, these with options of their own if there are some;
    /// and what compiling each of them came to. A kernel is the first function, and what calls tell about
    /// arguments and results is found out before.
    pub(super) fn build(
        &self,
        arch: ArchId,
        options: CompileOptions,
        kernel: Option<&KernelSource>,
        of_functions: Option<CompileOptions>,
    ) -> Result<(Module, Vec<CompileStats>), ModuleError> {
        let (mut module, functions) = self.begin(arch, options, kernel)?;
        let compiler = match of_functions {
            Some(options) => Some(self.begin(arch, options, kernel)?.0),
            None => None,
        };
        let mut stats = Vec::new();
        let first = usize::from(kernel.is_some());
        for (func, &id) in self.functions[first..].iter().zip(&functions) {
            let compiler = compiler.as_ref().unwrap_or(&module);
            let compiled = compiler.compile(id, func, &SourceMap::new())?;
            stats.push(compiled.stats());
            module.define_compiled(id, compiled)?;
        }
        Ok((module, stats))
    }

    /// A module with the data, in which no function has a body yet.
    fn begin(
        &self,
        arch: ArchId,
        options: CompileOptions,
        kernel: Option<&KernelSource>,
    ) -> Result<(Module, Vec<FuncId>), ModuleError> {
        let mut module = Module::new(arch, options);
        let first = usize::from(kernel.is_some());
        // Only a kernel, or who looks a function up by its name, calls from outside.
        let linkage = if kernel.is_some() { Linkage::Local } else { Linkage::Export };
        let functions = &self.functions[first..];
        let ids = functions
            .iter()
            .map(|func| module.declare_function(&name(func), linkage, &func.signature))
            .collect::<Result<Vec<FuncId>, _>>()?;
        self.define_data(&mut module, first, &ids)?;
        if kernel.is_some() {
            let members: Vec<(FuncId, &Function)> = ids.iter().copied().zip(functions).collect();
            module.analyze_calls(&members, kernel.as_slice())?;
        }
        Ok((module, ids))
    }

    /// Defines the data, where `functions` are those from the one with index `first` on.
    fn define_data(
        &self,
        module: &mut Module,
        first: usize,
        functions: &[FuncId],
    ) -> Result<(), ModuleError> {
        let data = self.data.iter();
        let data = data
            .map(|datum| module.declare_data(&datum.name, Linkage::Local, datum.access))
            .collect::<Result<Vec<DataId>, _>>()?;
        for (datum, &id) in self.data.iter().zip(&data) {
            let mut description = DataDescription::new();
            description.define(datum.bytes.clone().into());
            description.set_align(16);
            for &(at, address) in &datum.addresses {
                let at = u32::try_from(at).expect("data are small");
                match address {
                    Address::Function(index) => {
                        let func =
                            module.declare_func_in_data(functions[index - first], &mut description);
                        description.write_function_addr(at, func);
                    }
                    Address::Datum(index) => {
                        let data = module.declare_data_in_data(data[index], &mut description);
                        description.write_data_addr(at, data, 0);
                    }
                }
            }
            module.define_data(id, &description)?;
        }
        Ok(())
    }

    /// What a machine does.
    ///
    /// # Errors
    ///
    /// If it could not start, or stopped for a reason that CLIF does not know.
    pub fn observed(&self, compiled: &CompiledCase) -> Result<(Effect, Stats), ModuleCaseError> {
        let entry = &self.functions[0];
        let program = Program::new(&compiled.module, &name(entry), &entry.signature)?;
        let args: Vec<u64> = self.args.iter().flat_map(|arg| words_of(arg, self.word)).collect();
        let image = program.image(&args)?;
        let memory = Memory::new(self.word, program.memory_bytes())?;
        memory.write(0, &image.bytes)?;
        let config = MachineConfig { fuel: Some(FUEL), ..MachineConfig::new(program.arch()) };
        let mut machine = Machine::new(config, &memory)?;
        let ended = machine.run();
        let stats = machine.stats();
        let ending = match ended {
            Ok(_) => Ending::Values(self.results(program.results_address(), &memory)?),
            Err(trap) => match stop(&trap, &image, &compiled.module) {
                Some(stop) => Ending::Trap(stop),
                None => return Err(ModuleCaseError::Trap(trap)),
            },
        };
        let data = self.data.iter().filter(|datum| datum.access == DataAccess::ReadWrite);
        let data = data.map(|datum| {
            let mut bytes = vec![0; datum.bytes.len()];
            let address = image.symbol(&datum.name).expect("the module defines it");
            memory.read(address, &mut bytes)?;
            Ok(bytes)
        });
        let data = data.collect::<Result<_, MemoryError>>()?;
        Ok((Effect { ending, data }, stats))
    }

    fn results(&self, from: u64, memory: &Memory) -> Result<Vec<DataValue>, MemoryError> {
        let word = usize::from(self.word.bytes());
        let mut at = from;
        let results = self.functions[0].signature.returns.iter().map(|result| {
            let mut words = Vec::new();
            for _ in 0..result.value_type.bits().div_ceil(self.word.bits().into()) {
                let mut bytes = [0; 8];
                memory.read(at, &mut bytes[..word])?;
                words.push(u64::from_le_bytes(bytes));
                at += word as u64;
            }
            Ok(canonical(value_of(&words, result.value_type, self.word)))
        });
        results.collect()
    }

    /// How what was observed differs from what was expected; none if it does not.
    pub fn difference(&self, expected: &Effect, observed: &Effect) -> Option<String> {
        if expected.ending != observed.ending {
            let [wanted, given] = [expected, observed].map(|effect| shown(&effect.ending));
            return Some(format!("{wanted} expected, {given} found"));
        }
        let data = self.data.iter().filter(|datum| datum.access == DataAccess::ReadWrite);
        for (datum, (wanted, given)) in data.zip(expected.data.iter().zip(&observed.data)) {
            let Some(at) = wanted.iter().zip(given).position(|(a, b)| a != b) else { continue };
            let (start, end) = (at / 8 * 8, wanted.len().min(at / 8 * 8 + 8));
            return Some(format!(
                "`{}`, byte {at}: from byte {start} on {:02x?} expected, {:02x?} found",
                datum.name,
                &wanted[start..end],
                &given[start..end],
            ));
        }
        None
    }
}

fn shown(ending: &Ending) -> String {
    match ending {
        Ending::Values(values) => format!("results {}", list(values)),
        Ending::Trap(stop) => format!("{stop:?}"),
    }
}

fn list(values: &[DataValue]) -> String {
    let values: Vec<String> = values.iter().map(DataValue::to_string).collect();
    format!("({})", values.join(", "))
}

/// What CLIF calls a trap; none if that is none of CLIF's.
fn stop(trap: &Trap, image: &Image, module: &CompiledModule) -> Option<Stop> {
    match trap.kind {
        TrapKind::BadAddress { .. } => Some(Stop::BadAddress),
        TrapKind::DivideByZero => Some(Stop::DivideByZero),
        TrapKind::GuestTrap => {
            let code = module.functions().iter().find_map(|function| {
                let offset = trap.pc.checked_sub(image.symbol(function.name())?)?;
                function.trap_code_at(offset)
            })?;
            Some(match code {
                TrapCode::INTEGER_DIVISION_BY_ZERO => Stop::DivideByZero,
                code => Stop::Code(code),
            })
        }
        _ => None,
    }
}

/// The value, or the one NaN in place of all.
fn canonical(value: DataValue) -> DataValue {
    match value {
        DataValue::F32(x) if x.is_nan() => DataValue::F32(Ieee32::with_float(f32::NAN)),
        DataValue::F64(x) if x.is_nan() => DataValue::F64(Ieee64::with_float(f64::NAN)),
        other => other,
    }
}

impl ModuleCase {
    /// Data and functions, as `harp compile` takes them. It knows no addresses in data: they are zeros there.
    pub(super) fn fmt_module(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for datum in &self.data {
            if datum.access == DataAccess::ReadOnly {
                writeln!(f, "; %{} is read-only", datum.name)?;
            }
            for &(at, address) in &datum.addresses {
                let name = match address {
                    Address::Function(index) => self.functions[index].name.to_string(),
                    Address::Datum(index) => format!("%{}", self.data[index].name),
                };
                writeln!(f, "; %{}+{at} has the address of {name}", datum.name)?;
            }
            let zeros = datum.bytes.iter().rev().take_while(|&&byte| byte == 0).count();
            write!(f, "; data: %{} i8", datum.name)?;
            for byte in &datum.bytes[..datum.bytes.len() - zeros] {
                write!(f, " {byte:#x}")?;
            }
            writeln!(f, " 0*{zeros}")?;
        }
        for func in &self.functions {
            write!(f, "{}", func.display())?;
        }
        Ok(())
    }
}

impl fmt::Display for ModuleCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_module(f)?;
        writeln!(f, "; call: {}{}", self.functions[0].name, list(&self.args))?;
        let floats = self.args.iter().filter(|arg| matches!(arg.ty(), types::F32 | types::F64));
        for arg in floats {
            let mut bytes = [0; 16];
            arg.write_to_slice_le(&mut bytes[..arg.ty().bytes() as usize]);
            writeln!(f, "; {arg} has the bits {:#x}", u128::from_le_bytes(bytes))?;
        }
        Ok(())
    }
}
