// Functions of traced code (tracing/native.py), of one number and, on the CPU alone, of LANES numbers at once.

#if defined(__CUDACC__) || defined(__CUDA_ARCH__)
#define LISSOM_OF_GPU 1
#define LISSOM_TRACED static __device__ inline
#define LISSOM_TABLE static __device__ const
#define LISSOM_LANES(...)
#else
#define LISSOM_OF_GPU 0
#define LISSOM_TRACED static inline
#define LISSOM_TABLE static const
#define LISSOM_LANES(...) __VA_ARGS__
#endif

namespace traced {

#if !LISSOM_OF_GPU
typedef double vector __attribute__((ext_vector_type(4)));
typedef decltype(vector{} == vector{}) flags;

static inline double total(vector x) {
    return (x[0] + x[1]) + (x[2] + x[3]);
}
static inline vector every(double x) {
    return vector{x, x, x, x};
}
static inline flags every(int x) {
    return x ? flags{-1, -1, -1, -1} : flags{0, 0, 0, 0};
}
#endif

// A function of numbers, and the same function of each number of vectors.
#define LISSOM_OF_ONE(name, value)                                                          \
    LISSOM_TRACED double f_##name(double x) {                                               \
        return value;                                                                       \
    }                                                                                       \
    LISSOM_LANES(static inline vector f_##name(vector x) {                                  \
        return vector{f_##name(x[0]), f_##name(x[1]), f_##name(x[2]), f_##name(x[3])};      \
    })
#define LISSOM_OF_TWO(name, value)                                                                             \
    LISSOM_TRACED double f_##name(double x, double y) {                                                        \
        return value;                                                                                          \
    }                                                                                                          \
    LISSOM_LANES(static inline vector f_##name(vector x, vector y) {                                           \
        return vector{f_##name(x[0], y[0]), f_##name(x[1], y[1]), f_##name(x[2], y[2]), f_##name(x[3], y[3])}; \
    })
LISSOM_OF_ONE(tan, ::tan(x))
LISSOM_OF_ONE(asin, ::asin(x))
LISSOM_OF_ONE(acos, ::acos(x))
LISSOM_OF_ONE(atan, ::atan(x))
LISSOM_OF_ONE(sinh, ::sinh(x))
LISSOM_OF_ONE(cosh, ::cosh(x))
LISSOM_OF_ONE(tanh, ::tanh(x))
LISSOM_OF_ONE(exp, ::exp(x))
LISSOM_OF_ONE(exp2, ::exp2(x))
LISSOM_OF_ONE(log, ::log(x))
LISSOM_OF_ONE(cbrt, ::cbrt(x))
LISSOM_OF_ONE(erf, ::erf(x))
LISSOM_OF_ONE(erfc, ::erfc(x))
LISSOM_OF_ONE(floor, ::floor(x))
LISSOM_OF_ONE(ceil, ::ceil(x))
LISSOM_OF_ONE(trunc, ::trunc(x))
LISSOM_OF_ONE(round, ::rint(x))
LISSOM_OF_ONE(sign, x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x)
// log(1 + x) and exp(x) - 1 without cancellation (W. Kahan).
LISSOM_TRACED double f_log1p(double x) {
    const double y = 1.0 + x;
    return y == 1.0 ? x : y > 1e16 ? ::log(y) : ::log(y) * x / (y - 1.0);
}
LISSOM_TRACED double f_expm1(double x) {
    const double y = ::exp(x);
    return y == 1.0 ? x : y - 1.0 == -1.0 ? -1.0 : y > 1e300 ? y : (y - 1.0) * x / ::log(y);
}
// Inverses of hyperbolic functions, also for small and large numbers.
LISSOM_TRACED double log_of_root(double t, double square) {  // ln(1 + t + √(square)) with square ~ t² for large t
    return t > 1e100 ? ::log(t) + 0.69314718055994530942 : f_log1p(t + ::sqrt(square));
}
LISSOM_TRACED double positive_asinh(double x) {
    return x > 1e100 ? ::log(x) + 0.69314718055994530942 : f_log1p(x + x * x / (1.0 + ::sqrt(1.0 + x * x)));
}
LISSOM_OF_ONE(asinh, x < 0.0 ? -positive_asinh(-x) : positive_asinh(x))
LISSOM_OF_ONE(acosh, log_of_root(x - 1.0, (x - 1.0) * (x + 1.0)))
LISSOM_OF_ONE(atanh, x < 0.0 ? -0.5 * f_log1p(-2.0 * x / (1.0 + x)) : 0.5 * f_log1p(2.0 * x / (1.0 - x)))
LISSOM_OF_ONE(sqrt, ::sqrt(x))
LISSOM_OF_ONE(abs, ::fabs(x))
LISSOM_OF_TWO(pow, ::pow(x, y))
LISSOM_OF_TWO(rem, ::fmod(x, y))
LISSOM_OF_TWO(atan2, ::atan2(x, y))
LISSOM_OF_TWO(max, x > y || x != x ? x : y)
LISSOM_OF_TWO(min, x < y || x != x ? x : y)

