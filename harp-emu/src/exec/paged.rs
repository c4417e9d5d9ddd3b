//! Loads, stores and addresses of atomic operations through the page table.
//!
//! The fast path handles pages that are in place, for which the table only decides whether an access is
//! permitted, and leaves everything else to the precise path.
//!
//! An access that crosses a page boundary is two accesses, one in each page, and needs both pages'
//! permission. Base loads and stores end with their word and atomic operations are aligned, so only
//! sub-word instructions cross. All lanes are translated before anything is read or written. If several
//! lanes fault, the fault of the lowest lane is reported, with all lanes that have the same fault.

use std::mem::discriminant;
use std::ops::ControlFlow;

use harp_isa::Gpr;

use super::lanes::{index, lanes_of};
use super::memory::{Extend, Width, load_bytes, store_bytes};
use super::{Exec, Flow, NEXT, OTHER, Precise, Way};
use crate::tlb::{InPlace, PAGE};
use crate::trap::PageAccess;
use crate::trap::TrapKind;
use crate::warp::Reg;
use crate::word::Word;

/// A part of a lane's access: bytes of one page.
#[derive(Clone, Copy)]
struct Piece<W> {
    lane: usize,
    /// The virtual address, for messages.
    virt: u64,
    phys: W,
    bytes: usize,
    /// The bytes of the access before this part.
    before: usize,
}

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// Leaves the instruction to the precise path unless the executing lanes' addresses, `base` + `offset`, are
    /// physical ones: all their pages are in place and permit the access, or nothing is translated. The accesses
    /// must not cross page boundaries.
    #[inline(always)]
    pub(super) fn in_place(&self, base: Gpr, offset: W, access: PageAccess) -> Flow {
        self.all_in_place(self.reg(base), offset, access)
    }

    /// As [`in_place`](Self::in_place), of addresses that are not in a register.
    #[inline(always)]
    pub(super) fn all_in_place(&self, base: &Reg<W, C>, offset: W, access: PageAccess) -> Flow {
        if !self.env.translates {
            return NEXT;
        }
        let pages = self.system.tlb.in_place(self.warp.supervisor);
        if are_in_place(pages, base.as_flattened(), offset, self.mask, access) {
            NEXT
        } else {
            OTHER
        }
    }
}

/// Whether the pages of the addresses `base` + `offset` in the lanes of `mask` are in place and permit the access.
#[inline(never)]
fn are_in_place<W: Word>(
    pages: InPlace<'_>,
    base: &[W],
    offset: W,
    mask: u64,
    access: PageAccess,
) -> bool {
    let address = |lane: usize| base[lane].add(offset).to_u64();
    let first = address(0);
    if (0..base.len()).fold(0, |differ, lane| differ | (address(lane) ^ first)) < PAGE {
        // All lanes, whether they execute or not, are in one page.
        return pages.permit(first, access);
    }
    pages.permit_all(lanes_of(mask).map(address), access)
}

