// Functions of couplings of joints: programs of expressions (robot/expression_programs), run by a stack machine on
// values and their first three derivatives with respect to the coordinate.

// f, f′, f″ and f‴ of the program that begins at `start`, at the coordinate x; then zeros.
LISSOM_INLINE vec6 program_jet(int start, double x, array<int> code, array<double> numbers) {
#ifdef LISSOM_SERVES_PROGRAMS
    struct jet {
        double f, a, b, c;
    };
    // y = g(u):  y′ = g′ u′,  y″ = g″ u′² + g′ u″,  y‴ = g‴ u′³ + 3 g″ u′ u″ + g′ u‴
    auto chain = [](const jet& u, double g, double g1, double g2, double g3) {
        return jet{g, g1 * u.a, g2 * u.a * u.a + g1 * u.b,
                   g3 * u.a * u.a * u.a + 3.0 * g2 * u.a * u.b + g1 * u.c};
    };
    // (u v)‴ = u‴ v + 3 u″ v′ + 3 u′ v″ + u v‴
    auto product = [](const jet& u, const jet& v) {
        return jet{u.f * v.f, u.a * v.f + u.f * v.a, u.b * v.f + 2.0 * u.a * v.a + u.f * v.b,
                   u.c * v.f + 3.0 * u.b * v.a + 3.0 * u.a * v.b + u.f * v.c};
    };
    auto sum = [](const jet& u, const jet& v, double sign) {
        return jet{u.f + sign * v.f, u.a + sign * v.a, u.b + sign * v.b, u.c + sign * v.c};
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
            stack[n++] = {x, 1.0, 0.0, 0.0};
            continue;
        }
        if (operation == NUMBER) {
            stack[n++] = {numbers.data[operand], 0.0, 0.0, 0.0};
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
                if (v.a == 0.0 && v.b == 0.0 && v.c == 0.0) {
                    z = power(u, v.f);
                } else {  // u^v = exp(v log u)
                    const jet w = product(v, logarithm(u));
                    const double g = exp(w.f);
                    z = chain(w, g, g, g, g);
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
    vec6 out;
    out[0] = stack[0].f;
    out[1] = stack[0].a;
    out[2] = stack[0].b;
    out[3] = stack[0].c;
    return out;
#else
    return vec6();
#endif
}