LISSOM_TRACED double f_neg(double x) {
    return -x;
}
LISSOM_TRACED bool f_not(bool x) {
    return !x;
}
LISSOM_TRACED bool f_is_finite(double x) {
    return x - x == 0.0;
}
LISSOM_TRACED double f_where(bool is, double x, double y) {
    return is ? x : y;
}
#if !LISSOM_OF_GPU
static inline vector f_log1p(vector x) {
    return vector{f_log1p(x[0]), f_log1p(x[1]), f_log1p(x[2]), f_log1p(x[3])};
}
static inline vector f_expm1(vector x) {
    return vector{f_expm1(x[0]), f_expm1(x[1]), f_expm1(x[2]), f_expm1(x[3])};
}
static inline vector f_neg(vector x) {
    return -x;
}
static inline flags f_not(flags x) {
    return ~x;
}
static inline flags f_is_finite(vector x) {
    return x - x == 0.0;
}
static inline vector f_where(flags is, vector x, vector y) {
    return is ? x : y;
}
#endif

// Sine and cosine. x = k π/2 + r with π/2 in three parts (W. J. Cody and W. Waite 1980); series of r to 2e-17 on
// |r| <= π/4. CUDA has its own.
#if LISSOM_OF_GPU
LISSOM_TRACED void f_turn(double x, double& sine, double& cosine) {
    sincos(x, &sine, &cosine);
}
LISSOM_OF_ONE(sin, ::sin(x))
LISSOM_OF_ONE(cos, ::cos(x))
#else
static inline long long bits(double x) {
    long long found;
    __builtin_memcpy(&found, &x, sizeof(x));
    return found;
}
static inline flags bits(vector x) {
    return (flags)x;
}
static inline bool is_large(double x) {
    return !(::fabs(x) < 1e5);
}
static inline bool is_large(vector x) {
    return is_large(x[0]) | is_large(x[1]) | is_large(x[2]) | is_large(x[3]);
}
static inline void f_turn_of_library(double x, double& sine, double& cosine) {
    sine = ::sin(x);
    cosine = ::cos(x);
}
static inline void f_turn_of_library(vector x, vector& sine, vector& cosine) {
    sine = vector{::sin(x[0]), ::sin(x[1]), ::sin(x[2]), ::sin(x[3])};
    cosine = vector{::cos(x[0]), ::cos(x[1]), ::cos(x[2]), ::cos(x[3])};
}
template <typename T>
static void f_turn(T x, T& sine, T& cosine) {
    if (is_large(x))
        return f_turn_of_library(x, sine, cosine);
    const double shift = 6755399441055744.0;  // 1.5 2^52, which rounds to integers
    const T sum = x * 0.63661977236758134308 + shift, k = sum - shift;  // k also in the last bits of the sum
    T r = x - k * 1.57079632673412561417;
    r = r - k * 6.07710050630396597660e-11;
    r = r - k * 2.02226624879595063154e-21;
    const T z = r * r;
    T s = z * -7.6471637318198164759e-13 + 1.6059043836821614599e-10;  // −1/15!, ...
    s = s * z + -2.5052108385441718775e-08;
    s = s * z + 2.7557319223985890653e-06;
    s = s * z + -1.9841269841269841270e-04;
    s = s * z + 8.3333333333333333333e-03;
    s = s * z + -1.6666666666666666667e-01;
    s = r + r * (z * s);
    T c = z * 4.7794773323873852974e-14 + -1.1470745597729724714e-11;  // 1/16!, ...
    c = c * z + 2.0876756987868098979e-09;
    c = c * z + -2.7557319223985890653e-07;
    c = c * z + 2.4801587301587301587e-05;
    c = c * z + -1.3888888888888888889e-03;
    c = c * z + 4.1666666666666666667e-02;
    c = 1.0 - (0.5 * z - z * z * c);
    const auto quarter = bits(sum);
    const T first = (quarter & 1) != 0 ? c : s, second = (quarter & 1) != 0 ? s : c;
    sine = (quarter & 2) != 0 ? -first : first;
    cosine = ((quarter + 1) & 2) != 0 ? -second : second;
}
template <typename T>
static inline T f_sin(T x) {
    T sine, cosine;
    f_turn(x, sine, cosine);
    return sine;
}
template <typename T>
static inline T f_cos(T x) {
    T sine, cosine;
    f_turn(x, sine, cosine);
    return cosine;
}
#endif

