"""With the squared loss, features past zero error collapse onto class means that form a simplex.

The centred class means form the simplex, and the classifier's rows come near the same simplex. The network decides for
the class of the nearest mean. Suppose that every example's features are free and decayed like the weights. Then
collapsed features with a simplex of centred means are the exact global minimum, and descent finds it from random
starts. The classifier's rows are then proportional to the centred means with cross-entropy, and orthogonal with the
squared loss without a bias. A network's features are not free, but trained far past zero error with the squared loss
they collapse too. With cross-entropy the class means and the classifier reach this geometry, or nearly, but the
variability inside the classes falls only two- to fourfold.
"""

import math
from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
import xarray

from steepest import kit
from steepest.claims.curvature.neural_collapse.experiment import (
    LOSSES,
    RECORDS,
    FreeFeatures,
    Training,
    free_features,
    networks,
    random_means,
)
from steepest.dynamics import logarithmic
from steepest.measurement.quantities import settled
from steepest.nn.data import balanced_choices, digits
from steepest.nn.networks import unconstrained_minimum

EXACT = {
    "loss": "loss",
    "singular": "singular values",
    "variability": "NC1",
    "cosines": "cosines",
    "raw_cosines": "cosines before centring",
    "duality": "NC3",
}  # of the free features: ids and labels of the checks
FALL = 10.0  # by at least this factor NC1 falls once the error is zero
# what a simplex means: nearer to one than independent random means of as many dimensions, by these factors
NEARER = 0.7
NEARER_IN_LENGTH = 0.8  # where networks differ more
MOMENTS = ("end", "zero error")
FREE = ("free_loss", "free_singular", "free_raw_cosines", "free_duality")  # which the loss decides
ENDS = ("variability", "norm_spread", "duality", "mismatch", "cosines")  # what a control replaces


