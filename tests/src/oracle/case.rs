//! A kernel with everything that a launch of it needs, and the two ways to run it.
//!
//! What a NaN's bits are is specified neither by CLIF nor by the machine, so every NaN in a float
//! buffer is replaced by one NaN before memories are compared. Kernels must not turn a NaN's bits,
//! its sign included, into anything else.

use std::fmt;

use cranelift_codegen::ir::{Function, Type, types};
use harp_emu::TrapKind;
use harp_isa::{ArchId, WordSize};
use harp_jit::{CompileError, CompileOptions, Kernel, KernelSource, OptLevel, ParamType};
use harp_runtime::{
    Arg, Buffer, BufferError, Device, DeviceConfig, DeviceError, LaunchConfig, LaunchError,
    LaunchTrap, Report,
};
use thiserror::Error;

use super::{FlatMemory, Grid, ItemTrap, OracleError, Stop, run};
use crate::functions::checked;

/// Instructions that a launch may take: far more than any kernel here needs.
pub(super) const FUEL: u64 = 20_000_000;

/// What a buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Elements {
    /// Integers of any size: compared bit for bit.
    Ints,
    /// Floats of 4 bytes.
    F32,
    /// Floats of 8 bytes.
    F64,
}

impl Elements {
    /// Those of buffers with values of one type.
    pub fn of(ty: Type) -> Elements {
        match ty {
            types::F32 => Elements::F32,
            types::F64 => Elements::F64,
            _ => Elements::Ints,
        }
    }
}

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Argument {
    /// A pointer to a buffer with this content.
    Buffer(Elements, Vec<u8>),
    /// The bits of a number. There are no pointers among them.
    Scalar(ParamType, u64),
}

impl Argument {
    /// The type of the parameter that takes it.
    pub fn ty(&self) -> ParamType {
        match self {
            Argument::Buffer(..) => ParamType::Pointer,
            Argument::Scalar(ty, _) => *ty,
        }
    }
}

/// A launch: the kernel as it was built, the grid and the arguments.
#[derive(Clone, Debug)]
pub struct Case {
    /// The kernel.
    pub func: Function,
    /// The word of the machines that it can run on.
    pub word: WordSize,
    /// Work-items in each dimension.
    pub extents: [u64; 3],
    /// One a parameter.
    pub args: Vec<Argument>,
}

/// What a launch should do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The final contents of the buffers, NaNs made equal.
    Memory(Vec<Vec<u8>>),
    /// One of these traps, whichever comes first. There is at least one.
    Trap(Vec<ItemTrap>),
}

/// What a launch did.
#[derive(Debug)]
pub enum Observed {
    /// The final contents of the buffers, NaNs made equal.
    Memory(Vec<Vec<u8>>, Box<Report>),
    /// It trapped.
    Trap(Box<LaunchTrap>),
}

