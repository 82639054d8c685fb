"""Descent from a start of size α leaves a flat saddle after a time that is a power of 1/α.

The saddle is the origin of linear networks, ½‖W_L⋯W_1 − Y‖². It is strict with two layers, and flat with more, as the
risk falls only at order L there. With two layers the time is of order log(1/α), and with L ≥ 3 of order α^(2 − L).
"""

from typing import Annotated

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent.flat_saddle_time.experiment import (
    DEEPEST,
    FlatSaddlePoint,
    time_to_learn,
)
from steepest.landscapes import mode_time
from steepest.nn.types import Values


@kit.claim
class FlatSaddleTime(kit.Claim[Values]):
    """A target of three different singular values, networks of three depths, and small orthogonal starts."""

    singular: tuple[kit.Positive, ...] = kit.param(
        (3.0, 1.0, 0.5),
        "singular values of Y, the largest first",
        scope=kit.choices(
            (3.0, 1.0, 0.5),
            (2.5, 0.8, 0.3),
            (4.0, 1.2, 0.7),
            (3.0, 0.9),
            why="a second one nearer to the first is learned with it, which bends the line of two layers",
        ),
    )
    depths: tuple[Annotated[int, kit.Within(2, DEEPEST)], ...] = kit.param(
        (2, 3, 4), "layers L", unit="layers", scope=kit.choices((2, 3, 4), (2, 3), (2, 3, 5))
    )
    sizes: tuple[kit.Positive, ...] = kit.param(
        (0.03, 0.01, 0.003, 0.001),
        "α, size of the starts that leave the origin, decreasing",
        scope=kit.choices(
            (0.03, 0.01, 0.003, 0.001), (0.02, 0.005, 0.001), why="the law is for small starts"
        ),
    )
    share: kit.Fraction = kit.param(
        0.5, "share of the first mode that must be learned", scope=kit.between(0.4, 0.6)
    )
    seeds: kit.Seeds = kit.param(5, "random orthogonal starts")

    kind = "theorem"
    says = {
        "leaves a flat saddle after a time that is a power of 1/α": ("mode_time", "power"),
        "With two layers the time is of order log(1/α)": "two_layers",
    }
    tiny = {"sizes": (0.1, 0.05, 0.03), "seeds": 3}
    full = {"seeds": 30, "sizes": (0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)}
    out_of_scope = {"sizes": (2.0, 1.5, 1.4)}
    point = FlatSaddlePoint

    @property
    def deep(self) -> tuple[int, ...]:
        """Return the depths of three layers and more."""
        return tuple(depth for depth in self.depths if depth > 2)

    def axes(self):
        return {
            "depth": self.depths,
            "deep": self.deep,
            "scale": self.sizes,
            "from_scale": self.sizes[:-1],
        }

    def setting(self, key):
        d = len(self.singular)
        shape = (self.seeds, max(self.depths), d, d)
        return np.linalg.qr(kit.numpy_generator(key).normal(size=shape))[0]

    def hypotheses(self, setting):
        gaps = -np.diff(self.singular)
        ends = [(self.share * self.singular[0]) ** (1 / depth) for depth in self.depths]
        yield kit.assume(
            "smallest gap between singular values",
            gaps.min(initial=np.inf),
            ">",
            0,
            "give them largest first; equal ones are learned together",
        )
        yield kit.assume("singular values", len(self.singular), ">=", 2)
        yield kit.assume(
            "largest start α, relative to what is learned",
            max(self.sizes) / min(ends),
            "<=",
            0.1,
            "choose smaller --sizes: the law is for small starts",
        )
        yield kit.assume("networks of two layers", self.depths.count(2), "==", 1)
        yield kit.assume("deeper networks", len(self.deep), ">=", 1)
        yield kit.assume("sizes of starts", len(self.sizes), ">=", 3, "a shape is judged over them")

    def predict(self, setting):
        first = self.singular[0]
        sizes = np.array(self.sizes)
        times = [[mode_time(a, first, depth, self.share) for a in sizes] for depth in self.depths]
        smaller = sizes[:-1] / sizes[1:]
        return kit.law(
            time=("depth scale", times),
            # from one size of the start to the next
            # times go like log(1/α)/s_1 with two layers, and like α^(2 − L) with more
            added=("from_scale", np.log(smaller) / first),
            growth=("deep from_scale", [smaller ** (depth - 2) for depth in self.deep]),
        )

    def observe(self, setting, key):
        d = len(self.singular)
        layers = max(self.depths)
        # the start on the first mode alone comes before the random ones
        alone = np.zeros((1, layers, d, d))
        alone[..., 0, 0] = 1
        shapes = np.concatenate([alone, np.asarray(setting)])
        grid = (len(self.depths), len(self.sizes), len(shapes))
        scaled = np.array(self.sizes)[:, None, None, None, None] * shapes
        starts = np.broadcast_to(scaled, (*grid, layers, d, d)).reshape(-1, layers, d, d)
        depths = np.broadcast_to(np.array(self.depths)[:, None, None], grid).ravel()
        # in the singular vectors of Y, which changes no time
        target = np.diag(self.singular)
        time_of = lambda case: time_to_learn(case[0], case[1], target, self.share)
        every = kit.compiled(lambda starts, depths: jax.lax.map(time_of, (starts, depths)))
        times, arrived = (np.asarray(values).reshape(grid) for values in every(starts, depths))
        return kit.seen(
            mode_time=("depth scale", times[..., 0]),
            time=("depth scale start", times[..., 1:]),
            arrived=("depth scale every", arrived),
        )

    def run_conditions(self, observed):
        yield kit.assume("share of flows that arrived", observed["arrived"].mean(), "==", 1)

    def derive(self, law, seen):
        """Return how times grow from one size of the start to the next."""
        smaller = seen.time.shift(scale=-1)
        pairs = lambda times: times.isel(scale=slice(None, -1)).rename(scale="from_scale")
        deep = pairs(smaller / seen.time).sel(depth=list(self.deep)).rename(depth="deep")
        return {"added": pairs(smaller - seen.time).sel(depth=2, drop=True), "growth": deep}

    def judge(self, law, seen):
        yield kit.follows(
            "mode_time",
            law.time,
            seen.mode_time,
            1e-4,  # the flow's tolerance is 1e-6 a step
            label="time to learn one mode",
        )
        yield kit.follows(
            "two_layers",
            law.added,
            seen.added,
            # of the second mode, α^(2 − 2s_2/s_1) is left: 0.9 % at α = 0.03
            0.02,
            label="time that a smaller start adds, two layers",
        )
        yield kit.follows(
            "power",
            law.growth,
            seen.growth,
            # the next order, with three layers, is α, a few times
            0.05,
            label="factor of the time for a smaller start, three layers or more",
        )

    def rivals(self, setting, law):
        first = self.singular[0]
        depth = law.depth
        logs = np.log(1 / np.array(self.sizes))
        leading = law.scale ** (2.0 - depth) / (np.maximum(depth - 2, 1) * first)
        late = np.log(1 / law.scale) / first + 0 * depth
        yield kit.rival(
            "log(1/α)/s at every depth",
            "as from every strict saddle",
            time=late,
            growth=("from_scale", logs[1:] / logs[:-1]),
        )
        yield kit.rival(
            "α^(1 − L)/((L − 1)s), and log(1/α)/2s for two layers",
            "the gradient at the origin is of order α^(L − 1)",
            id="another_power",
            time=law.scale ** (1.0 - depth) / ((depth - 1) * first),
            growth=law.growth ** ((law.deep - 1) / (law.deep - 2)),
            added=law.added / 2,
        )
        yield kit.rival(
            "α^(2 − L)/((L − 2)s), or log(1/α)/s, without the rest",
            "the limit of small starts",
            id="leading_term",
            time=xarray.where(depth == 2, late, leading),
        )

    def controls(self, seen):
        yield kit.control(
            "random layers in place of starts on only the first mode",
            "they start on all modes",
            mode_time=seen.time.isel(start=0),
        )
        yield kit.control(
            "two layers for three or more, and the deepest for two",
            "the power depends on the depth",
            id="depths_exchanged",
            time=(seen.time.dims, seen.time.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        starts = [
            kit.observed_curve(
                self.sizes,
                seen.time[i].transpose("start", "scale"),
                "" if i else "random starts",
                shade=shade,
            )
            for i, shade in enumerate(np.linspace(0, 0.8, len(self.depths)))
        ]
        yield kit.curves(
            "A flat saddle is left after a power of 1/α",
            law.time,
            seen.mode_time,
            over="scale",
            by="depth",
            name="one mode, {} layers",
            x="α, size of the start",
            y="time",
            more=tuple(starts),
            log="xy",
        )
