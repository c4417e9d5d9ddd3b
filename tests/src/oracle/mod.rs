//! The independent oracle: a kernel's CLIF, work-item after work-item, in cranelift-interpreter.
//!
//! The function is interpreted as the builder made it, before the mid-end. Nothing here knows how harp-jit
//! works: the calling convention (one argument, the address of a block of words: the grid's three extents,
//! six words about work-groups, then the arguments) and the names of the intrinsics are written down a second
//! time. What a lane id is depends on the machine: [`KernelCase`] is told the lanes of a warp, for others
//! kernels that ask are refused. Refused, too, are kernels whose work-items communicate: each runs to its end
//! before the next begins.
//!
//! Some things are not left to the interpreter, because it does not do what CLIF documents:
//! addresses wrap at the word and offsets are signed (it zero-extends both), `srem` of the smallest
//! number by -1 is 0 (it traps), the flags of `sadd_overflow_cin` and `ssub_overflow_bin` are about
//! the whole sum (its are about either part), `isplit` and `iconcat` are for all types (it knows `i128`
//! only), and it lacks `blendv` and `sequence_point`.

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{
    ExternalName, Function, Inst, InstructionData, MemFlagsData, Opcode, TrapCode, Type, types,
};
use cranelift_interpreter::instruction::DfgInstructionContext;
use cranelift_interpreter::state::State;
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap, StepError, step};
use harp_isa::WordSize;
use smallvec::SmallVec;
use thiserror::Error;

mod atomic;
mod case;
mod kernel;
mod memory;
mod module;
mod state;
#[cfg(test)]
mod tests;

pub use case::{Argument, Case, CaseError, Elements, Expected, Observed, device};
pub use kernel::{CompiledKernel, KernelCase};
pub use memory::FlatMemory;
pub use module::{
    Address, CompiledCase, Datum, Effect, Ending, Executed, ModuleCase, ModuleCaseError, Trace,
};

use state::KernelState;

/// CLIF instructions that a work-item may take.
const FUEL: u64 = 1 << 20;

/// Why a work-item stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// An access outside of all allocations.
    BadAddress,
    /// A division by zero.
    DivideByZero,
    /// A trap that the kernel asks for, or the overflow of a signed division.
    Code(TrapCode),
}

/// A work-item that trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemTrap {
    /// The work-item, counted through all dimensions, the first fastest.
    pub item: u64,
    /// Why.
    pub stop: Stop,
}

/// Why the oracle cannot say what a kernel does.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OracleError {
    /// The interpreter gave up.
    #[error("the interpreter failed at `{inst}`: {message}")]
    Interpreter {
        /// The instruction.
        inst: String,
        /// What it says.
        message: String,
    },
    /// Something that has no meaning without a machine.
    #[error("the oracle does not know `{inst}`")]
    Unknown {
        /// The instruction.
        inst: String,
    },
    /// An access that is said to be aligned and is not, which may do anything.
    #[error("`{inst}` is not aligned")]
    Misaligned {
        /// The instruction.
        inst: String,
    },
    /// A work-item does not end.
    #[error("a work-item took more than {FUEL} steps")]
    OutOfFuel,
}

/// A launch as the oracle sees it.
#[derive(Clone, Copy, Debug)]
pub struct Grid<'a> {
    /// Work-items in each dimension.
    pub extents: [u64; 3],
    /// The words of the arguments.
    pub args: &'a [u64],
    /// The machine's word.
    pub word: WordSize,
}

/// Runs all work-items and gives those that trapped. The others go on: what memory holds after a
/// trap means nothing.
///
/// # Errors
///
/// If the kernel holds something that the oracle does not know, or does not end.
pub fn run(
    func: &Function,
    grid: Grid<'_>,
    memory: &mut FlatMemory,
) -> Result<Vec<ItemTrap>, OracleError> {
    let words = argument_block(grid.extents, grid.args.iter().copied()).into_iter();
    let bytes = usize::from(grid.word.bytes());
    let block = words.flat_map(|word| word.to_le_bytes().into_iter().take(bytes)).collect();
    let block = memory.allocate(block);
    let [width, height, depth] = grid.extents;
    let mut traps = Vec::new();
    for item in 0..width * height * depth {
        let id = [item % width, item / width % height, item / (width * height)];
        let stop = Item { func, id, lane: None, word: grid.word }.run(block, memory)?;
        traps.extend(stop.map(|stop| ItemTrap { item, stop }));
    }
    Ok(traps)
}

/// The words of the argument block: the grid's extents, those of groups and how many there are of them,
/// which nobody has, then the arguments.
fn argument_block(extents: [u64; 3], args: impl Iterator<Item = u64>) -> Vec<u64> {
    extents.into_iter().chain([0; 6]).chain(args).collect()
}

/// What an instruction that the oracle executes itself came to.
enum Done {
    Results(Vec<DataValue>),
    Stop(Stop),
}

struct Item<'a> {
    func: &'a Function,
    id: [u64; 3],
    /// The lane, if warps of known size are said to run the work-items.
    lane: Option<u64>,
    word: WordSize,
}

