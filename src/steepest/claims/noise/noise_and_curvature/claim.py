"""On digits, the noise covariance of SGD has a trace of about 2L/K times the trace of the Hessian.

This is late in training; L is the loss, and K the number of classes. Some sharp directions of the Hessian have none of
this noise. The lecture assumes that late in training the covariance C of an example's gradient is α times the Hessian
H. With fresh noise on the labels this is true. With a network's own residuals the traces fit, but the directions do
not. Under cross-entropy with labels that the network samples, C is the mean Hessian at any weights: it is the Fisher
information.
"""

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from steepest import kit
from steepest.claims.noise.noise_and_curvature.experiment import along, compare, compare_labels
from steepest.dynamics import descend
from steepest.nn.data import digits
from steepest.nn.losses import cross_entropy, squared
from steepest.nn.networks import Mlp, mlp
from steepest.nn.types import Params, Values

CLASSES = 10
ALIKE = np.full(CLASSES, CLASSES**-0.5)
APART = np.append([0.5**0.5, -(0.5**0.5)], np.zeros(CLASSES - 2))

POINTS = ("before training", "after")
SURE = (1.0, 4.0)  # factors of the outputs as logits; trained ones go from zero to one
LABELS = (1, 4, 16)
BATCH = 8  # columns of a Hessian at once
DIRECTIONS = 40  # random ones, in which the matrices of cross-entropy are compared


class Setting(NamedTuple):
    """Principal coordinates of centred digits, ``(n, inputs)``, one-hot labels, ``(n, 10)``, keys of initial points."""

    x: Values
    y: Values
    keys: kit.Key


