"""How numbers of an exported robot depend on its parameters, as polynomials that are found from models of many values.

A polynomial of several variables is found around a point without special values, where no term vanishes by chance:

1. along each parameter, its degree for each number;
2. for each pair of parameters, which numbers have a product of both;
3. for each set of parameters that have products with each other, the values on a grid of the degrees.

The factors of all monomials of these degrees are a least-squares solution of all values, in which monomials that
contribute nothing are left out. Models at further random values check it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple, final

import numpy as np

DEGREE = 6  # the largest of one parameter
_LINE = 9  # values along a parameter
MOST = 3000  # models at most
_CHECKS = 6
_ROUNDING = 1e-15  # of a number, over the largest of its field
_TERM = 1e-11  # a smaller term, over the largest number, is left out if the others give all values
TOLERANCE = 4e-13  # of a polynomial, over its largest term
Exponents = tuple[int, ...]


@final
class NotPolynomial(Exception):
    """A number is no polynomial of some parameters. Fields: their indices, and that of the number."""

    def __init__(self, parameters: Sequence[int], entry: int) -> None:
        super().__init__(parameters, entry)
        self.parameters, self.entry = tuple(parameters), entry


@final
class TooMany(Exception):
    """The parameters have products of so many others that too many models are needed."""


class Box(NamedTuple):
    """Where values are tried: ends of each parameter, those of a wider range of checks, and groups of parameters that
    are the entries of a rotation, by their indices."""

    least: np.ndarray
    most: np.ndarray
    wide_least: np.ndarray
    wide_most: np.ndarray
    rotations: tuple[tuple[int, ...], ...]


class Polynomials(NamedTuple):
    """Numbers that depend on parameters.

    Fields:
        entries: their indices. terms: for each, exponents of all parameters in a monomial, and factors.
    """

    entries: np.ndarray
    terms: list[dict[Exponents, float]]


@final
class _Samples:
    """Values of the numbers that vary, at some values of the parameters."""

    def __init__(self, evaluate: Callable[[np.ndarray], np.ndarray], entries: np.ndarray) -> None:
        self.evaluate, self.entries = evaluate, entries
        self.x: list[np.ndarray] = []
        self.y: list[np.ndarray] = []

    def add(self, x: np.ndarray) -> np.ndarray:
        if len(self.x) >= MOST:
            raise TooMany
        self.x.append(x)
        self.y.append(self.evaluate(x)[self.entries])
        return self.y[-1]


def fitted(
    evaluate: Callable[[np.ndarray], np.ndarray],
    start: np.ndarray,
    size: np.ndarray,
    box: Box,
    blocks: np.ndarray,
    adjustable: np.ndarray,
) -> Polynomials:
    """The numbers that depend on parameters, as polynomials.

    Args:
        evaluate: all numbers (n,) at values of the parameters (m,).
        start: values of the parameters at the export. size: their sizes.
        blocks: for each number the field to which it belongs; rounding errors are in proportion to its largest number.
        adjustable: whether a number may change; others keep their values.
    Raises:
        NotPolynomial: which number is none. TooMany: more than MOST models are needed.
    """
    rng = np.random.default_rng(7)
    centre, other = _random(rng, box, start), _random(rng, box, start)
    far = [_random(rng, box, start, at=at) for at in (0.05, 0.95)]
    first, tried = evaluate(start), [evaluate(x) for x in (centre, other, *far)]
    largest = np.zeros(int(blocks.max(initial=0)) + 1)
    np.maximum.at(largest, blocks, np.max(np.abs([first, *tried[:2]]), axis=0))
    noise = _ROUNDING * largest[blocks]
    varies = (np.max(np.abs(np.array(tried[:2]) - first), axis=0) > noise) | (
        np.max(np.abs(np.array(tried[2:]) - first), axis=0) > 1e-10 * np.maximum(np.abs(first), largest[blocks])
    )
    entries = np.flatnonzero(varies & adjustable)
    if not len(entries):
        return Polynomials(entries, [])
    samples, noise = _Samples(evaluate, entries), noise[entries]
    at_centre = samples.add(centre)
    degrees = _degrees(samples, centre, at_centre, box, noise)
    turned = _turned(rng, samples, centre, at_centre, box, noise)
    pairs = _pairs(samples, centre, at_centre, box, degrees, noise)
    monomials = _monomials(rng, samples, centre, box, degrees, pairs, turned, len(start))
    terms = _solved(samples, size, monomials, noise)
    _check(rng, samples, start, box, terms, noise)
    return Polynomials(entries, terms)


def _random(
    rng: np.random.Generator, box: Box, start: np.ndarray, *, wide: bool = False, at: float | None = None
) -> np.ndarray:
    """Random values of all parameters, or those `at` a part of their wide ranges."""
    low, high = (box.wide_least, box.wide_most) if wide or at is not None else (box.least, box.most)
    x = low + (0.1 + 0.8 * rng.random(len(start)) if at is None else at) * (high - low)
    for group in box.rotations:
        x[list(group)] = _rotation(rng)
    return x


def _rotation(rng: np.random.Generator) -> np.ndarray:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return (Q * np.linalg.det(Q)).ravel()


def _lines(box: Box) -> list[int]:
    """Parameters that may change alone."""
    rotating = {k for group in box.rotations for k in group}
    return [k for k in range(len(box.least)) if k not in rotating]


def _nodes(box: Box, k: int, count: int) -> np.ndarray:
    """Chebyshev points of the range of a parameter."""
    angles = np.pi * (np.arange(count) + 0.5) / count
    return 0.5 * (box.least[k] + box.most[k]) - 0.5 * (box.most[k] - box.least[k]) * np.cos(angles)


def _with(x: np.ndarray, places: Sequence[int], values: Any) -> np.ndarray:
    out = x.copy()
    out[list(places)] = values
    return out


def _degrees(samples: _Samples, centre: np.ndarray, at_centre: np.ndarray, box: Box, noise: np.ndarray) -> np.ndarray:
    """Degrees of the numbers along each parameter, (parameters, numbers).

    Raises:
        NotPolynomial: a degree is larger than DEGREE.
    """
    degrees = np.zeros((len(centre), len(at_centre)), dtype=int)
    for k in _lines(box):
        x = _nodes(box, k, _LINE)
        y = np.array([samples.add(_with(centre, [k], value)) for value in x])
        scaled = (2.0 * x - box.least[k] - box.most[k]) / (box.most[k] - box.least[k])
        basis = np.polynomial.chebyshev.chebvander(scaled, _LINE - 1)
        factors = np.abs(np.linalg.solve(basis, y))
        size = np.abs(y).max(axis=0)
        is_in = factors > np.maximum(TOLERANCE * size, 4.0 * noise)
        degrees[k] = np.where(is_in.any(axis=0), _LINE - 1 - np.argmax(is_in[::-1], axis=0), 0)
        wrong = np.flatnonzero(degrees[k] > DEGREE)
        if len(wrong):
            raise NotPolynomial([k], int(samples.entries[wrong[np.argmax(size[wrong])]]))
    return degrees


def _turned(
    rng: np.random.Generator, samples: _Samples, centre: np.ndarray, at_centre: np.ndarray, box: Box, noise: np.ndarray
) -> list[np.ndarray]:
    """Which numbers depend on each rotation; twelve rotations are evaluated for each."""
    found = []
    for group in box.rotations:
        y = np.array([samples.add(_with(centre, group, _rotation(rng))) for _ in range(12)])
        found.append(np.abs(y - at_centre).max(axis=0) > 4.0 * noise)
    return found


def _pairs(
    samples: _Samples, centre: np.ndarray, at_centre: np.ndarray, box: Box, degrees: np.ndarray, noise: np.ndarray
) -> dict[tuple[int, int], np.ndarray]:
    """Which numbers have products of two parameters."""
    alone: dict[int, np.ndarray] = {}
    found = {}
    aside = centre + 0.35 * (box.most - box.least) * np.where(centre > 0.5 * (box.least + box.most), -1.0, 1.0)
    for j, k in combinations(_lines(box), 2):
        if not np.any((degrees[j] > 0) & (degrees[k] > 0)):
            continue
        for one in (j, k):
            if one not in alone:
                alone[one] = samples.add(_with(centre, [one], aside[one]))
        both = samples.add(_with(centre, [j, k], aside[[j, k]]))
        mixed = np.abs(both - alone[j] - alone[k] + at_centre)
        size = np.maximum(np.abs(both), np.abs(at_centre))
        is_in = mixed > np.maximum(TOLERANCE * size, 8.0 * noise)
        if is_in.any():
            found[j, k] = is_in
    return found


def _monomials(
    rng: np.random.Generator, samples: _Samples, centre: np.ndarray, box: Box, degrees: np.ndarray,
    pairs: dict[tuple[int, int], np.ndarray], turned: list[np.ndarray], count: int,
) -> list[list[Exponents]]:  # fmt: skip
    """The monomials that each number may have. The values that determine their factors are evaluated."""
    none: Exponents = (0,) * count
    found: list[list[Exponents]] = []
    grids: dict[tuple[int, ...], np.ndarray] = {}
    for e in range(degrees.shape[1]):
        alone = [k for k in range(count) if degrees[k, e]]
        linked = {pair for pair, is_in in pairs.items() if is_in[e]}
        own: set[Exponents] = {none}
        for clique in _cliques(alone, linked):
            spans = [range(degrees[k, e] + 1) for k in clique]
            for powers in product(*spans):
                own.add(tuple(powers[clique.index(k)] if k in clique else 0 for k in range(count)))
            if len(clique) > 1:
                known = grids.get(clique, np.zeros(len(clique), dtype=int))
                grids[clique] = np.maximum(known, degrees[list(clique), e])
        for group, is_in in zip(box.rotations, turned):
            if is_in[e]:
                own |= {tuple(int(k == one) for k in range(count)) for one in group}
        found.append(sorted(own))
    for clique, most in grids.items():
        for values in product(*(_nodes(box, k, int(n) + 1) for k, n in zip(clique, most))):
            samples.add(_with(centre, clique, values))
    for _ in range(4):
        samples.add(_random(rng, box, centre))
    return found


def _cliques(alone: Sequence[int], linked: set[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Largest sets of parameters of which all pairs are linked."""
    found: list[tuple[int, ...]] = []

    def grow(clique: list[int], more: list[int], done: list[int]) -> None:
        if not more and not done:
            found.append(tuple(sorted(clique)))
        for k in list(more):
            near = [j for j in more if (min(j, k), max(j, k)) in linked]
            grow([*clique, k], near, [j for j in done if (min(j, k), max(j, k)) in linked])
            more.remove(k)
            done.append(k)

    if alone:
        grow([], list(alone), [])
    return found


