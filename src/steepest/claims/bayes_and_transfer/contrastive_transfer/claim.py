"""A low contrastive loss guarantees a good mean classifier for the average pair of classes.

This bound holds for every representation. The mean classifier has the class means of the representation as its weights.
The proof uses Jensen's inequality twice: means in place of examples can only lower a convex loss, and a negative from
the positive's own class costs at least one bit. To leading order the bound loses exactly the variation within classes.
Because of this variation, contrastive losses are not enough to compare representations. With k negatives at a time the
same holds for the mean classifier among k + 1 classes with ties.
"""

from itertools import pairwise
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from steepest import kit
from steepest.claims.bayes_and_transfer.contrastive_transfer.experiment import (
    CLASSES,
    PIXELS,
    ContrastiveTransferPoint,
    Slack,
    block_slacks,
    covariance_forms,
    few_label_accuracy,
    images_by_class,
    leading_slack,
    pair_accuracy,
    several_negatives,
    smallest_class,
    train,
    zipf,
)
from steepest.core.errors import UserError
from steepest.measurement.quantities import SPREAD_CONSTANT, contrastive, pair_weights
from steepest.nn.types import Values

HELD_OUT = 100  # images of each class on which labels are few
FEW = 5  # labels of each class
DRAWS = 20  # of few labels
BLOCK_SCALE = (
    0.3  # of representations whose slack from blocks is measured; its next order is one per cent
)
NEGATIVES = (1, 2, 4, 8)  # at a time
LOSSES = ("un", "same", "different", "supervised", "spread", "collision")
SHARES = ("equal", "skewed")


class Setting(NamedTuple):
    """Images and random matrices of every seed.

    Attributes: images: shape ``(seed, class, image, pixel)``. held: images on which nothing is trained, shape ``(seed,
    class, image, pixel)``. noise: normal numbers, a column for each dimension of the widest matrix, shape ``(seed,
    pixel, columns)``.
    """

    images: Values
    held: Values
    noise: Values


