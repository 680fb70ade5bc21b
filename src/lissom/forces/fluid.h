// Call of a user's current (tracing/native) by the cell of the term, which holds its address. It exists on the CPU only.

LISSOM_INLINE vec6 call_current(const TermRows& rows, vec3 x, double time) {
    vec6 found;
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const double* in[] = {&x[0], &time};
    double* out[] = {&found[0]};
    (*(const Function*)rows.cell.data[0])(in, out);
#endif
    return found;
}
