"""Residual networks of one neuron a block make M steps on the line in 3(M − 1) blocks.

Levels of the steps are any, so networks approximate an integrable function in the mean as well as steps do. An
increasing function like x² needs no steps: K blocks make any increasing function of K breaks, and no function of K
breaks is nearer.
"""

import numpy as np

from steepest import kit
from steepest.claims.expressivity.residual_staircases.experiment import (
    TARGETS,
    broken_line_errors,
    staircase_errors,
)
from steepest.claims.expressivity.residual_staircases.theory import (
    leading_error,
    line_error,
    staircase_error,
)


@kit.claim
class ResidualStaircases(kit.Claim[None]):
    """Constructions on [0, 1]: staircases for three functions, and broken lines for x²."""

    stairs: tuple[kit.Count, ...] = kit.param(
        (8, 16, 32), "M, multiples of eight", scope=kit.choices((8, 16, 32), (8, 24, 40))
    )
    breaks: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4, 8), "K", scope=kit.choices((1, 2, 4, 8), (1, 3, 6, 12))
    )

    kind = "theorem"
    says = {
        "make M steps on the line in 3(M − 1) blocks": "steps",
        "no function of K breaks is nearer": "breaks",
    }
    tiny = {"stairs": (8, 16, 24), "breaks": (1, 2, 3)}
    full = {"stairs": (8, 16, 32, 64), "breaks": (1, 2, 4, 8, 16)}
    out_of_scope = {"stairs": (6, 12, 30)}

    def axes(self):
        return {"target": tuple(TARGETS), "stairs": self.stairs, "breaks": self.breaks}

    def hypotheses(self, setting):
        remainder = max(count % 8 for count in self.stairs)
        advice = "targets are monotone between multiples of 1/8"
        yield kit.assume("M modulo 8", remainder, "==", 0, advice)

    def predict(self, setting):
        errors = [[staircase_error(f, m) for m in self.stairs] for f in TARGETS]
        return kit.law(
            staircase=("target stairs", errors),
            broken_line=("breaks", [line_error(k) for k in self.breaks]),
        )

    def observe(self, setting, key):
        errors = [[staircase_errors(f, m) for m in self.stairs] for f in TARGETS.values()]
        stairs = np.array(errors)
        lines = np.array([broken_line_errors(k) for k in self.breaks])
        return kit.seen(
            staircase=("target stairs", stairs[..., 0]),
            staircase_largest=("target stairs", stairs[..., 1]),
            broken_line=("breaks", lines[:, 0]),
            reversed_line=("breaks", lines[:, 1]),
        )

    def judge(self, law, seen):
        yield kit.follows(
            "steps",
            law.staircase,
            seen.staircase,
            0.005,  # ramps, slopes between them and sums in place of integrals leave 0.1 %
            label="on the line, 3(M − 1) blocks: mean error of M steps",
        )
        yield kit.follows(
            "breaks",
            law.broken_line,
            seen.broken_line,
            1e-4,  # 400 points a piece
            label="on the line, K blocks: mean error for x²",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "steps have the function's values where they begin: twice the error",
            "it is the simplest staircase",
            id="ends_of_steps",
            staircase=2 * law.staircase,
        )
        yield kit.rival(
            "Σ|f'|/(4M²), the variation over 4M",
            "a function is a line on a short step",
            staircase=(
                "target stairs",
                [[leading_error(f, m) for m in self.stairs] for f in TARGETS],
            ),
        )
        yield kit.rival(
            "chords of x², 1/(6(K + 1)²)",
            "a broken line goes through the function at its breaks",
            broken_line=1 / (6 * (law.breaks + 1) ** 2),
        )
        yield kit.rival(
            "K pieces, 1/(16K²)", "each block has one break", broken_line=1 / (16 * law.breaks**2)
        )

    def controls(self, seen):
        yield kit.control(
            "the largest error of the same staircases",
            "on a ramp between two levels outputs are far from both",
            staircase=seen.staircase_largest,
        )
        yield kit.control(
            "the same blocks in reverse order",
            "a break is where the blocks below have taken it",
            id="reversed",
            broken_line=seen.reversed_line,
        )