def _values(x: np.ndarray, monomials: Sequence[Exponents]) -> np.ndarray:
    """Monomials at values of parameters in rows, (rows, monomials)."""
    return np.stack([np.prod(x ** np.array(one), axis=1) for one in monomials], axis=1)


def _solved(
    samples: _Samples, size: np.ndarray, monomials: list[list[Exponents]], noise: np.ndarray
) -> list[dict[Exponents, float]]:
    """Factors of the monomials of each number, for parameters in their own units."""
    x, y = np.array(samples.x) / size, np.array(samples.y)
    out: list[dict[Exponents, float]] = [{} for _ in monomials]
    groups: dict[tuple[Exponents, ...], list[int]] = {}
    for e, own in enumerate(monomials):
        groups.setdefault(tuple(own), []).append(e)
    for group, members in groups.items():
        factors = _factors(_values(x, group), y[:, members])
        sizes = np.abs(_values(x, group)).max(axis=0)
        again: dict[tuple[Exponents, ...], list[int]] = {}
        for column, e in enumerate(members):
            parts = np.abs(factors[:, column]) * sizes
            slight = np.maximum(_TERM * np.abs(y[:, e]).max(), noise[e])
            again.setdefault(tuple(m for m, part in zip(group, parts) if part > slight), []).append(e)
        for few, them in again.items():
            best = _factors(_values(x, few), y[:, them]) if few else np.zeros((0, len(them)))
            fit = _values(x, few) @ best if few else np.zeros((len(x), len(them)))
            for column, e in enumerate(them):
                good = np.abs(fit[:, column] - y[:, e]).max() <= TOLERANCE * np.abs(y[:, e]).max() + 4.0 * noise[e]
                whole = zip(group, factors[:, members.index(e)])
                found = zip(few, best[:, column]) if good else whole
                out[e] = {m: float(c / np.prod(size ** np.array(m))) for m, c in found}
    return out


