"""Deep linear networks with weight decay, descended from many starts, and the target at which zero is as good."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Float

from steepest import kit
from steepest.dynamics import descend
from steepest.nn.types import Values

MOMENTUM = 0.9
LARGEST = 3.0  # size of a random start over the target's spectral norm
NOISE = 0.01  # in every weight of a start that is made from the target
SMALL = 0.01  # standard deviation of the weights of a small start
FAR = 1.2  # a target whose best product is not zero, where the search for the threshold starts
SEARCH = 9  # steps of Newton's method, which comes from above and never passes


class Problems(NamedTuple):
    """Deep linear regressions on white inputs, with a start for each.

    Attributes:
        target: Y, ``(problems, d, d)``.
        decay: λ, ``(problems,)``.
        layers: L, ``(problems,)``; what a start has beyond them is not used.
        start: weights, ``(problems, most layers, d, d)``.
    """

    target: Values
    decay: Values
    layers: Values
    start: Values


class Ends(NamedTuple):
    """Where descents end: weights, product, risk with decay, and the length of its gradient."""

    weights: Values
    product: Values
    value: Values
    slope: Values


def train(problems: Problems, lr: float, steps: int) -> Ends:
    """Descend on ``½‖Y − W_L⋯W_1‖² + ½λΣ‖W_i‖²``, all problems at once, by autodiff and with momentum."""
    return Ends(*map(np.asarray, _descent(lr, steps)(*problems)))


def _descent(lr: float, steps: int) -> Callable[..., Ends]:
    rule = optax.sgd(lr, momentum=MOMENTUM)

    def run(target: jax.Array, decay: jax.Array, layers: jax.Array, start: jax.Array) -> Ends:
        deepest = start.shape[1]
        used = (jnp.arange(deepest) < layers[:, None])[..., None, None]

        def product(weights: jax.Array) -> jax.Array:
            of_all = jnp.where(used, weights, jnp.eye(target.shape[-1]))
            result = of_all[:, 0]
            for layer in range(1, deepest):
                result = of_all[:, layer] @ result
            return result

        def values(weights: jax.Array) -> jax.Array:
            misfit = ((target - product(weights)) ** 2).sum((1, 2))
            return 0.5 * misfit + 0.5 * decay * (jnp.where(used, weights, 0) ** 2).sum((1, 2, 3))

        risk = lambda weights: values(weights).sum()
        end = descend(risk, start, rule, steps, record=steps).params
        slope = jnp.sqrt((jax.grad(risk)(end) ** 2).sum((1, 2, 3)))
        return Ends(end, product(end), values(end), slope)

    return kit.compiled(run)


def from_target(
    left: Values, singular: Values, right: Values, layers: int, most: int
) -> Float[np.ndarray, "most d d"]:
    """Return balanced layers whose product is U diag(s) Vᵀ."""
    # s^(1/L) in every layer: W_{l+1}ᵀW_{l+1} = W_l W_lᵀ
    root = np.diag(singular ** (1 / layers))
    weights = np.zeros((most, *root.shape))
    weights[:layers] = root
    weights[0] = weights[0] @ right.T
    weights[layers - 1] = left @ weights[layers - 1]
    return weights


def random_start(
    rng: np.random.Generator, size: float, layers: int, most: int, d: int
) -> Float[np.ndarray, "most d d"]:
    """Return Gaussian layers whose spectral norms, the largest of them to the power L, have this size.

    Of products of a given norm some have layers so large that a step at the same size diverges.
    """
    weights = np.zeros((most, d, d))
    weights[:layers] = rng.standard_normal((layers, d, d))
    largest = np.linalg.norm(weights[:layers], 2, axis=(1, 2)).max()
    return weights * (size ** (1 / layers) / largest)


class Spectra(NamedTuple):
    """Targets of one spectrum, one a seed, with their singular vectors."""

    left: Values  # U, (seeds, d, d)
    right: Values  # V, (seeds, d, d)
    target: Values  # U diag(s) Vᵀ


def spectra(rng: np.random.Generator, singular: Values, seeds: int) -> Spectra:
    """Draw singular vectors."""
    d = len(singular)
    left, right = (np.linalg.qr(rng.standard_normal((seeds, d, d)))[0] for _ in range(2))
    return Spectra(left, right, left * singular @ right.transpose(0, 2, 1))


class Counts(NamedTuple):
    """How many starts each network has, besides those from the target's leading parts, of rank 0 to d."""

    random: int
    small: int


