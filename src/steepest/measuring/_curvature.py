"""Curvature of the mean loss: how sharp, how much in all, how it is spread, and where it sits."""

import numpy as np
from scipy import stats

from steepest.curvature import Density, spectral_density, top_eigenpairs, trace
from steepest.measuring._context import Context
from steepest.measuring._report import Quantity
from steepest.panels import panel, seen
from steepest.subject import block, forms_by_group

NAMES = {"hessian": "Hessian", "gauss-newton": "Gauss–Newton matrix", "fisher": "empirical Fisher matrix"}
GROUPS = 20  # of examples, for the error over examples
PROBES, SIGNS = 30, 5  # random vectors: of traces and densities; of the error of a trace over examples


def sharpness(context: Context) -> list[Quantity]:
    """The largest eigenvalue, beside the largest that the step size allows."""
    top, optimizer, size = context.top, context.optimizer, NAMES[context.kind]
    value, residual = float(top.values[0]), float(top.residuals[0])
    forms, shares = forms_by_group(context.subject, top.vectors[:1], GROUPS, context.rng, context.kind)
    name = "sharpness" if context.kind == "hessian" else f"largest eigenvalue of the {size}"
    theory, compared, means = "", None, "the largest curvature of the mean loss; descent is stable up to the step 2/it"
    if optimizer.scale is None and optimizer.limit is not None:
        theory, compared, means = optimizer.law, optimizer.limit, _stability(value, optimizer.limit)
    if not top.converged[0]:
        means += " (Lanczos has not converged: see the interval)"
    found = [
        Quantity(
            name, value, (value - residual, value + residual), "residual", theory, compared,
            _assumptions(compared), means, over_examples=_over_examples(value, forms[:, 0], shares))
    ]  # fmt: skip
    return found if optimizer.scale is None else [*found, _preconditioned(context)]


def _preconditioned(context: Context) -> Quantity:
    """The largest eigenvalue of ``P^{-1/2} H P^{-1/2}`` with Adam's P."""
    optimizer, top = context.optimizer, context.preconditioned
    value, residual, limit = float(top.values[0]), float(top.residuals[0]), optimizer.limit
    means = "the largest curvature in the coordinates in which Adam descends"
    return Quantity(
        "preconditioned sharpness", value, (value - residual, value + residual), "residual", optimizer.law, limit,
        _assumptions(limit), means if limit is None else _stability(value, limit))  # fmt: skip


def _assumptions(compared: float | None) -> tuple[tuple[str, bool | None], ...]:
    text = "full-batch descent on this loss and these data, without weight decay"
    return () if compared is None else ((text, None),)


def _stability(value: float, limit: float) -> str:
    """What a largest curvature means beside the limit of a step size."""
    if value <= 0:
        return "no direction curves upwards: every step size is stable to second order"
    means = f"your step size is {value / limit:.2f} of the stable limit"
    if value > 1.1 * limit:
        return f"{means}, so that full-batch descent would leave along the sharpest direction"
    return f"{means}: the edge of stability" if value > 0.9 * limit else means


def _over_examples(value: float, forms: np.ndarray, shares: np.ndarray, more: float = 0.0) -> tuple[float, float]:
    """95 % interval of a number that is a mean over examples, from the means of groups.

    For an eigenvalue this is the first order, ``dλ = vᵀ dH v``; ``more`` is another standard error, added in squares.
    """
    g = len(forms)
    if g < 2:
        return (-np.inf, np.inf)
    variance = float((shares**2 * (forms - shares @ forms) ** 2).sum()) * g / (g - 1)
    half = float(stats.t.ppf(0.975, g - 1)) * np.sqrt(variance + more**2)
    return value - half, value + half


def spectrum(context: Context) -> list[Quantity]:
    """Trace, and how much of the gradient lies in the top space."""
    subject, top, size = context.subject, context.top, NAMES[context.kind]
    found = trace(context.products, subject.size, context.rng, probes=PROBES)
    signs = 2.0 * context.rng.integers(0, 2, (SIGNS, subject.size)) - 1
    forms, shares = forms_by_group(subject, signs.astype(subject.dtype), GROUPS, context.rng, context.kind)
    gradient = subject.gradient()
    inside, length, count = top.vectors @ gradient, float(gradient @ gradient), len(top.values)
    return [
        Quantity(
            f"trace of the {size}", found.value, found.interval(), "probes",
            means=f"the mean curvature is {found.value / subject.size:.3g} over {subject.size} directions",
            over_examples=_over_examples(found.value, forms.mean(1), shares, found.standard_error)),
        Quantity(
            "gradient in the top space", float(inside @ inside) / length if length else np.nan,
            theory=f"{count} of {subject.size} for a random direction", compared=count / subject.size,
            assumes=(("eigenvectors converged", bool(top.converged.all())),),
            means=f"the {count} sharpest directions hold this share of the squared gradient",
            parts={f"eigenvalue {i + 1}": float(each) for i, each in enumerate(top.values)}),
    ]  # fmt: skip


