//! Runs a case on a machine: compiles it, calls or launches it, and compares the outcome with the oracle's.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, TrapCode};
use harp_emu::{Machine, MachineConfig, Memory, MemoryError, Trap, TrapKind};
use harp_isa::ArchId;
use harp_jit::text::result_values;
use harp_jit::{
    CompileError, CompileOptions, CompileStats, CompiledModule, DataDescription, DataId, Execution,
    FuncId, FunctionCode, Kernel, KernelSource, Linkage, Module, ModuleError, OptLevel, ParamType,
    SourceMap,
};
use harp_runtime::{
    Arg, Buffer, BufferError, Device, DeviceError, LaunchConfig, LaunchError, LaunchTrap, Program,
    ProgramError, Report,
};
use thiserror::Error;

use super::case::{are_same, canonical, list};
use super::{Address, Argument, Case, Effect, Elements, Ending, ItemTrap, Lanes, Start, Stop};
use crate::functions::{name, words_of};

/// Instructions that a launch may take, and a call: far more than any case here needs, also where many warps wait for
/// the lock.
const LAUNCH_FUEL: u64 = 400_000_000;
const CALL_FUEL: u64 = 200_000_000;

/// Bytes of a work-item's stack, and of a call's.
pub(super) const ITEM_STACK: u32 = 16 << 10;
pub(super) const CALL_STACK: u32 = 1 << 20;

/// Code that was compiled.
#[derive(Clone, Debug)]
pub enum Code {
    /// To be launched.
    Kernel(Box<Kernel>),
    /// To be called.
    Module(CompiledModule),
}

/// A case that was compiled.
#[derive(Debug)]
pub struct Compiled {
    /// The code of all functions.
    pub code: Code,
    /// The statistics of compiling each function.
    pub stats: Vec<CompileStats>,
}

impl Compiled {
    /// The kernel, if it is one.
    pub fn kernel(&self) -> Option<&Kernel> {
        match &self.code {
            Code::Kernel(kernel) => Some(kernel),
            Code::Module(_) => None,
        }
    }

    /// The machine code as text.
    pub fn disassembly(&self) -> String {
        let shown = |func: &FunctionCode| format!("{}:\n{}", func.name(), func.disassembly());
        match &self.code {
            Code::Module(module) => module.functions().iter().map(shown).collect(),
            Code::Kernel(kernel) => {
                let functions: String = kernel.functions().iter().map(shown).collect();
                format!("{}:\n{}{functions}", kernel.name(), kernel.disassembly())
            }
        }
    }
}

/// A trap of a machine.
#[derive(Clone, Debug)]
pub struct Trapped {
    /// The corresponding trap of CLIF, if there is one.
    pub stop: Option<Stop>,
    /// The lanes that it is of.
    pub lanes: u64,
    /// The message.
    pub message: String,
}

/// The observed effect of a case.
#[derive(Debug)]
pub struct Observed {
    /// The results of a call, NaNs made equal, or a trap.
    pub ending: Result<Vec<DataValue>, Trapped>,
    /// As in [`Effect`].
    pub memory: Vec<Vec<u8>>,
    /// Instructions that were issued.
    pub issued: u64,
    /// That of a launch that did not trap.
    pub report: Option<Box<Report>>,
}

/// Why a case did not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The module does not link, or there is no machine for a call.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// There is no device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no buffer.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The launch did not happen.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// Options with which every stage of the compiler checks what it makes.
pub fn options(opt_level: OptLevel) -> CompileOptions {
    CompileOptions { opt_level, verify: true, ..CompileOptions::default() }
}

