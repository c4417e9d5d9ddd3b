//! The functions of a case in cranelift-interpreter.
//!
//! Calls, addresses and memory are not left to the interpreter: its addresses have a form of their own,
//! 64 bits wide where functions are concerned. Here functions and data have numbers as addresses,
//! which fit every word, stack slots lie on a stack that grows down, and all memory is flat.
//!
//! A function is called once, or, as a kernel, once for each work-item, one after the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{
    Block, ExternalName, Function, GlobalValue, GlobalValueData, Inst, InstructionData, Opcode,
    StackSlot,
};
use cranelift_interpreter::instruction::DfgInstructionContext;
use cranelift_interpreter::interpreter::InterpreterState;
use cranelift_interpreter::state::State;
use cranelift_interpreter::step::{ControlFlow, CraneliftTrap, step};

use super::case::canonical;
use super::meetings::{self, Meeting, Meetings, is_meeting};
use super::run::{CALL_STACK, ITEM_STACK};
use super::{
    Address, Argument, Case, Effect, Ended, Ending, FUEL, FlatMemory, Item, ItemTrap, Lanes,
    OracleError, Start, int, signed,
};
use crate::functions::{name, word_type};

/// Functions lie at multiples of this, the first one at one of them.
const FUNCTION: u64 = 0x4000_0000;

/// The instructions and calls that work-items executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// How many work-items executed an instruction of the function with this index.
    pub executed: BTreeMap<(usize, Inst), u64>,
    /// The functions that indirect calls called.
    pub callees: BTreeMap<(usize, Inst), BTreeSet<usize>>,
}

/// The order in which work-items run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Forward,
    Backward,
    /// No work-item sees the stores of others: each finds memory as it was before the launch.
    Alone,
}

impl Case {
    /// The expected effect and the trace on a machine with these lanes. Fails if the case holds something that
    /// the oracle does not know, or does not end.
    pub fn expected(&self, lanes: impl Into<Lanes>) -> Result<(Effect, Trace), OracleError> {
        self.interpret(lanes.into(), 0xd5, Order::Forward)
    }

    /// Whether the effect is the same whatever stack slots hold before they are written, in whatever order work-items
    /// run, however many of them sum up, and whatever they see of each other.
    pub fn is_determined(&self, lanes: impl Into<Lanes>) -> bool {
        let lanes = lanes.into();
        let effect =
            |fill, order| self.interpret(lanes, fill, order).ok().map(|(effect, _)| effect);
        let one = effect(0xd5, Order::Forward);
        let others = [Order::Forward, Order::Backward, Order::Alone];
        one.is_some() && others.into_iter().all(|order| one == effect(0x3a, order))
    }

    /// The barriers of the first function, and its sums over lanes, with their blocks.
    pub fn meetings(&self) -> Vec<(Inst, Block)> {
        meetings::places(&self.functions[0])
    }

    /// The launch without those barriers of the kernel at which its work-items do not all meet, or from which none returns.
    /// The effect is the same. Nothing in it may depend on the number of lanes, and there must be no sums over them.
    pub fn with_common_meetings(mut self) -> Case {
        let possible = meetings::possible(&self.functions[0]);
        meetings::keep(&mut self.functions[0], &possible);
        if !possible.is_empty() {
            let seen = self.meetings_of_items(Lanes::from(1));
            let common = seen.map(|seen| meetings::common(&self.functions[0], &seen));
            meetings::keep(&mut self.functions[0], &common.unwrap_or_default());
        }
        self
    }

    /// Stacks hold bytes of the value `fill` at first.
    fn interpret(
        &self,
        lanes: Lanes,
        fill: u8,
        order: Order,
    ) -> Result<(Effect, Trace), OracleError> {
        match &self.start {
            Start::Call(args) => self.interpret_call(args, fill),
            Start::Launch { extents, args } => {
                let (effect, trace, meetings) =
                    self.interpret_items(*extents, args, (lanes, fill, order))?;
                meetings::check(&meetings)?;
                Ok((effect, trace))
            }
        }
    }

    /// Where each work-item of a launch meets others, in order of their numbers.
    fn meetings_of_items(&self, lanes: Lanes) -> Result<Vec<Vec<Meeting>>, OracleError> {
        let Start::Launch { extents, args } = &self.start else { return Ok(Vec::new()) };
        let run = self.interpret_items(*extents, args, (lanes, 0xd5, Order::Forward));
        run.map(|(_, _, meetings)| meetings)
    }

