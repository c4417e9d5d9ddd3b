//! Functions that call each other, in cranelift-interpreter.
//!
//! Calls, addresses and memory are not left to the interpreter: its addresses have a form of their own,
//! 64 bits wide where functions are concerned. Here functions and data have numbers as addresses,
//! which fit every word, stack slots lie on a stack that grows down, and all memory is flat.
//!
//! A function is called once, or, as a kernel, once for each work-item, one after the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{
    Endianness, ExternalName, Function, GlobalValue, GlobalValueData, Inst, InstructionData,
    Opcode, StackSlot, TrapCode, Type, types,
};
use cranelift_interpreter::instruction::DfgInstructionContext;
use cranelift_interpreter::state::State;
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap, step};
use harp_isa::WordSize;
use harp_jit::DataAccess;

use super::super::state::KernelState;
use super::super::{FlatMemory, Item, ItemTrap, int, signed};
use super::{Address, Effect, Ending, ModuleCase, OracleError, STACK_BYTES, Stop, canonical};

/// CLIF instructions that a call may take.
const STEPS: usize = 1 << 20;

/// Functions lie at multiples of this, the first one at one of them.
const FUNCTION: u64 = 0x4000_0000;

/// The instructions that were executed, each with the index of its function.
pub type Executed = BTreeSet<(usize, Inst)>;

/// Calls the first function of a case. Stack slots hold bytes of the value `fill` at first.
pub(super) fn interpret(case: &ModuleCase, fill: u8) -> Result<(Effect, Executed), OracleError> {
    let mut run = Run::new(case, STACK_BYTES, fill);
    let ending = match run.run(case.args.clone())? {
        Ending::Values(values) => Ending::Values(values.into_iter().map(canonical).collect()),
        trap => trap,
    };
    let data = case.data.iter().zip(&run.data);
    let data = data
        .filter(|(datum, _)| datum.access == DataAccess::ReadWrite)
        .map(|(_, &address)| run.memory.contents(address).expect("it was allocated").to_vec());
    Ok((Effect { ending, data: data.collect() }, run.executed))
}

/// What work-items came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// How many work-items executed an instruction of the function with this index.
    pub executed: BTreeMap<(usize, Inst), u64>,
    /// The functions that indirect calls called.
    pub callees: BTreeMap<(usize, Inst), BTreeSet<usize>>,
}

/// A grid and the machine's warps: each takes as many work-items in a row as it has lanes.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Warps {
    pub(in super::super) extents: [u64; 3],
    pub(in super::super) lanes: u64,
    pub(in super::super) order: Order,
}

/// The order in which work-items run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Order {
    Forward,
    Backward,
    /// None sees what others do: each finds memory as it was before the launch.
    Alone,
}

/// Work-items that were run.
pub(in super::super) struct Items {
    /// Those that trapped.
    pub(in super::super) traps: Vec<ItemTrap>,
    /// What the buffers hold in the end.
    pub(in super::super) buffers: Vec<Vec<u8>>,
    pub(in super::super) trace: Trace,
}

/// Runs the first function of a case once for each work-item of a grid. `argument_block` makes the words
/// of the argument block of the addresses of the buffers. Each item finds a stack of `stack_bytes` bytes of
/// the value `fill`; the others go on where one traps.
pub(in super::super) fn interpret_items(
    case: &ModuleCase,
    Warps { extents, lanes, order }: Warps,
    buffers: &[&[u8]],
    argument_block: impl FnOnce(&[u64]) -> Vec<u64>,
    (stack_bytes, fill): (u32, u8),
) -> Result<Items, OracleError> {
    let mut run = Run::new(case, stack_bytes, fill);
    let buffers: Vec<u64> =
        buffers.iter().map(|bytes| run.memory.allocate(bytes.to_vec())).collect();
    let bytes = usize::from(case.word.bytes());
    let words = argument_block(&buffers).into_iter();
    let block = words.flat_map(|word| word.to_le_bytes().into_iter().take(bytes)).collect();
    let block = run.memory.allocate(block);
    let [width, height, depth] = extents;
    let (mut traps, mut trace) = (Vec::new(), Trace::default());
    let count = width * height * depth;
    let before = (order == Order::Alone).then(|| run.memory.clone());
    let mut together = before.clone();
    for turn in 0..count {
        let item = if order == Order::Backward { count - 1 - turn } else { turn };
        if let Some(before) = &before {
            run.memory.clone_from(before);
        }
        run.id = [item % width, item / width % height, item / (width * height)];
        run.lane = Some(item % lanes);
        run.memory.fill(run.stack_end, fill);
        let argument = DataValue::from_integer(block.into(), word_int(case.word));
        if let Ending::Trap(stop) = run.run(vec![argument.expect("words are integers")])? {
            traps.push(ItemTrap { item, stop });
            run.unwind();
        }
        if let (Some(before), Some(together)) = (&before, &mut together) {
            together.overlay(before, &run.memory);
        }
        for inst in std::mem::take(&mut run.executed) {
            *trace.executed.entry(inst).or_default() += 1;
        }
    }
    trace.callees = run.callees;
    let memory = together.unwrap_or(run.memory);
    let contents = |&address| memory.contents(address).expect("it was allocated").to_vec();
    Ok(Items { traps, buffers: buffers.iter().map(contents).collect(), trace })
}

