"""n hyperplanes in general position cut R^d into exactly Σ_{i≤d} C(n, i) cells.

A ReLU network with one hidden layer of n neurons has as many linear pieces, if no output weight is zero: it is linear
on each cell of n hyperplanes, where each hyperplane is the place at which one neuron switches. Normal weights and
biases are in general position almost surely, and then the count of cells is a constant, not an average; C(n − 1, d)
cells are bounded. Without biases all hyperplanes meet in the origin and there are fewer cells.
"""

from collections.abc import Callable
from math import comb, factorial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import kit
from steepest.claims.expressivity.hyperplane_cells.experiment import (
    TOGETHER,
    Tally,
    count_cells,
    count_distinct,
    finite,
)
from steepest.dynamics import descend
from steepest.geometry import (
    bounded_cell_count,
    cell_count,
    cells,
    central_cell_count,
    general_position,
    parallel_cell_count,
)
from steepest.nn.data import digits
from steepest.nn.networks import mlp
from steepest.nn.types import Values

# of cells times hyperplanes, the signs of one arrangement; it takes some ten seconds
LARGEST = 300_000
MOST_DIMENSIONS = 100
HALF = 0.5  # counts are whole numbers


class Arrangement(NamedTuple):
    """Hyperplanes w_j·x + b_j = 0 of every seed, and the weights of the neurons that switch there."""

    normals: Values  # (seeds, n, d)
    offsets: Values  # (seeds, n)
    outputs: Values  # (seeds, n)


class Setting(NamedTuple):
    """Arrangements of every size, and the digits with initial networks, one per seed."""

    arrangements: list[Arrangement]
    images: Values  # principal components, (images, components)
    classes: Values  # one-hot, (images, 10)
    start: Any  # parameters, (seeds, …)


