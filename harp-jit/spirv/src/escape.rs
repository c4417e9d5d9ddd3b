//! What functions do with their variables.
//!
//! Variables of which only scalars are loaded and stored, by constant indices, need no memory. Unoptimized code keeps
//! everything in variables, and shaders always do. Such variables become those of cranelift-frontend, which makes values and
//! block parameters of them.
//!
//! Of the others it matters whether somebody may look at their addresses, which programs expect to be aligned.

use hashbrown::{HashMap, HashSet};
use rspirv::spirv::{Op, StorageClass};

use crate::module::{Addressing, Function, SpirvModule};
use crate::reader::{Id, Instruction};
use crate::sets::stores_to_pointer;
use crate::types::Kind;

/// The most scalars of a variable that needs no memory.
const MAX_SCALARS: u64 = 128;

/// What a pointer into a variable is for.
#[derive(Clone, Copy)]
struct Pointer {
    variable: Id,
    /// The type of what it points to.
    ty: Id,
    /// Whether the pointer is cast, which marks a variable's life at most.
    is_marker: bool,
}

/// What a function does with its variables.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    /// Those that need no memory.
    pub(crate) promoted: HashSet<Id>,
    /// Those, and the parameters that are passed by value, whose addresses may be seen as numbers.
    pub(crate) observed: HashSet<Id>,
}

impl Variables {
    pub(crate) fn of(module: &SpirvModule, function: &Function) -> Variables {
        let promoted = promoted(module, function);
        Variables { promoted, observed: observed(module, function) }
    }
}

/// The variables of a function that need no memory.
fn promoted(module: &SpirvModule, function: &Function) -> HashSet<Id> {
    let mut candidates = HashSet::new();
    let is_variable = |inst: &Instruction<'_>| {
        inst.op == Op::Variable && inst.operands.first() == Some(&(StorageClass::Function as u32))
    };
    // Of a pointer that was loaded nobody would know what it points into.
    let may_be = |pointer| !module.keeps_variables || is_pointer(module, pointer);
    for inst in instructions(module, function).filter(is_variable) {
        if is_small(module, inst.ty) && may_be(inst.ty) {
            candidates.insert(inst.id);
        }
    }
    remaining(module, function, candidates)
}

/// Those of the module's variables in `candidates` that need no memory in a function and all that it calls.
pub(crate) fn promoted_globals(
    module: &SpirvModule,
    function: Id,
    candidates: &[Id],
) -> HashSet<Id> {
    let is_small = |id: &Id| module.constants.ty(*id).is_ok_and(|ty| is_small(module, ty));
    let mut candidates: HashSet<Id> = candidates.iter().copied().filter(is_small).collect();
    for function in module.reachable(function) {
        candidates = remaining(module, &module.functions[&function], candidates);
    }
    candidates
}

fn is_small(module: &SpirvModule, pointer: Id) -> bool {
    let found = pointee(module, pointer).and_then(|ty| module.types.get(ty).ok());
    found.is_some_and(|ty| (1..=MAX_SCALARS).contains(&ty.leaves))
}

/// Whether a variable that this type points to is a pointer itself.
fn is_pointer(module: &SpirvModule, pointer: Id) -> bool {
    let found = pointee(module, pointer).and_then(|ty| module.types.kind(ty).ok());
    matches!(found, Some(Kind::Pointer { .. }))
}

/// The type of what a pointer of this type is to.
fn pointee(module: &SpirvModule, pointer: Id) -> Option<Id> {
    module.types.pointer(pointer).ok().map(|(_, ty)| ty)
}

/// The function's instructions. Phis are last, as they may use pointers that are made behind them.
fn instructions<'m>(
    module: &'m SpirvModule,
    function: &'m Function,
) -> impl Iterator<Item = Instruction<'m>> {
    let some = move |phis: bool| {
        let indices = function.blocks.iter().flat_map(|block| block.start..block.end);
        let all = indices.map(|at| module.code.get(at));
        all.filter(move |inst| (inst.op == Op::Phi) == phis)
    };
    some(false).chain(some(true))
}

