//! Rows: registers whose lanes have a constant distance, of which host code keeps lane 0 only. Here they are compared
//! with the machine's registers, and written there.

use std::ops::{BitOr, BitXor};

use harp_emu::RegisterWords;

use crate::class::Class;
use crate::shape::Shape;

/// Registers that are no vectors at the ways in and out of a region.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    /// What each entry expects.
    pub(crate) entries: Vec<Entry>,
    pub(crate) exits: Vec<Exit>,
    /// Registers of which the region may have written all lanes on its way to any exit, as bits.
    pub(crate) stored: u64,
}

/// What an entry expects.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    /// Registers that are no vectors.
    pub(crate) rows: Vec<Row>,
    /// Registers of which it reads all lanes, as bits.
    pub(crate) vectors: u64,
    /// Registers that nobody reads in lanes which are not active, as bits.
    pub(crate) only_active: u64,
}

impl Entry {
    /// Of the `active` lanes, or all of the machine, those that matter in a register.
    pub(crate) fn lanes(&self, reg: u8, active: u64, shape: &Shape) -> u64 {
        if self.only_active >> reg & 1 != 0 { active } else { shape.full() }
    }
}

/// What an exit leaves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    /// Registers that are no vectors, as bits.
    pending: u64,
    /// The distances of their lanes.
    strides: Vec<(u8, u64)>,
    /// What is in lane 0 of those of which it is known.
    firsts: Vec<(u8, u64)>,
    /// Registers that the code has written as vectors, as bits.
    pub(crate) vectors: u64,
    /// Those that the interpreter will write.
    pub(crate) foreign: u64,
    /// The number of the entry at which the region goes on behind the `bar` at which it is left here.
    pub(crate) behind: Option<usize>,
}

impl Exit {
    pub(crate) fn new(rows: &[Row], vectors: u64, foreign: u64, behind: Option<usize>) -> Exit {
        let pending = rows.iter().fold(0, |bits, row| bits | 1 << row.reg);
        let strides = rows.iter().map(|row| (row.reg, row.stride)).collect();
        let firsts = rows.iter().filter_map(|row| Some((row.reg, row.first?))).collect();
        Exit { pending, strides, firsts, vectors, foreign, behind }
    }
}

/// A register that is no vector.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) reg: u8,
    /// What lane 0 holds, if that is known.
    first: Option<u64>,
    /// The distance of lanes.
    stride: u64,
}

impl Row {
    pub(crate) fn new(reg: u8, class: Class) -> Row {
        let stride = class.stride().unwrap_or(0);
        let first = if let Class::Const(value) = class { Some(value) } else { None };
        Row { reg, first, stride }
    }
}

/// Which of a warp's registers hold which rows, and which of them are not written yet.
#[derive(Debug)]
pub(crate) struct Held {
    /// The registers that are known to be written as rows, as bits.
    known: u64,
    /// What was written: lane 0, and the distance of lanes.
    written: [(u64, u64); 64],
    /// The registers that may have become another row since they were written, as bits. Lane 0 is in the warp's frame.
    pending: u64,
    /// The distance of lanes of those.
    strides: [u64; 64],
}

impl Held {
    pub(crate) fn nothing() -> Held {
        Held { known: 0, written: [(0, 0); 64], pending: 0, strides: [0; 64] }
    }

    /// The registers are those of another warp.
    pub(crate) fn begin(&mut self) {
        (self.known, self.pending) = (0, 0);
    }

    /// Somebody else may have written registers. None is pending.
    pub(crate) fn forget(&mut self) {
        debug_assert_eq!(self.pending, 0, "others look at registers that are not written");
        self.known = 0;
    }

    /// Takes what an exit leaves, on whose way code may have `stored` registers. Lane 0 of its rows is in `scalars`, or put
    /// there if it is known. An exit that was the last one before, too, has nothing new.
    #[inline(always)]
    pub(crate) fn take(
        &mut self,
        exit: &Exit,
        stored: u64,
        is_another: bool,
        scalars: &mut [u64; 64],
    ) {
        self.pending = self.pending & !exit.vectors | exit.pending;
        self.known &= !(exit.vectors | stored);
        if is_another {
            self.take_rows(exit, scalars);
        }
    }

    #[inline(never)]
    fn take_rows(&mut self, exit: &Exit, scalars: &mut [u64; 64]) {
        for &(reg, stride) in &exit.strides {
            self.strides[usize::from(reg)] = stride;
        }
        for &(reg, first) in &exit.firsts {
            scalars[usize::from(reg)] = first;
        }
    }

    /// The interpreter writes these registers.
    pub(crate) fn forget_some(&mut self, foreign: u64) {
        self.known &= !foreign;
    }

    /// Writes all lanes of those of these registers that are pending.
    #[inline(always)]
    pub(crate) fn settle(
        &mut self,
        registers: &mut RegisterWords<'_>,
        which: u64,
        scalars: &[u64; 64],
        shape: &Shape,
    ) {
        let left = self.pending & which;
        self.pending &= !which;
        if left != 0 {
            self.write_all(registers, left, scalars, shape);
        }
    }

