//! Which bytes of memory were never written.

use std::ops::Range;

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Bytes that nobody has written yet; all others are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unwritten {
    /// By number. A bit stands for a byte; a page that is not there has been written.
    pages: Vec<Option<Box<[u64; PAGE as usize / 64]>>>,
}

impl Unwritten {
    /// Takes bytes for not written.
    pub fn forget(&mut self, range: Range<u64>) {
        let last_page = range.end.div_ceil(PAGE) as usize;
        if self.pages.len() < last_page {
            self.pages.resize(last_page, None);
        }
        for_each_word(range, |page, word, bits| {
            self.pages[page].get_or_insert_with(|| Box::new([0; _]))[word] |= bits;
        });
    }

    /// Notes that bytes are written.
    pub fn write(&mut self, range: Range<u64>) {
        if self.pages.is_empty() {
            return;
        }
        for_each_word(range, |page, word, bits| {
            if let Some(Some(page)) = self.pages.get_mut(page) {
                page[word] &= !bits;
            }
        });
    }

    /// Whether any of these bytes is not written.
    pub fn has_any(&self, range: Range<u64>) -> bool {
        let mut found = false;
        for_each_word(range, |page, word, bits| {
            found |= matches!(self.pages.get(page), Some(Some(page)) if page[word] & bits != 0);
        });
        found
    }

    /// Takes for not written what is not written in `part`, which begins at `start` here.
    pub fn forget_part(&mut self, start: u64, part: &Unwritten) {
        part.ranges().for_each(|range| self.forget(start + range.start..start + range.end));
    }

    /// What is not written in `range`, with distances from its start.
    pub fn part(&self, range: Range<u64>) -> Unwritten {
        let mut part = Unwritten::default();
        for found in self.ranges() {
            let (start, end) = (found.start.max(range.start), found.end.min(range.end));
            if start < end {
                part.forget(start - range.start..end - range.start);
            }
        }
        part
    }

    /// The bytes that are not written, in ranges within words of the bitmap.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> {
        let pages = self.pages.iter().enumerate();
        let words = pages.flat_map(|(number, page)| {
            let words = page.iter().flat_map(|page| page.iter().enumerate());
            words.map(move |(word, &bits)| (number as u64 * PAGE + word as u64 * 64, bits))
        });
        words.flat_map(|(start, mut bits)| {
            std::iter::from_fn(move || {
                let first = bits.trailing_zeros();
                (first < 64).then(|| {
                    let count = (bits >> first).trailing_ones();
                    bits &= !((u64::MAX >> (64 - count)) << first);
                    start + u64::from(first)..start + u64::from(first + count)
                })
            })
        })
    }
}

/// Calls `f` with each page, word of the page and bits of the word that stand for bytes of `range`.
fn for_each_word(range: Range<u64>, mut f: impl FnMut(usize, usize, u64)) {
    let mut at = range.start;
    while at < range.end {
        let (first, end) = (at % 64, (at / 64 * 64 + 64).min(range.end));
        let bits = (u64::MAX >> (64 - (end - at))) << first;
        f((at / PAGE) as usize, (at % PAGE / 64) as usize, bits);
        at = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_bytes() {
        let mut unwritten = Unwritten::default();
        unwritten.forget(60..4200);
        assert!(!unwritten.has_any(0..60) && unwritten.has_any(0..61));
        assert!(unwritten.has_any(4199..4200) && !unwritten.has_any(4200..1 << 30));
        unwritten.write(61..4199);
        assert!(!unwritten.has_any(61..4199));
        assert!(unwritten.has_any(60..61) && unwritten.has_any(4000..4200));
        assert_eq!(unwritten.ranges().collect::<Vec<_>>(), [60..61, 4199..4200]);
        let part = unwritten.part(50..100);
        assert_eq!((part.ranges().next(), part.ranges().count()), (Some(10..11), 1));
        let mut other = Unwritten::default();
        other.forget_part(5000, &part);
        assert!(other.has_any(5010..5011) && !other.has_any(5011..10_000));
        other.write(0..10_000);
        assert_eq!(other.ranges().count(), 0);
    }
}
