//! The ends of blocks, where they lead to, and the order in which blocks are translated.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, Block, BlockArg, InstBuilder, TrapCode, types};
use cranelift_frontend::Switch;
use hashbrown::{HashMap, HashSet};
use rspirv::spirv::Op;

use super::{Target, Translator};
use crate::error::{Result, SpirvErrorKind};
use crate::module::{self, Function, SpirvModule};
use crate::reader::{Id, Instruction, op_name};
use crate::values::Val;

/// The trap of an `OpUnreachable` that is reached: `user130`.
const UNREACHABLE: TrapCode = TrapCode::unwrap_user(130);

impl Translator<'_, '_, '_> {
    /// Translates the end of a block.
    pub(super) fn terminator(&mut self, inst: Instruction<'_>) -> Result<()> {
        self.ways_back();
        match inst.op {
            Op::Branch => {
                let (block, args) = self.edge(inst.word(0)?)?;
                self.b.ins().jump(block, &args);
            }
            Op::BranchConditional => {
                let condition = self.condition(inst.word(0)?)?;
                let (yes, yes_args) = self.edge(inst.word(1)?)?;
                let (no, no_args) = self.edge(inst.word(2)?)?;
                self.b.ins().brif(condition, yes, &yes_args, no, &no_args);
            }
            Op::Switch => self.switch(inst)?,
            Op::Return => self.leave(&[]),
            // Only fragment shaders have them.
            op @ (Op::Kill | Op::TerminateInvocation) => {
                return Err(SpirvErrorKind::unsupported(op_name(op)));
            }
            Op::ReturnValue => {
                let value = self.value(inst.word(0)?)?;
                self.check_result(&value)?;
                self.leave(&value.parts);
            }
            _ => {
                self.b.ins().trap(UNREACHABLE);
            }
        }
        Ok(())
    }

    /// Adds the ways back that the current block needs before its terminator. They are taken if the argument block is at
    /// address 0, where it never is.
    fn ways_back(&mut self) {
        let tails = self.frame.tails.clone();
        for header in tails.get(&self.frame.label).into_iter().flatten() {
            let Some(&Target { block, .. }) = self.frame.blocks.get(header) else { continue };
            let same: Vec<BlockArg> =
                self.b.block_params(block).iter().map(|&param| param.into()).collect();
            let arguments = self.prologue.argument_block;
            let never = self.b.ins().icmp_imm_u(IntCC::Equal, arguments, 0);
            let leaves = self.b.create_block();
            self.b.ins().brif(never, block, &same, leaves, &[]);
            self.b.switch_to_block(leaves);
        }
    }

    /// Checks that a returned value has the scalars that the caller expects.
    fn check_result(&self, value: &Val) -> Result<()> {
        let given = value.parts.iter().map(|&part| self.b.func.dfg.value_type(part));
        let fits = match self.frame.exit {
            Some(exit) => {
                let params = self.b.func.dfg.block_params(exit).iter();
                given.eq(params.map(|&param| self.b.func.dfg.value_type(param)))
            }
            None => given.eq(self.b.func.signature.returns.iter().map(|result| result.value_type)),
        };
        let wrong = || SpirvErrorKind::malformed("the returned value is of another type");
        fits.then_some(()).ok_or_else(wrong)
    }

    fn leave(&mut self, results: &[ir::Value]) {
        match self.frame.exit {
            None => {
                let returns = self.b.func.signature.returns.len();
                let results = if results.len() == returns { results } else { &[] };
                if results.len() == returns {
                    self.b.ins().return_(results);
                } else {
                    self.b.ins().trap(UNREACHABLE);
                }
            }
            Some(exit) => {
                if self.b.block_params(exit).len() == results.len() {
                    let args: Vec<BlockArg> = results.iter().map(|&part| part.into()).collect();
                    self.b.ins().jump(exit, &args);
                } else {
                    self.b.ins().trap(UNREACHABLE);
                }
            }
        }
    }

    /// The block that a label stands for, and the arguments for its phis.
    fn edge(&mut self, label: Id) -> Result<(Block, Vec<BlockArg>)> {
        let role = "the target of a branch";
        let undefined = || SpirvErrorKind::Undefined { id: label, role };
        let target = self.frame.blocks.get(&label).cloned().ok_or_else(undefined)?;
        let mut args = Vec::new();
        for at in target.phis {
            let phi = self.module.code.get(at);
            let pairs = phi.operands.as_chunks::<2>().0;
            let from = pairs.iter().find(|[_, parent]| *parent == self.frame.label);
            let &[value, _] = from.ok_or_else(|| {
                SpirvErrorKind::malformed(format!("%{} has no value for this branch", phi.id))
            })?;
            let value = self.value_of(value, phi.ty)?;
            args.extend(value.parts.into_iter().map(BlockArg::from));
        }
        Ok((target.block, args))
    }

    fn switch(&mut self, inst: Instruction<'_>) -> Result<()> {
        let selector = self.integer(inst.word(0)?)?;
        let ty = self.b.func.dfg.value_type(selector);
        let words = self.module.case_words(inst);
        let selector =
            if ty.bits() < 32 { self.b.ins().uextend(types::I32, selector) } else { selector };
        let mask = u64::MAX >> (64 - ty.bits());
        let cases = inst.rest(2);
        if !cases.len().is_multiple_of(words + 1) {
            return Err(SpirvErrorKind::malformed("the last case has no label"));
        }
        let mut blocks: HashMap<Id, Block> = HashMap::new();
        let mut between = Vec::new();
        let mut switch = Switch::new();
        let mut seen = HashSet::new();
        let mut block_of = |this: &mut Self, label: Id| -> Result<Block> {
            if let Some(&block) = blocks.get(&label) {
                return Ok(block);
            }
            let (target, args) = this.edge(label)?;
            let block = if args.is_empty() {
                target
            } else {
                let block = this.b.create_block();
                between.push((block, target, args));
                block
            };
            blocks.insert(label, block);
            Ok(block)
        };
        let otherwise = block_of(self, inst.word(1)?)?;
        for case in cases.chunks_exact(words + 1) {
            let high = if words == 2 { u64::from(case[1]) << 32 } else { 0 };
            let value = (high | u64::from(case[0])) & mask;
            if !seen.insert(value) {
                return Err(SpirvErrorKind::malformed(format!("two cases for {value}")));
            }
            let block = block_of(self, case[words])?;
            switch.set_entry(value.into(), block);
        }
        switch.emit(&mut self.b, selector, otherwise);
        for (block, target, args) in between {
            self.b.switch_to_block(block);
            self.b.ins().jump(target, &args);
        }
        Ok(())
    }
}

/// The blocks that are reached, each behind those that dominate it: in reverse post-order. In the module they may be in
/// another order.
pub(super) fn ordered<'m>(module: &SpirvModule, function: &'m Function) -> Vec<&'m module::Block> {
    let (_, mut succs) = module.numbered(function);
    // The last one is taken first.
    succs.iter_mut().for_each(|succs| succs.reverse());
    let mut seen = vec![false; function.blocks.len()];
    let mut order = Vec::new();
    let mut stack = vec![0];
    seen[0] = true;
    while let Some(&number) = stack.last() {
        match succs[number].pop() {
            Some(next) if !seen[next] => {
                seen[next] = true;
                stack.push(next);
            }
            Some(_) => {}
            None => {
                order.push(&function.blocks[number]);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
