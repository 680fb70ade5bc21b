// Functions of constraints: programs of expressions (robot/expression_programs), run by a stack machine on values and
// their derivatives. Equations are those of systems/couplings (4), and of systems/constraint_functions.

namespace lissom {

// The operations of a program, in the order of robot/expression_programs.Operation.
struct operation {
    enum {
        END, TIME, NUMBER, ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, MINIMUM, MAXIMUM, NEGATE, ABS, SIGN, SIN, COS, TAN,
        SINH, COSH, TANH, EXP, LOG, SQRT, ARCSIN, ARCCOS, ARCTAN
    };
};

// A value and its derivatives by a, which stands for one direction, or for eight, and along b.
template <typename A>
struct jet {
    double f;
    A a;
    double b;
    A ab;
    double bb;
    A abb;
};

// y = g(u):  y_a = g′ u_a,  y_ab = g″ u_a u_b + g′ u_ab,  y_bb = g″ u_b² + g′ u_bb,
// y_abb = g‴ u_a u_b² + g″ (2 u_ab u_b + u_a u_bb) + g′ u_abb
template <typename A>
LISSOM_CALLED jet<A> chain(const jet<A>& u, double g, double g1, double g2, double g3) {
    jet<A> y;
    y.f = g;
    y.a = u.a * g1;
    y.b = u.b * g1;
    y.ab = u.a * (g2 * u.b);
    y.ab += u.ab * g1;
    y.bb = u.b * (g2 * u.b) + u.bb * g1;
    y.abb = u.a * (g3 * u.b * u.b + g2 * u.bb);
    y.abb += u.ab * (2.0 * g2 * u.b);
    y.abb += u.abb * g1;
    return y;
}

// (u v)_abb = u_abb v + 2 u_ab v_b + u_a v_bb + v_a u_bb + 2 v_ab u_b + v_abb u
template <typename A>
LISSOM_CALLED jet<A> product(const jet<A>& u, const jet<A>& v) {
    jet<A> y;
    y.f = u.f * v.f;
    y.a = u.a * v.f;
    y.a += v.a * u.f;
    y.b = u.b * v.f + v.b * u.f;
    y.ab = u.ab * v.f;
    y.ab += u.a * v.b;
    y.ab += v.a * u.b;
    y.ab += v.ab * u.f;
    y.bb = u.bb * v.f + u.b * v.b + v.b * u.b + v.bb * u.f;
    y.abb = u.abb * v.f;
    y.abb += u.ab * (2.0 * v.b);
    y.abb += u.a * v.bb;
    y.abb += v.a * u.bb;
    y.abb += v.ab * (2.0 * u.b);
    y.abb += v.abb * u.f;
    return y;
}

// u + sign v
template <typename A>
LISSOM_INLINE jet<A> sum(const jet<A>& u, const jet<A>& v, double sign) {
    jet<A> y = u;
    y.f += sign * v.f;
    y.a += v.a * sign;
    y.b += sign * v.b;
    y.ab += v.ab * sign;
    y.bb += sign * v.bb;
    y.abb += v.abb * sign;
    return y;
}

// Whether all derivatives of u are zero.
template <typename A>
LISSOM_INLINE bool is_constant(const jet<A>& u) {
    const int lanes = sizeof(A) / sizeof(double);
    const double *a = (const double*)&u.a, *ab = (const double*)&u.ab, *abb = (const double*)&u.abb;
    bool zero = u.b == 0.0 && u.bb == 0.0;
    for (int n = 0; n < lanes; ++n)
        zero = zero && a[n] == 0.0 && ab[n] == 0.0 && abb[n] == 0.0;
    return zero;
}

// u^n of a constant n; a term with a factor of zero is zero, even if a power is not finite.
template <typename A>
LISSOM_CALLED jet<A> power(const jet<A>& u, double n) {
    const double k1 = n, k2 = n * (n - 1.0), k3 = k2 * (n - 2.0);
    return chain(u, pow(u.f, n), k1 == 0.0 ? 0.0 : k1 * pow(u.f, n - 1.0), k2 == 0.0 ? 0.0 : k2 * pow(u.f, n - 2.0),
                 k3 == 0.0 ? 0.0 : k3 * pow(u.f, n - 3.0));
}

template <typename A>
LISSOM_INLINE jet<A> reciprocal(const jet<A>& u) {
    const double g = 1.0 / u.f;
    return chain(u, g, -g * g, 2.0 * g * g * g, -6.0 * g * g * g * g);
}

template <typename A>
LISSOM_INLINE jet<A> logarithm(const jet<A>& u) {
    const double g = 1.0 / u.f;
    return chain(u, log(u.f), g, -g * g, 2.0 * g * g * g);
}

// The function of one operand of an operation.
template <typename A>
LISSOM_CALLED jet<A> curve(int operation_of, const jet<A>& u) {
    const double a = u.f;
    double g = 0.0, g1 = 0.0, g2 = 0.0, g3 = 0.0;
    // clang-format off
    switch (operation_of) {
    case operation::NEGATE: g = -a; g1 = -1.0; break;
    case operation::SIN: g = sin(a); g1 = cos(a); g2 = -g; g3 = -g1; break;
    case operation::COS: g = cos(a); g1 = -sin(a); g2 = -g; g3 = -g1; break;
    case operation::TAN: g = tan(a); g1 = 1.0 + g * g; g2 = 2.0 * g * g1; g3 = 2.0 * g1 * (g1 + 2.0 * g * g); break;
    case operation::SINH: g = sinh(a); g1 = cosh(a); g2 = g; g3 = g1; break;
    case operation::COSH: g = cosh(a); g1 = sinh(a); g2 = g; g3 = g1; break;
    case operation::TANH: {
        const double secant = 1.0 / cosh(a);
        g = tanh(a); g1 = secant * secant; g2 = -2.0 * g * g1; g3 = -2.0 * g1 * (g1 - 2.0 * g * g);
        break;
    }
    case operation::EXP: g = exp(a); g1 = g2 = g3 = g; break;
    case operation::LOG: return logarithm(u);
    case operation::SQRT: g = sqrt(a); g1 = 0.5 / g; g2 = -0.5 * g1 / a; g3 = -1.5 * g2 / a; break;
    case operation::ARCSIN:
    case operation::ARCCOS: {
        const double root = 1.0 / sqrt(1.0 - a * a), cube = root * root * root;
        const double sign = operation_of == operation::ARCSIN ? 1.0 : -1.0;
        g = operation_of == operation::ARCSIN ? asin(a) : acos(a);
        g1 = sign * root; g2 = sign * a * cube; g3 = sign * (cube + 3.0 * a * a * cube * root * root);
        break;
    }
    default: {
        const double root = 1.0 / (1.0 + a * a);
        g = atan(a); g1 = root; g2 = -2.0 * a * root * root;
        g3 = root * root * (8.0 * a * a * root - 2.0);
    }
    }
    // clang-format on
    return chain(u, g, g1, g2, g3);
}

// The result of the program whose steps begin at `step`, on a stack of ROOM values; `variable` makes the jet of the
// variable with a number.
template <typename A, int ROOM, typename F>
LISSOM_INLINE jet<A> run_program(const int* step, const double* numbers, F&& variable) {
    jet<A> stack[ROOM] = {};
    int n = 0;
    for (; step[0] != operation::END; step += 2) {
        const int operand = step[1];
        if (step[0] == operation::TIME) {
            stack[n++] = variable(operand);
        } else if (step[0] == operation::NUMBER) {
            stack[n] = jet<A>{};
            stack[n++].f = numbers[operand];
        } else if (step[0] <= operation::POWER) {
            --n;
            const jet<A> u = stack[n - 1 + operand], v = stack[n - operand];
            jet<A>& z = stack[n - 1];
            switch (step[0]) {
            case operation::ADD: z = sum(u, v, 1.0); break;
            case operation::SUBTRACT: z = sum(u, v, -1.0); break;
            case operation::MULTIPLY: z = product(u, v); break;
            case operation::DIVIDE: z = product(u, reciprocal(v)); break;
            default:
                if (is_constant(v)) {
                    z = power(u, v.f);
                } else {  // u^v = exp(v log u)
                    const jet<A> exponent = product(v, logarithm(u));
                    const double g = exp(exponent.f);
                    z = chain(exponent, g, g, g, g);
                }
            }
        } else {
            stack[n - 1] = curve(step[0], stack[n - 1]);
        }
    }
    return stack[0];
}

// Directions a of a jet: a register on CPUs; one on GPUs, whose compiler would spend as long on each of eight.
#if defined(__CUDACC__) || defined(__CUDA_ARCH__)
typedef double directions;
#else
typedef block directions;
#endif
enum { DIRECTIONS = sizeof(directions) / sizeof(double) };

// The jet of function f of systems/constraint_functions at the pose (R, p) of A in B. Direction b is the motion y: the
// twist of A in B, then rates of joints. The directions a are the motions of (2) from `first` on, before b in time.
// A point or axis x moves by Y x = w × x (+ u), so that x_b = Y x, x_bb = Y Y x, and for each motion E before it
// x_a = E x, x_ab = w × E x, x_abb = w × (w × E x). The jet of the rate of p is that of p along b, one order lower.
template <int ROOM, int RATE, int JOINT, typename T>
LISSOM_CALLED jet<directions> function_jet(
    const T& t, int f, const mat3& R, const vec3& p, const double* q, const double* y, int first
) {
    const auto& c = t.constraint_functions;
    const int* q_of = c.q.data + c.term_start.data[f];
    auto turned = [&](const double* w, const double* x, double* out) {
        for (int e = 0; e < 3; ++e)
            out[e] = w[(e + 1) % 3] * x[(e + 2) % 3] - w[(e + 2) % 3] * x[(e + 1) % 3];
    };
    return run_program<directions, ROOM>(c.code.data + 2 * c.start.data[f], c.numbers.data, [&](int variable) {
        jet<directions> z = {};
        double *a = (double*)&z.a, *ab = (double*)&z.ab, *abb = (double*)&z.abb;
        if (variable >= JOINT) {
            const int e = (variable - JOINT) / 2, lane = 6 + e - first;
            if ((variable - JOINT) % 2 == 1) {
                z.f = y[6 + e];
                return z;
            }
            z.f = q[q_of[e]];
            z.b = y[6 + e];
            if (lane >= 0 && lane < DIRECTIONS)
                a[lane] = 1.0;
            return z;
        }
        if (variable >= RATE + 3) {
            z.f = y[variable - RATE - 3];
            return z;
        }
        const bool is_rate = variable >= RATE, is_point = is_rate || variable < 3;
        const int r = variable % 3;
        double x[3], x_b[3], x_bb[3];
        for (int e = 0; e < 3; ++e)
            x[e] = is_point ? p[e] : R.data[e][variable / 3 - 1];
        turned(y, x, x_b);
        for (int e = 0; e < 3; ++e)
            x_b[e] += is_point ? y[3 + e] : 0.0;
        turned(y, x_b, x_bb);
        z.f = is_rate ? x_b[r] : x[r];
        z.b = is_rate ? x_bb[r] : x_b[r];
        z.bb = is_rate ? 0.0 : x_bb[r];
        for (int lane = 0; lane < DIRECTIONS && first + lane < 6; ++lane) {
            const int motion = first + lane;
            double unit[3] = {}, x_a[3] = {}, x_ab[3], x_abb[3];
            unit[motion % 3] = 1.0;
            if (motion < 3)
                turned(unit, x, x_a);
            else if (is_point)
                x_a[motion - 3] = 1.0;
            turned(y, x_a, x_ab);
            turned(y, x_ab, x_abb);
            a[lane] = is_rate ? x_ab[r] : x_a[r];
            ab[lane] = is_rate ? x_abb[r] : x_ab[r];
            abb[lane] = is_rate ? 0.0 : x_abb[r];
        }
        return z;
    });
}

}  // namespace lissom

