"""Both kernels of drawn architectures by matrices in extended precision: no code and no names of the library's.

All inputs and positions stand in one line, inputs first, so that a kernel is one matrix ``(n P, n P)``. A network is a
list of steps: ``("dense", c_w, c_b)``, ``("conv", size, stride, padding, c_w, c_b)``, ``("act", name)``, ``("norm",)``,
``("pool", size, stride)``, ``("mean",)``, ``("flatten",)``, ``("mix", rows)``, ``("attend", sharpness, tied, c_w,
c_b)``, ``("add", (weight, steps), …)``, ``("beside", (width, steps), …)``, ``("times", steps, …)``. NTK
parameterization: every linear step has t_w = c_w, and t_b is 1 with biases and 0 without.
"""

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

LONG = np.longdouble
PI = LONG("3.14159265358979323846264338327950288")
TERMS = 640


class NothingExistsError(Exception):
    """Some input has no position left."""


class Signal(NamedTuple):
    """Kernels of all inputs at all positions, means of channels, and which positions exist, ``(n, P)``."""

    space: tuple
    k: np.ndarray
    theta: np.ndarray
    mean: np.ndarray
    exists: np.ndarray

    @property
    def count(self):
        return len(self.exists)


def kernels(steps, x, mask, *, bias):
    """NNGP and NTK of inputs ``(n, *space, channels)`` with a mask ``(n, *space)``, in extended precision."""
    n, *space, channels = x.shape
    exists = mask.reshape(n, -1)
    flat = x.astype(LONG).reshape(-1, channels) * exists.reshape(-1, 1)
    k = flat @ flat.T / channels
    signal = Signal(tuple(space), k, np.zeros_like(k), flat.mean(1), exists)
    return run(steps, signal, LONG(bias))


def run(steps, signal, bias):
    for name, *options in steps:
        signal = STEPS[name](signal, bias, *options)
        if not signal.exists.any(1).all():
            raise NothingExistsError
    return signal


def gained(signal, space, k, theta, mean, exists, gain=None):
    """Multiply by γ_p γ'_q: one where a position exists, or what the step says, and zero elsewhere."""
    factor = exists.astype(LONG) if gain is None else gain
    factor = factor.ravel()
    square = np.outer(factor, factor)
    return Signal(tuple(space), k * square, theta * square, mean * factor, exists)


def apart(signal, rows):
    """Return the matrix of all inputs from the matrix of one."""
    return np.kron(np.eye(signal.count, dtype=LONG), rows.astype(LONG))


def weighed(signal, space, k, theta, exists, c_w, c_b, bias):
    """Weights behind averages of both kernels: ``c_b + c_w K`` and ``t_b + t_w K + c_w Θ``."""
    c_w, c_b = LONG(c_w), LONG(c_b) * bias
    new = c_b + c_w * k
    tangent = bias + c_w * k + c_w * theta
    return gained(signal, space, new, tangent, np.zeros(len(k), LONG), exists)


def dense(signal, bias, c_w, c_b):
    return weighed(signal, signal.space, signal.k, signal.theta, signal.exists, c_w, c_b, bias)


