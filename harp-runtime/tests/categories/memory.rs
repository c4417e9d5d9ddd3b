//! Accesses outside of what an address points into, in each address space.

use harp_runtime::jit::{AccessKind, BufferParam};
use harp_runtime::prelude::*;

use super::{
    Body, DATUM, GROUP, ITEMS, check, is_buffer, is_datum, is_group, is_outside, is_stack,
};

#[test]
fn invalid_reads_of_global_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Load, is_buffer),
        &[
            [
                ("the element behind the last", &|k| {
                    let at = k.plus(k.i, 1);
                    k.read(k.data, at);
                }),
                ("the last element", &|k| {
                    let at = k.xor(k.i, ITEMS - 1);
                    k.read(k.data, at);
                }),
            ],
            [
                ("the element before the first", &|k| {
                    let at = k.plus(k.i, -1);
                    k.read(k.data, at);
                }),
                ("before the first, but only if there is one", &|k| {
                    let (one, before) = (k.int(1), k.plus(k.i, -1));
                    let is_inside = k.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, k.i, one);
                    let zero = k.int(0);
                    let at = k.b.select(is_inside, before, zero);
                    k.read(k.data, at);
                }),
            ],
            [
                ("a loop that runs once too often", &|k| {
                    let (zero, end, one) = (k.int(0), k.int(ITEMS + 1), k.int(1));
                    let (data, to, i) = (k.data, k.to, k.i);
                    k.b.for_range(zero, end, one, |b, at| {
                        let value = b.load(data, at);
                        b.store(to, i, value);
                    });
                }),
                ("a loop over all elements", &|k| {
                    let (zero, end, one) = (k.int(0), k.int(ITEMS), k.int(1));
                    let (data, to, i) = (k.data, k.to, k.i);
                    k.b.for_range(zero, end, one, |b, at| {
                        let value = b.load(data, at);
                        b.store(to, i, value);
                    });
                }),
            ],
            [
                ("an element as wide as two across the end", &|k| {
                    let at = k.times(k.i, 4);
                    let address = k.b.ins().iadd(k.data.base(), at);
                    let flags = MemFlagsData::new();
                    let low = k.int(ITEMS - 1);
                    let is_last = k.b.ins().icmp(IntCC::Equal, k.i, low);
                    k.b.if_then(is_last, |b| {
                        b.ins().load(types::I32, flags, address, 4);
                    });
                }),
                ("one that ends with the buffer", &|k| {
                    let at = k.times(k.i, 4);
                    let address = k.b.ins().iadd(k.data.base(), at);
                    let flags = MemFlagsData::new();
                    let low = k.int(ITEMS - 1);
                    let is_last = k.b.ins().icmp(IntCC::NotEqual, k.i, low);
                    k.b.if_then(is_last, |b| {
                        b.ins().load(types::I32, flags, address, 4);
                    });
                }),
            ],
        ],
    );
}

