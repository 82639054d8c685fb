"""Findings about how a network starts: signals and gradients by layer, saturation, outputs that are too large.

Each rule takes ``learned``, whether the risk is below that of a constant guess: where a network has learned, its start
did no great harm.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.measurement._chain import chain
from steepest.measurement._context import Context
from steepest.measurement._health import spread_of_the_outputs
from steepest.measurement._report import Finding, FindingId, Reading

STEEP = 3.0  # factor a layer by which signals or errors grow or shrink before it is said
STEEP_ONCE = 5.0  # the same where there is one such step: torch's default takes 0.41 beside ReLU
FAR = 30.0  # the same over all layers
ALIKE = 1e-3  # below which 1 − cosine of the mean pair of examples has lost them
TOO_LARGE = 2.0  # times the risk of outputs that are zero, which no usual start comes near
TOO_WIDE = 4.0  # times the variance of the targets, the same of a squared loss
LARGE_INPUTS = 10.0  # mean square of the inputs, from which they are to blame first
SATURATED = 0.5  # of the inputs of a layer's activation


def signals(
    context: Context, by_name: Mapping[str, Reading], learned: bool | None
) -> Finding | None:
    """Say where signals or errors explode or vanish, and which initialization would cure it.

    What stands before a normalization may have any size, as the normalization divides by it: of networks with one it is
    the errors times the signals that are judged, which keep their size then.
    """
    if "mean square of the last pre-activations" not in by_name:
        return None
    written = context.signals
    sizes = {name: float(np.mean(np.square(z, dtype=float))) for name, z in written.items()}
    norms = {
        name: float(np.mean(np.square(error, dtype=float))) * error[0].size
        for name, error in context.errors.items()
    }
    if context.subject.has_normalization:
        relative = [norms[name] * sizes[name] for name in norms]
        said = [_travel("relative gradients", relative[::-1][1:], " on their way back")]
    else:
        fewest = 3 if learned or chain(context.subject) is None else 2
        said = [
            _travel("signals", list(sizes.values())[:-1], "", fewest),
            _travel("gradients", list(norms.values())[::-1][1:], " on their way back", fewest),
            _alike(list(written)[:-1], by_name),
        ]
    said = [part for part in said if part]
    if not said:
        return saturated(context, written) or gates(context, learned)
    return Finding(
        "?" if learned else "!",  # where it trained it did no great harm
        f"{' and '.join(said)}{cure(context)}",
        "mean square of the last pre-activations",
        FindingId.SIGNALS,
    )


def gradients_reach_the_first_layer(context: Context) -> bool:
    """Tell whether some do, however small, so that no gates that are shut are to blame."""
    first = next(iter(context.errors.values()))
    return bool(np.any(np.asarray(first)))


def _travel(what: str, sizes: Sequence[float], on: str, fewest: int = 3) -> str:
    """Say by which factor root mean squares change where it is large, over at least ``fewest`` layers.

    Layers at whose ends there is nothing at all say nothing.
    """
    if len(sizes) < fewest or not sizes[0] > 0 or not sizes[-1] > 0:
        return ""
    total = float(np.sqrt(sizes[-1] / sizes[0]))
    steps = len(sizes) - 1
    rate = total ** (1 / steps)
    steep = STEEP_ONCE if steps == 1 else STEEP
    if 1 / steep < rate < steep and 1 / FAR < total < FAR:
        return ""
    way = "grow" if total > 1 else "shrink"
    over = f", {total:.2g} over {steps} layers" if steps > 1 else ""
    return f"{what} {way} by a factor of {rate:.2g} a layer{on}{over}"


def _alike(hidden: Sequence[str], by_name: Mapping[str, Reading]) -> str:
    """Say where the layers lose the differences of examples that the first one still has."""
    reading = by_name.get("cosine between examples, last pre-activations")
    if reading is None or len(hidden) < 2:
        return ""
    first = 1 - reading.parts[hidden[0]]
    last = 1 - reading.parts[hidden[-1]]
    if not last < ALIKE or not first > 10 * last:
        return ""
    return f"the layers make all examples alike, to a cosine of 1 − {max(last, 0.0):.1g} in the last hidden one"


def saturated(context: Context, written: Mapping[str, NDArray]) -> Finding | None:
    """Say of a chain of tanh or sigmoid units how many are saturated."""
    layers = chain(context.subject)
    if layers is None:
        return None
    ends = {"tanh": 2.65, "sigmoid": 4.6, "hard_tanh": 1.0}  # 99 % of the range, or its end
    shares = []
    for layer, z in zip(layers[:-1], list(written.values())[:-1], strict=False):
        if layer.activation in ends:
            shares.append(float((np.abs(z) > ends[layer.activation]).mean()))
    if not shares or max(shares) < SATURATED:
        return None
    return Finding(
        "!",
        f"units are saturated: at {max(shares):.0%} of a layer's inputs the activation is within 1 % of its end, and "
        f"gradients vanish there{cure(context)}",
        "mean square of the last pre-activations",
        FindingId.SATURATED,
    )


def gates(context: Context, learned: bool | None) -> Finding | None:
    """Say of LSTM and GRU layers where most inputs of a gate lie beyond its range."""
    shares = context.subject.gates()
    if not shares or max(shares.values()) < SATURATED:
        return None
    name = max(shares, key=lambda layer: shares[layer])
    return Finding(
        "?" if learned else "!",
        f"a gate of {name} is saturated: at {shares[name]:.0%} of its inputs it is within 1 % of its end, and "
        "gradients vanish there. Scale what the layer reads to order one, or start from smaller weights",
        "mean square of the last pre-activations",
        FindingId.SATURATED,
    )


def too_large(context: Context, by_name: Mapping[str, Reading]) -> Finding | None:
    """Say of a network that has not learned where its outputs are far larger than its targets allow.

    Training begins with unlearning them. Outputs that are all zero are the start to compare with, as they know nothing
    and are never far off: of a cross-entropy their risk is log C, however often each class occurs. Of a squared loss it
    is the outputs' variance over the examples, which a mean that is wrong leaves as it is.
    """
    spread = spread_of_the_outputs(context)
    if spread is None or "risk" not in by_name or context.optimizer.stepped:
        return None
    if spread.is_squared and spread.ratio > TOO_WIDE:
        said = f"the outputs' variance over the examples is {spread.ratio:.2g} times that of the targets"
    elif not spread.is_squared and spread.ratio > TOO_LARGE:
        zero = by_name["risk"].value / spread.ratio
        said = f"the risk {by_name['risk'].value:.3g} is {spread.ratio:.2g} times the {zero:.3g} of outputs of zero"
    else:
        return None
    if context.optimizer.stepped is False:
        advice = _smaller(context)
        return Finding(
            "!",
            f"the start is too large: before every training {said}. {advice}",
            "risk",
            FindingId.START_TOO_LARGE,
        )
    return Finding(
        "?",
        f"{said}. After steps of a training it has diverged; before them the start is too large: {_smaller(context)}",
        "risk",
        FindingId.START_TOO_LARGE,
    )


def _smaller(context: Context) -> str:
    """Say what to make smaller at the start: inputs that are far from order one, or else the weights."""
    try:
        x = context.subject.inputs()
    except UserError:
        x = np.zeros(0, int)
    if np.issubdtype(x.dtype, np.floating):
        square = float(np.mean(np.square(x, dtype=float)))
        if square > LARGE_INPUTS:
            return f"Scale the inputs, whose mean square is {square:.3g}, to order one"
    return f"Start from smaller weights, of the last layer at least{cure(context)}"


def cure(context: Context) -> str:
    """Return the critical initialization of a chain's activation as advice, or nothing."""
    layers = chain(context.subject)
    if layers is None or len({layer.activation for layer in layers[:-1]}) != 1 or len(layers) < 2:
        return ""
    import jax

    from steepest.kernels import recommended_initialization

    with jax.enable_x64(True):
        advice = recommended_initialization(layers[0].activation)
    if not advice.criticality.exists:
        return ""
    biases = f", biases of variance {advice.criticality.c_b:.3g}" if advice.criticality.c_b else ""
    yours = [
        layer.matrix.shape[1] * float(np.mean(np.square(layer.matrix, dtype=float)))
        for layer in layers[1:-1]
    ]
    beside = f", where yours have {np.mean(yours):.3g}/fan-in" if yours else ""
    return f"; start from weights of variance {advice.criticality.c_w:.3g}/fan-in{biases}{beside}"
