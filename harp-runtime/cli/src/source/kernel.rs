//! The kernels of a program, and what they take.

use std::fmt;

use harp_isa::{ArchId, WordSize};
use harp_jit::ir::{Type, types};
use harp_jit::text::{TextFile, TextFunction};
use harp_jit::{
    CompileOptions, Kernel, KernelSource, Linkage, Module, ModuleError, Param, ParamType,
};
use harp_spirv::{EntryParam, EntryParamKind, EntryPoint, SpirvKernel, SpirvModule};

use super::super::files::Input;
use super::{ProgramFile, Source, SourceError};

/// A kernel of a program for a machine.
pub(in super::super) enum KernelOf<'s> {
    /// A function of CLIF text that returns nothing: its parameters are the kernel's.
    Clif {
        /// The text.
        file: &'s TextFile,
        /// The function.
        function: &'s TextFunction,
        /// The machine.
        arch: ArchId,
    },
    /// An entry point.
    Spirv(Box<SpirvKernel>),
}

/// The name of a kernel, and the kernel if it is supported.
pub(in super::super) type Named<'s> = (String, Result<KernelOf<'s>, SourceError>);

/// What a kernel takes as one argument of the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Parameter {
    /// Its name, if it has one.
    pub(in super::super) name: Option<String>,
    /// What its argument may be.
    pub(in super::super) takes: Takes,
    /// Whether the kernel promises that nothing changes what it points to.
    pub(in super::super) constant: bool,
    /// The descriptor set and the binding of a shader's buffer.
    pub(in super::super) binding: Option<(u32, u32)>,
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.takes)?;
        if let Some((set, binding)) = self.binding {
            write!(f, ", set {set}, binding {binding}")?;
        }
        if self.constant { f.write_str(", constant") } else { Ok(()) }
    }
}

/// What an argument may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Takes {
    /// A buffer, with elements of a type if that is known.
    Buffer(Option<Type>),
    /// Memory of work-groups for an array of such elements.
    Group(Option<Type>),
    /// A number.
    Scalar(ParamType),
    /// A number for each scalar of a vector or structure.
    Fields(Vec<(String, ParamType)>),
    /// In CLIF an integer of the machine's word is also the address of a buffer or of a group's memory.
    Word(ParamType),
}

impl ProgramFile {
    /// The kernel that was asked for, or the only one.
    pub(in super::super) fn one_kernel<'s>(
        &self,
        source: &'s Source,
        arch: ArchId,
    ) -> Result<KernelOf<'s>, SourceError> {
        match source {
            Source::Clif(file) => {
                let function =
                    self.one(file.functions().iter().filter(is_kernel).map(|f| (&*f.name, f)))?;
                Ok(KernelOf::Clif { file, function, arch })
            }
            Source::Spirv(module) => {
                let names = module.entry_points().iter().map(EntryPoint::name);
                self.entry_point(module, self.one(names.map(|name| (name, name)))?, arch)
            }
        }
    }

    /// The kernel that was asked for, or all of them, for a machine.
    pub(in super::super) fn kernels<'s>(
        &self,
        source: &'s Source,
        arch: ArchId,
    ) -> Result<Vec<KernelOf<'s>>, SourceError> {
        let all = self.kernels_by_name(source, arch)?;
        all.into_iter().map(|(_, kernel)| kernel).collect()
    }

    /// The same, each by its name, also those that are not supported.
    pub(in super::super) fn kernels_by_name<'s>(
        &self,
        source: &'s Source,
        arch: ArchId,
    ) -> Result<Vec<Named<'s>>, SourceError> {
        if self.kernel.is_some() {
            let kernel = self.one_kernel(source, arch)?;
            return Ok(vec![(kernel.name().to_owned(), Ok(kernel))]);
        }
        Ok(match source {
            Source::Clif(file) => {
                let kernels = file.functions().iter().filter(is_kernel);
                let kernel = |function| KernelOf::Clif { file, function, arch };
                kernels.map(|function| (function.name.clone(), Ok(kernel(function)))).collect()
            }
            Source::Spirv(module) => {
                let names = module.entry_points().iter().map(EntryPoint::name);
                let kernel = |name: &str| self.entry_point(module, name, arch);
                names.map(|name| (name.to_owned(), kernel(name))).collect()
            }
        })
    }

    fn entry_point(
        &self,
        module: &SpirvModule,
        name: &str,
        arch: ArchId,
    ) -> Result<KernelOf<'static>, SourceError> {
        let kernel = module.kernel(name, arch);
        let kernel = kernel.map_err(|error| SourceError::spirv(self.input(), error))?;
        Ok(KernelOf::Spirv(Box::new(kernel)))
    }

    /// The one that was asked for, or the only one.
    fn one<'s, T>(&self, all: impl Iterator<Item = (&'s str, T)>) -> Result<T, SourceError> {
        let file: Input = self.input().clone();
        let mut all: Vec<_> = all.collect();
        let names = |all: &[(&str, T)]| all.iter().map(|(name, _)| format!("`{name}`")).collect();
        if let Some(name) = &self.kernel {
            let Some(index) = all.iter().position(|(other, _)| other == name) else {
                let (name, known) = (name.clone(), names(&all));
                return Err(SourceError::NoSuchKernel { file, name, known });
            };
            return Ok(all.swap_remove(index).1);
        }
        match all.len() {
            0 => Err(SourceError::NoKernels { file }),
            1 => Ok(all.remove(0).1),
            _ => Err(SourceError::SeveralKernels { names: names(&all), file }),
        }
    }
}

