//! Warp instructions of harpbench under each strategy, one line a program and input.
//!
//! `cargo run --release -p harp-tests --example strategies [ARCH]`

#![expect(clippy::print_stdout, reason = "the result is for a shell")]

use std::error::Error;
use std::sync::Arc;

use harp_jit::{ArchId, BranchProfile, CompileOptions, DivergenceStrategy, Kernel, ProfileParams};
use harp_runtime::{Device, DeviceConfig};
use harp_tests::harpbench::{GUPTA, Input, PROGRAMS, Program, Scale, Work};

fn main() -> Result<(), Box<dyn Error>> {
    let arch: ArchId = std::env::args().nth(1).map_or(Ok(GUPTA), |text| text.parse())?;
    let mut device = Device::new(DeviceConfig::new(arch))?;
    println!(
        "{:10} {:10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}  predicated/divergent",
        "program", "input", "split", "predicate", "static", "profile", "adaptive", "counted"
    );
    for program in &PROGRAMS {
        for input in Input::ALL {
            line(&mut device, program, input, arch)?;
        }
    }
    Ok(())
}

fn line(
    device: &mut Device,
    program: &Program,
    input: Input,
    arch: ArchId,
) -> Result<(), Box<dyn Error>> {
    let work = (program.work)(input, Scale::Small, arch);
    let compile = |divergence, profile: Option<&Arc<BranchProfile>>| {
        let profile = profile.cloned();
        let options = CompileOptions { divergence, profile, ..CompileOptions::default() };
        (program.source)(arch)?.compile(&options).map_err(Box::<dyn Error>::from)
    };
    let split = compile(DivergenceStrategy::SplitJoin, None)?;
    let profile = Arc::new(profile(device, program, &split, &work)?);
    let predicate = compile(DivergenceStrategy::Predicate, None)?;
    let shares = predicate.stats();
    let kernels = [
        split,
        predicate,
        compile(DivergenceStrategy::Static, None)?,
        compile(DivergenceStrategy::Profile(ProfileParams::default()), Some(&profile))?,
        compile(DivergenceStrategy::Adaptive, None)?,
        compile(DivergenceStrategy::Adaptive, Some(&profile))?,
    ];
    print!("{:10} {:10}", program.name, input.name());
    for kernel in &kernels {
        let outcome = (program.run)(device, kernel, &work)?;
        let mark = if outcome.result == (program.on_host)(&work) { ' ' } else { '!' };
        print!("{mark}{:>9}", outcome.warp_instructions());
    }
    println!("  {}/{}", shares.predicated_divergent_branches, shares.divergent_branches);
    Ok(())
}

/// What the branches do in all launches.
fn profile(
    device: &mut Device,
    program: &Program,
    kernel: &Kernel,
    work: &Work,
) -> Result<BranchProfile, Box<dyn Error>> {
    let work = Work { config: work.config.with_branch_profile(), ..work.clone() };
    let outcome = (program.run)(device, kernel, &work)?;
    let mut profiles = outcome.reports.into_iter().filter_map(|report| report.branches);
    let mut all = profiles.next().ok_or("nothing was launched")?;
    profiles.try_for_each(|profile| all.merge(&profile))?;
    Ok(all)
}
