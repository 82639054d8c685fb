"""Two-layer ReLU networks of norm one have the Rademacher average of a single neuron.

On n Gaussian points in the plane this average is about 0.8/√n. Deep linear networks of norm one have the Rademacher
average of vectors of length one. The norm is ½‖θ‖², with θ all weights. As |v|‖w‖ ≤ ½(v² + ‖w‖²), a network of two
layers is a mean of neurons ±relu⟨u, x⟩, ‖u‖ = 1, and a mean correlates with coin tosses no better than the best neuron.
With L layers the norm is ‖θ‖²/L, and a linear network of norm one is a vector of length at most one. So a margin bound,
2 Rad over the margin, does not depend on how large the network is.
"""

from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.margins.size_independent_bound.experiment import (
    Run,
    Sample,
    correlations,
    draw,
    search,
)
from steepest.claims.margins.size_independent_bound.theory import (
    neuron_constant,
    neuron_correlation,
)

ROUNDING = 1e-5  # of single precision, over some hundred points
Size = Annotated[int, kit.Within(10, 5000)]
Width = Annotated[int, kit.Within(1, 1024)]


@kit.claim
class SizeIndependentBound(kit.Claim[list[Sample]]):
    """Gaussian points of the plane and coin tosses; ascent on the correlation of networks with them."""

    sizes: tuple[Size, ...] = kit.param(
        (20, 60, 180),
        "points n",
        scope=kit.choices(
            (20, 60, 180), (30, 80, 200), (25, 75, 225), why="fewer are no Gaussian process"
        ),
    )
    widths: tuple[Width, ...] = kit.param(
        (2, 8, 32),
        "widths of networks with two layers",
        unit="neurons",
        scope=kit.choices((2, 8, 32), (1, 4, 32), (4, 16, 32)),
    )
    depths: tuple[kit.Count, ...] = kit.param(
        (1, 2, 3, 5),
        "depths of linear networks",
        unit="layers",
        scope=kit.choices((1, 2, 3, 5), (2, 3, 4)),
    )
    aspect: kit.Positive = kit.param(
        1.0,
        "standard deviation of the second coordinate over the first's",
        scope=kit.between(0.4, 1.0, "flat clouds of few points are no Gaussian process"),
    )
    repeated: Annotated[float, kit.Within(0, 1)] = kit.param(
        0.0, "part of the points that are copies of one"
    )
    neurons: kit.Count = kit.param(64, "that networks of each width share out", unit="neurons")
    steps: kit.Count = kit.param(300, "steps of ascent", unit="steps")
    draws: kit.Count = kit.param(256, "sets of points of each seed; networks see the first")
    seeds: kit.Seeds = kit.param(16, "seeds for each size")

    kind = "theorem"
    says = {
        "have the Rademacher average of a single neuron": ("width", "above"),
        "0.8/√n": kit.literal("rad", value=0.8, power={"size": -0.5}),
        "Deep linear networks of norm one have the Rademacher average of vectors of length one": "depth",
    }
    tiny = {
        "sizes": (20, 60),
        "widths": (2, 8),
        "depths": (1, 3),
        "neurons": 16,
        "steps": 100,
        "draws": 64,
        "seeds": 4,
    }
    full = {"widths": (2, 8, 64, 512), "neurons": 512, "steps": 1000, "draws": 1000, "seeds": 40}
    out_of_scope = {"repeated": 0.9}
    precision = "float32"

    def axes(self):
        return {"size": self.sizes, "width": self.widths, "depth": self.depths}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        shape = (self.seeds, self.draws)
        return [draw(rng, n, shape, self.aspect, self.repeated) for n in self.sizes]

    def hypotheses(self, setting):
        alike = max(float(np.mean(np.all(s.x == s.x[..., :1, :], axis=-1))) for s in setting)
        yield kit.assume(
            "share of points that are copies of the first",
            alike,
            "<=",
            0.1,
            "a sum of copies is no Gaussian process: choose --repeated 0",
        )

    def predict(self, setting):
        constant = neuron_constant(self.aspect, np.random.default_rng(0))
        neuron = [
            [neuron_correlation(x[0], y[0]) for x, y in zip(s.x, s.signs, strict=True)]
            for s in setting
        ]
        sums = [np.einsum("sn,snd->sd", s.signs[:, 0], s.x[:, 0]) for s in setting]
        n = np.array(self.sizes)
        vector = np.linalg.norm(sums, axis=-1) / n[:, None]
        alike = lambda values, axis: np.repeat(np.array(values)[..., None], len(axis), -1)
        return kit.law(
            rad=("size", constant / np.sqrt(n)),
            neuron=("size seed width", alike(neuron, self.widths)),
            vector=("size seed depth", alike(vector, self.depths)),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        run = Run(self.widths, self.depths, self.neurons, self.steps)
        trained = correlations(rng, run, setting)
        axes = {"deep": "depth", "deep_relu": "depth"}
        rad = [[search(*pair) for pair in zip(s.x, s.signs, strict=True)] for s in setting]
        # signs of a coordinate are labels that a neuron knows
        true = [[search(x, np.sign(x[..., 0])) for x in s.x] for s in setting]
        return kit.seen(
            rad=("size seed draw", rad),
            true=("size seed draw", true),
            **{
                name: (f"size seed {axes.get(name, 'width')}", values)
                for name, values in trained.items()
            },
        )

    def judge(self, law, seen):
        yield kit.follows(
            "width",
            law.neuron,
            seen.wide,
            0.04,  # about one wide network in a hundred ends at a lower and broader maximum, by a tenth
            over="size width",
            label="correlation of a network with coin tosses, beside the best neuron's",
        )
        yield kit.at_most(
            "above",
            law.neuron * (1 + ROUNDING),
            seen.wide,
            over="size width",
            each=True,
            label="correlation of a network with coin tosses: never above the best neuron's",
        )
        yield kit.follows(
            "rad",
            law.rad,
            seen.rad,
            0.05,  # the interval takes 0.02, and n = 20 is 0.014 from the limit
            over="size",
            label="mean correlation of the best neuron with coin tosses",
        )
        yield kit.follows(
            "depth",
            law.vector,
            seen.deep,
            (0.99, 1 + ROUNDING),
            over="size depth",
            each=True,
            label="correlation of a linear network with coin tosses, beside ‖Σ σ_i x_i‖/n",
        )

    def rivals(self, setting, law):
        layers = law.depth.astype(float)
        yield kit.rival(
            "∝ √width",
            "a class of p weights has a dimension of about p",
            id="weights_counted",
            neuron=law.neuron * np.sqrt(law.width),
        )
        yield kit.rival(
            "5 % for each doubling",
            "more neurons have more to choose from",
            neuron=law.neuron * (law.width / self.widths[0]) ** np.log2(1.05),
        )
        yield kit.rival(
            "half of the best neuron", "‖θ‖² ≤ 1, without the half", neuron=law.neuron / 2
        )
        yield from self.rivals_of_rad(law)
        yield kit.rival(
            "∝ √L",
            "√L of bounds for deep networks",
            id="root_of_depth",
            vector=law.vector * np.sqrt(layers / self.depths[0]),
        )
        yield kit.rival(
            "∝ (2/L)^(L/2)",
            "½‖θ‖² for every number of layers",
            vector=law.vector * (2 / layers) ** (layers / 2),
        )

    def rivals_of_rad(self, law):
        """Return wrong theories of the best neuron's mean correlation."""
        n = law.size.astype(float)
        middle = float(law.rad.sel(size=self.sizes[1])) * self.sizes[1] ** 0.2
        yield kit.rival(
            "½√(π/n), which is a vector's",
            "a ReLU contracts: the average of neurons of one sign is no larger",
            rad=np.sqrt(np.pi / 4 / n),
        )
        yield kit.rival(
            "half of a vector's",
            "a ReLU is half a line and half a modulus",
            rad=np.sqrt(np.pi / 16 / n),
        )
        yield kit.rival(
            "∝ √(log n/n)",
            "bounds by a dimension have √(log n/n)",
            id="logarithm",
            rad=law.rad.isel(size=1, drop=True)
            * np.sqrt(np.log(n) / n / (np.log(n) / n)[1]).drop_vars("size"),
        )
        yield kit.rival(
            "∝ n^(−1/5)",
            "the rate of a later bound that has no depth in it",
            id="fifth_root",
            rad=middle * n**-0.2,
        )

    def controls(self, seen):
        yield kit.control(
            "each layer of spectral norm one",
            "a layer of spectral norm one has room for a neuron in each direction",
            id="spectral",
            wide=seen.spectral,
        )
        yield kit.control(
            "networks before training",
            "a random network is no best one",
            id="untrained",
            wide=seen.untrained,
        )
        yield kit.control(
            "signs of a coordinate in place of coin tosses",
            "they are no tosses: more points do not wear them away",
            rad=seen.true,
        )
        yield kit.control(
            "ReLU in place of linear layers",
            "a neuron sees the points of one half plane, and may correlate more than any vector",
            deep=seen.deep_relu,
        )

    def figure(self, law, seen, rivals):
        sizes = np.array(self.sizes)
        widths = np.array(self.widths)
        size = self.sizes[-1]
        share = lambda array: (array / law.neuron).sel(size=size).mean("seed")
        yield kit.panel(
            "A neuron's correlation with coin tosses falls like 1/√n",
            "points n",
            "mean largest correlation",
            kit.observed_curve(
                sizes, seen.rad.mean(("seed", "draw")), "best neuron", kind="points"
            ),
            kit.predicted_curve(sizes, law.rad, "E max |G|/√n"),
            kit.rival_curve(sizes, rivals["fifth_root"].rad, "n^(−1/5)"),
            log="xy",
        )
        yield kit.panel(
            "Width adds nothing at norm one",
            "neurons",
            f"correlation / best neuron's, n = {size}",
            kit.observed_curve(widths, share(seen.wide), "½‖θ‖² = 1", kind="points"),
            kit.predicted_curve(widths, np.ones(len(widths)), "one neuron"),
            kit.rival_curve(widths, share(rivals["weights_counted"].neuron), "∝ √width"),
            kit.context_curve(widths, share(seen.spectral), "spectral norms", kind="dashed"),
            log="xy",
        )
