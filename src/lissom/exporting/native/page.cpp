// What the page of a robot calls: one motion, whose numbers are in arrays that the page reads and writes.

#include "robot.h"

#define EXPORTED(name) __attribute__((export_name(#name)))

static double q[ROBOT_NQ + 1], v[ROBOT_NV + 1], u[ROBOT_NU + 1], poses[16 * ROBOT_N_NODES + 1];
static double now;
static robot_workspace* w;

extern "C" {

// Addresses of the arrays.
EXPORTED(q) double* page_q() {
    return q;
}
EXPORTED(v) double* page_v() {
    return v;
}
EXPORTED(u) double* page_u() {
    return u;
}
EXPORTED(poses) double* page_poses() {
    return poses;
}

EXPORTED(time) double page_time() {
    return now;
}

EXPORTED(status_text) const char* page_status_text(int status) {
    return robot_status_text(status);
}

// Read the state and the poses of all nodes.
static int read() {
    const int status = robot_state(w, &now, q, v, nullptr);
    return status ? status : robot_forward_kinematics(w, q, poses);
}

// Begin a motion at q, v and time zero.
EXPORTED(start) int page_start() {
    int status = w ? 0 : robot_create(&w, nullptr, 0, ROBOT_ABI_VERSION);
    status = status ? status : robot_start(w, 0.0, q, v, u);
    return status ? status : read();
}

// Take `count` steps of dt under the inputs u.
EXPORTED(step) int page_step(double dt, int count) {
    for (int k = 0; k < count; ++k) {
        const int status = robot_step(w, dt, u);
        if (status)
            return status;
    }
    return read();
}

}
