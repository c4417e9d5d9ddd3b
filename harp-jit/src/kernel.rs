//! A compiled kernel: machine code and what is known about it.

use cranelift_codegen::ir::TrapCode;
use harp_isa::object::Object;
use harp_isa::{ArchId, Instruction, Layout, Operand, OperandKind};

use crate::builder::ParamType;
use crate::source::SourcePlace;

/// A compiled kernel.
///
/// The code takes the address of its [argument block](harp_isa::abi::ArgumentBlock) in `%r0` and
/// may be placed anywhere. Offsets count bytes from its first instruction.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub(crate) name: String,
    pub(crate) arch: ArchId,
    pub(crate) params: Vec<ParamType>,
    pub(crate) object: Object,
    pub(crate) code: Vec<u8>,
    pub(crate) lane_stack_bytes: u32,
    pub(crate) places: Vec<(u32, Option<SourcePlace>)>,
    pub(crate) traps: Vec<(u32, TrapCode)>,
    pub(crate) stats: CompileStats,
}

/// What compiling a kernel came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompileStats {
    /// CLIF instructions as they were built.
    pub clif_insts: usize,
    /// CLIF instructions after the mid-end and legalization.
    pub optimized_insts: usize,
    /// Machine instructions before register allocation, pseudo-instructions counted once.
    pub selected_insts: usize,
    /// Moves that the register allocator inserted, spills and reloads included.
    pub moves: usize,
    /// Words of spill slots.
    pub spill_slots: u32,
    /// Moves of predicates to and from spill slots.
    pub predicate_spills: usize,
    /// Conditional branches.
    pub branches: usize,
    /// Conditional branches on which lanes may disagree.
    pub divergent_branches: usize,
    /// Bytes of machine code.
    pub code_bytes: usize,
}

impl Kernel {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The machine that it is for.
    pub fn arch(&self) -> ArchId {
        self.arch
    }

    /// The types of its parameters.
    pub fn params(&self) -> &[ParamType] {
        &self.params
    }

    /// The kernel as an object to link: one global, executable chunk with the kernel's name.
    pub fn object(&self) -> &Object {
        &self.object
    }

    /// The machine code.
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// The size of the stack that each lane needs, lane control block included: a power of two.
    pub fn lane_stack_bytes(&self) -> u32 {
        self.lane_stack_bytes
    }

    /// Where in the source the instruction at a byte offset was built; none if it belongs to no
    /// place, such as the function's prolog.
    pub fn place_at(&self, offset: u64) -> Option<&SourcePlace> {
        if offset >= self.code.len() as u64 {
            return None;
        }
        let after = self.places.partition_point(|&(start, _)| u64::from(start) <= offset);
        self.places[..after].last()?.1.as_ref()
    }

    /// The code of the `trap` instruction at a byte offset.
    pub fn trap_code_at(&self, offset: u64) -> Option<TrapCode> {
        let found = self.traps.binary_search_by_key(&offset, |&(at, _)| u64::from(at)).ok()?;
        Some(self.traps[found].1)
    }

    /// What compiling came to.
    pub fn stats(&self) -> CompileStats {
        self.stats
    }

    /// The machine code as text: an instruction a line after its offset, jumps with the offset that
    /// they lead to, and where the source changes its place.
    ///
    /// ```text
    ///         ; src/main.rs:12:9
    ///     48  @p0 ? jmpi #0xc;  ; to 58
    /// ```
    pub fn disassembly(&self) -> String {
        let mut text = String::new();
        let mut last_place = None;
        for (offset, instruction) in harp_isa::disassemble(&self.code, 0, self.arch) {
            let place = self.place_at(offset);
            if let Some(place) = place
                && last_place != Some(place)
            {
                text.push_str(&format!("        ; {place}\n"));
            }
            last_place = place;
            text.push_str(&match instruction {
                Ok(instruction) => {
                    let shown = instruction.display(self.arch);
                    match self.jump_target(offset, &instruction) {
                        Some(target) => format!("{offset:6x}  {shown}  ; to {target:x}\n"),
                        None => format!("{offset:6x}  {shown}\n"),
                    }
                }
                Err(error) => format!("{offset:6x}  ; {error}\n"),
            });
        }
        text
    }

    /// Where an instruction with a displacement leads.
    fn jump_target(&self, offset: u64, instruction: &Instruction) -> Option<u64> {
        let opcode = instruction.op.opcode();
        let relative = opcode.operands().iter().any(|o| o.kind == OperandKind::Rel);
        let mut displacement = None;
        instruction.op.for_each_operand(|operand| {
            if let Operand::Imm(imm) = operand {
                displacement = Some(imm);
            }
        });
        let next = offset + Layout::new(self.arch).size(opcode) as u64;
        displacement.filter(|_| relative).and_then(|rel| next.checked_add_signed(rel))
    }
}
