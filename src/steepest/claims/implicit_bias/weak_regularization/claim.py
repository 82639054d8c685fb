"""Minimizers of a weakly regularized risk tend to the largest normalized margin.

The architecture decides in which norm of the predictor this margin is the largest. Where margins are homogeneous of
degree L in the parameters, consider the minimizer θ_λ of the risk plus λ‖θ‖². Its normalized margin tends to the
largest one, γ*, as λ → 0, at the slow rate 1/log(1/λ): the least margin gains γ* with each unit of ‖θ_λ‖^L. Seen in the
predictor, this is the ℓ2 margin for a linear model, the ℓ1 margin for a diagonal network, and the ℓ1 margin over all
neurons for a wide ReLU network. The limit is the same for the exponential and for the logistic loss; the way there
differs where λ is not small.
"""

from functools import partial
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray

from steepest import kit
from steepest.dynamics import descend
from steepest.nn.data import separable
from steepest.nn.losses import log_loss, logistic
from steepest.nn.networks import diagonal, two_layer
from steepest.nn.types import Network, Params, Values
from steepest.programs import (
    LossName,
    certified_excess,
    hard_margin,
    neuron_edges,
    neuron_margin,
    penalized_minimum,
    penalized_neurons,
    weak_guarantee,
)

MODELS = ("linear model", "diagonal network", "ReLU network")
DEGREES = np.array([1, 2, 2])  # of the margins in the parameters
# Margins of the programs are known to the root of their gaps at worst, 3e-4 where λ is not small.
DISTANCE = 3e-4
LOSSES: tuple[LossName, LossName] = ("exponential", "logistic")


class Setting(NamedTuple):
    """Examples for the first two models and, in the plane, for the ReLU network, with their maximal margins."""

    x: Values  # (seeds, n, d)
    y: Values  # (seeds, n)
    plane: Values  # (seeds, n, 2)
    signs: Values  # (seeds, n)
    margins: np.ndarray  # γ*, (3, seeds)


