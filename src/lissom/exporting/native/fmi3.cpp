// The robot as an FMU for co-simulation by FMI 3.0. Names, types and constants are those of the standard; its headers
// are not needed.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "fmu.h"
#include "robot.h"

namespace {

// A component: inputs, the state before the start, and the workspace of the motion.
struct instance {
    robot_workspace* w;
    bool has_begun;
    double time, step_size;
    double u[ROBOT_NU + 1], q[ROBOT_NQ], v[ROBOT_NV], a[ROBOT_NV];
    double poses[16 * ROBOT_N_FRAMES];
    bool has_poses;
    void* environment;
    void (*log)(void* environment, int status, const char* category, const char* message);
};

enum { OK = 0, WARNING = 1, DISCARD = 2, ERROR = 3, FATAL = 4 };

int fail(instance* x, const char* text) {
    if (x && x->log)
        x->log(x->environment, ERROR, "logStatusError", text);
    return ERROR;
}

int checked(instance* x, int status) {
    return status == ROBOT_OK ? OK : fail(x, robot_status_text(status));
}

void read_state(instance* x) {
    if (x->has_begun)
        robot_state(x->w, &x->time, x->q, x->v, x->a);
    x->has_poses = false;
}

// The entry of a variable; null for an unknown one. Frames are evaluated when they are needed.
double* variable(instance* x, unsigned reference, int* status) {
    const unsigned group = reference / GROUP, k = reference % GROUP;
    *status = ROBOT_OK;
    switch (group) {
        case OF_SELF:
            return k == 0 ? &x->time : k == 1 ? &x->step_size : nullptr;
        case OF_U:
            return k < unsigned(ROBOT_NU) ? x->u + k : nullptr;
        case OF_Q:
            return k < unsigned(ROBOT_NQ) ? x->q + k : nullptr;
        case OF_V:
            return k < unsigned(ROBOT_NV) ? x->v + k : nullptr;
        case OF_A:
            return k < unsigned(ROBOT_NV) ? x->a + k : nullptr;
        case OF_FRAMES:
            if (k >= 3u * unsigned(ROBOT_N_FRAMES))
                return nullptr;
            if (!x->has_poses)
                *status = robot_frames(x->w, x->q, nullptr, nullptr, x->poses, nullptr, nullptr);
            x->has_poses = *status == ROBOT_OK;
            return x->poses + 16 * (k / 3) + 4 * (k % 3) + 3;
        default:
            return nullptr;
    }
}

void reset(instance* x) {
    x->has_begun = x->has_poses = false;
    x->time = 0.0;
    x->step_size = STEP_SIZE;
    std::memset(x->u, 0, sizeof(x->u));
    std::memset(x->v, 0, sizeof(x->v));
    std::memset(x->a, 0, sizeof(x->a));
    std::memcpy(x->q, robot_default_configuration(), sizeof(x->q));
}

instance* copy(const instance* from, instance* to) {
    if (!to) {
        to = static_cast<instance*>(std::calloc(1, sizeof(instance)));
        if (!to || robot_create(&to->w, nullptr, 0, ROBOT_ABI_VERSION) != ROBOT_OK) {
            std::free(to);
            return nullptr;
        }
    }
    robot_workspace* own = to->w;
    robot_copy(own, from->w);
    *to = *from;
    to->w = own;
    return to;
}

void discard(instance* x) {
    if (!x)
        return;
    robot_destroy(x->w);
    std::free(x);
}

}  // namespace

#define FMI extern "C" ROBOT_API
typedef instance* I;

FMI const char* fmi3GetVersion() {
    return "3.0";
}

FMI int fmi3SetDebugLogging(I, bool, size_t, const char* const*) {
    return OK;
}

FMI void* fmi3InstantiateCoSimulation(const char*, const char* token, const char*, bool, bool, bool, bool,
                                      const unsigned*, size_t, void* environment,
                                      void (*log)(void*, int, const char*, const char*), void*) {
    if (!token || std::strcmp(token, TOKEN)) {
        if (log)
            log(environment, ERROR, "logStatusError", "the instantiation token is that of another FMU");
        return nullptr;
    }
    instance* x = static_cast<instance*>(std::calloc(1, sizeof(instance)));
    if (!x || robot_create(&x->w, nullptr, 0, ROBOT_ABI_VERSION) != ROBOT_OK) {
        std::free(x);
        return nullptr;
    }
    x->environment = environment;
    x->log = log;
    reset(x);
    return x;
}

