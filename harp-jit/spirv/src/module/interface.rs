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
use rspirv::spirv::{ExecutionModel, FunctionParameterAttribute, Op, StorageClass};
use smallvec::{SmallVec, smallvec};

use super::{Global, SpirvModule};
use crate::error::{Result, SpirvErrorKind};
use crate::reader::Id;
use crate::types::Kind;

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
        let others = module.entry_points.iter().filter(|other| other.function != self.function);
        for initializer in others.filter(|other| other.is_initializer) {
            let own = module.used_globals(self.function, is_data);
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
        let globals = if is_shader { self.resources(function) } else { Vec::new() };
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
            Kind::Int { bits: 16, .. } => Some(ParamType::I16),
            Kind::Int { bits: 32, .. } => Some(ParamType::I32),
            Kind::Int { .. } => Some(ParamType::I64),
            Kind::Float { bits: 16 } => Some(ParamType::F16),
            Kind::Float { bits: 32 } => Some(ParamType::F32),
            Kind::Float { .. } => Some(ParamType::F64),
            Kind::Pointer { .. } => Some(ParamType::Pointer),
            _ => None,
        })
    }

    /// The scalars of a value.
    pub(super) fn fields(&self, ty: Id) -> Result<EntryParamKind> {
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
    pub(super) fn element(&self, ty: Id) -> Option<Type> {
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
}

/// How many words of the argument block launch parameters take.
pub(crate) fn words(params: &[Param], word: WordSize) -> u32 {
    params.iter().map(|param| param.ty().words(word)).sum()
}