// Stumpff functions c_k(t) = Σ (−t)^j/(2j + k)! for k < STUMPFF: series and downward recursion below 16, else closed
// forms and upward recursion.
enum { STUMPFF = 12 };
LISSOM_TABLE double inverse_factorial[38] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    2.5052108385441718775e-08, 2.0876756987868098979e-09, 1.6059043836821614599e-10, 1.1470745597729724714e-11,
    7.6471637318198164759e-13, 4.7794773323873852974e-14, 2.8114572543455207632e-15, 1.5619206968586226462e-16,
    8.2206352466243297170e-18, 4.1103176233121648585e-19, 1.9572941063391261231e-20, 8.8967913924505732867e-22,
    3.8681701706306840377e-23, 1.6117375710961183490e-24, 6.4469502843844733962e-26, 2.4795962632247974601e-27,
    9.1836898637955461484e-29, 3.2798892370698379102e-30, 1.1309962886447716932e-31, 3.7699876288159056439e-33,
    1.2161250415535179496e-34, 3.8003907548547435926e-36, 1.1516335620771950281e-37, 3.3871575355211618473e-39,
    9.6775929586318909920e-41, 2.6882202662866363867e-42, 7.2654601791530713154e-44
};
template <typename T>
LISSOM_TRACED void series(T t, int terms, T* c) {
    for (int k = STUMPFF - 2; k < STUMPFF; ++k) {
        T total = t * 0.0;
        for (int j = terms - 1; j >= 0; --j)
            total = inverse_factorial[2 * j + k] - t * total;
        c[k] = total;
    }
    for (int k = STUMPFF - 3; k >= 0; --k)
        c[k] = inverse_factorial[k] - t * c[k + 2];
}
LISSOM_TRACED void f_stumpff(double t, double* c) {
    if (t < 16.0)
        return series(t, t < 1.0 && t > -1.0 ? 7 : 13, c);
    const double root = ::sqrt(t);
    c[0] = ::cos(root);
    c[1] = ::sin(root) / root;
    for (int k = 2; k < STUMPFF; ++k)
        c[k] = (inverse_factorial[k - 2] - c[k - 2]) / t;
}
#if !LISSOM_OF_GPU
static void f_stumpff(vector t, vector* c) {
    double most = t[0];
    for (int k = 1; k < 4; ++k)
        most = t[k] > most ? t[k] : most;
    if (most < 16.0)
        return series(t, most < 1.0 ? 7 : 13, c);
    double one[STUMPFF];
    for (int k = 0; k < 4; ++k) {
        f_stumpff(t[k], one);
        for (int e = 0; e < STUMPFF; ++e)
            c[e][k] = one[e];
    }
}
#endif

}  // namespace traced
