//! The pipeline, from CLIF to machine code.

use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::settings::{self, Configurable, Flags};
use harp_isa::object::{Chunk, Object, Permissions};

use crate::analysis::Uniformity;
use crate::builder::KernelSource;
use crate::divergence::{self, Plan};
use crate::emit::{self, Emitted};
use crate::error::{CompileError, Unsupported};
use crate::kernel::{CompileStats, Kernel};
use crate::precheck::precheck;
use crate::regalloc::{self, Allocated, Step};
use crate::source::SourceMap;
use crate::vcode::VCode;
use crate::{isel, legalize};

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

/// How branches are handled on which lanes of a warp may disagree. Branches that are uniform need
/// nothing under any strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DivergenceStrategy {
    /// `split` before the branch, `join` at its immediate post-dominator (Gupta 2016, chapter 4).
    #[default]
    SplitJoin,
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
    /// Whether every stage's result is checked: the CLIF verifier, the divergence stack along all
    /// paths, regalloc2's symbolic checker. On in debug builds.
    pub verify: bool,
}

impl Default for CompileOptions {
    fn default() -> Self {
        CompileOptions {
            opt_level: OptLevel::default(),
            divergence: DivergenceStrategy::default(),
            verify: cfg!(debug_assertions),
        }
    }
}

impl KernelSource {
    /// Compiles the kernel for its machine.
    ///
    /// # Errors
    ///
    /// If the kernel was built wrongly, is no valid CLIF, holds something that is not supported, or
    /// is too large for the machine.
    pub fn compile(&self, options: &CompileOptions) -> Result<Kernel, CompileError> {
        compile(self, options)
    }
}

/// The whole road.
fn compile(source: &KernelSource, options: &CompileOptions) -> Result<Kernel, CompileError> {
    let arch = source.arch();
    let func = source.finished()?.clone();
    let clif_insts = count_insts(&func);
    let mut func = optimize(func, source.name(), options)?;
    let explain = |func: &Function, error: Unsupported| error.explain(func, source.sources());

    legalize::legalize(&mut func);
    verify(&func, source.name(), options, "legalization")?;
    let uniformity = Uniformity::compute(&func);
    let plan = match options.divergence {
        DivergenceStrategy::SplitJoin => divergence::plan(&mut func, &uniformity),
    };
    let plan = plan.map_err(|e| explain(&func, e))?;
    verify(&func, source.name(), options, "divergence planning")?;
    if options.verify {
        divergence::check(&func, &plan).map_err(|error| CompileError::Internal {
            stage: "divergence planning",
            message: format!("`{}`: {error}", source.name()),
        })?;
    }
    log::debug!("legal CLIF of `{}`:\n{}", source.name(), func.display());
    log::debug!("uniformity:\n{}\nplan:\n{plan}", uniformity.dump(&func));

    let vcode = isel::select(&func, &plan, arch).map_err(|e| explain(&func, e))?;
    log::debug!("VCode of `{}`:\n{vcode}", source.name());
    let allocated = regalloc::allocate(&vcode, arch, options.verify)?;
    let emitted = emit::emit(&vcode, &allocated, arch).map_err(|e| e.explain(source.name()))?;

    let stats = CompileStats {
        clif_insts,
        optimized_insts: count_insts(&func),
        ..statistics(&plan, &vcode, &allocated, &emitted)
    };
    Ok(kernel(source, emitted, stats))
}

/// Verifies the function and runs it through Cranelift's mid-end, in the order of
/// `Context::optimize`, which asks for a target that Cranelift knows.
fn optimize(
    func: Function,
    name: &str,
    options: &CompileOptions,
) -> Result<Function, CompileError> {
    let flags = flags(options);
    let invalid = |message: String| CompileError::Invalid { kernel: name.to_owned(), message };
    let internal = |error: cranelift_codegen::CodegenError| CompileError::Internal {
        stage: "mid-end",
        message: error.to_string(),
    };
    precheck(&func).map_err(invalid)?;
    let mut context = Context::for_function(func);
    context.verify(&flags).map_err(|errors| invalid(errors.to_string()))?;
    context.compute_cfg();
    context.compute_domtree();
    context.eliminate_unreachable_code(&flags).map_err(internal)?;
    context.remove_constant_phis(&flags).map_err(internal)?;
    context.func.dfg.resolve_all_aliases();
    if options.opt_level == OptLevel::Speed {
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
    plan: &Plan,
    vcode: &VCode,
    allocated: &Allocated,
    emitted: &Emitted,
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
        branches: vcode.blocks.iter().filter(|block| block.succs.len() == 2).count(),
        divergent_branches: plan.splits().len(),
        code_bytes: emitted.bytes.len(),
        ..CompileStats::default()
    }
}

/// Puts the kernel together.
fn kernel(source: &KernelSource, emitted: Emitted, stats: CompileStats) -> Kernel {
    let arch = source.arch();
    let sources: &SourceMap = source.sources();
    let places =
        emitted.places.iter().map(|&(at, place)| (at, sources.place(place).cloned())).collect();
    let lane_stack_bytes = emit::lane_stack_bytes(emitted.frame_bytes, arch.word());
    let chunk = Chunk {
        name: source.name().to_owned(),
        alignment: 0,
        permissions: Permissions::EXECUTE,
        global: true,
        address: None,
        data: emitted.bytes.clone(),
        references: Vec::new(),
    };
    Kernel {
        name: source.name().to_owned(),
        arch,
        params: source.params().to_vec(),
        object: Object { arch, chunks: vec![chunk], entry: 0 },
        code: emitted.bytes,
        lane_stack_bytes: u32::try_from(lane_stack_bytes).expect("emission limits frames"),
        places,
        traps: emitted.traps,
        stats,
    }
}
