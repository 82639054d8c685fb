"""Rules for the ridge of attribution that need no training again: what does each score, and where does it fail?

Rules see features, residuals and values of trained networks, two of them also held-out examples or the time of
training. They were tried on the networks of ``development``, whose widths, data and lengths of training are other than
the networks of ``trainings``, and then once on these.

    python -m benchmarks.attribution.ridges [--only WORD] [--record]
"""

import argparse
import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_friedman1

from benchmarks.attribution.trainings import (
    Case,
    cases,
    conv,
    draw_conv,
    draw_mlp,
    entries,
    mlp,
    outputs_of,
    trained,
)
from steepest.measurement import attribute, gradient_features, linear_datamodeling_score

DECADES = 3.0  # searched above and below the default
GRID = 10.0 ** np.arange(-DECADES, DECADES + 0.01, 0.25)


def development():
    """Six networks that the benchmark does not have."""

    def split(x, y, train, targets=80):
        order = np.random.default_rng(11).permutation(len(x))
        first = order[:train]
        last = order[train : train + targets]
        return (x[first], y[first]), (x[last], y[last])

    unit = lambda a: ((a - a.mean(0)) / a.std(0)).astype(np.float32)
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    y = y.astype(np.int32)
    digits = split(x, y, 500)
    few = split(x[y < 5], y[y < 5], 400)
    x, y = load_diabetes(return_X_y=True)
    diabetes = split(unit(x), unit(y), 300)
    x, y = load_breast_cancer(return_X_y=True)
    tumours = split(unit(x), y.astype(np.int32), 350)
    x, y = make_friedman1(600, 10, noise=1.0, random_state=3)
    friedman = split(unit(x), unit(y), 400)
    draw = lambda *widths: partial(draw_mlp, widths)
    networks = (
        Case("MLP, 500 digits", mlp, draw(64, 24, 10), *digits, "margin", 0.04, 600),
        Case("MLP, 500 digits, short", mlp, draw(64, 32, 10), *digits, "margin", 0.02, 150),
        Case("convolution, digits 0 to 4", conv, draw_conv, *few, "margin", 0.02, 300),
        Case("MLP, breast cancer", mlp, draw(30, 64, 2), *tumours, "margin", 0.02, 500),
        Case("deeper MLP, diabetes", mlp, draw(10, 16, 16, 1), *diabetes, "value", 0.01, 800),
        Case("MLP, Friedman's function", mlp, draw(10, 48, 1), *friedman, "value", 0.01, 600),
    )
    return {case.name: case for case in networks}


class Linearized:
    """One trained network as kernel regression on its gradients, in the eigenvectors of √W ΦΦᵀ √W."""

    def __init__(self, phi, residuals, values, curvatures):
        self.kernel = phi @ phi.T
        self.residuals = residuals
        self.values = values
        self.curvatures = np.maximum(curvatures, 1e-12)
        self.squared = bool((curvatures == 1).all())
        root = np.sqrt(self.curvatures)
        spectrum, self.vectors = np.linalg.eigh(root[:, None] * self.kernel * root)
        self.spectrum = np.maximum(spectrum, 0)
        self.usual = float((self.curvatures * np.diag(self.kernel)).mean())

    def losses_without(self, ridge):
        """The loss of each example after one step of Newton's method without it."""
        spared = self.vectors**2 @ (ridge / (self.spectrum + ridge))
        residuals = self.residuals / spared
        if self.squared:
            return residuals**2 / 2
        fall = (1 - spared) / self.curvatures * residuals
        return np.logaddexp(0, fall - self.values)


def of_cross_validation(network):
    """GCV of the working responses f + r/w."""
    root = np.sqrt(network.curvatures)
    squares = (network.vectors.T @ (root * (network.values + network.residuals / root**2))) ** 2

    def score(ridge):
        left = ridge / (network.spectrum + ridge)
        return (left**2 * squares).sum() / left.sum() ** 2

    return network.usual * GRID[np.argmin([score(network.usual * factor) for factor in GRID])]


def of_evidence(network):
    """The largest evidence of the targets under f = Φu with weights u of variance 1/λ, by Laplace's approximation.

    Source: Antorán et al. 2022, whose linear model has its own mode for each λ too.
    """
    latent = np.zeros(len(network.kernel))

    def less(decades):
        nonlocal latent
        ridge = 10.0**decades * network.usual
        if network.squared:  # with the variance of the noise at its best
            targets = network.vectors.T @ (network.values + network.residuals)
            shares = network.spectrum / ridge + 1
            return len(targets) * np.log((targets**2 / shares).sum()) + np.log(shares).sum()
        evidence, latent = of_labels(network.kernel / ridge, latent)
        return -evidence

    search = minimize_scalar(
        less, bounds=(-DECADES, DECADES), method="bounded", options={"xatol": 0.1}
    )
    return 10.0**search.x * network.usual


def of_labels(kernel, latent):
    """Laplace's log evidence where all margins are to be positive, and the mode (Rasmussen and Williams, 3.1)."""
    count = len(kernel)
    dual = None
    last = -np.inf
    for _ in range(25):
        p = 1 / (1 + np.exp(-latent))
        root = np.sqrt(p * (1 - p) + 1e-12)
        inner = np.eye(count) + root[:, None] * kernel * root
        aim = root**2 * latent + 1 - p
        full = aim - root * np.linalg.solve(inner, root * (kernel @ aim))
        size = 1.0
        while True:  # halve a step that overshoots
            now = full if dual is None else dual + size * (full - dual)
            latent = kernel @ now
            value = -now @ latent / 2 - np.logaddexp(0, -latent).sum()
            if value >= last or dual is None or size < 1e-3:
                break
            size /= 2
        dual = now
        if abs(value - last) < 1e-3:
            break
        last = value
    return value - np.linalg.slogdet(inner)[1] / 2, latent


