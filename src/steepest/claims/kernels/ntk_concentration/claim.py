"""The kernel of n random neurons on m orthonormal inputs deviates from its mean by order √(m/n).

In spectral norm the distance is about 2√(m/n) E σ² for bounded odd activations σ. On digits it grows nearly like m/√n.
For |σ| ≤ 1 the kernel K_n of n random neurons on m inputs is a mean of n independent matrices of norm at most m. On
orthonormal inputs and for odd σ its entries are uncorrelated. So √n(K_n − E K) tends to a symmetric Gaussian matrix of
independent entries, whose norm is near 2√m E σ². In general matrix Bernstein gives √(m‖E K‖ log m/n), and on digits E K
is large. Without the dimension or the ½ in the exponent, as printed in the notes, Bernstein's inequality is false.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.kernels._bounded_neurons import SETS, BoundedNeurons
from steepest.claims.kernels.ntk_concentration.figure import panels
from steepest.claims.kernels.ntk_concentration.theory import gaussian_norm
from steepest.kernels import bernstein_tail, sampled_hidden_kernel
from steepest.nn.activations import activation
from steepest.nn.types import Values

FEW = 16  # neurons that count in a changed world, whatever n


@kit.claim
class NtkConcentration(BoundedNeurons):
    """Random hidden layers on orthonormal inputs and on digits of unit length."""

    inputs: kit.Count = kit.param(
        16,
        "m where the width varies",
        scope=kit.between(12, 20, "m/n must be small at the least width"),
    )
    widths: tuple[kit.Count, ...] = kit.param(
        (256, 512, 1024, 2048, 4096),
        "n",
        unit="neurons",
        scope=kit.choices((256, 512, 1024, 2048, 4096), (300, 600, 1200, 2400, 4800)),
    )
    sizes: tuple[kit.Count, ...] = kit.param(
        (16, 32, 64, 128),
        "m where the inputs vary",
        scope=kit.choices((16, 32, 64, 128), (16, 40, 100), (12, 24, 48, 96)),
    )
    size_width: kit.Count = kit.param(
        8192, "n there", unit="neurons", scope=kit.between(8192, 12288)
    )
    seeds: kit.Seeds = kit.param(100, "networks where the width varies")
    size_seeds: kit.Seeds = kit.param(60, "networks where the inputs vary")
    tail_width: kit.Count = kit.param(512, "n of the failure rates", unit="neurons")
    trials: kit.Count = kit.param(2000, "networks for the failure rate on m orthonormal inputs")
    trials_one: kit.Count = kit.param(20000, "networks for the failure rate on one input")
    deviations: tuple[kit.Positive, ...] = kit.param((1.0, 1.5, 2.0, 3.0, 4.0), "t in units of √U")

    kind = "limit"
    says = {
        "deviates from its mean by order √(m/n)": (
            kit.literal("of_width", power={"width": -0.5}),
            kit.literal("of_size", power={"size": 0.5}),
        ),
        "nearly like m/√n": (
            kit.literal("digits_width", power={"width": -0.5}),
            kit.literal("digits_size", power={"size": 1}),
        ),
    }
    tiny = {
        "inputs": 4,
        "widths": (16, 32, 64),
        "sizes": (4, 6, 8),
        "size_width": 64,
        "seeds": 5,
        "size_seeds": 5,
        "tail_width": 32,
        "trials": 50,
        "trials_one": 50,
    }
    full = {
        "seeds": 400,
        "size_seeds": 80,
        "trials": 20_000,
        "trials_one": 200_000,
        "widths": (256, 512, 1024, 2048, 4096, 8192),
    }
    out_of_scope = {"activation": "relu"}

    def axes(self):
        return {
            "set": SETS,
            "width": self.widths,
            "size": self.sizes,
            "case": (f"{self.inputs} inputs", "one input"),
            "deviation": self.deviations,
        }

    def setting(self, key):
        return self.draw(key, max(*self.sizes, self.inputs))

    def predict(self, setting):
        m = self.inputs
        widths = np.array(self.widths)
        sizes = np.array(self.sizes)
        second, fourth = self.moments()
        # √n (K_n − K) on orthonormal inputs: variance (E σ²)² off the diagonal, Var σ² on it
        norm = {
            int(k): gaussian_norm(int(k), second, np.sqrt(fourth - second**2)) for k in (m, *sizes)
        }
        both = np.array([m, 1])
        # ‖E (σσᵀ)² − (E σσᵀ)²‖ = E σ⁴ + (m − 2)(E σ²)² for independent entries of mean zero
        spread = np.sqrt((fourth + (both - 2) * second**2) / self.tail_width)
        largest = both / self.tail_width  # ‖σσᵀ‖/n, as |σ| ≤ 1
        tails = [
            bernstein_tail(one * np.array(self.deviations), count, one**2, bound)
            for count, one, bound in zip(both, spread, largest, strict=True)
        ]
        images = setting.expected[1]
        norms = np.array([np.linalg.norm(images[:k, :k], 2) for k in sizes])
        log = np.log(2 * m)
        of_sets = np.array([np.linalg.norm(kernel[:m, :m], 2) for kernel in setting.expected])
        # the matrix variance is at most m‖E K‖/n, as ‖σσᵀ‖ ≤ m
        leading = np.sqrt(2 * m * log * np.divide.outer(of_sets, widths))
        return kit.law(
            of_width=("width", norm[m] / np.sqrt(widths)),
            of_size=("size", [norm[int(k)] / np.sqrt(self.size_width) for k in sizes]),
            digits_width=("width", widths**-0.5),
            digits_size=("size", np.sqrt(sizes * norms)),
            # of the distance, at most: Tropp (6.1.5) for both signs
            largest=("set width", leading + m * log / (3 * widths)),
            spread=("case", spread),
            chance=("case deviation", np.minimum(1, tails)),
        )

    def observe(self, setting, key):
        for_widths, for_sizes, for_tail, for_one, _ = jax.random.split(key, 5)
        m = self.inputs
        n = (self.tail_width,)
        of_widths = self.distances(self.seeds, self.widths, (m,))
        of_sizes = self.distances(self.size_seeds, (self.size_width,), self.sizes)
        few_by_width = self.distances(self.seeds, self.widths, (m,), FEW)
        few_by_size = self.distances(self.size_seeds, (self.size_width,), self.sizes, FEW)
        many = self.distances(self.trials, n, (m,))
        few_many = self.distances(self.trials, n, (m,), FEW)
        one = self.distances(self.trials_one, n, (1,))
        few_one = self.distances(self.trials_one, n, (1,), FEW)
        sets = list(zip(setting.inputs, setting.expected, strict=True))
        x, mean = sets[0]
        return kit.seen(
            by_width=("set seed width", [of_widths(for_widths, x[:m], mean) for x, mean in sets]),
            few_by_width=(
                "set seed width",
                [few_by_width(for_widths, x[:m], mean) for x, mean in sets],
            ),
            by_size=("set draw size", [of_sizes(for_sizes, x, mean) for x, mean in sets]),
            few_by_size=("set draw size", [few_by_size(for_sizes, x, mean) for x, mean in sets]),
            many=("trial", many(for_tail, x[:m], mean)[:, 0]),
            few_many=("trial", few_many(for_tail, x[:m], mean)[:, 0]),
            one=("trial_one", one(for_one, x[:1], mean)[:, 0]),
            few_one=("trial_one", few_one(for_one, x[:1], mean)[:, 0]),
        )

    def distances(
        self, count: int, widths: tuple[int, ...], sizes: tuple[int, ...], few: int | None = None
    ) -> Callable[[kit.Key, Values, Values], Values]:
        """Return ‖K_n − E K‖ for the first n neurons and the first m inputs of each network.

        What is returned takes a key, the inputs and their E K, and gives shape ``(networks, widths × sizes)``. With
        ``few`` only so many neurons count, whatever n.
        """
        sigma = activation(self.activation)
        counted = widths if few is None else [few] * len(widths)

        def one(key: kit.Key, x: jax.Array, mean: jax.Array) -> jax.Array:
            weights = jax.random.normal(key, (max(counted), x.shape[1]))
            kernels = [sampled_hidden_kernel(sigma, x, weights[:n]) for n in counted]
            corners = [(kernel - mean)[:m, :m] for kernel in kernels for m in sizes]
            return jnp.array([jnp.abs(jnp.linalg.eigvalsh(corner)).max() for corner in corners])

        def every(key: kit.Key, x: jax.Array, mean: jax.Array) -> jax.Array:
            return jax.lax.map(lambda seed: one(seed, x, mean), kit.keys(key, count))

        run = kit.compiled(every)

        def measure(key: kit.Key, x: Values, mean: Values) -> Values:
            # Gaussian weights see no more than the angles between the inputs
            turned = np.asarray(np.linalg.qr(x.T, mode="r")).T
            return np.asarray(run(key, turned, mean[: len(x), : len(x)]))

        return measure

    def derive(self, law, seen):
        """Return which distances exceed t, on many inputs and on one."""
        t = law.spread * law.deviation
        return {
            "many_failed": (seen.many > t.isel(case=0, drop=True)).astype(float),
            "one_failed": (seen.one > t.isel(case=1, drop=True)).astype(float),
        }

    def judge(self, law, seen):
        orthonormal, images = SETS
        of = lambda array, name: array.sel(set=name, drop=True)
        near = (0.92, 1.12)  # m/n of μ₂ beside 2√(m/n)
        yield kit.follows(
            "of_width",
            law.of_width,
            of(seen.by_width, orthonormal),
            near,
            label="orthonormal inputs: distance over n",
        )
        yield kit.follows(
            "of_size",
            law.of_size,
            of(seen.by_size, orthonormal),
            near,
            label="orthonormal inputs: distance over m",
        )
        yield kit.power(
            "digits_width",
            law.digits_width,
            of(seen.by_width, images),
            0.15,  # they scatter by 0.05
            over="width",
            label="digits: distance against n",
        )
        yield kit.power(
            "digits_size",
            law.digits_size,
            of(seen.by_size, images),
            0.1,
            over="size",
            label="digits: distance against m",
        )
        yield from self.judge_bernstein(law, seen)

    def judge_bernstein(self, law, seen):
        """Compare mean distances and failure rates with Bernstein's bounds."""
        yield kit.at_most(
            "mean_distance", law.largest, seen.by_width, label="mean distance, at most Bernstein's"
        )
        yield kit.at_most(
            "failure_rate",
            law.chance.isel(case=0, drop=True),
            seen.many_failed,
            label=f"failure rate on {self.inputs} inputs, at most Bernstein's",
        )
        yield kit.at_most(
            "failure_rate_one",
            law.chance.isel(case=1, drop=True),
            seen.one_failed,
            label="failure rate on one input, at most Bernstein's",
        )

    def rivals(self, setting, law):
        power = lambda exponent: (law["size"] / law["size"][0]) ** exponent
        yield kit.rival(
            "exponent −1 in n",
            "each neuron contributes 1/n",
            of_width=law.of_width * np.sqrt(min(self.widths) / law.width),
            digits_width=law.digits_width**2,
        )
        yield kit.rival(
            "√(m/n) E σ²",
            "the variance of an entry is (E σ²)²/n, and a vector of m has √m of it",
            of_width=law.of_width / 2,
            of_size=law.of_size / 2,
        )
        yield kit.rival(
            "√(m/n) for any inputs", "as in the notes", id="root_always", digits_size=power(0.5)
        )
        yield kit.rival(
            "m/√n for any inputs",
            "on digits it is nearly so",
            id="linear_always",
            of_size=law.of_size[0] * power(1.0),
        )
        yield from self.rivals_of_bernstein(setting, law)

    def rivals_of_bernstein(self, setting, law):
        """Return wrong theories of Bernstein's bounds."""
        inputs = xarray.DataArray([self.inputs, 1], dims="case")
        t = law.spread * law.deviation
        largest = inputs / self.tail_width
        fall = t**2 / (law.spread**2 + largest * t / 3)
        norms = [np.linalg.norm(k[: self.inputs, : self.inputs], 2) for k in setting.expected]
        bare = np.sqrt(self.inputs * np.divide.outer(norms, self.widths))
        yield kit.rival(
            "mean distance at most √(m‖E K‖/n)",
            "the notes forget the dimension's logarithm",
            largest=("set width", bare),
        )
        yield kit.rival(
            "Bernstein as printed", "neither dimension nor ½", chance=np.minimum(1, np.exp(-fall))
        )
        yield kit.rival(
            "Bernstein without the dimension",
            "true for one-sided numbers",
            chance=np.minimum(1, np.exp(-fall / 2)),
        )
        yield kit.rival(
            "Bernstein without the ½",
            "as in the notes' exponent",
            chance=np.minimum(1, 2 * inputs * np.exp(-fall)),
        )

    def controls(self, seen):
        swapped = lambda array: (array.dims, array.values[::-1])
        yield kit.control(
            f"layers of which {FEW} neurons count",
            "more neurons must be averaged",
            id="few_neurons",
            by_width=seen.few_by_width,
            by_size=seen.few_by_size,
            many=seen.few_many,
            one=seen.few_one,
        )
        yield kit.control(
            "digits for orthonormal inputs, and the other way round",
            "the inputs' E K decides",
            id="other_inputs",
            by_width=swapped(seen.by_width),
            by_size=swapped(seen.by_size),
        )

    def figure(self, law, seen, rivals):
        return panels(self, law, seen)