/// The variables and parameters of a function of which it does not only access memory. With logical addressing there are no
/// addresses to see.
fn observed(module: &SpirvModule, function: &Function) -> HashSet<Id> {
    let mut observed = HashSet::new();
    if module.addressing == Addressing::Logical {
        return observed;
    }
    let mut pointers: HashMap<Id, Id> = function.params.iter().map(|&(id, _)| (id, id)).collect();
    for inst in instructions(module, function) {
        if inst.op == Op::Variable {
            pointers.insert(inst.id, inst.id);
        }
        for (index, id) in inst.ids() {
            let Some(&variable) = pointers.get(&id) else { continue };
            match (inst.op, index) {
                (Op::LifetimeStart | Op::LifetimeStop | Op::Load | Op::Store, 0)
                | (Op::CopyMemory | Op::CopyMemorySized, 0 | 1) => {}
                (Op::AccessChain | Op::InBoundsAccessChain, 0)
                | (Op::PtrAccessChain | Op::InBoundsPtrAccessChain, 0) => {
                    pointers.insert(inst.id, variable);
                }
                (Op::Bitcast, 0) if pointee(module, inst.ty).is_some() => {
                    pointers.insert(inst.id, variable);
                }
                _ => {
                    observed.insert(variable);
                }
            }
        }
    }
    observed
}

/// The candidates that the function does nothing else with.
fn remaining(
    module: &SpirvModule,
    function: &Function,
    mut candidates: HashSet<Id>,
) -> HashSet<Id> {
    if candidates.is_empty() {
        return candidates;
    }
    let global = |&variable: &Id| {
        let ty = pointee(module, module.constants.ty(variable).ok()?)?;
        Some((variable, Pointer { variable, ty, is_marker: false }))
    };
    let mut pointers: HashMap<Id, Pointer> = candidates.iter().filter_map(global).collect();
    for inst in instructions(module, function) {
        if inst.op == Op::Variable
            && candidates.contains(&inst.id)
            && let Some(ty) = pointee(module, inst.ty)
        {
            let pointer = Pointer { variable: inst.id, ty, is_marker: false };
            pointers.insert(inst.id, pointer);
        }
        for (index, id) in inst.ids() {
            let Some(&pointer) = pointers.get(&id) else { continue };
            match use_of(module, inst, index, pointer) {
                Use::Harmless => {}
                Use::Derives(derived) => {
                    pointers.insert(inst.id, derived);
                }
                Use::Escapes => {
                    candidates.remove(&pointer.variable);
                }
            }
        }
    }
    candidates
}

/// What an instruction does with a pointer.
enum Use {
    Harmless,
    Derives(Pointer),
    Escapes,
}

fn use_of(module: &SpirvModule, inst: Instruction<'_>, index: usize, pointer: Pointer) -> Use {
    match (inst.op, index) {
        (Op::LifetimeStart | Op::LifetimeStop, 0) => Use::Harmless,
        _ if pointer.is_marker => Use::Escapes,
        (Op::Load, 0) if !inst.is_volatile(1) => Use::Harmless,
        (Op::Store, 0) if !inst.is_volatile(2) => Use::Harmless,
        (Op::Bitcast, 0) => match pointee(module, inst.ty) {
            Some(ty) if module.types.are_alike(pointer.ty, ty) => {
                Use::Derives(Pointer { ty, ..pointer })
            }
            _ => Use::Derives(Pointer { is_marker: true, ..pointer }),
        },
        (Op::AccessChain | Op::InBoundsAccessChain, 0) => part_of(module, inst.rest(1), pointer),
        (Op::PtrAccessChain | Op::InBoundsPtrAccessChain, 0)
            if inst.word(1).is_ok_and(|element| constant(module, element) == Some(0)) =>
        {
            part_of(module, inst.rest(2), pointer)
        }
        (Op::ExtInst, 2..) => {
            let name = inst
                .operands
                .first()
                .and_then(|set| module.sets.get(set))
                .zip(inst.operands.get(1));
            let stores = name.is_some_and(|(&set, &number)| stores_to_pointer(set, number));
            if stores { Use::Harmless } else { Use::Escapes }
        }
        _ => Use::Escapes,
    }
}

/// An access chain from a pointer: a part of the variable if the indices are constants, and there is such a part.
fn part_of(module: &SpirvModule, indices: &[Id], pointer: Pointer) -> Use {
    let mut ty = pointer.ty;
    for &index in indices {
        let index = constant(module, index).and_then(|index| u64::try_from(index).ok());
        let part = index.and_then(|index| module.types.part(ty, index).ok());
        let Some((part, _)) = part else { return Use::Escapes };
        ty = part;
    }
    Use::Derives(Pointer { ty, ..pointer })
}

fn constant(module: &SpirvModule, id: Id) -> Option<i64> {
    module.constants.integer(id, &module.types).ok()
}
