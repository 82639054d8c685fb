"""Curvature of the mean loss: how sharp, how much in all, how it is spread, and where it sits."""

import numpy as np
from scipy.special import stdtrit

from steepest.core.panels import Panel, observed_curve, panel
from steepest.krylov import Density, Eigenpairs, spectral_density, top_eigenpairs, trace
from steepest.measurement._context import Context
from steepest.measurement._health import is_dead
from steepest.measurement._optimizer import Optimizer
from steepest.measurement._report import Reading
from steepest.measurement.adapters import block, forms_by_group

NAMES = {
    "hessian": "Hessian",
    "gauss-newton": "Gauss–Newton matrix",
    "fisher": "empirical Fisher matrix",
}
DEAD = (
    "the network is dead: every example gets the same outputs, and no small change of the weights tells them apart; "
    "what curvature is left is no sign of stability"
)
GROUPS = 20  # of examples, for the error over examples
PROBES = 30  # random vectors of traces and densities
ROUNDED = 0.01  # share by which rounding moves an eigenvalue, from which on it is said
LOWEST = 1e-3  # of the size of the spectrum, to which its lower end is found
SIGNS = 5  # random vectors of the error of a trace over examples


def measure_sharpness(context: Context) -> list[Reading]:
    """Measure the largest eigenvalue, beside the largest that the step size allows."""
    top = context.top
    optimizer = context.optimizer
    size = NAMES[context.kind]
    value = float(top.values[0])
    forms, shares = forms_by_group(
        context.subject, top.vectors[:1], GROUPS, context.rng, context.kind
    )
    name = "sharpness" if context.kind == "hessian" else f"largest eigenvalue of the {size}"
    theory = ""
    compared = None
    assumes: tuple[tuple[str, bool | None], ...] = ()
    interpretation = "the largest curvature of the mean loss"
    if context.kind != "hessian":
        interpretation = "the largest of this matrix; which steps are stable, the Hessian's tells"
    elif optimizer.unknown:
        interpretation = f"the largest curvature of the mean loss; {optimizer.unknown}"
    elif optimizer.scale is None:
        interpretation = _stability(value, optimizer)
        assumes = _assumptions(context)
        if optimizer.limit is not None:
            theory = optimizer.law
            compared = optimizer.limit
    if is_dead(context):
        interpretation = DEAD
    if not top.converged[0]:
        interpretation += " (Lanczos has not converged: see the interval)"
    if context.rounding > ROUNDED:
        interpretation += (
            f" (single precision moves it by {context.rounding:.0%} or more: measure in double)"
        )
    lines = [
        Reading(
            name,
            value,
            largest_between(top, context.rounding),
            "residual",
            theory,
            compared,
            assumes,
            interpretation,
            over_examples=_over_examples(value, forms[:, 0], shares),
            missed=top.missed,
        )
    ]
    if optimizer.scale is None or optimizer.unknown:
        return lines
    return [*lines, _preconditioned(context)]


def largest_between(top: Eigenpairs, rounding: float = 0.0) -> tuple[float, float]:
    """Return where the largest eigenvalue lies: from the residual of the largest one found to the bound.

    Args:
        top: the eigenpairs, with a bound.
        rounding: by which share of it single precision may have moved it, on either side.
    """
    assert top.bound is not None
    value = float(top.values[0])
    moved = rounding * abs(value)
    return value - float(top.residuals[0]) - moved, top.bound + moved


def _who(optimizer: Optimizer) -> str:
    if optimizer.called:
        return f"{optimizer.called} descends"
    return "all your groups of weights have the step of the fastest"


def _preconditioned(context: Context) -> Reading:
    """Measure the largest eigenvalue of ``P^{-1/2} H P^{-1/2}`` with P of Adam, or of the groups' step sizes."""
    optimizer = context.optimizer
    top = context.preconditioned
    value = float(top.values[0])
    return Reading(
        "preconditioned sharpness",
        value,
        largest_between(top, context.rounding),
        "residual",
        optimizer.law,
        optimizer.limit,
        _assumptions(context),
        DEAD
        if is_dead(context)
        else f"in the coordinates in which {_who(optimizer)}; {_stability(value, optimizer)}",
        missed=top.missed,
    )


