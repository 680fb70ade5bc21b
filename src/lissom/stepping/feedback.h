// Calls of a traced feedback law (tracing/native) at the time and the state of a step. They exist on the CPU only.

// u at a time.
LISSOM_INLINE void evaluate_law(const StepRows& x, int i, double time) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const double* in[] = {&time, row(x.q, i), row(x.v, i)};
    double* out[] = {row(x.u, i)};
    ((Function)x.feedback.function.data[0])(in, out);
#endif
}

// ∂u/∂q and ∂u/∂v at a time, row by row.
LISSOM_INLINE void differentiate_law(const StepRows& x, int i, double time) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const double* in[] = {&time, row(x.q, i), row(x.v, i)};
    double* out[] = {row(x.feedback.by_q, i), row(x.feedback.by_v, i)};
    ((Function)x.feedback.function.data[1])(in, out);
#endif
}