impl Case {
    /// Compiles all functions: for work-items that are launched, or for one lane that is called. A profile is the
    /// kernel's alone: with one, functions are compiled without, for the same strategy, or `Static` instead of
    /// `Profile`. Fails if they do not compile.
    pub fn compile(&self, arch: ArchId, options: CompileOptions) -> Result<Compiled, ModuleError> {
        let Start::Launch { args, .. } = &self.start else {
            let execution = Execution::SingleLane;
            let options = CompileOptions { execution, stack_bytes: CALL_STACK, ..options };
            let (module, stats) = self.build(arch, options, None, None)?;
            return Ok(Compiled { code: Code::Module(module.finish()?), stats });
        };
        let options = CompileOptions { stack_bytes: ITEM_STACK, ..options };
        let of_functions = options.profile.is_some().then(|| options.without_profile());
        let params: Vec<ParamType> = args.iter().map(Argument::ty).collect();
        let kernel = self.functions[0].clone();
        let source =
            KernelSource::from_function(kernel, arch, &params).map_err(CompileError::from)?;
        let (module, functions) = self.build(arch, options, Some(&source), of_functions)?;
        let kernel = module.compile_kernel(&source)?;
        let stats = std::iter::once(kernel.stats()).chain(functions).collect();
        Ok(Compiled { code: Code::Kernel(Box::new(kernel)), stats })
    }

