"""Fitting more random labels yields a larger product of spectral norms and smaller margins.

All networks take the same number of steps, and end with no error on their training images. Bartlett, Foster and
Telgarsky (2017) bound the test error minus the share of training margins below γ. The bound is Λ/γ, with Λ the product
of the layers' spectral norms, times a nuisance factor and ‖X‖_F/n. The values of this bound and of the VC bound are far
above one. But consider networks that have been trained for the same number of steps and make no error on their training
images. Those with more random labels have a larger Λ and smaller margins: Λ/γ, the bound's leading factor, orders the
networks by their share of random labels. Their excess risk, test minus training error, has this order in the figure,
and is not judged.
"""

import math
from typing import Annotated

import jax
import numpy as np

from steepest import kit
from steepest.claims.margins.spectral_margin_bound.experiment import (
    TEST,
    Labelled,
    Training,
    draw_labels,
    train_all,
)
from steepest.dynamics import logarithmic
from steepest.nn.data import digits
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import count

RECORDS = 16
"""Along each training."""


@kit.claim
class SpectralMarginBound(kit.Claim[Labelled]):
    """ReLU networks without biases on digits whose labels, of training and test images alike, are partly random."""

    noise: Annotated[tuple[float, ...], kit.Within(0, 1)] = kit.param(
        (0.0, 0.4, 1.0),
        "share of random labels, increasing",
        scope=kit.choices((0.0, 0.4, 1.0), (0.0, 0.3, 0.9), (0.1, 0.5, 1.0)),
    )
    n: Annotated[int, kit.Within(20, 797)] = kit.param(
        200, "training images", unit="images", scope=kit.between(100, 250)
    )
    width: kit.Count = kit.param(
        40,
        "width of each hidden layer",
        unit="neurons",
        scope=kit.between(40, 80, "narrower networks do not fit random labels in time"),
    )
    depth: kit.Count = kit.param(2, "hidden layers", unit="layers", scope=kit.choices(1, 2))
    lr: kit.Positive = kit.param(
        0.2, "step size of full-batch descent", unit="1/curvature", scope=kit.between(0.1, 0.2)
    )
    momentum: kit.Positive = kit.param(0.9, "heavy-ball momentum", scope=kit.choices(0.9))
    steps: kit.Count = kit.param(
        800,
        "steps of descent, the same for every network",
        unit="steps",
        scope=kit.between(800, 1200),
    )
    seeds: kit.Seeds = kit.param(12, "sets of images, with a network for each share")

    kind = "empirical law"
    says = {
        "a larger product of spectral norms": "lipschitz",
        "smaller margins": ("margin", "ratio"),
    }
    ragged = ("value",)  # no margin is positive at the start of training
    tiny = {"noise": (0.0, 0.5, 1.0), "seeds": 3, "n": 20, "width": 16, "depth": 1, "steps": 200}
    full = {"noise": (0.0, 0.1, 0.25, 0.5, 0.75, 1.0), "n": 500, "width": 64, "steps": 3000}
    out_of_scope = {"steps": 5, "seeds": 3}
    precision = "float32"

    def axes(self):
        return {"noise": self.noise}

    def setting(self, key):
        data = digits(n=self.n + TEST, key=key)
        x = np.asarray(data.x, float)
        rng = kit.numpy_generator(key)
        return draw_labels(rng, x - x.mean(0), np.asarray(data.y, float), self.seeds, self.n)

    def predict(self, setting):
        share = np.array(self.noise)
        return kit.law(
            lipschitz=("noise", share),  # ranks alone are judged
            margin=("noise", 1 - share),
            ratio=("noise", share),
        )

    def net(self, setting: Labelled) -> Mlp:
        """Return the network."""
        sizes = (setting.x.shape[-1], *[self.width] * self.depth, setting.y.shape[-1])
        return mlp(sizes, "relu", c_w=2.0, bias=False)

    def observe(self, setting, key):
        marks = logarithmic(self.steps, RECORDS)[1:]  # at the start nothing has moved
        training = Training(self.lr, self.momentum, marks)
        paths = train_all(self.net(setting), setting, self.n, self.noise, training, key)
        margin = np.where(paths["margin"] > 0, paths["margin"], np.nan)
        axes = "noise seed record"
        return kit.seen(
            step=("record", marks),
            train_error=(axes, paths["train"]),
            excess=(axes, paths["test"] - paths["train"]),
            lipschitz=(axes, paths["lipschitz"]),
            margins=(axes, paths["margin"]),
            vc=vc_bound(self.net(setting), self.n),
            value=(axes, paths["scale"] * paths["complexity"] / margin),
        )

    def run_conditions(self, observed):
        error = observed["train_error"][..., -1].max()
        yield kit.assume("largest training error at the end", error, "==", 0, "raise --steps")

    def derive(self, law, seen):
        """Return what is compared at the end of training: logarithms, which scatter alike at every share."""
        end = seen.isel(record=-1)
        return {
            "log_lipschitz": np.log(end.lipschitz),
            "log_margin": np.log(end.margins),
            "log_ratio": np.log(end.lipschitz / end.margins),
            "end_excess": end.excess,
        }

    def judge(self, law, seen):
        ordered = {"excess risk": seen.end_excess}
        yield kit.ranks(
            "lipschitz",
            law.lipschitz,
            seen.log_lipschitz,
            over="noise",
            label="log Λ, product of spectral norms, rising with the share of random labels",
        )
        yield kit.ranks(
            "margin",
            law.margin,
            seen.log_margin,
            over="noise",
            label="log γ, median margins, falling with it",
        )
        yield kit.ranks(
            "ratio",
            law.ratio,
            seen.log_ratio,
            over="noise",
            at_hand=ordered,
            label="log Λ/γ, rising with it",
        )

    def rivals(self, setting, law):
        half = abs(law.noise - 0.5)
        flat = ("noise", np.zeros(len(self.noise)))
        yield kit.rival(
            "margins and norms do not depend on the labels",
            "all networks fit their training images",
            lipschitz=flat,
            margin=flat,
            ratio=flat,
        )
        yield kit.rival(
            "a mixture of true and random labels is the hardest",
            "labels of two kinds contradict each other, labels of one kind do not",
            id="mixed",
            lipschitz=-half,
            margin=half,
            ratio=-half,
        )

    def controls(self, seen):
        yield kit.control(
            "networks of another share in the place of each",
            "what a network keeps of its labels is lost",
            lipschitz=("noise seed record", np.roll(seen.lipschitz, 1, 0)),
            margins=("noise seed record", np.roll(seen.margins, 1, 0)),
        )

    def figure(self, law, seen, rivals):
        step = seen.step.values
        shades = {share: i / len(self.noise) for i, share in enumerate(self.noise)}
        ends = [
            kit.observed_curve(
                np.exp(seen.log_ratio.sel(noise=share).values),
                seen.end_excess.sel(noise=share).values,
                f"{share:.0%} random",
                kind="points",
                shade=shade,
            )
            for share, shade in shades.items()
        ]
        along = lambda values: [
            kit.observed_curve(
                step,
                values.sel(noise=share).mean("seed").values,
                f"{share:.0%} random",
                shade=shade,
            )
            for share, shade in shades.items()
        ]
        vc = kit.context_curve(step[[0, -1]], (float(seen.vc),) * 2, "VC: √(pL ln p / n)")
        yield kit.panel(
            "More noise, more of both", "Λ / margin at the end", "excess risk", *ends, log="x"
        )
        yield kit.panel(
            "Products of norms grow with noise", "step", "Π‖W‖₂", *along(seen.lipschitz), log="xy"
        )
        yield kit.panel(
            "Margins fall with it", "step", "median margin", *along(seen.margins), log="x"
        )
        yield kit.panel(
            "The bounds say nothing (above 1)", "step", "bound", *along(seen.value), vc, log="xy"
        )


def vc_bound(net: Mlp, n: int) -> float:
    """Return √(pL log p/n), the VC bound of networks with p parameters in L layers, without its constants."""
    start = jax.eval_shape(net.init, jax.random.key(0))
    p = count(start)
    return math.sqrt(p * len(start) * math.log(p) / n)