@kit.claim
class HyperplaneCells(kit.Claim[Setting]):
    """Random hyperplanes, and the first layer of a ReLU network that is trained on digits."""

    planes: tuple[kit.Count, ...] = kit.param(
        (20, 20, 12, 10, 5),
        "numbers n of hyperplanes, or neurons",
        unit="neurons",
        scope=kit.choices((20, 20, 12, 10, 5), (15, 18, 10, 9, 6), (24, 16, 11, 8, 7)),
    )
    dimensions: tuple[kit.Count, ...] = kit.param((2, 3, 4, 10, 8), "d, one for each n")
    bias_std: kit.NonNegative = kit.param(
        1.0,
        "standard deviation of the biases; weights have 1",
        scope=kit.between(0.3, 3.0, "smaller ones are soon below rounding"),
    )
    parallel: kit.Count = kit.param(1, "hyperplanes with the same normal")
    width: kit.Count = kit.param(
        20, "neurons of the network on digits", unit="neurons", scope=kit.between(10, 24)
    )
    components: kit.Count = kit.param(
        3, "principal components of the digits that it reads", scope=kit.between(2, 3)
    )
    images: kit.Count = kit.param(300, "digits on which it is trained", scope=kit.between(200, 600))
    steps: kit.Count = kit.param(
        200,
        "steps of its descent",
        unit="steps",
        scope=kit.between(100, 400, "it must leave the origin"),
    )
    lr: kit.Positive = kit.param(
        0.1, "step size of its descent", scope=kit.between(0.03, 0.15, "longer ones may diverge")
    )
    seeds: kit.Seeds = kit.param(5, "independent arrangements and networks")

    kind = "theorem"
    says = {
        "cut R^d into exactly Σ_{i≤d} C(n, i) cells": "cells",
        "A ReLU network with one hidden layer of n neurons has as many linear pieces": "pieces",
    }
    tiny = {
        "planes": (6, 5, 5, 4, 3),
        "dimensions": (2, 3, 4, 4, 5),
        "width": 6,
        "images": 50,
        "steps": 20,
        "seeds": 3,
    }
    full = {
        "planes": (20, 20, 12, 10, 5, 30, 16),
        "dimensions": (2, 3, 4, 10, 8, 3, 5),
        "images": 1797,
        "width": 30,
        "seeds": 20,
    }
    out_of_scope = {"parallel": 3}

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Return n and d of each arrangement."""
        return list(zip(self.planes, self.dimensions, strict=True))

    def axes(self):
        names = [f"n = {n}, d = {d}" for n, d in self.sizes]
        # two arrangements of one size are told apart by their place
        return {"size": tuple(f"{name} ({i})" for i, name in enumerate(names, 1))}

    def check_fields(self) -> None:
        kit.same_lengths(self, "planes", "dimensions")
        for n, d in (*self.sizes, (self.width, self.components)):
            # the count needs no minute even where n and d are absurd
            if n > 10**4 or min(n, d) > 14 or n * cell_count(n, d) > LARGEST:
                raise kit.UserError(
                    f"{n} hyperplanes in dimension {d} make too many cells to count one by one; take fewer "
                    f"hyperplanes or dimensions, such that cells times hyperplanes are at most {LARGEST}"
                )
        if max(self.dimensions) > MOST_DIMENSIONS:
            raise kit.UserError(
                f"--dimensions must be at most {MOST_DIMENSIONS}, got {max(self.dimensions)}; more of them change no "
                "count once there are as many as hyperplanes"
            )
        if self.components > 61:
            raise kit.UserError(
                f"--components must be at most 61, beyond which digits do not vary, got {self.components}"
            )

    def setting(self, key):
        for_planes, for_images, for_start = jax.random.split(key, 3)
        rng = kit.numpy_generator(for_planes)
        arrangements = []
        for n, d in self.sizes:
            normals = rng.standard_normal((self.seeds, n, d))
            offsets = self.bias_std * rng.standard_normal((self.seeds, n))
            outputs = rng.standard_normal((self.seeds, n))
            alike = np.arange(n) // self.parallel
            arrangements.append(Arrangement(normals[:, alike], offsets, outputs))
        data = digits()
        centred = np.asarray(data.x) - np.asarray(data.x).mean(0)
        scores = centred @ np.linalg.svd(centred, full_matrices=False)[2][: self.components].T
        chosen = kit.numpy_generator(for_images).permutation(len(scores))[: self.images]
        start = []
        for inputs, outputs in ((self.components, self.width), (self.width, 10)):
            w = kit.numpy_generator(for_start).standard_normal((self.seeds, outputs, inputs))
            start.append({"w": (2 / inputs) ** 0.5 * w, "b": np.zeros((self.seeds, outputs))})
        x = scores[chosen] / scores.std()
        return Setting(arrangements, x, np.asarray(data.y)[chosen], tuple(start))

    def hypotheses(self, setting):
        least = min(
            general_position(w, b)
            for normals, offsets, _ in setting.arrangements
            for w, b in zip(normals, offsets, strict=True)
        )
        yield kit.assume(
            "least singular value of d normals, or of d + 1 hyperplanes",
            least,
            ">",
            0,
            "the hyperplanes are not in general position: some are parallel, or too many meet",
        )

    def predict(self, setting):
        groups = [tuple(np.bincount(np.arange(n) // TOGETHER)) for n in self.planes]
        over_sizes = lambda count: ("size", [float(count(n, d)) for n, d in self.sizes])
        together = [
            float(parallel_cell_count(group, d))
            for group, d in zip(groups, self.dimensions, strict=True)
        ]
        return kit.law(
            cells=over_sizes(cell_count),
            bounded=over_sizes(bounded_cell_count),
            central=over_sizes(central_cell_count),
            parallel=("size", together),
            digits_start=float(central_cell_count(self.width, self.components)),
            digits=float(cell_count(self.width, self.components)),
        )

    def observe(self, setting, key):
        counts = [
            [count_cells(*lanes) for lanes in zip(*arrangement, strict=True)]
            for arrangement in setting.arrangements
        ]
        trained = kit.compiled(self.train)(setting.start, setting.images, setting.classes)
        layers = {"digits_start": setting.start[0], "digits": trained[0]}
        pairs = {
            name: list(zip(np.asarray(layer["w"]), np.asarray(layer["b"]), strict=True))
            for name, layer in layers.items()
        }
        tallies = {
            name: ("size seed", [[float(getattr(tally, name)) for tally in row] for row in counts])
            for name in Tally._fields
        }
        of_networks = {
            name: [
                float(count_distinct(cells(*pair).signs)) if finite(*pair) else 0.0
                for pair in networks
            ]
            for name, networks in pairs.items()
        }
        places = [general_position(*pair) if finite(*pair) else 0.0 for pair in pairs["digits"]]
        return kit.seen(
            **tallies,
            **{name: ("seed", numbers) for name, numbers in of_networks.items()},
            digits_position=("seed", places),
        )

    def train(self, start: Any, x: jax.Array, y: jax.Array) -> Any:
        """Descend on the squared error of each network, and return its weights."""
        net = mlp((self.components, self.width, 10), "relu")

        def one(params: Any) -> Any:
            risk = lambda p: 0.5 * jnp.mean(jnp.sum((net.apply(p, x) - y) ** 2, -1))
            return descend(risk, params, optax.sgd(self.lr), self.steps, record=self.steps).params

        return jax.vmap(one)(start)

    def run_conditions(self, observed):
        stayed = kit.assume(
            "share of networks whose descent on digits stayed finite",
            (observed["digits"] > 0).mean(),
            "==",
            1,
            "the descent on digits diverged; lower --lr",
        )
        if not stayed.holds:
            return [stayed]
        return [
            stayed,
            kit.assume(
                "least singular value, as above, of the trained layers",
                observed["digits_position"].min(),
                ">",
                0,
                "training did not move the hyperplanes apart; raise --images, --steps or --lr",
            ),
        ]

    def judge(self, law, seen):
        labels = {
            "cells": ("cells", "cells of n hyperplanes"),
            "pieces": ("cells", "linear pieces of shallow networks"),
            "bounded": ("bounded", "bounded cells"),
            "central": ("central", "cells of hyperplanes through the origin"),
            "parallel": ("parallel", f"cells of hyperplanes of which {TOGETHER} are parallel"),
            "digits_start": (
                "digits_start",
                f"cells of {self.width} neurons at the start, d = {self.components}",
            ),
            "digits": (
                "digits",
                f"cells of {self.width} neurons trained on digits, d = {self.components}",
            ),
        }
        return [
            kit.follows(name, law[of], seen[name], HALF, absolute=True, each=True, label=label)
            for name, (of, label) in labels.items()
        ]

    def rivals(self, setting, law):
        sizes = self.sizes
        of_digits = (self.width, self.components)
        reach = [
            (
                "central",
                "Cover's count, that of perceptrons without a bias",
                "2 Σ_{i<d} C(n − 1, i), as through the origin",
                central_cell_count,
            ),
            (
                "leading",
                "the continuation of the lecture's formula",
                "n^d/d! exactly, 2^n for n ≤ d",
                lambda n, d: n**d / factorial(d) if n > d else 2**n,
            ),
            ("all_patterns", "each neuron is on or off", "2^n", lambda n, d: 2.0**n),
            (
                "unrestricted",
                "n hyperplanes cut each of d directions into n + 1 parts",
                "(n + 1)^d",
                lambda n, d: (n + 1.0) ** d,
            ),
            (
                "top_missing",
                "vertices are points and no cells",
                "Σ_{i<d} C(n, i)",
                lambda n, d: cell_count(n, d) - comb(n, d),
            ),
        ]

        def counting(id: str, why: str, label: str, count: Callable[[int, int], Any]) -> kit.Rival:
            counts = [float(count(*size)) for size in sizes]
            return kit.rival(
                label, why, id=id, cells=("size", counts), digits=float(count(*of_digits))
            )

        general = law.cells
        yield from (counting(*rival) for rival in reach)
        yield kit.rival(
            "C(n, d) bounded cells",
            "each cell that is bounded below has one lowest vertex",
            bounded=("size", [float(comb(*size)) for size in sizes]),
        )
        yield kit.rival(
            "Σ_{i≤d} C(n, i) whatever the position",
            "Zaslavsky's formula, without its hypothesis",
            central=general,
            parallel=general,
            digits_start=float(law.digits),
        )

    def controls(self, seen):
        yield kit.control(
            "hyperplanes through the origin", "they all meet in one point", cells=seen.central
        )
        yield kit.control(
            "networks of which one output weight is zero",
            "a neuron of output weight zero bends nothing",
            pieces=seen.without_one,
        )
        yield kit.control(
            "networks on digits at the start, and the reverse",
            "without biases all neurons switch at the mean image",
            digits=seen.digits_start,
            digits_start=seen.digits,
        )

    def figure(self, law, seen, rivals):
        most = np.arange(1, max(self.planes) + 1)
        every = sorted(set(self.dimensions))
        curves = []
        ratios = []
        for place, d in enumerate(every):
            shade = place / len(every)
            theory = np.array([cell_count(int(n), d) for n in most], float)
            sizes = [i for i, other in enumerate(self.dimensions) if other == d]
            at = np.array([self.planes[i] for i in sizes], float)
            measured = seen.cells.values[sizes].T
            curves += [
                kit.predicted_curve(most, theory, f"d = {d}", shade=shade),
                kit.observed_curve(at, measured, kind="points", shade=shade),
            ]
            if d <= 4:
                wide = most >= d
                leading = most[wide].astype(float) ** d / factorial(d)
                ratios += [
                    kit.predicted_curve(
                        most[wide], theory[wide] / leading, f"d = {d}", shade=shade
                    ),
                    kit.observed_curve(
                        at, measured * factorial(d) / at**d, kind="points", shade=shade
                    ),
                ]
        index = np.arange(len(self.planes))
        seeds = np.arange(self.seeds)
        flat = np.ones(self.seeds)
        yield kit.panel("Cells of n hyperplanes", "n", "cells", *curves, log="y")
        yield kit.panel(
            "n^d/d! is the leading term only",
            "n",
            "cells / (n^d/d!)",
            *ratios,
            kit.rival_curve(most, 0.0 * most + 1, "n^d/d! exactly"),
            ylim=(0.5, 3),
        )
        yield kit.panel(
            "Of these C(n − 1, d) are bounded",
            "size (n, d), in the order of the fields",
            "bounded cells",
            kit.predicted_curve(index, law.bounded, "C(n − 1, d)"),
            kit.observed_curve(index, seen.bounded.values.T, kind="points"),
        )
        yield kit.panel(
            "A network on digits: training makes general position",
            "seed",
            f"cells of the {self.width} neurons",
            kit.observed_curve(seeds, seen.digits_start, "at the start", kind="points"),
            kit.observed_curve(seeds, seen.digits, "trained", kind="points", shade=0.6),
            kit.predicted_curve(seeds, float(law.digits_start) * flat, "through the origin"),
            kit.predicted_curve(seeds, float(law.digits) * flat, "general position", shade=0.6),
        )
