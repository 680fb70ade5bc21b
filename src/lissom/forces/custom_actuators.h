// Calls of users' actuators (tracing/native) by cells of their term, which hold their addresses. They exist on
// the CPU only.

// Call function `which` of actuator e with q and its inputs w, sizes of channels: 0 writes τ to s.channel.row, 1 writes
// ∂τ/∂q and 2 ∂τ/∂w behind the first nv numbers of this row.
LISSOM_INLINE void call_actuator(
    const Tables& t, const Scratch& s, int place, int e, int which, int i, array<double> q
) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const int* entry = row(t.terms.data[place].index, e);
    const double* in[] = {row(q, i), row(s.channel.size, i) + entry[0]};
    double* out[] = {row(s.channel.row, i) + (which == 0 ? 0 : t.nv)};
    (*(const Function*)row(t.terms.data[place].cell, e)[which])(in, out);
#endif
}