    #[inline(never)]
    fn write_all(
        &mut self,
        registers: &mut RegisterWords<'_>,
        which: u64,
        scalars: &[u64; 64],
        shape: &Shape,
    ) {
        let mut left = which;
        while left != 0 {
            let (r, bit) = (left.trailing_zeros() as u8, left & left.wrapping_neg());
            left ^= bit;
            let row = (scalars[usize::from(r)], self.strides[usize::from(r)]);
            let written = &mut self.written[usize::from(r)];
            if self.known & bit != 0 && *written == row {
                debug_assert!(
                    holds(registers, r, row, shape),
                    "register {r} does not hold {row:x?}"
                );
                continue;
            }
            write(registers, r, row, shape);
            *written = row;
            self.known |= bit;
        }
    }
}

/// A word of a lane.
trait Lane: Copy + PartialEq + BitOr<Output = Self> + BitXor<Output = Self> {
    const ZERO: Self;

    fn plus(self, other: Self) -> Self;
}

impl Lane for u32 {
    const ZERO: u32 = 0;

    fn plus(self, other: u32) -> u32 {
        self.wrapping_add(other)
    }
}

impl Lane for u64 {
    const ZERO: u64 = 0;

    fn plus(self, other: u64) -> u64 {
        self.wrapping_add(other)
    }
}

fn is_row<T: Lane>(words: &[T], first: T, stride: T) -> bool {
    let (mut row, mut differ) = (first, T::ZERO);
    for &word in words {
        differ = differ | word ^ row;
        row = row.plus(stride);
    }
    differ == T::ZERO
}

fn write_row<T: Lane>(words: &mut [T], first: T, stride: T) {
    if stride == T::ZERO {
        return words.fill(first);
    }
    let mut row = first;
    for word in words {
        *word = row;
        row = row.plus(stride);
    }
}

/// Puts lanes 0 of registers that are to be no vectors into `scalars`: what is known, and what `which` of them hold.
pub(crate) fn read_firsts(
    registers: &RegisterWords<'_>,
    which: u64,
    entry: &Entry,
    active: u64,
    scalars: &mut [u64; 64],
    shape: &Shape,
) {
    for &Row { reg, first, stride } in &entry.rows {
        if first.is_none() && which >> reg & 1 == 0 {
            continue;
        }
        scalars[usize::from(reg)] = first.unwrap_or_else(|| {
            let lane = u64::from(entry.lanes(reg, active, shape).trailing_zeros()) % 64;
            let word = lane_of(registers, reg, lane as usize, shape);
            shape.cut(word.wrapping_sub(stride.wrapping_mul(lane)))
        });
    }
}

/// Whether those registers are as expected, in the lanes that matter.
pub(crate) fn are_rows(
    registers: &RegisterWords<'_>,
    entry: &Entry,
    active: u64,
    scalars: &[u64; 64],
    shape: &Shape,
) -> bool {
    entry.rows.iter().all(|&Row { reg, stride, .. }| {
        let (first, lanes) = (scalars[usize::from(reg)], entry.lanes(reg, active, shape));
        if lanes == shape.full() {
            return holds(registers, reg, (first, stride), shape);
        }
        bits_of(lanes).all(|lane| {
            let row = first.wrapping_add(stride.wrapping_mul(lane.into()));
            lane_of(registers, reg, lane.into(), shape) == shape.cut(row)
        })
    })
}

/// The numbers of the bits that are set, lowest first.
pub(crate) fn bits_of(bits: u64) -> impl Iterator<Item = u8> + Clone {
    (0..64).filter(move |bit| bits >> bit & 1 != 0)
}

/// A lane of a register.
pub(crate) fn lane_of(registers: &RegisterWords<'_>, r: u8, lane: usize, shape: &Shape) -> u64 {
    let place = usize::from(r) * shape.lane_words + lane;
    match registers {
        RegisterWords::Four(words) => words[place].into(),
        RegisterWords::Eight(words) => words[place],
    }
}

fn holds(registers: &RegisterWords<'_>, r: u8, (first, stride): (u64, u64), shape: &Shape) -> bool {
    let start = usize::from(r) * shape.lane_words;
    match registers {
        RegisterWords::Four(words) => {
            is_row(&words[start..start + shape.lanes], first as u32, stride as u32)
        }
        RegisterWords::Eight(words) => is_row(&words[start..start + shape.lanes], first, stride),
    }
}

fn write(registers: &mut RegisterWords<'_>, r: u8, (first, stride): (u64, u64), shape: &Shape) {
    let start = usize::from(r) * shape.lane_words;
    match registers {
        RegisterWords::Four(words) => {
            write_row(&mut words[start..start + shape.lanes], first as u32, stride as u32);
        }
        RegisterWords::Eight(words) => {
            write_row(&mut words[start..start + shape.lanes], first, stride);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_length() {
        for lanes in [1, 2, 7, 8, 9, 31, 32, 64] {
            let mut words = vec![7u32; 64];
            write_row(&mut words[..lanes], 5, u32::MAX);
            assert!(words[lanes..].iter().all(|&word| word == 7), "{lanes} lanes");
            for lane in 0..lanes {
                assert_eq!(words[lane], 5u32.wrapping_sub(lane as u32), "{lanes} lanes");
                assert!(is_row(&words[..lanes], 5, u32::MAX), "{lanes} lanes");
                words[lane] ^= 1 << 31;
                assert!(!is_row(&words[..lanes], 5, u32::MAX), "{lanes} lanes, {lane} differs");
                words[lane] ^= 1 << 31;
            }
        }
    }
}