def of_held_out(networks, losses):
    """Where the mean loss without the example itself is the mean loss of held-out examples."""
    gaps = [
        np.mean([net.losses_without(factor * net.usual).mean() for net in networks]) - losses.mean()
        for factor in GRID
    ]
    return [GRID[np.argmin(np.abs(gaps))] * net.usual for net in networks]


def of_stationarity(case, weights, seed, residuals):
    """λ with Σ r_i φ_i = λ (θ* − θ₀) along θ* − θ₀, as at the minimum of a regularized risk; it may be negative."""
    start = case.draw(jax.random.split(jax.random.key(seed))[0])
    move = jax.tree.map(jnp.subtract, weights, start)
    at = tuple(map(jnp.asarray, case.train))
    slopes = jax.jvp(lambda params: outputs_of(case, params, *at), (weights,), (move,))[1]
    squares = sum(float((leaf**2).sum()) for leaf in jax.tree.leaves(move))
    return float(residuals @ np.asarray(slopes)) / squares


def scores_of(case, train, targets, masks, outputs, stationary):
    """The linear datamodeling score of each rule, and log10 of its ridge over the default."""
    parts = [train.features, train.residuals, train.values, train.curvatures]
    networks = [
        Linearized(*(part[i].astype(float) for part in parts)) for i in range(len(parts[0]))
    ]
    if networks[0].squared:
        losses = targets.residuals.astype(float) ** 2 / 2
    else:
        losses = np.logaddexp(0, -targets.values.astype(float))
    usual = np.array([network.usual for network in networks])
    rules = {
        "default": usual,
        "time of training": np.full(
            len(usual), len(case.train[1]) * 0.1 / (case.step * case.steps)
        ),
        "evidence": [of_evidence(network) for network in networks],
        "generalized cross-validation": [of_cross_validation(network) for network in networks],
        "stationarity": np.maximum(stationary, GRID[0] * usual),
        "held-out losses": of_held_out(networks, losses),
    }
    half = lambda score: (score.interval.high - score.interval.low) / 2
    scores = {}
    for name, ridges in rules.items():
        score = linear_datamodeling_score(with_ridges(train, targets, ridges), masks, outputs)
        shift = float(np.log10(ridges / usual).mean())
        scores[name] = (score.value, half(score), shift)
    curve = [
        linear_datamodeling_score(with_ridges(train, targets, factor * usual), masks, outputs)
        for factor in GRID[4:-4:2]
    ]
    best = max(curve, key=lambda score: score.value)
    scores["best of a grid, by this score"] = (best.value, half(best), np.nan)
    return scores


def with_ridges(train, targets, ridges):
    """Attribute with a ridge for each model."""
    cut = lambda given, i: type(given)(
        *(
            getattr(given, name)[i : i + 1]
            for name in ("features", "values", "residuals", "curvatures")
        ),
        given.parameters,
        given.dimension,
        given.seed,
    )
    parts = [
        attribute(cut(train, i), cut(targets, i), ridge=float(ridge)).scores
        for i, ridge in enumerate(ridges)
    ]
    return np.mean(parts, 0)


def collected(case, first, models, subsets, again, dimension):
    """Features of trained networks, and mean outputs of networks that were trained on halves."""
    rng = np.random.default_rng(first)
    count = len(case.train[1])
    weights = entries(
        trained(case, first + np.arange(models), np.tile(np.arange(count), (models, 1)))
    )
    halves = np.stack([rng.permutation(count)[: count // 2] for _ in range(subsets)])
    seeds = first + 1000 + np.arange(subsets * again)
    retrained = trained(case, seeds, np.repeat(halves, again, 0))
    at = tuple(map(jnp.asarray, case.targets))
    outputs = np.asarray(jax.vmap(lambda params: outputs_of(case, params, *at))(retrained))
    masks = np.zeros((subsets, count), bool)
    np.put_along_axis(masks, halves, True, 1)
    features = [
        gradient_features(
            (case.apply, weights[0]),
            data,
            model_output=case.model_output,
            checkpoints=weights,
            dimension=dimension,
        )
        for data in (case.train, case.targets)
    ]
    stationary = [
        of_stationarity(case, params, first + i, features[0].residuals[i])
        for i, params in enumerate(weights)
    ]
    return *features, masks, outputs.reshape(subsets, again, -1).mean(1), np.array(stationary)


def table_of(scores):
    """A row for each network, a column for each rule."""
    names = list(next(iter(scores.values())))
    shown = lambda value, half, _: f"{value:.2f} ± {half:.2f}"
    rows = [
        [network, *(shown(*rules[name]) for name in names)] for network, rules in scores.items()
    ]
    return {"columns": ["", *names], "rows": rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    tried = [(case, (50_000, 4, 48, 3, None)) for case in development().values()]
    tried += [(case, (20_000, 5, 64, 4, 512)) for case in cases().values()]
    scores = {}
    for case, how in tried:
        if options.only in case.name:
            scores[case.name] = scores_of(case, *collected(case, *how))
            for name, (value, half, shift) in scores[case.name].items():
                print(f"{case.name}: {name}: {value:.2f} ± {half:.2f} ({shift:+.1f})", flush=True)
    if options.record:
        path = Path(__file__).parent / "record.json"
        record = json.loads(path.read_text("utf-8"))
        record["tables"][1:] = [table_of(scores)]
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
