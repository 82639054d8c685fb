"""SGD noise has about 2L/K of the Hessian's trace on digits, but some sharp directions of the Hessian have none of it.

The lecture assumes that late in training the covariance C of an example's gradient is α times the Hessian H. With fresh
noise on the labels it is. With a network's own residuals the traces fit, and the directions do not.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

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
    Values,
    Within,
    assume,
    bound,
    compiled,
    context_curve,
    equal,
    keys,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.dynamics import descend
from steepest.nn.data import digits
from steepest.nn.losses import squared
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Params
from steepest.noise import gradient_moments

CLASSES = 10
ALIKE = np.full(CLASSES, CLASSES**-0.5)
APART = np.append([0.5**0.5, -(0.5**0.5)], np.zeros(CLASSES - 2))
SHOWN = 30
"""Sharpest directions that are kept for the figure."""


class Setting(NamedTuple):
    """Principal coordinates of centred digits, one-hot labels, a key of each initial point."""

    x: Values  # (n, inputs)
    y: Values  # (n, 10)
    keys: Key


@dataclass(frozen=True)
class NoiseAndCurvature(Claim):
    """A small tanh network on principal coordinates of digits, squared loss, trained by SGD; all matrices dense."""

    width: Count = 12  # hidden neurons [1]
    inputs: Annotated[int, Within(2, 64)] = 20  # principal coordinates of the images [1]
    examples: Annotated[int, Within(50, 1797)] = 1797  # images [1]
    lr: Positive = 0.2  # step size [1]
    batch: Count = 32  # examples a step, drawn with replacement [1]
    steps: Count = 6000  # steps [1]
    seeds: Seeds = 5  # networks [1]

    kind = "empirical law"
    statement = (
        r"C=\operatorname{Cov}_k(\nabla\ell_k):\quad \operatorname{tr}C\approx\tfrac{2L}{K}\operatorname{tr}H,"
        r"\qquad C\ne\alpha H:\ \ v=\tfrac{1}{\sqrt K}\mathbf 1\otimes u\ \Rightarrow\ "
        r"v^{\top}Cv\to0,\ v^{\top}Hv\sim\lambda_{\max}"
    )
    source = "Lecture of 16 November in [@hanin2022], claim of Wei and Schwab ([@wei2019b]); for 2L/K: [@mori2022]"
    corrections = (
        "The lecture takes C = αH at late times as a tool, “we don't prove this”. Here the cosine between them is "
        "0.6 to 0.7, and α goes from zero to two or three times its mean over the sharpest directions.",
    )
    remarks = (
        "C is the covariance of one example's gradient; that of a batch is the same matrix over b, up to the factor of "
        "finite data, so that the cosine does not depend on the batch.",
        "Zero is the wrong null for a cosine of two positive matrices. H turned by a random rotation still has 0.1 "
        "with C, and the identity 0.3; both are on the figure's scale.",
        "One is the right null only up to the number of examples. With residuals replaced by white noise of the same "
        "size, C = (2L/K) H holds in the mean, and the cosine is 0.98 with 1797 images, 0.93 with 400.",
        "Why a sharp direction is silent: the labels of an image add up to one, and so do the outputs after training, "
        "since the output layer's biases can always do that. A residual has then no component along the sum of the "
        "outputs, in which the Hessian is as large as in any other combination of outputs. The spectrum shows it: its "
        "largest eigenvalues come in groups of about ten, one for each output, and one in "
        "each group has no noise.",
        "For the squared loss H is close to JᵀJ and C is the same sum weighted by residuals. If these were white and "
        "independent of J, α would be their mean square 2L/K. They are not, and tr C is 5 to 15 % above: “about” in "
        "the first sentence means a fifth, and the interval may leave out one.",
        "Not tried: cross-entropy, for which C is the Gauss–Newton matrix if labels are drawn from the model.",
    )
    headline = ("trace", "cosine", "silent", "sharp")
    full = {"width": 32, "seeds": 8, "steps": 20000}
    tiny = {"width": 3, "inputs": 4, "examples": 200, "steps": 60, "seeds": 3}
    out_of_scope = {"steps": 5}

    def setting(self, key: Key) -> Setting:
        data = digits(n=self.examples)
        x = np.asarray(data.x) - np.asarray(data.x).mean(0)
        axes = np.linalg.svd(x, full_matrices=False)[2][: self.inputs]
        return Setting(x @ axes.T, np.asarray(data.y), keys(key, self.seeds))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        return [
            assume(
                "images a parameter",
                self.examples / self.parameters,
                ">",
                1,
                "C of fewer examples than parameters is not of full rank; raise --examples",
            )
        ]

    @property
    def net(self) -> Mlp:
        """The network, without its parameters."""
        return mlp((self.inputs, self.width, CLASSES), "tanh", c_w=1.0)

    @property
    def parameters(self) -> int:
        """Number of the network's parameters."""
        return (self.inputs + 1) * self.width + (self.width + 1) * CLASSES

    def predict(self, setting: Setting) -> Prediction:
        # below 0.85 it is not finite data, which leaves 0.98 of a true C = αH
        return Prediction(trace=1.0, cosine=0.85, white=0.95, apart=1.5, silent=0.0, sharp=0.5)

    def observe(self, setting: Setting, key: Key) -> Observation:
        rng = numpy_generator(key)
        ends = jax.tree.map(np.asarray, compiled(self.trained)(setting, keys(key, self.seeds)))
        look = compiled(self.matrices)
        rows = []
        for i in range(self.seeds):
            params = jax.tree.map(lambda part, i=i: part[i], ends)
            hessian, jacobian, residuals = (np.asarray(part) for part in look(setting, params))
            sums = along(params, ALIKE)
            differences = along(params, APART)
            rows.append(compare(hessian, jacobian, residuals, sums, differences, rng))
        shapes = {"alphas": "seed direction"}
        return Observation(
            **{
                name: (shapes.get(name, "seed"), np.array([row[name] for row in rows]))
                for name in rows[0]
            }
        )

    def trained(self, setting: Setting, order: Key) -> Params:
        """Train all networks at once."""
        losses = lambda params, x, y: squared(self.net.apply(params, x), y)

        def batches(params: Params, key: Key) -> jax.Array:
            # with replacement: drawing without sorts all images at every step, twenty times the work of the step
            i = jax.random.randint(key, (self.batch,), 0, self.examples)
            return losses(params, setting.x[i], setting.y[i]).mean()

        def one(initial: Key, order: Key) -> Params:
            return descend(
                lambda params: losses(params, setting.x, setting.y).mean(),
                self.net.init(initial),
                optax.sgd(self.lr),
                self.steps,
                record=self.steps,
                stochastic=batches,
                key=order,
            ).params

        return jax.vmap(one)(setting.keys, order)

    def matrices(self, setting: Setting, params: Params) -> tuple[jax.Array, ...]:
        """Return the Hessian ``(P, P)``, the outputs' Jacobian ``(n, K, P)`` and residuals ``(n, K)``."""
        flat, unravel = ravel_pytree(params)
        outputs = lambda flat: self.net.apply(unravel(flat), setting.x)
        risk = lambda flat: squared(outputs(flat), setting.y).mean()
        return jax.hessian(risk)(flat), jax.jacfwd(outputs)(flat), outputs(flat) - setting.y

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "largest risk over that of a constant guess",
                observed["risk"].max(),
                "<",
                0.5,
                "it is not late in training; raise --steps or --lr",
            )
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        return [
            equal(
                "trace",
                predicted["trace"],
                observed["trace"],
                0.2,  # residuals are neither white nor independent of the Jacobian
                label="tr C/tr H in units of 2L/K",
            ),
            bound(
                "cosine",
                observed["cosine"],
                at_most=float(predicted["cosine"]),
                label="cosine between C and H",
            ),
            bound(
                "apart",
                observed["cosine"] / observed["isotropic"],
                at_least=float(predicted["apart"]),
                label="cosine between C and H over that of C and the identity",
            ),
            bound(
                "white",
                observed["white"],
                at_least=float(predicted["white"]),
                label="cosine between C and H if residuals were white noise",
            ),
            equal(
                "silent",
                predicted["silent"],
                observed["silent"],
                1e-3,
                absolute=True,
                label="noise along the sum of the outputs, in units of 2L/K times its curvature",
            ),
            bound(
                "sharp",
                observed["sharp"],
                at_least=float(predicted["sharp"]),
                label="curvature of that direction over λ_max",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        return [
            Rival(
                "half",
                predicted.replace(trace=0.5),
                "L is the mean square of the residuals",
                label="tr C = (L/K) tr H",
            ),
            Rival(
                "one_less",
                predicted.replace(trace=CLASSES / (CLASSES - 1)),
                "residuals add up to zero, so that K − 1 of them are free",
                label="tr C = 2L/(K − 1) tr H",
                accepted="the two differ by a ninth, less than the fifth that is judged",
            ),
            Rival(
                "all_outputs",
                predicted.replace(trace=float(CLASSES)),
                "one residual moves all outputs",
                label="tr C = 2L tr H",
            ),
            Rival(
                "proportional",
                predicted.replace(silent=1.0),
                "the lecture's C = αH",
                label="every direction has the mean's α",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        return [
            Control(
                "white_residuals",
                observed.replace(
                    cosine=("seed", observed["white"]), silent=("seed", observed["white_silent"])
                ),
                "fresh label noise has the Hessian's covariance",
                label="white residuals in place of the network's own",
            ),
            Control(
                "own_residuals",
                observed.replace(white=("seed", observed["cosine"])),
                "the network's residuals are not white",
                label="its own residuals in place of white ones",
            ),
            Control(
                "turned",
                observed.replace(cosine=("seed", observed["turned"])),
                "H in unrelated directions",
                label="H turned by a random rotation, in the mean",
            ),
            Control(
                "contrast",
                observed.replace(
                    silent=("seed", observed["contrast"]), sharp=("seed", observed["flattest"])
                ),
                "one output up and another down is not silent, and not every sum is sharp",
                label="a difference of two outputs; the flattest sum",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        places = np.arange(self.seeds)
        curves = [
            observed_curve(places, observed["cosine"], "C and H", kind="points"),
            predicted_curve(places, observed["white"], "white residuals and H"),
            context_curve(places, observed["isotropic"], "C and the identity"),
            rival_curve(places, observed["turned"], "C and H turned"),
        ]
        rank = np.arange(1, observed["alphas"].shape[1] + 1)
        return (
            panel(
                "α in the sharpest directions of H",
                "rank of the direction",
                "vᵀCv / vᵀHv in units of 2L/K",
                *[
                    observed_curve(rank, row, "networks" if i == 0 else "", kind="points")
                    for i, row in enumerate(observed["alphas"])
                ],
                rival_curve(rank, np.ones(rank.size), "C = αH"),
            ),
            panel("Cosines", "network", "cosine", *curves, ylim=(0, 1.05)),
        )


def compare(
    hessian: Values,
    jacobian: Values,
    residuals: Values,
    sums: Values,
    differences: Values,
    rng: np.random.Generator,
) -> dict[str, Values]:
    """Compare the covariance of the examples' gradients with the Hessian.

    Args:
        hessian: H, shape ``(P, P)``.
        jacobian: of the outputs, shape ``(n, K, P)``.
        residuals: outputs less targets, shape ``(n, K)``.
        sums: orthonormal directions in which all outputs move alike, shape ``(P, features)``.
        differences: the same for the first output less the second, shape ``(P, features)``.
        rng: draws white residuals of the same mean square.

    Returns:
        trace: tr C/tr H over 2L/K. cosine, white, isotropic: cosine between C and H, the C of white residuals and H,
        C and the identity. turned: mean cosine of C and H after a random rotation. alphas: vᵀCv/vᵀHv over 2L/K,
        sharpest directions first. silent, white_silent, contrast: vᵀCv/vᵀHv over 2L/K along the
        sharpest sum of outputs, with white residuals, and along the like difference of two outputs. sharp, flattest:
        the sharpest and the flattest sum's curvature over λ_max. risk: L over that of a constant guess.
    """
    classes = residuals.shape[1]
    unit = (residuals**2).mean()  # 2L/K
    noise = _covariance(jacobian, residuals)
    white = _covariance(jacobian, rng.normal(scale=unit**0.5, size=residuals.shape))
    values, vectors = np.linalg.eigh(hessian)
    top = vectors[:, ::-1][:, :SHOWN]
    within, mixing = np.linalg.eigh(sums.T @ hessian @ sums)
    sharpest = sums @ mixing[:, -1]
    share = lambda matrix, v: (v @ matrix @ v) / (v @ hessian @ v) / unit
    return {
        "trace": np.trace(noise) / np.trace(hessian) / unit,
        "cosine": _cosine(noise, hessian),
        "white": _cosine(white, hessian),
        "isotropic": _cosine(noise, np.eye(len(noise))),
        "turned": np.trace(noise) * np.trace(hessian) / len(noise) / _norms(noise, hessian),
        "alphas": np.array([share(noise, v) for v in top.T]),
        "silent": share(noise, sharpest),
        "white_silent": share(white, sharpest),
        "contrast": share(noise, differences @ mixing[:, -1]),
        "sharp": within[-1] / values[-1],
        "flattest": within[0] / values[-1],
        "risk": unit * classes / (classes - 1) * classes,
    }


def along(params: Params, outputs: Values) -> Values:
    """Return the directions in which the output layer moves one combination of outputs, shape ``(P, features)``.

    Args:
        params: weights and biases of all layers.
        outputs: the combination, of unit length, shape ``(K,)``.
    """
    zero = jax.tree.map(lambda part: np.zeros(part.shape), params)
    _, features = zero[-1]["w"].shape
    columns = []
    for i in range(features + 1):
        weights = np.zeros((outputs.size, features))
        if i < features:
            weights[:, i] = outputs
        biases = outputs if i == features else np.zeros(outputs.size)
        moved = (*zero[:-1], {"w": weights, "b": biases})
        columns.append(np.concatenate([part.ravel() for part in jax.tree.leaves(moved)]))
    return np.stack(columns, 1)


def _covariance(jacobian: Values, residuals: Values) -> Values:
    """Return the covariance of gradients J_kᵀ r_k, shape ``(P, P)``."""
    gradients = np.einsum("nk,nkp->np", residuals, jacobian)
    return gradient_moments(gradients, 1, "replacement").covariance


def _norms(a: Values, b: Values) -> float:
    return float(np.linalg.norm(a) * np.linalg.norm(b))


def _cosine(a: Values, b: Values) -> float:
    return float((a * b).sum()) / _norms(a, b)
