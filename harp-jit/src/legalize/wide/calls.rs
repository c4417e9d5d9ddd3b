//! Calls: a pair is two parameters or two results, the low half first.

use cranelift_codegen::ir::{
    AbiParam, ArgumentExtension, ArgumentPurpose, Function, Inst, InstBuilder, InstructionData,
    Opcode, Signature, Type, Value, ValueList,
};
use hashbrown::HashMap;

use super::{Pair, Wide};
use crate::error::Unsupported;
use crate::intrinsic::Intrinsic;

/// The calls of intrinsics with pairs as results, which are known as such by their signatures only
/// as long as these are what they were.
pub(super) fn intrinsics(func: &Function, full: Type) -> HashMap<Inst, Intrinsic> {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let calls = insts.filter_map(|inst| Some((inst, Intrinsic::of_call(func, inst)?)));
    let is_wide =
        |inst| func.dfg.inst_results(inst).iter().any(|&v| func.dfg.value_type(v) == full);
    calls.filter(|&(inst, _)| is_wide(inst)).collect()
}

/// Refuses calls with handlers whose signatures have pairs: their results are arguments of blocks.
pub(super) fn check_exceptions(func: &Function, full: Type) -> Result<(), Unsupported> {
    for block in func.layout.blocks() {
        for inst in func.layout.block_insts(block) {
            let data = &func.dfg.insts[inst];
            let Some(table) = data.exception_table() else { continue };
            let Signature { params, returns, .. } =
                &func.dfg.signatures[func.dfg.exception_tables[table].signature()];
            if params.iter().chain(returns).any(|param| param.value_type == full) {
                let what = format!("`{}` with values of type {full}", data.opcode());
                return Err(Unsupported { inst, block, what });
            }
        }
    }
    Ok(())
}

/// Makes two parameters and results of each that is a pair, in the function's own signature and in
/// all that it knows. Returns whether there was one.
pub(super) fn split_signatures(func: &mut Function, full: Type, half: Type) -> bool {
    let known = func.stencil.dfg.signatures.values_mut();
    let mut changed = false;
    for signature in known.chain([&mut func.stencil.signature]) {
        let Signature { params, returns, .. } = signature;
        for list in [params, returns] {
            changed |= list.iter().any(|param| param.value_type == full);
            let halves = list.drain(..).flat_map(|param| {
                if param.value_type != full {
                    return [Some(param), None];
                }
                let extension = ArgumentExtension::None;
                let low = AbiParam { value_type: half, extension, ..param };
                [Some(low), Some(AbiParam { purpose: ArgumentPurpose::Normal, ..low })]
            });
            *list = halves.flatten().collect();
        }
    }
    changed
}

impl Wide<'_> {
    /// Values with the halves of those that are pairs.
    pub(super) fn flatten(&self, values: &[Value]) -> Vec<Value> {
        let parts = values.iter().map(|&value| {
            if self.is_wide(value) { self.parts(value).to_vec() } else { vec![value] }
        });
        parts.flatten().collect()
    }

    /// A call with a pair among its operands or results, or whose target's address is one. None if it
    /// is none that can be.
    pub(super) fn call(&mut self, inst: Inst, data: InstructionData) -> Option<()> {
        if let Some(&intrinsic) = self.intrinsics.get(&inst) {
            let result = self.intrinsic(inst, intrinsic);
            self.define(inst, result);
            return Some(());
        }
        let list = |list: ValueList| list.as_slice(&self.at.func.dfg.value_lists).to_vec();
        let call = match data {
            InstructionData::Call { opcode, func_ref, args } => {
                let args = self.flatten(&list(args));
                match opcode {
                    Opcode::ReturnCall => self.at.ins().return_call(func_ref, &args),
                    _ => self.at.ins().call(func_ref, &args),
                }
            }
            InstructionData::CallIndirect { opcode, sig_ref, args } => {
                let all = list(args);
                let (&callee, args) = all.split_first()?;
                let callee = self.flatten(&[callee])[0];
                let args = self.flatten(args);
                match opcode {
                    Opcode::ReturnCallIndirect => {
                        self.at.ins().return_call_indirect(sig_ref, callee, &args)
                    }
                    _ => self.at.ins().call_indirect(sig_ref, callee, &args),
                }
            }
            _ => return None,
        };
        let old = self.at.func.dfg.inst_results(inst).to_vec();
        let mut new = self.at.func.dfg.inst_results(call).to_vec().into_iter();
        let mut next = || new.next().expect("the signatures were split like the results");
        self.at.func.dfg.clear_results(inst);
        for value in old {
            if self.is_wide(value) {
                self.parts[value] = Some([next(), next()]);
            } else {
                self.at.func.dfg.change_to_alias(value, next());
            }
        }
        self.remove(inst);
        Some(())
    }

    /// An id is a word. What is promised to be uniform is promised for both halves.
    fn intrinsic(&mut self, inst: Inst, intrinsic: Intrinsic) -> Pair {
        let args = self.at.func.dfg.inst_args(inst).to_vec();
        if let (Intrinsic::Shuffle, &[value, lane]) = (intrinsic, args.as_slice()) {
            return self.shuffle(value, lane);
        }
        let callee = intrinsic.declare(self.at.func, self.half);
        let call = |this: &mut Self, args: &[Value]| {
            let call = this.at.ins().call(callee, args);
            this.at.func.dfg.first_result(call)
        };
        if intrinsic == Intrinsic::AssumeUniform {
            let halves = self.parts(args[0]);
            return halves.map(|half| call(self, &[half]));
        }
        [call(self, &[]), self.konst(0)]
    }

    /// Both halves of a value come from the same lane. One whose number takes two words does not exist.
    fn shuffle(&mut self, value: Value, lane: Value) -> Pair {
        let lane = if self.is_wide(lane) {
            let [low, high] = self.parts(lane);
            let beyond = self.konst(u64::MAX);
            self.at.ins().select(high, beyond, low)
        } else {
            lane
        };
        let ty = self.at.func.dfg.value_type(lane);
        let callee = Intrinsic::Shuffle.declare_with(self.at.func, self.half, ty);
        let halves = self.parts(value);
        halves.map(|half| {
            let call = self.at.ins().call(callee, &[half, lane]);
            self.at.func.dfg.first_result(call)
        })
    }
}