/// Whether a function of CLIF text can be a kernel.
fn is_kernel(function: &&TextFunction) -> bool {
    function.func.signature.returns.is_empty()
}

impl KernelOf<'_> {
    /// Its name.
    pub(in super::super) fn name(&self) -> &str {
        match self {
            KernelOf::Clif { function, .. } => &function.name,
            KernelOf::Spirv(kernel) => kernel.entry_point().name(),
        }
    }

    /// What it takes.
    pub(in super::super) fn parameters(&self) -> Result<Vec<Parameter>, SourceError> {
        match self {
            KernelOf::Clif { function, arch, .. } => {
                let func = &function.func;
                let entry = func.layout.entry_block();
                let params = entry.map_or(&[][..], |entry| func.dfg.block_params(entry));
                let param = |(number, &value)| {
                    let ty = func.dfg.value_type(value);
                    let takes =
                        clif_parameter(ty, *arch).ok_or_else(|| SourceError::ParameterType {
                            kernel: function.name.clone(),
                            number,
                            ty: ty.to_string(),
                        })?;
                    let name = Some(value.to_string());
                    Ok(Parameter { name, takes, constant: false, binding: None })
                };
                params.iter().enumerate().map(param).collect()
            }
            KernelOf::Spirv(kernel) => {
                Ok(kernel.entry_point().params().iter().map(spirv_parameter).collect())
            }
        }
    }

    /// The extents that its work-groups must have, if the program says so.
    pub(in super::super) fn local_size(&self) -> Option<[u64; 3]> {
        match self {
            KernelOf::Clif { .. } => None,
            KernelOf::Spirv(kernel) => Some(kernel.entry_point().local_size()?.map(u64::from)),
        }
    }

    /// Compiles it for arguments of these types, or of its parameters' own.
    pub(in super::super) fn compile(
        &self,
        given: Option<&[ParamType]>,
        options: &CompileOptions,
    ) -> Result<Kernel, SourceError> {
        match self {
            &KernelOf::Clif { file, function, arch } => {
                let source = self.clif_source(file, function, arch, given)?;
                let module = callees(file, function, Module::new(arch, options.clone()))?;
                Ok(module.compile_kernel(&source)?)
            }
            KernelOf::Spirv(kernel) => Ok(kernel.compile(options)?),
        }
    }

    /// What `look` sees in the kernel before compilation, with its parameters' own types.
    pub(in super::super) fn look<T>(
        &self,
        look: impl FnOnce(&KernelSource) -> T,
    ) -> Result<T, SourceError> {
        match self {
            &KernelOf::Clif { file, function, arch } => {
                Ok(look(&self.clif_source(file, function, arch, None)?))
            }
            KernelOf::Spirv(kernel) => Ok(look(kernel.source())),
        }
    }

    fn clif_source(
        &self,
        file: &TextFile,
        function: &TextFunction,
        arch: ArchId,
        given: Option<&[ParamType]>,
    ) -> Result<KernelSource, SourceError> {
        let parameters = self.parameters()?;
        let params = parameters.iter().enumerate().map(|(index, param)| {
            let given = given.and_then(|given| given.get(index)).copied();
            let ty = given.unwrap_or_else(|| param.takes.own_type());
            Param::new(param.name.as_deref(), ty, None)
        });
        let sources = file.sources().clone();
        Ok(KernelSource::from_called(function.func.clone(), arch, params.collect(), sources)?)
    }
}

