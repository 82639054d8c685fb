"""Influence between nodes in infinitely wide graph networks."""

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike, NDArray

from steepest.core.errors import UserError
from steepest.kernels.duals._arc_cosine import arc_cosine
from steepest.linalg import sequential


@sequential
def graph_influence(
    walk: ArrayLike,
    x: ArrayLike,
    depth: int,
    nodes: ArrayLike | None = None,
    gates: ArrayLike | None = None,
) -> Float[ndarray, "k nodes n"]:
    """Return the influence of every node on some nodes in 1, …, k layers of an infinitely wide ReLU network.

    The layers are h ← σ(P h Wᵀ) with weights of variance 2/inputs. Their Gram matrix obeys ``K ← 2 P S(K) Pᵀ``, where
    S = E[σσ'], and the inner products of derivatives by the features of y obey ``T_y ← 2 P (T_y ∘ Θ) Pᵀ`` with
    ``Θ_uv = (π − θ_uv)/2π``, the probability that two gates are open. The influence of y on x is √T_y(x, x), here
    divided by its sum over y: that of :func:`steepest.graphs.influence` with ``power=2``, under a root. With absolute
    values it is apart by the spread over input features. Were all gates open together, θ = 0, it would be the k-step
    walk P^k.

    Args:
        walk: P, shape ``(n, n)``.
        x: features, shape ``(n, d)``.
        depth: k.
        nodes: which x, some of the n; all by default.
        gates: another Θ in every layer, shape ``(n, n)``. Independent gates have ½ on its diagonal and ¼ beside it.

    Raises:
        UserError: for shapes that do not fit, a depth below one, or a node whose averaged features vanish.

    Source: derived here; tests compare with wide networks. The walk is theorem 1 of Xu et al. 2018.

    >>> walk = np.array([[0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3], [0, 0.5, 0.5]])
    >>> alike = graph_influence(walk, np.ones((3, 2)), 2)[-1]
    >>> bool(np.allclose(alike, walk @ walk))
    True
    """
    P = np.asarray(walk, float)
    features = np.asarray(x, float)
    if P.ndim != 2 or P.shape[0] != P.shape[1] or features.ndim != 2 or len(features) != len(P):
        raise UserError(
            f"graph_influence: expected a walk (n, n) and features (n, d), got {P.shape} and {features.shape}"
        )
    if depth < 1:
        raise UserError(f"graph_influence: expected a depth of at least 1, got {depth}")
    if gates is not None and np.shape(gates) != P.shape:
        raise UserError(f"graph_influence: expected gates {P.shape}, got {np.shape(gates)}")
    if gates is None:
        open_together = _gates(P, features, depth)
    else:
        open_together = [np.asarray(gates, float)] * (depth - 1)
    chosen = np.arange(len(P)) if nodes is None else np.asarray(nodes)
    return np.stack([_read(P, open_together[: k - 1], chosen) for k in range(1, depth + 1)])


def _gates(P: NDArray, features: NDArray, depth: int) -> list[NDArray]:
    """Return Θ of every layer but the last, ``(n, n)`` each."""
    # first layer: weights of variance 2/d give 2 P (X Xᵀ/d) Pᵀ
    gram = 2 * P @ (features @ features.T / features.shape[1]) @ P.T
    gates = []
    for _ in range(depth - 1):
        norms = np.sqrt(np.diagonal(gram))
        if not (norms > 0).all():
            raise UserError(
                "graph_influence: the features around some node average to zero; angles need others"
            )
        scale = np.outer(norms, norms)
        cosine = np.clip(gram / scale, -1, 1)
        # P(both gates open) = (π − θ)/2π for Gaussian pre-activations at the angle θ
        gates.append((np.pi - np.arccos(cosine)) / (2 * np.pi))
        # 2 P E[σσ'] Pᵀ, with the norms outside of the arc-cosine kernel
        gram = 2 * P @ (scale * arc_cosine(cosine).outer) @ P.T
    return gates


def _read(P: NDArray, gates: list[NDArray], nodes: NDArray) -> NDArray:
    """Return √T_y(x, x) over its sum, by the adjoint of the recursion of T from e_x e_xᵀ down: ``(nodes, n)``."""
    units = np.eye(len(P))[nodes]
    weights = units[:, :, None] * units[:, None, :]  # (nodes, n, n)
    for gate in reversed(gates):
        # adjoint of T ↦ 2 P (T ∘ Θ) Pᵀ in the inner product Σ A_uv B_uv
        weights = 2 * gate * (P.T @ weights @ P)
    # the diagonal of Pᵀ B P
    squares = ((P.T @ weights) * P.T).sum(-1)
    root = np.sqrt(np.maximum(squares, 0))
    return root / root.sum(-1, keepdims=True)