fn word_int(word: WordSize) -> Type {
    match word {
        WordSize::Four => types::I32,
        WordSize::Eight => types::I64,
    }
}

/// What follows an instruction.
enum Next {
    /// The instruction after it, with these results of it.
    Results(Vec<DataValue>),
    /// The end of everything.
    Ending(Ending),
    /// A function was entered or left, or a branch was taken.
    Elsewhere,
}

/// A function that runs.
struct Activation<'a> {
    index: usize,
    func: &'a Function,
    next: Option<Inst>,
    slots: HashMap<StackSlot, u64>,
    /// The stack pointer of the caller.
    stack: u64,
}

struct Run<'a> {
    case: &'a ModuleCase,
    names: HashMap<String, Address>,
    data: Vec<u64>,
    memory: FlatMemory,
    stack: u64,
    stack_end: u64,
    state: Option<KernelState<'a>>,
    calls: Vec<Activation<'a>>,
    executed: Executed,
    callees: BTreeMap<(usize, Inst), BTreeSet<usize>>,
    /// The work-item.
    id: [u64; 3],
    lane: Option<u64>,
}

impl<'a> Run<'a> {
    fn new(case: &'a ModuleCase, stack_bytes: u32, fill: u8) -> Run<'a> {
        let mut names = HashMap::new();
        for (index, func) in case.functions.iter().enumerate() {
            names.insert(crate::functions::name(func), Address::Function(index));
        }
        for (index, datum) in case.data.iter().enumerate() {
            names.insert(datum.name.clone(), Address::Datum(index));
        }
        let mut memory = FlatMemory::default();
        let stack_end = memory.allocate(vec![fill; stack_bytes as usize]);
        let sizes = case.data.iter().map(|datum| datum.bytes.len());
        let data: Vec<u64> = sizes.map(|size| memory.allocate(vec![0; size])).collect();
        let mut run = Run {
            case,
            names,
            data,
            memory,
            stack: stack_end + u64::from(stack_bytes),
            stack_end,
            state: None,
            calls: Vec::new(),
            executed: Executed::new(),
            callees: BTreeMap::new(),
            id: [0; 3],
            lane: None,
        };
        for (index, datum) in case.data.iter().enumerate() {
            let mut bytes = datum.bytes.clone();
            let word = usize::from(case.word.bytes());
            for &(at, address) in &datum.addresses {
                let address = run.address_of(address).to_le_bytes();
                bytes[at..at + word].copy_from_slice(&address[..word]);
            }
            for (offset, byte) in bytes.into_iter().enumerate() {
                let place = run.data[index] + offset as u64;
                let stored = run.memory.store(place, &DataValue::I8(byte.cast_signed()));
                stored.expect("it was allocated above");
            }
        }
        run
    }

    fn address_of(&self, address: Address) -> u64 {
        match address {
            Address::Function(index) => FUNCTION + 16 * index as u64,
            Address::Datum(index) => self.data[index],
        }
    }

    fn run(&mut self, args: Vec<DataValue>) -> Result<Ending, OracleError> {
        self.enter(0, args)?;
        for _ in 0..STEPS {
            let activation = self.calls.last().expect("it runs");
            let (index, func) = (activation.index, activation.func);
            let inst = activation.next.ok_or_else(|| end_missing(func))?;
            self.executed.insert((index, inst));
            match self.execute(func, inst)? {
                Next::Results(values) => {
                    let results = func.dfg.inst_results(inst);
                    self.frames().current_frame_mut().set_all(results, values);
                    let activation = self.calls.last_mut().expect("it runs");
                    activation.next = func.layout.next_inst(inst);
                }
                Next::Ending(ending) => return Ok(ending),
                Next::Elsewhere => {}
            }
        }
        Err(OracleError::OutOfFuel)
    }

    fn frames(&mut self) -> &mut KernelState<'a> {
        self.state.as_mut().expect("there is a frame as long as a function runs")
    }

