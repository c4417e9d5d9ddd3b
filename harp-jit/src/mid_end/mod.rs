//! Cranelift's mid-end, as HARP uses it.

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::Function;
use cranelift_codegen::{CodegenError, Context};

use crate::aliases;
use crate::error::CompileError;
use crate::options::{CompileOptions, OptLevel};

mod branches;
mod conditions;
mod shifts;
mod stores;

pub(crate) use branches::simplify_conditions;
pub(crate) use shifts::compare_shifted;
use stores::TooManyKinds;

/// Runs Cranelift's mid-end, in the order of `Context::optimize`, which needs a target that Cranelift knows.
/// Branches of loops are turned as the mid-end prefers them.
pub(crate) fn optimize(func: Function, options: &CompileOptions) -> Result<Function, CompileError> {
    let flags = options.flags();
    let internal = |error: CodegenError| CompileError::Internal {
        stage: "mid-end",
        message: match error {
            CodegenError::Verifier(errors) => errors.to_string(),
            other => other.to_string(),
        },
    };
    let mut context = Context::for_function(func);
    context.compute_cfg();
    context.compute_domtree();
    context.eliminate_unreachable_code(&flags).map_err(internal)?;
    context.remove_constant_phis(&flags).map_err(internal)?;
    aliases::resolve_all(&mut context.func.dfg);
    if options.opt_level == OptLevel::Speed {
        context.compute_loop_analysis();
        conditions::combine_invariant_first(&mut context.func, &context.loop_analysis);
        // The graph is unchanged, but the tree depends on the order of a branch's sides.
        if branches::leave_loops_by_jumping(&mut context.func, &context.loop_analysis) {
            context.compute_domtree();
        }
        let name = context.func.name.to_string();
        let too_many = |TooManyKinds| CompileError::Invalid {
            kernel: name.clone(),
            message: "more than 65,534 kinds of accesses".to_owned(),
        };
        let shared = stores::share_region(&mut context.func).map_err(too_many)?;
        context.egraph_pass(&flags, &mut ControlPlane::default()).map_err(internal)?;
        if shared {
            stores::leave_region(&mut context.func).map_err(too_many)?;
        }
    }
    Ok(context.func)
}
