//! `printf`: each call is a line of what the launch reports.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, types};
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

/// The most formats among which a call chooses.
const MOST_FORMATS: usize = 16;

/// A place in a variable of the module: the variable, and the distance from its start.
type Spot = (Id, i64);

impl Translator<'_, '_, '_> {
    pub(crate) fn printf(&mut self, inst: Instruction<'_>) -> Result<()> {
        let (&format, args) = inst.operands.split_first().ok_or_else(missing)?;
        let spots = self.known_addresses(format).unwrap_or_default();
        let texts = spots.iter().map(|&spot| self.text_at(spot));
        let texts: Option<Vec<String>> = texts.collect::<Result<_>>()?;
        let formats: Vec<_> = spots.into_iter().zip(texts.unwrap_or_default()).collect();
        let values = self.printed(args)?;
        self.print_chosen(format, &formats, &values)?;
        let zero = self.bits(types::I32, 0);
        let parts = Parts::from_slice(&[zero]);
        self.check_parts(inst.ty, &parts)?;
        self.set(inst, parts)
    }

    /// Prints values by the format among these whose address is chosen: optimizers make one call of two with the same values.
    fn print_chosen(
        &mut self,
        chosen: Id,
        formats: &[(Spot, String)],
        values: &[ir::Value],
    ) -> Result<()> {
        let ((variable, offset), text, rest) = match formats {
            [] => {
                let what = "`printf` with a format that is no constant string";
                return Err(SpirvErrorKind::unsupported(what));
            }
            [(_, text)] => return self.print(text, values),
            [(spot, text), rest @ ..] => (*spot, text, rest),
        };
        let address = self.value(chosen)?.parts[0];
        let start = self.global_address(variable)?;
        let own = self.b.ins().iadd_imm_s(start, offset);
        let is_this = self.b.ins().icmp(IntCC::Equal, address, own);
        let [this, other, after] = [(); 3].map(|()| self.b.create_block());
        self.b.ins().brif(is_this, this, &[], other, &[]);
        self.b.switch_to_block(this);
        self.print(text, values)?;
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(other);
        self.print_chosen(chosen, rest, values)?;
        self.b.ins().jump(after, &[]);
        self.b.switch_to_block(after);
        Ok(())
    }

    /// The numbers and addresses that are to be printed.
    fn printed(&mut self, args: &[Id]) -> Result<Parts> {
        let mut values = Parts::new();
        for &arg in args {
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
        Ok(values)
    }

    /// Prints values by a format.
    fn print(&mut self, format: &str, values: &[ir::Value]) -> Result<()> {
        let kinds: Vec<_> = values.iter().map(|&value| self.b.func.dfg.value_type(value)).collect();
        let place = self.module.source_place(self.at);
        let site = PrintSite::from_printf(format, &kinds, place).map_err(|what| {
            SpirvErrorKind::unsupported(format!("`printf` of {format:?}: {what}; it"))
        })?;
        let (number, arch) = (self.unit.prints.len(), self.unit.arch);
        let printer = self.prologue.printer(self.b.func, self.unit.argument_words);
        printer.append(&mut self.b, arch, number, &site, values);
        self.unit.prints.push(site);
        Ok(())
    }

    /// The text at a place, if it is in a variable with constant bytes.
    fn text_at(&self, (variable, offset): Spot) -> Result<Option<String>> {
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

    /// The places among which an address is, each once, if they are known: what is chosen of several.
    fn known_addresses(&self, id: Id) -> Option<Vec<Spot>> {
        let (mut spots, mut todo, mut seen) = (Vec::new(), vec![id], vec![id]);
        while let Some(id) = todo.pop() {
            if let Some(spot) = self.known_address(id, 0) {
                if !spots.contains(&spot) {
                    spots.push(spot);
                }
                continue;
            }
            let inst = self.definition(id)?;
            let (first, step) = match inst.op {
                Op::Select => (1, 1),
                Op::Phi => (0, 2),
                op if is_cast(op) => (0, 1),
                _ => return None,
            };
            for &id in inst.rest(first).iter().step_by(step) {
                if !seen.contains(&id) {
                    seen.push(id);
                    todo.push(id);
                }
            }
            if seen.len() > MOST_FORMATS {
                return None;
            }
        }
        Some(spots)
    }

    /// The place that an address is of.
    fn known_address(&self, id: Id, depth: u32) -> Option<Spot> {
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
            op if is_cast(op) => Some((base, offset)),
            // Texts are arrays of bytes: the first index is of bytes or of the whole array, which is 0.
            Op::AccessChain
            | Op::InBoundsAccessChain
            | Op::PtrAccessChain
            | Op::InBoundsPtrAccessChain => {
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

/// Whether an instruction gives its operand, an address, as it is.
fn is_cast(op: Op) -> bool {
    matches!(op, Op::Bitcast | Op::PtrCastToGeneric | Op::GenericCastToPtr)
}
