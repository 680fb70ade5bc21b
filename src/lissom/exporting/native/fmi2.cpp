// The robot as an FMU by FMI 2.0. Names, types and constants are those of the standard; its headers are not needed.

#include "component.h"

namespace {

struct callbacks {
    void (*logger)(void* environment, const char* name, int status, const char* category, const char* message, ...);
    void* (*allocate)(size_t, size_t);
    void (*release)(void*);
    void (*finished)(void*, int);
    void* environment;
};

struct event_info {
    int more, terminate, nominals, values, has_event;
    double event;
};

void report(const instance* x, const char* text) {
    const callbacks* to = static_cast<const callbacks*>(x->report);
    to->logger(to->environment, "robot", ERROR, "logStatusError", "%s", text);
}

}  // namespace

#define FMI extern "C" ROBOT_API
typedef instance* I;

FMI const char* fmi2GetTypesPlatform() {
    return "default";
}

FMI const char* fmi2GetVersion() {
    return "2.0";
}

FMI int fmi2SetDebugLogging(I, int, size_t, const char* const*) {
    return OK;
}

FMI void* fmi2Instantiate(const char*, int type, const char* token, const char*, const callbacks* functions, int, int) {
    const bool is_exchange = type == 0;
    const char* wrong = !token || std::strcmp(token, TOKEN) ? "the GUID is that of another FMU"
                        : is_exchange && !HAS_MODEL_EXCHANGE ? "this robot has no model exchange"
                                                             : nullptr;
    if (wrong) {
        if (functions && functions->logger)
            functions->logger(functions->environment, "robot", ERROR, "logStatusError", "%s", wrong);
        return nullptr;
    }
    instance* x = make(is_exchange);
    if (x && functions && functions->logger) {
        x->report = const_cast<callbacks*>(functions);
        x->log = report;
    }
    return x;
}

FMI void fmi2FreeInstance(I x) {
    discard(x);
}

FMI int fmi2SetupExperiment(I x, int, double, double start, int, double) {
    x->time = start;
    return OK;
}

FMI int fmi2EnterInitializationMode(I) {
    return OK;
}

FMI int fmi2ExitInitializationMode(I x) {
    return begin_motion(x);
}

FMI int fmi2Terminate(I) {
    return OK;
}

FMI int fmi2Reset(I x) {
    reset(x);
    return OK;
}

FMI int fmi2GetReal(I x, const unsigned* references, size_t n, double* values) {
    return get(x, references, n, values);
}

FMI int fmi2SetReal(I x, const unsigned* references, size_t n, const double* values) {
    return set(x, references, n, values);
}

#define NO_TYPE(name, type)                                                     \
    FMI int fmi2Get##name(I x, const unsigned*, size_t n, type*) {              \
        return n ? fail(x, "there are no variables of type " #name) : OK;       \
    }                                                                           \
    FMI int fmi2Set##name(I x, const unsigned*, size_t n, const type*) {        \
        return n ? fail(x, "there are no variables of type " #name) : OK;       \
    }
NO_TYPE(Integer, int)
NO_TYPE(Boolean, int)
NO_TYPE(String, char* const)

FMI int fmi2GetFMUstate(I x, void** state) {
    *state = copy(x, static_cast<instance*>(*state));
    return *state ? OK : fail(x, "there is no memory for a state");
}

FMI int fmi2SetFMUstate(I x, void* state) {
    return copy(static_cast<instance*>(state), x) ? OK : ERROR;
}

FMI int fmi2FreeFMUstate(I, void** state) {
    discard(static_cast<instance*>(*state));
    *state = nullptr;
    return OK;
}

FMI int fmi2SerializedFMUstateSize(I, void*, size_t* size) {
    *size = bytes_of_state();
    return OK;
}

FMI int fmi2SerializeFMUstate(I, void* state, char* to, size_t size) {
    return save(static_cast<instance*>(state), reinterpret_cast<unsigned char*>(to), size);
}

FMI int fmi2DeSerializeFMUstate(I x, const char* from, size_t size, void** state) {
    *state = load(x, reinterpret_cast<const unsigned char*>(from), size);
    return *state ? OK : ERROR;
}

FMI int fmi2DoStep(I x, double now, double size, int) {
    return do_step(x, now, size);
}

FMI int fmi2EnterEventMode(I) {
    return OK;
}

FMI int fmi2NewDiscreteStates(I, event_info* info) {
    info->more = info->terminate = info->nominals = info->values = info->has_event = 0;
    info->event = 0.0;
    return OK;
}

FMI int fmi2CompletedIntegratorStep(I, int, int* event, int* terminate) {
    *event = *terminate = 0;
    return OK;
}

FMI int fmi2GetEventIndicators(I, double*, size_t) {
    return OK;
}

// What this FMU does not have, by its capabilities.
#define ABSENT(name, ...)            \
    FMI int name(I x, __VA_ARGS__) { \
        return fail(x, #name " is not among the capabilities"); \
    }
ABSENT(fmi2SetRealInputDerivatives, const unsigned*, size_t, const int*, const double*)
ABSENT(fmi2GetRealOutputDerivatives, const unsigned*, size_t, const int*, double*)
ABSENT(fmi2GetStatus, int, int*)
ABSENT(fmi2GetRealStatus, int, double*)
ABSENT(fmi2GetIntegerStatus, int, int*)
ABSENT(fmi2GetBooleanStatus, int, int*)
ABSENT(fmi2GetStringStatus, int, const char**)

FMI int fmi2CancelStep(I x) {
    return fail(x, "fmi2CancelStep is not among the capabilities");
}

FMI int fmi2EnterContinuousTimeMode(I x) {
    return HAS_MODEL_EXCHANGE ? OK : fail(x, "fmi2EnterContinuousTimeMode is not among the capabilities");
}

#if HAS_MODEL_EXCHANGE
FMI int fmi2SetTime(I x, double time) {
    x->time = time;
    forget(x);
    return OK;
}

FMI int fmi2SetContinuousStates(I x, const double* values, size_t n) {
    return set_states(x, values, n);
}

FMI int fmi2GetContinuousStates(I x, double* values, size_t n) {
    return get_states(x, values, n);
}

FMI int fmi2GetDerivatives(I x, double* values, size_t n) {
    return get_rates(x, values, n);
}

FMI int fmi2GetNominalsOfContinuousStates(I x, double* values, size_t n) {
    return get_nominals(x, values, n);
}

FMI int fmi2GetDirectionalDerivative(I x, const unsigned* unknowns, size_t n_unknowns, const unsigned* knowns,
                                     size_t n_knowns, const double* seed, double* out) {
    return directional(x, unknowns, n_unknowns, knowns, n_knowns, seed, out);
}
#else
ABSENT(fmi2SetTime, double)
ABSENT(fmi2SetContinuousStates, const double*, size_t)
ABSENT(fmi2GetContinuousStates, double*, size_t)
ABSENT(fmi2GetDerivatives, double*, size_t)
ABSENT(fmi2GetNominalsOfContinuousStates, double*, size_t)
ABSENT(fmi2GetDirectionalDerivative, const unsigned*, size_t, const unsigned*, size_t, const double*, double*)
#endif
