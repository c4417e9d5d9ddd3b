/* The walk over a run of a grid with one dimension, behind runs.s. The last run may end with a chunk that has surplus
   lanes, for which its end is kept in the word at the first stack pointer, which is unused. */
        ld %r0, %r3, D_SPATIAL
        rtop @p0, %r0
  @p0 ? jmpi volume
line:
        st %end, %sp, #0
        ld %r0, %r3, D_FULL
        sub %r1, %r0, %end
        isneg @p0, %r1
  @p0 ? ori %end, %r0, #0
        jmpi line_test
line_next:
        ldi %r0, runtime.arguments
        ori %r1, %item, #0
        jali %ra, runtime.kernel
line_returned:
        add %item, %item, %stride
line_test:
        sub %r2, %item, %end
        isneg @p0, %r2
  @p0 ? jmpi line_next
        ldi %r3, descriptor
        ld %r2, %sp, #0
