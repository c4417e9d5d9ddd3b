//! The programs on which sharing is measured.
//!
//! The list was fixed before the compiler was tuned on it: the filter of Lee et al. (CGO 2013, figure 1), the kernels on
//! which OpenCL implementations are compared, harpbench's, and of harp-spirv's programs those that are written after
//! Rodinia's, which Lee et al. measured, at sizes that fill warps.

use std::error::Error;

use harp_isa::{ArchId, WordSize};
use harp_jit::{BuildError, CompileOptions, Kernel, KernelBuilder, KernelSource};
use harp_runtime::{Arg, Buffer, BufferError, Device, LaunchConfig, LaunchError, Report};

use super::modules::{self, Data, Given, Module};
use crate::peers::{self, Workload};
use crate::{Input, PROGRAMS, Program, Scale};

/// The scale of the kernels on which OpenCL implementations are compared.
const PEERS_SCALE: u32 = 4;

/// Coefficients of the filter, and samples for each of which a work-item computes a sum.
const COEFFICIENTS: usize = 32;
const SAMPLES: usize = 1024;

/// Compiles the kernel with this name of a module of SPIR-V.
pub type Reader<'a> =
    &'a dyn Fn(&[u8], &str, ArchId, &CompileOptions) -> Result<Kernel, Box<dyn Error>>;

/// Does a launch.
pub(super) type Launch<'a> =
    &'a mut dyn FnMut(&Device, &Kernel, LaunchConfig, &[Arg]) -> Result<Report, LaunchError>;

/// A program.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Its name in tables.
    pub name: &'static str,
    code: Code,
}

