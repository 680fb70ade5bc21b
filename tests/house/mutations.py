"""Deliberate faults, each with tests that must fail for it."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """A fault: what is wrong with it, the file under src/lissom, the text that is replaced and by what, and the tests
    (arguments of pytest) of which at least one must fail."""

    fault: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


MUTATIONS = (
    Mutation(
        "the gyroscopic term of a node has the wrong sign",
        "passes/traversal.py",
        "inertia_apply(t, k, acc_B) + se3.coad(eta_B, inertia_apply(t, k, eta_B))",
        "inertia_apply(t, k, acc_B) - se3.coad(eta_B, inertia_apply(t, k, eta_B))",
        ("tests/reference/test_against_reference.py", "-k", "inverse"),
    ),
    Mutation(
        "the acceleration of an interval lacks what both strain rates make together",
        "passes/interval.py",
        "    Omega_ddot += (so3.TWO * kappa) * se3.ad(d1, d2)\n    V =",
        "    V =",
        ("tests/reference/test_against_reference.py", "-k", "inverse"),
    ),
    Mutation(
        "the local term of ∂τ/∂q takes adbar_y with the wrong sign",
        "lie/interval.h",
        "const T kappa = a == 0 ? s.kappa : -s.kappa, none = T();",
        "const T kappa = a == 0 ? -s.kappa : s.kappa, none = T();",
        ("tests/derivatives/test_single_nodes.py", "tests/derivatives/test_inverse_dynamics_derivatives.py"),
    ),
    Mutation(
        "the wrench beyond a node does not turn with the node's columns",
        "systems/derivative_sweeps.py",
        "            columns.add_product(x, adbar_matrix(s.node[i, k].F), first, stop, i, k, S, W)\n",
        "            columns.add_product(x, wp.float64(0.0) * adbar_matrix(s.node[i, k].F), first, stop, i, k, S, W)\n",
        ("tests/derivatives/test_inverse_dynamics_derivatives.py",),
    ),
    Mutation(
        "the loop scaling of the kernel is 1",
        "systems/bordered.py",
        "const double sigma = count > 0 ? exp(sum / count) : 1.0;",
        "const double sigma = 1.0;",
        ("tests/native/test_native_systems.py", "tests/integration/test_loops.py"),
    ),
    Mutation(
        "the list of near pairs is never made anew",
        "forces/touching.py",
        "        if not (wp.dot(moved, moved) < limit):\n            return 1",
        "        if not (wp.dot(moved, moved) < limit):\n            return 0",
        ("tests/dynamics/test_contacts.py", "tests/closed_form/test_contact.py"),
    ),
    Mutation(
        "N of a node lacks adbar of its momentum",
        "lie/spatial.py",
        "return adbar_matrix(M * eta) - Y - wp.transpose(Y)",
        "return -Y - wp.transpose(Y)",
        ("tests/derivatives/test_inverse_dynamics_derivatives.py",),
    ),
    Mutation(
        "a free joint's step does not turn what it moves by",
        "passes/group.py",
        "        moved = quaternion_rotation(start, i, at) * p\n",
        "        moved = p\n",
        ("tests/convergence/test_free_flight.py",),
    ),
    Mutation(
        "the direction of a change of strain enters its rate once instead of twice",
        "passes/interval.py",
        "d_ddot += two * (se3.ad(y[2], x[3]) + se3.ad(x[2], y[3]))",
        "d_ddot += kappa * (se3.ad(y[2], x[3]) + se3.ad(x[2], y[3]))",
        ("tests/derivatives/test_inverse_dynamics_tangent.py",),
    ),
    Mutation(
        "bending stretches the path of a tendon the wrong way",
        "forces/tendons.py",
        "T = se3.linear(xi) + wp.cross(se3.angular(xi), d) +",
        "T = se3.linear(xi) - wp.cross(se3.angular(xi), d) +",
        ("tests/reference/test_against_reference.py", "-k", "actuation"),
    ),
    Mutation(
        "a pivot of LU is taken where it stands",
        "passes/linear_solve.py",
        "            if (here > size) {\n                best = row;",
        "            if (here > size) {\n                best = k;",
        ("tests/native/test_native_systems.py",),
    ),
    Mutation(
        "an elastic force counts the rest position twice",
        "forces/elasticity.py",
        "(at < 0 ? 0.0 : x[at] - rest.data[j])",
        "(at < 0 ? 0.0 : x[at] - 2.0 * rest.data[j])",
        ("tests/native/test_native_systems.py", "tests/contracts/test_joints.py"),
    ),
    Mutation(
        "a broken file of the cache is told and stays",
        "lie/start.py",
        "        for path in files:\n            _remove(path)\n",
        "",
        ("tests/launch/test_broken_files.py",),
    ),
    Mutation(
        "pages of other programs of this machine may connect to the viewer",
        "viewing/origins.py",
        "is_own = (page.hostname, page.port or standard) == (asked.hostname, asked.port or standard)",
        "is_own = page.hostname == asked.hostname",
        ("tests/viewing/test_origins.py",),
    ),
    Mutation(
        "what a full disk has of a file is left beside it",
        "portable.py",
        "        new.unlink(missing_ok=True)\n        raise",
        "        raise",
        ("tests/integration/test_whole_files.py", "-k", "csv or npz"),
    ),
    Mutation(
        "the arguments of a finished motion are unpickled",
        "integration/streams.py",
        'if state["is_finished"]:',
        "if not state:",
        ("tests/integration/test_damaged_streams.py",),
    ),
    Mutation(
        "a parameter of a sweep may lead to a whole part",
        "studies/trials.py",
        "    if is_value(robot, name):\n",
        "    if is_value(robot, name) or True:\n",
        ("tests/studies/test_sweep.py", "-k", "spoil"),
    ),
    Mutation(
        "names may hold control characters",
        "robot/checks.py",
        "require(name.isprintable(), where, rule, name)",
        "require(True, where, rule, name)",
        ("tests/cli/test_bad_files.py", "-k", "names"),
    ),
    Mutation(
        "a former name of an argument goes to the function",
        "errors.py",
        "raise TypeError(said(title, former))",
        "given[names[former]] = given.pop(former)",
        ("tests/house/test_former_names.py",),
    ),
    Mutation(
        "a result in one line is as long as its fields make it",
        "robot/telling.py",
        "_LONGEST = 160",
        "_LONGEST = 16000",
        ("tests/contracts/test_results.py",),
    ),
    Mutation(
        "inputs from Python do not wake a viewer that shows an equilibrium",
        "viewing/session.py",
        "        self.u, self._is_due = _inputs_of(self.model, u).copy(), True\n",
        "        self.u = _inputs_of(self.model, u).copy()\n",
        ("tests/viewing/test_session.py",),
    ),
    Mutation(
        "equilibria answer to inputs of prescribed coordinates",
        "gradients/equilibria.py",
        "    B[:, model.prescribed.dof] = 0.0\n",
        "    B[:, model.prescribed.dof[:0]] = 0.0\n",
        ("tests/gradients/test_equilibria.py", "-k", "prescribed"),
    ),
    Mutation(
        "a filter does not carry its covariance to the turned estimate",
        "inverse/kalman_filter.py",
        "            P = G @ P @ _t(G)\n",
        "            P = P + 0.0 * G\n",
        ("tests/inverse/test_kalman_filter.py", "-k", "carries"),
    ),
    Mutation(
        "a slack cable still damps",
        "forces/springs.py",
        "wp.min(value, total) <= so3.ZERO",
        "total <= so3.ZERO",
        ("tests/derivatives/test_springs.py", "-k", "slack_cables"),
    ),
    Mutation(
        "inverse kinematics by statics lets no elastic tendon pay out",
        "inverse/kinematics.py",
        "    pulls[model.spools.channel] = False\n",
        "    pulls[model.spools.channel] = True\n",
        ("tests/inverse/test_inverse_kinematics.py", "-k", "pay_out"),
    ),
    Mutation(
        "Newton's iteration ends at the tolerance",
        "integration/step_stages.py",
        "NEWTON_SHARE = wp.constant(wp.float64(1e-2))",
        "NEWTON_SHARE = wp.constant(wp.float64(1.0))",
        ("tests/integration/test_step_accuracy.py", "-k", "hides"),
    ),
    Mutation(
        "the estimate of an error lacks the velocities of earlier stages",
        "integration/step_errors.py",
        "h * (numbers[at + 1] * rate + h * numbers[at + 2] * a)",
        "h * (so3.ZERO * rate + h * numbers[at + 2] * a)",
        ("tests/integration/test_step_accuracy.py", "-k", "embedded"),
    ),
)
