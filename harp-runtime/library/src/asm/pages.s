/* Maps the pages of the image, the stack and the console to themselves, for machines that translate
   addresses: at reset they have only page 0 mapped, so the call's words must lie in it. */
        ldi %r0, runtime.call
        ld %r0, %r0, C_END
        ldi %r1, #63                    /* all permissions */
        ldi %r2, #1
        shli %r2, %r2, (__WORD*8 - 1)   /* the console */
        tlbadd %r2, %r2, %r1
        ldi %r2, #1
        shli %r2, %r2, #12              /* bytes of a page */
runtime.map:
        sub %r0, %r0, %r2
        tlbadd %r0, %r0, %r1
        rtop @p0, %r0
  @p0 ? jmpi runtime.map
