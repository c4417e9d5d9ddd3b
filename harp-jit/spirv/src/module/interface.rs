//! What a kernel takes: the arguments of a launch, and where they go.
//!
//! | SPIR-V | arguments of a launch |
//! |---|---|
//! | pointer to `CrossWorkgroup` or `UniformConstant`; variable in `StorageBuffer` or `Uniform` | a buffer |
//! | array of such variables | a buffer for each element |
//! | several variables with the same descriptor set and binding | those of one of them |
//! | pointer to `Workgroup` | the size of an array that each work-group gets |
//! | integer, float | the same |
//! | vector, structure by value, `PushConstant` block | one for each of its scalars, in their order |
//!
//! Names are those of the parameters or, as clang's entry points call the function that has the names, of the called
//! function's.

use harp_jit::ir::{Type, types};
use harp_jit::{Param, ParamType, WordSize};
use hashbrown::{HashMap, HashSet};
use rspirv::spirv::{Decoration, ExecutionModel, FunctionParameterAttribute, Op, StorageClass};
use smallvec::{SmallVec, smallvec};

use super::{Global, SpirvModule};
use crate::error::{Result, SpirvErrorKind};
use crate::reader::Id;
use crate::types::Kind;

/// The most elements of an array of buffers.
const MOST_BUFFERS: u64 = 64;

/// A kernel of a module.
#[derive(Clone, Debug)]
pub struct EntryPoint {
    name: String,
    params: Vec<EntryParam>,
    pub(super) local_size: Option<[u32; 3]>,
    /// The work-items that its subgroups must have, if the module fixes them.
    pub(super) subgroup_size: Option<u32>,
    /// Whether it is to run before the others, to set the module's variables.
    pub(super) is_initializer: bool,
    pub(crate) function: Id,
    /// What takes each of the parameters: variables with the same binding take the same one.
    pub(crate) targets: Vec<Targets>,
    /// Why there is no kernel, if something that it takes is not supported.
    pub(super) problem: Option<SpirvErrorKind>,
}

/// What takes a parameter's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The parameter of the function with this index.
    Param(usize),
    /// A variable of the module.
    Global(Id),
    /// The next element of a variable of the module that is an array of buffers.
    Element(Id),
}

/// All that takes a parameter's value.
type Targets = SmallVec<[Target; 1]>;

/// What a kernel takes as one thing; a launch may need several arguments for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryParam {
    /// Its name, if the module has one.
    pub name: Option<String>,
    /// The arguments that it takes.
    pub kind: EntryParamKind,
    /// The descriptor set and the binding of a buffer.
    pub binding: Option<(u32, u32)>,
    /// Whether the module promises that nothing changes a buffer's contents while the kernel runs.
    pub constant: bool,
}

/// The arguments that a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryParamKind {
    /// A buffer, with the type of all its scalars if it is one. Of halves that is `F16`; launches know them as integers of 16 bits.
    Buffer(Option<Type>),
    /// The same of a kernel that may ask how long its buffers are.
    SizedBuffer(Option<Type>),
    /// An array that each work-group gets, which may have such elements.
    Group(Option<Type>),
    /// A number.
    Scalar(ParamType),
    /// A number for each scalar of a vector or structure, with the names of its members.
    Fields(Vec<(String, ParamType)>),
}

/// A constant that can be given another value when a module is read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpecConstant {
    /// Its `SpecId`.
    pub id: u32,
    /// Its name, if the module has one.
    pub name: Option<String>,
    /// Its type.
    pub ty: ParamType,
    /// The bits of its value.
    pub bits: u64,
}

impl EntryPoint {
    pub(super) fn new(
        module: &SpirvModule,
        function: Id,
        name: String,
        model: ExecutionModel,
    ) -> EntryPoint {
        let interface = match model {
            ExecutionModel::Kernel => module.launch_interface(function, false),
            ExecutionModel::GLCompute => module.launch_interface(function, true),
            other => {
                let what = format!("an entry point for the execution model {other:?}");
                Err(SpirvErrorKind::unsupported(what))
            }
        };
        let (mut params, targets, problem) = match interface {
            Ok((params, targets)) => (params, targets, None),
            Err(problem) => (Vec::new(), Vec::new(), Some(problem)),
        };
        make_names_unique(&mut params);
        EntryPoint {
            name,
            params,
            local_size: None,
            subgroup_size: None,
            is_initializer: false,
            function,
            targets,
            problem,
        }
    }

