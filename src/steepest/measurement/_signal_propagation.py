"""Signal propagation: how signals and errors travel through the layers, beside the recursion of independent weights."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels import pair_kernels, predict_signal
from steepest.measurement._chain import chain
from steepest.measurement._context import Context
from steepest.measurement._report import Reading
from steepest.measurement.adapters import Dense
from steepest.nn.activations import activation, closed_form
from steepest.nn.networks import LayerLimit, Limit

EXAMPLES = 100  # between whose pairs cosines are taken
WIDE = (
    4.0  # variance of a signal above which a pair of smooth activations takes a tenth of a second
)
PAIRS = 12  # that are predicted there
ASSUMES = (
    ("weights are independent of each other, as at initialization", None),
    ("layers are wide", None),
)


class Predicted(NamedTuple):
    """The signals that independent weights of the layers' own variances would give."""

    sizes: NDArray
    """q^l, mean over the examples, shape ``(L + 1,)``."""
    cosines: NDArray
    """Mean over the pairs of the examples drawn, shape ``(L + 1,)``."""
    growth: float
    """``E‖δ^1‖² / E‖δ^{L+1}‖²``, the product of χ⊥ over the layers, mean over the examples."""


def measure_signal_propagation(context: Context) -> list[Reading]:
    """Measure mean square and mean cosine of the pre-activations, and the size of the errors, by layer.

    Beside them, for a chain of dense layers with one activation, the recursion ``q' = C_b + C_W E σ(√q z)²`` of wide
    networks with independent weights, with the layers' own mean squares: C_W = fan-in · mean W², C_b = mean b².

    Raises:
        UserError: a model without linear layers, or whose layers cannot be seen.

    Source: Poole et al. 2016; Schoenholz et al. 2017.
    """
    subject = context.subject
    written = context.signals
    if not written:
        raise UserError(
            f"{subject.name} has no linear or convolutional layers whose signals could be measured"
        )
    sizes = {name: float(np.mean(np.square(z, dtype=float))) for name, z in written.items()}
    rows = _rows(context, len(next(iter(written.values()))))
    turns = {name: mean_cosine(z[rows]) for name, z in written.items()}
    errors = {name: _squared_norm(error) for name, error in context.errors.items()}
    limit = limit_of(chain(subject))
    predicted = None if limit is None else predict(limit, subject.inputs(), rows)
    names = list(written)
    return [
        _size(names, sizes, predicted),
        _turn(names, turns, predicted, len(rows)),
        _error(names, errors, predicted),
    ]


def _size(names: list[str], sizes: dict[str, float], predicted: Predicted | None) -> Reading:
    last = sizes[names[-1]]
    name = "mean square of the last pre-activations"
    if predicted is None:
        return Reading(
            name,
            last,
            interpretation=f"mean square from first to last layer: {sizes[names[0]]:.3g} to {last:.3g}",
            parts=sizes,
        )
    expected = float(predicted.sizes[-1])
    return Reading(
        name,
        last,
        theory="q' = C_b + C_W E σ(√q z)², of the layers' own variances",
        compared=expected,
        assumes=ASSUMES,
        parts=_beside(sizes, predicted.sizes),
        interpretation=f"{_times(last, expected)} what independent weights of the same sizes would give",
    )


def _rows(context: Context, n: int) -> NDArray:
    """Draw the examples between whose pairs cosines are taken; rows sorted by class would tell of one class."""
    rng = np.random.default_rng(context.seed)
    return np.sort(rng.choice(n, min(n, EXAMPLES), replace=False))


def _turn(
    names: list[str], turns: dict[str, float], predicted: Predicted | None, drawn: int
) -> Reading:
    last = turns[names[-1]]
    name = "cosine between examples, last pre-activations"
    what = f"mean over pairs of {drawn} examples, drawn at random; near 1 the layers cannot tell them apart"
    if predicted is None:
        return Reading(name, last, interpretation=what, parts=turns)
    return Reading(
        name,
        last,
        theory="recursion of the covariance, of the layers' own variances",
        assumes=ASSUMES,
        interpretation=what,
        compared=float(predicted.cosines[-1]),
        parts=_beside(turns, predicted.cosines),
    )


