"""Linear representations of digits: their contrastive losses, their training, and what theory says of small ones."""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import Trajectory, descend, triples
from steepest.kit.points import Arrays, bound
from steepest.measurement.quantities import LOG_TWO, Contrastive, contrastive, pair_weights
from steepest.nn.data import digits

CLASSES = 10
PIXELS = 64


def images_by_class(
    rng: np.random.Generator, first: int, second: int
) -> tuple[kit.Values, kit.Values]:
    """Return random disjoint images of each class, ``(10, first, 64)`` and ``(10, second, 64)``, centred, E‖x‖² = 1."""
    data = digits()
    x = np.asarray(data.x)
    x = x - x.mean(0)
    x = x / np.sqrt((x**2).sum(1).mean())
    labels = np.asarray(data.y).argmax(1)
    orders = [rng.permutation(np.flatnonzero(labels == c)) for c in range(CLASSES)]
    return (
        np.stack([x[order[:first]] for order in orders]),
        np.stack([x[order[first : first + second]] for order in orders]),
    )


@cache
def smallest_class() -> int:
    """Return how many images the class with fewest has."""
    return int(np.asarray(digits().y).sum(0).min())


def zipf(skew: float) -> kit.Values:
    """Return shares of the classes ∝ (c + 1)^(−skew), shape ``(10,)``."""
    weights = (1.0 + np.arange(CLASSES)) ** -skew
    return weights / weights.sum()


class Slack(NamedTuple):
    """Parts of the slack (L_un − τ)/(1 − τ) − L_sup to leading order, each a mean of fᵀΣf over 8 log 2.

    Attributes:
        positives: Σ of x's own class, pairs of different classes.
        negatives: Σ of the other class.
        same: of pairs within a class, with their weight τ/(1 − τ).
    """

    positives: float
    negatives: float
    same: float

    @property
    def total(self) -> float:
        """Return the slack."""
        return self.positives + self.negatives + self.same


def leading_slack(features: kit.Values, shares: kit.Values) -> Slack:
    """Return the slack of a small representation from its class covariances alone.

    Given x, v = f(x)ᵀ(f(x⁺) − f(x⁻)) has variance fᵀ(Σ_c + Σ_c')f, and ℓ'' = 1/(4 log 2) at zero. The mean of v
    enters both losses alike, so that what is left is of fourth order in f.

    Args:
        features: shape ``(10, n, k)``.
        shares: of the classes, shape ``(10,)``.
    """
    centred = features - features.mean(1, keepdims=True)
    # Σ_c of each class, (10, k, k), and fᵀΣ_d f over x of class c, (10, 10)
    covariances = np.einsum("cik,cil->ckl", centred, centred) / features.shape[1]
    forms = np.einsum("cik,dkl,cil->cd", features, covariances, features) / features.shape[1]
    return _weighted(forms, shares)


class Forms(NamedTuple):
    """Means of fᵀΣf over equal classes.

    Attributes:
        own_class: with Σ of x's class.
        any_class: with Σ of any class.
    """

    own_class: float
    any_class: float


def covariance_forms(features: kit.Values) -> Forms:
    """Return means of fᵀΣ_d f over x of class c, for d = c and for every d; features have shape ``(10, n, k)``."""
    centred = features - features.mean(1, keepdims=True)
    # ⟨f(x_i), f(x_j) − μ⟩, (c, i, j), and (c, i, d, j): its mean square over j is fᵀΣf
    own_class = np.einsum("cik,cjk->cij", features, centred)
    any_class = np.einsum("cik,djk->cidj", features, centred)
    return Forms(float((own_class**2).mean()), float((any_class**2).mean()))


def _weighted(forms: kit.Values, shares: kit.Values) -> Slack:
    """Return the parts from mean forms fᵀΣ_d f over x of class c, shape ``(10, 10)``."""
    pairs = pair_weights(shares)
    # half of ℓ''(0) = 1/(4 log 2)
    unit = 1 / (8 * LOG_TWO)
    own = forms.diagonal()
    weight = pairs.collision / (1 - pairs.collision)
    return Slack(
        float(unit * (pairs.different.sum(1) * own).sum()),
        float(unit * (pairs.different * forms).sum()),
        # x⁺ and x⁻ are of one class: v has the variance 2fᵀΣf
        float(unit * weight * 2 * (pairs.same * own).sum()),
    )