/// Why a case did not run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The kernel did not compile.
    #[error(transparent)]
    Compile(#[from] Box<CompileError>),
    /// The oracle failed.
    #[error(transparent)]
    Oracle(#[from] OracleError),
    /// There is no machine.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// There is no memory.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The launch did not happen.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

impl Case {
    /// What the oracle says.
    ///
    /// # Errors
    ///
    /// If the oracle cannot say it.
    pub fn expected(&self) -> Result<Expected, CaseError> {
        let mut memory = FlatMemory::default();
        let mut words = Vec::new();
        for arg in &self.args {
            words.push(match arg {
                Argument::Buffer(_, bytes) => memory.allocate(bytes.clone()),
                Argument::Scalar(_, bits) => *bits,
            });
        }
        let grid = Grid { extents: self.extents, args: &words, word: self.word };
        let traps = run(&self.func, grid, &mut memory)?;
        if !traps.is_empty() {
            return Ok(Expected::Trap(traps));
        }
        let mut contents = Vec::new();
        for (arg, &address) in self.args.iter().zip(&words) {
            if let Argument::Buffer(elements, _) = arg {
                let bytes = memory.contents(address).expect("it was allocated above");
                contents.push(canonical(*elements, bytes.to_vec()));
            }
        }
        Ok(Expected::Memory(contents))
    }

    /// Compiles the kernel, with all checks.
    ///
    /// # Errors
    ///
    /// If it does not compile.
    pub fn compile(&self, arch: ArchId, opt_level: OptLevel) -> Result<Kernel, Box<CompileError>> {
        self.compile_with(arch, &CompileOptions { opt_level, ..checked() })
    }

    /// Compiles the kernel with the options given.
    ///
    /// # Errors
    ///
    /// If it does not compile.
    pub fn compile_with(
        &self,
        arch: ArchId,
        options: &CompileOptions,
    ) -> Result<Kernel, Box<CompileError>> {
        let params: Vec<_> = self.args.iter().map(Argument::ty).collect();
        let source = KernelSource::from_function(self.func.clone(), arch, &params);
        let compiled = source.map_err(CompileError::from).and_then(|s| s.compile(options));
        compiled.map_err(Box::new)
    }

    /// Launches the compiled kernel.
    ///
    /// # Errors
    ///
    /// If it could not start.
    pub fn observed(&self, kernel: &Kernel, device: &mut Device) -> Result<Observed, CaseError> {
        launch(device, self.extents, &self.args, |device, config, args| {
            device.launch(kernel, config, args)
        })
    }

    /// The same for a launch by `by`.
    ///
    /// # Errors
    ///
    /// As [`observed`](Self::observed).
    pub fn observed_by(
        &self,
        device: &mut Device,
        by: impl FnOnce(&mut Device, LaunchConfig, &[Arg<'_>]) -> Result<Report, LaunchError>,
    ) -> Result<Observed, CaseError> {
        launch(device, self.extents, &self.args, by)
    }

    /// How what a launch did differs from what it should have done on a machine with this number
    /// of lanes and one core; none if it does not.
    pub fn difference(
        &self,
        expected: &Expected,
        observed: &Observed,
        lanes: u64,
    ) -> Option<String> {
        difference(expected, observed, self.extents, lanes)
    }
}

/// As [`Case::difference`], after a launch of so many work-items.
pub(super) fn difference(
    expected: &Expected,
    observed: &Observed,
    extents: [u64; 3],
    lanes: u64,
) -> Option<String> {
    match (expected, observed) {
        (Expected::Memory(wanted), Observed::Memory(given, _)) => {
            different_memory(wanted, given, extents)
        }
        (Expected::Trap(traps), Observed::Trap(trap)) => different_trap(traps, trap, lanes),
        (Expected::Memory(_), Observed::Trap(trap)) => Some(format!("it trapped: {trap}")),
        (Expected::Trap(traps), Observed::Memory(..)) => {
            Some(format!("it did not trap: {:?} was expected", traps[0]))
        }
    }
}

fn different_memory(wanted: &[Vec<u8>], given: &[Vec<u8>], extents: [u64; 3]) -> Option<String> {
    let items: u64 = extents.iter().product();
    let buffer = wanted.iter().zip(given).position(|(a, b)| a != b)?;
    let (wanted, given) = (&wanted[buffer], &given[buffer]);
    let at = wanted.iter().zip(given).position(|(a, b)| a != b).unwrap_or(0);
    let start = at / 8 * 8;
    let end = wanted.len().min(start + 8);
    let differing = wanted.iter().zip(given).filter(|(a, b)| a != b).count();
    let slice = (wanted.len() as u64 / items.max(1)).max(1);
    Some(format!(
        "buffer {buffer}, byte {at} (byte {} of work-item {} if slices are equal): {:02x?} \
             expected, {:02x?} found; {differing} bytes of {} differ",
        at as u64 % slice,
        at as u64 / slice,
        &wanted[start..end],
        &given[start..end],
        wanted.len(),
    ))
}

/// Launches a kernel with new buffers.
pub(super) fn launch(
    device: &mut Device,
    extents: [u64; 3],
    args: &[Argument],
    by: impl FnOnce(&mut Device, LaunchConfig, &[Arg<'_>]) -> Result<Report, LaunchError>,
) -> Result<Observed, CaseError> {
    let mut buffers: Vec<Option<Buffer<u8>>> = Vec::new();
    for arg in args {
        buffers.push(match arg {
            Argument::Buffer(_, bytes) => Some(device.buffer_from_slice(bytes)?),
            Argument::Scalar(..) => None,
        });
    }
    let words = args.iter().zip(&buffers).map(|(arg, buffer)| match (arg, buffer) {
        (Argument::Scalar(ty, bits), _) => scalar(*ty, *bits),
        (Argument::Buffer(..), buffer) => buffer.as_ref().map_or(Arg::address(0), Arg::from),
    });
    let words: Vec<_> = words.collect();
    let [x, y, z] = extents.map(|extent| extent as usize);
    let config = LaunchConfig::grid_3d(x, y, z).with_fuel(FUEL);
    let report = match by(device, config, &words) {
        Ok(report) => report,
        Err(LaunchError::Trap(trap)) => return Ok(Observed::Trap(trap)),
        Err(error) => return Err(error.into()),
    };
    let mut contents = Vec::new();
    for (arg, buffer) in args.iter().zip(&buffers) {
        if let (Argument::Buffer(elements, _), Some(buffer)) = (arg, buffer) {
            contents.push(canonical(*elements, device.read(buffer)?));
        }
    }
    Ok(Observed::Memory(contents, Box::new(report)))
}

/// Whether a trap is one of those that were expected, and all its lanes are among theirs.
fn different_trap(traps: &[ItemTrap], trap: &LaunchTrap, lanes: u64) -> Option<String> {
    let same = |stop: Stop| match (stop, &trap.trap.kind, trap.trap_code.as_deref()) {
        (Stop::BadAddress, TrapKind::BadAddress { .. }, _) => true,
        (Stop::DivideByZero, TrapKind::DivideByZero, _) => true,
        (Stop::DivideByZero, TrapKind::GuestTrap, Some("int_divz")) => true,
        (Stop::Code(code), TrapKind::GuestTrap, Some(given)) => code.to_string() == given,
        _ => false,
    };
    let fitting = traps.iter().filter(|expected| same(expected.stop));
    let allowed = fitting.fold(0_u64, |set, expected| set | 1 << (expected.item % lanes));
    if allowed != 0 && trap.trap.lanes != 0 && trap.trap.lanes & !allowed == 0 {
        return None;
    }
    Some(format!("it trapped otherwise: {trap}; expected one of {traps:?}"))
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_launch(f, self.extents, &self.args)?;
        write!(f, "{}", self.func.display())
    }
}

/// The grid and the arguments.
pub(super) fn fmt_launch(
    f: &mut fmt::Formatter<'_>,
    extents: [u64; 3],
    args: &[Argument],
) -> fmt::Result {
    writeln!(f, "; grid {extents:?}")?;
    for (index, arg) in args.iter().enumerate() {
        match arg {
            Argument::Buffer(elements, bytes) => {
                writeln!(f, "; argument {index}: {} bytes of {elements:?}", bytes.len())?;
            }
            Argument::Scalar(ty, bits) => writeln!(f, "; argument {index}: {ty} {bits:#x}")?,
        }
    }
    Ok(())
}

/// A machine of one core for cases.
///
/// # Errors
///
/// If the host does not give the memory.
pub fn device(arch: ArchId) -> Result<Device, CaseError> {
    let mut config = DeviceConfig::new(arch);
    config.memory_bytes = 4 << 20;
    Ok(Device::new(config)?)
}

fn scalar(ty: ParamType, bits: u64) -> Arg<'static> {
    match ty {
        ParamType::I8 => Arg::from(bits as u8),
        ParamType::I16 => Arg::from(bits as u16),
        ParamType::I32 => Arg::from(bits as u32),
        ParamType::I64 => Arg::from(bits),
        ParamType::F32 => Arg::from(f32::from_bits(bits as u32)),
        ParamType::F64 => Arg::from(f64::from_bits(bits)),
        _ => Arg::address(bits),
    }
}

fn canonical(elements: Elements, mut bytes: Vec<u8>) -> Vec<u8> {
    match elements {
        Elements::Ints => {}
        Elements::F32 => {
            let (words, _) = bytes.as_chunks_mut::<4>();
            let nans = words.iter_mut().filter(|word| f32::from_le_bytes(**word).is_nan());
            nans.for_each(|word| *word = f32::NAN.to_le_bytes());
        }
        Elements::F64 => {
            let (words, _) = bytes.as_chunks_mut::<8>();
            let nans = words.iter_mut().filter(|word| f64::from_le_bytes(**word).is_nan());
            nans.for_each(|word| *word = f64::NAN.to_le_bytes());
        }
    }
    bytes
}
