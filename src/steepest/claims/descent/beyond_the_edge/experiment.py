"""One point beyond the edge: full-batch descent whose step size makes the start s times too sharp."""

from dataclasses import dataclass
from functools import partial

import jax
import numpy as np
import optax

from steepest import kit
from steepest.claims.descent._digits_network import (
    MARGIN,
    Setting,
    relative_sharpness,
    tanh_on_digits,
)
from steepest.dynamics import descend
from steepest.kit.points import Arrays, equal

LATE = 5  # records at the end over which the late sharpness is averaged, evenly over the last fifth of the steps
CEILING = 1e6  # risk from which a descent counts as diverged; it starts near one half
START_PRODUCTS = (
    30  # Hessian products for the sharpness at the start, from which the step size follows
)


@dataclass(frozen=True)
class BeyondPoint(kit.Point):
    """The late sharpness in units of 2/η, which should be one, over the sharpness at the start and the width."""

    multiple: kit.Positive
    width: kit.Count
    depth: kit.Count
    c_w: kit.Positive
    steps: kit.Count
    n: kit.Count
    seeds: kit.Seeds
    products: kit.Count

    precision = "float32"
    batched = ("multiple",)
    diagram = {"multiple": "linear:1.2:6:13", "width": "16,32,64,128"}
    labels = {"diverged": "share of seeds that diverge", "peak": "largest risk / risk at the start"}
    contours = {"diverged_measured": (0.5, "half of the seeds diverge")}
    diagram_remarks = (
        "The step size is that of each seed: s times 2 over the sharpness of its own start.",
        "Points with s above 2 are out of range: the claim says nothing there.",
        "Where half of the seeds diverge is measured, no prediction. All points share the first images of the set.",
    )

    def start(self, key: kit.Key, images: kit.Key | None = None) -> Setting:
        """Return the network, its risk on centred digits and the keys of its initial points.

        Args:
            key: of the initial points.
            images: key that draws the images; the first ones without it, as in a diagram.
        """
        return tanh_on_digits(
            key,
            self.seeds,
            n=self.n,
            width=self.width,
            depth=self.depth,
            c_w=self.c_w,
            images=images,
        )

    @property
    def marks(self) -> np.ndarray:
        """Return the steps at which the sharpness is measured: powers of two, and the last fifth."""
        last = np.round(np.linspace(0.8, 1, LATE) * self.steps).astype(int)
        early = np.append(0, 2 ** np.arange(20))
        return np.union1d(early[early < last[0]], last)

    def predict(self, setting):
        return kit.Prediction(late=1.0)

    def observe(self, setting, key):
        begin = self.start(key)
        one = lambda seed: self.descent(begin, seed, self.multiple)
        return jax.vmap(one)(begin.keys)

    def descent(
        self,
        setting: Setting,
        seed: kit.Key,
        multiple: jax.Array | float,
        slower: jax.Array | float = 1.0,
    ) -> dict[str, jax.Array]:
        """Descend from one start with η = 2s/λ_0, and measure its sharpness in units of 2/η.

        Args:
            setting: network and risk.
            seed: of the initial point.
            multiple: s.
            slower: the step size is η over this; units stay those of η.

        Returns:
            ``risk`` at every step; ``sharpness`` and its relative ``residual`` at the marks.
        """
        start = setting.net.init(seed)
        first = relative_sharpness(setting.risk, start, START_PRODUCTS)
        edge = first["value"] / multiple  # 2/η
        path = descend(
            setting.risk,
            start,
            optax.sgd(2 / edge / slower),
            self.steps,
            observe={"params": lambda params: params},
            ceiling=CEILING,
        )
        visited = jax.tree.map(lambda leaf: leaf[self.marks], path.observed["params"])
        measured = jax.lax.map(
            partial(relative_sharpness, setting.risk, products=self.products), visited
        )
        return {
            "risk": path.risk,
            "sharpness": measured["value"] / edge,
            "residual": measured["residual"],
            "first_residual": first["residual"],
            "diverged": path.diverged,
        }

    def run_conditions(self, observed):
        yield from within_reach(self.multiple, self.multiple, self.depth)
        yield from resolved(observed["first_residual"], observed["residual"])

    def judge(self, predicted, observed):
        yield equal(
            "late_sharpness",
            predicted["late"],
            late_mean(observed["sharpness"]),
            MARGIN,
            label="late sharpness / (2/η)",
            aggregate="all",
        )

    def quantities(self, predicted: kit.Prediction, observed: Arrays) -> dict[str, float]:
        peak = observed["risk"].max(-1) / observed["risk"][:, 0]
        return {"diverged": float(observed["diverged"].mean()), "peak": float(peak.mean())}


def within_reach(smallest: float, largest: float, depth: int) -> list[kit.Hypothesis]:
    """Check that the starts are beyond the edge, and neither farther nor deeper than the law was found to reach."""
    return [
        kit.assume(
            "smallest s = sharpness at the start / (2/η)", smallest, ">", 1, "raise --multiple"
        ),
        kit.assume(
            "largest s", largest, "<=", 2, "farther out some networks diverge; lower --multiple"
        ),
        kit.assume(
            "hidden layers", depth, "<=", 2, "deeper networks diverge at s = 1.6; lower --depth"
        ),
    ]


def resolved(first: np.ndarray, later: np.ndarray) -> list[kit.Hypothesis]:
    """Check the relative residuals of the sharpness at the start and of later ones; NaN where a descent diverged."""
    return [
        kit.assume("relative residual of a sharpness at the start", first.max(), "<=", 0.05),
        kit.assume(
            "largest relative residual of a sharpness",
            np.nanmax(later),
            "<=",
            0.2,
            "raise --products",
        ),
    ]


def late_mean(sharpness: np.ndarray) -> np.ndarray:
    """Return the mean over the last records, ``(..., records)``."""
    return sharpness[..., -LATE:].mean(-1)
