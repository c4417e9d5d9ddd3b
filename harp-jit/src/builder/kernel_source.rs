//! A kernel before compilation: its CLIF function with parameters and source places.

use std::fmt;
use std::hash::{Hash, Hasher};

use cranelift_codegen::ir::{AbiParam, Function, Signature, SourceLoc, UserFuncName};
use cranelift_codegen::isa::CallConv;
use cranelift_frontend::FunctionBuilderContext;
use harp_isa::ArchId;

use super::{MAX_GROUP_BYTES, Param, ParamType};
use crate::abi::word_int;
use crate::accesses::{GroupArray, KernelShape};
use crate::error::{BuildError, BuildErrorKind};
use crate::print::{PrintSite, PrintSites};
use crate::source::SourceMap;

/// A kernel before compilation: the CLIF function, its parameters and the source places of its
/// instructions.
///
/// The function takes one word, the address of the [argument block](harp_isa::abi::ArgumentBlock),
/// and returns nothing. A [`KernelBuilder`](super::KernelBuilder) fills it.
pub struct KernelSource {
    pub(super) func: Function,
    pub(super) context: FunctionBuilderContext,
    pub(super) params: Vec<Param>,
    pub(super) prints: Vec<PrintSite>,
    pub(super) groups: GroupUse,
    pub(super) sources: SourceMap,
    pub(super) finalized: bool,
    arch: ArchId,
    name: String,
}

/// What a kernel's function does not show, as a front end knows it.
#[derive(Clone, Debug, Default)]
pub struct KernelParts {
    /// The parameters, in the order of their words in the argument block.
    pub params: Vec<Param>,
    /// The places that the function's source locations stand for.
    pub sources: SourceMap,
    /// Where arrays that the work-items of a group share are in the memory at `%harp_group_memory`.
    pub group_arrays: Vec<GroupArray>,
    /// Whether the kernel reads the extents or the number of work-groups from the argument block.
    pub uses_groups: bool,
    /// What it prints, by the numbers of the calls of [`Printer::append`](crate::Printer::append).
    pub prints: Vec<PrintSite>,
}

/// A kernel's use of work-groups, as far as its code does not show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct GroupUse {
    /// Whether the kernel reads words about work-groups from the argument block.
    pub(super) used: bool,
    /// Bytes of memory per work-group.
    pub(super) bytes: u32,
    /// Where the builder's arrays are in that memory.
    pub(super) arrays: Vec<GroupArray>,
}

impl KernelSource {
    /// An empty kernel for `arch`.
    pub fn new(name: &str, arch: ArchId) -> KernelSource {
        KernelSource {
            func: Function::new(),
            context: FunctionBuilderContext::new(),
            params: Vec::new(),
            prints: Vec::new(),
            groups: GroupUse::default(),
            sources: SourceMap::new(),
            finalized: false,
            arch,
            name: name.to_owned(),
        }
    }

    /// Makes a kernel of a CLIF function, such as one read from text, with the types of its arguments in the
    /// order of their words in the argument block. The word of a [`Group`](ParamType::Group) is an offset in the
    /// memory at `%harp_group_memory`.
    ///
    /// # Errors
    ///
    /// If the signature is not that of a kernel.
    pub fn from_function(
        func: Function,
        arch: ArchId,
        params: &[ParamType],
    ) -> Result<KernelSource, BuildError> {
        let params = params.iter().copied().map(Param::unnamed).collect();
        KernelSource::from_parts(func, arch, KernelParts { params, ..KernelParts::default() })
    }

    /// Makes a kernel of a CLIF function that a front end has built, as [`from_function`](Self::from_function) does.
    ///
    /// # Errors
    ///
    /// If the signature is not that of a kernel, two parameters have the same name, or work-groups get too much memory.
    pub fn from_parts(
        func: Function,
        arch: ArchId,
        parts: KernelParts,
    ) -> Result<KernelSource, BuildError> {
        let fail = |kind| Err(BuildError { kind, place: None });
        let wanted = kernel_signature(arch);
        let given = &func.signature;
        let types = |params: &[AbiParam]| params.iter().map(|p| p.value_type).collect::<Vec<_>>();
        if types(&given.params) != types(&wanted.params) || !given.returns.is_empty() {
            return fail(BuildErrorKind::Signature { arch, given: given.to_string() });
        }
        let KernelParts { params, sources, group_arrays, uses_groups, prints } = parts;
        let mut names: Vec<&str> = params.iter().filter_map(Param::name).collect();
        names.sort_unstable();
        if let Some([name, _]) = names.array_windows().find(|[name, next]| name == next) {
            return fail(BuildErrorKind::DuplicateParameter { name: (*name).to_owned() });
        }
        let bytes = group_arrays.iter().map(|array| array.bytes.end).max().unwrap_or(0);
        if bytes > MAX_GROUP_BYTES {
            let (given, limit) = (bytes.into(), MAX_GROUP_BYTES);
            return fail(BuildErrorKind::GroupMemory { name: None, given, limit });
        }
        let name = func.name.to_string().trim_start_matches('%').to_owned();
        let groups = GroupUse { used: uses_groups, bytes, arrays: group_arrays };
        let empty = KernelSource::new(&name, arch);
        Ok(KernelSource { func, params, prints, groups, sources, finalized: true, ..empty })
    }

