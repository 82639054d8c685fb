"""N steps drawn from Barron's law miss f by (V²Eφ² − ‖f‖²)/N < (2C_f)²/N in mean square, in dimensions 2, 5 and 10.

A function with a finite first Fourier moment C_f is an average of steps along ridges. The mean of N of them, drawn
independently, has the squared error of any mean: a constant over N. The constant is known and lies below Barron's
bound, and the rate does not depend on the dimension. Ridges chosen one after another do better than ridges drawn
beforehand.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    UserError,
    Values,
    Within,
    assume,
    bound,
    equal,
    exponent,
    idle,
    numpy_generator,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.nn.networks import Barron, barron


class Fits(NamedTuple):
    """Mean squared errors on fresh points of least squares on 1 to all ridges, by group."""

    greedy: Values  # ridges chosen one after another, (seeds, counts)
    fixed: Values  # the first of the same list, (seeds, counts)


@dataclass(frozen=True)
class BarronRate(Claim):
    """The function exp(−‖x‖²/2s²) − 1 on the unit ball, and networks of steps that are drawn, chosen or fixed."""

    dimensions: tuple[Count, ...] = (2, 5, 10)  # d [1]
    scale: Annotated[float, Within(0.01, 20)] = 0.5  # s [1]
    widths: tuple[Count, ...] = (8, 16, 32, 64, 128, 256)  # N [steps]
    draws: Count = 40  # networks of a width and group [1]
    points: Count = 100  # of the ball, for every network anew [1]
    radius: Positive = 1.0  # of the ball from which these points come [1]
    greedy_dimension: Count = 5  # d of the fits [1]
    ridges: Count = 600  # from which they choose [1]
    chosen: Count = 32  # ridges that they choose [1]
    fit_points: Count = 400  # of the ball, to fit and again to judge [1]
    seeds: Seeds = 20  # independent groups [1]

    kind = "theorem"
    version = 2  # 1 had 10 networks of a width and group
    headline = ("constant_0", "constant_1", "constant_2", "rate_0", "rate_1", "rate_2")
    statement = (
        r"\mathbb E\,\lVert \frac{V}{N}\sum_{j=1}^N\varphi_j-f\rVert^2"
        r"=\frac{V^2\,\mathbb E\varphi^2-\lVert f\rVert^2}N"
        r"\le\frac{(2C_f)^2}N,\qquad C_f=\int\lVert w\rVert\,|\hat f(w)|\,dw"
    )
    source = "Montanari's talk in the notes [@vodrahalli2019], which states Barron's theorem; [@barron1993]"
    corrections = (
        "The talk prints the risk of the best network as at most (1/N) 2σ∫‖w‖F(w)dw. Barron's bound is (2 r C_f)²/N "
        "with the radius r: the risk of A·f is A² times that of f and the printed side A times, so that it fails "
        "for large A (algebra, not tested here).",
    )
    remarks = (
        "The constant is computed by quadrature, not fitted: V = 2E∫r|sin(rt)|dt and Eφ² are integrals over "
        "frequency and threshold. It is about a twentieth of (2C_f)², of which the bound gives no hint.",
        "A bound for the best network follows, as the best is no worse than the mean of the drawn ones. Greedy "
        "choice from 600 ridges is far below it, so that its check cannot fail.",
        "“No fixed basis does as well” is a statement about the worst function of a class (N^(−2/d) there) and is "
        "not tested. What is judged is one function, and that ridges chosen for it beat ridges drawn beforehand, "
        "both with least squares on 400 points and errors on 400 others.",
        "Functions of infinite C_f are not tested.",
        "Version 1 had 10 networks of a width and group: 14 of its 20 fresh seeds held and none failed, but 6 were "
        "inconclusive, all in two dimensions. Version 2 has 40, at half as many points each.",
    )
    full = {
        "dimensions": (2, 5, 10, 20),
        "draws": 100,
        "ridges": 4000,
        "chosen": 64,
        "fit_points": 1500,
    }
    tiny = {
        "widths": (4, 8, 16),
        "draws": 4,
        "points": 50,
        "ridges": 40,
        "chosen": 4,
        "fit_points": 30,
        "seeds": 3,
    }
    out_of_scope = {"radius": 2.0}

    def check_fields(self) -> None:
        if self.chosen > self.ridges:
            raise UserError(f"--chosen is at most --ridges {self.ridges}, got {self.chosen}")
        if self.chosen > self.fit_points:
            raise UserError(
                f"--chosen is at most --fit-points {self.fit_points}, got {self.chosen}"
            )

    @property
    def functions(self) -> list[Barron]:
        """The function in every dimension."""
        return [barron(d, self.scale) for d in self.dimensions]

    def hypotheses(self, setting: None) -> list[Hypothesis]:
        return [
            assume(
                "radius of the points",
                self.radius,
                "<=",
                1,
                "beyond the unit ball the steps do not make f",
            )
        ]

    def predict(self, setting: None) -> Prediction:
        functions = self.functions
        return Prediction(
            constant=("dimension", [f.variance for f in functions]),
            rate=("dimension", -np.ones(len(functions))),
            mass=("dimension", [f.mass for f in functions]),
            barron=("dimension", [(2 * f.constant) ** 2 for f in functions]),
            best=barron(self.greedy_dimension, self.scale).variance,
        )

    def observe(self, setting: None, key: Key) -> Observation:
        rng = numpy_generator(key)
        errors, masses = zip(*(self.drawn(f, rng) for f in self.functions), strict=True)
        fits = self.fits(barron(self.greedy_dimension, self.scale), rng)
        return Observation(
            errors=("seed dimension width", np.stack(errors, 1)),
            mass=("seed dimension", np.stack(masses, 1)),
            greedy=("seed chosen", fits.greedy),
            fixed=("seed chosen", fits.fixed),
        )

    def drawn(self, f: Barron, rng: np.random.Generator) -> tuple[Values, Values]:
        """Return mean squared errors of drawn networks, (seeds, widths), and estimates of V, (seeds,)."""
        errors = np.zeros((self.seeds, len(self.widths)))
        steps = np.zeros(self.seeds)
        proposals = np.zeros(self.seeds)
        for group in range(self.seeds):
            for i, N in enumerate(self.widths):
                networks, made = f.sample(rng, self.draws, N)
                x = self.radius * f.ball(rng, self.draws, self.points)
                errors[group, i] = ((networks.apply(x) - f.target(x)) ** 2).mean()
                steps[group] += self.draws * N
                proposals[group] += made
        return errors, 2 * f.constant * steps / proposals

    def fits(self, f: Barron, rng: np.random.Generator) -> Fits:
        """Fit by least squares on ridges that are chosen greedily, and on the first ones."""
        greedy = []
        fixed = []
        for _ in range(self.seeds):
            ridges, _ = f.sample(rng, self.ridges)
            x = self.radius * f.ball(rng, 2, self.fit_points)
            train, fresh = ridges.steps(x)
            targets = f.target(x)
            chosen = choose(train, targets[0], self.chosen)
            for errors, columns in ((greedy, chosen), (fixed, np.arange(self.chosen))):
                errors.append(errors_of(train[:, columns], fresh[:, columns], *targets))
        return Fits(np.array(greedy), np.array(fixed))

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        widths = np.array(self.widths)
        checks: list[Check] = []
        for i, d in enumerate(self.dimensions):
            errors = observed["errors"][:, i]
            checks += [
                equal(
                    f"constant_{i}",
                    float(predicted["constant"][i]),
                    (widths * errors).mean(1),
                    0.06,  # the interval is 1 to 2 %
                    label=f"N · squared error, d = {d}",
                ),
                equal(
                    f"mass_{i}",
                    float(predicted["mass"][i]),
                    observed["mass"][:, i],
                    0.02,  # the interval is 0.3 %, that of one batch of proposals 1 %
                    label=f"V from the share of proposals that are kept, d = {d}",
                ),
            ]
            if len(set(self.widths)) > 2:
                checks.append(
                    exponent(
                        f"rate_{i}",
                        float(predicted["rate"][i]),
                        widths,
                        errors,
                        0.06,  # the interval is 1 to 2 %
                        label=f"squared error against N, d = {d}",
                    )
                )
        last = {"chosen": observed["greedy"][:, -1], "fixed": observed["fixed"][:, -1]}
        counts = counted(self.chosen)
        checks += [
            order(
                "adaptive",
                ["chosen", "fixed"],
                last,
                label=f"error of {self.chosen} ridges, chosen and fixed, d = {self.greedy_dimension}",
            ),
            idle(
                bound(
                    "best",
                    (counts * observed["greedy"]).max(1),
                    at_most=float(predicted["best"]),
                    label="N · error of chosen ridges, largest over N",
                ),
                "the room is so great that nothing we tried fails it",
            ),
        ]
        return checks

    def rivals(self, setting: None, predicted: Prediction) -> list[Rival]:
        functions = self.functions
        d = np.array(self.dimensions)
        waves = [_fourier_variance(f) for f in functions]
        return [
            Rival(
                "no_mean",
                predicted.replace(constant=("dimension", [f.variance + f.norm for f in functions])),
                "the second moment of a step, without the square of its mean",
                label="V² Eφ²/N",
            ),
            Rival(
                "full_mass",
                predicted.replace(mass=("dimension", [2 * f.constant for f in functions])),
                "it is what the bound uses",
                label="V = 2 C_f",
            ),
            Rival(
                "bound_attained",
                predicted.replace(constant=("dimension", predicted["barron"])),
                "the bound is what one gets",
                label="(2 C_f)²/N",
            ),
            Rival(
                "cosines",
                predicted.replace(constant=("dimension", waves)),
                "sampled frequencies: random features of cosines",
                label="the variance of sampled cosines over N",
            ),
            Rival(
                "curse",
                predicted.replace(rate=("dimension", -np.where(d == 2, 2 / 3, 2 / d))),
                "what fixed bases do in the worst case, or one dimension more for d = 2",
                label="N^(−2/d)",
            ),
            Rival(
                "root",
                predicted.replace(rate=("dimension", np.full(len(d), -0.5))),
                "the rate of the error, not of its square",
                label="N^(−1/2)",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "not_chosen",
                observed.replace(greedy=("seed chosen", observed["fixed"])),
                "ridges drawn beforehand know nothing of f",
                "the first ridges in place of the chosen ones",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        widths = np.array(self.widths, float)
        shades = np.linspace(0, 0.8, len(self.dimensions))
        middle = len(self.dimensions) // 2
        curves = [
            observed_curve(
                widths, observed["errors"][:, i].mean(0), f"d = {d}", kind="points", shade=shade
            )
            for i, (d, shade) in enumerate(zip(self.dimensions, shades, strict=True))
        ]
        laws = [
            predicted_curve(widths, value / widths, "constant / N" if i == 0 else "")
            for i, value in enumerate(predicted["constant"])
        ]
        first = observed["errors"][:, middle].mean(0)[0]
        d = self.dimensions[middle]
        counts = counted(self.chosen)
        dimensions = np.array(self.dimensions, float)
        measured = (widths * observed["errors"]).mean(2)
        return (
            panel(
                "Drawn steps: 1/N in every dimension",
                "steps N",
                "squared error",
                *curves,
                *laws,
                rival_curve(widths, first * (widths / widths[0]) ** (-2 / d), f"N^(−2/{d})"),
                log="xy",
            ),
            panel(
                "The constant is known, far below Barron's bound",
                "dimension d",
                "N · squared error",
                observed_curve(dimensions, measured, "drawn", kind="points"),
                predicted_curve(dimensions, predicted["constant"], "V² Eφ² − ‖f‖²"),
                rival_curve(dimensions, predicted["barron"], "(2 C_f)²"),
                log="y",
            ),
            panel(
                f"Chosen ridges beat fixed ones, d = {self.greedy_dimension}",
                "ridges N",
                "squared error",
                observed_curve(counts, observed["greedy"].mean(0), "chosen"),
                observed_curve(counts, observed["fixed"].mean(0), "fixed", shade=0.6),
                predicted_curve(counts, predicted["best"] / counts, "drawn, without a fit"),
                log="xy",
            ),
        )


def choose(columns: Values, target: Values, count: int) -> Values:
    """Return the columns that orthogonal greedy choice takes, in order, shape ``(count,)``.

    Args:
        columns: of the dictionary at the points, shape ``(points, columns)``.
        target: shape ``(points,)``.
        count: how many.
    """
    left = columns.copy()
    residual = target.copy()
    chosen = []
    for _ in range(count):
        squares = (left**2).sum(0)
        alive = squares > 1e-9 * len(columns)
        gains = np.where(alive, (residual @ left) ** 2 / np.where(alive, squares, 1), -1.0)
        gains[chosen] = -2.0
        best = int(gains.argmax())
        chosen.append(best)
        if alive[best]:
            way = left[:, best] / np.sqrt(squares[best])
            residual = residual - way * (way @ residual)
            left = left - np.outer(way, way @ left)
    return np.array(chosen)


def counted(most: int) -> np.ndarray:
    """Return the numbers of ridges at which fits are made: 1 to the most, in equal ratios."""
    return np.unique(np.round(np.geomspace(1, most, 7)).astype(int))


def errors_of(train: Values, fresh: Values, targets: Values, others: Values) -> Values:
    """Return mean squared errors on fresh points of least squares on the first 1 to all columns."""
    errors = []
    for count in counted(train.shape[1]):
        weights = np.linalg.lstsq(train[:, :count], targets, rcond=1e-9)[0]
        errors.append(((fresh[:, :count] @ weights - others) ** 2).mean())
    return np.array(errors)


def _fourier_variance(f: Barron) -> float:
    """Return the variance of cos⟨w, x⟩ − 1 over frequencies, in the mean over the ball: N times the error of N of them.

    E cos² = (1 + E cos⟨2w, x⟩)/2, and E cos is the Gaussian itself.
    """
    nodes, weights = np.polynomial.legendre.leggauss(100)
    rho = (nodes + 1) / 2
    density = weights / 2 * f.dimension * rho ** (f.dimension - 1)
    mean = np.exp(-(rho**2) / (2 * f.scale**2))
    square = (1 + mean**4) / 2
    return float((density * (square - mean**2)).sum())
