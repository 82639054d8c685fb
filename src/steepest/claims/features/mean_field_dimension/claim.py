"""At output scale 1/N, the noise of one-pass SGD grows with the number D of inputs like √D.

With D inputs the squared noise of the steps is ε times D, times nearly a constant, whatever the width, where labels are
noise and the limit flow is at rest. So a given accuracy takes of the order of D examples, not ND.
"""

from collections.abc import Sequence

import numpy as np
from scipy.stats import gmean

from steepest import kit
from steepest.claims.features.mean_field_dimension.experiment import LABELS, RUNS, train_on_noise
from steepest.kernels import funk_hecke, harmonic_count

DEGREES = 13  # of harmonics: what is beyond has less than 1/1000 of the trace of the kernel
NODES = 80  # of quadratures on the line


@kit.claim
class MeanFieldDimension(kit.Claim[None]):
    """Tanh networks on labels that are fair signs, with inputs on spheres of several dimensions."""

    dimensions: tuple[kit.Count, ...] = kit.param(
        (4, 8, 16, 32),
        "D",
        scope=kit.choices((4, 8, 16, 32), (4, 12, 36), why="more take longer"),
    )
    neurons: tuple[kit.Count, ...] = kit.param(
        (32, 128),
        "N, even",
        scope=kit.choices((32, 128), (40, 160), why="below the next order in 1/N is seen"),
    )
    times: tuple[kit.Positive, ...] = kit.param(
        (0.2, 0.6, 2.0),
        "times of the flow, in time multiplied by N, increasing",
        scope=kit.choices((0.2, 0.6, 2.0), (0.2, 0.8, 3.0), why="later SGD is as noisy as early"),
    )
    seeds: kit.Seeds = kit.param(40, "groups of networks")

    kind = "limit"
    says = {"grows with the number D of inputs like √D": ("samples", "dimension_exponent")}
    tiny = {"times": (0.5, 1.0), "dimensions": (4, 8), "neurons": (16, 32), "seeds": 3}
    out_of_scope = {"neurons": (2, 4), "seeds": 3}

    def axes(self):
        return {"dimension": self.dimensions, "neurons": self.neurons, "time": self.times}

    def check_fields(self) -> None:
        """Refuse times that do not increase, spheres of no harmonics, and neurons that make no pairs."""
        if any(later <= time for time, later in zip(self.times, self.times[1:], strict=False)):
            raise kit.UserError(f"times must increase, got {self.times}")
        if min(self.dimensions) < 3 or any(number % 2 for number in self.neurons):
            raise kit.UserError(
                f"--dimensions must be three or more, and --neurons even, got {self.dimensions} and {self.neurons}"
            )

    def hypotheses(self, setting):
        yield kit.assume("fewest neurons", min(self.neurons), ">=", 10, "the law is for N → ∞")

    def predict(self, setting):
        of_dimensions = noise_of_labels(self.dimensions, self.times, LABELS)
        return kit.law(
            sampling=("neurons dimension time", np.stack([of_dimensions] * len(self.neurons)))
        )

    def observe(self, setting, key):
        """Train on noise in every dimension, and as often in the fewest for as many examples."""
        rng = kit.numpy_generator(key)

        def in_world(dimension: int, length: int) -> np.ndarray:
            train = lambda number: train_on_noise(
                rng, self.seeds * RUNS, number, dimension, self.times, length
            )
            squares = np.stack([train(number) for number in self.neurons], 1)
            return squares.reshape(self.seeds, RUNS, *squares.shape[1:])

        in_each = [in_world(dimension, dimension) for dimension in self.dimensions]
        flat = [in_world(min(self.dimensions), dimension) for dimension in self.dimensions]
        axes = "seed draw neurons time dimension"
        return kit.seen(sampling=(axes, np.stack(in_each, -1)), flat=(axes, np.stack(flat, -1)))

    def judge(self, law, seen):
        yield kit.follows(
            "samples",
            law.sampling,
            seen.sampling,
            0.25,  # the interval takes 0.1, and the next order in 1/N and in ε as much
            label="squared distance from a limit at rest over ε, of SGD on noise in D dimensions",
        )
        yield kit.power(
            "dimension_exponent",
            law.sampling.isel(time=-1, neurons=-1) ** 0.5,
            seen.sampling.isel(time=-1, neurons=-1).mean("draw", skipna=False) ** 0.5,
            0.06,  # twice the interval
            over="dimension",
            label="distance from a limit at rest against D, last time, most neurons",
        )

    def rivals(self, setting, law):
        added = law.sampling.isel(time=0) * law.time / law.time[0]
        yield kit.rival(
            "n ∝ ND for a given accuracy",
            "one expects to need as many examples as weights",
            sampling=law.sampling * law.neurons / gmean(law.neurons),
        )
        yield kit.rival(
            "the noise of each step stays",
            "the noise of all steps adds up",
            sampling=added.transpose(*law.sampling.dims),
        )
        yield kit.rival(
            "n ∝ D² for a given accuracy",
            "an error ∝ D in place of √D",
            id="dimension_twice",
            sampling=law.sampling * law.dimension / gmean(law.dimension),
        )

    def controls(self, seen):
        yield kit.control(
            "examples that vary in the fewest dimensions, as many as are drawn in all D",
            "the dimensions of the examples count",
            id="fewest_dimensions",
            sampling=seen.flat,
        )

    def figure(self, law, seen, rivals):
        most = lambda array: array.sampling.isel(neurons=-1, drop=True)
        wrong = {"D²": most(rivals["dimension_twice"]).isel(time=-1)} if rivals else {}
        yield kit.curves(
            "In D dimensions the squared noise of the steps is ε times about D",
            most(law),
            most(seen),
            over="dimension",
            by="time",
            x="dimension D",
            y="squared distance from a limit at rest, over ε",
            name="t = {}",
            rivals=wrong,
            log="xy",
        )