// Φ, Φ_a, Φ_b, Φ_ab, Φ_bb and Φ_abb of the program that begins at `start`, at the coordinates q. Its variable m is the
// coordinate number q_of[first + m] of q. Derivatives by a are those with respect to variable j. Derivatives by b are
// those with respect to variable k, or, if k < 0, those along w, whose number for variable m is v_of[first + m].
LISSOM_INLINE vec6 program_jet(
    int i, int j, int k, int start, int first, array<double> q, array<double> w, array<int> q_of, array<int> v_of,
    array<int> code, array<double> numbers
) {
#ifdef LISSOM_SERVES_PROGRAMS
    const auto z = run_program<double, DEPTH>(code.data + 2 * start, numbers.data, [&](int m) {
        jet<double> x = {};
        x.f = row(q, i)[q_of.data[first + m]];
        x.a = m == j ? 1.0 : 0.0;
        x.b = k < 0 ? row(w, i)[v_of.data[first + m]] : (m == k ? 1.0 : 0.0);
        return x;
    });
    vec6 out;
    out[0] = z.f;
    out[1] = z.a;
    out[2] = z.b;
    out[3] = z.ab;
    out[4] = z.bb;
    out[5] = z.abb;
    return out;
#else
    return vec6();
#endif
}

// Store Φ, P and D of (2) of function f at the pose (R, p) of A in B, for instance i; see (4).
LISSOM_INLINE void put_function(
    const Tables& t, int i, int f, mat3 R, vec3 p, array<double> q, array<double> out
) {
#ifdef LISSOM_SERVES_PROGRAMS
    const auto& c = t.constraint_functions;
    const int m = 6 + c.term_start.data[f + 1] - c.term_start.data[f];
    const bool is_rate = c.is_rate.data[f];
    double* to = row(out, i) + c.at.data[f];
    double y[6 + MOST_JOINTS] = {};
    to[0] = 0.0;
    for (int j = 0; j < m; ++j) {
        y[j] = 1.0;
        for (int first = 0; first < m; first += DIRECTIONS) {
            const auto z = function_jet<DEPTH, FIRST_RATE, FIRST_JOINT>(t, f, R, p, row(q, i), y, first);
            const double* slopes = is_rate ? (const double*)&z.a : (const double*)&z.ab;
            for (int k = 0; k < DIRECTIONS && first + k < m; ++k)
                to[1 + 2 * m + j * m + first + k] = slopes[k];
            to[1 + j] = is_rate ? z.f : z.b;
            if (!is_rate)
                to[0] = z.f;
        }
        y[j] = 0.0;
    }
#endif
}