    /// Enters the function with this index.
    fn enter(&mut self, index: usize, args: Vec<DataValue>) -> Result<(), OracleError> {
        let func = &self.case.functions[index];
        let entry = func.layout.entry_block().ok_or_else(|| end_missing(func))?;
        let before = self.stack;
        let mut slots = HashMap::new();
        for (slot, data) in &func.sized_stack_slots {
            let align = 1_u64 << data.align_shift.max(4);
            self.stack = (self.stack - u64::from(data.size)) & !(align - 1);
            slots.insert(slot, self.stack);
        }
        if self.stack <= self.stack_end {
            return Err(OracleError::OutOfFuel);
        }
        match &mut self.state {
            Some(state) => state.push_frame(func),
            none => *none = Some(KernelState::new(func)),
        }
        self.frames().current_frame_mut().set_all(func.dfg.block_params(entry), args);
        let next = func.layout.first_inst(entry);
        self.calls.push(Activation { index, func, next, slots, stack: before });
        Ok(())
    }

    /// Leaves the function that runs.
    fn leave(&mut self) {
        if let Some(left) = self.calls.pop() {
            self.stack = left.stack;
        }
        match self.calls.is_empty() {
            true => self.state = None,
            false => self.frames().pop_frame(),
        }
    }

    /// Leaves all functions.
    fn unwind(&mut self) {
        while !self.calls.is_empty() {
            self.leave();
        }
    }

    fn execute(&mut self, func: &'a Function, inst: Inst) -> Result<Next, OracleError> {
        let item = Item { func, id: self.id, lane: self.lane, word: self.case.word };
        if let Some(next) = self.execute_here(&item, inst)? {
            return Ok(next);
        }
        let state = self.state.as_ref().expect("there is a frame as long as a function runs");
        if let Some(executed) = item.execute(inst, state, &mut self.memory)? {
            return Ok(match executed {
                super::super::Done::Results(values) => Next::Results(values),
                super::super::Done::Stop(stop) => Next::Ending(Ending::Trap(stop)),
            });
        }
        let context = DfgInstructionContext::new(inst, &func.dfg);
        let flow = step(self.frames(), context).map_err(|error| item.failed(inst, &error))?;
        Ok(match flow {
            ControlFlow::Assign(values) => Next::Results(values.to_vec()),
            ControlFlow::Continue => Next::Results(Vec::new()),
            ControlFlow::ContinueAt(block, args) => {
                let params = func.dfg.block_params(block);
                self.frames().current_frame_mut().set_all(params, args.to_vec());
                let activation = self.calls.last_mut().expect("it runs");
                activation.next = func.layout.first_inst(block);
                Next::Elsewhere
            }
            ControlFlow::Return(values) => {
                self.leave();
                match self.calls.last_mut() {
                    None => Next::Ending(Ending::Values(values.to_vec())),
                    Some(caller) => {
                        let call = caller.next.expect("it stopped at a call");
                        let caller_func = caller.func;
                        caller.next = caller_func.layout.next_inst(call);
                        let results = caller_func.dfg.inst_results(call);
                        self.frames().current_frame_mut().set_all(results, values.to_vec());
                        Next::Elsewhere
                    }
                }
            }
            ControlFlow::Trap(CraneliftTrap::User(TrapCode::INTEGER_DIVISION_BY_ZERO)) => {
                Next::Ending(Ending::Trap(Stop::DivideByZero))
            }
            ControlFlow::Trap(CraneliftTrap::User(code)) => {
                Next::Ending(Ending::Trap(Stop::Code(code)))
            }
            ControlFlow::Trap(_) | ControlFlow::Call(..) | ControlFlow::ReturnCall(..) => {
                return Err(item.unknown(inst));
            }
        })
    }

