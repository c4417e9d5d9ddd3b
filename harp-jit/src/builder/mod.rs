//! Building kernels: cranelift-frontend's builder with additions for kernels.
//!
//! A [`KernelSource`] owns the function, a [`KernelBuilder`] fills it. The builder adds typed
//! parameters, the work-item's ids, array elements and structured control flow, and stamps every
//! instruction with the place of the call that made it.

use std::fmt;
use std::panic::Location;

use cranelift_codegen::entity::{EntitySet, SecondaryMap};
use cranelift_codegen::ir::{Block, FuncRef, InstBuilder, Type, Value, types};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, Variable};
use harp_isa::{ArchId, TripleError, WordSize};
use hashbrown::HashMap;
use target_lexicon::{PointerWidth, Triple};

use crate::abi::word_int;
use crate::error::{BuildError, BuildErrorKind};
use crate::intrinsic::Intrinsic;
use crate::print::PrintSite;
use crate::source::{SourceMap, SourcePlace};

mod blocks;
mod calls;
mod checks;
mod control;
mod foreign;
mod insts;
mod kernel_source;
mod lanes;
mod loops;
mod memory;
mod param;
mod print;
mod prologue;
#[cfg(test)]
mod tests;
mod typed;

pub use insts::KernelInstBuilder;
use kernel_source::GroupUse;
pub use kernel_source::{KernelParts, KernelSource};
pub use param::{Param, ParamType};
pub use prologue::MAX_GROUP_BYTES;
pub use typed::{BufferParam, ElementType, IntegerElement, ScalarType};

use loops::Loop;
use prologue::Prologue;

/// A place in the user's program, as `#[track_caller]` gives it.
type Caller = &'static Location<'static>;

/// The machine's native float: binary32 on 4-byte words, binary64 on 8-byte words.
pub(crate) fn word_float(word: WordSize) -> Type {
    match word {
        WordSize::Four => types::F32,
        WordSize::Eight => types::F64,
    }
}

/// The configuration that cranelift-frontend needs of a target. `ArchId` converts to and from a triple.
///
/// # Errors
///
/// If the triple does not name a HARP machine.
pub fn frontend_config(target: &Triple) -> Result<TargetFrontendConfig, TripleError> {
    ArchId::try_from(target).map(machine_config)
}

/// The configuration of a machine.
fn machine_config(arch: ArchId) -> TargetFrontendConfig {
    TargetFrontendConfig {
        default_call_conv: CallConv::Fast,
        pointer_width: match arch.word() {
            WordSize::Four => PointerWidth::U32,
            WordSize::Eight => PointerWidth::U64,
        },
        page_size_align_log2: 12,
    }
}

/// Builds one kernel.
///
/// The entry block exists, is sealed and is the current one.
///
/// # Misuse
///
/// The builder's methods and those of [`ins`](KernelBuilder::ins) do not panic. The builder keeps the first
/// misuse with the place of the call, and [`finalize`](KernelBuilder::finalize) returns it. Until then the
/// methods go on with placeholder values of the right type. Calls through [`inner`](KernelBuilder::inner) are
/// cranelift's own and panic as cranelift documents. Misuse that is not found while building, such as a
/// second operand of a wrong type, is reported by the verifier when the kernel is compiled.
///
/// # Example
///
/// ```
/// # use harp_jit::prelude::*;
/// # let arch = ArchId::HARP32;
/// let mut kernel = KernelSource::new("scale", arch);
/// let mut b = KernelBuilder::new(&mut kernel);
/// let (data, n) = (b.buffer::<f32>("data"), b.scalar::<u32>("n"));
/// let i = b.global_id(0);
/// let inside = b.ins().icmp(IntCC::UnsignedLessThan, i, n);
/// b.if_then(inside, |b| {
///     let x = b.load(data, i);
///     let x = b.ins().fadd(x, x);
///     b.store(data, i, x);
/// });
/// b.return_();
/// b.finalize()?;
/// # Ok::<(), harp_jit::BuildError>(())
/// ```
pub struct KernelBuilder<'a> {
    inner: FunctionBuilder<'a>,
    sources: &'a mut SourceMap,
    params: &'a mut Vec<Param>,
    prints: &'a mut Vec<PrintSite>,
    groups: &'a mut GroupUse,
    finalized: &'a mut bool,
    arch: ArchId,
    prologue: Prologue,
    callees: Vec<(Intrinsic, Type, FuncRef)>,
    variables: SecondaryMap<Variable, Type>,
    sealed: EntitySet<Block>,
    /// The loops around the current place, the outermost first.
    loops: Vec<Loop>,
    /// Conditions that are likely to hold, or not to.
    hints: HashMap<Value, bool>,
    error: Option<BuildError>,
}

