//! The independent oracle: the CLIF of a [`Case`] in cranelift-interpreter, a kernel's work-items one after the other.
//!
//! Functions are interpreted as the builder made them, before the mid-end. Nothing here knows how harp-jit
//! works: the calling convention of kernels (one argument, the address of a block of words: the grid's three extents,
//! six words about work-groups, then the arguments) and the names of the intrinsics are written down a second
//! time. Lane ids depend on the machine, so the lanes of a warp are given. The oracle refuses kernels whose
//! work-items communicate: each runs to its end before the next begins. So a barrier only makes it
//! compare whether all come to it, and a sum over lanes, too, which is taken for the value of one of them.
//!
//! Some things are not left to the interpreter, because it does not do what CLIF documents:
//! addresses wrap at the word and offsets are signed (it zero-extends both), `srem` of the smallest
//! number by -1 is 0 (it traps), the flags of `sadd_overflow_cin` and `ssub_overflow_bin` are about
//! the whole sum (its are about either part), `isplit` and `iconcat` are for all types (it knows `i128`
//! only), and it lacks `blendv` and `sequence_point`.

use std::fmt;

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{
    Endianness, ExternalName, FuncRef, Function, Inst, InstructionData, MemFlagsData, Opcode,
    TrapCode, Type, types,
};
use harp_isa::WordSize;
use thiserror::Error;

mod atomic;
mod case;
pub mod functions;
mod interpret;
mod lanes;
mod meetings;
mod memory;
mod run;

pub use case::{Address, Argument, Case, Datum, Effect, Elements, Ending, Start};
pub use interpret::Trace;
pub use lanes::Lanes;
pub use run::{CaseError, Code, Compiled, Observed, Trapped, options};

use functions::word_type;
use memory::FlatMemory;

/// CLIF instructions that a work-item, or a call, may take.
const FUEL: usize = 1 << 20;

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

impl From<TrapCode> for Stop {
    fn from(code: TrapCode) -> Stop {
        match code {
            TrapCode::INTEGER_DIVISION_BY_ZERO => Stop::DivideByZero,
            code => Stop::Code(code),
        }
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::BadAddress => f.write_str("bad address"),
            Stop::DivideByZero => f.write_str("division by zero"),
            Stop::Code(code) => write!(f, "trap {code}"),
        }
    }
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
    /// The interpreter gave up at an instruction, and says this.
    #[error("the interpreter failed at `{0}`: {1}")]
    Interpreter(String, String),
    /// An instruction that has no meaning without a machine.
    #[error("the oracle does not know `{0}`")]
    Unknown(String),
    /// An access that is said to be aligned and is not, which may do anything.
    #[error("`{0}` is not aligned")]
    Misaligned(String),
    /// A call or a work-item does not end.
    #[error("it took more than {FUEL} steps, or more stack than there is")]
    OutOfFuel,
    /// Work-items come to different barriers or sums, or in different rounds of a loop, which may do anything.
    #[error("work-items do not meet at all barriers and sums")]
    Apart,
}

/// How an instruction or a function ends: with results, or before its end.
type Ended = Result<Vec<DataValue>, Stop>;

/// An instruction that a work-item executes.
struct Item<'a> {
    func: &'a Function,
    inst: Inst,
    id: [u64; 3],
    /// The lane, if warps of known size are said to run the work-items.
    lane: Option<u64>,
    word: WordSize,
}

