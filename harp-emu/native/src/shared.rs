//! What the cores of a tier have in common, and the thread that translates.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_codegen::settings::{self, Configurable};

use crate::known::{Program, Programs};
use crate::record::Pace;
use crate::rules::MANY_REGISTERS;
use crate::stats::TierStats;
use crate::translated::Formed;

/// When regions are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum When {
    /// When a warp first gets there.
    AtOnce,
    /// When a warp first gets there. Regions have room for few or many instructions, and each visit ends at another one of
    /// the places at which host code looks whether it must leave, if control comes there: for tests that what it leaves is
    /// right.
    Leaving,
    /// When the interpreter has issued a few instructions there, and recorded a few blocks. The thread that runs the
    /// machine translates: for tests that what comes of recordings is right.
    Recorded,
    /// When the interpreter has issued about this many instructions there. Another thread translates, one region after
    /// the other, and the interpreter goes on meanwhile.
    After(u64),
}

impl When {
    pub(crate) fn is_at_once(self) -> bool {
        self.pace().is_none()
    }

    /// How it is recorded what is to be translated, if it is.
    pub(crate) fn pace(self) -> Option<Pace> {
        match self {
            When::AtOnce | When::Leaving => None,
            When::Recorded => Some(Pace::SHORT),
            When::After(instructions) => Some(Pace::usual(instructions)),
        }
    }
}

/// The instructions after which a region is worth its translation, as a rule.
pub const USUAL: When = When::After(1 << 17);

/// The host, for machines with few registers and for others.
type Isas = [OwnedTargetIsa; 2];

/// What a tier's clones and cores share.
pub(crate) struct Shared {
    pub(crate) when: When,
    isas: &'static Isas,
    /// The number of changes to the regions.
    pub(crate) version: AtomicU64,
    state: Mutex<State>,
    /// The other thread is done.
    done: Condvar,
    /// Takes work to the other thread, if it was started.
    worker: Mutex<Option<Sender<Work>>>,
}

/// What the other thread does.
type Work = Box<dyn FnOnce() + Send>;

/// A thread that does what comes, until the sender is dropped. `None` if no thread can be started.
fn worker() -> Option<Sender<Work>> {
    let (sender, receiver) = mpsc::channel::<Work>();
    let thread = std::thread::Builder::new().name("harp-native".to_owned());
    thread.spawn(move || receiver.into_iter().for_each(|work| work())).ok()?;
    Some(sender)
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("when", &self.when).finish_non_exhaustive()
    }
}

/// What changes in a tier.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) programs: Programs,
    /// Whether the other thread is translating.
    pub(crate) is_busy: bool,
    pub(crate) stats: TierStats,
}

impl Shared {
    /// Without regions. `None` if there is no code for this host.
    pub(crate) fn new(when: When) -> Option<Shared> {
        static ISAS: LazyLock<Option<Isas>> =
            LazyLock::new(|| Some([host("none")?, host("speed")?]));
        let isas = ISAS.as_ref()?;
        let (version, state, done) = Default::default();
        // A new thread may have to wait for milliseconds until it first runs, one that waits for work does not: so it is
        // there before there is any.
        let worker = Mutex::new(matches!(when, When::After(_)).then(worker).flatten());
        Some(Shared { when, isas, version, state, done, worker })
    }

    /// What it has done so far, what is being translated included.
    pub(crate) fn stats(&self) -> TierStats {
        let state = self.done.wait_while(self.state(), |state| state.is_busy);
        state.unwrap_or_else(PoisonError::into_inner).stats.clone()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Translates a region of a program. Returns whether that was possible.
    pub(crate) fn translate(&self, program: Program, formed: Formed) -> bool {
        let (head, gprs) = (formed.region.head, formed.shape().arch.gprs());
        // With few registers the mid-end makes code slower, up to 1.5 times.
        let isa = &self.isas[usize::from(gprs >= MANY_REGISTERS)];
        // The code generator may panic where it should say that it cannot: then the place is interpreted, too.
        let made = catch_unwind(AssertUnwindSafe(|| formed.translate(isa))).unwrap_or_default();
        let mut state = self.state();
        let State { programs, stats, .. } = &mut *state;
        let known = programs.of(program);
        let Some(translated) = made else {
            known.refused.insert(head);
            stats.untranslated += 1;
            return false;
        };
        stats.regions += 1;
        stats.code_bytes += translated.function.bytes;
        stats.time += translated.time;
        stats.longest = stats.longest.max(translated.time);
        known.regions.push(Arc::new(translated));
        drop(state);
        self.version.fetch_add(1, Ordering::Release);
        true
    }

    /// Translates a region that was recorded, or has another thread do that, unless it is at work. Where no thread can be
    /// started, the place gets hot again.
    pub(crate) fn translate_recorded(self: &Arc<Shared>, program: Program, formed: Formed) {
        if self.when == When::Recorded {
            self.translate(program, formed);
            return;
        }
        if std::mem::replace(&mut self.state().is_busy, true) {
            return;
        }
        let busy = Busy(self.clone());
        let work = Box::new(move || {
            busy.0.translate(program, formed);
        });
        let mut sender = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        if sender.is_none() {
            *sender = worker();
        }
        // Work that nobody takes is dropped.
        let _ = sender.as_ref().map(|sender| sender.send(work));
    }
}

/// As long as it lives, the other thread is at work for the tier.
struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.state().is_busy = false;
        self.0.done.notify_all();
    }
}

/// The host, if host code may be made for it: with the vector instructions that all of x86-64's descendants of the
/// last fifteen years have. On others nobody has compared the results yet.
fn host(opt_level: &str) -> Option<OwnedTargetIsa> {
    if !cfg!(all(target_arch = "x86_64", target_endian = "little", target_pointer_width = "64")) {
        return None;
    }
    let mut flags = settings::builder();
    for (name, value) in [
        ("use_colocated_libcalls", "false"),
        ("is_pic", "false"),
        ("opt_level", opt_level),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        flags.set(name, value).ok()?;
    }
    let isa = cranelift_native::builder().ok()?.finish(settings::Flags::new(flags)).ok()?;
    let has = |name: &str| {
        isa.isa_flags().iter().any(|flag| flag.name == name && flag.as_bool() == Some(true))
    };
    (has("has_sse41") && has("has_sse42") && has("has_popcnt")).then_some(isa)
}
