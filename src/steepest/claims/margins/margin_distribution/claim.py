"""Margins over spectral complexity tell true labels from random ones, while raw margins hardly do.

Networks with true and with random labels are compared at the same training risk, after the same number of steps. Train
a network twice from the same start on the same digits, with true labels and with random ones, until no image is wrong
and the risk is the same. True labels are learned in fewer steps; to make the numbers of steps equal they are trained
with a smaller step size. Take one image from each network, and divide its margin by the spectral complexity of
Bartlett, Foster and Telgarsky (2017). In nearly every such pair the margin under true labels is the larger one. Raw
margins have this order in only about three pairs of five. On two classes the same holds for margins of kernel machines
and of boosted stumps, divided by their norms. With random labels the normalized margins of two data sets of equal size
do not lie on top of each other: at two layers, isotropic Gaussian inputs have larger margins than digits.
"""

import math

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.margins.margin_distribution.experiment import (
    Goal,
    Pairs,
    draw,
    ordered,
    train_both,
)
from steepest.claims.margins.margin_distribution.machines import MACHINES, fit_machines
from steepest.nn.data import digits
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import count

ALWAYS = 1.0
HARDLY = 0.75
"""Share of the pairs midway between chance and always: margins that order fewer hardly tell."""
LAYERS = (2, 3)
HALF = 5
"""The first digit of the second class, where there are two."""
SHOWN = 2
"""The depth that is drawn."""


