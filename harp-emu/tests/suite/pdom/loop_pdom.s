/* Lane n adds %r3 n + 1 times. The loop has no join: its split lets the lanes go on together. */
body:   tid %r0
        addi %r1, %r0, #1
        ldi %r4, #0
loop:   add %r4, %r4, %r3
        subi %r1, %r1, #1
        rtop @p0, %r1
  @p0 ? split
  @p0 ? jmpi loop
