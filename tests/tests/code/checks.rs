//! Checked launches of kernels that are right: nothing may be found but what is there.
#![expect(clippy::unwrap_used, reason = "helpers of tests may panic like the tests themselves")]

use harp_isa::ArchId;
use harp_jit::{CompileOptions, DivergenceStrategy, OptLevel};
use harp_runtime::{Checks, Device, DeviceConfig, Finding, FindingKind, LaunchError};
use harp_tests::harpbench::peers::WORKLOADS;
use harp_tests::harpbench::{HarpbenchError, Input, PROGRAMS, Scale};

const MACHINES: [&str; 5] =
    ["harp32", "harp64", "4w32/16/32/16+x", "4b16/16/8/4", "4w24/12/32/16+x+s8/4"];

/// A device that checks all launches.
fn device(arch: ArchId) -> Device {
    let checks = Some(Checks::all());
    Device::new(DeviceConfig { checks, ..DeviceConfig::new(arch) }).unwrap()
}

fn options(divergence: DivergenceStrategy, opt_level: OptLevel) -> CompileOptions {
    CompileOptions { report_accesses: true, divergence, opt_level, ..CompileOptions::default() }
}

fn is_race(finding: &Finding) -> bool {
    matches!(finding.kind, FindingKind::Race { .. })
}

#[test]
fn nothing_is_found_in_the_workloads() {
    for arch in MACHINES.map(|id| id.parse().unwrap()) {
        for workload in &WORKLOADS {
            let options = options(DivergenceStrategy::default(), OptLevel::default());
            let kernel = (workload.source)(arch).unwrap().compile(&options).unwrap();
            let name = workload.name;
            match workload.run(&device(arch), &kernel, 4) {
                Ok(output) => assert_eq!(output, (workload.on_host)(4), "{name} on {arch}"),
                Err(error) => match error.downcast::<LaunchError>().map(|error| *error) {
                    // It reads distances that others may write, and is right whichever it gets.
                    Ok(LaunchError::Findings(found)) if name == "bfs" => {
                        assert!(found.list.iter().all(is_race), "{found}");
                    }
                    Ok(LaunchError::GroupTooLarge { .. }) if name == "reduce" => {}
                    error => panic!("{name} on {arch}: {error:?}"),
                },
            }
        }
    }
}

#[test]
fn nothing_is_found_in_harpbench() {
    for arch in ["4w32/16/32/16+x", "harp32", "4w16/8/16/8+s8/4"].map(|id| id.parse().unwrap()) {
        for program in &PROGRAMS {
            for (divergence, opt_level) in [
                (DivergenceStrategy::SplitJoin, OptLevel::None),
                (DivergenceStrategy::Adaptive, OptLevel::Speed),
            ] {
                let options = options(divergence, opt_level);
                let kernel = (program.source)(arch).unwrap().compile(&options).unwrap();
                for input in Input::ALL {
                    let work = (program.work)(input, Scale::Small, arch);
                    let name = program.name;
                    match program.run(&device(arch), &kernel, &work) {
                        // It reads distances that others may write, and is right whichever it gets.
                        Err(HarpbenchError::Launch(LaunchError::Findings(found)))
                            if name == "bfs" =>
                        {
                            assert!(found.list.iter().all(is_race), "{found}");
                        }
                        Err(error) => panic!("{name} on {arch}: {error}"),
                        Ok(outcome) => {
                            assert_eq!(
                                outcome.result,
                                (program.on_host)(&work),
                                "{name} on {arch}"
                            );
                        }
                    }
                }
            }
        }
    }
}