@kit.claim
class MarginDistribution(kit.Claim[Pairs]):
    """Two- and three-layer ReLU networks with equally many parameters, on scikit-learn's 8 × 8 digits."""

    n: kit.Count = kit.param(
        120,
        "images of all ten digits",
        unit="images",
        scope=kit.between(80, 160, "more images than parameters over classes are not all fitted"),
    )
    width: kit.Count = kit.param(
        40,
        "hidden width of two layers; the width of three follows, with as many parameters",
        unit="neurons",
        scope=kit.between(40, 80, "narrower networks fit random labels late or never"),
    )
    lr: kit.Positive = kit.param(
        0.2,
        "step size of full-batch descent on random labels",
        unit="1/curvature",
        scope=kit.between(0.1, 0.2, "at larger steps momentum diverges"),
    )
    momentum: kit.Positive = kit.param(0.9, "heavy-ball momentum", scope=kit.choices(0.9, 0.8))
    most: kit.Count = kit.param(4000, "steps after which a training is given up", unit="steps")
    total: kit.Positive = kit.param(
        0.5,
        "summed cross-entropy at which margins are compared",
        unit="nats",
        scope=kit.between(0.3, 0.6, "below log 2 no image is wrong"),
    )
    seeds: kit.Seeds = kit.param(12, "starts, each with its own images and random labels")

    kind = "empirical law"
    says = {
        "Margins over spectral complexity tell true labels from random ones": "normalized",
        "raw margins hardly do": "unnormalized",
    }
    tiny = {"n": 40, "seeds": 3}
    full = {"n": 160, "width": 80, "seeds": 40}
    out_of_scope = {"total": 1.0}
    precision = "float32"

    def axes(self):
        return {"layers": LAYERS, "machine": MACHINES}

    def setting(self, key):
        data = digits()
        rng = kit.numpy_generator(key)
        return draw(rng, np.asarray(data.x, float), np.asarray(data.y, float), self.seeds, self.n)

    def nets(self, setting: Pairs) -> list[Mlp]:
        """Two layers with p = (d + C) width parameters, and three with w² + (d + C) w ≈ p."""
        d = setting.x.shape[-1]
        c = setting.true.shape[-1]
        narrow = round((math.sqrt((d + c) ** 2 + 4 * (d + c) * self.width) - (d + c)) / 2)
        shapes = ((d, self.width, c), (d, narrow, narrow, c))
        return [mlp(shape, "relu", c_w=2.0, bias=False) for shape in shapes]

    def hypotheses(self, setting):
        two, three = (
            count(jax.eval_shape(net.init, jax.random.key(0))) for net in self.nets(setting)
        )
        wider = "choose a larger --width"
        parameters = two / (self.n * setting.true.shape[-1])
        yield kit.assume("parameters / (images × classes)", parameters, ">=", 1, wider)
        yield kit.assume(
            "relative difference of parameters", abs(three / two - 1), "<=", 0.05, wider
        )
        yield kit.assume(
            "summed cross-entropy of comparison",
            self.total,
            "<",
            math.log(2),
            "choose a smaller --total",
        )

    def predict(self, setting):
        # isotropic inputs have the least tr K⁻¹, the mean squared norm that random labels need
        return kit.law(
            normalized=ALWAYS,
            unnormalized=HARDLY,
            machines=ALWAYS,
            machines_raw=HARDLY,
            two_sets=ALWAYS,
        )

    def observe(self, setting, key):
        goal = Goal(self.total, self.most)
        runs = [
            train_both(net, setting, self.lr, self.momentum, goal, key)
            for net in self.nets(setting)
        ]
        stacked = jax.tree.map(lambda *depths: np.stack(depths), *runs)
        axes = "layers seed"
        return kit.seen(
            **{
                f"{field}_{labels}": (f"{axes} image" if field == "margins" else axes, values)
                for labels, trained in stacked.items()
                for field, values in trained._asdict().items()
            },
            **self.other_machines(setting),
        )

    def other_machines(self, setting: Pairs) -> dict[str, tuple[str, kit.Values]]:
        """Fit kernel machines and stumps to two classes of digits; true labels at a tenth of the risk as well."""
        high = np.arange(setting.true.shape[-1]) >= HALF
        kinds = {
            "true": (setting.true, self.total),
            "random": (setting.random, self.total),
            "further": (setting.true, self.total / 10),
        }
        arrays = {}
        for kind, (labels, total) in kinds.items():
            signs = 2.0 * (labels @ high) - 1
            fits = [
                fit_machines(x, y, total, self.most) for x, y in zip(setting.x, signs, strict=True)
            ]
            for field, axes in (("margins", "seed machine image"), ("norm", "seed machine")):
                values = [[getattr(machine, field) for machine in row] for row in fits]
                arrays[f"machine_{field}_{kind}"] = (axes, np.array(values))
            over = [[machine.risk / total for machine in row] for row in fits]
            arrays[f"machine_excess_{kind}"] = ("seed machine", np.array(over))
        return arrays

    def run_conditions(self, observed):
        steps = observed["steps_true"] / observed["steps_random"]
        risks = [observed[f"risk_{labels}"] * self.n for labels in ("true", "random", "isotropic")]
        machines = [observed[f"machine_excess_{labels}"] for labels in ("true", "random")]
        wrong = max(
            float((observed[f"margins_{labels}"] <= 0).max()) for labels in ("true", "random")
        )
        yield kit.assume("images that are wrong when compared", wrong, "==", 0)
        yield kit.assume(
            "largest risk there over its goal", np.max(risks) / self.total, "<=", 1, "raise --most"
        )
        yield kit.assume(
            "largest difference of the risks", np.abs(risks[0] / risks[1] - 1).max(), "<=", 0.15
        )
        yield kit.assume("largest difference of the steps", np.abs(steps - 1).max(), "<=", 0.05)
        yield kit.assume(
            "largest risk of a machine over its goal", np.max(machines), "<=", 1.02, "raise --most"
        )

    def derive(self, law, seen):
        """Return shares of the pairs that are ordered rightly, by what margins are divided by."""

        def share(
            true: xarray.DataArray, random: xarray.DataArray, axis: str = "layers"
        ) -> xarray.DataArray:
            axes = (axis, "seed")
            aligned = (part.transpose(*axes, "image").values for part in (true, random))
            return xarray.DataArray(ordered(*aligned), dims=axes, coords={axis: seen[axis]})

        true = seen.margins_true
        random = seen.margins_random
        machines = [seen[f"machine_margins_{labels}"] for labels in ("true", "random")]
        norms = [seen[f"machine_norm_{labels}"] for labels in ("true", "random")]
        isotropic = seen.margins_isotropic / seen.complexity_isotropic
        return {
            "machines": share(machines[0] / norms[0], machines[1] / norms[1], "machine"),
            "machines_raw": share(machines[0], machines[1], "machine"),
            "two_sets": share(isotropic, random / seen.complexity_random),
            "normalized": share(true / seen.complexity_true, random / seen.complexity_random),
            "lipschitz": share(true / seen.lipschitz_true, random / seen.lipschitz_random),
            "unnormalized": share(true, random),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "normalized",
            law.normalized,
            seen.normalized,
            within=0.05,
            over="layers",
            absolute=True,
            label="pairs with the larger margin over complexity under true labels",
        )
        yield kit.at_most(
            "unnormalized",
            law.unnormalized,
            seen.unnormalized,
            over="layers",
            label="pairs with the larger margin under true labels",
        )
        yield kit.follows(
            "lipschitz",
            law.normalized,
            seen.lipschitz,
            within=0.05,
            over="layers",
            absolute=True,
            label="pairs with the larger margin over only the Lipschitz constant under true labels",
        )
        yield kit.follows(
            "machines",
            law.machines,
            seen.machines,
            within=1 - HARDLY,  # nearer to always than to chance
            over="machine",
            absolute=True,
            label="kernels and stumps: pairs with the larger margin over the norm under true labels",
        )
        yield kit.at_most(
            "machines_raw",
            law.machines_raw,
            seen.machines_raw,
            over="machine",
            label="kernels and stumps: pairs with the larger margin under true labels",
        )
        yield kit.follows(
            "two_sets",
            law.two_sets,
            seen.two_sets.sel(layers=SHOWN, drop=True),
            within=1 - HARDLY,  # nearer to always than to chance
            absolute=True,
            label="random labels: pairs with the larger margin over complexity on isotropic inputs",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "margins as they are tell nothing",
            "so the slides",
            id="unnormalized_alike",
            unnormalized=0.5,
            machines_raw=0.5,
        )
        yield kit.rival(
            "normalized margins tell no more than others",
            "both networks fit their labels, at one risk and after as many steps",
            normalized=HARDLY,
        )
        yield kit.rival(
            "kernels and stumps: margins over the norm tell nothing",
            "both fit their labels, at one risk",
            id="machines_alike",
            machines=0.5,
        )
        yield kit.rival(
            "random labels: margins of two data sets coincide",
            "so the talk, of MNIST and CIFAR",
            two_sets=0.5,
        )

    def controls(self, seen):
        yield kit.control(
            "complexities exchanged between true and random labels",
            "each is divided by the complexity of the other labels",
            id="other_complexity",
            complexity_true=seen.complexity_random,
            complexity_random=seen.complexity_true,
            lipschitz_true=seen.lipschitz_random,
            lipschitz_random=seen.lipschitz_true,
            machine_norm_true=seen.machine_norm_random,
            machine_norm_random=seen.machine_norm_true,
        )
        yield kit.control(
            "true labels trained to a tenth of the risk",
            "a margin grows with the logarithm of the inverse risk",
            id="further",
            margins_true=seen.margins_further,
            machine_margins_true=seen.machine_margins_further,
        )
        yield kit.control(
            "other digits in place of isotropic inputs",
            "they have the same spectrum",
            margins_isotropic=seen.margins_random.roll(seed=1),
            complexity_isotropic=seen.complexity_random.roll(seed=1),
        )

    def figure(self, law, seen, rivals):
        def panel(title: str, axis: str, divisor: str, log: str) -> kit.Panel:
            curves = []
            for labels, shade in (("true", 0.0), ("random", 1.0)):
                margins = seen[f"margins_{labels}"].sel(layers=SHOWN)
                if divisor:
                    margins = margins / seen[f"{divisor}_{labels}"].sel(layers=SHOWN)
                values = np.sort(margins.values, None)
                share = np.linspace(0, 1, values.size)
                curves.append(
                    kit.observed_curve(values, share, f"{labels} labels", kind="steps", shade=shade)
                )
            return kit.panel(title, axis, "share of the images", *curves, log=log)

        yield panel("Raw margins hardly tell labels apart", "margin", "", "")
        yield panel("Divided by the complexity they do", "margin / R", "complexity", "x")
        yield panel("So they do over the Lipschitz constant", "margin / Λ", "lipschitz", "x")
