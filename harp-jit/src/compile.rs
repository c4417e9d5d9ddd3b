//! The pipeline, from CLIF to machine code.

use std::sync::Arc;

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{Function, Signature};
use cranelift_codegen::settings::{self, Configurable, Flags};
use harp_isa::ArchId;

use crate::analysis::{Known, Params, prove_convergence};
use crate::builder::{KernelSource, word_int};
use crate::divergence::decide::{self, Assignment, DivergenceReport, DivergenceStrategy, Shares};
use crate::divergence::predicate::{self, Predicated};
use crate::divergence::profile::{BranchProfile, Branches};
use crate::divergence::{self, Decisions, Plan, PredicatedRegion, Prepared};
use crate::emit::{self, Emitted, LaneStack};
use crate::error::CompileError;
use crate::function::{self, CompiledFunction, Linked};
use crate::isel::BlockIds;
use crate::kernel::{CompileStats, Kernel};
use crate::legalize::FloatCode;
use crate::library::Library;
use crate::precheck::precheck;
use crate::regalloc::{self, Allocated, Step};
use crate::skeleton::skeleton;
use crate::source::SourceMap;
use crate::symbols::{Called, PlainNames, Symbols};
use crate::vcode::{Callee, MInst, VCode};
use crate::{branches, isel, legalize};

/// Whether the mid-end rewrites the kernel before code is generated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OptLevel {
    /// Only what code generation needs.
    None,
    /// Cranelift's e-graph mid-end: algebraic rules, common subexpressions, loop-invariant code,
    /// redundant loads.
    #[default]
    Speed,
}

/// How many lanes of a warp run the code together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Execution {
    /// Any number: kernels, and functions that they call. Branches on which lanes may disagree are
    /// handled as the [`DivergenceStrategy`] says; a function's parameters may differ from lane to
    /// lane, unless it passes them through `%harp_assume_uniform`.
    #[default]
    Simt,
    /// One, so there is nothing that lanes could disagree on: any control flow compiles, and nothing
    /// is split or joined. With more lanes the code is wrong where they do disagree; the machine
    /// traps then.
    SingleLane,
}

/// Options of compilation.
///
/// ```
/// use harp_jit::{CompileOptions, OptLevel};
///
/// let options = CompileOptions { opt_level: OptLevel::None, ..CompileOptions::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Whether the mid-end rewrites the kernel.
    pub opt_level: OptLevel,
    /// How divergent branches are handled.
    pub divergence: DivergenceStrategy,
    /// What the branches did in a run of the same kernel or function, compiled with the same options
    /// but for the strategy. It is checked under every strategy.
    pub profile: Option<Arc<BranchProfile>>,
    /// Techniques for branches that the strategy does not decide about.
    pub assignment: Option<Arc<Assignment>>,
    /// How many lanes run the code together.
    pub execution: Execution,
    /// The size of the stacks, lane control block included, of kernels that call functions, and of
    /// those functions: a power of two. It is a part of the code, by which lanes find the end of their
    /// stacks, so all that is linked together must agree on it. Kernels without calls get what they
    /// need.
    pub stack_bytes: u32,
    /// Whether every stage's result is checked: the CLIF verifier, the divergence stack along all
    /// paths, regalloc2's symbolic checker. On in debug builds.
    pub verify: bool,
    /// Whether the finished machine code must be proved to keep lanes together: splits and joins match on all
    /// paths, no branch without a split parts lanes, nothing is read where no lane wrote it. The proof
    /// starts from the code and what the calling convention says, not from the analysis that the code
    /// was made by. It is not complete: of random kernels with much divergent control flow, the proof
    /// of one in five takes more steps than it is given, and one in twenty is refused without a known
    /// defect. It can take longer than all else. So it is asked for. Code that was compiled with `verify`
    /// can be checked later: [`Kernel::check`](crate::Kernel::check).
    pub check_code: bool,
    /// Whether the code comes with a table of its blocks that says in which of them all lanes are known to be
    /// together: [`FunctionCode::convergence`](crate::FunctionCode::convergence).
    pub convergence: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            opt_level: OptLevel::default(),
            divergence: DivergenceStrategy::default(),
            profile: None,
            assignment: None,
            execution: Execution::default(),
            stack_bytes: 16 << 10,
            verify: cfg!(debug_assertions),
            check_code: false,
            convergence: false,
        }
    }
}