impl<W: Word, const C: usize> Exec<'_, W, C, Precise> {
    /// The physical address of a virtual one.
    pub(super) fn translate(&self, address: u64, access: PageAccess) -> Result<u64, TrapKind> {
        self.system.tlb.translate(address, access, self.warp.supervisor)
    }

    /// The pieces of all executing lanes' accesses, lowest lane first. They are permitted, but need not be in
    /// memory or on a device.
    fn pieces(
        &mut self,
        addresses: &Reg<W, C>,
        width: Width,
        access: PageAccess,
    ) -> ControlFlow<(), Vec<Piece<W>>> {
        let mut pieces = Vec::new();
        let mut fault: Option<(TrapKind, u64)> = None;
        for lane in lanes_of(self.mask) {
            let address = addresses.as_flattened()[lane];
            let bytes = width.at(address);
            let first = bytes.min((PAGE - address.to_u64() % PAGE) as usize);
            for (before, bytes) in [(0, first), (first, bytes - first)] {
                if bytes == 0 {
                    continue;
                }
                let virt = address.add(W::from_u64(before as u64)).to_u64();
                match self.translate(virt, access) {
                    Ok(phys) => {
                        let phys = W::from_u64(phys);
                        pieces.push(Piece { lane, virt, phys, bytes, before });
                    }
                    Err(kind) => match &mut fault {
                        None => fault = Some((kind, 1 << lane)),
                        Some((first, lanes)) if discriminant(first) == discriminant(&kind) => {
                            *lanes |= 1 << lane;
                        }
                        Some(_) => {}
                    },
                }
            }
        }
        match fault {
            None => ControlFlow::Continue(pieces),
            Some((kind, lanes)) => match self.trap(kind, lanes) {
                ControlFlow::Break(()) | ControlFlow::Continue(()) => ControlFlow::Break(()),
            },
        }
    }

    /// Traps in the lanes with a piece for which `is_bad` holds; `kind` gets the virtual address of the first.
    fn no_piece(
        &mut self,
        pieces: &[Piece<W>],
        is_bad: impl Fn(&Piece<W>) -> bool,
        kind: impl Fn(u64) -> TrapKind,
    ) -> Flow {
        let bad = pieces.iter().filter(|piece| is_bad(piece));
        let lanes = bad.clone().fold(0, |lanes, piece| lanes | 1 << piece.lane);
        match bad.clone().next() {
            None => NEXT,
            Some(first) => self.trap(kind(first.virt), lanes),
        }
    }

    /// Traps in the lanes with a piece that is neither in memory nor on a device, or that may not be stored to.
    fn check_pieces(&mut self, pieces: &[Piece<W>], store: bool) -> Flow {
        let limit = self.env.read_only_below;
        let size = size_of_val(self.env.cells) as u64;
        let protected = |piece: &Piece<W>| store && piece.phys.to_u64() < limit;
        self.no_piece(pieces, protected, |address| TrapKind::ReadOnly { address, limit })?;
        let (has_console, console) = (self.env.has_console, W::sign_bit());
        let unanswered = |piece: &Piece<W>| {
            let end = piece.phys.to_u64().checked_add(piece.bytes as u64);
            let is_console = has_console && piece.phys.sub(console).to_u64() < W::BYTES as u64;
            end.is_none_or(|end| end > size) && !is_console
        };
        self.no_piece(pieces, unanswered, |address| TrapKind::BadAddress { address, store })
    }

    pub(super) fn load_paged(
        &mut self,
        dst: Gpr,
        addresses: &Reg<W, C>,
        width: Width,
        extend: Extend,
    ) -> Flow {
        let pieces = self.pieces(addresses, width, PageAccess::Load)?;
        self.check_pieces(&pieces, false)?;
        for access in pieces.chunk_by(|a, b| a.lane == b.lane) {
            let mut value = 0;
            let mut bytes = 0;
            for piece in access {
                let part = if self.is_console(piece.phys) {
                    self.system.console.take().map_or(0, u64::from)
                } else {
                    load_bytes::<W>(self.env.cells, piece.phys, piece.bytes)
                };
                value |= part << (8 * piece.before);
                bytes += piece.bytes;
            }
            let value = W::from_u64(extend.apply(value, bytes));
            self.warp.regs[index(dst)].as_flattened_mut()[access[0].lane] = value;
        }
        NEXT
    }

    pub(super) fn store_paged(&mut self, value: Gpr, addresses: &Reg<W, C>, width: Width) -> Flow {
        let pieces = self.pieces(addresses, width, PageAccess::Store)?;
        self.check_pieces(&pieces, true)?;
        for piece in pieces {
            let value = self.lane(value, piece.lane).to_u64() >> (8 * piece.before);
            if self.is_console(piece.phys) {
                self.system.console.write(value as u8);
            } else {
                store_bytes::<W>(self.env.cells, piece.phys, value, piece.bytes);
                self.note_store(piece.phys, piece.bytes);
            }
        }
        self.after_changes()
    }

    /// The physical addresses of an atomic operation in the executing lanes; those of other lanes are undefined.
    pub(super) fn atomic_paged(
        &mut self,
        addresses: &Reg<W, C>,
        size: usize,
    ) -> ControlFlow<(), Reg<W, C>> {
        let pieces = self.pieces(addresses, Width::Bytes(size), PageAccess::Atomic)?;
        let limit = self.env.read_only_below;
        let memory = size_of_val(self.env.cells) as u64;
        let protected = |piece: &Piece<W>| piece.phys.to_u64() < limit;
        self.no_piece(&pieces, protected, |address| TrapKind::ReadOnly { address, limit })?;
        let outside = |piece: &Piece<W>| piece.phys.to_u64() >= memory;
        let kind = |address| TrapKind::BadAddress { address, store: true };
        self.no_piece(&pieces, outside, kind)?;
        let mut physical = *addresses;
        for piece in pieces {
            physical.as_flattened_mut()[piece.lane] = piece.phys;
        }
        ControlFlow::Continue(physical)
    }
}
