//! Calls, returns and everything else that depends on the calling convention or the frame.

use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{
    AbiParam, ArgumentExtension, Block, ExternalName, Function, GlobalValue, GlobalValueData, Inst,
    InstructionData, Opcode, StackSlot, Value,
};
use harp_isa::abi::{KernelEntry, RegisterRoles};
use harp_isa::{ArchId, RegClass, WordSize};

use super::{Lower, rules};
use crate::abi::{CallLayout, EntryKind, WordPlace, reaches_everything};
use crate::error::Unsupported;
use crate::symbols::Called;
use crate::vcode::{
    Callee, FarCall, Fixed, FrameNeeds, FrameValue, FrameWord, MInst, MOperand, Reg, VCode,
};

/// The largest alignment of a stack slot, as a power of two.
const MAX_ALIGN_SHIFT: u8 = 12;

/// The offsets of a function's stack slots, in bytes from the first slot.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotLayout {
    offsets: SecondaryMap<StackSlot, u64>,
    bytes: u64,
}

impl SlotLayout {
    /// Slots begin at word boundaries. A slot with a larger alignment gets enough room that an aligned
    /// address can be found in it at run time.
    fn new(func: &Function, word: WordSize) -> SlotLayout {
        let mut layout = SlotLayout::default();
        for (slot, data) in &func.sized_stack_slots {
            layout.offsets[slot] = layout.bytes;
            let align = 1_u64 << data.align_shift.min(MAX_ALIGN_SHIFT);
            let slack = align.saturating_sub(word.bytes().into());
            let size = u64::from(data.size) + slack;
            layout.bytes += size.next_multiple_of(word.bytes().into());
        }
        layout
    }
}

/// What the instructions of `func` need of the frame.
pub(super) fn frame_needs(func: &Function, arch: ArchId) -> (FrameNeeds, SlotLayout) {
    let slots = SlotLayout::new(func, arch.word());
    let own = CallLayout::new(&func.signature, arch);
    let mut needs = FrameNeeds {
        popped_words: own.popped_words(),
        slot_bytes: slots.bytes,
        ..FrameNeeds::default()
    };
    let reaches = reaches_everything(arch);
    for inst in func.layout.blocks().flat_map(|block| func.layout.block_insts(block)) {
        if !func.dfg.insts[inst].opcode().is_call() {
            continue;
        }
        let Some(signature) = func.dfg.call_signature(inst) else { continue };
        let layout = CallLayout::new(&func.dfg.signatures[signature], arch);
        needs.keeps_register |= !reaches && needs_kept_register(func, inst, &layout, arch);
        if func.dfg.insts[inst].opcode().is_return() {
            let growth = layout.stack_arguments().saturating_sub(own.stack_arguments());
            needs.tail_growth_words = needs.tail_growth_words.max(growth);
        } else {
            let words = layout.stack_arguments() + layout.stack_results();
            needs.outgoing_words = needs.outgoing_words.max(words);
        }
    }
    needs.outgoing_words += u32::from(needs.keeps_register);
    (needs, slots)
}

/// Whether a call to a function that may be out of reach has no free register: all registers that a call may
/// change carry arguments.
fn needs_kept_register(func: &Function, inst: Inst, layout: &CallLayout, arch: ArchId) -> bool {
    matches!(func.dfg.insts[inst], InstructionData::Call { .. })
        && layout.address_register(arch).is_none()
}

