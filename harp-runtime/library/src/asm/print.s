/* Prints the results on the console, each on a line: all hex digits of each word, the lowest word first.
   C_PRINTED has the address of two words for each word of the results: a mask of the bits that count, and the
   newline behind the last word of a result, or 0. This text replaces the call's halt. */
        ldi %r4, runtime.call
        ld %r0, %r4, C_RESULTS
        ld %r1, %r4, C_PRINTED
        ld %r2, %r4, C_PRINTED_COUNT
        ldi %r4, #1
        shli %r4, %r4, (__WORD*8 - 1)   /* the console: only the top bit is set */
runtime.word:
        iszero @p0, %r2
  @p0 ? halt
        ld %r3, %r0, #0
        ld %r5, %r1, #0
        and %r3, %r3, %r5
        ldi %r5, (__WORD*8 - 4)
runtime.digit:
        shr %r6, %r3, %r5
        andi %r6, %r6, #15
        addi %r7, %r6, #48              /* 0 to 9 */
        subi %r6, %r6, #10
        isneg @p0, %r6
  @p0 ? jmpi runtime.put
        addi %r7, %r7, #39              /* a to f */
runtime.put:
        st %r7, %r4, #0
        subi %r5, %r5, #4
        isneg @p0, %r5
        notp @p0, @p0
  @p0 ? jmpi runtime.digit
        ld %r7, %r1, __WORD
        rtop @p0, %r7
  @p0 ? st %r7, %r4, #0
        addi %r0, %r0, __WORD
        addi %r1, %r1, __WORD
        addi %r1, %r1, __WORD
        subi %r2, %r2, #1
        jmpi runtime.word