impl CompileOptions {
    /// Whether the code takes along what its checker must be told.
    fn records(&self) -> bool {
        self.verify || self.check_code
    }
}

/// The largest stack that a lane can be given.
pub(crate) const MAX_STACK_BYTES: u32 = 1 << 28;

/// What a function is entered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// The runtime library.
    Kernel,
    /// Other functions.
    Function,
}

/// A function's surroundings.
#[derive(Clone, Copy)]
pub(crate) struct Unit<'a> {
    /// The linker's name of the function.
    pub(crate) name: &'a str,
    pub(crate) arch: ArchId,
    pub(crate) entry: EntryKind,
    pub(crate) sources: &'a SourceMap,
    pub(crate) symbols: &'a dyn Symbols,
    /// Where it finds library routines; none for a routine.
    pub(crate) library: Option<&'a Library>,
    pub(crate) options: &'a CompileOptions,
}

impl Unit<'_> {
    fn float_code(&self) -> FloatCode {
        if self.library.is_some() { FloatCode::Library } else { FloatCode::InPlace }
    }

    /// What is known about its parameters.
    pub(crate) fn params(&self) -> Params<'_> {
        match (self.entry, self.symbols.facts(self.name)) {
            (EntryKind::Kernel, _) => Params::Uniform,
            (EntryKind::Function, Some(facts)) => Params::Widths(&facts.params),
            (EntryKind::Function, None) => Params::Divergent,
        }
    }
}

impl KernelSource {
    /// Compiles the kernel for its machine. Functions that it calls are left to the linker; to get
    /// them from a module see [`Module::compile_kernel`](crate::Module::compile_kernel).
    ///
    /// # Errors
    ///
    /// If the kernel was built wrongly, is no valid CLIF, holds something that is not supported, or
    /// is too large for the machine.
    pub fn compile(&self, options: &CompileOptions) -> Result<Kernel, CompileError> {
        let library = Library::new(self.arch(), options);
        let entry = compile_kernel(self, options, &PlainNames, &library)?;
        let routines = library.routines(entry.references())?;
        let routines: Vec<_> = routines.iter().map(|routine| (&**routine, Linked::Local)).collect();
        Kernel::new(self, &entry, &routines, Vec::new())
    }
}

impl KernelSource {
    /// Says how compilation with `options` would manage the divergence of the kernel's branches, why,
    /// and what the alternatives would cost.
    ///
    /// # Errors
    ///
    /// As [`compile`](KernelSource::compile), as far as these stages find out.
    pub fn explain(&self, options: &CompileOptions) -> Result<DivergenceReport, CompileError> {
        let unit = Unit {
            name: self.name(),
            arch: self.arch(),
            entry: EntryKind::Kernel,
            sources: self.sources(),
            symbols: &PlainNames,
            library: Some(&Library::new(self.arch(), options)),
            options,
        };
        explain(self.finished()?, unit)
    }
}

/// Says how [`compile_function`] with the same arguments would manage the divergence of branches, why,
/// and what the alternatives would cost. `sources` are the places that source locations stand for.
///
/// # Errors
///
/// As [`compile_function`], as far as these stages find out.
pub fn explain_function(
    func: &Function,
    arch: ArchId,
    options: &CompileOptions,
    sources: &SourceMap,
) -> Result<DivergenceReport, CompileError> {
    let name = func.name.to_string();
    let unit = Unit {
        name: name.strip_prefix('%').unwrap_or(&name),
        arch,
        entry: EntryKind::Function,
        sources,
        symbols: &PlainNames,
        library: Some(&Library::new(arch, options)),
        options,
    };
    explain(func, unit)
}

/// A kernel without the functions that it calls.
pub(crate) fn compile_kernel(
    source: &KernelSource,
    options: &CompileOptions,
    symbols: &dyn Symbols,
    library: &Library,
) -> Result<CompiledFunction, CompileError> {
    let unit = Unit {
        name: source.name(),
        arch: source.arch(),
        entry: EntryKind::Kernel,
        sources: source.sources(),
        symbols,
        library: Some(library),
        options,
    };
    compile(source.finished()?, unit)
}

/// Compiles one function on its own. Names in it mean what they are in CLIF text: `%f` is `f`.
///
/// Nothing else is looked at or changed, so functions can be compiled on several threads. Library routines
/// that the function refers to come with the module that it is put into.
///
/// # Errors
///
/// As [`KernelSource::compile`].
pub fn compile_function(
    func: &Function,
    arch: ArchId,
    options: &CompileOptions,
) -> Result<CompiledFunction, CompileError> {
    let name = func.name.to_string();
    compile(
        func,
        Unit {
            name: name.strip_prefix('%').unwrap_or(&name),
            arch,
            entry: EntryKind::Function,
            sources: &SourceMap::new(),
            symbols: &PlainNames,
            library: Some(&Library::new(arch, options)),
            options,
        },
    )
}

/// What a function is on its way to machine code, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileStages {
    /// The CLIF that instructions are selected from: optimized, of words only, all control flow explicit.
    pub clif: String,
    /// The machine's instructions before registers are allocated.
    pub vcode: String,
}

/// Compiles one function as [`compile_function`] does, as far as the selection of instructions.
/// `sources` are the places that its source locations stand for.
///
/// # Errors
///
/// As [`KernelSource::compile`].
pub fn compile_stages(
    func: &Function,
    arch: ArchId,
    options: &CompileOptions,
    sources: &SourceMap,
) -> Result<CompileStages, CompileError> {
    let name = func.name.to_string();
    let unit = Unit {
        name: &name,
        arch,
        entry: EntryKind::Function,
        sources,
        symbols: &PlainNames,
        library: Some(&Library::new(arch, options)),
        options,
    };
    let Selected { func, vcode, .. } = select(func, unit)?;
    Ok(CompileStages { clif: func.display().to_string(), vcode: vcode.to_string() })
}

/// The whole road.
pub(crate) fn compile(func: &Function, unit: Unit<'_>) -> Result<CompiledFunction, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let clif_insts = count_insts(func);
    let Selected { func, mut vcode, predicated, branches, shares } = select(func, unit)?;
    emit::turn_branches(&mut vcode);
    let allocated = regalloc::allocate(&vcode, arch, options.verify)?;
    let routines = unit.library.map(|library| library.routines(vcode.references()));
    let routines = routines.transpose()?.unwrap_or_default();
    let routine = |callee: &str| routines.iter().find(|routine| routine.name == callee);
    let unchecked_stack = |callee: &str| match routine(callee) {
        Some(routine) => routine.unchecked_stack(),
        None => unit.symbols.unchecked_stack(callee),
    };
    let independent = |callee: &str| routine(callee).is_some_and(|routine| !routine.checks_stack());
    let stack = lane_stack(&vcode, unit, &independent);
    let emitted = emit::emit(&vcode, &allocated, arch, stack, &unchecked_stack, options.records())
        .map_err(|e| e.explain(name))?;

    let stats = CompileStats {
        clif_insts,
        optimized_insts: count_insts(&func),
        ..statistics(shares, predicated, &vcode, &allocated)
    };
    let compiled = CompiledFunction {
        branch_fingerprint: branches.fingerprint(),
        ..compiled(unit, &func.signature, vcode, emitted, stats)
    };
    if options.check_code {
        check_code(&compiled)?;
    }
    Ok(compiled)
}

/// Proves that the finished code keeps lanes together as it must. How far away other functions are does
/// not matter, so it is placed alone.
fn check_code(compiled: &CompiledFunction) -> Result<(), CompileError> {
    let name = compiled.name();
    let placed = function::place(&[compiled], compiled.arch()).map_err(|e| e.explain(name))?;
    placed.iter().try_for_each(|code| {
        code.check().map_err(|error| CompileError::Internal {
            stage: "the check of the machine code",
            message: format!("`{name}`: {error}\n{}", code.disassembly()),
        })
    })
}

/// What the road's first half comes to.
struct Selected {
    func: Function,
    vcode: VCode,
    predicated: Predicated,
    branches: Branches,
    shares: Shares,
}