impl Takes {
    /// The type of an argument, where nobody has given one.
    fn own_type(&self) -> ParamType {
        match self {
            Takes::Scalar(ty) | Takes::Word(ty) => *ty,
            Takes::Group(_) => ParamType::Group,
            Takes::Buffer(_) | Takes::Fields(_) => ParamType::Pointer,
        }
    }
}

/// The module with the data of a text, and with the functions that a kernel calls, directly or not.
fn callees(
    file: &TextFile,
    kernel: &TextFunction,
    mut module: Module,
) -> Result<Module, ModuleError> {
    file.define_data(&mut module)?;
    let mut needed = vec![kernel];
    let mut next = 0;
    while next < needed.len() {
        let named = needed[next]
            .func
            .dfg
            .ext_funcs
            .values()
            .map(|callee| callee.name.display(None).to_string());
        for name in named.collect::<Vec<_>>() {
            let called = file.function(name.trim_start_matches('%'));
            let is_new =
                |called: &&TextFunction| needed.iter().all(|known| known.name != called.name);
            needed.extend(called.filter(is_new));
        }
        next += 1;
    }
    let mut ids = Vec::new();
    for function in &needed[1..] {
        let signature = &function.func.signature;
        ids.push(module.declare_function(&function.name, Linkage::Local, signature)?);
    }
    for (&id, function) in ids.iter().zip(&needed[1..]) {
        let compiled = module.compile(id, &function.func, file.sources())?;
        module.define_compiled(id, compiled)?;
    }
    Ok(module)
}

fn clif_parameter(ty: Type, arch: ArchId) -> Option<Takes> {
    let word = match arch.word() {
        WordSize::Four => types::I32,
        WordSize::Eight => types::I64,
    };
    let scalar = match ty {
        types::I8 => ParamType::I8,
        types::I16 => ParamType::I16,
        types::I32 => ParamType::I32,
        types::I64 => ParamType::I64,
        types::F32 => ParamType::F32,
        types::F64 => ParamType::F64,
        _ => return None,
    };
    Some(if ty == word { Takes::Word(scalar) } else { Takes::Scalar(scalar) })
}

fn spirv_parameter(param: &EntryParam) -> Parameter {
    let takes = match &param.kind {
        EntryParamKind::Buffer(element) | EntryParamKind::SizedBuffer(element) => {
            Takes::Buffer(*element)
        }
        EntryParamKind::Group(element) => Takes::Group(*element),
        EntryParamKind::Scalar(ty) => Takes::Scalar(*ty),
        EntryParamKind::Fields(fields) => Takes::Fields(fields.clone()),
        // There are no others.
        _ => Takes::Buffer(None),
    };
    let EntryParam { name, constant, binding, .. } = param;
    Parameter { name: name.clone(), takes, constant: *constant, binding: *binding }
}

impl fmt::Display for Takes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Takes::Buffer(Some(element)) => write!(f, "a buffer of {element}"),
            Takes::Buffer(None) => f.write_str("a buffer"),
            Takes::Group(Some(element)) => write!(f, "local memory for elements of {element}"),
            Takes::Group(None) => f.write_str("local memory"),
            Takes::Scalar(ty) => write!(f, "one {ty}"),
            Takes::Word(ty) => write!(f, "one {ty}, a buffer or local memory"),
            Takes::Fields(fields) => {
                write!(f, "{} numbers with commas between:", fields.len())?;
                for (index, (name, ty)) in fields.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} {}: {ty}", name.trim_start_matches('.'))?;
                }
                Ok(())
            }
        }
    }
}