impl<'a> Item<'a> {
    /// Runs the work-item; gives the reason if it traps.
    fn run(
        &self,
        argument_block: u64,
        memory: &mut FlatMemory,
    ) -> Result<Option<Stop>, OracleError> {
        let func = self.func;
        let mut state = KernelState::new(func);
        let entry = func.layout.entry_block().ok_or(OracleError::OutOfFuel)?;
        let argument = self.word_value(argument_block);
        state.current_frame_mut().set_all(func.dfg.block_params(entry), vec![argument]);
        let mut next = func.layout.first_inst(entry);
        for _ in 0..FUEL {
            let Some(inst) = next else { return Err(self.unknown_end()) };
            if let Some(executed) = self.execute(inst, &state, memory)? {
                match executed {
                    Done::Stop(stop) => return Ok(Some(stop)),
                    Done::Results(values) => {
                        let results = func.dfg.inst_results(inst);
                        state.current_frame_mut().set_all(results, values);
                    }
                }
                next = func.layout.next_inst(inst);
                continue;
            }
            let context = DfgInstructionContext::new(inst, &func.dfg);
            let flow = step(&mut state, context).map_err(|error| self.failed(inst, &error))?;
            match flow {
                ControlFlow::Assign(values) => {
                    let results = func.dfg.inst_results(inst);
                    state.current_frame_mut().set_all(results, values.to_vec());
                    next = func.layout.next_inst(inst);
                }
                ControlFlow::Continue => next = func.layout.next_inst(inst),
                ControlFlow::ContinueAt(block, args) => {
                    let params = func.dfg.block_params(block);
                    state.current_frame_mut().set_all(params, args.to_vec());
                    next = func.layout.first_inst(block);
                }
                ControlFlow::Return(_) => return Ok(None),
                ControlFlow::Trap(CraneliftTrap::User(TrapCode::INTEGER_DIVISION_BY_ZERO)) => {
                    return Ok(Some(Stop::DivideByZero));
                }
                ControlFlow::Trap(CraneliftTrap::User(code)) => return Ok(Some(Stop::Code(code))),
                ControlFlow::Trap(_) | ControlFlow::Call(..) | ControlFlow::ReturnCall(..) => {
                    return Err(self.unknown(inst));
                }
            }
        }
        Err(OracleError::OutOfFuel)
    }

    /// Executes what is not the interpreter's.
    fn execute(
        &self,
        inst: Inst,
        state: &KernelState<'_>,
        memory: &mut FlatMemory,
    ) -> Result<Option<Done>, OracleError> {
        let values = || state.collect_values(self.func.dfg.inst_args(inst));
        let ty = self.func.dfg.ctrl_typevar(inst);
        Ok(Some(match self.func.dfg.insts[inst] {
            InstructionData::Call { .. } => self.intrinsic(inst, values())?,
            InstructionData::Load { opcode, offset, .. } => {
                let address = self.address(&values()[0], offset.into());
                self.check_alignment(inst, address)?;
                self.load(memory, opcode, ty, address)
            }
            InstructionData::Store { opcode, offset, .. } => {
                let values = values();
                let address = self.address(&values[1], offset.into());
                self.check_alignment(inst, address)?;
                self.store(memory, opcode, &values[0], address)
            }
            InstructionData::LoadNoOffset { .. }
            | InstructionData::StoreNoOffset { .. }
            | InstructionData::AtomicRmw { .. }
            | InstructionData::AtomicCas { .. } => {
                return Ok(self.atomic(inst, ty, &values(), memory));
            }
            InstructionData::NullAry { opcode: Opcode::Fence } => Done::Results(Vec::new()),
            InstructionData::Binary { opcode: Opcode::Srem, .. } => {
                let values = values();
                match (&values[0], &values[1]) {
                    (_, divisor) if signed(divisor) == -1 => Done::Results(vec![int(0, ty)]),
                    _ => return Ok(None),
                }
            }
            InstructionData::Ternary {
                opcode: opcode @ (Opcode::SaddOverflowCin | Opcode::SsubOverflowBin),
                ..
            } => {
                let values = values();
                let [x, y, carry] = [0, 1, 2].map(|index| signed(&values[index]));
                let carry = i128::from(carry != 0);
                let exact =
                    if opcode == Opcode::SaddOverflowCin { x + y + carry } else { x - y - carry };
                let result = int(exact, ty);
                let overflow = signed(&result) != exact;
                Done::Results(vec![result, DataValue::I8(overflow.into())])
            }
            InstructionData::Ternary { opcode: Opcode::Blendv, .. } if ty.is_int() => {
                let values = values();
                let chosen = if signed(&values[0]) < 0 { &values[1] } else { &values[2] };
                Done::Results(vec![chosen.clone()])
            }
            InstructionData::NullAry { opcode: Opcode::SequencePoint } => Done::Results(Vec::new()),
            InstructionData::Unary { opcode: Opcode::Isplit, .. } if ty.bits() <= 64 => {
                let bits = signed(&values()[0]);
                let half = ty.half_width().ok_or_else(|| self.unknown(inst))?;
                Done::Results(vec![int(bits, half), int(bits >> half.bits(), half)])
            }
            InstructionData::Binary { opcode: Opcode::Iconcat, .. } if ty.bits() <= 32 => {
                let values = values();
                let low = signed(&values[0]) & ((1 << ty.bits()) - 1);
                let full = ty.double_width().ok_or_else(|| self.unknown(inst))?;
                Done::Results(vec![int(signed(&values[1]) << ty.bits() | low, full)])
            }
            _ => return Ok(None),
        }))
    }

