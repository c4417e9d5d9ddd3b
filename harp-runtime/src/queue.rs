//! Queues: launches and copies that run in order, while the host goes on.

use std::io;
use std::ops::Range;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use harp_jit::{AccessKind, FunctionCode, Kernel, Root};
use thiserror::Error;

use crate::args::Arg;
use crate::buffer::{Buffer, BufferError, Element};
use crate::config::LaunchConfig;
use crate::device::Device;
use crate::error::LaunchError;
use crate::memory::{BufferMemory, Clock, Ticket, Use, lock};
use crate::report::Report;

/// Why a command of a queue failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QueueError {
    /// The host has no thread left for the queue.
    #[error("the host cannot start a thread for the queue: {0}")]
    Thread(io::ErrorKind),
    /// A launch failed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A buffer was not read, written, filled or copied.
    #[error(transparent)]
    Buffer(#[from] BufferError),
    /// The command was not carried out: the thread of its queue panicked.
    #[error("the command was abandoned: the thread of its queue panicked")]
    Abandoned,
}

/// Runs commands on a [`Device`] in order, one after the other, on a thread of its own.
///
/// Each command gives an [`Event`]. What is wrong with a command is found when it runs; the commands behind it run
/// nevertheless. A device may have several queues. Their launches run one at a time, in an unspecified order unless one
/// queue [waits for](Self::wait_for) an event of the other.
///
/// The host knows that a command has ended when it has waited for it or for a later one, or has been told so by its event.
/// Where [races](crate::Checks::races) are checked, it must not use the command's buffers differently before.
///
/// Commands keep the memory of their buffers alive. Dropping a queue waits until its commands have run.
///
/// ```
/// use std::sync::Arc;
///
/// use harp_runtime::Queue;
/// use harp_runtime::prelude::*;
///
/// let mut source = KernelSource::new("increment", "harp32".parse()?);
/// let mut b = KernelBuilder::new(&mut source);
/// let (data, i) = (b.param(ParamType::Pointer), b.global_id(0));
/// let value = b.load_elem(types::I32, data, i);
/// let value = b.ins().iadd_imm_s(value, 1);
/// b.store_elem(value, data, i);
/// b.return_();
/// b.finalize()?;
/// let kernel = Arc::new(source.compile(&CompileOptions::default())?);
///
/// let device = Device::new(DeviceConfig::new("harp32".parse()?))?;
/// let data = device.buffer_zeroed::<i32>(100)?;
/// let queue = Queue::new(&device)?;
/// queue.fill(&data, 7);
/// let launch = queue.launch(&kernel, LaunchConfig::grid_1d(data.len()), &[Arg::from(&data)]);
/// let result = queue.read(&data);
/// queue.finish()?;
/// assert_eq!(result.wait()?, [8; 100]);
/// println!("waited {:?}, took {:?}", launch.times().unwrap().waited(), launch.times().unwrap().took());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Queue {
    device: Device,
    /// None only while the queue is dropped.
    commands: Option<Sender<Command>>,
    worker: Option<JoinHandle<()>>,
    failure: Arc<Mutex<Option<QueueError>>>,
    clock: Arc<Clock>,
}

/// A command, which knows its event.
type Command = Box<dyn FnOnce() + Send>;

/// A buffer that a command uses.
struct Used<'a> {
    memory: &'a BufferMemory,
    bytes: Range<u64>,
    writes: bool,
}

