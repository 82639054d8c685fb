"""n hyperplanes in general position cut R^d into Σ_{i≤d} C(n, i) cells; a shallow ReLU network has as many pieces.

A network with one hidden layer of n neurons is linear on each cell of n hyperplanes, one where each neuron switches.
Normal weights and biases are in general position almost surely, and then the count of cells is a constant, not an
average; C(n − 1, d) of them are bounded. Without biases all hyperplanes meet in the origin and there are fewer cells.
"""

from dataclasses import dataclass
from math import comb, factorial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    UserError,
    Values,
    agreement,
    assume,
    compiled,
    equal,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
    same_lengths,
)
from steepest.dynamics import descend
from steepest.geometry import (
    bounded_cell_count,
    bounded_cells,
    cell_count,
    cells,
    central_cell_count,
    general_position,
    parallel_cell_count,
)
from steepest.nn.data import digits
from steepest.nn.networks import mlp

# of cells times hyperplanes, the signs of one arrangement; it takes some ten seconds
LARGEST = 300_000
MOST_DIMENSIONS = 100
TOGETHER = 3  # parallel hyperplanes in each direction, where some are
HALF = 0.5  # counts are whole numbers


class Arrangement(NamedTuple):
    """Hyperplanes w_j·x + b_j = 0 of every seed, and the weights of the neurons that switch there."""

    normals: Values  # (seeds, n, d)
    offsets: Values  # (seeds, n)
    outputs: Values  # (seeds, n)


class Setting(NamedTuple):
    """Arrangements of every size, and the digits with initial networks, one a seed."""

    arrangements: list[Arrangement]
    images: Values  # principal components, (images, components)
    classes: Values  # one-hot, (images, 10)
    start: Any  # parameters, (seeds, …)


