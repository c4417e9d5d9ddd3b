//! The effect of each instruction, about one line per instruction.

use harp_isa::{Gpr, Pred, Visitor};

use super::atomic::Rmw;
use super::halves::{fadds, fcvtds, fcvtsd, fdivs, ffmas, fmuls, fsqrts, fsubs};
use super::kernels::{Immediate, One, Operation, Three, Two};
use super::memory::Extend;
use super::{Exec, Flow, NEXT, OTHER, Way};
use crate::reference_float;
use crate::word::Word;

/// An immediate, truncated to the word.
#[inline(always)]
fn immediate<W: Word>(imm: i64) -> W {
    W::from_u64(imm.cast_unsigned())
}

impl<W: Word, const C: usize, P: Way> Exec<'_, W, C, P> {
    /// `dst` := `ieee` of the sources, or, on the precise path where floats are the original's, `reference`.
    #[inline(always)]
    fn float<I: Operation<W, W>, R: Operation<W, W>>(
        &mut self,
        dst: Gpr,
        sources: [Gpr; 2],
        ieee: I,
        reference: R,
    ) -> Flow {
        if P::PRECISE && self.env.reference_floats {
            return self.map(dst, sources, reference);
        }
        self.map(dst, sources, ieee)
    }

    /// `dst` := `quotient`, or what is computed with it, of the sources: the host has vector instructions for those of
    /// 4-byte words.
    #[inline(always)]
    fn map_quotient<O: Operation<W, W>>(
        &mut self,
        dst: Gpr,
        sources: [Gpr; 2],
        quotient: O,
    ) -> Flow {
        match W::BYTES {
            4 => self.map(dst, sources, quotient),
            _ => self.map_apart(dst, sources, quotient),
        }
    }

    /// `dst` := `operation` of the sources, for instructions that only 8-byte machines have: for other machines the
    /// fast path contains no code for them.
    #[inline(always)]
    fn map_wide<O: Operation<W, W>>(&mut self, dst: Gpr, sources: [Gpr; 2], operation: O) -> Flow {
        if W::BYTES < 8 && !P::PRECISE {
            return OTHER;
        }
        self.map(dst, sources, operation)
    }
}

