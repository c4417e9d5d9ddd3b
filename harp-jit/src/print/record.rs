//! The code that prints: it finds the region of the lane, and appends records to it.

use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value};
use cranelift_frontend::FunctionBuilder;
use harp_isa::ArchId;

use super::{AreaWord, PrintSite, RECORD_HEAD, RegionWord, words_of};
use crate::abi::word_int;

/// The values by which code prints. The builder of kernels makes them itself; a front end computes them where a
/// function begins.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    /// The address of the lane's region: see [`region`](Printer::region).
    pub region: Value,
    /// The number of its work-item in the grid, counted along the first dimension first.
    pub work_item: Value,
}

impl Printer {
    /// Computes the address of a lane's region. `area` is the address of the print area, which is the argument behind
    /// the kernel's own; `lane` has the numbers of the lane's core, its warp and itself.
    pub fn region(at: &mut FuncCursor<'_>, arch: ArchId, area: Value, lane: [Value; 3]) -> Value {
        let word = word_int(arch.word());
        let load = |at: &mut FuncCursor<'_>, index: AreaWord| {
            let flags = flags().with_readonly().with_can_move();
            at.ins().load(word, flags, area, offset(index as u32, word))
        };
        let mut address = load(at, AreaWord::Regions);
        let [core, warp, lane] = lane;
        for (stride, number) in
            [(AreaWord::Warp, warp), (AreaWord::Core, core), (AreaWord::Lane, lane)]
        {
            let stride = load(at, stride);
            let distance = at.ins().imul(stride, number);
            address = at.ins().iadd(address, distance);
        }
        address
    }

    /// Computes the number of a work-item from its position and the first two extents of the grid.
    pub fn work_item(at: &mut FuncCursor<'_>, position: [Value; 3], extents: [Value; 2]) -> Value {
        let ([x, y, z], [columns, rows]) = (position, extents);
        let row = at.ins().imul(rows, z);
        let row = at.ins().iadd(row, y);
        let first = at.ins().imul(columns, row);
        at.ins().iadd(first, x)
    }

    /// Appends a record with values of the types that `site`, number `number` of the kernel's, was made for. Those that
    /// its format does not show are left out.
    ///
    /// There is no branch: a record that does not fit goes behind the limit, and is not kept.
    pub fn append(
        self,
        b: &mut FunctionBuilder<'_>,
        arch: ArchId,
        number: usize,
        site: &PrintSite,
        values: &[Value],
    ) {
        let word = word_int(arch.word());
        let bytes = i64::from(site.words(arch)) * i64::from(word.bytes());
        let at = |index: RegionWord| offset(index as u32, word);
        let [next, limit, dropped] = [RegionWord::Next, RegionWord::Limit, RegionWord::Dropped]
            .map(|index| b.ins().load(word, flags(), self.region, at(index)));
        let after = b.ins().iadd_imm_s(next, bytes);
        let fits = b.ins().icmp(IntCC::UnsignedLessThanOrEqual, after, limit);
        let record = b.ins().select(fits, next, limit);
        let number = b.ins().iconst(word, number as i64);
        let mut place = 0;
        for part in [number, self.work_item] {
            b.ins().store(flags(), part, record, offset(place, word));
            place += 1;
        }
        debug_assert_eq!(place, RECORD_HEAD);
        for (&value, _) in values.iter().zip(site.format.types()) {
            let ty = b.func.dfg.value_type(value);
            let bits = match ty.is_float() {
                true => b.ins().bitcast(ty.as_int(), MemFlagsData::new(), value),
                false => value,
            };
            for part in 0..words_of(ty, arch) {
                let part = word_of(b, bits, part, word);
                b.ins().store(flags(), part, record, offset(place, word));
                place += 1;
            }
        }
        let after = b.ins().select(fits, after, next);
        let one_more = b.ins().iadd_imm_s(dropped, 1);
        let dropped = b.ins().select(fits, dropped, one_more);
        for (value, index) in [(after, RegionWord::Next), (dropped, RegionWord::Dropped)] {
            b.ins().store(flags(), value, self.region, at(index));
        }
    }
}

/// A word of an integer of any size.
fn word_of(b: &mut FunctionBuilder<'_>, value: Value, part: u32, word: Type) -> Value {
    let ty = b.func.dfg.value_type(value);
    if ty.bits() <= word.bits() {
        return if ty == word { value } else { b.ins().uextend(word, value) };
    }
    let shifted = match part {
        0 => value,
        part => b.ins().ushr_imm_u(value, i64::from(part * word.bits())),
    };
    b.ins().ireduce(word, shifted)
}

fn offset(index: u32, word: Type) -> i32 {
    (index * word.bytes()).cast_signed()
}

/// Flags of accesses to the print area: the launch chooses its address.
fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap().with_aligned()
}
