//! Single calls: a function on one lane of a bare machine, without a grid.
//!
//! The image holds boot code, the words of the call, and the module; the stack lies above it. Boot code
//! is HARP assembly in base instructions, so a module that was compiled without the extension makes an
//! image that any machine runs. The results end up in the words of the call, and the machine halts.
//!
//! The function may make warps and lanes of its own, by functions of the runtime library: see [`Program`].

use harp_emu::{Machine, MachineConfig, MachineError, Memory, MemoryError, Stats, Trap};
use harp_isa::abi::{LaneField, stack_reserve_bytes};
use harp_isa::{ArchId, Image, LinkErrors, Object, link};
use harp_jit::ir::Signature;
use harp_jit::{CallLayout, CompiledModule, FunctionCode, SourcePlace, WordPlace};
use harp_library::{CALL_CHUNK, CallWord, Callee, Ending, warps};
use thiserror::Error;

use crate::kernel::Origin;

/// Bytes of a page, on machines that translate addresses.
const PAGE_BYTES: u64 = 4096;

/// Why a program was not made or not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The module does not define the function.
    #[error("the module has no function `{name}`")]
    NoFunction {
        /// The name asked for.
        name: String,
    },
    /// A function of the module needs a work-group, which a single call does not have.
    #[error("function `{name}` uses work-groups, but a single call has none")]
    UsesGroups {
        /// The function.
        name: String,
    },
    /// Too few or too many words of arguments.
    #[error("the function takes {expected} words of arguments, {given} given")]
    ArgumentCount {
        /// How many it takes.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// The module does not link.
    #[error("the module does not link")]
    Link(#[from] LinkErrors),
    /// The machine's memory cannot be made or accessed.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A machine with these parameters cannot be made.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The run stopped before its end.
    #[error(transparent)]
    Trap(Box<ProgramTrap>),
}

/// A trap in a program, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{}{}{}: {trap}",
    function.as_ref().map_or("outside of any function".to_owned(), |(name, at)| format!("function `{name}` + {at:#x}")),
    place.as_ref().map_or(String::new(), |place| format!(" at {place}")),
    trap_code.as_ref().map_or(String::new(), |code| format!(": {code}"))
)]
pub struct ProgramTrap {
    /// What happened.
    #[source]
    pub trap: Trap,
    /// The function with the instruction, and the instruction's offset in bytes.
    pub function: Option<(String, u64)>,
    /// Where the instruction was built.
    pub place: Option<SourcePlace>,
    /// CLIF's trap code: `stk_ovf`, `int_ovf`, `user1` and so on.
    pub trap_code: Option<String>,
}

/// What a call returned, printed and cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The words of the results; of a result wider than a word, the lowest first. The upper bits of a
    /// narrower one are undefined.
    pub results: Vec<u64>,
    /// What the run cost, boot code included.
    pub stats: Stats,
    /// What was printed on the console.
    pub console: Vec<u8>,
}

/// A function, linked with everything it needs and ready to be called.
///
/// One lane runs it. The function must be compiled for a [single lane](harp_jit::Execution::SingleLane), or
/// give the same results on any number of lanes.
///
/// # Warps and lanes of its own
///
/// A program may import functions of the runtime library (Gupta 2016, section 2.1.3), whose parameters and results are
/// words:
///
/// * `spawn_warp(function, argument) -> number` starts a warp. Its first lane calls `function(argument)`, and the warp
///   ends when that returns. The result is the warp's number, or 0 if all warps of the core have been started.
/// * `call_par(function, argument)`, which one lane calls, lets all lanes of its warp call `function(argument)`, and
///   returns when they have returned.
/// * `lane_or(warp, lane, value) -> truth` is 1 if `value` is not 0 in any of the lanes that call it together, else 0.
///
/// The functions that lanes run must be compiled for [any number of lanes](harp_jit::Execution::Simt). There `%harp_lane_id`
/// and `%harp_warp_id` are the numbers of lane and warp. The machine runs until all warps have ended, and the program
/// is for one core.
#[derive(Clone, Debug)]
pub struct Program {
    image: Image,
    functions: Vec<FunctionCode>,
    layout: CallLayout,
    call: u64,
    memory_bytes: u64,
}

