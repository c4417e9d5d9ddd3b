//! How a device's machines run programs.

use harp_emu::Machine;
#[cfg(feature = "native")]
use harp_isa::abi::KernelEntry;

use crate::image::KernelImage;

/// How a device runs kernels. The results are the same, down to counts and traps; only which NaN a float operation yields
/// is unspecified in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Tier {
    /// All instructions are interpreted.
    Interpreter,
    /// Instructions are translated to the host's when they are first reached: slow to begin, for tests. Where there is
    /// no code generator for the host, or the feature `native` is off, they are interpreted.
    Native,
    /// As `Native`, but what is translated at a time ends anywhere, and each visit to it ends at another place: for tests that
    /// what host code leaves is right.
    Leaving,
    /// As `Tiered`, but after a few instructions, and the thread that launches translates: for tests that what is translated
    /// of what was seen is right.
    Recorded,
    /// Instructions are interpreted, and translated where that goes on for long. A thread of the device translates, some
    /// milliseconds for each hot loop, once a device.
    #[default]
    Tiered,
}

/// What a device has translated.
#[derive(Debug)]
pub(crate) struct HostCode {
    #[cfg(feature = "native")]
    native: Option<harp_native::Native>,
}

#[cfg(feature = "native")]
impl HostCode {
    pub(crate) fn new(tier: Tier) -> HostCode {
        use harp_native::{Native, USUAL, When};
        let native = match tier {
            Tier::Interpreter => None,
            Tier::Native => Native::new(When::AtOnce),
            Tier::Leaving => Native::new(When::Leaving),
            Tier::Recorded => Native::new(When::Recorded),
            Tier::Tiered => Native::new(USUAL),
        };
        HostCode { native }
    }

    /// Lets a machine use it, which runs that image if it is for a launch. Nobody sees the registers of a launch.
    pub(crate) fn serve(&self, machine: &mut Machine<'_>, image: Option<&KernelImage>) {
        if let Some(native) = &self.native {
            let native = match image {
                Some(image) => native.for_calls(&harp_native::Calls {
                    function: image.kernel().start,
                    bytes: image.kernel().end - image.kernel().start,
                    arguments: KernelEntry::GLOBAL_ID_X.index() + 1,
                    returns: image.returns(),
                    held_back: Some(harp_native::HeldBack {
                        behind: image.held_back(),
                        reads: harp_library::kept_registers(image.image().arch),
                    }),
                }),
                None => native.clone(),
            };
            let tier: std::sync::Arc<dyn harp_emu::HostTier> = std::sync::Arc::new(native);
            machine.set_host_tier(&tier);
        }
    }

    pub(crate) fn stats(&self) -> Option<harp_native::TierStats> {
        self.native.as_ref().map(harp_native::Native::stats)
    }
}

#[cfg(not(feature = "native"))]
impl HostCode {
    pub(crate) fn new(_: Tier) -> HostCode {
        HostCode {}
    }

    pub(crate) fn serve(&self, _: &mut Machine<'_>, _: Option<&KernelImage>) {}
}
