//! What is outside of functions: types, constants, data, inputs, the entry point.

use std::collections::HashMap;

use cranelift_codegen::ir::{Signature, Type, types};
use harp_isa::WordSize;
use harp_jit::{DataAccess, ParamType};
use rspirv::binary::Assemble;
use rspirv::dr::{Builder, InsertPoint, Instruction, Operand};
use rspirv::spirv::{
    AddressingModel, BuiltIn, Capability, Decoration, ExecutionModel, FunctionControl, MemoryModel,
    Op, StorageClass, Word,
};

use super::function::Body;
use super::{Result, Unwritable};
use harp_oracle::functions::{name, word_type};
use harp_oracle::{Address, Argument, Case, Datum};

/// The alignment of data, as the oracle has it.
const DATA_ALIGN: u32 = 16;

/// A variable outside of functions, with the type of a pointer to it.
#[derive(Clone, Copy)]
pub(super) struct Global {
    pub(super) variable: Word,
    pointer: Word,
}

/// A module in the making.
pub(super) struct Writer<'c> {
    pub(super) case: &'c Case,
    pub(super) b: Builder,
    /// The integer type of the word.
    pub(super) word: Type,
    /// The instruction set `OpenCL.std`.
    pub(super) opencl: Word,
    /// The functions of the case.
    pub(super) functions: Vec<Word>,
    types: HashMap<Type, Word>,
    pointers: HashMap<(StorageClass, Type), Word>,
    constants: HashMap<(Type, u64), Word>,
    data: HashMap<usize, Global>,
    inputs: HashMap<BuiltIn, Word>,
}

