// The robot as an FMU by FMI 3.0. Names, types and constants are those of the standard; its headers are not needed.

#include "component.h"

namespace {

typedef void (*Message)(void* environment, int status, const char* category, const char* message);

void report(const instance* x, const char* text) {
    Message log = nullptr;
    std::memcpy(&log, &x->report, sizeof(log));
    log(x->environment, ERROR, "logStatusError", text);
}

instance* made(const char* token, void* environment, Message log, bool is_exchange) {
    if (!token || std::strcmp(token, TOKEN)) {
        if (log)
            log(environment, ERROR, "logStatusError", "the instantiation token is that of another FMU");
        return nullptr;
    }
    instance* x = make(is_exchange);
    if (x && log) {
        x->environment = environment;
        std::memcpy(&x->report, &log, sizeof(log));
        x->log = report;
    }
    return x;
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
                                      const unsigned*, size_t, void* environment, Message log, void*) {
    return made(token, environment, log, false);
}

FMI void* fmi3InstantiateModelExchange(const char*, const char* token, const char*, bool, bool, void* environment,
                                       Message log) {
#if HAS_MODEL_EXCHANGE
    return made(token, environment, log, true);
#else
    (void)token;
    if (log)
        log(environment, ERROR, "logStatusError", "this robot has no model exchange");
    return nullptr;
#endif
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
    return begin_motion(x);
}

FMI int fmi3Terminate(I) {
    return OK;
}

FMI int fmi3Reset(I x) {
    reset(x);
    return OK;
}

FMI int fmi3GetFloat64(I x, const unsigned* references, size_t n, double* values, size_t n_values) {
    return n == n_values ? get(x, references, n, values)
                         : fail(x, "the numbers of references and of values must be equal");
}

FMI int fmi3SetFloat64(I x, const unsigned* references, size_t n, const double* values, size_t n_values) {
    return n == n_values ? set(x, references, n, values)
                         : fail(x, "the numbers of references and of values must be equal");
}

FMI int fmi3DoStep(I x, double now, double size, bool, bool* event, bool* terminate, bool* early, double* last) {
    if (event)
        *event = false;
    if (terminate)
        *terminate = false;
    if (early)
        *early = false;
    const int status = do_step(x, now, size);
    if (last)
        *last = x->time;
    return status;
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

FMI int fmi3SerializedFMUStateSize(I, void*, size_t* size) {
    *size = bytes_of_state();
    return OK;
}

FMI int fmi3SerializeFMUState(I, void* state, std::uint8_t* to, size_t size) {
    return save(static_cast<instance*>(state), to, size);
}

FMI int fmi3DeserializeFMUState(I x, const std::uint8_t* from, size_t size, void** state) {
    *state = load(x, from, size);
    return *state ? OK : ERROR;
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

FMI int fmi3UpdateDiscreteStates(I, bool* more, bool* terminate, bool* nominals, bool* values, bool* has_event,
                                 double* event) {
    *more = *terminate = *nominals = *values = *has_event = false;
    *event = 0.0;
    return OK;
}

FMI int fmi3GetNumberOfEventIndicators(I, size_t* n) {
    *n = 0;
    return OK;
}

FMI int fmi3GetEventIndicators(I, double*, size_t) {
    return OK;
}

FMI int fmi3CompletedIntegratorStep(I, bool, bool* event, bool* terminate) {
    *event = *terminate = false;
    return OK;
}

#if HAS_MODEL_EXCHANGE
FMI int fmi3EnterContinuousTimeMode(I) {
    return OK;
}

FMI int fmi3SetTime(I x, double time) {
    x->time = time;
    forget(x);
    return OK;
}

FMI int fmi3GetNumberOfContinuousStates(I, size_t* n) {
    *n = N_STATES;
    return OK;
}

FMI int fmi3SetContinuousStates(I x, const double* values, size_t n) {
    return set_states(x, values, n);
}

FMI int fmi3GetContinuousStates(I x, double* values, size_t n) {
    return get_states(x, values, n);
}

FMI int fmi3GetContinuousStateDerivatives(I x, double* values, size_t n) {
    return get_rates(x, values, n);
}

FMI int fmi3GetNominalsOfContinuousStates(I x, double* values, size_t n) {
    return get_nominals(x, values, n);
}

FMI int fmi3GetDirectionalDerivative(I x, const unsigned* unknowns, size_t n_unknowns, const unsigned* knowns,
                                     size_t n_knowns, const double* seed, size_t n_seed, double* out, size_t n_out) {
    if (n_seed != n_knowns || n_out != n_unknowns)
        return fail(x, "the numbers of variables and of values must be equal");
    return directional(x, unknowns, n_unknowns, knowns, n_knowns, seed, out);
}
#else
FMI int fmi3EnterContinuousTimeMode(I x) {
    return fail(x, "fmi3EnterContinuousTimeMode is not among the capabilities");
}
ABSENT(fmi3SetTime, double)
ABSENT(fmi3SetContinuousStates, const double*, size_t)
ABSENT(fmi3GetContinuousStateDerivatives, double*, size_t)
ABSENT(fmi3GetContinuousStates, double*, size_t)
ABSENT(fmi3GetNominalsOfContinuousStates, double*, size_t)
ABSENT(fmi3GetDirectionalDerivative, const unsigned*, size_t, const unsigned*, size_t, const double*, size_t, double*,
       size_t)
FMI int fmi3GetNumberOfContinuousStates(I, size_t* n) {
    *n = 0;
    return OK;
}
#endif
