//! A simulated warp: an independent implementation of the machine's rules for `split` and `join`, branches
//! and guards.
//!
//! A warp either *records* what its lanes do, with results drawn from the [`Inputs`], or *follows* such a
//! record of one lane: it must have the same effects and gets the same results, or the run fails.

use std::ops::Range;

use super::inputs::{Inputs, mix, often_small};
use super::program::{Arithmetic, Compute, Edge, Exchange, Kind, Op, Outcome, Program, Register};
use super::record::{End, Event, Fault, Operand, Record};
use crate::width::Width;

#[derive(Clone, Copy, Debug)]
struct Value {
    bits: u64,
    /// Whether the value depends on one that the program leaves undefined.
    unknown: bool,
}

/// The contents of registers that a lane has not written.
const JUNK: Value = Value { bits: 1, unknown: false };

struct Entry {
    /// The branch whose other side these lanes take; none for the entry with all lanes of a split.
    side: Option<usize>,
    lanes: Vec<usize>,
}

enum Role<'a> {
    Recording(Vec<Record>),
    Following {
        record: &'a Record,
        /// The index of the next event.
        next: usize,
        /// Whether the lane goes on where an unfinished record stops.
        goes_on: bool,
    },
}

pub(super) struct Warp<'a> {
    program: &'a Program<'a>,
    inputs: &'a Inputs,
    /// The index, in the inputs, of the first lane.
    first: usize,
    lanes: usize,
    /// One row of lanes per register.
    values: Vec<Value>,
    /// The number of writes to each lane's frame.
    frames: Vec<u64>,
    active: Vec<usize>,
    stack: Vec<Entry>,
    role: Role<'a>,
    scratch: Vec<Value>,
    /// The number of blocks run.
    pub(super) time: u64,
    /// The number of splits at which lanes disagreed.
    pub(super) parted: usize,
}

enum Flow {
    Next,
    Go(usize),
    End(End),
}

impl<'a> Warp<'a> {
    /// A warp with all lanes of the inputs.
    pub(super) fn recording(program: &'a Program<'a>, inputs: &'a Inputs) -> Warp<'a> {
        let lanes = inputs.lanes.len();
        let role = Role::Recording(vec![Record::default(); lanes]);
        Warp::new(program, inputs, 0..lanes, role)
    }

    /// A warp with one lane of the inputs, which must do what is recorded. With `goes_on` it may go on where
    /// the record stops, with results drawn as in recording.
    pub(super) fn following(
        program: &'a Program<'a>,
        inputs: &'a Inputs,
        lane: usize,
        record: &'a Record,
        goes_on: bool,
    ) -> Warp<'a> {
        Warp::new(program, inputs, lane..lane + 1, Role::Following { record, next: 0, goes_on })
    }