impl<'c> Writer<'c> {
    pub(super) fn new(case: &'c Case) -> Writer<'c> {
        use Capability::*;
        let mut b = Builder::new();
        b.set_version(1, 2);
        let numbers = [Int8, Int16, Int64, Float64, Int64Atomics, BitInstructions];
        let all = [Addresses, Kernel, GenericPointer, Groups].into_iter().chain(numbers);
        all.for_each(|capability| b.capability(capability));
        b.extension("SPV_KHR_bit_instructions");
        let opencl = b.ext_inst_import("OpenCL.std");
        let addressing = match case.word {
            WordSize::Four => AddressingModel::Physical32,
            WordSize::Eight => AddressingModel::Physical64,
        };
        b.memory_model(addressing, MemoryModel::OpenCL);
        let functions = case.functions.iter().map(|_| b.id()).collect();
        Writer {
            case,
            b,
            word: word_type(case.word),
            opencl,
            functions,
            types: HashMap::new(),
            pointers: HashMap::new(),
            constants: HashMap::new(),
            data: HashMap::new(),
            inputs: HashMap::new(),
        }
    }

    /// The module of a kernel that takes these arguments.
    pub(super) fn module(mut self, args: &[Argument]) -> Result<Vec<u8>> {
        let case = self.case;
        let params: Vec<Word> =
            args.iter().map(|arg| self.param_type(arg)).collect::<Result<_>>()?;
        let void = self.b.type_void();
        self.function(0, void, &params)?;
        for (index, func) in case.functions.iter().enumerate().skip(1) {
            let (result, params) = self.signature(&func.signature);
            self.function(index, result, &params)?;
        }
        let mut inputs: Vec<Word> = self.inputs.values().copied().collect();
        inputs.sort_unstable();
        let entry = self.functions[0];
        self.b.entry_point(ExecutionModel::Kernel, entry, name(&case.functions[0]), inputs);
        Ok(self.b.module().assemble().into_iter().flat_map(u32::to_le_bytes).collect())
    }

    fn function(&mut self, index: usize, result: Word, params: &[Word]) -> Result<()> {
        let ty = self.b.type_function(result, params.iter().copied());
        let (id, control) = (self.functions[index], FunctionControl::NONE);
        self.b.begin_function(result, Some(id), control, ty).expect("no function is open");
        let params = params.iter().map(|&ty| self.b.function_parameter(ty));
        let params = params.map(|param| param.expect("a function is open")).collect();
        Body::new(self, index, params).make()?;
        self.b.end_function().expect("the last block has ended");
        Ok(())
    }

    fn param_type(&mut self, arg: &Argument) -> Result<Word> {
        let ty = arg.ty();
        match ty {
            ParamType::Pointer => Ok(self.pointer(StorageClass::CrossWorkgroup, types::I8)),
            ParamType::I8 | ParamType::I16 | ParamType::I32 | ParamType::I64 => {
                Ok(self.ty(ty.clif_type(self.case.word)))
            }
            ParamType::F32 | ParamType::F64 => Ok(self.ty(ty.clif_type(self.case.word))),
            _ => Err(Unwritable::new(format_args!("an argument of type {ty}"))),
        }
    }

    /// The types of a function's result and parameters. Several results are a structure.
    pub(super) fn signature(&mut self, signature: &Signature) -> (Word, Vec<Word>) {
        let params = signature.params.iter().map(|param| self.ty(param.value_type)).collect();
        let results: Vec<Word> =
            signature.returns.iter().map(|result| self.ty(result.value_type)).collect();
        let result = match results[..] {
            [] => self.b.type_void(),
            [result] => result,
            _ => self.b.type_struct(results),
        };
        (result, params)
    }

    pub(super) fn ty(&mut self, ty: Type) -> Word {
        let b = &mut self.b;
        *self.types.entry(ty).or_insert_with(|| match ty {
            types::F32 | types::F64 => b.type_float(ty.bits(), None),
            _ => b.type_int(ty.bits(), 0),
        })
    }

    pub(super) fn pointer(&mut self, class: StorageClass, to: Type) -> Word {
        let ty = self.ty(to);
        let b = &mut self.b;
        *self.pointers.entry((class, to)).or_insert_with(|| b.type_pointer(None, class, ty))
    }

    /// The number with these bits; those above the type's do not count.
    pub(super) fn constant(&mut self, ty: Type, bits: u64) -> Word {
        let bits = bits & (u64::MAX >> (64 - ty.bits()));
        if let Some(&constant) = self.constants.get(&(ty, bits)) {
            return constant;
        }
        let id = self.ty(ty);
        let constant = match ty.bits() {
            64 => self.b.constant_bit64(id, bits),
            _ => self.b.constant_bit32(id, bits as u32),
        };
        self.constants.insert((ty, bits), constant);
        constant
    }

    /// A variable outside of functions.
    fn global(&mut self, pointer: Word, class: StorageClass, initial: Option<Word>) -> Word {
        let id = self.b.id();
        let class = [Operand::StorageClass(class)].into_iter();
        let operands = class.chain(initial.map(Operand::IdRef)).collect();
        let inst = Instruction::new(Op::Variable, Some(pointer), Some(id), operands);
        self.b.insert_types_global_values(InsertPoint::End, inst);
        id
    }

    /// The variable of an input, of this type.
    pub(super) fn input(&mut self, builtin: BuiltIn, ty: Word) -> Word {
        if let Some(&input) = self.inputs.get(&builtin) {
            return input;
        }
        let pointer = self.b.type_pointer(None, StorageClass::Input, ty);
        let input = self.global(pointer, StorageClass::Input, None);
        self.b.decorate(input, Decoration::BuiltIn, [Operand::BuiltIn(builtin)]);
        self.inputs.insert(builtin, input);
        input
    }

    /// An integer that stands for the address of a function.
    pub(super) fn function_address(&mut self, index: usize) -> Word {
        self.constant(self.word, 16 * (index as u64 + 1))
    }

    /// The variable of the datum with this index: bytes, with addresses between them.
    pub(super) fn datum(&mut self, index: usize) -> Result<Global> {
        if let Some(&global) = self.data.get(&index) {
            return Ok(global);
        }
        let case = self.case;
        let Datum { bytes, access, addresses, .. } = &case.data[index];
        let mut addresses = addresses.clone();
        addresses.sort_unstable_by_key(|&(at, _)| at);
        let mut parts = Vec::new();
        let mut start = 0;
        for (at, address) in addresses {
            parts.extend(self.bytes(&bytes[start..at]));
            parts.push(match address {
                Address::Function(index) => (self.ty(self.word), self.function_address(index)),
                Address::Datum(other) if other < index => self.data_address(other)?,
                Address::Datum(_) => return Err(Unwritable::new("an address of a later datum")),
            });
            start = at + usize::from(case.word.bytes());
        }
        parts.extend(self.bytes(&bytes[start..]));
        let (types, values): (Vec<Word>, Vec<Word>) = parts.into_iter().unzip();
        let ty = self.b.id();
        self.b.type_struct_id(Some(ty), types);
        self.b.decorate(ty, Decoration::CPacked, []);
        let contents = self.b.constant_composite(ty, values);
        let class = match access {
            DataAccess::ReadOnly => StorageClass::UniformConstant,
            DataAccess::ReadWrite => StorageClass::CrossWorkgroup,
        };
        let pointer = self.b.type_pointer(None, class, ty);
        let variable = self.global(pointer, class, Some(contents));
        self.align(variable, DATA_ALIGN);
        let global = Global { variable, pointer };
        self.data.insert(index, global);
        Ok(global)
    }

    /// The address of a datum as a constant, which a variable is not: its type, and itself.
    fn data_address(&mut self, index: usize) -> Result<(Word, Word)> {
        let Global { variable, pointer } = self.datum(index)?;
        let id = self.b.id();
        let cast = Operand::LiteralSpecConstantOpInteger(Op::Bitcast);
        let operands = vec![cast, Operand::IdRef(variable)];
        let inst = Instruction::new(Op::SpecConstantOp, Some(pointer), Some(id), operands);
        self.b.insert_types_global_values(InsertPoint::End, inst);
        Ok((pointer, id))
    }

    /// An array of bytes: its type, and itself; none if there are none.
    fn bytes(&mut self, bytes: &[u8]) -> Option<(Word, Word)> {
        if bytes.is_empty() {
            return None;
        }
        let ty = self.array(bytes.len());
        let values: Vec<Word> =
            bytes.iter().map(|&byte| self.constant(types::I8, byte.into())).collect();
        Some((ty, self.b.constant_composite(ty, values)))
    }

    /// The type of an array of bytes.
    pub(super) fn array(&mut self, bytes: usize) -> Word {
        let (byte, length) = (self.ty(types::I8), self.constant(types::I32, bytes as u64));
        self.b.type_array(byte, length)
    }

    pub(super) fn align(&mut self, variable: Word, align: u32) {
        self.b.decorate(variable, Decoration::Alignment, [Operand::LiteralBit32(align)]);
    }
}
