"""With the squared loss, features past zero error collapse onto class means that form a simplex.

The centred class means form the simplex, and the classifier's rows come near the same simplex. The network decides for
the class of the nearest mean. With cross-entropy the class means and the classifier reach this geometry, or nearly, but
the variability inside the classes falls only two- to fourfold.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
import xarray

from steepest import kit
from steepest.claims.curvature.neural_collapse.experiment import (
    RECORDS,
    Training,
    networks,
    random_means,
)
from steepest.dynamics import logarithmic
from steepest.measurement.quantities import settled
from steepest.nn.data import balanced_choices, digits

FALL = 10.0  # by at least this factor NC1 falls once the error is zero
# what a simplex means: nearer to one than independent random means of as many dimensions, by these factors
NEARER = 0.7
NEARER_IN_LENGTH = 0.8  # where networks differ more
MOMENTS = ("end", "zero error")
ENDS = ("variability", "norm_spread", "duality", "mismatch", "cosines")  # what a control replaces


@kit.claim
class NeuralCollapse(kit.Claim[np.ndarray]):
    """Networks on equally many images of the digits 0 … C−1."""

    classes: Annotated[int, kit.Within(3, 10)] = kit.param(
        5,
        "C",
        scope=kit.choices(5, why="with six NC1 falls by ten or less, and four were not tried"),
    )
    seeds: kit.Seeds = kit.param(10, "independent starts, each network with images of its own")
    loss: Literal["cross-entropy", "squared"] = kit.param(
        "squared",
        "the loss of the networks",
        scope=kit.choices("squared", why="with cross-entropy NC1 stops between 0.03 and 0.06"),
    )
    images: Annotated[int, kit.Within(2, 174)] = kit.param(
        60, "digits of each class", scope=kit.between(50, 80)
    )
    width: kit.Count = kit.param(
        32,
        "hidden width of the network",
        unit="neurons",
        scope=kit.between(28, 40, "random means of wide networks are nearly a simplex themselves"),
    )
    depth: kit.Count = kit.param(
        3,
        "hidden layers of the network",
        unit="layers",
        scope=kit.choices(
            3, why="with two the means are hardly more equally long than random ones"
        ),
    )
    batch: kit.Count = kit.param(32, "images in a batch", scope=kit.between(24, 48))
    net_lr: kit.Positive = kit.param(
        0.1,
        "largest step size of the network: after warm-up, till a third of the steps",
        scope=kit.between(0.08, 0.12),
    )
    net_decay: kit.Positive = kit.param(
        0.002,
        "weight decay of the network",
        scope=kit.between(0.002, 0.00225, "less takes more steps, with more NC1 ends higher"),
    )
    net_steps: kit.Count = kit.param(
        6000, "steps of the network", unit="steps", scope=kit.between(6000, 8000)
    )

    kind = "empirical law"
    says = {
        "collapse onto class means": "variability_falls",
        "form a simplex": ("angles", "norm_spread"),
        "the classifier's rows come near the same simplex": ("duality", "nearest_mean"),
    }
    tiny = {
        "classes": 5,
        "seeds": 3,
        "images": 10,
        "width": 16,
        "depth": 2,
        "batch": 10,
        "net_steps": 1000,
    }
    full = {
        "seeds": 10,
        "images": 170,
        "width": 128,
        "batch": 64,
        "net_decay": 5e-4,
        "net_steps": 40_000,
    }
    out_of_scope = {"width": 3}

    def axes(self):
        return {"moment": MOMENTS}

    def setting(self, key):
        data = digits(tuple(range(self.classes)))
        chosen = balanced_choices(data, self.images, kit.keys(key, self.seeds))
        x = np.asarray(data.x)[chosen.reshape(self.seeds, -1)]
        return x - x.mean(1, keepdims=True)  # (seeds, C·images, d), sorted by class

    def hypotheses(self, setting):
        yield kit.assume(
            "dimension p of the features",
            self.width,
            ">=",
            self.classes - 1,
            "a simplex of C means has C − 1 dimensions",
        )

    def predict(self, setting):
        c = self.classes
        cosine = -1 / (c - 1)
        # independent Gaussian means in p dimensions, centred: a cosine has the standard deviation (1 − cos²)/√p,
        # of which the mean size is √(2/π); lengths have √(1 − cos²)/√(2p) of their mean
        # the mean of a standard deviation of C normals that divides by C, over the true one
        of_sample = math.sqrt(2 / c) * math.gamma(c / 2) / math.gamma((c - 1) / 2)
        return kit.law(
            chance_angle=math.sqrt(2 / math.pi) * (1 - cosine**2) / math.sqrt(self.width),
            chance_spread=of_sample * math.sqrt((1 - cosine**2) / (2 * self.width)),
            cosine=cosine,
            # NC3 of a simplex of centred means and orthogonal rows
            orthogonal_rows=math.sqrt(2 - 2 * math.sqrt(1 - 1 / c)),
            dimensions=float(c - 1),
            falls=("moment", [0, 1]),
        )

    def observe(self, setting, key):
        widths = (setting.shape[2], *[self.width] * self.depth, self.classes)
        training = Training(
            widths, self.images, self.loss, self.net_lr, self.net_decay, self.batch, self.net_steps
        )
        marks = np.asarray(logarithmic(self.net_steps, RECORDS))
        return kit.seen(**self.along(marks, networks(training, key, setting), key))

    def along(self, marks: np.ndarray, arrays: Mapping[str, np.ndarray], key: kit.Key) -> dict:
        """Return what was seen along trainings, with random means beside it, as entries of an observation."""
        shape = (len(arrays["error"]), self.classes, self.width)
        random_cosines, random_spread = random_means(key, shape)
        pair = lambda name: " pair" if name == "cosines" else ""
        return {
            "step": ("record", marks, "steps"),
            "random_cosines": ("seed draw", random_cosines),
            "random_spread": ("seed", random_spread),
            **{name: (f"seed record{pair(name)}", values) for name, values in arrays.items()},
        }

    def run_conditions(self, observed):
        error = observed["error"]
        begun = observed["step"][settled(error)].max() / observed["step"][-1]
        longer = "choose more --net-steps"
        yield kit.assume("largest training error at the end", error[:, -1].max(), "==", 0)
        yield kit.assume("share of training before zero error", begun, "<=", 0.2, longer)

    def derive(self, law, seen):
        then = xarray.DataArray(settled(seen.error.values), dims="seed")
        ends = seen.isel(record=-1)
        logs = [np.log(FALL * ends.variability), np.log(seen.variability.isel(record=then))]
        return {
            "off": abs(ends.cosines - law.cosine).mean("pair"),
            "nc1": xarray.concat(logs, "moment").assign_coords(moment=law.moment),
        }

    def judge(self, law, seen):
        ends = seen.isel(record=-1)
        yield kit.ranks(
            "variability_falls",
            law.falls,
            seen.nc1,
            over="moment",
            label=f"log NC1 falls by more than log {FALL:g}",
        )
        yield kit.at_most(
            "angles", NEARER * law.chance_angle, seen.off, label="NC2: mean |cos − theory|"
        )
        yield kit.at_most(
            "norm_spread",
            NEARER_IN_LENGTH * law.chance_spread,
            ends.norm_spread,
            label="NC2: spread of the means' lengths",
        )
        yield kit.at_most(
            "duality",
            2 / 3 * law.orthogonal_rows,
            ends.duality,
            label="NC3: distance of W from the means",
        )
        yield kit.agrees(
            "nearest_mean",
            ends.mismatch,
            0.01,
            label="NC4: share decided against the nearest mean",
        )
        yield kit.follows(
            "rank",
            law.dimensions,
            ends.dimensions,
            0.5,
            absolute=True,
            each=True,
            label="dimensions of the centred class means",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "orthogonal class means",
            "so the notes say; true before centring with the squared loss",
            id="orthogonal",
            cosine=0.0,
        )
        yield kit.rival(
            "features rest at zero error",
            "every example is right already",
            id="rest",
            falls=xarray.zeros_like(law.falls),
        )
        yield kit.rival(
            "one dimension of the means is lost",
            "a class could end between others",
            id="full_rank",
            dimensions=law.dimensions - 1,
        )

    def controls(self, seen):
        then = xarray.DataArray(settled(seen.error.values), dims="seed")
        is_end = xarray.DataArray(
            np.arange(seen.sizes["record"]) == seen.sizes["record"] - 1, dims="record"
        )
        in_place = lambda record: {
            name: seen[name].where(~is_end, seen[name].isel(record=record)) for name in ENDS
        }
        shape = {"record": seen.sizes["record"]}
        yield kit.control(
            "independent random class means",
            "they know nothing of each other",
            id="random_means",
            cosines=seen.random_cosines.rename(draw="pair").expand_dims(shape),
            norm_spread=seen.random_spread,
        )
        yield kit.control(
            "networks when the error becomes zero",
            "every example is right and nothing has collapsed yet",
            id="zero_error",
            **in_place(then),
        )
        yield kit.control(
            "untrained networks", "nothing has been learned", id="untrained", **in_place(0)
        )

    def figure(self, law, seen, rivals):
        later = seen.isel(record=slice(1, None))
        steps = later.step.values
        flat = np.ones(len(steps))
        curve = lambda values, label: kit.observed_curve(steps, values, label)
        pairs = later.cosines.isel(seed=0).transpose("pair", "record")
        lines = (
            kit.predicted_curve(steps, float(law.cosine) * flat, "−1/(C−1)"),
            kit.rival_curve(steps, 0 * flat, "orthogonal"),
        )
        loss = f"{self.loss} loss" if self.loss == "squared" else self.loss
        nc1 = curve(later.variability, loss)
        nc3 = (
            curve(later.duality, loss),
            kit.rival_curve(steps, float(law.orthogonal_rows) * flat, "orthogonal rows"),
        )
        simplex = "Centred means become a simplex"
        return (
            kit.panel("Examples gather at their class means", "step", "NC1", nc1, log="xy"),
            kit.panel(
                simplex,
                "step",
                "cosines, one seed",
                curve(pairs, "pairs of classes"),
                *lines,
                log="x",
            ),
            kit.panel("The classifier turns to the class means", "step", "NC3", *nc3, log="x"),
        )
