"""A network grown one parallel unit at a time ends at the global minimum of its penalized risk.

The polar of the residual tells when the growth may stop. A network of parallel units that are positively homogeneous,
with a penalty of the same degree, is a convex problem once it is wide enough. A local minimum with an idle unit is then
global. The polar tells whether a unit of weight zero would stay idle. It is the largest correlation of the residual
with any unit: at most the penalty at a global minimum, and above the penalty wherever a new unit helps. For
factorizations the polar is a singular value; for ReLU neurons in the plane it is known exactly on arcs of the circle.
"""

from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.descent._tables import padded
from steepest.claims.descent.parallel_certificate.experiment import (
    CertificatePoint,
    descend_factors,
    grow_factors,
    grow_neurons,
    planted,
)
from steepest.nn.data import digits
from steepest.nn.types import Values
from steepest.programs import squared_neurons

SOLVED = 1e-6  # relative accuracy of a cone program's value and of its polar
APART = 1e-3  # least relative distance of a singular value to λ: columns at λ itself settle slowly
REDRAWS = 50  # of a matrix that comes nearer
CLASSES = 10


class Setting(NamedTuple):
    """Matrices to factorize, the last one of digits, with their penalties, and data for neurons."""

    matrices: list[Values]
    penalties: Values
    x: Values  # (problems, n, 2)
    y: Values  # (problems, n)


