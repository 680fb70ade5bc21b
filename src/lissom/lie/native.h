// What the native functions of the kernels share. Inserted before the code that Warp generates, for the CPU and for CUDA.
// A native function is a body of C++ whose arguments are those of its Python declaration; arrays are wp::array_t.

#if defined(__CUDACC__) || defined(__CUDA_ARCH__)
#define LISSOM_INLINE static __device__ inline
#else
#define LISSOM_INLINE static inline __attribute__((always_inline))
#endif

namespace lissom {

// The numbers of array a for instance i.
template <typename T>
LISSOM_INLINE T* row(const wp::array_t<T>& a, int i) {
    return (T*)((char*)a.data + size_t(i) * size_t(a.strides[0]));
}

// The matrix with six rows of `width` numbers, one column for each coordinate, of node or slot k for instance i.
LISSOM_INLINE double* six_rows(const wp::array_t<double>& a, int i, int k, int width) {
    return row(a, i) + size_t(6) * size_t(k) * size_t(width);
}

// Eight numbers as one value: a vector register where the compiler knows them. Compilers left to themselves may join
// other loops around such blocks, with gathers that cost several times the arithmetic.
#if defined(__CUDACC__) || defined(__CUDA_ARCH__)
struct block {
    double x[8];
    __device__ block operator*(double a) const {
        block y;
        for (int n = 0; n < 8; ++n)
            y.x[n] = a * x[n];
        return y;
    }
    __device__ block operator*(const block& a) const {
        block y;
        for (int n = 0; n < 8; ++n)
            y.x[n] = a.x[n] * x[n];
        return y;
    }
    __device__ block& operator+=(const block& y) {
        for (int n = 0; n < 8; ++n)
            x[n] += y.x[n];
        return *this;
    }
    __device__ double operator[](int n) const { return x[n]; }
};

LISSOM_INLINE block load(const double* from) {
    block y;
    for (int n = 0; n < 8; ++n)
        y.x[n] = from[n];
    return y;
}

LISSOM_INLINE void store(double* to, const block& y) {
    for (int n = 0; n < 8; ++n)
        to[n] = y.x[n];
}
#else
typedef double block __attribute__((vector_size(64), aligned(8), may_alias));

// The eight numbers from an address on, which need not be aligned.
LISSOM_INLINE block load(const double* from) {
    return *(const block*)from;
}

// Write eight numbers.
LISSOM_INLINE void store(double* to, const block& y) {
    *(block*)to = y;
}
#endif

// Add eight numbers to those at an address.
LISSOM_INLINE void add(double* to, const block& y) {
    block sum = load(to);
    sum += y;
    store(to, sum);
}

// Do something for the first column j of each block of eight on the stretches of columns listed for node k.
template <typename F>
LISSOM_INLINE void for_blocks(const wp::array_t<int>& start, const wp::array_t<int>& range, int k, F&& body) {
    for (int e = start.data[k]; e < start.data[k + 1]; e += 2)
        for (int j = range.data[e]; j < range.data[e + 1]; j += 8)
            body(j);
}

// Add Σ_e x[e] table[e] to `width` numbers, the n rows of the table standing one after the other.
LISSOM_INLINE void add_weighted_rows(int n, int width, const double* x, const double* table, double* out) {
    if (width < 8) {
        for (int e = 0; e < n; ++e)
            for (int r = 0; r < width; ++r)
                out[r] += x[e] * table[e * width + r];
        return;
    }
    block last = load(out + width - 8);  // which may overlap the one before, with the same sums
    for (int e = 0; e < n; ++e)
        last += load(table + size_t(e + 1) * width - 8) * x[e];
    int r = 0;
    for (; r + 32 <= width; r += 32) {
        block y0 = load(out + r), y1 = load(out + r + 8), y2 = load(out + r + 16), y3 = load(out + r + 24);
        for (int e = 0; e < n; ++e) {
            const double* from = table + size_t(e) * width + r;
            y0 += load(from) * x[e];
            y1 += load(from + 8) * x[e];
            y2 += load(from + 16) * x[e];
            y3 += load(from + 24) * x[e];
        }
        store(out + r, y0);
        store(out + r + 8, y1);
        store(out + r + 16, y2);
        store(out + r + 24, y3);
    }
    for (; r + 8 < width; r += 8) {
        block y = load(out + r);
        for (int e = 0; e < n; ++e)
            y += load(table + size_t(e) * width + r) * x[e];
        store(out + r, y);
    }
    store(out + width - 8, last);
}

}  // namespace lissom

using namespace lissom;
