//! The transfer function: the effect of an instruction on the state, and the facts that it requires.

use harp_bdd::Set;
use harp_isa::abi::{LaneField, RegisterRoles};
use harp_isa::{Gpr, Op, OpcodeFlags, Operand, Pred, Role as Access, Sharing, WordSize};
use smallvec::SmallVec;

use crate::assumption::Assumption;
use crate::code::{Code, Flow};
use crate::error::CodeFault;
use crate::fact::{Detail, New, Scratch, Valuation, Value};
use crate::lanes::Lanes;
use crate::live::Lives;
use crate::number::Precision;
use crate::op::{Form, WARP, is_pure, registers};
use crate::places::{Place, Places};
use crate::provenance::Provenance;
use crate::record::{Record, Regs, Role};
use crate::repeats::Known;
use crate::selection::{self, Step};
use crate::shared;
use crate::state::State;
use crate::term::{Origin, Source, Terms};
use crate::value::{self, Computed, Stacks};

/// Executes instructions on a state.
#[derive(Clone, Copy)]
pub(crate) struct Transfer<'a> {
    pub(crate) code: &'a Code<'a>,
    pub(crate) places: &'a Places,
    pub(crate) record: &'a Record,
    pub(crate) assumption: &'a Assumption,
    pub(crate) lanes: &'a Lanes,
    pub(crate) terms: &'a Terms,
    pub(crate) lives: &'a Lives,
    pub(crate) precision: Precision,
}

