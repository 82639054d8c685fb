"""A search for the ReLU neuron with the largest edge, in any dimension."""

import numpy as np
from jaxtyping import Float
from scipy.optimize import lsq_linear

_ASCENT = 100  # steps from every start
_POLISHED = 6  # starts that are followed to a maximum
_ROUNDS = 60  # convex problems until a maximum is reached


def search_edges(
    x: Float[np.ndarray, "n d"],
    signed: Float[np.ndarray, " n"],
    rng: np.random.Generator,
    starts: int = 64,
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k d"]]:
    r"""Return local maxima over the unit sphere of ``|Σ_i s_i relu(⟨u, x_i⟩)|``, and the neurons u that reach them.

    The edge is the difference of two convex functions, ``P(u) − N(u)``, of the examples with positive and with
    negative s. Where P is replaced by its slope g at u, the maximum over ``‖u‖ ≤ 1`` is that of a convex problem,

    .. math:: \max_{‖u‖≤1} ⟨g, u⟩ − N(u) = \min_{0 ≤ α_i ≤ |s_i|} \big\|g − \textstyle\sum_{s_i<0} α_i x_i\big\|,

    least squares in a box. Repeated, the edge never falls and settles after finitely many rounds, at a point that no
    small move improves to first order. Starts are taken by a cheap ascent from random directions and from examples.

    Args:
        x: inputs, checked by the caller.
        signed: weights with the labels' signs, ``s_i = q_i y_i``.
        rng: of the random directions.
        starts: how many directions, for either sign of the edge.

    >>> edges, directions = search_edges(np.array([[3.0, 4.0, 0.0]]), np.ones(1), np.random.default_rng(0), 4)
    >>> round(float(edges.max()), 6), directions[edges.argmax()].round(6).tolist()
    (5.0, [0.6, 0.8, 0.0])
    """
    kept = []
    for sign in (1.0, -1.0):
        s = sign * signed
        u = _ascend(x, s, _units(rng.normal(size=(starts, x.shape[1]))))
        edges = np.maximum(u @ x.T, 0) @ s
        order = np.argsort(-edges)
        # maxima that differ, the largest first
        chosen = []
        for j in order:
            if len(chosen) < _POLISHED and all(u[j] @ u[i] < 0.99 for i in chosen):
                chosen.append(j)
        kept += [_polish(x, s, u[j]) for j in chosen]
    directions = np.array(kept)
    return np.maximum(directions @ x.T, 0) @ signed, directions


def _ascend(x: np.ndarray, s: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Move every direction along its slope on the sphere, by steps that shrink, and return the best of each path."""
    best = u
    top = np.full(len(u), -np.inf)
    for step in np.geomspace(0.5, 0.01, _ASCENT):
        active = u @ x.T
        edges = np.maximum(active, 0) @ s
        better = edges > top
        top = np.where(better, edges, top)
        best = np.where(better[:, None], u, best)
        # gradient of the edge, Σ_{active} s_i x_i, shape (starts, d)
        slope = ((active > 0) * s) @ x
        u = _units(u + step * _units(slope))
    return best


def _polish(x: np.ndarray, s: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Follow one direction to a maximum of the edge, by one convex problem after the other."""
    against = s < 0
    columns = x[against].T
    edge = np.maximum(x @ u, 0) @ s
    for _ in range(_ROUNDS):
        slope = x.T @ (np.maximum(s, 0) * (x @ u > 0))  # g, a subgradient of P at u
        if columns.size:
            box = (np.zeros(columns.shape[1]), -s[against])
            alpha = lsq_linear(columns, slope, box, method="bvls", tol=1e-14).x
            slope = slope - columns @ alpha  # the minimizer's residual: its direction is the best u
        size = np.linalg.norm(slope)
        if not size > 0:
            return u
        after = slope / size
        reached = np.maximum(x @ after, 0) @ s
        if not reached > edge * (1 + 1e-12):
            return u
        u = after
        edge = reached
    return u


def _units(vectors: np.ndarray) -> np.ndarray:
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(sizes > 0, sizes, 1.0)