#[derive(Clone, Copy, Debug)]
enum Code {
    Filter,
    Peer(Workload),
    Harpbench(&'static Program),
    Module(&'static Module),
}

/// All of them.
pub fn programs() -> Vec<Measured> {
    let peers = peers::WORKLOADS.map(|peer| (peer.name, Code::Peer(peer)));
    let names = [
        "hb-vecsum",
        "hb-psum",
        "hb-scan",
        "hb-scan-par",
        "hb-binsearch",
        "hb-hashtable",
        "hb-bfs",
    ];
    let harpbench = names.into_iter().zip(PROGRAMS.iter().map(Code::Harpbench));
    let modules = modules::MODULES.iter().map(|module| (module.name, Code::Module(module)));
    let all = std::iter::once(("fir", Code::Filter)).chain(peers).chain(harpbench).chain(modules);
    all.map(|(name, code)| Measured { name, code }).collect()
}

impl Measured {
    /// Runs it on a new device, each launch by `launch`. The results, as words.
    ///
    /// # Errors
    ///
    /// If a kernel cannot be made, or a launch fails.
    pub fn run(
        &self,
        device: &Device,
        options: &CompileOptions,
        reader: Reader<'_>,
        launch: Launch<'_>,
    ) -> Result<Vec<u32>, Box<dyn Error>> {
        let arch = device.arch();
        match self.code {
            Code::Filter => filter(device, &filter_source(arch)?.compile(options)?, launch),
            Code::Peer(peer) => {
                let kernel = (peer.source)(arch)?.compile(options)?;
                let mut each = |config, args: &[Arg]| launch(device, &kernel, config, args);
                (peer.launches)(device, &mut each, PEERS_SCALE)
            }
            Code::Harpbench(program) => {
                let kernel = (program.source)(arch)?.compile(options)?;
                let work = (program.work)(Input::Random, Scale::Small, arch);
                Ok((program.run_by)(device, &kernel, &work, launch)?.result)
            }
            Code::Module(module) => run_module(module, device, options, reader, launch),
        }
    }
}

/// `results[i]`, the sum of `coefficients[k] * samples[i + k]`.
fn filter_source(arch: ArchId) -> Result<KernelSource, BuildError> {
    let mut source = KernelSource::new("fir", arch);
    let mut b = KernelBuilder::new(&mut source);
    let (samples, coefficients) = (b.buffer::<f32>("samples"), b.buffer::<f32>("coefficients"));
    let (results, length) = (b.buffer::<f32>("results"), b.scalar::<usize>("length"));
    let i = b.global_id(0);
    let word = b.word_int();
    let start = [b.ins().iconst(word, 0), b.ins().f32const(0.0)];
    let [_, sum] = b.loop_with(start, |b, [k, sum]| {
        let is_last = b.ins().icmp(harp_jit::ir::condcodes::IntCC::Equal, k, length);
        b.break_if(is_last);
        let at = b.ins().iadd(i, k);
        let (coefficient, sample) = (b.load(coefficients, k), b.load(samples, at));
        [b.ins().iadd_imm_s(k, 1), b.ins().fma(coefficient, sample, sum)]
    });
    b.store(results, i, sum);
    b.return_();
    b.finalize()?;
    Ok(source)
}

fn filter(
    device: &Device,
    kernel: &Kernel,
    launch: Launch<'_>,
) -> Result<Vec<u32>, Box<dyn Error>> {
    let sample = |i: usize| (i * i % 11) as f32 - 4.5;
    let samples: Vec<f32> = (0..SAMPLES + COEFFICIENTS).map(sample).collect();
    let coefficients: Vec<f32> = (1..=COEFFICIENTS).map(|i| 1.0 / i as f32).collect();
    let (samples, coefficients) =
        (device.buffer_from_slice(&samples)?, device.buffer_from_slice(&coefficients)?);
    let results = device.buffer_zeroed::<f32>(SAMPLES)?;
    let args = [&samples, &coefficients, &results].map(Arg::from);
    let args = [&args[..], &[Arg::from(COEFFICIENTS)]].concat();
    launch(device, kernel, LaunchConfig::grid_1d(SAMPLES), &args)?;
    Ok(device.read(&results)?.into_iter().map(f32::to_bits).collect())
}

fn run_module(
    module: &Module,
    device: &Device,
    options: &CompileOptions,
    reader: Reader<'_>,
    launch: Launch<'_>,
) -> Result<Vec<u32>, Box<dyn Error>> {
    let arch = device.arch();
    let code = module.code[usize::from(arch.word() == WordSize::Eight)];
    let buffers: Vec<Words> =
        module.data.iter().map(|&data| Words::new(device, data)).collect::<Result<_, _>>()?;
    for step in module.launches {
        let ([x, y], [group_x, group_y]) = (step.grid, step.group);
        let config = LaunchConfig::grid_2d(x, y).with_groups([group_x, group_y, 1]);
        let options = CompileOptions { by_rows: config.fills_rows(arch), ..options.clone() };
        let kernel = reader(code, step.kernel, arch, &options)?;
        let args: Vec<Arg> = step
            .args
            .iter()
            .map(|given| match *given {
                Given::Buffer(index) => buffers[index].arg(),
                Given::Int(value) => Arg::from(value),
                Given::Float(value) => Arg::from(value),
                Given::Local(words) => Arg::group::<u32>(words),
                Given::LocalFloats(count) => Arg::group::<f32>(count),
            })
            .collect();
        launch(device, &kernel, config, &args)?;
    }
    let mut results = Vec::new();
    for buffer in &buffers {
        results.extend(buffer.read(device)?);
    }
    Ok(results)
}

/// A buffer of words.
enum Words {
    Floats(Buffer<f32>),
    Others(Buffer<u32>),
}

impl Words {
    fn new(device: &Device, data: Data) -> Result<Words, BufferError> {
        Ok(match data {
            Data::Floats(words) => {
                let floats: Vec<f32> = words().into_iter().map(f32::from_bits).collect();
                Words::Floats(device.buffer_from_slice(&floats)?)
            }
            Data::Others(words) => Words::Others(device.buffer_from_slice(&words())?),
        })
    }

    fn arg(&self) -> Arg {
        match self {
            Words::Floats(buffer) => Arg::from(buffer),
            Words::Others(buffer) => Arg::from(buffer),
        }
    }

    fn read(&self, device: &Device) -> Result<Vec<u32>, BufferError> {
        Ok(match self {
            Words::Floats(buffer) => device.read(buffer)?.into_iter().map(f32::to_bits).collect(),
            Words::Others(buffer) => device.read(buffer)?,
        })
    }
}
