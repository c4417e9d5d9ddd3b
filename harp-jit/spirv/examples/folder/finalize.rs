//! Kernels of a module.

use std::any::Any;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use harp_isa::ArchId;
use harp_jit::CompileOptions;
use harp_spirv::{EntryPoint, SpirvError, SpirvErrorKind, SpirvKernel, SpirvModule};

use crate::replay;
use crate::report::{FileReport, Problem, Times, least};
use crate::sources::Made;

/// Makes all kernels of a module for a machine, and takes times if there are rounds.
pub(crate) fn kernels(made: &Made, arch: ArchId, rounds: usize, report: &mut FileReport) {
    let problem = |kernel: &str, what: String| Problem {
        kernel: kernel.to_owned(),
        arch: arch.to_string(),
        what,
    };
    let module = match guarded(|| SpirvModule::parse(&made.bytes)) {
        Ok(Ok(module)) => module,
        Ok(Err(error)) => return report.refused.push(problem("", error.to_string())),
        Err(panicked) => return report.panicked.push(problem("", panicked)),
    };
    let options = CompileOptions::default();
    let mut compiled = Vec::new();
    for name in module.entry_points().iter().map(EntryPoint::name) {
        let kernel = guarded(|| {
            let kernel = module.kernel(name, arch).map_err(Refusal::from)?;
            kernel.compile(&options).map_err(|error| Refusal::Refused(error.to_string()))?;
            Ok(kernel)
        });
        match kernel {
            Ok(Ok(kernel)) => compiled.push((name, kernel)),
            // The module is for machines with other addresses.
            Ok(Err(Refusal::OtherAddresses)) => return,
            Ok(Err(Refusal::Refused(what))) => report.refused.push(problem(name, what)),
            Err(panicked) => report.panicked.push(problem(name, panicked)),
        }
    }
    report.kernels = module.entry_points().len();
    report.compiled += compiled.len();
    if rounds > 0 && !compiled.is_empty() {
        report.times.push(times(made, arch, rounds, &compiled));
    }
}

/// Why there is no kernel.
enum Refusal {
    OtherAddresses,
    Refused(String),
}

impl From<SpirvError> for Refusal {
    fn from(error: SpirvError) -> Refusal {
        match error.kind {
            SpirvErrorKind::AddressSize { .. } => Refusal::OtherAddresses,
            _ => Refusal::Refused(error.to_string()),
        }
    }
}

/// Does something that must not panic; what it said if it does.
fn guarded<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|payload: Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("?").to_owned()
    })
}

fn times(made: &Made, arch: ArchId, rounds: usize, kernels: &[(&str, SpirvKernel)]) -> Times {
    let options = CompileOptions::default();
    let (mut whole, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        whole.push(microseconds(|| {
            let module = SpirvModule::parse(black_box(&made.bytes)).ok();
            for (name, _) in kernels {
                let kernel = module.as_ref().and_then(|module| module.kernel(name, arch).ok());
                black_box(kernel.and_then(|kernel| kernel.compile(&options).ok()));
            }
        }));
        direct.push(microseconds(|| {
            for (_, kernel) in kernels {
                black_box(replay::built(kernel.source().function(), arch));
                black_box(kernel.compile(&options).ok());
            }
        }));
    }
    Times { arch: arch.to_string(), whole: least(whole), direct: least(direct), host: made.host }
}

fn microseconds(act: impl FnOnce()) -> f64 {
    let start = Instant::now();
    act();
    start.elapsed().as_secs_f64() * 1e6
}
