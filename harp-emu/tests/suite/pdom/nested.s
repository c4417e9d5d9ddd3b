/* Lane 0 adds 3, lane 1 adds 4, lanes 2 and 3 add 2. */
body:   tid %r0
        subi %r1, %r0, #2
        isneg @p0, %r1
  @p0 ? split
  @p0 ? jmpi b
        addi %r4, %r3, #2
        jmpi outer
b:      subi %r1, %r0, #1
        isneg @p1, %r1
  @p1 ? split
  @p1 ? jmpi d
        addi %r4, %r3, #4
        jmpi inner
d:      addi %r4, %r3, #3
inner:  join
outer:  join