    fn new(
        program: &'a Program<'a>,
        inputs: &'a Inputs,
        lanes: Range<usize>,
        role: Role<'a>,
    ) -> Warp<'a> {
        let mut warp = Warp {
            program,
            inputs,
            first: lanes.start,
            lanes: lanes.len(),
            values: vec![JUNK; program.masks.len() * lanes.len()],
            frames: vec![0; lanes.len()],
            active: (0..lanes.len()).collect(),
            stack: Vec::new(),
            role,
            scratch: Vec::new(),
            time: 0,
            parted: 0,
        };
        for (index, &width) in program.params.iter().enumerate() {
            let register = program.lists[program.blocks[program.entry].params.start + index];
            warp.each(|warp, lane| {
                let bits = inputs.input(index as u64, width, warp.first + lane);
                warp.set(register, lane, Value { bits, unknown: false });
            });
        }
        warp
    }

    /// The records of the lanes.
    pub(super) fn into_records(self) -> Vec<Record> {
        match self.role {
            Role::Recording(records) => records,
            Role::Following { .. } => Vec::new(),
        }
    }

    /// The number of events that matched the record.
    pub(super) fn met(&self) -> usize {
        match &self.role {
            Role::Recording(_) => 0,
            Role::Following { next, .. } => *next,
        }
    }

    /// Runs until the end, for at most `fuel` operations and blocks.
    pub(super) fn run(&mut self, fuel: u64) -> Result<End, Fault> {
        let mut fuel = fuel;
        let mut block = self.program.entry;
        loop {
            match self.block(block, &mut fuel)? {
                Flow::Go(target) => block = target,
                Flow::End(end) => return Ok(end),
                Flow::Next => return Err(Fault::NoCode { block }),
            }
        }
    }

    fn block(&mut self, id: usize, fuel: &mut u64) -> Result<Flow, Fault> {
        let program = self.program;
        let block = &program.blocks[id];
        self.time += 1;
        let price = 1 + (block.ops.len() * self.active.len()) as u64;
        match fuel.checked_sub(price) {
            Some(rest) => *fuel = rest,
            None => return Ok(Flow::End(End::OutOfFuel)),
        }
        if block.join {
            // The parameters were passed before: registers stay when other lanes become active.
            let entry = self.stack.pop().ok_or(Fault::NothingToJoin { block: id })?;
            self.active = entry.lanes;
            if let Some(op) = entry.side
                && let Kind::Branch { edges, .. } = &program.ops[op].kind
            {
                return Ok(Flow::Go(self.follow(&edges[1])));
            }
        }
        for at in block.ops.clone() {
            let flow = match (&program.ops[at].kind, block.region_end) {
                (Kind::Branch { edges, .. }, Some(end)) => self.region(at, edges, end, fuel)?,
                _ => self.step(at)?,
            };
            if !matches!(flow, Flow::Next) {
                return Ok(flow);
            }
        }
        Err(Fault::NoCode { block: id })
    }

    /// Runs a region to be predicated: its lanes do not depend on each other, so they run it one after the
    /// other.
    fn region(
        &mut self,
        branch: usize,
        edges: &[Edge; 2],
        end: usize,
        fuel: &mut u64,
    ) -> Result<Flow, Fault> {
        let all = std::mem::take(&mut self.active);
        for &lane in &all {
            self.active = vec![lane];
            let condition = self.program.lists[self.program.ops[branch].args.start];
            let value = self.get(condition, lane);
            if value.unknown {
                return Ok(Flow::End(End::Undefined));
            }
            let mut block = self.follow(&edges[usize::from(value.bits == 0)]);
            while block != end {
                match self.block(block, fuel)? {
                    Flow::Go(target) => block = target,
                    other => return Ok(other),
                }
            }
        }
        self.active = all;
        Ok(Flow::Go(end))
    }

    fn get(&self, register: Register, lane: usize) -> Value {
        self.values[register as usize * self.lanes + lane]
    }

    fn set(&mut self, register: Register, lane: usize, value: Value) {
        let bits = value.bits & self.program.masks[register as usize];
        self.values[register as usize * self.lanes + lane] = Value { bits, ..value };
    }

    /// Calls `act` for each active lane.
    fn each(&mut self, mut act: impl FnMut(&mut Self, usize)) {
        for index in 0..self.active.len() {
            act(self, self.active[index]);
        }
    }

    /// Passes the arguments of an edge; all are read before any is written. Returns the target.
    fn follow(&mut self, edge: &Edge) -> usize {
        let program = self.program;
        let params = &program.lists[program.blocks[edge.target].params.clone()];
        let args = &program.lists[edge.args.clone()];
        self.each(|warp, lane| {
            let mut read = std::mem::take(&mut warp.scratch);
            read.clear();
            read.extend(args.iter().map(|&arg| warp.get(arg, lane)));
            for (&param, &value) in params.iter().zip(&read) {
                warp.set(param, lane, value);
            }
            warp.scratch = read;
        });
        edge.target
    }

    fn step(&mut self, at: usize) -> Result<Flow, Fault> {
        let program = self.program;
        let op = &program.ops[at];
        match &op.kind {
            Kind::Jump(edge) => return Ok(Flow::Go(self.follow(edge))),
            Kind::Branch { edges, split } => return self.branch(at, edges, *split),
            Kind::Return { key } => {
                let flow = self.last_event(at, *key, End::Returned)?;
                if matches!(flow, Flow::End(End::Returned))
                    && (!self.stack.is_empty() || self.active.len() < self.lanes)
                {
                    return Err(Fault::OpenReturn { op: at });
                }
                return Ok(flow);
            }
            Kind::Trap { key } => return self.last_event(at, *key, End::Trapped),
            Kind::Effect { key, outcomes, writes_frame } => {
                for index in 0..self.active.len() {
                    let lane = self.active[index];
                    match self.executes(op, lane) {
                        None => return Ok(Flow::End(End::Undefined)),
                        Some(false) => self.skip(op, lane),
                        Some(true) => {
                            if !self.event(at, *key, outcomes, lane)? {
                                return Ok(Flow::End(End::Unrecorded));
                            }
                            self.frames[lane] += u64::from(*writes_frame);
                        }
                    }
                }
            }
            Kind::Vote(exchange) => self.each(|warp, lane| {
                let value = warp.exchange(*exchange, op, lane);
                warp.set(program.lists[op.results.start], lane, value);
            }),
            Kind::Unknown => return Err(Fault::Differs { op: at, event: None, operand: None }),
            _ => {
                for index in 0..self.active.len() {
                    let lane = self.active[index];
                    match self.executes(op, lane) {
                        None => return Ok(Flow::End(End::Undefined)),
                        Some(true) => self.compute(op, lane),
                        Some(false) => self.skip(op, lane),
                    }
                }
            }
        }
        Ok(Flow::Next)
    }

    /// Whether a lane executes an operation; none if that is undefined.
    fn executes(&self, op: &Op, lane: usize) -> Option<bool> {
        let Some(guard) = op.guard else { return Some(true) };
        let guard = self.get(guard, lane);
        (!guard.unknown).then_some(guard.bits == 1)
    }

    /// Sets the results of an operation in a lane that does not execute it.
    fn skip(&mut self, op: &Op, lane: usize) {
        for at in op.results.clone() {
            let register = self.program.lists[at];
            let value = match op.kept {
                Some(kept) => self.get(kept, lane),
                None => self.undefined(register, lane, true),
            };
            self.set(register, lane, value);
        }
    }

    /// An undefined value. For a warp that follows a record, and for undefined values of the program, it is
    /// unknown; for a warp that records, those of the compiler are random.
    fn undefined(&self, register: Register, lane: usize, own: bool) -> Value {
        let bits = self.inputs.junk(register, self.first + lane, self.time);
        Value { bits, unknown: !own || matches!(self.role, Role::Following { .. }) }
    }

    fn compute(&mut self, op: &Op, lane: usize) {
        let program = self.program;
        let args = &program.lists[op.args.clone()];
        let results = &program.lists[op.results.clone()];
        let known = |bits| Value { bits, unknown: false };
        for (index, &register) in results.iter().enumerate() {
            let arg = |index: usize| self.get(args[index], lane);
            let value = match op.kind {
                Kind::Constant(bits) => known(bits),
                Kind::Compute(Compute::Select) => {
                    let (condition, x, y) = (arg(0), arg(1), arg(2));
                    let chosen = if condition.bits == 0 { y } else { x };
                    let same = !x.unknown && !y.unknown && x.bits == y.bits;
                    Value { unknown: chosen.unknown || (condition.unknown && !same), ..chosen }
                }
                Kind::Compute(function) => {
                    let (x, y) = (arg(0), arg(args.len() - 1));
                    let bits = function.of(x.bits, y.bits);
                    let all = program.masks[register as usize];
                    let is = |bits: u64| [x, y].iter().any(|x| !x.unknown && x.bits == bits);
                    let absorbed = match function {
                        Compute::And => is(0),
                        Compute::Or => is(all),
                        _ => false,
                    };
                    Value { bits, unknown: !absorbed && (x.unknown || y.unknown) }
                }
                Kind::Arithmetic(function, _) if self.inputs.computes => {
                    let (x, y) = (arg(0), arg(1));
                    let bits = match function {
                        Arithmetic::Add => x.bits.wrapping_add(y.bits),
                        Arithmetic::Subtract => x.bits.wrapping_sub(y.bits),
                        Arithmetic::Multiply => x.bits.wrapping_mul(y.bits),
                    };
                    Value { bits, unknown: x.unknown || y.unknown }
                }
                Kind::Opaque(key) | Kind::Arithmetic(_, key) => {
                    let mut value = known(mix(key, index as u64));
                    for &arg in args {
                        let arg = self.get(arg, lane);
                        value.bits = mix(value.bits, arg.bits);
                        value.unknown |= arg.unknown;
                    }
                    Value { bits: often_small(mix(value.bits, self.inputs.seed)), ..value }
                }
                Kind::LaneNumber => known(self.inputs.lanes[self.first + lane]),
                Kind::Ask(key, width) => {
                    let key = mix(key, index as u64);
                    known(self.inputs.input(key, width, self.first + lane))
                }
                Kind::Frame(key) => {
                    let key = mix(key, self.frames[lane]);
                    known(self.inputs.input(key, Width::Thread, self.first + lane))
                }
                Kind::Undefined { own } => self.undefined(register, lane, own),
                _ => known(0),
            };
            self.set(register, lane, value);
        }
    }

    /// The result of an exchange among the active lanes for `lane`.
    fn exchange(&self, exchange: Exchange, op: &Op, lane: usize) -> Value {
        let args = &self.program.lists[op.args.clone()];
        let of = |lane| self.get(args[0], lane);
        let any_unknown = self.active.iter().any(|&lane| of(lane).unknown);
        let mut holds = self.active.iter().map(|&lane| (lane, of(lane).bits != 0));
        match exchange {
            Exchange::Any => {
                Value { bits: holds.any(|(_, holds)| holds).into(), unknown: any_unknown }
            }
            Exchange::All => {
                Value { bits: holds.all(|(_, holds)| holds).into(), unknown: any_unknown }
            }
            Exchange::Ballot { first } => {
                let bit = |(lane, holds): (usize, bool)| {
                    let place = lane.checked_sub(first).and_then(|bit| u32::try_from(bit).ok());
                    u64::from(holds) * place.and_then(|bit| 1_u64.checked_shl(bit)).unwrap_or(0)
                };
                Value { bits: holds.map(bit).fold(0, |all, bit| all | bit), unknown: any_unknown }
            }
            Exchange::Shuffle => {
                let wanted = self.get(args[1], lane);
                let other = self.active.iter().find(|&&other| other as u64 == wanted.bits);
                let value = of(other.copied().unwrap_or(lane));
                Value { unknown: value.unknown || wanted.unknown, ..value }
            }
            Exchange::OfSomeLane => {
                let some = mix(self.inputs.seed, self.time) as usize % self.active.len();
                of(self.active[some])
            }
        }
    }

    /// Executes an effect in one lane. Returns false if the record ends before it.
    fn event(
        &mut self,
        at: usize,
        key: u64,
        outcomes: &[Outcome],
        lane: usize,
    ) -> Result<bool, Fault> {
        let program = self.program;
        let op = &program.ops[at];
        if let Role::Following { record, next, goes_on } = self.role {
            let event = record.events.get(next);
            match event {
                Some(event) => self.check(at, key, next, event, record, lane)?,
                None if record.ended => {
                    return Err(Fault::Differs { op: at, event: None, operand: None });
                }
                None if !goes_on => return Ok(false),
                None => {}
            }
            for (index, &outcome) in outcomes.iter().enumerate() {
                let register = program.lists[op.results.start + index];
                let value = match event {
                    Some(event) => {
                        let bits = record.values[event.results.start + index];
                        Value { bits, unknown: false }
                    }
                    None => self.outcome(outcome, at, key, index, lane),
                };
                self.set(register, lane, value);
            }
            self.role = Role::Following { record, next: next + 1, goes_on };
            return Ok(true);
        }
        for (index, &outcome) in outcomes.iter().enumerate() {
            let value = self.outcome(outcome, at, key, index, lane);
            self.set(program.lists[op.results.start + index], lane, value);
        }
        let values = &self.values;
        let of = |&register: &Register| values[register as usize * self.lanes + lane].bits;
        if let Role::Recording(records) = &mut self.role {
            let record = &mut records[lane];
            let start = record.values.len();
            record.values.extend(program.lists[op.args.clone()].iter().map(of));
            let middle = record.values.len();
            record.values.extend(program.lists[op.results.clone()].iter().map(of));
            let (operands, results) = (start..middle, middle..record.values.len());
            record.events.push(Event {
                op: at,
                key,
                #[cfg(test)]
                time: self.time,
                operands,
                results,
            });
        }
        Ok(true)
    }

    /// Compares an event with the recorded one.
    fn check(
        &self,
        at: usize,
        key: u64,
        number: usize,
        event: &Event,
        record: &Record,
        lane: usize,
    ) -> Result<(), Fault> {
        let op = &self.program.ops[at];
        let args = &self.program.lists[op.args.clone()];
        let shape = (event.operands.len(), event.results.len());
        if event.key != key || shape != (args.len(), op.results.len()) {
            return Err(Fault::Differs { op: at, event: Some(number), operand: None });
        }
        for (index, (&arg, place)) in args.iter().zip(event.operands.clone()).enumerate() {
            let (wanted, given) = (self.get(arg, lane), record.values[place]);
            if !wanted.unknown && wanted.bits != given {
                let operand = Some(Operand { index, wanted: wanted.bits, given });
                return Err(Fault::Differs { op: at, event: Some(number), operand });
            }
        }
        Ok(())
    }

    /// A result for a lane that is recorded.
    fn outcome(&self, outcome: Outcome, at: usize, key: u64, index: usize, lane: usize) -> Value {
        let op = &self.program.ops[at];
        let args = &self.program.lists[op.args.clone()];
        let of_args = |depends: &dyn Fn(usize) -> bool| {
            let asked = args.iter().enumerate().filter(|&(arg, _)| depends(arg));
            asked.fold(key, |all, (_, &arg)| mix(all, self.get(arg, lane).bits))
        };
        let bits = match outcome {
            Outcome::Any => {
                let count = match &self.role {
                    Role::Recording(records) => records[lane].events.len(),
                    Role::Following { next, .. } => *next,
                };
                self.inputs.result(index, self.first + lane, count)
            }
            Outcome::OfOperands => self.inputs.result_of(index, of_args(&|_| true)),
            Outcome::OfWarp(depends) => {
                let operands = of_args(&|arg| depends.contains(arg));
                self.inputs.result_of(index, mix(operands, self.inputs.warp + self.time))
            }
            Outcome::Exchange(exchange) => return self.exchange(exchange, op, lane),
        };
        Value { bits, unknown: false }
    }

    /// Executes the effect that ends the function, in all active lanes.
    fn last_event(&mut self, at: usize, key: u64, end: End) -> Result<Flow, Fault> {
        for index in 0..self.active.len() {
            let lane = self.active[index];
            if !self.event(at, key, &[], lane)? {
                return Ok(Flow::End(End::Unrecorded));
            }
            if let Role::Recording(records) = &mut self.role {
                records[lane].ended = true;
            }
        }
        Ok(Flow::End(end))
    }

    fn branch(&mut self, at: usize, edges: &[Edge; 2], split: bool) -> Result<Flow, Fault> {
        let condition = self.program.lists[self.program.ops[at].args.start];
        let (mut yes, mut no) = (Vec::new(), Vec::new());
        for &lane in &self.active {
            let value = self.get(condition, lane);
            if value.unknown {
                return Ok(Flow::End(End::Undefined));
            }
            if value.bits == 0 { no.push(lane) } else { yes.push(lane) }
        }
        let side = usize::from(yes.is_empty());
        let parts = (yes.first().copied()).zip(no.first().copied());
        if split {
            self.stack.push(Entry { side: None, lanes: self.active.clone() });
            if parts.is_some() {
                self.parted += 1;
                self.stack.push(Entry { side: Some(at), lanes: no });
                self.active = yes;
            }
        } else if let Some((one, other)) = parts {
            return Err(Fault::Parted { op: at, lanes: [one, other] });
        }
        Ok(Flow::Go(self.follow(&edges[side])))
    }
}
