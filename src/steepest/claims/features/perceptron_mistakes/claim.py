"""The perceptron makes at most (R/γ)² mistakes, whatever the order of the examples.

On orthogonal examples it makes exactly this number of mistakes in every order. The perceptron starts at w = 0 and adds
an example, times its label, whenever it errs on this example. R is the length of the longest example and γ the largest
margin of any separator, which the algorithm never sees. Each error increases ⟨w, u⟩ along the best separator u by at
least γ, and ‖w‖² by at most R². So γM ≤ ‖w‖ ≤ R√M after M errors. Neither dimension nor the number of examples enters
the bound: the same holds in the tangent features of a network at its start, where γ is the margin of frozen features.
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.features.perceptron_mistakes.experiment import Examples, limit, perceptron
from steepest.kernels import arc_cosine
from steepest.nn.data import digits, hypercube, signs
from steepest.nn.types import Values
from steepest.programs import kernel_margin

PAIRS = ((0, 1), (3, 8), (4, 9))
STRETCH = 1.1  # a control's start lies so many times R·√M behind zero
PATIENCE = 3  # mistakes after which a run is given up, over the bound
SOLVED = 1e-6  # relative error of the programs that find margins


@kit.claim
class PerceptronMistakes(kit.Claim[list[Examples]]):
    """Orthogonal sets, points on spheres, pairs of digits, and XOR in the tangent features of a ReLU network."""

    orthogonal: tuple[Annotated[int, kit.Within(2, 500)], ...] = kit.param(
        (4, 16, 64),
        "sizes of orthogonal sets",
        unit="examples",
        scope=kit.choices((4, 16, 64), (2, 9, 100), (5, 30, 150)),
    )
    dimensions: tuple[Annotated[int, kit.Within(2, 2000)], ...] = kit.param(
        (10, 50, 200),
        "dimensions of the spheres",
        scope=kit.choices((10, 50, 200), (5, 30, 500), (20, 100, 400)),
    )
    examples: Annotated[int, kit.Within(4, 350)] = kit.param(
        120, "points on each sphere, images of each pair", scope=kit.between(40, 160)
    )
    bits: Annotated[int, kit.Within(2, 9)] = kit.param(
        8, "dimension of the cube whose XOR is learned", scope=kit.between(4, 8)
    )
    orders: kit.Count = kit.param(20, "random orders of each set")
    contradictions: Annotated[int, kit.Within(0, 3)] = kit.param(
        0, "examples repeated with the other label"
    )

    kind = "theorem"
    says = {
        "makes at most (R/γ)² mistakes, whatever the order of the examples": "never",
        "makes exactly this number of mistakes": "tight",
    }
    tiny = {"orthogonal": (4, 8), "dimensions": (10,), "examples": 20, "bits": 4, "orders": 3}
    full = {
        "orthogonal": (4, 16, 64, 256),
        "dimensions": (10, 50, 200, 1000),
        "examples": 300,
        "orders": 200,
        "bits": 9,
    }
    out_of_scope = {"contradictions": 1}

    def axes(self):
        return {"n": self.orthogonal, "set": self._others()}

    def _others(self) -> tuple[str, ...]:
        """Return the names of the sets that are not orthogonal."""
        spheres = [f"sphere, d = {d}" for d in self.dimensions]
        images = [f"digits {one}, {other}" for one, other in PAIRS]
        return (*spheres, *images, f"XOR of {self.bits} bits")

    def setting(self, key):
        rng = kit.numpy_generator(key)
        sets: list[tuple[str, Values, Values, float]] = [
            (f"{n} orthogonal", np.eye(n), rng.choice([-1.0, 1.0], n), n) for n in self.orthogonal
        ]
        others = list(self._others())
        for d in self.dimensions:
            x = _unit(rng.standard_normal((self.examples, d)))
            y = np.sign(x @ _unit(rng.standard_normal((1, d)))[0])
            sets.append((others.pop(0), x @ x.T, y, d))
        for pair in PAIRS:
            data = signs(digits(pair))
            chosen = rng.permutation(data.n)[: self.examples]
            x = np.asarray(data.x)[chosen]
            sets.append((others.pop(0), x @ x.T, np.asarray(data.y)[chosen], data.d))
        cube = hypercube(self.bits) / np.sqrt(self.bits)
        frozen = arc_cosine(cube @ cube.T).inner
        sets.append((others.pop(0), frozen, np.sign(cube[:, 0] * cube[:, 1]), np.inf))
        return [self.examined(*one) for one in sets]

    def examined(self, name: str, gram: Values, y: Values, dimension: float) -> Examples:
        """Return a set with its largest margin, and with what contradicts it."""
        again = np.append(np.arange(len(y)), np.arange(self.contradictions))
        gram = gram[np.ix_(again, again)]
        y = np.append(y, -y[: self.contradictions])
        return Examples(name, y[:, None] * gram * y, y, dimension, kernel_margin(gram, y))

    def hypotheses(self, setting):
        least = min(one.program.margin if one.program.separable else 0.0 for one in setting)
        yield kit.assume(
            "smallest margin γ", least, ">", 1e-6, "without a separator errors never end"
        )

    def predict(self, setting):
        limits = np.array([limit(one) for one in setting])
        tight = len(self.orthogonal)
        return kit.law(
            exact=("n", limits[:tight]), limit=("set", limits[tight:]), length=1.0, progress=1.0
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        tight = len(self.orthogonal)
        runs = []
        every = []
        behind = []
        for one in setting:
            cap = int(PATIENCE * limit(one)) + 1
            orders = [rng.permutation(len(one.gram)) for _ in range(self.orders)]
            tried = [perceptron(one, order, cap) for order in orders]
            tried.append(perceptron(one, None, cap))
            runs.append(tried)
            every.append(perceptron(one, orders[0], cap, always=True))
            behind.append(perceptron(one, orders[0], cap, behind=STRETCH))
        of = lambda quantity: np.array(
            [[getattr(run, quantity) for run in tried] for tried in runs], float
        )
        mistakes = of("mistakes")
        from_behind = np.array([float(run.mistakes) for run in behind])
        return kit.seen(
            exact=("n draw", mistakes[:tight]),
            mistakes=("set draw", mistakes[tight:]),
            length=("all draw", of("length")),
            progress=("all draw", of("progress")),
            every_length=("all", [run.length for run in every]),
            behind_exact=("n", from_behind[:tight]),
            behind_mistakes=("set", from_behind[tight:]),
            behind_progress=("all", [run.progress for run in behind]),
        )

    def judge(self, law, seen):
        yield kit.at_most(
            "never",
            law.limit * (1 + SOLVED),
            seen.mistakes,
            each=True,
            label="errors, every order of the sets that are not orthogonal",
        )
        yield kit.follows(
            "tight",
            law.exact,
            seen.exact,
            SOLVED,
            each=True,
            label="errors on orthogonal sets, every order",
        )
        yield kit.at_most(
            "length",
            law.length + 1e-9,
            seen.length.max("all"),
            each=True,
            label="largest ‖w‖²/(R² M) along all runs",
        )
        yield kit.at_least(
            "progress",
            law.progress - SOLVED,
            seen.progress.min("all"),
            each=True,
            label="least ⟨w, u⟩/(γM) along all runs",
        )

    def rivals(self, setting, law):
        tight = len(self.orthogonal)
        dimension = np.array([one.dimension for one in setting])
        finite = np.where(np.isfinite(dimension), dimension, 1e9)
        yield kit.rival(
            "(R/γ)²/2",
            "half of the examples have either label",
            limit=law.limit / 2,
            exact=law.exact / 2,
        )
        yield kit.rival(
            "R/γ",
            "w moves γ at each error",
            id="first_power",
            limit=law.limit**0.5,
            exact=law.exact**0.5,
        )
        yield kit.rival(
            "as many errors as dimensions",
            "so many examples determine a separator, and it is right on orthogonal ones",
            id="dimension",
            limit=("set", finite[tight:]),
            exact=("n", dimension[:tight]),
        )
        yield kit.rival(
            "⟨w, u⟩ ≥ 1.05 γM, ‖w‖² ≤ 0.95 R²M",
            "examples are correct by more than the margin on average",
            progress=1.05,
            length=0.95,
        )

    def controls(self, seen):
        like = lambda values, array: values.broadcast_like(array)
        yield kit.control(
            "a rule that adds every example, right or wrong",
            "right examples lengthen w by more than R²",
            length=like(seen.every_length, seen.length),
        )
        yield kit.control(
            f"a start at −{STRETCH:g} R²/γ along the best separator",
            "the theorem starts at zero",
            id="behind",
            exact=like(seen.behind_exact, seen.exact),
            mistakes=like(seen.behind_mistakes, seen.mistakes),
            progress=like(seen.behind_progress, seen.progress),
        )

    def figure(self, law, seen, rivals):
        exact = law.exact.values
        limits = law.limit.values
        ends = np.array([min(exact.min(), limits.min()), max(exact.max(), limits.max())])
        worst = seen.mistakes.max("draw")
        usual = seen.mistakes.mean("draw")
        yield kit.panel(
            "Errors against Novikoff's bound",
            "(R/γ)²",
            "errors of the perceptron",
            kit.predicted_curve(ends, ends, "(R/γ)²"),
            kit.observed_curve(exact, seen.exact.mean("draw"), "orthogonal sets", kind="points"),
            kit.observed_curve(limits, worst, "other sets, worst order", kind="points", shade=0.5),
            kit.observed_curve(limits, usual, "mean order", kind="points", shade=1.0),
            kit.rival_curve(ends, ends**0.5, "R/γ"),
            log="xy",
        )


def _unit(x: Values) -> Values:
    return x / np.linalg.norm(x, axis=1, keepdims=True)
