"""A ReLU network learns XOR of two bits in d dimensions from a number of samples ∝ d log d.

Its tangent kernel needs almost d² samples, as many as its spectrum predicts. Inputs are uniform on the cube {±1/√d}^d,
the label is the product of two signs. Descent on a network from a small start finds the two coordinates. Regression
with the tangent kernel of the NTK parameterization has to learn all d²/2 products of two coordinates at once. Its
learning curve follows from the eigenvalues of the kernel with no free number, also on the parity of four bits.
"""

from math import comb
from typing import Any

import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.xor_sample_complexity.experiment import (
    Dimension,
    Shape,
    crossing,
    follow_networks,
    regress_kernels,
    regress_parities,
    rich,
    trained,
)
from steepest.claims.features.xor_sample_complexity.figure import panels_of_samples
from steepest.claims.features.xor_sample_complexity.point import XorPoint
from steepest.claims.features.xor_sample_complexity.theory import (
    LEVEL,
    both_layers,
    errors_of,
    output_kernel,
    samples_needed,
)

LEARNED = 1.5
"""Samples per d log d from which networks have learned."""
GRID = (0.45, 0.65, 0.85, 1.1, LEARNED)
"""Samples per d log d at which networks are tried."""
SHARES = (0.14, 0.19, 0.25, 0.33, 0.45)
"""Samples per d² at which the kernel is tried."""

FOUR = 4
"""Bits of the longer parity."""
FOUR_DIMENSIONS = (14, 16)
"""Below, the error is up to 0.06 above its limit."""
FOUR_SHARES = (0.5, 0.75, 1.0)
"""Samples over the products of four coordinates, at which the kernel is tried."""
FOUR_DRAWS = 10


