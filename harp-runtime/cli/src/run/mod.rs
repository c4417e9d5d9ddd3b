//! `harp run`: runs a kernel of a program.

mod arguments;
mod contents;
mod results;
mod spec;

use std::num::NonZeroU64;
use std::time::Duration;

use clap::Args;
use harp_isa::ArchId;
use harp_jit::{CompileOptions, Execution, Kernel};
use harp_runtime::{Arg, Checks, Device, DeviceConfig, LaunchConfig, LaunchError, Printed, Report};
use serde_json::{Value, json};

use super::Target;
use super::error::CliError;
use super::files::Output;
use super::numbers::{number, seconds, size};
use super::options::CodeOptions;
use super::source::{KernelOf, Named, Parameter, ProgramFile, Source};
use super::values::Element;
pub(super) use arguments::ArgumentError;
use arguments::{Array, Bound, bind};
use results::{Buffers, Results, findings};
use spec::{ARGUMENTS, Argument, argument};

/// Run a kernel of a program
#[derive(Args)]
#[command(
    long_about = "Run a kernel of a program

The program is a SPIR-V module, CLIF text, or what becomes SPIR-V: OpenCL C, WGSL and GLSL. In CLIF text, functions that
return nothing are kernels, and their parameters are the kernel's: buffers and local memory as addresses, which are integers
of the machine's word.

What the kernel prints, and what of its buffers was asked for, goes to standard output. Findings of `--check` and traps are
reported on standard error, and by the exit code.",
    after_help = format!("{ARGUMENTS}

Examples:
  harp run saxpy.cl -a 4w32/16/32/16+x --list
  harp run saxpy.cl -a 4w32/16/32/16+x --grid 1024 --arg f32:0..1024 --arg f32x1024:1 --arg 2.5 --print y:8
  harp run reduce.spv -a harp32 --grid 4096 --group 128 --arg i32x4096:random:7 --arg i32x32 --arg local:512 --save out=sums.bin
  harp run blur.wgsl -a harp64 --grid 256,256 --arg f32@in.bin --arg f32x65536 --compare 1=out.bin:1e-6 --check --stats")
)]
pub(super) struct Run {
    #[command(flatten)]
    program: ProgramFile,
    #[command(flatten)]
    target: Target,
    /// Print the kernels with what they take, and run nothing
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    launch: Launch,
    #[command(flatten)]
    results: Results,
    /// Print what the launch cost
    #[arg(short, long)]
    stats: bool,
    /// Print everything as one JSON object, statistics and findings included
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    code: CodeOptions,
}

/// What a launch takes.
#[derive(Args)]
pub(super) struct Launch {
    /// The work-items in each dimension. Where the program fixes the size of work-groups, as shaders do, whole groups run
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = grid)]
    grid: Option<Grid>,
    /// What is added to positions in the grid in each dimension, as OpenCL's `get_global_offset` gives it
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = offsets)]
    offset: Option<[u64; 3]>,
    /// The work-items of a work-group in each dimension [default: what the program says, else no groups]
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extents)]
    group: Option<[u64; 3]>,
    /// An argument of the kernel (see below); may be given several times
    #[arg(long, value_name = "[NAME=]ARGUMENT", allow_hyphen_values = true, value_parser = argument)]
    arg: Vec<Argument>,
    /// Check what the kernel does with memory: bounds, uninitialized memory, races, types of elements. OpenCL C is compiled
    /// without optimization for that, unless `--cl-option` asks for some
    #[arg(long)]
    check: bool,
    /// Trap where a lane reads from a shared register what it has not written itself
    #[arg(long)]
    audit_shared: bool,
    /// The number of cores, which share the memory
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    cores: u16,
    /// The size of the device's memory, such as 64M [default: 256M]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    ram: Option<u64>,
    /// Stop each core after this many instructions
    #[arg(long, value_name = "N", value_parser = number)]
    fuel: Option<u64>,
    /// Stop after this many seconds, such as 0.5 or 60
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    time_limit: Option<Duration>,
}

/// The work-items in each of one to three dimensions.
#[derive(Clone)]
struct Grid(Vec<u64>);

fn grid(text: &str) -> Result<Grid, &'static str> {
    let (extents, given) = (extents(text)?, text.split(',').count());
    Ok(Grid(extents[..given].to_vec()))
}

/// Work-items in one to three dimensions.
fn extents(text: &str) -> Result<[u64; 3], &'static str> {
    let positive = |part: &str| Some(NonZeroU64::new(number(part).ok()?)?.get());
    dimensions(text, 1, |part| {
        positive(part).ok_or("expected one to three positive numbers, such as 1024 or 64,64")
    })
}

/// Distances in one to three dimensions.
fn offsets(text: &str) -> Result<[u64; 3], &'static str> {
    dimensions(text, 0, |part| {
        number(part).map_err(|_| "expected one to three numbers, such as 1024 or 64,0")
    })
}