    /// The name by which a kernel is found.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it takes, in order.
    pub fn params(&self) -> &[EntryParam] {
        &self.params
    }

    /// The extents that its work-groups must have, if the module fixes them.
    pub fn local_size(&self) -> Option<[u32; 3]> {
        self.local_size
    }

    /// Why there is no kernel of it on a machine with so many lanes, if there is none.
    pub(crate) fn problem(&self, module: &SpirvModule, lanes: u32) -> Option<SpirvErrorKind> {
        if let Some(required) = self.subgroup_size.filter(|&items| items != lanes) {
            return Some(SpirvErrorKind::SubgroupSize { required, lanes });
        }
        let is_data = |global: &Global| module.is_data(global);
        let own = module.used_globals(self.function, is_data);
        let before = module.entry_points.iter().filter(|other| {
            other.is_initializer && other.function != self.function && !own.is_empty()
        });
        for initializer in before {
            let set = module.used_globals(initializer.function, is_data);
            if let Some(id) = own.iter().find(|id| set.contains(id)) {
                let name = &initializer.name;
                let what = format!("the variable %{id}, which the initializer `{name}` sets,");
                return Some(SpirvErrorKind::unsupported(what));
            }
        }
        self.problem.clone()
    }

    /// Finds the entry point with a name.
    pub(crate) fn find<'a>(module: &'a SpirvModule, name: &str) -> Result<&'a EntryPoint> {
        let found = module.entry_points.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| SpirvErrorKind::NoKernel {
            name: name.to_owned(),
            known: module.entry_points.iter().map(|entry| entry.name.clone()).collect(),
        })
    }
}

impl EntryParam {
    /// The parameters of a launch.
    pub(crate) fn launch_params(&self) -> Vec<Param> {
        let own = |ty, element: Option<Type>| {
            let element = element.map(|ty| if ty == types::F16 { types::I16 } else { ty });
            let param = Param::new(self.name.as_deref(), ty, element);
            if self.constant { param.with_constant_contents() } else { param }
        };
        match &self.kind {
            EntryParamKind::Buffer(element) => vec![own(ParamType::Pointer, *element)],
            EntryParamKind::SizedBuffer(element) => vec![own(ParamType::SizedPointer, *element)],
            EntryParamKind::Group(element) => vec![own(ParamType::Group, *element)],
            EntryParamKind::Scalar(ty) => vec![own(*ty, None)],
            EntryParamKind::Fields(fields) => {
                let field = |(path, ty): &(String, ParamType)| {
                    let name = self.name.as_ref().map(|name| format!("{name}{path}"));
                    Param::new(name.as_deref(), *ty, None)
                };
                fields.iter().map(field).collect()
            }
        }
    }
}

/// Gives parameters of the same name different ones.
fn make_names_unique(params: &mut [EntryParam]) {
    let mut seen = HashSet::new();
    for param in params {
        let Some(name) = &mut param.name else { continue };
        let first = name.clone();
        let mut number = 1;
        while !seen.insert(name.clone()) {
            number += 1;
            *name = format!("{first}_{number}");
        }
    }
}

impl SpirvModule {
    /// What a launch of a function takes.
    fn launch_interface(
        &self,
        function: Id,
        is_shader: bool,
    ) -> Result<(Vec<EntryParam>, Vec<Targets>)> {
        let (mut params, mut targets) = (Vec::new(), Vec::new());
        let names = self.param_names(function);
        let own = &self.functions[&function].params;
        for ((index, &(id, ty)), name) in own.iter().enumerate().zip(names) {
            let kind = self.param_kind(id, ty)?;
            let constant = self.is_constant_param(id, ty)?;
            params.push(EntryParam { name, kind, binding: None, constant });
            targets.push(smallvec![Target::Param(index)]);
        }
        let globals = if is_shader { self.interface(function) } else { Vec::new() };
        let is_sized = !globals.is_empty() && self.asks_for_lengths(function);
        for views in globals.chunk_by(|&one, &other| self.are_views(one, other)) {
            let param = self.resource(views, is_sized)?;
            let Some((_, count)) = self.buffers(views[0])? else {
                params.push(param);
                targets.push(views.iter().copied().map(Target::Global).collect());
                continue;
            };
            for index in 0..count {
                let name = param.name.as_ref().map(|name| format!("{name}[{index}]"));
                params.push(EntryParam { name, ..param.clone() });
                targets.push(views.iter().copied().map(Target::Element).collect());
            }
        }
        Ok((params, targets))
    }

