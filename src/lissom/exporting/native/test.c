/* Compares the results of the exported functions with recorded ones. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "robot.h"

struct record {
    int function;
    const char* name;
    const double* in;
    const double* out;
};

#include "recorded.h"

static int failures = 0;

/* Prints the largest deviation, relative to the largest result. */
static void compare(const char* name, const double* found, const double* wanted, size_t count) {
    double size = 1e-300, error = 0.0;
    for (size_t k = 0; k < count; ++k)
        size = fmax(size, fabs(wanted[k]));
    for (size_t k = 0; k < count; ++k)
        error = fmax(error, fabs(found[k] - wanted[k]) / size);
    printf("%-32s %.2e\n", name, error);
    if (!(error <= 1e-9))
        ++failures;
}

static void expect(const char* name, int status) {
    if (status == ROBOT_OK)
        return;
    fprintf(stderr, "%s: %s\n", name, robot_status_text(status));
    ++failures;
}

int main(void) {
    robot_workspace* w = NULL;
    expect("create", robot_create(&w, NULL, 0, ROBOT_ABI_VERSION));
    for (int k = 0; k < N_RECORDS; ++k) {
        size_t n_in = 0, n_out = 0;
        expect(RECORDS[k].name, robot_sizes(RECORDS[k].function, &n_in, &n_out));
        double* out = malloc((n_out + 1) * sizeof(double));
        for (size_t s = 0; s < N_STATES; ++s) {
            expect(RECORDS[k].name,
                   robot_evaluate(w, RECORDS[k].function, RECORDS[k].in + s * n_in, n_in, out, n_out));
            compare(RECORDS[k].name, out, RECORDS[k].out + s * n_out, n_out);
        }
        free(out);
    }
/*: equilibrium */
    double rest[ROBOT_NQ + 1];
    for (int k = 0; k < ROBOT_NQ; ++k)
        rest[k] = robot_default_configuration()[k];
    expect("equilibrium", robot_equilibrium(w, 0.0, NULL, rest, NULL));
    compare("equilibrium", rest, EQUILIBRIUM, ROBOT_NQ);
/*: step */
    double q[ROBOT_NQ + 1], v[ROBOT_NV + 1];
    expect("start", robot_start(w, 0.0, BEFORE_Q, BEFORE_V, NULL));
    for (int k = 0; k < N_STEPS; ++k)
        expect("step", robot_step(w, STEP_SIZE, NULL));
    expect("state", robot_state(w, NULL, q, v, NULL));
    compare("q after steps", q, AFTER_Q, ROBOT_NQ);
    compare("v after steps", v, AFTER_V, ROBOT_NV);
/*: end */
    robot_destroy(w);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
