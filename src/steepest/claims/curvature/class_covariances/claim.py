"""Outliers of the covariances of features and of backpropagated errors are those of class means, more so with depth.

Of trained networks, that is: errors of untrained ones have outliers from class means too, but fewer, features have
not. At every layer the features have a covariance H and the errors that all labels would send back a covariance Δ.
What their largest eigenvalues consist of is measured by splitting both, exactly, into class means and what is around
them.
"""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

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
    Within,
    assume,
    compiled,
    equal,
    keys,
    observed_curve,
    order,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.curvature._trained import Lanes, Setting, Training, lanes
from steepest.measurement.quantities import error_parts, explained, feature_parts, softmax

# of the outliers, at least, that class means carry in the last hidden layer of a trained network; for errors
# an untrained one has about 0.77, from which 0.8 would not tell it
SHARE = 0.85
KINDS = ("features", "errors")  # the axis "what"


@dataclass(frozen=True)
class ClassCovariances(Claim):
    """ReLU networks on the digits, cross-entropy with weight decay, trained past zero error."""

    classes: Annotated[int, Within(3, 10)] = 10  # C [1]
    seeds: Seeds = 6  # independent networks, each with images of its own [1]
    n: Annotated[int, Within(30, 450)] = 300  # images [1]
    width: Count = 32  # neurons in each hidden layer [neurons]
    depth: Annotated[int, Within(2)] = 4  # hidden layers [layers]
    lr: Positive = 0.05  # first step size, with momentum 0.9; lowered tenfold after each third [1]
    decay: Positive = 0.02  # weight decay [1]
    batch: Count = 32  # images in a batch [1]
    steps: Count = 900  # of training [steps]

    kind = "empirical law"
    headline = ("features_last", "features_order", "errors_last", "errors_order")
    statement = (
        r"H^l=\mathrm{Avg}_c\,h_ch_c^\top+H^l_{\rm within},\quad \Delta^l=\Delta^l_{\rm class}+\Delta^l_{\rm cross}"
        r"+\Delta^l_{\rm within}+\Delta^l_{c=c'}:\quad \lambda_1,\dots,\lambda_{C-1}\text{ from the means, as } l\to L"
    )
    source = "Lecture of 5 October in [@hanin2022]; [@papyan2020a]"
    corrections = (
        "The notes leave the weights p_{i,c'} out of Δ, average Δ_class without weights, and subtract δ_c' in "
        "Δ_cross; it is δ_c, as for the Gauss–Newton matrix. With the printed terms the parts do not add up. "
        "(Algebra, not tested here.)",
    )
    remarks = (
        "Training is that of hessian-outliers, where its choice is told.",
        "H is centred: the largest eigenvalue of the second moment is the common mean and tells nothing about classes. "
        "C − 1 eigenvalues are compared, as many as centred class means can make.",
        "For Δ both the means of classes and those of pairs, class and wrong label, count; see three-level-hessian for "
        "why the class part alone has less: that was known when this claim was first run.",
        "Version 2 asks for 0.85 of the outliers and not 0.8, and for more than at the start: for errors an "
        "untrained network has 0.77 (features 0.33), and passed the check. That shares of errors rise with depth is "
        "so at the start as well; for features they fall there.",
        "The rise with depth is small here, about a hundredth from one layer to the next at the end: the trained first "
        "layer already separates digits.",
    )
    full = {"seeds": 10, "n": 450, "width": 64, "steps": 3000}
    tiny = {"classes": 3, "seeds": 3, "n": 30, "width": 8, "depth": 2, "batch": 10, "steps": 200}
    out_of_scope = {"steps": 5, "seeds": 3}
    version = 2

    def setting(self, key: Key) -> Setting:
        training = Training(self.width, self.depth, self.lr, self.decay, self.batch, self.steps)
        return Setting(training, lanes(key, (self.classes,), self.seeds, self.n))

    def predict(self, setting: Setting) -> Prediction:
        return Prediction(
            last=1.0,
            rank=("layer", np.arange(self.depth)),  # of the layers, by what means explain
            moment=("moment", [0, 1]),  # of start and end, by what means explain in the last layer
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        training, all_lanes = setting
        weights, _, error = training(all_lanes, np.array([0, self.steps]))

        @compiled
        def split(weights: jax.Array, lanes: Lanes, again: Key) -> tuple:
            """Parts with the true classes at the start and at the end, and with shuffled ones at the end."""
            shuffled = jax.vmap(jax.random.permutation)(again, lanes.y)
            moments = jnp.stack([weights[:, 0], weights[:, 1], weights[:, 1]])
            labels = jnp.stack([lanes.y, lanes.y, shuffled])
            lanes = jax.tree.map(lambda leaf: jnp.stack([leaf] * 3), lanes)
            one = lambda job: self.parts(training, *job)
            return jax.lax.map(lambda jobs: jax.lax.map(one, jobs), (moments, lanes, labels))

        parts = jax.tree.map(np.asarray, split(weights, all_lanes, keys(key, self.seeds)))
        start, end, random = (tuple(part[i] for part in parts) for i in range(3))
        features = end[0].swapaxes(0, 1)[:, :, -1]  # (part, seed, q, q), last layer
        spectrum = lambda matrices: np.linalg.eigvalsh(matrices)[:, ::-1][:, : 2 * self.classes]
        return Observation(
            error=("seed", error[:, -1]),
            **{
                k: ("what seed layer", self.shares(v))
                for k, v in (("start", start), ("end", end), ("random", random))
            },
            spectrum=("seed rank", spectrum(features.sum(0))),
            of_means=("seed rank", spectrum(features[0])),
        )

    def parts(
        self, training: Training, w: jax.Array, lane: Lanes, y: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        """Parts of H and of Δ at each hidden layer, shapes ``(part, layer, q, q)``."""
        params = training.unflatten(w)
        c = self.classes
        z = training.net.preactivations(params, lane.x)
        p = softmax(z[-1][:, :c])
        delta = p[:, None] - jnp.eye(c)
        above = params[-1]["w"][:c]  # of the outputs, (n, C, C)
        features = []
        errors = []
        for i in range(self.depth - 1, -1, -1):
            delta = (delta @ above) * (z[i] > 0)[:, None]
            above = params[i]["w"]
            features.insert(0, jnp.stack(feature_parts(jax.nn.relu(z[i]), y, c)))
            errors.insert(0, jnp.stack(error_parts(delta, p / len(p), y)))
        return jnp.stack(features, 1), jnp.stack(errors, 1)

    def shares(self, parts: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Shares of the outliers of H and of Δ that means carry: class means, with those of pairs for Δ."""
        features, errors = (list(part.swapaxes(0, 1)) for part in parts)
        top = self.classes - 1
        return np.stack(
            [explained(features, features[:1], top), explained(errors, errors[:2], top)]
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "largest training error", observed["error"].max(), "<=", 0.01, "choose more --steps"
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks = []
        for i in range(len(KINDS)):
            checks += self.judge_trained(predicted, observed, i)
            checks.append(self.judge_learning(predicted, observed, i))
        return checks

    def judge_trained(self, predicted: Prediction, observed: Observation, kind: int) -> list[Check]:
        """Judge the shares of features or of errors in the end: in the last layer, and by layer."""
        name = KINDS[kind]
        share = observed["end"][kind]
        values = {f"layer {k + 1}": share[:, k] for k in range(self.depth)}
        increasing = [f"layer {k + 1}" for k in np.argsort(predicted["rank"].astype(int))]
        return [
            equal(
                f"{name}_last",
                predicted["last"],
                share[:, -1],
                (SHARE, 2 - SHARE),
                label=f"{name}, last layer: share of the means",
            ),
            order(
                f"{name}_order",
                increasing,
                values,
                label=f"{name}: share of the means by layer",
            ),
        ]

    def judge_learning(self, predicted: Prediction, observed: Observation, kind: int) -> Check:
        """Compare the share of features or of errors in the last layer with that at the start."""
        name = KINDS[kind]
        moments = [("start", "end")[i] for i in np.argsort(predicted["moment"])]
        last = {moment: observed[moment][kind, :, -1] for moment in ("start", "end")}
        return order(
            f"{name}_learned",
            moments,
            last,
            label=f"{name}, last layer: share of the means by training",
        )

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        chance = (self.classes - 1) / (self.n - 1)
        reverse = ("layer", predicted["rank"][::-1])
        return [
            Rival(
                "any_grouping",
                predicted.replace(last=chance),
                "there are C means, too",
                label="any grouping of the images would do",
            ),
            Rival(
                "early_layers",
                predicted.replace(rank=reverse),
                "they are next to the images",
                label="early layers see classes best",
            ),
            Rival(
                "given",
                predicted.replace(moment=("moment", [1, 0])),
                "random layers keep the classes that the images have",
                label="training takes from what class means explain",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "start",
                observed.replace(end=observed.quantity("start")),
                "nothing has been learned",
                label="as at the start",
            ),
            self.random_classes(observed),
        ]

    def random_classes(self, observed: Observation) -> Control:
        """Return the control of shuffled classes."""
        return Control(
            "random_classes",
            observed.replace(end=observed.quantity("random")),
            "their means are not those of classes",
            label="random classes",
        )

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        layer = np.arange(1, self.depth + 1)
        shares = []
        kinds = (
            ("end", "trained", 0.0),
            ("start", "at the start", 0.5),
            ("random", "random classes", 1.0),
        )
        kinds = tuple(kind for kind in kinds if kind[0] in observed)
        for i, title in enumerate(
            ("Class means make the outliers of features …", "… and of backpropagated errors")
        ):
            curves = [
                observed_curve(layer, observed[k][i], label, shade=shade)
                for k, label, shade in kinds
            ]
            ends = (
                predicted_curve(layer[[0, -1]], (1, 1), "all"),
                rival_curve(layer[[0, -1]], (0, 0), "chance"),
            )
            shares.append(
                panel(
                    title, "hidden layer", "share of the C − 1 largest eigenvalues", *curves, *ends
                )
            )
        rank = np.arange(1, observed["spectrum"].shape[-1] + 1)
        both = (("spectrum", "H", 0.0), ("of_means", "class means", 0.7))
        last = [
            observed_curve(rank, np.maximum(observed[k], 1e-12), name, shade=shade)
            for k, name, shade in both
        ]
        return (
            *shares,
            panel("Features, last layer", "rank", "eigenvalue", *last, log="y", ylim=(1e-6, None)),
        )
