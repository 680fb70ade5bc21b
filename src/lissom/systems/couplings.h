// Functions of couplings of joints: programs of expressions (robot/expression_programs), run by a stack machine on
// values and their derivatives along two directions.

// Φ, Φ_a, Φ_b, Φ_ab, Φ_bb and Φ_abb of the program that begins at `start`, at the coordinates q. Its variable m is the
// coordinate number q_of[first + m] of q. Derivatives by a are those with respect to variable j. Derivatives by b are
// those with respect to variable k, or, if k < 0, those along w, whose number for variable m is v_of[first + m].
LISSOM_INLINE vec6 program_jet(
    int i, int j, int k, int start, int first, array<double> q, array<double> w, array<int> q_of, array<int> v_of,
    array<int> code, array<double> numbers
) {
#ifdef LISSOM_SERVES_PROGRAMS
    struct jet {
        double f, a, b, ab, bb, abb;
    };
    // y = g(u):  y_a = g′ u_a,  y_ab = g″ u_a u_b + g′ u_ab,  y_bb = g″ u_b² + g′ u_bb,
    // y_abb = g‴ u_a u_b² + g″ (2 u_ab u_b + u_a u_bb) + g′ u_abb
    auto chain = [](const jet& u, double g, double g1, double g2, double g3) {
        return jet{g, g1 * u.a, g1 * u.b, g2 * u.a * u.b + g1 * u.ab, g2 * u.b * u.b + g1 * u.bb,
                   g3 * u.a * u.b * u.b + g2 * (2.0 * u.ab * u.b + u.a * u.bb) + g1 * u.abb};
    };
    // (u v)_abb = u_abb v + 2 u_ab v_b + u_a v_bb + u_bb v_a + 2 u_b v_ab + u v_abb
    auto product = [](const jet& u, const jet& v) {
        return jet{u.f * v.f,
                   u.a * v.f + u.f * v.a,
                   u.b * v.f + u.f * v.b,
                   u.ab * v.f + u.a * v.b + u.b * v.a + u.f * v.ab,
                   u.bb * v.f + 2.0 * u.b * v.b + u.f * v.bb,
                   u.abb * v.f + 2.0 * u.ab * v.b + u.a * v.bb + u.bb * v.a + 2.0 * u.b * v.ab + u.f * v.abb};
    };
    auto sum = [](const jet& u, const jet& v, double sign) {
        return jet{u.f + sign * v.f, u.a + sign * v.a, u.b + sign * v.b,
                   u.ab + sign * v.ab, u.bb + sign * v.bb, u.abb + sign * v.abb};
    };
    auto reciprocal = [&](const jet& u) {
        const double g = 1.0 / u.f;
        return chain(u, g, -g * g, 2.0 * g * g * g, -6.0 * g * g * g * g);
    };
    auto logarithm = [&](const jet& u) {
        const double g = 1.0 / u.f;
        return chain(u, log(u.f), g, -g * g, 2.0 * g * g * g);
    };
    // u^n of a constant n; a term with a factor of zero is zero, even if a power is not finite
    auto power = [&](const jet& u, double n) {
        const double k1 = n, k2 = n * (n - 1.0), k3 = k2 * (n - 2.0);
        return chain(u, pow(u.f, n), k1 == 0.0 ? 0.0 : k1 * pow(u.f, n - 1.0),
                     k2 == 0.0 ? 0.0 : k2 * pow(u.f, n - 2.0), k3 == 0.0 ? 0.0 : k3 * pow(u.f, n - 3.0));
    };
    jet stack[DEPTH];
    int n = 0;
    for (const int* step = code.data + 2 * start; step[0] != END; step += 2) {
        const int operation = step[0], operand = step[1];
        if (operation == TIME) {
            const double along = k < 0 ? row(w, i)[v_of.data[first + operand]] : (operand == k ? 1.0 : 0.0);
            stack[n++] = {row(q, i)[q_of.data[first + operand]], operand == j ? 1.0 : 0.0, along, 0.0, 0.0, 0.0};
            continue;
        }
        if (operation == NUMBER) {
            stack[n++] = {numbers.data[operand], 0.0, 0.0, 0.0, 0.0, 0.0};
            continue;
        }
        if (operation <= POWER) {
            --n;
            const jet u = stack[n - 1 + operand], v = stack[n - operand];
            jet& z = stack[n - 1];
            switch (operation) {
            case ADD: z = sum(u, v, 1.0); break;
            case SUBTRACT: z = sum(u, v, -1.0); break;
            case MULTIPLY: z = product(u, v); break;
            case DIVIDE: z = product(u, reciprocal(v)); break;
            default: {
                if (v.a == 0.0 && v.b == 0.0 && v.ab == 0.0 && v.bb == 0.0 && v.abb == 0.0) {
                    z = power(u, v.f);
                } else {  // u^v = exp(v log u)
                    const jet exponent = product(v, logarithm(u));
                    const double g = exp(exponent.f);
                    z = chain(exponent, g, g, g, g);
                }
            }
            }
            continue;
        }
        const jet u = stack[n - 1];
        const double a = u.f;
        double g = 0.0, g1 = 0.0, g2 = 0.0, g3 = 0.0;
        // clang-format off
        switch (operation) {
        case NEGATE: g = -a; g1 = -1.0; break;
        case SIN: g = sin(a); g1 = cos(a); g2 = -g; g3 = -g1; break;
        case COS: g = cos(a); g1 = -sin(a); g2 = -g; g3 = -g1; break;
        case TAN: g = tan(a); g1 = 1.0 + g * g; g2 = 2.0 * g * g1; g3 = 2.0 * g1 * (g1 + 2.0 * g * g); break;
        case SINH: g = sinh(a); g1 = cosh(a); g2 = g; g3 = g1; break;
        case COSH: g = cosh(a); g1 = sinh(a); g2 = g; g3 = g1; break;
        case TANH: {
            const double secant = 1.0 / cosh(a);
            g = tanh(a); g1 = secant * secant; g2 = -2.0 * g * g1; g3 = -2.0 * g1 * (g1 - 2.0 * g * g);
            break;
        }
        case EXP: g = exp(a); g1 = g2 = g3 = g; break;
        case LOG: g = log(a); g1 = 1.0 / a; g2 = -g1 * g1; g3 = 2.0 * g1 * g1 * g1; break;
        case SQRT: g = sqrt(a); g1 = 0.5 / g; g2 = -0.5 * g1 / a; g3 = -1.5 * g2 / a; break;
        case ARCSIN:
        case ARCCOS: {
            const double root = 1.0 / sqrt(1.0 - a * a), cube = root * root * root;
            const double sign = operation == ARCSIN ? 1.0 : -1.0;
            g = operation == ARCSIN ? asin(a) : acos(a);
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
        stack[n - 1] = chain(u, g, g1, g2, g3);
    }
    const jet& z = stack[0];
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
