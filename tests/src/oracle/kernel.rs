//! A kernel with the functions that it calls and the data that they read, and the two ways to run it.
//!
//! As [`Case`](super::Case), with a module around the kernel.

use std::fmt;

use harp_isa::ArchId;
use harp_jit::{
    BranchProfile, CompileError, CompileOptions, CompileStats, Kernel, KernelSource, ModuleError,
    ParamType,
};
use harp_runtime::Device;

use super::case::{difference, fmt_launch, launch};
use super::module::{Order, Warps, interpret_items};
use super::{
    Argument, CaseError, Expected, ModuleCase, Observed, OracleError, Trace, argument_block,
};

/// Bytes of a work-item's stack.
const STACK_BYTES: u32 = 16 << 10;

/// A launch of a kernel of a module.
#[derive(Clone, Debug)]
pub struct KernelCase {
    /// The kernel, then the functions that it calls, and data, which nobody writes. The call's arguments
    /// mean nothing.
    pub module: ModuleCase,
    /// Work-items in each dimension.
    pub extents: [u64; 3],
    /// One a parameter of the kernel.
    pub args: Vec<Argument>,
}

/// A kernel that was compiled.
#[derive(Debug)]
pub struct CompiledKernel {
    /// The kernel with its functions.
    pub kernel: Kernel,
    /// What compiling came to: the kernel, then each function.
    pub stats: Vec<CompileStats>,
}

impl KernelCase {
    /// What the interpreter says, and what the work-items executed, where warps have so many lanes.
    ///
    /// # Errors
    ///
    /// If the case holds something that the oracle does not know, or does not end.
    pub fn expected(&self, lanes: u8) -> Result<(Expected, Trace), OracleError> {
        self.interpret(lanes, 0xd5, Order::Forward)
    }

    /// Whether what the launch does is the same whatever stack slots hold before they are written, in
    /// whatever order work-items run, and whatever they see of each other.
    pub fn is_determined(&self, lanes: u8) -> bool {
        let effect = |fill, order| match self.interpret(lanes, fill, order).ok()? {
            (Expected::Memory(contents), _) => Some((contents, Vec::new())),
            (Expected::Trap(mut traps), _) => {
                traps.sort_by_key(|trap| trap.item);
                Some((Vec::new(), traps))
            }
        };
        let one = effect(0xd5, Order::Forward);
        let others = [Order::Forward, Order::Backward, Order::Alone];
        one.is_some() && others.into_iter().all(|order| one == effect(0x3a, order))
    }

    fn interpret(
        &self,
        lanes: u8,
        fill: u8,
        order: Order,
    ) -> Result<(Expected, Trace), OracleError> {
        let buffers = self.args.iter().filter_map(|arg| match arg {
            Argument::Buffer(_, bytes) => Some(bytes.as_slice()),
            Argument::Scalar(..) => None,
        });
        let buffers: Vec<&[u8]> = buffers.collect();
        let block = |addresses: &[u64]| {
            let mut addresses = addresses.iter();
            let args = self.args.iter().map(|arg| match arg {
                Argument::Buffer(..) => *addresses.next().expect("one for each buffer"),
                Argument::Scalar(_, bits) => *bits,
            });
            argument_block(self.extents, args)
        };
        let warps = Warps { extents: self.extents, lanes: lanes.into(), order };
        let items = interpret_items(&self.module, warps, &buffers, block, (STACK_BYTES, fill))?;
        let expected = match items.traps.is_empty() {
            true => Expected::Memory(items.buffers),
            false => Expected::Trap(items.traps),
        };
        Ok((expected, items.trace))
    }

    /// Compiles kernel and functions. A profile is the kernel's alone: with one, functions are compiled
    /// without, for the same strategy, or `Static` instead of `Profile`.
    ///
    /// # Errors
    ///
    /// If they do not compile.
    pub fn compile(
        &self,
        arch: ArchId,
        options: CompileOptions,
    ) -> Result<CompiledKernel, ModuleError> {
        let options = CompileOptions { stack_bytes: STACK_BYTES, ..options };
        let of_functions = options.profile.is_some().then(|| options.without_profile());
        let params: Vec<ParamType> = self.args.iter().map(Argument::ty).collect();
        let kernel = self.module.functions[0].clone();
        let source =
            KernelSource::from_function(kernel, arch, &params).map_err(CompileError::from)?;
        let (module, functions) = self.module.build(arch, options, Some(&source), of_functions)?;
        let kernel = module.compile_kernel(&source)?;
        let stats = std::iter::once(kernel.stats()).chain(functions).collect();
        Ok(CompiledKernel { kernel, stats })
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

    /// The same with what the kernel's branches did, unless it traps.
    ///
    /// # Errors
    ///
    /// As [`observed`](Self::observed).
    pub fn profiled(
        &self,
        kernel: &Kernel,
        device: &mut Device,
    ) -> Result<(Observed, Option<BranchProfile>), CaseError> {
        let observed = launch(device, self.extents, &self.args, |device, config, args| {
            device.launch(kernel, config.with_branch_profile(), args)
        })?;
        let profile = match &observed {
            Observed::Memory(_, report) => report.branches.clone(),
            Observed::Trap(_) => None,
        };
        Ok((observed, profile))
    }

    /// Launches a compiled kernel, which may take so many instructions.
    ///
    /// # Errors
    ///
    /// If it could not start.
    pub fn observed_within(
        &self,
        kernel: &Kernel,
        device: &mut Device,
        fuel: u64,
    ) -> Result<Observed, CaseError> {
        launch(device, self.extents, &self.args, |device, config, args| {
            device.launch(kernel, config.with_fuel(fuel), args)
        })
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

impl fmt::Display for KernelCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_launch(f, self.extents, &self.args)?;
        for arg in &self.args {
            if let Argument::Buffer(_, bytes) = arg {
                writeln!(f, "; buffer: {bytes:02x?}")?;
            }
        }
        self.module.fmt_module(f)
    }
}
