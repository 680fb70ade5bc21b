"""SO(3) and SE(3): exponential, logarithm, adjoints, tangent operators and their derivatives.

`so3`, `se3` and `magnus` hold functions for use inside kernels; `arrays` calls the same functions on NumPy batches.
6-vectors are angular first, x = (w; u). T is the tangent operator of the child side, T(Ω) = dexp of −Ω, so that
exp(Ω)⁻¹ d exp(Ω) = T dΩ. Block lower triangular operators [[A, 0], [B, A]] are carried as the pair (A, B).
"""
