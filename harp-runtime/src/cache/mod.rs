//! A cache of compiled kernels, in memory and in files.
//!
//! What a kernel is compiled from makes its key (`key`), so nothing in a cache is ever out of date: other contents,
//! options, machines or compilers have other keys. In memory the kernels that were used last are kept (`recent`), on disk
//! all (`disk`), in files of which nothing is believed that was not checked.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use harp_isa::ArchId;
use harp_jit::{CompileError, CompileOptions, Compiler, Kernel, KernelSource};

mod disk;
mod key;
mod recent;

use disk::Disk;
use key::Key;
use recent::Recent;

use crate::sealed::FileError;

/// How many kernels a cache keeps in memory, unless another number is given.
const KERNELS: usize = 1024;

/// How many compilers a cache keeps, each with the library routines that it has compiled.
const COMPILERS: usize = 16;

/// Compiles kernels, each once.
///
/// A kernel that has been compiled is kept in memory, and in a folder if the cache has [one](Self::on_disk), where later
/// runs of the program find it. It is found by its contents: its CLIF with the places in the source and the messages,
/// the names and types of its parameters, what it prints, its machine, the options, and the compiler. A kernel that
/// differs in anything is another kernel.
///
/// Several threads may share a cache. If they ask for the same kernel at the same time, one compiles it, and the others
/// wait. Errors are not kept: who asks later compiles again.
///
/// Kernels of a [`Module`](harp_jit::Module) depend on all that the module holds, so they are not cached here. They can
/// be [saved](Kernel#saving-and-loading) by whoever knows when the module has changed.
///
/// ```
/// use harp_runtime::prelude::*;
///
/// let arch: ArchId = "harp32".parse()?;
/// let double = || -> Result<KernelSource, BuildError> {
///     let mut source = KernelSource::new("double", arch);
///     let mut b = KernelBuilder::new(&mut source);
///     let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
///     let x = b.load(data, i);
///     let x = b.ins().iadd(x, x);
///     b.store(data, i, x);
///     b.return_();
///     b.finalize()?;
///     Ok(source)
/// };
///
/// let cache = CodeCache::new();
/// let device = Device::new(DeviceConfig::new(arch))?;
/// let data = device.buffer_from_slice(&[1, 2, 3])?;
/// for _ in 0..10 {
///     // The kernel is built each time, but compiled only the first time.
///     let kernel = cache.compile(&double()?, &CompileOptions::default())?;
///     device.launch(&kernel, LaunchConfig::grid_1d(3), &[Arg::from(&data)])?;
/// }
/// assert_eq!(device.read(&data)?, [1024, 2048, 3072]);
/// let stats = cache.stats();
/// assert_eq!((stats.compiled, stats.from_memory), (1, 9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CodeCache {
    disk: Option<Disk>,
    shared: Mutex<Shared>,
}

/// What asking for a kernel gives.
type Outcome = Result<Arc<Kernel>, CompileError>;

/// What the threads share that use a cache.
#[derive(Debug)]
struct Shared {
    kernels: Recent<Key, Arc<Kernel>>,
    compilers: Recent<(ArchId, CompileOptions), Arc<Compiler>>,
    /// Kernels that are not there yet, on which some thread works.
    pending: HashMap<Key, Arc<OnceLock<Outcome>>>,
    stats: CacheStats,
}

/// What a cache has done. Each [`CodeCache::compile`] counts once among the first four.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheStats {
    /// Kernels that were compiled.
    pub compiled: u64,
    /// Kernels that were in memory, or that another thread provided in the meantime.
    pub from_memory: u64,
    /// Kernels that were loaded from files.
    pub from_disk: u64,
    /// Kernels that do not compile.
    pub failed: u64,
    /// Files that were not used, because they are damaged, or of something else. The kernels were compiled.
    pub rejected: u64,
    /// How often the disk failed to read or write a file.
    pub disk_errors: u64,
    /// Kernels that are not in memory any more, because others were used later.
    pub evicted: u64,
}

/// How a kernel was got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Memory,
    Disk,
    Compiled,
}

impl CodeCache {
    /// A cache in memory. It keeps the 1024 kernels that were used last.
    pub fn new() -> CodeCache {
        let shared = Shared {
            kernels: Recent::new(KERNELS),
            compilers: Recent::new(COMPILERS),
            pending: HashMap::new(),
            stats: CacheStats::default(),
        };
        CodeCache { disk: None, shared: Mutex::new(shared) }
    }

