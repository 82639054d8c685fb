"""Normalized margins tell true labels from random ones, unnormalized margins do not, and descent improves them.

Networks that fit true and random labels equally well have margins of the same size. Divided by the network's spectral
complexity (Bartlett, Foster, Telgarsky 2017) and by ‖X‖_F/n, those of random labels are much smaller: what differs is
not how well the labels are fitted but how complex a function that took.
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax
from sklearn.ensemble import AdaBoostClassifier
from sklearn.svm import SVC

from steepest.claim import (
    Check,
    Claim,
    Count,
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
    keys,
    observed_curve,
    panel,
)
from steepest.dynamics import descend, logarithmic
from steepest.nn.data import Dataset, digits, relabel, signs
from steepest.nn.losses import cross_entropy, mean_risk
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import count
from steepest.programs import (
    network_margins,
    normalized_margins,
    spectral_complexity,
    weight_matrices,
)

LAYERS = ("two layers", "three layers")
LABELS = ("true", "random")
OTHERS = ("boosted stumps", "RBF kernel", "quadratic kernel")


@dataclass(frozen=True)
class MarginDistribution(Claim):
    """Two- and three-layer ReLU networks with as many parameters, trained on digits until the risk is the same."""

    n: Count = 200  # images of all ten digits [images]
    # hidden width of the two-layer network; the other's follows from it [neurons]
    width: Count = 64
    lr: Positive = 0.2  # step size of full-batch descent [1/curvature]
    momentum: Positive = 0.9  # heavy-ball momentum [1]
    steps: Count = 1000  # steps of each descent, enough for the slowest to reach the risk [steps]
    total: Positive = 0.5  # summed cross-entropy at which margins are compared; below log 2 no image is wrong [nats]
    seeds: Seeds = 12  # initial networks, each with its own random labels [1]
    # images of 3 and 8 for stumps and kernels, which are shown and not judged [images]
    pair: Count = 120

    kind = "empirical law"
    statement = (
        r"\frac{\bar m^{\rm true}}{\bar m^{\rm random}}\ge 2,\quad\frac{m^{\rm true}}{m^{\rm random}}=\Theta(1),\quad"
        r" m=f_y-\max_{j\neq y}f_j,\quad\bar m=\frac{m}{R_W\,\|X\|_F/n}"
    )
    source = "Telgarsky's slides in 001; Bartlett, Foster, Telgarsky 2017"
    remarks = (
        "Networks are compared at the same risk. After equal steps (in the notes) a margin would also tell how far "
        "descent has come: it is about the logarithm of the inverse risk, and random labels take far longer.",
        "The slides write ‖·‖_{2,1} without the paper's transposes: the norms of rows are added, one a neuron.",
        "Depths cannot be compared so: three layers have normalized margins three times smaller than two.",
    )
    full = {"n": 500, "width": 100, "steps": 5000, "pair": 300}
    tiny = {"n": 40, "steps": 300, "seeds": 3, "pair": 30}
    out_of_scope = {"total": 1.0}

    def setting(self, key: Key) -> Dataset:
        data = digits(n=self.n, key=key)
        # the mean image makes the risk sharp in one direction; with it some runs die at half this step size
        x = np.asarray(data.x)
        return Dataset(x - x.mean(0), np.asarray(data.y), "centred digits")

    def nets(self, data: Dataset) -> list[Mlp]:
        """Two layers with p = (d + C) width parameters, and three with w² + (d + C) w ≈ p."""
        d = data.d
        c = data.y.shape[1]
        narrow = round((math.sqrt((d + c) ** 2 + 4 * (d + c) * self.width) - (d + c)) / 2)
        return [
            mlp(shape, "relu", c_w=2.0, bias=False)
            for shape in ((d, self.width, c), (d, narrow, narrow, c))
        ]

    def hypotheses(self, setting: Dataset) -> list[Hypothesis]:
        two, three = (
            count(jax.eval_shape(net.init, jax.random.key(0))) for net in self.nets(setting)
        )
        y = setting.y
        wider = "choose a larger --width"
        return [
            assume(
                "labels that are not one-hot",
                int((np.sort(y, 1) != np.eye(y.shape[1])[-1]).sum()),
                "==",
                0,
            ),
            assume("parameters / (images × classes)", two / y.size, ">=", 1, wider),
            assume("relative difference of parameters", abs(three / two - 1), "<=", 0.05, wider),
            assume(
                "summed cross-entropy of comparison",
                self.total,
                "<",
                math.log(2),
                "choose a smaller --total",
            ),
        ]

    def predict(self, setting: Dataset) -> Prediction:
        return Prediction(  # lowest and highest ratio
            normalized=("end", (2.0, math.inf)),  # median for true labels / median for random ones
            unnormalized=("end", (0.5, 2.0)),
            growth=(
                "end",
                (1.0, math.inf),
            ),  # median normalized margin at the end / at the first zero error
        )

    def observe(self, setting: Dataset, key: Key) -> Observation:
        # at the start nothing has moved and the complexity is zero
        marks = logarithmic(self.steps, 60)[1:]
        train = compiled(
            lambda x, y, seeds: [
                self.train(net, Dataset(x, y, ""), seeds, marks) for net in self.nets(setting)
            ]
        )
        runs = train(setting.x, setting.y, keys(key, self.seeds))
        risk, raw, normalized = jax.tree.map(
            lambda *depths: np.stack(depths), *runs
        )  # (depth, labels, seed, record, …)
        reached = self.n * risk <= self.total
        medians = np.median(normalized, -1)
        stop = np.where(reached.any(-1), reached.argmax(-1), -1)
        fit = (raw > 0).all(-1).argmax(-1)
        at = lambda values, record: values[(*np.indices(record.shape), record)]
        axes = "depth labels seed"
        protocols = "protocol depth labels seed image"
        return Observation(
            step=("record", marks, "steps"),
            stopped=(axes, marks[stop], "steps"),
            risk=(axes, at(risk, stop), "nats"),
            unnormalized=(
                protocols,
                np.stack([at(raw, stop), raw[..., -1, :]]),
            ),  # same risk, same number of steps
            normalized=(protocols, np.stack([at(normalized, stop), normalized[..., -1, :]])),
            along=(f"{axes} record", medians),
            growth=(axes, medians[..., -1] / at(medians, fit)),
            others=("method labels image", _others(key, self.pair)),
        )

    def train(self, net: Mlp, data: Dataset, seeds: Key, marks: np.ndarray) -> list[jax.Array]:
        """Return risks, margins and normalized margins along descent on true and random labels.

        Shapes ``(labels, seeds, records, …)``.
        """

        def one(key: Key, random: jax.Array) -> list[jax.Array]:
            for_start, for_labels = jax.random.split(key)
            start = net.init(for_start)
            y = jnp.where(random, relabel(for_labels, data).y, data.y)
            risk = mean_risk(cross_entropy, net.apply, data.x, y)
            reference = weight_matrices(start)
            margins = lambda p: network_margins(net.apply(p, data.x), y)
            complexity = lambda p: spectral_complexity(weight_matrices(p), reference)
            look = {
                "raw": margins,
                "normalized": lambda p: normalized_margins(margins(p), complexity(p), data.x),
            }
            run = descend(
                risk,
                start,
                optax.sgd(self.lr, self.momentum),
                self.steps,
                record=marks,
                observe=look,
            )
            return [run.risk, run.observed["raw"], run.observed["normalized"]]

        over_seeds = lambda random: jax.lax.map(lambda key: one(key, random), seeds)
        return jax.lax.map(over_seeds, jnp.array([False, True]))

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "largest training error when compared",
                (observed["unnormalized"][0] <= 0).mean(-1).max(),
                "==",
                0,
            ),
            assume(
                "summed cross-entropy there",
                self.n * observed["risk"].max(),
                "<=",
                self.total,
                "more --steps",
            ),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = []
        for i, layers in enumerate(LAYERS):
            for name in ("normalized", "unnormalized"):
                medians = np.median(observed[name][:, i], -1)  # (protocol, labels, seed)
                same_risk, same_steps = medians[:, 0] / medians[:, 1]
                note = f"{same_steps.mean():.3g} after equal steps"
                checks.append(
                    _within(
                        f"{name}_ratio_{i + 2}",
                        same_risk,
                        predicted[name],
                        f"{name} margin, true / random, {layers}",
                        note,
                    )
                )
            checks.append(
                _within(
                    f"growth_{i + 2}",
                    observed["growth"][i, 0],
                    predicted["growth"],
                    f"growth of the normalized margin, {layers}",
                )
            )
        return checks

    def rivals(self, setting: Dataset, predicted: Prediction) -> list[Rival]:
        tell = predicted.quantity("normalized")
        alike = predicted.quantity("unnormalized")
        return [
            Rival(
                "unnormalized_tell",
                predicted.replace(unnormalized=tell),
                "true labels are easier",
                label="unnormalized margins tell too",
            ),
            Rival(
                "normalized_alike",
                predicted.replace(normalized=alike),
                "the risk is the same",
                label="normalized margins tell nothing",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        curves = [
            (i, j, f"{LABELS[j]}, {LAYERS[i]}", (2 * j + i) / 3) for j in (0, 1) for i in (0, 1)
        ]
        cdf = lambda m, name, s: observed_curve(
            np.sort(m, None), np.linspace(0, 1, m.size), name, kind="steps", shade=s
        )
        cdfs = lambda of: [cdf(observed[of][0, i, j], name, shade) for i, j, name, shade in curves]
        along = [
            observed_curve(observed["step"], observed["along"][i, j], name, shade=s)
            for i, j, name, s in curves
        ]
        others = enumerate(np.swapaxes(observed["others"], 0, 1).reshape(6, -1))
        beside = [cdf(values, f"{LABELS[k // 3]}, {OTHERS[k % 3]}", k / 5) for k, values in others]
        share = "share of the images"
        return (
            panel("Unnormalized margins hardly tell", "margin", share, *cdfs("unnormalized")),
            panel(
                "Normalized margins tell",
                "margin / (R ‖X‖_F / n)",
                share,
                *cdfs("normalized"),
                log="x",
            ),
            panel(
                "Descent raises them early, hardly later",
                "step",
                "median normalized margin",
                *along,
                log="xy",
            ),
            panel(
                "So do those of stumps and kernels (3, 8)", "margin / norm", share, *beside, log="x"
            ),
        )


def _within(id: str, ratio: np.ndarray, allowed: np.ndarray, label: str, note: str = "") -> Check:
    """Bound where there is no highest ratio, else check equality with one up to factors."""
    if math.isinf(allowed[1]):
        return bound(id, ratio, at_least=allowed[0], label=label, note=note)
    return equal(id, 1.0, ratio, tuple(allowed), label=label, note=note)


def _others(key: Key, n: int) -> np.ndarray:
    """Margins of other methods on 3 against 8, by the norm of the function that votes: (methods, labels, n)."""
    true = signs(digits((3, 8), n, key))
    x = np.asarray(true.x)
    margins = []
    squares = ((x[:, None] - x) ** 2).sum(-1)
    kernels = np.exp(-squares / squares.mean()), (1 + x @ x.T / true.d) ** 2
    for y in (np.asarray(true.y), np.asarray(relabel(key, true).y)):
        # stumps by the ℓ1 norm of their weights; ‖f‖² of a hard-margin machine is the sum of its dual variables
        margins.append(
            [
                y
                * AdaBoostClassifier(n_estimators=200, random_state=0)
                .fit(x, y)
                .decision_function(x)
                / 2
            ]
        )
        for k in kernels:
            machine = SVC(C=1e6, kernel="precomputed").fit(k, y)
            squared_norm = (
                np.abs(machine.dual_coef_).sum() * k.trace() / n
            )  # in units of the mean of k(x, x)
            margins[-1].append(y * machine.decision_function(k) / np.sqrt(squared_norm))
    return np.array(margins).swapaxes(0, 1)