impl<'a> Used<'a> {
    fn read<T: Element>(buffer: &'a Buffer<T>) -> Used<'a> {
        Used { memory: buffer.memory(), bytes: buffer.byte_range(), writes: false }
    }

    fn written<T: Element>(buffer: &'a Buffer<T>) -> Used<'a> {
        Used { writes: true, ..Used::read(buffer) }
    }

    /// What the argument for a parameter points to, if the kernel says that it accesses that.
    fn by_launch(kernel: &Kernel, parameter: usize, arg: &'a Arg) -> Option<Used<'a>> {
        let (memory, bytes) = arg.part()?;
        let root = Root::Param(u32::try_from(parameter).ok()?);
        let functions = kernel.functions().iter().chain([kernel.entry()]);
        let mut accesses = functions
            .flat_map(FunctionCode::accesses)
            .filter(|access| access.roots.contains(&root))
            .map(|access| access.kind)
            .peekable();
        accesses.peek()?;
        Some(Used { memory, bytes, writes: accesses.any(|kind| kind != AccessKind::Load) })
    }
}

impl Queue {
    /// An empty queue of commands for `device`.
    ///
    /// # Errors
    ///
    /// If the host cannot start a thread.
    pub fn new(device: &Device) -> Result<Queue, QueueError> {
        let (commands, received) = mpsc::channel::<Command>();
        let run = move || received.into_iter().for_each(|command| command());
        let builder = thread::Builder::new().name("harp queue".to_owned());
        let worker = builder.spawn(run).map_err(|error| QueueError::Thread(error.kind()))?;
        let (commands, worker, failure) = (Some(commands), Some(worker), Arc::default());
        Ok(Queue { device: device.clone(), commands, worker, failure, clock: Arc::default() })
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Runs a kernel as [`Device::launch`] does.
    pub fn launch(
        &self,
        kernel: &Arc<Kernel>,
        config: LaunchConfig,
        args: &[Arg],
    ) -> Event<Report> {
        let checks = config.checks.or(self.device.config().checks);
        let used: Vec<_> = match checks.is_some_and(|checks| checks.races) {
            true => {
                let args = args.iter().enumerate();
                args.filter_map(|(number, arg)| Used::by_launch(kernel, number, arg)).collect()
            }
            false => Vec::new(),
        };
        let ticket = self.ticket(|| format!("a launch of kernel `{}`", kernel.name()), used);
        let (kernel, args) = (Arc::clone(kernel), args.to_vec());
        self.push(ticket, move |device| Ok(device.launch(&kernel, config, &args)?))
    }

    /// Copies `data` to the buffer.
    pub fn write<T: Element>(&self, buffer: &Buffer<T>, data: impl Into<Vec<T>>) -> Event<()> {
        let ticket = self.transfer("a write", [Used::written(buffer)]);
        let (buffer, data) = (buffer.clone(), data.into());
        self.push(ticket, move |device| Ok(device.write_queued(&buffer, &data)?))
    }

    /// Copies the buffer's elements.
    pub fn read<T: Element>(&self, buffer: &Buffer<T>) -> Event<Vec<T>> {
        let ticket = self.transfer("a read", [Used::read(buffer)]);
        let buffer = buffer.clone();
        self.push(ticket, move |device| Ok(device.read_queued(&buffer)?))
    }

    /// Sets each element of the buffer to `value`.
    pub fn fill<T: Element>(&self, buffer: &Buffer<T>, value: T) -> Event<()> {
        let ticket = self.transfer("a fill", [Used::written(buffer)]);
        let buffer = buffer.clone();
        self.push(ticket, move |device| Ok(device.fill_queued(&buffer, value)?))
    }

    /// Copies all elements of `from` to `to`.
    pub fn copy<T: Element>(&self, from: &Buffer<T>, to: &Buffer<T>) -> Event<()> {
        let ticket = self.transfer("a copy", [Used::read(from), Used::written(to)]);
        let (from, to) = (from.clone(), to.clone());
        self.push(ticket, move |device| {
            let elements = device.read_queued(&from)?;
            Ok(device.write_queued(&to, &elements)?)
        })
    }

    /// Lets later commands begin only when that of `event` has ended, successfully or not.
    pub fn wait_for<T: Send + 'static>(&self, event: &Event<T>) {
        let ticket = self.clock.queue();
        ticket.waits_for(&event.ticket);
        let other = Arc::clone(&event.state);
        self.push(ticket, move |_| {
            drop(other.ended());
            Ok(())
        });
    }

    /// Waits until all commands have ended.
    ///
    /// # Errors
    ///
    /// The first failure since the last call, whether or not somebody has waited for its event.
    pub fn finish(&self) -> Result<(), QueueError> {
        let last = self.push(self.clock.queue(), |_| Ok(()));
        drop(last.state.ended());
        last.ticket.see();
        lock(&self.failure).take().map_or(Ok(()), Err)
    }

    /// The ticket of a copy to or from buffers, or between them.
    fn transfer<'a>(&self, name: &str, used: impl IntoIterator<Item = Used<'a>>) -> Ticket {
        let is_checked = self.device.config().checks.is_some_and(|checks| checks.races);
        let used = used.into_iter().filter(|_| is_checked).collect();
        self.ticket(|| format!("{name} in a queue"), used)
    }

    /// The ticket of a command that uses these buffers, which is noted there.
    fn ticket(&self, name: impl Fn() -> String, used: Vec<Used<'_>>) -> Ticket {
        let ticket = self.clock.queue();
        for Used { memory, bytes, writes } in used {
            memory.uses().add(Use { ticket: ticket.clone(), command: name(), bytes, writes });
        }
        ticket
    }

    fn push<T: Send + 'static>(
        &self,
        ticket: Ticket,
        command: impl FnOnce(&Device) -> Result<T, QueueError> + Send + 'static,
    ) -> Event<T> {
        let state = Arc::new(State::new());
        let event = Event { state: Arc::clone(&state), ticket };
        let ending = Ending { state, failure: Arc::clone(&self.failure) };
        let device = self.device.clone();
        let command = Box::new(move || {
            lock(&ending.state.inner).started = Some(Instant::now());
            let result = command(&device);
            ending.end(result);
        });
        if let Some(commands) = &self.commands {
            // If the thread is gone, the command is dropped, and with it its `Ending`.
            drop(commands.send(command));
        }
        event
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(worker) = self.worker.take() {
            // If it panicked, the events say so.
            drop(worker.join());
        }
        self.clock.queue().see();
    }
}

/// A command of a [`Queue`], which ends some time, with a result of type `T`.
#[derive(Debug)]
pub struct Event<T> {
    state: Arc<State<T>>,
    ticket: Ticket,
}

impl<T> Event<T> {
    /// Waits until the command has ended, and gives its result.
    ///
    /// # Errors
    ///
    /// If the command failed.
    pub fn wait(self) -> Result<T, QueueError> {
        let mut inner = self.state.ended();
        self.ticket.see();
        inner.result.take().unwrap_or(Err(QueueError::Abandoned))
    }