    fn interpret_call(&self, args: &[DataValue], fill: u8) -> Result<(Effect, Trace), OracleError> {
        let mut run = Run::new(self, CALL_STACK, fill);
        let ending = match run.run(args.to_vec())? {
            Ok(values) => Ending::Values(values.into_iter().map(canonical).collect()),
            Err(stop) => Ending::Traps(vec![ItemTrap { item: 0, stop }]),
        };
        let memory = self.written().map(|(at, _)| run.memory.contents(run.data[at]).clone());
        let memory = memory.collect();
        let executed = run.executed.iter().map(|&inst| (inst, 1)).collect();
        Ok((Effect { ending, memory }, Trace { executed, callees: run.callees }))
    }

    /// Each item finds a new stack; the others go on where one traps.
    fn interpret_items(
        &self,
        extents: [u64; 3],
        args: &[Argument],
        (lanes, fill, order): (Lanes, u8, Order),
    ) -> Result<(Effect, Trace, Vec<Vec<Meeting>>), OracleError> {
        let mut run = Run::new(self, ITEM_STACK, fill);
        run.summed = 1 + order as u64;
        // The grid's extents, six words about groups, which no case uses, then the arguments.
        let mut words: Vec<u64> = extents.into_iter().chain([0; 6]).collect();
        let mut buffers = Vec::new();
        for arg in args {
            words.push(match arg {
                Argument::Scalar(_, bits) => *bits,
                Argument::Buffer(elements, bytes) => {
                    buffers.push((*elements, run.memory.allocate(bytes.clone())));
                    buffers[buffers.len() - 1].1
                }
            });
        }
        let bytes = usize::from(self.word.bytes());
        let words = words.into_iter();
        let block = words.flat_map(|word| word.to_le_bytes().into_iter().take(bytes)).collect();
        let block = int(run.memory.allocate(block).into(), word_type(self.word));
        let [width, height, _] = extents;
        let (mut traps, mut trace, mut meetings) = (Vec::new(), Trace::default(), Vec::new());
        let before = (order == Order::Alone).then(|| run.memory.clone());
        let mut together = before.clone();
        for turn in 0..self.items() {
            let item = if order == Order::Backward { self.items() - 1 - turn } else { turn };
            if let Some(before) = &before {
                run.memory.clone_from(before);
            }
            run.id = [item % width, item / width % height, item / (width * height)];
            run.lane = Some(lanes.of_item(item, extents));
            run.memory.contents(run.stack_end).fill(fill);
            if let Err(stop) = run.run(vec![block.clone()])? {
                traps.push(ItemTrap { item, stop });
                run.unwind();
            }
            if let (Some(before), Some(together)) = (&before, &mut together) {
                together.overlay(before, &run.memory);
            }
            meetings.push(run.meetings.take());
            for inst in std::mem::take(&mut run.executed) {
                *trace.executed.entry(inst).or_default() += 1;
            }
        }
        trace.callees = run.callees;
        if !traps.is_empty() {
            traps.sort_by_key(|trap| trap.item);
            let ending = Ending::Traps(traps);
            return Ok((Effect { ending, memory: Vec::new() }, trace, meetings));
        }
        let mut memory = together.unwrap_or(run.memory);
        let contents = buffers
            .into_iter()
            .map(|(elements, address)| elements.canonical(memory.contents(address).clone()));
        let effect = Effect { ending: Ending::Values(Vec::new()), memory: contents.collect() };
        Ok((effect, trace, meetings))
    }
}

/// What follows an instruction.
enum Next {
    /// The instruction after it, or after the call at which the caller stopped, with these results of it.
    Results(Vec<DataValue>),
    /// The end of everything.
    End(Ended),
    /// A function was entered, or a branch was taken.
    Elsewhere,
}

/// The result of a step of the oracle.
type Step<T> = Result<T, OracleError>;

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
    case: &'a Case,
    names: HashMap<String, Address>,
    data: Vec<u64>,
    memory: FlatMemory,
    stack: u64,
    stack_end: u64,
    /// Frames, and nothing else: memory and calls are executed before they reach the interpreter.
    frames: InterpreterState<'a>,
    calls: Vec<Activation<'a>>,
    executed: BTreeSet<(usize, Inst)>,
    callees: BTreeMap<(usize, Inst), BTreeSet<usize>>,
    /// Those of the first function.
    meetings: Meetings,
    /// As many lanes have the same value where they sum up.
    summed: u64,
    /// The work-item.
    id: [u64; 3],
    lane: Option<u64>,
}

