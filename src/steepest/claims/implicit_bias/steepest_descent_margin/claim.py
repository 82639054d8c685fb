"""Steepest descent finds the largest margin in its own norm, and Adam the largest margin in ℓ∞.

The gap to the largest margin is of order 1/‖w‖ with plain steps. It falls like 1/√t with steps of length η/√t. With the
exponential loss on separable data, the norm that measures a step decides which separator is found. Gradient descent
finds the largest margin in ℓ2, descent along signs the largest in ℓ∞, descent along single coordinates (boosting) the
largest in ℓ1, and every p between has its own. The part of the weights outside the limit direction stays bounded while
the weights grow, so the gap of the margin is of the order of one over their norm. Plain steps shrink with the risk, so
weights grow like log t. With steps of length η/√t, whatever the risk, weights grow like √t.

Adam divides each coordinate by the size of its own recent gradients. On a risk that changes slowly this is descent
along signs. Adam is run on log R, whose gradients keep their size.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias.steepest_descent_margin.experiment import (
    FIRST,
    FLOOR,
    GRADIENT,
    ORDERS,
    SIGNS,
    follow,
    margins,
    marks,
    sizes,
)
from steepest.nn.data import separable
from steepest.programs import MarginProgram, hard_margin

NAMES = ("l1", "l2", "l4", "linf")
SHOWN = ("ℓ1", "ℓ2", "ℓ4", "ℓ∞")


class Setting(NamedTuple):
    """The sets, shapes ``(seeds, n, d)`` and ``(seeds, n)``, and for every seed a margin program in each norm."""

    x: np.ndarray
    y: np.ndarray
    programs: list[list[MarginProgram]]


@kit.claim
class SteepestDescentMargin(kit.Claim[Setting]):
    """Linear classifiers from zero on synthetic separable sets, by descent in four norms and by Adam."""

    n: kit.Count = kit.param(20, "examples", scope=kit.between(10, 40, "any; more take time"))
    dimension: kit.Count = kit.param(
        6,
        "dimension of the inputs, d",
        scope=kit.between(6, 10, "in fewer the separators of the norms are alike; more take time"),
    )
    margin: kit.Positive = kit.param(
        0.5, "ℓ2 margin of the sets by construction", unit="length", scope=kit.between(0.3, 1.0)
    )
    flipped: kit.Fraction = kit.param(0.0, "part of the labels that is flipped")
    lr: kit.Positive = kit.param(
        1.0,
        "η of the steps η/√t, in the norm of the descent; Adam's too",
        scope=kit.between(0.5, 2.0, "gaps are larger with smaller steps, at the same rate"),
    )
    plain_lr: kit.Positive = kit.param(0.1, "η of plain steepest descent", unit="1/curvature")
    steps: Annotated[int, kit.Within(1000)] = kit.param(
        20_000,
        "steps of every descent; the first hundredth is left out of fits",
        unit="steps",
        scope=kit.between(10_000, 40_000, "the ends of the margins need them"),
    )
    seeds: kit.Seeds = kit.param(64, "sets")

    kind = "limit"
    says = {
        "finds the largest margin in its own norm": "margin",
        "Adam the largest margin in ℓ∞": "adam",
        "The gap to the largest margin is of order 1/‖w‖": tuple(
            f"one_over_norm_{name}" for name in NAMES
        ),
        "falls like 1/√t with steps of length η/√t": tuple(f"rate_{name}" for name in NAMES),
    }
    tiny = {"seeds": 3, "n": 6, "dimension": 3, "steps": 10_000}
    full = {"seeds": 200, "steps": 200_000}
    out_of_scope = {"n": 60, "flipped": 0.3}

    def axes(self):
        return {"norm": (1, 2, 3, 4), "step": tuple(marks(self.steps).tolist())}

    def setting(self, key):
        drawn = kit.compiled(jax.vmap(self._draw))(kit.keys(key, self.seeds))
        x, y = (np.asarray(part) for part in drawn)
        programs = [
            [hard_margin(inputs, labels, order) for order in ORDERS]
            for inputs, labels in zip(x, y, strict=True)
        ]
        return Setting(x, y, programs)

    def _draw(self, key: kit.Key) -> tuple[jax.Array, jax.Array]:
        for_data, for_flips = jax.random.split(key)
        data = separable(for_data, self.n, self.dimension, self.margin)
        flips = jax.random.uniform(for_flips, data.y.shape) < self.flipped
        return data.x, jnp.where(flips, -data.y, data.y)

    def hypotheses(self, setting):
        least = min(program.margin for programs in setting.programs for program in programs)
        gradient = min(programs[GRADIENT].margin for programs in setting.programs)
        growth = self.plain_lr * gradient**2 * self.steps / FIRST
        yield kit.assume("smallest maximal margin", least, ">", 0, "the data are not separable")
        yield kit.assume("least η γ̄² t of the fits, plain steps", growth, ">", 1, "raise --steps")

    def predict(self, setting):
        largest = np.array([[p.margin for p in programs] for programs in setting.programs])
        steps = marks(self.steps)
        return kit.law(
            margin=("norm seed", largest.T),
            adam=("seed", largest[:, SIGNS]),
            decay=("step", np.sqrt(steps[-1] / steps)),
            product=("step", np.ones(len(steps))),
        )

    def observe(self, setting, key):
        paths = follow(setting.x, setting.y, self.lr, self.plain_lr, self.steps)
        signed = setting.x * setting.y[..., None]
        own = lambda weights: np.stack(
            [margins(w, signed, order) for w, order in zip(weights, ORDERS, strict=True)]
        )
        of_gradient = [margins(paths.unit[GRADIENT], signed, order) for order in ORDERS]
        dims = "norm seed step"
        return kit.seen(
            margin=(dims, own(paths.unit)),
            gradient_margin=(dims, np.stack(of_gradient)),
            plain_margin=(dims, own(paths.plain)),
            plain_size=(dims, sizes(paths.plain)),
            tail_margin=(dims, own(paths.tail)),
            tail_size=(dims, sizes(paths.tail)),
            adam=("seed", margins(paths.adam, signed, np.inf)[:, -1]),
            forgetful=("seed", margins(paths.forgetful, signed, np.inf)[:, -1]),
        )

    def derive(self, law, seen):
        """Return the gaps of the margins, relative to the largest, and the gap of plain steps times ‖w‖."""
        gap = (1 - seen.margin / law.margin).clip(min=FLOOR)
        plain_gap = (1 - seen.plain_margin / law.margin).clip(min=FLOOR)
        return {"gap": gap, "plain_gap": plain_gap, "product": plain_gap * seen.plain_size}

    def judge(self, law, seen):
        yield kit.follows(
            "margin",
            xarray.ones_like(law.margin),
            seen.margin.isel(step=-1, drop=True) / law.margin,
            0.02,  # the gap is the bounded part over ‖w‖ = 2η√t, which is 283 at the end
            over="norm",
            label="descent in each norm, steps η/√t: its margin over the largest",
        )
        yield from (
            kit.power(
                f"rate_{name}",
                law.decay,
                seen.gap.sel(norm=place, drop=True),
                0.1,
                over="step",
                label=f"{shown}, steps η/√t: gap of the margin against t",
            )
            for place, (name, shown) in enumerate(zip(NAMES, SHOWN, strict=True), 1)
        )
        yield from (
            kit.power(
                f"one_over_norm_{name}",
                law.product,
                seen.product.sel(norm=place, drop=True),
                0.1,  # ‖w‖ itself grows by t^0.2 here
                over="step",
                label=f"{shown}, plain steps: gap of the margin times ‖w‖ against t",
            )
            for place, (name, shown) in enumerate(zip(NAMES, SHOWN, strict=True), 1)
        )
        yield kit.follows(
            "adam",
            xarray.ones_like(law.adam),
            seen.adam / law.adam,
            0.03,  # its steps are signs up to its memory, whose lag the steps η/√t leave behind
            label="Adam on log R: its ℓ∞ margin over the largest",
        )

    def rivals(self, setting, law):
        signed = setting.x * setting.y[..., None]
        directions = np.array([[p.direction for p in every] for every in setting.programs])
        # what the separator of another norm is worth in each norm, (norm of the separator, norm, seed)
        worth = np.array(
            [
                [margins(directions[:, [i]], signed, p)[:, 0] for p in ORDERS]
                for i in range(len(ORDERS))
            ]
        )
        neighbours = (1, 2, 3, 2)
        next_norm = np.stack([worth[other, i] for i, other in enumerate(neighbours)])
        logarithm = np.log(self.plain_lr * law.margin.sel(norm=2).mean() ** 2 * law.step)
        yield kit.rival(
            "always the ℓ2 separator",
            "for gradient descent it is the ℓ2 margin",
            margin=("norm seed", worth[GRADIENT]),
        )
        yield kit.rival(
            "the separator of the next norm",
            "the nearest norm of the four",
            id="next_norm",
            margin=("norm seed", next_norm),
        )
        yield kit.rival(
            "Adam finds the ℓ2 separator",
            "Adam is said to be gradient descent with adapted steps",
            adam=("seed", worth[GRADIENT, SIGNS]),
        )
        yield kit.rival(
            "1/log t for steps η/√t too",
            "it is the rate of plain steps",
            id="logarithmic",
            decay=logarithm[-1] / logarithm,
        )
        yield kit.rival(
            "1/t for steps η/√t",
            "normalized steps with momentum are proved to reach it",
            decay=law.decay**2,
        )
        yield kit.rival(
            "plain steps: gap like 1/‖w‖²",
            "the risk's second order decides in other problems",
            product=law.product / logarithm,
        )
        yield kit.rival(
            "plain steps: a gap that stays",
            "the direction could settle before it is the best",
            product=law.product * logarithm,
        )

    def controls(self, seen):
        yield kit.control(
            "gradient descent, read in all norms",
            "it finds the margin of ℓ2 whatever norm reads it",
            margin=seen.gradient_margin,
        )
        yield kit.control(
            "plain steps in place of η/√t", "weights grow like log t", margin=seen.plain_margin
        )
        yield kit.control(
            "a loss with a power's tail",
            "examples far from the margin pull for ever",
            id="tail",
            plain_margin=seen.tail_margin,
            plain_size=seen.tail_size,
        )
        yield kit.control(
            "Adam on R with steps too long for its memory",
            "gradients die faster than the memory of their squares, so that its steps are no signs",
            adam=seen.forgetful,
        )

    def figure(self, law, seen, rivals):
        steps = seen.step.values
        shades = np.linspace(0, 1, len(ORDERS))
        unit = seen.gap.mean("seed").values
        plain = seen.plain_gap.mean("seed").values
        size = seen.plain_size.mean("seed").values
        anchor = unit[GRADIENT][-1]
        ratio = np.sort((seen.adam / law.adam).values)
        forgetful = np.sort((seen.forgetful / law.adam).values)
        share = np.arange(1, len(ratio) + 1) / len(ratio)
        wrong = rivals["logarithmic"].decay.values
        yield kit.panel(
            "With steps η/√t the gap falls like 1/√t in each norm",
            "step",
            "gap of the margin, relative",
            *(
                kit.observed_curve(steps, gap, shown, shade=shade)
                for gap, shown, shade in zip(unit, SHOWN, shades, strict=True)
            ),
            kit.predicted_curve(steps, anchor * law.decay.values, "1/√t"),
            kit.rival_curve(steps, anchor * wrong, "1/log t"),
            log="xy",
        )
        yield kit.panel(
            "With plain steps it falls like 1/‖w‖",
            "‖w‖",
            "gap of the margin, relative",
            *(
                kit.observed_curve(norm, gap, shown, shade=shade)
                for norm, gap, shown, shade in zip(size, plain, SHOWN, shades, strict=True)
            ),
            *(
                kit.predicted_curve(norm, gap[-1] * norm[-1] / norm, "1/‖w‖" if not i else "")
                for i, (norm, gap) in enumerate(zip(size, plain, strict=True))
            ),
            log="xy",
        )
        yield kit.panel(
            "Adam finds the margin of ℓ∞",
            "ℓ∞ margin / the largest",
            "share of sets below",
            kit.observed_curve(ratio, share, "on log R", kind="steps"),
            kit.observed_curve(forgetful, share, "on R", kind="steps", shade=1.0),
        )
