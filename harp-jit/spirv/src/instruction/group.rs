//! What the work-items of a work-group do together: barriers, copies, and operations on a value of each.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData};
use rspirv::spirv::{GroupOperation, MemorySemantics, Op, Scope, StorageClass};

use super::Of;
use super::collective::{Collective, Span};
use crate::error::{Result, SpirvErrorKind};
use crate::function::Translator;
use crate::module::Global;
use crate::reader::{Id, Instruction};
use crate::values::{Parts, Val};

/// Bytes for a work-item's value in the memory through which a work-group exchanges them.
const EXCHANGED_BYTES: i64 = 8;

impl Translator<'_, '_, '_> {
    /// Translates an instruction of this family; false if it is of another one.
    pub(super) fn group(&mut self, inst: Instruction<'_>) -> Result<bool> {
        if let Some(collective) = Collective::of_group(inst.op) {
            let is_of_truths = Collective::is_of_truths(inst.op);
            let of = if is_of_truths { Of::Bool } else { collective.of() };
            let value = self.vector_of(inst.word(2)?, of)?;
            let unknown = || SpirvErrorKind::malformed("an unknown group operation");
            let operation = GroupOperation::from_u32(inst.word(1)?).ok_or_else(unknown)?;
            self.combined(inst, collective, Span::of(operation, None)?, value)?;
            return Ok(true);
        }
        match inst.op {
            Op::ControlBarrier => {
                match self.scope(inst.word(0)?)? {
                    Scope::Workgroup => {
                        let name = self.barrier_name(inst.word(1)?, inst.word(2)?);
                        self.barrier_named(name);
                    }
                    Scope::Subgroup | Scope::Invocation => {
                        // The lanes of a warp wait for each other where control flow joins; a vote keeps the order.
                        let one = self.b.ins().iconst(ir::types::I8, 1);
                        self.vote("harp_any", one);
                    }
                    scope => {
                        let what = format!("a barrier of the scope {scope:?}");
                        return Err(SpirvErrorKind::unsupported(what));
                    }
                }
            }
            Op::GroupAsyncCopy => self.async_copy(inst)?,
            Op::GroupWaitEvents => self.barrier(),
            Op::GroupAll | Op::GroupAny => {
                let value = self.condition(inst.word(1)?)?;
                let result = match self.scope(inst.word(0)?)? {
                    Scope::Subgroup => self
                        .vote(if inst.op == Op::GroupAll { "harp_all" } else { "harp_any" }, value),
                    _ => {
                        let collective =
                            if inst.op == Op::GroupAll { Collective::And } else { Collective::Or };
                        self.group_combined(collective, Span::All, value, true)?
                    }
                };
                self.check_type(inst, Of::Bool, 1)?;
                self.set(inst, Parts::from_slice(&[result]))?;
            }
            Op::GroupBroadcast => self.group_broadcast(inst)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The scope that a constant is.
    pub(super) fn scope(&self, id: Id) -> Result<Scope> {
        // Kernels may compute it.
        let constant = self.module.constants.length(id, &self.module.types);
        let computed =
            |_| SpirvErrorKind::unsupported(format!("the scope %{id}, which is no constant,"));
        let scope = constant.map_err(computed)?;
        let found = u32::try_from(scope).ok().and_then(Scope::from_u32);
        found.ok_or_else(|| SpirvErrorKind::malformed(format!("{scope} is no scope")))
    }

    /// Waits until all work-items of the work-group are here, and orders all that they do before and after it.
    pub(crate) fn barrier(&mut self) {
        self.barrier_named("harp_barrier");
    }

    /// The same by the intrinsic of that name.
    fn barrier_named(&mut self, name: &'static str) {
        let word = self.unit.word;
        let callee = self.prologue.intrinsic(self.b.func, name, &[], None, word);
        self.b.ins().call(callee, &[]);
    }

    /// The intrinsic for a barrier that orders memory in a scope with these semantics; all memory if one of them is only
    /// known when it runs.
    fn barrier_name(&self, scope: Id, semantics: Id) -> &'static str {
        let constant = self.module.constants.length(semantics, &self.module.types);
        let (Ok(scope), Ok(bits)) = (self.scope(scope), constant) else { return "harp_barrier" };
        let is_in = |any: MemorySemantics| bits & u64::from(any.bits()) != 0;
        let orders = MemorySemantics::ACQUIRE
            | MemorySemantics::RELEASE
            | MemorySemantics::ACQUIRE_RELEASE
            | MemorySemantics::SEQUENTIALLY_CONSISTENT;
        let other = MemorySemantics::UNIFORM_MEMORY | MemorySemantics::CROSS_WORKGROUP_MEMORY;
        if !is_in(orders) || matches!(scope, Scope::Subgroup | Scope::Invocation) {
            return "harp_barrier_nothing";
        }
        match (is_in(MemorySemantics::WORKGROUP_MEMORY), is_in(other)) {
            (true, true) => "harp_barrier",
            (true, false) => "harp_barrier_group",
            (false, true) => "harp_barrier_other",
            (false, false) => "harp_barrier_nothing",
        }
    }

    /// Clears those of the work-group's variables that are null at first: its work-items share the work.
    pub(crate) fn clear_group_memory(&mut self, function: Id) -> Result<()> {
        let module = self.module;
        let is_undefined = |id| module.constants.is_undefined(id);
        let variables = module.used_globals(function, |global| {
            global.class == StorageClass::Workgroup
                && global.initializer.is_some_and(|initial| !is_undefined(initial))
        });
        if variables.is_empty() {
            return Ok(());
        }
        let (own, all) = (self.prologue_word("harp_local_index"), self.group_items());
        for id in variables {
            let Global { ty, initializer, .. } = module.globals[&id];
            if !initializer.is_some_and(|initial| module.constants.is_null(initial)) {
                let what = format!("an initial value of the work-group's variable %{id}");
                return Err(SpirvErrorKind::unsupported(what));
            }
            let (base, size) = (self.global_address(id)?, module.types.get(ty)?.size);
            let is_of_words = size % 4 == 0 && self.unit.alignment(id, ty)? >= 4;
            let unit = if is_of_words { ir::types::I32 } else { ir::types::I8 };
            let bytes = i64::from(unit.bytes());
            let [start, step] = [own, all].map(|items| self.b.ins().imul_imm_s(items, bytes));
            let end = self.b.ins().iconst(self.unit.word, size.cast_signed());
            self.repeat(start, end, step, &[], |t, at, _| {
                let (zero, to) = (t.b.ins().iconst(unit, 0), t.b.ins().iadd(base, at));
                t.b.ins().store(MemFlagsData::new().with_aligned(), zero, to, 0);
                Ok(Vec::new())
            })?;
        }
        self.barrier();
        Ok(())
    }

    /// Copies elements: the first work-item of a group every n-th one from the first on, and so on.
    fn async_copy(&mut self, inst: Instruction<'_>) -> Result<()> {
        let ((to, class, ty), (from, _, other)) =
            (self.pointer(inst.word(1)?)?, self.pointer(inst.word(2)?)?);
        if ty != other {
            return Err(SpirvErrorKind::malformed("the pointers have different targets"));
        }
        let word = self.unit.word;
        let (count, stride) = (self.integer(inst.word(3)?)?, self.integer(inst.word(4)?)?);
        let [count, stride] = [count, stride].map(|value| self.resized(value, word, false));
        let found = self.module.types.get(ty)?;
        let size = found.size.next_multiple_of(found.align).cast_signed();
        let (own, all) = (self.prologue_word("harp_local_index"), self.group_items());
        // Not with its own element: who accesses that before the copy has ended is then found by checked launches.
        let first = self.at_start(|at| {
            let next = at.ins().iadd_imm_s(own, 1);
            let is_end = at.ins().icmp(IntCC::Equal, next, all);
            let start = at.ins().iconst(word, 0);
            at.ins().select(is_end, start, next)
        });
        self.repeat(first, count, all, &[], |t, index, _| {
            let near = t.b.ins().imul_imm_s(index, size);
            let far = t.b.ins().imul(near, stride);
            // The stride is that of the elements in global memory.
            let (to_at, from_at) =
                if class == StorageClass::Workgroup { (near, far) } else { (far, near) };
            let at = |t: &mut Self, base: &Val, distance| {
                Val::scalar(base.ty, t.b.ins().iadd(base.parts[0], distance))
            };
            let (to, from) = (at(t, &to, to_at), at(t, &from, from_at));
            let value = t.load(&from, ty, None)?;
            t.store(&to, &value, None)?;
            Ok(Vec::new())
        })?;
        let event = self.zero(inst.ty)?;
        self.set(inst, event.parts)
    }

    fn group_broadcast(&mut self, inst: Instruction<'_>) -> Result<()> {
        let value = self.value_of(inst.word(1)?, inst.ty)?;
        let position = self.vector_of(inst.word(2)?, Of::Int)?;
        let word = self.unit.word;
        let places: Parts =
            position.parts.iter().map(|&at| self.resized(at, word, false)).collect();
        let mut parts = Parts::new();
        for &part in &value.parts {
            parts.push(match self.scope(inst.word(0)?)? {
                Scope::Subgroup => self.shuffle(part, places[0]),
                _ => {
                    let [columns, rows, _] =
                        crate::prologue::LOCAL_SIZE.map(|name| self.prologue_word(name));
                    let mut index = places[0];
                    if let Some(&y) = places.get(1) {
                        let z = places.get(2).copied();
                        let row = match z {
                            Some(z) => {
                                let layer = self.b.ins().imul(z, rows);
                                self.b.ins().iadd(layer, y)
                            }
                            None => y,
                        };
                        let before = self.b.ins().imul(row, columns);
                        index = self.b.ins().iadd(index, before);
                    }
                    let memory = self.exchanged(part)?;
                    let result = self.of_item(memory, index, self.b.func.dfg.value_type(part));
                    self.barrier();
                    result
                }
            });
        }
        self.set(inst, parts)
    }

    fn combined(
        &mut self,
        inst: Instruction<'_>,
        collective: Collective,
        span: Span,
        value: Val,
    ) -> Result<()> {
        if value.ty != inst.ty {
            return Err(self.mismatch(
                inst.word(2)?,
                value.ty,
                self.module.types.describe(inst.ty),
            ));
        }
        let scope = self.scope(inst.word(0)?)?;
        let is_truth = self.is_vector_of(value.ty, Of::Bool)?;
        self.combine_parts(inst, value, |t, part| match scope {
            Scope::Subgroup => t.lanes_combined(collective, span, part, is_truth),
            _ => t.group_combined(collective, span, part, is_truth),
        })
    }

    /// Combines a value of each work-item of the group: those of each warp, then what that gives for the warps, both in the
    /// order of their numbers.
    fn group_combined(
        &mut self,
        collective: Collective,
        span: Span,
        value: ir::Value,
        is_truth: bool,
    ) -> Result<ir::Value> {
        let ty = self.b.func.dfg.value_type(value);
        let (own, lane) =
            (self.prologue_word("harp_local_index"), self.prologue_word("harp_lane_id"));
        let (all, lanes) = (self.group_items(), self.prologue_word("harp_lane_count"));
        let of_warp = self.lanes_combined(collective, Span::All, value, is_truth)?;
        let of_own = match span {
            Span::All => None,
            _ => Some(self.lanes_combined(collective, span, value, is_truth)?),
        };
        let memory = self.exchanged(of_warp)?;
        let end = if of_own.is_none() { all } else { self.b.ins().isub(own, lane) };
        let identity = collective.identity(self, ty, is_truth);
        let zero = self.b.ins().iconst(self.unit.word, 0);
        // The first work-item of each warp.
        let combined = self.repeat(zero, end, lanes, &[identity], |t, index, before| {
            let other = t.of_item(memory, index, ty);
            Ok(vec![collective.apply(t, before[0], other)])
        })?;
        self.barrier();
        Ok(match of_own {
            Some(of_own) => collective.apply(self, combined[0], of_own),
            None => combined[0],
        })
    }

    /// Stores the value of each work-item where the others of the group find it; returns the address.
    fn exchanged(&mut self, value: ir::Value) -> Result<ir::Value> {
        let offset = i64::from(self.unit.scratch()?);
        let (memory, own) =
            (self.prologue_word("harp_group_memory"), self.prologue_word("harp_local_index"));
        let memory = self.b.ins().iadd_imm_s(memory, offset);
        let place = self.b.ins().imul_imm_s(own, EXCHANGED_BYTES);
        let place = self.b.ins().iadd(memory, place);
        self.b.ins().store(MemFlagsData::new().with_aligned(), value, place, 0);
        self.barrier();
        Ok(memory)
    }

    fn of_item(&mut self, memory: ir::Value, index: ir::Value, ty: ir::Type) -> ir::Value {
        let place = self.b.ins().imul_imm_s(index, EXCHANGED_BYTES);
        let place = self.b.ins().iadd(memory, place);
        self.b.ins().load(ty, MemFlagsData::new().with_aligned(), place, 0)
    }
}
