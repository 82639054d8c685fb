"""On parities a wide ReLU network near its start needs 1/(εγ_F²) steps to risk ε; widths far below γ⁻⁸ suffice.

With γ the margin of the features at the start, two-layer networks of width γ⁻⁸ are guaranteed the risk ε after order
1/(εγ²) steps. On parities the steps on frozen features are (e^z + z − 1)/γ_F², e^{−z} = e^ε − 1, with the margin γ_F in
the Frobenius norm and no other constant; those of trained networks of width 1024 are within a fifth of it at ε = 0.1.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest.claim import (
    Check,
    Claim,
    Count,
    Fraction,
    Hypothesis,
    Key,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    agreement,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    idle,
    keys,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.descent._shares import equal_share
from steepest.claims.descent.ntk_margin_guarantee.experiment import (
    GuaranteePoint,
    cube,
    feature_kernel,
    feature_margins,
    frozen_steps,
    steps_to,
    trained_steps,
)
from steepest.nn.data import balanced_choices, digits
from steepest.programs import feature_margin, kernel_margin

FAILURE = 0.01  # δ of the guarantee
TRAINED = 2  # of the larger risks, which trained networks are followed to
SLOW = (
    2500  # steps after which a trained network has not arrived; 577 are predicted for the slowest
)
TRAINED_SETS = 4  # of the smaller cubes


class Setting(NamedTuple):
    """Parities on all points of cubes, and images of threes and eights with neurons, one set a draw."""

    cubes: list[tuple[Values, Values]]
    images: Values  # (draws, n, 64), of length one
    labels: Values  # (draws, n)
    neurons: Values  # (draws, features, 64)


@dataclass(frozen=True)
class NtkMarginGuarantee(Claim):
    """Parity of two of d bits, all points: frozen features and trained networks; threes and eights, frozen."""

    # d, inputs of the parities; networks are trained on the first four [1]
    dimensions: tuple[Count, ...] = (2, 3, 4, 5, 6)
    # ε, decreasing; networks are trained to the first two [1]
    epsilons: tuple[Positive, ...] = (0.3, 0.1, 0.03, 0.01)
    features: Count = 4096  # neurons of the frozen features [neurons]
    width: Count = 1024  # neurons of trained networks [neurons]
    narrow: Count = 16  # neurons of the narrow ones [neurons]
    seeds: Seeds = 6  # networks of each kind [1]
    flip: Fraction = 0.0  # probability that a label is wrong [1]
    draws: Seeds = 3  # sets of images [1]
    images: Count = 40  # of each set [1]
    image_risk: Positive = 0.003  # ε for the images [1]

    kind = "limit"
    statement = (
        r"\text{parities:}\quad "
        r"T_\varepsilon\,\varepsilon\,\gamma_F^2\to1,\quad T_\varepsilon=\frac{e^z+z-1}{\gamma_F^2},\ "
        r"e^{-z}=e^{\varepsilon}-1,\qquad \gamma_F^2=\mathbb{E}_w\Big\|\mathbb{E}\,y\,x\,1[\langle w,x\rangle>0]"
        r"\Big\|^2,\qquad T_\varepsilon\le\frac{2\lambda^2}{\varepsilon}\ \text{guaranteed}"
    )
    headline = ("frozen", "frozen_worst", "trained_0", "trained_3", "narrow")
    source = (
        "The talk [@telgarsky2024]; [@ji2020a], theorem 2.2; the sharp constant is worked out here"
    )
    corrections = (
        "The talk asks for width γ⁻⁸ and says itself that this is too much: here most networks of 16 neurons arrive "
        "within three times the steps, where γ⁻⁸ is between 4·10³ and 2·10⁷.",
    )
    remarks = (
        "In the guarantee λ = 4(√(2 log(4n/δ)) + log(4/ε))/γ, with δ = 0.01; it leaves a factor of more than a "
        "thousand and cannot fail.",
        "On a parity all points of the cube have one margin along the mean feature, by symmetry, so that the flow "
        "stays on one ray: ż = γ_F² σ(−z). The random output at the start blurs this at large ε.",
        "The talk's margin bounds every neuron by itself (2,∞), and it calls this basically equivalent to the "
        "Frobenius norm: γ_F/γ is 1 at d = 2, 1.12 to 1.14 from d = 3 to 6, and about 1.2 on the digits.",
        "On real data T ε γ_F² tends to one like 1/log(1/ε) at best, as margins of logistic regression do.",
        "Trained networks are not quite lazy: in an exploration neurons moved by 0.3 (d = 2) to 1.4 (d = 5) until ε = "
        "0.03, and needed 5 to 19 % more steps than predicted there. They are judged at ε = 0.1. "
        "In the diagram, at width 512 and ε = 0.01, they need up to 45 % more (d = 3) and 15 % fewer (d = 6): "
        "there the margin of the start no longer tells.",
        "Of twenty fresh seeds 17 hold and three are inconclusive: intervals of trained networks, six at each d, reach "
        "out of the margin of a fifth, or of 0.2 in the exponent. Nothing was changed after them.",
        "All points of the cube are trained on, so that the risk is that of the population; how many samples are "
        "needed is not tested, nor are real images with trained networks.",
    )
    full = {"seeds": 20, "draws": 10, "width": 4096, "epsilons": (0.3, 0.1, 0.03, 0.01, 0.003)}
    tiny = {
        "dimensions": (2, 3, 4, 5),
        "epsilons": (0.5, 0.4, 0.3),
        "features": 64,
        "width": 32,
        "narrow": 8,
        "seeds": 3,
        "images": 8,
        "image_risk": 0.3,
    }
    out_of_scope = {"flip": 0.1}
    point = GuaranteePoint

    def setting(self, key: Key) -> Setting:
        data = digits((3, 8))
        for_images, for_neurons = jax.random.split(key)
        chosen = balanced_choices(data, self.images // 2, keys(for_images, self.draws))
        chosen = chosen.reshape(self.draws, -1)
        images = np.asarray(data.x)[chosen]
        draw = compiled(
            lambda key: jax.random.normal(key, (self.draws, self.features // 8, data.d))
        )
        return Setting(
            [cube(d, self.flip) for d in self.dimensions],
            images / np.linalg.norm(images, axis=2, keepdims=True),
            (np.asarray(data.y) @ np.array([1.0, -1.0]))[chosen],
            np.asarray(draw(for_neurons)),
        )

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        margins = [feature_margins(x, y).neuron for x, y in setting.cubes]
        return [
            assume("label noise", self.flip, "==", 0, "with wrong labels there is no margin"),
            assume("least margin γ", min(margins), ">", 0, "the features must separate the data"),
            assume("parities", len(self.dimensions), ">=", TRAINED_SETS, "exponents are fitted"),
            assume("risks", len(self.epsilons), ">=", 3, "an exponent is fitted over them"),
        ]

    def predict(self, setting: Setting) -> Prediction:
        margins = [feature_margins(x, y) for x, y in setting.cubes]
        frobenius = np.array([margin.frobenius for margin in margins])
        neuron = np.array([margin.neuron for margin in margins])
        real = []
        for x, y, w in zip(setting.images, setting.labels, setting.neurons, strict=True):
            real.append(
                (kernel_margin(feature_kernel(x, w), y).margin, feature_margin(x, y, w, 1e-4).value)
            )
        images, images_neuron = np.array(real).T
        epsilon = np.array(self.epsilons)
        sizes = np.array([len(y) for _, y in setting.cubes])[:, None]
        reach = np.sqrt(2 * np.log(4 * sizes / FAILURE)) + np.log(4 / epsilon)
        return Prediction(
            steps=("set epsilon", steps_to(epsilon, frobenius[:, None])),
            steps_neuron=("set epsilon", steps_to(epsilon, neuron[:, None])),
            margin=("set", neuron),
            guaranteed=("set epsilon", 2 * (reach / (neuron[:, None] / 4)) ** 2 / epsilon),
            in_margin=-2.0,
            in_epsilon=-1.0,
            images=("draw", 1 / (self.image_risk * images**2)),
            images_neuron=("draw", 1 / (self.image_risk * images_neuron**2)),
            narrow=1.0,  # share of the narrow networks that arrive within a factor of three
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        for_frozen, for_wide, for_narrow = keys(key, 3)
        rng = numpy_generator(for_frozen)
        frozen = []
        for x, y in setting.cubes:
            kernels = []
            outputs = []
            for _ in range(self.seeds):
                weights = rng.standard_normal((self.features, x.shape[1]))
                signs = rng.choice([-1.0, 1.0], self.features)
                kernels.append(feature_kernel(x, weights))
                outputs.append(np.maximum(x @ weights.T, 0) @ signs / np.sqrt(self.features))
            frozen.append(frozen_steps(np.stack(kernels), y, np.stack(outputs), self.epsilons))
        kernels = [
            feature_kernel(x, w) for x, w in zip(setting.images, setting.neurons, strict=True)
        ]
        images = frozen_steps(
            np.stack(kernels), setting.labels, 0 * setting.labels, (self.image_risk,)
        )
        wide, moved, narrow = self.trained(setting, for_wide, for_narrow)
        return Observation(
            frozen=("set seed epsilon", frozen),
            images=("draw", images[:, 0]),
            trained=("set seed epsilon", wide),
            moved=("set seed", moved),
            narrow=("set seed epsilon", narrow),
        )

    def trained(self, setting: Setting, *seeds: Key) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return steps of wide networks, ``(sets, seeds, epsilons)``, how far they moved, and steps of narrow ones."""
        cubes = setting.cubes[:TRAINED_SETS]
        most = max(x.shape[0] for x, _ in cubes)
        inputs = max(x.shape[1] for x, _ in cubes)
        padded = np.zeros((len(cubes), most, inputs))
        labels = np.ones((len(cubes), most))
        share = np.zeros((len(cubes), most))
        for i, (x, y) in enumerate(cubes):
            padded[i, : len(x), : x.shape[1]] = x
            labels[i, : len(x)] = y
            share[i, : len(x)] = 1 / len(x)
        targets = np.array(self.epsilons[:TRAINED])
        widths = np.array([self.width, self.narrow])

        def every(seeds: jax.Array) -> tuple:
            def one(lane: tuple) -> tuple:
                x, y, weight, width, key = lane
                return trained_steps(x, y, weight, key, width, self.width, jnp.array(targets), SLOW)

            places = np.indices((2, len(cubes), self.seeds)).reshape(3, -1)
            data = (jnp.array(padded), jnp.array(labels), jnp.array(share))
            lanes = tuple(part[places[1]] for part in data)
            split = jax.vmap(lambda key: keys(key, len(cubes) * self.seeds))(seeds).reshape(-1)
            return jax.lax.map(one, (*lanes, jnp.array(widths)[places[0]], split))

        first, moved = compiled(every)(jnp.stack(seeds))
        first = np.asarray(first).reshape(2, len(cubes), self.seeds, -1)
        return first[0], np.asarray(moved).reshape(2, len(cubes), -1)[0], first[1]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        small = np.array(self.epsilons)
        # at ε = 0.3 the random output at the start counts as much as what is learned
        judged = small < 0.2 if (small < 0.2).any() else small < 1
        ratio = (observed["frozen"] / predicted["steps"][:, None])[..., judged]
        trained = observed["trained"] / predicted["steps"][:TRAINED_SETS, None, :TRAINED]
        narrow = observed["narrow"] / predicted["steps"][:TRAINED_SETS, None, :TRAINED]
        margin = predicted["margin"]
        guaranteed = observed["frozen"] / predicted["guaranteed"][:, None]
        return [
            equal(
                "frozen",
                1.0,
                ratio.mean((0, 2)),
                0.025,  # 1 % from 4096 neurons a set, and what the output at the start leaves
                label="frozen features: steps / (e^z + z − 1)/γ_F², mean over d and ε",
            ),
            agreement(
                "frozen_worst",
                np.abs(ratio.mean(1) - 1).max(),
                0.06,  # the largest of 15, of 1 to 2 % each at six networks
                label="the same: worst deviation of a mean over networks",
            ),
            *(
                equal(
                    f"trained_{i}",
                    1.0,
                    trained[i, :, -1],
                    0.2,  # features move: 2 to 12 % at these widths
                    label=f"trained networks: steps / predicted, d = {self.dimensions[i]}",
                )
                for i in range(TRAINED_SETS)
            ),
            exponent(
                "in_margin",
                float(predicted["in_margin"]),
                margin[1:],
                observed["frozen"][1:, :, -1].T,
                0.08,  # γ_F/γ varies by 1.5 % over these d
                label="frozen: steps against γ",
            ),
            exponent(
                "trained_in_margin",
                float(predicted["in_margin"]),
                margin[1:TRAINED_SETS],
                observed["trained"][1:, :, -1].T,
                0.2,
                label="trained: steps against γ",
            ),
            exponent(
                "in_epsilon",
                float(predicted["in_epsilon"]),
                small[judged],
                observed["frozen"][..., judged].mean(0),
                0.05,  # (e^z + z − 1) ε falls by 6 % from ε = 0.1 to 0.01
                label="frozen: steps against ε",
            )
            if judged.sum() > 2
            else idle(agreement("in_epsilon", 0.0, 1.0), "too few risks to fit an exponent"),
            equal(
                "images",
                1.0,
                observed["images"] / predicted["images"],
                0.1,  # of order 1/log(1/ε)
                aggregate="all",
                label=f"threes and eights, frozen: T ε γ_F² at ε = {self.image_risk:g}",
            ),
            equal_share(
                "narrow",
                float(predicted["narrow"]),
                narrow[..., -1] <= 3,
                0.4,  # a few of so narrow networks take longer or never arrive
                label=f"share of networks of {self.narrow} neurons that need at most 3 times the predicted steps",
            ),
            idle(
                bound(
                    "guarantee",
                    guaranteed.max(),
                    at_most=1.0,
                    label="frozen: most steps / those guaranteed, 2λ²/ε",
                ),
                "the guarantee leaves a factor of more than a thousand",
            ),
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        margin = predicted["margin"][:, None]
        return [
            Rival(
                "neuron_margin",
                predicted.replace(
                    steps=("set epsilon", predicted["steps_neuron"]),
                    images=("draw", predicted["images_neuron"]),
                ),
                "the margin of the talk and of the theorem",
                label="the constant has the 2,∞ margin",
            ),
            Rival(
                "leading_order",
                predicted.replace(steps=("set epsilon", predicted["steps"] * margin)),
                "the margin counts once",
                label="T ∝ 1/(εγ)",
            ),
            Rival(
                "slower",
                predicted.replace(in_margin=-1.0, in_epsilon=-0.5),
                "accelerated methods",
                label="T ∝ 1/(√ε γ)",
            ),
            Rival(
                "convex_rate",
                predicted.replace(in_margin=-2.5, in_epsilon=-2.0),
                "stochastic convex rates know no realizability",
                label="T ∝ 1/(ε²γ^{5/2})",
            ),
            Rival(
                "needed_width",
                predicted.replace(narrow=0.0),
                "if the width γ⁻⁸ were needed",
                label="narrow networks do not arrive",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        small = np.array(self.epsilons)
        margin = predicted["margin"]
        frozen = np.nanmean(observed["frozen"], 1)
        trained = np.nanmean(observed["trained"], 1)
        narrow = np.nanmean(observed["narrow"], 1)
        shades = np.linspace(0, 1, len(margin))
        last = TRAINED - 1
        return (
            panel(
                "Frozen features: steps of the Frobenius margin",
                "ε",
                "steps T",
                *(
                    observed_curve(small, steps, f"d = {d}", kind="points", shade=shade)
                    for steps, d, shade in zip(frozen, self.dimensions, shades, strict=True)
                ),
                *(
                    predicted_curve(small, steps, "(e^z + z − 1)/γ_F²" if i == 0 else "")
                    for i, steps in enumerate(predicted["steps"])
                ),
                log="xy",
            ),
            panel(
                f"Trained networks, to ε = {self.epsilons[last]:g}",
                "γ",
                "steps T",
                observed_curve(
                    margin[:TRAINED_SETS], trained[:, last], f"m = {self.width}", kind="points"
                ),
                observed_curve(
                    margin[:TRAINED_SETS],
                    narrow[:, last],
                    f"m = {self.narrow}",
                    kind="points",
                    shade=0.7,
                ),
                predicted_curve(margin, predicted["steps"][:, last], "by γ_F"),
                rival_curve(margin, predicted["steps_neuron"][:, last], "by γ"),
                log="xy",
            ),
            panel(
                "Steps collapse by the Frobenius margin",
                "ε",
                "T ε γ_F²",
                *(
                    observed_curve(
                        small,
                        steps / predicted["steps"][i] * steps_to(small, 1.0) * small,
                        f"d = {d}",
                        kind="points",
                        shade=shade,
                    )
                    for i, (steps, d, shade) in enumerate(
                        zip(frozen, self.dimensions, shades, strict=True)
                    )
                ),
                predicted_curve(small, steps_to(small, 1.0) * small, "Frobenius margin"),
                rival_curve(
                    small,
                    steps_to(small, 1.0)
                    * small
                    * (predicted["steps_neuron"] / predicted["steps"])[-1, 0],
                    "2,∞ margin",
                ),
                log="x",
                ylim=(0.8, 1.8),
            ),
        )
