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

}  // namespace lissom

using namespace lissom;