def line(n, size, stride, padding):
    """The positions that outputs read along a dimension, ``(outputs, size)``; −1 for a zero."""
    if padding == "none":
        return np.arange((n - size) // stride + 1)[:, None] * stride + np.arange(size)
    outputs = math.ceil(n / stride)
    before = max((outputs - 1) * stride + size - n, 0) // 2
    reads = np.arange(outputs)[:, None] * stride - before + np.arange(size)
    if padding == "circular":
        return reads % n
    return np.where((reads >= 0) & (reads < n), reads, -1)


def taps(space, size, stride, padding):
    """One matrix ``(outputs, positions)`` for each tap of a window, and the space behind."""
    lines = [line(n, size, stride, padding) for n in space]
    after = tuple(len(reads) for reads in lines)
    place = np.arange(math.prod(space)).reshape(space)
    matrices = []
    for offset in itertools.product(range(size), repeat=len(space)):
        rows = np.zeros((math.prod(after), math.prod(space)))
        for i, p in enumerate(itertools.product(*map(range, after))):
            q = tuple(reads[a, o] for reads, a, o in zip(lines, p, offset, strict=True))
            if min(q) >= 0:
                rows[i, place[q]] += 1
        matrices.append(rows)
    return matrices, after


def conv(signal, bias, size, stride, padding, c_w, c_b):
    matrices, after = taps(signal.space, size, stride, padding)
    wide = [apart(signal, rows) for rows in matrices]
    k = sum(rows @ signal.k @ rows.T for rows in wide) / len(wide)
    theta = sum(rows @ signal.theta @ rows.T for rows in wide) / len(wide)
    if padding == "none":  # the whole window must exist
        exists = sum(signal.exists @ rows.T for rows in matrices) == len(matrices)
    else:  # any of the positions at which the output stands
        exists = standing(signal, stride, after)
    return weighed(signal, after, k, theta, exists, c_w, c_b, bias)


def standing(signal, stride, after):
    """Tell which outputs stand at an input that exists, one of ``stride`` many in each dimension."""
    grid = signal.exists.reshape(signal.count, *signal.space)
    exists = np.zeros((signal.count, *after), bool)
    for p in itertools.product(*map(range, after)):
        block = grid[(slice(None), *(slice(a * stride, (a + 1) * stride) for a in p))]
        exists[(slice(None), *p)] = block.reshape(signal.count, -1).any(1)
    return exists.reshape(signal.count, -1)


def pool(signal, bias, size, stride):
    del bias
    matrices, after = taps(signal.space, size, stride, "none")
    rows = np.sum(matrices, 0)
    counts = signal.exists @ rows.T
    gain = np.where(counts > 0, 1 / LONG(1) / np.maximum(counts, 1), 0)
    wide = apart(signal, rows)
    k, theta = wide @ signal.k @ wide.T, wide @ signal.theta @ wide.T
    return gained(signal, after, k, theta, wide @ signal.mean, counts > 0, gain)


def mean(signal, bias):
    del bias
    wide = apart(signal, np.ones((1, signal.exists.shape[1])))
    gain = LONG(1) / signal.exists.sum(1, keepdims=True)
    k, theta = wide @ signal.k @ wide.T, wide @ signal.theta @ wide.T
    everywhere = np.ones((signal.count, 1), bool)
    return gained(signal, (), k, theta, wide @ signal.mean, everywhere, gain)


def flatten(signal, bias):
    del bias
    n, positions = signal.exists.shape
    equal = lambda a: np.einsum("ipjp->ij", a.reshape(n, positions, n, positions)) / positions
    average = signal.mean.reshape(n, positions).mean(1)
    return Signal((), equal(signal.k), equal(signal.theta), average, np.ones((n, 1), bool))


def mix(signal, bias, rows):
    del bias
    rows = np.array(rows)
    wide = apart(signal, rows)
    square = rows.shape[0] == rows.shape[1]
    exists = signal.exists if square else signal.exists @ (rows != 0).T > 0
    space = signal.space if square else (len(rows),)
    k, theta = wide @ signal.k @ wide.T, wide @ signal.theta @ wide.T
    return gained(signal, space, k, theta, wide @ signal.mean, exists)


def attend(signal, bias, sharpness, tied, c_w, c_b):
    n, positions = signal.exists.shape
    own = signal.k.reshape(n, positions, n, positions)[np.arange(n), :, np.arange(n)]
    logits = LONG(sharpness) * LONG(c_w) * own * tied
    logits = logits - logits.max(2, keepdims=True)
    weights = np.exp(logits) * signal.exists[:, None, :]
    weights = weights / weights.sum(2, keepdims=True)
    wide = np.zeros((n * positions, n * positions), LONG)
    for i in range(n):
        block = slice(i * positions, (i + 1) * positions)
        wide[block, block] = weights[i]
    values = dense(signal, bias, c_w, c_b)
    k, theta = wide @ values.k @ wide.T, wide @ values.theta @ wide.T
    mixed = gained(signal, signal.space, k, theta, values.mean, signal.exists)
    return dense(mixed, bias, c_w, c_b)


def norm(signal, bias):
    del bias
    live = signal.exists.ravel()
    spread = np.diag(signal.k) - signal.mean**2
    root = np.sqrt(np.where(live, spread, 1))
    k = (signal.k - np.outer(signal.mean, signal.mean)) / np.outer(root, root)
    theta = signal.theta / np.outer(root, root)
    nothing = np.zeros_like(signal.mean)
    return gained(signal, signal.space, k, theta, nothing, signal.exists)


def ends_of(signal, bias, branches):
    ends = [run(steps, signal, bias) for steps in branches]
    exists = np.logical_and.reduce([end.exists for end in ends])
    return ends, exists


def add(signal, bias, *branches):
    weights = [LONG(weight) for weight, _ in branches]
    ends, exists = ends_of(signal, bias, [steps for _, steps in branches])
    k = sum(r**2 * end.k for r, end in zip(weights, ends, strict=True))
    theta = sum(r**2 * end.theta for r, end in zip(weights, ends, strict=True))
    average = sum(r * end.mean for r, end in zip(weights, ends, strict=True))
    return gained(signal, ends[0].space, k, theta, average, exists)


def beside(signal, bias, *branches):
    total = sum(width for width, _ in branches)
    shares = [LONG(width) / total for width, _ in branches]
    ends, exists = ends_of(signal, bias, [steps for _, steps in branches])
    k = sum(share * end.k for share, end in zip(shares, ends, strict=True))
    theta = sum(share * end.theta for share, end in zip(shares, ends, strict=True))
    average = sum(share * end.mean for share, end in zip(shares, ends, strict=True))
    return gained(signal, ends[0].space, k, theta, average, exists)


def times(signal, bias, *branches):
    (one, two), exists = ends_of(signal, bias, branches)
    theta = one.theta * two.k + one.k * two.theta
    return gained(signal, one.space, one.k * two.k, theta, one.mean * two.mean, exists)


def act(signal, bias, name):
    del bias
    family, _, numbers = name.partition("(")
    parameters = tuple(float(number) for number in numbers.rstrip(")").split(",") if number)
    if family in SLOPES:
        value, slope, average = homogeneous(signal.k, *map(LONG, SLOPES[family](*parameters)))
    elif family in CLOSED:
        value, slope = CLOSED[family](signal.k)
        average = np.zeros_like(signal.mean)  # σ is odd
    else:
        value, slope, average = series(signal.k, *SMOOTH[family](*parameters))
    theta = slope * signal.theta
    return gained(signal, signal.space, value, theta, average, signal.exists)


def sides(k):
    """The variances of u and of v at each pair, and whether both signals are there."""
    variance = np.diag(k).copy()
    a, b = np.broadcast_arrays(variance[:, None], variance[None])
    return a, b, (a > 0) & (b > 0)


SLOPES = {
    "relu": lambda: (0, 1, 0),
    "leaky_relu": lambda slope: (slope, 1, slope),
    "abs": lambda: (-1, 1, 0),
    "linear": lambda: (1, 1, 1),
}
"""Slopes on the left, on the right and at zero."""


def homogeneous(k, left, right, still):
    """The arc-cosine kernels of degrees one and zero (Cho and Saul 2009)."""
    a, b, live = sides(k)
    root = np.sqrt(np.where(live, a * b, 1))
    rho = np.clip(k / root, -1, 1)
    theta = np.arccos(rho)
    jump = (right - left) ** 2 / (2 * PI)
    value = jump * root * (np.sqrt((1 - rho) * (1 + rho)) + (PI - theta) * rho)
    slope = jump * (PI - theta) + left * right
    half = (left + right) / 2
    alone = np.where((a > 0) | (b > 0), still * half, still**2)
    average = (right - left) * np.sqrt(np.diag(k) / (2 * PI))
    return np.where(live, value + left * right * k, 0), np.where(live, slope, alone), average


def erf(k):
    """The kernel of Williams 1997."""
    a, b, _ = sides(k)
    square = (1 + 2 * a) * (1 + 2 * b)
    value = 2 / PI * np.arcsin(2 * k / np.sqrt(square))
    return value, 4 / PI / np.sqrt(square - 4 * k**2)


def sine(k):
    """E sin u sin v and E cos u cos v, from cosines of u ∓ v."""
    a, b, _ = sides(k)
    minus, plus = np.exp(-(a + b - 2 * k) / 2), np.exp(-(a + b + 2 * k) / 2)
    return (minus - plus) / 2, (minus + plus) / 2


CLOSED = {"erf": erf, "sin": sine}


def normal_distribution(z):
    """Φ by the series of erf in positive terms, ``e^{-z²/2} Σ z^{2n+1}/(2n + 1)!!``."""
    near = np.clip(z, -9, 9)
    term, total = near.copy(), near.copy()
    for n in range(1, 240):
        term = term * near**2 / (2 * n + 1)
        total = total + term
    half = np.exp(-(near**2) / 2) * total / np.sqrt(2 * PI)
    return LONG(1) / 2 + half


def gelu(z):
    return z * normal_distribution(z)


def gelu_slope(z):
    return normal_distribution(z) + z * np.exp(-(z**2) / 2) / np.sqrt(2 * PI)


def tanh_slope(z):
    return (1 - np.tanh(z)) * (1 + np.tanh(z))


def polynomial(*coefficients):
    p = np.polynomial.Polynomial(np.array(coefficients, LONG))
    return p, p.deriv()


SMOOTH = {
    "tanh": lambda: (np.tanh, tanh_slope),
    "gelu": lambda: (gelu, gelu_slope),
    "polynomial": polynomial,
}


@lru_cache
def basis():
    """The trapezoidal rule on ±14 deviations and normalized Hermite polynomials times its weights."""
    nodes = np.linspace(LONG(-14), LONG(14), 801)
    weights = np.exp(-(nodes**2) / 2)
    weights = weights / weights.sum()
    rows = [np.sqrt(weights), nodes * np.sqrt(weights)]
    for order in range(1, TERMS - 1):
        following = nodes * rows[-1] - np.sqrt(LONG(order)) * rows[-2]
        rows.append(following / np.sqrt(LONG(order + 1)))
    return nodes, weights, np.stack(rows) * np.sqrt(weights)


def series(k, function, slope_of):
    """Mehler's series ``Σ h_k h'_k ρ^k`` and its derivative; what it leaves is asserted to be below rounding."""
    nodes, weights, hermite = basis()
    variance = np.diag(k)
    distinct, which = np.unique(variance, return_inverse=True)
    z = np.sqrt(distinct)[:, None] * nodes
    h = function(z) @ hermite.T
    orders = np.arange(TERMS)
    squares, slopes = function(z) ** 2 @ weights, slope_of(z) ** 2 @ weights
    assert (np.abs(squares - (h**2).sum(1)) <= 1e-13 * squares).all()
    live_one = distinct > 0
    safe = np.where(live_one, distinct, 1)
    left = slopes - (orders * h**2).sum(1) / safe
    assert (np.abs(left[live_one]) <= 1e-13 * slopes[live_one]).all()
    a, b, live = sides(k)
    root = np.sqrt(np.where(live, a * b, 1))
    rho = np.clip(k / root, -1, 1)
    h = h[which].T
    value, slope = np.zeros_like(k), np.zeros_like(k)
    last = int(np.flatnonzero((np.abs(h) > 1e-25).any(1))[-1])
    for order in reversed(range(last + 1)):
        product = np.outer(h[order], h[order])
        value = value * rho + product
        slope = slope * rho + order * product if order else slope
    steepness = np.where(variance > 0, h[1] / np.sqrt(np.where(variance > 0, variance, 1)), 0)
    still = slope_of(np.zeros(1, LONG))[0]
    steepness = np.where(variance > 0, steepness, still)
    alone = np.outer(steepness, steepness)
    return np.where(live, value, np.outer(h[0], h[0])), np.where(live, slope / root, alone), h[0]


STEPS = {
    "dense": dense,
    "conv": conv,
    "act": act,
    "norm": norm,
    "pool": pool,
    "mean": mean,
    "flatten": flatten,
    "mix": mix,
    "attend": attend,
    "add": add,
    "beside": beside,
    "times": times,
}