def _error(names: list[str], errors: dict[str, float], predicted: Predicted | None) -> Reading:
    name = "errors, first layer over last"
    shown = [name for name in names if name in errors]
    value = errors[shown[0]] / errors[shown[-1]] if shown and errors[shown[-1]] else np.nan
    if not value > 0:
        return Reading(name, value, interpretation=_dead(errors, shown), parts=errors)
    interpretation = "E‖∂loss/∂z‖² over the examples"
    if len(shown) > 1:
        rate = value ** (0.5 / (len(shown) - 1))
        interpretation += f"; on its way down a gradient changes by a factor of {rate:.2g} a layer"
    if predicted is None:
        return Reading(name, value, interpretation=interpretation, parts=errors)
    assumes = (*ASSUMES, ("errors are independent of the weights that they pass", None))
    return Reading(
        name,
        value,
        theory="product of C_W E σ'² over the layers",
        compared=predicted.growth,
        assumes=assumes,
        interpretation=interpretation,
        parts=errors,
    )


def _dead(errors: dict[str, float], shown: list[str]) -> str:
    """Say which layers no error reaches."""
    silent = [layer for layer in shown if not errors[layer]]
    if len(silent) == len(shown):
        return "no error reaches any layer: the loss does not change with what they write"
    alive = [layer for layer in shown if errors[layer]]
    return (
        f"no error reaches {', '.join(silent)}, behind dead units or zero weights: no example's loss changes with "
        f"what they write, but with what {', '.join(alive)} writes it does"
    )


def mean_cosine(z: NDArray) -> float:
    """Average the cosines between different rows of ``(n, …)`` that are not zero; NaN without pairs.

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
    """Return the wide network with these layers' mean squares; None unless all hidden layers share one activation."""
    if layers is None or len({layer.activation for layer in layers[:-1]}) > 1:
        return None
    laws = [
        LayerLimit(
            layer.matrix.shape[1] * float(np.mean(np.square(layer.matrix, dtype=float))),
            0.0 if layer.bias is None else float(np.mean(np.square(layer.bias, dtype=float))),
            1.0,
            0.0,
        )
        for layer in layers
    ]
    return Limit(activation(layers[0].activation), tuple(laws))


def predict(limit: Limit, x: NDArray, drawn: NDArray | slice = slice(EXAMPLES)) -> Predicted:
    """Run the recursion at inputs ``(n, …)``, with the cosines between those drawn."""
    rows = np.asarray(x, float).reshape(len(x), -1)
    path = predict_signal(limit, np.mean(rows**2, axis=1))
    return Predicted(
        path.variance.mean(1),
        _cosines(limit, rows[drawn], float(path.variance.max(initial=0))),
        float(path.chi_perpendicular.prod(0).mean()),
    )


def _cosines(limit: Limit, rows: NDArray, widest: float) -> NDArray:
    """Average ``K_αβ / √(K_αα K_ββ)`` over pairs in every layer; over few where each takes long."""
    squares = np.mean(rows**2, axis=1)
    if limit.layers[0].c_b == 0:  # an input of zeros has no direction; mean_cosine leaves it out
        rows = rows[squares > 0]
        squares = squares[squares > 0]
    first, second = np.triu_indices(len(rows), 1)
    if not len(first):
        return np.full(len(limit.layers), np.nan)
    if widest > WIDE and closed_form(limit.activation) is None and len(first) > PAIRS:
        few = np.random.default_rng(0).choice(len(first), PAIRS, replace=False)
        first = first[few]
        second = second[few]
    gram = rows @ rows.T
    lengths = np.sqrt(np.diag(gram))
    with np.errstate(invalid="ignore"):
        cosine = np.nan_to_num((gram / np.outer(lengths, lengths))[first, second])
    angles = np.arccos(np.clip(cosine, -1, 1))
    cosines = []
    for depth in range(1, len(limit.layers) + 1):
        part = Limit(limit.activation, limit.layers[:depth])
        # no signal from here on
        if not limit.layers[depth - 1].c_w and not limit.layers[depth - 1].c_b:
            cosines.append(np.nan)
            continue
        kernels = pair_kernels(part, squares, first, second, angles, tolerance=1e-8)
        sizes = np.sqrt(kernels.singles.nngp)
        cosines.append(float(np.mean(kernels.pairs.nngp / (sizes[first] * sizes[second]))))
    return np.array(cosines)


def _squared_norm(rows: NDArray) -> float:
    """Average the squared norm over the examples."""
    return float(np.sum(np.square(rows, dtype=float)) / len(rows))


def _beside(measured: dict[str, float], predicted: NDArray) -> dict[str, float]:
    """Put each layer's number beside the predicted one."""
    pairs = zip(measured.items(), predicted.tolist(), strict=True)
    return {key: x for (name, m), p in pairs for key, x in ((name, m), (f"{name}, predicted", p))}


def _times(value: float, expected: float) -> str:
    return f"{value / expected:.2g} times" if expected else "not"