@kit.claim
class XorSampleComplexity(kit.Claim[None]):
    """Networks and kernel regressions on nested samples of the cube."""

    dimensions: tuple[Dimension, ...] = kit.param(
        (16, 32, 64),
        "d",
        scope=kit.choices(
            (16, 32, 64), (16, 28, 50), (20, 36, 64), why="an exponent needs a wide range"
        ),
    )
    width: kit.Count = kit.param(
        40, "neurons", unit="neurons", scope=kit.between(30, 60, "fewer may lack a kind of neuron")
    )
    scale: kit.Positive = kit.param(
        0.3, "ε of the balanced start", scope=kit.between(0.1, 0.5, "from a large one it is lazy")
    )
    steps: kit.Count = kit.param(200, "steps of descent, of length 0.4 d", unit="steps")
    seeds: kit.Seeds = kit.param(12, "samples, one network on each")
    tests: kit.Count = kit.param(600, "fresh inputs on which errors are counted")
    largest: kit.Count = kit.param(300, "room for samples at a point of the diagram")
    samples: kit.Count = kit.param(100, "examples at a point of the diagram")

    kind = "empirical law"
    says = {
        "learns XOR of two bits in d dimensions from a number of samples ∝ d log d": "network_exponent",
        "Its tangent kernel needs almost d² samples, as many as its spectrum predicts": kit.literal(
            "kernel_samples", power={"dimension": 2}
        ),
    }
    tiny = {"dimensions": (8, 10, 12), "width": 8, "steps": 30, "seeds": 3, "tests": 50}
    full = {"dimensions": (16, 32, 64, 110), "steps": 400, "seeds": 24}
    out_of_scope = {"scale": 10.0}
    precision = "float32"
    point = XorPoint

    @property
    def network_sizes(self) -> np.ndarray:
        """Return how many examples networks are trained on, shape ``(dimensions, sizes)``."""
        return np.rint(np.outer(self.dimensions * np.log(self.dimensions), GRID)).astype(int)

    @property
    def kernel_sizes(self) -> np.ndarray:
        """Return how many examples the kernel is given, shape ``(dimensions, sizes)``."""
        return np.rint(np.outer(np.square(self.dimensions), SHARES)).astype(int)

    @property
    def four_sizes(self) -> dict[int, list[int]]:
        """Return how many examples of the longer parity the kernel is given, by dimension."""
        return {d: [round(comb(d, FOUR) * part) for part in FOUR_SHARES] for d in FOUR_DIMENSIONS}

    def axes(self):
        return {
            "dimension": self.dimensions,
            "size": SHARES,
            "four": FOUR_DIMENSIONS,
            "part": FOUR_SHARES,
        }

    def check_fields(self) -> None:
        """Refuse too few dimensions."""
        if sorted(set(self.dimensions)) != list(self.dimensions):
            raise kit.UserError(
                f"an exponent needs increasing --dimensions, got {self.dimensions}; try 16 25 38"
            )

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        count = len(self.dimensions)
        yield from rich(self.scale)
        yield kit.assume("points of an exponent", count, ">=", 3, "add --dimensions")

    def predict(self, setting):
        d = np.array(self.dimensions, float)
        return kit.law(
            network_samples=("dimension", d * np.log(d)),
            network_error=0.05,
            kernel_samples=("dimension", self._needed(both_layers)),
            kernel_errors=("dimension size", errors_of(both_layers, d, self.kernel_sizes)),
            four_errors=("four part", self._four_errors(FOUR)),
        )

    def _four_errors(self, bits: int) -> np.ndarray:
        sizes = self.four_sizes
        return errors_of(both_layers, np.array(list(sizes)), np.array(list(sizes.values())), bits)

    def _needed(self, kernel: Any) -> np.ndarray:
        return np.array([samples_needed(kernel, d) for d in self.dimensions])

    def observe(self, setting, key):
        generator = kit.numpy_generator(key)
        shape = Shape(self.width, self.steps, self.seeds, self.tests)
        sizes = self.network_sizes
        networks = follow_networks(generator, self.dimensions, sizes, self.scale, shape)
        kernel = regress_kernels(generator, self.dimensions, self.kernel_sizes, shape)
        return kit.seen(
            errors=("dimension seed tried", networks["errors"]),
            risks=("dimension seed tried", networks["risks"]),
            frozen=("dimension seed", networks["frozen"]),
            network_samples=("dimension seed", _crossings(sizes, networks["errors"])),
            kernel_errors=("dimension seed size", kernel),
            kernel_samples=("dimension seed", _crossings(self.kernel_sizes, kernel)),
            **{
                name: (
                    "four draw part",
                    regress_parities(generator, self.four_sizes, FOUR_DRAWS, bits),
                )
                for name, bits in (("four_errors", FOUR), ("three_errors", FOUR - 1))
            },
        )

    def run_conditions(self, observed):
        crosses = [
            (observed[name][..., 0] > LEVEL) & (observed[name][..., -1] <= LEVEL)
            for name in ("errors", "kernel_errors")
        ]
        yield trained(observed["risks"])
        yield kit.assume(
            "share of learning curves that cross the level",
            float(np.mean(crosses)),
            ">=",
            0.9,
            "the sizes tried leave out the crossing; choose larger --dimensions",
        )

    def judge(self, law, seen):
        yield kit.power(
            "network_exponent",
            law.network_samples,
            seen.network_samples,
            0.15,  # to d^1.5 it is 0.21; the interval takes 0.05
            over="dimension",
            label="samples that a network needs against d, as d log d",
        )
        yield kit.at_most(
            "network_error",
            law.network_error,
            seen.errors.isel(tried=-1).mean("dimension"),
            label=f"test error of networks at n = {LEARNED} d log d, mean over d",
        )
        yield kit.follows(
            "kernel_samples",
            law.kernel_samples,
            seen.kernel_samples,
            0.15,  # the interval takes 6 %; the limit leaves out what is of order 1/d, 5 % at d = 16
            over="dimension",
            label="samples that the kernel needs, by its spectrum",
        )
        yield kit.follows(
            "kernel_errors",
            law.kernel_errors,
            seen.kernel_errors,
            0.04,  # the interval takes 0.02, and the limit leaves out 0.02
            over="size",
            absolute=True,
            label="error of the kernel, by its spectrum, mean over d",
        )
        yield kit.follows(
            "four_errors",
            law.four_errors,
            seen.four_errors,
            0.06,  # the limit leaves out 0.03 at d = 14, and the interval takes 0.03
            absolute=True,
            label="error of the kernel on the parity of four bits, by its spectrum",
        )

    def rivals(self, setting, law):
        d = law.dimension.astype(float)
        largest = law.kernel_samples.isel(dimension=-1, drop=True)
        powers = {
            "linear": (1.0, "two coordinates are among d"),
            "three_halves": (1.5, "between the network and its kernel"),
            "network_as_kernel": (2.0, "the second line of the talk's theorem"),
        }
        yield from (
            kit.rival(
                f"the network needs samples ∝ d^{power:g}", why, id=name, network_samples=d**power
            )
            for name, (power, why) in powers.items()
        )
        yield kit.rival(
            "the kernel needs samples ∝ d",
            "were it free of the d²/2 products",
            kernel_samples=largest * d / d[-1],
        )
        yield kit.rival(
            "the kernel needs samples ∝ d² from the first d on",
            "the leading order of the sources; constant and coordinates are learned before the products",
            id="pure_square",
            kernel_samples=largest * (d / d[-1]) ** 2,
        )
        yield kit.rival(
            "the kernel of random features",
            "the tangent kernel where only the output weights are trained",
            accepted="which of the kernels of wide ReLU networks it is: the two differ by 6 to 9 %",
            kernel_samples=("dimension", self._needed(output_kernel)),
        )
        yield kit.rival(
            "the kernel learns the products from the first sample on",
            "constant and coordinates carry no label",
            id="free_start",
            kernel_samples=law.kernel_samples - d - 1,
        )
        yield kit.rival(
            "the kernel stays at chance until n = d²/2",
            "d² products cannot be learned from fewer samples",
            kernel_errors=xarray.full_like(law.kernel_errors, 0.5),
            four_errors=xarray.full_like(law.four_errors, 0.5),
        )
        yield kit.rival(
            "four bits are learned as two are",
            "so many samples are enough for two bits",
            four_errors=("four part", self._four_errors(2)),
        )

    def controls(self, seen):
        frozen = seen.frozen.expand_dims({"tried": seen.sizes["tried"]}, axis=-1)
        # the network's errors in place of the kernel's, at sizes of their own
        networks = seen.errors.rename(tried="size").assign_coords(size=seen.size)
        yield kit.control(
            "regression on each network's tangent features at its start",
            "with the features of its start the same network is a kernel method",
            id="frozen_features",
            errors=frozen,
        )
        yield kit.control(
            "the kernel in place of the network",
            "it is no network",
            id="kernel",
            network_samples=seen.kernel_samples,
        )
        yield kit.control(
            "the network in place of the kernel",
            "its features move",
            id="network",
            kernel_samples=seen.network_samples,
            kernel_errors=networks,
        )
        yield kit.control(
            "the parity of three bits in place of four",
            "the kernel has no odd parts from the third on",
            four_errors=seen.three_errors,
        )

    def figure(self, law, seen, rivals):
        return panels_of_samples(law, seen, self.network_sizes)


def _crossings(sizes: np.ndarray, errors: np.ndarray) -> np.ndarray:
    """Return the samples at which each error crosses the level, shape ``(dimensions, seeds)``."""
    rows = zip(sizes, errors, strict=True)
    return np.array([crossing(counts, curves, LEVEL) for counts, curves in rows])
