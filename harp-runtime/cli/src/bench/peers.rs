//! `harp bench peers`: the kernels on which OpenCL implementations are compared.

use std::time::{Duration, Instant};

use clap::Args;
use harp_bench::peers::{self, WORKLOADS, Workload, checksum};
use harp_isa::ArchId;
use harp_jit::{Execution, Kernel};
use harp_runtime::{Arg, Device, DeviceConfig, LaunchConfig, LaunchError};
use harp_spirv::SpirvModule;
use serde::Serialize;

use super::super::error::CliError;
use super::super::files::Output;
use super::super::options::{CodeOptions, TierOption};
use super::table;

/// The machine for which the emulator is fastest.
const MACHINE: &str = "4w32/16/32/16+x";

/// How often a kernel that is launched once runs, on the same buffers, and one that is launched several times: as in the
/// OpenCL program.
const RUNS: [u32; 2] = [5, 3];

/// Run the kernels on which OpenCL implementations are compared
///
/// The program is `kernels.cl` of `tests/bench/peers`, as SPIR-V. Inputs, fields and checksums are those of the OpenCL program
/// `bench.c` beside it, so that both can be run in turns. The results are compared with the host's; if one is wrong, the exit
/// code is 1.
#[derive(Args)]
#[command(after_help = "Examples:
  harp bench peers
  harp bench peers --scale 4 --kernel matmul --kernel bfs --arch harp32 --json")]
pub(super) struct Peers {
    /// The machine [default: 4w32/16/32/16+x]
    #[arg(short, long, value_name = "ARCH", env = "HARP_ARCH")]
    arch: Option<ArchId>,
    /// Each step from 1 on halves the work in each dimension
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    scale: u32,
    /// Only this kernel; may be given several times
    #[arg(long, value_name = "NAME", value_parser = workload)]
    kernel: Vec<Workload>,
    /// The same kernels as the builder makes them, instead of the SPIR-V
    #[arg(long)]
    builder: bool,
    /// The number of cores, which share the memory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    cores: u16,
    /// How the kernels run
    #[arg(long, value_enum, default_value_t)]
    tier: TierOption,
    /// How often each kernel runs [default: as in the OpenCL program: 5, or 3 if it is launched several times]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Print what was translated to host code, and why and how often it was left
    #[arg(long, conflicts_with = "json")]
    tier_stats: bool,
    /// Print one JSON object per line, as the OpenCL program does
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    code: CodeOptions,
}

/// What a kernel took.
#[derive(Debug, Serialize)]
struct Row {
    kernel: &'static str,
    items: u64,
    build_ms: f64,
    first_ms: f64,
    best_ms: f64,
    checksum: u32,
    #[serde(skip)]
    is_right: bool,
}

fn workload(name: &str) -> Result<Workload, String> {
    let found = WORKLOADS.into_iter().find(|workload| workload.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
        format!("the kernels are {}", names.join(", "))
    })
}

impl Peers {
    pub(super) fn run(&self) -> Result<(), CliError> {
        let arch = self.arch.unwrap_or_else(|| MACHINE.parse().expect("it is a machine"));
        let (cores, tier) = (self.cores, self.tier.into());
        let config = DeviceConfig { cores, tier, ..DeviceConfig::new(arch) };
        let device = Device::new(config).map_err(|source| CliError::Device { source })?;
        let workloads = if self.kernel.is_empty() { &WORKLOADS[..] } else { &self.kernel };
        let row = |workload: &Workload| {
            let row = self.row(&device, workload);
            row.map_err(|source| CliError::Peer { kernel: workload.name, source })
        };
        let mut rows = Vec::new();
        for workload in workloads {
            rows.push(row(workload)?);
            if let (true, Some(row)) = (self.json, rows.last()) {
                Output::Stdout.write(table::line(row).as_bytes())?;
            }
        }
        if let (true, Some(stats)) = (self.tier_stats, device.tier_stats()) {
            Output::Stdout.write(format!("{stats:#?}\n").as_bytes())?;
        }
        if !self.json {
            Output::Stdout.write(text(&rows).as_bytes())?;
        }
        match rows.iter().find(|row| !row.is_right) {
            None => Ok(()),
            Some(row) => Err(CliError::WrongPeer { kernel: row.kernel, checksum: row.checksum }),
        }
    }