@kit.claim
class NoiseAndCurvature(kit.Claim[Setting]):
    """A small tanh network on principal coordinates of digits, squared loss, trained by SGD; all matrices dense."""

    width: kit.Count = kit.param(
        12, "hidden neurons", unit="neurons", scope=kit.between(8, 20, "matrices are dense")
    )
    inputs: Annotated[int, kit.Within(2, 64)] = kit.param(
        20, "principal coordinates of the images", scope=kit.between(10, 30, "matrices are dense")
    )
    examples: Annotated[int, kit.Within(50, 1797)] = kit.param(
        1797, "images", scope=kit.between(1000, 1797, "white noise on fewer has other directions")
    )
    lr: kit.Positive = kit.param(0.2, "step size", scope=kit.between(0.1, 0.3))
    batch: kit.Count = kit.param(
        32, "examples a step, drawn with replacement", unit="examples", scope=kit.between(8, 64)
    )
    steps: kit.Count = kit.param(
        6000, "steps", unit="steps", scope=kit.between(5000, 10_000, "it must be late in training")
    )
    seeds: kit.Seeds = kit.param(6, "networks")

    kind = "empirical law"
    says = {
        "has a trace of about 2L/K times the trace of the Hessian": "trace",
        "Some sharp directions of the Hessian": "sharp",
        "have none of this noise": "silent",
    }
    tiny = {"width": 3, "inputs": 4, "examples": 200, "steps": 60, "seeds": 3}
    full = {"width": 32, "seeds": 8, "steps": 20000}
    out_of_scope = {"steps": 5}

    @property
    def net(self) -> Mlp:
        """The network, without its parameters."""
        return mlp((self.inputs, self.width, CLASSES), "tanh", c_w=1.0)

    @property
    def parameters(self) -> int:
        """Number of the network's parameters."""
        return (self.inputs + 1) * self.width + (self.width + 1) * CLASSES

    def axes(self):
        return {"point": POINTS, "labels": LABELS}

    def setting(self, key):
        data = digits(n=self.examples)
        x = np.asarray(data.x) - np.asarray(data.x).mean(0)
        axes = np.linalg.svd(x, full_matrices=False)[2][: self.inputs]
        return Setting(x @ axes.T, np.asarray(data.y), kit.keys(key, self.seeds))

    def hypotheses(self, setting):
        yield kit.assume(
            "images a parameter",
            self.examples / self.parameters,
            ">",
            1,
            "C of fewer examples than parameters is not of full rank; raise --examples",
        )

    def predict(self, setting):
        # a cosine below 0.85 is not finite data, which leave 0.98 of a true C = αH
        # the moment of D labels an image is its mean, the Hessian, and noise of size 1/√D, of which a cosine sees the
        # square
        gap = np.broadcast_to(1 / np.array(LABELS), (len(POINTS), len(LABELS)))
        return kit.law(
            trace=1.0,
            silent=0.0,
            sharp=2 / 3,
            cosine=0.85,
            apart=1.5,
            white=0.9,
            gap=("point labels", gap),
            ratio=("point", np.ones(len(POINTS))),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        train = kit.compiled(self.trained)
        starts, ends = jax.tree.map(np.asarray, train(setting, kit.keys(key, self.seeds)))
        look = kit.compiled(self.matrices)

        def compared(params: Params) -> dict[str, Values]:
            hessian, jacobian, residuals = (np.asarray(part) for part in look(setting, params))
            sums = along(params, ALIKE)
            differences = along(params, APART)
            return compare(hessian, jacobian, residuals, sums, differences, rng)

        networks = lambda all_of: [
            jax.tree.map(lambda part, i=i: part[i], all_of) for i in range(self.seeds)
        ]
        late = [compared(params) for params in networks(ends)]
        early = [compared(params) for params in networks(starts)]
        shapes = {"alphas": "seed direction"}
        arrays = {
            name: (shapes.get(name, "seed"), np.array([row[name] for row in late]))
            for name in late[0]
        }
        before = {
            f"early_{name}": ("seed", np.array([row[name] for row in early]))
            for name in ("trace", "silent", "sharp")
        }
        return kit.seen(
            **arrays,
            **before,
            **self.drawn_labels(setting, (networks(starts), networks(ends)), rng),
        )

    def drawn_labels(
        self, setting: Setting, points: Sequence[Sequence[Params]], rng: np.random.Generator
    ) -> dict[str, tuple[str, Values]]:
        """Compare gradients and Hessians of cross-entropy, with labels from networks before and after training."""
        look = kit.compiled(self.likelihood)
        rows = []
        for factor, networks in zip(SURE, points, strict=True):
            for params in networks:
                frame = np.linalg.qr(rng.standard_normal((self.parameters, DIRECTIONS)))[0]
                parts = look(setting, params, frame, factor)
                hessian, jacobian, chances = (np.asarray(part) for part in parts)
                rows.append(compare_labels(hessian, jacobian, chances, setting.y, LABELS, rng))
        dims = {"ratio": "point seed", "data_ratio": "point seed"}
        return {
            name: (
                dims.get(name, "point seed labels"),
                np.reshape(
                    [row[name] for row in rows], (len(points), self.seeds, *rows[0][name].shape)
                ),
            )
            for name in rows[0]
        }

    def likelihood(
        self, setting: Setting, params: Params, frame: Values, factor: float
    ) -> tuple[jax.Array, ...]:
        """Return the mean Hessian of cross-entropy over labels from the network, in some directions of the weights.

        Args:
            setting: the images.
            params: of the network.
            frame: orthonormal directions, shape ``(P, directions)``.
            factor: logits in units of the outputs.

        Returns:
            the Hessian, the logits' Jacobian and the probabilities of all labels.
        """
        flat, unravel = ravel_pytree(params)
        logits = lambda moved: factor * self.net.apply(unravel(flat + frame @ moved), setting.x)
        origin = jnp.zeros(frame.shape[1])
        probabilities = jax.nn.softmax(logits(origin))
        # cross-entropy is linear in the labels, whose mean these are
        risk = lambda moved: cross_entropy(logits(moved), probabilities).mean()
        return jax.hessian(risk)(origin), jax.jacfwd(logits)(origin), probabilities

    def trained(self, setting: Setting, order: kit.Key) -> tuple[Params, Params]:
        """Train all networks at once; return them before and after."""
        losses = lambda params, x, y: squared(self.net.apply(params, x), y)

        def batches(params: Params, key: kit.Key) -> jax.Array:
            # with replacement: drawing without sorts all images at every step, twenty times the work of the step
            i = jax.random.randint(key, (self.batch,), 0, self.examples)
            return losses(params, setting.x[i], setting.y[i]).mean()

        def one(initial: kit.Key, order: kit.Key) -> tuple[Params, Params]:
            start = self.net.init(initial)
            end = descend(
                lambda params: losses(params, setting.x, setting.y).mean(),
                start,
                optax.sgd(self.lr),
                self.steps,
                record=self.steps,
                stochastic=batches,
                key=order,
            ).params
            return start, end

        return jax.vmap(one)(setting.keys, order)

    def matrices(self, setting: Setting, params: Params) -> tuple[jax.Array, ...]:
        """Return the Hessian ``(P, P)``, the outputs' Jacobian ``(n, K, P)`` and residuals ``(n, K)``."""
        flat, unravel = ravel_pytree(params)
        outputs = lambda flat: self.net.apply(unravel(flat), setting.x)
        output = lambda flat, image: self.net.apply(unravel(flat), image[None])[0]
        slope = jax.grad(lambda flat: squared(outputs(flat), setting.y).mean())
        column = lambda direction: jax.jvp(slope, (flat,), (direction,))[1]
        # in batches that stay in the cache
        hessian = jax.lax.map(column, jnp.eye(flat.size), batch_size=BATCH)
        jacobian = jax.vmap(jax.jacrev(output), (None, 0))(flat, jnp.asarray(setting.x))
        return hessian, jacobian, outputs(flat) - setting.y

    def run_conditions(self, observed):
        yield kit.assume(
            "largest risk over the risk of a constant guess",
            observed["risk"].max(),
            "<",
            0.5,
            "it is not late in training; raise --steps or --lr",
        )

    def judge(self, law, seen):
        yield kit.follows(
            "trace",
            law.trace,
            seen.trace,
            0.2,  # residuals are neither white nor independent of the Jacobian
            label="tr C/tr H in units of 2L/K",
        )
        yield kit.follows(
            "silent",
            law.silent,
            seen.silent,
            1e-3,
            absolute=True,
            label="noise along the sum of the outputs, in units of 2L/K times its curvature",
        )
        yield kit.at_least(
            "sharp", law.sharp, seen.sharp, label="curvature of that direction over λ_max"
        )
        yield kit.at_most("cosine", law.cosine, seen.cosine, label="cosine between C and H")
        yield kit.at_least(
            "apart",
            law.apart,
            seen.cosine / seen.isotropic,
            label="cosine between C and H over the cosine between C and the identity",
        )
        yield kit.at_least(
            "white",
            law.white,
            seen.white,
            label="cosine between C and H if residuals were white noise",
        )
        yield kit.power(
            "model_labels",
            law.gap,
            seen.gap,
            0.25,  # six networks leave up to 0.2; the neighbouring powers are a half off
            over="labels",
            label="labels from the network: 1 − cosine between C and H against labels an image",
        )
        yield kit.follows(
            "model_trace",
            law.ratio,
            seen.ratio,
            0.05,  # six networks leave up to 2 %, of 1000 images 3 %
            label="labels from the network: tr C/tr H",
        )

    def rivals(self, setting, law):
        yield kit.rival("tr C = (L/K) tr H", "L is the mean square of the residuals", trace=0.5)
        yield kit.rival(
            "tr C = 2L/(K − 1) tr H",
            "residuals add up to zero, so that K − 1 of them are free",
            accepted="the two differ by a ninth, less than the fifth that is judged",
            trace=CLASSES / (CLASSES - 1),
        )
        yield kit.rival("tr C = 2L tr H", "one residual moves all outputs", trace=float(CLASSES))
        yield kit.rival("every direction has the mean's α", "the lecture's C = αH", silent=1.0)
        yield kit.rival(
            "labels from the network: tr C = K/(K − 1) tr H",
            "K probabilities add up to one, so that K − 1 are free",
            ratio=CLASSES / (CLASSES - 1),
        )
        yield kit.rival(
            "1 − cosine falls like 1/√D", "means of D labels are 1/√D off", gap=law.gap**0.5
        )

    def controls(self, seen):
        yield kit.control(
            "networks before training",
            "outputs do not add up to one, and the Hessian is not JᵀJ",
            trace=seen.early_trace,
            silent=seen.early_silent,
            sharp=seen.early_sharp,
        )
        yield kit.control(
            "residuals along the outputs that their image moves most",
            "residuals that know the Jacobian are not moved like others",
            id="aligned",
            trace=seen.aligned,
        )
        yield kit.control(
            "white residuals in place of the network's own",
            "fresh label noise has the Hessian's covariance",
            cosine=seen.white,
            silent=seen.white_silent,
        )
        yield kit.control(
            "its own residuals in place of white ones",
            "the network's residuals are not white",
            white=seen.cosine,
        )
        yield kit.control(
            "H turned by a random rotation, in the mean",
            "H in unrelated directions",
            id="turned",
            cosine=seen.turned,
        )
        yield kit.control(
            "a difference of two outputs; the flattest sum",
            "one output up and another down is not silent, and not every sum is sharp",
            id="contrast",
            silent=seen.contrast,
            sharp=seen.flattest,
        )
        yield kit.control(
            "the data's labels under cross-entropy",
            "they are no draws of the network's",
            gap=seen.data_gap,
            ratio=seen.data_ratio,
        )
        yield kit.control(
            "labels at random under cross-entropy",
            "all labels have the same chance, and not the network's",
            gap=seen.even_gap,
        )

    def figure(self, law, seen, rivals):
        places = np.arange(self.seeds)
        rank = np.arange(1, seen.sizes["direction"] + 1)
        networks = [
            kit.observed_curve(rank, row, "networks" if i == 0 else "", kind="points")
            for i, row in enumerate(seen.alphas.values)
        ]
        yield kit.panel(
            "α in the sharpest directions of H",
            "rank of the direction",
            "vᵀCv / vᵀHv in units of 2L/K",
            *networks,
            kit.rival_curve(rank, np.ones(rank.size), "C = αH"),
        )
        yield kit.panel(
            "Cosines",
            "network",
            "cosine",
            kit.observed_curve(places, seen.cosine, "C and H", kind="points"),
            kit.predicted_curve(places, seen.white, "white residuals and H"),
            kit.context_curve(places, seen.isotropic, "C and the identity"),
            kit.rival_curve(places, seen.turned, "C and H turned"),
            ylim=(0, 1.05),
        )
