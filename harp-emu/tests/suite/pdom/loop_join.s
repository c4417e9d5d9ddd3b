/* Lane n adds %r3 n + 1 times. A join in each round, and rounds as long as any lane wants one. */
body:   tid %r0
        addi %r1, %r0, #1
        ldi %r4, #0
        rtop @p0, %r1
loop:
  @p0 ? split
  @p0 ? jmpi more
        jmpi next
more:   add %r4, %r4, %r3
        subi %r1, %r1, #1
next:   join
        rtop @p0, %r1
        anyp @p1, @p0
  @p1 ? jmpi loop
