"""The largest ℓ1 margin over all ReLU neurons: in the plane with a certificate over the whole circle."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from steepest.core.errors import UserError
from steepest.core.signatures import checked
from steepest.nn.losses import check_labels
from steepest.programs._edges import search_edges
from steepest.programs._inputs import check_inputs
from steepest.programs._programs import hard_margin

_ROUNDS = 100


@dataclass(frozen=True)
class NeuronMargin:
    """The largest margin of a combination of unit neurons, with a certificate over all of them.

    Attributes:
        margin: ``γ = max_{‖a‖₁ ≤ 1} min_i y_i Σ_j a_j relu(⟨u_j, x_i⟩)``, unit vectors ``u_j``; 0 if not separable.
        directions: the neurons that the program chose from, shape ``(k, d)``.
        weights: their weights a, of ℓ1 norm 1 (zeros if the data are not separable), shape ``(k,)``.
        dual: weights ``q`` of the examples, on the simplex, under which no neuron has an edge above margin + gap.
        gap: ``max_u |Σ_i q_i y_i relu(⟨u, x_i⟩)| - γ ≥ 0``: the maximum lies between the margin and margin plus gap,
            if the certificate is exact.
        separable: whether some combination of neurons separates the data.
        rounds: programs solved.
        certificate: ``"exact"`` in one and two dimensions, where the maximum over u is known; ``"search"`` elsewhere:
            the margin is reached for certain, and no better neuron was found.
    """

    margin: float
    directions: Float[np.ndarray, "k d"]
    weights: Float[np.ndarray, " k"]
    dual: Float[np.ndarray, " n"]
    gap: float
    separable: bool
    rounds: int
    certificate: Literal["exact", "search"] = "exact"


@checked
def neuron_margin(
    x: Float[Any, "n d"],
    y: Float[Any, " n"],
    tolerance: float = 1e-8,
    *,
    starts: int = 64,
    seed: int = 0,
) -> NeuronMargin:
    """Find the largest ℓ1 margin over all ReLU neurons ``±relu(⟨u, ·⟩)`` with ``‖u‖ = 1``.

    Solved by column generation: a linear program over a few neurons gives weights q of the examples, and the neurons
    with the largest edges under these join, until none exceeds the margin. In the plane :func:`neuron_edges` knows
    them exactly; in more dimensions, where the problem is NP-hard, they are searched for (:func:`search_edges`): the
    result is then a margin that is reached, and ``certificate`` says that a better neuron was only not found.
    A two-layer network ``Σ v_j relu(⟨w_j, ·⟩)`` with ``Σ v_j² + ‖w_j‖² = 1`` reaches half of this margin and not more,
    since ``v² + ‖w‖² ≥ 2 |v| ‖w‖``.

    Args:
        x: inputs, shape ``(n, d)``; a constant last coordinate is a bias.
        y: labels ±1, shape ``(n,)``.
        tolerance: wanted gap, relative to the longest input.
        starts: from how many directions each search starts, beyond the plane.
        seed: of these directions.

    Raises:
        UserError: shapes that do not match, entries that are not finite, labels other than ±1, no starts; or the gap
            cannot be reached.

    Source: Wei, Lee, Liu and Ma 2019, section 3 (the program); Rosset, Swirszcz, Srebro and Zhu 2007 (infinitely many
    features).

    >>> best = neuron_margin([[1.0, 0.0], [-1.0, 0.0]], [1, -1])  # half of the weight for either example
    >>> round(best.margin, 6), best.separable, neuron_margin([[1.0, 0.0], [1.0, 0.0]], [1, -1]).separable
    (0.5, True, False)
    >>> cube = np.array([[a, b, c] for a in (1, -1) for b in (1, -1) for c in (1, -1)]) / 3**0.5
    >>> best = neuron_margin(cube, np.sign(cube[:, 0] * cube[:, 1]))  # 1/√(8 d)
    >>> round(best.margin * 24**0.5, 6), best.certificate
    (1.0, 'search')
    """
    x, y = check_inputs("neuron margin", x, y)
    y = np.asarray(check_labels(y), dtype=float)
    if starts < 1:
        raise UserError(f"neuron margin: expected at least one start, got {starts}; try 64")
    rng = np.random.default_rng(seed)
    edges_under = lambda signed: _edges(x, signed, starts, rng)
    directions = edges_under(y)[1]
    unit = np.linalg.norm(x, axis=1).max()
    certificate = "exact" if x.shape[1] <= 2 else "search"
    gap = np.inf
    for rounds in range(1, _ROUNDS + 1):
        # features of the neurons, (n, k)
        program = hard_margin(np.maximum(x @ directions.T, 0), y, "l1")
        edges, more = edges_under(program.dual * y)
        # weak duality: no combination of neurons has a margin above the largest edge under q
        gap = float(np.abs(edges).max()) - program.margin
        if gap <= tolerance * unit:
            return NeuronMargin(
                program.margin,
                directions,
                program.direction,
                program.dual,
                max(gap, 0.0),
                program.separable,
                rounds,
                certificate,
            )
        directions = np.vstack([directions, more[np.abs(edges) > program.margin + 0.1 * gap]])
    raise UserError(
        f"neuron margin: expected a gap of {tolerance:g}, got {gap:.1e} after {_ROUNDS} programs; allow a larger one"
    )


def _edges(
    x: Float[np.ndarray, "n d"],
    signed: Float[np.ndarray, " n"],
    starts: int,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k d"]]:
    """Return edges, and the unit neurons that have them, with the largest absolute value that can be found."""
    if x.shape[1] == 1:
        directions = np.array([[1.0], [-1.0]])
        return np.maximum(directions @ x.T, 0) @ signed, directions
    if x.shape[1] == 2:
        return neuron_edges(x, signed)
    return search_edges(x, signed, rng, starts)


@checked
def neuron_edges(
    x: Float[Any, "n 2"], signed: Float[Any, " n"]
) -> tuple[Float[Any, " k"], Float[Any, "k 2"]]:
    """Return edges ``Σ_i s_i relu(⟨u, x_i⟩)`` at all unit u where their absolute value may be largest, and these u.

    Between the 2n directions at which some neuron input changes sign the edge is ``⟨u, Σ_{active} s_i x_i⟩``, a
    sinusoid of the angle. So its extrema over the circle are among these directions and, for each arc, the two unit
    vectors along the arc's sum. The maximum over what is returned is exactly that over the circle.

    Args:
        x: inputs in the plane, shape ``(n, 2)``.
        signed: weights with the labels' signs, ``s_i = q_i y_i``, shape ``(n,)``.

    Raises:
        UserError: inputs that are not in the plane, shapes that do not match, entries that are not finite.

    >>> edges, directions = neuron_edges([[3.0, 4.0]], [1.0])
    >>> round(float(edges.max()), 6), directions[edges.argmax()].round(6).tolist()
    (5.0, [0.6, 0.8])
    """
    x, signed = check_inputs("neurons in the plane", x, signed)
    if x.shape[1] != 2:
        raise UserError(
            f"neurons in the plane: expected inputs of shape (n, 2), got {x.shape}; choose two coordinates"
        )
    angles = np.arctan2(x[:, 1], x[:, 0])
    # where ⟨u, x_i⟩ changes sign
    ends = np.unique(np.mod(np.concatenate([angles + np.pi / 2, angles - np.pi / 2]), 2 * np.pi))
    # one direction inside every arc
    middle = _unit((ends + np.append(ends[1:], ends[0] + 2 * np.pi)) / 2)
    sums = ((middle @ x.T > 0) * signed) @ x  # Σ_{active} s_i x_i of each arc, (arcs, 2)
    size = np.linalg.norm(sums, axis=1, keepdims=True)
    along = (sums / np.where(size > 0, size, 1.0))[size[:, 0] > 0]
    # on an arc the edge is ⟨u, sum⟩: extremal at ±sum/|sum|, or at the arc's ends
    directions = np.vstack([_unit(ends), along, -along])
    return np.maximum(directions @ x.T, 0) @ signed, directions


def _unit(angles: Float[np.ndarray, " k"]) -> Float[np.ndarray, "k 2"]:
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)
