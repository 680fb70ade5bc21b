// Calls of users' laws of springs (tracing/native) by the cells of their term, which hold their addresses. They exist on
// the CPU only.

LISSOM_INLINE vec3 call_law(const TermRows& rows, int e, double x, double rate) {
    vec3 found;
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const double* in[] = {&x, &rate};
    double* out[] = {&found[0]};
    (*(const Function*)row(rows.cell, e)[0])(in, out);
#endif
    return found;
}
