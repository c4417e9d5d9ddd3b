//! Kernels from functions that take a kernel's arguments as their own parameters, as CLIF text has them.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Function, InstBuilder, SourceLoc, Value};
use harp_isa::ArchId;
use harp_isa::abi::ArgumentBlock;

use super::kernel_source::kernel_signature;
use super::{KernelParts, KernelSource, Param, ParamType};
use crate::abi::word_int;
use crate::error::{BuildError, BuildErrorKind};
use crate::intrinsic::Intrinsic;
use crate::source::SourceMap;

impl KernelSource {
    /// Makes a kernel of a CLIF function that takes the arguments of a launch as its parameters: a buffer and group
    /// memory as an address, all else by value. `sources` are the places that its source locations stand for.
    ///
    /// ```
    /// # #[cfg(feature = "text")] {
    /// use harp_jit::text::TextFile;
    /// use harp_jit::{CompileOptions, KernelSource, Param, ParamType};
    ///
    /// let text = "function %double(i32) {
    ///     fn0 = %harp_global_id_x() -> i32
    /// block0(v0: i32):
    ///     v1 = call fn0()
    ///     v2 = iadd v1, v1
    ///     v6 = iadd v2, v2
    ///     v3 = iadd v0, v6
    ///     v4 = load.i32 aligned v3
    ///     v5 = iadd v4, v4
    ///     store aligned v5, v3
    ///     return
    /// }";
    /// let file = TextFile::parse(text, "double.clif")?;
    /// let function = file.functions()[0].func.clone();
    /// let params = vec![Param::new(Some("data"), ParamType::Pointer, None)];
    /// let sources = file.sources().clone();
    /// let source = KernelSource::from_called(function, "harp32".parse()?, params, sources)?;
    /// let kernel = source.compile(&CompileOptions::default())?;
    /// assert_eq!(kernel.params()[0].name(), Some("data"));
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// If the function returns something, or its parameters are not of the types of `params`, or the function is none.
    pub fn from_called(
        mut func: Function,
        arch: ArchId,
        params: Vec<Param>,
        sources: SourceMap,
    ) -> Result<KernelSource, BuildError> {
        let given = &func.signature;
        let types = given.params.iter().map(|param| param.value_type);
        let wanted = params.iter().map(|param| param.ty().clif_type(arch.word()));
        let is_sized = params.iter().any(|param| param.ty() == ParamType::SizedPointer);
        let entry = func.layout.entry_block();
        let entry = entry.filter(|&entry| func.dfg.block_params(entry).len() == params.len());
        let Some(entry) =
            entry.filter(|_| types.eq(wanted) && given.returns.is_empty() && !is_sized)
        else {
            let params: Vec<_> = params.iter().map(|param| param.ty().to_string()).collect();
            let kind = BuildErrorKind::Called { params, given: given.to_string() };
            return Err(BuildError { kind, place: None });
        };
        let word = word_int(arch.word());
        let old: Vec<Value> = func.dfg.block_params(entry).to_vec();
        func.dfg.detach_block_params(entry);
        let block = func.dfg.append_block_param(entry, word);
        func.signature = kernel_signature(arch);
        let is_group = |param: &Param| param.ty() == ParamType::Group;
        let uses_groups = params.iter().any(is_group);
        let memory = uses_groups.then(|| Intrinsic::GROUP_MEMORY.declare(&mut func, word));
        let mut at = FuncCursor::new(&mut func).with_srcloc(SourceLoc::default());
        at.goto_first_insertion_point(entry);
        let memory = memory.map(|memory| {
            let call = at.ins().call(memory, &[]);
            at.func.dfg.first_result(call)
        });
        let mut words = 0;
        for (param, old) in params.iter().zip(old) {
            let offset = ArgumentBlock::argument(words, arch.word()).cast_signed();
            words += param.ty().words(arch.word());
            let mut value = param.ty().load(&mut at, block, offset, arch.word());
            if let Some(memory) = memory.filter(|_| is_group(param)) {
                value = at.ins().iadd(memory, value);
            }
            at.func.dfg.change_to_alias(old, value);
        }
        let parts = KernelParts { params, sources, uses_groups, ..KernelParts::default() };
        KernelSource::from_parts(func, arch, parts)
    }
}
