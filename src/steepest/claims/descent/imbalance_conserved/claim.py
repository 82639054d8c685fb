"""Gradient flow on a two-layer linear network conserves its imbalance.

The imbalance is D = UᵀU − VᵀV, where U and V are the layers, and the risk is ½‖Y − UVᵀ‖² with target Y. With a ReLU
between the layers the flow conserves only the diagonal of D, and with tanh not even the diagonal. Gradient descent with
step size η changes D in proportion to η: a step changes it by η²(G_UᵀG_U − G_VᵀG_V), with the gradients G_U and G_V.
"""

from typing import NamedTuple

import numpy as np

from steepest import kit
from steepest.claims.descent import _two_layers as layers
from steepest.claims.descent._two_layers import Lanes, Starts
from steepest.nn.types import Values

KINDS = {"tanh": layers.TANH, "ReLU": layers.RELU}


class Setting(NamedTuple):
    """Starts and targets of flows."""

    linear: Starts
    bent: Lanes  # for hidden layers that are not linear, (seeds,)


@kit.claim
class ImbalanceConserved(kit.Claim[Setting]):
    """Products of 3 × h or 2 × h by h × 2 on Gaussian targets and on digits."""

    hidden: kit.Count = kit.param(6, "h, hidden neurons", unit="neurons", scope=layers.HIDDEN)
    excesses: tuple[kit.NonNegative, ...] = kit.param(
        layers.EXCESSES[0],
        "s, orthonormal rows times this are added to U off the rows of V, increasing",
        scope=kit.choices(*layers.EXCESSES, why="descents start at the second"),
    )
    seeds: kit.Seeds = kit.param(8, "random targets and starts of each shape")
    fall: kit.Positive = kit.param(36.0, "log R_0/R at the end of the flows")
    rates: tuple[kit.Positive, ...] = kit.param(
        (0.04, 0.02, 0.01, 0.005),
        "η of descents, decreasing",
        scope=kit.choices(
            (0.04, 0.02, 0.01, 0.005), (0.03, 0.01, 0.003), why="longer steps have another order"
        ),
    )
    time: kit.Positive = kit.param(20.0, "η times the number of steps")

    kind = "theorem"
    says = {
        "conserves its imbalance": "conserved",
        "conserves only the diagonal of D": "relu_diagonal",
        "changes D in proportion to η": ("drift_exponent", "drift"),
    }
    ragged = ("bent_path", "diagonal_path")
    tiny = {"seeds": 3, "excesses": (0.0, 2.0, 4.0), "rates": (0.04, 0.02, 0.01), "time": 4.0}
    full = {"seeds": 40}
    out_of_scope = {"hidden": 3}

    def axes(self):
        return {"activation": tuple(KINDS), "rate": self.rates}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        linear = layers.drawn(rng, self.hidden, self.excesses, self.seeds)
        bent = []
        for _ in range(self.seeds):
            U, V, off = layers.start(rng, layers.ROWS, self.hidden)
            bent.append((U + off, V, rng.normal(size=(layers.ROWS, layers.INPUTS))))
        return Setting(linear, layers.lanes(bent))

    def hypotheses(self, setting):
        steepest = np.linalg.norm(setting.linear.small.U[:, 1], 2, axis=(1, 2)).max() ** 2
        fastest = max(self.rates) * steepest
        yield kit.assume("hidden neurons", self.hidden, ">=", layers.LEAST, layers.HIDDEN.why)
        yield kit.assume("largest step times σ_max²(U)", fastest, "<", 0.5, "lower --rates")

    def predict(self, setting):
        return kit.law(drift=("rate", self.rates))

    def observe(self, setting, key):
        reading = layers.readings(self.fall)
        groups = [*setting.linear, *len(KINDS) * [setting.bent]]
        kinds = [*len(setting.linear) * [layers.LINEAR], *KINDS.values()]
        _, change, arrived = layers.flows(groups, kinds, reading)
        linear = len(change) - len(KINDS) * self.seeds
        moved = np.abs(change[linear:].reshape(len(KINDS), self.seeds, *change.shape[1:]))
        diagonal = np.diagonal(moved, axis1=-2, axis2=-1).max(-1)
        u, v, target = (part[:, 1] for part in setting.linear.small)
        drifts = [descend_with(u, v, target, lr, self.time) for lr in self.rates]
        short = [descend_with(u, v, target, lr, lr)[0] for lr in self.rates]
        norm = lambda moves: np.linalg.norm(np.stack(moves, 1), axis=(-2, -1))
        return kit.seen(
            readings=("reading", reading),
            arrived=("flow", arrived[:linear]),
            change=("flow reading", np.abs(change[:linear]).max((-1, -2))),
            # no number where R was not reached
            bent_path=("activation seed reading", moved.max((-1, -2))),
            diagonal_path=("activation seed reading", diagonal),
            # a ReLU network may be stuck from its start, and reach none
            diagonal=("activation seed", np.fmax.reduce(diagonal, -1, initial=0.0)),
            drift=("start rate", norm([moves for moves, _ in drifts])),
            unexplained=("start rate", norm([moves - summed for moves, summed in drifts])),
            first_drift=("start rate", norm(short)),
        )

    def run_conditions(self, observed):
        yield kit.assume("share of flows that arrived", observed["arrived"].mean(), "==", 1)

    def derive(self, law, seen):
        """Return the part of what descent changes that its gradients do not sum up to."""
        return {"unexplained_part": seen.unexplained / seen.drift}

    def judge(self, law, seen):
        yield kit.agrees("conserved", seen.change, 1e-8, label="change of D along the flows")
        relu = seen.diagonal.sel(activation="ReLU")
        yield kit.agrees("relu_diagonal", relu, 1e-8, label="change of D's diagonal, ReLU")
        yield kit.agrees(
            "drift",
            seen.unexplained_part,
            1e-7,  # thousands of steps, each of which rounds
            label="change of D by descent, off η² Σ (G_UᵀG_U − G_VᵀG_V), relative",
        )
        yield kit.power(
            "drift_exponent",
            law.drift,
            seen.drift,
            0.05,  # of the next order, η σ_max², is left: 0.02 measured
            over="rate",
            label="change of D against η",
        )

    def rivals(self, setting, law):
        yield kit.rival(
            "descent changes D like η²", "each step changes D by η²", drift=law.drift**2
        )

    def controls(self, seen):
        yield kit.control(
            "descent in place of the flow",
            "finite steps do not conserve D",
            id="descent",
            change=seen.drift.max(),
        )
        yield kit.control(
            "a single step in place of a time",
            "each step by itself changes D by η²",
            drift=seen.first_drift,
        )
        yield kit.control(
            "a hidden layer of tanh",
            "it is not homogeneous",
            id="tanh",
            change=np.nanmax(seen.bent_path.sel(activation="tanh")),
            diagonal=(seen.diagonal.dims, seen.diagonal.values[::-1]),
        )
        yield kit.control(
            "D as if descent conserved it",
            "without η² Σ (…) all of it is left",
            unexplained=seen.drift,
        )

    def figure(self, law, seen, rivals):
        along = seen.readings.values
        tiny = 1e-17
        bent = np.nanmax(seen.bent_path, 1)
        of_relu = np.nanmax(seen.diagonal_path[1], 0) + tiny
        yield kit.panel(
            "Only the linear network conserves D",
            "log R_0/R",
            "largest change of D",
            kit.observed_curve(along, seen.change.max("flow") + tiny, "linear"),
            kit.observed_curve(along, bent[0], "tanh", shade=0.5),
            kit.observed_curve(along, bent[1], "ReLU", shade=1.0),
            kit.observed_curve(along, of_relu, "ReLU, diagonal", kind="points", shade=1.0),
            log="y",
        )


def descend_with(U: Values, V: Values, Y: Values, lr: float, time: float) -> tuple[Values, Values]:
    """Descend with a fixed step for a time, and return how D moves, and η² Σ (G_UᵀG_U − G_VᵀG_V) over all steps."""
    gram = lambda matrices: matrices.mT @ matrices
    start = gram(U) - gram(V)
    summed = np.zeros_like(start)
    for _ in range(round(time / lr)):
        error = Y - U @ V.mT
        up = error @ V  # −∂R/∂U
        down = error.mT @ U  # −∂R/∂V
        # the terms of order η, UᵀEV + VᵀEᵀU, are the same in UᵀU and VᵀV and leave D
        summed += lr**2 * (gram(up) - gram(down))
        U = U + lr * up
        V = V + lr * down
    return gram(U) - gram(V) - start, summed
