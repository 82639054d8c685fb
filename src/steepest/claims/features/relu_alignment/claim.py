"""ReLU layers align if they start small, hardly from a standard start; random labels keep the first layer's rank up.

Layers of deep linear networks become rank one and aligned (deep-linear-alignment). Of ReLU networks it is said that
“some alignment occurs”. Networks with two hidden layers on two digits, to one risk: from an eighth of the standard
start both stable ranks ‖W‖_F²/‖W‖₂² end at two to three, and each layer's leading output is the next one's leading
input. From the standard start nearly nothing changes. With coin tosses for labels the first layer keeps a rank of about
five. Yet a low stable rank is no sign of true labels: the second layer is nearer to rank one with coin tosses.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.claim import (
    Check,
    Claim,
    Control,
    Count,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    UserError,
    Values,
    Within,
    assume,
    bound,
    compiled,
    keys,
    numpy_generator,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import descend
from steepest.nn.data import digits, signs
from steepest.nn.losses import logistic, margin_risk
from steepest.nn.networks import mlp

TRUE = 0
RANDOM = 1
LABELS = ("true labels", "random labels")


class Setting(NamedTuple):
    """Images of two digits, centred, of mean square length 64; true labels and coin tosses."""

    x: Values  # (seeds, n, 64)
    y: Values  # (seeds, 2, n)


@dataclass(frozen=True)
class ReluAlignment(Claim):
    """Networks 64-h-h-1 with ReLU on the digits 3 and 8, logistic loss, full batch."""

    # ε, multiples of the standard start N(0, 2/fan-in), decreasing; the first and the last are looked into [1]
    scales: tuple[Positive, ...] = (1.0, 0.5, 0.25, 0.125)
    width: Annotated[int, Within(4, 4096)] = 64  # neurons of each hidden layer h [neurons]
    examples: Annotated[int, Within(4, 350)] = 100  # images n [1]
    target: Annotated[float, Within(1e-6, 0.5)] = 0.01  # risk at which layers are compared [1]
    lr: Positive = 0.3  # step size [1]
    steps: Count = 600  # of descent at most [steps]
    record: Count = 20  # steps between two records [steps]
    seeds: Seeds = 6  # sets of images, with a network each [1]

    kind = "empirical law"
    # 1 did not judge the alignment from the standard start, and took any scales from 1 on that differ four times
    version = 2
    statement = (
        r"\varepsilon\ll1:\quad 2<\frac{\lVert W_l\rVert_F^2}{\lVert W_l\rVert_2^2}<3,\quad "
        r"|\langle v_{l+1},u_l\rangle|\approx1;\qquad \varepsilon=1:\quad "
        r"\frac{\lVert W_l\rVert_F^2}{\lVert W_l\rVert_2^2}\approx\text{as at the start}"
    )
    source = "The lectures [@telgarsky2019], “empirically on ReLU networks, some alignment occurs”; [@ji2019]"
    headline = ("aligned", "low_rank", "standard", "standard_aligned", "random_first")
    corrections = (
        "“Empirically on ReLU networks, some alignment occurs: ratios ‖W‖_F/‖W‖₂ are small”: how much is decided by "
        "the start. From the standard one the stable ranks of both hidden layers stay as they are on two digits.",
    )
    remarks = (
        "Alignment is |⟨v, u⟩| of a layer's leading right singular vector v with the leading left one u of the layer "
        "below. Two random directions in 64 dimensions have 0.1.",
        "From a small start all layers first grow along one direction, out of the saddle at zero; what else they learn "
        "later adds to the rank. Of a learned part of rank one and a start of size ε the stable rank would be "
        "1 + O(ε²); it falls somewhat slower.",
        "From an eighth the alignment of the two hidden layers is 0.99 with true labels, mean at seed 0. With coin "
        "tosses it is 0.83 and scatters, as two directions of the first layer are nearly as long: six networks do not "
        "tell that it is less, which is not judged.",
        "From the standard start the hidden layers are no more aligned than two random directions. The output layer "
        "is, to 0.3 (mean at seed 0; not judged).",
        "Low rank is said to shrink bounds such as that of Bartlett, Foster and Telgarsky. It cannot tell true from "
        "random labels by itself: on coin tosses the second hidden layer ends nearer to rank one.",
        "One width, one pair of digits, plain descent. Networks that are larger, deeper, or trained with noise are not "
        "tried.",
    )
    full = {"scales": (1.0, 0.5, 0.25, 0.125, 0.0625), "steps": 3000, "target": 0.001, "seeds": 12}
    tiny = {
        "scales": (1.0, 0.125),
        "width": 8,
        "examples": 10,
        "steps": 100,
        "target": 0.3,
        "seeds": 3,
    }
    out_of_scope = {"scales": (4.0, 2.0)}

    def check_fields(self) -> None:
        falling = sorted(set(self.scales), reverse=True)
        if len(self.scales) < 2 or falling != list(self.scales):
            raise UserError(
                f"--scales are decreasing, two at least, got {self.scales}; try 1 0.125"
            )

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        data = signs(digits((3, 8)))
        pixels = np.asarray(data.x) - np.asarray(data.x).mean(0)
        pixels *= 8 / np.sqrt((pixels**2).sum(1).mean())
        chosen = np.stack([rng.permutation(data.n)[: self.examples] for _ in range(self.seeds)])
        true = np.asarray(data.y)[chosen]
        return Setting(
            pixels[chosen], np.stack([true, rng.choice([-1.0, 1.0], true.shape)], axis=1)
        )

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [
            assume("first scale", self.scales[0], "==", 1, "the standard start comes first"),
            assume("last scale", self.scales[-1], "<=", 0.125, "end --scales with a small start"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(aligned=0.95, rank=3.0, kept=0.9, apart=0.5)

    def observe(self, setting: Setting, key: Key) -> Observation:
        net = mlp((setting.x.shape[-1], self.width, self.width, 1), "relu", c_w=2.0)
        look = {"layers": lambda params: [layer["w"] for layer in params]}

        def one(x: jax.Array, y: jax.Array, key: Key, scale: jax.Array) -> tuple[jax.Array, list]:
            """Return the risk and the weights at the first record with the target risk, and the weights before it."""
            start = jax.tree.map(lambda leaf: scale * leaf, net.init(key))
            risk = margin_risk(logistic, net.apply, x, y)
            path = descend(
                risk, start, optax.sgd(self.lr), self.steps, record=self.record, observe=look
            )
            first = jnp.argmax(path.risk <= self.target)  # NaN compares false
            layers = path.observed["layers"]
            return path.risk[first], [jnp.stack([w[0], w[first]]) for w in layers]

        over_scales = jax.vmap(one, (None, None, None, 0))
        over_labels = jax.vmap(over_scales, (None, 0, None, None))
        run = compiled(over_labels)
        runs = [
            run(x, y, own, np.array(self.scales))
            for x, y, own in zip(setting.x, setting.y, keys(key, self.seeds), strict=True)
        ]
        reached = np.array([risk for risk, _ in runs])
        layers = np.stack([_layers(*map(np.asarray, weights)) for _, weights in runs])
        begin = layers[..., 0, :]
        at = layers[..., 1, :]
        dims = "seed labels scale"
        return Observation(
            risk=(dims, reached),
            rank=(f"{dims} layer", at[..., :2]),
            start=(f"{dims} layer", begin[..., :2]),
            aligned=(f"{dims} layer", at[..., 2:]),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "largest risk at which layers are compared / target",
                float(observed["risk"].max()) / self.target,
                "<=",
                1,
                "raise --steps",
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        aligned = observed["aligned"]
        rank = observed["rank"]
        kept = rank / observed["start"]
        small = f"ε = {self.scales[-1]:g}"
        standard = f"ε = {self.scales[0]:g}"
        return [
            bound(
                "aligned",
                aligned[:, TRUE, -1].min(-1),
                at_least=float(predicted["aligned"]),
                label=f"{small}: least alignment of neighbouring layers",
            ),
            bound(
                "low_rank",
                rank[:, TRUE, -1].max(-1),
                at_most=float(predicted["rank"]),
                label=f"{small}: largest stable rank of the hidden layers",
            ),
            bound(
                "standard",
                kept[:, TRUE, 0].min(-1),
                at_least=float(predicted["kept"]),
                label=f"{standard}: stable rank over that of the start, lesser layer",
            ),
            bound(
                "standard_aligned",
                aligned[:, TRUE, 0, 0],
                at_most=float(predicted["apart"]),
                label=f"{standard}: alignment of the two hidden layers",
            ),
            order(
                "random_first",
                ["true", "random"],
                {"random": rank[:, RANDOM, -1, 0], "true": rank[:, TRUE, -1, 0]},
                label=f"{small}: stable rank of the first layer, true labels < random labels",
            ),
            order(
                "random_second",
                ["random", "true"],
                {"random": rank[:, RANDOM, -1, 1], "true": rank[:, TRUE, -1, 1]},
                label=f"{small}: stable rank of the second layer, random labels < true labels",
            ),
            order(
                "smaller_starts",
                [f"{scale:g}" for scale in self.scales[::-1]],
                {f"{scale:g}": rank[:, TRUE, i].max(-1) for i, scale in enumerate(self.scales)},
                label="largest stable rank of the hidden layers: increases with the start",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        return [
            Rival(
                "linear",
                predicted.replace(rank=1.5, aligned=0.999),
                "layers of deep linear networks become rank one",
                label="as in deep linear networks: rank one, fully aligned",
            ),
            Rival(
                "one_per_class",
                predicted.replace(rank=2.0),
                "two classes need two directions",
                label="a stable rank of two at most",
            ),
            Rival(
                "lazy",
                predicted.replace(kept=0.999),
                "wide networks are lazy",
                label="from the standard start nothing changes at all",
                accepted="the lesser layer keeps 98 to 100 % of the rank, and 90 % is what is judged",
            ),
            Rival(
                "random_directions",
                predicted.replace(apart=0.15),
                "the hidden layers' leading directions stay independent: 0.1 on average",
                label="from the standard start hidden layers are as two random directions",
                accepted="they may be: one half is what is judged",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        swap = lambda name: (observed.quantity(name).dims, observed[name][:, ::-1])
        turn = lambda name: (observed.quantity(name).dims, observed[name][:, :, ::-1])
        return [
            Control(
                "starts_swapped",
                observed.replace(aligned=turn("aligned"), rank=turn("rank"), start=turn("start")),
                "the start decides",
                label="the standard start for the small one, and the reverse",
            ),
            Control(
                "labels_swapped",
                observed.replace(aligned=swap("aligned"), rank=swap("rank"), start=swap("start")),
                "random labels need more than one direction",
                label="random labels for true ones, and the reverse",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        scales = np.array(self.scales)
        rank = observed["rank"].mean(0)
        aligned = observed["aligned"].mean(0)
        start = observed["start"][:, TRUE].mean((0, 1, 2))
        ends = (scales[-1], scales[0])
        values = []
        for i, layer in enumerate(("first", "second")):
            values.append(
                panel(
                    f"Stable rank of the {layer} layer",
                    "start ε",
                    "‖W‖_F² / ‖W‖₂²",
                    *(
                        observed_curve(
                            scales, rank[k, :, i], LABELS[k], kind="points", shade=float(k)
                        )
                        for k in (TRUE, RANDOM)
                    ),
                    predicted_curve(ends, (start, start), "at the start"),
                    rival_curve(ends, (1, 1), "rank one"),
                    log="x",
                    ylim=(0, 20),
                )
            )
        values.append(
            panel(
                "Alignment of the hidden layers",
                "start ε",
                "|⟨v₂, u₁⟩|",
                *(
                    observed_curve(
                        scales, aligned[k, :, 0], LABELS[k], kind="points", shade=float(k)
                    )
                    for k in (TRUE, RANDOM)
                ),
                predicted_curve(ends, (1, 1), "aligned"),
                log="x",
                ylim=(0, 1.1),
            )
        )
        return tuple(values)


def _layers(first: Values, second: Values, last: Values) -> Values:
    """Return stable ranks of both hidden layers, and alignments of first with second and second with last; ``(…, 4)``.

    Args:
        first: ``(…, h, 64)``.
        second: ``(…, h, h)``.
        last: ``(…, 1, h)``.
    """
    left_1, sizes_1, _ = np.linalg.svd(first, full_matrices=False)
    left_2, sizes_2, right_2 = np.linalg.svd(second, full_matrices=False)
    onward = last[..., 0, :] / np.linalg.norm(last[..., 0, :], axis=-1, keepdims=True)
    return np.stack(
        [
            (sizes_1**2).sum(-1) / sizes_1[..., 0] ** 2,
            (sizes_2**2).sum(-1) / sizes_2[..., 0] ** 2,
            np.abs((right_2[..., 0, :] * left_1[..., :, 0]).sum(-1)),
            np.abs((onward * left_2[..., :, 0]).sum(-1)),
        ],
        axis=-1,
    )
