"""The descents of least-squares-min-norm: four mirror descents, single examples, and steepest descent in two norms."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.dynamics import descend, mirror_descent, steepest_descent
from steepest.nn.losses import mean_risk, squared
from steepest.nn.types import Key, Values
from steepest.programs import Potential

NORMS = ("l1", "linf")


class Setting(NamedTuple):
    """Underdetermined least squares, one a seed; targets and starts differ by law."""

    x: Values  # (seeds, n, d)
    y: Values  # (seeds, laws, n)
    start: Values  # w_0, (seeds, laws, d)


class Ends(NamedTuple):
    """Where descents end, of each problem and multiple of the largest step."""

    limit: Values  # of the mirror descents, (seeds, steps, laws, d)
    steepest: Values  # in each of the norms, from the first law's start, (seeds, steps, norms, d)
    examples: Values  # of SGD by single examples, from the first law's start, (seeds, steps, d)


def ends(
    setting: Setting,
    potentials: tuple[Potential, ...],
    smoothness: Values,
    multiples: Values,
    steps: int,
    key: Key,
) -> Ends:
    """Run every descent at every step size.

    Args:
        setting: the problems.
        potentials: ψ, one a law.
        smoothness: of the risk relative to each ψ, and in each of the norms, ``(seeds, laws + norms)``.
        multiples: of one over the smoothness.
        steps: of every descent.
        key: of the order of single examples.
    """

    def follow(
        x: jax.Array,
        y: jax.Array,
        start: jax.Array,
        smooth: jax.Array,
        key: Key,
        multiple: jax.Array,
    ) -> Ends:
        rules = [mirror_descent(psi, multiple / smooth[i]) for i, psi in enumerate(potentials)]
        laws = [_end(x, y[i], start[i], rule, steps) for i, rule in enumerate(rules)]
        norms = [
            steepest_descent(norm, multiple / smooth[len(potentials) + i])
            for i, norm in enumerate(NORMS)
        ]
        others = [_end(x, y[0], start[0], rule, steps) for rule in norms]
        examples = _end_of_single_examples(x, y[0], start[0], multiple, steps, key)
        return Ends(jnp.stack(laws), jnp.stack(others), examples)

    over_steps = jax.vmap(follow, (None, None, None, None, None, 0))
    over_seeds = kit.compiled(jax.vmap(over_steps, (0, 0, 0, 0, 0, None)))
    ended = over_seeds(*setting, smoothness, kit.keys(key, len(setting.x)), multiples)
    return Ends(*map(np.asarray, ended))


def _end(
    x: jax.Array, y: jax.Array, start: jax.Array, rule: optax.GradientTransformation, steps: int
) -> jax.Array:
    risk = mean_risk(squared, lambda w, x: x @ w, x, y)
    return descend(risk, start, rule, steps, record=steps).params


def _end_of_single_examples(
    x: jax.Array, y: jax.Array, start: jax.Array, multiple: jax.Array, steps: int, key: Key
) -> jax.Array:
    """Return the end of gradient descent by one example a step, drawn uniformly."""

    def one_example(w: jax.Array, key: Key) -> jax.Array:
        i = jax.random.randint(key, (), 0, len(y))
        return 0.5 * (x[i] @ w - y[i]) ** 2

    risk = mean_risk(squared, lambda w, x: x @ w, x, y)
    # one example's loss has the curvature ‖x_i‖² along x_i: the largest sets the step
    rule = optax.sgd(multiple / (x**2).sum(1).max())
    path = descend(risk, start, rule, steps, record=steps, stochastic=one_example, key=key)
    return path.params