    fn intrinsic(&self, inst: Inst, args: SmallVec<[DataValue; 1]>) -> Result<Done, OracleError> {
        let InstructionData::Call { func_ref, .. } = self.func.dfg.insts[inst] else {
            return Err(self.unknown(inst));
        };
        let ExternalName::TestCase(name) = &self.func.dfg.ext_funcs[func_ref].name else {
            return Err(self.unknown(inst));
        };
        let value = match name.raw() {
            b"harp_global_id_x" => self.word_value(self.id[0]),
            b"harp_global_id_y" => self.word_value(self.id[1]),
            b"harp_global_id_z" => self.word_value(self.id[2]),
            b"harp_lane_id" => self.word_value(self.lane.ok_or_else(|| self.unknown(inst))?),
            b"harp_assume_uniform" => args[0].clone(),
            _ => return Err(self.unknown(inst)),
        };
        Ok(Done::Results(vec![value]))
    }

    fn load(&self, memory: &FlatMemory, opcode: Opcode, ty: Type, address: u64) -> Done {
        let part = match opcode {
            Opcode::Uload8 | Opcode::Sload8 => types::I8,
            Opcode::Uload16 | Opcode::Sload16 => types::I16,
            Opcode::Uload32 | Opcode::Sload32 => types::I32,
            _ => return memory.load(address, ty).into(),
        };
        let Some(loaded) = memory.load(address, part) else {
            return Done::Stop(Stop::BadAddress);
        };
        let signed = match opcode {
            Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => signed(&loaded),
            _ => signed(&loaded) & ((1 << part.bits()) - 1),
        };
        // The 32-bit ones are of type i64 whatever the word is.
        let ty = if part == types::I32 { types::I64 } else { ty };
        Done::Results(vec![int(signed, ty)])
    }

    fn store(
        &self,
        memory: &mut FlatMemory,
        opcode: Opcode,
        value: &DataValue,
        address: u64,
    ) -> Done {
        let part = match opcode {
            Opcode::Istore8 => int(signed(value), types::I8),
            Opcode::Istore16 => int(signed(value), types::I16),
            Opcode::Istore32 => int(signed(value), types::I32),
            _ => value.clone(),
        };
        match memory.store(address, &part) {
            Some(()) => Done::Results(Vec::new()),
            None => Done::Stop(Stop::BadAddress),
        }
    }

    /// An access that is said to be aligned is that to its size; a large one to the word.
    fn check_alignment(&self, inst: Inst, address: u64) -> Result<(), OracleError> {
        let data = self.func.dfg.insts[inst];
        let aligned = data.memflags_data(&self.func.dfg).is_some_and(MemFlagsData::aligned);
        let size = match data.opcode() {
            Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => 1,
            Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => 2,
            Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => 4,
            _ => self.func.dfg.ctrl_typevar(inst).bytes(),
        };
        let natural = u64::from(size.min(self.word.bytes().into()));
        if aligned && !address.is_multiple_of(natural) {
            return Err(OracleError::Misaligned { inst: self.text(inst) });
        }
        Ok(())
    }

    fn address(&self, base: &DataValue, offset: i64) -> u64 {
        (signed(base) as u64).wrapping_add_signed(offset) & self.word.mask()
    }

    fn word_value(&self, value: u64) -> DataValue {
        int(value.into(), if self.word == WordSize::Four { types::I32 } else { types::I64 })
    }

    fn text(&self, inst: Inst) -> String {
        self.func.dfg.display_inst(inst).to_string()
    }

    fn unknown(&self, inst: Inst) -> OracleError {
        OracleError::Unknown { inst: self.text(inst) }
    }

    fn unknown_end(&self) -> OracleError {
        OracleError::Unknown { inst: "a block without an end".to_owned() }
    }

    fn failed(&self, inst: Inst, error: &StepError) -> OracleError {
        OracleError::Interpreter { inst: self.text(inst), message: error.to_string() }
    }
}

impl From<Option<DataValue>> for Done {
    fn from(loaded: Option<DataValue>) -> Done {
        loaded.map_or(Done::Stop(Stop::BadAddress), |value| Done::Results(vec![value]))
    }
}

/// The low bits of `value` as an integer of type `ty`, at most 64 bits wide.
fn int(value: i128, ty: Type) -> DataValue {
    DataValue::from_integer(value, ty).expect("the verifier wants an integer type here")
}

/// An integer of at most 64 bits, sign-extended; other values, which the verifier excludes, are 0.
fn signed(value: &DataValue) -> i128 {
    match *value {
        DataValue::I8(value) => value.into(),
        DataValue::I16(value) => value.into(),
        DataValue::I32(value) => value.into(),
        DataValue::I64(value) => value.into(),
        _ => 0,
    }
}
