4w8/8/16/16
.perm x
.entry
.global
all:    nop
        di
        ei
        tlbadd %r1, %r2, %r3
        tlbflush
        neg %r1, %r7
        not %r7, %r1
        and %r1, %r2, %r3
        and %r7, %r7, %r7
  @p7 ? and %r0, %r0, %r0
        or %r1, %r2, %r3
        or %r7, %r7, %r7
  @p7 ? or %r0, %r0, %r0
        xor %r1, %r2, %r3
        xor %r7, %r7, %r7
  @p7 ? xor %r0, %r0, %r0
        add %r1, %r2, %r3
        add %r7, %r7, %r7
  @p7 ? add %r0, %r0, %r0
        sub %r1, %r2, %r3
        sub %r7, %r7, %r7
  @p7 ? sub %r0, %r0, %r0
        mul %r1, %r2, %r3
        mul %r7, %r7, %r7
  @p7 ? mul %r0, %r0, %r0
        div %r1, %r2, %r3
        div %r7, %r7, %r7
  @p7 ? div %r0, %r0, %r0
        mod %r1, %r2, %r3
        mod %r7, %r7, %r7
  @p7 ? mod %r0, %r0, %r0
        shl %r1, %r2, %r3
        shl %r7, %r7, %r7
  @p7 ? shl %r0, %r0, %r0
        shr %r1, %r2, %r3
        shr %r7, %r7, %r7
  @p7 ? shr %r0, %r0, %r0
        andi %r1, %r2, #0
        andi %r7, %r7, #511
  @p5 ? andi %r3, %r0, #-512
        ori %r1, %r2, #0
        ori %r7, %r7, #511
  @p5 ? ori %r3, %r0, #-512
        xori %r1, %r2, #0
        xori %r7, %r7, #511
  @p5 ? xori %r3, %r0, #-512
        addi %r1, %r2, #0
        addi %r7, %r7, #511
  @p5 ? addi %r3, %r0, #-512
        subi %r1, %r2, #0
        subi %r7, %r7, #511
  @p5 ? subi %r3, %r0, #-512
        muli %r1, %r2, #0
        muli %r7, %r7, #511
  @p5 ? muli %r3, %r0, #-512
        divi %r1, %r2, #0
        divi %r7, %r7, #511
  @p5 ? divi %r3, %r0, #-512
        modi %r1, %r2, #0
        modi %r7, %r7, #511
  @p5 ? modi %r3, %r0, #-512
        shli %r1, %r2, #0
        shli %r7, %r7, #511
  @p5 ? shli %r3, %r0, #-512
        shri %r1, %r2, #0
        shri %r7, %r7, #511
  @p5 ? shri %r3, %r0, #-512

lab:    jali %r5, lab
        jalr %r5, %r6
        jmpi lab
  @p1 ? jmpi fwd
        jmpr %r6
        clone %r3
        jalis %r5, %r3, lab
        jalrs %r5, %r3, %r6
        jmprt %r5
        ld %r1, %r2, #-4
        ld %r1, %r2, __WORD
        st %r1, %r2, #4
  @p0 ? st %r7, %r7, #511
        ldi %r1, #0x1ff
        ldi %r1, #-1
        ldi %r1, lab
        ldi %r1, data
        rtop @p1, %r7
        andp @p1, @p2, @p3
        orp @p7, @p7, @p7
        xorp @p0, @p0, @p0
        notp @p6, @p1
        isneg @p2, %r1
        iszero @p3, %r1
        halt
        trap
        jmpru %r1
        skep %r1
        reti
        tlbrm %r1
        itof %r1, %r2
        ftoi %r1, %r2
        fadd %r1, %r2, %r3
        fsub %r1, %r2, %r3
        fmul %r1, %r2, %r3
        fdiv %r1, %r2, %r3
        fneg %r1, %r2
        wspawn %r1, %r2, %r3
  @p3 ? split
        join
        bar %r1, %r2
fwd:    addi %sp, %fp, #1
        jmpr %ra
.align 32
.perm rw
data:   .word 1 -1 0x10 010
        .byte 0x7f
        .string "a\"b\n"
.def K 12
        .word 3
.perm r
.global
ro:     .space 3
tail:
