// Calls of users' forces (tracing/native) by cells of their term, which hold their addresses. They exist on the CPU only.
// Each row of the table of integers holds the node, the first channel of all forces with inputs, the number n of the
// inputs, and the channels of the inputs.

// Call function `which` of row e at a time, a pose in the world and a body twist: 0 returns the wrench. 1 writes the
// derivatives of its entries by the pose and by the twist, row by row, and 2 those by each input, behind the first n
// numbers of s.channel.row, which are the inputs.
LISSOM_INLINE vec6 call_force(
    const Tables& t, const Scratch& s, int place, int e, int which, int i, double time, mat3 R, vec3 p, vec6 eta
) {
    vec6 wrench;
#if !defined(__CUDACC__) && !defined(__CUDA_ARCH__)
    typedef void (*Function)(const double* const*, double* const*);
    const int* entry = row(t.terms.data[place].index, e);
    const int n = entry[2];
    double* inputs = row(s.channel.row, i);
    for (int k = 0; k < n; ++k)
        inputs[k] = row(s.channel.size, i)[entry[3 + k]];
    double g[16] = {};
    for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 3; ++c)
            g[4 * r + c] = R.data[r][c];
        g[4 * r + 3] = p[r];
    }
    g[15] = 1.0;
    const double* in[] = {&time, g, &eta[0], inputs};
    double* out[] = {which == 0 ? &wrench[0] : inputs + n, inputs + n + 36};
    (*(const Function*)row(t.terms.data[place].cell, e)[which])(in, out);
#endif
    return wrench;
}

// The 36 numbers of s.channel.row from `at` on as a matrix, row by row.
LISSOM_INLINE mat6 matrix_in_row(const Scratch& s, int i, int at) {
    mat6 X;
    for (int r = 0; r < 6; ++r)
        for (int c = 0; c < 6; ++c)
            X.data[r][c] = row(s.channel.row, i)[at + 6 * r + c];
    return X;
}
