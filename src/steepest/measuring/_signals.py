"""How signals and errors travel through the layers, beside the recursion of independent weights."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.activations import activation
from steepest.errors import UserError
from steepest.kernels import pair_kernels, predict_signal
from steepest.measuring._chain import chain
from steepest.measuring._context import Context
from steepest.measuring._report import Quantity
from steepest.networks import LayerLimit, Limit
from steepest.subject import Dense

EXAMPLES = 100  # between whose pairs cosines are taken
ASSUMES = (("weights are independent of each other, as at initialization", None), ("layers are wide", None))


class Predicted(NamedTuple):
    """What independent weights of the layers' own variances would do to these inputs."""

    sizes: NDArray
    """q^l, mean over the examples, shape ``(L + 1,)``."""
    cosines: NDArray
    """Mean over the pairs of the first examples, shape ``(L + 1,)``."""
    growth: float
    """``E‖δ^1‖² / E‖δ^{L+1}‖²``, the product of χ⊥ over the layers, mean over the examples."""


def signals(context: Context) -> list[Quantity]:
    """Mean square and mean cosine of the pre-activations, and the size of the errors, by layer.

    Beside them, for a chain of dense layers with one activation, the recursion ``q' = C_b + C_W E σ(√q z)²`` of wide
    networks with independent weights, with the layers' own mean squares: C_W = fan-in · mean W², C_b = mean b².

    Raises:
        UserError: a model without linear layers, or whose layers cannot be seen.

    Source: Poole et al. 2016; Schoenholz et al. 2017.
    """
    subject = context.subject
    written = subject.layers()
    if not written:
        raise UserError(f"{subject.name} has no linear or convolutional layers whose signals could be measured")
    sizes = {name: float(np.mean(np.square(z, dtype=float))) for name, z in written.items()}
    turns = {name: mean_cosine(z[:EXAMPLES]) for name, z in written.items()}
    errors = {name: _squared_norm(each) for name, each in subject.errors().items()}
    known = limit_of(chain(subject))
    predicted = None if known is None else predict(known, subject.inputs())
    names = list(written)
    return [_size(names, sizes, predicted), _turn(names, turns, predicted), _error(names, errors, predicted)]


def _size(names: list[str], sizes: dict[str, float], predicted: Predicted | None) -> Quantity:
    last, name = sizes[names[-1]], "mean square of the last pre-activations"
    if predicted is None:
        return Quantity(name, last, means="the parts show whether signals grow or die with depth", parts=sizes)
    expected = float(predicted.sizes[-1])
    return Quantity(
        name, last, theory="q' = C_b + C_W E σ(√q z)², of the layers' own variances", compared=expected,
        assumes=ASSUMES, parts=_beside(sizes, predicted.sizes),
        means=f"{_times(last, expected)} what independent weights of the same sizes would give")  # fmt: skip


def _turn(names: list[str], turns: dict[str, float], predicted: Predicted | None) -> Quantity:
    last, name = turns[names[-1]], "cosine between examples, last pre-activations"
    what = f"mean over pairs of the first {EXAMPLES} examples; near 1 the layers cannot tell them apart"
    if predicted is None:
        return Quantity(name, last, means=what, parts=turns)
    return Quantity(
        name, last, theory="recursion of the covariance, of the layers' own variances", assumes=ASSUMES, means=what,
        compared=float(predicted.cosines[-1]), parts=_beside(turns, predicted.cosines))  # fmt: skip


def _error(names: list[str], errors: dict[str, float], predicted: Predicted | None) -> Quantity:
    name, seen = "errors, first layer over last", [each for each in names if each in errors]
    value = errors[seen[0]] / errors[seen[-1]] if seen and errors[seen[-1]] else np.nan
    if not value > 0:
        return Quantity(name, value, means="the loss does not change with what the layers write", parts=errors)
    means = "E‖∂loss/∂z‖² over the examples"
    if len(seen) > 1:
        rate = value ** (0.5 / (len(seen) - 1))
        means += f"; on its way down a gradient changes by a factor of {rate:.2g} a layer"
    if predicted is None:
        return Quantity(name, value, means=means, parts=errors)
    assumes = (*ASSUMES, ("errors are independent of the weights that they pass", None))
    return Quantity(
        name, value, theory="product of C_W E σ'² over the layers", compared=predicted.growth, assumes=assumes,
        means=means, parts=errors)  # fmt: skip