@dataclass(frozen=True)
class HyperplaneCells(Claim):
    """Random hyperplanes, and the first layer of a ReLU network that is trained on digits."""

    planes: tuple[Count, ...] = (20, 20, 12, 10, 5)  # numbers n of hyperplanes, or neurons [1]
    dimensions: tuple[Count, ...] = (2, 3, 4, 10, 8)  # d, one for each n [1]
    bias_std: NonNegative = 1.0  # standard deviation of the biases; that of weights is 1 [1]
    parallel: Count = 1  # hyperplanes with the same normal [1]
    width: Count = 20  # neurons of the network on digits [1]
    components: Count = 3  # principal components of the digits that it reads [1]
    images: Count = 300  # digits on which it is trained [1]
    steps: Count = 200  # of its descent [steps]
    lr: Positive = 0.3  # step size of its descent [1]
    seeds: Seeds = 5  # independent arrangements and networks [1]

    kind = "theorem"
    headline = ("cells_0", "cells_1", "cells_2", "cells_3", "cells_4", "pieces")
    statement = (
        r"\#\mathrm{cells}=\sum_{i=0}^{d}\binom{n}{i},\qquad \#\mathrm{bounded}=\binom{n-1}{d},\qquad "
        r"\#\mathrm{pieces}\;\mathrm{of}\;\sum_{j\le n}v_j\,\sigma(w_j\cdot x+b_j)=\#\mathrm{cells}"
    )
    source = "Lecture of 5 December in [@hanin2022], example 2; [@zaslavsky1975]; [@cover1965]"
    corrections = (
        "The lecture continues that this is n^d/d! for n ≫ d. That is the leading term: 200 and 1333 where 20 "
        "hyperplanes make 211 and 1351 cells in two and three dimensions, and 864 where 12 make 794 in four.",
        "The network of Example 2 has no output weights. With them a neuron of output weight zero cuts nothing, and "
        "pieces are fewer than cells: the control.",
        "The lemma's 3 to the number of neurons counts neurons at zero too. Regions of full dimension need two signs "
        "only, so that 2 to the number of neurons bounds them (algebra, not tested here).",
    )
    remarks = (
        "Cells are found by adding hyperplanes one after the other, the theorem's own recurrence (deletion and "
        "restriction). A point inside each cell proves that it is there, and cells of the same signs count once. That "
        "none is missing rests on tests that find cells otherwise: by linear programs over all 2^n sign patterns, and "
        "around the vertices, at most of the sizes here. Bounded cells are told by linear programs.",
        "Each count is a constant: every seed must give it exactly. Pieces are counted by the gradients Σ v_j w_j over "
        "the active neurons, which differ between cells.",
        "The network on digits starts without biases, as networks mostly do: all its hyperplanes go through the mean "
        "image, and Cover's count holds. Training moves them apart into general position, "
        "which is measured: where it does not, for want of steps or of images, the run is out of range.",
        "For n ≤ d all 2^n patterns of active neurons occur, and Zaslavsky's count, Cover's and 2^n are one number; "
        "only the sizes with n > d tell them apart.",
    )
    full = {
        "planes": (20, 20, 12, 10, 5, 30, 16),
        "dimensions": (2, 3, 4, 10, 8, 3, 5),
        "images": 1797,
        "width": 30,
        "seeds": 20,
    }
    tiny = {
        "planes": (6, 5, 5, 4, 3),
        "dimensions": (2, 3, 4, 4, 5),
        "width": 6,
        "images": 50,
        "steps": 20,
        "seeds": 3,
    }
    out_of_scope = {"parallel": 3}

    def check_fields(self) -> None:
        same_lengths(self, "planes", "dimensions")
        for n, d in (*self.sizes, (self.width, self.components)):
            # the count needs no minute even where n and d are absurd
            if n > 10**4 or min(n, d) > 14 or n * cell_count(n, d) > LARGEST:
                raise UserError(
                    f"{n} hyperplanes in dimension {d} make too many cells to count one by one; take fewer "
                    f"hyperplanes or dimensions, such that cells times hyperplanes are at most {LARGEST}"
                )
        if max(self.dimensions) > MOST_DIMENSIONS:
            raise UserError(
                f"--dimensions must be at most {MOST_DIMENSIONS}, got {max(self.dimensions)}; more of them change no "
                "count once there are as many as hyperplanes"
            )
        if self.components > 61:
            raise UserError(
                f"--components must be at most 61, beyond which digits do not vary, got {self.components}"
            )

    @property
    def sizes(self) -> list[tuple[int, int]]:
        """Return n and d of each arrangement."""
        return list(zip(self.planes, self.dimensions, strict=True))

    def setting(self, key: Key) -> Setting:
        for_planes, for_images, for_start = jax.random.split(key, 3)
        rng = numpy_generator(for_planes)
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
        chosen = numpy_generator(for_images).permutation(len(scores))[: self.images]
        start = []
        for inputs, outputs in ((self.components, self.width), (self.width, 10)):
            w = numpy_generator(for_start).standard_normal((self.seeds, outputs, inputs))
            start.append({"w": (2 / inputs) ** 0.5 * w, "b": np.zeros((self.seeds, outputs))})
        x = scores[chosen] / scores.std()
        return Setting(arrangements, x, np.asarray(data.y)[chosen], tuple(start))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        least = min(
            general_position(w, b)
            for normals, offsets, _ in setting.arrangements
            for w, b in zip(normals, offsets, strict=True)
        )
        return [
            assume(
                "least singular value of d normals, or of d + 1 hyperplanes",
                least,
                ">",
                0,
                "the hyperplanes are not in general position: some are parallel, or too many meet",
            )
        ]

    def predict(self, setting: Setting) -> Prediction:
        groups = [np.bincount(np.arange(n) // TOGETHER) for n in self.planes]
        return Prediction(
            cells=("size", [cell_count(n, d) for n, d in self.sizes]),
            bounded=("size", [bounded_cell_count(n, d) for n, d in self.sizes]),
            central=("size", [central_cell_count(n, d) for n, d in self.sizes]),
            parallel=(
                "size",
                [
                    parallel_cell_count(tuple(r), d)
                    for r, d in zip(groups, self.dimensions, strict=True)
                ],
            ),
            digits_start=central_cell_count(self.width, self.components),
            digits=cell_count(self.width, self.components),
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        counts = [
            [count_cells(*lanes) for lanes in zip(*arrangement, strict=True)]
            for arrangement in setting.arrangements
        ]
        trained = compiled(self.train)(setting.start, setting.images, setting.classes)
        layers = {"digits_start": setting.start[0], "digits": trained[0]}
        pairs = {
            name: list(zip(np.asarray(layer["w"]), np.asarray(layer["b"]), strict=True))
            for name, layer in layers.items()
        }
        arrays: dict[str, Any] = {
            name: ("size seed", [[getattr(tally, name) for tally in row] for row in counts])
            for name in Tally._fields
        }
        for name, seeds in pairs.items():
            arrays[name] = (
                "seed",
                [count_distinct(cells(*pair).signs) if finite(*pair) else 0 for pair in seeds],
            )
        places = [general_position(*pair) if finite(*pair) else 0.0 for pair in pairs["digits"]]
        arrays["digits_position"] = ("seed", places)
        return Observation(**arrays)

    def train(self, start: Any, x: jax.Array, y: jax.Array) -> Any:
        """Descend on the squared error of each network, and return its weights."""
        net = mlp((self.components, self.width, 10), "relu")

        def one(params: Any) -> Any:
            risk = lambda p: 0.5 * jnp.mean(jnp.sum((net.apply(p, x) - y) ** 2, -1))
            return descend(risk, params, optax.sgd(self.lr), self.steps, record=self.steps).params

        return jax.vmap(one)(start)

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        stayed = assume(
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
            assume(
                "least singular value, as above, of the trained layers",
                observed["digits_position"].min(),
                ">",
                0,
                "training did not move the hyperplanes apart; raise --images, --steps or --lr",
            ),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = [
            equal(
                f"cells_{i}",
                predicted["cells"][i],
                observed["cells"][i],
                HALF,
                absolute=True,
                aggregate="all",
                label=f"cells of {n} hyperplanes, d = {d}",
            )
            for i, (n, d) in enumerate(self.sizes)
        ]
        labels = {
            "pieces": "linear pieces of shallow networks",
            "bounded": "bounded cells",
            "central": "cells of hyperplanes through the origin",
            "parallel": f"cells of hyperplanes of which {TOGETHER} are parallel",
        }
        for name, label in labels.items():
            law = predicted["cells" if name == "pieces" else name][:, None]
            checks.append(
                agreement(
                    name,
                    np.abs(observed[name] - law).max(),
                    HALF,
                    label=f"{label}: largest miss",
                )
            )
        for name, when in (("digits_start", "at the start"), ("digits", "trained on digits")):
            checks.append(
                equal(
                    name,
                    predicted[name],
                    observed[name],
                    HALF,
                    absolute=True,
                    aggregate="all",
                    label=f"cells of {self.width} neurons {when}, d = {self.components}",
                )
            )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        sizes = [*self.sizes, (self.width, self.components)]

        def counting(law: Any) -> Any:
            *counts, digits_count = [float(law(*size)) for size in sizes]
            return predicted.replace(cells=("size", counts), digits=digits_count)

        general = [float(cell_count(*size)) for size in sizes]
        rivals = [
            Rival(
                "central",
                counting(central_cell_count),
                "Cover's count, that of perceptrons without a bias",
                label="2 Σ_{i<d} C(n − 1, i), as through the origin",
            ),
            Rival(
                "leading",
                counting(lambda n, d: n**d / factorial(d) if n > d else 2**n),
                "the continuation of the lecture's formula",
                label="n^d/d! exactly, 2^n for n ≤ d",
            ),
            Rival(
                "all_patterns",
                counting(lambda n, d: 2.0**n),
                "each neuron is on or off",
                label="2^n",
            ),
            Rival(
                "unrestricted",
                counting(lambda n, d: (n + 1.0) ** d),
                "n hyperplanes cut each of d directions into n + 1 parts",
                label="(n + 1)^d",
            ),
            Rival(
                "top_missing",
                counting(lambda n, d: cell_count(n, d) - comb(n, d)),
                "vertices are points and no cells",
                label="Σ_{i<d} C(n, i)",
            ),
            Rival(
                "lowest_vertex",
                predicted.replace(bounded=("size", [comb(*size) for size in self.sizes])),
                "each cell that is bounded below has one lowest vertex",
                label="C(n, d) bounded cells",
            ),
            Rival(
                "always_general",
                predicted.replace(
                    central=("size", general[:-1]),
                    parallel=("size", general[:-1]),
                    digits_start=general[-1],
                ),
                "Zaslavsky's formula, without its hypothesis",
                label="Σ_{i≤d} C(n, i) whatever the position",
            ),
        ]
        # with n ≤ d alone some of these are the same number
        return [rival for rival in rivals if _differs(rival.prediction, predicted)]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "idle_neuron",
                observed.replace(pieces=("size seed", observed["without_one"])),
                "a neuron of output weight zero bends nothing",
                label="networks of which one output weight is zero",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        most = np.arange(1, max(self.planes) + 1)
        every = sorted(set(self.dimensions))
        curves = []
        ratios = []
        for place, d in enumerate(every):
            shade = place / len(every)
            law = np.array([cell_count(int(n), d) for n in most], float)
            sizes = [i for i, other in enumerate(self.dimensions) if other == d]
            at = [self.planes[i] for i in sizes]
            measured = observed["cells"][sizes].T.astype(float)
            curves += [
                predicted_curve(most, law, f"d = {d}", shade=shade),
                observed_curve(at, measured, kind="points", shade=shade),
            ]
            if d <= 4:
                ratios += [
                    predicted_curve(
                        most[most >= d],
                        (law * factorial(d) / most.astype(float) ** d)[most >= d],
                        f"d = {d}",
                        shade=shade,
                    ),
                    observed_curve(
                        at,
                        measured * factorial(d) / np.array(at, float) ** d,
                        kind="points",
                        shade=shade,
                    ),
                ]
        index = np.arange(len(self.planes))
        seeds = np.arange(self.seeds)
        flat = np.ones(self.seeds)
        return (
            panel("Cells of n hyperplanes", "n", "cells", *curves, log="y"),
            panel(
                "n^d/d! is the leading term only",
                "n",
                "cells / (n^d/d!)",
                *ratios,
                rival_curve(most, 0.0 * most + 1, "n^d/d! exactly"),
                ylim=(0.5, 3),
            ),
            panel(
                "Of these C(n − 1, d) are bounded",
                "size (n, d), in the order of the fields",
                "bounded cells",
                predicted_curve(index, predicted["bounded"], "C(n − 1, d)"),
                observed_curve(index, observed["bounded"].T.astype(float), kind="points"),
            ),
            panel(
                "A network on digits: training makes general position",
                "seed",
                f"cells of the {self.width} neurons",
                observed_curve(seeds, observed["digits_start"], "at the start", kind="points"),
                observed_curve(seeds, observed["digits"], "trained", kind="points", shade=0.6),
                predicted_curve(seeds, predicted["digits_start"] * flat, "through the origin"),
                predicted_curve(seeds, predicted["digits"] * flat, "general position", shade=0.6),
            ),
        )


class Tally(NamedTuple):
    """What was counted on one arrangement.

    Attributes:
        cells: all cells.
        bounded: those that are bounded.
        pieces: different gradients of the network whose neurons switch at the hyperplanes.
        without_one: the same, with one output weight zero.
        central: cells where all hyperplanes go through the origin.
        parallel: cells where hyperplanes have the same normal in threes.
    """

    cells: int
    bounded: int
    pieces: int
    without_one: int
    central: int
    parallel: int


def count_cells(normals: Values, offsets: Values, outputs: Values) -> Tally:
    """Count the cells of one arrangement, and of its neighbours that are not in general position."""
    arrangement = cells(normals, offsets)
    fewer = np.where(np.arange(len(outputs)) == 0, 0.0, outputs)
    alike = np.arange(len(normals)) // TOGETHER
    return Tally(
        count_distinct(arrangement.signs),
        int(bounded_cells(normals, arrangement.signs).sum()),
        count_gradients(arrangement.signs, outputs[:, None] * normals),
        count_gradients(arrangement.signs, fewer[:, None] * normals),
        count_distinct(cells(normals, 0 * offsets).signs),
        count_distinct(cells(normals[alike], offsets).signs),
    )


def finite(normals: Values, offsets: Values) -> bool:
    """Say whether descent has not diverged: the lengths of all rows are finite."""
    rows = np.column_stack([normals, offsets])
    return bool(np.isfinite(np.linalg.norm(rows, axis=1)).all())


def count_distinct(signs: Values) -> int:
    """Count the different rows of signs, ``(cells, n)``."""
    return len(np.unique(signs, axis=0))


def count_gradients(signs: Values, slopes: Values) -> int:
    """Count the different sums of slopes over active neurons, ``(cells, n)`` and ``(n, d)``, to nine digits."""
    gradients = signs @ slopes / max(np.abs(slopes).max(), 1e-300)
    return len(np.unique(gradients.round(9) + 0.0, axis=0))


def _differs(prediction: Any, own: Prediction) -> bool:
    return any(not np.array_equal(prediction[name], own[name]) for name in own)