impl<'a> Run<'a> {
    fn new(case: &'a Case, stack_bytes: u32, fill: u8) -> Run<'a> {
        let mut names = HashMap::new();
        for (index, func) in case.functions.iter().enumerate() {
            names.insert(name(func), Address::Function(index));
        }
        for (index, datum) in case.data.iter().enumerate() {
            names.insert(datum.name.clone(), Address::Datum(index));
        }
        let mut memory = FlatMemory::default();
        let stack_end = memory.allocate(vec![fill; stack_bytes as usize]);
        let data = case.data.iter().map(|datum| memory.allocate(datum.bytes.clone())).collect();
        let mut run = Run {
            case,
            names,
            data,
            memory,
            stack: stack_end + u64::from(stack_bytes),
            stack_end,
            frames: InterpreterState::default(),
            calls: Vec::new(),
            executed: BTreeSet::new(),
            callees: BTreeMap::new(),
            meetings: Meetings::of(&case.functions[0]),
            summed: 1,
            id: [0; 3],
            lane: None,
        };
        for (index, datum) in case.data.iter().enumerate() {
            for &(at, address) in &datum.addresses {
                let address = int(run.address_of(address).into(), word_type(case.word));
                let stored = run.memory.store(run.data[index] + at as u64, &address);
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

    fn run(&mut self, args: Vec<DataValue>) -> Result<Ended, OracleError> {
        self.enter(0, args)?;
        for _ in 0..FUEL {
            let activation = self.calls.last().expect("it runs");
            let (index, func) = (activation.index, activation.func);
            let inst = activation.next.ok_or_else(|| end_missing(func))?;
            self.executed.insert((index, inst));
            match self.execute(func, inst)? {
                Next::Results(values) => {
                    let activation = self.calls.last_mut().expect("it runs");
                    let (func, inst) = (activation.func, activation.next.expect("it ran"));
                    activation.next = func.layout.next_inst(inst);
                    let results = func.dfg.inst_results(inst);
                    self.frames.current_frame_mut().set_all(results, values);
                }
                Next::End(ended) => return Ok(ended),
                Next::Elsewhere => {}
            }
        }
        Err(OracleError::OutOfFuel)
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
        self.frames.push_frame(func);
        self.frames.current_frame_mut().set_all(func.dfg.block_params(entry), args);
        let next = func.layout.first_inst(entry);
        self.calls.push(Activation { index, func, next, slots, stack: before });
        Ok(())
    }

    /// Leaves the function that runs.
    fn leave(&mut self) {
        if let Some(left) = self.calls.pop() {
            self.stack = left.stack;
        }
        self.frames.pop_frame();
    }

    /// Leaves all functions.
    fn unwind(&mut self) {
        while !self.calls.is_empty() {
            self.leave();
        }
    }

    fn execute(&mut self, func: &'a Function, inst: Inst) -> Step<Next> {
        let item = Item { func, inst, id: self.id, lane: self.lane, word: self.case.word };
        let values = self.frames.collect_values(func.dfg.inst_args(inst)).to_vec();
        if let Some(next) = self.execute_here(&item, &values)? {
            return Ok(next);
        }
        if let Some(ended) = item.execute(&values, &mut self.memory)? {
            return Ok(ended.map_or_else(|stop| Next::End(Err(stop)), Next::Results));
        }
        let context = DfgInstructionContext::new(inst, &func.dfg);
        let flow = step(&mut self.frames, context)
            .map_err(|error| OracleError::Interpreter(item.text(), error.to_string()))?;
        Ok(match flow {
            ControlFlow::Assign(values) => Next::Results(values.to_vec()),
            ControlFlow::Continue => Next::Results(Vec::new()),
            ControlFlow::ContinueAt(block, args) => {
                let params = func.dfg.block_params(block);
                self.frames.current_frame_mut().set_all(params, args.to_vec());
                let activation = self.calls.last_mut().expect("it runs");
                activation.next = func.layout.first_inst(block);
                if activation.index == 0 {
                    self.meetings.enter(block);
                }
                Next::Elsewhere
            }
            ControlFlow::Return(values) => {
                self.leave();
                let ended = self.calls.is_empty();
                // To the caller they are the results of the call at which it stopped.
                if ended { Next::End(Ok(values.to_vec())) } else { Next::Results(values.to_vec()) }
            }
            ControlFlow::Trap(CraneliftTrap::User(code)) => Next::End(Err(code.into())),
            ControlFlow::Trap(_) | ControlFlow::Call(..) | ControlFlow::ReturnCall(..) => {
                return Err(item.unknown());
            }
        })
    }

    /// Executes calls and instructions that give addresses; none if it is another instruction.
    fn execute_here(&mut self, item: &Item<'a>, args: &[DataValue]) -> Step<Option<Next>> {
        let functions = &item.func.dfg.ext_funcs;
        let address = match item.data() {
            InstructionData::Call { .. } if is_meeting(item.func, item.inst) => {
                let in_kernel = self.calls.len() == 1;
                if !in_kernel || !self.meetings.meet(item.inst) {
                    return Err(item.unknown());
                }
                let sum = |arg| int(signed(arg) * i128::from(self.summed), arg.ty());
                return Ok(Some(Next::Results(args.iter().map(sum).collect())));
            }
            InstructionData::Call { func_ref, .. } => {
                return match self.named(item, &functions[func_ref].name) {
                    Ok(callee) => self.call(item, callee, args).map(Some),
                    // An intrinsic.
                    Err(_) => Ok(None),
                };
            }
            InstructionData::CallIndirect { .. } => {
                let address = item.address(&args[0], 0);
                let index = address.checked_sub(FUNCTION).filter(|offset| offset % 16 == 0);
                let index = index.ok_or_else(|| item.unknown())? as usize / 16;
                let caller = self.calls.last().expect("it runs").index;
                self.callees.entry((caller, item.inst)).or_default().insert(index);
                return self.call(item, Address::Function(index), &args[1..]).map(Some);
            }
            InstructionData::FuncAddr { func_ref, .. } => {
                self.address_of(self.named(item, &functions[func_ref].name)?)
            }
            InstructionData::StackAddr { stack_slot, offset, .. } => {
                let slots = &self.calls.last().expect("it runs").slots;
                slots[&stack_slot].wrapping_add_signed(i64::from(offset))
            }
            InstructionData::UnaryGlobalValue { opcode: Opcode::SymbolValue, global_value } => {
                self.global(item, global_value)?
            }
            _ => return Ok(None),
        };
        Ok(Some(Next::Results(vec![item.word_value(address)])))
    }

    fn call(&mut self, item: &Item<'a>, callee: Address, args: &[DataValue]) -> Step<Next> {
        let Address::Function(index) = callee else { return Err(item.unknown()) };
        let callee = self.case.functions.get(index).ok_or_else(|| item.unknown())?;
        let params = callee.signature.params.iter().map(|param| param.value_type);
        if !params.eq(args.iter().map(DataValue::ty)) {
            return Err(item.unknown());
        }
        if item.data().opcode().is_return() {
            self.leave();
        }
        self.enter(index, args.to_vec())?;
        Ok(Next::Elsewhere)
    }

    fn named(&self, item: &Item<'a>, name: &ExternalName) -> Result<Address, OracleError> {
        let ExternalName::TestCase(name) = name else { return Err(item.unknown()) };
        let name = String::from_utf8_lossy(name.raw());
        self.names.get(name.as_ref()).copied().ok_or_else(|| item.unknown())
    }

    fn global(&self, item: &Item<'a>, global: GlobalValue) -> Result<u64, OracleError> {
        let value = match &item.func.global_values[global] {
            GlobalValueData::Symbol { name, offset, .. } => {
                let address = self.address_of(self.named(item, name)?);
                address.wrapping_add_signed(offset.bits())
            }
            GlobalValueData::IAddImm { base, offset, .. } => {
                self.global(item, *base)?.wrapping_add_signed(offset.bits())
            }
            GlobalValueData::Load { base, offset, global_type, .. } => {
                let base = self.global(item, *base)?;
                let address = base.wrapping_add_signed(i64::from(*offset)) & self.case.word.mask();
                let loaded = self.memory.load(address, *global_type);
                signed(&loaded.map_err(|_| item.unknown())?) as u64
            }
            _ => return Err(item.unknown()),
        };
        Ok(value & self.case.word.mask())
    }
}

fn end_missing(func: &Function) -> OracleError {
    OracleError::Unknown(format!("a block of {} without an end", func.name))
}
