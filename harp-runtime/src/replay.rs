//! Launches that failed, in files, to be run again.

use std::path::Path;

use harp_jit::Kernel;

use crate::args::{Arg, Arguments};
use crate::config::{DeviceConfig, LaunchConfig};
use crate::device::Device;
use crate::error::LaunchError;
use crate::kernel::KernelParts;
use crate::observe::LaunchObserver;
use crate::report::Report;
use crate::snapshot::{ReplayError, Snapshot};

/// A launch, with everything that it depends on: the kernel, the device's parameters, the memory with all
/// buffers, the arguments. It can be launched again, now or from a [file](Self::write), and does the same: with one core
/// exactly, with several as far as the kernel does not depend on their order. Limits of time, and cancelling, depend on
/// the host.
///
/// Files are for the version of this library that wrote them. A device [writes](DeviceConfig::replays) them itself when
/// launches fail, and the command `harp replay` runs them.
///
/// ```
/// use harp_runtime::prelude::*;
/// use harp_runtime::{Replay, SavedReplay};
///
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path().join("replays");
/// let arch: ArchId = "harp32".parse()?;
/// let mut source = KernelSource::new("reciprocals", arch);
/// let mut b = KernelBuilder::new(&mut source);
/// let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
/// let (x, all) = (b.load(data, i), b.ins().iconst(types::I32, 1000));
/// let quotient = b.ins().sdiv(all, x);
/// b.store(data, i, quotient);
/// b.return_();
/// b.finalize()?;
/// let kernel = source.compile(&CompileOptions::default())?;
///
/// let device = Device::new(DeviceConfig { replays: Some(folder), ..DeviceConfig::new(arch) })?;
/// let data = device.buffer_from_slice(&[1, 2, 0])?;
/// let error = device.launch(&kernel, LaunchConfig::grid_1d(3), &[Arg::from(&data)]).unwrap_err();
///
/// let Some(SavedReplay::File(path)) = error.replay() else { panic!("the folder can be written") };
/// let again = Replay::read(path)?.launch()?.unwrap_err();
/// assert_eq!(again.to_string(), error.to_string().lines().next().unwrap());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Replay {
    launch: Snapshot,
}

impl Replay {
    /// The launch that [`Device::launch`] would do with the same arguments now. Waits until no launch runs.
    ///
    /// # Errors
    ///
    /// If the arguments do not match the kernel's parameters.
    pub fn new(
        device: &Device,
        kernel: &Kernel,
        config: LaunchConfig,
        args: &[Arg],
    ) -> Result<Replay, LaunchError> {
        Arguments::new(device, KernelParts::new(kernel, &|_, _| None), args, false)?;
        let _nobody_else = device.bottom();
        let launch = Snapshot::capture(device, kernel, config, args);
        Ok(Replay { launch: launch.expect("all arguments are of this device") })
    }

    /// The replay in a file.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is damaged, or was written by another version of this library.
    pub fn read(path: impl AsRef<Path>) -> Result<Replay, ReplayError> {
        Ok(Replay { launch: Snapshot::read(path.as_ref())? })
    }

    /// Writes it to a file, whose folder is made if it is not there.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<(), ReplayError> {
        self.launch.write(path.as_ref())
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.launch.kernel
    }

    /// What was launched.
    pub fn launch_config(&self) -> LaunchConfig {
        self.launch.launch
    }

    /// The same launch with another configuration: with other checks, for instance.
    pub fn with_launch_config(mut self, config: LaunchConfig) -> Replay {
        self.launch.launch = config;
        self
    }

    /// The parameters of the device.
    pub fn device_config(&self) -> &DeviceConfig {
        &self.launch.device
    }

    /// Launches it on a device of its own. The inner result is the launch's.
    ///
    /// # Errors
    ///
    /// If there can be no such device.
    pub fn launch(&self) -> Result<Result<Report, LaunchError>, ReplayError> {
        let restored = self.launch.restore()?;
        Ok(restored.device.launch(self.kernel(), self.launch.launch, &restored.args))
    }

    /// As [`launch`](Self::launch), and shows `observer` every instruction.
    ///
    /// # Errors
    ///
    /// As [`launch`](Self::launch).
    pub fn launch_observed(
        &self,
        observer: &mut impl LaunchObserver,
    ) -> Result<Result<Report, LaunchError>, ReplayError> {
        let restored = self.launch.restore()?;
        let (kernel, config) = (self.kernel(), self.launch.launch);
        Ok(restored.device.launch_observed(kernel, config, &restored.args, observer))
    }
}