    fn row(&self, device: &Device, workload: &Workload) -> Result<Row, Box<dyn std::error::Error>> {
        let start = Instant::now();
        let kernel = self.kernel(workload, device.arch())?;
        let build = start.elapsed();
        let launch = |span: &mut Span, config: LaunchConfig, args: &[Arg]| {
            let start = Instant::now();
            let report = device.launch(&kernel, config, args)?;
            span.add(start);
            Ok::<_, LaunchError>(report)
        };
        let (mut items, mut launches, mut span) = (0, 0, Span::default());
        let mut once = |config: LaunchConfig, args: &[Arg]| {
            let report = launch(&mut span, config, args)?;
            (items, launches) = (report.work_items(), launches + 1);
            Ok(report)
        };
        let output = (workload.launches)(device, &mut once, self.scale)?;
        let first = span.time();
        let mut best = first;
        let runs = self.runs.unwrap_or(RUNS[usize::from(launches > 1)]);
        if launches == 1 && runs > 1 {
            // Again and again on the same buffers.
            let mut again = |config: LaunchConfig, args: &[Arg]| {
                let mut timed = || {
                    let mut span = Span::default();
                    let report = launch(&mut span, config, args)?;
                    best = best.min(span.time());
                    Ok(report)
                };
                (2..runs).try_for_each(|_| timed().map(drop))?;
                timed()
            };
            (workload.launches)(device, &mut again, self.scale)?;
        } else {
            for _ in 1..runs {
                let mut span = Span::default();
                let mut again =
                    |config: LaunchConfig, args: &[Arg]| launch(&mut span, config, args);
                (workload.launches)(device, &mut again, self.scale)?;
                best = best.min(span.time());
            }
        }
        let ms = |time: Duration| (time.as_secs_f64() * 1e7).round() / 1e4;
        Ok(Row {
            kernel: workload.name,
            items,
            build_ms: ms(build),
            first_ms: ms(first),
            best_ms: ms(best),
            checksum: checksum(output.iter().copied()),
            is_right: workload.is_right(&output, self.scale),
        })
    }

    fn kernel(
        &self,
        workload: &Workload,
        arch: ArchId,
    ) -> Result<Kernel, Box<dyn std::error::Error>> {
        let options = self.code.compile_options(Execution::Simt)?;
        if self.builder {
            return Ok((workload.source)(arch)?.compile(&options)?);
        }
        let module = SpirvModule::parse(peers::module(arch.word(), true))?;
        Ok(module.kernel(workload.name, arch)?.compile(&options)?)
    }
}

/// The time from the first launch's start to the last one's end, and so what the host does in between, as in the OpenCL
/// program.
#[derive(Default)]
struct Span(Option<(Instant, Instant)>);

impl Span {
    /// Adds a launch that ends now.
    fn add(&mut self, start: Instant) {
        let first = self.0.map_or(start, |(first, _)| first);
        self.0 = Some((first, Instant::now()));
    }

    fn time(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

fn text(rows: &[Row]) -> String {
    let head = ["kernel", "items", "build ms", "first ms", "best ms", "checksum", "result"];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    cells.extend(rows.iter().map(|row| {
        vec![
            row.kernel.to_owned(),
            row.items.to_string(),
            format!("{:.3}", row.build_ms),
            format!("{:.3}", row.first_ms),
            format!("{:.4}", row.best_ms),
            row.checksum.to_string(),
            if row.is_right { "correct" } else { "WRONG" }.to_owned(),
        ]
    }));
    table::aligned(&cells, 1)
}