#[test]
fn invalid_writes_of_global_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Store, is_buffer),
        &[
            [
                ("the element behind the last", &|k| {
                    let at = k.plus(k.i, 1);
                    k.write(k.to, at, k.i);
                }),
                ("the last element", &|k| {
                    let at = k.xor(k.i, ITEMS - 1);
                    k.write(k.to, at, k.i);
                }),
            ],
            [
                ("by an index twice as large", &|k| {
                    let at = k.times(k.i, 2);
                    k.write(k.to, at, k.i);
                }),
                ("by an index twice as large, where there is room", &|k| {
                    let (at, is_low) = (k.times(k.i, 2), k.is_below(k.i, ITEMS / 2));
                    let (to, i) = (k.to, k.i);
                    k.b.if_then(is_low, |b| b.store(to, at, i));
                }),
            ],
            [
                ("by the work-item before the first", &|k| {
                    let at = k.plus(k.i, -1);
                    k.write(k.raw, at, k.i);
                }),
                ("by an index that wraps around to the start", &|k| {
                    let next = k.plus(k.i, 1);
                    let at = k.b.ins().band_imm_s(next, ITEMS - 1);
                    k.write(k.raw, at, k.i);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_reads_of_local_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Load, is_group),
        &[
            [
                ("the neighbour's value, the last one's too", &|k| {
                    let tile = k.tile("tile", GROUP);
                    k.write(tile, k.own, k.i);
                    k.b.barrier();
                    let at = k.plus(k.own, 1);
                    k.read(tile, at);
                }),
                ("the neighbour's value, with room for one more", &|k| {
                    let tile = k.tile("tile", GROUP + 1);
                    k.write(tile, k.own, k.i);
                    let behind = k.int(GROUP);
                    k.write(tile, behind, k.group);
                    k.b.barrier();
                    let at = k.plus(k.own, 1);
                    k.read(tile, at);
                }),
            ],
            [
                ("one array through the other", &|k| {
                    let (first, second) = (k.tile("first", GROUP), k.tile("second", GROUP));
                    k.write(first, k.own, k.i);
                    k.write(second, k.own, k.i);
                    let at = k.plus(k.own, GROUP);
                    k.read(first, at);
                }),
                ("each array by itself", &|k| {
                    let (first, second) = (k.tile("first", GROUP), k.tile("second", GROUP));
                    k.write(first, k.own, k.i);
                    k.write(second, k.own, k.i);
                    k.read(first, k.own);
                    k.read(second, k.own);
                }),
            ],
            [
                ("by the number in the grid", &|k| {
                    let tile = k.tile("tile", GROUP);
                    k.write(tile, k.own, k.i);
                    k.read(tile, k.i);
                }),
                ("by the number in the grid, with that many elements", &|k| {
                    let tile = k.tile("tile", ITEMS);
                    k.write(tile, k.i, k.i);
                    k.read(tile, k.i);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_writes_of_local_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Store, is_group),
        &[
            [
                ("the element behind the last", &|k| {
                    let tile = k.tile("tile", GROUP);
                    let at = k.plus(k.own, 1);
                    k.write(tile, at, k.i);
                }),
                ("as many elements as are written", &|k| {
                    let tile = k.tile("tile", GROUP + 1);
                    let at = k.plus(k.own, 1);
                    k.write(tile, at, k.i);
                }),
            ],
            [
                ("by the number in the grid", &|k| {
                    let tile = k.tile("tile", GROUP);
                    k.write(tile, k.i, k.i);
                }),
                ("by the number in the group", &|k| {
                    let tile = k.tile("tile", GROUP);
                    k.write(tile, k.own, k.i);
                }),
            ],
            [
                ("two by two, in half the room", &|k| {
                    let (tile, at) = (k.tile("tile", GROUP), k.times(k.own, 2));
                    k.write(tile, at, k.i);
                }),
                ("two by two", &|k| {
                    let (tile, at) = (k.tile("tile", 2 * GROUP), k.times(k.own, 2));
                    k.write(tile, at, k.i);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_reads_of_private_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Load, is_stack),
        &[
            [
                ("the element behind the last", &|k| {
                    let (slot, zero, one) = (k.slot(1), k.int(0), k.int(1));
                    k.write(slot, zero, k.i);
                    k.read(slot, one);
                }),
                ("the last element", &|k| {
                    let (slot, zero, one) = (k.slot(2), k.int(0), k.int(1));
                    k.write(slot, zero, k.i);
                    k.write(slot, one, k.i);
                    k.read(slot, one);
                }),
            ],
            [
                ("by the work-item's number", &|k| {
                    let slot = k.slot(GROUP as u32);
                    let (zero, end, one) = (k.int(0), k.int(GROUP), k.int(1));
                    k.b.for_range(zero, end, one, |b, at| b.store(slot, at, at));
                    k.read(slot, k.i);
                }),
                ("by the number in the group", &|k| {
                    let slot = k.slot(GROUP as u32);
                    let (zero, end, one) = (k.int(0), k.int(GROUP), k.int(1));
                    k.b.for_range(zero, end, one, |b, at| b.store(slot, at, at));
                    k.read(slot, k.own);
                }),
            ],
            [
                ("the slot before", &|k| {
                    let (first, second) = (k.slot(2), k.slot(2));
                    let (zero, before) = (k.int(0), k.int(-1));
                    k.write(first, zero, k.i);
                    k.write(second, zero, k.i);
                    k.read(first, before);
                }),
                ("its own slot", &|k| {
                    let (first, second, zero) = (k.slot(2), k.slot(2), k.int(0));
                    k.write(first, zero, k.i);
                    k.write(second, zero, k.i);
                    k.read(first, zero);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_writes_of_private_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Store, is_stack),
        &[
            [
                ("the element behind the last", &|k| {
                    let (slot, four) = (k.slot(4), k.int(4));
                    k.write(slot, four, k.i);
                }),
                ("the last element", &|k| {
                    let (slot, three) = (k.slot(4), k.int(3));
                    k.write(slot, three, k.i);
                }),
            ],
            [
                ("a loop that runs once too often", &|k| {
                    let (slot, zero, end, one) = (k.slot(7), k.int(0), k.int(8), k.int(1));
                    k.b.for_range(zero, end, one, |b, at| b.store(slot, at, at));
                }),
                ("a loop over all elements", &|k| {
                    let (slot, zero, end, one) = (k.slot(8), k.int(0), k.int(8), k.int(1));
                    k.b.for_range(zero, end, one, |b, at| b.store(slot, at, at));
                }),
            ],
            [
                ("by what the host has written, twice", &|k| {
                    let slot = k.slot(2);
                    let value = k.b.load(k.data, k.i);
                    let at = k.times(value, 2);
                    k.write(slot, at, k.i);
                }),
                ("by what the host has written", &|k| {
                    let slot = k.slot(2);
                    let at = k.b.load(k.data, k.i);
                    k.write(slot, at, k.i);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_reads_of_constant_memory() {
    check(
        |finding| is_outside(finding, AccessKind::Load, is_datum),
        &[
            [
                ("the element behind the last", &|k| {
                    let end = k.int(DATUM);
                    k.read(k.constants, end);
                }),
                ("the last element", &|k| {
                    let last = k.int(DATUM - 1);
                    k.read(k.constants, last);
                }),
            ],
            [
                ("by the number in the group", &|k| k.read(k.constants, k.own)),
                ("by the number in the group, in a circle", &|k| {
                    let at = k.b.ins().band_imm_s(k.own, DATUM - 1);
                    k.read(k.constants, at);
                }),
            ],
            [
                ("the element before the first, of one of two", &|k| {
                    let (is_low, before) = (k.is_below(k.i, ITEMS / 2), k.int(-1));
                    let [a, b] = [k.constants, k.variables].map(BufferParam::base);
                    let which = k.b.ins().select(is_low, a, b);
                    k.read(BufferParam::at(which), before);
                }),
                ("the first element of one of two", &|k| {
                    let (is_low, first) = (k.is_below(k.i, ITEMS / 2), k.int(0));
                    let [a, b] = [k.constants, k.variables].map(BufferParam::base);
                    let which = k.b.ins().select(is_low, a, b);
                    k.read(BufferParam::at(which), first);
                }),
            ],
        ],
    );
}

#[test]
fn invalid_writes_of_variables_of_the_module() {
    let is_first = |k: &mut Body<'_, '_>| k.is_below(k.i, 1);
    check(
        |finding| is_outside(finding, AccessKind::Store, is_datum),
        &[
            [
                ("the element behind the last", &|k| {
                    let (variables, is_first, end) = (k.variables, is_first(k), k.int(DATUM));
                    k.b.if_then(is_first, |b| b.store(variables, end, end));
                }),
                ("the last element", &|k| {
                    let (variables, is_first, last) = (k.variables, is_first(k), k.int(DATUM - 1));
                    k.b.if_then(is_first, |b| b.store(variables, last, last));
                }),
            ],
            [
                ("by the work-item's number", &|k| k.write(k.variables, k.i, k.i)),
                ("by the work-item's number, where there is room", &|k| {
                    let (variables, i, is_low) = (k.variables, k.i, k.is_below(k.i, DATUM));
                    k.b.if_then(is_low, |b| b.store(variables, i, i));
                }),
            ],
            [
                ("the element before the first", &|k| {
                    let (variables, is_first, before) = (k.variables, is_first(k), k.int(-1));
                    k.b.if_then(is_first, |b| b.store(variables, before, before));
                }),
                ("the first element", &|k| {
                    let (variables, is_first, zero) = (k.variables, is_first(k), k.int(0));
                    k.b.if_then(is_first, |b| b.store(variables, zero, zero));
                }),
            ],
        ],
    );
}
