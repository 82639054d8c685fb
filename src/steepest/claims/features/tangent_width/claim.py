"""Random ReLU gates fit XOR on a face exactly when they see all its corners and one gate switches.

On the whole cube they fit XOR only with enough gates for this on all faces. A face is a pattern z of the other bits,
with its four corners in the two bits of the label. The tangent features of m gates at their random start are x 1[⟨w_j,
x⟩ ≥ 0]. If the two bits switch no gate, any combination is linear in them, and no linear function is XOR. A switched
gate is active at one, two adjacent or three corners, where its own features can have any values. Other gates see the
corners that this gate does not see, and at most three corners are left for a linear function. To fit XOR on the cube,
one combination must fit all faces.
"""

from collections.abc import Callable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from steepest import kit
from steepest.claims.features.tangent_width.experiment import (
    Setting,
    separating_width,
    share_switched,
    width_for_each_face,
)
from steepest.claims.features.tangent_width.theory import (
    chance_of_a_switch,
    width_for_every_pattern,
    width_for_first_bit,
)
from steepest.nn.data import hypercube

Bits = Annotated[int, kit.Within(3, 10)]
Most = Annotated[int, kit.Within(8, 256)]


@kit.claim
class TangentWidth(kit.Claim[Setting]):
    """The fewest of a sequence of gates whose tangent features separate XOR, by linear programs."""

    dimensions: tuple[Bits, ...] = kit.param(
        (3, 4, 5, 6, 7),
        "d",
        unit="bits",
        scope=kit.choices(
            (3, 4, 5, 6, 7), (3, 5, 7), (4, 6, 8), why="linear programs have 2^d rows"
        ),
    )
    spread: kit.Positive = kit.param(
        1.0,
        "standard deviation of the two weights that count / standard deviation of the others",
        scope=kit.choices(1.0, why="the chance of a switch is computed for isotropic gates"),
    )
    most: Most = kit.param(
        48, "gates in a sequence", unit="gates", scope=kit.between(48, 96, "some must separate")
    )
    seeds: kit.Seeds = kit.param(30, "sequences of gates at each d")

    kind = "theorem"
    says = {
        "fit XOR on a face exactly when they see all its corners and one gate switches": "each_face",
        "On the whole cube they fit XOR only with enough gates for this": "necessary",
    }
    tiny = {"dimensions": (3, 4, 5), "seeds": 6}
    full = {"dimensions": (3, 4, 5, 6, 7, 8, 9), "seeds": 60}
    out_of_scope = {"spread": 3.0}

    def axes(self):
        return {"dimension": self.dimensions}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        draws = [rng.normal(size=(self.seeds, self.most, d)) for d in self.dimensions]
        return Setting([_stretched(gates, self.spread) for gates in draws])

    def hypotheses(self, setting):
        yield kit.assume(
            "spread of the two weights", self.spread, "==", 1, "p_d is for isotropic gates"
        )

    def predict(self, setting):
        return kit.law(
            each_face=("seed dimension", _each(width_for_every_pattern, setting)),
            switched=("dimension", chance_of_a_switch(self.dimensions)),
        )

    def observe(self, setting, key):
        stretched = Setting([_stretched(gates, 2.0) for gates in setting.gates])
        measured = {
            "widths": _each(lambda w: separating_width(w, _xor(w)), setting),
            "each_face": _each(lambda w: width_for_each_face(w, _xor(w)), setting),
            "switched": _each(share_switched, setting),
            "linear": _each(lambda w: separating_width(w, _bit(w)), setting),
            "linear_faces": _each(lambda w: width_for_each_face(w, _bit(w)), setting),
            "stretched": _each(share_switched, stretched),
        }
        return kit.seen(**{name: ("seed dimension", values) for name, values in measured.items()})

    def run_conditions(self, observed):
        missed = np.isinf(observed["widths"]).mean()
        yield kit.assume("share of draws that no width separates", missed, "==", 0, "raise --most")

    def judge(self, law, seen):
        yield kit.follows(
            "each_face",
            law.each_face,
            seen.each_face,
            0.5,  # widths are whole numbers
            over="dimension",
            absolute=True,
            each=True,
            label="width that separates each face by itself",
        )
        yield kit.at_least(
            "necessary",
            law.each_face,
            seen.widths,
            each=True,
            label="width that separates the cube",
        )
        yield kit.follows(
            "switched",
            law.switched,
            seen.switched,
            0.1,  # the interval takes 0.045 with 30 sequences of 48 gates, and chance as much
            label="share of gates and faces with a switch",
        )

    def rivals(self, setting, law):
        widths = lambda width: ("seed dimension", _each(width, setting))
        yield kit.rival(
            "two gates must be switched on every face",
            "the two labels of a face could need a gate each",
            each_face=widths(lambda w: width_for_every_pattern(w, switches=2)),
        )
        yield kit.rival(
            "a switched gate is enough",
            "a switched gate bends the function, whatever it sees",
            each_face=widths(lambda w: width_for_every_pattern(w, seen=False)),
        )
        yield kit.rival(
            "the first bit alone must switch a gate at every pattern",
            "the label turns with each of the two bits",
            id="either_bit",
            each_face=widths(width_for_first_bit),
        )
        yield kit.rival(
            "2/π arcsin(1/√d) of the gates are switched",
            "one bit switches a gate at the angle arctan(1/√(d−1))",
            switched=law.switched / 2,
        )

    def controls(self, seen):
        yield kit.control(
            "the label x₁ in the place of x₁x₂",
            "combinations that are linear in the bits can have this label",
            widths=seen.linear,
            each_face=seen.linear_faces,
        )
        yield kit.control(
            "gates whose first two weights are doubled",
            "gates are switched more often by bits of larger weight",
            id="stretched",
            switched=seen.stretched,
        )

    def figure(self, law, seen, rivals):
        limit = float(seen.widths.max()) + 1
        apart = np.linspace(-0.3, 0.3, self.seeds)  # draws at one place are set apart a little
        points = [
            kit.observed_curve(
                law.each_face.values[:, i] + apart,
                seen.widths.values[:, i],
                f"d = {d}",
                kind="points",
                shade=i / len(self.dimensions),
            )
            for i, d in enumerate(self.dimensions)
        ]
        yield kit.panel(
            "No draw separates the cube before it can each face",
            "predicted width for each face [gates]",
            "width that separates the cube [gates]",
            *points,
            kit.predicted_curve([0, limit], [0, limit], "at least"),
            xlim=(0, float(law.each_face.max()) + 1),
        )
        yield kit.curves(
            "Gates that the two bits switch on a face",
            law.switched,
            seen.switched,
            over="dimension",
            x="d, bits of the input",
            y="share of gates and faces",
        )


def _each(width: Callable[[NDArray], float], setting: Setting) -> NDArray:
    """Return a number of every sequence of gates, ``(seeds, dimensions)``."""
    return np.array([[width(gates) for gates in draws] for draws in setting.gates], float).T


def _stretched(gates: NDArray, by: float) -> NDArray:
    """Return gates whose first two weights are multiplied."""
    return gates * np.where(np.arange(gates.shape[-1]) < 2, by, 1.0)


def _xor(gates: NDArray) -> NDArray:
    return hypercube(gates.shape[1])[:, :2].prod(1)


def _bit(gates: NDArray) -> NDArray:
    return hypercube(gates.shape[1])[:, 0]
