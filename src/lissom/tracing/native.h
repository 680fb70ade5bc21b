// Functions of traced code (tracing/native.py), of one number and of LANES numbers at once.

namespace traced {

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

// A function of numbers, and the same function of each number of vectors.
#define LISSOM_OF_ONE(name, value)                                                      \
    static inline double f_##name(double x) {                                           \
        return value;                                                                   \
    }                                                                                   \
    static inline vector f_##name(vector x) {                                           \
        return vector{f_##name(x[0]), f_##name(x[1]), f_##name(x[2]), f_##name(x[3])};  \
    }
#define LISSOM_OF_TWO(name, value)                                                                             \
    static inline double f_##name(double x, double y) {                                                        \
        return value;                                                                                          \
    }                                                                                                          \
    static inline vector f_##name(vector x, vector y) {                                                        \
        return vector{f_##name(x[0], y[0]), f_##name(x[1], y[1]), f_##name(x[2], y[2]), f_##name(x[3], y[3])}; \
    }
LISSOM_OF_ONE(sin, ::sin(x))
LISSOM_OF_ONE(cos, ::cos(x))
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
LISSOM_OF_ONE(asinh, x < 0.0 ? -::log(::sqrt(x * x + 1.0) - x) : ::log(::sqrt(x * x + 1.0) + x))
LISSOM_OF_ONE(acosh, ::log(x + ::sqrt(x * x - 1.0)))
LISSOM_OF_ONE(atanh, 0.5 * ::log((1.0 + x) / (1.0 - x)))
LISSOM_OF_ONE(sign, x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : x)
// log(1 + x) and exp(x) - 1 without cancellation (W. Kahan).
static inline double f_log1p(double x) {
    const double y = 1.0 + x;
    return y == 1.0 ? x : ::log(y) * x / (y - 1.0);
}
static inline double f_expm1(double x) {
    const double y = ::exp(x);
    return y == 1.0 ? x : y - 1.0 == -1.0 ? -1.0 : y > 1e300 ? y : (y - 1.0) * x / ::log(y);
}
static inline vector f_log1p(vector x) {
    return vector{f_log1p(x[0]), f_log1p(x[1]), f_log1p(x[2]), f_log1p(x[3])};
}
static inline vector f_expm1(vector x) {
    return vector{f_expm1(x[0]), f_expm1(x[1]), f_expm1(x[2]), f_expm1(x[3])};
}
LISSOM_OF_ONE(sqrt, ::sqrt(x))
LISSOM_OF_ONE(abs, ::fabs(x))
LISSOM_OF_TWO(pow, ::pow(x, y))
LISSOM_OF_TWO(rem, ::fmod(x, y))
LISSOM_OF_TWO(atan2, ::atan2(x, y))
LISSOM_OF_TWO(max, x > y || x != x ? x : y)
LISSOM_OF_TWO(min, x < y || x != x ? x : y)

static inline double f_neg(double x) {
    return -x;
}
static inline vector f_neg(vector x) {
    return -x;
}
static inline bool f_not(bool x) {
    return !x;
}
static inline flags f_not(flags x) {
    return ~x;
}
static inline bool f_is_finite(double x) {
    return x - x == 0.0;
}
static inline flags f_is_finite(vector x) {
    return x - x == 0.0;
}
static inline double f_where(bool is, double x, double y) {
    return is ? x : y;
}
static inline vector f_where(flags is, vector x, vector y) {
    return is ? x : y;
}

}  // namespace traced
