/* @TITLE@

   Every function returns ROBOT_OK or another status; robot_status_text() says what it means. No function keeps global
   state, and none but robot_create() without memory allocates. Calls on different workspaces may run in different
   threads; one workspace serves one call at a time.

   Arrays of results share no memory with each other; a result may take the place of an argument. After an error results
   mean nothing.

   Units are SI. Arrays are contiguous and of float64; matrices are stored row by row. Coordinates q and velocities v
   are in the order of robot_coordinate_name() and robot_velocity_name(). */

#ifndef ROBOT_EXPORT_H
#define ROBOT_EXPORT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define ROBOT_API __declspec(dllexport)
#elif defined(__GNUC__)
#define ROBOT_API __attribute__((visibility("default")))
#else
#define ROBOT_API
#endif

/* Version of the functions and of their arguments. robot_create() refuses another one. */
#define ROBOT_ABI_VERSION 1

#define ROBOT_NQ @NQ@ /* coordinates */
#define ROBOT_NV @NV@ /* velocities */
#define ROBOT_NU @NU@ /* inputs */
#define ROBOT_N_FRAMES @N_FRAMES@ /* links, then frames */
#define ROBOT_N_NODES @N_NODES@ /* joints and points of rods */
#define ROBOT_N_ROWS @N_ROWS@ /* forces of loops and of other constraints */

@ENUMS@
enum {
    ROBOT_OK = 0,
    ROBOT_NOT_FINITE = 1,      /* an argument has NaN or infinity */
    ROBOT_QUATERNION = 2,      /* a quaternion of q has no unit length, to 1e-6 */
    ROBOT_FULL_TURN = 3,       /* an interval of a rod turns by 2 pi or more */
    ROBOT_OVERFLOW = 4,        /* a result is not finite */
    ROBOT_TOO_MANY_PAIRS = 5,  /* more pairs of shapes are near than there is room for */
    ROBOT_COUPLING = 6,        /* a coupling of joints has no value at q */
    ROBOT_FLAT_DISC = 7,       /* a rolling disc lies flat on its plane */
    ROBOT_FUNCTION = 8,        /* a function of a constraint has no value; 8 + k names function k */
    ROBOT_SINGULAR = 100,      /* a velocity moves no mass; 101 + k names velocity k */
    ROBOT_NULL = -1,           /* a pointer is null */
    ROBOT_SIZE = -2,           /* the memory is too small, or a number of entries is wrong */
    ROBOT_ABI = -3,            /* the caller was compiled for another ABI version */
    ROBOT_NO_START = -4,       /* robot_step() without robot_start() */
    ROBOT_NO_STEP = -5,        /* Newton's method finds no step, also in 4096 parts; the state stays as it was */
    ROBOT_NO_EQUILIBRIUM = -6, /* Newton's method finds no equilibrium */
    ROBOT_OPEN = -7,           /* q leaves a loop or another constraint open by more than 1e-6 */
    ROBOT_UNKNOWN = -8,        /* there is no function or parameter of this number */
    ROBOT_RANGE = -9           /* a parameter is outside of its range, or a placement has no rotation */
};

/* Working memory of one robot. */
typedef struct robot_workspace robot_workspace;

/* ROBOT_ABI_VERSION of the library. */
ROBOT_API int robot_abi_version(void);

/* What a status means, in English. */
ROBOT_API const char* robot_status_text(int status);

/* Names; NULL outside 0..n-1. Velocities of joints without coordinates of their own are those of q. */
ROBOT_API const char* robot_coordinate_name(int k); /* k < ROBOT_NQ */
ROBOT_API const char* robot_velocity_name(int k);   /* k < ROBOT_NV */
ROBOT_API const char* robot_input_name(int k);      /* k < ROBOT_NU */
ROBOT_API const char* robot_input_unit(int k);      /* k < ROBOT_NU */
ROBOT_API const char* robot_frame_name(int k);      /* k < ROBOT_N_FRAMES */

/* The configuration at which the robot starts by default, ROBOT_NQ numbers. */
ROBOT_API const double* robot_default_configuration(void);

/* Bytes of a workspace. */
ROBOT_API size_t robot_memory_size(void);

/* Make a workspace in `memory` of `size` bytes, or in memory of its own if `memory` is NULL and `size` is 0. `abi` is
   ROBOT_ABI_VERSION. */
ROBOT_API int robot_create(robot_workspace** made, void* memory, size_t size, int abi);

/* End a workspace. Memory that the caller gave stays with the caller. NULL is allowed. */
ROBOT_API void robot_destroy(robot_workspace* w);

/* Copy the state of a motion, with all that its next steps depend on, to another workspace. */
ROBOT_API int robot_copy(robot_workspace* to, const robot_workspace* from);

/*: parameters */
/* Values of the robot that may change. Each workspace has its own; they begin with the values of the export. */
#define ROBOT_N_PARAMETERS @N_PARAMETERS@

/* Name and unit of a parameter; NULL outside 0..n-1. The number of a parameter by its name; -1 for an unknown one. */
ROBOT_API const char* robot_parameter_name(int k);
ROBOT_API const char* robot_parameter_unit(int k);
ROBOT_API int robot_parameter_index(const char* name);

