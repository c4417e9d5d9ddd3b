//! A device outside of the machine, which gets the words that lanes store to its addresses.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::notation::lanes_of;

/// A device that takes the words that lanes store to the addresses of
/// [`Machine::set_device`](crate::Machine::set_device). Loads from there, atomic operations and other stores than of
/// aligned words trap as they do without a device.
///
/// Cores on several host threads share it.
pub trait Device: Send {
    /// Lanes of a warp have stored words.
    fn store(&mut self, store: &DeviceStore<'_>);
}

/// Words that the lanes of a warp have stored to a device with one instruction.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct DeviceStore<'a> {
    /// The core.
    pub core: u16,
    /// The warp.
    pub warp: u8,
    /// The instruction's address.
    pub pc: u64,
    /// The lanes that have stored, a bit each.
    pub executing: u64,
    /// The addresses by lane. Those of other lanes than the executing ones mean nothing.
    pub addresses: &'a [u64],
    /// The words by lane, as the addresses.
    pub values: &'a [u64],
}

impl DeviceStore<'_> {
    /// What each lane has stored, the lowest lane first.
    pub fn lanes(&self) -> impl Iterator<Item = LaneStore> {
        let DeviceStore { executing, addresses, values, .. } = *self;
        lanes_of(executing).map(move |lane| LaneStore {
            lane,
            address: addresses[usize::from(lane)],
            value: values[usize::from(lane)],
        })
    }
}

/// A word that a lane has stored to a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaneStore {
    /// The lane.
    pub lane: u8,
    /// The address.
    pub address: u64,
    /// The word.
    pub value: u64,
}

/// A device that cores share, and its addresses.
#[derive(Clone)]
pub(crate) struct SharedDevice {
    pub(crate) addresses: Range<u64>,
    pub(crate) device: Arc<Mutex<dyn Device>>,
}

impl SharedDevice {
    pub(crate) fn store(&self, store: &DeviceStore<'_>) {
        self.device.lock().unwrap_or_else(PoisonError::into_inner).store(store);
    }
}

impl fmt::Debug for SharedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedDevice").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}