    /// The names of a function's parameters, or of those of the function that they are passed on to.
    fn param_names(&self, function: Id) -> Vec<Option<String>> {
        let found = &self.functions[&function];
        let own = found.params.iter().map(|&(id, _)| id);
        let mut inner: HashMap<Id, Id> = HashMap::new();
        if let [block] = &found.blocks[..] {
            for at in block.start..block.end {
                let inst = self.code.get(at);
                let Some((&callee, args)) = inst.operands.split_first() else { continue };
                if inst.op == Op::FunctionCall
                    && let Some(callee) = self.functions.get(&callee)
                {
                    let params = callee.params.iter().map(|&(param, _)| param);
                    inner.extend(args.iter().copied().zip(params));
                }
            }
        }
        let name = |id: Id| {
            let inner = inner.get(&id).copied().unwrap_or(id);
            [id, inner].into_iter().find_map(|id| self.decorations.name(id)).map(str::to_owned)
        };
        own.map(name).collect()
    }

    /// Whether a kernel's parameter points to what nothing changes: it is declared so, or only this pointer leads there, and
    /// nothing is written through it.
    fn is_constant_param(&self, id: Id, ty: Id) -> Result<bool> {
        let &Kind::Pointer { class, .. } = self.types.kind(ty)? else { return Ok(false) };
        let attributes = [FunctionParameterAttribute::NoAlias, FunctionParameterAttribute::NoWrite];
        let has = |&attribute: &FunctionParameterAttribute| {
            self.decorations.has_attribute(id, attribute as u32)
        };
        Ok(match class {
            StorageClass::UniformConstant => true,
            StorageClass::CrossWorkgroup => attributes.iter().all(has),
            _ => false,
        })
    }

    /// Whether nothing changes what is in a variable that a launch provides, or in an element of one, which is of type `ty`:
    /// variables do not overlap unless they say so.
    fn is_constant_variable(&self, id: Id, ty: Id) -> bool {
        let class = self.globals[&id].class;
        let has = |decoration| self.decorations.has(id, decoration);
        let members = match self.types.kind(ty) {
            Ok(Kind::Struct { members }) => members.len() as u32,
            _ => 0,
        };
        let member_has =
            |member, decoration| self.decorations.of_member(ty, member, decoration).is_some();
        let any_has = |decoration| {
            has(decoration) || (0..members).any(|member| member_has(member, decoration))
        };
        let only_read = has(Decoration::NonWritable)
            || (members > 0
                && (0..members).all(|member| member_has(member, Decoration::NonWritable)));
        let is_block =
            class == StorageClass::Uniform && !self.decorations.has(ty, Decoration::BufferBlock);
        (only_read || is_block) && !any_has(Decoration::Aliased) && !any_has(Decoration::Volatile)
    }

    fn param_kind(&self, id: Id, ty: Id) -> Result<EntryParamKind> {
        let refused = || {
            let what = format!("a kernel's parameter %{id}, {},", self.types.describe(ty));
            SpirvErrorKind::unsupported(what)
        };
        Ok(match self.types.kind(ty)? {
            &Kind::Pointer { class, to } => match class {
                StorageClass::CrossWorkgroup | StorageClass::UniformConstant => {
                    if matches!(self.types.kind(to)?, Kind::Opaque { .. }) {
                        return Err(refused());
                    }
                    EntryParamKind::Buffer(self.element(to))
                }
                StorageClass::Workgroup => EntryParamKind::Group(self.element(to)),
                StorageClass::Function
                    if self
                        .decorations
                        .has_attribute(id, FunctionParameterAttribute::ByVal as u32) =>
                {
                    self.fields(to)?
                }
                _ => return Err(refused()),
            },
            Kind::Int { .. } | Kind::Float { .. } | Kind::Bool => {
                EntryParamKind::Scalar(self.param_type(ty)?.ok_or_else(refused)?)
            }
            Kind::Vector { .. } | Kind::Struct { .. } | Kind::Array { .. } => self.fields(ty)?,
            _ => return Err(refused()),
        })
    }

    pub(super) fn param_type(&self, ty: Id) -> Result<Option<ParamType>> {
        Ok(match self.types.kind(ty)? {
            Kind::Bool => Some(ParamType::Bool),
            Kind::Int { bits: 8, .. } => Some(ParamType::I8),
            Kind::Int { bits: 16, .. } | Kind::Float { bits: 16 } => Some(ParamType::I16),
            Kind::Int { bits: 32, .. } => Some(ParamType::I32),
            Kind::Int { .. } => Some(ParamType::I64),
            Kind::Float { bits: 32 } => Some(ParamType::F32),
            Kind::Float { .. } => Some(ParamType::F64),
            Kind::Pointer { .. } => Some(ParamType::Pointer),
            _ => None,
        })
    }