    /// Whether the command has ended.
    pub fn is_done(&self) -> bool {
        self.times().is_some()
    }

    /// When the command was queued, began and ended; none while it has not ended.
    pub fn times(&self) -> Option<EventTimes> {
        let queued = self.state.queued;
        let inner = lock(&self.state.inner);
        let ended = inner.ended?;
        self.ticket.see();
        Some(EventTimes { queued, started: inner.started.unwrap_or(ended), ended })
    }
}

/// The life of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventTimes {
    /// When it was queued.
    pub queued: Instant,
    /// When it began.
    pub started: Instant,
    /// When it ended.
    pub ended: Instant,
}

impl EventTimes {
    /// How long it waited for the commands before it.
    pub fn waited(&self) -> Duration {
        self.started - self.queued
    }

    /// How long it took.
    pub fn took(&self) -> Duration {
        self.ended - self.started
    }
}

#[derive(Debug)]
struct State<T> {
    queued: Instant,
    inner: Mutex<Inner<T>>,
    has_ended: Condvar,
}

#[derive(Debug)]
struct Inner<T> {
    started: Option<Instant>,
    ended: Option<Instant>,
    result: Option<Result<T, QueueError>>,
}

impl<T> State<T> {
    fn new() -> State<T> {
        let inner = Mutex::new(Inner { started: None, ended: None, result: None });
        State { queued: Instant::now(), inner, has_ended: Condvar::new() }
    }

    /// Waits for the command's end.
    fn ended(&self) -> MutexGuard<'_, Inner<T>> {
        let running = |inner: &mut Inner<T>| inner.ended.is_none();
        let inner = lock(&self.inner);
        self.has_ended.wait_while(inner, running).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a command, which comes even if the command panics or is never run.
struct Ending<T> {
    state: Arc<State<T>>,
    failure: Arc<Mutex<Option<QueueError>>>,
}

impl<T> Ending<T> {
    fn end(&self, result: Result<T, QueueError>) {
        if let Err(error) = &result {
            lock(&self.failure).get_or_insert_with(|| error.clone());
        }
        let mut inner = lock(&self.state.inner);
        inner.result = Some(result);
        inner.ended = Some(Instant::now());
        self.state.has_ended.notify_all();
    }
}

impl<T> Drop for Ending<T> {
    fn drop(&mut self) {
        let has_ended = lock(&self.state.inner).ended.is_some();
        if !has_ended {
            self.end(Err(QueueError::Abandoned));
        }
    }
}