def density(context: Context) -> list[Quantity]:
    """Which shares of the directions are flat and curve downwards, Frobenius norm, and all eigenvalues in a picture."""
    found = spectral_density(context.products, context.subject.size, context.rng, probes=PROBES, steps=40)
    largest = float(np.abs(found.nodes).max())
    if largest == 0:
        return [Quantity("share of flat directions", 1.0, means=f"the {NAMES[context.kind]} is zero")]
    edge = 0.01 * largest
    each = lambda at: (found.weights * (found.nodes <= at)).sum(1)
    below, flat = each(-edge), each(edge) - each(-edge)
    axis = np.linspace(found.nodes.min() - 3 * edge, found.nodes.max() + 3 * edge, 600)
    height = np.maximum(found.smoothed(axis, edge), 1e-3 / (context.subject.size * largest))
    drawn = panel(
        f"Eigenvalues of the {NAMES[context.kind]}", "eigenvalue", "density", seen(axis, height), log="y")  # fmt: skip
    say = lambda name, shares, means, figure=None: Quantity(
        name, float(shares.mean()), _share(shares), "probes", means=means, panel=figure
    )
    return [
        say("share of flat directions", flat, f"curvature below {edge:.3g}, 1 % of the largest, in size", drawn),
        say("share of descending directions", below, f"curvature below −{edge:.3g}"),
        _frobenius(found, NAMES[context.kind]),
    ]


def _frobenius(found: Density, name: str) -> Quantity:
    """The root of the second moment, which the quadrature has exactly for each probe."""
    second = found.moment(2)
    low, high = (found.size * max(end, 0.0) for end in second.interval())
    return Quantity(
        f"Frobenius norm of the {name}", (found.size * second.value) ** 0.5, (low**0.5, high**0.5), "probes",
        means="the root of the sum of all squared eigenvalues")  # fmt: skip


def _share(samples: np.ndarray) -> tuple[float, float]:
    """Interval of a mean of shares over probes, within [0, 1]."""
    half = float(stats.t.ppf(0.975, len(samples) - 1)) * float(samples.std(ddof=1)) / len(samples) ** 0.5
    return max(0.0, float(samples.mean()) - half), min(1.0, float(samples.mean()) + half)


def blocks(context: Context) -> list[Quantity]:
    """Largest eigenvalue and trace of the diagonal block of every array of weights."""
    subject, largest, residuals = context.subject, {}, {}
    for each in subject.weights:
        products, size = block(subject, [each.name], context.kind)
        start = context.rng.standard_normal(size).astype(subject.dtype)
        found = top_eigenpairs(products, start, tolerance=1e-6 if subject.dtype == np.float64 else 1e-2, limit=200)
        largest[each.name], residuals[each.name] = float(found.values[0]), float(found.residuals[0])
    # one set of probes serves all blocks: zᵀHz is the sum over arrays, and signs of other arrays have mean zero
    signs = (2.0 * context.rng.integers(0, 2, (PROBES, subject.size)) - 1).astype(subject.dtype)
    forms = signs * context.products(signs)
    by_name = {each.name: forms[:, each.place].sum(1) for each in subject.weights}
    traces = {name: float(sums.mean()) for name, sums in by_name.items()}
    sharpest, heaviest = (max(of, key=lambda name: of[name]) for of in (largest, traces))
    value, error, sums = largest[sharpest], residuals[sharpest], by_name[heaviest]
    half = float(stats.t.ppf(0.975, PROBES - 1)) * float(sums.std(ddof=1)) / PROBES**0.5
    return [
        Quantity(
            "largest curvature of a layer", value, (value - error, value + error), "residual",
            f"at most that of the whole {NAMES[context.kind]}", float(context.top.values[0]),
            means=f"{sharpest} is the sharpest array of weights when the others are fixed", parts=largest),
        Quantity(
            "largest trace of a layer", traces[heaviest], (traces[heaviest] - half, traces[heaviest] + half), "probes",
            means=f"{heaviest} holds most of the curvature", parts=traces),
    ]  # fmt: skip