@kit.claim
class ContrastiveTransfer(kit.Claim[Setting]):
    """Exact contrastive losses of linear representations of digits, random and trained."""

    per_class: Annotated[int, kit.Within(4)] = kit.param(
        20,
        "images that make up each class's distribution",
        unit="images",
        scope=kit.between(12, 30, "fewer leave a class without spread of its own"),
    )
    ks: tuple[kit.Count, ...] = kit.param(
        (4, 16, 64),
        "dimensions k of random representations",
        scope=kit.choices(
            (4, 16, 64), (4, 8, 64), why="losses rank otherwise only in many dimensions"
        ),
    )
    amplitudes: tuple[kit.Positive, ...] = kit.param(
        (0.5, 2.0, 4.5),
        "scales a of f = aWᵀx, W ~ N(0, 1/k)",
        scope=kit.choices(
            (0.5, 2.0, 4.5), (0.4, 1.8, 4.0), why="at larger ones few have L^≠ < 1 < L_un"
        ),
    )
    small: tuple[kit.Positive, ...] = kit.param(
        (0.05, 0.1, 0.2),
        "scales at which the slack's law is judged",
        scope=kit.choices((0.05, 0.1, 0.2), (0.04, 0.08, 0.16), why="it is an expansion"),
    )
    trained_ks: tuple[kit.Count, ...] = kit.param(
        (2, 8), "dimensions k of trained representations", scope=kit.choices((2, 8), (2, 6))
    )
    steps: kit.Count = kit.param(400, "steps of their training", unit="steps")
    batch: kit.Count = kit.param(128, "fresh triples a step", unit="triples")
    lr: kit.Positive = kit.param(1.0, "step size")
    seeds: kit.Seeds = kit.param(4, "choices of images, matrices and triples")
    skew: kit.NonNegative = kit.param(
        1.0, "shares of the classes ∝ c^(−skew), beside equal ones", scope=kit.between(0.5, 1.5)
    )
    other_skew: float = kit.param(
        0.0, "how much more skewed the supervised pairs are; the theorem needs the same classes"
    )
    blocks: tuple[kit.Count, ...] = kit.param(
        (1, 2, 4, 8),
        "positives and negatives in a block",
        scope=kit.choices((1, 2, 4, 8), (1, 3, 9)),
    )
    draws: kit.Count = kit.param(80_000, "triples of blocks, for each seed", unit="triples")

    kind = "theorem"
    says = {
        "A low contrastive loss guarantees a good mean classifier for the average pair of classes": (
            "bound",
            "tight",
        ),
        "holds for every representation": "bound",
    }
    tiny = {"per_class": 6, "steps": 100, "batch": 64, "seeds": 3, "draws": 4000}
    full = {"per_class": 40, "trained_ks": (2, 4, 8, 16), "steps": 2000, "batch": 256, "seeds": 10}
    out_of_scope = {"other_skew": 2.0}
    point = ContrastiveTransferPoint

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
    def compared(self) -> tuple[int, int]:
        """Return the places in the family of two scales of the widest representations: the second and the last."""
        start = self.ks.index(max(self.ks)) * len(self.amplitudes)
        return start + min(1, len(self.amplitudes) - 1), start + len(self.amplitudes) - 1

    def axes(self):
        return {
            "shares": SHARES,
            "scale": self.small,
            "k": self.trained_ks,
            "block": self.blocks,
            "negatives": NEGATIVES,
            "term": ("L^≠", "L_sup"),
        }

    def check_fields(self) -> None:
        most = smallest_class() - HELD_OUT
        if self.per_class > most:
            raise UserError(
                f"contrastive-transfer: expected at most {most} images of a class, beside {HELD_OUT} held out, got "
                f"per_class = {self.per_class}; try 20"
            )
        if len(self.blocks) < 2:
            raise UserError(
                f"contrastive-transfer: expected two sizes of blocks or more, which are compared, got "
                f"blocks = {self.blocks}; try 1 2 4 8"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        parts = [images_by_class(rng, self.per_class, HELD_OUT) for _ in range(self.seeds)]
        images, held = (np.stack(part) for part in zip(*parts, strict=True))
        columns = max(*self.ks, *self.trained_ks)
        return Setting(images, held, rng.standard_normal((self.seeds, PIXELS, columns)))

    def hypotheses(self, setting):
        distance = np.abs(zipf(self.skew + self.other_skew) - zipf(self.skew)).max()
        yield kit.assume(
            "largest difference of class shares between the stages",
            distance,
            "==",
            0,
            "the classes of the pairs must be those of the triples; let --other-skew be 0",
        )
        yield kit.assume(
            "largest of the small scales", max(self.small), "<=", 0.25, "an expansion in f"
        )
        yield kit.assume(
            "scales of random representations",
            len(self.amplitudes),
            ">=",
            3,
            "the second and the last are compared; give --amplitudes such as 0.5 2 4.5",
        )

    def weights(self, noise: Values) -> Values:
        """Return the matrices of the family, zero beyond their k columns, ``(family, seed, pixel, columns)``."""
        columns = np.arange(noise.shape[-1])
        return np.stack([scale * k**-0.5 * noise * (columns < k) for k, scale in self.family])

    def slacks(self, setting: Setting) -> list[list[Slack]]:
        """Return the leading slack at scale one, by shares and seed."""
        unit = self.middle**-0.5 * setting.noise[..., : self.middle]
        features = np.einsum("scip,spk->scik", setting.images, unit)
        return [[leading_slack(f, shares) for f in features] for shares in self.shares]

    def predict(self, setting):
        totals = np.array([[slack.total for slack in row] for row in self.slacks(setting)])
        tau = np.array([pair_weights(shares).collision for shares in self.shares])
        of_blocks = totals[0][:, None] * BLOCK_SCALE**4
        return kit.law(
            offset=("shares", tau),
            factor=("shares", 1 / (1 - tau)),
            # of fourth order in f
            slack=("shares seed scale", totals[..., None] * np.array(self.small) ** 4),
            # means of b features have Σ/b for Σ
            blocks=("seed block", of_blocks / np.array(self.blocks)),
            several=("seed negatives", self.several_slack(setting, shared=True)),
            constant=SPREAD_CONSTANT,
            # what a competitor f is charged beside its spread
            charge=("term", [1.0, 0.0]),
            charge_constant=SPREAD_CONSTANT,
            ranking=-1.0,
        )

    def several_slack(self, setting: Setting, *, shared: bool) -> Values:
        """Return the leading slack of several negatives, ``(seeds, negatives)``.

        The Hessian of log(1 + Σ e^(−v_i)) at zero is diag(p) − ppᵀ with p = 1/(k + 1). The v_i have the covariance
        fᵀΣ_c f, which they share with x⁺, and of its own each has fᵀΣf of its class.

        Args:
            setting: images and matrices.
            shared: whether x⁺ is the same for all v_i.
        """
        forms = np.array([covariance_forms(f) for f in self.small_features(setting)])
        k = np.array(NEGATIVES)
        own_class, any_class = forms.T[:, :, None]
        # 1ᵀ(diag(p) − ppᵀ)1 = k/(k + 1)² for what all v_i share,
        # and the trace is k times that for what each has of its own
        curved = k / (k + 1) ** 2
        return curved * ((own_class if shared else k * own_class) + k * any_class) / (2 * np.log(2))

    def small_features(self, setting: Setting) -> Values:
        """Return the features of every seed whose blocks and negatives are many, ``(seeds, 10, n, k)``."""
        small = BLOCK_SCALE * self.middle**-0.5 * setting.noise[..., : self.middle]
        return np.einsum("scip,spk->scik", setting.images, small)

    def observe(self, setting, key):
        family = self.weights(setting.noise)
        of_pairs = np.stack([zipf(0.0), zipf(self.skew + self.other_skew)])
        shares = (np.stack(self.shares), of_pairs)
        losses, trained, alike, weights, risks = jax.tree.map(
            np.asarray,
            kit.compiled(self.losses)(setting.images, setting.noise, family, shares, key),
        )
        rng = kit.numpy_generator(key)
        accuracies = [
            [self.accuracies(w, held, rng) for w in of_seed]
            for of_seed, held in zip(weights, setting.held, strict=True)
        ]
        features = self.small_features(setting)
        blocks = [block_slacks(f, self.blocks, self.draws, rng) for f in features]
        named = lambda prefix, dims, of: {
            prefix + name: (dims, getattr(of, name)) for name in LOSSES
        }
        return kit.seen(
            **named("", "family seed shares", losses),
            **named("trained_", "seed k shares", trained),
            **named("random_", "seed k shares", alike),
            risks=("seed k end", risks),
            accuracy=("seed k labels", accuracies),
            blocks=("seed block", blocks),
            **self.several(setting, family, rng),
        )

    def several(
        self, setting: Setting, family: Values, rng: np.random.Generator
    ) -> dict[str, tuple[str, list]]:
        """Return what is left between losses of several negatives and of class means, of small and large features."""
        small = [
            several_negatives(f, NEGATIVES, self.draws, rng) for f in self.small_features(setting)
        ]
        large = [
            [
                several_negatives(images @ w, NEGATIVES, self.draws // 2, rng)
                for images, w in zip(setting.images, of_one, strict=True)
            ]
            for of_one in family[: -len(self.small)]
        ]
        dims = "representation seed negatives"
        return {
            "several": ("seed negatives", [losses.slack for losses in small]),
            "several_without_own": ("seed negatives", [losses.without_own for losses in small]),
            "left": (dims, [[losses.left for losses in row] for row in large]),
            "left_without_own": (dims, [[losses.without_own for losses in row] for row in large]),
        }

    def accuracies(self, weights: Values, held: Values, rng: np.random.Generator) -> list[float]:
        """Return accuracies with means of one, of five and of all held-out images of each class."""
        few = [few_label_accuracy(held, weights, labels, DRAWS, rng) for labels in (1, FEW)]
        return [*few, pair_accuracy(held, weights, (held @ weights).mean(1))]

    def losses(
        self, images: jax.Array, noise: jax.Array, family: jax.Array, shares: tuple, key: kit.Key
    ) -> tuple:
        """Return losses of the family, of trained and of random matrices of equal norm."""

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
        ends = [0, len(family), len(family) + len(self.trained_ks), together.shape[1]]
        parts = [
            jax.tree.map(lambda values, a=a, b=b: values[:, a:b], measured)
            for a, b in pairwise(ends)
        ]
        losses = jax.tree.map(lambda values: values.swapaxes(0, 1), parts[0])
        return losses, parts[1], parts[2], weights, risks

    def run_conditions(self, observed):
        yield kit.assume(
            "random representations worse than zero by L_un",
            int((observed["un"][..., 0] > 1).sum()),
            ">=",
            1,
            "only these are competitors of zero; raise --amplitudes",
        )

    def derive(self, law, seen):
        """Return what the bound and the spread leave, of all representations and of the small ones."""

        def left(prefix: str) -> tuple[xarray.DataArray, xarray.DataArray]:
            un, same, supervised, spread = (
                seen[prefix + name] for name in ("un", "same", "supervised", "spread")
            )
            limits = (un - law.offset) * law.factor
            return limits - supervised, same - 1 - law.constant * spread

        slack, excess = left("")
        of_trained = [part.rename(k="matrix").drop_vars("matrix") for part in left("trained_")]
        small = slack.isel(family=slice(-len(self.small), None)).rename(family="scale")
        earlier, later = self.compared
        rises = [
            (array.isel(family=later) - array.isel(family=earlier)).isel(shares=0, drop=True)
            for array in (seen.un, seen.supervised)
        ]

        def together(array: xarray.DataArray, other: xarray.DataArray) -> xarray.DataArray:
            return xarray.concat([array.rename(family="matrix"), other], "matrix")

        return {
            "every_slack": together(slack, of_trained[0]),
            "every_excess": together(excess, of_trained[1]),
            "slack": small.assign_coords(scale=law.scale),
            "needed": self.needed(law, seen),
            "order": np.sign(rises[0] * rises[1]),
            "gain": (seen.trained_supervised / seen.random_supervised).isel(shares=0, drop=True),
            "few": seen.accuracy.isel(labels=1) / seen.accuracy.isel(labels=2),
        }

    def needed(self, law: xarray.Dataset, seen: xarray.Dataset) -> xarray.DataArray:
        """Return the constant of spread at which the charge of a competitor f is L_sup(f̂) = 1.

        Only where zero has the smaller contrastive loss, L_un(f) > 1, and so is f̂, the better of zero and f; zero has
        one bit in every loss. Elsewhere it is zero.
        """
        losses = seen[list(LOSSES)].isel(shares=0, drop=True)
        charge = law.charge.values
        missing = 1 - charge[0] * losses.different - charge[1] * losses.supervised
        weight = losses.collision / (1 - losses.collision)
        return (missing / (weight * losses.spread)).where(losses.un > 1, 0.0)

    def judge(self, law, seen):
        k = max(self.ks)
        scales = [self.family[place][1] for place in self.compared]
        yield kit.excluded(
            "bound",
            0.0,
            seen.every_slack,
            label="(L_un − τ)/(1 − τ) − L_sup of all representations",
        )
        yield kit.follows(
            "tight",
            law.slack,
            seen.slack,
            0.03,  # the next order is of the scale's square, 0.01 at 0.2
            over="shares scale",
            each=True,
            label="this slack from the spread alone, small representations",
        )
        yield kit.follows(
            "blocks",
            law.blocks,
            seen.blocks,
            0.08,  # the interval is 0.03, the next order at this scale 0.02
            label="slack of blocks",
        )
        yield kit.follows(
            "several",
            law.several,
            seen.several,
            0.08,  # the interval is 0.03, the next order at this scale 0.02
            over="negatives",
            label="slack of k negatives, small representations",
        )
        yield kit.excluded(
            "several_bound",
            0.0,
            seen.left,
            label="loss of k negatives less that of class means with ties, large representations",
        )
        yield from self.judge_spread(law, seen)
        yield kit.agrees(
            "ranking",
            abs(seen.order - law.ranking),
            0.0,
            label=f"sign of ΔL_sup ΔL_un, k = {k}, scale {scales[0]:g} to {scales[1]:g}, off −1",
        )
        yield from self.judge_learned(seen)

    def judge_spread(self, law, seen):
        """Judge what the spread bounds, and the constant of it that a competitor needs."""
        yield kit.at_most(
            "spread",
            0.0,
            seen.every_excess,
            each=True,
            label="L^= − 1 less its bound by the spread",
        )
        yield kit.at_most(
            "competitor",
            law.charge_constant,
            seen.needed,
            each=True,
            label="constant of spread that a competitor f needs, where f̂ = 0",
        )

    def judge_learned(self, seen):
        """Judge what training and few labels bring."""
        yield kit.at_most(
            "trained",
            0.75,  # no law says how much training helps; a random matrix has one
            seen.gain,
            over="k",
            label="L_sup trained over L_sup random of equal norm",
        )
        yield kit.at_least(
            "few",
            0.96,  # no law either; the interval is ± 0.01
            seen.few,
            over="k",
            label=f"accuracy with {FEW} labels over accuracy with {HELD_OUT}",
        )

    def rivals(self, setting, law):
        yield kit.rival("L_sup ≤ L_un − τ", "it subtracts what collisions cost", factor=1.0)
        yield kit.rival(
            "τ = 1/C for any shares",
            "so it is for equal classes",
            offset=1 / CLASSES,
            factor=CLASSES / (CLASSES - 1),
        )
        yield from self.rivals_of_slack(setting, law)
        yield from self.rivals_of_spread()
        yield kit.rival(
            "slack of k negatives k times that of one",
            "each of k negatives is a term of the loss",
            several=law.several.isel(negatives=0, drop=True) * law.negatives,
        )
        yield kit.rival(
            "slack as if each negative had a positive of its own",
            "each v_i has the variance of two examples",
            id="own_positives",
            several=("seed negatives", self.several_slack(setting, shared=False)),
        )
        yield kit.rival(
            "L_un ranks representations by L_sup",
            "low L_un means low L_sup",
            id="ranks",
            ranking=1.0,
        )
        yield kit.rival(
            "slack of blocks ∝ b^−½",
            "averages fluctuate like b^−½",
            id="root_blocks",
            blocks=law.blocks * np.sqrt(law.block),
        )

    def rivals_of_slack(self, setting, law):
        """Return wrong theories of the slack of small representations."""
        slacks = self.slacks(setting)

        def without(part: str) -> xarray.DataArray:
            shares = [[1 - getattr(slack, part) / slack.total for slack in row] for row in slacks]
            return law.slack * xarray.DataArray(shares, dims=("shares", "seed"))

        yield kit.rival(
            "slack without the positives' spread",
            "the mean stands for the positive",
            id="negatives_only",
            slack=without("positives"),
        )
        yield kit.rival(
            "slack without the pairs within a class",
            "negatives are said to be of other classes",
            slack=without("same"),
        )
        yield kit.rival(
            "slack ∝ scale²",
            "losses change to second order",
            slack=law.slack * (law.scale[1] / law.scale) ** 2,
        )

    def rivals_of_spread(self):
        """Return wrong theories of the constant of spread, and of what a competitor is charged."""
        two_point = 1 / (2 * np.log(2))
        yield kit.rival(
            "constant of spread 1/(2 log 2)",
            "two values of equal weight have it",
            accepted="digits and random W are far from the sharp case; the constant is proved",
            constant=two_point,
            charge_constant=two_point,
        )
        yield kit.rival("L^= is one", "collisions cost one bit", constant=0.0)
        yield kit.rival(
            "L_sup(f̂) ≤ L_sup(f) for every f",
            "the talk's dream result with constant one",
            charge=("term", [0.0, 1.0]),
            charge_constant=0.0,
        )
        yield kit.rival(
            "L_sup(f̂) ≤ L^≠(f), without the spread", "f̂ has the least loss", charge_constant=0.0
        )

    def controls(self, seen):
        one_label = seen.accuracy.copy()
        one_label[..., 1] = one_label[..., 0]
        yield kit.control(
            "negatives of other classes alone",
            "as printed; nothing collides, so that there is no τ to subtract",
            un=seen.different,
            trained_un=seen.trained_different,
            several=seen.several_without_own,
            left=seen.left_without_own,
        )
        yield kit.control(
            "supervised pairs of skewed classes for those of equal ones, and so on",
            "the classes of the pairs are not those of the triples",
            id="other_pairs",
            supervised=(seen.supervised.dims, seen.supervised.values[..., ::-1]),
        )
        yield kit.control("one label in place of five", "one image is no mean", accuracy=one_label)
        yield kit.control(
            "a random matrix in place of the trained one",
            "it was not trained",
            id="random",
            **{f"trained_{name}": seen[f"random_{name}"] for name in LOSSES},
        )
        yield kit.control(
            "blocks of one, whatever their size",
            "one positive and one negative are no block",
            blocks=seen.blocks.isel(block=0, drop=True),
        )

    def figure(self, law, seen, rivals):
        accuracy = seen.accuracy.mean("seed").values
        yield self.bound_panel(law, seen)
        yield kit.curves(
            "The slack is the spread within classes",
            law.slack,
            seen.slack,
            over="scale",
            by="shares",
            x="scale of f",
            y="(L_un − τ)/(1 − τ) − L_sup",
            name="{} classes",
            rivals={"negatives' spread alone": rivals["negatives_only"].slack.isel(shares=0)}
            if rivals
            else {},
            log="xy",
        )
        yield kit.curves(
            "Blocks divide the slack",
            law.blocks,
            seen.blocks,
            over="block",
            x="size of blocks b",
            y="(L_block − τ)/(1 − τ) − L_sup",
            rivals={"1/√b": rivals["root_blocks"].blocks} if rivals else {},
            log="xy",
        )
        yield kit.panel(
            "Five labels a class do nearly as well as all",
            "labels of each class",
            "accuracy on pairs, held out",
            *(
                kit.observed_curve(
                    [1, FEW, HELD_OUT], accuracy[i], f"trained, k = {k}", shade=0.6 * i
                )
                for i, k in enumerate(self.trained_ks)
            ),
            log="x",
        )

    def bound_panel(self, law: xarray.Dataset, seen: xarray.Dataset) -> kit.Panel:
        """Draw both losses of every representation, equal classes."""
        tau = float(law.offset[0])
        equal = seen.isel(shares=0)
        un = equal.un.values
        grid = np.geomspace(0.2, un.max() * 1.1, 200)
        return kit.panel(
            "No representation is above the bound",
            "contrastive loss L_un [bits]",
            "L_sup [bits]",
            kit.observed_curve(
                un.ravel(), equal.supervised.values.ravel(), "random", kind="points"
            ),
            kit.observed_curve(
                equal.trained_un.values.ravel(),
                equal.trained_supervised.values.ravel(),
                "trained",
                kind="points",
                shade=1.0,
            ),
            kit.predicted_curve(grid, (grid - tau) / (1 - tau), "(L_un − τ)/(1 − τ)"),
            kit.rival_curve(grid, grid - tau, "L_un − τ"),
            log="xy",
            ylim=(0.02, None),
        )
