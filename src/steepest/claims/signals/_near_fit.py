"""Networks of many widths or depths that nearly fit their targets, and the largest stable steps of their descent."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.signals._near_fit_limits import limit_of, steps_of_limits
from steepest.claims.signals._near_fit_networks import LAWS, shape_of
from steepest.claims.signals._near_fit_steps import Case, Search, Setting, draw, largest_steps

Rows = list[list[Case]]


@dataclass(frozen=True)
class NearFit(kit.Claim[Setting]):
    """Networks that nearly fit their targets, on digits pooled to 4×4 pixels."""

    examples: kit.Count = kit.param(
        8, "digits 0 and 1, P of them", unit="examples", scope=kit.between(6, 12)
    )
    residual: kit.Positive = kit.param(
        0.01,
        "size of the residual at the start, ε",
        scope=kit.between(0.003, 0.01, "single precision below, a nonlinear network above"),
    )
    steps: kit.Count = kit.param(
        30, "steps in which the risk must not rise", unit="steps", scope=kit.between(25, 60)
    )
    smallest: kit.Positive = kit.param(1e-4, "lower end of the bisection")
    largest: kit.Positive = kit.param(100.0, "upper end of the bisection")
    halvings: kit.Count = kit.param(11, "halvings of the bisection, on a logarithmic scale")
    siblings: kit.Count = kit.param(
        32,
        "networks at the start whose λ_max is measured for each trained network, itself among them",
    )
    seeds: Annotated[int, kit.Within(8, 10_000)] = kit.param(32, "independent trained networks")

    @property
    @abstractmethod
    def rows(self) -> Rows:
        """Return the networks, a row for each law or activation."""

    @property
    def cases(self) -> list[Case]:
        """Return all networks once: what two laws ask for is trained once."""
        return list(dict.fromkeys(case for row in self.rows for case in row))

    def setting(self, key):
        return draw(key, self.cases, examples=self.examples, seeds=self.seeds, count=self.siblings)

    def near_the_fit(self, setting: Setting, narrowest: int, deep: float) -> Iterator:
        """Assume that networks are linear, that few steps tell, and that the limit kernel is near.

        Args:
            setting: the networks.
            narrowest: the smallest width n.
            deep: the largest depth over width.
        """
        yield kit.assume(
            "residual ε/√n",
            self.residual / narrowest**0.5,
            "<=",
            0.01,
            "the network must be linear there",
        )
        yield kit.assume(
            "share of the risk along the top eigenvector",
            setting.share,
            ">=",
            0.05,
            "take more steps",
        )
        yield kit.assume("largest depth/width", deep, "<=", 0.1, "the kernel is for n ≫ depth")

    def limits(self, setting: Setting) -> dict[Case, float]:
        """Return the step of the limit kernel for each network."""
        limits = [limit_of(*case) for case in self.cases]
        steps = steps_of_limits(np.asarray(setting.x, float), limits)
        return dict(zip(self.cases, steps, strict=True))

    def largest_steps(self, setting: Setting) -> dict[Case, np.ndarray]:
        """Return the largest stable step of each network, by descent."""
        search = Search(self.residual, self.steps, self.smallest, self.largest, self.halvings)
        return largest_steps(setting, self.cases, search)


def wide_rows(widths: Sequence[int], depth: int) -> Rows:
    """Return the networks of the width laws, a row for each law."""
    shapes = [shape_of(n, depth, "relu") for n in widths]
    return [[(shape, law) for shape in shapes] for law in LAWS.values()]


def deep_rows(width: int, depths: Sequence[int], activations: Sequence[str]) -> Rows:
    """Return the networks of the depth laws, a row for each activation."""
    return [
        [(shape_of(width, depth, sigma), LAWS["ntk"]) for depth in depths] for sigma in activations
    ]


def on_axes(values: Mapping[Case, np.ndarray | float], rows: Rows) -> np.ndarray:
    """Return what every network has as rows × columns, after the seeds where there are some."""
    grid = np.array([[values[case] for case in row] for row in rows])
    return np.moveaxis(grid, -1, 0) if grid.ndim == 3 else grid


@dataclass(frozen=True)
class NearFitInDepth(NearFit):
    """Such networks of one width and several depths."""

    activations: tuple[str, ...] = kit.param(
        ("relu",),
        "activations of networks of several depths: relu, linear, tanh",
        unit="name",
        scope=kit.choices(("relu",), ("relu", "linear"), ("relu", "tanh")),
    )
    depths: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4),
        "their hidden layers",
        unit="layers",
        scope=kit.choices((1, 2, 4), (1, 2, 3), (1, 3, 5), why="the limit is for L ≪ n"),
    )
    width: kit.Count = kit.param(
        128,
        "their width n",
        unit="neurons",
        scope=kit.between(128, 256, "narrower networks are too far from the limit"),
    )
