"""The local learning coefficient of trained weights: how fast the volume of weights with a low risk shrinks."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.given import real, shown, whole
from steepest.core.intervals import Interval, mean_interval
from steepest.measurement.adapters import Subject, in_evaluation, subject, unwrapped

ACCEPTED = 0.8  # share of moves that a good step of Hamiltonian Monte Carlo has accepted
TRACKING = 0.6  # power of the count with which a step adapts less and less, in (1/2, 1]
FAR = 1e100  # a gradient from which squares would overflow
FLAT = 1e-12  # first curvature assumed where the gradient is zero
MIXED = 1.05  # Gelman and Rubin's ratio, above which chains have not seen the same


@dataclass(frozen=True, eq=False)
class LearningCoefficient:
    """An estimate of the local learning coefficient.

    Attributes:
        value: λ̂, the mean over chains.
        interval: Student's, of the mean over chains, which are independent.
        chains: the estimate of each chain, shape ``(c,)``.
        losses: the mean loss along each chain after its warm-up, shape ``(c, t)``.
        loss: the mean loss at the given weights.
        inverse_temperature: nβ.
        localization: γ.
        accepted: share of moves that were accepted.
        ratio: Gelman and Rubin's R̂ of the losses, each chain in two halves; above 1.05 the chains have not mixed.
        below: share of the visited weights with a smaller loss than the given ones, which then were no minimum.
    """

    value: float
    interval: Interval
    chains: Float[np.ndarray, " c"]
    losses: Float[np.ndarray, "c t"]
    loss: float
    inverse_temperature: float
    localization: float
    accepted: float
    ratio: float
    below: float

    @property
    def mixed(self) -> bool:
        """Tell whether the chains have seen the same losses, so that the interval can be believed."""
        return self.ratio <= MIXED


def learning_coefficient(
    model: Any,
    loss: Any,
    data: Any,
    *,
    inverse_temperature: float | None = None,
    localization: float = 1.0,
    chains: int = 4,
    steps: int = 400,
    warm_up: int = 200,
    leapfrogs: int = 8,
    seed: int = 0,
    micro_batch: int = 1024,
) -> LearningCoefficient:
    r"""Estimate the local learning coefficient λ of trained weights w*, by sampling near them.

    Weights are drawn with a density proportional to ``exp(−nβ L(w) − γ ‖w − w*‖²/2)``, where L is the mean loss, and

    .. math:: \hat λ = nβ\,(\mathbb E\, L(w) - L(w^*)).

    A regular minimum in p dimensions has λ = p/2; the more directions are flat, the smaller λ is. Of a quadratic risk
    with curvatures h_i the estimate is ``½ Σ_i nβ h_i/(nβ h_i + γ)``, so that curvatures far below γ/nβ do not count.
    Where m sets of flat directions cross, as in deep linear networks, the estimate lies below λ by about
    ``(m − 1)/log nβ``. ``steepest.landscapes.linear_network_singularity`` has the exact λ and m of those. The estimate
    is local: other weights with the same function may have another.

    Moves are made by Hamiltonian Monte Carlo over all examples. The Metropolis test keeps the density exact at any
    step size, where Langevin steps on batches have a bias that depends on it. So the cost is high: of passes over the
    data with a gradient there are ``chains × (steps + warm_up) × (leapfrogs + 1)/2`` in the mean.

    Args:
        model: trained, as for ``measure``. It is read in evaluation mode, and left exactly as it is.
        loss: as for ``measure``, the mean over examples.
        data: a pair ``(x, y)`` or an iterable of batches.
        inverse_temperature: nβ; by default ``n/log n`` for n examples.
        localization: γ ≥ 0, which keeps the chains near w*.
        chains: how many independent ones, at least two.
        steps: moves of each after its warm-up.
        warm_up: moves before, in which the step size is found.
        leapfrogs: largest number of gradient steps in a move; each move draws one from 1 to this.
        seed: of the chains.
        micro_batch: as for ``measure``.

    Raises:
        UserError: numbers out of their ranges; a loss that is not finite at the given weights; what ``measure``
            refuses.

    Source: Lau, Furman, Wang, Murfet and Wei 2023, The local learning coefficient; Watanabe 2009.

    >>> import jax.numpy as jnp
    >>> square = lambda f, y: ((f - y) ** 2).mean() / 2
    >>> model = (lambda w, x: x @ w, jnp.zeros(2))
    >>> data = np.eye(2), np.zeros(2)
    >>> few = {"chains": 2, "steps": 30, "warm_up": 20, "leapfrogs": 4}
    >>> estimate = learning_coefficient(model, square, data, inverse_temperature=100.0, **few)
    >>> bool(0.5 < estimate.value < 2.0)  # 1 in regular models of two weights
    True
    """
    chains = whole("chains", chains, 2)
    steps = whole("steps", steps, 4)
    warm_up = whole("warm_up", warm_up, 1)
    leapfrogs = whole("leapfrogs", leapfrogs, 1)
    if not 0 <= real("localization", localization) < math.inf:
        raise UserError(
            f"localization is a finite number of at least 0, got {shown(localization)}; try 1.0"
        )
    with in_evaluation(unwrapped(model)):
        attached = subject(model, loss, data, micro_batch=micro_batch)
        beta = _inverse_temperature(inverse_temperature, attached)
        well = _Well(attached, beta, float(localization))
        start = attached.risk()
        if not math.isfinite(start):
            raise UserError(
                f"the mean loss at these weights is {start}; take a checkpoint from before the divergence"
            )
        walks = [
            _walk(well, steps, warm_up, leapfrogs, np.random.default_rng([seed, chain]))
            for chain in range(chains)
        ]
    losses = np.stack([walk.losses for walk in walks])
    estimates = beta * (losses.mean(1) - start)
    return LearningCoefficient(
        value=float(estimates.mean()),
        interval=mean_interval(estimates),
        chains=estimates,
        losses=losses,
        loss=start,
        inverse_temperature=beta,
        localization=float(localization),
        accepted=float(np.mean([walk.accepted for walk in walks])),
        ratio=_potential_scale_reduction(losses),
        below=float((losses < start).mean()),
    )


def _inverse_temperature(given: float | None, attached: Subject) -> float:
    """Return nβ: as given, or Watanabe's n/log n."""
    if given is None:
        examples = sum(attached.batches.sizes())
        if examples < 3:
            raise UserError(
                f"n/log n needs three examples at least, got {examples}; give inverse_temperature="
            )
        return examples / math.log(examples)
    if not 0 < real("inverse_temperature", given) < math.inf:
        raise UserError(
            f"inverse_temperature is nβ, a finite number above 0, got {shown(given)}; leave it out for n/log n"
        )
    return float(given)