    /// A cache in memory and in files in this folder, which is made when the first kernel is written.
    ///
    /// Several processes may use the folder at the same time, also ones with different versions of this crate. Files are
    /// never removed, but they may be at any time. Those that are damaged, of another version, or no such files at all
    /// are replaced. If files cannot be read or written, the kernels are compiled: that is counted in
    /// [`stats`](Self::stats), and a warning of the crate `log` has the reason.
    ///
    /// A hash protects the files from accidents, not from people: who can write to the folder decides what runs.
    ///
    /// ```
    /// use harp_runtime::prelude::*;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path().join("kernels");
    /// # let mut source = KernelSource::new("nothing", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// # b.return_();
    /// # b.finalize()?;
    /// CodeCache::on_disk(&folder).compile(&source, &CompileOptions::default())?;
    /// // In another run of the program:
    /// let cache = CodeCache::on_disk(&folder);
    /// cache.compile(&source, &CompileOptions::default())?;
    /// assert_eq!((cache.stats().compiled, cache.stats().from_disk), (0, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_disk(folder: impl Into<PathBuf>) -> CodeCache {
        CodeCache { disk: Some(Disk::new(folder.into())), ..CodeCache::new() }
    }

    /// The same cache, which keeps at most so many kernels in memory.
    pub fn with_capacity(self, kernels: usize) -> CodeCache {
        let CodeCache { disk, shared } = self;
        let mut shared = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        shared.stats.evicted += shared.kernels.set_capacity(kernels);
        CodeCache { disk, shared: Mutex::new(shared) }
    }

    /// The kernel, compiled with these options: from memory, from a file, or compiled now, as
    /// [`KernelSource::compile`] does.
    ///
    /// A kernel from a file has no record for [`Kernel::check`]. With
    /// [`check_code`](CompileOptions::check_code) it was proved when it was compiled.
    ///
    /// # Errors
    ///
    /// As [`Compiler::compile_kernel`].
    pub fn compile(
        &self,
        source: &KernelSource,
        options: &CompileOptions,
    ) -> Result<Arc<Kernel>, CompileError> {
        let key = Key::new(source, options);
        let pending = {
            let mut shared = self.shared();
            if let Some(kernel) = shared.kernels.get(&key) {
                let kernel = Arc::clone(kernel);
                shared.stats.from_memory += 1;
                return Ok(kernel);
            }
            Arc::clone(shared.pending.entry(key).or_default())
        };
        let mut way = Way::Memory;
        let result = pending.get_or_init(|| {
            if let Some(kernel) = self.load(&key, source) {
                way = Way::Disk;
                return Ok(Arc::new(kernel));
            }
            way = Way::Compiled;
            self.compiler(source.arch(), options).compile_kernel(source).map(Arc::new)
        });
        self.shared().finish(key, way, result);
        if let (Way::Compiled, Ok(kernel)) = (way, result) {
            self.store(&key, kernel);
        }
        result.clone()
    }

    /// What the cache has done so far.
    pub fn stats(&self) -> CacheStats {
        self.shared().stats
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn compiler(&self, arch: ArchId, options: &CompileOptions) -> Arc<Compiler> {
        let key = (arch, options.clone());
        let mut shared = self.shared();
        if let Some(known) = shared.compilers.get(&key) {
            return Arc::clone(known);
        }
        let compiler = Arc::new(Compiler::new(arch, options.clone()));
        shared.compilers.insert(key, Arc::clone(&compiler));
        compiler
    }

    fn load(&self, key: &Key, source: &KernelSource) -> Option<Kernel> {
        let disk = self.disk.as_ref()?;
        disk.load(key, source).unwrap_or_else(|error| {
            self.failed(disk, key, &error);
            None
        })
    }

    fn store(&self, key: &Key, kernel: &Kernel) {
        let Some(disk) = &self.disk else { return };
        if let Err(error) = disk.store(key, kernel) {
            self.failed(disk, key, &error);
        }
    }

    fn failed(&self, disk: &Disk, key: &Key, error: &FileError) {
        log::warn!("code cache: {}: {error}", disk.path(key).display());
        let stats = &mut self.shared().stats;
        match error {
            FileError::Rejected(_) => stats.rejected += 1,
            FileError::Failed(_) | FileError::NotSaved(_) => stats.disk_errors += 1,
        }
    }
}

impl Default for CodeCache {
    fn default() -> CodeCache {
        CodeCache::new()
    }
}

impl Shared {
    /// Counts a result. The thread that got it makes it known to later ones.
    fn finish(&mut self, key: Key, way: Way, result: &Outcome) {
        let stats = &mut self.stats;
        *match (result, way) {
            (Err(_), _) => &mut stats.failed,
            (Ok(_), Way::Memory) => &mut stats.from_memory,
            (Ok(_), Way::Disk) => &mut stats.from_disk,
            (Ok(_), Way::Compiled) => &mut stats.compiled,
        } += 1;
        if way != Way::Memory {
            self.pending.remove(&key);
            if let Ok(kernel) = result {
                stats.evicted += self.kernels.insert(key, Arc::clone(kernel));
            }
        }
    }
}
