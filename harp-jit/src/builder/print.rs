//! Printing.

use std::panic::Location;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};

use super::KernelBuilder;
use super::prologue::Printer;
use crate::error::BuildErrorKind;
use crate::print::{PrintSite, RECORD_HEAD, RegionWord, words_of};
use crate::source::SourcePlace;

impl KernelBuilder<'_> {
    /// Prints a line: `format` with `values` in place of each `{}`. The launch's report has the lines of all
    /// work-items, in the order of their positions, and so has the error of a launch that trapped.
    ///
    /// `{}` shows a signed integer or a float, `{:u}` an unsigned integer, `{:x}` its digits in base 16. `{{`
    /// and `}}` are the characters. At most 64 values can be printed in a line.
    ///
    /// Each lane appends what it prints to a region of memory of its own; lines that do not fit there are
    /// counted, and the report has the number. A line takes about 14 instructions with extension X and up to 28
    /// without, and one for each word of its values; none of them is a branch.
    ///
    /// A format that does not fit the values is an error.
    ///
    /// ```
    /// # use harp_jit::prelude::*;
    /// # let mut source = KernelSource::new("halves", "harp32".parse()?);
    /// # let mut b = KernelBuilder::new(&mut source);
    /// let (data, i) = (b.buffer::<i32>("data"), b.global_id(0));
    /// let x = b.load(data, i);
    /// let odd = b.ins().band_imm_u(x, 1);
    /// b.if_then(odd, |b| b.print("data[{:u}] = {} is odd", &[i, x]));
    /// # b.return_();
    /// # b.finalize()?;
    /// # source.compile(&CompileOptions::default())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn print(&mut self, format: &str, values: &[Value]) {
        let place = Location::caller();
        self.enter(place);
        let values: Vec<Value> = values
            .iter()
            .map(|&value| self.checked_scalar(value, "value to print", place))
            .collect();
        let types: Vec<_> =
            values.iter().map(|&value| self.inner.func.dfg.value_type(value)).collect();
        let site = match PrintSite::new(format, &types, SourcePlace::from(place)) {
            Ok(site) => site,
            Err(what) => {
                let format = format.to_owned();
                self.fail(BuildErrorKind::PrintFormat { format, what }, place);
                return;
            }
        };
        let (number, arch, word) = (self.prints.len(), self.arch, self.word_int());
        let bytes = i64::from(site.words(arch)) * i64::from(word.bytes());
        self.prints.push(site);
        let Printer { region, work_item, .. } = self.printer(place);

        // Without a branch: a record that does not fit goes behind the limit, and is not kept.
        let at = |index: RegionWord| (index as u32 * word.bytes()).cast_signed();
        let load = |b: &mut Self, index| b.inner.ins().load(word, flags(), region, at(index));
        let [next, limit, dropped] =
            [RegionWord::Next, RegionWord::Limit, RegionWord::Dropped].map(|at| load(self, at));
        let after = self.inner.ins().iadd_imm_s(next, bytes);
        let fits = self.inner.ins().icmp(IntCC::UnsignedLessThanOrEqual, after, limit);
        let record = self.inner.ins().select(fits, next, limit);
        let number = self.inner.ins().iconst(word, number as i64);
        let mut offset = 0;
        for part in [number, work_item] {
            self.inner.ins().store(flags(), part, record, offset);
            offset += word.bytes().cast_signed();
        }
        debug_assert_eq!(offset.cast_unsigned(), RECORD_HEAD * word.bytes());
        for (value, ty) in values.into_iter().zip(types) {
            let bits = self.bits(value);
            for part in 0..words_of(ty, arch) {
                let part = self.word_of(bits, part);
                self.inner.ins().store(flags(), part, record, offset);
                offset += word.bytes().cast_signed();
            }
        }
        let after = self.inner.ins().select(fits, after, next);
        let one_more = self.inner.ins().iadd_imm_s(dropped, 1);
        let dropped = self.inner.ins().select(fits, dropped, one_more);
        for (value, index) in [(after, RegionWord::Next), (dropped, RegionWord::Dropped)] {
            self.inner.ins().store(flags(), value, region, at(index));
        }
    }

    /// A word of an integer of any size.
    fn word_of(&mut self, value: Value, part: u32) -> Value {
        let (ty, word) = (self.inner.func.dfg.value_type(value), self.word_int());
        if ty.bits() <= word.bits() {
            return if ty == word { value } else { self.inner.ins().uextend(word, value) };
        }
        let shifted = match part {
            0 => value,
            part => self.inner.ins().ushr_imm_u(value, i64::from(part * word.bits())),
        };
        self.inner.ins().ireduce(word, shifted)
    }
}

/// Flags of accesses to the print area: the launch chooses its address.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_aligned()
}