@kit.claim
class WeakRegularization(kit.Claim[Setting]):
    """Descent on the risk plus λ‖θ‖², from a start of its own for every λ and loss, in three models."""

    decades: tuple[kit.Positive, ...] = kit.param(
        (2, 10, 20),
        "λ = 10^−decades, weaker and weaker",
        scope=kit.choices(
            (2, 10, 20), (2, 9, 20), (2, 12, 24), why="descent takes longer for weaker ones"
        ),
    )
    n: kit.Count = kit.param(16, "examples", scope=kit.between(14, 20))
    dimension: kit.Count = kit.param(
        6, "inputs of the linear model and the diagonal network", scope=kit.between(5, 7)
    )
    margin: kit.Positive = kit.param(
        0.3,
        "their separation by construction",
        unit="length",
        scope=kit.between(0.25, 0.4, "descent takes longer for smaller ones"),
    )
    contradictions: Annotated[int, kit.Within(0)] = kit.param(
        0, "examples that appear again with the other label", unit="examples"
    )
    width: kit.Count = kit.param(
        48,
        "hidden neurons of the ReLU network",
        unit="neurons",
        scope=kit.between(40, 80, "with few neurons descent may end at another minimum"),
    )
    lr: kit.Positive = kit.param(
        0.01, "first step size on the logarithm of the regularized risk, lowered along a cosine"
    )
    momentum: kit.Positive = kit.param(0.99, "Nesterov's momentum")
    steps: kit.Count = kit.param(20_000, "steps of each descent", unit="steps")
    seeds: kit.Seeds = kit.param(3, "data sets and initial networks")

    kind = "limit"
    says = {
        "Minimizers of a weakly regularized risk": "minima",
        "tend to the largest normalized margin": "limit",
        "The architecture decides in which norm": ("minima", "limit"),
    }
    tiny = {
        "decades": (2, 8),
        "n": 8,
        "dimension": 3,
        "width": 16,
        "lr": 0.02,
        "momentum": 0.95,
        "steps": 4000,
        "seeds": 3,
    }
    full = {"n": 40, "dimension": 12, "width": 128, "lr": 0.005, "steps": 60_000, "seeds": 12}
    out_of_scope = {"contradictions": 1}

    @property
    def strengths(self) -> np.ndarray:
        """The logarithms of λ."""
        return -np.log(10) * np.array(self.decades)

    def axes(self):
        return {"model": MODELS, "loss": LOSSES, "decade": self.decades}

    def setting(self, key):
        for_sets, for_planes = (kit.keys(k, self.seeds) for k in jax.random.split(key))
        sets = kit.compiled(jax.vmap(self.draw))(for_sets, for_planes)
        x, y, plane, signs = (np.asarray(part) for part in sets)
        k = self.contradictions
        x, plane = (np.concatenate([a, a[:, :k]], 1) for a in (x, plane))
        y, signs = (np.concatenate([a, -a[:, :k]], 1) for a in (y, signs))
        linear = [hard_margin(a, b, "l2").margin for a, b in zip(x, y, strict=True)]
        sparse = [hard_margin(a, b, "l1").margin for a, b in zip(x, y, strict=True)]
        # v² + ‖w‖² ≥ 2 |v| ‖w‖: both layers pay for a neuron, so half of the ℓ1 margin over unit neurons is left
        neurons = [0.5 * neuron_margin(a, b).margin for a, b in zip(plane, signs, strict=True)]
        return Setting(x, y, plane, signs, np.array([linear, sparse, neurons]))

    def draw(self, for_set: kit.Key, for_plane: kit.Key) -> tuple[jax.Array, ...]:
        """Draw the examples of one seed: separable ones, and those in the plane."""
        data = separable(for_set, self.n, self.dimension, self.margin)
        return data.x, data.y, *_quadrants(for_plane, self.n)

    def hypotheses(self, setting):
        advice = "no network separates the examples; choose --contradictions 0"
        return [
            kit.assume(f"least maximal margin, {name}", margins.min(), ">", 0, advice)
            for name, margins in zip(MODELS, setting.margins, strict=True)
        ]

    def predict(self, setting):
        n = setting.y.shape[1]
        minima = [
            [
                [[_program(model, *data, s, loss) for s in self.strengths] for loss in LOSSES]
                for data in _sets(setting, model)
            ]
            for model in range(3)
        ]
        guarantee = [
            [
                [
                    [weak_guarantee(s, n, margin, degree, loss) for s in self.strengths]
                    for loss in LOSSES
                ]
                for margin in margins
            ]
            for margins, degree in zip(setting.margins, DEGREES, strict=True)
        ]
        return kit.law(
            limit=("model seed", setting.margins),
            minima=("model seed loss decade", minima),  # normalized margins
            # their least part of the limit; below zero it says nothing
            guarantee=("model seed loss decade", np.maximum(guarantee, 0)),
        )

    def observe(self, setting, key):
        ends = kit.compiled(self.minima)(
            setting[:4], kit.keys(key, 3), self.strengths, np.arange(len(LOSSES)) == 1
        )
        margins, sizes = (np.stack(column) for column in zip(*ends, strict=True))
        excess = np.empty(sizes.shape)
        for at in np.ndindex(*sizes.shape):
            model, seed, loss, i = at
            x, y = _sets(setting, model)[seed]
            strength = float(self.strengths[i])
            excess[at] = _excess(model, x, y, margins[at], sizes[at], strength, LOSSES[loss])
        dims = "model seed loss decade"
        return kit.seen(
            least=(dims, margins.min(-1)),  # margins
            length=(dims, sizes ** (DEGREES[:, None, None, None] / 2)),  # ‖θ‖^L
            excess=(dims, excess),  # certified, relative to the minimum
        )

    def minima(
        self, data: tuple, keys: kit.Key, strengths: jax.Array, is_logistic: jax.Array
    ) -> list[tuple]:
        """Return margins ``(seeds, losses, strengths, n)`` and ‖θ‖² at the end of every descent, one pair a model."""
        x, y, plane, signs = data
        ends = []
        for i, net in enumerate(self.nets()):
            starts = jax.random.split(keys[i], (self.seeds, len(LOSSES), len(self.decades)))
            examples = (plane, signs) if i == 2 else (x, y)
            one = partial(self.minimize, net)
            over_strengths = jax.vmap(one, (None, None, 0, 0, None))
            over_losses = jax.vmap(over_strengths, (None, None, 0, None, 0))
            over_seeds = jax.vmap(over_losses, (0, 0, 0, None, None))
            ends.append(over_seeds(*examples, starts, strengths, is_logistic))
        return ends

    def nets(self) -> list[Network]:
        """The three models, each started at random or, for the diagonal network, symmetrically."""
        flat = Network(
            lambda k: 0.1 * jax.random.normal(k, (self.dimension,)), lambda w, x: x @ w, MODELS[0]
        )
        return [flat, diagonal(self.dimension, 0.5), two_layer(2, self.width, scale=0.5)]

    def minimize(
        self,
        net: Network,
        x: jax.Array,
        y: jax.Array,
        key: kit.Key,
        log_strength: jax.Array,
        is_logistic: jax.Array,
    ) -> tuple:
        """Margins and ‖θ‖² at the end of descent on the logarithm of the regularized risk."""

        def log_risk(params: Params) -> jax.Array:
            margins = y * net.apply(params, x)
            logs = jnp.where(is_logistic, log_loss(logistic, margins), -margins)
            return jax.nn.logsumexp(logs) - jnp.log(len(y))

        size = lambda p: optax.tree.norm(p, squared=True)
        objective = lambda p: jnp.logaddexp(log_risk(p), log_strength + jnp.log(size(p)))
        rule = optax.sgd(
            optax.cosine_decay_schedule(self.lr, self.steps), self.momentum, nesterov=True
        )
        end = descend(objective, net.init(key), rule, self.steps, record=self.steps).params
        return y * net.apply(end, x), size(end)

    def run_conditions(self, observed):
        return [
            kit.assume(
                f"largest certified excess of the risk, {name}",
                excess.max(),
                "<=",
                5e-4,  # distances are asked to 3e-4
                "raise --steps",
            )
            for name, excess in zip(MODELS, observed["excess"], strict=True)
        ]

    def derive(self, law, seen):
        """Return normalized margins, and what the least margin gains per ‖θ‖^L from each penalty to the next."""
        normalized = seen.least / seen.length
        gains = [array.diff("decade") for array in (seen.least, seen.length)]
        return {
            "normalized": normalized,
            "part": normalized / law.limit,
            "gained": (gains[0] / gains[1]).rename(decade="between").drop_vars("between"),
        }

    def judge(self, law, seen):
        yield kit.agrees(
            "minima",
            abs(seen.normalized / law.minima - 1),
            DISTANCE,
            label="normalized margin of the minimum, relative distance from the program's",
        )
        yield kit.follows(
            "limit",
            law.limit,
            seen.gained.isel(between=-1),
            0.015,  # 0.6 % at most between these penalties, and up to 3 % between the strongest
            over="model loss",
            each=True,
            label="least margin gained per ‖θ‖^L between the weakest penalties",
        )
        yield kit.at_least(
            "guarantee",
            law.guarantee,
            seen.part,
            over="model loss decade",
            each=True,
            label="margin / γ*, at least what is guaranteed",
        )

    def rivals(self, setting, law):
        on_diagonal = law.model == MODELS[1]
        separators = [hard_margin(x, y).direction for x, y in _sets(setting, 1)]
        wide = [
            (y * (x @ w)).min() / np.abs(w).sum()
            for (x, y), w in zip(_sets(setting, 1), separators, strict=True)
        ]
        of_l2 = lambda array: xarray.where(on_diagonal, xarray.DataArray(wide, dims="seed"), array)
        double = xarray.where(law.model == MODELS[2], 2, 1)
        yield kit.rival(
            "the diagonal network finds the ℓ2 separator",
            "its penalty is a sum of squares",
            minima=of_l2(law.minima),
            limit=of_l2(law.limit),
        )
        yield kit.rival(
            "the logistic loss has the minima of the exponential one",
            "the limit is the same",
            id="one_loss",
            minima=law.minima.isel(loss=0, drop=True),
        )
        yield kit.rival(
            "λ need not be small",
            "the largest here is 10⁻² already",
            minima=law.minima.isel(decade=0, drop=True),
        )
        yield kit.rival(
            "every λ gives the maximal margin",
            "the theorem says so if its limit is forgotten",
            minima=law.limit,
            guarantee=1.0,
        )
        yield kit.rival(
            "only one layer pays for a neuron",
            "the ℓ1 margin over unit neurons is often given as γ*",
            minima=law.minima * double,
            limit=law.limit * double,
        )

    def controls(self, seen):
        exchanged = {"least": seen.least[[1, 0, 2]].values, "length": seen.length[[1, 0, 2]].values}
        dims = seen.least.dims
        yield kit.control(
            "the linear model for the diagonal network, and the reverse",
            "each architecture has a norm of its own",
            id="exchanged",
            **{name: (dims, values) for name, values in exchanged.items()},
        )
        yield kit.control(
            "each penalty's minima in place of the minima of the next weaker penalty",
            "λ does not tend to zero",
            id="stronger",
            least=(dims, np.roll(seen.least.values, 1, -1)),
            length=(dims, np.roll(seen.length.values, 1, -1)),
        )

    def figure(self, law, seen, rivals):
        decades = np.array(self.decades)
        wanted = law.minima / law.limit
        lines = lambda array, i: array[i].stack(line=("seed", "loss")).T.values
        gaps = 1 - seen.part.mean(("seed", "loss"))
        yield from (
            kit.panel(
                f"{name[0].upper()}{name[1:]}: up to γ*",
                "log₁₀ 1/λ",
                "margin / γ*",
                kit.predicted_curve(decades, lines(wanted, i), "program"),
                kit.observed_curve(decades, lines(seen.part, i), "descent", kind="points"),
                kit.context_curve(decades, law.guarantee[i, 0, 0], "guarantee, first seed"),
                ylim=(0.5, 1.02),
            )
            for i, name in enumerate(MODELS)
        )
        yield kit.panel(
            "The gap closes like 1/log(1/λ)",
            "log₁₀ 1/λ",
            "1 − margin / γ*, mean over seeds",
            *(
                kit.observed_curve(decades, gaps[i], name, shade=i / 2)
                for i, name in enumerate(MODELS)
            ),
            kit.predicted_curve(decades, float(gaps[0, 0]) * decades[0] / decades, "slope −1"),
            log="xy",
        )


