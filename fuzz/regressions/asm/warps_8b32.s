8b32/32/8/8+x
.def WARPS 4
.perm x
.global
main:   ldi %r1, #1
        ldi %r3, worker
sp:     wspawn %r0, %r3, %r1
        addi %r1, %r1, #1
        subi %r6, %r1, WARPS
        rtop @p0, %r6
  @p0 ? jmpi sp
        ldi %r0, #0
        ldi %r1, #1
        ldi %r3, WARPS
        bar %r1, %r3
        ldi %r1, #0
pr:     ldi %r6, out
        shli %r3, %r1, (`__WORD)
        add %r6, %r6, %r3
        ld %r7, %r6, #0
        jali %r2, puthex
        addi %r1, %r1, #1
        subi %r3, %r1, WARPS
        rtop @p0, %r3
  @p0 ? jmpi pr
        halt
worker: muli %r7, %r0, #17
        ldi %r6, out
        shli %r3, %r0, (`__WORD)
        add %r6, %r6, %r3
        st %r7, %r6, #0
        ldi %r1, #1
        ldi %r3, WARPS
        bar %r1, %r3
        halt
.align 64
.perm rw
out:    .space 4
