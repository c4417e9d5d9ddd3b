//! Which registers hold the same value in all lanes that execute their definition together.

use harp_isa::abi::LaneField;
use harp_isa::{Gpr, Opcode, OpcodeFlags};

use super::Setting;
use super::nesting::Nesting;
use crate::abi::EntryKind;
use crate::vcode::{BlockId, MInst, MOperand, Reg, VCode};

/// What defines a register.
struct Definition {
    reg: Reg,
    block: BlockId,
    at: At,
}

/// Where a block defines a register.
#[derive(Clone, Copy)]
enum At {
    /// The parameter with this index.
    Param(usize),
    /// The instruction with this index in the function.
    Inst(usize),
}

/// The definitions of registers, and which of them are uniform.
#[derive(Debug)]
pub(super) struct Uniform {
    /// For each register the block of its definition.
    blocks: Vec<Option<BlockId>>,
    uniform: Vec<bool>,
}

impl Uniform {
    /// The largest solution: a register is uniform unless something shows otherwise.
    pub(super) fn compute(vcode: &VCode, nesting: &Nesting, setting: Setting) -> Uniform {
        let mut blocks = vec![None; vcode.num_regs];
        for (id, block) in vcode.blocks() {
            let mut define = |reg: Reg| blocks[reg.index()] = Some(id);
            block.params.iter().copied().for_each(&mut define);
            for inst in &vcode.insts[block.insts.clone()] {
                inst.for_each_reg(|reg, access| {
                    if access.is_def() {
                        define(reg);
                    }
                });
            }
        }
        let uniform = vec![true; vcode.num_regs];
        let mut solution = Uniform { blocks, uniform };
        let mut left = solution.first_round(vcode, nesting, setting);
        let mut before = usize::MAX;
        while left.len() < before {
            before = left.len();
            left.retain(|definition| solution.holds(vcode, definition, nesting, setting));
        }
        solution
    }

    /// Whether the register is uniform where it is defined.
    pub(super) fn is_uniform(&self, reg: Reg) -> bool {
        self.uniform[reg.index()]
    }

    /// Adds a new register, whose value an instruction behind its definition copies to `reg`.
    pub(super) fn add_source(&mut self, reg: Reg) {
        self.blocks.push(self.blocks[reg.index()]);
        self.uniform.push(self.uniform[reg.index()]);
    }

    /// The registers that others are uniform because of.
    pub(super) fn relied_on(&self, vcode: &VCode) -> Vec<bool> {
        let mut found = vec![false; vcode.num_regs];
        for inst in &vcode.insts {
            if let MInst::Jump { target, args } = inst {
                let params = &vcode.blocks[target.index()].params;
                let passed = params.iter().zip(args).filter(|(param, _)| self.is_uniform(**param));
                passed.for_each(|(_, arg)| found[arg.index()] = true);
                continue;
            }
            let mut relies = false;
            inst.for_each_reg(|reg, access| relies |= access.is_def() && self.is_uniform(reg));
            if relies {
                inst.for_each_reg(|reg, access| found[reg.index()] |= !access.is_def());
            }
        }
        found
    }

    /// The block of its definition.
    fn block(&self, reg: Reg) -> Option<BlockId> {
        self.blocks[reg.index()]
    }

    /// Whether the register is uniform among lanes in `block`.
    pub(super) fn is_uniform_in(&self, reg: Reg, block: BlockId, nesting: &Nesting) -> bool {
        self.is_uniform(reg) && self.is_defined_around(reg, block, nesting)
    }

    /// Whether lanes in `block` have not left the splits around the definition of `reg` since.
    pub(super) fn is_defined_around(&self, reg: Reg, block: BlockId, nesting: &Nesting) -> bool {
        self.block(reg).is_some_and(|def| nesting.encloses(def, block))
    }

    /// Applies the rules to all definitions once. Returns those that are uniform so far: only these are looked at again.
    fn first_round(
        &mut self,
        vcode: &VCode,
        nesting: &Nesting,
        setting: Setting,
    ) -> Vec<Definition> {
        let mut left = Vec::new();
        for (block, data) in vcode.blocks() {
            let params = data.params.iter().enumerate();
            let params =
                params.map(|(index, &reg)| Definition { reg, block, at: At::Param(index) });
            left.extend(params.filter(|it| self.holds(vcode, it, nesting, setting)));
            for index in data.insts.clone() {
                vcode.insts[index].for_each_reg(|reg, access| {
                    let definition = Definition { reg, block, at: At::Inst(index) };
                    if access.is_def() && self.holds(vcode, &definition, nesting, setting) {
                        left.push(definition);
                    }
                });
            }
        }
        left
    }

