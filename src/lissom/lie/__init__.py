"""SO(3) and SE(3): exponential, logarithm, adjoints, tangent operators and their derivatives, on arrays.

The functions here take NumPy arrays with any leading axes. `so3` and `se3` hold the same functions for use inside
kernels. 6-vectors are angular first, x = (w; u). T is the tangent operator of the child side, T(Ω) = dexp of −Ω,
so that exp(Ω)⁻¹ d exp(Ω) = T dΩ. Block lower triangular operators [[A, 0], [B, A]] are carried as the pair (A, B).
"""

from lissom.lie.arrays import (
    se3_Ad,
    se3_ad,
    se3_coad,
    se3_exp,
    se3_log,
    se3_tangent,
    se3_tangent_ddot,
    se3_tangent_dot,
    se3_tangent_inverse,
    se3_tangent_transpose_derivative,
    so3_exp,
    so3_log,
    so3_tangent,
    so3_tangent_inverse,
)

__all__ = [
    "se3_Ad", "se3_ad", "se3_coad", "se3_exp", "se3_log", "se3_tangent", "se3_tangent_ddot", "se3_tangent_dot",
    "se3_tangent_inverse", "se3_tangent_transpose_derivative", "so3_exp", "so3_log", "so3_tangent",
    "so3_tangent_inverse",
]  # fmt: skip