/// A number for each dimension; those of the last ones need not be there.
fn dimensions(
    text: &str,
    default: u64,
    number: impl Fn(&str) -> Result<u64, &'static str>,
) -> Result<[u64; 3], &'static str> {
    let mut numbers = [default; 3];
    let mut parts = text.split(',');
    for (place, part) in numbers.iter_mut().zip(parts.by_ref()) {
        *place = number(part)?;
    }
    match parts.next() {
        None => Ok(numbers),
        Some(_) => Err("there are three dimensions at most"),
    }
}

impl Run {
    pub(super) fn run(self) -> Result<(), CliError> {
        let arch = self.target.arch;
        let source = self.launch.load(&self.program, arch)?;
        if self.list {
            let kernels = self.program.kernels_by_name(&source, arch)?;
            let text = listing(kernels)? + &constants(&source);
            return Output::Stdout.write(text.as_bytes());
        }
        self.results.spares(&[self.program.input().clone()])?;
        let kernel = self.program.one_kernel(&source, arch)?;
        let parameters = kernel.parameters()?;
        let config = self.launch.config(&kernel)?;
        let options = self.code.compile_options(Execution::Simt)?;
        let prepared = self.launch.prepare(&kernel, &parameters, options, arch)?;
        let Prepared { device, arrays, .. } = &prepared;
        let buffers = Buffers { device, parameters: &parameters, arrays };
        self.results.check(&buffers)?;
        let result = match prepared.launch(config) {
            Ok(report) => Ok(report),
            Err(CliError::Launch { source })
                if matches!(source, LaunchError::Findings(_) | LaunchError::Trap(_)) =>
            {
                Err(source)
            }
            Err(error) => return Err(error),
        };
        self.show(&result, &buffers, config)?;
        result.map(drop).map_err(|source| CliError::Launch { source })
    }

    /// Prints what the kernel has printed, the buffers, and what the launch cost.
    fn show(
        &self,
        result: &Result<Report, LaunchError>,
        buffers: &Buffers<'_>,
        config: LaunchConfig,
    ) -> Result<(), CliError> {
        let (report, printed) = outcome(result);
        // After a trap buffers may hold anything, which is of use, too.
        let said = self.results.take(buffers)?;
        let text = if self.json {
            let (buffers, compared) = said.json();
            let printed_lines = printed.map_or(&[][..], |printed| &printed.lines);
            let lines = printed_lines
                .iter()
                .map(|line| json!({ "work_item": line.work_item, "text": line.text }));
            let error = result.as_ref().err();
            let stats = match (report, error) {
                (Some(report), _) => json!(report.stats),
                (None, Some(LaunchError::Trap(trap))) => json!(trap.stats),
                _ => Value::Null,
            };
            let object = json!({
                "grid": config.grid,
                "group": config.group,
                "offset": config.offset,
                "printed": lines.collect::<Vec<_>>(),
                "dropped": printed.map_or(0, |printed| printed.dropped),
                "buffers": buffers,
                "compared": compared,
                "findings": error.map(findings).unwrap_or_default(),
                "error": error.map(ToString::to_string),
                "stats": stats,
                "image_seconds": report.map(|report| report.image_time.as_secs_f64()),
                "run_seconds": report.map(|report| report.run_time.as_secs_f64()),
            });
            format!("{object}\n")
        } else {
            let printed = printed.map(ToString::to_string).unwrap_or_default();
            let report = report.filter(|_| self.stats).map(|report| format!("{report}\n"));
            printed + &said.text() + &report.unwrap_or_default()
        };
        Output::Stdout.write(text.as_bytes())?;
        match result {
            Ok(_) => said.verdict(),
            // The launch's own error says more.
            Err(_) => Ok(()),
        }
    }
}

/// What a launch cost, if it came to its end, and what was printed.
fn outcome(result: &Result<Report, LaunchError>) -> (Option<&Report>, Option<&Printed>) {
    let report = match result {
        Ok(report) => Some(report),
        Err(LaunchError::Findings(findings)) => findings.report.as_ref(),
        Err(LaunchError::Trap(trap)) => return (None, Some(&trap.printed)),
        Err(_) => None,
    };
    (report, report.map(|report| &report.printed))
}

/// A kernel with its arguments.
pub(super) struct Prepared {
    device: Device,
    pub(super) kernel: Kernel,
    args: Vec<Arg>,
    /// The buffers among the arguments, by parameter.
    arrays: Vec<Option<Array>>,
}

impl Prepared {
    /// Launches the kernel.
    pub(super) fn launch(&self, config: LaunchConfig) -> Result<Report, CliError> {
        let result = self.device.launch(&self.kernel, config, &self.args);
        result.map_err(|source| match source {
            LaunchError::NoGroups { kernel } => CliError::NoGroups { kernel },
            source => CliError::Launch { source },
        })
    }
}

