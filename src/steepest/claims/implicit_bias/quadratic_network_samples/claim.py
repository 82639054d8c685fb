"""From small weights, quadratic networks of any width need as many labels as least-trace recovery.

The labels come from a teacher network of k neurons. The teacher is learned from about as many labels as the convex
program of least trace needs. The network's output is ‖Wᵀx‖² with m neurons, so many networks fit the labels of a few
examples. Descent from small weights acts as if it took the network of least trace, ‖W‖², however many neurons it may
use. So the network becomes the teacher from the same number of examples on as the convex program for the least trace,
in which there is no width.
"""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias.quadratic_network_samples import experiment, theory
from steepest.claims.implicit_bias.quadratic_network_samples.experiment import Data

LARGE = 4.0  # eigenvalues of WWᵀ at a start that is not small
SLOWER = 10  # steps from there must be shorter


@kit.claim
class QuadraticNetworkSamples(kit.Claim[Data]):
    """Networks of squares of several widths, on more and more labels of a teacher of k orthonormal neurons."""

    d: kit.Count = kit.param(
        9, "dimension of the inputs", scope=kit.between(9, 10, "descent takes long in more")
    )
    neurons: tuple[kit.Count, ...] = kit.param(
        (1, 4),
        "k of the teacher",
        scope=kit.choices((1, 4), why="two or three neurons need about as many labels as one"),
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (6, 24),
        "m of the network",
        scope=kit.choices(
            (6, 24), (7, 24), (6, 28), why="networks as narrow as the teacher get stuck"
        ),
    )
    start: kit.Positive = kit.param(
        0.01,
        "standard deviation of first weights",
        scope=kit.between(0.003, 0.01, "larger ones stay"),
    )
    lr: kit.Positive = kit.param(
        0.015, "step size", scope=kit.between(0.012, 0.015, "larger ones diverge")
    )
    steps: kit.Count = kit.param(3500, "steps of descent", unit="steps")
    seeds: kit.Seeds = kit.param(16, "teachers, with inputs of their own")

    kind = "empirical law"
    says = {
        "quadratic networks of any width need as many labels as least-trace recovery": "needed",
        "From small weights": "needed",
    }
    tiny = {"d": 6, "neurons": (1, 2), "widths": (4, 8), "steps": 500, "seeds": 3}
    full = {"steps": 20_000, "seeds": 20}
    out_of_scope = {"start": 0.5}

    def axes(self):
        return {"neurons": self.neurons, "width": self.widths}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return experiment.draw(rng, self.seeds, theory.all_numbers(self.d), self.d, self.neurons)

    def hypotheses(self, setting):
        trace = self.start**2 * max(self.widths)
        yield kit.assume(
            "eigenvalues of WWᵀ at the start", trace, "<=", 0.05, "choose a smaller --start"
        )
        yield kit.assume("width over teacher's", min(self.widths) / max(self.neurons), ">", 1)

    def predict(self, setting):
        needed = [
            [theory.needed(inputs, teacher) for teacher in teachers]
            for inputs, teachers in zip(setting.inputs, setting.teachers, strict=True)
        ]
        at_widths = np.repeat(np.array(needed, float)[..., None], len(self.widths), -1)
        return kit.law(needed=("seed neurons width", at_widths))

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        shown = experiment.counts(setting, self.neurons)
        widest = max(self.widths)

        def learned(width: int, size: float, lr: float) -> tuple[np.ndarray, np.ndarray]:
            errors = experiment.errors(rng, setting, shown, (width, widest), size, lr, self.steps)
            return experiment.first_learned(shown, errors), errors

        small = [learned(width, self.start, self.lr) for width in self.widths]
        large = learned(self.widths[0], (LARGE / self.widths[0]) ** 0.5, self.lr / SLOWER)
        return kit.seen(
            needed=("seed neurons width", np.stack([first for first, _ in small], -1)),
            errors=("seed neurons width count", np.stack([errors for _, errors in small], 2)),
            shown=("neurons count", shown),
            large=("seed neurons", large[0]),
            large_errors=("seed neurons count", large[1]),
        )

    def derive(self, law, seen):
        """Return how many more examples networks need than the program on the same data, over its mean, plus one."""
        return {"relative": 1 + (seen.needed - law.needed) / law.needed.mean("seed")}

    def judge(self, law, seen):
        yield kit.follows(
            "needed",
            xarray.ones_like(law.needed),
            seen.relative,
            0.22,  # the interval takes 0.15, descent that has not ended 0.05
            over="neurons width",
            label="examples from which the network is the teacher, over those from which least trace is",
        )

    def rivals(self, setting, law):
        k = law.neurons
        everything = theory.all_numbers(self.d) + 0.0 * law.needed
        yield kit.rival(
            "d(d + 1)/2", "fewer leave the quadratic form open", id="all_numbers", needed=everything
        )
        yield kit.rival(
            "md − m(m − 1)/2, or d(d + 1)/2 where m ≥ d",
            "the matrices of m neurons have so many numbers",
            id="own_weights",
            needed=theory.numbers_of_rank(law.width, self.d) + 0 * law.needed,
        )
        yield kit.rival(
            "kd − k(k − 1)/2",
            "as many equations as the teacher has numbers",
            needed=k * self.d - k * (k - 1) / 2 + 0 * law.needed,
        )
        yield kit.rival(
            "kd log d",
            "sparse recovery costs a logarithm",
            needed=k * self.d * np.log(self.d) + 0 * law.needed,
        )

    def controls(self, seen):
        yield kit.control(
            f"eigenvalues of WWᵀ near {LARGE:g} at the start",
            "the first weights are not small",
            id="order_one",
            needed=seen.large.broadcast_like(seen.needed),
        )

    def figure(self, law, seen, rivals):
        last = len(self.neurons) - 1
        curves = []
        for place, width in enumerate(self.widths):
            values = np.median(seen.errors.values[:, last, place], 0)
            curves.append(
                kit.observed_curve(
                    seen.shown.values[last], values, f"m = {width}", shade=place / len(self.widths)
                )
            )
        values = np.median(seen.large_errors.values[:, last], 0)
        curves.append(kit.context_curve(seen.shown.values[last], values, "start of order one"))
        yield kit.curves(
            "As many labels at every width",
            law.needed.mean("seed"),
            seen.needed,
            over="width",
            by="neurons",
            x="width m of the network",
            y="examples that it needs",
            name="k = {}",
        )
        yield kit.panel(
            f"How wrong it is on fewer (k = {self.neurons[last]}, median)",
            "examples",
            "relative error of WWᵀ",
            *curves,
            log="y",
        )