def _quadrants(key: kit.Key, n: int) -> tuple[jax.Array, jax.Array]:
    """Points of the plane in four sectors of 60°, with labels that alternate: no line separates them."""
    for_turn, for_angle, for_length = jax.random.split(key, 3)
    number = jnp.arange(n) % 4
    turn = jax.random.uniform(for_turn, (), maxval=2 * jnp.pi)
    angle = (
        turn
        + number * jnp.pi / 2
        + jax.random.uniform(for_angle, (n,), minval=-1.0, maxval=1.0) * jnp.pi / 6
    )
    length = jax.random.uniform(for_length, (n, 1), minval=0.5, maxval=1.5)
    return length * jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1), 1.0 - 2.0 * (number % 2)


def _sets(setting: Setting, model: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The data sets of a model, one per seed."""
    x, y = (setting.plane, setting.signs) if model == 2 else (setting.x, setting.y)
    return list(zip(np.asarray(x), np.asarray(y), strict=True))


def _program(
    model: int, x: np.ndarray, y: np.ndarray, log_strength: float, loss: LossName = "exponential"
) -> float:
    """Normalized margin of the regularized minimum, by convex programs; ‖θ‖² is ‖β‖₁ in a diagonal network."""
    if model == 2:
        minimum = penalized_neurons(x, y, log_strength, loss)
    else:
        minimum = penalized_minimum(x, y, log_strength, "l1" if model else "l2", loss)
    return minimum.margins.min() / minimum.size ** (DEGREES[model] / 2)


def _excess(
    model: int,
    x: np.ndarray,
    y: np.ndarray,
    margins: Any,
    size: Any,
    log_strength: float,
    loss: LossName = "exponential",
) -> float:
    """By how much the risk may exceed its minimum, from what was observed alone."""
    edges = lambda q: neuron_edges(x, q * y)[0] / 2 if model == 2 else (q * y) @ x
    force = lambda q: float(np.linalg.norm(edges(q), ord=np.inf if model else 2))
    penalty = "l1" if model else "l2"
    return certified_excess(margins, float(size), log_strength, force, penalty, loss)
