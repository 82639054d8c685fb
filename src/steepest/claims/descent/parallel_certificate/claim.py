"""Growing parallel units one at a time ends at the global minimum, and the polar of the residual says when.

A network of parallel units that are positively homogeneous, with a penalty of the same degree, is a convex problem
once it is wide enough. A local minimum with an idle unit is then global. Whether a unit of weight zero would stay idle
is asked of the polar, the largest correlation of the residual with any unit: at most the penalty at a global minimum,
and above it wherever a new unit helps. For factorizations it is a singular value; for ReLU neurons in the plane it is
known exactly on arcs of the circle.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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
    agreement,
    assume,
    bound,
    context_curve,
    equal,
    keys,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.descent._tables import padded
from steepest.claims.descent.parallel_certificate.experiment import (
    CertificatePoint,
    descend_factors,
    grow_factors,
    grow_neurons,
    planted,
)
from steepest.nn.data import digits
from steepest.programs import squared_neurons

SOLVED = 1e-6  # relative accuracy of a cone program's value and of its polar


class Setting(NamedTuple):
    """Matrices to factorize, the last one of digits, with their penalties, and data for neurons."""

    matrices: list[np.ndarray]
    penalties: np.ndarray
    x: np.ndarray  # (problems, n, 2)
    y: np.ndarray  # (problems, n)


@dataclass(frozen=True)
class ParallelCertificate(Claim):
    """Noisy matrices of rank two, the class means of digits, and ReLU networks on Gaussian data in the plane."""

    penalty: Positive = 2.0  # λ of the matrices [1]
    noise: NonNegative = 1.0  # standard deviation of the entries around the planted matrix [1]
    rank: Count = 2  # planted singular pairs [1]
    strength: NonNegative = 6.0  # their singular value [1]
    rows: Count = 8  # of a matrix [1]
    columns: Count = 6  # of a matrix [1]
    matrices: Seeds = 5  # random matrices [1]
    starts: Count = (
        20  # random starts of the descents on the first matrix, at each number of columns [1]
    )
    steps: Count = 4000  # of each descent [steps]
    share: Positive = 0.15  # λ for the class means of digits, over their largest singular value [1]
    n: Count = 14  # examples of a network [1]
    networks: Seeds = 4  # random data sets for networks [1]
    neuron_penalty: Positive = 0.5  # λ of the networks [1]

    kind = "theorem"
    statement = (
        r"\min_{U,V}\ \tfrac12\|Y-UV^\top\|^2+\tfrac\lambda2(\|U\|^2+\|V\|^2)=\min_Z\ \tfrac12\|Y-Z\|^2+\lambda\|Z\|_*,"
        r"\qquad \text{a stationary point is global}\iff \max_{u}|\langle Y-f,\phi(u)\rangle|\le\lambda"
    )
    headline = ("columns", "gaps", "certified", "networks")
    source = "First minutes of the talk [@vidal2024]; [@haeffele2015]; [@haeffele2017]; the talk [@telgarsky2024]"
    remarks = (
        "For matrices all is known: k columns at a minimum leave the excess ½ Σ_{i>k} (s_i − λ)₊², the polar is "
        "s_{k+1} or λ, and growth stops after as many columns as there are singular values above λ.",
        "For neurons the value at the end is compared with a cone program over all activation patterns, which names no "
        "neuron; growth uses the same solver on the arcs of its own neurons only, and the polar is exact.",
        "A stationary point with an idle unit proves nothing: U and V on the second singular pair alone, with a column "
        "of zeros beside it, are stationary and not optimal. The polar sees it and the gradient does not.",
        "In more than two dimensions the polar of neurons is hard to find (NP-hard), so that the certificate is of use "
        "where it can be computed.",
        "The excess falls in every round of growth. The polar need not: one unit can make another more useful.",
        "Class means of digits are of the whole set, the same in every run.",
    )
    point = CertificatePoint
    tiny = {"matrices": 3, "starts": 3, "steps": 1500, "networks": 3, "n": 5}
    full = {"rows": 20, "columns": 15, "starts": 100, "steps": 20_000, "networks": 12, "n": 25}
    out_of_scope = {"penalty": 50.0}

    def check_fields(self) -> None:
        least = min(self.rows, self.columns)
        if least < 2 or self.rank > least:
            raise UserError(
                "expected a matrix of at least two rows and columns and at most as many planted pairs, got "
                f"{self.rows} × {self.columns} and rank {self.rank}"
            )

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        shape = (self.rows, self.columns, self.rank, self.strength, self.noise)
        matrices = [planted(rng, *shape) for _ in range(self.matrices)]
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

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        spectra = self.spectra(setting)
        return [
            assume(
                "smallest of the matrices' largest singular values / λ",
                min(s[0] for s in spectra),
                ">",
                1,
                "no column helps; lower --penalty",
            ),
            assume(
                "smallest distance of a singular value to λ, relative",
                min(np.abs(s - 1).min() for s in spectra),
                ">",
                1e-3,
                "columns at λ itself settle slowly; change --penalty a little",
            ),
        ]

    def spectra(self, setting: Setting) -> list[np.ndarray]:
        """Return the singular values of each matrix over its λ."""
        pairs = zip(setting.matrices, setting.penalties, strict=True)
        return [np.linalg.svd(y, compute_uv=False) / penalty for y, penalty in pairs]

    @property
    def widths(self) -> np.ndarray:
        """Return the numbers of columns at which descents are run."""
        return np.arange(1, min(self.rows, self.columns) + 1)

    def predict(self, setting: Setting) -> Prediction:
        spectra = self.spectra(setting)
        excess = [_excess(s) for s in spectra]
        first = setting.penalties[0] ** 2 * excess[0]
        networks = [
            squared_neurons(x, y, self.neuron_penalty).value
            for x, y in zip(setting.x, setting.y, strict=True)
        ]
        return Prediction(
            columns=("matrix", [(s > 1).sum() for s in spectra]),
            gaps=("matrix round", padded(excess) * setting.penalties[:, None] ** 2),
            polars=("matrix round", padded([np.maximum(np.append(s, 0), 1) for s in spectra])),
            minimum=("matrix", [_minimum(s) for s in spectra] * setting.penalties**2),
            descents=("width", first[np.minimum(self.widths, len(first) - 1)]),
            networks=("network", networks),
            gain=0.5,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        growths = [
            grow_factors(y, penalty)
            for y, penalty in zip(setting.matrices, setting.penalties, strict=True)
        ]
        networks = [
            grow_neurons(x, y, self.neuron_penalty)
            for x, y in zip(setting.x, setting.y, strict=True)
        ]
        values, polars = descend_factors(
            setting.matrices[0], self.penalty, self.widths, self.starts, self.steps, keys(key, 1)[0]
        )
        return Observation(
            columns=("matrix", [growth.sizes[-1] for growth in growths]),
            values=("matrix round", padded([growth.values for growth in growths])),
            polars=(
                "matrix round",
                padded([growth.polars for growth in growths]) / setting.penalties[:, None],
            ),
            second=("matrix", [_second_pair(*of) for of in zip(*setting[:2], strict=True)]),
            descent_values=("width start", values),
            descent_polars=("width start", polars),
            network_values=("network round", padded([growth.values for growth in networks])),
            network_polars=(
                "network round",
                padded([growth.polars / self.neuron_penalty for growth in networks]),
            ),
            network_sizes=("network", [growth.sizes[-1] for growth in networks]),
            # ‖relu(Xu)‖² of the best new neuron is at most the sum over the inputs
            unit_energy=("network", (setting.x**2).sum((1, 2))),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        certified = (observed["descent_polars"] <= 1 + SOLVED).mean()
        return [assume("share of descents that end certified", certified, ">", 0, "raise --steps")]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        scale = predicted["minimum"]
        gaps = observed["values"] - predicted["minimum"][:, None]
        rounds = min(gaps.shape[1], predicted["gaps"].shape[1])
        off = np.abs(gaps[:, :rounds] - predicted["gaps"][:, :rounds]) / scale[:, None]
        polars = np.abs(observed["polars"][:, :rounds] - predicted["polars"][:, :rounds])
        descents = observed["descent_values"] - scale[0]
        final = _last(observed["network_values"])
        end = final / predicted["networks"] - 1
        certified = observed["descent_polars"] <= 1 + SOLVED
        return [
            agreement(
                "columns",
                np.abs(observed["columns"] - predicted["columns"]).max(),
                0.0,
                label="columns grown − singular values above λ, worst matrix",
            ),
            agreement(
                "gaps",
                np.nanmax(off),
                1e-9,
                label="excess with k columns − ½ Σ_{i>k} (s_i − λ)₊², all k, relative to the minimum",
            ),
            agreement(
                "polars",
                np.nanmax(polars),
                1e-9,
                label="polar with k columns − max(s_{k+1}, λ), all k, over λ",
            ),
            agreement(
                "descents",
                np.abs(descents - predicted["descents"][:, None]).max() / scale[0],
                SOLVED,
                label="descents with k columns from random starts: excess − the same, relative",
            ),
            agreement(
                "certified",
                np.abs(np.where(certified, descents, 0)).max() / scale[0],
                SOLVED,
                label="descents that end with a polar of at most λ: excess, relative",
            ),
            agreement(
                "networks",
                np.abs(end).max(),
                SOLVED,
                label="networks: value at the end / convex optimum − 1, largest",
            ),
            bound(
                "gain",
                self.gain(predicted, observed).min(),
                at_least=float(predicted["gain"]) * (1 - SOLVED),
                label="least excess / ((polar − λ)²/‖unit‖²), all rounds",
            ),
            equal(
                "network_polars",
                1.0,
                _last(observed["network_polars"]),
                10 * SOLVED,  # residuals are good to the root of the program's gap
                aggregate="all",
                label="networks: polar at the end / λ",
            ),
        ]

    def gain(self, predicted: Prediction, observed: Observation) -> np.ndarray:
        """Return excess / ((polar − λ)²/‖unit‖²) in every round of growth where the polar is above λ."""
        random = slice(0, self.matrices)  # λ of digits is another
        over = (observed["polars"][random] - 1) * self.penalty
        above = over > 1e-4 * self.penalty
        excess = (observed["values"] - predicted["minimum"][:, None])[random]
        of_matrices = excess[above] / over[above] ** 2
        over = (observed["network_polars"] - 1) * self.neuron_penalty
        above = over > 1e-2 * self.neuron_penalty
        excess = observed["network_values"] - predicted["networks"][:, None]
        excess = excess * observed["unit_energy"][:, None]
        return np.concatenate([of_matrices, excess[above] / over[above] ** 2])

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        spectra = self.spectra(setting)
        eckart = [_tails(s**2 * (s > 1)) / 2 for s in spectra]
        half = [
            squared_neurons(x, y, self.neuron_penalty / 2).value
            for x, y in zip(setting.x, setting.y, strict=True)
        ]
        looser = predicted.replace(
            columns=("matrix", [(s > 0.5).sum() for s in spectra]),
            polars=("matrix round", padded([np.maximum(np.append(s, 0), 0.5) for s in spectra])),
            networks=("network", half),
        )
        full_width = predicted.replace(columns=("matrix", [len(s) for s in spectra]))
        return [
            Rival(
                "half",
                looser,
                "the penalty is (λ/2)(‖U‖² + ‖V‖²)",
                label="the certificate is λ/2",
            ),
            Rival(
                "full_width",
                full_width,
                "then the factorization is no constraint",
                label="width must be min(m, n)",
            ),
            Rival(
                "eckart_young",
                predicted.replace(
                    gaps=("matrix round", padded(eckart) * setting.penalties[:, None] ** 2),
                    descents=(
                        "width",
                        (self.penalty**2 * eckart[0])[np.minimum(self.widths, len(eckart[0]) - 1)],
                    ),
                ),
                "so it is without the penalty",
                label="the excess with k columns is ½ Σ_{i>k} s_i²",
            ),
            Rival(
                "whole_gain",
                predicted.replace(gain=1.0),
                "the derivative along the new unit is polar − λ",
                label="a new unit gains (polar − λ)²/‖unit‖²",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        stuck = np.broadcast_to(observed["second"][0], observed["descent_values"].shape)
        unfinished = observed["network_values"][:, :1]
        return [
            Control(
                "stationary",
                observed.replace(
                    descent_values=("width start", stuck),
                    descent_polars=("width start", np.ones_like(stuck)),
                ),
                "it is stationary and has an idle column, and no minimum",
                label="U and V on the second pair, taken as certified because its gradient is zero",
            ),
            Control(
                "no_growth",
                observed.replace(
                    network_values=("network round", unfinished),
                    network_polars=("network round", observed["network_polars"][:, :1]),
                ),
                "nothing was grown",
                label="networks without a neuron",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        curves = []
        polar_curves = []
        for i in range(min(3, self.matrices)):
            shade = i / 2
            gap = observed["values"][i] - predicted["minimum"][i]
            rounds = np.arange(len(gap))
            curves.append(
                observed_curve(rounds, gap, "grown" * (not i), kind="points", shade=shade)
            )
            expected = predicted["gaps"][i]
            curves.append(
                predicted_curve(np.arange(len(expected)), expected, "½ Σ (s_i − λ)₊²" * (not i))
            )
            polar_curves.append(observed_curve(rounds, observed["polars"][i], shade=shade))
        network_curves = []
        for i, (values, best) in enumerate(
            zip(observed["network_values"], predicted["networks"], strict=True)
        ):
            gap = np.maximum(values / best - 1, 1e-12)
            network_curves.append(
                observed_curve(np.arange(len(gap)), gap, shade=i / max(1, self.networks - 1))
            )
        polar_curves += [
            context_curve(
                np.arange(observed["network_polars"].shape[1]),
                polars,
                "networks" * (not i),
            )
            for i, polars in enumerate(observed["network_polars"])
        ]
        last = max(observed["network_polars"].shape[1], observed["polars"].shape[1]) - 1
        width = np.repeat(self.widths, observed["descent_values"].shape[1])
        descents = (observed["descent_values"] - predicted["minimum"][0]).ravel()
        stuck = observed["second"][0] - predicted["minimum"][0]
        return (
            panel(
                "Excess over the global minimum: matrices",
                "columns grown",
                "excess",
                *curves,
            ),
            panel(
                "The polar falls to λ",
                "rounds of growth",
                "polar / λ",
                *polar_curves,
                predicted_curve((0, last), (1, 1), "certificate"),
                rival_curve((0, last), (0.5, 0.5), "λ/2"),
            ),
            panel(
                "Networks of ReLU neurons",
                "rounds of growth",
                "value / convex optimum − 1",
                *network_curves,
                log="y",
            ),
            panel(
                "Descents from random starts",
                "columns",
                "excess",
                observed_curve(width, descents, "descents", kind="points"),
                predicted_curve(self.widths, predicted["descents"], "½ Σ (s_i − λ)₊²"),
                rival_curve((1, self.widths[-1]), (stuck, stuck), "stationary, on the second pair"),
            ),
        )


def _tails(terms: np.ndarray) -> np.ndarray:
    """Return Σ_{i>k} of the terms for k = 0, …, all, shape ``(terms + 1,)``."""
    return np.append(terms[::-1].cumsum()[::-1], 0.0)


def _excess(s: np.ndarray) -> np.ndarray:
    """Return ½ Σ_{i>k} (s_i − 1)₊² for every k, singular values in units of λ and decreasing."""
    return _tails(np.maximum(s - 1, 0) ** 2) / 2


def _minimum(s: np.ndarray) -> float:
    """Return the minimum of ½‖Y − Z‖² + ‖Z‖_*, singular values in units of λ."""
    return float((np.minimum(s, 1) ** 2).sum() / 2 + np.maximum(s - 1, 0).sum())


def _second_pair(y: np.ndarray, penalty: float) -> float:
    """Return the penalized risk with one column on the second singular pair and the others zero."""
    s = np.linalg.svd(y, compute_uv=False)
    gained = max(s[1] - penalty, 0.0)
    return float(((s**2).sum() - gained**2) / 2)


def _last(table: np.ndarray) -> np.ndarray:
    """Return the last entry of each row that is not NaN."""
    return np.array([row[np.isfinite(row)][-1] for row in table])
