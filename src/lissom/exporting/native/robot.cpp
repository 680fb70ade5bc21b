// The exported functions: they copy arguments to the working memory, run kernels, and copy results.

#include "robot.h"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "layout.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the tables of this robot need a little-endian processor"
#endif

// The present motion of a workspace.
struct motion {
    double t;     // time [s]
    int started;  // whether there is a state
};

struct robot_workspace {
    bool is_owned;  // whether robot_destroy() frees the memory
    void* block;    // the memory
    char* working;  // arrays of all launches
    void* arguments[N_LAUNCHES];
    motion now;
};

namespace {

constexpr size_t ALIGNED = 64;
[[maybe_unused]] constexpr int NQ = ROBOT_NQ, NV = ROBOT_NV;

size_t rounded(size_t bytes) {
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

double* numbers(const robot_workspace* w, place p) {
    return reinterpret_cast<double*>(w->working + p.offset);
}

int* integers(const robot_workspace* w, place p) {
    return reinterpret_cast<int*>(w->working + p.offset);
}

// Whether all numbers are finite: whether no exponent has all bits set, in which case one more would carry into the sign.
// Integers, since compilers may reorder them for vectors, and since they are as fast for very small numbers.
bool is_finite(const double* x, int count) {
    constexpr std::uint64_t MAGNITUDE = ~std::uint64_t(0) >> 1, ONE_MORE = std::uint64_t(1) << 52;
    std::uint64_t carried = 0;
    for (int k = 0; k < count; ++k) {
        std::uint64_t bits;
        std::memcpy(&bits, x + k, sizeof(bits));
        carried |= (bits & MAGNITUDE) + ONE_MORE;
    }
    return !(carried >> 63);
}

// Copy an argument to the working memory. NULL is zero.
int put(robot_workspace* w, place to, const double* from) {
    if (!to.count)
        return ROBOT_OK;
    if (!from) {
        std::memset(numbers(w, to), 0, sizeof(double) * size_t(to.count));
        return ROBOT_OK;
    }
    if (!is_finite(from, to.count))
        return ROBOT_NOT_FINITE;
    std::memcpy(numbers(w, to), from, sizeof(double) * size_t(to.count));
    return ROBOT_OK;
}

[[maybe_unused]] int put(robot_workspace* w, place q, const double* from_q, place v, const double* from_v) {
    const int status = put(w, q, from_q);
    return status ? status : put(w, v, from_v);
}

// Copy a result. NULL is left out.
[[maybe_unused]] void take(const robot_workspace* w, place from, int count, double* to) {
    if (to)
        std::memcpy(to, numbers(w, from), sizeof(double) * size_t(count));
}

// Copy a matrix (nv, columns), whose rows begin `width` numbers apart.
[[maybe_unused]] void take_matrix(const robot_workspace* w, place from, int width, int columns, double* to) {
    const double* x = numbers(w, from);
    for (int r = 0; r < NV; ++r)
        std::memcpy(to + r * columns, x + r * width, sizeof(double) * size_t(columns));
}

// Bind the kernels and fill the arrays that do not begin with zeros; all other arrays are zero.
void begin(robot_workspace* w) {
    for (int k = 0; k < N_LAUNCHES; ++k)
        LAUNCHES[k].bind(w->arguments[k], w->working);
    for (const start& one : STARTS)
        if (one.from)
            std::memcpy(w->working + one.offset, one.from, one.bytes);
}

//: parameters
// An array that depends on parameters.
[[maybe_unused]] double* adjusted(const robot_workspace* w, size_t offset) {
    return reinterpret_cast<double*>(w->working + offset);
}

// Monomials of parameters.
void put_monomials(const double* values, double* to) {
    for (int k = 0; k < N_MONOMIALS; ++k) {
        to[k] = 1.0;
        for (int e = ROBOT(monomial_start)[k]; e < ROBOT(monomial_start)[k + 1]; ++e)
            to[k] *= values[ROBOT(monomial_parameter)[e]];
    }
}

// Numbers of the tables for the present parameters. Those that only depend on parameters with their default values keep
// the numbers of the export.
void adjust(robot_workspace* w) {
    double *now = numbers(w, monomials), *before = now + N_MONOMIALS;
    put_monomials(numbers(w, parameters), now);
    put_monomials(ROBOT(parameter_default), before);
    for (int k = 0; k < N_ADJUSTED; ++k) {
        double sum = 0.0;
        bool is_changed = false;
        for (int e = ROBOT(adjusted_start)[k]; e < ROBOT(adjusted_start)[k + 1]; ++e) {
            const int m = ROBOT(adjusted_monomial)[e];
            sum += ROBOT(adjusted_factor)[e] * now[m];
            is_changed = is_changed || now[m] != before[m];
        }
        if (is_changed)
            reinterpret_cast<double*>(w->working)[ROBOT(adjusted_at)[k]] = sum;
    }
}

// Replace a matrix (3, 3) in rows of four by the nearest rotation. Returns whether it was one to 1e-6.
bool make_rotation(double* R) {
    for (int pass = 0; pass < 4; ++pass) {
        double square[3][3], error = 0.0;
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                square[i][j] = i == j ? -1.0 : 0.0;
                for (int k = 0; k < 3; ++k)
                    square[i][j] += R[4 * k + i] * R[4 * k + j];
                error = std::fmax(error, std::fabs(square[i][j]));
            }
        if (!(error <= 1e-6))
            return false;
        if (error < 1e-15)
            break;
        double next[3][3];
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) {
                next[i][j] = R[4 * i + j];
                for (int k = 0; k < 3; ++k)
                    next[i][j] -= 0.5 * R[4 * i + k] * square[k][j];
            }
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                R[4 * i + j] = next[i][j];
    }
    const double det = R[0] * (R[5] * R[10] - R[6] * R[9]) - R[1] * (R[4] * R[10] - R[6] * R[8]) +
                       R[2] * (R[4] * R[9] - R[5] * R[8]);
    return det > 0.0;
}
//: end