def _factors(basis: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The least-squares solution, refined once."""
    width = np.abs(basis).max(axis=0)
    Q, R = np.linalg.qr(basis / width)
    if np.abs(np.diag(R)).min() < 1e-12 * np.abs(np.diag(R)).max():  # rotations: their entries depend on each other
        inverse = np.linalg.pinv(basis / width, rcond=1e-11)
    else:
        inverse = np.linalg.solve(R, Q.T)
    first = inverse @ y
    return (first + inverse @ (y - basis / width @ first)) / width[:, None]


def _check(
    rng: np.random.Generator, samples: _Samples, start: np.ndarray, box: Box, terms: list[dict[Exponents, float]],
    noise: np.ndarray,
) -> None:  # fmt: skip
    """Compare the polynomials with models at other values.

    Raises:
        NotPolynomial: they differ.
    """
    whole = sorted({m for own in terms for m in own})
    if not whole:
        return
    at = {m: k for k, m in enumerate(whole)}
    factors = np.zeros((len(whole), len(terms)))
    for e, own in enumerate(terms):
        for m, c in own.items():
            factors[at[m], e] = c
    for trial in range(_CHECKS):
        x = start if trial == 0 else _random(rng, box, start, wide=trial > _CHECKS // 2)
        basis = _values(x[None], whole)[0]
        y, parts = samples.evaluate(x)[samples.entries], np.abs(basis) @ np.abs(factors)
        error = np.abs(basis @ factors - y)
        wide = np.maximum(parts / np.maximum(np.abs(np.array(samples.y)).max(axis=0), 1e-300), 1.0)
        wrong = np.flatnonzero(error > TOLERANCE * np.maximum(parts, np.abs(y)) + 8.0 * noise * wide)
        if len(wrong):
            e = int(wrong[np.argmax(error[wrong])])
            own = [k for k in range(len(start)) if any(m[k] for m in terms[e])]
            raise NotPolynomial(own or range(len(start)), int(samples.entries[e]))