    /// Executes what has to do with addresses.
    fn execute_here(&mut self, item: &Item<'a>, inst: Inst) -> Result<Option<Next>, OracleError> {
        let func = item.func;
        let data = func.dfg.insts[inst];
        let args = self.frames().collect_values(func.dfg.inst_args(inst)).to_vec();
        Ok(Some(match data {
            InstructionData::Call { opcode, func_ref, .. } => {
                match self.named(item, inst, &func.dfg.ext_funcs[func_ref].name) {
                    Ok(callee) => self.call(item, inst, opcode, callee, args)?,
                    // An intrinsic.
                    Err(_) => return Ok(None),
                }
            }
            InstructionData::CallIndirect { opcode, .. } => {
                let address = item.address(&args[0], 0);
                let index = address.checked_sub(FUNCTION).filter(|offset| offset % 16 == 0);
                let index = index.ok_or_else(|| item.unknown(inst))? / 16;
                let callee = Address::Function(index as usize);
                let caller = self.calls.last().expect("it runs").index;
                self.callees.entry((caller, inst)).or_default().insert(index as usize);
                self.call(item, inst, opcode, callee, args[1..].to_vec())?
            }
            InstructionData::FuncAddr { func_ref, .. } => {
                let named = self.named(item, inst, &func.dfg.ext_funcs[func_ref].name)?;
                Next::Results(vec![item.word_value(self.address_of(named))])
            }
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                let slots = &self.calls.last().expect("it runs").slots;
                let address = slots[&stack_slot].wrapping_add_signed(i64::from(offset));
                Next::Results(vec![item.word_value(address)])
            }
            InstructionData::UnaryGlobalValue { opcode: Opcode::SymbolValue, global_value } => {
                let value = self.global(item, inst, global_value)?;
                Next::Results(vec![item.word_value(value)])
            }
            InstructionData::Load { opcode, offset, .. } if is_big_endian(func, inst) => {
                let result = func.dfg.value_type(func.dfg.first_result(inst));
                let part = match opcode {
                    Opcode::Uload8 | Opcode::Sload8 => types::I8,
                    Opcode::Uload16 | Opcode::Sload16 => types::I16,
                    Opcode::Uload32 | Opcode::Sload32 => types::I32,
                    _ => result,
                };
                let address = item.address(&args[0], offset.into());
                match self.memory.load(address, part).map(DataValue::to_be) {
                    None => Next::Ending(Ending::Trap(Stop::BadAddress)),
                    Some(loaded) if part == result => Next::Results(vec![loaded]),
                    Some(loaded) => {
                        let bits = match opcode {
                            Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => signed(&loaded),
                            _ => signed(&loaded) & ((1 << part.bits()) - 1),
                        };
                        Next::Results(vec![int(bits, result)])
                    }
                }
            }
            InstructionData::Store { opcode, offset, .. } if is_big_endian(func, inst) => {
                let value = match opcode {
                    Opcode::Istore8 => int(signed(&args[0]), types::I8),
                    Opcode::Istore16 => int(signed(&args[0]), types::I16),
                    Opcode::Istore32 => int(signed(&args[0]), types::I32),
                    _ => args[0].clone(),
                };
                let address = item.address(&args[1], offset.into());
                match self.memory.store(address, &value.to_be()) {
                    Some(()) => Next::Results(Vec::new()),
                    None => Next::Ending(Ending::Trap(Stop::BadAddress)),
                }
            }
            _ => return Ok(None),
        }))
    }

    fn call(
        &mut self,
        item: &Item<'a>,
        inst: Inst,
        opcode: Opcode,
        callee: Address,
        args: Vec<DataValue>,
    ) -> Result<Next, OracleError> {
        let Address::Function(index) = callee else { return Err(item.unknown(inst)) };
        let callee = self.case.functions.get(index).ok_or_else(|| item.unknown(inst))?;
        let params = callee.signature.params.iter().map(|param| param.value_type);
        if !params.eq(args.iter().map(DataValue::ty)) {
            return Err(item.unknown(inst));
        }
        if opcode.is_return() {
            self.leave();
        }
        self.enter(index, args)?;
        Ok(Next::Elsewhere)
    }

    fn named(
        &self,
        item: &Item<'a>,
        inst: Inst,
        name: &ExternalName,
    ) -> Result<Address, OracleError> {
        let ExternalName::TestCase(name) = name else { return Err(item.unknown(inst)) };
        let name = String::from_utf8_lossy(name.raw());
        self.names.get(name.as_ref()).copied().ok_or_else(|| item.unknown(inst))
    }

    fn global(&self, item: &Item<'a>, inst: Inst, global: GlobalValue) -> Result<u64, OracleError> {
        let value = match &item.func.global_values[global] {
            GlobalValueData::Symbol { name, offset, .. } => {
                let address = self.address_of(self.named(item, inst, name)?);
                address.wrapping_add_signed(offset.bits())
            }
            GlobalValueData::IAddImm { base, offset, .. } => {
                self.global(item, inst, *base)?.wrapping_add_signed(offset.bits())
            }
            GlobalValueData::Load { base, offset, global_type, .. } => {
                let base = self.global(item, inst, *base)?;
                let address = base.wrapping_add_signed(i64::from(*offset)) & self.case.word.mask();
                let loaded = self.memory.load(address, *global_type);
                signed(&loaded.ok_or_else(|| item.unknown(inst))?) as u64
            }
            _ => return Err(item.unknown(inst)),
        };
        Ok(value & self.case.word.mask())
    }
}

fn is_big_endian(func: &Function, inst: Inst) -> bool {
    let flags = func.dfg.insts[inst].memflags_data(&func.dfg);
    flags.is_some_and(|flags| flags.explicit_endianness() == Some(Endianness::Big))
}

fn end_missing(func: &Function) -> OracleError {
    OracleError::Unknown { inst: format!("a block of {} without an end", func.name) }
}