@kit.claim
class NeuralCollapse(kit.Claim[np.ndarray]):
    """Free features with weight decay; networks on equally many images of the digits 0 … C−1."""

    classes: Annotated[int, kit.Within(3, 10)] = kit.param(
        5,
        "C",
        scope=kit.choices(
            5, why="with four the steps of free features diverge, with six NC1 falls by ten or less"
        ),
    )
    seeds: kit.Seeds = kit.param(10, "independent starts, each network with images of its own")
    copies: kit.Count = kit.param(10, "free examples a class", scope=kit.between(8, 15))
    dimension: kit.Count = kit.param(
        20, "p, dimension of the free features", scope=kit.between(8, 30)
    )
    decay: kit.Positive = kit.param(
        0.005,
        "λ_W = λ_H of the free features",
        scope=kit.between(0.005, 0.01, "with less decay their steps diverge"),
    )
    steps: kit.Count = kit.param(3000, "steps of descent of the free features", unit="steps")
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
        "copies": 10,
        "dimension": 6,
        "steps": 2000,
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
    out_of_scope = {"decay": 0.1}

    def axes(self):
        return {
            "loss": LOSSES,
            "class": tuple(f"singular value {i + 1}" for i in range(self.classes)),
            "moment": MOMENTS,
        }

    def setting(self, key):
        data = digits(tuple(range(self.classes)))
        chosen = balanced_choices(data, self.images, kit.keys(key, self.seeds))
        x = np.asarray(data.x)[chosen.reshape(self.seeds, -1)]
        return x - x.mean(1, keepdims=True)  # (seeds, C·images, d), sorted by class

    def hypotheses(self, setting):
        pull = self.classes * self.decay * self.copies**0.5
        wider = "choose --dimension ≥ C"
        smaller = "else they vanish; choose a smaller --decay"
        yield kit.assume(
            "dimension p of the free features", self.dimension, ">=", self.classes, wider
        )
        yield kit.assume("Cμ of the free features", pull, "<", 1, smaller)

    def predict(self, setting):
        return kit.law(**self.of_networks(), **self.of_free_features(self.copies))

    def of_free_features(self, copies: int) -> dict[str, tuple]:
        """Return the minimum of free features with so many examples a class, by name."""
        least = [
            unconstrained_minimum(self.classes, copies, self.decay, self.decay, loss)
            for loss in LOSSES
        ]
        return {
            "free_loss": ("loss", [m.loss for m in least]),
            "free_singular": ("loss class", np.stack([m.singular_values for m in least])),
            "free_raw_cosine": ("loss", [m.raw_cosine for m in least]),
            "free_duality": ("loss", [m.duality for m in least]),
        }

    def of_networks(self) -> dict[str, object]:
        """Return what theory says of networks, by name."""
        c = self.classes
        cosine = -1 / (c - 1)
        # independent Gaussian means in p dimensions, centred: a cosine has the standard deviation (1 − cos²)/√p,
        # of which the mean size is √(2/π); lengths have √(1 − cos²)/√(2p) of their mean
        # the mean of a standard deviation of C normals that divides by C, over the true one
        of_sample = math.sqrt(2 / c) * math.gamma(c / 2) / math.gamma((c - 1) / 2)
        return {
            "chance_angle": math.sqrt(2 / math.pi) * (1 - cosine**2) / math.sqrt(self.width),
            "chance_spread": of_sample * math.sqrt((1 - cosine**2) / (2 * self.width)),
            "cosine": cosine,
            # NC3 of a simplex of centred means and orthogonal rows
            "orthogonal_rows": math.sqrt(2 - 2 * math.sqrt(1 - 1 / c)),
            "dimensions": float(c - 1),
            "falls": ("moment", [0, 1]),
        }

    def observe(self, setting, key):
        free = FreeFeatures(self.classes, self.copies, self.dimension, self.decay, self.steps)
        minima = free_features(free, key, self.seeds)
        last_axes = {
            "loss": " time",
            "singular": " class",
            "cosines": " both",
            "raw_cosines": " both",
        }
        of_free = {
            f"free_{name}": (f"loss seed{last_axes.get(name, '')}", values)
            for name, values in minima.items()
        }
        widths = (setting.shape[2], *[self.width] * self.depth, self.classes)
        training = Training(
            widths, self.images, self.loss, self.net_lr, self.net_decay, self.batch, self.net_steps
        )
        marks = np.asarray(logarithmic(self.net_steps, RECORDS))
        return kit.seen(
            free_step=("time", np.asarray(logarithmic(self.steps, 40)), "steps"),
            **of_free,
            **self.along(marks, networks(training, key, setting), key),
        )

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
        slope = observed["free_gradient"].max()
        yield kit.assume("largest gradient at the end, free features", slope, "<=", 1e-8)
        yield from self.past_zero_error(observed)

    def past_zero_error(self, observed: kit.Observation) -> list[kit.Hypothesis]:
        """Assume that the networks reach zero training error early."""
        error = observed["error"]
        begun = observed["step"][settled(error)].max() / observed["step"][-1]
        longer = "choose more --net-steps"
        return [
            kit.assume("largest training error at the end", error[:, -1].max(), "==", 0),
            kit.assume("share of training before zero error", begun, "<=", 0.2, longer),
        ]

    def derive(self, law, seen):
        then = xarray.DataArray(settled(seen.error.values), dims="seed")
        ends = seen.isel(record=-1)
        logs = [np.log(FALL * ends.variability), np.log(seen.variability.isel(record=then))]
        derived = {
            "off": abs(ends.cosines - law.cosine).mean("pair"),
            "nc1": xarray.concat(logs, "moment").assign_coords(moment=law.moment),
        }
        if "free_loss" in seen:
            derived |= {
                "off_loss": seen.free_loss.isel(time=-1) - law.free_loss,
                "off_singular": seen.free_singular - law.free_singular,
                "off_variability": seen.free_variability,
                "off_cosines": seen.free_cosines - law.cosine,
                "off_raw_cosines": seen.free_raw_cosines - law.free_raw_cosine,
                "off_duality": seen.free_duality - law.free_duality,
            }
        return derived

    def judge(self, law, seen):
        checks = [
            kit.agrees(
                f"free_{id}",
                abs(seen[f"off_{id}"]),
                1e-6,
                label=f"free features, {label}: deviation",
            )
            for id, label in EXACT.items()
            if f"off_{id}" in seen
        ]
        yield from checks
        yield from self.judge_networks(law, seen)

    def judge_networks(self, law: xarray.Dataset, seen: xarray.Dataset) -> list[kit.Check]:
        """Judge NC1 to NC4 of the networks at the end, against theory and the moment of zero error."""
        ends = seen.isel(record=-1)
        return [
            kit.ranks(
                "variability_falls",
                law.falls,
                seen.nc1,
                over="moment",
                label=f"log NC1 falls by more than log {FALL:g}",
            ),
            kit.at_most(
                "angles", NEARER * law.chance_angle, seen.off, label="NC2: mean |cos − theory|"
            ),
            kit.at_most(
                "norm_spread",
                NEARER_IN_LENGTH * law.chance_spread,
                ends.norm_spread,
                label="NC2: spread of the means' lengths",
            ),
            kit.at_most(
                "duality",
                2 / 3 * law.orthogonal_rows,
                ends.duality,
                label="NC3: distance of W from the means",
            ),
            kit.agrees(
                "nearest_mean",
                ends.mismatch,
                0.01,
                label="NC4: share decided against the nearest mean",
            ),
            kit.follows(
                "rank",
                law.dimensions,
                ends.dimensions,
                0.5,
                absolute=True,
                each=True,
                label="dimensions of the centred class means",
            ),
        ]

    def rivals(self, setting, law):
        single = self.of_free_features(1)
        yield from self.rivals_of_networks(law)
        yield kit.rival(
            "a simplex before centring", "true for cross-entropy", free_raw_cosine=float(law.cosine)
        )
        yield kit.rival(
            "free rows of the classifier are the centred means",
            "so NC3 says; true for cross-entropy, not for the squared loss without bias",
            id="self_dual",
            free_duality=0.0,
        )
        yield kit.rival(
            "the minimum for one example a class",
            "copies of an example tell nothing new",
            id="copies",
            free_loss=single["free_loss"],
            free_singular=single["free_singular"],
        )

    def rivals_of_networks(self, law: xarray.Dataset) -> list[kit.Rival]:
        """Return wrong theories of networks."""
        return [
            kit.rival(
                "orthogonal class means",
                "so the notes say; true before centring with the squared loss",
                id="orthogonal",
                cosine=0.0,
            ),
            kit.rival(
                "features rest at zero error",
                "every example is right already",
                id="rest",
                falls=xarray.zeros_like(law.falls),
            ),
            kit.rival(
                "one dimension of the means is lost",
                "a class could end between others",
                id="full_rank",
                dimensions=law.dimensions - 1,
            ),
        ]

    def controls(self, seen):
        yield from self.controls_of_networks(seen)
        yield kit.control(
            "free features at the start",
            "nothing has been descended",
            free_variability=seen.free_start_variability,
        )
        yield kit.control(
            "free features with the other loss",
            "the loss decides where they end",
            **{name: seen[name].roll(loss=1) for name in FREE},
        )

    def controls_of_networks(self, seen: xarray.Dataset) -> list[kit.Control]:
        """Return networks that cannot have collapsed: random means, too little training, none."""
        then = xarray.DataArray(settled(seen.error.values), dims="seed")
        is_end = xarray.DataArray(
            np.arange(seen.sizes["record"]) == seen.sizes["record"] - 1, dims="record"
        )
        in_place = lambda record: {
            name: seen[name].where(~is_end, seen[name].isel(record=record)) for name in ENDS
        }
        shape = {"record": seen.sizes["record"]}
        return [
            kit.control(
                "independent random class means",
                "they know nothing of each other",
                id="random_means",
                cosines=seen.random_cosines.rename(draw="pair").expand_dims(shape),
                norm_spread=seen.random_spread,
            ),
            kit.control(
                "networks when the error becomes zero",
                "every example is right and nothing has collapsed yet",
                id="zero_error",
                **in_place(then),
            ),
            kit.control(
                "untrained networks", "nothing has been learned", id="untrained", **in_place(0)
            ),
        ]

    def figure(self, law, seen, rivals):
        gap = abs(seen.free_loss - law.free_loss).isel(time=slice(1, None)) + 1e-17
        curves = [
            kit.observed_curve(
                seen.free_step.values[1:],
                gap.sel(loss=loss).transpose("seed", "time"),
                loss,
                shade=float(i),
            )
            for i, loss in enumerate(LOSSES)
        ]
        title = "Free features reach the predicted minimum"
        yield kit.panel(title, "step", "loss − theory", *curves, log="xy")
        yield from self.panels_of_networks(law, seen)

    def panels_of_networks(
        self, law: xarray.Dataset, seen: xarray.Dataset
    ) -> tuple[kit.Panel, ...]:
        """Draw NC1, the cosines of one network and NC3 along the training."""
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
