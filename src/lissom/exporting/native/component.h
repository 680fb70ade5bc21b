// A robot as a component of a simulation: its variables, motion, derivatives and states. fmi2.cpp and fmi3.cpp give it
// the functions of the standards.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "coordinates.h"
#include "fmu.h"
#include "robot.h"

namespace {

enum { OK = 0, WARNING = 1, DISCARD = 2, ERROR = 3, FATAL = 4 };

// A component: inputs, the present state, and the workspace of the motion.
struct instance {
    robot_workspace* w;
    bool is_exchange;   // whether the tool integrates the states
    bool has_begun;     // whether the initialisation is over
    bool has_poses, has_rates, has_parameters;  // whether what depends on states and parameters is up to date
    double time, step_size;
    double u[ROBOT_NU + 1], q[ROBOT_NQ], v[ROBOT_NV], a[ROBOT_NV];
    double unit[ROBOT_NQ];  // q with quaternions of unit length
    double poses[16 * ROBOT_N_FRAMES], rates[ROBOT_NQ];
    double p[N_P + 1];
    void* environment;
    void (*log)(const instance* x, const char* text);
    void* report;
};

int fail(const instance* x, const char* text) {
    if (x && x->log)
        x->log(x, text);
    return ERROR;
}

int checked(const instance* x, int status) {
    return status == ROBOT_OK ? OK : fail(x, robot_status_text(status));
}

void forget(instance* x) {
    x->has_poses = x->has_rates = false;
}

// The coordinates at which the robot is evaluated.
const double* pose_of(instance* x) {
    put_unit_quaternions(x->q, x->unit);
    return x->is_exchange ? x->unit : x->q;
}

// Give the parameters to the robot, if some were set.
int put_parameters(instance* x) {
#if N_P
    if (!x->has_parameters) {
        const int status = robot_set_parameters(x->w, 0, N_P, x->p);
        if (status)
            return status;
        x->has_parameters = true;
        forget(x);
    }
#else
    (void)x;
#endif
    return ROBOT_OK;
}

// The accelerations of a component whose states the tool integrates.
int put_rates(instance* x) {
    int status = put_parameters(x);
    if (x->is_exchange && !x->has_rates && !status) {
        status = robot_forward_dynamics(x->w, x->time, pose_of(x), x->v, x->u, x->a);
        x->has_rates = !status;
    }
    return status;
}

void read_state(instance* x) {
    if (x->has_begun && !x->is_exchange)
        robot_state(x->w, &x->time, x->q, x->v, x->a);
    forget(x);
}

// An entry of an array; null behind its end.
double* entry(double* array, unsigned k, int count) {
    return int(k) < count ? array + k : nullptr;
}

// The entry of a variable; null for an unknown one. Frames and accelerations are evaluated when they are needed.
double* variable(instance* x, unsigned reference, bool reads, int* status) {
    const unsigned group = reference / GROUP, k = reference % GROUP;
    *status = ROBOT_OK;
    switch (group) {
        case OF_SELF:
            return k == 0 ? &x->time : k == 1 ? &x->step_size : nullptr;
        case OF_U:
            return entry(x->u, k, ROBOT_NU);
        case OF_Q:
            return entry(x->q, k, ROBOT_NQ);
        case OF_V:
            return entry(x->v, k, ROBOT_NV);
        case OF_A:
            if (int(k) >= ROBOT_NV)
                return nullptr;
            if (reads)
                *status = put_rates(x);
            return x->a + k;
        case OF_FRAMES:
            if (int(k) >= 3 * ROBOT_N_FRAMES)
                return nullptr;
            if (reads) {
                *status = put_parameters(x);
                if (!x->has_poses && !*status)
                    *status = robot_frames(x->w, pose_of(x), nullptr, nullptr, x->poses, nullptr, nullptr);
                x->has_poses = *status == ROBOT_OK;
            }
            return x->poses + 16 * (k / 3) + 4 * (k % 3) + 3;
        case OF_P:
            return entry(x->p, k, N_P);
#if HAS_MODEL_EXCHANGE
        case OF_RATES:
            if (!N_QUATERNIONS)
                return nullptr;
            put_coordinate_rates(x->q, x->v, x->rates);
            return entry(x->rates, k, ROBOT_NQ);
#endif
        default:
            return nullptr;
    }
}

int get(instance* x, const unsigned* references, size_t n, double* values) {
    for (size_t k = 0; k < n; ++k) {
        int status = ROBOT_OK;
        const double* from = variable(x, references[k], true, &status);
        if (!from)
            return fail(x, "there is no variable of this reference");
        if (status)
            return fail(x, robot_status_text(status));
        values[k] = *from;
    }
    return OK;
}

int set(instance* x, const unsigned* references, size_t n, const double* values) {
    for (size_t k = 0; k < n; ++k) {
        const unsigned group = references[k] / GROUP;
        int status = ROBOT_OK;
        const bool is_result = group == OF_A || group == OF_FRAMES || group == OF_RATES || !references[k];
        double* to = is_result ? nullptr : variable(x, references[k], false, &status);
        if (!to || (x->has_begun && !x->is_exchange && (group == OF_Q || group == OF_V)))
            return fail(x, "the variable cannot be set: inputs and parameters can, q and v before the start");
        if (!std::isfinite(values[k]) || (references[k] == 1 && !(values[k] > 0.0)))
            return fail(x, "values must be finite, and step_size > 0");
#if N_P
        if (group == OF_P) {
            double least = 0.0, most = 0.0;
            robot_parameter_range(int(references[k] % GROUP), &least, &most);
            if (values[k] < least || values[k] > most)
                return fail(x, robot_status_text(ROBOT_RANGE));
            x->has_parameters = false;
        }
#endif
        *to = values[k];
        forget(x);
    }
    return OK;
}

void reset(instance* x) {
    x->has_begun = false;
    x->has_parameters = false;
    forget(x);
    x->time = 0.0;
    x->step_size = STEP_SIZE;
    std::memset(x->u, 0, sizeof(x->u));
    std::memset(x->v, 0, sizeof(x->v));
    std::memset(x->a, 0, sizeof(x->a));
    std::memcpy(x->q, robot_default_configuration(), sizeof(x->q));
    std::memcpy(x->p, PARAMETERS, sizeof(x->p));
}

instance* make(bool is_exchange) {
    instance* x = static_cast<instance*>(std::calloc(1, sizeof(instance)));
    if (!x || robot_create(&x->w, nullptr, 0, ROBOT_ABI_VERSION) != ROBOT_OK) {
        std::free(x);
        return nullptr;
    }
    x->is_exchange = is_exchange;
    reset(x);
    return x;
}

void discard(instance* x) {
    if (!x)
        return;
    robot_destroy(x->w);
    std::free(x);
}

// Copy a component; null is a new one. Whom it reports to stays.
instance* copy(const instance* from, instance* to) {
    to = to ? to : make(from->is_exchange);
    if (!to)
        return nullptr;
    const instance own = *to;
    robot_copy(own.w, from->w);
    *to = *from;
    to->w = own.w;
    to->environment = own.environment;
    to->log = own.log;
    to->report = own.report;
    return to;
}

// A component as bytes: the token, its numbers, and the memory of the robot.
size_t bytes_of_state() {
    return sizeof(TOKEN) + sizeof(instance) + robot_saved_size();
}

int save(const instance* x, unsigned char* to, size_t size) {
    if (size < bytes_of_state())
        return fail(x, "the memory for a state is too small");
    instance numbers = *x;
    numbers.w = nullptr;
    numbers.environment = numbers.report = nullptr;
    numbers.log = nullptr;
    std::memcpy(to, TOKEN, sizeof(TOKEN));
    std::memcpy(to + sizeof(TOKEN), &numbers, sizeof(numbers));
    return checked(x, robot_save(x->w, to + sizeof(TOKEN) + sizeof(numbers), robot_saved_size()));
}

instance* load(const instance* x, const unsigned char* from, size_t size) {
    if (size != bytes_of_state() || std::memcmp(from, TOKEN, sizeof(TOKEN))) {
        fail(x, "the bytes are no state of this FMU");
        return nullptr;
    }
    instance* made = make(x->is_exchange);
    if (!made)
        return nullptr;
    robot_workspace* own = made->w;
    std::memcpy(static_cast<void*>(made), from + sizeof(TOKEN), sizeof(instance));
    made->w = own;
    if (robot_load(own, from + sizeof(TOKEN) + sizeof(instance), robot_saved_size()) != ROBOT_OK) {
        discard(made);
        return nullptr;
    }
    return made;
}

// End of the initialisation.
int begin_motion(instance* x) {
    int status = put_parameters(x);
    if (!x->is_exchange && !status)
        status = robot_start(x->w, x->time, x->q, x->v, x->u);
    if (status)
        return fail(x, robot_status_text(status));
    x->has_begun = true;
    read_state(x);
    return OK;
}

// Steps of step_size, or shorter so that a whole number of them fits.
int do_step(instance* x, double now, double size) {
    if (x->is_exchange || !x->has_begun || !(size > 0.0) ||
        std::fabs(now - x->time) > 1e-9 * std::fmax(1.0, std::fabs(now)))
        return fail(x, "a step must begin at the present time and have a size > 0");
    const double many = std::ceil(size / x->step_size * (1.0 - 1e-9));
    int status = put_parameters(x);
    for (double k = 0.0; k < many && !status; k += 1.0)
        status = robot_step(x->w, size / many, x->u);
    read_state(x);
    return checked(x, status);
}

#if HAS_MODEL_EXCHANGE
constexpr size_t N_STATES = size_t(ROBOT_NQ) + size_t(ROBOT_NV);

int set_states(instance* x, const double* values, size_t n) {
    if (n != N_STATES)
        return fail(x, "the number of states is wrong");
    for (size_t k = 0; k < n; ++k)
        if (!std::isfinite(values[k]))
            return fail(x, "states must be finite");
    std::memcpy(x->q, values, sizeof(x->q));
    std::memcpy(x->v, values + ROBOT_NQ, sizeof(x->v));
    forget(x);
    return OK;
}

int get_states(const instance* x, double* values, size_t n) {
    if (n != N_STATES)
        return fail(x, "the number of states is wrong");
    std::memcpy(values, x->q, sizeof(x->q));
    std::memcpy(values + ROBOT_NQ, x->v, sizeof(x->v));
    return OK;
}

int get_rates(instance* x, double* values, size_t n) {
    if (n != N_STATES)
        return fail(x, "the number of states is wrong");
    const int status = put_rates(x);
    if (status)
        return fail(x, robot_status_text(status));
    put_coordinate_rates(x->q, x->v, values);
    std::memcpy(values + ROBOT_NQ, x->a, sizeof(x->a));
    return OK;
}

int get_nominals(const instance* x, double* values, size_t n) {
    if (n != N_STATES)
        return fail(x, "the number of states is wrong");
    for (size_t k = 0; k < n; ++k)
        values[k] = NOMINALS[k];
    return OK;
}

// Derivatives of states, their rates and positions along directions of states and inputs.
int directional(instance* x, const unsigned* unknowns, size_t n_unknowns, const unsigned* knowns, size_t n_knowns,
                const double* seed, double* out) {
    double dq[ROBOT_NQ] = {}, dv[ROBOT_NV] = {}, du[ROBOT_NU + 1] = {};
    for (size_t k = 0; k < n_knowns; ++k) {
        const unsigned group = knowns[k] / GROUP, at = knowns[k] % GROUP;
        if (group == OF_Q && int(at) < ROBOT_NQ)
            dq[at] += seed[k];
        else if (group == OF_V && int(at) < ROBOT_NV)
            dv[at] += seed[k];
        else if (group == OF_U && int(at) < ROBOT_NU)
            du[at] += seed[k];
        else
            return fail(x, "derivatives are by states and inputs");
    }
    double tangent[ROBOT_NV], rates[ROBOT_NQ];
    put_tangent(x->q, dq, tangent);
    put_changes_of_rates(x->q, x->v, dq, dv, tangent, rates);
    int status = put_parameters(x);
    bool needs_a = false, needs_frames = false;
    for (size_t k = 0; k < n_unknowns; ++k) {
        needs_a = needs_a || unknowns[k] / GROUP == OF_A;
        needs_frames = needs_frames || unknowns[k] / GROUP == OF_FRAMES;
    }
    constexpr size_t SQUARE = size_t(ROBOT_NV) * size_t(ROBOT_NV), BY_U = size_t(ROBOT_NV) * size_t(ROBOT_NU);
    constexpr size_t OF_J = 6 * size_t(ROBOT_N_FRAMES) * size_t(ROBOT_NV);
    double* room = static_cast<double*>(std::malloc(sizeof(double) * (2 * SQUARE + BY_U + OF_J + 1)));
    if (!room)
        return fail(x, "there is no memory for derivatives");
    double *by_q = room, *by_v = by_q + SQUARE, *by_u = by_v + SQUARE, *J = by_u + BY_U;
    if (needs_a && !status)
        status = robot_forward_dynamics_derivatives(x->w, x->time, pose_of(x), x->v, x->u, by_q, by_v, by_u);
    if (needs_frames && !status) {
        status = robot_jacobians(x->w, pose_of(x), J);
        if (!status)
            status = robot_frames(x->w, pose_of(x), nullptr, nullptr, x->poses, nullptr, nullptr);
        x->has_poses = status == ROBOT_OK;
    }
    bool is_known = true;
    for (size_t k = 0; k < n_unknowns && !status; ++k) {
        const unsigned group = unknowns[k] / GROUP, at = unknowns[k] % GROUP;
        double sum = 0.0;
        if (group == OF_Q && int(at) < ROBOT_NQ) {
            sum = dq[at];
        } else if (group == OF_V && int(at) < ROBOT_NV) {
            sum = dv[at];
        } else if (N_QUATERNIONS && group == OF_RATES && int(at) < ROBOT_NQ) {
            sum = rates[at];
        } else if (group == OF_A && int(at) < ROBOT_NV) {
            for (size_t j = 0; j < size_t(ROBOT_NV); ++j)
                sum += by_q[at * size_t(ROBOT_NV) + j] * tangent[j] + by_v[at * size_t(ROBOT_NV) + j] * dv[j];
            for (int j = 0; j < ROBOT_NU; ++j)
                sum += by_u[at * size_t(ROBOT_NU) + size_t(j)] * du[j];
        } else if (group == OF_FRAMES && int(at) < 3 * ROBOT_N_FRAMES) {
            const size_t frame = at / 3;
            for (size_t e = 0; e < 3; ++e)
                for (size_t j = 0; j < size_t(ROBOT_NV); ++j)
                    sum += x->poses[16 * frame + 4 * (at % 3) + e] * J[(6 * frame + 3 + e) * size_t(ROBOT_NV) + j] * tangent[j];
        } else {
            is_known = false;
        }
        out[k] = sum;
    }
    std::free(room);
    if (!is_known)
        return fail(x, "derivatives are of states, their rates and positions");
    return checked(x, status);
}
#endif

}  // namespace
