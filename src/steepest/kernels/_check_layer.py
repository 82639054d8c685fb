"""What the rule of a layer must satisfy, whatever the layer does: a contract for layers of one's own."""

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.kernels._arguments import check_key
from steepest.kernels._gram import Gram, gram, gram_layers
from steepest.kernels.finite._sampled import SampledGram, sampled_gram
from steepest.kernels.wide._rule import rule_of
from steepest.nn.activations import Activation
from steepest.nn.layers import (
    Layer,
    LayeredNetwork,
    WideLimit,
    dense,
    flatten,
    global_pool,
    network,
)
from steepest.nn.types import Key

INPUTS = 4
EXACT = 1e-8
"""Relative to the diagonals, what roundings may add up to."""
OUTPUTS = 8
"""Products of two outputs scatter by 1.4 times their mean, so that several are averaged."""
STANDARD_ERRORS = 4.5
"""By which finite networks may be off: one in 10⁵ entries is beyond that by chance."""


class LayerLaw(Enum):
    """What a rule must satisfy."""

    FINITE = "wide finite networks have these kernels"
    MASKED = "wide finite networks have these kernels where some positions do not exist"
    PAIRS = "pairs of inputs have the same kernels in either order, and of one input with itself"
    DISPLACEMENTS = "displacements one by one give what all pairs of positions give"
    BOUND = "single precision differs from double precision by its bound at most"
    TRACED = "coefficients that JAX traces give the same kernels"


class LayerTrial(NamedTuple):
    """A law, tried on one network with the layer.

    Attributes:
        law: what is tried.
        network: the layers of the network.
        off: the largest deviation over the entries of both kernels, in units of what is allowed.
    """

    law: LayerLaw
    network: str
    off: float

    @property
    def holds(self) -> bool:
        """Tell whether no entry deviates by more than is allowed."""
        return self.off <= 1

    def __str__(self) -> str:
        """Write the law, whether it holds, and on which network."""
        verdict = "holds" if self.holds else "FAILS"
        return f"{verdict}, {self.off:.2g} of what is allowed: {self.law.value} ({self.network})"


class LayerCheck(NamedTuple):
    """All laws that were tried.

    Attributes:
        trials: one for each law and network.
    """

    trials: tuple[LayerTrial, ...]

    @property
    def broken(self) -> tuple[LayerLaw, ...]:
        """List the laws that do not hold."""
        failed = {trial.law for trial in self.trials if not trial.holds}
        return tuple(law for law in LayerLaw if law in failed)

    def __str__(self) -> str:
        """Write one line a trial."""
        return "\n".join(map(str, self.trials))


def check_layer(
    layer: Layer | Activation | str | Callable[[int], Layer],
    shape: tuple[int, ...],
    key: Key,
    *,
    width: int = 32,
    count: int = 1000,
) -> LayerCheck:
    """Try the kernels of a layer on small networks around it, which end in ``flatten()`` and in ``global_pool()``.

    Behind a layer that leaves no positions there is one network, as there is for inputs without space.

    Finite networks of two widths are extrapolated to infinite width, as their mean is off by order 1/width. With the
    defaults they tell a factor that is wrong by a tenth or more; half a minute of a processor.

    Args:
        layer: the layer, an activation by its name, or a function that makes a layer for a number of channels.
        shape: of one input, space first and channels last. Without space there is one network, and no mask is tried.
        key: random key of the inputs and of the finite networks.
        width: channels of the narrower finite networks.
        count: how many finite networks of each width are drawn.

    Raises:
        UserError: an empty shape, no key; a layer that draws, as dropout does; what the layer or its limit refuses.

    >>> from steepest.nn.layers import layer_norm
    >>> check_layer(layer_norm(), (3,), jax.random.key(0), width=16, count=50).broken
    ()
    """
    if not shape:
        raise UserError("check_layer needs the shape of one input, as (8, 3), got ()")
    check_key(key)
    if not isinstance(layer, Layer | Activation | str) and not callable(layer):
        raise UserError(
            f"check_layer needs a layer, an activation or a function that makes a layer, got {type(layer).__name__}; "
            "try layer_norm()"
        )
    of_inputs, of_networks = jax.random.split(key)

    def made(width: int) -> Layer | Activation | str:
        return layer if isinstance(layer, Layer | Activation | str) else layer(width)

    def around(width: int, *ending: Layer) -> LayeredNetwork:
        layers = [dense(width), made(width), dense(width), "erf", *ending, dense(OUTPUTS)]
        return network(*layers, shape=shape, parameterized="ntk", c_w=1.5, c_b=0.2)

    behind = network(dense(width), made(width), dense(width), shape=shape)
    _need_no_draws(behind.limit())
    x = np.asarray(jax.random.normal(of_inputs, (INPUTS, *shape)), float)
    trials: list[LayerTrial] = []
    for ending in [(flatten(),), (global_pool(),)] if behind.output[:-1] else [()]:
        narrow = around(width, *ending)
        limit = narrow.limit()
        deviations = [
            *_of_finite_networks((narrow, around(2 * width, *ending)), x, of_networks, count),
            *_of_the_limit(limit, x),
        ]
        layers = ", ".join(stage.name for stage in limit.stages)
        trials += [LayerTrial(law, layers, off) for law, off in deviations]
    return LayerCheck(tuple(trials))