impl Lower<'_> {
    /// Defines the parameters of the function as they arrive.
    pub(super) fn entry_params(&mut self, clif: Block) -> Result<(), Unsupported> {
        let func = self.func;
        let params = func.dfg.block_params(clif);
        let mut defs = Fixed::new();
        match self.entry {
            EntryKind::Kernel => {
                let &[arguments] = params else {
                    let inst = func.layout.first_inst(clif).expect("a block is not empty");
                    let what = format!("a kernel with {} parameters", params.len());
                    return Err(Unsupported { inst, block: clif, what });
                };
                defs.push((self.value_gpr(arguments), KernelEntry::ARGUMENTS));
                defs.extend(self.global_id_x.map(|reg| (reg, KernelEntry::GLOBAL_ID_X)));
                self.inst_code.push(MInst::Args { defs });
            }
            EntryKind::Function => {
                let layout = CallLayout::new(&func.signature, self.arch);
                let mut loads = Vec::new();
                for (&param, &place) in params.iter().zip(layout.params()) {
                    if self.gprs[param].is_none() && self.preds[param].is_none() {
                        continue;
                    }
                    let dst = self.value_gpr(param);
                    match place {
                        WordPlace::Register(register) => defs.push((dst, register)),
                        WordPlace::Stack(word) => {
                            let word = FrameWord::Incoming(word.into());
                            loads.push(MInst::LoadWord { dst, word });
                        }
                    }
                }
                self.inst_code.push(MInst::Args { defs });
                self.inst_code.extend(loads);
            }
        }
        self.barrier_words();
        self.scratch_address();
        Ok(())
    }

    /// Lowers a call that returns.
    pub(super) fn call(&mut self, inst: Inst) {
        let func = self.func;
        let signature = func.dfg.call_signature(inst).expect("a call has a signature");
        let signature = &func.dfg.signatures[signature];
        let layout = CallLayout::new(signature, self.arch);

        let mut results = Fixed::new();
        let mut loads = Vec::new();
        let mut defined = Vec::new();
        for (&result, &place) in func.dfg.inst_results(inst).iter().zip(layout.returns()) {
            if self.gprs[result].is_none() && self.preds[result].is_none() {
                continue;
            }
            let dst = self.vcode.new_reg(RegClass::Gpr);
            defined.push((result, dst));
            match place {
                WordPlace::Register(register) => results.push((dst, register)),
                WordPlace::Stack(word) => {
                    let word = FrameWord::Outgoing(word);
                    loads.push(MInst::LoadWord { dst, word });
                }
            }
        }

        let callee = self.callee(inst, &layout);
        let values = self.call_args(inst);
        let mut args = Fixed::new();
        for ((&value, param), &place) in values.iter().zip(&signature.params).zip(layout.params()) {
            let src = self.extended(value, param);
            match place {
                WordPlace::Register(register) => args.push((src, register)),
                WordPlace::Stack(word) => {
                    let word = FrameWord::Outgoing(word);
                    self.inst_code.push(MInst::StoreWord { src, word });
                }
            }
        }
        let popped = layout.popped_words();
        self.inst_code.push(MInst::Call { callee, args, results, popped });
        self.inst_code.extend(loads);
        for (result, reg) in defined {
            self.define_gpr(result, reg);
        }
    }

    /// Lowers a call that ends this function.
    pub(super) fn tail_call(&mut self, inst: Inst, block: Block) -> Result<(), Unsupported> {
        let func = self.func;
        let refuse = |what: &str| Unsupported { inst, block, what: what.to_owned() };
        if self.entry == EntryKind::Kernel {
            return Err(refuse("a tail call in a kernel"));
        }
        let signature = func.dfg.call_signature(inst).expect("a call has a signature");
        let signature = &func.dfg.signatures[signature];
        let layout = CallLayout::new(signature, self.arch);
        let target = layout
            .address_register(self.arch)
            .ok_or_else(|| refuse("a tail call in this calling convention"))?;
        let own = CallLayout::new(&func.signature, self.arch);
        let shift = i64::from(own.popped_words()) - i64::from(layout.popped_words());

        let callee = self.callee(inst, &layout);
        let values = self.call_args(inst);
        let mut args = Fixed::new();
        let mut stores = Vec::new();
        for ((&value, param), &place) in values.iter().zip(&signature.params).zip(layout.params()) {
            let src = self.extended(value, param);
            match place {
                WordPlace::Register(register) => args.push((src, register)),
                WordPlace::Stack(word) => {
                    let word = FrameWord::Incoming(shift + i64::from(word));
                    stores.push(MInst::StoreWord { src, word });
                }
            }
        }
        self.inst_code.extend(stores);
        self.inst_code.push(MInst::TailCall { callee, target, args, shift });
        Ok(())
    }

    /// Lowers a return: puts the results in their places.
    pub(super) fn return_(&mut self, values: &[Value]) {
        let func = self.func;
        let layout = CallLayout::new(&func.signature, self.arch);
        let mut results = Fixed::new();
        for ((&value, param), &place) in
            values.iter().zip(&func.signature.returns).zip(layout.returns())
        {
            let src = self.extended(value, param);
            match place {
                WordPlace::Register(register) => results.push((src, register)),
                WordPlace::Stack(word) => {
                    let word = FrameWord::Incoming(word.into());
                    self.inst_code.push(MInst::StoreWord { src, word });
                }
            }
        }
        self.inst_code.push(MInst::Ret { results });
    }

    /// The arguments of a call, without the callee's address.
    fn call_args(&self, inst: Inst) -> Vec<Value> {
        let args = self.func.dfg.inst_args(inst);
        let indirect = matches!(self.func.dfg.insts[inst], InstructionData::CallIndirect { .. });
        args[usize::from(indirect)..].to_vec()
    }

    fn callee(&mut self, inst: Inst, layout: &CallLayout) -> Callee {
        let func = self.func;
        let InstructionData::Call { func_ref, .. } = func.dfg.insts[inst] else {
            let address = self.value_gpr(func.dfg.inst_args(inst)[0]);
            return Callee::Register { address, symbol: None };
        };
        let data = &func.dfg.ext_funcs[func_ref];
        let symbol = self.symbol(&data.name);
        let VCode { promises, symbols: names, .. } = &mut self.vcode;
        promises.callees.entry(symbol).or_insert_with(|| {
            let called = Called { symbols: self.symbols, arch: self.arch };
            called.contract(&names[symbol.index()], &func.dfg.signatures[data.signature])
        });
        let far = match layout.address_register(self.arch) {
            _ if reaches_everything(self.arch) => FarCall::Reached,
            Some(register) => FarCall::Free(register),
            None => self.kept_register(),
        };
        if far != FarCall::Reached || reaches_everything(self.arch) {
            return Callee::Symbol { symbol, far };
        }
        // An immediate has no room for the frame word that would keep one.
        let dst = self.vcode.new_reg(RegClass::Gpr);
        self.inst_code.push(MInst::Address { dst, symbol });
        Callee::Register { address: dst, symbol: Some(symbol) }
    }

    /// A callee-saved register, which is kept in the last of the words for outgoing arguments during the
    /// call.
    fn kept_register(&self) -> FarCall {
        let word = self.vcode.frame.outgoing_words - 1;
        let offset = i64::from(word) * i64::from(self.arch.word().bytes());
        let ops = [harp_isa::Opcode::Ld, harp_isa::Opcode::St];
        match RegisterRoles::new(self.arch).callee_saved().next() {
            Some(register) if ops.iter().all(|&op| self.layout.fits(op, offset)) => {
                FarCall::Kept { register, word }
            }
            _ => FarCall::Reached,
        }
    }

    /// The register with an argument or result, extended as the signature requires.
    fn extended(&mut self, value: Value, param: &AbiParam) -> Reg {
        match param.extension {
            ArgumentExtension::None => self.value_gpr(value),
            ArgumentExtension::Uext => rules::constructor_zext(self, value),
            ArgumentExtension::Sext => rules::constructor_sext(self, value),
        }
    }

    fn symbol(&mut self, name: &ExternalName) -> crate::vcode::Symbol {
        let name = self.symbols.name(self.func, name);
        let vcode = &mut self.vcode;
        *self.symbol_numbers.entry(name).or_insert_with_key(|name| vcode.add_symbol(name.clone()))
    }

    /// The value of an instruction whose result depends on the frame or the linker; none for others.
    pub(super) fn place_address(&mut self, inst: Inst) -> Option<Reg> {
        let func = self.func;
        match func.dfg.insts[inst] {
            InstructionData::FuncAddr { func_ref, .. } => {
                Some(self.symbol_address(&func.dfg.ext_funcs[func_ref].name))
            }
            InstructionData::UnaryGlobalValue { opcode: Opcode::SymbolValue, global_value } => {
                self.global_address(global_value)
            }
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                Some(self.slot_address(stack_slot, offset.into()))
            }
            InstructionData::NullAry { opcode: Opcode::GetStackPointer } => {
                Some(self.frame_value(FrameValue::Start))
            }
            _ => None,
        }
    }

    /// A property of the frame.
    pub(super) fn frame_value(&mut self, value: FrameValue) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        self.inst_code.push(MInst::FrameValue { dst, value });
        dst
    }

    fn global_address(&mut self, global: GlobalValue) -> Option<Reg> {
        match &self.func.global_values[global] {
            GlobalValueData::Symbol { name, tls: false, .. } => Some(self.symbol_address(name)),
            _ => None,
        }
    }

    fn symbol_address(&mut self, name: &ExternalName) -> Reg {
        let symbol = self.symbol(name);
        let dst = self.vcode.new_reg(RegClass::Gpr);
        self.inst_code.push(MInst::Address { dst, symbol });
        dst
    }

    fn slot_address(&mut self, slot: StackSlot, offset: i64) -> Reg {
        let dst = self.vcode.new_reg(RegClass::Gpr);
        let start = self.slots.offsets[slot].cast_signed();
        let align = 1_i64 << self.func.sized_stack_slots[slot].align_shift.min(MAX_ALIGN_SHIFT);
        let slack = (align - i64::from(self.arch.word().bytes())).max(0);
        let exact = if slack == 0 { offset } else { 0 };
        let place = [
            MOperand::Def(dst),
            MOperand::StackSlots,
            MOperand::Imm(start.wrapping_add(slack).wrapping_add(exact)),
        ];
        self.emit_op(harp_isa::Opcode::Addi, place);
        if slack == 0 {
            return dst;
        }
        let aligned = rules::constructor_and_imm(self, dst, -align);
        if offset == 0 { aligned } else { rules::constructor_add_imm(self, aligned, offset) }
    }

    /// The offset of an address in the stack slots, if it is known at compile time.
    pub(super) fn slot_offset(&self, inst: Inst) -> Option<i64> {
        let InstructionData::StackAddr { stack_slot, offset, .. } = self.func.dfg.insts[inst]
        else {
            return None;
        };
        let shift = self.func.sized_stack_slots[stack_slot].align_shift;
        let exact = 1 << shift.min(MAX_ALIGN_SHIFT) <= u32::from(self.arch.word().bytes());
        exact.then(|| self.slots.offsets[stack_slot].cast_signed() + i64::from(offset))
    }

    /// Refuses alignments beyond a limit, and slots of dynamic size.
    pub(super) fn check_slots(&self) -> Result<(), Unsupported> {
        let func = self.func;
        if func.sized_stack_slots.is_empty() {
            return Ok(());
        }
        for block in func.layout.blocks() {
            for inst in func.layout.block_insts(block) {
                let InstructionData::StackAddr { stack_slot, .. } = func.dfg.insts[inst] else {
                    continue;
                };
                let shift = func.sized_stack_slots[stack_slot].align_shift;
                if shift > MAX_ALIGN_SHIFT {
                    let limit = 1 << MAX_ALIGN_SHIFT;
                    let what =
                        format!("a stack slot aligned to 2^{shift} bytes, the limit is {limit}");
                    return Err(Unsupported { inst, block, what });
                }
            }
        }
        Ok(())
    }
}