    /// The data and all functions but the kernel, compiled, these with options of their own if there are some;
    /// and what compiling each of them came to. A kernel is the first function, and what calls tell about
    /// arguments and results is found out before.
    fn build(
        &self,
        arch: ArchId,
        options: CompileOptions,
        kernel: Option<&KernelSource>,
        of_functions: Option<CompileOptions>,
    ) -> Result<(Module, Vec<CompileStats>), ModuleError> {
        let (mut module, functions) = self.begin(arch, options, kernel)?;
        let compiler = of_functions.map(|options| self.begin(arch, options, kernel)).transpose()?;
        let mut stats = Vec::new();
        let first = usize::from(kernel.is_some());
        for (func, &id) in self.functions[first..].iter().zip(&functions) {
            let compiler = compiler.as_ref().map_or(&module, |(compiler, _)| compiler);
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
        // A kernel's functions are called by it alone; others are looked up by their names.
        let linkage = if kernel.is_some() { Linkage::Local } else { Linkage::Export };
        let functions = &self.functions[first..];
        let ids = functions
            .iter()
            .map(|func| module.declare_function(&name(func), linkage, &func.signature))
            .collect::<Result<Vec<FuncId>, _>>()?;
        let declared = self.data.iter();
        let declared = declared
            .map(|datum| module.declare_data(&datum.name, Linkage::Local, datum.access))
            .collect::<Result<Vec<DataId>, _>>()?;
        for (datum, &id) in self.data.iter().zip(&declared) {
            let mut description = DataDescription::new();
            description.define(datum.bytes.clone().into());
            description.set_align(16);
            for &(at, address) in &datum.addresses {
                let at = u32::try_from(at).expect("data are small");
                match address {
                    Address::Function(index) => {
                        let func =
                            module.declare_func_in_data(ids[index - first], &mut description);
                        description.write_function_addr(at, func);
                    }
                    Address::Datum(index) => {
                        let data = module.declare_data_in_data(declared[index], &mut description);
                        description.write_data_addr(at, data, 0);
                    }
                }
            }
            module.define_data(id, &description)?;
        }
        if kernel.is_some() {
            let members: Vec<(FuncId, &Function)> = ids.iter().copied().zip(functions).collect();
            module.analyze_calls(&members, kernel.as_slice())?;
        }
        Ok((module, ids))
    }

    /// Calls the first function on a machine of its own. Fails if it could not start.
    pub fn call(&self, module: &CompiledModule) -> Result<Observed, ProgramError> {
        let Start::Call(args) = &self.start else {
            return Err(ProgramError::NoFunction { name: name(&self.functions[0]) });
        };
        let entry = &self.functions[0];
        let program = Program::new(module, &name(entry), &entry.signature)?;
        let args: Vec<u64> = args.iter().flat_map(|arg| words_of(arg, self.word)).collect();
        let image = program.image(&args)?;
        let memory = Memory::new(self.word, program.memory_bytes())?;
        memory.write(0, &image.bytes)?;
        let config = MachineConfig { fuel: Some(CALL_FUEL), ..MachineConfig::new(program.arch()) };
        let mut machine = Machine::new(config, &memory)?;
        let ended = machine.run();
        let issued = machine.stats().issued();
        let ending = match ended {
            Ok(_) => Ok(self.results(program.results_address(), &memory)?),
            Err(trap) => {
                let code = module.functions().iter().find_map(|function| {
                    let offset = trap.pc.checked_sub(image.symbol(function.name())?)?;
                    function.trap_code_at(offset)
                });
                Err(Trapped::new(&trap, code.map(Stop::from), trap.to_string()))
            }
        };
        let contents = self.written().map(|(_, datum)| {
            let mut bytes = vec![0; datum.bytes.len()];
            memory.read(image.symbol(&datum.name).expect("the module defines it"), &mut bytes)?;
            Ok(bytes)
        });
        let contents = contents.collect::<Result<_, MemoryError>>()?;
        Ok(Observed { ending, memory: contents, issued, report: None })
    }

    fn results(&self, from: u64, memory: &Memory) -> Result<Vec<DataValue>, MemoryError> {
        let returns = &self.functions[0].signature.returns;
        let size = self.word.bytes().into();
        let sizes = returns.iter().map(|result| result.value_type.bytes().next_multiple_of(size));
        let mut bytes = vec![0; sizes.sum::<u32>() as usize];
        memory.read(from, &mut bytes)?;
        let words: Vec<u64> = bytes
            .chunks(size as usize)
            .map(|word| word.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
            .collect();
        Ok(result_values(&words, returns, self.word).into_iter().map(canonical).collect())
    }

    /// Launches the kernel with new buffers, and with what `config` adds. If it needs work-groups, each is as much of a row
    /// as a core can take. Fails if it could not start.
    pub fn launch(
        &self,
        kernel: &Kernel,
        device: &Device,
        config: impl FnOnce(LaunchConfig) -> LaunchConfig,
    ) -> Result<Observed, CaseError> {
        let Start::Launch { extents, args } = &self.start else {
            return Err(ProgramError::NoFunction { name: name(&self.functions[0]) }.into());
        };
        let contents = args.iter().filter_map(Argument::buffer);
        let buffers = contents
            .map(|(elements, bytes)| Ok((elements, device.buffer_from_slice(bytes)?)))
            .collect::<Result<Vec<(Elements, Buffer<u8>)>, BufferError>>()?;
        let mut addresses = buffers.iter().map(|(_, buffer)| Arg::from(buffer));
        let words = args.iter().map(|arg| match arg {
            Argument::Scalar(ty, bits) => scalar(*ty, *bits),
            Argument::Buffer(..) => addresses.next().expect("each has a buffer"),
        });
        let words: Vec<_> = words.collect();
        let [x, y, z] = extents.map(|extent| extent as usize);
        let mut launch = LaunchConfig::grid_3d(x, y, z).with_fuel(LAUNCH_FUEL);
        if kernel.uses_groups() {
            let arch = kernel.arch();
            launch = launch.with_groups_1d(usize::from(arch.lanes()) * usize::from(arch.warps()));
        }
        let launch = config(launch);
        let report = match device.launch(kernel, launch, &words) {
            Ok(report) => report,
            Err(LaunchError::Trap(trap)) => {
                let LaunchTrap { trap_code, stats, .. } = &*trap;
                let code = trap_code.as_ref().and_then(|code| code.parse::<TrapCode>().ok());
                let ending = Err(Trapped::new(&trap.trap, code.map(Stop::from), trap.to_string()));
                let issued = stats.issued();
                return Ok(Observed { ending, memory: Vec::new(), issued, report: None });
            }
            Err(error) => return Err(error.into()),
        };
        let memory = buffers
            .iter()
            .map(|(elements, buffer)| Ok(elements.canonical(device.read(buffer)?)))
            .collect::<Result<_, BufferError>>()?;
        let issued = report.stats.issued();
        Ok(Observed { ending: Ok(Vec::new()), memory, issued, report: Some(Box::new(report)) })
    }

    /// The difference between the expected and the observed effect on one core with these lanes; none if there is
    /// none.
    pub fn difference(
        &self,
        expected: &Effect,
        observed: &Observed,
        lanes: impl Into<Lanes>,
    ) -> Option<String> {
        let extents = match self.start {
            Start::Call(_) => [1; 3],
            Start::Launch { extents, .. } => extents,
        };
        let lanes = lanes.into();
        let lane = |item| lanes.of_item(item, extents);
        match (&expected.ending, &observed.ending) {
            (Ending::Values(wanted), Ok(given)) if !are_same(wanted, given) => {
                let [wanted, given] = [wanted, given].map(|values| list(values));
                Some(format!("results {wanted} expected, {given} found"))
            }
            (Ending::Values(_), Err(trap)) => Some(format!("it trapped: {}", trap.message)),
            (Ending::Traps(traps), Ok(_)) => {
                Some(format!("it did not trap: {:?} was expected", traps[0]))
            }
            (Ending::Traps(traps), Err(trap)) if !trap.is_one_of(traps, lane) => {
                Some(format!("it trapped otherwise: {}; expected one of {traps:?}", trap.message))
            }
            _ => self.different_memory(&expected.memory, &observed.memory),
        }
    }

    fn different_memory(&self, wanted: &[Vec<u8>], given: &[Vec<u8>]) -> Option<String> {
        let index = wanted.iter().zip(given).position(|(a, b)| a != b)?;
        let (wanted, given) = (&wanted[index], &given[index]);
        let at = wanted.iter().zip(given).position(|(a, b)| a != b).unwrap_or(0);
        let place = match &self.start {
            Start::Call(_) => {
                self.written().nth(index).map(|(_, datum)| format!("`{}`", datum.name))
            }
            Start::Launch { .. } => {
                let slice = (wanted.len() / self.items().max(1) as usize).max(1);
                let (byte, item) = (at % slice, at / slice);
                Some(format!(
                    "buffer {index} (byte {byte} of work-item {item} if slices are equal)"
                ))
            }
        };
        let (place, start) = (place.unwrap_or_default(), at / 8 * 8);
        let [wanted, given] = [wanted, given].map(|all| &all[start..all.len().min(start + 8)]);
        Some(format!(
            "{place}, byte {at}: from byte {start} on {wanted:02x?} expected, {given:02x?} found"
        ))
    }
}

impl Trapped {
    /// A trap, with what CLIF calls it if a `trap` with a code is the reason.
    fn new(trap: &Trap, code: Option<Stop>, message: String) -> Trapped {
        let stop = match trap.kind {
            TrapKind::BadAddress { .. } => Some(Stop::BadAddress),
            TrapKind::DivideByZero => Some(Stop::DivideByZero),
            TrapKind::GuestTrap => code,
            _ => None,
        };
        Trapped { stop, lanes: trap.lanes, message }
    }

    /// Whether it is one of those that were expected, and all its lanes are among theirs.
    fn is_one_of(&self, traps: &[ItemTrap], lane: impl Fn(u64) -> u64) -> bool {
        let fitting = traps.iter().filter(|expected| Some(expected.stop) == self.stop);
        let allowed = fitting.fold(0_u64, |set, one| set | 1 << lane(one.item));
        allowed != 0 && self.lanes != 0 && self.lanes & !allowed == 0
    }
}

fn scalar(ty: ParamType, bits: u64) -> Arg {
    match ty {
        ParamType::I8 => Arg::from(bits as u8),
        ParamType::I16 => Arg::from(bits as u16),
        ParamType::I32 => Arg::from(bits as u32),
        ParamType::I64 => Arg::from(bits),
        ParamType::F32 => Arg::from(f32::from_bits(bits as u32)),
        ParamType::F64 => Arg::from(f64::from_bits(bits)),
        _ => Arg::address(bits),
    }
}
