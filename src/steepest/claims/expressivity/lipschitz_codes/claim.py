"""Describing a 1-Lipschitz function on [0, 1] to within 1/(n + 1) takes exactly n bits.

If a code depends continuously on the function, a real number is worth exactly two bits. Errors are measured by their
largest absolute value, and f(0) = 0. Cut [0, 1] into n + 1 cells, draw the first flat, and spend a bit on each other
cell: slope +1 or −1, whichever corrects the error at the end of the cell. The error never exceeds a cell's length. Any
two of the 2^(n+1) zigzags with slopes ±1 on these cells are two cell lengths apart or more, so 2^n balls with a smaller
radius than one length cannot cover them. A code by the n values at the points 2i/(2n + 1) leaves the error 1/(2n + 1),
which is half of the gap between two points. With 2n bits the error is the same. No continuous code of n numbers leaves
less: among sums of n + 1 tents of this height some f and its opposite −f have the same code (Borsuk and Ulam).
"""

from typing import Annotated, NamedTuple

import jax
import numpy as np

from steepest import kit
from steepest.claims.expressivity.lipschitz_codes.experiment import (
    FINE,
    Shape,
    at_cells,
    autoencoders,
    coded,
    errors_by_bits,
    errors_by_values,
    kinked,
    largest_error,
    left_by_bits,
    left_by_values,
    nearest_pair,
    networks,
    zigzags,
)
from steepest.nn.types import Values

EXACT = 1e-9
NEARLY = 1 - 1e-6  # of the bound: how well the worst function of a trained code is found
BITS_A_NUMBER = 8  # of the code that jumps
SHOWN_BITS = 8  # of the code of a network that the figure shows


class Setting(NamedTuple):
    """Functions that are coded, ``(functions, points)``, the trained networks first."""

    functions: Values


