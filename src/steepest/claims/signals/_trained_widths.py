"""Two-hidden-layer tanh networks of several widths, trained to a fixed loss, and powers of the width of what moves."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.signals._trained_networks import draw, mean_top, network, train
from steepest.nn.data import Dataset, digits, signs
from steepest.nn.networks import step_scale

CHANGES = ("output", "first layer", "second layer", "kernel")
IDS = ("output", "first", "second", "kernel")  # of their checks
SLOPES = {  # exponents of n in CHANGES
    "ntk": (0, -0.5, -0.5, -1),
    "mean-field": (0, 0, 0, 0),
    "mup": (0, 0, 0, 0),
    "printed": (0, -2, -1, -1),
}
# The next order is the kernel's own change, 12 % at n = 64 where it is lazy, over log 8.
NEXT_ORDER = 0.06
# That, and what networks that differ need: intervals of ± 0.05 whose middle moves by half as much.
SCATTERED = 0.15
REFERENCES = 3  # networks whose kernel sets the step size
REPEATS = 8  # narrow networks for each wide one, at most
WIDE = 2  # of the widest networks in each group


class Setting(NamedTuple):
    """Two classes of digits, and the step size of each parameterization in units of ``step_scale``."""

    data: Dataset
    rates: list[float]


@dataclass(frozen=True)
class TrainedWidths(kit.Claim[Setting]):
    """Two-hidden-layer tanh networks on two classes of digits, full-batch descent to a fixed loss."""

    widths: tuple[kit.Count, ...] = kit.param(
        (64, 192, 512),
        "width n of both hidden layers",
        unit="neurons",
        scope=kit.choices((64, 192, 512), (96, 192, 512), (64, 128, 400)),
    )
    examples: kit.Count = kit.param(
        20, "images of the digits 3 and 8", scope=kit.between(10, 30, "more change narrow networks")
    )
    target: kit.Positive = kit.param(
        0.02,
        "loss at which training stops; an output of zero has 0.5",
        scope=kit.between(0.015, 0.05, "fitted farther, narrow networks leave the first order"),
    )
    step: kit.Positive = kit.param(
        0.1,
        "step size as a share of 2/λ_max of the reference kernel",
        scope=kit.between(0.05, 0.2, "larger steps are no gradient flow"),
    )
    reference: kit.Count = kit.param(
        256, "width at which λ_max is taken", unit="neurons", scope=kit.between(128, 400)
    )
    most: kit.Count = kit.param(3000, "steps after which a network is given up", unit="steps")
    seeds: kit.Seeds = kit.param(
        18, "groups of initial networks, of two at the largest width and up to sixteen below"
    )

    @property
    @abstractmethod
    def trained(self) -> tuple[str, ...]:
        """Return the parameterizations that are trained."""

    def setting(self, key):
        raw = signs(digits((3, 8), self.examples))
        pixels = np.asarray(raw.x)
        data = Dataset(pixels - pixels.mean(0), np.asarray(raw.y), "centred digits")
        nets = [network(data.d, name, self.reference) for name in self.trained]
        weights = draw(kit.numpy_generator(key), nets[0], REFERENCES)
        stable = [2 / (mean_top(net, weights, data) * step_scale(net)) for net in nets]
        return Setting(data, [self.step * rate for rate in stable])

    def hypotheses(self, setting):
        smaller = "choose a --step below 1: above, descent catapults"
        wider = "the exponents are for wide networks"
        yield kit.assume("step size / (2/λ_max)", self.step, "<", 1, smaller)
        yield kit.assume("smallest width", min(self.widths), ">=", 50, wider)

    def powers(self, exponents: Sequence[float] | Sequence[Sequence[float]] | kit.Values):
        """Return n to these powers in units of the smallest width, ``(…, widths)``."""
        return self.growth ** np.asarray(exponents, float)[..., None]

    @property
    def growth(self) -> kit.Values:
        """Return n in units of the smallest width."""
        return np.array(self.widths, float) / self.widths[0]

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        data = setting.data
        ends = []
        for width in self.widths:
            # narrow networks scatter more and cost less: several for each wide one
            several = WIDE * min(REPEATS, max(self.widths) // width)
            nets = [network(data.d, name, width) for name in self.trained]
            weights = draw(rng, nets[0], self.seeds * several)
            ends.append(
                [
                    train(net, weights, data, rate, self.target, self.most)
                    for net, rate in zip(nets, setting.rates, strict=True)
                ]
            )
        by_seed = lambda values: values.reshape(self.seeds, -1, *values.shape[1:])
        changes = [[by_seed(end.change).mean(1) for end in row] for row in ends]
        steps = [[by_seed(end.steps).mean(1) for end in row] for row in ends]
        loss = [[by_seed(end.loss).max(1) for end in row] for row in ends]
        top = [
            [by_seed(np.linalg.eigvalsh(end.kernel)[:, -1]).mean(1) for end in row] for row in ends
        ]
        dims = "width parameterization seed"
        return kit.seen(
            change=(f"{dims} what", np.array(changes, float)),
            steps=(dims, steps),
            loss=(dims, loss),
            top=(dims, np.array(top, float)),
        )

    def run_conditions(self, observed):
        reached = observed["loss"].max() / self.target
        yield kit.assume("largest loss at the end / target", reached, "<=", 1, "raise --most")

    def derive(self, law, seen):
        output = seen.change.sel(what="output", drop=True)
        return {"moved": seen.change.where(seen.what == "output", seen.change / output)}

    def judge_changes(
        self, law: xarray.Dataset, seen: xarray.Dataset, name: str, features: float
    ) -> Iterator[kit.Check]:
        """Check the powers of the width with which networks of one parameterization change."""
        margins = (0.1, features, features, SCATTERED)
        for what, id, margin in zip(CHANGES, IDS, margins, strict=True):
            place = {"parameterization": name, "what": what}
            per_output = "" if what == "output" else " / output"
            yield kit.power(
                f"change_{name.replace('-', '_')}_{id}",
                law.change.sel(place, drop=True),
                seen.moved.sel(place, drop=True),
                margin,
                over="width",
                label=f"{name}: change of the {what}{per_output} against width",
            )
