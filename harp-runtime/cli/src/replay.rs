//! `harp replay`: runs a launch again that a program has kept because it failed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use harp_runtime::jit::Kernel;
use harp_runtime::{Checks, Device, Issue, LaunchError, LaunchObserver, Report};

use super::emu::Tracing;
use super::error::CliError;
use super::files::Output;

/// Run a launch again that a program has kept because it failed
///
/// A program keeps launches that trap, or in which checks find something, if its device is configured to
/// (`DeviceConfig::replays`). The file has the kernel, the arguments and all memory, so the launch does the
/// same again. What the kernel printed, and what the launch cost, go to standard output.
#[derive(Args)]
#[command(after_help = "Examples:
  harp replay replays/sums-0.harpreplay
  harp replay --explain replays/sums-0.harpreplay
  harp replay --trace instructions --trace-file steps.txt replays/sums-0.harpreplay")]
pub(super) struct Replay {
    /// The file
    #[arg(value_name = "FILE.harpreplay")]
    file: PathBuf,
    /// Print the kernel's code: how often each instruction was issued, how many lanes executed it, its place
    /// in the source, and `>` where the kernel stopped
    #[arg(long, conflicts_with = "trace")]
    explain: bool,
    /// Check what the kernel does with memory, also if the program did not. The kernel must have been
    /// compiled to report its accesses
    #[arg(long)]
    checks: bool,
    #[command(flatten)]
    trace: Tracing,
}

impl Replay {
    pub(super) fn run(self) -> Result<(), CliError> {
        let replay = harp_runtime::Replay::read(&self.file)?;
        let config = replay.launch_config();
        let replay = match self.checks {
            true => replay.with_launch_config(config.with_checks(Checks::all())),
            false => replay,
        };
        let result = match self.trace.writer()? {
            Some(mut writer) => {
                let result = replay.launch_observed(&mut writer)?;
                self.trace.finish(writer)?;
                result
            }
            None if self.explain => {
                let mut counts = Counts::default();
                let result = replay.launch_observed(&mut counts)?;
                let device = Device::new(replay.device_config().clone())
                    .map_err(harp_runtime::ReplayError::from)?;
                let listing = counts.listing(&device, replay.kernel(), &result);
                Output::Stdout.write(listing.as_bytes())?;
                result
            }
            None => replay.launch()?,
        };
        let printed = match &result {
            Ok(report) => format!("{}{report}\n", report.printed),
            Err(LaunchError::Trap(trap)) => trap.printed.to_string(),
            Err(LaunchError::Findings(findings)) => (findings.report.as_ref())
                .map(|report| format!("{}{report}\n", report.printed))
                .unwrap_or_default(),
            Err(_) => String::new(),
        };
        Output::Stdout.write(printed.as_bytes())?;
        result.map(drop).map_err(|source| CliError::Launch { source })
    }
}

/// Counts what a launch does at each address.
#[derive(Default)]
struct Counts {
    /// The address of the kernel, once it has begun.
    start: Option<u64>,
    /// By address: how often the instruction was issued, and the lanes that executed it.
    counts: BTreeMap<u64, (u64, u64)>,
}

impl LaunchObserver for Counts {
    fn issue(&mut self, offset: Option<u64>, issue: &Issue<'_>) {
        let Some(offset) = offset else { return };
        self.start = Some(issue.pc - offset);
        let (issued, lanes) = self.counts.entry(issue.pc).or_default();
        *issued += 1;
        *lanes += u64::from(issue.executing.count_ones());
    }
}

impl Counts {
    /// The code of the kernel and of its functions with the counts.
    fn listing(
        &self,
        device: &Device,
        kernel: &Kernel,
        result: &Result<Report, LaunchError>,
    ) -> String {
        let stopped = match result {
            Err(LaunchError::Trap(trap)) => Some(trap.trap.pc),
            _ => None,
        };
        let image = device.image(kernel).ok();
        let functions = kernel.functions().iter().map(|function| {
            (image.as_ref().and_then(|image| image.symbol(function.name())), function)
        });
        let mut text = format!("  {:>12} {:>14}\n", "issued", "lanes");
        for (start, function) in [(self.start, kernel.entry())].into_iter().chain(functions) {
            let margin = |offset: Option<u64>| {
                let Some(pc) = start.zip(offset).map(|(start, offset)| start + offset) else {
                    return format!("{:30}", "");
                };
                let mark = if stopped == Some(pc) { '>' } else { ' ' };
                let (issued, lanes) = self.counts.get(&pc).copied().unwrap_or_default();
                format!("{mark} {issued:>12} {lanes:>14} ")
            };
            let code = function.annotated_disassembly(margin);
            write!(text, "{:30}{}:\n{code}", "", function.name()).expect("strings take all text");
        }
        text
    }
}
