//! What an instruction does to what is known, and what it must be able to rely on.

use harp_isa::abi::{LaneField, RegisterRoles};
use harp_isa::{
    Gpr, Instruction, Op, OpcodeFlags, Operand, Pred, RegClass, Role as Access, WordSize,
};
use smallvec::SmallVec;

use super::code::{Code, Flow};
use super::error::CodeFault;
use super::record::{Claims, Entry, Name, Named, Regs, Role, Selected};
use super::state::{Fact, Form, Id, Literal, Origin, Place, Places, Scratch, State, Where};
use super::value::{self, Value};

/// Executes instructions on what is known.
#[derive(Clone, Copy)]
pub(super) struct Transfer<'a> {
    pub(super) code: &'a Code<'a>,
    pub(super) places: &'a Places,
    pub(super) entry: &'a Entry,
}

/// An instruction with what surrounds it.
#[derive(Clone, Copy)]
struct Step<'a> {
    at: usize,
    instruction: Instruction,
    guard: Option<Literal>,
    role: Option<&'a Role>,
}

impl Step<'_> {
    fn flags(&self) -> OpcodeFlags {
        self.instruction.op.opcode().flags()
    }

    fn selected(&self) -> Option<&Selected> {
        match self.role {
            Some(Role::Selected(selected)) => Some(selected),
            _ => None,
        }
    }

    fn claims(&self) -> Claims {
        self.selected().map(|selected| selected.claims).unwrap_or_default()
    }
}

/// The place that an operand names, if it is a register.
fn place(operand: Operand) -> Option<Place> {
    match operand {
        Operand::Gpr(reg) => Some(Places::gpr(reg)),
        Operand::Pred(reg) => Some(Places::pred(reg)),
        Operand::Imm(_) => None,
    }
}

/// The registers that an operation reads and writes, as if it were not guarded.
fn registers(op: Op) -> SmallVec<[(Operand, Access); 4]> {
    let mut registers = SmallVec::new();
    let push = |operand, _: RegClass, access| registers.push((operand, access));
    Instruction::new(op).for_each_register(push);
    registers
}

