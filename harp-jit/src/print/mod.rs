//! What kernels print: its layout in memory, and how to read it.
//!
//! The launch provides an *area*. Each lane of the machine has a *region* of its own in it, so lanes append
//! records with plain loads and stores, without atomic operations. The area begins with four words: the
//! address of the first region, and the distances between the regions of consecutive warps (counted first),
//! cores and lanes.
//!
//! | word of a region | contents |
//! |---|---|
//! | 0 | the address of the next record |
//! | 1 | the address behind the place for records |
//! | 2 | records that did not fit |
//! | 3 | records; behind them is room for one more, which is written in place of those that do not fit |
//!
//! A record has the number of the call, the number of the work-item, and the values, each in as many words as
//! it needs, the low one first. A work-item runs on one lane, so its records are in order.

use cranelift_codegen::ir::Type;
use harp_isa::ArchId;

use crate::source::SourcePlace;

mod c_format;
mod format;
mod record;
mod saved;

use format::Format;
pub use record::Printer;
pub(crate) use saved::SavedPrint;

/// The words at the start of the print area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AreaWord {
    /// The address of the first region.
    Regions,
    /// The distance between the regions of consecutive warps of a core.
    Warp,
    /// The distance between the regions of consecutive cores.
    Core,
    /// The distance between the regions of consecutive lanes.
    Lane,
}

impl AreaWord {
    const COUNT: u64 = 4;
}

/// The words at the start of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RegionWord {
    /// The address of the next record.
    Next,
    /// The address behind the place for records.
    Limit,
    /// How many records did not fit.
    Dropped,
}

impl RegionWord {
    const COUNT: u64 = 3;
}

/// Words of a record before its values.
const RECORD_HEAD: u32 = 2;

/// A place in a kernel that prints: a call of [`KernelBuilder::print`](crate::KernelBuilder::print), or of C's `printf`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrintSite {
    format: Format,
    place: SourcePlace,
}

impl PrintSite {
    /// A place with a format of [`KernelBuilder::print`](crate::KernelBuilder::print) and values of these types.
    ///
    /// # Errors
    ///
    /// What is wrong with the format.
    pub fn new(format: &str, types: &[Type], place: SourcePlace) -> Result<PrintSite, String> {
        Ok(PrintSite { format: Format::parse(format, types)?, place })
    }

    /// A place with a format of `printf` in OpenCL C (OpenCL C specification, section 6.15.14) for values of these types.
    /// A vector's components are values of their own. For `%s` the value is the address of a text that ends with a zero
    /// byte, and is read when the kernel has ended: OpenCL C has only constant texts there. Of a long one, 4096 bytes are
    /// shown, and dots. A line feed at the end is left out, as each call prints a line.
    ///
    /// Where C leaves open what is shown, since an integer is given for a float or a float for an integer, the value is
    /// shown as `%d` or `%f` does. Values behind those that the format shows are left out.
    ///
    /// # Errors
    ///
    /// What is wrong with the format.
    pub fn from_printf(
        format: &str,
        types: &[Type],
        place: SourcePlace,
    ) -> Result<PrintSite, String> {
        Ok(PrintSite { format: c_format::parse(format, types)?, place })
    }

    /// Words of a record.
    fn words(&self, arch: ArchId) -> u32 {
        RECORD_HEAD + self.format.types().map(|ty| words_of(ty, arch)).sum::<u32>()
    }
}

/// Words that a value takes in a record.
fn words_of(ty: Type, arch: ArchId) -> u32 {
    ty.bytes().div_ceil(arch.word().bytes().into())
}

/// What a kernel prints, and where: the argument behind the kernel's [`params`](crate::Kernel::params) is the
/// address of an area that the launch prepares, and reads when the kernel has ended or trapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintSites {
    arch: ArchId,
    sites: Vec<PrintSite>,
}

/// How many lanes print, and how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintArea {
    /// Cores.
    pub cores: u16,
    /// Warps of each core that run.
    pub warps: u8,
    /// Bytes for the records of each lane.
    pub lane_bytes: u32,
}

/// A line that a work-item has printed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PrintRecord {
    /// The number of the work-item in the grid, counted along the first dimension first.
    pub work_item: u64,
    /// The line.
    pub text: String,
    /// The builder call that printed it.
    pub place: SourcePlace,
}

impl PrintSites {
    pub(crate) fn new(arch: ArchId, sites: Vec<PrintSite>) -> PrintSites {
        PrintSites { arch, sites }
    }

    fn word_bytes(&self) -> u64 {
        self.arch.word().bytes().into()
    }

    /// Bytes for the records of a lane, in whole words.
    fn capacity(&self, area: PrintArea) -> u64 {
        u64::from(area.lane_bytes).next_multiple_of(self.word_bytes())
    }