// Store T of (3) of function f at the pose (R, p) of A in B, which moves by the twist y, for instance i; see (4).
LISSOM_INLINE void put_function_bend(
    const Tables& t, int i, int f, mat3 R, vec3 p, vec6 twist, array<double> q, array<double> v, array<double> out
) {
#ifdef LISSOM_SERVES_PROGRAMS
    const auto& c = t.constraint_functions;
    const int m = 6 + c.term_start.data[f + 1] - c.term_start.data[f];
    double* to = row(out, i) + c.at.data[f];
    double y[6 + MOST_JOINTS] = {};
    for (int j = 0; j < m; ++j)
        y[j] = j < 6 ? twist[j] : row(v, i)[c.v.data[c.term_start.data[f] + j - 6]];
    for (int first = 0; first < m; first += DIRECTIONS) {
        const auto z = function_jet<DEPTH, FIRST_RATE, FIRST_JOINT>(t, f, R, p, row(q, i), y, first);
        const double* slopes = c.is_rate.data[f] ? (const double*)&z.ab : (const double*)&z.abb;
        for (int k = 0; k < DIRECTIONS && first + k < m; ++k)
            to[1 + m + first + k] = slopes[k];
    }
#endif
}

// Number j of D Y of (2), or of Dᵀ Y if `transposed`, of function f, with the twist y and the rates v.
LISSOM_INLINE double number_of_product(
    const Tables& t, int i, int f, int j, vec6 y, array<double> v, int transposed, array<double> values
) {
#ifdef LISSOM_SERVES_PROGRAMS
    const auto& c = t.constraint_functions;
    const int first = c.term_start.data[f], m = 6 + c.term_start.data[f + 1] - first;
    const double* D = row(values, i) + c.at.data[f] + 1 + 2 * m;
    double total = 0.0;
    for (int k = 0; k < m; ++k)
        total += D[transposed ? k * m + j : j * m + k] * (k < 6 ? y[k] : row(v, i)[c.v.data[first + k - 6]]);
    return total;
#else
    return 0.0;
#endif
}