impl Transfer<'_> {
    /// What is known when the function is entered.
    pub(super) fn at_entry(&self) -> State {
        let mut state = State::new(self.places);
        let roles = RegisterRoles::new(self.code.arch);
        let mut set = |place: Place, fact: Fact| {
            let id = state.held(place);
            state.know(id, self.adjusted(fact));
        };
        for reg in roles.caller_saved() {
            let argument = self.entry.arguments.contains(&reg);
            let fact = if self.entry.uniform.contains(&reg) {
                Fact::uniform()
            } else if argument {
                Fact::unknown()
            } else {
                Fact::undefined()
            };
            set(Places::gpr(reg), fact);
        }
        for slot in self.places.slots() {
            set(slot, Fact::undefined());
        }
        for reg in roles.callee_saved() {
            set(Places::gpr(reg), Fact::unknown());
        }
        set(Places::gpr(roles.return_address()), Fact::uniform());
        let stack = Fact { form: Form::Stack(0), ..Fact::unknown() };
        set(Places::gpr(roles.stack_pointer()), stack);
        for reg in (0..self.code.arch.preds()).map(Pred::new) {
            set(Places::pred(reg), Fact::undefined());
        }
        state
    }

    fn word(&self) -> WordSize {
        self.code.arch.word()
    }

    /// One lane agrees with itself.
    fn adjusted(&self, fact: Fact) -> Fact {
        let uniform = if self.entry.single_lane { Where::Everywhere } else { fact.uniform };
        Fact { uniform, ..fact }
    }

    /// Executes the instruction `at`; `report` gets what is wrong with it.
    pub(super) fn step(&self, state: &mut State, at: usize, report: &mut dyn FnMut(CodeFault)) {
        let placed = &self.code.insts[at];
        let instruction = placed.instruction;
        for &holder in placed.note.iter().flat_map(|note| &note.undefined) {
            if let Some(place) = self.places.of(holder) {
                state.define(Id::new(Origin::Written, at, place), place, Fact::undefined());
            }
        }
        let literal = |reg| Literal::new(state.held(Places::pred(reg)), true);
        let step = Step {
            at,
            instruction,
            guard: instruction.guard.map(literal),
            role: placed.note.map(|note| &note.role),
        };
        check_selection(state, &step, report);
        self.check_lanes(state, &step, report);
        self.check_values(state, &step, report);
        match placed.flow {
            Flow::Call => self.call(state, &step),
            _ if step.flags().intersects(OpcodeFlags::STORE) => self.store(state, &step),
            _ => self.compute(state, &step),
        }
        self.name_results(state, &step);
    }

    /// What acts on the warp as a whole needs lanes that agree.
    fn check_lanes(&self, state: &State, step: &Step<'_>, report: &mut dyn FnMut(CodeFault)) {
        let warp = OpcodeFlags::CONTROL | OpcodeFlags::ONCE_PER_WARP | OpcodeFlags::CROSS_LANE;
        if self.entry.single_lane || !step.flags().intersects(warp) {
            return;
        }
        let varies = |id: Id| state.fact(id).uniform != Where::Everywhere;
        let splits = self.code.is_split(step.at) || self.code.is_split_branch(step.at);
        if let (Some(guard), Some(reg)) = (step.guard, step.instruction.guard)
            && !splits
            && varies(guard.id)
        {
            report(CodeFault::Divergent(Operand::Pred(reg)));
        }
        if step.flags().intersects(OpcodeFlags::CROSS_LANE) {
            return;
        }
        for (operand, access) in registers(step.instruction.op) {
            let id = place(operand).map(|place| state.held(place));
            if access == Access::Use && id.is_some_and(varies) {
                report(CodeFault::Divergent(operand));
            }
        }
    }

    /// What can be seen from outside, or trap, must be made of values that were meant.
    fn check_values(&self, state: &State, step: &Step<'_>, report: &mut dyn FnMut(CodeFault)) {
        let op = step.instruction.op;
        let flags = step.flags();
        let seen = OpcodeFlags::CONTROL
            | OpcodeFlags::ONCE_PER_WARP
            | OpcodeFlags::CROSS_LANE
            | OpcodeFlags::STORE
            | OpcodeFlags::LOAD
            | OpcodeFlags::ATOMIC
            | OpcodeFlags::DIVIDES;
        let mut wanted: SmallVec<[Operand; 4]> = SmallVec::new();
        if flags.intersects(seen) {
            if let Some(reg) = step.instruction.guard
                && state.fact(state.held(Places::pred(reg))).defined != Where::Everywhere
            {
                report(CodeFault::Undefined(Operand::Pred(reg)));
            }
            let read = registers(op).into_iter().filter(|(_, access)| *access != Access::Def);
            wanted.extend(read.map(|(operand, _)| operand));
        }
        if flags.intersects(OpcodeFlags::DIVIDES) && wanted.len() < 3 {
            // Only the divisor decides whether it traps.
            wanted.drain(..wanted.len().min(1));
        }
        if let Op::St { value, .. } = op
            && self.slot(state, op).is_some()
        {
            // It is kept, not seen.
            wanted.retain(|operand| *operand != Operand::Gpr(value));
        }
        if let Some(Role::Call { hands, .. } | Role::Leave { hands }) = step.role {
            wanted.extend(hands.iter().copied().map(Operand::Gpr));
        }
        for operand in wanted {
            let id = place(operand).map(|place| state.held(place));
            let defined = |id| state.covers_lanes(&state.fact(id).defined, step.guard);
            if !id.is_none_or(defined) {
                report(CodeFault::Undefined(operand));
            }
        }
    }

    /// The tracked word of the frame that a load or store of a word goes to.
    fn slot(&self, state: &State, op: Op) -> Option<Place> {
        let (base, offset) = match op {
            Op::Ld { base, offset, .. } | Op::St { base, offset, .. } => (base, offset),
            _ => return None,
        };
        match state.fact(state.held(Places::gpr(base))).form {
            Form::Stack(place) => self.places.slot(place + offset),
            _ => None,
        }
    }

    fn store(&self, state: &mut State, step: &Step<'_>) {
        let op = step.instruction.op;
        if let (Op::St { value, .. }, Some(slot)) = (op, self.slot(state, op)) {
            let value = state.held(Places::gpr(value));
            return self.write(state, step, slot, Value::Copy(value));
        }
        if let Op::St { value, base, offset: 0 } = op
            && state.fact(state.held(Places::gpr(base))).form == Form::Scratch
        {
            state.scratch = self.voted(state, step, state.held(Places::gpr(value)));
            return;
        }
        let mut base = None;
        let mut offset = 0;
        op.for_each_operand(|operand| match operand {
            Operand::Gpr(reg) => base = Some(reg),
            Operand::Imm(imm) => offset = imm,
            Operand::Pred(_) => {}
        });
        let form = base.map(|base| state.fact(state.held(Places::gpr(base))).form);
        let touched: Vec<Place> = match form {
            Some(Form::Stack(start)) => {
                let bytes = i64::from(self.word().bytes());
                self.places.touched(start + offset, bytes).collect()
            }
            _ => self.places.exposed().collect(),
        };
        self.lose(state, step.at, touched);
    }

    /// What the scratch word holds once `value` is stored there.
    fn voted(&self, state: &State, step: &Step<'_>, value: Id) -> Scratch {
        match (state.fact(value).form, step.guard, state.scratch) {
            (Form::Constant(0), None, _) => Scratch::Zero,
            (Form::Constant(1..) | Form::Scratch, Some(guard), Scratch::Zero) => {
                Scratch::Vote(guard)
            }
            _ => Scratch::Anything,
        }
    }

    /// Nothing is known any more about what these places hold.
    fn lose(&self, state: &mut State, at: usize, places: impl IntoIterator<Item = Place>) {
        for place in places {
            let fact = self.adjusted(Fact::unknown());
            state.define(Id::new(Origin::Written, at, place), place, fact);
        }
    }

    fn call(&self, state: &mut State, step: &Step<'_>) {
        let roles = RegisterRoles::new(self.code.arch);
        let (returns, popped, depends): (&[Gpr], i64, &[(Gpr, Regs)]) = match step.role {
            Some(Role::Call { returns, popped, depends, .. }) => (returns, *popped, depends),
            _ => (&[], 0, &[]),
        };
        let is_uniform =
            |&reg: &Gpr| state.fact(state.held(Places::gpr(reg))).uniform == Where::Everywhere;
        let uniform: Vec<Gpr> = (depends.iter())
            .filter(|(_, args)| args.iter().all(is_uniform))
            .map(|&(result, _)| result)
            .collect();
        let mut set = |place: Place, fact: Fact| {
            let id = Id::new(Origin::Written, step.at, place);
            state.define(id, place, self.adjusted(fact));
        };
        for reg in roles.caller_saved() {
            let fact = if uniform.contains(&reg) {
                Fact::uniform()
            } else if returns.contains(&reg) {
                Fact::unknown()
            } else {
                Fact::undefined()
            };
            set(Places::gpr(reg), fact);
        }
        set(Places::gpr(roles.return_address()), Fact::uniform());
        for reg in (0..self.code.arch.preds()).map(Pred::new) {
            set(Places::pred(reg), Fact::undefined());
        }
        let stack = Places::gpr(roles.stack_pointer());
        if let Form::Stack(place) = state.fact(state.held(stack)).form
            && popped != 0
        {
            let fact = Fact { form: Form::Stack(place + popped), ..Fact::unknown() };
            state.define(Id::new(Origin::Written, step.at, stack), stack, self.adjusted(fact));
        }
        self.lose(state, step.at, self.places.exposed());
    }

    /// Loads, atomic accesses and everything that computes.
    fn compute(&self, state: &mut State, step: &Step<'_>) {
        let op = step.instruction.op;
        let registers = registers(op);
        let target = registers.iter().find(|(_, access)| *access != Access::Use);
        let target = target.and_then(|&(operand, _)| place(operand));
        let Some(target) = target else { return };
        let loaded = self.slot(state, op).map(|slot| state.held(slot));
        if step.flags().intersects(OpcodeFlags::ATOMIC) {
            self.lose(state, step.at, self.places.exposed());
        }
        let mut value = match loaded {
            Some(id) => Value::Copy(id),
            None => value::of(state, op, self.word(), self.entry.lane_stack_log2),
        };
        if step.flags().intersects(OpcodeFlags::LOAD)
            && let Value::New(fact) = &mut value
        {
            self.load(state, step, fact);
        }
        if step.claims().uniform {
            let mut fact = value.into_fact(state);
            fact.uniform = Where::Everywhere;
            value = Value::New(fact);
        }
        if let (Value::New(fact), true) = (&mut value, target.is_pred()) {
            fact.numbers.get_or_insert_with(|| [0, 1].into());
        }
        self.write(state, step, target, value);
    }

    /// What is loaded from memory that is not tracked.
    fn load(&self, state: &State, step: &Step<'_>, fact: &mut Fact) {
        let Op::Ld { base, offset, .. } = step.instruction.op else {
            if !step.claims().read_only {
                fact.uniform = Where::NOWHERE;
            }
            return;
        };
        let field = match state.fact(state.held(Places::gpr(base))).form {
            // What one lane of the warp wrote last, in all lanes.
            Form::Scratch if offset == 0 => {
                fact.uniform = Where::Everywhere;
                return;
            }
            Form::GroupBlock => {
                fact.uniform = Where::Everywhere;
                if let Scratch::Vote(literal) = state.scratch {
                    fact.implies.insert((0, true), state.consequences(!literal));
                }
                return;
            }
            Form::Code => return,
            Form::LaneBlock(start) => {
                let at =
                    |field: &&LaneField| i64::from(field.offset(self.word())) == start + offset;
                LaneField::ALL.iter().find(at)
            }
            _ => None,
        };
        match field {
            Some(LaneField::Warp | LaneField::Core | LaneField::Lanes) => {
                fact.uniform = Where::Everywhere;
            }
            Some(LaneField::Group) => {
                fact.uniform = Where::Everywhere;
                fact.form = Form::GroupBlock;
            }
            Some(LaneField::ScratchAddress) => {
                fact.uniform = Where::Everywhere;
                fact.form = Form::Scratch;
            }
            Some(LaneField::StackLimit) => fact.form = Form::OnStack,
            _ if step.claims().read_only => {}
            _ => fact.uniform = Where::NOWHERE,
        }
    }

    /// `place` gets a value, in the lanes where the guard holds.
    fn write(&self, state: &mut State, step: &Step<'_>, place: Place, value: Value) {
        let fact = match (step.guard, value) {
            (None, Value::Copy(id)) => {
                state.held[place.index()] = id;
                return;
            }
            (None, Value::New(fact)) => fact,
            (Some(guard), value) => {
                let old = if step.claims().old_is_dead { None } else { Some(state.held(place)) };
                value::select(state, guard, value, old)
            }
        };
        let fact = self.adjusted(value::with_names(state, fact));
        state.define(Id::new(Origin::Written, step.at, place), place, fact);
    }

    /// Selected predicates are where the instruction puts them.
    fn name_results(&self, state: &mut State, step: &Step<'_>) {
        let predicates = predicates(step.instruction.op).into_iter();
        if let Some(Role::Part { defines: Some(name), .. }) = step.role {
            predicates.take(1).for_each(|reg| state.rename(*name, state.held(Places::pred(reg))));
            return;
        }
        let Some(selected) = step.selected() else { return };
        for (operand, named) in predicates.zip(&selected.predicates) {
            if let Named::Def(name) | Named::Mod { new: name, .. } = *named {
                state.rename(name, state.held(Places::pred(operand)));
            }
        }
    }
}

