"""Slow, dense and obviously right: what the fast algorithms are tested against."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree


def dense_hessian(risk, params):
    """All second derivatives, shape (p, p), by reverse over reverse; rows and columns in the order of ravel_pytree."""
    flat, unflatten = ravel_pytree(params)
    return np.asarray(jax.jit(jax.jacrev(jax.jacrev(lambda w: risk(unflatten(w)))))(flat))


def dense_ntk(apply, params, x):
    """⟨∇f(x_i), ∇f(x_j)⟩ from one gradient an example, shape (n, n)."""
    gradient = jax.jit(jax.grad(lambda p, one: jnp.squeeze(apply(p, one[None]))))
    rows = np.stack([ravel_pytree(gradient(params, one))[0] for one in jnp.asarray(x)])
    return np.array([[a @ b for b in rows] for a in rows])


def dense_outputs(apply, params, x, other):
    """⟨∇f_a(x_i), ∇f_b(x'_j)⟩ from one gradient an example and output, shape (n, k, m, k); x and x' may be tuples."""
    flat, unflatten = ravel_pytree(params)
    outputs = lambda w, *one: apply(unflatten(w), *(array[None] for array in one)).reshape(-1)
    slopes = jax.jit(jax.jacfwd(outputs))
    several = lambda inputs: inputs if isinstance(inputs, tuple) else (inputs,)
    rows = lambda inputs: np.stack(
        [slopes(flat, *one) for one in zip(*map(jnp.asarray, several(inputs)), strict=True)]
    )
    return np.einsum("iap,jbp->iajb", rows(x), rows(other))


def random_symmetric(seed, p, spectrum=None):
    """A random symmetric matrix, or one with this spectrum in a random basis."""
    square = np.random.default_rng(seed).normal(size=(p, p))
    if spectrum is None:
        return (square + square.T) / 2
    basis, _ = np.linalg.qr(square)
    matrix = basis @ np.diag(spectrum) @ basis.T
    return (matrix + matrix.T) / 2


def dense_dual(f, g, a, b, c, points=700):
    """E f(u)g(v) by the two-dimensional trapezoidal rule: exact to rounding for analytic f, g and |ρ| ≤ 0.95."""
    rho = c / np.sqrt(a * b)
    x = np.linspace(-11, 11, points)
    u = np.sqrt(a) * x[:, None]
    v = np.sqrt(b) * (rho * x[:, None] + np.sqrt(1 - rho**2) * x)
    weights = np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi) * (x[1] - x[0])
    return float(weights @ (np.asarray(f(u)) * np.asarray(g(v))) @ weights)


def dense_kernels(sigma, slope, layers, a, b, c, skip=0.0, normalized=False):
    """NNGP and NTK of a pair with ‖x‖²/n_0 = a, b and <x, x'>/n_0 = c, by the recursion with ``dense_dual``."""
    (c_w, c_b, t_w, t_b), *others = layers
    k = {pair: c_b + c_w * g for pair, g in {"aa": a, "bb": b, "ab": c}.items()}
    theta = {pair: t_b + t_w * g for pair, g in {"aa": a, "bb": b, "ab": c}.items()}
    for i, (c_w, c_b, t_w, t_b) in enumerate(others):
        size = dict(k) if normalized else {"aa": 1.0, "bb": 1.0}
        size["ab"] = np.sqrt(size["aa"] * size["bb"])
        kept = skip**2 if i < len(others) - 1 else 0.0
        unit = {pair: k[pair] / size[pair] for pair in k}
        for pair in k:
            u = unit[pair[0] * 2]
            v = unit[pair[1] * 2]
            if pair[0] == pair[1]:  # one variable: the one-dimensional rule
                z = np.linspace(-13, 13, 4001)
                weight = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * (z[1] - z[0])
                of = lambda f, u=u, z=z, weight=weight: float(
                    weight @ np.asarray(f(np.sqrt(u) * z)) ** 2
                )
                value = of(sigma)
                derivative = of(slope)
            else:
                value, derivative = (dense_dual(f, f, u, v, unit[pair]) for f in (sigma, slope))
            theta[pair] = (
                kept * theta[pair] + t_b + t_w * value + c_w * derivative * theta[pair] / size[pair]
            )
            k[pair] = kept * k[pair] + c_b + c_w * value
    return k["ab"], theta["ab"]