impl Program {
    /// Links `module` with boot code that calls its function `name`.
    ///
    /// # Errors
    ///
    /// If there is no such function, a function of the module uses work-groups, or the module refers to
    /// names that it does not define.
    pub fn new(
        module: &CompiledModule,
        name: &str,
        signature: &Signature,
    ) -> Result<Program, ProgramError> {
        Program::link(module, name, signature, Ending::Halt)
    }

    /// Links `module` with boot code that calls its function `name` and prints its results on the
    /// console, each on a line of hex digits: all digits of a word. Of a result wider than a word, all words
    /// are printed, the lowest first; a narrower one has zeros above its bits. The image runs on machines
    /// that translate addresses and on those that do not.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn printing(
        module: &CompiledModule,
        name: &str,
        signature: &Signature,
    ) -> Result<Program, ProgramError> {
        let mut program = Program::link(module, name, signature, Ending::Print)?;
        let word = program.arch().word();
        let bits = u32::from(word.bits());
        let index = program.results_index() + program.layout.returns().len() as u64;
        let mut at = program.call + index * u64::from(word.bytes());
        for result in &signature.returns {
            let mut left = result.value_type.bits();
            while left > 0 {
                let mask = word.mask() >> bits.saturating_sub(left);
                left = left.saturating_sub(bits);
                let newline = if left == 0 { b'\n'.into() } else { 0 };
                for value in [mask, newline] {
                    program.image.put_word(at, value);
                    at += u64::from(word.bytes());
                }
            }
        }
        Ok(program)
    }

    fn link(
        module: &CompiledModule,
        name: &str,
        signature: &Signature,
        ending: Ending,
    ) -> Result<Program, ProgramError> {
        if module.function(name).is_none() {
            return Err(ProgramError::NoFunction { name: name.to_owned() });
        }
        if let Some(function) = module.functions().iter().find(|function| function.uses_groups()) {
            return Err(ProgramError::UsesGroups { name: function.name().to_owned() });
        }
        let arch = module.object().arch;
        let layout = CallLayout::new(signature, arch);
        let image = link(&[&bootable(module, name, &layout, ending)], 0)?;
        let call = image.symbol(CALL_CHUNK).expect("the boot code has it");
        let program = Program {
            image,
            functions: module.functions().to_vec(),
            layout,
            call,
            memory_bytes: 0,
        };
        Ok(program.with_stacks(module.stack_bytes(), warps::limit(module.object())))
    }

    /// The machine that the program is for.
    pub fn arch(&self) -> ArchId {
        self.image.arch
    }

    /// Bytes of memory that a machine must have.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// The image with these arguments, a word each: it boots at address 0, makes the call and halts.
    ///
    /// # Errors
    ///
    /// If there are too many arguments or too few.
    pub fn image(&self, arguments: &[u64]) -> Result<Image, ProgramError> {
        let (expected, given) = (self.layout.params().len(), arguments.len());
        if given != expected {
            return Err(ProgramError::ArgumentCount { expected, given });
        }
        let mut image = self.image.clone();
        let (values, word) = (CallWord::COUNT as u64, u64::from(self.arch().word().bytes()));
        // Register arguments come first, in both lists.
        for (index, &value) in (0..).zip(arguments) {
            image.put_word(self.call + (values + index) * word, value);
        }
        Ok(image)
    }

    /// The address of the first word of the results when the machine has halted; the others follow it.
    pub fn results_address(&self) -> u64 {
        self.call + self.results_index() * u64::from(self.arch().word().bytes())
    }

    /// Calls the function with these arguments, a word each; of a value wider than a word, the lowest
    /// word comes first. `fuel` limits the instructions that the run may issue.
    ///
    /// # Errors
    ///
    /// If there are too many arguments or too few, the memory cannot be made, or the run ends in a trap.
    pub fn call(&self, arguments: &[u64], fuel: Option<u64>) -> Result<Outcome, ProgramError> {
        let image = self.image(arguments)?;
        let memory = Memory::new(self.arch().word(), self.memory_bytes)?;
        memory.write(0, &image.bytes)?;
        let config = MachineConfig { fuel, ..MachineConfig::new(self.arch()) };
        let mut machine = Machine::new(config, &memory)?;
        let stats =
            machine.run().map_err(|trap| ProgramError::Trap(Box::new(self.located(*trap))))?;
        let console = machine.console().to_vec();
        let word = u64::from(self.arch().word().bytes());
        let first = self.results_address();
        let results = (0..self.layout.returns().len() as u64).map(|index| {
            let mut bytes = [0; 8];
            memory.read(first + index * word, &mut bytes[..word as usize])?;
            Ok(u64::from_le_bytes(bytes))
        });
        let results = results.collect::<Result<_, MemoryError>>()?;
        Ok(Outcome { results, stats, console })
    }

    /// The index of the first result's word, counted from `runtime.call`.
    fn results_index(&self) -> u64 {
        (CallWord::COUNT + self.layout.params().len()) as u64
    }

    /// Puts a stack above the image, and more for other warps and lanes if it may have these, and the addresses of
    /// everything into the call's words.
    fn with_stacks(mut self, stack_bytes: u32, warps: Option<u8>) -> Program {
        let word = u64::from(self.arch().word().bytes());
        let stack_bytes = u64::from(stack_bytes);
        let outer = u64::from(self.layout.stack_arguments() + self.layout.stack_results());
        let base = (self.image.bytes.len() as u64).next_multiple_of(stack_bytes);
        let top = base + stack_bytes - word * (1 + outer);
        let end = match warps {
            Some(warps) => warps::give_stacks(&mut self.image, warps, base, stack_bytes),
            None => base + stack_bytes,
        };
        let limit =
            LaneField::block_bytes(self.arch().word()) + stack_reserve_bytes(self.arch().word());
        let on_stack = u64::from(self.layout.stack_arguments());
        let in_registers = self.layout.params().len() as u64 - on_stack;
        let values = CallWord::COUNT as u64;
        let at = |index: u64| self.call + index * word;
        let words = [
            (CallWord::Stack, base),
            (CallWord::Limit, base + u64::from(limit)),
            (CallWord::Top, top),
            (CallWord::Arguments, at(values + in_registers)),
            (CallWord::ArgumentCount, on_stack),
            (CallWord::Registers, at(values)),
            (CallWord::Results, at(self.results_index())),
            (CallWord::StackResults, top + on_stack * word),
            (CallWord::ResultCount, self.layout.stack_results().into()),
            (CallWord::End, end.next_multiple_of(PAGE_BYTES)),
            (CallWord::Printed, at(self.results_index() + self.layout.returns().len() as u64)),
            (CallWord::PrintedCount, self.layout.returns().len() as u64),
        ];
        let call = self.call;
        for (place, value) in words {
            self.image.put_word(call + place.offset(self.arch().word()), value);
        }
        self.memory_bytes = end;
        self
    }

    fn located(&self, trap: Trap) -> ProgramTrap {
        let function = self.image.symbol_before(trap.pc).and_then(|(symbol, distance)| {
            let function = self.functions.iter().find(|f| f.name() == symbol.name)?;
            (distance < function.code().len() as u64).then_some((function, distance))
        });
        let origin = function.map(|(f, at)| Origin::in_function(f, at)).unwrap_or_default();
        ProgramTrap {
            trap,
            function: function.map(|(f, at)| (f.name().to_owned(), at)),
            place: origin.place,
            trap_code: origin.trap_code,
        }
    }
}

/// The module with boot code before it. They are one object, so that local functions can be called, too.
fn bootable(
    module: &CompiledModule,
    function: &str,
    layout: &CallLayout,
    ending: Ending,
) -> Object {
    let registers = |places: &[WordPlace]| {
        let registers = places.iter().filter_map(|place| match place {
            WordPlace::Register(register) => Some(*register),
            WordPlace::Stack(_) => None,
        });
        registers.collect()
    };
    let callee = Callee {
        name: function,
        arguments: layout.params().len(),
        argument_registers: registers(layout.params()),
        results: layout.returns().len(),
        result_registers: registers(layout.returns()),
    };
    let arch = module.object().arch;
    let mut object = harp_library::call(arch, &callee, ending);
    // Within reach of all machines' immediates, so before the module.
    if warps::limit(module.object()).is_some() {
        object.chunks.extend(warps::functions(arch, module.stack_bytes()).chunks);
    }
    object.chunks.extend(module.object().chunks.iter().cloned());
    object
}
