//! What shared registers save in the mean of all programs, held to what Lee et al. report of theirs (CGO 2013,
//! sections 4.1 and 4.2).
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use std::error::Error;

use harp_bench::scalar::{Compared, programs, scalar_figures};
use harp_bench::{Figure, FigureKind};
use harp_isa::ArchId;
use harp_jit::{CompileOptions, Kernel};
use harp_spirv::SpirvModule;
use rayon::prelude::*;

/// The machines for which they give means.
const LANES: [u8; 2] = [4, 32];

/// The most instructions in the code of any program, and issued by it, relative to those without shared registers.
const MOST_INSTRUCTIONS: f64 = 1.03;

/// Compiles a kernel of a module.
pub(super) fn read(
    module: &[u8],
    kernel: &str,
    arch: ArchId,
    options: &CompileOptions,
) -> Result<Kernel, Box<dyn Error>> {
    Ok(SpirvModule::parse(module)?.kernel(kernel, arch)?.compile(options)?)
}

fn figures() -> Vec<Figure> {
    let cases: Vec<_> =
        programs().into_iter().flat_map(|program| LANES.map(|lanes| (program, lanes))).collect();
    let runs = cases.par_iter().map(|(program, lanes)| program.compare(*lanes, &read).unwrap());
    scalar_figures(&runs.collect::<Vec<Compared>>())
}

fn row<'a>(figure: &'a Figure, name: &str) -> &'a [Option<f64>] {
    let (_, bars) = figure.groups.iter().find(|(group, _)| group == name).unwrap();
    bars
}

#[test]
fn means_are_at_most_those_of_the_paper() {
    let mut compared = 0;
    for figure in figures() {
        if let FigureKind::StaticInstructions | FigureKind::Issued = figure.kind {
            for (name, bars) in &figure.groups {
                let is_little = |ratio: &f64| *ratio <= MOST_INSTRUCTIONS;
                assert!(
                    bars.iter().flatten().all(is_little),
                    "{:?}, {name}: {bars:?}",
                    figure.kind
                );
            }
        }
        match figure.kind {
            FigureKind::Convergence => {
                // Shares: more is better.
                let [ours, theirs] = ["mean 4", "Lee et al. 4"].map(|name| row(&figure, name)[5]);
                assert!(ours >= theirs, "proved of best: {ours:?}, theirs: {theirs:?}");
                compared += 1;
            }
            // They report no mean of these.
            FigureKind::IssuedByKind | FigureKind::Issued => {}
            kind => {
                for name in ["mean", "mean without fir"] {
                    let pairs = row(&figure, name).iter().zip(row(&figure, "Lee et al."));
                    for (ours, theirs) in pairs {
                        let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
                        assert!(ours <= theirs, "{kind:?}, {name}: {ours}, theirs: {theirs}");
                        compared += 1;
                    }
                }
            }
        }
    }
    // The share at 4 lanes; the code, at 2 widths; and 6 counts at these, each with FIR and without.
    assert_eq!(compared, 1 + 2 * (2 + 6 * 2));
}