impl Launch {
    /// Reads a program for such launches.
    pub(super) fn load(&self, program: &ProgramFile, arch: ArchId) -> Result<Source, CliError> {
        let source = match self.check {
            true => program.load_as_written(arch)?,
            false => program.load(arch)?,
        };
        Ok(match (source, self.offset) {
            (Source::Spirv(module), Some(_)) => {
                Source::Spirv(Box::new(module.with_global_offset()))
            }
            (source, _) => source,
        })
    }

    /// The grid and its groups.
    pub(super) fn config(&self, kernel: &KernelOf<'_>) -> Result<LaunchConfig, CliError> {
        let fixed = kernel.local_size();
        let group = match (self.group, fixed) {
            (Some(given), Some(fixed)) if given != fixed => {
                return Err(CliError::GroupSize { kernel: kernel.name().to_owned(), given, fixed });
            }
            (given, fixed) => given.or(fixed),
        };
        let Grid(given) = self.grid.as_ref().ok_or(CliError::NoGrid)?;
        let mut grid = [1; 3];
        grid[..given.len()].copy_from_slice(given);
        for (extent, size) in grid.iter_mut().zip(fixed.unwrap_or([1; 3])) {
            *extent = extent.checked_next_multiple_of(size).unwrap_or(*extent);
        }
        let mut config = LaunchConfig::grid_1d(1);
        (config.grid, config.dimensions) = (grid, given.len() as u8);
        config.group = group;
        config.offset = self.offset.unwrap_or_default();
        config.audit_shared = self.audit_shared;
        config.checks = self.check.then(|| {
            let mut checks = Checks::all();
            // Compilers move vectors and structures in pieces of any type.
            checks.types = false;
            checks
        });
        Ok(config)
    }

    /// Makes everything ready but the launch itself.
    pub(super) fn prepare(
        &self,
        kernel: &KernelOf<'_>,
        parameters: &[Parameter],
        options: CompileOptions,
        arch: ArchId,
    ) -> Result<Prepared, CliError> {
        let config = self.device(arch);
        let bound = bind(parameters, &self.arg, config.memory_bytes)?;
        let types: Vec<_> = bound.iter().flat_map(Bound::types).collect();
        let by_rows = self.config(kernel)?.fills_rows(arch);
        let options = CompileOptions { report_accesses: self.check, by_rows, ..options };
        let kernel = kernel.compile(Some(&types), &options)?;
        let device = Device::new(config).map_err(|source| CliError::Device { source })?;
        let name =
            |index: usize| parameters[index].name.clone().unwrap_or_else(|| index.to_string());
        let arrays = bound.iter().enumerate().map(|(index, bound)| {
            bound.array(&device, name(index)).map_err(|source| CliError::Buffer { source })
        });
        let mut arrays: Vec<_> = arrays.collect::<Result<_, _>>()?;
        let mut args = Vec::new();
        for (index, bound) in bound.into_iter().enumerate() {
            if let Bound::Same(other) = bound {
                let same = arrays[other].clone();
                arrays[index] = same.map(|array| array.named(name(index)));
            }
            args.extend(bound.args(arrays[index].as_ref()));
        }
        Ok(Prepared { device, kernel, args, arrays })
    }

    fn device(&self, arch: ArchId) -> DeviceConfig {
        let default = DeviceConfig::new(arch);
        DeviceConfig {
            cores: self.cores,
            memory_bytes: self.ram.unwrap_or(default.memory_bytes),
            fuel: self.fuel.or(default.fuel),
            time_limit: self.time_limit,
            ..default
        }
    }
}

/// The kernels of a program with what they take, or why they are not supported.
///
/// # Errors
///
/// If no kernel is supported.
fn listing(kernels: Vec<Named<'_>>) -> Result<String, CliError> {
    let is_any_supported = kernels.iter().any(|(_, kernel)| kernel.is_ok());
    let mut text = String::new();
    for (name, kernel) in kernels {
        text += &name;
        let kernel = match kernel {
            Ok(kernel) => kernel,
            Err(error) if is_any_supported => {
                text += &format!("\n  error: {error}\n");
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some([x, y, z]) = kernel.local_size() {
            text += &format!(", in groups of {x} x {y} x {z}");
        }
        text += "\n";
        for (index, parameter) in kernel.parameters()?.iter().enumerate() {
            let name = parameter.name.clone().unwrap_or_else(|| index.to_string());
            text += &format!("  {name}: {parameter}\n");
        }
    }
    Ok(text)
}

/// The constants of a program that `--spec` can give other values.
fn constants(source: &Source) -> String {
    let Source::Spirv(module) = source else { return String::new() };
    let mut text = String::new();
    for constant in module.spec_constants() {
        let (id, ty) = (constant.id, constant.ty);
        let name = constant.name.as_ref().map_or_else(String::new, |name| format!(" `{name}`"));
        let value = match Element::of_param(ty) {
            Some(element) => element.text(constant.bits),
            None => (constant.bits != 0).to_string(),
        };
        text += &format!("constant {id}{name}: {ty}, {value}\n");
    }
    text
}