// Run a launch. Returns the status of the kernel.
[[maybe_unused]] int run(robot_workspace* w, int launch, place status) {
    *integers(w, status) = 0;
    LAUNCHES[launch].run(w->arguments[launch]);
    return *integers(w, status);
}

// Run a launch whose kernel writes its results to memory of the caller. Other calls find them in the working memory.
typedef void aim(void* arguments, char* memory, double* const* to);

[[maybe_unused]] int run_into(robot_workspace* w, int launch, place status, aim* where, double* const* to) {
    where(w->arguments[launch], w->working, to);
    const int found = run(w, launch, status);
    where(w->arguments[launch], w->working, nullptr);
    return found;
}

// Evaluate the loads, and the positions, velocities and accelerations of prescribed coordinates, at a time.
[[maybe_unused]] void evaluate_laws(robot_workspace* w, double t) {
#if HAS_LAWS
    *numbers(w, laws_time) = t;
    LAUNCHES[laws].run(w->arguments[laws]);
#else
    (void)w;
    (void)t;
#endif
}

// Put the loads at a time. Without functions of time they are constant.
[[maybe_unused]] void put_loads(robot_workspace* w, double t, place load, double factor) {
    if (!N_LOADS)
        return;
    evaluate_laws(w, t);
#if HAS_LAWS
    const double* from = numbers(w, laws_load);
#else
    const double* from = ROBOT(loads);
#endif
    for (int k = 0; k < N_LOADS; ++k)
        numbers(w, load)[k] = factor * from[k];
    // the current and the time behind the point loads are no forces
    for (int k = N_FORCES; k < N_LOADS; ++k)
        numbers(w, load)[k] = from[k];
}

#if HAS_FORWARD_DYNAMICS
int accelerations(robot_workspace* w, double t, const double* q, const double* v, const double* u) {
    int status = put(w, forward_dynamics_q, q, forward_dynamics_v, v);
    status = status ? status : put(w, forward_dynamics_u, u);
    if (status)
        return status;
    put_loads(w, t, forward_dynamics_load, 1.0);
#if N_MOTIONS
    if (!N_LOADS)
        evaluate_laws(w, t);
    for (int k = 0; k < N_MOTIONS; ++k)
        numbers(w, forward_dynamics_given)[MOTION_V[k]] = numbers(w, laws_motion)[2 * N_MOTIONS + k];
#endif
    return run(w, forward_dynamics, forward_dynamics_status);
}
#endif

#if HAS_FORWARD_DYNAMICS_DERIVATIVES
#if ROBOT_N_ROWS
// Solve A X = B for B (n, m) in place by elimination with row interchanges; A (n, n) is overwritten. Returns whether a
// pivot vanished.
bool solve(int n, int m, double* A, double* B) {
    for (int k = 0; k < n; ++k) {
        int best = k;
        for (int r = k + 1; r < n; ++r)
            if (std::fabs(A[r * n + k]) > std::fabs(A[best * n + k]))
                best = r;
        if (!(std::fabs(A[best * n + k]) > 0.0))
            return true;
        if (best != k) {
            for (int c = k; c < n; ++c) {
                const double x = A[k * n + c];
                A[k * n + c] = A[best * n + c];
                A[best * n + c] = x;
            }
            for (int c = 0; c < m; ++c) {
                const double x = B[k * m + c];
                B[k * m + c] = B[best * m + c];
                B[best * m + c] = x;
            }
        }
        for (int r = k + 1; r < n; ++r) {
            const double factor = A[r * n + k] / A[k * n + k];
            if (factor == 0.0)
                continue;
            for (int c = k + 1; c < n; ++c)
                A[r * n + c] -= factor * A[k * n + c];
            for (int c = 0; c < m; ++c)
                B[r * m + c] -= factor * B[k * m + c];
        }
    }
    for (int k = n - 1; k >= 0; --k)
        for (int c = 0; c < m; ++c) {
            double x = B[k * m + c];
            for (int r = k + 1; r < n; ++r)
                x -= A[k * n + r] * B[r * m + c];
            B[k * m + c] = x / A[k * n + k];
        }
    return false;
}
#endif

// B (nv, nu), the derivative of the generalised force by the inputs, with elastic tendons as they are.
int input_response(robot_workspace* w, double t, const double* q, const double* v, const double* u, double* B,
                   int width) {
    int status = put(w, actuation_q, q);
    status = status ? status : run(w, actuation, actuation_status);
    if (status)
        return status;
    double* by_channel = numbers(w, actuation_B);
#if HAS_INPUT_COLUMNS
    *numbers(w, input_columns_time) = t;
    put(w, input_columns_q, q, input_columns_v, v);
    put(w, input_columns_u, u);
    status = run(w, input_columns, input_columns_status);
    if (status)
        return status;
    for (int k = 0; k < N_CHANNELS * NV; ++k)
        by_channel[k] += numbers(w, input_columns_out)[k];
#else
    (void)t;
    (void)v;
#endif
    for (int j = 0; j < NV; ++j)
        for (int k = 0; k < ROBOT_NU; ++k)
            B[j * width + k] = ROBOT(joint_gain)[j * ROBOT_NU + k];
    for (int c = 0; c < N_CHANNELS; ++c) {
        double size = 1.0;
#if N_SPOOLS
        for (int e = 0; e < N_SPOOLS; ++e)
            if (SPOOL_CHANNEL[e] == c) {
                double stretch = numbers(w, actuation_length)[c] - ROBOT(spool_slack)[e];
                for (int k = 0; k < ROBOT_NU; ++k)
                    stretch += u[k] * ROBOT(gain)[c * ROBOT_NU + k];
                const bool is_taut = stretch > -SLACK_TOLERANCE * ROBOT(spool_slack)[e];
                size = is_taut ? ROBOT(spool_stiffness)[e] : 0.0;
            }
#else
        (void)u;
#endif
        for (int j = 0; j < NV; ++j)
            for (int k = 0; k < ROBOT_NU; ++k)
                B[j * width + k] += by_channel[c * NV + j] * size * ROBOT(gain)[c * ROBOT_NU + k];
    }
    return ROBOT_OK;
}
#endif

