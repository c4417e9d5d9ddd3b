//! Calls: a pair is two parameters or two results, the low half first.

use cranelift_codegen::ir::{
    AbiParam, ArgumentExtension, ArgumentPurpose, Function, Inst, InstBuilder, InstructionData,
    Opcode, Signature, Type, Value, ValueList,
};
use hashbrown::HashMap;

use super::Wide;
use crate::error::Unsupported;
use crate::intrinsic::Intrinsic;

/// The calls of intrinsics with pairs as operands or results. They are collected first, because an intrinsic
/// is recognized by its signature, which changes.
pub(super) fn intrinsics(func: &Function, full: Type) -> HashMap<Inst, Intrinsic> {
    let insts = func.layout.blocks().flat_map(|block| func.layout.block_insts(block));
    let calls = insts.filter_map(|inst| Some((inst, Intrinsic::of_call(func, inst)?)));
    let is_wide = |inst| {
        let mut values = func.dfg.inst_results(inst).iter().chain(func.dfg.inst_args(inst));
        values.any(|&value| func.dfg.value_type(value) == full)
    };
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

/// Splits each parameter and result that is a pair in two, in the function's own signature and in all that it
/// declares. Returns whether there were any.
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
    /// The values, with pairs replaced by their halves.
    pub(super) fn flatten(&self, values: &[Value]) -> Vec<Value> {
        let parts = values.iter().map(|&value| {
            if self.is_wide(value) { self.parts(value).to_vec() } else { vec![value] }
        });
        parts.flatten().collect()
    }

    /// A call with a pair among its operands or results, or whose target address is a pair. None if the call
    /// is not supported.
    pub(super) fn call(&mut self, inst: Inst, data: InstructionData) -> Option<()> {
        if let Some(&intrinsic) = self.intrinsics.get(&inst) {
            self.intrinsic(inst, intrinsic);
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

    /// An intrinsic with a pair among its operands or results. An id is a word, and so are the bits of a
    /// ballot.
    fn intrinsic(&mut self, inst: Inst, intrinsic: Intrinsic) {
        let args = self.at.func.dfg.inst_args(inst).to_vec();
        let result = match (intrinsic, args.as_slice()) {
            (Intrinsic::Shuffle, &[value, lane]) => {
                let lane = self.lane(lane);
                if !self.is_wide(value) {
                    let shuffled = self.shuffle(value, lane);
                    let old = self.at.func.dfg.first_result(inst);
                    self.at.func.dfg.clear_results(inst);
                    self.at.func.dfg.change_to_alias(old, shuffled);
                    return self.remove(inst);
                }
                self.parts(value).map(|half| self.shuffle(half, lane))
            }
            // Both halves must come from the same lane.
            (Intrinsic::OfSomeLane, &[value]) => {
                let own = self.word_of(Intrinsic::LANE_ID, &[]);
                let lane = self.word_of(Intrinsic::OfSomeLane, &[own]);
                self.parts(value).map(|half| {
                    let half = self.shuffle(half, lane);
                    self.word_of(Intrinsic::AssumeUniform, &[half])
                })
            }
            // What is promised to be uniform is promised for both halves.
            (Intrinsic::AssumeUniform, &[value]) => {
                self.parts(value).map(|half| self.word_of(intrinsic, &[half]))
            }
            (_, args) => [self.word_of(intrinsic, args), self.konst(0)],
        };
        self.define(inst, result);
    }

    /// The result, a half, of an intrinsic without pairs as operands.
    fn word_of(&mut self, intrinsic: Intrinsic, args: &[Value]) -> Value {
        let callee = intrinsic.declare(self.at.func, self.half);
        let call = self.at.ins().call(callee, args);
        self.at.func.dfg.first_result(call)
    }

    /// A lane number as one word: there is no lane with a number of two words.
    fn lane(&mut self, lane: Value) -> Value {
        if !self.is_wide(lane) {
            return lane;
        }
        let [low, high] = self.parts(lane);
        let beyond = self.konst(u64::MAX);
        self.at.ins().select(high, beyond, low)
    }

    fn shuffle(&mut self, value: Value, lane: Value) -> Value {
        let types = [value, lane].map(|value| self.at.func.dfg.value_type(value));
        let callee = Intrinsic::Shuffle.declare_with(self.at.func, types[0], types[1]);
        let call = self.at.ins().call(callee, &[value, lane]);
        self.at.func.dfg.first_result(call)
    }
}
