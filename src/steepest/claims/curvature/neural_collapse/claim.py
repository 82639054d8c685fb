"""Past zero error, features collapse onto their class means, which form a simplex with the classifier's rows.

Where every example's features are free and decayed like the weights, this is the exact global minimum, and descent
finds it from random starts. A network's features are not free. Trained far past zero error with the squared loss it
collapses too; with cross-entropy the class means and the classifier do, and the spread inside the classes stays.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Curve,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Within,
    agreement,
    assume,
    bound,
    compiled,
    equal,
    keys,
    numpy_generator,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import descend, logarithmic, minibatch
from steepest.measurement.quantities import collapse, settled, upper_pairs
from steepest.nn.data import balanced_choices, digits
from steepest.nn.losses import cross_entropy, squared
from steepest.nn.networks import mlp, unconstrained, unconstrained_minimum, unconstrained_risk

_LOSSES = ("cross-entropy", "squared")  # the axis "loss"
_EXACT = {
    "loss": "loss",
    "singular": "singular values",
    "variability": "NC1",
    "cosines": "cosines",
    "raw_cosines": "cosines before centring",
    "duality": "NC3",
}  # of the free features: ids and labels of the checks
_FALL = 10.0  # by at least this factor NC1 falls once the error is zero
# a simplex means: nearer to one than independent random means of as many dimensions, by a tenth at least
_NEARER = 0.9
_DRAWS = 200  # of random means, for every network
# a direction of the class means counts when it is at least this long against the longest
RANK_CUT = 0.1


@dataclass(frozen=True)
class NeuralCollapse(Claim):
    """Free features with weight decay; networks on equally many images of the digits 0 … C−1."""

    classes: Annotated[int, Within(3, 10)] = 5  # C [1]
    seeds: Seeds = 6  # independent starts, each network with images of its own [1]
    copies: Count = 10  # free examples a class [1]
    dimension: Count = 20  # p, dimension of the free features [1]
    decay: Positive = 0.005  # λ_W = λ_H of the free features [1]
    steps: Count = 3000  # steps of the free features [steps]
    # the loss of the networks that are judged [name]
    loss: Literal["cross-entropy", "squared"] = "squared"
    images: Annotated[int, Within(2, 174)] = 60  # digits of each class [1]
    width: Count = 32  # hidden width of the network [neurons]
    depth: Count = 3  # hidden layers of the network [layers]
    batch: Count = 32  # images in a batch [1]
    # largest step size of the network: after warm-up, till a third of the steps [1]
    net_lr: Positive = 0.1
    net_decay: Positive = 0.002  # weight decay of the network [1]
    net_steps: Count = 6000  # steps of the network [steps]

    kind = "empirical law"
    headline = ("variability_falls", "angles", "duality", "nearest_mean")
    statement = (
        r"\Sigma_W\to 0,\quad \cos(\mu_c-\mu_G,\,\mu_{c'}-\mu_G)\to-\tfrac{1}{C-1},\quad "
        r"\tfrac{W}{\|W\|_F}-\tfrac{M}{\|M\|_F}\to 0,\quad \arg\max_c (Wh+b)_c=\arg\min_c\|h-\mu_c\|"
    )
    source = "Lecture of 5 October in [@hanin2022]; [@papyan2020b]; [@zhu2021]; [@jacot2025]"
    corrections = (
        "The notes call the class means mutually orthogonal. It is the centred means that end with equal angles, of "
        "cosine −1/(C−1); before centring, free features are orthogonal with the squared loss (without bias) and a "
        "simplex with cross-entropy.",
    )
    remarks = (
        "Class means of a wide network are near a simplex whatever they are: independent random ones, once centred, "
        "have mean |cos + 1/(C−1)| of about 0.8/√p. Version 1 allowed 0.1, which they meet at its width of 64. "
        "Version 2 allows nine tenths of what they have, for angles and for lengths, at width 32, where it is 0.13, "
        "and takes six networks for four. Networks have about half of it in the angles, and two thirds in the "
        "lengths, where the data tell least.",
        "Protocol of Papyan et al.: batches, momentum 0.9, decay of all parameters, a tenth of the step size after "
        "each third. Angles and NC3 settle on the clock step size/(1 − 0.9) × decay × steps, so fewer steps take a "
        "larger decay: the first third lasts about 4 units here and 6.7 in the full preset (after 0.5 units, angles "
        "were still off by 0.15 to 0.19). Warm-up, because without it one network of forty diverged.",
        "The judged networks have the squared loss, for which collapse under weight decay is proved (Jacot et al. "
        "2025). We began with cross-entropy and the same margins, and that fails (run --loss cross-entropy): NC1 "
        "falls two- to fourfold and stops between 0.03 and 0.06, at every decay (0.0005 to 0.005) and depth (2, 3) "
        "tried, while NC2 to NC4 come about or nearly. With the squared loss NC1 ends near 0.002, at a quarter of "
        "the decay near 0.0005.",
        "Of twenty fresh seeds of version 2 seventeen hold and three are inconclusive: networks differ in how far "
        "NC1 falls, and the interval of the mean of its logarithm over six of them reaches a tenfold fall.",
        "A heuristic reason: at the margins that decay allows, the curvature of cross-entropy is of the order of "
        "the decay, so gathering a class gains no more than it costs; the squared loss has curvature one. Free "
        "features collapse with both, as each is decayed by itself. No dimension of the class means was lost at any "
        "setting.",
    )
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
    out_of_scope = {"decay": 0.1}
    version = 2
    full = {
        "seeds": 6,
        "images": 170,
        "width": 128,
        "batch": 64,
        "net_decay": 5e-4,
        "net_steps": 40_000,
    }

    @property
    def losses(self) -> tuple[str, ...]:
        """Return the axis "loss" of the networks."""
        return _LOSSES

    @property
    def lane(self) -> int:
        """Return the place on that axis of the networks that are judged."""
        return self.losses.index(self.loss)

    def setting(self, key: Key) -> np.ndarray:
        data = digits(tuple(range(self.classes)))
        chosen = balanced_choices(data, self.images, keys(key, self.seeds))
        x = np.asarray(data.x)[chosen.reshape(self.seeds, -1)]
        return x - x.mean(1, keepdims=True)  # (seeds, C·images, d), sorted by class

    def hypotheses(self, setting: np.ndarray) -> list[Hypothesis]:
        pull = self.classes * self.decay * self.copies**0.5
        return [
            assume(
                "dimension p of the free features",
                self.dimension,
                ">=",
                self.classes,
                "choose --dimension ≥ C",
            ),
            assume(
                "Cμ of the free features",
                pull,
                "<",
                1,
                "else they vanish; choose a smaller --decay",
            ),
        ]

    def predict(self, setting: np.ndarray) -> Prediction:
        least = [
            unconstrained_minimum(self.classes, self.copies, self.decay, self.decay, loss)
            for loss in _LOSSES
        ]
        return Prediction(
            **self.predict_networks(),
            free_loss=("loss", [m.loss for m in least]),
            free_singular=("loss class", np.stack([m.singular_values for m in least])),
            free_raw_cosine=("loss", [m.raw_cosine for m in least]),
            free_duality=("loss", [m.duality for m in least]),
        )

    def predict_networks(self) -> dict[str, float]:
        """Return what theory says of networks, by name."""
        cosine = -1 / (self.classes - 1)
        # independent Gaussian means in p dimensions, centred: a cosine has the standard deviation (1 − cos²)/√p,
        # of which the mean size is √(2/π); lengths have √(1 − cos²)/√(2p) of their mean
        c = self.classes
        of_sample = math.sqrt(2 / c) * math.gamma(c / 2) / math.gamma((c - 1) / 2)
        return {
            "chance_angle": math.sqrt(2 / math.pi) * (1 - cosine**2) / math.sqrt(self.width),
            "chance_spread": of_sample * math.sqrt((1 - cosine**2) / (2 * self.width)),
            "cosine": cosine,
            "rank": self.classes - 1,
            "remaining": 0.0,  # NC1 in the end over NC1 when the error became zero
        }

    def observe(self, setting: np.ndarray, key: Key) -> Observation:
        n = self.seeds

        @compiled
        def run(starts: Key, images: jax.Array) -> tuple:
            """Free features and networks of every start, with cross-entropy and with the squared loss."""
            lanes = (
                jnp.arange(2 * n) >= n,
                jnp.concatenate([starts] * 2),
                jnp.concatenate([images] * 2),
            )
            both = lambda lane: (self.free(*lane), self.network(*lane))
            return jax.lax.map(both, lanes)

        paths = run(keys(key, n), setting)
        paths = jax.tree.map(lambda a: np.reshape(a, (2, n, *a.shape[1:])), paths)
        (loss, begin, end, singular, gradient), (net, error) = paths
        random_cosines, random_spread = self.random_means(key)
        names = ("variability", "norm_spread", "duality", "mismatch")
        return Observation(
            free_step=("time", logarithmic(self.steps, 40), "steps"),
            free_loss=("loss seed time", loss),
            free_gradient=("loss seed", gradient),
            free_singular=("loss seed class", singular),
            free_variability=("loss seed", end.variability),
            free_start_variability=("loss seed", begin.variability),
            free_cosines=("loss seed pair", upper_pairs(end.cosines)),
            free_raw_cosines=("loss seed pair", upper_pairs(end.raw_cosines)),
            free_duality=("loss seed", end.duality),
            step=("record", logarithmic(self.net_steps, 60), "steps"),
            error=("loss seed record", error),
            cosines=("loss seed record pair", upper_pairs(net.cosines)),
            rank=("loss seed record", (net.spectrum >= RANK_CUT).sum(-1)),
            random_cosines=("seed draw", random_cosines),
            random_spread=("seed", random_spread),
            **{name: ("loss seed record", getattr(net, name)) for name in names},
        )

    def random_means(self, key: Key) -> tuple[np.ndarray, np.ndarray]:
        """Return cosines ``(seeds, draws)`` and mean spread of lengths ``(seeds,)`` of centred random class means."""
        rng = numpy_generator(key)
        means = rng.standard_normal((self.seeds, _DRAWS, self.classes, self.width))
        means -= means.mean(2, keepdims=True)
        lengths = np.linalg.norm(means, axis=-1)
        unit = means / lengths[..., None]
        cosines = np.asarray(upper_pairs(unit @ unit.swapaxes(-1, -2)))
        spread = lengths.std(-1) / lengths.mean(-1)
        return cosines.reshape(self.seeds, -1), spread.mean(1)

    def free(self, square: jax.Array, key: Key, x: jax.Array) -> tuple:
        """Return the loss of free features, their collapse at start and end, and singular values and gradient there."""
        n = self.classes * self.copies
        y = jnp.repeat(jnp.arange(self.classes), self.copies)
        net = unconstrained(self.classes, self.dimension, n)
        targets = jax.nn.one_hot(y, self.classes)
        risk = unconstrained_risk(net, partial(_loss, square), targets, self.decay, self.decay)
        rule = optax.sgd(2.0, momentum=0.98, nesterov=True)
        marks = logarithmic(self.steps, 40)
        start = net.init(key)
        path = descend(risk, start, rule, self.steps, record=marks)
        p = path.params
        slope = optax.tree.norm(jax.grad(risk)(path.params))
        singular = jnp.linalg.svd(net.apply(p, jnp.arange(n)), compute_uv=False)
        begin, end = (collapse(q["h"], y, q["w"]) for q in (start, p))
        return path.risk, begin, end, singular, slope

    def network(self, square: jax.Array, key: Key, x: jax.Array) -> tuple:
        """Stochastic descent of a network on one seed's images: collapse and training error along it."""
        y = jnp.repeat(jnp.arange(self.classes), self.images)
        third = self.net_steps // 3
        widths = (x.shape[1], *[self.width] * self.depth, self.classes)
        targets = jax.nn.one_hot(y, self.classes)
        net = mlp(widths, "relu", c_w=2.0)
        losses = lambda p, x, t: _loss(square, net.apply(p, x), t)
        # warm-up over a twentieth of the steps, then a tenth of the step size after each third
        lr = lambda t: self.net_lr * jnp.minimum(20 * t / self.net_steps, 1) * 0.1 ** (t // third)
        path = descend(
            lambda p: losses(p, x, targets).mean(),
            net.init(key),
            optax.chain(optax.add_decayed_weights(self.net_decay), optax.sgd(lr, momentum=0.9)),
            self.net_steps,
            record=logarithmic(self.net_steps, 60),
            stochastic=minibatch(losses, x, targets, self.batch),
            key=key,
            observe={
                "collapse": lambda p: collapse(net.features(p, x), y, p[-1]["w"], p[-1]["b"]),
                "error": lambda p: jnp.mean(net.apply(p, x).argmax(1) != y),
            },
        )
        return path.observed["collapse"], path.observed["error"]

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "largest gradient at the end, free features",
                observed["free_gradient"].max(),
                "<=",
                1e-8,
            ),
            *self.past_zero_error(observed),
        ]

    def past_zero_error(self, observed: Observation) -> list[Hypothesis]:
        """Assume that the networks reach zero training error early."""
        error = observed["error"][self.lane]
        begun = observed["step"][settled(error)].max() / observed["step"][-1]
        return [
            assume("largest training error at the end", error[:, -1].max(), "==", 0),
            assume(
                "share of training before zero error", begun, "<=", 0.2, "choose more --net-steps"
            ),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        raw_cosine = predicted["free_raw_cosine"][:, None, None]
        deviations = {
            "loss": observed["free_loss"][..., -1] - predicted["free_loss"][:, None],
            "singular": observed["free_singular"] - predicted["free_singular"][:, None],
            "variability": observed["free_variability"],
            "cosines": observed["free_cosines"] - predicted["cosine"],
            "raw_cosines": observed["free_raw_cosines"] - raw_cosine,
            "duality": observed["free_duality"] - predicted["free_duality"][:, None],
        }
        checks = [
            agreement(
                f"free_{id}",
                np.abs(deviation).reshape(2, self.seeds, -1).max((0, 2)),
                1e-6,
                label=f"free features, {_EXACT[id]}: deviation",
            )
            for id, deviation in deviations.items()
        ]
        return [*checks, *self.judge_networks(predicted, observed)]

    def judge_networks(self, predicted: Prediction, observed: Observation) -> list[Check]:
        """Judge NC1 to NC4 of the networks at the end, against theory and the moment of zero error."""
        lane = self.lane
        measures = {
            name: observed[name][lane]
            for name in ("variability", "norm_spread", "duality", "mismatch", "rank")
        }
        measures["angle"] = np.abs(observed["cosines"][lane] - predicted["cosine"]).mean(-1)
        error = observed["error"][lane]
        start = np.arange(len(error)), settled(error)
        then = {name: a[start] for name, a in measures.items()}
        end = {name: a[:, -1] for name, a in measures.items()}
        return [
            _falls(
                "variability_falls",
                "log NC1",
                end["variability"],
                then["variability"],
                _FALL,
                float(predicted["remaining"]),
            ),
            _falls("angles_fall", "log mean |cos − theory|", end["angle"], then["angle"], 1.0, 0.0),
            bound(
                "angles",
                end["angle"],
                at_most=_NEARER * float(predicted["chance_angle"]),
                label="NC2: mean |cos − theory|",
            ),
            bound(
                "norm_spread",
                end["norm_spread"],
                at_most=_NEARER * float(predicted["chance_spread"]),
                label="NC2: spread of the means' lengths",
            ),
            bound(
                "duality", end["duality"], at_most=0.3, label="NC3: distance of W from the means"
            ),
            bound(
                "nearest_mean",
                end["mismatch"],
                at_most=0.01,
                label="NC4: share decided against the nearest mean",
            ),
            equal(
                "rank", predicted["rank"], end["rank"], 0.0, aggregate="all", label="rank of Σ_B"
            ),
        ]

    def rivals(self, setting: np.ndarray, predicted: Prediction) -> list[Rival]:
        same = ("loss", np.full(2, predicted["cosine"]))
        one = [
            unconstrained_minimum(self.classes, 1, self.decay, self.decay, loss) for loss in _LOSSES
        ]
        orthogonal, *others = self.rivals_of_networks(predicted)
        return [
            orthogonal,
            Rival(
                "raw_simplex",
                predicted.replace(free_raw_cosine=same),
                "true for cross-entropy",
                label="a simplex before centring",
            ),
            Rival(
                "self_dual",
                predicted.replace(free_duality=("loss", np.zeros(2))),
                "so NC3 says; true for cross-entropy, not for the squared loss without bias",
                label="free rows of the classifier are the centred means",
            ),
            Rival(
                "copies",
                predicted.replace(
                    free_loss=("loss", [m.loss for m in one]),
                    free_singular=("loss class", np.stack([m.singular_values for m in one])),
                ),
                "copies of an example tell nothing new",
                label="the minimum for one example a class",
            ),
            *others,
        ]

    def rivals_of_networks(self, predicted: Prediction) -> list[Rival]:
        """Return wrong theories of networks."""
        return [
            Rival(
                "orthogonal",
                predicted.replace(cosine=0.0),
                "so the notes say; true before centring",
                label="orthogonal class means",
            ),
            Rival(
                "rest",
                predicted.replace(remaining=1.0),
                "every example is right already",
                label="features rest at zero error",
            ),
            Rival(
                "full_rank",
                predicted.replace(rank=self.classes),
                "there are C means",
                label="C dimensions of the class means",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            *self.controls_of_networks(observed),
            Control(
                "free_start",
                observed.replace(free_variability=observed.quantity("free_start_variability")),
                "nothing has been descended",
                label="free features at the start",
            ),
        ]

    def controls_of_networks(self, observed: Observation) -> list[Control]:
        """Return networks that cannot have collapsed: random means, too little training, none."""
        lane = self.lane
        error = observed["error"][lane]
        records = np.arange(len(error)), settled(error)

        def from_then(record: tuple[np.ndarray, np.ndarray]) -> Mapping[str, np.ndarray]:
            """Put what was measured at some record of every network in place of its end."""
            replaced = {}
            for name in ("variability", "norm_spread", "duality", "mismatch", "cosines"):
                quantity = observed.quantity(name)
                values = quantity.values.copy()
                values[lane, :, -1] = values[lane][record]
                replaced[name] = (quantity.dims, values)
            return observed.replace(**replaced)

        cosines = observed.quantity("cosines")
        shape = (*cosines.values.shape[:3], observed["random_cosines"].shape[1])
        many = np.broadcast_to(observed["random_cosines"][:, None], shape)
        spread = observed.quantity("norm_spread")
        spreads = np.broadcast_to(observed["random_spread"][:, None], spread.values.shape)
        return [
            Control(
                "random_means",
                observed.replace(cosines=(cosines.dims, many), norm_spread=(spread.dims, spreads)),
                "they know nothing of each other",
                label="independent random class means",
            ),
            Control(
                "zero_error",
                from_then(records),
                "every example is right and nothing has collapsed yet",
                label="networks when the error becomes zero",
            ),
            Control(
                "untrained",
                from_then((records[0], 0 * records[1])),
                "nothing has been learned",
                label="untrained networks",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        free = observed["free_step"][1:]
        gap = np.abs(observed["free_loss"] - predicted["free_loss"][:, None, None]) + 1e-17
        return (
            panel(
                "Free features reach the predicted minimum",
                "step",
                "loss − theory",
                *_by_loss(_LOSSES, free, gap),
                log="xy",
            ),
            *self.panels_of_networks(predicted, observed),
        )

    def panels_of_networks(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        """Draw NC1, the cosines of one network and NC3 along the training."""
        steps = observed["step"][1:]
        flat = np.ones(len(observed["step"]) - 1)
        nc1 = _by_loss(self.losses, steps, observed["variability"])
        nc3 = _by_loss(self.losses, steps, observed["duality"])
        pairs = observed_curve(steps, observed["cosines"][self.lane, 0, 1:].T, "pairs of classes")
        lines = (
            predicted_curve(steps, predicted["cosine"] * flat, "−1/(C−1)"),
            rival_curve(steps, 0 * flat, "orthogonal"),
        )
        return (
            panel("The squared loss gathers the classes", "step", "NC1", *nc1, log="xy"),
            panel(
                "Centred means become a simplex",
                "step",
                f"cosines, {self.loss}, one seed",
                pairs,
                *lines,
                log="x",
            ),
            panel("The classifier turns to the class means", "step", "NC3", *nc3, log="x"),
        )


def _by_loss(losses: tuple[str, ...], times: np.ndarray, values: np.ndarray) -> list[Curve]:
    """Return curves of ``(loss, seed, time)`` from the second time on, one a loss."""
    return [
        observed_curve(times, values[i, :, 1:], loss, shade=float(i))
        for i, loss in enumerate(losses)
    ]


def _loss(square: jax.Array, outputs: jax.Array, targets: jax.Array) -> jax.Array:
    """The squared loss of every example or its cross-entropy: one compiled descent for both."""
    return jnp.where(square, squared(outputs, targets), cross_entropy(outputs, targets))


def _falls(
    id: str, name: str, end: np.ndarray, then: np.ndarray, factor: float, remaining: float
) -> Check:
    """Check whether what was ``then`` at zero error ends below a ``factor``-th of it; theory says ``remaining``."""
    expected = {"at the end": factor * remaining, "at zero error": 1.0}
    logs = {"at the end": np.log(factor * end), "at zero error": np.log(then)}
    return order(
        id,
        sorted(expected, key=lambda k: expected[k]),
        logs,
        label=f"{name} falls by more than log {factor:g}",
    )