@kit.claim
class ParallelCertificate(kit.Claim[Setting]):
    """Noisy matrices of rank two, the class means of digits, and ReLU networks on Gaussian data in the plane."""

    penalty: kit.Positive = kit.param(2.0, "λ of the matrices", scope=kit.between(1.5, 3.0))
    noise: kit.NonNegative = kit.param(
        1.0,
        "standard deviation of the entries around the planted matrix",
        scope=kit.between(0.5, 1.5),
    )
    rank: kit.Count = kit.param(2, "planted singular pairs", scope=kit.between(1, 3))
    strength: kit.NonNegative = kit.param(6.0, "their singular value", scope=kit.between(5.0, 8.0))
    rows: kit.Count = kit.param(8, "rows of a matrix", scope=kit.between(6, 10))
    columns: kit.Count = kit.param(6, "columns of a matrix", scope=kit.between(4, 8))
    matrices: kit.Seeds = kit.param(5, "random matrices")
    starts: kit.Count = kit.param(
        20, "random starts of the descents on the first matrix, at each number of columns"
    )
    steps: kit.Count = kit.param(4000, "steps of each descent", unit="steps")
    share: kit.Positive = kit.param(
        0.15,
        "λ for the class means of digits, over their largest singular value",
        scope=kit.between(0.1, 0.3),
    )
    n: kit.Count = kit.param(14, "examples of a network", scope=kit.between(8, 16))
    networks: kit.Seeds = kit.param(4, "random data sets for networks")
    neuron_penalty: kit.Positive = kit.param(0.5, "λ of the networks", scope=kit.between(0.4, 0.8))

    kind = "theorem"
    says = {
        "ends at the global minimum": ("gaps", "networks"),
        "The polar of the residual tells when the growth may stop": (
            "columns",
            "polars",
            "certified",
        ),
    }
    ragged = ("network_values", "network_polars")
    tiny = {"matrices": 3, "starts": 3, "steps": 1500, "networks": 3, "n": 5}
    full = {"rows": 20, "columns": 15, "starts": 100, "steps": 20_000, "networks": 12, "n": 25}
    out_of_scope = {"penalty": 50.0}
    point = CertificatePoint

    @property
    def widths(self) -> Values:
        """Return the numbers of columns at which descents are run."""
        return np.arange(1, min(self.rows, self.columns) + 1)

    @property
    def most(self) -> int:
        """Return the most columns that any matrix may need."""
        return max(min(self.rows, self.columns), CLASSES)

    def axes(self):
        names = [f"random {i + 1}" for i in range(self.matrices)]
        return {
            "matrix": (*names, "digits"),
            "round": tuple(range(self.most + 1)),
            "width": tuple(self.widths),
        }

    def check_fields(self) -> None:
        least = min(self.rows, self.columns)
        if least < 2 or self.rank > least:
            raise kit.UserError(
                "expected a matrix of at least two rows and columns and at most as many planted pairs, got "
                f"{self.rows} × {self.columns} and rank {self.rank}"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        matrices = [self.draw(rng) for _ in range(self.matrices)]
        data = digits()
        centred = np.asarray(data.x) - np.asarray(data.x).mean(0)
        labels = np.asarray(data.y)
        means = (labels / labels.sum(0)).T @ centred
        matrices.append(means)
        penalties = np.full(len(matrices), self.penalty)
        penalties[-1] = self.share * np.linalg.norm(means, 2)
        return Setting(
            matrices,
            penalties,
            rng.normal(size=(self.networks, self.n, 2)),
            rng.normal(size=(self.networks, self.n)),
        )

    def draw(self, rng: np.random.Generator) -> Values:
        """Return a random matrix, drawn again while a singular value is next to λ."""
        shape = (self.rows, self.columns, self.rank, self.strength, self.noise)
        matrix = planted(rng, *shape)
        for _ in range(REDRAWS):
            s = np.linalg.svd(matrix, compute_uv=False) / self.penalty
            if np.abs(s - 1).min() > APART:
                break
            matrix = planted(rng, *shape)
        return matrix

    def hypotheses(self, setting):
        spectra = self.spectra(setting)
        yield kit.assume(
            "smallest of the matrices' largest singular values / λ",
            min(s[0] for s in spectra),
            ">",
            1,
            "no column helps; lower --penalty",
        )
        yield kit.assume(
            "smallest distance of a singular value to λ, relative",
            min(np.abs(s - 1).min() for s in spectra),
            ">",
            APART,
            "columns at λ itself settle slowly; change --penalty or --share a little",
        )

    def spectra(self, setting: Setting) -> list[Values]:
        """Return the singular values of each matrix over its λ."""
        pairs = zip(setting.matrices, setting.penalties, strict=True)
        return [np.linalg.svd(y, compute_uv=False) / penalty for y, penalty in pairs]

    def predict(self, setting):
        spectra = self.spectra(setting)
        # singular values that are not there are zero, and add no excess
        whole = [np.pad(s, (0, self.most + 1 - len(s))) for s in spectra]
        excess = np.array([_excess(s)[:-1] for s in whole])
        scale = setting.penalties**2
        networks = [
            squared_neurons(x, y, self.neuron_penalty).value
            for x, y in zip(setting.x, setting.y, strict=True)
        ]
        return kit.law(
            columns=("matrix", [(s > 1).sum() for s in spectra]),
            gaps=("matrix round", excess * scale[:, None]),
            polars=("matrix round", np.maximum(whole, 1)),
            minimum=("matrix", [_minimum(s) for s in spectra] * scale),
            descents=("width", scale[0] * excess[0, self.widths]),
            networks=("draw", networks),
            network_polars=1.0,
            gain=0.5,
        )

    def observe(self, setting, key):
        lanes = list(zip(setting.matrices, setting.penalties, strict=True))
        grown = [grow_factors(y, penalty) for y, penalty in lanes]
        looser = [grow_factors(y, penalty / 2) for y, penalty in lanes]
        networks = [
            grow_neurons(x, y, self.neuron_penalty)
            for x, y in zip(setting.x, setting.y, strict=True)
        ]
        values, polars = descend_factors(
            setting.matrices[0],
            self.penalty,
            self.widths,
            self.starts,
            self.steps,
            kit.keys(key, 1)[0],
        )
        scale = setting.penalties[:, None]
        ends = lambda tables: np.stack([_held(table, self.most + 1) for table in tables])
        of_networks = padded([growth.polars / self.neuron_penalty for growth in networks])
        return kit.seen(
            columns=("matrix", [growth.sizes[-1] for growth in grown]),
            values=("matrix round", ends([growth.values for growth in grown])),
            polars=("matrix round", ends([growth.polars for growth in grown]) / scale),
            looser_columns=("matrix", [growth.sizes[-1] for growth in looser]),
            looser_values=("matrix round", ends([growth.values for growth in looser])),
            looser_polars=("matrix round", ends([growth.polars for growth in looser]) / scale),
            second=("matrix", [_second_pair(*lane) for lane in lanes]),
            descent_values=("width start", values),
            descent_polars=("width start", polars),
            network_values=("draw rounds", padded([growth.values for growth in networks])),
            network_polars=("draw rounds", of_networks),
            network_end=("draw", [growth.values[-1] for growth in networks]),
            network_end_polar=("draw", [_last(row) for row in of_networks]),
            # ‖relu(Xu)‖² of the best new neuron is at most the sum over the inputs
            unit_energy=("draw", (setting.x**2).sum((1, 2))),
        )

    def run_conditions(self, observed):
        certified = (observed["descent_polars"] <= 1 + SOLVED).mean()
        yield kit.assume("share of descents that end certified", certified, ">", 0, "raise --steps")

    def derive(self, law, seen):
        """Return deviations from each law relative to the minimum, and what a new unit gained."""
        first = law.minimum.isel(matrix=0, drop=True)
        descents = seen.descent_values - first
        certified = seen.descent_polars <= 1 + SOLVED
        gaps = seen["values"] - law.minimum
        return {
            "excess": gaps,
            "gaps_off": abs(gaps - law.gaps) / law.minimum,
            "descents_off": abs(descents - law.descents) / first,
            "certified_off": abs(descents.where(certified, 0.0)) / first,
            "networks_off": abs(seen.network_end / law.networks - 1),
            "gain": xarray.DataArray(self._gain(law, seen, gaps), dims="gained"),
        }

    def _gain(self, law: xarray.Dataset, seen: xarray.Dataset, gaps: xarray.DataArray) -> Values:
        """Return excess / ((polar − λ)²/‖unit‖²) in every round of growth where the polar is above λ."""
        random = slice(0, self.matrices)  # λ of digits is another
        over = (seen.polars.values[random] - 1) * self.penalty
        above = over > 1e-4 * self.penalty
        of_matrices = gaps.values[random][above] / over[above] ** 2
        over = (seen.network_polars.values - 1) * self.neuron_penalty
        above = over > 1e-2 * self.neuron_penalty
        excess = seen.network_values.values - law.networks.values[:, None]
        excess = excess * seen.unit_energy.values[:, None]
        return np.concatenate([of_matrices, excess[above] / over[above] ** 2])

    def judge(self, law, seen):
        yield kit.agrees(
            "columns",
            abs(seen.columns - law.columns),
            0.0,
            label="columns grown − singular values above λ",
        )
        yield kit.agrees(
            "gaps",
            seen.gaps_off,
            1e-9,
            label="excess with k columns − ½ Σ_{i>k} (s_i − λ)₊², all k, relative to the minimum",
        )
        yield kit.agrees(
            "polars",
            abs(seen.polars - law.polars),
            1e-9,
            label="polar with k columns − max(s_{k+1}, λ), all k, over λ",
        )
        yield kit.agrees(
            "descents",
            seen.descents_off,
            SOLVED,
            label="descents with k columns from random starts: excess − the same, relative",
        )
        yield kit.agrees(
            "certified",
            seen.certified_off,
            SOLVED,
            label="descents that end with a polar of at most λ: excess, relative",
        )
        yield kit.agrees(
            "networks",
            seen.networks_off,
            SOLVED,
            label="networks: value at the end / convex optimum − 1",
        )
        yield kit.at_least(
            "gain",
            law.gain * (1 - SOLVED),
            seen.gain,
            each=True,
            label="excess / ((polar − λ)²/‖unit‖²), all rounds",
        )
        yield kit.follows(
            "network_polars",
            law.network_polars,
            seen.network_end_polar,
            10 * SOLVED,  # residuals are good to the root of the program's gap
            each=True,
            label="networks: polar at the end / λ",
        )

    def rivals(self, setting, law):
        spectra = self.spectra(setting)
        whole = np.array([np.pad(s, (0, self.most + 1 - len(s))) for s in spectra])
        eckart = np.array([_tails(s**2 * (s > 1))[:-1] / 2 for s in whole])
        scale = setting.penalties**2
        half = [
            squared_neurons(x, y, self.neuron_penalty / 2).value
            for x, y in zip(setting.x, setting.y, strict=True)
        ]
        yield kit.rival(
            "the certificate is λ/2",
            "the penalty is (λ/2)(‖U‖² + ‖V‖²)",
            id="half",
            columns=("matrix", [(s > 0.5).sum() for s in spectra]),
            polars=("matrix round", np.maximum(whole, 0.5)),
            networks=("draw", half),
        )
        yield kit.rival(
            "width must be min(m, n)",
            "then the factorization is no constraint",
            columns=("matrix", [len(s) for s in spectra]),
        )
        yield kit.rival(
            "the excess with k columns is ½ Σ_{i>k} s_i²",
            "so it is without the penalty",
            gaps=("matrix round", eckart * scale[:, None]),
            descents=("width", scale[0] * eckart[0, self.widths]),
        )
        yield kit.rival(
            "a new unit gains (polar − λ)²/‖unit‖²",
            "the derivative along the new unit is polar − λ",
            gain=1.0,
        )

    def controls(self, seen):
        stuck = seen.second.isel(matrix=0)
        yield kit.control(
            "U and V on the second pair, taken as certified because its gradient is zero",
            "it is stationary and has an idle column, and no minimum",
            id="stationary",
            descent_values=stuck,
            descent_polars=xarray.ones_like(stuck),
        )
        yield kit.control(
            "matrices grown at half of the penalty",
            "the penalty decides",
            columns=seen.looser_columns,
            values=seen.looser_values,
            polars=seen.looser_polars,
        )
        yield kit.control(
            "networks without a neuron",
            "nothing was grown",
            network_end=seen.network_values.isel(rounds=0),
            network_end_polar=seen.network_polars.isel(rounds=0),
        )

    def figure(self, law, seen, rivals):
        rounds = np.arange(self.most + 1)
        grown = []
        polars = []
        for i in range(min(3, self.matrices)):
            shade = i / 2
            name = "" if i else "grown"
            theory = "" if i else "½ Σ (s_i − λ)₊²"
            grown += [
                kit.observed_curve(rounds, seen.excess[i], name, kind="points", shade=shade),
                kit.predicted_curve(rounds, law.gaps[i], theory),
            ]
            polars.append(kit.observed_curve(rounds, seen.polars[i], shade=shade))
        many = np.arange(seen.sizes["rounds"])
        gaps = np.maximum(seen.network_values / law.networks - 1, 1e-12)
        networks = [
            kit.observed_curve(many, gaps[i], shade=i / max(1, self.networks - 1))
            for i in range(self.networks)
        ]
        polars += [
            kit.context_curve(many, seen.network_polars[i], "" if i else "networks")
            for i in range(self.networks)
        ]
        last = max(len(many), len(rounds)) - 1
        width = np.repeat(self.widths, seen.sizes["start"])
        least = float(law.minimum[0])
        descents = seen.descent_values.values.ravel() - least
        stuck = float(seen.second[0]) - least
        yield kit.panel(
            "Excess over the global minimum: matrices", "columns grown", "excess", *grown
        )
        yield kit.panel(
            "The polar falls to λ",
            "rounds of growth",
            "polar / λ",
            *polars,
            kit.predicted_curve((0, last), (1, 1), "certificate"),
            kit.rival_curve((0, last), (0.5, 0.5), "λ/2"),
        )
        yield kit.panel(
            "Networks of ReLU neurons",
            "rounds of growth",
            "value / convex optimum − 1",
            *networks,
            log="y",
        )
        yield kit.panel(
            "Descents from random starts",
            "columns",
            "excess",
            kit.observed_curve(width, descents, "descents", kind="points"),
            kit.predicted_curve(self.widths, law.descents, "½ Σ (s_i − λ)₊²"),
            kit.rival_curve((1, self.widths[-1]), (stuck, stuck), "stationary, on the second pair"),
        )


def _tails(terms: Values) -> Values:
    """Return Σ_{i>k} of the terms for k = 0, …, all, shape ``(terms + 1,)``."""
    return np.append(terms[::-1].cumsum()[::-1], 0.0)


def _excess(s: Values) -> Values:
    """Return ½ Σ_{i>k} (s_i − 1)₊² for every k, singular values in units of λ and decreasing."""
    return _tails(np.maximum(s - 1, 0) ** 2) / 2


def _minimum(s: Values) -> float:
    """Return the minimum of ½‖Y − Z‖² + ‖Z‖_*, singular values in units of λ."""
    # z = (s − 1)₊ leaves ½ min(s, 1)² of the square and costs (s − 1)₊
    return float((np.minimum(s, 1) ** 2).sum() / 2 + np.maximum(s - 1, 0).sum())


def _second_pair(y: Values, penalty: float) -> float:
    """Return the penalized risk with one column on the second singular pair and the others zero."""
    s = np.linalg.svd(y, compute_uv=False)
    gained = max(s[1] - penalty, 0.0)
    # a column on one pair takes ½(s − λ)₊² from ½‖Y‖²
    return float(((s**2).sum() - gained**2) / 2)


def _last(row: Values) -> float:
    """Return the last entry that is not NaN."""
    return float(row[np.isfinite(row)][-1])


def _held(row: Values, length: int) -> Values:
    """Return a row of so many entries: what is beyond its end is its last one."""
    row = np.asarray(row, float)
    row = row[np.isfinite(row)]
    return np.pad(row, (0, max(0, length - len(row))), mode="edge")[:length]