/* The range of a parameter, whose ends belong to it; infinite if there are none. */
ROBOT_API int robot_parameter_range(int k, double* least, double* most);

/* Present values of `count` parameters from `first` on. */
ROBOT_API int robot_parameters(const robot_workspace* w, int first, int count, double* values);

/* Set `count` parameters from `first` on. The twelve numbers of a placement, the first three rows of its matrix, must be
   set at once; their rotation must be orthonormal to 1e-6. A motion goes on from its state; one whose loops have opened
   needs robot_start(). After an error all values are as before. */
ROBOT_API int robot_set_parameters(robot_workspace* w, int first, int count, const double* values);

/*: step */
/* Save the state of a motion, with all that its next steps depend on, as robot_saved_size() bytes, and load it into a
   workspace of this library, in this or another process. */
ROBOT_API size_t robot_saved_size(void);
ROBOT_API int robot_save(const robot_workspace* w, void* to, size_t size);
ROBOT_API int robot_load(robot_workspace* w, const void* from, size_t size);

/*: forward_dynamics */
/* Accelerations a (nv) at time t that inputs u (nu) produce at q (nq), v (nv). u may be NULL for zero. */
ROBOT_API int robot_forward_dynamics(robot_workspace* w, double t, const double* q, const double* v, const double* u,
                                     double* a);

/*: inverse_dynamics */
/* Generalised force tau (nv) of an acceleration a (nv) at time t: M a + c + g + K q + D v - loads. */
ROBOT_API int robot_inverse_dynamics(robot_workspace* w, double t, const double* q, const double* v, const double* a,
                                     double* tau);

/*: mass_matrix */
/* Mass matrix M (nv, nv). */
ROBOT_API int robot_mass_matrix(robot_workspace* w, const double* q, double* M);

/*: energy */
/* Energies (3) [J]: kinetic, gravitational, elastic. */
ROBOT_API int robot_energy(robot_workspace* w, const double* q, const double* v, double* energies);

/*: frames */
/* Poses (n_frames, 4, 4) in the world, body twists (n_frames, 6) and their rates (n_frames, 6), angular first. v and a
   may be NULL for zero; results that are NULL are left out. */
ROBOT_API int robot_frames(robot_workspace* w, const double* q, const double* v, const double* a, double* poses,
                           double* twists, double* rates);

/*: forward_kinematics */
/* Poses (n_nodes, 4, 4) of all nodes in the world. */
ROBOT_API int robot_forward_kinematics(robot_workspace* w, const double* q, double* poses);

/*: jacobians */
/* Body Jacobians J (n_frames, 6, nv): twist = J v. */
ROBOT_API int robot_jacobians(robot_workspace* w, const double* q, double* J);

/*: inverse_dynamics_derivatives */
/* Derivatives of tau by q (in the tangent space), v and a, each (nv, nv). */
ROBOT_API int robot_inverse_dynamics_derivatives(robot_workspace* w, double t, const double* q, const double* v,
                                                 const double* a, double* dtau_dq, double* dtau_dv, double* dtau_da);

/*: forward_dynamics_derivatives */
/* Derivatives of the accelerations by q (in the tangent space) and v, each (nv, nv), and by u (nv, nu). */
ROBOT_API int robot_forward_dynamics_derivatives(robot_workspace* w, double t, const double* q, const double* v,
                                                 const double* u, double* da_dq, double* da_dv, double* da_du);

/*: equilibrium */
/* Equilibrium q (nq) under inputs u (nu) and the loads of time t. On entry q is a start. The equilibrium may be
   unstable. `iterations` may be NULL. */
ROBOT_API int robot_equilibrium(robot_workspace* w, double t, const double* u, double* q, int* iterations);

/*: step */
/* Set the state of a motion: time [s], q (nq), v (nv), and inputs (nu) before the first step. u may be NULL for zero.
   Prescribed coordinates take their values at t. Loops and other constraints must be closed. */
ROBOT_API int robot_start(robot_workspace* w, double t, const double* q, const double* v, const double* u);

/* Take one step of dt [s] with inputs u (nu), which act during the whole step; NULL is zero. A step for which Newton's
   method fails is taken in parts. */
ROBOT_API int robot_step(robot_workspace* w, double dt, const double* u);

/* The present time, configuration, velocity, and accelerations. Results that are NULL are left out. */
ROBOT_API int robot_state(const robot_workspace* w, double* t, double* q, double* v, double* a);

/*: end */
/* Any function of states by its number, with all arguments in one array, in the order above, and all results in
   another. n_in and n_out are the numbers of entries, which are checked; those of forward dynamics are
   1 + nq + nv + nu and nv. */
ROBOT_API int robot_evaluate(robot_workspace* w, int function, const double* in, size_t n_in, double* out,
                             size_t n_out);

/* Numbers of entries of the arguments and of the results of a function. */
ROBOT_API int robot_sizes(int function, size_t* n_in, size_t* n_out);

#ifdef __cplusplus
}
#endif

#endif