@kit.claim
class LipschitzCodes(kit.Claim[Setting]):
    """Codes by bits and by values on their worst functions, on kinked ones and on networks; trained autoencoders."""

    bits: tuple[Annotated[int, kit.Within(1, 14)], ...] = kit.param(
        (1, 2, 3, 4, 6, 8, 12),
        "n of the codes by bits",
        scope=kit.choices((1, 2, 3, 4, 6, 8, 12), (1, 2, 5, 10), (2, 4, 6, 8, 10, 12)),
    )
    numbers: tuple[Annotated[int, kit.Within(1, 6)], ...] = kit.param(
        (1, 2, 3, 4),
        "n of the codes by numbers",
        scope=kit.choices((1, 2, 3, 4), (1, 2, 3), (1, 2, 4), why="more take longer to train"),
    )
    offset: kit.NonNegative = kit.param(0.0, "largest |f(0)|")
    functions: kit.Seeds = kit.param(30, "kinked functions, and as many networks on the line")
    starts: kit.Seeds = kit.param(3, "autoencoders for each n")
    steps: kit.Count = kit.param(
        1000,
        "steps of Adam on each network",
        unit="steps",
        scope=kit.between(800, 1500, "fewer leave networks far above the bound"),
    )
    lr: Annotated[float, kit.Within(1e-5, 1)] = kit.param(
        0.01,
        "step size of the autoencoders",
        scope=kit.between(0.005, 0.015, "others do not train them"),
    )

    kind = "theorem"
    says = {
        "to within 1/(n + 1) takes exactly n bits": ("bits", "apart"),
        "a real number is worth exactly two bits": ("numbers", "trained"),
    }
    tiny = {"bits": (1, 2, 4), "numbers": (1, 2), "functions": 4, "starts": 3, "steps": 200}
    full = {"functions": 200, "starts": 10, "steps": 3000, "numbers": (1, 2, 3, 4, 5, 6)}
    out_of_scope = {"offset": 0.25}

    def axes(self):
        return {"bits": self.bits, "numbers": self.numbers}

    def setting(self, key):
        for_networks, for_kinks = jax.random.split(key)
        trained = networks(for_networks, self.functions, self.steps)
        rng = kit.numpy_generator(for_kinks)
        functions = np.concatenate([trained, kinked(self.functions, rng)])
        return Setting(functions + self.offset * rng.uniform(-1, 1, (len(functions), 1)))

    def hypotheses(self, setting):
        functions = setting.functions
        slope = np.abs(np.diff(functions, axis=1)).max() * (functions.shape[1] - 1)
        yield kit.assume("largest slope", slope, "<=", 1 + EXACT, "the law is of slopes up to one")
        yield kit.assume(
            "largest |f(0)|", np.abs(functions[:, 0]).max(), "<=", EXACT, "it costs bits too"
        )
        yield kit.assume("smallest n", min(*self.bits, *self.numbers), ">=", 1)

    def predict(self, setting):
        bits = np.array(self.bits)
        numbers = np.array(self.numbers)
        return kit.law(
            bits_error=("bits", 1 / (bits + 1)), numbers_error=("numbers", 1 / (2 * numbers + 1))
        )

    def observe(self, setting, key):
        for_networks, for_search = jax.random.split(key)
        shape = Shape(max(self.numbers), self.starts, self.steps)
        layers = autoencoders(for_networks, self.numbers, shape, self.lr)
        rng = kit.numpy_generator(for_search)
        by_start = (len(self.numbers), self.starts)
        sizes = np.repeat(self.numbers, self.starts)
        trained = [
            largest_error([layer[place] for layer in layers], int(n), rng)
            for place, n in enumerate(sizes)
        ]
        cells = [n + 1 for n in self.bits]
        errors, differences = np.moveaxis(np.reshape(trained, (*by_start, 2)), -1, 0)
        return kit.seen(
            bits_error=("bits", [left_by_bits(m) for m in cells]),
            forgotten=("bits", [left_by_bits(m, remembers=False) for m in cells]),
            apart=("bits", [nearest_pair(zigzags(m)) for m in cells]),
            apart_rising=("bits", [nearest_pair(zigzags(m, (0.0, 1.0))) for m in cells]),
            numbers_error=("numbers", [left_by_values(n, 2 / (2 * n + 1)) for n in self.numbers]),
            evenly=("numbers", [left_by_values(n, 1 / n) for n in self.numbers]),
            jumping=("numbers", [left_by_bits(BITS_A_NUMBER * n + 1) for n in self.numbers]),
            trained=("numbers start", errors),
            opposite=("numbers start", differences),
            functions_by_bits=(
                "bits function",
                [errors_by_bits(setting.functions, m) for m in cells],
            ),
            functions_forgotten=(
                "bits function",
                [errors_by_bits(setting.functions, m, remembers=False) for m in cells],
            ),
            functions_by_numbers=(
                "numbers function",
                [errors_by_values(setting.functions, n) for n in self.numbers],
            ),
            example=("place", setting.functions[0]),
        )

    def run_conditions(self, observed):
        largest = observed["opposite"].max()
        again = "the search for two opposite functions of one code has failed: choose another seed"
        yield kit.assume("largest difference of opposite codes", largest, "<=", 1e-7, again)

    def judge(self, law, seen):
        yield kit.follows(
            "bits",
            law.bits_error,
            seen.bits_error,
            EXACT,
            label="n bits: error on the worst function",
        )
        yield kit.follows(
            "apart",
            2 * law.bits_error,
            seen.apart,
            EXACT,
            label="smallest distance of 2^(n+1) zigzags, twice the error of 2^n balls",
        )
        yield kit.follows(
            "numbers",
            law.numbers_error,
            seen.numbers_error,
            EXACT,
            label="n values: error on the worst function",
        )
        yield kit.at_least(
            "trained",
            NEARLY * law.numbers_error,
            seen.trained,
            each=True,
            label="trained continuous codes of n numbers: largest error of each",
        )
        yield kit.at_most(
            "functions",
            law.bits_error * (1 + EXACT),
            seen.functions_by_bits,
            each=True,
            label="n bits: error on every kinked function and every network on the line",
        )
        yield kit.at_most(
            "functions_by_numbers",
            law.numbers_error * (1 + EXACT),
            seen.functions_by_numbers,
            each=True,
            label="n values: error on every kinked function and every network on the line",
        )

    def rivals(self, setting, law):
        lost = 1 + np.log(law.bits)
        yield kit.rival(
            "1/n for n bits, 1/(2n) for n numbers",
            "the first cell takes a bit like any other, or f(0) is free",
            bits_error=1 / law.bits,
            numbers_error=1 / (2 * law.numbers),
        )
        yield kit.rival(
            "2^(−n)",
            "each bit halves what is left, as it does of a number",
            id="halvings",
            bits_error=2.0**-law.bits,
        )
        yield kit.rival(
            "(n/log n)^(−1)",
            "the notes conclude it from the rate for codes by numbers",
            bits_error=lost / (law.bits + 1),
        )
        yield kit.rival(
            "a number is worth a bit",
            "the notes call both equivalent",
            numbers_error=1 / (law.numbers + 1),
        )
        yield kit.rival(
            "1/(2n + 2) for n numbers",
            "f(0) is known too, which is one number more",
            numbers_error=1 / (2 * law.numbers + 2),
        )

    def controls(self, seen):
        yield kit.control(
            "bits that say whether f rises in a cell, not what is missing",
            "errors of the cells add up",
            id="forgets",
            bits_error=seen.forgotten,
            functions_by_bits=seen.functions_forgotten,
        )
        yield kit.control(
            "zigzags with slopes 0 and 1",
            "functions that never fall are a class half as wide",
            apart=seen.apart_rising,
        )
        yield kit.control(
            "values at i/n", "the last value is wasted on the end", numbers_error=seen.evenly
        )
        yield kit.control(
            f"n numbers that each hold {BITS_A_NUMBER} bits of a code",
            "Borsuk and Ulam's theorem is of continuous codes",
            id="jumps",
            numbers_error=seen.jumping,
            trained=seen.jumping,
        )

    def figure(self, law, seen, rivals):
        bits = law.bits.values
        numbers = law.numbers.values
        example = seen.example.values
        cells = SHOWN_BITS + 1
        points = np.arange(cells * FINE + 1) / (cells * FINE)
        fine = at_cells(example[None], cells)
        code = coded(fine, cells)[0]
        yield kit.panel(
            "A number is worth two bits",
            "n",
            "largest error",
            kit.predicted_curve(bits, law.bits_error, "1/(n + 1), 1/(2n + 1)"),
            kit.observed_curve(bits, seen.bits_error, "n bits, worst function", kind="points"),
            kit.predicted_curve(numbers, law.numbers_error, ""),
            kit.observed_curve(
                numbers, seen.numbers_error, "n values, worst function", kind="points", shade=0.5
            ),
            kit.observed_curve(
                numbers, seen.trained.min("start"), "best trained code", kind="points", shade=1.0
            ),
            kit.rival_curve(bits, rivals["halvings"].bits_error, "2^(−n)"),
            log="xy",
            ylim=(0.05, 0.6),
        )
        yield kit.panel(
            f"A trained network and its code by {SHOWN_BITS} bits",
            "t",
            "f(t), divided by its largest slope",
            kit.context_curve(np.linspace(0, 1, len(example)), example, "network"),
            kit.observed_curve(points, code, "code"),
            kit.predicted_curve(points, code + 1 / cells, "within 1/(n + 1)"),
            kit.predicted_curve(points, code - 1 / cells, ""),
        )
