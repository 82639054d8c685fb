"""A Boolean circuit of T gates can be written as a ReLU network of at most T units.

T ANDs of separate pairs of bits take all T units. The parity of d bits takes only log₂ d units, for d a power of two.
On bits xy = σ(x + y − 1), and every gate of x and y is a + bx + cy + d·xy: this is one unit, if units may read all
earlier units. Outputs of U units are combinations of U functions and affine functions, and products of separate bits
are orthogonal to one another and to affine functions. So with U of T units the mean square error is (T − U)/16 or more.
Folding a sum in the middle keeps its parity and halves it, so log₂ d folds are enough. Half of the bits can be fixed so
that a unit does not switch. So removing a unit halves the number of bits whose parity can be computed, and fewer than
log₂ d units are not enough for d = 2^k.
"""

from typing import Annotated

import jax
import numpy as np

from steepest import kit
from steepest.claims.expressivity.programs_are_networks.circuits import PROGRAMS
from steepest.claims.expressivity.programs_are_networks.experiment import (
    Net,
    compile_and_try,
    folds_needed,
    free_of_units,
    trained_errors,
)

ROUNDING = 1e-9
SMALLEST = 4
"""Bits from which on gates of the product are independent: of 2 and 3 bits one is told by the others."""


@kit.claim
class ProgramsAreNetworks(kit.Claim[None]):
    """Sum, product, comparison and parity of two numbers, on all inputs; small networks trained on separate ANDs."""

    bits: tuple[Annotated[int, kit.Within(2, 7)], ...] = kit.param(
        (4, 5, 6),
        "bits of each of the two numbers",
        unit="bits",
        scope=kit.choices((4, 5, 6), (4, 5), (4, 6), why="all pairs of numbers are tried"),
    )
    parities: tuple[Annotated[int, kit.Within(2, 8)], ...] = kit.param(
        (2, 4, 8), "d, powers of two", unit="bits", scope=kit.choices((2, 4, 8), (4, 8))
    )
    separate: tuple[Annotated[int, kit.Within(2, 5)], ...] = kit.param(
        (2, 3, 4), "T, ANDs of separate pairs", unit="gates", scope=kit.choices((2, 3, 4), (3, 4))
    )
    leak: kit.NonNegative = kit.param(0.0, "slope of a unit below zero")
    tries: kit.Seeds = kit.param(40, "units that are tried for each d")
    starts: kit.Seeds = kit.param(40, "networks that are trained for each T")
    steps: kit.Count = kit.param(
        1000,
        "steps of Adam on each",
        unit="steps",
        scope=kit.between(800, 2000, "fewer leave all networks above the bound"),
    )
    lr: Annotated[float, kit.Within(1e-5, 1)] = kit.param(
        0.03, "its step size", scope=kit.between(0.02, 0.05, "others do not train them")
    )

    kind = "theorem"
    says = {
        "can be written as a ReLU network of at most T units": ("exact", "gates"),
        "T ANDs of separate pairs of bits take all T units": ("too_few", "best"),
        "The parity of d bits takes only log₂ d units": ("folds", "halved"),
    }
    tiny = {
        "bits": (4,),
        "parities": (2, 4),
        "separate": (2, 3),
        "tries": 8,
        "starts": 8,
        "steps": 200,
    }
    full = {"bits": (4, 5, 6, 7), "tries": 400, "starts": 200}
    out_of_scope = {"leak": 0.1}

    @property
    def nets(self) -> tuple[Net, ...]:
        """Return the networks with too few units: one of each T, and two of the largest."""
        largest = self.separate[-1]
        return (*(Net(gates, 1, False) for gates in self.separate), Net(largest, 2, False))

    def axes(self):
        return {
            "program": tuple(PROGRAMS),
            "bits": self.bits,
            "parity": self.parities,
            "net": tuple(f"{net.units} of {net.gates}" for net in self.nets),
        }

    def check_fields(self) -> None:
        if any(bits & (bits - 1) for bits in self.parities):
            raise kit.UserError(
                "the bounds of parity meet at powers of two; choose --parities of 2, 4, 8"
            )

    def hypotheses(self, setting):
        yield kit.assume(
            "slope below zero", self.leak, "==", 0, "a leaky unit of two bits is no AND"
        )
        yield kit.assume(
            "fewest bits", min(self.bits), ">=", SMALLEST, "a gate of the product is told by others"
        )

    def predict(self, setting):
        d = np.array(self.bits)
        # a half adder has two gates, a full adder five, and a place of the comparison four
        gates = {
            "sum": 5 * d - 3,
            "comparison": 4 * d - 3,
            "product": 6 * d**2 - 8 * d,
            "parity": 2 * d - 1,
        }
        # gates of one pair of wires share a unit, which stays off where both are never one
        units = {
            "sum": 2 * d - 1,
            "comparison": 2 * d - 1,
            "product": 3 * d * (d - 1),
            "parity": 2 * d - 1,
        }
        bits = np.array(self.parities)
        return kit.law(
            gates=("program bits", [gates[name] for name in PROGRAMS]),
            units=("program bits", [units[name] for name in PROGRAMS]),
            # without a unit an AND lacks ab/4, a and b the signs of its bits, of mean square 1/16
            left=("net", [(net.gates - net.units) / 16 for net in self.nets]),
            folds=("parity", np.log2(bits)),
            free=("parity", bits / 2),
        )

    def observe(self, setting, key):
        for_training, for_tries = jax.random.split(key)
        rng = kit.numpy_generator(for_tries)
        programs = [
            [compile_and_try(name, bits, self.leak, rng) for bits in self.bits] for name in PROGRAMS
        ]
        of = lambda field: (
            "program bits",
            [[getattr(run, field) for run in row] for row in programs],
        )
        alike = tuple(net._replace(alike=True) for net in self.nets)
        errors = trained_errors(
            for_training, (*self.nets, *alike), self.starts, self.steps, self.lr
        )
        separate, copies = np.split(errors, 2)
        free = [free_of_units(bits, self.tries, rng) for bits in self.parities]
        return kit.seen(
            units=of("units"),
            needed=of("needed"),
            listed=of("gates"),
            layered=of("layered"),
            away=of("away"),
            leaky=of("leaky"),
            noisy=of("noisy"),
            errors=("net start", separate),
            copies=("net start", copies),
            folds=("parity", [folds_needed(bits) for bits in self.parities]),
            shifted=("parity", [folds_needed(bits, shift=0.5) for bits in self.parities]),
            free=("parity draw", [single for single, _ in free]),
            free_of_pairs=("parity draw", [paired for _, paired in free]),
        )

    def judge(self, law, seen):
        yield kit.agrees(
            "exact",
            seen.away,
            ROUNDING,
            label="programs on all inputs: distance of the number read from the right one",
        )
        yield kit.at_most(
            "gates",
            law.gates,
            seen.units,
            label="units of a program's network, gates of its circuit",
        )
        yield kit.follows(
            "units", law.units, seen.units, ROUNDING, label="units of a program's network"
        )
        yield kit.follows(
            "needed",
            law.units,
            seen.needed,
            ROUNDING,
            label="dimension of all gates' values beyond affine functions",
        )
        yield kit.at_least(
            "too_few",
            law.left * (1 - ROUNDING),
            seen.errors,
            each=True,
            label="too few units for separate gates: mean square error of every network",
        )
        yield kit.follows(
            "best",
            law.left,
            seen.errors.min("start"),
            0.02,
            label="too few units for separate gates: mean square error of the best network",
        )
        yield kit.follows(
            "folds", law.folds, seen.folds, ROUNDING, label="folds after which a sum is its parity"
        )
        yield kit.at_least(
            "halved",
            law.free,
            seen.free,
            each=True,
            label="bits that can be left free so that a unit does not switch",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "two units a gate",
            "an exclusive or takes two units if none may be skipped",
            units=2 * law.gates,
        )
        yield kit.rival(
            "one unit a gate, neither shared nor saved",
            "each gate has a product of its own",
            units=law.gates,
        )
        yield kit.rival(
            "two units a separate gate",
            "a bump has two kinks",
            left=("net", [(net.gates - net.units / 2) / 16 for net in self.nets]),
        )
        yield kit.rival(
            "3(T − U)/16",
            "an AND has the variance 3/16, of which affine functions take away nothing",
            left=3 * law.left,
        )
        yield kit.rival(
            "d − 1 units for parity",
            "the circuit of the parity of d bits has d − 1 gates",
            id="a_fold_a_gate",
            folds=law.parity - 1,
        )
        yield kit.rival(
            "all bits but one can be left free",
            "a unit of many bits is decided by one of them",
            free=law.parity - 1,
            folds=law.folds + 1,
        )

    def controls(self, seen):
        yield kit.control(
            "the same weights, units with slope 0.01 below zero",
            "where neither bit is one it does not vanish",
            id="leaky",
            away=seen.leaky,
        )
        yield kit.control(
            "inputs off by 0.3", "xy is σ(x + y − 1) on bits only", id="noisy", away=seen.noisy
        )
        yield kit.control(
            "networks without links that skip a layer",
            "values must be handed on",
            id="layered",
            units=seen.layered,
            needed=seen.layered,
        )
        yield kit.control(
            "T outputs that are one gate",
            "they are one function, and one unit is enough",
            errors=seen.copies,
        )
        yield kit.control(
            "folds at c + ½",
            "the fold must take whole numbers to whole numbers",
            folds=seen.shifted,
        )
        yield kit.control(
            "products of two units",
            "two units must be kept from switching",
            free=seen.free_of_pairs,
        )

    def figure(self, law, seen, rivals):
        missing = np.array([net.gates - net.units for net in self.nets])
        places = np.broadcast_to(missing[:, None], seen.errors.shape).ravel()
        ends = np.array([missing.min(), missing.max()])
        bits = law.parity.values
        yield kit.panel(
            "Units that a program's network has",
            "gates T of the circuit",
            "units",
            *(
                kit.observed_curve(
                    seen.listed.sel(program=name),
                    seen.units.sel(program=name),
                    name,
                    kind="points",
                    shade=place / len(PROGRAMS),
                )
                for place, name in enumerate(PROGRAMS)
            ),
            kit.predicted_curve(np.array([5.0, 200]), np.array([5.0, 200]), "T"),
            log="xy",
        )
        yield kit.panel(
            "Too few units for separate gates",
            "units missing, T − U",
            "16 · mean square error",
            kit.observed_curve(
                places, 16 * seen.errors.values.ravel(), "trained networks", kind="points"
            ),
            kit.predicted_curve(ends, ends, "none below T − U"),
        )
        yield kit.panel(
            "The parity of d bits by itself",
            "d",
            "units",
            kit.observed_curve(bits, seen.folds, "folds", kind="points"),
            kit.predicted_curve(bits, law.folds, "log₂ d"),
            kit.rival_curve(bits, rivals["a_fold_a_gate"].folds, "d − 1 gates"),
            log="x",
        )