def networks(
    rng: np.random.Generator,
    of: Spectra,
    singular: Values,
    layers: Sequence[int],
    decay: float,
    counts: Counts,
) -> Problems:
    """Return a problem for each target, depth and start, ``(seeds, layers, starts, …)``.

    Starts are, in this order: each leading part of the target with a little noise; random ones of a tenth to
    thrice its size; small ones; and the whole target with noise once more, for a world without decay.
    """
    deepest = max(layers)
    d = len(singular)
    order = np.argsort(-singular)
    sizes = np.geomspace(0.1, LARGEST, counts.random) * singular.max()
    starts = []
    for left, right in zip(of.left, of.right, strict=True):
        for number in layers:
            parts = [np.isin(np.arange(d), order[:rank]) * singular for rank in range(d + 1)]
            from_parts = [
                from_target(left, part, right, number, deepest) for part in [*parts, singular]
            ]
            noisy = [start + NOISE * rng.standard_normal(start.shape) for start in from_parts]
            random = [random_start(rng, size, number, deepest, d) for size in sizes]
            small = [SMALL * rng.standard_normal((deepest, d, d)) for _ in range(counts.small)]
            starts.append(np.stack([*noisy[:-1], *random, *small, noisy[-1]]))
    start = np.stack(starts).reshape(len(of.left), len(layers), -1, deepest, d, d)
    shape = start.shape[:3]
    decays = np.full(shape, decay)
    decays[..., -1] = 0.0
    targets = np.broadcast_to(of.target[:, None, None], (*shape, d, d))
    depths = np.broadcast_to(np.array(layers)[:, None], shape)
    return Problems(targets, decays, depths, start)


def flattened(problems: Problems) -> Problems:
    """Return problems along one axis, for :func:`train`."""
    target, decay, layers, start = problems
    return Problems(
        target.reshape(-1, *target.shape[-2:]),
        decay.ravel(),
        layers.ravel(),
        start.reshape(-1, *start.shape[-3:]),
    )


class Crossing(NamedTuple):
    """The target s·uvᵀ at which a product with z > 0 is as good as zero, and that z, ``(problems,)``."""

    threshold: Values
    landing: Values
    moved: Values  # by the last step of the search, relative
    slope: Values


def crossing(
    left: Values, right: Values, decay: Values, layers: Values, lr: float, steps: int
) -> Crossing:
    """Search for s by Newton's method on the value at the end of a descent, less ½s².

    That difference has the slope −uᵀZv, and falls ever faster with s: Newton's steps come from above and do not pass.

    Args:
        left: u, ``(problems, d)``.
        right: v.
        decay: λ, ``(problems,)``.
        layers: L.
        lr: of the descents.
        steps: of each; they start where the one before has ended.
    """
    descent = _descent(lr, steps)
    deepest = int(layers.max())
    d = left.shape[1]
    s = np.full(len(decay), FAR)
    start = np.zeros((len(decay), deepest, d, d))
    for i, of_problem in enumerate(layers):
        root = FAR ** (1 / of_problem)
        start[i, :of_problem, 0, 0] = root
        start[i, 0] = root * np.outer(np.eye(d)[0], right[i])
        start[i, of_problem - 1] = root * np.outer(left[i], np.eye(d)[0])
    step = np.zeros_like(s)
    for _ in range(SEARCH):
        target = s[:, None, None] * np.einsum("pi,pj->pij", left, right)
        end = Ends(*map(np.asarray, descent(target, decay, layers, start)))
        z = np.einsum("pi,pij,pj->p", left, end.product, right)
        # at a minimum d/ds of its value is s − uᵀZv, as Z need not be varied:
        # less s, the slope of ½s², it is −z, and Newton's step is (value − ½s²)/z
        step = (end.value - 0.5 * s**2) / z
        s = s + step
        start = end.weights
    return Crossing(s, z, np.abs(step) / s, end.slope)