/// The road's first half: up to machine instructions over virtual registers.
fn select(func: &Function, unit: Unit<'_>) -> Result<Selected, CompileError> {
    let Unit { name, options, .. } = unit;
    let func = legal(func, unit)?;
    let Managed { func, plan, branches, shares } = match options.execution {
        Execution::Simt => manage_divergence(func, unit)?,
        Execution::SingleLane => {
            let (plan, branches, shares) = Default::default();
            Managed { func, plan, branches, shares }
        }
    };
    log::debug!("legal CLIF of `{name}`:\n{}\nplan:\n{plan}", func.display());

    let (mut vcode, blocks) = isel::select(&func, &plan, target(unit))
        .map_err(|error| error.explain(&func, unit.sources))?;
    log::debug!("VCode of `{name}`:\n{vcode}");
    let predicated = predicate(&mut vcode, &plan, &blocks, unit)?;
    Ok(Selected { func, vcode, predicated, branches, shares })
}

/// The function in legal CLIF.
fn legal(func: &Function, unit: Unit<'_>) -> Result<Function, CompileError> {
    check_options(unit.options)?;
    let mut func = optimize(func.clone(), unit)?;
    legalize::legalize(&mut func);
    branches::simplify_conditions(&mut func);
    verify(&func, unit.name, unit.options, "legalization")?;
    Ok(func)
}

/// The function in the form in which divergence is decided upon.
pub(crate) fn canonical(func: &Function, unit: Unit<'_>) -> Result<Function, CompileError> {
    let (prepared, _) = prepare(legal(func, unit)?, unit)?;
    Ok(prepared.func)
}

fn target(unit: Unit<'_>) -> isel::Target<'_> {
    let Unit { arch, entry, symbols, options, .. } = unit;
    isel::Target { arch, entry, execution: options.execution, symbols }
}

fn check_options(options: &CompileOptions) -> Result<(), CompileError> {
    let given = options.stack_bytes;
    if given.is_power_of_two() && given <= MAX_STACK_BYTES {
        return Ok(());
    }
    Err(CompileError::StackBytes { given, limit: MAX_STACK_BYTES })
}

/// A function whose divergence is managed.
struct Managed {
    func: Function,
    plan: Plan,
    branches: Branches,
    shares: Shares,
}

/// Manages divergence: rearranges control flow and decides how each branch is executed.
fn manage_divergence(func: Function, unit: Unit<'_>) -> Result<Managed, CompileError> {
    let Unit { name, options, .. } = unit;
    let (prepared, branches) = prepare(func, unit)?;
    let facts = facts(&prepared, &branches, unit)?;
    let decisions = decide(facts, unit)?;
    let shares = facts.shares(&decisions);
    let (func, plan) = prepared.manage(&decisions, &branches);
    verify(&func, name, options, "divergence management")?;
    if options.verify {
        divergence::check(&func, &plan).map_err(|error| CompileError::Internal {
            stage: "divergence management",
            message: format!("`{name}`: {error}"),
        })?;
    }
    Ok(Managed { func, plan, branches, shares })
}

/// Brings a legal function to the form in which divergence is decided upon, and names its branches.
fn prepare(func: Function, unit: Unit<'_>) -> Result<(Prepared, Branches), CompileError> {
    let Unit { name, arch, options, symbols, .. } = unit;
    let callees = Called { symbols, arch };
    let prepared = divergence::prepare(func, Known { params: unit.params(), callees: &callees });
    callees
        .check(&prepared.func, &prepared.facts)
        .map_err(|message| CompileError::Invalid { kernel: name.to_owned(), message })?;
    verify(&prepared.func, name, options, "canonical control flow")?;
    log::debug!("uniformity of `{name}`:\n{}", prepared.facts.dump(&prepared.func));
    let branches = Branches::new(&prepared.func, prepared.facts.flow());
    Ok((prepared, branches))
}

/// What decisions are made from.
fn facts<'a>(
    prepared: &'a Prepared,
    branches: &'a Branches,
    unit: Unit<'a>,
) -> Result<decide::Facts<'a>, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let profile = options.profile.as_deref();
    profile.map_or(Ok(()), |profile| profile.check(name, branches))?;
    let assignment = options.assignment.as_deref();
    Ok(decide::Facts { name, arch, prepared, branches, profile, assignment })
}

