//! Parts that kernels share.
//!
//! Branches are identified by the source place that built them, so each part is built once per kernel.

use harp_jit::KernelBuilder;
use harp_jit::ir::Value;
use harp_jit::ir::condcodes::IntCC;

/// A search of a work-item for a value.
pub(super) struct Search {
    /// An array of words that contains the rows.
    pub(super) rows: Value,
    /// The index of the row's first element.
    pub(super) start: Value,
    /// Elements of the row.
    pub(super) length: Value,
    /// The place in the row at which the search begins.
    pub(super) from: Value,
    /// The value looked for.
    pub(super) value: Value,
    /// The result if the value is not in the row.
    pub(super) none: Value,
}

impl Search {
    /// Builds a loop over places in the row; `after` computes the next place. Returns the place at which the value
    /// was found.
    pub(super) fn build(
        self,
        b: &mut KernelBuilder<'_>,
        after: impl FnOnce(&mut KernelBuilder<'_>, Value) -> Value,
    ) -> Value {
        let Search { rows, start, length, from, value, none } = self;
        let word = b.word_int();
        let found = b.declare_var(word);
        b.def_var(found, none);
        let [header, look, hit, next, done] = std::array::from_fn(|_| b.create_block());
        let place = b.append_block_param(header, word);
        b.ins().jump(header, &[from.into()]);
        b.switch_to_block(header);
        let more = b.ins().icmp(IntCC::UnsignedLessThan, place, length);
        b.ins().brif(more, look, &[], done, &[]);
        b.switch_to_block(look);
        let index = b.ins().iadd(start, place);
        let element = b.load_elem(word, rows, index);
        let is_it = b.ins().icmp(IntCC::Equal, element, value);
        b.ins().brif(is_it, hit, &[], next, &[]);
        b.switch_to_block(hit);
        b.def_var(found, place);
        b.ins().jump(done, &[]);
        b.switch_to_block(next);
        let after = after(b, place);
        b.ins().jump(header, &[after.into()]);
        b.switch_to_block(done);
        b.seal_all_blocks();
        b.use_var(found)
    }
}

/// A reduction in a group whose work-items have one value each in the group's memory.
pub(super) struct Tree {
    /// The values: an array of words, by the number of the work-item in the group.
    pub(super) values: Value,
    /// The work-item's number in the group.
    pub(super) local: Value,
    /// Work-items of the group.
    pub(super) size: Value,
}

impl Tree {
    /// Builds the reduction of the group's values, of which `own` is the work-item's, to one value, which is stored
    /// as element `index` of `results`. `combine` gets the work-item's value and another one, and stores their
    /// combination in place of the work-item's.
    pub(super) fn build(
        self,
        b: &mut KernelBuilder<'_>,
        own: Value,
        [results, index]: [Value; 2],
        combine: impl FnOnce(&mut KernelBuilder<'_>, [Value; 2]),
    ) {
        let Tree { values, local, size } = self;
        let word = b.word_int();
        b.store_elem(own, values, local);
        b.barrier();

        // In each iteration the upper half of `span` values is combined with the lower half.
        let span = b.declare_var(word);
        b.def_var(span, size);
        b.while_loop(
            |b| {
                let span = b.use_var(span);
                b.ins().icmp_imm_u(IntCC::UnsignedGreaterThan, span, 1)
            },
            |b| {
                let old = b.use_var(span);
                let rounded = b.ins().iadd_imm_s(old, 1);
                let half = b.ins().ushr_imm_u(rounded, 1);
                let partner = b.ins().iadd(local, half);
                let has_partner = b.ins().icmp(IntCC::UnsignedLessThan, partner, old);
                b.if_then(has_partner, |b| {
                    let mine = b.load_elem(word, values, local);
                    let other = b.load_elem(word, values, partner);
                    combine(b, [mine, other]);
                });
                b.barrier();
                b.def_var(span, half);
            },
        );
        let is_first = b.ins().icmp_imm_u(IntCC::Equal, local, 0);
        b.if_then(is_first, |b| {
            let zero = b.ins().iconst(word, 0);
            let result = b.load_elem(word, values, zero);
            b.store_elem(result, results, index);
        });
    }
}
