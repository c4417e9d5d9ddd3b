//! What functions do with their variables.
//!
//! Variables of which only scalars are loaded and stored, by constant indices, need no memory. Unoptimized code keeps
//! everything in variables, and shaders always do. Such variables become those of cranelift-frontend, which makes values and
//! block parameters of them.
//!
//! Of the others it matters whether somebody may look at their addresses, which programs expect to be aligned.

use hashbrown::{HashMap, HashSet};
use rspirv::spirv::{FunctionParameterAttribute, Op, StorageClass};

use crate::module::{Addressing, Function, SpirvModule};
use crate::reader::{Id, Instruction};
use crate::sets::stores_to_pointer;
use crate::types::Kind;

/// The most scalars of a variable that needs no memory.
const MAX_SCALARS: u64 = 128;

/// What a pointer into a variable that may be promoted is for.
#[derive(Clone, Copy)]
struct Part {
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
    /// Tables: those that are one constant whenever they are read, with the constant.
    pub(crate) tables: HashMap<Id, Id>,
    /// Those, and the parameters that are passed by value, whose addresses may be seen as numbers.
    pub(crate) observed: HashSet<Id>,
}

impl Variables {
    pub(crate) fn of(module: &SpirvModule, function: &Function) -> Variables {
        let class = Some(&(StorageClass::Function as u32));
        let is_variable =
            |inst: &Instruction<'_>| inst.op == Op::Variable && inst.operands.first() == class;
        let all: Vec<_> = instructions(module, function).filter(is_variable).collect();
        let promoted = promoted(module, function, &all);
        let rest: Vec<_> =
            all.iter().copied().filter(|inst| !promoted.contains(&inst.id)).collect();
        let tables = tables(module, function, &rest);
        Variables { promoted, tables, observed: observed(module, function, &all) }
    }
}