fn decide(facts: decide::Facts<'_>, unit: Unit<'_>) -> Result<Decisions, CompileError> {
    decide::decide(facts, unit.options.divergence, || unsplit(&facts.prepared.func, unit))
}

/// Code for `func` without splits, to look at.
fn unsplit(func: &Function, unit: Unit<'_>) -> Result<(VCode, BlockIds), CompileError> {
    isel::select(func, &Plan::default(), target(unit))
        .map_err(|error| error.explain(func, unit.sources))
}

/// Says how divergence is managed in a function, and what the alternatives cost.
fn explain(func: &Function, unit: Unit<'_>) -> Result<DivergenceReport, CompileError> {
    let (prepared, branches) = prepare(legal(func, unit)?, unit)?;
    let facts = facts(&prepared, &branches, unit)?;
    let decisions = decide(facts, unit)?;
    let code = unsplit(&prepared.func, unit)?;
    Ok(decide::report(facts, &decisions, code, unit.sources))
}

/// Converts the regions that the plan says.
fn predicate(
    vcode: &mut VCode,
    plan: &Plan,
    blocks: &BlockIds,
    unit: Unit<'_>,
) -> Result<Predicated, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let internal = |message: String| CompileError::Internal { stage: "predication", message };
    let region = |region: &PredicatedRegion| predicate::Region {
        head: blocks.of(region.head),
        end: blocks.of(region.end),
    };
    let regions: Vec<_> = plan.predicated.iter().map(region).collect();
    let predicated = predicate::predicate(vcode, &regions, arch)
        .map_err(|error| internal(format!("`{name}`: {error}")))?;
    if !regions.is_empty() {
        log::debug!("VCode of `{name}`, predicated:\n{vcode}");
    }
    if options.verify {
        vcode.validate().map_err(|error| internal(format!("`{name}`: {error}\n{vcode}")))?;
    }
    Ok(predicated)
}

/// Functions find the lane control block by the size of the stack. Those that are `independent` of it do
/// not look for it, so a kernel that calls no others gets the stack that it needs.
fn lane_stack(vcode: &VCode, unit: Unit<'_>, independent: &dyn Fn(&str) -> bool) -> LaneStack {
    let bytes = unit.options.stack_bytes;
    let depends = |inst: &MInst| match inst {
        MInst::Call { callee: Callee::Symbol { symbol, .. }, .. } => {
            !independent(&vcode.symbols[symbol.index()])
        }
        MInst::Call { .. } => true,
        _ => false,
    };
    match unit.entry {
        EntryKind::Function => LaneStack::OfFunction { bytes },
        EntryKind::Kernel => {
            let shared = vcode.insts.iter().any(depends).then_some(bytes);
            LaneStack::OfKernel { shared }
        }
    }
}

/// Verifies the function, brings its values to the machine's word and runs it through Cranelift's
/// mid-end.
fn optimize(func: Function, unit: Unit<'_>) -> Result<Function, CompileError> {
    let Unit { name, arch, options, .. } = unit;
    let invalid = |message: String| CompileError::Invalid { kernel: name.to_owned(), message };
    precheck(&func).map_err(invalid)?;
    let context = Context::for_function(func);
    context.verify(&flags(options)).map_err(|errors| invalid(errors.to_string()))?;
    let mut func = context.func;
    legalize::check_integers(&func).map_err(|e| e.explain(&func, unit.sources))?;
    legalize::check_calls(&func).map_err(|e| e.explain(&func, unit.sources))?;
    legalize::expand_global_values(&mut func, word_int(arch.word()))
        .map_err(|e| e.explain(&func, unit.sources))?;
    legalize::single_results(&mut func);
    let mut func = mid_end(func, options)?;
    let rerun = legalize::fit_word(&mut func, arch, options.execution, unit.float_code())
        .map_err(|e| e.explain(&func, unit.sources))?;
    verify(&func, name, options, "fitting values to words")?;
    if rerun { mid_end(func, options) } else { Ok(func) }
}

