"""Ridge regression in features, kernel ridge and the Gaussian-process mean are the same function.

The function is f = K(K + λ)⁻¹y, with the kernel K of the features and the ridge λ. Six computations that share no step
give this function: least squares over the features, gradient descent with weight decay on the features' weights,
elimination in the joint Gaussian of noisy and noiseless values, and scikit-learn's three estimators. For the logistic
loss, too, the weights of least penalized risk lie in the span of the training features. Found in all of feature space
from a start outside the span, these weights give the function that is predicted from the kernel without features. The
kernel belongs to a random network's last hidden layer, with fewer or with more features than examples, or to a network
of infinite width.
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np
import xarray
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.kernels.representer.experiment import (
    WAYS,
    Problem,
    draw_problems,
    least_squares,
    logistic_weights,
    ridge_outputs,
    share_outside,
    sparse_weights,
)
from steepest.claims.kernels.representer.theory import logistic_function, ridge_function, ridge_norm

TOLERANCE = 1e-10
"""Of the largest output: rounding times the condition number, 1e4 at most, leaves 1e-12."""

LABELS = {
    "squares": "features: least squares",
    "descent": "features: descent with weight decay",
    "elimination": "Gaussian: elimination",
    "sklearn_ridge": "scikit-learn Ridge",
    "sklearn_kernel_ridge": "scikit-learn KernelRidge",
    "sklearn_process": "scikit-learn GaussianProcessRegressor",
}


class Setting(NamedTuple):
    """What theory and experiment both see: features and labels."""

    problems: list[Problem]  # one for each kernel


@kit.claim
class Representer(kit.Claim[Setting]):
    """Two classes of digits, features of random networks and the tangent kernel of an infinitely wide one."""

    train: Annotated[int, kit.Within(2, 200)] = kit.param(
        40, "training points m", scope=kit.between(30, 60, "--few below and --many above it")
    )
    test: Annotated[int, kit.Within(1, 150)] = kit.param(
        20, "test points", scope=kit.between(5, 50)
    )
    few: kit.Count = kit.param(
        25, "features of the narrow network", unit="neurons", scope=kit.between(5, 29)
    )
    many: kit.Count = kit.param(
        300, "features of the wide network", unit="neurons", scope=kit.between(100, 600)
    )
    ridge: kit.Positive = kit.param(
        0.1,
        "λ by the mean of K(x, x) over the training points",
        scope=kit.between(0.1, 10.0, "descent needs steps as 1/λ"),
    )
    steps: kit.Count = kit.param(10_000, "steps of the descent with weight decay", unit="steps")

    kind = "theorem"
    says = {
        "Ridge regression in features, kernel ridge and the Gaussian-process mean": "outputs",
    }
    tiny = {"train": 10, "test": 5, "few": 6, "many": 20, "ridge": 1.0, "steps": 400}
    full = {"train": 150, "test": 100, "few": 60, "many": 2000, "steps": 20_000}
    out_of_scope = {"ridge": 1e-9}

    def axes(self):
        kernels = (f"{self.few} features", f"{self.many} features", "infinite width")
        return {
            "kernel": kernels,
            "wide": kernels[1:],
            "way": WAYS,
            "point": tuple(range(1, self.train + self.test + 1)),
        }

    def setting(self, key):
        counts = (self.few, self.many)
        return Setting(draw_problems(key, self.train, self.test, counts, self.ridge))

    def hypotheses(self, setting):
        worst = max(
            float(np.linalg.norm(problem.inside, 2) ** 2 / problem.ridge + 1)
            for problem in setting.problems
        )
        left = ((worst - 1) / (worst + 1)) ** self.steps
        fewer = "choose --few below and --many above --train"
        better = "float64 gives 1e-10 with a larger --ridge"
        more = "more --steps, or a larger --ridge"
        yield kit.assume("features of the narrow network", self.few, "<", self.train, fewer)
        yield kit.assume("features of the wide network", self.many, ">", self.train, fewer)
        yield kit.assume(
            "λ / mean of K(x, x)", self.ridge, "<=", 100, "a larger one leaves nothing"
        )
        yield kit.assume("largest condition number of K + λ", worst, "<=", 1e4, better)
        yield kit.assume("what descent leaves of its start", left, "<=", 1e-13, more)

    def predict(self, setting):
        norms = [
            ridge_norm(problem.every @ problem.inside.T, problem.y, problem.ridge)
            for problem in setting.problems
        ]
        return kit.law(
            outputs=("kernel point", _functions(ridge_function, setting)),
            norm=("kernel", norms),
            logistic=("kernel point", _functions(logistic_function, setting)),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        problems = setting.problems
        starts = [rng.standard_normal(problem.inside.shape[1]) for problem in problems]
        classifiers = list(map(logistic_weights, problems, starts))
        sparse = list(map(sparse_weights, problems))
        ways = [ridge_outputs(problem, self.steps) for problem in problems]
        squares = [float((least_squares(problem) ** 2).sum()) for problem in problems]
        return kit.seen(
            outputs=("kernel way point", [[of[way] for way in WAYS] for of in ways]),
            sparse_outputs=("kernel point", list(map(_at_all_points, problems, sparse))),
            norm=("kernel", squares),
            sparse_norm=("kernel", [float(theta @ theta) for theta in sparse]),
            logistic=("kernel point", list(map(_at_all_points, problems, classifiers))),
            outside=("wide", list(map(share_outside, problems[1:], classifiers[1:]))),
            sparse_outside=("wide", list(map(share_outside, problems[1:], sparse[1:]))),
        )

    def judge(self, law, seen):
        yield kit.agrees(
            "outputs",
            _relative(seen.outputs, law.outputs),
            TOLERANCE,
            label="largest relative difference of the outputs, each of six ways",
        )
        yield kit.agrees(
            "norm", abs(seen.norm / law.norm - 1), TOLERANCE, label="‖θ‖² / ‖f‖²_H − 1"
        )
        yield kit.agrees(
            "logistic",
            _relative(seen.logistic, law.logistic),
            TOLERANCE,
            label="logistic loss, features against kernel: largest relative difference",
        )
        yield kit.agrees(
            "outside",
            seen.outside,
            TOLERANCE,
            label="logistic loss: share of θ outside the span of the training features",
        )

    def rivals(self, setting, law):
        half = "½ forgotten on one side"
        training = law.outputs.isel(point=slice(self.train))
        interpolants = [
            problem.every @ np.linalg.pinv(problem.inside) @ problem.y
            for problem in setting.problems
        ]
        yield kit.rival(
            "the logistic loss gives the function of the squared loss",
            "both are in the span",
            id="logistic_is_ridge",
            logistic=law.outputs,
        )
        yield kit.rival(
            "λ/2 in the penalty, logistic loss",
            half,
            logistic=("kernel point", _functions(logistic_function, setting, 0.5)),
        )
        yield kit.rival(
            "λ of the mean: K(K + mλ)⁻¹y",
            "the risk is a mean elsewhere in the notes",
            outputs=("kernel point", _functions(ridge_function, setting, self.train)),
        )
        yield kit.rival(
            "λ/2 in the penalty: K(K + λ/2)⁻¹y",
            half,
            outputs=("kernel point", _functions(ridge_function, setting, 0.5)),
        )
        yield kit.rival(
            "no λ: interpolation", "the limit λ → 0", outputs=("kernel point", interpolants)
        )
        yield kit.rival(
            "‖f‖²_H is the sum of squares of f",
            "the norm of L² in place of the norm of the RKHS",
            norm=(training**2).sum("point"),
        )

    def controls(self, seen):
        yield kit.control(
            "an ℓ1 penalty",
            "what it adds outside the span is not lost",
            outputs=seen.sparse_outputs,
            norm=seen.sparse_norm,
            outside=seen.sparse_outside,
        )
        yield kit.control(
            "squared loss for the logistic one",
            "another loss has another function in the same span",
            logistic=seen.outputs.sel(way="squares"),
        )

    def figure(self, law, seen, rivals):
        of_test = {"kernel": -1, "point": slice(self.train, None)}
        points = np.arange(1, self.test + 1)
        ways = np.arange(1, len(WAYS) + 1)
        off = _relative(seen.outputs, law.outputs).max("point")
        ways_drawn = [
            kit.observed_curve(
                points,
                seen.outputs.isel(of_test).sel(way=way).values,
                LABELS[way],
                kind="points",
                shade=shade,
            )
            for way, shade in zip(WAYS[:3], (0.0, 0.5, 1.0), strict=True)
        ]
        agreement = [
            kit.observed_curve(
                ways,
                np.maximum(off.isel(kernel=i).values, 1e-17),
                str(off["kernel"].values[i]),
                kind="points",
                shade=i / 2,
            )
            for i in range(3)
        ]
        yield kit.panel(
            "Test points, infinite width",
            "test point",
            "output",
            kit.predicted_curve(points, law.outputs.isel(of_test).values, "K(K + λ)⁻¹y"),
            *ways_drawn,
        )
        yield kit.panel(
            "All ways agree to rounding",
            "way, in the order of the table",
            "largest relative difference",
            *agreement,
            kit.rival_curve(ways, 0 * ways + TOLERANCE, "margin"),
            log="y",
        )


def _functions(
    of_kernel: Callable[[NDArray, NDArray, float], NDArray], setting: Setting, factor: float = 1.0
) -> list[NDArray]:
    """Return a function at all points for every kernel, with a multiple of λ."""
    return [
        of_kernel(problem.every @ problem.inside.T, problem.y, factor * problem.ridge)
        for problem in setting.problems
    ]


def _at_all_points(problem: Problem, theta: NDArray) -> NDArray:
    return problem.every @ theta


def _relative(outputs: xarray.DataArray, expected: xarray.DataArray) -> xarray.DataArray:
    """Return how far outputs are from others, by the largest of them."""
    return abs(outputs - expected) / abs(outputs).max("point")