// Six numbers of D of function f: from row `first_row` and column `first_column` on, down a column or along a row.
LISSOM_INLINE vec6 six_slopes(
    const Tables& t, int i, int f, int first_row, int first_column, int down, array<double> values
) {
    vec6 out;
#ifdef LISSOM_SERVES_PROGRAMS
    const auto& c = t.constraint_functions;
    const int m = 6 + c.term_start.data[f + 1] - c.term_start.data[f];
    const double* D = row(values, i) + c.at.data[f] + 1 + 2 * m + first_row * m + first_column;
    for (int k = 0; k < 6; ++k)
        out[k] = D[down ? k * m : k];
#endif
    return out;
}

// Ad⁻ᵀ D Ad⁻¹ of the pose (R, p) of frame B, with D of function f for motions of A in B: D for motions in the axes in
// which the pose is given.
LISSOM_INLINE mat6 turned_slopes(const Tables& t, int i, int f, mat3 R, vec3 p, array<double> values) {
    mat6 out;
#ifdef LISSOM_SERVES_PROGRAMS
    const auto& c = t.constraint_functions;
    const int m = 6 + c.term_start.data[f + 1] - c.term_start.data[f];
    const double* D = row(values, i) + c.at.data[f] + 1 + 2 * m;
    for (int k = 0; k < 6; ++k) {
        double w[3] = {}, u[3] = {}, y[6] = {}, x[6] = {}, moment[3] = {}, force[3] = {};
        (k < 3 ? w : u)[k % 3] = 1.0;
        for (int e = 0; e < 3; ++e)  // y = Ad⁻¹ (w; u)
            u[e] -= p[(e + 1) % 3] * w[(e + 2) % 3] - p[(e + 2) % 3] * w[(e + 1) % 3];
        for (int e = 0; e < 9; ++e) {
            y[e / 3] += R.data[e % 3][e / 3] * w[e % 3];
            y[3 + e / 3] += R.data[e % 3][e / 3] * u[e % 3];
        }
        for (int e = 0; e < 36; ++e)
            x[e / 6] += D[e / 6 * m + e % 6] * y[e % 6];
        for (int e = 0; e < 9; ++e) {  // Ad⁻ᵀ x
            moment[e / 3] += R.data[e / 3][e % 3] * x[e % 3];
            force[e / 3] += R.data[e / 3][e % 3] * x[3 + e % 3];
        }
        for (int e = 0; e < 3; ++e) {
            const double arm = p[(e + 1) % 3] * force[(e + 2) % 3] - p[(e + 2) % 3] * force[(e + 1) % 3];
            out.data[e][k] = moment[e] + arm;
            out.data[3 + e][k] = force[e];
        }
    }
#endif
    return out;
}