def mean_cosine(z: NDArray) -> float:
    """Mean cosine between the rows of ``(n, …)``, over pairs of different ones that are not zero; NaN without pairs.

    >>> mean_cosine(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]))
    0.3333333333333333
    """
    rows = np.asarray(z, float).reshape(len(z), -1)
    lengths = np.linalg.norm(rows, axis=1)
    rows = rows[lengths > 0] / lengths[lengths > 0, None]
    n = len(rows)
    total = rows.sum(0)
    return float((total @ total - n) / (n * (n - 1))) if n > 1 else np.nan


def limit_of(layers: Sequence[Dense] | None) -> Limit | None:
    """The wide network of these layers' mean squares; None without one activation that all hidden layers have."""
    if layers is None or len({each.activation for each in layers[:-1]}) > 1:
        return None
    known = [
        LayerLimit(
            each.matrix.shape[1] * float(np.mean(np.square(each.matrix, dtype=float))),
            0.0 if each.bias is None else float(np.mean(np.square(each.bias, dtype=float))), 1.0, 0.0)
        for each in layers
    ]  # fmt: skip
    return Limit(activation(layers[0].activation), tuple(known))


def predict(limit: Limit, x: NDArray) -> Predicted:
    """The recursion at inputs ``(n, …)``."""
    rows = np.asarray(x, float).reshape(len(x), -1)
    path = predict_signal(limit, np.mean(rows**2, axis=1))
    return Predicted(
        path.variance.mean(1), _cosines(limit, rows[:EXAMPLES]), float(path.chi_perpendicular.prod(0).mean())
    )


def _cosines(limit: Limit, rows: NDArray) -> NDArray:
    """Mean over pairs of ``K_αβ / √(K_αα K_ββ)`` in every layer."""
    squares = np.mean(rows**2, axis=1)
    if limit.layers[0].c_b == 0:  # an input of zeros has no direction; mean_cosine leaves it out
        rows, squares = rows[squares > 0], squares[squares > 0]
    first, second = np.triu_indices(len(rows), 1)
    if not len(first):
        return np.full(len(limit.layers), np.nan)
    gram = rows @ rows.T
    lengths = np.sqrt(np.diag(gram))
    with np.errstate(invalid="ignore"):
        cosine = np.nan_to_num((gram / np.outer(lengths, lengths))[first, second])
    angles, found = np.arccos(np.clip(cosine, -1, 1)), []
    for depth in range(1, len(limit.layers) + 1):
        part = Limit(limit.activation, limit.layers[:depth])
        if not limit.layers[depth - 1].c_w and not limit.layers[depth - 1].c_b:  # no signal from here on
            found.append(np.nan)
            continue
        kernels = pair_kernels(part, squares, first, second, angles, tolerance=1e-8)
        sizes = np.sqrt(kernels.singles.nngp)
        found.append(float(np.mean(kernels.pairs.nngp / (sizes[first] * sizes[second]))))
    return np.array(found)


def _squared_norm(each: NDArray) -> float:
    """Mean over the examples."""
    return float(np.sum(np.square(each, dtype=float)) / len(each))


def _beside(measured: dict[str, float], predicted: NDArray) -> dict[str, float]:
    """Each layer's number and the predicted one."""
    pairs = zip(measured.items(), predicted.tolist(), strict=True)
    return {key: x for (name, m), p in pairs for key, x in ((name, m), (f"{name}, predicted", p))}


def _times(value: float, expected: float) -> str:
    return f"{value / expected:.2g} times" if expected else "not"
