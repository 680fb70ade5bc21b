// Calls of the native code of bodies/point_elasticity by the cells of their term, which hold their addresses. They exist
// on the CPU only. A row of the table of integers holds the start of the body's numbers, and its first coordinates in q
// and in v.

// tau += the force of body e.
LISSOM_INLINE void add_point_force(
    const Tables& t, int place, int e, int i, array<double> q, array<double> v, array<double> tau
) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const auto& rows = t.terms.data[place];
    const int* at = row(rows.index, e);
    const double* in[] = {row(q, i) + at[1], row(v, i) + at[2], row(rows.number, 0) + at[0]};
    double energy;
    double* out[] = {row(tau, i) + at[2], &energy};
    (*(const Function*)row(rows.cell, e)[0])(in, out);
#endif
}

// The energy of body e.
LISSOM_INLINE double point_energy(const Tables& t, int place, int e, int i, array<double> q) {
    double energy = 0.0;
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const auto& rows = t.terms.data[place];
    const int* at = row(rows.index, e);
    const double* x = row(q, i) + at[1];
    const double* in[] = {x, x, row(rows.number, 0) + at[0]};  // the energy does not depend on rates
    double* out[] = {nullptr, &energy};
    (*(const Function*)row(rows.cell, e)[0])(in, out);
#endif
    return energy;
}

// out += by_q ∂f/∂θ + by_v ∂f/∂θ̇ of body e, out in rows of `width`.
LISSOM_INLINE void add_point_stiffness(
    const Tables& t, int place, int e, int width, int i, array<double> q, array<double> v, double by_q, double by_v,
    array<double> out
) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const auto& rows = t.terms.data[place];
    const int* at = row(rows.index, e);
    const double factors[] = {by_q, by_v, double(width)};
    const double* in[] = {row(q, i) + at[1], row(v, i) + at[2], row(rows.number, 0) + at[0], factors};
    double* to[] = {row(out, i) + size_t(at[2]) * width + at[2]};
    (*(const Function*)row(rows.cell, e)[1])(in, to);
#endif
}

// tau += the change of the force of body e along (dq, dv).
LISSOM_INLINE void add_point_change(
    const Tables& t, int place, int e, int i, array<double> q, array<double> v, array<double> dq, array<double> dv,
    array<double> tau
) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const auto& rows = t.terms.data[place];
    const int* at = row(rows.index, e);
    const double* in[] = {
        row(q, i) + at[1], row(v, i) + at[2], row(rows.number, 0) + at[0], row(dq, i) + at[2], row(dv, i) + at[2]
    };
    double* out[] = {row(tau, i) + at[2]};
    (*(const Function*)row(rows.cell, e)[2])(in, out);
#endif
}