class _Well:
    """The potential ``U = nβ L + γ ‖w − w*‖²/2`` around trained weights, in float64 around a model of any precision."""

    def __init__(self, attached: Subject, beta: float, localization: float):
        self.attached = attached
        self.beta = beta
        self.localization = localization
        self.centre = attached.values().astype(float)

    def gradient(self, weights: NDArray) -> NDArray:
        slope = self._attached_at(weights).gradient().astype(float)
        return self.beta * slope + self.localization * (weights - self.centre)

    def loss(self, weights: NDArray) -> float:
        return self._attached_at(weights).risk()

    def potential(self, weights: NDArray, loss: float) -> float:
        away = weights - self.centre
        return self.beta * loss + self.localization * float(away @ away) / 2

    def _attached_at(self, weights: NDArray) -> Subject:
        return self.attached.at(weights.astype(self.attached.dtype))


class _Place(NamedTuple):
    """Weights, and the loss and the gradient of the potential there."""

    weights: NDArray
    loss: float
    gradient: NDArray


class _Walk(NamedTuple):
    losses: NDArray
    accepted: float


def _walk(well: _Well, steps: int, warm_up: int, leapfrogs: int, rng: np.random.Generator) -> _Walk:
    """Run one chain of Hamiltonian Monte Carlo (Neal 2011) from the trained weights."""
    place = _Place(well.centre, well.loss(well.centre), well.gradient(well.centre))
    step = _first_step(well, place, rng)
    losses = np.empty(steps)
    accepted = 0.0
    for move in range(warm_up + steps):
        proposal, chance = _propose(well, place, step, int(rng.integers(1, leapfrogs + 1)), rng)
        if rng.random() < chance:
            place = proposal
        if move < warm_up:
            # Robbins and Monro: the step grows while more moves are accepted than should be
            step *= math.exp((chance - ACCEPTED) / (move + 1) ** TRACKING)
        else:
            losses[move - warm_up] = place.loss
            accepted += chance / steps
    return _Walk(losses, accepted)


def _first_step(well: _Well, place: _Place, rng: np.random.Generator) -> float:
    """Return ``1/√h`` for the root mean square h of the potential's curvatures, by a random direction u."""
    direction = rng.standard_normal(len(place.weights))
    direction /= np.linalg.norm(direction)
    away = math.sqrt(np.finfo(well.attached.dtype).eps) * (1 + float(np.abs(well.centre).max()))
    change = (well.gradient(place.weights + away * direction) - place.gradient) / away
    # E ‖H u‖² = Σ h²/p
    return 1 / math.sqrt(max(float(np.linalg.norm(change)), FLAT))


def _propose(
    well: _Well, place: _Place, step: float, count: int, rng: np.random.Generator
) -> tuple[_Place, float]:
    """Follow Hamilton's equations for some leapfrog steps; return where they end, and how likely that is accepted."""
    momentum = rng.standard_normal(len(place.weights))
    energy = well.potential(place.weights, place.loss) + momentum @ momentum / 2
    weights = place.weights
    gradient = place.gradient
    for _ in range(count):
        half = momentum - step / 2 * gradient
        weights = weights + step * half
        gradient = well.gradient(weights)
        momentum = half - step / 2 * gradient
        if not np.abs(gradient).max() < FAR:
            return place, 0.0  # the step is too large by far
    proposal = _Place(weights, well.loss(weights), gradient)
    change = energy - well.potential(weights, proposal.loss) - momentum @ momentum / 2
    return proposal, math.exp(min(0.0, change)) if math.isfinite(change) else 0.0


def _potential_scale_reduction(losses: Float[np.ndarray, "c t"]) -> float:
    """Return Gelman and Rubin's R̂ over halves of chains: 1 where all have the same law, larger where they have not."""
    half = losses.shape[1] // 2
    halves = np.concatenate([losses[:, :half], losses[:, -half:]])
    within = float(halves.var(axis=1, ddof=1).mean())
    between = float(halves.mean(axis=1).var(ddof=1))
    if within == 0:
        return 1.0 if between == 0 else math.inf
    return math.sqrt((half - 1) / half + between / within)