/// Those of a function's variables that need no memory.
fn promoted(
    module: &SpirvModule,
    function: &Function,
    variables: &[Instruction<'_>],
) -> HashSet<Id> {
    let types = variables.iter().map(|inst| (inst.id, inst.ty));
    let small = types.filter(|&(_, ty)| is_small(module, ty));
    // Of a pointer that was loaded nobody would know what it points into.
    let candidates = small.filter(|&(_, ty)| !module.keeps_variables || is_pointer(module, ty));
    remaining(module, function, candidates.collect())
}

/// The function's variables that are only read, except that one constant is stored to the whole variable, by how many stores there
/// may be. Before the first one a variable is undefined, so it may be that constant as well.
fn tables(
    module: &SpirvModule,
    function: &Function,
    variables: &[Instruction<'_>],
) -> HashMap<Id, Id> {
    if module.keeps_variables || variables.is_empty() {
        return HashMap::new();
    }
    // It is known of a pointer whether it is to the whole variable.
    let pointers = variables.iter().map(|inst| (inst.id, true));
    let escaped =
        escaping(module, function, pointers, |inst, index, is_to_whole| match (inst.op, index) {
            (Op::Load, 0) if !inst.is_volatile(1) => Use::Harmless,
            (Op::Store, 0) if is_to_whole && !inst.is_volatile(2) => Use::Harmless,
            (Op::AccessChain | Op::InBoundsAccessChain, 0) => Use::Derives(false),
            _ => Use::Escapes,
        });
    // The types of the others, and the values that they get.
    let mut stored: HashMap<Id, (Id, Vec<Id>)> = HashMap::new();
    for inst in variables.iter().filter(|inst| !escaped.contains(&inst.id)) {
        let Some(ty) = pointee(module, inst.ty) else { continue };
        stored.insert(inst.id, (ty, inst.operands.get(1).copied().into_iter().collect()));
    }
    for inst in instructions(module, function).filter(|inst| inst.op == Op::Store) {
        if let [to, value, ..] = *inst.operands
            && let Some((_, values)) = stored.get_mut(&to)
        {
            values.push(value);
        }
    }
    let constant = |(variable, (ty, values)): (Id, (Id, Vec<Id>))| {
        let (&first, rest) = values.split_first()?;
        let is_table = rest.iter().all(|&other| other == first)
            && module.constants.is_of_numbers(first)
            && module.constants.ty(first).is_ok_and(|own| own == ty);
        is_table.then_some((variable, first))
    };
    stored.into_iter().filter_map(constant).collect()
}

/// Those of the module's variables in `candidates` that need no memory in a function and all that it calls.
pub(crate) fn promoted_globals(
    module: &SpirvModule,
    function: Id,
    candidates: &[Id],
) -> HashSet<Id> {
    let typed = candidates.iter().filter_map(|&id| Some((id, module.constants.ty(id).ok()?)));
    let typed: Vec<(Id, Id)> = typed.filter(|&(_, ty)| is_small(module, ty)).collect();
    let mut remain: HashSet<Id> = typed.iter().map(|&(id, _)| id).collect();
    for function in module.reachable(function) {
        let still = typed.iter().copied().filter(|(id, _)| remain.contains(id)).collect();
        remain = remaining(module, &module.functions[&function], still);
    }
    remain
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

fn instructions<'m>(
    module: &'m SpirvModule,
    function: &'m Function,
) -> impl Iterator<Item = Instruction<'m>> {
    let indices = function.blocks.iter().flat_map(|block| block.start..block.end);
    indices.map(|at| module.code.get(at))
}

/// What an instruction does with a pointer, of which `P` is known.
enum Use<P> {
    Harmless,
    Derives(P),
    Escapes,
}

/// The variables that escape, of those to which there are `pointers`, with what is known of each.
fn escaping<P: Copy>(
    module: &SpirvModule,
    function: &Function,
    pointers: impl Iterator<Item = (Id, P)>,
    use_of: impl Fn(Instruction<'_>, usize, P) -> Use<P>,
) -> HashSet<Id> {
    let mut pointers: HashMap<Id, (Id, P)> = pointers.map(|(id, p)| (id, (id, p))).collect();
    let (mut escaped, mut known) = (HashSet::new(), 0);
    // An instruction may stand before one that makes its operand: a phi, or one in a block that is not behind its dominators.
    while pointers.len() > known {
        known = pointers.len();
        for inst in instructions(module, function) {
            for (index, id) in inst.ids() {
                let Some(&(variable, pointer)) = pointers.get(&id) else { continue };
                match use_of(inst, index, pointer) {
                    Use::Harmless => {}
                    Use::Derives(derived) => {
                        pointers.insert(inst.id, (variable, derived));
                    }
                    Use::Escapes => {
                        escaped.insert(variable);
                    }
                }
            }
        }
    }
    escaped
}

/// Those of a function's variables, and of its parameters that are passed by value, of which it does not only access memory.
/// With logical addressing there are no addresses to see.
fn observed(
    module: &SpirvModule,
    function: &Function,
    variables: &[Instruction<'_>],
) -> HashSet<Id> {
    if module.addressing == Addressing::Logical {
        return HashSet::new();
    }
    let by_value = FunctionParameterAttribute::ByVal as u32;
    let params = function.params.iter().map(|&(id, _)| id);
    let params = params.filter(|&id| module.decorations.has_attribute(id, by_value));
    let all = params.chain(variables.iter().map(|inst| inst.id));
    escaping(module, function, all.map(|id| (id, ())), |inst, index, ()| match (inst.op, index) {
        (Op::LifetimeStart | Op::LifetimeStop | Op::Load | Op::Store, 0)
        | (Op::CopyMemory | Op::CopyMemorySized, 0 | 1) => Use::Harmless,
        (Op::AccessChain | Op::InBoundsAccessChain, 0)
        | (Op::PtrAccessChain | Op::InBoundsPtrAccessChain, 0) => Use::Derives(()),
        (Op::Bitcast, 0) if pointee(module, inst.ty).is_some() => Use::Derives(()),
        _ => Use::Escapes,
    })
}

/// The candidates that the function does nothing else with. They come with the types of pointers to them.
fn remaining(module: &SpirvModule, function: &Function, candidates: Vec<(Id, Id)>) -> HashSet<Id> {
    let parts = candidates.iter().filter_map(|&(variable, pointer)| {
        Some((variable, Part { ty: pointee(module, pointer)?, is_marker: false }))
    });
    let use_of = |inst: Instruction<'_>, index, part| use_of(module, inst, index, part);
    let escaped = escaping(module, function, parts, use_of);
    let all = candidates.into_iter().map(|(variable, _)| variable);
    all.filter(|variable| !escaped.contains(variable)).collect()
}

fn use_of(module: &SpirvModule, inst: Instruction<'_>, index: usize, pointer: Part) -> Use<Part> {
    match (inst.op, index) {
        (Op::LifetimeStart | Op::LifetimeStop, 0) => Use::Harmless,
        _ if pointer.is_marker => Use::Escapes,
        (Op::Load, 0) if !inst.is_volatile(1) => Use::Harmless,
        (Op::Store, 0) if !inst.is_volatile(2) => Use::Harmless,
        (Op::Bitcast, 0) => match pointee(module, inst.ty) {
            Some(ty) if module.types.are_alike(pointer.ty, ty) => {
                Use::Derives(Part { ty, ..pointer })
            }
            _ => Use::Derives(Part { is_marker: true, ..pointer }),
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
fn part_of(module: &SpirvModule, indices: &[Id], pointer: Part) -> Use<Part> {
    let mut ty = pointer.ty;
    for &index in indices {
        let index = constant(module, index).and_then(|index| u64::try_from(index).ok());
        let part = index.and_then(|index| module.types.part(ty, index).ok());
        let Some((part, _)) = part else { return Use::Escapes };
        ty = part;
    }
    Use::Derives(Part { ty, ..pointer })
}

fn constant(module: &SpirvModule, id: Id) -> Option<i64> {
    module.constants.integer(id, &module.types).ok()
}
