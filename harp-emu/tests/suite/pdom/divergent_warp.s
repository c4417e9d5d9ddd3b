/* Lanes 0 and 1 add 1, lanes 2 and 3 add 2. */
body:   tid %r0
        subi %r1, %r0, #2
        isneg @p0, %r1
  @p0 ? split
  @p0 ? jmpi then
        addi %r4, %r3, #2
        jmpi next
then:   addi %r4, %r3, #1
next:   join
