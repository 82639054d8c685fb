"""From small starts, ReLU networks learn both classes exactly when neurons of both signs live.

A network of h neurons does so with the probability 1−2(1−p/2)^h+(1−p)^h, where p is the probability that a neuron
lives. On pairs of examples p = ½+arcsin(μ)/2π. The data are orthogonally separable: examples of the same class are at
acute angles to each other, examples of different classes at obtuse angles. A neuron turns in the pull of the examples
that it sees, and lives if at some time it sees an example of its own class. The probability p of this depends on the
data. On a pair, two examples of opposite classes at the angle cos⁻¹(−μ), p is ½ + arcsin(μ)/2π; on many examples p is
almost one. Networks of h neurons learn both classes if at least one neuron of each sign lives.
"""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import xarray
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.features.selection_width.experiment import (
    Setting,
    draw_pairs,
    draw_sets,
    train_all,
)
from steepest.claims.features.selection_width.figure import panels_of_shares
from steepest.claims.features.selection_width.theory import (
    both_signs_live,
    living_on_pairs,
    living_on_sets,
    products_of_pairs,
    share_living_on_pairs,
    share_that_learns,
)
from steepest.nn.data import orthogonal_separability


@kit.claim
class SelectionWidth(kit.Claim[Setting]):
    """Networks of several widths, narrow ones the first neurons of wide ones, on pairs and on sets of more examples."""

    widths: tuple[kit.Count, ...] = kit.param(
        (2, 3, 5, 8),
        "h",
        unit="neurons",
        scope=kit.choices((2, 3, 5, 8), (2, 4, 8, 12), (3, 6, 12), why="wider ones always learn"),
    )
    mus: tuple[kit.Fraction, ...] = kit.param(
        (0.1, 0.5, 0.9),
        "μ = −cos(x₊, x₋) of the pairs",
        scope=kit.choices(
            (0.1, 0.5, 0.9), (0.05, 0.85), (0.2, 0.6, 0.95), why="nearer to one steps overshoot"
        ),
    )
    examples: kit.Count = kit.param(
        12, "examples of the larger sets, even", scope=kit.choices(6, 8, 12, 16)
    )
    dimension: kit.Count = kit.param(
        4, "d", scope=kit.between(2, 8, "in more dimensions a step is as long as what it decides")
    )
    mu: kit.Fraction = kit.param(
        0.1, "least y_i y_j cos(x_i, x_j) of the larger sets aimed at", scope=kit.between(0.05, 0.3)
    )
    scale: kit.Positive = kit.param(
        1e-3, "ε of the start", scope=kit.between(1e-4, 1e-2, "the law is for ε → 0")
    )
    flipped: kit.Fraction = kit.param(
        0.0,
        "part of the labels of the larger sets that is flipped",
        scope=kit.choices(0.0, why="a flipped label ends separability"),
    )
    draws: kit.Seeds = kit.param(1000, "starts on each pair")
    seeds: kit.Seeds = kit.param(240, "larger sets")
    starts: kit.Count = kit.param(2, "starts on each larger set")
    steps: kit.Count = kit.param(
        800, "steps of descent on log R", unit="steps", scope=kit.between(800, 1200)
    )

    kind = "empirical law"
    says = {
        "learn both classes exactly when neurons of both signs live": (
            "per_start",
            "many_per_start",
        ),
        "1−2(1−p/2)^h+(1−p)^h": ("rate", "many_rate"),
        "On pairs of examples p = ½+arcsin(μ)/2π": "pair_lives",
    }
    tiny = {
        "widths": (2, 4),
        "mus": (0.2, 0.9),
        "examples": 4,
        "draws": 12,
        "seeds": 3,
        "starts": 4,
        "steps": 600,
    }
    full = {"draws": 6000, "seeds": 200, "starts": 20, "mus": (0.05, 0.3, 0.5, 0.7, 0.9)}
    out_of_scope = {"flipped": 0.3}

    def axes(self):
        return {"width": self.widths, "mu": self.mus}

    def check_fields(self) -> None:
        """Refuse sets that do not hold both classes alike, and widths of which none can succeed."""
        if self.examples % 2 or self.examples < 4:
            raise kit.UserError(
                f"examples must be even and at least 4, got {self.examples}; try 12"
            )
        if self.dimension < 2:
            raise kit.UserError(f"dimension must be at least 2, got {self.dimension}; try 4")
        if max(self.widths) < 2:
            raise kit.UserError("widths must reach 2, one neuron a class; try 2 4 8")

    def setting(self, key):
        width = max(self.widths)

        def draw(key: kit.Key) -> Setting:
            for_pairs, for_sets = jax.random.split(key)
            pairs = draw_pairs(for_pairs, self.mus, self.dimension, width, self.draws)
            sets = draw_sets(
                for_sets,
                seeds=self.seeds,
                starts=self.starts,
                examples=self.examples,
                dimension=self.dimension,
                mu=self.mu,
                flipped=self.flipped,
                width=width,
            )
            return Setting(pairs, sets)

        return jax.tree.map(np.asarray, kit.compiled(draw)(key))

    def hypotheses(self, setting):
        separability = kit.compiled(jax.vmap(orthogonal_separability))
        least = float(np.min(separability(setting.sets.x, setting.sets.y)))
        yield kit.assume(
            "μ of the data",
            min(least, *self.mus),
            ">",
            0,
            "the data are not orthogonally separable",
        )
        yield kit.assume("largest μ of a pair", max(self.mus), "<=", 0.98, "steps overshoot")
        yield kit.assume("dimension d", self.dimension, "<=", 12, "steps of descent are too long")
        yield kit.assume("scale ε of the start", self.scale, "<=", 1e-2, "choose a smaller --scale")
        yield kit.assume(
            "steps of descent", self.steps, ">=", 600, "raise --steps: classes are not learned"
        )

    def predict(self, setting):
        lives = living_on_pairs(setting.pairs)
        share = share_living_on_pairs(self.mus)
        return kit.law(**self.laws(setting, lives, share, living_on_sets(setting.sets)))

    def laws(
        self, setting: Setting, lives: NDArray, share: NDArray, on_sets: NDArray
    ) -> Mapping[str, Any]:
        """Return all laws that follow from which neurons live on pairs, from their share, and from those on sets."""
        rates = share_that_learns(on_sets.mean((1, 2)), self.widths)
        learn = both_signs_live(lives, setting.pairs.start.v, self.widths)
        many_learn = both_signs_live(on_sets, setting.sets.start.v, self.widths)
        return {
            "success": ("draw mu width", learn),
            "rate": ("mu width", share_that_learns(share, self.widths)),
            "pair_lives": ("mu", share),
            "many_success": ("seed start width", many_learn),
            "many_rate": ("width", rates.mean(0)),
            "many_live": ("", on_sets.mean()),
        }

    def observe(self, setting, key):
        return train_all(setting, self.widths, self.scale, self.steps)

    def judge(self, law, seen):
        yield kit.share(
            "per_start",
            0.0,
            seen.success != law.success,
            0.02,  # steps of finite length decide one start in a hundred, the interval takes 0.005
            over="width",
            label="pairs: share of starts that disagree with their own draw",
        )
        yield kit.share(
            "many_per_start",
            0.0,
            seen.many_success != law.many_success,
            0.04,  # the interval of no disagreement in 240 sets takes 0.025
            over="width",
            label="larger sets: share of starts that disagree with their own draw",
        )
        yield kit.share(
            "rate",
            law.rate,
            seen.success,
            0.1,  # the interval takes 0.045, as much chance, and steps of finite length 0.01
            over="mu width",
            label="pairs: share of starts that learn both classes",
        )
        yield kit.share(
            "many_rate",
            law.many_rate,
            seen.many_success,
            0.12,  # the interval takes 0.06, and chance as much
            over="width",
            label="larger sets: share of starts that learn both classes",
        )
        yield kit.share(
            "pair_lives",
            law.pair_lives,
            seen.pair_lives,
            0.04,  # the interval takes 0.012, as much chance, and steps of finite length 0.01
            over="mu",
            label="pairs: share of neurons that live",
        )
        yield kit.share(
            "many_live",
            law.many_live,
            seen.many_live,
            0.03,
            label=f"share of neurons that live on {self.examples} examples",
        )

    def rivals(self, setting, law):
        with_own, other = products_of_pairs(setting.pairs)
        sets = setting.sets
        products = np.einsum("sthd,snd->sthn", sets.start.w, sets.x) > 0
        of_own_class = sets.start.v[..., None] * sets.y[:, None, None] > 0
        half = np.full(len(self.mus), 0.5)
        sees_own = self.laws(setting, with_own > 0, half, (products & of_own_class).any(-1))
        sees_any = self.laws(
            setting,
            (with_own > 0) | (other > 0),
            0.25 + share_living_on_pairs(self.mus),
            products.any(-1),
        )
        all_live = self.laws(
            setting,
            np.ones_like(with_own, bool),
            np.ones_like(half),
            np.ones_like(products[..., 0]),
        )
        yield kit.rival(
            "all neurons live: 1 − 2^(1−h)",
            "one neuron of each sign is all that two classes need",
            id="all_live",
            **all_live,
        )
        yield kit.rival(
            "only neurons live that see their own class at the start",
            "a neuron that sees only the other class is pushed off all examples",
            id="own_class",
            **sees_own,
        )
        yield kit.rival(
            "all neurons live that see any example",
            "a neuron that has a gradient turns to its class",
            **sees_any,
        )
        yield kit.rival(
            "½ + μ/4 of the neurons live on pairs",
            "it is right at right angles and at opposite examples",
            accepted="it is 0.047 off at most, which the interval and steps of finite length hide",
            pair_lives=0.5 + law.mu / 4,
        )

    def controls(self, seen):
        on_pairs = seen.isel(mu=0)
        yield kit.control(
            "pairs and larger sets interchanged",
            "the starts are others, and so is the share that lives",
            success=_cycled(seen.many_success, seen.success),
            pair_lives=_cycled(seen.many_live, seen.pair_lives),
            many_success=_cycled(on_pairs.success, seen.many_success),
            many_live=_cycled(on_pairs.pair_lives, seen.many_live),
        )

    def figure(self, law, seen, rivals):
        return panels_of_shares(law, seen, rivals, self.examples)


def _cycled(other: xarray.DataArray, like: xarray.DataArray) -> xarray.DataArray:
    """Return the starts of another experiment, over again where there are too few, on the axes of this one."""
    along = [dim for dim in ("width", "neuron") if dim in like.dims]
    starts = [dim for dim in other.dims if dim not in along]
    flat = other.stack(of=starts).transpose("of", *along).values
    repetitions = [dim for dim in like.dims if dim not in along]
    count = int(np.prod([like.sizes[dim] for dim in repetitions]))
    over_again = flat[np.arange(count) % len(flat)]
    sizes = [like.sizes[dim] for dim in (*repetitions, *along)]
    return xarray.DataArray(over_again.reshape(sizes), dims=(*repetitions, *along)).transpose(
        *like.dims
    )