#if HAS_STEP
constexpr double QUARTER = 0.25;

// Write the step size, the times and the loads of the next part, from `begin` to `until`.
void prepare(robot_workspace* w, double begin, double until) {
    numbers(w, step_h)[1] = until - begin;
    numbers(w, step_times)[0] = begin;
#if HAS_LAWS
    const double size = until - begin;
    for (int s = 0; s < N_STAGES; ++s) {
        const double t = s == N_STAGES - 1 ? until : until + size * (ROBOT(stage_ends)[s] - 1.0);
        evaluate_laws(w, t);
        if (N_LOADS)
            std::memcpy(numbers(w, step_load) + size_t(s) * N_LOADS, numbers(w, laws_load), sizeof(double) * N_LOADS);
        if (N_MOTIONS)
            std::memcpy(numbers(w, step_motion) + size_t(s) * 3 * N_MOTIONS, numbers(w, laws_motion),
                        sizeof(double) * 3 * N_MOTIONS);
    }
#endif
    integers(w, step_counts)[DONE] = 0;
    int* span = integers(w, step_span);
    span[0] = span[2] = 0;
    span[1] = 1;
}

// Take a step from t to `end`, in parts if Newton's method fails. A part that fails is divided by four; after a part
// that succeeds the next one is twice as long.
int advance(robot_workspace* w, double t, double end) {
    int* counts = integers(w, step_counts);
    const double whole = end - t, least = LEAST_PART * whole;
    numbers(w, step_adaptive)[LEAST] = least;
    numbers(w, step_adaptive)[NEXT] = 0.0;
    double size = whole, until = end;
    bool is_divided = false;
    prepare(w, t, end);
    for (;;) {
        const int status = run(w, step, step_status);
        if (counts[DONE] == 1) {
            if (!is_divided)
                return ROBOT_OK;
            std::memcpy(numbers(w, step_ahead), numbers(w, step_a), sizeof(double) * NV);
            numbers(w, step_h)[0] = numbers(w, step_h)[1];
            t = until;
            if (until == end) {
                numbers(w, step_adaptive)[NEXT] = 0.0;
                counts[HAS_MATRIX] = 0;
                return ROBOT_OK;
            }
            size *= 2.0;
        } else {
            if (status == ROBOT_TOO_MANY_PAIRS)
                return status;
            if (!is_divided)
                numbers(w, step_adaptive)[NEXT] = whole;
            is_divided = true;
            counts[HAS_MATRIX] = counts[STEADY] = 0;
            size *= QUARTER;
            if (size < least)
                return ROBOT_NO_STEP;
        }
        const double left = end - t;
        const bool is_last = size >= left * (1.0 - 1e-9);
        size = is_last ? left : size;
        until = is_last ? end : t + size;
        prepare(w, t, until);
    }
}

// The arrays that hold the state of a motion between steps.
constexpr place STATE[] = {step_q, step_v, step_a, step_ahead, step_before STATE_OF_ROWS};
constexpr int N_STATE = int(sizeof(STATE) / sizeof(STATE[0]));
#endif

#if HAS_EQUILIBRIUM
// Newton's method from the start in the working memory, with loads, gravity and inputs times a factor. Returns how the
// iteration ended.
int newton(robot_workspace* w, double t, const double* u, double factor) {
    for (int k = 0; k < ROBOT_NU; ++k)
        numbers(w, equilibrium_u)[k] = u ? factor * u[k] : 0.0;
    for (int k = 0; k < 3; ++k)
        numbers(w, equilibrium_gravity)[k] = factor * ROBOT(gravity)[k];
    put_loads(w, t, equilibrium_load, factor);
    const double limits[] = {1e-10, 50.0, 1e-6, 1e-7};
    std::memcpy(numbers(w, equilibrium_numbers), limits, sizeof(limits));
    int* pause = integers(w, equilibrium_pause);
    pause[0] = pause[1] = 0;
    *integers(w, equilibrium_status) = 0;
    LAUNCHES[equilibrium].run(w->arguments[equilibrium]);
    return pause[1];
}

void unit_quaternions(double* q) {
    for (int k = 0; k < N_QUATERNIONS; ++k) {
        double* x = q + QUATERNION_AT[k];
        const double size = std::sqrt(x[0] * x[0] + x[1] * x[1] + x[2] * x[2] + x[3] * x[3]);
        for (int e = 0; e < 4; ++e)
            x[e] /= size;
    }
}
#endif

}  // namespace

