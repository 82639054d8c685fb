"""The limit of infinite width by quadrature over neurons, and what is left of width and step, by its derivatives."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit

SPACING = 0.4  # between neighbouring nodes of the quadrature of N(0, I), in its deviations
REACH = 12  # nodes on each side of the middle, along each of the two inputs
STEPS = 10  # of Runge and Kutta's method, from each time to the next


class Limit(NamedTuple):
    """The limit at several times, and the constants of the distance from it.

    Attributes:
        outputs: at the examples, shape ``(times, n)``.
        movement: root of the mean square of ‖w − w₀‖, shape ``(times,)``.
        start: F, with which E distance² = F/N at width N, shape ``(times,)``.
        noise: G, with which E distance² = ε G at step ε of one-pass SGD, shape ``(times,)``.
        alone: what F would be if neurons did not see each other's deviations, shape ``(times,)``.
    """

    outputs: kit.Values
    movement: kit.Values
    start: kit.Values
    noise: kit.Values
    alone: kit.Values


def limit_of(x: kit.Values, y: kit.Values, times: Sequence[float], shift: float = 0.0) -> Limit:
    """Return the limit of networks with two inputs, w ~ N(0, I) at the start, under the flow w' = −∇_w Ψ.

    Neurons stand at the nodes of a lattice, each with its mass under the normal distribution. The outputs of a network
    are a function of these masses, and of the share of each example in each step. A network of N neurons has random
    masses, of covariance (diag(m) − m mᵀ)/N; one-pass SGD has random shares. Both are small, so that derivatives of the
    outputs by masses and shares give the variances: the central limit of the start and the noise of the steps, carried
    along by the linearized flow.

    Args:
        x: examples, shape ``(n, 2)``.
        y: targets, shape ``(n,)``.
        times: increasing and positive.
        shift: of the lattice, in spacings: the errors of lattices half a spacing apart are opposite. Steps are longer
            by so much of themselves, and shorter, in turn.
    """
    line = SPACING * (np.arange(-REACH, REACH + 1) + shift)
    nodes = np.stack(np.meshgrid(line, line), -1).reshape(-1, 2)
    # the trapezoidal rule in the plane, which converges exponentially for analytic integrands
    mass = np.exp(-(nodes**2).sum(1) / 2)
    lengths = np.diff(times, prepend=0.0)[:, None] / STEPS
    lengths = lengths * (1 + shift * (-1.0) ** np.arange(STEPS))
    laws = _limit(nodes, mass / mass.sum(), lengths, x, y)
    return Limit(*map(np.asarray, laws))


def relative_difference(found: Limit, other: Limit, width: int) -> float:
    """Return the largest relative difference of two limits in the squared distances that they predict up to a width."""
    of_outputs = ((found.outputs - other.outputs) ** 2).mean(1) * width / found.start
    of_start = np.abs(other.start / found.start - 1)
    of_noise = np.abs(other.noise / found.noise - 1)
    return float(np.max([of_outputs, of_start, of_noise]))


def _laws(
    nodes: jax.Array, mass: jax.Array, lengths: jax.Array, x: jax.Array, y: jax.Array
) -> Limit:
    shares = jnp.full((*lengths.shape, len(x)), 1 / len(x))

    def outputs(mass: jax.Array, shares: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return outputs, and the neurons themselves, at all times."""

        def slope(w: jax.Array, share: jax.Array) -> jax.Array:
            active = jnp.tanh(w @ x.T)
            return -((1 - active**2) * (mass @ active - y) * share) @ x

        def until(w: jax.Array, span: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            def step(w: jax.Array, of: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, None]:
                length, share = of
                first = slope(w, share)
                second = slope(w + length / 2 * first, share)
                third = slope(w + length / 2 * second, share)
                fourth = slope(w + length * third, share)
                return w + length / 6 * (first + 2 * second + 2 * third + fourth), None

            w, _ = jax.lax.scan(step, w, span)
            return w, w

        _, path = jax.lax.scan(until, nodes, (lengths, shares))
        return jnp.einsum("k,tkn->tn", mass, jnp.tanh(path @ x.T)), path

    by = jax.jacrev(outputs, (0, 1), has_aux=True)
    (by_mass, by_share), path = by(mass, shares)
    active = jnp.tanh(path @ x.T)
    # δᵀ(diag(m) − m mᵀ)δ, N times what random masses make of derivatives δ
    variance = lambda values: values**2 @ mass - (values @ mass) ** 2
    # a step of the flow has length/ε draws, of one example each
    of_draws = by_share.var(-1) / lengths
    return Limit(
        jnp.einsum("k,tkn->tn", mass, active),
        jnp.sqrt(((path - nodes) ** 2).sum(-1) @ mass),
        variance(by_mass).mean(-1),
        of_draws.sum((-2, -1)).mean(-1),
        variance(active.swapaxes(1, 2)).mean(-1),
    )


_limit = kit.compiled(_laws)