/// The predicate operands of an operation.
fn predicates(op: Op) -> SmallVec<[Pred; 3]> {
    let mut predicates = SmallVec::new();
    op.for_each_operand(|operand| {
        if let Operand::Pred(reg) = operand {
            predicates.push(reg);
        }
    });
    predicates
}

/// The instruction is the one that was selected, with the predicates that were selected.
fn check_selection(state: &State, step: &Step<'_>, report: &mut dyn FnMut(CodeFault)) {
    let mut expect = |reg: Pred, name: Name| {
        if !state.fact(state.held(Places::pred(reg))).names.contains(&name) {
            let operand = Operand::Pred(reg);
            report(CodeFault::Predicate { operand, selected: name });
        }
    };
    let op = step.instruction.op;
    let guard = step.instruction.guard;
    if let Some(Role::Part { guard: Some(name), .. }) = step.role
        && let Some(reg) = guard
    {
        expect(reg, *name);
    }
    if let Some(selected) = step.selected() {
        if let (Some(reg), Some(name)) = (guard, selected.guard) {
            expect(reg, name);
        }
        for (reg, named) in predicates(op).into_iter().zip(&selected.predicates) {
            if let Named::Use(name) | Named::Mod { old: name, .. } = *named {
                expect(reg, name);
            }
        }
    }
    let wanted = match step.role {
        Some(Role::Selected(selected)) => {
            if op.opcode() != selected.opcode {
                report(CodeFault::Opcode { selected: selected.opcode.mnemonic() });
            }
            Some(selected.guard.is_some())
        }
        Some(Role::Part { guard: Some(_), .. }) => Some(true),
        _ => None,
    };
    if let Some(selected) = wanted
        && guard.is_some() != selected
    {
        report(CodeFault::Guard { selected });
    }
}