def mean_slack(images: kit.Values, shares: kit.Values, k: int) -> float:
    """Return the mean of the leading slack over random W with entries N(0, 1/k), f = Wᵀx.

    E WWᵀSWWᵀ = (1 + 1/k)S + tr(S) I/k for a covariance S of images.
    """
    centred = images - images.mean(1, keepdims=True)
    covariances = np.einsum("cik,cil->ckl", centred, centred) / images.shape[1]
    forms = np.einsum("cik,dkl,cil->cd", images, covariances, images) / images.shape[1]
    sizes = (images**2).sum(2).mean(1)
    traces = np.trace(covariances, axis1=1, axis2=2)
    # E fᵀΣf = xᵀ E[WWᵀSWWᵀ] x, with ‖x‖² beside the trace
    return _weighted((1 + 1 / k) * forms + np.outer(sizes, traces) / k, shares).total


def block_slacks(
    features: kit.Values, blocks: tuple[int, ...], draws: int, rng: np.random.Generator
) -> kit.Values:
    """Return the slack of the bound from blocks, (L_block − τ)/(1 − τ) − L_sup, for each size of block.

    A block puts means of b positives and of b negatives in place of one each. The loss's tangent at v's mean given x
    is subtracted, whose mean is zero, so that little noise is left. All classes are alike.
    """
    classes, n, _ = features.shape
    means = features.mean(1)
    collision = 1 / classes
    slacks = []
    for block in blocks:
        positive_class = rng.integers(classes, size=draws)
        negative_class = rng.integers(classes, size=draws)
        x = features[positive_class, rng.integers(n, size=draws)]
        positives = features[positive_class[:, None], rng.integers(n, size=(draws, block))].mean(1)
        negatives = features[negative_class[:, None], rng.integers(n, size=(draws, block))].mean(1)
        v = (x * (positives - negatives)).sum(1)
        centre = (x * (means[positive_class] - means[negative_class])).sum(1)
        # ℓ'(v) = −1/((1 + e^v) log 2)
        slope = -1 / (1 + np.exp(centre)) / LOG_TWO
        excess = (
            np.logaddexp(0, -v) / LOG_TWO
            - np.logaddexp(0, -centre) / LOG_TWO
            - slope * (v - centre)
        )
        slacks.append(excess.mean() / (1 - collision))
    return np.array(slacks)


class Several(NamedTuple):
    """What is left between contrastive losses of several negatives and those of class means, for each number of them.

    Attributes:
        slack: the difference, by draws whose tangent has been subtracted, with little noise.
        left: the difference itself.
        without_own: the same where no negative is of x's own class, though the losses of means have such.
    """

    slack: kit.Values
    left: kit.Values
    without_own: kit.Values


def several_negatives(
    features: kit.Values, numbers: tuple[int, ...], draws: int, rng: np.random.Generator
) -> Several:
    """Return what is left between losses ℓ(v) = log₂(1 + Σ_i e^(−v_i)) of k negatives and of class means.

    Class means stand for the positive and for every negative, so that one of x's own class is a tie, with v_i = 0. All
    classes are alike.

    Args:
        features: shape ``(10, n, k)``.
        numbers: of negatives, each of any class.
        draws: of x, its positive and its negatives.
        rng: source of randomness.
    """
    classes, n, width = features.shape
    rows = features.reshape(-1, width)
    products = rows @ rows.T
    of_means = rows @ features.mean(1).T
    own_class = rng.integers(classes, size=draws)
    x = own_class * n + rng.integers(n, size=draws)
    positive = products[x, own_class * n + rng.integers(n, size=draws)][:, None]
    shape = (draws, max(numbers))
    any_class = rng.integers(classes, size=shape)
    other_class = (own_class[:, None] + rng.integers(1, classes, size=shape)) % classes
    one_of = lambda classes: products[x[:, None], classes * n + rng.integers(n, size=shape)]
    v = positive - one_of(any_class)
    v_of_others = positive - one_of(other_class)
    centre = of_means[x, own_class][:, None] - of_means[x[:, None], any_class]
    results = []
    for k in numbers:
        weights = np.exp(-centre[:, :k])
        total = 1 + weights.sum(1)
        # ∂ℓ/∂v_i = −e^(−v_i)/((1 + Σ_j e^(−v_j)) log 2), at class means: a term of mean zero
        tangent = -(weights * (v - centre)[:, :k]).sum(1) / total / LOG_TWO
        bits = lambda margins, k=k: np.log2(1 + np.exp(-margins[:, :k]).sum(1))
        difference = bits(v) - np.log2(total)
        without = bits(v_of_others) - np.log2(total)
        results.append([(difference - tangent).mean(), difference.mean(), without.mean()])
    return Several(*np.array(results).T)


def triple_loss(weights: jax.Array, x: jax.Array, positive: jax.Array, negative: jax.Array) -> Any:
    """Return ℓ(f(x)ᵀ(f(x⁺) − f(x⁻))) in bits, f(x) = Wᵀx."""
    v = ((x @ weights) * ((positive - negative) @ weights)).sum(1)
    return jax.nn.softplus(-v) / LOG_TWO


