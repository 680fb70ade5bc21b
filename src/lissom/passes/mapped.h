// Calls of traced functions (tracing/native) for nodes whose pose is a user's function of q. They exist on the CPU only.
// Those of a material point have the numbers that depend on the point as third argument.

// R, p, S and S_q of map m at the coordinates x, which start at `first` in q; `curve_function` reads x.
LISSOM_INLINE void follow_function(
    const Tables& t, const Scratch& s, int i, int m, array<double> q, int first
) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const int at = t.maps.column_start.data[m], n = t.maps.column_start.data[m + 1] - at;
    double* x = row(s.maps.x, i) + at;
    for (int j = 0; j < n; ++j)
        x[j] = row(q, i)[first + j];
    const double* in[] = {x, nullptr, t.maps.point.data + t.maps.point_start.data[m]};
    double* out[] = {
        (double*)(row(s.maps.R, i) + m), (double*)(row(s.maps.p, i) + m), (double*)(row(s.maps.S, i) + at),
        (double*)(row(s.maps.S_q, i) + t.maps.pair_start.data[m])
    };
    (*(const Function*)t.maps.place_function.data[m])(in, out);
#endif
}

// S_vv of map m at the coordinates of the last call of `follow_function`, and at its rates, which start at `first` in v.
LISSOM_INLINE void curve_function(
    const Tables& t, const Scratch& s, int i, int m, array<double> v, int first
) {
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const double* in[] = {
        row(s.maps.x, i) + t.maps.column_start.data[m], row(v, i) + first,
        t.maps.point.data + t.maps.point_start.data[m]
    };
    double* out[] = {(double*)(row(s.maps.S_vv, i) + t.maps.column_start.data[m])};
    (*(const Function*)t.maps.curve_function.data[m])(in, out);
#endif
}