    /// The scalars of a value.
    fn fields(&self, ty: Id) -> Result<EntryParamKind> {
        self.types.check_leaves(ty)?;
        let mut fields = Vec::new();
        self.append_fields(ty, String::new(), &mut fields)?;
        Ok(EntryParamKind::Fields(fields))
    }

    fn append_fields(
        &self,
        ty: Id,
        path: String,
        fields: &mut Vec<(String, ParamType)>,
    ) -> Result<()> {
        if let Some(param) = self.param_type(ty)? {
            fields.push((path, param));
            return Ok(());
        }
        if self.types.get(ty)?.leaves == 0 {
            return Ok(());
        }
        for index in 0..self.types.parts(ty)? {
            let (part, _) = self.types.part(ty, index)?;
            let name = match self.types.kind(ty)? {
                Kind::Struct { .. } => {
                    let name = self.decorations.member_name(ty, index as u32);
                    name.map_or_else(|| format!(".{index}"), |name| format!(".{name}"))
                }
                Kind::Vector { count, .. } if *count <= 4 => {
                    format!(".{}", ["x", "y", "z", "w"][index as usize])
                }
                Kind::Vector { .. } => format!(".s{index:x}"),
                _ => format!("[{index}]"),
            };
            self.append_fields(part, format!("{path}{name}"), fields)?;
        }
        Ok(())
    }

    /// The type of all scalars of a buffer's contents, if they have the same. Nothing is known of bytes, as which C
    /// also declares memory of any contents.
    fn element(&self, ty: Id) -> Option<Type> {
        let inner = match self.types.kind(ty).ok()? {
            Kind::Vector { of, .. } | Kind::Array { of, .. } | Kind::RuntimeArray { of, .. } => *of,
            Kind::Matrix { column, .. } => *column,
            Kind::Struct { members } => match &**members {
                [member] => member.ty,
                _ => return None,
            },
            Kind::Bool | Kind::Pointer { .. } => return None,
            Kind::Float { bits: 16 } => return Some(types::F16),
            _ => {
                let scalar = self.types.scalar(ty, types::INVALID).ok()??;
                return (scalar != types::I8).then_some(scalar);
            }
        };
        self.element(inner)
    }

    /// The variables that a launch provides among those that a function and its callees use: buffers by their bindings,
    /// then push constants.
    fn interface(&self, function: Id) -> Vec<Id> {
        let mut found = self.used_globals(function, |&Global { class, ty, .. }| match class {
            StorageClass::StorageBuffer | StorageClass::Uniform | StorageClass::PushConstant => {
                true
            }
            // Images and samplers, which are refused by name.
            StorageClass::UniformConstant => {
                matches!(self.types.kind(ty), Ok(Kind::Opaque { .. }))
            }
            _ => false,
        });
        let number = |id, decoration| self.decorations.number(id, decoration);
        found.sort_by_key(|&id| {
            let is_constant = self.globals[&id].class == StorageClass::PushConstant;
            let set = number(id, Decoration::DescriptorSet);
            (is_constant, set, number(id, Decoration::Binding), id)
        });
        found
    }

    /// The variables of the module that a function and its callees use among those that are `wanted`, in the order of
    /// their ids.
    pub(crate) fn used_globals(&self, function: Id, wanted: impl Fn(&Global) -> bool) -> Vec<Id> {
        if !self.globals.values().any(&wanted) {
            return Vec::new();
        }
        let mut globals = HashSet::new();
        for function in self.reachable(function) {
            for block in &self.functions[&function].blocks {
                for at in block.start..block.end {
                    let ids = self.code.get(at).ids().map(|(_, id)| id);
                    globals.extend(ids.flat_map(|id| self.globals_of(id)));
                }
            }
        }
        let mut globals: Vec<Id> =
            globals.into_iter().filter(|id| wanted(&self.globals[id])).collect();
        globals.sort_unstable();
        globals
    }

    /// The variable that an id is, or those whose addresses a constant has.
    fn globals_of(&self, id: Id) -> Vec<Id> {
        if self.globals.contains_key(&id) {
            return vec![id];
        }
        self.constants.addresses(id, &self.types)
    }

