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

from steepest.arrays import Observation, Prediction
from steepest.claims._claim import Claim, Count, Positive, Seeds, keys
from steepest.data import Dataset, digits, relabel, signs
from steepest.descent import cross_entropy, descend, logarithmic, mean_risk
from steepest.judging import Check, Hypothesis, Rival, bound, equal, require
from steepest.margins import network_margins, normalized_margins, spectral_complexity, weight_matrices
from steepest.networks import Mlp, mlp
from steepest.panels import Panel, panel, seen
from steepest.types import Key, count

LAYERS, LABELS = ("two layers", "three layers"), ("true", "random")
OTHERS = ("boosted stumps", "RBF kernel", "quadratic kernel")


@dataclass(frozen=True)
class MarginDistribution(Claim):
    """Two- and three-layer ReLU networks with as many parameters, trained on digits until the risk is the same."""

    n: Count = 200  # images of all ten digits [images]
    width: Count = 64  # hidden width of the two-layer network; the other's follows from it [neurons]
    lr: Positive = 0.2  # step size of full-batch descent [1/curvature]
    momentum: Positive = 0.9  # heavy-ball momentum [1]
    steps: Count = 1000  # steps of each descent, enough for the slowest to reach the risk [steps]
    total: Positive = 0.5  # summed cross-entropy at which margins are compared; below log 2 no image is wrong [nats]
    seeds: Seeds = 12  # initial networks, each with its own random labels [1]
    pair: Count = 120  # images of 3 and 8 for stumps and kernels, which are shown and not judged [images]

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
    beyond = {"total": 1.0}

    def setting(self, key: Key) -> Dataset:
        data = digits(n=self.n, key=key)
        # the mean image makes the risk sharp in one direction; with it some runs die at half this step size
        return Dataset(data.x - data.x.mean(0), data.y, "centred digits")

    def nets(self, data: Dataset) -> list[Mlp]:
        """Two layers with p = (d + C) width parameters, and three with w² + (d + C) w ≈ p."""
        d, c = data.d, data.y.shape[1]
        narrow = round((math.sqrt((d + c) ** 2 + 4 * (d + c) * self.width) - (d + c)) / 2)
        return [mlp(shape, "relu", c_w=2.0, bias=False) for shape in ((d, self.width, c), (d, narrow, narrow, c))]

    def hypotheses(self, setting: Dataset) -> list[Hypothesis]:
        two, three = (count(jax.eval_shape(net.init, jax.random.key(0))) for net in self.nets(setting))
        y, wider = setting.y, "choose a larger --width"
        return [
            require("labels that are not one-hot", int((jnp.sort(y, 1) != jnp.eye(y.shape[1])[-1]).sum()), "==", 0),
            require("parameters / (images × classes)", two / y.size, ">=", 1, wider),
            require("relative difference of parameters", abs(three / two - 1), "<=", 0.05, wider),
            require("summed cross-entropy of comparison", self.total, "<", math.log(2), "choose a smaller --total"),
        ]

    def predict(self, setting: Dataset) -> Prediction:
        return Prediction(  # lowest and highest ratio
            normalized=("end", (2.0, math.inf)),  # median for true labels / median for random ones
            unnormalized=("end", (0.5, 2.0)),
            growth=("end", (1.0, math.inf)),  # median normalized margin at the end / at the first zero error
        )

    def observe(self, setting: Dataset, key: Key) -> Observation:
        marks = logarithmic(self.steps, 60)[1:]  # at the start nothing has moved and the complexity is zero
        runs = [self.train(net, setting, keys(key, self.seeds), marks) for net in self.nets(setting)]
        risk, raw, normalized = jax.tree.map(lambda *each: np.stack(each), *runs)  # (depth, labels, seed, record, …)
        reached, medians = self.n * risk <= self.total, np.median(normalized, -1)
        stop, fit = np.where(reached.any(-1), reached.argmax(-1), -1), (raw > 0).all(-1).argmax(-1)
        at = lambda values, record: values[(*np.indices(record.shape), record)]
        axes, protocols = "depth labels seed", "protocol depth labels seed image"
        return Observation(
            step=("record", marks, "steps"),
            stopped=(axes, marks[stop], "steps"),
            risk=(axes, at(risk, stop), "nats"),
            unnormalized=(protocols, np.stack([at(raw, stop), raw[..., -1, :]])),  # same risk, same number of steps
            normalized=(protocols, np.stack([at(normalized, stop), normalized[..., -1, :]])),
            along=(f"{axes} record", medians),
            growth=(axes, medians[..., -1] / at(medians, fit)),
            others=("method labels image", _others(key, self.pair)),
        )

    def train(self, net: Mlp, data: Dataset, seeds: Key, marks: np.ndarray) -> list[jax.Array]:
        """Risks, margins, normalized margins along descent on true and random labels: (labels, seeds, records, …)."""

        def one(key: Key, random: jax.Array) -> list[jax.Array]:
            for_start, for_labels = jax.random.split(key)
            start, y = net.init(for_start), jnp.where(random, relabel(for_labels, data).y, data.y)
            risk, reference = mean_risk(cross_entropy, net.apply, data.x, y), weight_matrices(start)
            margins = lambda p: network_margins(net.apply(p, data.x), y)
            complexity = lambda p: spectral_complexity(weight_matrices(p), reference)
            look = {"raw": margins, "normalized": lambda p: normalized_margins(margins(p), complexity(p), data.x)}
            run = descend(risk, start, optax.sgd(self.lr, self.momentum), self.steps, record=marks, observe=look)
            return [run.risk, run.observed["raw"], run.observed["normalized"]]

        each = jax.jit(lambda random: jax.lax.map(lambda key: one(key, random), seeds))
        return jax.tree.map(lambda *parts: np.stack(parts), each(False), each(True))

    def premises(self, observed: Observation) -> list[Hypothesis]:
        return [
            require("largest training error when compared", (observed["unnormalized"][0] <= 0).mean(-1).max(), "==", 0),
            require("summed cross-entropy there", self.n * observed["risk"].max(), "<=", self.total, "more --steps"),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = []
        for i, layers in enumerate(LAYERS):
            for name in ("normalized", "unnormalized"):
                medians = np.median(observed[name][:, i], -1)  # (protocol, labels, seed)
                same_risk, same_steps = medians[:, 0] / medians[:, 1]
                note = f"{same_steps.mean():.3g} after equal steps"
                checks.append(_within(f"{name} margin, true / random, {layers}", same_risk, predicted[name], note))
            growth = f"growth of the normalized margin, {layers}"
            checks.append(_within(growth, observed["growth"][i, 0], predicted["growth"]))
        return checks

    def rivals(self, setting: Dataset, predicted: Prediction) -> list[Rival]:
        tell, alike = predicted.quantity("normalized"), predicted.quantity("unnormalized")
        return [
            Rival("unnormalized margins tell too", predicted.replace(unnormalized=tell), "true labels are easier"),
            Rival("normalized margins tell nothing", predicted.replace(normalized=alike), "the risk is the same"),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        curves = [(i, j, f"{LABELS[j]}, {LAYERS[i]}", (2 * j + i) / 3) for j in (0, 1) for i in (0, 1)]
        cdf = lambda m, name, s: seen(np.sort(m, None), np.linspace(0, 1, m.size), name, kind="steps", shade=s)
        cdfs = lambda of: [cdf(observed[of][0, i, j], name, shade) for i, j, name, shade in curves]
        along = [seen(observed["step"], observed["along"][i, j], name, shade=s) for i, j, name, s in curves]
        others = enumerate(np.swapaxes(observed["others"], 0, 1).reshape(6, -1))
        beside = [cdf(values, f"{LABELS[k // 3]}, {OTHERS[k % 3]}", k / 5) for k, values in others]
        share = "share of the images"
        return (
            panel("Unnormalized margins hardly tell", "margin", share, *cdfs("unnormalized")),
            panel("Normalized margins tell", "margin / (R ‖X‖_F / n)", share, *cdfs("normalized"), log="x"),
            panel("Descent raises them early, hardly later", "step", "median normalized margin", *along, log="xy"),
            panel("So do those of stumps and kernels (3, 8)", "margin / norm", share, *beside, log="x"),
        )


def _within(name: str, ratio: np.ndarray, allowed: np.ndarray, note: str = "") -> Check:
    """A bound where there is no highest ratio, else equality with one up to factors."""
    if math.isinf(allowed[1]):
        return bound(name, ratio, at_least=allowed[0], note=note)
    return equal(name, 1.0, ratio, tuple(allowed), note=note)


def _others(key: Key, n: int) -> np.ndarray:
    """Margins of other methods on 3 against 8, by the norm of the function that votes: (methods, labels, n)."""
    true = signs(digits((3, 8), n, key))
    x, found = np.asarray(true.x), []
    squares = ((x[:, None] - x) ** 2).sum(-1)
    kernels = np.exp(-squares / squares.mean()), (1 + x @ x.T / true.d) ** 2
    for y in (np.asarray(true.y), np.asarray(relabel(key, true).y)):
        # stumps by the ℓ1 norm of their weights; ‖f‖² of a hard-margin machine is the sum of its dual variables
        found.append([y * AdaBoostClassifier(n_estimators=200, random_state=0).fit(x, y).decision_function(x) / 2])
        for k in kernels:
            machine = SVC(C=1e6, kernel="precomputed").fit(k, y)
            squared_norm = np.abs(machine.dual_coef_).sum() * k.trace() / n  # in units of the mean of k(x, x)
            found[-1].append(y * machine.decision_function(k) / np.sqrt(squared_norm))
    return np.array(found).swapaxes(0, 1)