impl<'a> KernelBuilder<'a> {
    /// Starts a new kernel: drops what `kernel` held before.
    pub fn new(kernel: &'a mut KernelSource) -> KernelBuilder<'a> {
        kernel.reset();
        let arch = kernel.arch();
        let KernelSource { func, context, params, prints, groups, sources, finalized, .. } = kernel;
        let mut inner = FunctionBuilder::new(func, context);
        let entry = inner.create_block();
        inner.append_block_params_for_function_params(entry);
        inner.switch_to_block(entry);
        inner.seal_block(entry);
        // Parameters and ids are loaded at the top of this block, whichever block is the current one then.
        inner.ensure_inserted_block();
        let prologue = Prologue::new(entry, inner.block_params(entry)[0]);
        let mut sealed = EntitySet::new();
        sealed.insert(entry);
        KernelBuilder {
            inner,
            sources,
            params,
            prints,
            groups,
            finalized,
            arch,
            prologue,
            callees: Vec::new(),
            variables: SecondaryMap::with_default(types::INVALID),
            sealed,
            loops: Vec::new(),
            hints: HashMap::new(),
            error: None,
        }
    }

    /// The machine that the kernel is for.
    pub fn arch(&self) -> ArchId {
        self.arch
    }

    /// The integer type of a word, also that of addresses and ids: `I32` or `I64`.
    pub fn word_int(&self) -> Type {
        word_int(self.arch.word())
    }

    /// The machine's native float: `F32` on 4-byte words, `F64` on 8-byte words.
    pub fn word_float(&self) -> Type {
        word_float(self.arch.word())
    }

    /// The methods that append a CLIF instruction to the current block, one for each. The instruction gets
    /// the source place of this call.
    #[track_caller]
    pub fn ins<'short>(&'short mut self) -> KernelInstBuilder<'short, 'a> {
        let place = Location::caller();
        self.enter(place);
        KernelInstBuilder::new(self, place)
    }

