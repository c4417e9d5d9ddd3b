//! Calls: of functions by name and by address, and of intrinsics.

use cranelift_codegen::ir::{ExternalName, FuncRef, Inst, InstructionData, Signature, types};
use rspirv::dr::Operand;
use rspirv::spirv::{BuiltIn, GroupOperation, Op, Scope, Word};

use super::function::Body;
use super::{Result, Unwritable};
use harp_oracle::functions::name;

impl Body<'_, '_> {
    /// Calls a function or an intrinsic with these arguments, behind a function's address if there is one; gives the
    /// results.
    pub(super) fn call(&mut self, inst: Inst, args: &[Word]) -> Result<Vec<Word>> {
        let func = self.func;
        match func.dfg.insts[inst] {
            InstructionData::Call { func_ref, .. } => match self.callee(func_ref) {
                Some(callee) => Ok(self.call_function(callee, args)),
                None => self.intrinsic(func_ref, args),
            },
            InstructionData::CallIndirect { sig_ref, .. } => {
                self.call_address(&func.dfg.signatures[sig_ref], args[0], &args[1..])
            }
            _ => Err(self.unwritable(inst)),
        }
    }

    /// The index of the function of the case that is meant; none if it is another one.
    pub(super) fn callee(&self, callee: FuncRef) -> Option<usize> {
        let ExternalName::TestCase(wanted) = &self.func.dfg.ext_funcs[callee].name else {
            return None;
        };
        let wanted = String::from_utf8_lossy(wanted.raw());
        self.w.case.functions.iter().position(|func| name(func) == wanted)
    }

    fn call_function(&mut self, callee: usize, args: &[Word]) -> Vec<Word> {
        let signature = &self.w.case.functions[callee].signature;
        let (ty, _) = self.w.signature(signature);
        let args: Vec<Word> = [self.w.functions[callee]].iter().chain(args).copied().collect();
        let result = self.op(Op::FunctionCall, ty, &args);
        match signature.returns.len() {
            0 => Vec::new(),
            1 => vec![result],
            _ => {
                let results = (0..).zip(&signature.returns);
                results.map(|(at, ty)| self.member(ty.value_type, result, at)).collect()
            }
        }
    }

    /// Calls the function with an address: a switch over all that it may be.
    fn call_address(
        &mut self,
        signature: &Signature,
        address: Word,
        args: &[Word],
    ) -> Result<Vec<Word>> {
        let functions = self.w.case.functions.iter().enumerate().skip(1);
        let like = functions.filter(|(_, func)| {
            func.signature.params == signature.params && func.signature.returns == signature.returns
        });
        let like: Vec<usize> = like.map(|(index, _)| index).collect();
        let after = self.w.b.id();
        let labels: Vec<Word> = like.iter().map(|_| self.w.b.id()).collect();
        let no_function = self.w.b.id();
        let cases = like.iter().zip(&labels).map(|(&index, &label)| {
            let address = 16 * (index as u64 + 1);
            let literal = match self.w.word {
                types::I64 => Operand::LiteralBit64(address),
                _ => Operand::LiteralBit32(address as u32),
            };
            (literal, label)
        });
        let cases: Vec<_> = cases.collect();
        self.w.b.switch(address, no_function, cases).expect("a block is open");
        self.begin(no_function);
        self.w.b.unreachable().expect("a block is open");
        let mut sources = vec![Vec::new(); signature.returns.len()];
        for (callee, label) in like.into_iter().zip(labels) {
            self.begin(label);
            let results = self.call_function(callee, args);
            for (sources, result) in sources.iter_mut().zip(results) {
                sources.extend([result, self.open()]);
            }
            self.w.b.branch(after).expect("a block is open");
        }
        self.begin(after);
        let results = sources.iter().zip(&signature.returns);
        Ok(results.map(|(sources, ty)| self.of(Op::Phi, ty.value_type, sources)).collect())
    }

    fn intrinsic(&mut self, callee: FuncRef, args: &[Word]) -> Result<Vec<Word>> {
        let name = self.func.dfg.ext_funcs[callee].name.display(None).to_string();
        let id = |dim| (BuiltIn::GlobalInvocationId, dim);
        let (builtin, dim) = match name.as_str() {
            "%harp_global_id_x" => id(0),
            "%harp_global_id_y" => id(1),
            "%harp_global_id_z" => id(2),
            "%harp_assume_uniform" => return Ok(vec![args[0]]),
            "%harp_lane_id" => {
                let ty = self.w.ty(types::I32);
                let lane = self.w.input(BuiltIn::SubgroupLocalInvocationId, ty);
                let lane = self.op(Op::Load, ty, &[lane]);
                return Ok(vec![self.resized(lane, types::I32, self.w.word)]);
            }
            "%harp_barrier" => {
                self.barrier();
                return Ok(Vec::new());
            }
            "%harp_reduce_iadd" => return Ok(vec![self.sum_of_lanes(args[0])]),
            _ => return Err(Unwritable::new(format_args!("a call of {name}"))),
        };
        Ok(vec![self.size(builtin, dim)])
    }

    /// The sum of what the lanes of a warp have of a word.
    fn sum_of_lanes(&mut self, value: Word) -> Word {
        let lanes = self.constant(types::I32, (Scope::Subgroup as u32).into());
        let operands = vec![
            Operand::IdScope(lanes),
            Operand::GroupOperation(GroupOperation::Reduce),
            Operand::IdRef(value),
        ];
        let word = self.w.ty(self.w.word);
        self.push(Op::GroupIAdd, Some(word), operands)
    }

    /// A component of an input of three words.
    pub(super) fn size(&mut self, builtin: BuiltIn, dim: u32) -> Word {
        let word = self.w.ty(self.w.word);
        let vector = self.w.b.type_vector(word, 3);
        let input = self.w.input(builtin, vector);
        let all = self.op(Op::Load, vector, &[input]);
        self.member(self.w.word, all, dim)
    }
}
