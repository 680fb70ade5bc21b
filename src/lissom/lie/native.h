// Code that all native functions share. LISSOM_CALLED is for long functions with several callers, whose copies would take
// the compiler's time. It precedes the code that Warp generates, for the CPU and for CUDA.
// See lie/native.py for the way of a native function from a header into a kernel.

#if defined(__CUDACC__) || defined(__CUDA_ARCH__)
#define LISSOM_INLINE static __device__ inline
#define LISSOM_CALLED static __device__ __noinline__
#else
#define LISSOM_INLINE static inline __attribute__((always_inline))
#define LISSOM_CALLED static __attribute__((noinline, unused))
#endif

namespace lissom {

// The types of Python of the same names. Structs such as Tables, Scratch and Columns have the fields of those in Python;
// Warp writes their code into each kernel.
template <typename T>
using array = wp::array_t<T>;
typedef wp::vec_t<3, double> vec3;
typedef wp::vec_t<6, double> vec6;
typedef wp::vec_t<6, int> vec6i;
typedef wp::vec_t<7, int> vec7i;
typedef wp::mat_t<3, 3, double> mat3;
typedef wp::mat_t<4, 4, double> mat4;
typedef wp::mat_t<6, 6, double> mat6;

// The numbers of array a for instance i.
template <typename T>
LISSOM_INLINE T* row(const array<T>& a, int i) {
    return (T*)((char*)a.data + size_t(i) * size_t(a.strides[0]));
}

// The matrix with six rows of `width` numbers, one column for each coordinate, of node or slot k for instance i.
LISSOM_INLINE double* six_rows(const array<double>& a, int i, int k, int width) {
    return row(a, i) + size_t(6) * size_t(k) * size_t(width);
}

// n rounded up to whole blocks of eight numbers.
LISSOM_INLINE int whole_registers(int n) {
    return (n + 7) / 8 * 8;
}

// Eight numbers as one value: a vector register if the compiler supports it. Without this type compilers may vectorise
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

LISSOM_INLINE block totals(const block* y) {
    block sums = {};
    for (int n = 0; n < 8; ++n)
        for (int e = 0; e < 8; ++e)
            sums.x[n] += y[n].x[e];
    return sums;
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

// The sums of the numbers of each of eight blocks, by halves, quarters and eighths of all blocks at once. Adding the
// numbers of a register one after the other would cost ten times as much.
LISSOM_INLINE block totals(const block* y) {
    block pair[4], four[2];
    for (int n = 0; n < 4; ++n)
        pair[n] = __builtin_shufflevector(y[2 * n], y[2 * n + 1], 0, 8, 2, 10, 4, 12, 6, 14)
            + __builtin_shufflevector(y[2 * n], y[2 * n + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    for (int n = 0; n < 2; ++n)
        four[n] = __builtin_shufflevector(pair[2 * n], pair[2 * n + 1], 0, 1, 8, 9, 4, 5, 12, 13)
            + __builtin_shufflevector(pair[2 * n], pair[2 * n + 1], 2, 3, 10, 11, 6, 7, 14, 15);
    return __builtin_shufflevector(four[0], four[1], 0, 1, 2, 3, 8, 9, 10, 11)
        + __builtin_shufflevector(four[0], four[1], 4, 5, 6, 7, 12, 13, 14, 15);
}
#endif

// Add eight numbers to those at an address.
LISSOM_INLINE void add(double* to, const block& y) {
    block sum = load(to);
    sum += y;
    store(to, sum);
}

// Call a function for the first column j of each block of eight on the ranges of columns listed for node k.
template <typename F>
LISSOM_INLINE void for_blocks(const array<int>& start, const array<int>& range, int k, F&& body) {
    for (int e = start.data[k]; e < start.data[k + 1]; e += 2)
        for (int j = range.data[e]; j < range.data[e + 1]; j += 8)
            body(j);
}

// Write first + Σ_e x[e] table[e] to `width` numbers by strips of some blocks; the table has n consecutive rows. The last
// strip may overlap the one before, with the same sums. Without `first` its numbers are zero.
template <int BLOCKS>
LISSOM_INLINE void put_strips(int n, int width, const double* x, const double* table, const double* first, double* out) {
    for (int start = 0; start < width; start += 8 * BLOCKS) {
        const int r = start + 8 * BLOCKS <= width ? start : width - 8 * BLOCKS;
        block y[BLOCKS] = {};
        if (first)
            for (int k = 0; k < BLOCKS; ++k)
                y[k] = load(first + r + 8 * k);
        for (int e = 0; e < n; ++e) {
            const double* from = table + size_t(e) * width + r;
            for (int k = 0; k < BLOCKS; ++k)
                y[k] += load(from + 8 * k) * x[e];
        }
        for (int k = 0; k < BLOCKS; ++k)
            store(out + r + 8 * k, y[k]);
    }
}

// The same by the widest strips that fit; `out` must not overlap the other arguments.
LISSOM_INLINE void put_weighted_rows(
    int n, int width, const double* x, const double* table, const double* first, double* out
) {
    if (width >= 64)
        put_strips<8>(n, width, x, table, first, out);
    else if (width >= 32)
        put_strips<4>(n, width, x, table, first, out);
    else if (width >= 16)
        put_strips<2>(n, width, x, table, first, out);
    else if (width >= 8)
        put_strips<1>(n, width, x, table, first, out);
    else
        for (int r = 0; r < width; ++r) {
            double sum = first ? first[r] : 0.0;
            for (int e = 0; e < n; ++e)
                sum += x[e] * table[e * width + r];
            out[r] = sum;
        }
}

}  // namespace lissom

using namespace lissom;
