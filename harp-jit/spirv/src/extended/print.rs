//! `printf`: each call is a line of what the launch reports.

use cranelift_codegen::ir::types;
use harp_jit::PrintSite;
use rspirv::spirv::Op;

use super::missing;
use crate::constants::Scalar;
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::instruction::Of;
use crate::reader::{Id, Instruction};
use crate::values::Parts;

/// The longest text.
const MAX_TEXT: usize = 1 << 16;

impl Translator<'_, '_, '_> {
    pub(super) fn printf(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (&format, args) = inst.operands.split_first().ok_or_else(missing)?;
        let format = self.constant_text(format)?.ok_or_else(|| {
            SpirvErrorKind::unsupported("`printf` with a format that is no constant string")
        })?;
        let (mut values, mut strings) = (Parts::new(), Vec::new());
        for &arg in args {
            if let Some(text) = self.constant_text(arg)? {
                strings.push(text);
                continue;
            }
            let value = self.value(arg)?;
            if self.is_vector_of(value.ty, Of::Float)? && self.is_half(value.ty)? {
                for part in value.parts {
                    values.push(self.half_to_single(part));
                }
            } else if self.is_vector_of(value.ty, Of::Float)?
                || self.is_vector_of(value.ty, Of::Address)?
            {
                values.extend(value.parts);
            } else {
                return Err(self.mismatch(arg, value.ty, "numbers".to_owned()));
            }
        }
        let kinds: Vec<_> = values.iter().map(|&value| self.b.func.dfg.value_type(value)).collect();
        let place = self.module.source_place(self.at);
        let site = PrintSite::from_printf(&format, &kinds, &strings, place).map_err(|what| {
            SpirvErrorKind::unsupported(format!("`printf` of {format:?}: {what}; it"))
        })?;
        let (number, arch) = (self.unit.prints.len(), self.unit.arch);
        let printer = self.prologue.printer(self.b.func, self.unit.argument_words);
        printer.append(&mut self.b, arch, number, &site, &values);
        self.unit.prints.push(site);
        let zero = self.bits(types::I32, 0);
        let parts = Parts::from_slice(&[zero]);
        self.check_parts(inst.ty, &parts)?;
        self.set(inst, parts)
    }

    /// The text at an address that is known, if it is one: in a variable with constant bytes.
    fn constant_text(&self, id: Id) -> Result<Option<String>> {
        let Some((variable, offset)) = self.known_address(id, 0) else { return Ok(None) };
        let module = self.module;
        let Some(initializer) = module.globals[&variable].initializer else { return Ok(None) };
        let leaves = module.types.all_leaves(module.globals[&variable].ty, self.unit.word)?;
        if leaves.iter().any(|&(_, ty)| ty != types::I8) {
            return Ok(None);
        }
        let scalars = module.constants.scalars(initializer, &module.types)?;
        let Some(scalars) = usize::try_from(offset).ok().and_then(|offset| scalars.get(offset..))
        else {
            return Ok(None);
        };
        let bytes = scalars.iter().map_while(|&scalar| match scalar {
            Scalar::Bits(0) | Scalar::Address { .. } => None,
            Scalar::Bits(bits) => Some(bits as u8),
        });
        let bytes: Vec<u8> = bytes.take(MAX_TEXT).collect();
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The variable of the module that an address is in, and the distance from its start.
    fn known_address(&self, id: Id, depth: u32) -> Option<(Id, i64)> {
        let module = self.module;
        if module.constants.contains(id) {
            return match module.constants.scalar(id, &module.types).ok()? {
                Scalar::Address { variable, offset } => Some((variable, offset)),
                Scalar::Bits(_) => None,
            };
        }
        if depth > 8 {
            return None;
        }
        let inst = self.definition(id)?;
        let index = |at: usize| {
            let id = *inst.operands.get(at)?;
            module.constants.integer(id, &module.types).ok()
        };
        let (base, offset) = self.known_address(*inst.operands.first()?, depth + 1)?;
        match inst.op {
            Op::Bitcast | Op::PtrCastToGeneric | Op::GenericCastToPtr => Some((base, offset)),
            // Texts are arrays of bytes: the first index is of bytes or of the whole array, which is 0.
            Op::PtrAccessChain | Op::InBoundsPtrAccessChain => {
                let mut sum = offset;
                for at in 1..inst.operands.len() {
                    sum = sum.checked_add(index(at)?)?;
                }
                Some((base, sum))
            }
            _ => None,
        }
    }

    /// The instruction before the current one that defines an id in the function.
    fn definition(&self, id: Id) -> Option<Instruction<'_>> {
        let before = (0..self.at).rev().map(|at| self.module.code.get(at));
        let mut before = before.take_while(|inst| inst.op != Op::Function);
        before.find(|inst| inst.id == id)
    }
}