/// Cranelift's mid-end, in the order of `Context::optimize`, which asks for a target that Cranelift
/// knows; branches of loops are turned to its liking.
fn mid_end(func: Function, options: &CompileOptions) -> Result<Function, CompileError> {
    let flags = flags(options);
    let internal = |error: cranelift_codegen::CodegenError| CompileError::Internal {
        stage: "mid-end",
        message: error.to_string(),
    };
    let mut context = Context::for_function(func);
    context.compute_cfg();
    context.compute_domtree();
    context.eliminate_unreachable_code(&flags).map_err(internal)?;
    context.remove_constant_phis(&flags).map_err(internal)?;
    context.func.dfg.resolve_all_aliases();
    if options.opt_level == OptLevel::Speed {
        context.compute_loop_analysis();
        if branches::leave_loops_by_jumping(&mut context.func, &context.loop_analysis) {
            context.compute_cfg();
            context.compute_domtree();
        }
        context.egraph_pass(&flags, &mut ControlPlane::default()).map_err(internal)?;
    }
    Ok(context.func)
}

fn flags(options: &CompileOptions) -> Flags {
    let mut builder = settings::builder();
    let opt_level = match options.opt_level {
        OptLevel::None => "none",
        OptLevel::Speed => "speed",
    };
    let verifier = if options.verify { "true" } else { "false" };
    for (name, value) in [("opt_level", opt_level), ("enable_verifier", verifier)] {
        builder.set(name, value).expect("Cranelift has this setting");
    }
    Flags::new(builder)
}

/// Checks one stage's result, where checks are on.
fn verify(
    func: &Function,
    name: &str,
    options: &CompileOptions,
    stage: &'static str,
) -> Result<(), CompileError> {
    if !options.verify {
        return Ok(());
    }
    cranelift_codegen::verify_function(func, &flags(options))
        .map_err(|errors| CompileError::Internal { stage, message: format!("`{name}`: {errors}") })
}

fn count_insts(func: &Function) -> usize {
    func.layout.blocks().map(|block| func.layout.block_insts(block).count()).sum()
}

fn statistics(
    shares: Shares,
    predicated: Predicated,
    vcode: &VCode,
    allocated: &Allocated,
) -> CompileStats {
    let moves: Vec<_> = vcode
        .blocks()
        .flat_map(|(id, _)| allocated.steps(id))
        .filter_map(|step| match step {
            Step::Move(edit) => Some(edit),
            Step::Inst(_) => None,
        })
        .collect();
    CompileStats {
        selected_insts: vcode.insts.len(),
        moves: moves.len(),
        predicate_spills: moves.iter().filter(|edit| edit.is_predicate_spill()).count(),
        spill_slots: allocated.slots(),
        branches: predicated.branches
            + vcode.blocks.iter().filter(|block| block.succs.len() == 2).count(),
        divergent_branches: shares.divergent,
        predicated_branches: predicated.branches,
        predicated_divergent_branches: shares.predicated,
        ..CompileStats::default()
    }
}

/// Puts the function together.
fn compiled(
    unit: Unit<'_>,
    signature: &Signature,
    vcode: VCode,
    emitted: Emitted,
    stats: CompileStats,
) -> CompiledFunction {
    let locs = emitted.body.source_locs();
    let sources = locs.filter_map(|loc| Some((loc, unit.sources.place(loc)?.clone()))).collect();
    let skeleton = unit.options.records().then(|| skeleton(unit, signature, &vcode, &emitted));
    let kernel = unit.entry == EntryKind::Kernel;
    let proofs = unit.options.convergence.then(|| prove_convergence(&vcode, kernel));
    CompiledFunction {
        proofs: proofs.unwrap_or_default(),
        name: unit.name.to_owned(),
        arch: unit.arch,
        body: emitted.body,
        uses_groups: vcode.insts.iter().any(MInst::uses_groups),
        symbols: vcode.symbols,
        stack: emitted.stack,
        lane_stack_bytes: u32::try_from(emitted.lane_stack_bytes).expect("emission limits stacks"),
        sources,
        stats,
        branch_fingerprint: 0,
        skeleton,
    }
}