FMI void* fmi3InstantiateModelExchange(const char*, const char*, const char*, bool, bool, void*, void*) {
    return nullptr;
}

FMI void* fmi3InstantiateScheduledExecution(const char*, const char*, const char*, bool, bool, void*, void*, void*,
                                            void*, void*) {
    return nullptr;
}

FMI void fmi3FreeInstance(I x) {
    discard(x);
}

FMI int fmi3EnterInitializationMode(I x, bool, double, double start, bool, double) {
    x->time = start;
    return OK;
}

FMI int fmi3ExitInitializationMode(I x) {
    const int status = robot_start(x->w, x->time, x->q, x->v, x->u);
    if (status)
        return fail(x, robot_status_text(status));
    x->has_begun = true;
    read_state(x);
    return OK;
}

FMI int fmi3Terminate(I) {
    return OK;
}

FMI int fmi3Reset(I x) {
    reset(x);
    return OK;
}

FMI int fmi3GetFloat64(I x, const unsigned* references, size_t n, double* values, size_t n_values) {
    if (n != n_values)
        return fail(x, "the numbers of references and of values must be equal");
    for (size_t k = 0; k < n; ++k) {
        int status = ROBOT_OK;
        const double* from = variable(x, references[k], &status);
        if (!from)
            return fail(x, "there is no variable of this reference");
        if (status)
            return fail(x, robot_status_text(status));
        values[k] = *from;
    }
    return OK;
}

FMI int fmi3SetFloat64(I x, const unsigned* references, size_t n, const double* values, size_t n_values) {
    if (n != n_values)
        return fail(x, "the numbers of references and of values must be equal");
    for (size_t k = 0; k < n; ++k) {
        const unsigned group = references[k] / GROUP;
        int status = ROBOT_OK;
        const bool is_result = group == OF_A || group == OF_FRAMES || !references[k];
        double* to = is_result ? nullptr : variable(x, references[k], &status);
        if (!to || (x->has_begun && (group == OF_Q || group == OF_V)))
            return fail(x, "the variable cannot be set: inputs and step_size can, q and v before the start");
        if (!std::isfinite(values[k]) || (references[k] == 1 && !(values[k] > 0.0)))
            return fail(x, "values must be finite, and step_size > 0");
        *to = values[k];
        x->has_poses = false;
    }
    return OK;
}

// Steps of step_size, or shorter so that a whole number of them fits.
FMI int fmi3DoStep(I x, double now, double size, bool, bool* event, bool* terminate, bool* early, double* last) {
    if (event)
        *event = false;
    if (terminate)
        *terminate = false;
    if (early)
        *early = false;
    if (!x->has_begun || !(size > 0.0) || std::fabs(now - x->time) > 1e-9 * std::fmax(1.0, std::fabs(now)))
        return fail(x, "a step must begin at the present time and have a size > 0");
    const double many = std::ceil(size / x->step_size * (1.0 - 1e-9));
    int status = ROBOT_OK;
    for (double k = 0.0; k < many && !status; k += 1.0)
        status = robot_step(x->w, size / many, x->u);
    read_state(x);
    if (last)
        *last = x->time;
    return checked(x, status);
}

FMI int fmi3EnterStepMode(I) {
    return OK;
}

FMI int fmi3GetFMUState(I x, void** state) {
    *state = copy(x, static_cast<instance*>(*state));
    return *state ? OK : fail(x, "there is no memory for a state");
}

FMI int fmi3SetFMUState(I x, void* state) {
    return copy(static_cast<instance*>(state), x) ? OK : ERROR;
}

FMI int fmi3FreeFMUState(I, void** state) {
    discard(static_cast<instance*>(*state));
    *state = nullptr;
    return OK;
}

// What this FMU does not have, by its capabilities.
#define ABSENT(name, ...)           \
    FMI int name(I x, __VA_ARGS__) { \
        return fail(x, #name " is not among the capabilities"); \
    }
#define NO_TYPE(name, type)                                                                  \
    FMI int fmi3Get##name(I x, const unsigned*, size_t n, type*, size_t) {                   \
        return n ? fail(x, "there are no variables of type " #name) : OK;                    \
    }                                                                                        \
    FMI int fmi3Set##name(I x, const unsigned*, size_t n, const type*, size_t) {             \
        return n ? fail(x, "there are no variables of type " #name) : OK;                    \
    }
NO_TYPE(Float32, float)
NO_TYPE(Int8, std::int8_t)
NO_TYPE(UInt8, std::uint8_t)
NO_TYPE(Int16, std::int16_t)
NO_TYPE(UInt16, std::uint16_t)
NO_TYPE(Int32, std::int32_t)
NO_TYPE(UInt32, std::uint32_t)
NO_TYPE(Int64, std::int64_t)
NO_TYPE(UInt64, std::uint64_t)
NO_TYPE(Boolean, bool)
NO_TYPE(String, char* const)
ABSENT(fmi3GetBinary, const unsigned*, size_t, size_t*, const void**, size_t)
ABSENT(fmi3SetBinary, const unsigned*, size_t, const size_t*, const void* const*, size_t)
ABSENT(fmi3GetClock, const unsigned*, size_t, bool*)
ABSENT(fmi3SetClock, const unsigned*, size_t, const bool*)
ABSENT(fmi3GetNumberOfVariableDependencies, unsigned, size_t*)
ABSENT(fmi3GetVariableDependencies, unsigned, size_t*, unsigned*, size_t*, int*, size_t)
ABSENT(fmi3SerializedFMUStateSize, void*, size_t*)
ABSENT(fmi3SerializeFMUState, void*, std::uint8_t*, size_t)
ABSENT(fmi3DeserializeFMUState, const std::uint8_t*, size_t, void**)
ABSENT(fmi3GetDirectionalDerivative, const unsigned*, size_t, const unsigned*, size_t, const double*, size_t, double*,
       size_t)
ABSENT(fmi3GetAdjointDerivative, const unsigned*, size_t, const unsigned*, size_t, const double*, size_t, double*,
       size_t)
ABSENT(fmi3GetIntervalDecimal, const unsigned*, size_t, double*, int*)
ABSENT(fmi3GetIntervalFraction, const unsigned*, size_t, std::uint64_t*, std::uint64_t*, int*)
ABSENT(fmi3GetShiftDecimal, const unsigned*, size_t, double*)
ABSENT(fmi3GetShiftFraction, const unsigned*, size_t, std::uint64_t*, std::uint64_t*)
ABSENT(fmi3SetIntervalDecimal, const unsigned*, size_t, const double*)
ABSENT(fmi3SetIntervalFraction, const unsigned*, size_t, const std::uint64_t*, const std::uint64_t*)
ABSENT(fmi3SetShiftDecimal, const unsigned*, size_t, const double*)
ABSENT(fmi3SetShiftFraction, const unsigned*, size_t, const std::uint64_t*, const std::uint64_t*)
ABSENT(fmi3UpdateDiscreteStates, bool*, bool*, bool*, bool*, bool*, double*)
ABSENT(fmi3CompletedIntegratorStep, bool, bool*, bool*)
ABSENT(fmi3SetTime, double)
ABSENT(fmi3SetContinuousStates, const double*, size_t)
ABSENT(fmi3GetContinuousStateDerivatives, double*, size_t)
ABSENT(fmi3GetEventIndicators, double*, size_t)
ABSENT(fmi3GetContinuousStates, double*, size_t)
ABSENT(fmi3GetNominalsOfContinuousStates, double*, size_t)
ABSENT(fmi3GetNumberOfEventIndicators, size_t*)
ABSENT(fmi3GetNumberOfContinuousStates, size_t*)
ABSENT(fmi3GetOutputDerivatives, const unsigned*, size_t, const std::int32_t*, double*, size_t)
ABSENT(fmi3ActivateModelPartition, unsigned, double)

FMI int fmi3EnterConfigurationMode(I) {
    return OK;
}

FMI int fmi3ExitConfigurationMode(I) {
    return OK;
}

FMI int fmi3EnterEventMode(I) {
    return OK;
}

FMI int fmi3EvaluateDiscreteStates(I) {
    return OK;
}

FMI int fmi3EnterContinuousTimeMode(I x) {
    return fail(x, "fmi3EnterContinuousTimeMode is not among the capabilities");
}
