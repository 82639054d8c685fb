"""The perceptron errs at most (R/γ)² times, in whatever order examples come, and exactly so often on orthogonal ones.

It starts at zero and adds an example, times its label, whenever it errs on it. R is the longest example's length and γ
the largest margin of any separator, which the algorithm never sees. Each error moves ⟨w, u⟩ by γ at least along the
best separator u, and ‖w‖² by R² at most, so that γM ≤ ‖w‖ ≤ R√M. Neither dimension nor the number of examples enters:
the same holds in the tangent features of a network at its start, where γ is the margin of frozen features.
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
    Prediction,
    Rival,
    Values,
    Within,
    assume,
    bound,
    equal,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.kernels import arc_cosine
from steepest.linalg import sequential
from steepest.nn.data import digits, hypercube, signs
from steepest.programs import MarginProgram, kernel_margin

PAIRS = ((0, 1), (3, 8), (4, 9))
STRETCH = 1.1  # a control's start lies so many times R·√M behind zero
PATIENCE = 3  # mistakes after which a run is given up, over the bound


class Examples(NamedTuple):
    """One data set, as the algorithm and the theory see it."""

    name: str
    gram: Values  # of y_i x_i, (n, n)
    labels: Values  # (n,)
    dimension: float  # of the features; infinite where there is no limit
    program: MarginProgram


@dataclass(frozen=True)
class PerceptronMistakes(Claim):
    """Orthogonal sets, points on spheres, pairs of digits, and XOR in the tangent features of a ReLU network."""

    orthogonal: tuple[Annotated[int, Within(2, 500)], ...] = (
        4,
        16,
        64,
    )  # sizes of orthogonal sets [1]
    dimensions: tuple[Annotated[int, Within(2, 2000)], ...] = (10, 50, 200)  # of the spheres [1]
    examples: Annotated[int, Within(4, 350)] = 120  # points on each sphere, images of each pair [1]
    bits: Annotated[int, Within(2, 9)] = 8  # dimension of the cube whose XOR is learned [1]
    orders: Count = 20  # random orders of each set [1]
    contradictions: Annotated[int, Within(0, 3)] = 0  # examples repeated with the other label [1]

    kind = "theorem"
    statement = (
        r"w\leftarrow w+y_ix_i\ \text{ where }\ y_i\langle w,x_i\rangle\le0,\ w_0=0:\qquad "
        r"\gamma M\le\langle w,u\rangle\le\lVert w\rVert\le R\sqrt M\ \Rightarrow\ M\le\frac{R^2}{\gamma^2}"
    )
    source = (
        "[@novikoff1962]; the talk [@telgarsky2024] (“pretty incredible proof”); the lectures [@telgarsky2019] "
        "(“perceptron convergence rate via margins”)"
    )
    headline = ("never", "tight")
    remarks = (
        "Orthogonal examples of one length: each is misclassified once, since w is zero on it until it is added, and "
        "(R/γ)² is their number. No learner does better: whoever predicts an orthogonal example can be told the "
        "opposite, and the set stays separable with the same margin.",
        "Orders are random ones, repeated until a pass has no error, and an adversary that always presents the error "
        "that is least wrong. The worst of these reaches a fifth to three fifths of the bound on points and images, "
        "and 0.83 of it on XOR, at seed 0.",
        "XOR of two bits on all points of the cube: no separator in the inputs, but a margin of about 1/(d√π) in the "
        "frozen features x·1[⟨w, x⟩ ≥ 0] (parity-margins), so that the perceptron on these errs at most about πd²/2 "
        "times. Labels without a linear separator are learned in the same way in any kernel that separates them.",
        "The start is part of it: from a w that points away from u the number has no bound but its length. The step "
        "size does not matter: errors do not change when w is scaled.",
    )
    full = {
        "orthogonal": (4, 16, 64, 256),
        "dimensions": (10, 50, 200, 1000),
        "examples": 300,
        "orders": 200,
        "bits": 9,
    }
    tiny = {"orthogonal": (4, 8), "dimensions": (10,), "examples": 20, "bits": 4, "orders": 3}
    out_of_scope = {"contradictions": 1}

    def setting(self, key: Key) -> list[Examples]:
        rng = numpy_generator(key)
        sets: list[tuple[str, Values, Values, float]] = [
            (f"{n} orthogonal", np.eye(n), rng.choice([-1.0, 1.0], n), n) for n in self.orthogonal
        ]
        for d in self.dimensions:
            x = _unit(rng.standard_normal((self.examples, d)))
            y = np.sign(x @ _unit(rng.standard_normal((1, d)))[0])
            sets.append((f"sphere, d = {d}", x @ x.T, y, d))
        for pair in PAIRS:
            data = signs(digits(pair))
            chosen = rng.permutation(data.n)[: self.examples]
            x = np.asarray(data.x)[chosen]
            sets.append(
                (f"digits {pair[0]}, {pair[1]}", x @ x.T, np.asarray(data.y)[chosen], data.d)
            )
        cube = hypercube(self.bits) / np.sqrt(self.bits)
        frozen = arc_cosine(cube @ cube.T).inner
        sets.append((f"XOR of {self.bits} bits", frozen, np.sign(cube[:, 0] * cube[:, 1]), np.inf))
        return [self.examined(*one) for one in sets]

    def examined(self, name: str, gram: Values, y: Values, dimension: float) -> Examples:
        """Return a set with its largest margin, and with what contradicts it."""
        again = np.append(np.arange(len(y)), np.arange(self.contradictions))
        gram = gram[np.ix_(again, again)]
        y = np.append(y, -y[: self.contradictions])
        return Examples(name, y[:, None] * gram * y, y, dimension, kernel_margin(gram, y))

    def hypotheses(self, setting: list[Examples]) -> list[Hypothesis]:
        least = min(one.program.margin if one.program.separable else 0.0 for one in setting)
        return [
            assume("smallest margin γ", least, ">", 1e-6, "without a separator errors never end")
        ]

    def predict(self, setting: list[Examples]) -> Prediction:
        limits = np.array([limit(one) for one in setting])
        tight = len(self.orthogonal)
        return Prediction(
            exact=("set", limits[:tight]),
            limit=("other", limits[tight:]),
            length=1.0,
            progress=1.0,
        )

    def observe(self, setting: list[Examples], key: Key) -> Observation:
        rng = numpy_generator(key)
        tight = len(self.orthogonal)
        runs = []
        hebb = []
        behind = []
        for one in setting:
            cap = int(PATIENCE * limit(one)) + 1
            orders = [rng.permutation(len(one.gram)) for _ in range(self.orders)]
            tried = [perceptron(one, order, cap) for order in orders]
            tried.append(perceptron(one, None, cap))
            runs.append(tried)
            hebb.append(perceptron(one, orders[0], cap, always=True))
            behind.append(perceptron(one, orders[0], cap, behind=STRETCH))
        mistakes = np.array([[run.mistakes for run in tried] for tried in runs], float)
        return Observation(
            exact=("set order", mistakes[:tight]),
            mistakes=("other order", mistakes[tight:]),
            length=("all order", [[run.length for run in tried] for tried in runs]),
            progress=("all order", [[run.progress for run in tried] for tried in runs]),
            hebb_length=("all", [run.length for run in hebb]),
            behind=("all", [float(run.mistakes) for run in behind]),
        )

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        exact = observed["exact"] / predicted["exact"][:, None]
        return [
            bound(
                "never",
                float((observed["mistakes"] / predicted["limit"][:, None]).max()),
                at_most=1 + 1e-6,
                label="errors / (R/γ)², worst order of all sets that are not orthogonal",
            ),
            equal(
                "tight",
                1.0,
                exact.ravel(),
                1e-6,  # of the margin's program
                aggregate="all",
                label="errors / (R/γ)² on orthogonal sets, every order",
            ),
            bound(
                "length",
                float(observed["length"].max()),
                at_most=float(predicted["length"]) + 1e-9,
                label="largest ‖w‖²/(R² M) along all runs",
            ),
            bound(
                "progress",
                float(observed["progress"].min()),
                at_least=float(predicted["progress"]) - 1e-6,
                label="least ⟨w, u⟩/(γM) along all runs",
            ),
        ]

    def rivals(self, setting: list[Examples], predicted: Prediction) -> list[Rival]:
        tight = len(self.orthogonal)
        dimension = np.array([one.dimension for one in setting])
        limits = predicted["limit"]
        exact = predicted["exact"]
        return [
            Rival(
                "half",
                predicted.replace(limit=("other", limits / 2), exact=("set", exact / 2)),
                "half of the examples have either label",
                label="(R/γ)²/2",
            ),
            Rival(
                "first_power",
                predicted.replace(limit=("other", limits**0.5), exact=("set", exact**0.5)),
                "w moves γ at each error",
                label="R/γ",
            ),
            Rival(
                "dimension",
                predicted.replace(
                    limit=("other", dimension[tight:]), exact=("set", dimension[:tight])
                ),
                "so many examples determine a separator, and it is right on orthogonal ones",
                label="as many errors as dimensions",
            ),
            Rival(
                "more_progress",
                predicted.replace(progress=1.05, length=0.95),
                "examples are correct by more than the margin on average",
                label="⟨w, u⟩ ≥ 1.05 γM, ‖w‖² ≤ 0.95 R²M",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        tight = len(self.orthogonal)
        orders = observed["exact"].shape[1]
        spread = lambda values: np.repeat(values[:, None], orders, 1)
        behind = observed["behind"]
        return [
            Control(
                "every_example",
                observed.replace(length=("all order", spread(observed["hebb_length"]))),
                "right examples lengthen w by more than R²",
                label="a rule that adds every example, right or wrong",
            ),
            Control(
                "behind",
                observed.replace(
                    exact=("set order", spread(behind[:tight])),
                    mistakes=("other order", spread(behind[tight:])),
                ),
                "the theorem starts at zero",
                label=f"a start at −{STRETCH:g} R²/γ along the best separator",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        exact = predicted["exact"]
        limits = predicted["limit"]
        ends = np.array([min(exact.min(), limits.min()), max(exact.max(), limits.max())])
        return (
            panel(
                "Errors against Novikoff's bound",
                "(R/γ)²",
                "errors of the perceptron",
                predicted_curve(ends, ends, "(R/γ)²"),
                observed_curve(exact, observed["exact"].mean(1), "orthogonal sets", kind="points"),
                observed_curve(
                    limits,
                    observed["mistakes"].max(1),
                    "other sets, worst order",
                    kind="points",
                    shade=0.5,
                ),
                observed_curve(
                    limits, observed["mistakes"].mean(1), "mean order", kind="points", shade=1.0
                ),
                rival_curve(ends, ends**0.5, "R/γ"),
                log="xy",
            ),
        )


class Run(NamedTuple):
    """One run of the perceptron: its errors, and the worst of both halves of the proof along it."""

    mistakes: int
    length: float  # largest ‖w‖²/(R² M)
    progress: float  # least ⟨w, u⟩/(γM)


def limit(one: Examples) -> float:
    """Return (R/γ)²."""
    return float(one.gram.diagonal().max() / one.program.margin**2)


@sequential
def perceptron(
    one: Examples, order: Values | None, cap: int, *, always: bool = False, behind: float = 0.0
) -> Run:
    """Run the perceptron in the features of a Gram matrix until a pass has no error, or ``cap`` errors.

    Args:
        one: the set.
        order: of the examples in each pass; None for an adversary, who presents the error that is least wrong.
        cap: errors after which it is given up.
        always: add examples that are right too (for as many as the set has).
        behind: start at ``-behind R²/γ u`` instead of zero.
    """
    gram = one.gram
    radius = gram.diagonal().max()
    margin = one.program.margin
    best = gram @ (one.program.direction * one.labels)  # ⟨u, y_i x_i⟩
    outputs = -behind * radius / margin * best
    square = (behind * radius / margin) ** 2
    along = -behind * radius / margin
    mistakes = 0
    longest = 0.0
    least = np.inf
    ended = False
    while mistakes < cap and not ended:
        before = mistakes
        for i in _presented(outputs, order):
            if outputs[i] > 0 and not always:
                continue
            square += 2 * outputs[i] + gram[i, i]
            along += best[i]
            outputs = outputs + gram[i]
            mistakes += 1
            longest = max(longest, square / (radius * mistakes))
            least = min(least, along / (margin * mistakes))
            if mistakes >= cap:
                break
        ended = mistakes == before or always
    return Run(mistakes, float(longest), float(least))


def _presented(outputs: Values, order: Values | None) -> Values:
    """Return the examples of one pass: all in their order, or the adversary's one."""
    if order is not None:
        return order
    wrong = np.flatnonzero(outputs <= 0)
    return wrong[np.argsort(-outputs[wrong])[:1]]


def _unit(x: Values) -> Values:
    return x / np.linalg.norm(x, axis=1, keepdims=True)