def _assumptions(context: Context) -> tuple[tuple[str, bool | None], ...]:
    optimizer = context.optimizer
    assumes = (("full-batch descent on this loss and these data", None), optimizer.assumption)
    if context.subject.normalizes:
        assumes = (*assumes, _normalization(context))
    if context.subject.is_noisy:
        assumes = (*assumes, ("one draw of the loss's random numbers stands for all", None))
    if optimizer.passed_on != 1:
        text = f"gradients reach {optimizer.called} {optimizer.passed_on:.2g} times as large as they are, as clipping "
        assumes = (*assumes, (f"{text}makes them; the limit counts it", None))
    if not optimizer.left_out:
        return assumes
    names = ", ".join(optimizer.left_out[:5]) + (" …" if len(optimizer.left_out) > 5 else "")
    if context.subject.normalizes:
        return (*assumes, (f"left out, as the loss hardly depends on them: {names}", None))
    text = (
        f"Adam's second moments are those of the loss measured here: next to zero, and left out, are those of {names}, "
        "as biases before batch normalization have no gradient in training mode"
    )
    return (*assumes, (text, False))


def _normalization(context: Context) -> tuple[str, bool | None]:
    """Return whose statistics batch normalization has here, and whether they are those of the training."""
    batches = context.subject.batches
    _, size = batches.first()
    text = f"batch normalization takes the statistics of batches of {size} examples, as your training does"
    return text, None if batches.whole and context.batch is None else True


def _stability(value: float, optimizer: Optimizer) -> str:
    """Say what a largest curvature means beside the user's step size, or which step sizes it allows."""
    limit = optimizer.limit
    if value <= 0:
        return "no direction curves upwards: every step size is stable to second order"
    largest = f"{optimizer.largest_step(value):.3g}"
    if limit is None:
        return f"{optimizer.descent} is stable for steps below {largest}"
    ratio = (optimizer.lr or 0.0) / optimizer.largest_step(value)
    many = f"{ratio:.3g} times" if ratio >= 10 else f"{ratio:.2f} of"
    step = "the first step size of your schedule" if optimizer.scheduled else "your step size"
    interpretation = f"{step} is {many} the stable limit, {largest}"
    if ratio > 1.1:
        return (
            f"{interpretation}, so that full-batch descent would leave along the sharpest direction"
        )
    return f"{interpretation}: the edge of stability" if ratio > 0.9 else interpretation


def measure_lowest_curvature(context: Context) -> list[Reading]:
    """Measure the smallest eigenvalue, to a thousandth of the largest, and its size over the largest."""
    subject = context.subject
    top = context.top
    shift = max(float(top.values[0]), 0.0)
    start = context.rng.standard_normal(subject.size).astype(subject.dtype)
    # The largest of σ − H instead of −H: what is next to zero counts beside the largest, not beside itself.
    bottom = top_eigenpairs(lambda v: shift * v - context.products(v), start, tolerance=LOWEST)
    value = shift - float(bottom.values[0])
    vector = bottom.vectors[0]
    moved = context.rounding_along(vector) * float(np.hypot(value, bottom.residuals[0]))
    least, most = largest_between(bottom)
    between = (shift - most - moved, shift - least + moved)
    forms, shares = forms_by_group(subject, vector[None], GROUPS, context.rng, context.kind)
    size = NAMES[context.kind]
    lowest = Reading(
        "lowest curvature" if context.kind == "hessian" else f"smallest eigenvalue of the {size}",
        value,
        between,
        "residual",
        interpretation=_downwards(between, bool(bottom.converged[0])),
        over_examples=_over_examples(value, forms[:, 0], shares),
        missed=bottom.missed,
    )
    return [lowest, _beside_largest(lowest, top, context.rounding)]


def _downwards(between: tuple[float, float], is_converged: bool) -> str:
    """Say whether the loss curves downwards along some direction, by where the smallest eigenvalue lies."""
    low, high = between
    if high < 0:
        said = "some direction curves downwards: these weights are at no minimum"
    elif low >= 0:
        said = "no direction curves downwards"
    else:
        said = "zero lies in the interval, so it is open whether a direction curves downwards"
    return said if is_converged else f"{said} (Lanczos has not converged: see the interval)"