extern "C" {

// Headers of Warp declare it; compilers that do not optimise keep a call of it.
void ROBOT(ignore_assert)(const char*, const char*, unsigned) {}

int robot_abi_version(void) {
    return ROBOT_ABI_VERSION;
}

const char* robot_status_text(int status) {
    if (status > ROBOT_SINGULAR)
        return "a velocity moves no mass: give its link or the links that it carries mass";
    if (status >= ROBOT_FUNCTION)
        return "a function of a constraint has no value at q";
    switch (status) {
        case ROBOT_OK: return "no error";
        case ROBOT_NOT_FINITE: return "arguments must be finite, got NaN or infinity";
        case ROBOT_QUATERNION: return "a quaternion must have unit length to 1e-6";
        case ROBOT_FULL_TURN: return "a rod interval turns by 2 pi or more: use more Gauss points or smaller strains";
        case ROBOT_OVERFLOW: return "the result is not finite: the arguments are too large";
        case ROBOT_TOO_MANY_PAIRS: return "more pairs of shapes are near than near_pairs of the robot";
        case ROBOT_COUPLING: return "a coupling of joints has no value at q";
        case ROBOT_FLAT_DISC: return "a disc that rolls lies flat on its plane: tilt it";
        case ROBOT_NULL: return "a pointer is null";
        case ROBOT_SIZE: return "the memory is too small, or a number of entries is wrong";
        case ROBOT_ABI: return "the caller was compiled for another ABI version: compile it with this header";
        case ROBOT_NO_START: return "call robot_start before robot_step";
        case ROBOT_NO_STEP: return "Newton's method finds no step: take a smaller dt, smoother inputs or more damping";
        case ROBOT_NO_EQUILIBRIUM: return "Newton's method finds no equilibrium: start from another q";
        case ROBOT_OPEN: return "q leaves a loop or another constraint open: close it before";
        case ROBOT_UNKNOWN: return "there is no function, name or parameter of this number";
        case ROBOT_RANGE: return "a parameter is outside of its range, or a placement has no rotation";
        default: return "unknown status";
    }
}

const char* robot_coordinate_name(int k) {
    return k >= 0 && k < ROBOT_NQ ? COORDINATE_NAMES[k] : nullptr;
}

const char* robot_velocity_name(int k) {
    return k >= 0 && k < ROBOT_NV ? VELOCITY_NAMES[k] : nullptr;
}

const char* robot_input_name(int k) {
    return k >= 0 && k < ROBOT_NU ? INPUT_NAMES[k] : nullptr;
}

const char* robot_input_unit(int k) {
    return k >= 0 && k < ROBOT_NU ? INPUT_UNITS[k] : nullptr;
}

const char* robot_frame_name(int k) {
    return k >= 0 && k < ROBOT_N_FRAMES ? FRAME_NAMES[k] : nullptr;
}

const double* robot_default_configuration(void) {
    return ROBOT(default_configuration);
}

size_t robot_memory_size(void) {
    size_t size = ALIGNED + rounded(sizeof(robot_workspace)) + rounded(WORKING);
    for (const launch& one : LAUNCHES)
        size += rounded(one.size());
    return size;
}

int robot_create(robot_workspace** made, void* memory, size_t size, int abi) {
    if (!made)
        return ROBOT_NULL;
    *made = nullptr;
    if (abi != ROBOT_ABI_VERSION)
        return ROBOT_ABI;
    const size_t needed = robot_memory_size();
    if (size < needed && (memory || size))
        return ROBOT_SIZE;
    void* block = memory ? memory : std::malloc(needed);
    if (!block)
        return ROBOT_NULL;
    const size_t off = reinterpret_cast<std::uintptr_t>(block) % ALIGNED;
    char* at = static_cast<char*>(block) + (off ? ALIGNED - off : 0);
    std::memset(at, 0, needed - ALIGNED);
    robot_workspace* w = reinterpret_cast<robot_workspace*>(at);
    w->is_owned = !memory;
    w->block = block;
    w->working = at + rounded(sizeof(robot_workspace));
    at = w->working + rounded(WORKING);
    for (int k = 0; k < N_LAUNCHES; ++k) {
        w->arguments[k] = at;
        at += rounded(LAUNCHES[k].size());
    }
    begin(w);
//: parameters
    std::memcpy(numbers(w, parameters), ROBOT(parameter_default), sizeof(double) * ROBOT_N_PARAMETERS);
//: end
    *made = w;
    return ROBOT_OK;
}

void robot_destroy(robot_workspace* w) {
    if (w && w->is_owned)
        std::free(w->block);
}

int robot_copy(robot_workspace* to, const robot_workspace* from) {
    if (!to || !from)
        return ROBOT_NULL;
    // Arrays that hold addresses have the same place in both, but addresses of their own: they are bound again.
    std::memmove(to->working, from->working, WORKING);
    for (int k = 0; k < N_LAUNCHES; ++k)
        LAUNCHES[k].bind(to->arguments[k], to->working);
    to->now = from->now;
    return ROBOT_OK;
}

//: step
size_t robot_saved_size(void) {
    return WORKING + sizeof(motion);
}

int robot_save(const robot_workspace* w, void* to, size_t size) {
    if (!w || !to)
        return ROBOT_NULL;
    if (size != robot_saved_size())
        return ROBOT_SIZE;
    std::memcpy(to, w->working, WORKING);
    std::memcpy(static_cast<char*>(to) + WORKING, &w->now, sizeof(motion));
    return ROBOT_OK;
}

int robot_load(robot_workspace* w, const void* from, size_t size) {
    if (!w || !from)
        return ROBOT_NULL;
    if (size != robot_saved_size())
        return ROBOT_SIZE;
    std::memcpy(w->working, from, WORKING);
    std::memcpy(&w->now, static_cast<const char*>(from) + WORKING, sizeof(motion));
    for (int k = 0; k < N_LAUNCHES; ++k)
        LAUNCHES[k].bind(w->arguments[k], w->working);
    return ROBOT_OK;
}

//: parameters
const char* robot_parameter_name(int k) {
    return k >= 0 && k < ROBOT_N_PARAMETERS ? PARAMETER_NAMES[k] : nullptr;
}

const char* robot_parameter_unit(int k) {
    return k >= 0 && k < ROBOT_N_PARAMETERS ? PARAMETER_UNITS[k] : nullptr;
}

int robot_parameter_index(const char* name) {
    for (int k = 0; name && k < ROBOT_N_PARAMETERS; ++k)
        if (!std::strcmp(name, PARAMETER_NAMES[k]))
            return k;
    return -1;
}

int robot_parameter_range(int k, double* least, double* most) {
    if (!least || !most)
        return ROBOT_NULL;
    if (k < 0 || k >= ROBOT_N_PARAMETERS)
        return ROBOT_UNKNOWN;
    *least = ROBOT(parameter_least)[k];
    *most = ROBOT(parameter_most)[k];
    return ROBOT_OK;
}

int robot_parameters(const robot_workspace* w, int first, int count, double* values) {
    if (!w || !values)
        return ROBOT_NULL;
    if (first < 0 || count < 0 || first > ROBOT_N_PARAMETERS - count)
        return ROBOT_UNKNOWN;
    std::memcpy(values, numbers(w, parameters) + first, sizeof(double) * size_t(count));
    return ROBOT_OK;
}

int robot_set_parameters(robot_workspace* w, int first, int count, const double* values) {
    if (!w || !values)
        return ROBOT_NULL;
    if (first < 0 || count < 0 || first > ROBOT_N_PARAMETERS - count)
        return ROBOT_UNKNOWN;
    if (!is_finite(values, count))
        return ROBOT_NOT_FINITE;
    double next[ROBOT_N_PARAMETERS];
    std::memcpy(next, numbers(w, parameters), sizeof(next));
    std::memcpy(next + first, values, sizeof(double) * size_t(count));
    for (int k = first; k < first + count; ++k)
        if (next[k] < ROBOT(parameter_least)[k] || next[k] > ROBOT(parameter_most)[k])
            return ROBOT_RANGE;
    for (int k = 0; k < N_POSES; ++k)
        if (first < POSE_AT[k] + 12 && first + count > POSE_AT[k] && !make_rotation(next + POSE_AT[k]))
            return ROBOT_RANGE;
    std::memcpy(numbers(w, parameters), next, sizeof(next));
#if HAS_STEP
    double* kept = numbers(w, step_kept);
    for (int k = 0; k < N_STATE; ++k) {
        take(w, STATE[k], STATE[k].count, kept);
        kept += STATE[k].count;
    }
#endif
    // What kernels have kept of the last calls belongs to other tables.
    std::memset(w->working, 0, OF_LAUNCHES);
    begin(w);
    adjust(w);
#if HAS_STEP
    kept = numbers(w, step_kept);
    for (int k = 0; k < N_STATE; ++k) {
        std::memcpy(numbers(w, STATE[k]), kept, sizeof(double) * size_t(STATE[k].count));
        kept += STATE[k].count;
    }
#if ROBOT_N_ROWS
    if (w->now.started) {
        int status = accelerations(w, w->now.t, numbers(w, step_q), numbers(w, step_v), nullptr);
        for (int r = 0; !status && r < ROBOT_N_ROWS; ++r)
            if (!(std::fabs(numbers(w, forward_dynamics_gap)[r]) <= 1e-6))
                status = ROBOT_OPEN;
        if (status)
            w->now.started = 0;
    }
#endif
#endif
    return ROBOT_OK;
}

//: forward_dynamics
int robot_forward_dynamics(robot_workspace* w, double t, const double* q, const double* v, const double* u, double* a) {
    if (!w || !q || !v || !a)
        return ROBOT_NULL;
    if (!std::isfinite(t))
        return ROBOT_NOT_FINITE;
    const int status = accelerations(w, t, q, v, u);
    if (!status)
        take(w, forward_dynamics_a, NV, a);
    return status;
}

//: inverse_dynamics
int robot_inverse_dynamics(robot_workspace* w, double t, const double* q, const double* v, const double* a,
                           double* tau) {
    if (!w || !q || !v || !a || !tau)
        return ROBOT_NULL;
    if (!std::isfinite(t))
        return ROBOT_NOT_FINITE;
    int status = put(w, inverse_dynamics_q, q, inverse_dynamics_v, v);
    status = status ? status : put(w, inverse_dynamics_a, a);
    if (status)
        return status;
    put_loads(w, t, inverse_dynamics_load, 1.0);
    status = run(w, inverse_dynamics, inverse_dynamics_status);
    if (!status)
        take(w, inverse_dynamics_tau, NV, tau);
    return status;
}

//: mass_matrix
int robot_mass_matrix(robot_workspace* w, const double* q, double* M) {
    if (!w || !q || !M)
        return ROBOT_NULL;
    const int status = put(w, mass_matrix_q, q);
    return status ? status : run_into(w, mass_matrix, mass_matrix_status, ROBOT(aim_mass_matrix), &M);
}

//: energy
int robot_energy(robot_workspace* w, const double* q, const double* v, double* energies) {
    if (!w || !q || !v || !energies)
        return ROBOT_NULL;
    int status = put(w, energy_q, q, energy_v, v);
    status = status ? status : run(w, energy, energy_status);
    if (!status)
        take(w, energy_out, 3, energies);
    return status;
}

//: frames
int robot_frames(robot_workspace* w, const double* q, const double* v, const double* a, double* poses, double* twists,
                 double* rates) {
    if (!w || !q)
        return ROBOT_NULL;
    int status = put(w, frames_q, q, frames_v, v);
    status = status ? status : put(w, frames_a, a);
    status = status ? status : run(w, frames, frames_status);
    if (status)
        return status;
    take(w, frames_pose, 16 * ROBOT_N_FRAMES, poses);
    take(w, frames_twist, 6 * ROBOT_N_FRAMES, twists);
    take(w, frames_acc, 6 * ROBOT_N_FRAMES, rates);
    return ROBOT_OK;
}

//: forward_kinematics
int robot_forward_kinematics(robot_workspace* w, const double* q, double* poses) {
    if (!w || !q || !poses)
        return ROBOT_NULL;
    int status = put(w, poses_q, q);
    status = status ? status : run(w, ::poses, poses_status);
    if (!status)
        take(w, poses_pose, 16 * ROBOT_N_NODES, poses);
    return status;
}

//: jacobians
int robot_jacobians(robot_workspace* w, const double* q, double* J) {
    if (!w || !q || !J)
        return ROBOT_NULL;
    const int status = put(w, jacobians_q, q);
    return status ? status : run_into(w, jacobians, jacobians_status, ROBOT(aim_jacobians), &J);
}

//: inverse_dynamics_derivatives
int robot_inverse_dynamics_derivatives(robot_workspace* w, double t, const double* q, const double* v, const double* a,
                                       double* dtau_dq, double* dtau_dv, double* dtau_da) {
    if (!w || !q || !v || !a || !dtau_dq || !dtau_dv || !dtau_da)
        return ROBOT_NULL;
    if (!std::isfinite(t))
        return ROBOT_NOT_FINITE;
    int status = put(w, derivatives_q, q, derivatives_v, v);
    status = status ? status : put(w, derivatives_a, a, derivatives_u, nullptr);
    if (status)
        return status;
    put(w, derivatives_force, nullptr);
    *integers(w, derivatives_terms) = LOADS_AND_SPRINGS;
    put_loads(w, t, derivatives_load, 1.0);
#if WIDTH == ROBOT_NV
    double* const to[] = {dtau_dq, dtau_dv, dtau_da};
    return run_into(w, derivatives, derivatives_status, ROBOT(aim_derivatives), to);
#else
    status = run(w, derivatives, derivatives_status);
    if (status)
        return status;
    take_matrix(w, derivatives_dq, WIDTH, NV, dtau_dq);
    take_matrix(w, derivatives_dv, WIDTH, NV, dtau_dv);
    take_matrix(w, derivatives_da, WIDTH, NV, dtau_da);
    return ROBOT_OK;
#endif
}

//: forward_dynamics_derivatives
namespace {

#if ROBOT_N_ROWS
// Derivatives of accelerations of a robot with loops, from those of its equations of motion.
int responses(robot_workspace* w, double t, const double* q, const double* v, double* da_dq, double* da_dv,
              double* da_du) {
    int status = run(w, derivatives, derivatives_status);
    // The system: mass matrix and independent rows of loops; right sides by q, v and u.
    const int m = 2 * NV + ROBOT_NU;
    double *A = numbers(w, solve_matrix), *X = numbers(w, solve_right);
    double* units = numbers(w, solve_units);
    status = status ? status : input_response(w, t, q, v, numbers(w, derivatives_u), X + 2 * NV, m);
    if (status)
        return status;
    double *dq = numbers(w, derivatives_dq), *dv = numbers(w, derivatives_dv), *da = numbers(w, derivatives_da);
    bool is_given[NV] = {};
#if N_MOTIONS
    for (int k = 0; k < N_MOTIONS; ++k)
        is_given[MOTION_V[k]] = true;
#endif
    for (int j = 0; j < NV; ++j) {
        for (int k = 0; k < NV; ++k) {
            const bool fixed = is_given[j] || is_given[k];
            X[j * m + k] = fixed ? 0.0 : -dq[j * WIDTH + k];
            X[j * m + NV + k] = fixed ? 0.0 : -dv[j * WIDTH + k];
        }
        for (int k = 0; k < ROBOT_NU; ++k)
            X[j * m + 2 * NV + k] = is_given[j] ? 0.0 : X[j * m + 2 * NV + k];
    }
    int rows[ROBOT_N_ROWS], n = NV;
    for (int r = 0; r < ROBOT_N_ROWS; ++r)
        if (integers(w, derivatives_slot)[r] >= 0)
            rows[n++ - NV] = r;
    std::memset(A, 0, sizeof(double) * size_t(n) * size_t(n));
    for (int j = 0; j < NV; ++j) {
        const double own = is_given[j] ? 1.0 : da[j * WIDTH + j];
        units[j] = n > NV && own > 0.0 ? 1.0 / std::sqrt(own) : 1.0;
    }
    for (int j = 0; j < NV; ++j) {
        for (int k = 0; k < NV; ++k)
            A[j * n + k] = is_given[j] || is_given[k] ? (j == k) : units[j] * da[j * WIDTH + k] * units[k];
        for (int c = 0; c < m; ++c)
            X[j * m + c] *= units[j];
    }
    for (int e = 0; e < n - NV; ++e) {
        const int from = rows[e] * WIDTH, to = NV + e;
        double size = 0.0;
        for (int j = 0; j < NV; ++j) {
            const double x = is_given[j] ? 0.0 : numbers(w, derivatives_A)[from + j] * units[j];
            size += x * x;
        }
        size = std::sqrt(size);
        for (int j = 0; j < NV; ++j) {
            const double x = is_given[j] ? 0.0 : numbers(w, derivatives_A)[from + j] * units[j] / size;
            A[to * n + j] = x;
            A[j * n + to] = -x;
            X[to * m + j] = -numbers(w, derivatives_acceleration_q)[from + j] / size;
            X[to * m + NV + j] = -numbers(w, derivatives_acceleration_v)[from + j] / size;
        }
        for (int k = 0; k < ROBOT_NU; ++k)
            X[to * m + 2 * NV + k] = 0.0;
    }
    if (solve(n, m, A, X))
        return ROBOT_SINGULAR;
    for (int j = 0; j < NV; ++j) {
        for (int k = 0; k < NV; ++k) {
            const bool fixed = is_given[j] || is_given[k];
            da_dq[j * NV + k] = fixed ? 0.0 : units[j] * X[j * m + k];
            da_dv[j * NV + k] = fixed ? 0.0 : units[j] * X[j * m + NV + k];
        }
        for (int k = 0; k < ROBOT_NU; ++k)
            da_du[j * ROBOT_NU + k] = units[j] * X[j * m + 2 * NV + k];
    }
    return is_finite(da_dq, NV * NV) && is_finite(da_dv, NV * NV) ? ROBOT_OK : ROBOT_OVERFLOW;
}
#else
// Derivatives of accelerations, which a kernel makes of those of the equations of motion in their place.
int responses(robot_workspace* w, double t, const double* q, const double* v, double* da_dq, double* da_dv,
              double* da_du) {
#if WIDTH == ROBOT_NV
    double* const to[] = {da_dq, da_dv, numbers(w, derivatives_da)};
    int status = run_into(w, derivatives, derivatives_status, ROBOT(aim_derivatives), to);
#else
    double* const to[] = {numbers(w, derivatives_dq), numbers(w, derivatives_dv), numbers(w, derivatives_da)};
    int status = run(w, derivatives, derivatives_status);
#endif
    double *of_inputs = numbers(w, derivatives_u), *B = numbers(w, mass_response_B);
    status = status ? status : input_response(w, t, q, v, of_inputs, B, INPUT_WIDTH);
    status = status ? status : run_into(w, mass_response, mass_response_status, ROBOT(aim_mass_response), to);
    if (status)
        return status;
#if WIDTH != ROBOT_NV
    take_matrix(w, derivatives_dq, WIDTH, NV, da_dq);
    take_matrix(w, derivatives_dv, WIDTH, NV, da_dv);
#endif
    take_matrix(w, mass_response_du, INPUT_WIDTH, ROBOT_NU, da_du);
    return ROBOT_OK;
}
#endif

}  // namespace

int robot_forward_dynamics_derivatives(robot_workspace* w, double t, const double* q, const double* v, const double* u,
                                       double* da_dq, double* da_dv, double* da_du) {
    if (!w || !q || !v || !da_dq || !da_dv || (!da_du && ROBOT_NU))
        return ROBOT_NULL;
    if (!std::isfinite(t))
        return ROBOT_NOT_FINITE;
    const int status = accelerations(w, t, q, v, u);
    if (status)
        return status;
    put(w, derivatives_q, q, derivatives_v, v);
    put(w, derivatives_a, numbers(w, forward_dynamics_a), derivatives_u, u);
    if (ROBOT_N_ROWS)
        put(w, derivatives_force, numbers(w, forward_dynamics_force));
    *integers(w, derivatives_terms) = ALL_TERMS;
    put(w, derivatives_load, numbers(w, forward_dynamics_load));
    return responses(w, t, q, v, da_dq, da_dv, da_du);
}

//: equilibrium
int robot_equilibrium(robot_workspace* w, double t, const double* u, double* q, int* iterations) {
    constexpr int CONVERGED = 8, CROWDED = 15;
    if (!w || !q)
        return ROBOT_NULL;
    if (!std::isfinite(t) || (u && !is_finite(u, ROBOT_NU)))
        return ROBOT_NOT_FINITE;
    int status = put(w, equilibrium_start, q);
    if (status)
        return status;
    double *here = numbers(w, equilibrium_start), count = 0.0;
    unit_quaternions(here);
#if N_MOTIONS
    evaluate_laws(w, t);
    for (int k = 0; k < N_MOTIONS; ++k)
        here[MOTION_Q[k]] = numbers(w, laws_motion)[k];
#endif
    put(w, equilibrium_force, nullptr);
    int ended = newton(w, t, u, 1.0);
    count += numbers(w, equilibrium_notes)[0];
    if (ended != CONVERGED && ended != CROWDED) {
        // Loads, gravity and inputs grow from zero, in parts that Newton's method takes.
        double reached = 0.0, part = 0.25, *kept = numbers(w, equilibrium_kept);
        std::memcpy(here, ROBOT(neutral_configuration), sizeof(double) * NQ);
#if N_MOTIONS
        for (int k = 0; k < N_MOTIONS; ++k)
            here[MOTION_Q[k]] = numbers(w, laws_motion)[k];
#endif
        put(w, equilibrium_force, nullptr);
        ended = newton(w, t, u, 0.0);
        count += numbers(w, equilibrium_notes)[0];
        while (ended == CONVERGED && reached < 1.0 && part >= 1e-3) {
            unit_quaternions(here);
            std::memcpy(kept, here, sizeof(double) * NQ);
            if (ROBOT_N_ROWS)
                std::memcpy(kept + NQ, numbers(w, equilibrium_force), sizeof(double) * ROBOT_N_ROWS);
            const double goal = reached + part < 1.0 ? reached + part : 1.0;
            const bool good = newton(w, t, u, goal) == CONVERGED;
            count += numbers(w, equilibrium_notes)[0];
            if (good) {
                reached = goal;
                part = 1.5 * part < 1.0 ? 1.5 * part : 1.0;
                continue;
            }
            part *= 0.5;
            std::memcpy(here, kept, sizeof(double) * NQ);
            if (ROBOT_N_ROWS)
                std::memcpy(numbers(w, equilibrium_force), kept + NQ, sizeof(double) * ROBOT_N_ROWS);
        }
        ended = reached < 1.0 ? -1 : ended;
    }
    if (iterations)
        *iterations = int(count);
    if (ended == CROWDED)
        return ROBOT_TOO_MANY_PAIRS;
    if (ended != CONVERGED)
        return ROBOT_NO_EQUILIBRIUM;
    unit_quaternions(here);
    std::memcpy(q, here, sizeof(double) * NQ);
    return ROBOT_OK;
}

//: step
int robot_start(robot_workspace* w, double t, const double* q, const double* v, const double* u) {
    if (!w || !q || !v)
        return ROBOT_NULL;
    if (!std::isfinite(t))
        return ROBOT_NOT_FINITE;
    double *start_q = numbers(w, step_q), *start_v = numbers(w, step_v);
    w->now.started = 0;
    int status = put(w, step_q, q, step_v, v);
    if (status)
        return status;
#if N_MOTIONS
    evaluate_laws(w, t);
    for (int k = 0; k < N_MOTIONS; ++k) {
        start_q[MOTION_Q[k]] = numbers(w, laws_motion)[k];
        start_v[MOTION_V[k]] = numbers(w, laws_motion)[N_MOTIONS + k];
    }
#endif
    status = accelerations(w, t, start_q, start_v, u);
    if (status)
        return status;
#if ROBOT_N_ROWS
    for (int r = 0; r < ROBOT_N_ROWS; ++r)
        if (!(std::fabs(numbers(w, forward_dynamics_gap)[r]) <= 1e-6))
            return ROBOT_OPEN;
    take(w, forward_dynamics_force, ROBOT_N_ROWS, numbers(w, step_force));
    take(w, forward_dynamics_force, ROBOT_N_ROWS, numbers(w, step_force_before));
#endif
    take(w, forward_dynamics_a, NV, numbers(w, step_a));
    take(w, forward_dynamics_a, NV, numbers(w, step_ahead));
    take(w, forward_dynamics_a, NV, numbers(w, step_before));
#if STICKS
    // Pairs in contact begin with their anchors; others have none.
    double* anchors = numbers(w, step_anchor);
    for (int k = 0; k < step_anchor.count; ++k)
        anchors[k] = NAN;
    put(w, contacts_q, start_q, contacts_v, start_v);
    *integers(w, contacts_with_forces) = 1;
    status = run(w, contacts, contacts_status);
    if (status)
        return status;
    for (int at = 0; at < contacts_pairs.count; at += NUMBERS_PER_PAIR) {
        const double* pair = numbers(w, contacts_pairs) + at;
        if (pair[0] < 0.0)
            break;
        if (pair[14] != 0.0 || pair[15] != 0.0 || pair[16] != 0.0)
            std::memcpy(anchors + 6 * int(pair[0]), pair + 11, sizeof(double) * 6);
    }
#endif
    std::memset(integers(w, step_counts), 0, sizeof(int) * N_COUNTS);
    numbers(w, step_h)[0] = 0.0;
    w->now.t = t;
    w->now.started = 1;
    return ROBOT_OK;
}

int robot_step(robot_workspace* w, double dt, const double* u) {
    if (!w)
        return ROBOT_NULL;
    if (!w->now.started)
        return ROBOT_NO_START;
    if (!std::isfinite(dt) || (u && !is_finite(u, ROBOT_NU)))
        return ROBOT_NOT_FINITE;
    if (!(dt > 0.0))
        return ROBOT_SIZE;
    for (int s = 0; s < N_STAGES; ++s)
        for (int k = 0; k < ROBOT_NU; ++k)
            numbers(w, step_inputs)[s * ROBOT_NU + k] = u ? u[k] : 0.0;
    double* kept = numbers(w, step_kept);
    for (int k = 0; k < N_STATE; ++k) {
        take(w, STATE[k], STATE[k].count, kept);
        kept += STATE[k].count;
    }
    const double end = w->now.t + dt, before = numbers(w, step_h)[0];
    const int status = advance(w, w->now.t, end);
    if (status) {
        kept = numbers(w, step_kept);
        for (int k = 0; k < N_STATE; ++k) {
            std::memcpy(numbers(w, STATE[k]), kept, sizeof(double) * size_t(STATE[k].count));
            kept += STATE[k].count;
        }
        numbers(w, step_h)[0] = before;
        integers(w, step_counts)[HAS_MATRIX] = integers(w, step_counts)[STEADY] = 0;
        return status;
    }
    numbers(w, step_h)[0] = numbers(w, step_h)[1];
    w->now.t = end;
    return ROBOT_OK;
}

int robot_state(const robot_workspace* w, double* t, double* q, double* v, double* a) {
    if (!w)
        return ROBOT_NULL;
    if (!w->now.started)
        return ROBOT_NO_START;
    if (t)
        *t = w->now.t;
    take(w, step_q, NQ, q);
    take(w, step_v, NV, v);
    take(w, step_a, NV, a);
    return ROBOT_OK;
}

//: end
int robot_sizes(int function, size_t* n_in, size_t* n_out) {
    if (!n_in || !n_out)
        return ROBOT_NULL;
    switch (function) {
@SIZES@
        default: return ROBOT_UNKNOWN;
    }
}

int robot_evaluate(robot_workspace* w, int function, const double* in, size_t n_in, double* out, size_t n_out) {
    size_t takes = 0, gives = 0;
    if (!w || !in || !out)
        return ROBOT_NULL;
    const int known = robot_sizes(function, &takes, &gives);
    if (known)
        return known;
    if (n_in != takes || n_out != gives)
        return ROBOT_SIZE;
    switch (function) {
@CALLS@
        default: return ROBOT_UNKNOWN;
    }
}

}  // extern "C"