impl<W: Word, const C: usize, P: Way> Visitor for Exec<'_, W, C, P> {
    type Output = Flow;

    // Integer
    #[inline(always)]
    fn neg(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_one(dst, src, W::neg)
    }
    #[inline(always)]
    fn not(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_one(dst, src, W::not)
    }
    #[inline(always)]
    fn and(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::bitand)
    }
    #[inline(always)]
    fn or(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::bitor)
    }
    #[inline(always)]
    fn xor(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::bitxor)
    }
    #[inline(always)]
    fn add(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::add)
    }
    #[inline(always)]
    fn sub(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::sub)
    }
    #[inline(always)]
    fn mul(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::mul)
    }
    #[inline(always)]
    fn div(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.divisor(b)?;
        self.map_quotient(dst, [a, b], Two(W::div))
    }
    #[inline(always)]
    fn mod_(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.divisor(b)?;
        self.map_quotient(dst, [a, b], Two(W::rem))
    }
    #[inline(always)]
    fn shl(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::shl)
    }
    #[inline(always)]
    fn shr(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::shr)
    }
    #[inline(always)]
    fn andi(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        self.map_imm(dst, src, imm, W::bitand)
    }
    #[inline(always)]
    fn ori(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        self.map_imm(dst, src, imm, W::bitor)
    }
    #[inline(always)]
    fn xori(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        self.map_imm(dst, src, imm, W::bitxor)
    }
    #[inline(always)]
    fn addi(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        self.map_imm(dst, src, imm, W::add)
    }
    #[inline(always)]
    fn subi(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        self.map_imm(dst, src, imm, W::sub)
    }
    #[inline(always)]
    fn muli(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        self.map_imm(dst, src, imm, W::mul)
    }
    #[inline(always)]
    fn divi(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        let divisor = self.immediate_divisor(imm)?;
        self.map_quotient(dst, [src, src], Immediate(divisor, W::div))
    }
    #[inline(always)]
    fn modi(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        let divisor = self.immediate_divisor(imm)?;
        self.map_quotient(dst, [src, src], Immediate(divisor, W::rem))
    }
    #[inline(always)]
    fn shli(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        self.shift_imm(dst, src, imm, W::shl_less, W::shl)
    }
    #[inline(always)]
    fn shri(&mut self, dst: Gpr, src: Gpr, imm: i64) -> Flow {
        self.shift_imm(dst, src, imm, W::shr_less, W::shr)
    }
    #[inline(always)]
    fn ldi(&mut self, dst: Gpr, imm: i64) -> Flow {
        self.fill(dst, immediate(imm))
    }
    #[inline(always)]
    fn sra(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::sra)
    }
    #[inline(always)]
    fn srl(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::srl)
    }
    #[inline(always)]
    fn divs(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.divisor(b)?;
        self.map_apart(dst, [a, b], Two(W::divs))
    }
    #[inline(always)]
    fn mods(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.divisor(b)?;
        self.map_apart(dst, [a, b], Two(W::mods))
    }
    #[inline(always)]
    fn mulh(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_apart(dst, [a, b], Two(W::mulh))
    }
    #[inline(always)]
    fn mulhu(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_apart(dst, [a, b], Two(W::mulhu))
    }

    // Predicate
    #[inline(always)]
    fn rtop(&mut self, dst: Pred, src: Gpr) -> Flow {
        self.compare_one(dst, src, W::is_not_zero)
    }
    #[inline(always)]
    fn andp(&mut self, dst: Pred, a: Pred, b: Pred) -> Flow {
        self.set_pred(dst, self.pred(a) & self.pred(b))
    }
    #[inline(always)]
    fn orp(&mut self, dst: Pred, a: Pred, b: Pred) -> Flow {
        self.set_pred(dst, self.pred(a) | self.pred(b))
    }
    #[inline(always)]
    fn xorp(&mut self, dst: Pred, a: Pred, b: Pred) -> Flow {
        self.set_pred(dst, self.pred(a) ^ self.pred(b))
    }
    #[inline(always)]
    fn notp(&mut self, dst: Pred, src: Pred) -> Flow {
        self.set_pred(dst, !self.pred(src))
    }
    #[inline(always)]
    fn isneg(&mut self, dst: Pred, src: Gpr) -> Flow {
        self.compare_one(dst, src, W::is_negative)
    }
    #[inline(always)]
    fn iszero(&mut self, dst: Pred, src: Gpr) -> Flow {
        self.compare_one(dst, src, W::is_zero)
    }
    #[inline(always)]
    fn eqp(&mut self, dst: Pred, a: Gpr, b: Gpr) -> Flow {
        self.compare_two(dst, a, b, W::equals)
    }
    #[inline(always)]
    fn ltp(&mut self, dst: Pred, a: Gpr, b: Gpr) -> Flow {
        self.compare_two(dst, a, b, W::lt_signed)
    }
    #[inline(always)]
    fn ltup(&mut self, dst: Pred, a: Gpr, b: Gpr) -> Flow {
        self.compare_two(dst, a, b, W::lt_unsigned)
    }
    #[inline(always)]
    fn ptor(&mut self, dst: Gpr, src: Pred) -> Flow {
        self.pred_to_reg(dst, src)
    }

    // Float
    #[inline(always)]
    fn itof(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.float(dst, [src, src], One(W::itof), One(reference_float::itof))
    }
    #[inline(always)]
    fn ftoi(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.float(dst, [src, src], One(W::ftoi), One(reference_float::ftoi))
    }
    #[inline(always)]
    fn fadd(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.float(dst, [a, b], Two(W::fadd), Two(reference_float::fadd))
    }
    #[inline(always)]
    fn fsub(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.float(dst, [a, b], Two(W::fsub), Two(reference_float::fsub))
    }
    #[inline(always)]
    fn fmul(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.float(dst, [a, b], Two(W::fmul), Two(reference_float::fmul))
    }
    #[inline(always)]
    fn fdiv(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.float(dst, [a, b], Two(W::fdiv), Two(reference_float::fdiv))
    }
    #[inline(always)]
    fn fneg(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.float(dst, [src, src], One(W::fneg), One(reference_float::fneg))
    }
    #[inline(always)]
    fn feqp(&mut self, dst: Pred, a: Gpr, b: Gpr) -> Flow {
        self.compare_two(dst, a, b, W::feq)
    }
    #[inline(always)]
    fn fltp(&mut self, dst: Pred, a: Gpr, b: Gpr) -> Flow {
        self.compare_two(dst, a, b, W::flt)
    }
    #[inline(always)]
    fn flep(&mut self, dst: Pred, a: Gpr, b: Gpr) -> Flow {
        self.compare_two(dst, a, b, W::fle)
    }
    #[inline(always)]
    fn fmin(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::fmin)
    }
    #[inline(always)]
    fn fmax(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_two(dst, a, b, W::fmax)
    }
    #[inline(always)]
    fn fsqrt(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_one(dst, src, W::fsqrt)
    }
    #[inline(always)]
    fn fabs(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_one(dst, src, W::fabs)
    }
    #[inline(always)]
    fn ftrunc(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_one(dst, src, W::ftrunc)
    }
    #[inline(always)]
    fn ffma(&mut self, acc: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_three(acc, a, b, W::ffma)
    }
    #[inline(always)]
    fn fcvtsd(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_wide(dst, [src, src], One(fcvtsd))
    }
    #[inline(always)]
    fn fcvtds(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_wide(dst, [src, src], One(fcvtds))
    }
    #[inline(always)]
    fn utof(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_apart(dst, [src, src], One(W::utof))
    }
    #[inline(always)]
    fn ftou(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_apart(dst, [src, src], One(W::ftou))
    }
    #[inline(always)]
    fn fadds(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_wide(dst, [a, b], Two(fadds))
    }
    #[inline(always)]
    fn fsubs(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_wide(dst, [a, b], Two(fsubs))
    }
    #[inline(always)]
    fn fmuls(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_wide(dst, [a, b], Two(fmuls))
    }
    #[inline(always)]
    fn fdivs(&mut self, dst: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_wide(dst, [a, b], Two(fdivs))
    }
    #[inline(always)]
    fn fsqrts(&mut self, dst: Gpr, src: Gpr) -> Flow {
        self.map_wide(dst, [src, src], One(fsqrts))
    }
    #[inline(always)]
    fn ffmas(&mut self, acc: Gpr, a: Gpr, b: Gpr) -> Flow {
        self.map_wide(acc, [a, b], Three(ffmas))
    }

    // Memory
    #[inline(always)]
    fn ld(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        self.load_word(dst, base, offset)
    }
    #[inline(always)]
    fn st(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        self.store_word(value, base, offset)
    }
    #[inline(always)]
    fn ldb(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        self.load_narrow(dst, base, offset, 1, Extend::Zero)
    }
    #[inline(always)]
    fn ldbs(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        self.load_narrow(dst, base, offset, 1, Extend::Sign)
    }
    #[inline(always)]
    fn ldh(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        self.load_narrow(dst, base, offset, 2, Extend::Zero)
    }
    #[inline(always)]
    fn ldhs(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        self.load_narrow(dst, base, offset, 2, Extend::Sign)
    }
    #[inline(always)]
    fn ldw(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        self.load_narrow(dst, base, offset, 4, Extend::Zero)
    }
    #[inline(always)]
    fn ldws(&mut self, dst: Gpr, base: Gpr, offset: i64) -> Flow {
        self.load_narrow(dst, base, offset, 4, Extend::Sign)
    }
    #[inline(always)]
    fn stb(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        self.store_narrow(value, base, offset, 1)
    }
    #[inline(always)]
    fn sth(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        self.store_narrow(value, base, offset, 2)
    }
    #[inline(always)]
    fn stw(&mut self, value: Gpr, base: Gpr, offset: i64) -> Flow {
        self.store_narrow(value, base, offset, 4)
    }

    // Atomic
    #[inline(always)]
    fn amoadd(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Add, dst, addr, value))
    }
    #[inline(always)]
    fn amoand(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::And, dst, addr, value))
    }
    #[inline(always)]
    fn amoor(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Or, dst, addr, value))
    }
    #[inline(always)]
    fn amoxor(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Xor, dst, addr, value))
    }
    #[inline(always)]
    fn amomin(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Min, dst, addr, value))
    }
    #[inline(always)]
    fn amomax(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Max, dst, addr, value))
    }
    #[inline(always)]
    fn amominu(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Minu, dst, addr, value))
    }
    #[inline(always)]
    fn amomaxu(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Maxu, dst, addr, value))
    }
    #[inline(always)]
    fn amoswap(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Swap, dst, addr, value))
    }
    #[inline(always)]
    fn cas(&mut self, dst: Gpr, addr: Gpr, new: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic(Rmw::Cas, dst, addr, new))
    }
    #[inline(always)]
    fn amoaddw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Add, dst, addr, value))
    }
    #[inline(always)]
    fn amoandw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::And, dst, addr, value))
    }
    #[inline(always)]
    fn amoorw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Or, dst, addr, value))
    }
    #[inline(always)]
    fn amoxorw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Xor, dst, addr, value))
    }
    #[inline(always)]
    fn amominw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Min, dst, addr, value))
    }
    #[inline(always)]
    fn amomaxw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Max, dst, addr, value))
    }
    #[inline(always)]
    fn amominuw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Minu, dst, addr, value))
    }
    #[inline(always)]
    fn amomaxuw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Maxu, dst, addr, value))
    }
    #[inline(always)]
    fn amoswapw(&mut self, dst: Gpr, addr: Gpr, value: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Swap, dst, addr, value))
    }
    #[inline(always)]
    fn casw(&mut self, dst: Gpr, addr: Gpr, new: Gpr) -> Flow {
        self.rarely(|exec| exec.atomic_half(Rmw::Cas, dst, addr, new))
    }

    // Control
    #[inline(always)]
    fn nop(&mut self) -> Flow {
        NEXT
    }
    #[inline(always)]
    fn halt(&mut self) -> Flow {
        self.rarely(Exec::do_halt)
    }
    #[inline(always)]
    fn trap(&mut self) -> Flow {
        self.rarely(Exec::do_trap)
    }
    #[inline(always)]
    fn jali(&mut self, link: Gpr, rel: i64) -> Flow {
        self.do_jali(link, rel)
    }
    #[inline(always)]
    fn jalr(&mut self, link: Gpr, target: Gpr) -> Flow {
        self.do_jalr(link, target)
    }
    #[inline(always)]
    fn jmpi(&mut self, rel: i64) -> Flow {
        self.do_jmpi(rel)
    }
    #[inline(always)]
    fn jmpr(&mut self, target: Gpr) -> Flow {
        self.do_jmpr(target)
    }

    // Simt
    #[inline(always)]
    fn clone(&mut self, lane: Gpr) -> Flow {
        self.rarely(|exec| exec.do_clone(lane))
    }
    #[inline(always)]
    fn jalis(&mut self, link: Gpr, lanes: Gpr, rel: i64) -> Flow {
        self.rarely(|exec| exec.do_jalis(link, lanes, rel))
    }
    #[inline(always)]
    fn jalrs(&mut self, link: Gpr, lanes: Gpr, target: Gpr) -> Flow {
        self.rarely(|exec| exec.do_jalrs(link, lanes, target))
    }
    #[inline(always)]
    fn jmprt(&mut self, target: Gpr) -> Flow {
        self.rarely(|exec| exec.do_jmprt(target))
    }
    #[inline(always)]
    fn wspawn(&mut self, dst: Gpr, pc: Gpr, src: Gpr) -> Flow {
        self.rarely(|exec| exec.do_wspawn(dst, pc, src))
    }
    #[inline(always)]
    fn split(&mut self) -> Flow {
        self.do_split()
    }
    #[inline(always)]
    fn join(&mut self) -> Flow {
        self.do_join()
    }
    #[inline(always)]
    fn bar(&mut self, id: Gpr, warps: Gpr) -> Flow {
        self.rarely(|exec| exec.do_bar(id, warps))
    }
    #[inline(always)]
    fn tid(&mut self, dst: Gpr) -> Flow {
        self.rarely(|exec| exec.do_tid(dst))
    }
    #[inline(always)]
    fn csr(&mut self, dst: Gpr, index: i64) -> Flow {
        self.rarely(|exec| exec.do_csr(dst, index))
    }
    #[inline(always)]
    fn ballot(&mut self, dst: Gpr, src: Pred, index: i64) -> Flow {
        self.rarely(|exec| exec.do_ballot(dst, src, index))
    }
    #[inline(always)]
    fn anyp(&mut self, dst: Pred, src: Pred) -> Flow {
        self.do_anyp(dst, src)
    }
    #[inline(always)]
    fn allp(&mut self, dst: Pred, src: Pred) -> Flow {
        self.do_allp(dst, src)
    }
    #[inline(always)]
    fn shfl(&mut self, dst: Gpr, value: Gpr, lane: Gpr) -> Flow {
        self.rarely(|exec| exec.do_shfl(dst, value, lane))
    }

    // System
    #[inline(always)]
    fn di(&mut self) -> Flow {
        self.rarely(Exec::do_di)
    }
    #[inline(always)]
    fn ei(&mut self) -> Flow {
        self.rarely(Exec::do_ei)
    }
    #[inline(always)]
    fn tlbadd(&mut self, virt: Gpr, phys: Gpr, flags: Gpr) -> Flow {
        self.rarely(|exec| exec.do_tlbadd(virt, phys, flags))
    }
    #[inline(always)]
    fn tlbflush(&mut self) -> Flow {
        self.rarely(Exec::do_tlbflush)
    }
    #[inline(always)]
    fn jmpru(&mut self, target: Gpr) -> Flow {
        self.rarely(|exec| exec.do_jmpru(target))
    }
    #[inline(always)]
    fn skep(&mut self, entry: Gpr) -> Flow {
        self.rarely(|exec| exec.do_skep(entry))
    }
    #[inline(always)]
    fn reti(&mut self) -> Flow {
        self.rarely(Exec::do_reti)
    }
    #[inline(always)]
    fn tlbrm(&mut self, virt: Gpr) -> Flow {
        self.rarely(|exec| exec.do_tlbrm(virt))
    }
}