    /// Gives each work-group of the kernel at least `bytes` bytes of memory. The builder counts its own
    /// arrays; this is for functions that use `%harp_group_memory` themselves.
    pub fn with_group_bytes(mut self, bytes: u32) -> KernelSource {
        self.groups.bytes = self.groups.bytes.max(bytes);
        self
    }

    /// Bytes of memory that each work-group gets.
    pub fn group_bytes(&self) -> u32 {
        self.groups.bytes
    }

    /// What addresses it gets.
    pub(crate) fn shape(&self) -> KernelShape {
        let mut words = Vec::new();
        for (param, number) in self.params.iter().zip(0..) {
            let is_address = matches!(
                param.ty(),
                ParamType::Pointer | ParamType::SizedPointer | ParamType::Group
            );
            words.push(is_address.then_some(number));
            words.resize(words.len() + param.ty().words(self.arch.word()) as usize - 1, None);
        }
        KernelShape { words, group_arrays: self.groups.arrays.clone() }
    }

    /// Whether launches have to know of work-groups, whatever its code does: it reads words about them from the argument
    /// block, or has memory of groups.
    pub(crate) fn uses_groups(&self) -> bool {
        self.groups.used || self.group_bytes() > 0
    }

    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The machine that the kernel is for.
    pub fn arch(&self) -> ArchId {
        self.arch
    }

    /// The number of words that its arguments take in the argument block, the address of the print area
    /// included.
    pub(crate) fn argument_words(&self) -> u32 {
        let prints = u32::from(!self.prints.is_empty());
        param_words(&self.params, self.arch) + prints
    }

    /// Its parameters, in the order of their arguments.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// What the kernel prints, if it does.
    pub(crate) fn prints(&self) -> Option<PrintSites> {
        let some = !self.prints.is_empty();
        some.then(|| PrintSites::new(self.arch, self.prints.clone()))
    }

    /// The source places of its instructions.
    pub fn sources(&self) -> &SourceMap {
        &self.sources
    }

    /// The CLIF function as built so far.
    pub fn function(&self) -> &Function {
        &self.func
    }

    /// The CLIF function, once the builder was finalized.
    ///
    /// # Errors
    ///
    /// If the builder was not finalized, or with an error.
    pub fn finished(&self) -> Result<&Function, BuildError> {
        if self.finalized {
            return Ok(&self.func);
        }
        let kind = BuildErrorKind::NotFinalized { name: self.name.clone() };
        Err(BuildError { kind, place: None })
    }

    /// Feeds a hasher with everything that is known of the kernel.
    pub(crate) fn hash_contents(&self, state: &mut impl Hasher) {
        let KernelSource {
            func,
            context: _,
            params,
            prints,
            groups,
            sources,
            finalized,
            arch,
            name,
        } = self;
        let Function { name: clif_name, stencil, params: names } = func;
        (name, arch, finalized).hash(state);
        (params, prints, groups).hash(state);
        sources.hash_contents(state);
        (clif_name, stencil, names.base_srcloc()).hash(state);
        names.user_named_funcs().values().for_each(|name| name.hash(state));
    }

    /// Drops everything built so far.
    pub(super) fn reset(&mut self) {
        let name = UserFuncName::testcase(&self.name);
        self.func = Function::with_name_signature(name, kernel_signature(self.arch));
        // Locations are stored relative to a base; with base 0 none can collide with the number for "no
        // location".
        self.func.params.ensure_base_srcloc(SourceLoc::new(0));
        // A builder that was dropped or failed leaves a context that cranelift refuses to use.
        self.context = FunctionBuilderContext::new();
        self.params.clear();
        self.prints.clear();
        self.groups = GroupUse::default();
        self.sources = SourceMap::new();
        self.finalized = false;
    }
}

/// The number of words that the arguments of these parameters take in the argument block.
pub(super) fn param_words(params: &[Param], arch: ArchId) -> u32 {
    params.iter().map(|param| param.ty().words(arch.word())).sum()
}

pub(super) fn kernel_signature(arch: ArchId) -> Signature {
    let mut signature = Signature::new(CallConv::Fast);
    signature.params.push(AbiParam::new(word_int(arch.word())));
    signature
}

impl fmt::Debug for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelSource")
            .field("name", &self.name)
            .field("arch", &self.arch)
            .field("params", &self.params)
            .field("finalized", &self.finalized)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.func.display().fmt(f)
    }
}
