/* The walk over a grid of one dimension with stride and end in registers; otherwise the same as line.s. */
        ld %r0, %r3, D_SPATIAL
        rtop @p0, %r0
  @p0 ? jmpi volume
line:
        ld %stride, %r3, D_STRIDE
        ld %full, %r3, D_FULL
        jmpi line_test
line_next:
        ldi %r0, runtime.arguments
        ori %r1, %item, #0
        jali %ra, runtime.kernel
line_returned:
        add %item, %item, %stride
line_test:
        sub %r2, %item, %full
        isneg @p0, %r2
  @p0 ? jmpi line_next
        ldi %r3, descriptor