def _need_no_draws(limit: WideLimit) -> None:
    """Raise where an input has other kernels with itself than with its equal."""
    if any(rule_of(node).draws for node in limit.nodes):
        raise UserError(
            "check_layer compares with finite networks that leave nothing out, but this layer draws for each input, as "
            "dropout does; try its other parts alone"
        )


def _of_finite_networks(
    networks: tuple[LayeredNetwork, LayeredNetwork], x: NDArray, key: Key, count: int
) -> Iterator[tuple[LayerLaw, float]]:
    """Compare the limit with draws of both widths, with and without a mask that leaves out last positions."""
    masks: dict[LayerLaw, NDArray | None] = {LayerLaw.FINITE: None}
    if x.ndim > 2:
        exists = np.ones(x.shape[:-1], bool)
        exists[1::2, ..., -1] = False
        masks[LayerLaw.MASKED] = exists
    for law, mask in masks.items():
        given: dict[str, Any] = {"mask": mask, "count": count}
        narrow, wide = (sampled_gram(net, jnp.asarray(x), key, **given) for net in networks)
        limit = gram(networks[0].limit(), x, mask=mask)
        off_nngp = _extrapolated(limit.nngp, (narrow.nngp, wide.nngp), _errors(narrow, wide, 0))
        off_ntk = _extrapolated(limit.ntk, (narrow.ntk, wide.ntk), _errors(narrow, wide, 1))
        yield law, max(off_nngp, off_ntk)


def _errors(narrow: SampledGram, wide: SampledGram, kernel: int) -> NDArray:
    """Return the standard errors of ``2 K(2n) − K(n)`` of the covariance, 0, or the tangent kernel, 1."""
    of_narrow = (narrow.nngp_error, narrow.ntk_error)[kernel]
    of_wide = (wide.nngp_error, wide.ntk_error)[kernel]
    return np.sqrt(4 * of_wide**2 + of_narrow**2)


def _extrapolated(limit: NDArray, drawn: tuple[NDArray, NDArray], errors: NDArray) -> float:
    """Return how far ``2 K(2n) − K(n)`` is off, in which the term of order 1/n cancels."""
    narrow, wide = drawn
    return float(np.max(np.abs(2 * wide - narrow - limit) / errors)) / STANDARD_ERRORS


def _of_the_limit(limit: WideLimit, x: NDArray) -> Iterator[tuple[LayerLaw, float]]:
    """Try the laws that need no finite network."""
    kernels = gram(limit, x)
    given_twice = gram(limit, x, x)
    yield LayerLaw.PAIRS, _relative(kernels, given_twice) / EXACT
    (at_once,) = gram_layers(limit, x, layers=[len(limit.stages) - 1])
    yield LayerLaw.DISPLACEMENTS, _relative(kernels, at_once) / EXACT
    single = gram(limit, x.astype(np.float32))
    yield LayerLaw.BOUND, _relative(kernels, single) / (single.error + kernels.error)
    yield LayerLaw.TRACED, _relative(kernels, _traced(limit, x)) / EXACT


def _traced(limit: WideLimit, x: NDArray) -> Gram:
    def kernels(coefficients: Any) -> tuple[Any, Any]:
        inside = gram(limit.with_coefficients(coefficients), x)
        return inside.nngp, inside.ntk

    nngp, ntk = jax.jit(kernels)(limit.coefficients)
    return Gram(np.asarray(nngp), np.asarray(ntk), 0.0)


def _relative(kernels: Gram, others: Any) -> float:
    """Return the largest difference, relative to the roots of products of the diagonals."""
    off = [
        np.abs(given - kernel) / np.sqrt(np.outer(np.diag(kernel), np.diag(kernel)))
        for kernel, given in ((kernels.nngp, others.nngp), (kernels.ntk, others.ntk))
    ]
    return float(np.max(off))
