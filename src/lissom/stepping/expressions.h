// A stack machine for programs of expressions (robot/expression_programs). The stack has values and their first and
// second derivatives with respect to time.

// Run a program at time `now`. It writes values of loads, of prescribed motions and of inputs.
LISSOM_INLINE void evaluate(
    double now, array<int> code, array<double> numbers, array<vec6> load, array<double> prescribed, array<double> u
) {
#ifdef LISSOM_SERVES_EXPRESSIONS
    // Places of results are counted through the loads, then through the prescribed motions, then through the inputs.
    const int loads = 6 * load.shape[0];
    const int laws = loads + prescribed.shape[0];
    double x[DEPTH], rate[DEPTH], change[DEPTH];
    int n = 0;  // values on the stack, each with its first and second rate in time
    for (const int* step = code.data; step[0] != END; step += 2) {
        const int operation = step[0], operand = step[1];
        if (operation == TIME || operation == NUMBER) {
            x[n] = operation == TIME ? now : numbers.data[operand];
            rate[n] = operation == TIME ? 1.0 : 0.0;
            change[n] = 0.0;
            ++n;
            continue;
        }
        if (operation == CLEAR) {
            n = 0;
            continue;
        }
        if (operation >= PUT_VALUE) {
            double* to = (double*)load.data + operand;
            if (operand >= loads)
                to = operand < laws ? prescribed.data + (operand - loads) : u.data + (operand - laws);
            *to = operation == PUT_VALUE ? x[n - 1] : operation == PUT_RATE ? rate[n - 1] : change[n - 1];
            continue;
        }
        if (operation <= MAXIMUM) {
            --n;
            const int a = n - 1 + operand, b = n - operand;
            const double xa = x[a], xb = x[b], ra = rate[a], rb = rate[b], ca = change[a], cb = change[b];
            double& z = x[n - 1];
            double& dz = rate[n - 1];
            double& ddz = change[n - 1];
            // clang-format off
            switch (operation) {  // (x, ẋ, ẍ) by the rules of sums, products, quotients and powers
            case ADD: z = xa + xb; dz = ra + rb; ddz = ca + cb; break;
            case SUBTRACT: z = xa - xb; dz = ra - rb; ddz = ca - cb; break;
            case MULTIPLY: z = xa * xb; dz = ra * xb + xa * rb; ddz = ca * xb + 2.0 * ra * rb + xa * cb; break;
            case DIVIDE:
                z = xa / xb;
                dz = (ra - z * rb) / xb;
                ddz = (ca - 2.0 * dz * rb - z * cb) / xb;
                break;
            case POWER: {
                const double slope = xb == 0.0 ? 0.0 : xb == 2.0 ? 2.0 * xa : xb * pow(xa, xb - 1.0);
                const double factor = xb * (xb - 1.0);
                const double bend = factor == 0.0 ? 0.0 : xb == 2.0 ? 2.0 : factor * pow(xa, xb - 2.0);
                z = xb == 2.0 ? xa * xa : pow(xa, xb);
                dz = slope * ra;
                ddz = bend * ra * ra + slope * ca;
                if (rb != 0.0 || cb != 0.0) {
                    const double l = log(xa), lower = pow(xa, xb - 1.0);
                    dz += z * l * rb;
                    ddz += 2.0 * lower * (1.0 + xb * l) * ra * rb + z * l * (l * rb * rb + cb);
                }
                break;
            }
            default: {
                const bool first = (operation == MINIMUM ? xa < xb : xa > xb) || xa != xa;
                z = first ? xa : xb;
                dz = first ? ra : rb;
                ddz = first ? ca : cb;
            }
            }
            // clang-format on
            continue;
        }
        const double a = x[n - 1];
        double f = 0.0, slope = 0.0, bend = 0.0;
        // clang-format off
        switch (operation) {  // f(x), f′ and f″
        case NEGATE: f = -a; slope = -1.0; break;
        case ABS: f = fabs(a); slope = a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : 0.0; break;
        case SIGN: f = a > 0.0 ? 1.0 : a < 0.0 ? -1.0 : a; break;
        case SIN: f = sin(a); slope = cos(a); bend = -f; break;
        case COS: f = cos(a); slope = -sin(a); bend = -f; break;
        case TAN: f = tan(a); slope = 1.0 + f * f; bend = 2.0 * f * slope; break;
        case SINH: f = sinh(a); slope = cosh(a); bend = f; break;
        case COSH: f = cosh(a); slope = sinh(a); bend = f; break;
        case TANH: f = tanh(a); slope = cosh(a); slope = 1.0 / (slope * slope); bend = -2.0 * f * slope; break;
        case EXP: f = exp(a); slope = f; bend = f; break;
        case LOG: f = log(a); slope = 1.0 / a; bend = -slope * slope; break;
        case SQRT: f = sqrt(a); slope = 0.5 / f; bend = -0.5 * slope / a; break;
        case ARCSIN: f = asin(a); slope = 1.0 / sqrt(1.0 - a * a); bend = a * slope * slope * slope; break;
        case ARCCOS: f = acos(a); slope = -1.0 / sqrt(1.0 - a * a); bend = a * slope * slope * slope; break;
        default: f = atan(a); slope = 1.0 / (1.0 + a * a); bend = -2.0 * a * slope * slope;
        }
        // clang-format on
        x[n - 1] = f;
        change[n - 1] = bend * rate[n - 1] * rate[n - 1] + slope * change[n - 1];
        rate[n - 1] *= slope;
    }
#endif
}