def _beside_largest(lowest: Reading, top: Eigenpairs, rounding: float) -> Reading:
    """Return the size of the smallest eigenvalue over the largest one; it may lie wherever both may lie."""
    name = "lowest over largest curvature"
    value = float(top.values[0])
    if value <= 0:
        return Reading(name, np.nan, interpretation="no direction curves upwards")
    assert lowest.interval is not None and lowest.missed is not None and top.missed is not None
    low, high = lowest.interval
    least = max(low, -high, 0.0)
    most = max(-low, high)
    smallest, largest = largest_between(top, rounding)
    return Reading(
        name,
        abs(lowest.value) / value,
        (least / largest, most / smallest if smallest > 0 else np.inf),
        "residual",
        interpretation="the size of the lowest curvature beside the largest",
        missed=lowest.missed + top.missed,
    )


def _over_examples(
    value: float, forms: np.ndarray, shares: np.ndarray, more: float = 0.0
) -> tuple[float, float]:
    """Return the 95 % interval of a mean over examples, from the means of groups.

    For an eigenvalue this is the first order, ``dλ = vᵀ dH v``; ``more`` is another standard error, added in squares.
    Without two groups that add up nothing is known.
    """
    g = len(forms)
    if g < 2:
        return (-np.inf, np.inf)
    variance = float((shares**2 * (forms - shares @ forms) ** 2).sum()) * g / (g - 1)
    half = float(stdtrit(g - 1, 0.975)) * np.sqrt(variance + more**2)
    if abs(shares @ forms - value) > half + ROUNDED * abs(value):
        return (-np.inf, np.inf)  # groups do not add up, as the loss compares their examples
    return value - half, value + half


def measure_spectrum(context: Context) -> list[Reading]:
    """Measure the trace, and how much of the gradient lies in the top space."""
    subject = context.subject
    top = context.top
    size = NAMES[context.kind]
    estimate = trace(context.products, subject.size, context.rng, probes=PROBES)
    signs = 2.0 * context.rng.integers(0, 2, (SIGNS, subject.size)) - 1
    forms, shares = forms_by_group(
        subject, signs.astype(subject.dtype), GROUPS, context.rng, context.kind
    )
    gradient = subject.gradient()
    inside = top.vectors @ gradient
    length = float(gradient @ gradient)
    count = len(top.values)
    return [
        Reading(
            f"trace of the {size}",
            estimate.value,
            estimate.interval(),
            "probes",
            interpretation=f"the mean curvature is {estimate.value / subject.size:.3g} over {subject.size} directions",
            over_examples=_over_examples(
                estimate.value, forms.mean(1), shares, estimate.standard_error
            ),
        ),
        Reading(
            "gradient in the top space",
            float(inside @ inside) / length if length else np.nan,
            theory=f"{count} of {subject.size} for a random direction",
            compared=count / subject.size,
            assumes=(("eigenvectors converged", bool(top.converged.all())),),
            interpretation=f"the {count} sharpest directions hold this share of the squared gradient"
            if count > 1
            else "the sharpest direction holds this share of the squared gradient",
            parts={
                f"eigenvalue {i + 1}": float(eigenvalue) for i, eigenvalue in enumerate(top.values)
            },
        ),
    ]


def measure_density(context: Context) -> list[Reading]:
    """Measure the shares of flat and downward directions and the Frobenius norm; draw all eigenvalues."""
    spectrum = spectral_density(
        context.products, context.subject.size, context.rng, probes=PROBES, steps=40
    )
    largest = float(np.abs(spectrum.nodes).max())
    if largest == 0:
        return [
            Reading(
                "share of flat directions", 1.0, interpretation=f"the {NAMES[context.kind]} is zero"
            )
        ]
    edge = 0.01 * largest
    share_below = lambda at: (spectrum.weights * (spectrum.nodes <= at)).sum(1)
    below = share_below(-edge)
    flat = share_below(edge) - share_below(-edge)
    say = lambda name, shares, interpretation, figure=None: Reading(
        name,
        float(shares.mean()),
        _share(shares),
        "probes",
        interpretation=interpretation,
        panel=figure,
    )
    return [
        say(
            "share of flat directions",
            flat,
            f"curvature below {edge:.3g}, 1 % of the largest, in size",
            _drawn(spectrum, edge, 1e-3 / (context.subject.size * largest), NAMES[context.kind]),
        ),
        say("share of descending directions", below, f"curvature below −{edge:.3g}"),
        _frobenius(spectrum, NAMES[context.kind]),
    ]