impl Item<'_> {
    /// Executes an instruction that is not left to the interpreter; none if it is another one.
    fn execute(
        &self,
        values: &[DataValue],
        memory: &mut FlatMemory,
    ) -> Result<Option<Ended>, OracleError> {
        let ty = self.func.dfg.ctrl_typevar(self.inst);
        Ok(Some(match self.data() {
            InstructionData::Call { func_ref, .. } => Ok(vec![self.intrinsic(func_ref, values)?]),
            InstructionData::Load { offset, .. } => {
                let address = self.address(&values[0], offset.into());
                self.check_alignment(address)?;
                self.load(memory, address)
            }
            InstructionData::Store { offset, .. } => {
                let address = self.address(&values[1], offset.into());
                self.check_alignment(address)?;
                self.store(memory, &values[0], address)
            }
            InstructionData::LoadNoOffset { .. }
            | InstructionData::StoreNoOffset { .. }
            | InstructionData::AtomicRmw { .. }
            | InstructionData::AtomicCas { .. } => return Ok(self.atomic(ty, values, memory)),
            InstructionData::NullAry { opcode: Opcode::Fence | Opcode::SequencePoint } => {
                Ok(Vec::new())
            }
            InstructionData::Binary { opcode: Opcode::Srem, .. } if signed(&values[1]) == -1 => {
                Ok(vec![int(0, ty)])
            }
            InstructionData::Ternary {
                opcode: opcode @ (Opcode::SaddOverflowCin | Opcode::SsubOverflowBin),
                ..
            } => {
                let [x, y, carry] = [0, 1, 2].map(|index| signed(&values[index]));
                let carry = i128::from(carry != 0);
                let exact =
                    if opcode == Opcode::SaddOverflowCin { x + y + carry } else { x - y - carry };
                let result = int(exact, ty);
                let overflow = signed(&result) != exact;
                Ok(vec![result, DataValue::I8(overflow.into())])
            }
            InstructionData::Ternary { opcode: Opcode::Blendv, .. } if ty.is_int() => {
                Ok(vec![values[if signed(&values[0]) < 0 { 1 } else { 2 }].clone()])
            }
            InstructionData::Unary { opcode: Opcode::Isplit, .. } if ty.bits() <= 64 => {
                let bits = signed(&values[0]);
                let half = ty.half_width().ok_or_else(|| self.unknown())?;
                Ok(vec![int(bits, half), int(bits >> half.bits(), half)])
            }
            InstructionData::Binary { opcode: Opcode::Iconcat, .. } if ty.bits() <= 32 => {
                let low = signed(&values[0]) & ((1 << ty.bits()) - 1);
                let full = ty.double_width().ok_or_else(|| self.unknown())?;
                Ok(vec![int(signed(&values[1]) << ty.bits() | low, full)])
            }
            _ => return Ok(None),
        }))
    }

    fn data(&self) -> InstructionData {
        self.func.dfg.insts[self.inst]
    }

    fn intrinsic(&self, callee: FuncRef, args: &[DataValue]) -> Result<DataValue, OracleError> {
        let ExternalName::TestCase(name) = &self.func.dfg.ext_funcs[callee].name else {
            return Err(self.unknown());
        };
        Ok(match name.raw() {
            b"harp_global_id_x" => self.word_value(self.id[0]),
            b"harp_global_id_y" => self.word_value(self.id[1]),
            b"harp_global_id_z" => self.word_value(self.id[2]),
            b"harp_lane_id" => self.word_value(self.lane.ok_or_else(|| self.unknown())?),
            b"harp_assume_uniform" => args[0].clone(),
            _ => return Err(self.unknown()),
        })
    }

    /// The value in the order of bytes that an access asks for.
    fn ordered(&self, value: DataValue) -> DataValue {
        let flags = self.data().memflags_data(&self.func.dfg);
        let big = flags.is_some_and(|f| f.explicit_endianness() == Some(Endianness::Big));
        if big { value.to_be() } else { value }
    }

    fn load(&self, memory: &FlatMemory, address: u64) -> Ended {
        let (ty, opcode) =
            (self.func.dfg.value_type(self.func.dfg.first_result(self.inst)), self.data().opcode());
        let part = part(opcode).unwrap_or(ty);
        let loaded = self.ordered(memory.load(address, part)?);
        Ok(vec![match opcode {
            Opcode::Load => loaded,
            Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => int(signed(&loaded), ty),
            _ => int(signed(&loaded) & ((1 << part.bits()) - 1), ty),
        }])
    }

    fn store(&self, memory: &mut FlatMemory, value: &DataValue, address: u64) -> Ended {
        let part = part(self.data().opcode());
        let stored = part.map_or_else(|| value.clone(), |part| int(signed(value), part));
        memory.store(address, &self.ordered(stored))?;
        Ok(Vec::new())
    }

    /// An access that is said to be aligned is that to its size; a large one to the word.
    fn check_alignment(&self, address: u64) -> Result<(), OracleError> {
        let (data, dfg) = (self.data(), &self.func.dfg);
        let aligned = data.memflags_data(dfg).is_some_and(MemFlagsData::aligned);
        let size = part(data.opcode()).unwrap_or(dfg.ctrl_typevar(self.inst)).bytes();
        let natural = u64::from(size.min(self.word.bytes().into()));
        if aligned && !address.is_multiple_of(natural) {
            return Err(OracleError::Misaligned(self.text()));
        }
        Ok(())
    }

    fn address(&self, base: &DataValue, offset: i64) -> u64 {
        (signed(base) as u64).wrapping_add_signed(offset) & self.word.mask()
    }

    fn word_value(&self, value: u64) -> DataValue {
        int(value.into(), word_type(self.word))
    }

    fn text(&self) -> String {
        self.func.dfg.display_inst(self.inst).to_string()
    }

    fn unknown(&self) -> OracleError {
        OracleError::Unknown(self.text())
    }
}

/// The type that a narrow access moves; none for other instructions.
fn part(opcode: Opcode) -> Option<Type> {
    Some(match opcode {
        Opcode::Uload8 | Opcode::Sload8 | Opcode::Istore8 => types::I8,
        Opcode::Uload16 | Opcode::Sload16 | Opcode::Istore16 => types::I16,
        Opcode::Uload32 | Opcode::Sload32 | Opcode::Istore32 => types::I32,
        _ => return None,
    })
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