    /// Whether a definition is uniform so far.
    fn holds(
        &mut self,
        vcode: &VCode,
        definition: &Definition,
        nesting: &Nesting,
        setting: Setting,
    ) -> bool {
        let &Definition { reg, block, at } = definition;
        let same = nesting.is_known(block)
            && match at {
                At::Param(index) => {
                    let first = &vcode.insts[vcode.blocks[block.index()].insts.start];
                    !matches!(first, MInst::Join)
                        && self.are_arguments(vcode, block, index, nesting)
                }
                At::Inst(index) => {
                    let inst = &vcode.insts[index];
                    self.is_result(vcode, inst, reg, block, nesting, setting)
                        || vcode.promises.uniform.contains(&reg)
                }
            };
        self.uniform[reg.index()] = same;
        same
    }

    /// Whether all arguments of a block's parameter are uniform.
    fn are_arguments(
        &self,
        vcode: &VCode,
        block: BlockId,
        index: usize,
        nesting: &Nesting,
    ) -> bool {
        vcode.blocks[block.index()].preds.iter().all(|&from| {
            let last = &vcode.insts[vcode.blocks[from.index()].insts.end - 1];
            matches!(last, MInst::Jump { args, .. } if self.is_uniform_in(args[index], from, nesting))
        })
    }

    /// Whether `reg` is uniform, which an instruction in `block` defines.
    fn is_result(
        &self,
        vcode: &VCode,
        inst: &MInst,
        reg: Reg,
        block: BlockId,
        nesting: &Nesting,
        setting: Setting,
    ) -> bool {
        match inst {
            MInst::Op { opcode, guard, operands } => match guard {
                None if is_row(vcode, operands) => false,
                None => is_vote(*opcode) || self.is_op(*opcode, operands, block, nesting),
                Some(_) => false,
            },
            MInst::Args { defs } => defs.iter().any(|&(def, place)| {
                let of_kernel = setting.entry == EntryKind::Kernel && place == Gpr::new(0);
                let arrives = vcode.shared.contains_key(&def);
                let is_promised = vcode.promises.own.arguments.contains(&place);
                def == reg && (of_kernel || arrives || is_promised)
            }),
            MInst::LaneWord { field: LaneField::GlobalIdY | LaneField::GlobalIdZ, .. } => {
                setting.by_rows
            }
            MInst::LaneWord { field, .. } => is_of_warp(*field),
            MInst::Const { .. }
            | MInst::Address { .. }
            | MInst::GroupWord { .. }
            | MInst::Undef { .. } => true,
            MInst::Any { dst, .. } | MInst::OfSomeLane { dst, .. } => *dst == reg,
            _ => false,
        }
    }

    /// Whether an instruction computes the same in all lanes.
    fn is_op(
        &self,
        opcode: Opcode,
        operands: &[MOperand],
        block: BlockId,
        nesting: &Nesting,
    ) -> bool {
        use OpcodeFlags as F;
        let of_lanes =
            F::CONTROL | F::ONCE_PER_WARP | F::STORE | F::ATOMIC | F::CROSS_LANE | F::PRIVILEGED;
        !opcode.flags().intersects(of_lanes)
            && !matches!(opcode, Opcode::Tid | Opcode::Csr)
            && operands.iter().all(|operand| match *operand {
                MOperand::Def(_) | MOperand::Imm(_) => true,
                MOperand::Use(reg) => self.is_uniform_in(reg, block, nesting),
                MOperand::Mod { .. } | MOperand::StackSlots => false,
            })
    }
}

/// Whether an instruction accesses a row of memory.
pub(super) fn is_row(vcode: &VCode, operands: &[MOperand]) -> bool {
    matches!(operands, [_, MOperand::Use(base), ..] if vcode.rows.contains(base))
}

/// Whether all lanes that execute the instruction get the same result in any case.
fn is_vote(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::Anyp | Opcode::Allp | Opcode::Ballot)
}

/// Whether a word of the lane control block is the same in all lanes of a warp.
fn is_of_warp(field: LaneField) -> bool {
    matches!(
        field,
        LaneField::Warp
            | LaneField::Core
            | LaneField::ScratchAddress
            | LaneField::Lanes
            | LaneField::Group
    )
}