def train(
    images: jax.Array, start: jax.Array, steps: int, batch: int, lr: float, key: kit.Key
) -> Trajectory:
    """Descend on the contrastive loss by fresh triples; L_un itself is recorded at both ends."""
    return descend(
        lambda weights: contrastive(images @ weights).un,
        start,
        optax.sgd(lr),
        steps,
        record=steps,
        stochastic=triples(triple_loss, images, batch),
        key=key,
    )


def pair_accuracy(images: kit.Values, weights: kit.Values, means: kit.Values) -> float:
    """Return the share of images that the mean classifier puts right, over all ordered pairs of classes.

    Args:
        images: shape ``(10, n, 64)``.
        weights: shape ``(64, k)``.
        means: of the features by class, shape ``(10, k)``; a pair's threshold is half-way between them.
    """
    # ⟨f, μ⟩ − ½‖μ‖² orders the means μ as their distances from f do
    scores = images @ weights @ means.T - 0.5 * (means**2).sum(1)  # (class, image, mean)
    right = scores[np.arange(CLASSES), :, np.arange(CLASSES)][:, :, None] > scores
    return float(right.mean(1)[~np.eye(CLASSES, dtype=bool)].mean())


def few_label_accuracy(
    images: kit.Values, weights: kit.Values, labels: int, draws: int, rng: np.random.Generator
) -> float:
    """Return the accuracy with means of a few images of each class, drawn from the same ones, over many draws."""
    features = images @ weights
    scores = []
    for _ in range(draws):
        chosen = rng.permuted(np.tile(np.arange(images.shape[1]), (CLASSES, 1)), axis=1)[:, :labels]
        means = np.take_along_axis(features, chosen[:, :, None], 1).mean(1)
        scores.append(pair_accuracy(images, weights, means))
    return float(np.mean(scores))


@cache
def first_images(per_class: int) -> kit.Values:
    """Return the images of a diagram, the same at every point."""
    return images_by_class(np.random.default_rng(0), per_class, 0)[0]


@dataclass(frozen=True)
class ContrastiveTransferPoint(kit.Point):
    """The slack of the bound for random linear representations of one scale and dimension."""

    amplitudes: kit.Positive
    ks: kit.Count
    per_class: kit.Count
    seeds: kit.Seeds

    batched = ("amplitudes",)
    diagram = {"amplitudes": "log:0.05:5:13", "ks": "log:1:64:7"}
    base = {"per_class": 12, "seeds": 4}
    labels = {
        "log_slack": "log₁₀ of the slack",
        "supervised": "L_sup of the mean classifier [bits]",
        "un": "contrastive loss L_un [bits]",
    }
    diagram_remarks = (
        "Lines are where theory has the slack 10⁻⁴, 10⁻² and 1, from the covariances of the classes alone; it is "
        "for small scales. Twelve images of each digit, four random matrices a point.",
    )

    def setting(self, key):
        return first_images(self.per_class)

    def predict(self, setting):
        return kit.Prediction(slack=0.0)

    def observe(self, setting, key):
        def losses(key: kit.Key) -> Contrastive:
            weights = jax.random.normal(key, (PIXELS, self.ks)) / self.ks**0.5
            return contrastive(self.amplitudes * (setting @ weights))

        return jax.lax.map(losses, kit.keys(key, self.seeds))._asdict()

    def judge(self, predicted, observed):
        limit = float(predicted["slack"])
        yield bound("slack", _slacks(observed), at_least=limit, aggregate="all", label="slack")

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        return {
            "log_slack": float(np.log10(_slacks(observed)).mean()),
            "supervised": float(observed["supervised"].mean()),
            "un": float(observed["un"].mean()),
        }

    def boundaries(self, x: str, y: str) -> tuple[kit.Curve, ...]:
        if {x, y} != {"amplitudes", "ks"}:
            return ()
        dimensions = np.geomspace(1, 64, 20)
        shares = zipf(0.0)
        images = first_images(self.per_class)
        slopes = np.array([mean_slack(images, shares, k) for k in dimensions])
        curves = []
        for level in (1e-4, 1e-2, 1.0):
            # the slack is of fourth order in the scale
            scales = (level / slopes) ** 0.25
            ends = (scales, dimensions) if x == "amplitudes" else (dimensions, scales)
            curves.append(kit.predicted_curve(*ends, f"slack {level:g}"))
        return tuple(curves)


def _slacks(observed: Arrays) -> kit.Values:
    tau = observed["collision"]
    return (observed["un"] - tau) / (1 - tau) - observed["supervised"]
