"""A ReLU network learns 2-XOR from about d samples, up to a logarithm; the tangent kernel needs almost d².

Inputs are uniform on the cube {±1/√d}^d, the label is the product of two signs. Descent on a network from a small
start finds the two coordinates. Regression with the tangent kernel of the NTK parameterization has to learn all d²/2
products of two coordinates at once: its learning curve follows from the eigenvalues of the kernel with no free number.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from steepest.claim import (
    Arrays,
    Check,
    Claim,
    Control,
    Count,
    Fraction,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.features.xor_sample_complexity.experiment import (
    LEARNED,
    LEVEL,
    RIDGE,
    SLOPE,
    Dimension,
    XorPoint,
    both_layers,
    crossing,
    draw_signs,
    draw_start,
    frozen_error,
    kernel_errors,
    network_errors,
    output_kernel,
    rich,
    samples_needed,
    trained,
)
from steepest.core.errors import UserError
from steepest.kernels import hypercube_spectrum, learning_curve
from steepest.nn.networks import Neurons

GRID = (0.45, 0.65, 0.85, 1.1, LEARNED)
"""Samples per d log d at which networks are tried."""
SHARES = (0.14, 0.19, 0.25, 0.33, 0.45)
"""Samples per d² at which the kernel is tried."""


@dataclass(frozen=True)
class XorSampleComplexity(Claim):
    """Networks and kernel regressions on nested samples of the cube."""

    dimensions: tuple[Dimension, ...] = (16, 25, 38)  # d, of the networks [1]
    kernel_dimensions: tuple[Dimension, ...] = (12, 16, 22, 32)  # d, of the kernel [1]
    width: Count = 40  # neurons [neurons]
    scale: Positive = 0.3  # ε, scale of the balanced start [1]
    steps: Count = 200  # of descent, of length 0.4 d each [steps]
    seeds: Seeds = 12  # samples, each with a network [1]
    tests: Count = 600  # fresh inputs on which errors are counted [1]
    largest: Count = 300  # room for samples at a point of the diagram [1]
    samples: Count = 100  # examples at a point of the diagram [1]
    level: Fraction = LEVEL  # the test error at which samples are counted [1]

    kind = "empirical law"
    precision = "float32"
    version = (
        2  # 1 had kernels up to d = 26, which do not tell d² from the spectrum's law at every seed
    )
    headline = ("network_exponent", "network_error", "kernel_samples", "kernel_exponent")
    statement = (
        r"n^*_{\text{network}}(d)=d\,\mathrm{polylog}\,d,\qquad n^*_{\text{kernel}}(d)\sim c\,d^2:\quad"
        r"\sum_k \tbinom dk\frac{\lambda_k}{\lambda_k+\kappa}=n,\quad L=\frac{\lambda_2}{\lambda_2+\kappa},\quad "
        r"P(\text{error})=\Phi\Bigl(-\frac{L}{1-L}\sqrt{\tfrac{1-\gamma}{\gamma}}\Bigr)"
    )
    source = "The talk [@telgarsky2024]; [@glasgow2024]; learning curves: [@bordelon2020]"
    corrections = (
        "The talk's orders d/ε and d²/ε are bounds. The network's error falls faster than d/n: from 0.4 to 0.01 "
        "while n grows three times.",
        "At dimensions of 12 to 40 the kernel needs samples with an exponent of 1.75, not 2: d + 1 of them go to the "
        "constant and the coordinates, which carry no label. Its learning curve says so, and that the exponent "
        "tends to 2 (1.84 from d = 64 to 128).",
    )
    remarks = (
        "n* is where the test error crosses 25 %: a monotone fit to errors at nested samples, then interpolation in "
        "log n. Sizes and steps were chosen on seeds 0 to 2, for cost.",
        "The network's local exponent is 1.2 to 1.3 at these dimensions, as for d log d, whose factor would be 0.82. "
        "Twelve samples do not tell it from d to the power 1.25; the margin admits one logarithm.",
        "The curve of the kernel is a limit in which dimension and samples grow; at d = 12 to 32 its error is right to "
        "0.02.",
        "The kernel is that of the NTK parameterization, inner + outer part. The wide limit of the network itself, "
        "from its balanced start, is inner + outer/d: by the learning curve its samples differ by −0.3, 1.1 and 3.0 % "
        "at d = 12, 16 and 32. Of other kernels of wide two-layer ReLU networks the outer part alone needs 6 to 9 % "
        "fewer there, the inner part alone from 1 % fewer to 3 % more.",
        "Of twenty fresh seeds of version 1 thirteen held, seven were inconclusive and none failed: kernels up to "
        "d = 26 give an exponent with an interval of 0.08, and did not always reject d² from the first dimension on. "
        "Version 2 has kernels up to d = 32; margins and rivals are as they were. Of its twenty fresh seeds nineteen "
        "hold; at one the network's exponent reaches beyond its margin, which leaves it inconclusive.",
        "The 25 % is one level of the error. What the sources say of small ε is an upper bound and not tested.",
    )
    point = XorPoint
    full = {
        "dimensions": (16, 25, 38, 60),
        "kernel_dimensions": (12, 16, 22, 32, 44),
        "steps": 400,
        "seeds": 24,
    }
    tiny = {
        "dimensions": (8, 10, 12),
        "kernel_dimensions": (8, 9, 10),
        "width": 8,
        "steps": 30,
        "seeds": 3,
        "tests": 50,
    }
    out_of_scope = {"scale": 10.0}

    def check_fields(self) -> None:
        """Refuse too few dimensions, and levels of the error that no learning curve crosses once."""
        for name in ("dimensions", "kernel_dimensions"):
            values = getattr(self, name)
            if sorted(set(values)) != list(values):
                flag = name.replace("_", "-")
                raise UserError(
                    f"an exponent needs increasing --{flag}, got {values}; try 16 25 38"
                )
        if not 0.1 <= self.level <= 0.4:
            raise UserError(
                f"level must be an error from 0.1 to 0.4, got {self.level:g}; try {LEVEL}"
            )

    def hypotheses(self, setting: Any) -> list[Hypothesis]:
        fewest = min(len(self.dimensions), len(self.kernel_dimensions))
        return [
            *rich(self.scale),
            assume("points of each exponent", fewest, ">=", 3, "add --dimensions"),
        ]

    def predict(self, setting: Any) -> Prediction:
        return Prediction(
            network_exponent=1.0,
            network_error=0.05,
            kernel_samples=("kernel_dimension", self.needed(both_layers)),
            kernel_errors=("kernel_dimension size", self.kernel_curves()),
        )

    def needed(self, kernel: Any) -> list[float]:
        """Return the samples that regression with a kernel needs, one a dimension."""
        return [samples_needed(kernel, d, self.level) for d in self.kernel_dimensions]

    def kernel_curves(self) -> np.ndarray:
        """Return the predicted errors of the kernel, shape ``(dimensions, sizes)``."""
        curves = []
        for d, sizes in zip(self.kernel_dimensions, self.kernel_sizes, strict=True):
            spectrum = hypercube_spectrum(both_layers, d)
            curves.append([learning_curve(spectrum, 2, n, RIDGE).sign_error for n in sizes])
        return np.array(curves)

    @property
    def sizes(self) -> np.ndarray:
        """Return how many examples networks are trained on, shape ``(dimensions, sizes)``."""
        return np.rint(np.outer(self.dimensions * np.log(self.dimensions), GRID)).astype(int)

    @property
    def kernel_sizes(self) -> np.ndarray:
        """Return how many examples the kernel is given, shape ``(dimensions, sizes)``."""
        return np.rint(np.outer(np.square(self.kernel_dimensions), SHARES)).astype(int)

    def observe(self, setting: Any, key: Key) -> Observation:
        generator = numpy_generator(key)
        networks = self.networks(generator)
        kernel = [
            [kernel_errors(generator, d, sizes, self.tests) for _ in range(2 * self.seeds)]
            for d, sizes in zip(self.kernel_dimensions, self.kernel_sizes, strict=True)
        ]
        return Observation(
            errors=("dimension seed size", networks["errors"]),
            risks=("dimension seed size", networks["risks"]),
            frozen=("dimension seed", networks["frozen"]),
            kernel_errors=("kernel_dimension sample size", kernel),
        )

    def networks(self, generator: np.random.Generator) -> Mapping[str, np.ndarray]:
        """Train all networks, and regress on the tangent features of each at its start."""
        widest = max(self.dimensions)
        longest = self.sizes.max()
        lanes = []
        frozen = []
        for d, sizes in zip(self.dimensions, self.sizes, strict=True):
            for _ in range(self.seeds):
                x = np.zeros((longest + self.tests, widest))
                x[:, :d] = draw_signs(generator, len(x), d) / np.sqrt(d)
                y = np.sign(x[:, 0] * x[:, 1])
                start = draw_start(generator, self.width, d, self.scale, widest)
                train = slice(0, sizes[-1])
                test = slice(longest, None)
                frozen.append(frozen_error(start, x[train], y[train], x[test], y[test]))
                lanes.append((x[:longest], y[:longest], x[test], y[test], *start, SLOPE * d, sizes))
        stacked = tuple(np.stack(parts).astype(np.float32) for parts in zip(*lanes, strict=True))

        def train_one(lane: tuple) -> tuple[jax.Array, jax.Array]:
            x, y, test_x, test_y, w, v, step, sizes = lane
            return network_errors(x, y, test_x, test_y, Neurons(w, v), step, sizes, self.steps)

        errors, risks = compiled(lambda lanes: jax.lax.map(train_one, lanes))(stacked)
        shape = (len(self.dimensions), self.seeds, -1)
        return {
            "errors": np.asarray(errors, float).reshape(shape),
            "risks": np.asarray(risks, float).reshape(shape),
            "frozen": np.reshape(frozen, shape[:2]),
        }

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        crosses = [
            (errors[..., 0] > self.level) & (errors[..., -1] <= self.level)
            for errors in (observed["errors"], observed["kernel_errors"])
        ]
        return [
            trained(observed["risks"]),
            assume(
                "share of learning curves that cross the level",
                float(np.concatenate([ends.ravel() for ends in crosses]).mean()),
                ">=",
                0.9,
                "the sizes tried leave out the crossing; choose larger dimensions or another --level",
            ),
        ]

    def crossings(self, observed: Observation) -> np.ndarray:
        """Return the samples at which each network's error crosses the level, shape ``(seeds, dimensions)``."""
        curves = zip(self.sizes, observed["errors"], strict=True)
        return np.transpose([crossing(sizes, errors, self.level) for sizes, errors in curves])

    def kernel_crossings(self, observed: Observation) -> np.ndarray:
        """Return the same of the kernel, shape ``(seeds, kernel_dimensions)``."""
        curves = zip(self.kernel_sizes, observed["kernel_errors"], strict=True)
        return np.transpose([crossing(sizes, errors, self.level) for sizes, errors in curves])

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        network = self.crossings(observed)
        kernel = self.kernel_crossings(observed)
        return [
            equal(
                "network_exponent",
                float(predicted["network_exponent"]),
                _slopes(self.dimensions, network),
                # a logarithm of d, which the sources leave open, adds 0.3 here; the interval takes 0.15
                (-0.2, 0.5),
                absolute=True,
                label="exponent of the samples that a network needs against d",
            ),
            bound(
                "network_error",
                observed["errors"][:, :, -1].mean(0),
                at_most=float(predicted["network_error"]),
                label=f"test error of networks at n = {LEARNED} d log d, mean over d",
            ),
            equal(
                "kernel_samples",
                np.ones(len(kernel)),
                (kernel / predicted["kernel_samples"]).mean(1),
                0.08,  # the interval takes 4 %; the limit leaves out what is of order 1/d
                label="samples that the kernel needs / by its spectrum, mean over d",
            ),
            exponent(
                "kernel_exponent",
                _slopes(self.kernel_dimensions, predicted["kernel_samples"][None])[0],
                self.kernel_dimensions,
                kernel,
                0.15,  # the interval takes 0.08
                label="samples that the kernel needs against d",
            ),
            equal(
                "kernel_errors",
                0.0,
                (observed["kernel_errors"] - predicted["kernel_errors"][:, None]).mean((0, 2)),
                0.02,
                absolute=True,
                label="error of the kernel − by its spectrum, mean over d and n",
            ),
        ]

    def rivals(self, setting: Any, predicted: Prediction) -> list[Rival]:
        d = np.array(self.dimensions, float)
        kernel_d = np.array(self.kernel_dimensions, float)
        largest = predicted["kernel_samples"][-1]

        def with_kernel(samples: Any) -> Arrays:
            return predicted.replace(kernel_samples=("kernel_dimension", samples))

        pure = largest * (kernel_d / kernel_d[-1]) ** 2
        return [
            Rival(
                "network_as_kernel",
                predicted.replace(network_exponent=2.0),
                "the second line of the talk's theorem, and what a network does that stays its kernel",
                label="the network needs d² too",
            ),
            Rival(
                "fixed_samples",
                predicted.replace(network_exponent=0.0),
                "two coordinates carry the label whatever d",
                label="the network needs as many for every d",
            ),
            Rival(
                "logarithm",
                predicted.replace(network_exponent=_slopes(d, (d * np.log(d))[None])[0]),
                "each of d coordinates must be told from the two",
                label="the network needs samples ∝ d log d",
                accepted="the power of the logarithm: d and d log d differ by 0.3 in the exponent at these dimensions",
            ),
            Rival(
                "quarter_more",
                predicted.replace(network_exponent=1.25),
                "a power in place of a logarithm",
                label="the network needs samples ∝ d^1.25",
                accepted="a small power from a logarithm: both have this exponent at these dimensions",
            ),
            Rival(
                "kernel_as_network",
                with_kernel(largest * kernel_d / kernel_d[-1]),
                "were it free of the d²/2 products",
                label="the kernel needs samples ∝ d",
            ),
            Rival(
                "pure_square",
                with_kernel(pure),
                "the leading order of the sources; the d coordinates and the constant are learned before the products",
                label="the kernel needs samples ∝ d² from d = 12 on",
            ),
            Rival(
                "output_weights",
                with_kernel(self.needed(output_kernel)),
                "the kernel of the output weights alone",
                label="the kernel of random features",
                accepted="which of the kernels of wide ReLU networks it is: that of the output weights alone needs 8 % "
                "fewer samples at d = 22, that of the inner weights alone 2 % more",
            ),
            Rival(
                "free_start",
                with_kernel(predicted["kernel_samples"] - kernel_d - 1),
                "constant and coordinates carry no label",
                label="the kernel learns the products from the first sample on",
            ),
            Rival(
                "chance",
                predicted.replace(
                    kernel_errors=("kernel_dimension size", 0 * predicted["kernel_errors"] + 0.5)
                ),
                "d² products cannot be learned from fewer samples",
                label="the kernel stays at chance until n = d²/2",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        errors = observed["errors"].copy()
        errors[:, :, -1] = observed["frozen"]
        return [
            Control(
                "frozen_features",
                observed.replace(errors=("dimension seed size", errors)),
                "with the features of its start the same network is a kernel method",
                label="regression on each network's tangent features at its start",
            )
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        d = np.array(self.dimensions, float)
        kernel_d = np.array(self.kernel_dimensions, float)
        network = self.crossings(observed)
        kernel = self.kernel_crossings(observed)
        law = d * np.log(d)
        fitted = np.exp(np.mean(np.log(network.mean(0) / law))) * law
        curves = []
        for i, sizes in enumerate(self.sizes):
            shade = i / max(1, len(d) - 1)
            error = observed["errors"][i].mean(0)
            curves.append(observed_curve(sizes / d[i], error, f"d = {d[i]:g}", shade=shade))
        kernel_curves = []
        for i, sizes in enumerate(self.kernel_sizes):
            shade = i / max(1, len(kernel_d) - 1)
            shares = sizes / kernel_d[i] ** 2
            error = observed["kernel_errors"][i].mean(0)
            name = f"d = {kernel_d[i]:g}"
            kernel_curves.append(observed_curve(shares, error, name, kind="points", shade=shade))
            kernel_curves.append(
                predicted_curve(shares, predicted["kernel_errors"][i], "" if i else "spectrum")
            )
        return (
            panel(
                f"Samples for an error of {self.level:.0%}",
                "dimension d",
                "samples n*",
                observed_curve(d, network.mean(0), "network", kind="points"),
                predicted_curve(d, network.mean() * d / d.mean(), "∝ d"),
                rival_curve(d, fitted, "∝ d log d"),
                observed_curve(kernel_d, kernel.mean(0), "kernel", kind="points", shade=0.7),
                predicted_curve(kernel_d, predicted["kernel_samples"], "kernel, by its spectrum"),
                rival_curve(d, fitted[0] * (d / d[0]) ** 2, "∝ d²", shade=0.7),
                log="xy",
            ),
            panel(
                "Networks learn from a few samples a dimension",
                "n / d",
                "test error",
                *curves,
                ylim=(0, 0.55),
            ),
            panel(
                "The kernel learns when n is of order d²",
                "n / d²",
                "test error",
                *kernel_curves,
                ylim=(0, 0.55),
            ),
        )


def _slopes(x: Any, curves: np.ndarray) -> np.ndarray:
    """Return the slope of log y on log x of every curve, shape ``(curves,)``."""
    return np.polyfit(np.log(x), np.log(np.transpose(curves)), 1)[0]