impl<'a> Transfer<'a> {
    /// The state at the entry of the function.
    pub(crate) fn at_entry(&self) -> State<'a> {
        // Saved registers are kept for the caller, and nothing to look at.
        let mut state = State::new(self.lanes, vec![Value::undefined(); self.places.count()]);
        state.free.extend(&self.record.free);
        let roles = RegisterRoles::new(self.code.arch);
        let mut set = |reg: Gpr, value: Value<'a>| {
            state.values[Places::gpr(reg).index()] = self.adjusted(value);
        };
        let arguments = &self.record.entry.arguments;
        let shared = arguments.iter().copied().filter(|&reg| self.code.arch.is_shared(reg));
        for reg in roles.caller_saved().chain(shared) {
            set(reg, given(reg, arguments, &self.assumption.uniform));
        }
        set(roles.return_address(), Value::uniform());
        set(roles.stack_pointer(), Value { form: Form::Stack(0), ..Value::unknown() });
        state
    }

    fn word(&self) -> WordSize {
        self.code.arch.word()
    }

    /// Whether there is only one lane at all.
    fn is_single(&self) -> bool {
        self.record.entry.single_lane || self.code.arch.lanes() == 1
    }

    /// One lane agrees with itself.
    fn adjusted(&self, value: Value<'a>) -> Value<'a> {
        let differs = if self.is_single() { Set::NONE } else { value.differs };
        Value { differs, ..value }
    }

    /// Executes the instruction `at`; `report` gets its defects.
    pub(crate) fn step(&self, state: &mut State<'a>, at: usize, report: &mut dyn FnMut(CodeFault)) {
        let placed = &self.code.insts[at];
        let instruction = placed.instruction;
        for place in placed.note.iter().flat_map(|note| self.places.of(&note.undefined)) {
            self.drop(state, place);
        }
        let step = Step {
            at,
            instruction,
            guard: instruction.guard.map(Places::pred),
            role: placed.note.map(|note| &note.role),
            after: &self.lives.after[at],
            repeated: &self.lives.repeats.after[at],
        };
        selection::check_predicates(self.code, state, &step, report);
        self.check_lanes(state, &step, report);
        self.check_values(state, &step, report);
        match placed.flow {
            Flow::Call => self.call(state, &step),
            _ if step.flags().intersects(OpcodeFlags::STORE) => self.store(state, &step),
            _ => self.compute(state, &step),
        }
        selection::name_results(state, &step);
    }

    /// What acts on the warp as a whole needs lanes that agree, and other functions get what they rely on.
    fn check_lanes(&self, state: &State<'a>, step: &Step<'_>, report: &mut dyn FnMut(CodeFault)) {
        let mut wanted: SmallVec<[Operand; 4]> = SmallVec::new();
        let splits = self.code.is_split(step.at) || self.code.is_split_branch(step.at);
        if step.flags().intersects(WARP) && !splits {
            wanted.extend(step.instruction.guard.map(Operand::Pred));
        }
        if step.flags().intersects(WARP) && !step.flags().intersects(OpcodeFlags::CROSS_LANE) {
            let used = registers(step.instruction.op).into_iter();
            let used = used.filter(|(_, access)| *access == Access::Use);
            wanted.extend(used.map(|(operand, _)| operand));
        }
        if let Some(Role::Call { asks, .. } | Role::Leave { asks, .. }) = step.role {
            wanted.extend(asks.iter().copied().map(Operand::Gpr));
        }
        wanted.extend(self.taken_for_own(step));
        let varies = |place: Place| !state.is_uniform(place);
        let wanted = wanted.into_iter().filter(|_| !self.is_single());
        let divergent = wanted.filter(|&operand| Places::operand(operand).is_some_and(varies));
        divergent.for_each(|operand| report(CodeFault::Divergent(self.code.register(operand))));
        if let Some(Role::Leave { depends, .. }) = step.role {
            let holds = |result: &&Gpr| {
                let mut found = depends.iter().filter(|(reg, _)| reg == *result);
                found.any(|(_, regs)| !regs.iter().any(|&reg| varies(Places::gpr(reg))))
            };
            let broken = self.assumption.results.iter().filter(|result| !holds(result));
            broken.for_each(|&result| report(CodeFault::Divergent(self.code.register(result))));
        }
    }

    /// The shared registers that lanes read as if they had computed what is there themselves.
    fn taken_for_own(&self, step: &Step<'_>) -> SmallVec<[Operand; 4]> {
        let arch = self.code.arch;
        if !arch.has_shared() {
            return SmallVec::new();
        }
        let op = step.instruction.op;
        let registers = registers(op);
        let of_first_lane = match op.sharing(arch) {
            Sharing::Each => false,
            Sharing::Once => registers.iter().any(|(_, access)| *access != Access::Use),
            Sharing::Row => true,
        };
        let read = registers.into_iter().filter(|(_, access)| *access != Access::Def);
        let read = read.map(|(operand, _)| operand).filter(|_| !of_first_lane);
        let guard = step.instruction.guard.map(Operand::Pred);
        guard.into_iter().chain(read).filter(|&operand| arch.is_shared(operand)).collect()
    }

    /// Operations with observable effects, traps included, must not depend on undefined values.
    fn check_values(&self, state: &State<'a>, step: &Step<'_>, report: &mut dyn FnMut(CodeFault)) {
        let op = step.instruction.op;
        let flags = step.flags();
        let seen = WARP
            | OpcodeFlags::STORE
            | OpcodeFlags::LOAD
            | OpcodeFlags::ATOMIC
            | OpcodeFlags::DIVIDES;
        let mut wanted: SmallVec<[Operand; 4]> = SmallVec::new();
        if flags.intersects(seen) {
            if let Some(reg) = step.instruction.guard
                && !self.is_known(state, Places::pred(reg))
            {
                report(CodeFault::Undefined(self.code.register(reg)));
            }
            let read = registers(op).into_iter().filter(|(_, access)| *access != Access::Def);
            wanted.extend(read.map(|(operand, _)| operand));
        }
        if flags.intersects(OpcodeFlags::DIVIDES) && wanted.len() < 3 {
            // Only the divisor decides whether it traps.
            wanted.drain(..wanted.len().min(1));
        }
        if flags.intersects(OpcodeFlags::STORE | OpcodeFlags::ATOMIC) {
            // What is found out without a look at what is known must know it, too.
            let is_seen = |&place: &Place| step.after.slot == Some(place);
            let touched = self.touched(state, op).unwrap_or_default();
            if touched.iter().any(|place| self.places.is_private(*place) && !is_seen(place)) {
                report(CodeFault::PrivateFrame);
            }
        }
        if let Op::St { value, .. } = op
            && self.slot(state, op).is_some()
        {
            // It is kept, not seen.
            wanted.retain(|operand| *operand != Operand::Gpr(value));
        }
        if let Some(Role::Call { hands, .. } | Role::Leave { hands, .. }) = step.role {
            wanted.extend(hands.iter().copied().map(Operand::Gpr));
        }
        let among = step.guard.map_or(Set::ALL, |guard| state.not_zero(guard));
        for operand in wanted {
            let defined = |place| state.is_defined(place, among);
            if !Places::operand(operand).is_none_or(defined) {
                report(CodeFault::Undefined(self.code.register(operand)));
            }
        }
    }

    /// Whether a predicate is defined in all lanes.
    fn is_known(&self, state: &State<'a>, place: Place) -> bool {
        state.value(place).is_truth() && state.is_defined(place, Set::ALL)
    }

    /// The tracked word of the frame that a load or store of a word goes to.
    fn slot(&self, state: &State<'a>, op: Op) -> Option<Place> {
        let (base, offset) = match op {
            Op::Ld { base, offset, .. } | Op::St { base, offset, .. } => (base, offset),
            _ => return None,
        };
        match state.value(Places::gpr(base)).form {
            Form::Stack(place) => self.places.slot(place.wrapping_add(offset)),
            _ => None,
        }
    }

    fn store(&self, state: &mut State<'a>, step: &Step<'_>) {
        let op = step.instruction.op;
        if let (Op::St { value, .. }, Some(slot)) = (op, self.slot(state, op)) {
            return self.write(state, step, slot, Computed::Copy(Places::gpr(value)));
        }
        if let Op::St { value, base, offset } = op
            && self.is_scratch(state, base, offset)
        {
            state.scratch = self.voted(state, step, Places::gpr(value));
            let old = state.values.iter_mut().filter(|value| value.form == Form::Voted);
            old.for_each(|value| value.form = Form::Unknown);
            return;
        }
        state.scratch = Scratch::Anything;
        let touched = self.touched(state, op);
        self.lose(state, touched.unwrap_or_else(|| self.places.exposed().collect()));
    }

    /// The words of the frame that a store may touch; none if it is not known to go to the stack.
    fn touched(&self, state: &State<'a>, op: Op) -> Option<Vec<Place>> {
        let mut base = None;
        let mut offset = 0;
        op.for_each_operand(|operand| match operand {
            Operand::Gpr(reg) => base = Some(reg),
            Operand::Imm(imm) => offset = imm,
            Operand::Pred(_) => {}
        });
        match state.value(Places::gpr(base?)).form {
            Form::Stack(start) => {
                let offset = start.wrapping_add(offset);
                let bytes = match op {
                    // At a misaligned address it stores the bytes up to the end of the word only.
                    Op::St { .. } => 1,
                    _ => i64::from(op.opcode().access_bytes(self.word())?),
                };
                Some(self.places.touched(offset, bytes).collect())
            }
            _ => None,
        }
    }

    /// Whether an access is to the warp's scratch word, which is in the control block of lane 0. Functions that are no
    /// kernels may run on stacks that are not aligned for the way there.
    fn is_scratch(&self, state: &State<'a>, base: Gpr, offset: i64) -> bool {
        let place = i64::from(LaneField::ScratchWord.offset(self.word()));
        match state.value(Places::gpr(base)).form {
            Form::Scratch => offset == 0,
            Form::FirstBlock => self.record.entry.kernel && offset == place,
            Form::LaneBlock(start) => {
                self.code.arch.lanes() == 1 && start.wrapping_add(offset) == place
            }
            _ => false,
        }
    }

    /// What the scratch word holds once `value` is stored there.
    fn voted(&self, state: &State<'a>, step: &Step<'_>, value: Place) -> Scratch<'a> {
        let form = state.value(value).form;
        let is_address = matches!(form, Form::Scratch | Form::FirstBlock | Form::LaneBlock(0));
        match (form, step.guard, state.scratch) {
            (Form::Constant(0), None, _) => Scratch::Zero,
            // There is code at address 0.
            (form, Some(guard), Scratch::Zero)
                if is_address || matches!(form, Form::Constant(1..)) =>
            {
                Scratch::Vote(state.not_zero(guard))
            }
            _ => Scratch::Anything,
        }
    }

    /// Drops all facts about the contents of these places.
    fn lose(&self, state: &mut State<'a>, places: impl IntoIterator<Item = Place>) {
        for place in places {
            self.set(state, place, Value::unknown());
        }
    }

    fn set(&self, state: &mut State<'a>, place: Place, value: Value<'a>) {
        state.assign(place, New::of(self.adjusted(value)));
        self.changed(state, place);
    }

    /// What was computed from what a place held is not any more what is computed from it.
    fn changed(&self, state: &mut State<'a>, place: Place) {
        self.lives.repeats.depending(place).for_each(|other| state.forget(other));
    }

    /// Ways meet at the beginning of a block. A condition that may be tested again before anything changes, and was
    /// tested on some of them, comes to one thing or the other now on the rest, too: to the same in lanes that hold the same in
    /// the places that it is computed from. As long as not all ways were seen, the others may bring one that was tested.
    pub(crate) fn anticipate(&self, ways: &mut [State<'a>], block: usize, all_seen: bool) {
        for &place in self.lives.repeats.live.get(block).into_iter().flatten() {
            if all_seen && ways.iter().all(|way| !way.value(place).is_truth()) {
                continue;
            }
            for way in ways.iter_mut().filter(|way| !way.value(place).is_truth()) {
                let mut value = Value::uniform();
                for source in self.lives.repeats.sources(place) {
                    value.differs = value.differs | way.differing(source);
                    value.undefined = value.undefined | way.value(source).undefined;
                }
                way.assign(place, New::truth_of(value));
            }
        }
    }

    /// A place holds nothing that is meant to be read.
    pub(crate) fn drop(&self, state: &mut State<'a>, place: Place) {
        state.drop(place);
        self.changed(state, place);
    }

    fn call(&self, state: &mut State<'a>, step: &Step<'_>) {
        let roles = RegisterRoles::new(self.code.arch);
        let (returns, popped, depends): (&[Gpr], i64, &[(Gpr, Regs)]) = match step.role {
            Some(Role::Call { returns, popped, depends, .. }) => (returns, *popped, depends),
            _ => (&[], 0, &[]),
        };
        let is_uniform = |&reg: &Gpr| state.is_uniform(Places::gpr(reg));
        let uniform = depends.iter().filter(|(_, args)| args.iter().all(is_uniform));
        let uniform: Vec<Gpr> = uniform.map(|&(result, _)| result).collect();
        state.scratch = Scratch::Anything;
        for reg in roles.caller_saved() {
            self.set(state, Places::gpr(reg), given(reg, returns, &uniform));
        }
        self.set(state, Places::gpr(roles.return_address()), Value::uniform());
        for reg in (0..self.code.arch.preds()).map(Pred::new) {
            self.set(state, Places::pred(reg), Value::undefined());
        }
        let stack = Places::gpr(roles.stack_pointer());
        if let Form::Stack(place) = state.value(stack).form
            && popped != 0
        {
            let value = Value { form: Form::Stack(place.wrapping_add(popped)), ..Value::unknown() };
            self.set(state, stack, value);
        }
        for place in shared::of_functions(self.code.arch).filter_map(Places::operand) {
            self.drop(state, place);
        }
        self.lose(state, self.places.exposed());
    }

    /// Loads, atomic accesses and everything that computes.
    fn compute(&self, state: &mut State<'a>, step: &Step<'_>) {
        let op = step.instruction.op;
        let registers = registers(op);
        let target = registers.iter().find(|(_, access)| *access != Access::Use);
        let target = target.and_then(|&(operand, _)| Places::operand(operand));
        let Some(target) = target else { return };
        let mut computed = self.computed(state, step, target);
        if step.flags().intersects(OpcodeFlags::ATOMIC) {
            state.scratch = Scratch::Anything;
            self.lose(state, self.places.exposed());
        }
        if step.claims().uniform {
            let result = self.places.result();
            match computed {
                Computed::Copy(source) => state.copy(result, source, Detail::Numbers),
                Computed::New(new) => state.assign(result, new),
            }
            state.equalize(result);
            computed = Computed::Copy(result);
        }
        // Names say where a value is not zero.
        let names = match op {
            Op::Rtop { src, .. } if step.guard.is_none() => {
                state.value(Places::gpr(src)).names.clone()
            }
            _ => SmallVec::new(),
        };
        self.write(state, step, target, computed);
        state.add_names(target, &names);
        if target.is_shared(self.code.arch) {
            self.spread(state, step, target);
        }
        for &Known { place, inverted } in &step.repeated.known {
            if state.value(place).is_truth() {
                state.equate(target, (place, inverted));
            }
        }
        if let (Op::Rtop { src, .. } | Op::Iszero { src, .. }, None) = (op, step.guard)
            && self.precision >= Precision::Fine
        {
            let inverted = matches!(op, Op::Iszero { .. });
            state.refine_zero(Places::gpr(src), (target, inverted));
        }
        for &Known { place, inverted } in &step.repeated.remembered {
            match inverted {
                true => state.copy_opposite(place, target),
                false => state.copy(place, target, Detail::Numbers),
            }
        }
    }

    /// All lanes get what the first one wrote to a shared register.
    fn spread(&self, state: &mut State<'a>, step: &Step<'_>, target: Place) {
        let undefined = state.value(target).undefined;
        let mixed = undefined ^ undefined.other();
        // Others would be written to as well.
        let is_masked = step.guard.is_some_and(|guard| !guard.is_shared(self.code.arch));
        if is_masked || !(mixed & state.pairs & state.active).disjoint(state.active.other()) {
            self.drop(state, target);
        } else if !state.is_uniform(target) {
            // By the first lane's control block, all find what is the same in theirs.
            let form = match state.value(target).form {
                form @ (Form::StackNumber | Form::LaneBlock(_)) => form,
                _ => Form::Unknown,
            };
            let value = Value { form, ..Value::unknown() };
            let is_pred = target.is_pred(self.code.arch);
            state.assign(target, if is_pred { New::truth_of(value) } else { New::of(value) });
        }
    }

    fn computed(&self, state: &State<'a>, step: &Step<'_>, target: Place) -> Computed<'a> {
        let op = step.instruction.op;
        if let Some(slot) = self.slot(state, op) {
            return Computed::Copy(slot);
        }
        let stacks = Stacks::new(self.code.arch, self.record.entry.lane_stack_log2);
        let sources = &step.repeated.sources;
        let mut new = match value::of(state, op, self.word(), stacks, sources) {
            Computed::New(new) => new,
            copy @ Computed::Copy(_) => return copy,
        };
        if step.flags().intersects(OpcodeFlags::LOAD) {
            self.load(state, step, &mut new.value);
        }
        let says_nothing = matches!(new.numbers, Valuation::Unknown) && new.value.numbers.is_none();
        if target.is_pred(self.code.arch) && says_nothing {
            new = New::truth_of(new.value);
        }
        Computed::New(New { value: self.adjusted(new.value), ..new })
    }

    /// What is loaded from memory that is not tracked.
    fn load(&self, state: &State<'a>, step: &Step<'_>, value: &mut Value<'a>) {
        let sharing = step.instruction.op.sharing(self.code.arch);
        if sharing == Sharing::Row {
            value.differs = Set::ALL;
            return;
        }
        // Nobody writes it between two lanes' loads if there is only one.
        let is_same = step.claims().read_only || sharing == Sharing::Once;
        let Op::Ld { base, offset, .. } = step.instruction.op else {
            if !is_same {
                value.differs = Set::ALL;
            }
            return;
        };
        // What one lane of the warp wrote last, in all lanes.
        if self.is_scratch(state, base, offset) {
            (value.differs, value.form) = (Set::NONE, Form::Voted);
            return;
        }
        let field = match state.value(Places::gpr(base)).form {
            Form::GroupBlock => {
                value.differs = Set::NONE;
                return;
            }
            Form::Code => return,
            Form::LaneBlock(start) => {
                let at = |field: &&LaneField| {
                    i64::from(field.offset(self.word())) == start.wrapping_add(offset)
                };
                LaneField::ALL.iter().find(at)
            }
            Form::FirstBlock => {
                let group = i64::from(LaneField::Group.offset(self.word()));
                (offset == group).then_some(&LaneField::Group)
            }
            _ => None,
        };
        match field {
            Some(LaneField::Warp | LaneField::Core | LaneField::Lanes) => {
                value.differs = Set::NONE;
            }
            Some(LaneField::Group) => {
                value.differs = Set::NONE;
                value.form = Form::GroupBlock;
            }
            Some(LaneField::ScratchAddress) => {
                value.differs = Set::NONE;
                value.form = Form::Scratch;
            }
            Some(LaneField::StackLimit) => value.form = Form::OnStack,
            Some(LaneField::GlobalIdY | LaneField::GlobalIdZ) if self.record.entry.by_rows => {
                value.differs = Set::NONE;
            }
            _ if is_same => {}
            _ => value.differs = Set::ALL,
        }
    }

    /// `place` gets a value, in the lanes where the guard holds.
    fn write(&self, state: &mut State<'a>, step: &Step<'_>, place: Place, computed: Computed<'a>) {
        let detail = match (step.after.compared, step.after.shared) {
            (true, _) => Detail::Numbers,
            (false, true) => Detail::Differences,
            (false, false) => Detail::Nothing,
        };
        let result = self.places.result();
        match (step.guard, computed) {
            (None, Computed::Copy(source)) => state.copy(place, source, detail),
            (None, Computed::New(new)) => {
                self.assign(state, step, place, new.blurred(detail));
                state.find_names(place);
            }
            (Some(guard), computed) => {
                let source = match computed {
                    Computed::Copy(source) => source,
                    Computed::New(new) => {
                        self.assign(state, step, result, new);
                        result
                    }
                };
                let places = [guard, source, place];
                let selected = |kept: &Provenance<'_>| {
                    self.terms.selected(places.map(|place| source_of(state, kept, place)))
                };
                let kept = state.provenance.iter().filter(|_| self.precision.names_ways());
                let origins: SmallVec<[Origin; 4]> = kept.map(selected).collect();
                state.select(place, (guard, source), step.claims().old_is_dead, detail);
                state.derive(place, &origins);
                state.find_names(place);
            }
        }
        state.forget(result);
        if !step.repeated.changes_nothing {
            self.changed(state, place);
        }
    }

    /// `place` gets what an operation computes, which comes from what was there at each of the open splits.
    fn assign(&self, state: &mut State<'a>, step: &Step<'_>, place: Place, new: New<'a>) {
        let op = step.instruction.op;
        // From memory that nobody writes the same is loaded at any time.
        if !is_pure(op) && !step.claims().read_only {
            return state.assign(place, new);
        }
        let source = |kept: &Provenance<'_>, operand| match (operand, Places::operand(operand)) {
            (Operand::Imm(imm), _) => Source::Immediate(imm),
            (_, None) => Source::From(Origin::Unknown),
            (_, Some(place)) => source_of(state, kept, place),
        };
        let of = |kept: &Provenance<'_>| self.terms.result(op, |operand| source(kept, operand));
        let origins: SmallVec<[Origin; 4]> = state.provenance.iter().map(of).collect();
        state.assign(place, new);
        state.derive(place, &origins);
    }
}

/// What another function leaves in a register, if it is one of these.
fn given<'a>(reg: Gpr, known: &[Gpr], uniform: &[Gpr]) -> Value<'a> {
    match reg {
        _ if uniform.contains(&reg) => Value::uniform(),
        _ if known.contains(&reg) => Value::unknown(),
        _ => Value::undefined(),
    }
}

/// What a place holds, in terms of what there was at an open split.
fn source_of(state: &State<'_>, kept: &Provenance<'_>, place: Place) -> Source {
    match state.value(place).form {
        Form::Constant(constant) => Source::Constant(constant),
        _ => Source::From(kept.only(place)),
    }
}
