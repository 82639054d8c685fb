"""Low contrastive loss makes the mean classifier good on the average pair of classes, for every representation.

Jensen's inequality twice: means in place of examples can only lower a convex loss, and a negative from the positive's
own class costs at least one bit. What is lost is the spread within classes, to leading order exactly; because of it
representations cannot be compared by their contrastive losses alone.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, NamedTuple

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
    NonNegative,
    Observation,
    Panel,
    Positive,
    Prediction,
    Rival,
    Seeds,
    Values,
    Within,
    agreement,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    idle,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
from steepest.claims.bayes_and_transfer.contrastive_transfer.experiment import (
    CLASSES,
    PIXELS,
    ContrastiveTransferPoint,
    block_slacks,
    few_label_accuracy,
    images_by_class,
    leading_slack,
    pair_accuracy,
    smallest_class,
    train,
    zipf,
)
from steepest.core.arrays import Quantities
from steepest.core.errors import UserError
from steepest.measurement.quantities import SPREAD_CONSTANT, contrastive, pair_weights

HELD_OUT = 100
"""Images of each class on which labels are few."""
FEW = 5
"""Labels of each class."""
DRAWS = 20
"""Of few labels."""
BLOCK_SCALE = 0.3
"""Scale of the representations whose slack from blocks is measured; its next order is one per cent."""
FAR = 100.0
"""Scale of the uniform features whose loss within classes is compared with its bound."""


class Setting(NamedTuple):
    """Images and random matrices of every seed.

    Attributes:
        images: shape ``(seed, class, image, pixel)``.
        held: images of nobody's training, shape ``(seed, class, image, pixel)``.
        noise: normal numbers, a column for each dimension of the widest matrix, shape ``(seed, pixel, columns)``.
    """

    images: Values
    held: Values
    noise: Values


@dataclass(frozen=True)
class ContrastiveTransfer(Claim):
    """Exact contrastive losses of linear representations of digits, random and trained."""

    per_class: Annotated[int, Within(4)] = 20  # images that make up each class's distribution [1]
    ks: tuple[Count, ...] = (4, 16, 64)  # dimensions k of random representations [1]
    amplitudes: tuple[Positive, ...] = (0.5, 2.0, 4.5)  # scales a of f = aWᵀx, W ~ N(0, 1/k) [1]
    small: tuple[Positive, ...] = (0.05, 0.1, 0.2)  # scales at which the slack's law is judged [1]
    trained_ks: tuple[Count, ...] = (2, 8)  # dimensions k of trained representations [1]
    steps: Count = 400  # of their training [steps]
    batch: Count = 128  # fresh triples a step [1]
    lr: Positive = 1.0  # step size [1]
    seeds: Seeds = 4  # choices of images, matrices and triples [1]
    skew: NonNegative = 1.0  # shares of the classes ∝ c^(−skew), beside equal ones [1]
    test_skew: NonNegative = 1.0  # the same of the supervised pairs [1]
    blocks: tuple[Count, ...] = (1, 2, 4, 8)  # positives and negatives in a block [1]
    draws: Count = 20_000  # triples of blocks, for each seed [1]

    kind = "theorem"
    # 1 had 5 for the largest of its scales; 2 judged competitors where f̂ is f too, which is Jensen's inequality
    # alone and had the worst value, and counted the constant of uniform features, which no data enter
    version = 3
    statement = (
        r"L_{sup}\le\frac{L_{un}-\tau}{1-\tau},\quad \tau=\sum_c\rho_c^2;\qquad "
        r"L_{sup}(\hat f)\le L^{\neq}(f)+\frac{\tau}{1-\tau}\,\frac{1}{\sqrt3\log 2}\;"
        r"\mathbb E_{c\sim\rho^2}\sqrt{f(x)^T\Sigma_c f(x)}\quad\text{for all }f"
    )
    headline = ("bound", "tight", "tight_skewed", "tight_exponent")
    source = "Arora's talk of 29 January in the notes [@vodrahalli2019]; [@arora2019]"
    corrections = (
        "The talk's negatives are “from a different class”. The bound with τ needs negatives of all classes, which "
        "collide with probability τ; without collisions L_sup ≤ L_un holds as it is.",
    )
    remarks = (
        "Losses are logistic in bits, ℓ(v) = log₂(1 + e^(−v)). Each class is the uniform distribution over its images, "
        "x and x⁺ independent, so that all losses are finite sums and exact.",
        "The slack of the bound is of fourth order in f where 1 − L_sup is of second: it is the mean of "
        "fᵀ(Σ_c + Σ_c')f over pairs and of 2fᵀΣ_c f within classes, over 8 log 2. The bound costs nothing but spread.",
        "The constant of spread is 1/(√3 log 2) = 0.83, from Gini's mean difference, E|z − z'| ≤ 2σ/√3, which is sharp "
        "for uniform z; Cauchy–Schwarz has 1/(√2 log 2) = 1.02. It is proved, not measured. It bounds L^= − 1, and "
        "so enters L_sup with the weight τ/(1 − τ). Spread is E√(fᵀΣ_c f), at most √‖Σ_c‖ E‖f‖.",
        "Competitors are judged in families of two, zero and one random matrix f, where zero has the smaller "
        "contrastive loss and so is f̂; elsewhere f̂ = f, and the bound is Jensen's inequality. The check shows the "
        "constant these competitors need; it stays well below the proved one, so that they do not measure it.",
        "The talk's dream, L_sup(f̂) ≤ C L_sup(f), fails in such families for every C below 1/L_sup(f), which is up "
        "to about 8 here: zero learns nothing, and a large W tells classes apart. Of larger C nothing is shown.",
        "Seeds choose images anew, but from the same 1797; intervals are over seeds and leave that out. That training "
        "helps and that five labels do is measured, not proved.",
        "Of twenty fresh seeds of version 1 nineteen held; one could not reject the charge without spread, for which "
        "some random W must have L^≠ < 1 < L_un. At its scale 5 these are rare, at version 2's 4.5 common.",
    )
    full = {"per_class": 40, "trained_ks": (2, 4, 8, 16), "steps": 2000, "batch": 256, "seeds": 10}
    tiny = {"per_class": 6, "steps": 100, "batch": 64, "seeds": 3, "draws": 4000}
    out_of_scope = {"test_skew": 3.0}
    point = ContrastiveTransferPoint

    def check_fields(self) -> None:
        most = smallest_class() - HELD_OUT
        if self.per_class > most:
            raise UserError(
                f"contrastive-transfer: expected at most {most} images of a class, beside {HELD_OUT} held out, got "
                f"per_class = {self.per_class}; try 20"
            )
        if len(self.blocks) < 2:
            raise UserError(
                f"contrastive-transfer: expected two sizes of blocks or more, over which an exponent is fitted, got "
                f"blocks = {self.blocks}; try 1 2 4 8"
            )

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
        parts = [images_by_class(rng, self.per_class, HELD_OUT) for _ in range(self.seeds)]
        images, held = (np.stack(part) for part in zip(*parts, strict=True))
        columns = max(*self.ks, *self.trained_ks)
        return Setting(images, held, rng.standard_normal((self.seeds, PIXELS, columns)))

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        distance = np.abs(zipf(self.test_skew) - zipf(self.skew)).max()
        return [
            assume(
                "largest difference of class shares between the stages",
                distance,
                "==",
                0,
                "the classes of the pairs must be those of the triples; let --test-skew be --skew",
            ),
            assume("largest of the small scales", max(self.small), "<=", 0.25, "an expansion in f"),
            assume(
                "scales of random representations",
                len(self.amplitudes),
                ">=",
                3,
                "the second and the last are compared; give --amplitudes such as 0.5 2 4.5",
            ),
            assume("small scales", len(self.small), ">=", 3, "an exponent is fitted over them"),
        ]

    @property
    def shares(self) -> tuple[Values, Values]:
        """Return equal and skewed shares of the classes."""
        return zipf(0.0), zipf(self.skew)

    @property
    def family(self) -> list[tuple[int, float]]:
        """Return dimension and scale of the random representations, the small ones last."""
        large = [(k, scale) for k in self.ks for scale in self.amplitudes]
        return large + [(self.middle, scale) for scale in self.small]

    @property
    def middle(self) -> int:
        """Return the dimension of the small representations."""
        return self.ks[len(self.ks) // 2]

    @property
    def second(self) -> int:
        """Return the place of the scale that is compared with the last."""
        return min(1, len(self.amplitudes) - 1)

    def weights(self, noise: Values) -> Values:
        """Return the matrices of the family, zero beyond their k columns, ``(family, seed, pixel, columns)``."""
        columns = np.arange(noise.shape[-1])
        return np.stack([scale * k**-0.5 * noise * (columns < k) for k, scale in self.family])

    def predict(self, setting: Setting) -> Prediction:
        unit = self.middle**-0.5 * setting.noise[..., : self.middle]
        features = np.einsum("scip,spk->scik", setting.images, unit)
        slacks = [[leading_slack(f, shares) for f in features] for shares in self.shares]
        tau = np.array([pair_weights(shares).collision for shares in self.shares])
        n = self.per_class
        return Prediction(
            offset=("shares", tau),
            factor=("shares", 1 / (1 - tau)),
            slack=("shares seed part", np.array(slacks)),
            tight_exponent=4.0,
            block_exponent=-1.0,
            constant=SPREAD_CONSTANT,
            # of n points evenly spaced in place of a uniform law
            sharp=SPREAD_CONSTANT * np.sqrt(1 - 1 / n**2),
            # what a competitor f is charged beside its spread: L^≠, L_sup
            charge=("term", [1.0, 0.0]),
            charge_constant=SPREAD_CONSTANT,
            ranking=-1.0,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        family = self.weights(setting.noise)
        shares = (np.stack(self.shares), np.stack([zipf(0.0), zipf(self.test_skew)]))
        losses, uniform, trained, alike, weights, risks = jax.tree.map(
            np.asarray,
            compiled(self.losses)(setting.images, setting.noise, family, shares, key),
        )
        rng = numpy_generator(key)
        accuracies = np.array(
            [
                [self.accuracies(w, held, rng) for w in of_seed]
                for of_seed, held in zip(weights, setting.held, strict=True)
            ]
        )
        small = BLOCK_SCALE * self.middle**-0.5 * setting.noise[..., : self.middle]
        features = np.einsum("scip,spk->scik", setting.images, small)
        return Observation(
            **{name: ("family seed shares", values) for name, values in losses._asdict().items()},
            **{
                f"trained_{name}": ("seed k shares", values)
                for name, values in trained._asdict().items()
            },
            uniform=("", (uniform.same - 1) / uniform.spread),
            **{
                f"random_{name}": ("seed k shares", values)
                for name, values in alike._asdict().items()
            },
            risks=("seed k end", risks),
            accuracy=("seed k labels", accuracies),
            blocks=(
                "seed block",
                [block_slacks(f, self.blocks, self.draws, rng) for f in features],
            ),
        )

    def accuracies(self, weights: Values, held: Values, rng: np.random.Generator) -> list[float]:
        """Return accuracies with means of one, of five and of all held-out images of each class."""
        few = [few_label_accuracy(held, weights, labels, DRAWS, rng) for labels in (1, FEW)]
        return [*few, pair_accuracy(held, weights, (held @ weights).mean(1))]

    def losses(
        self, images: jax.Array, noise: jax.Array, family: jax.Array, shares: tuple, key: Key
    ) -> tuple:
        """Return losses of the family, of uniform features, of trained and of random matrices of equal norm."""

        def measure(features: jax.Array) -> tuple:
            return jax.vmap(lambda rho, test: contrastive(features, rho, test))(*shares)

        def of_seed(inputs: tuple) -> tuple:
            images, noise, key = inputs

            def one(lane: tuple) -> tuple:
                k, key = lane
                columns = jnp.arange(max(self.trained_ks)) < k
                shape = (PIXELS, max(self.trained_ks))
                start = 2 * jax.random.normal(key, shape) / jnp.sqrt(k) * columns
                path = train(images, start, self.steps, self.batch, self.lr, key)
                other = noise[:, : shape[1]] * columns
                norms = jnp.linalg.norm(path.params) / jnp.linalg.norm(other)
                return path.params, norms * other, path.risk

            lanes = (jnp.array(self.trained_ks), jax.random.split(key, len(self.trained_ks)))
            return jax.lax.map(one, lanes)

        seeds = jax.random.split(key, self.seeds)
        weights, random, risks = jax.lax.map(of_seed, (images, noise, seeds))
        # every matrix in one list, so that the losses are compiled once
        widest = max(family.shape[-1], weights.shape[-1])
        lists = [family.swapaxes(0, 1), weights, random]
        padded = [jnp.pad(a, [(0, 0)] * 3 + [(0, widest - a.shape[-1])]) for a in lists]
        together = jnp.concatenate(padded, 1)

        def all_of_seed(inputs: tuple) -> tuple:
            images, matrices = inputs
            return jax.lax.map(lambda w: measure(images @ w), matrices)

        measured = jax.lax.map(all_of_seed, (images, together))  # (seed, matrix, shares)
        uniform = FAR * jnp.linspace(-1, 1, self.per_class)[None, :, None]
        line = contrastive(jnp.tile(uniform, (2, 1, 1)))
        ends = [0, len(family), len(family) + len(self.trained_ks), together.shape[1]]
        parts = [
            jax.tree.map(lambda values, a=a, b=b: values[:, a:b], measured)
            for a, b in pairwise(ends)
        ]
        losses = jax.tree.map(lambda values: values.swapaxes(0, 1), parts[0])
        return losses, line, parts[1], parts[2], weights, risks

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        names = ("un", "same", "different", "supervised", "spread", "collision")
        every = {
            name: np.concatenate(
                [
                    observed[name].reshape(-1, 2),
                    observed[f"trained_{name}"].reshape(-1, 2),
                ]
            )
            for name in names
        }
        limits = (every["un"] - predicted["offset"]) * predicted["factor"]
        slack = self.slack(predicted, observed)
        at = len(self.small) // 2
        measured = slack[:, at] / self.small[at] ** 4  # (seed, shares)
        theory = predicted["slack"].sum(-1)
        tau = every["collision"]
        mixed = tau * every["same"] + (1 - tau) * every["different"]
        within = every["same"] - 1 - predicted["constant"] * every["spread"]
        gains = observed["trained_supervised"][..., 0] / observed["random_supervised"][..., 0]
        few = observed["accuracy"][..., 1] / observed["accuracy"][..., 2]
        last = self.ks.index(max(self.ks)) * len(self.amplitudes)
        rises = observed["un"][last + len(self.amplitudes) - 1] - observed["un"][last + self.second]
        rises_in_test = (
            observed["supervised"][last + len(self.amplitudes) - 1]
            - observed["supervised"][last + self.second]
        )
        checks = [
            bound(
                "bound",
                (every["supervised"] - limits).max(),
                at_most=0.0,
                label="largest L_sup − (L_un − τ)/(1 − τ) of all representations",
            ),
            *(
                equal(
                    id,
                    theory[i],
                    measured[:, i],
                    0.01,  # the next order is of the scale's square, 0.002 here
                    label=f"slack at scale {self.small[at]:g} from the spread alone, {word} classes",
                )
                for i, (id, word) in enumerate((("tight", "equal"), ("tight_skewed", "skewed")))
            ),
            exponent(
                "tight_exponent",
                float(predicted["tight_exponent"]),
                self.small,
                slack[..., 0],
                0.02,
                label="slack against scale",
            ),
            bound(
                "spread",
                within.max(),
                at_most=0.0,
                label="largest L^= − 1 less its bound by the spread",
            ),
            bound(
                "competitor",
                self.needed(predicted, observed).max(initial=-np.inf),
                at_most=float(predicted["charge_constant"]),
                label="largest constant of spread that a competitor f needs, where f̂ = 0",
            ),
            equal(
                "ranking",
                float(predicted["ranking"]),
                np.sign(rises * rises_in_test)[:, 0],
                0.0,
                aggregate="all",
                label=f"sign of ΔL_sup ΔL_un, scale {self.amplitudes[self.second]:g} to {self.amplitudes[-1]:g}",
            ),
            exponent(
                "blocks",
                float(predicted["block_exponent"]),
                self.blocks,
                observed["blocks"],
                0.05,  # the interval is 0.01, the next order at this scale 0.01
                label="slack against the size of blocks",
            ),
        ]
        for i, k in enumerate(self.trained_ks):
            checks += [
                bound(
                    f"trained_{i}",
                    gains[:, i],
                    at_most=0.75,  # no law says how much training helps; a random matrix has one
                    label=f"L_sup trained over L_sup random of equal norm, k = {k}",
                ),
                bound(
                    f"few_{i}",
                    few[:, i],
                    at_least=0.97,
                    label=f"accuracy with {FEW} labels over accuracy with {HELD_OUT}, k = {k}",
                ),
            ]
        identity = agreement(
            "decomposition", np.abs(mixed - every["un"]).max(), 1e-12, label="L_un in two parts"
        )
        least = bound(
            "collisions_cost", every["same"].min(), at_least=1 - 1e-12, label="smallest L^="
        )
        sharp = equal(
            "sharp",
            predicted["sharp"],
            float(observed["uniform"]),
            0.005,
            label="(L^= − 1)/spread of uniform features, far out",
        )
        return [
            *checks,
            idle(
                sharp,
                "no data enter: the constant is proved, and this is the proof's own sharp case",
            ),
            idle(identity, "two forms of one sum"),
            idle(least, "Jensen's inequality for a sum that is symmetric in x⁺ and x⁻"),
        ]

    def slack(self, predicted: Prediction, observed: Observation) -> Values:
        """Return bound minus L_sup of the small representations, ``(seed, scale, shares)``."""
        small = slice(-len(self.small), None)
        limits = (observed["un"][small] - predicted["offset"]) * predicted["factor"]
        return (limits - observed["supervised"][small]).swapaxes(0, 1)

    def needed(self, predicted: Prediction, observed: Observation) -> Values:
        """Return the constant of spread at which the charge of a competitor f is L_sup(f̂) = 1.

        Only where zero has the smaller contrastive loss, L_un(f) > 1, and so is f̂, the better of zero and f; zero has
        one bit in every loss. The shape is ``(competitors,)``.
        """
        names = ("un", "different", "supervised", "spread", "collision")
        losses = {name: observed[name][..., 0] for name in names}
        a, b = predicted["charge"]
        missing = 1 - a * losses["different"] - b * losses["supervised"]
        weight = losses["collision"] / (1 - losses["collision"])
        return (missing / (weight * losses["spread"]))[losses["un"] > 1]

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        return [
            assume(
                "random representations worse than zero by L_un",
                int((observed["un"][..., 0] > 1).sum()),
                ">=",
                1,
                "only these are competitors of zero; raise --amplitudes",
            )
        ]

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        def without(part: int) -> Quantities:
            slack = predicted["slack"].copy()
            slack[..., part] = 0
            return predicted.replace(slack=("shares seed part", slack))

        two_point = 1 / (2 * np.log(2))
        return [
            Rival(
                "no_factor",
                predicted.replace(factor=("shares", np.ones(2))),
                "it subtracts what collisions cost",
                label="L_sup ≤ L_un − τ",
            ),
            Rival(
                "equal_shares",
                predicted.replace(
                    offset=("shares", np.full(2, 1 / CLASSES)),
                    factor=("shares", np.full(2, CLASSES / (CLASSES - 1))),
                ),
                "so it is for equal classes",
                label="τ = 1/C for any shares",
            ),
            Rival(
                "negatives_only",
                without(0),
                "the mean stands for the positive",
                label="slack without the positives' spread",
            ),
            Rival(
                "no_collisions",
                without(2),
                "negatives are said to be of other classes",
                label="slack without the pairs within a class",
            ),
            Rival(
                "second_order",
                predicted.replace(tight_exponent=2.0),
                "losses change to second order",
                label="slack ∝ scale²",
            ),
            Rival(
                "two_points",
                predicted.replace(constant=two_point, charge_constant=two_point),
                "two values of equal weight have it",
                label="constant of spread 1/(2 log 2)",
                accepted="digits and random W are far from the sharp case; the constant is proved",
            ),
            Rival(
                "no_constant",
                predicted.replace(constant=0.0),
                "collisions cost one bit",
                label="L^= is one",
            ),
            Rival(
                "dream",
                predicted.replace(charge=("term", [0.0, 1.0]), charge_constant=0.0),
                "the talk's dream result with constant one",
                label="L_sup(f̂) ≤ L_sup(f) for every f",
            ),
            Rival(
                "no_spread",
                predicted.replace(charge_constant=0.0),
                "f̂ has the least loss",
                label="L_sup(f̂) ≤ L^≠(f), without the spread",
            ),
            Rival(
                "ranks",
                predicted.replace(ranking=1.0),
                "low L_un means low L_sup",
                label="L_un ranks representations by L_sup",
            ),
            Rival(
                "root_blocks",
                predicted.replace(block_exponent=-0.5),
                "averages fluctuate like b^−½",
                label="slack of blocks ∝ b^−½",
            ),
        ]

    def controls(self, observed: Observation) -> list[Control]:
        accuracy = observed["accuracy"].copy()
        accuracy[..., 1] = accuracy[..., 0]
        random = {
            f"trained_{name}": ("seed k shares", observed[f"random_{name}"])
            for name in ("un", "same", "different", "supervised", "spread", "collision")
        }
        others = {
            "un": ("family seed shares", observed["different"]),
            "trained_un": ("seed k shares", observed["trained_different"]),
        }
        return [
            Control(
                "other_classes",
                observed.replace(**others),
                "as printed; nothing collides, so that there is no τ to subtract",
                label="negatives of other classes alone",
            ),
            Control(
                "one_label",
                observed.replace(accuracy=("seed k labels", accuracy)),
                "one image is no mean",
                label="one label in place of five",
            ),
            Control(
                "random",
                observed.replace(**random),
                "it was not trained",
                label="a random matrix in place of the trained one",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        tau = float(predicted["offset"][0])
        un = observed["un"][..., 0]
        sup = observed["supervised"][..., 0]
        grid = np.geomspace(0.2, un.max() * 1.1, 200)
        scales = np.array(self.small)
        fine = np.geomspace(scales[0], 0.5, 20)
        slack = self.slack(predicted, observed)[..., 0]
        theory = predicted["slack"][0].sum(-1).mean()
        blocks = np.array(self.blocks, float)
        level = observed["blocks"].mean(0)
        accuracy = observed["accuracy"].mean(0)
        return (
            panel(
                "No representation is above the bound",
                "contrastive loss L_un [bits]",
                "L_sup [bits]",
                observed_curve(un.ravel(), sup.ravel(), "random", kind="points"),
                observed_curve(
                    observed["trained_un"][..., 0].ravel(),
                    observed["trained_supervised"][..., 0].ravel(),
                    "trained",
                    kind="points",
                    shade=1.0,
                ),
                predicted_curve(grid, (grid - tau) / (1 - tau), "(L_un − τ)/(1 − τ)"),
                rival_curve(grid, grid - tau, "L_un − τ"),
                log="xy",
                ylim=(0.02, None),
            ),
            panel(
                "The slack is the spread within classes",
                "scale of f",
                "(L_un − τ)/(1 − τ) − L_sup",
                observed_curve(scales, slack, kind="points"),
                predicted_curve(fine, theory * fine**4, "spread / 8 log 2"),
                rival_curve(
                    fine,
                    predicted["slack"][0][:, 1].mean() * fine**4,
                    "negatives' spread alone",
                ),
                log="xy",
            ),
            panel(
                "Blocks divide the slack",
                "size of blocks b",
                "(L_block − τ)/(1 − τ) − L_sup",
                observed_curve(blocks, observed["blocks"], kind="points"),
                predicted_curve(blocks, level[0] / blocks, "1/b"),
                rival_curve(blocks, level[0] / np.sqrt(blocks), "1/√b"),
                log="xy",
            ),
            panel(
                "Five labels a class do nearly as well as all",
                "labels of each class",
                "accuracy on pairs, held out",
                *(
                    observed_curve(
                        [1, FEW, HELD_OUT], accuracy[i], f"trained, k = {k}", shade=0.6 * i
                    )
                    for i, k in enumerate(self.trained_ks)
                ),
                log="x",
            ),
        )