def _drawn(spectrum: Density, width: float, floor: float, name: str) -> Panel:
    """Draw the density of the eigenvalues, smoothed to this width and no lower than the floor."""
    ends = spectrum.nodes.min() - 3 * width, spectrum.nodes.max() + 3 * width
    axis = np.linspace(*ends, 600)
    height = np.maximum(spectrum.smoothed(axis, width), floor)
    return panel(
        f"Eigenvalues of the {name}",
        "eigenvalue",
        "density",
        observed_curve(axis, height),
        log="y",
    )


def _frobenius(spectrum: Density, name: str) -> Reading:
    """Return the root of the second moment, which the quadrature has exactly for each probe."""
    second = spectrum.moment(2)
    low, high = (spectrum.size * max(end, 0.0) for end in second.interval())
    return Reading(
        f"Frobenius norm of the {name}",
        (spectrum.size * second.value) ** 0.5,
        (low**0.5, high**0.5),
        "probes",
        interpretation="the root of the sum of all squared eigenvalues",
    )


def _share(samples: np.ndarray) -> tuple[float, float]:
    """Return the interval of a mean of shares over probes, within [0, 1]."""
    half = (
        float(stdtrit(len(samples) - 1, 0.975)) * float(samples.std(ddof=1)) / len(samples) ** 0.5
    )
    return max(0.0, float(samples.mean()) - half), min(1.0, float(samples.mean()) + half)


def measure_blocks(context: Context) -> list[Reading]:
    """Measure the largest eigenvalue and the trace of every array's diagonal block."""
    subject = context.subject
    tops = _top_by_block(context)
    largest = {name: float(top.values[0]) for name, top in tops.items()}
    # one set of probes serves all blocks: zᵀHz is the sum over arrays, and signs of other arrays have mean zero
    signs = (2.0 * context.rng.integers(0, 2, (PROBES, subject.size)) - 1).astype(subject.dtype)
    forms = signs * context.products(signs)
    by_name = {weight.name: forms[:, weight.place].sum(1) for weight in subject.weights}
    traces = {name: float(sums.mean()) for name, sums in by_name.items()}
    sharpest, heaviest = (max(of, key=lambda name: of[name]) for of in (largest, traces))
    value = largest[sharpest]
    sums = by_name[heaviest]
    half = float(stdtrit(PROBES - 1, 0.975)) * float(sums.std(ddof=1)) / PROBES**0.5
    return [
        Reading(
            "largest curvature of a layer",
            value,
            largest_between(tops[sharpest], context.rounding),
            "residual",
            f"at most that of the whole {NAMES[context.kind]}",
            float(context.top.values[0]),
            interpretation=f"{sharpest} is the sharpest array of weights when the others are fixed",
            parts=largest,
            missed=tops[sharpest].missed,
        ),
        Reading(
            "largest trace of a layer",
            traces[heaviest],
            (traces[heaviest] - half, traces[heaviest] + half),
            "probes",
            interpretation=f"{heaviest} holds most of the curvature",
            parts=traces,
        ),
    ]


def _top_by_block(context: Context) -> dict[str, Eigenpairs]:
    """Return the largest eigenpair of every array's diagonal block."""
    subject = context.subject
    tolerance = 1e-6 if subject.dtype == np.float64 else 1e-2
    tops = {}
    for weight in subject.weights:
        products, size = block(subject, [weight.name], context.kind)
        start = context.rng.standard_normal(size).astype(subject.dtype)
        tops[weight.name] = top_eigenpairs(products, start, tolerance=tolerance, limit=200)
    return tops