    /// The functions that a function calls.
    pub(crate) fn callees(&self, function: Id) -> impl Iterator<Item = Id> {
        let callees = self.functions[&function].callees.iter().copied();
        callees.filter(|callee| self.functions.contains_key(callee))
    }

    /// A function and all that it calls, directly or not.
    pub(crate) fn reachable(&self, function: Id) -> Vec<Id> {
        let (mut found, mut seen) = (vec![function], HashSet::new());
        seen.insert(function);
        let mut next = 0;
        while next < found.len() {
            let callees = self.callees(found[next]);
            found.extend(callees.filter(|&callee| seen.insert(callee)));
            next += 1;
        }
        found
    }

    /// Whether a function or its callees ask how long the array at the end of a buffer is.
    fn asks_for_lengths(&self, function: Id) -> bool {
        self.reachable(function).iter().any(|function| self.functions[function].asks_for_lengths)
    }

    /// The name of a block: of the type, or of what it wraps, as blocks without a dynamic array are by some compilers.
    fn block_name(&self, ty: Id) -> Option<&str> {
        let wrapped = match self.types.kind(ty) {
            Ok(Kind::Struct { members }) if members.len() == 1 => Some(members[0].ty),
            _ => None,
        };
        [Some(ty), wrapped].into_iter().flatten().find_map(|ty| self.decorations.name(ty))
    }

    /// The type of a buffer's contents and the number of buffers, if a variable is an array of them.
    fn buffers(&self, id: Id) -> Result<Option<(Id, u64)>> {
        let Global { ty, class, .. } = self.globals[&id];
        match *self.types.kind(ty)? {
            Kind::Array { of, count, .. } if class != StorageClass::PushConstant => {
                if count > MOST_BUFFERS {
                    let (given, limit) = (count, MOST_BUFFERS);
                    return Err(SpirvErrorKind::TooMany {
                        what: "buffers of an array",
                        given,
                        limit,
                    });
                }
                Ok(Some((of, count)))
            }
            _ => Ok(None),
        }
    }

    /// The descriptor set and the binding of a variable.
    fn binding(&self, id: Id) -> Option<(u32, u32)> {
        let number = |decoration| self.decorations.number(id, decoration);
        number(Decoration::DescriptorSet).zip(number(Decoration::Binding))
    }

    /// Whether two variables are the same buffer, or array of buffers, for which a module may declare different types.
    fn are_views(&self, one: Id, other: Id) -> bool {
        let count = |id| self.buffers(id).map(|found| found.map(|(_, count)| count));
        let [of_one, of_other] = [one, other].map(|id| self.binding(id));
        of_one.is_some() && of_one == of_other && count(one) == count(other)
    }

    /// The parameter for variables that are the same buffer, or for an element of such arrays.
    fn resource(&self, views: &[Id], is_sized: bool) -> Result<EntryParam> {
        let types = views.iter().map(|&id| match self.buffers(id)? {
            Some((of, _)) => Ok(of),
            None => Ok(self.globals[&id].ty),
        });
        let types = types.collect::<Result<SmallVec<[Id; 1]>>>()?;
        let (id, ty) = (views[0], types[0]);
        let kind = if self.globals[&id].class == StorageClass::PushConstant {
            self.fields(ty)?
        } else {
            let is_block = |&ty: &Id| matches!(self.types.kind(ty), Ok(Kind::Struct { .. }));
            if let Some(&other) = types.iter().find(|ty| !is_block(ty)) {
                let what = format!("the variable %{id}, {},", self.types.describe(other));
                return Err(SpirvErrorKind::unsupported(what));
            }
            let element = self.element(ty).filter(|element| {
                types.iter().all(|&ty| self.element(ty).as_ref() == Some(element))
            });
            if is_sized {
                EntryParamKind::SizedBuffer(element)
            } else {
                EntryParamKind::Buffer(element)
            }
        };
        let name = self.decorations.name(id).or_else(|| self.block_name(ty)).map(str::to_owned);
        let mut of_types = views.iter().zip(&types);
        let constant = of_types.all(|(&id, &ty)| self.is_constant_variable(id, ty));
        Ok(EntryParam { name, kind, binding: self.binding(id), constant })
    }
}

/// How many words of the argument block launch parameters take.
pub(crate) fn words(params: &[Param], word: WordSize) -> u32 {
    params.iter().map(|param| param.ty().words(word)).sum()
}