    /// The size of a region.
    fn region_bytes(&self, area: PrintArea) -> u64 {
        let longest = self.sites.iter().map(|site| site.words(self.arch)).max().unwrap_or(0);
        self.capacity(area) + (RegionWord::COUNT + u64::from(longest)) * self.word_bytes()
    }

    fn regions(&self, area: PrintArea) -> u64 {
        u64::from(area.warps) * u64::from(area.cores) * u64::from(self.arch.lanes())
    }

    /// The size of the area in bytes.
    pub fn bytes(&self, area: PrintArea) -> u64 {
        let regions = self.region_bytes(area).saturating_mul(self.regions(area));
        regions.saturating_add(AreaWord::COUNT * self.word_bytes())
    }

    /// The words of the area at `address`, before the launch, each with its offset: the rest need not be
    /// initialized.
    pub fn prepared(&self, area: PrintArea, address: u64) -> impl Iterator<Item = (u64, u64)> {
        let (word, region) = (self.word_bytes(), self.region_bytes(area));
        let first = AreaWord::COUNT * word;
        let core = region * u64::from(self.arch.lanes());
        let head = [
            (AreaWord::Regions, address + first),
            (AreaWord::Warp, core * u64::from(area.cores)),
            (AreaWord::Core, core),
            (AreaWord::Lane, region),
        ];
        let head = head.into_iter().map(move |(at, value)| (at as u64 * word, value));
        let capacity = self.capacity(area);
        let regions = (0..self.regions(area)).flat_map(move |number| {
            let start = first + number * region;
            let records = address + start + RegionWord::COUNT * word;
            let words = [
                (RegionWord::Next, records),
                (RegionWord::Limit, records + capacity),
                (RegionWord::Dropped, 0),
            ];
            words.map(|(at, value)| (start + at as u64 * word, value))
        });
        head.chain(regions)
    }

    /// Reads the area at `address` by `get`, which copies what is at an address and returns whether memory has all of it:
    /// the lines in the order of the work-items' numbers, those of each in the order in which they were printed, and how
    /// many lines did not fit. Records that the kernel has overwritten are left out, with all behind them.
    pub fn read(
        &self,
        area: PrintArea,
        address: u64,
        mut get: impl FnMut(u64, &mut [u8]) -> bool,
    ) -> (Vec<PrintRecord>, u64) {
        let (mut records, mut dropped) = (Vec::new(), 0_u64);
        let (word, region) = (self.word_bytes(), self.region_bytes(area));
        let first = address + AreaWord::COUNT * word;
        let mut bytes = Vec::new();
        for number in 0..self.regions(area) {
            let own = first + number * region;
            bytes.resize((RegionWord::COUNT * word) as usize, 0);
            get(own, &mut bytes);
            let head: Vec<u64> = self.words(&bytes).collect();
            dropped = dropped.saturating_add(head[RegionWord::Dropped as usize]);
            let start = own + RegionWord::COUNT * word;
            let written = head[RegionWord::Next as usize].saturating_sub(start);
            bytes.resize(written.min(self.capacity(area)) as usize, 0);
            get(start, &mut bytes);
            let mut words = self.words(&bytes);
            while let Some(record) = self.record(&mut words, &mut get) {
                records.push(record);
            }
        }
        records.sort_by_key(|record| record.work_item);
        (records, dropped)
    }

    fn words<'a>(&self, bytes: &'a [u8]) -> impl Iterator<Item = u64> + use<'a> {
        let words = bytes.chunks_exact(self.word_bytes() as usize);
        words.map(|word| word.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    fn record(
        &self,
        words: &mut impl Iterator<Item = u64>,
        get: &mut impl FnMut(u64, &mut [u8]) -> bool,
    ) -> Option<PrintRecord> {
        let site = self.sites.get(usize::try_from(words.next()?).ok()?)?;
        let work_item = words.next()?;
        let value = |ty| {
            let bits = u32::from(self.arch.word().bits());
            let mut parts = 0..words_of(ty, self.arch);
            parts.try_fold(0, |value, part| Some(words.next()? << (part * bits) | value))
        };
        let text = site.format.line(value, |address| text_at(address, get))?;
        Some(PrintRecord { work_item, text, place: site.place.clone() })
    }
}

/// The longest text of a `%s` in bytes: lines stay readable, and memory for them bounded.
const MAX_TEXT: usize = 1 << 12;