def noise_of_labels(dimensions: Sequence[int], times: Sequence[float], noise: float) -> kit.Values:
    """Return E f²/ε of one-pass SGD on labels that are noise alone, shape ``(dimensions, times)``.

    Examples are uniform on the sphere of length √D, and w ~ N(0, I/D) at the start. With labels of mean zero the limit
    is at rest. Its tangent kernel there is K = ⟨x, x'⟩ E σ'(z) σ'(z'), with z and z' normal of variance one and of the
    correlation u of the examples. A step at x_j adds ε y_j K(x, x_j) to the outputs, and the flow forgets it like
    e^(−Kt), so that

        E f² = ε τ²/2 · tr K (1 − e^(−2Kt)).

    The kernel is a function of u, whose eigenvalues are its integrals against Gegenbauer's polynomials.

    Args:
        dimensions: of the examples.
        times: of the flow.
        noise: τ, the deviation of the labels.
    """
    z, mass = np.polynomial.hermite_e.hermegauss(NODES)
    hermite = np.polynomial.hermite_e.hermevander(z, DEGREES)
    factorials = np.cumprod(np.maximum(np.arange(DEGREES + 1), 1.0))
    # E σ'(z) σ'(z') is Σ (E σ' He_k)² u^k/k!
    series = ((mass / mass.sum() / np.cosh(z) ** 2) @ hermite) ** 2 / factorials
    degrees = range(1, DEGREES + 1)  # degree zero is not felt, as the kernel is odd
    rows = []
    for dimension in dimensions:
        # ⟨x, x'⟩ = D u
        kernel = lambda u, d=dimension: d * u * np.polynomial.polynomial.polyval(u, series)
        eigenvalue = funk_hecke(kernel, dimension, degrees, breaks=())
        number = np.array([harmonic_count(dimension, degree) for degree in degrees])
        # tr K(1 − e^(−2Kt)) sums over harmonics
        forgotten = -np.expm1(-2 * np.multiply.outer(eigenvalue, times))
        rows.append(noise**2 / 2 * (number * eigenvalue) @ forgotten)
    return np.stack(rows)
