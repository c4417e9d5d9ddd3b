//! Runs a function on the emulator, for many arguments at once.

use cranelift_codegen::ir::{Type, types};
use harp_jit::{ArchId, CompileOptions, Kernel, KernelBuilder, KernelSource, ParamType};
use harp_libm::{Float, Fma, Math, expand};
use harp_runtime::{Arg, Buffer, Device, DeviceConfig, LaunchConfig};

use super::Numbers;

/// A function that is compiled for a machine.
pub(crate) struct Machine {
    device: Device,
    kernel: Kernel,
    math: Math,
    float: Float,
}

/// The machine with extension X that tests use for a format.
pub(crate) fn usual_arch(float: Float) -> &'static str {
    match float {
        Float::F32 => "4w32/16/32/16+x",
        Float::F64 => "8w32/16/32/16+x",
    }
}

impl Machine {
    /// Compiles a kernel that computes `math` for each work-item.
    pub(crate) fn new(arch: &str, math: Math, float: Float, fma: Fma) -> Machine {
        let arch: ArchId = arch.parse().unwrap();
        let mut source = KernelSource::new(math.name(), arch);
        let mut b = KernelBuilder::new(&mut source);
        let operands = math.parameters().iter().chain(math.results());
        let types: Vec<Type> = operands.map(|operand| operand.ty(float)).collect();
        let pointers: Vec<_> = types.iter().map(|_| b.param(ParamType::Pointer)).collect();
        let i = b.global_id(0);
        let count = math.parameters().len();
        let args: Vec<_> =
            (0..count).map(|arg| b.load_elem(types[arg], pointers[arg], i)).collect();
        let results = expand(b.inner(), math, float, fma, &args).unwrap();
        for (value, pointer) in results.into_iter().zip(&pointers[count..]) {
            b.store_elem(value, *pointer, i);
        }
        b.return_();
        b.finalize().unwrap();
        let kernel = source.compile(&CompileOptions::default()).unwrap();
        let device = Device::new(DeviceConfig { cores: 2, ..DeviceConfig::new(arch) }).unwrap();
        Machine { device, kernel, math, float }
    }

    /// The results for each of the arguments, and the instructions that a warp issued on average.
    pub(crate) fn run(&self, args: &[Numbers<3>]) -> (Vec<Numbers<2>>, f64) {
        let operands = self.math.parameters().iter().chain(self.math.results());
        let types: Vec<Type> = operands.map(|operand| operand.ty(self.float)).collect();
        let count = self.math.parameters().len();
        let column = |index: usize| -> Vec<u8> {
            let number = |args: &Numbers<3>| if index < count { args[index] } else { 0.0 };
            args.iter().flat_map(|args| to_bytes(number(args), types[index])).collect()
        };
        let buffers: Vec<Buffer<u8>> = (0..types.len())
            .map(|index| self.device.buffer_from_slice(&column(index)).unwrap())
            .collect();
        let pointers: Vec<Arg> = buffers.iter().map(Arg::from).collect();
        let grid = LaunchConfig::grid_1d(args.len());
        let report = self.device.launch(&self.kernel, grid, &pointers).unwrap();
        let mut results = vec![[0.0; 2]; args.len()];
        for (index, buffer) in buffers.iter().enumerate().skip(count) {
            let bytes = self.device.read(buffer).unwrap();
            let size = types[index].bytes() as usize;
            for (result, bytes) in results.iter_mut().zip(bytes.chunks(size)) {
                result[index - count] = from_bytes(bytes, types[index]);
            }
        }
        let warps = args.len().div_ceil(self.device.arch().lanes().into());
        (results, report.warp_instructions() as f64 / warps as f64)
    }
}

fn to_bytes(number: f64, ty: Type) -> Vec<u8> {
    match ty {
        types::F32 => (number as f32).to_le_bytes().to_vec(),
        types::F64 => number.to_le_bytes().to_vec(),
        types::I32 => (number as i64 as i32).to_le_bytes().to_vec(),
        _ => (number as u64).to_le_bytes().to_vec(),
    }
}

fn from_bytes(bytes: &[u8], ty: Type) -> f64 {
    match ty {
        types::F32 => f32::from_le_bytes(bytes.try_into().unwrap()).into(),
        types::F64 => f64::from_le_bytes(bytes.try_into().unwrap()),
        _ => i32::from_le_bytes(bytes.try_into().unwrap()).into(),
    }
}