/// The text at an address, up to a zero byte; dots show that it goes on.
fn text_at(address: u64, get: &mut impl FnMut(u64, &mut [u8]) -> bool) -> String {
    if address == 0 {
        return "(null)".to_owned();
    }
    let (mut bytes, mut byte) = (Vec::new(), [0]);
    while bytes.len() < MAX_TEXT {
        if !get(address.wrapping_add(bytes.len() as u64), &mut byte) {
            return format!("(no text at {address:#x})");
        }
        if byte == [0] {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        bytes.extend(byte);
    }
    format!("{}...", String::from_utf8_lossy(&bytes))
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use cranelift_codegen::ir::types::{I32, I64};

    use super::*;

    const AREA: PrintArea = PrintArea { cores: 2, warps: 1, lane_bytes: 31 };
    const ADDRESS: u64 = 0x1000;

    fn sites(arch: ArchId) -> PrintSites {
        let place = SourcePlace::from(Location::caller());
        let site = |format, types: &[Type]| PrintSite::new(format, types, place.clone()).unwrap();
        PrintSites::new(arch, vec![site("end", &[]), site("{} {:u}", &[I32, I64])])
    }

    /// The area before a launch.
    fn memory(sites: &PrintSites) -> Vec<u64> {
        let word = sites.word_bytes();
        let mut words = vec![7; (sites.bytes(AREA) / word) as usize];
        for (offset, value) in sites.prepared(AREA, ADDRESS) {
            assert_eq!(offset % word, 0);
            words[(offset / word) as usize] = value;
        }
        words
    }

    fn read(sites: &PrintSites, words: &[u64]) -> (Vec<(u64, String)>, u64) {
        let bytes = sites.word_bytes() as usize;
        let memory: Vec<u8> =
            words.iter().flat_map(|word| word.to_le_bytes().into_iter().take(bytes)).collect();
        let (records, dropped) = sites.read(AREA, ADDRESS, |address, out| {
            let at = address.wrapping_sub(ADDRESS) as usize;
            let found = memory.get(at..).and_then(|rest| rest.get(..out.len()));
            found.map(|found| out.copy_from_slice(found)).is_some()
        });
        (records.into_iter().map(|record| (record.work_item, record.text)).collect(), dropped)
    }

    #[test]
    fn what_lanes_appended_is_read_by_work_item() {
        let sites = sites("4w8/2/2/2".parse().unwrap());
        let mut words = memory(&sites);
        // Four words at the start, then for each of 2 x 2 lanes three, eight for records, five behind.
        assert_eq!(words.len(), 4 + 4 * 16);
        assert_eq!(words[..4], [ADDRESS + 16, 2 * 2 * 64, 2 * 64, 64]);
        assert_eq!(read(&sites, &words), (vec![], 0));
        let records = ADDRESS + 16 + 12;
        assert_eq!(words[4..7], [records, records + 32, 0]);
        words[7..14].copy_from_slice(&[0, 9, 1, 9, 0xffff_ffff, 5, 1]);
        words[4] = records + 7 * 4;
        // The last lane.
        words[52..57].copy_from_slice(&[records + 48 * 4 + 8, records + 48 * 4 + 32, 3, 0, 4]);
        let lines = [(4, "end"), (9, "end"), (9, "-1 4294967301")];
        let wanted: Vec<_> = lines.map(|(item, text)| (item, text.to_owned())).into();
        assert_eq!(read(&sites, &words), (wanted.clone(), 3));
        // What the kernel has overwritten is no record.
        words[9] = 2;
        assert_eq!(read(&sites, &words), (wanted[..2].to_vec(), 3));
        words[4] = 3;
        assert_eq!(read(&sites, &words), (wanted[..1].to_vec(), 3));
    }

    #[test]
    fn texts_are_read_where_they_are() {
        let arch = "4w8/2/2/2".parse().unwrap();
        let place = SourcePlace::from(Location::caller());
        let site = PrintSite::from_printf("%s|%.3s\n", &[I32; 2], place).unwrap();
        let sites = PrintSites::new(arch, vec![site]);
        let mut words = memory(&sites);
        let end = words.len() as u64 * 4 + ADDRESS;
        words[7..15].copy_from_slice(&[0, 4, end, end + 1, 0, 5, 0, end + 7]);
        words[4] += 8 * 4;
        words.extend([u32::from_le_bytes(*b"cold"), 0x61].map(u64::from));
        let lines = [(4, "colda|old"), (5, "(null)|")];
        let wanted: Vec<_> = lines.map(|(item, text)| (item, text.to_owned())).into();
        assert_eq!(read(&sites, &words), (wanted, 0));
        words[9] = end + 8;
        assert_eq!(read(&sites, &words).0[0].1, format!("(no text at {:#x})|old", end + 8));
        // One that does not end.
        words.extend([u64::from(u32::from_le_bytes([b'x'; 4])); MAX_TEXT]);
        assert_eq!(read(&sites, &words).0[0].1, "x".repeat(MAX_TEXT) + "...|old");
    }

    #[test]
    fn wide_words_hold_wide_values() {
        let sites = sites("8w8/2/2/2".parse().unwrap());
        let mut words = memory(&sites);
        let end = words[4] + 4 * 8;
        words[7..11].copy_from_slice(&[1, 0, 3, u64::MAX]);
        words[4] = end;
        assert_eq!(read(&sites, &words), (vec![(0, format!("3 {}", u64::MAX))], 0));
    }
}
