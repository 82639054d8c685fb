"""Two linear layers with several outputs reach the largest margin in the nuclear norm.

Singular values that the solution of the margin problem lacks fade relative to its own singular values. A singular value
that the solution lacks grows like the power σ of the fall of log R, where R is the risk and σ < 1 the singular value at
the same place of the dual matrix Σ q A/γ. The solution's own singular values grow in proportion to this fall. Relative
to them, the others fade like the power −(1 − σ) of the fall: slowly, as the fall is only about the logarithm of time.
"""

import numpy as np

from steepest import kit
from steepest.claims.implicit_bias.nuclear_norm_margin.experiment import (
    DATA,
    Sets,
    draw,
    follow_all,
    readings,
)
from steepest.nn.types import Values
from steepest.programs import NuclearMargin, nuclear_norm_interpolation, nuclear_norm_margin

# σ whose powers are judged: smaller ones are hidden by what larger ones leave, larger ones take longer than the run
READABLE = (0.3, 0.98)
UNIQUE = 0.1  # multipliers whose uniqueness is at least so


@kit.claim
class NuclearNormMargin(kit.Claim[Sets]):
    """Signed entries of a matrix, labels of several outputs, and classes; gradient flow of two layers."""

    outputs: kit.Count = kit.param(
        4, "K", scope=kit.choices(4, 5, why="of fewer few singular values can be read")
    )
    inputs: kit.Count = kit.param(5, "d, the dimension", scope=kit.between(5, 6, "more take time"))
    hidden: kit.Count = kit.param(
        6, "hidden neurons", scope=kit.between(6, 9, "with fewer than d it may stop elsewhere")
    )
    scale: kit.Positive = kit.param(
        0.5,
        "length of a row of the weights at the start",
        scope=kit.between(
            0.4, 0.7, "smaller ones wait at zero, and larger ones begin beyond a control's pole"
        ),
    )
    horizon: kit.Positive = kit.param(
        1e4, "fall of the log of the risk", scope=kit.between(1e4, 3e4, "sooner the rest is large")
    )
    sets: kit.Seeds = kit.param(16, "sets of each kind of data, and starts")

    kind = "limit"
    says = {
        "reach the largest margin in the nuclear norm": ("margin", "every_set"),
        "Singular values that the solution of the margin problem lacks fade": "fading",
    }
    tiny = {"outputs": 3, "inputs": 3, "hidden": 3, "horizon": 30.0, "sets": 6}
    full = {"hidden": 9, "horizon": 3e4, "sets": 60}
    out_of_scope = {"inputs": 3}

    def axes(self):
        places = min(self.outputs, self.inputs)
        return {"data": DATA, "place": tuple(range(1, places + 1))}

    def check_fields(self) -> None:
        if self.hidden < self.inputs:
            raise kit.UserError(
                f"hidden must be at least inputs = {self.inputs}, got {self.hidden}; raise --hidden"
            )
        if self.inputs < self.outputs - 1:
            raise kit.UserError(
                f"inputs must be at least outputs − 1 = {self.outputs - 1}, got {self.inputs}; raise --inputs"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        size = (self.outputs, self.inputs, self.hidden, self.scale)
        sets = [draw(rng, *size) for _ in range(self.sets)]
        return Sets(*(np.stack(part) for part in zip(*sets, strict=True)))

    def hypotheses(self, setting):
        yield kit.assume(
            "least singular value of the inputs of a set over the largest",
            float(setting.conditioning.min()),
            ">",
            0,
            "then every labelling is separable: raise --inputs",
        )

    def predict(self, setting):
        programs = [[nuclear_norm_margin(a) for a in row] for row in setting.a]
        powers = [
            [readable_powers(a, best) for a, best in zip(*rows, strict=True)]
            for rows in zip(setting.a, programs, strict=True)
        ]
        return kit.law(
            margin=("seed data", [[best.margin for best in row] for row in programs]),
            power=("seed data place", powers),
        )

    def observe(self, setting, key):
        ends = follow_all(setting, self.horizon)
        return kit.seen(
            margin=("seed data", ends.margin[0, ..., -1]),
            power=("seed data place", ends.power[0]),
            along=("seed data reading", ends.margin[0]),
            arrived=("seed data", ends.arrived[0]),
            one_layer=("seed data", ends.margin[1, ..., -1]),
            power_one_layer=("seed data place", ends.power[1]),
            tail=("seed data", ends.margin[2, ..., -1]),
        )

    def run_conditions(self, observed):
        arrived = observed["arrived"].mean()
        yield kit.assume("flows that arrived", float(arrived), "==", 1, "lower --horizon")

    def derive(self, law, seen):
        """Return by how much powers are off, root mean square over all that can be read."""
        counted = law.power > 0
        square = ((seen.power - law.power) ** 2).where(counted, 0.0)
        return {"off": (square.sum() / counted.sum()) ** 0.5, "counted": counted}

    def judge(self, law, seen):
        yield kit.follows(
            "margin",
            law.margin,
            seen.margin,
            0.015,  # the rest of a fall of 10⁴ is 0.005 in the mean, the interval 0.004
            over="data",
            label="margin over the nuclear norm, mean over sets",
        )
        yield kit.follows(
            "every_set",
            law.margin,
            seen.margin,
            0.1,  # the slowest of 200 sets of drafts lacked 0.06
            over="data",
            each=True,
            label="margin over the nuclear norm, every set",
        )
        yield kit.agrees(
            "fading",
            seen.off,
            0.18,  # up to 0.06 in drafts of the preset, 0.12 at other settings
            note=f"{int(seen.counted.sum())} singular values whose power can be read",
            label="error of powers of fading singular values in the fall of log R, root mean square",
        )

    def rivals(self, setting, law):
        # entries are orthonormal: the least Frobenius norm makes all margins equal, and nothing else
        frobenius = law.margin.copy(deep=True)
        frobenius[:, 0] = [1 / np.linalg.norm(row[0].sum(0), "nuc") for row in setting.a]
        equal = law.margin.copy(deep=True)
        ones = np.ones(setting.a.shape[2])
        equal[:, 2] = [1 / nuclear_norm_interpolation(row[2], ones).value for row in setting.a]
        yield kit.rival(
            "the largest margin in Frobenius' norm, on entries",
            "descent on W itself has it, and so have two layers with one output",
            id="frobenius",
            margin=frobenius,
        )
        yield kit.rival(
            "least nuclear norm with all margins equal, on classes",
            "the squared loss finds it, from tiny starts",
            id="equal_margins",
            margin=equal,
        )
        yield kit.rival(
            "half the powers, as the factors have",
            "every layer grows like the root",
            power=law.power / 2,
        )
        yield kit.rival(
            "fading by the power 2(1 − σ)",
            "from small starts eigenvalues fall like α^{2(1 − σ)}",
            power=np.maximum(2 * law.power - 1, 1e-3).where(law.power > 0, 0.0),
        )
        yield kit.rival(
            "all that the solution lacks stays as it is",
            "what does not help is not trained",
            power=(1e-3 * law.power),
        )

    def controls(self, seen):
        yield kit.control(
            "descent on W itself",
            "its length is Frobenius' norm of W",
            id="one_layer",
            margin=seen.one_layer,
            power=seen.power_one_layer,
        )
        yield kit.control(
            "the loss 1/(1 + u)",
            "its multipliers stay on examples off the margin",
            margin=seen["tail"],
        )
        yield kit.control(
            "powers of another set",
            "each set's own dual matrix gives its powers",
            power=seen.power.roll(seed=1),
        )

    def figure(self, law, seen, rivals):
        falls = readings(self.horizon)
        missing = (1 - seen.along / law.margin).mean("seed")
        counted = seen.counted.values
        line = np.array(READABLE)
        yield kit.panel(
            "The margin nears the largest one in the nuclear norm",
            "fall of log R",
            "part that is missing, mean over sets",
            *(
                kit.observed_curve(falls, missing.sel(data=name).values, name, shade=i / 3)
                for i, name in enumerate(DATA)
            ),
            log="xy",
        )
        yield kit.panel(
            "A singular value that the solution lacks grows by the power σ",
            "σ, of the dual matrix",
            "power in the fall of log R",
            kit.observed_curve(
                law.power.values[counted], seen.power.values[counted], "networks", kind="points"
            ),
            kit.predicted_curve(line, line, "σ"),
            kit.rival_curve(line, line / 2, "σ/2"),
            kit.rival_curve(line, 2 * line - 1, "2σ − 1"),
        )


def readable_powers(a: Values, best: NuclearMargin) -> Values:
    """Return the singular values of the dual matrix over its norm, zero where the power cannot be read."""
    values = np.linalg.svd(np.tensordot(best.dual, a, 1), compute_uv=False) / best.margin
    readable = (values > READABLE[0]) & (values < READABLE[1]) & (best.uniqueness > UNIQUE)
    return np.where(readable, values, 0.0)