    /// Cranelift's own builder, which panics on misuse as cranelift documents. Instructions built through it
    /// get the source place of the last call of one of the methods here.
    pub fn inner(&mut self) -> &mut FunctionBuilder<'a> {
        &mut self.inner
    }

    /// Ends the current block with a return: the work-item is done.
    #[track_caller]
    pub fn return_(&mut self) {
        self.enter(Location::caller());
        self.inner.ins().return_(&[]);
    }

    /// Declares a variable: a name that can be assigned several times, which cranelift-frontend turns into
    /// values and block parameters. A variable that is used before it is defined reads 0.
    #[track_caller]
    pub fn declare_var(&mut self, ty: Type) -> Variable {
        let place = Location::caller();
        let ty = self.scalar_type(ty, "variable", place);
        let variable = self.inner.declare_var(ty);
        self.variables[variable] = ty;
        variable
    }

    /// Assigns `value` to the variable from this point on.
    #[track_caller]
    pub fn def_var(&mut self, variable: Variable, value: Value) {
        let place = Location::caller();
        self.enter(place);
        if !self.known(value, place) || self.inner.try_def_var(variable, value).is_ok() {
            return;
        }
        let given = self.inner.func.dfg.value_type(value);
        let kind = match self.variables[variable] {
            types::INVALID => BuildErrorKind::UnknownVariable { variable },
            expected => {
                BuildErrorKind::ValueType { role: "value of the variable", expected, given }
            }
        };
        self.fail(kind, place);
    }

    /// The value of the variable at this point.
    #[track_caller]
    pub fn use_var(&mut self, variable: Variable) -> Value {
        let place = Location::caller();
        self.enter(place);
        match self.inner.try_use_var(variable) {
            Ok(value) => value,
            Err(_) => {
                self.fail(BuildErrorKind::UnknownVariable { variable }, place);
                self.placeholder(self.word_int())
            }
        }
    }

    /// Makes `place` the source place of the next instructions, and ensures that the current block is open.
    fn enter(&mut self, place: Caller) {
        let number = self.sources.intern(SourcePlace::from(place));
        self.inner.set_srcloc(number);
        self.reopen(place);
    }

    /// Records an error, unless there is one already.
    fn fail(&mut self, kind: BuildErrorKind, place: Caller) {
        let place = Some(SourcePlace::from(place));
        self.error.get_or_insert(BuildError { kind, place });
    }

    /// Returns the declaration of an intrinsic; its first use declares it.
    fn callee(&mut self, intrinsic: Intrinsic, ty: Type) -> FuncRef {
        let found = self.callees.iter().find(|(i, t, _)| (*i, *t) == (intrinsic, ty));
        if let Some(&(_, _, callee)) = found {
            return callee;
        }
        let word = self.word_int();
        let callee = intrinsic.declare_with(self.inner.func, ty, word);
        self.callees.push((intrinsic, ty, callee));
        callee
    }

    fn known(&mut self, value: Value, place: Caller) -> bool {
        let known = self.inner.func.dfg.value_is_valid(value);
        if !known {
            self.fail(BuildErrorKind::UnknownValue { value }, place);
        }
        known
    }

    /// Returns `value` if it is of type `expected`; else records the error and returns a placeholder.
    fn checked(
        &mut self,
        value: Value,
        expected: Type,
        role: &'static str,
        place: Caller,
    ) -> Value {
        if !self.known(value, place) {
            return self.placeholder(expected);
        }
        let given = self.inner.func.dfg.value_type(value);
        if given == expected {
            return value;
        }
        self.fail(BuildErrorKind::ValueType { role, expected, given }, place);
        self.placeholder(expected)
    }

    /// Returns `value` if it is an integer; else records the error and returns a placeholder.
    fn checked_int(&mut self, value: Value, role: &'static str, place: Caller) -> Value {
        if !self.known(value, place) {
            return self.placeholder(self.word_int());
        }
        let given = self.inner.func.dfg.value_type(value);
        if given.is_int() {
            return value;
        }
        self.fail(BuildErrorKind::NoInteger { role, given }, place);
        self.placeholder(self.word_int())
    }

    /// Returns `value` if it is a scalar of at most 64 bits; else records the error and returns a
    /// placeholder.
    fn checked_scalar(&mut self, value: Value, role: &'static str, place: Caller) -> Value {
        if !self.known(value, place) {
            return self.placeholder(self.word_int());
        }
        let given = self.inner.func.dfg.value_type(value);
        let ty = self.scalar_type(given, role, place);
        if ty == given { value } else { self.placeholder(ty) }
    }

    /// Returns `ty` if it is a scalar of at most 64 bits; else records the error and returns the word's type.
    fn scalar_type(&mut self, ty: Type, role: &'static str, place: Caller) -> Type {
        if (ty.is_int() || ty.is_float()) && ty.bytes() <= 8 {
            return ty;
        }
        self.fail(BuildErrorKind::NoScalar { role, given: ty }, place);
        self.word_int()
    }

    /// A stand-in of the right type for the result of a call that has failed.
    fn placeholder(&mut self, ty: Type) -> Value {
        match ty {
            types::F32 => self.inner.ins().f32const(0.0),
            types::F64 => self.inner.ins().f64const(0.0),
            ty if ty.is_int() && ty.bytes() <= 8 => self.inner.ins().iconst(ty, 0),
            _ => self.inner.ins().iconst(word_int(self.arch.word()), 0),
        }
    }
}

impl fmt::Debug for KernelBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KernelBuilder")
            .field("name", &self.inner.func.name)
            .field("arch", &self.arch)
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}
