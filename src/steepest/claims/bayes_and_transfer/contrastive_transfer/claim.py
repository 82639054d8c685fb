"""A low contrastive loss guarantees a good mean classifier for the average pair of classes.

This bound holds for every representation. The mean classifier has the class means of the representation as its weights.
The proof uses Jensen's inequality twice: means in place of examples can only lower a convex loss, and a negative from
the positive's own class costs at least one bit. To leading order the bound loses exactly the variation within classes.
Blocks, in which means of b positives and of b negatives stand in place of one each, divide this loss by b.
"""

from typing import Annotated

import numpy as np
import xarray

from steepest import kit
from steepest.claims.bayes_and_transfer._contrastive import (
    CLASSES,
    FEWEST,
    Draws,
    drawn,
    losses,
    matrices,
    zipf,
)
from steepest.claims.bayes_and_transfer.contrastive_transfer.experiment import block_slacks
from steepest.claims.bayes_and_transfer.contrastive_transfer.point import ContrastiveTransferPoint
from steepest.claims.bayes_and_transfer.contrastive_transfer.theory import Slack, leading_slack
from steepest.measurement.quantities import pair_weights
from steepest.nn.types import Values

BLOCK_SCALE = (
    0.3  # of representations whose blocks are drawn; the slack's next order is one per cent
)


@kit.claim
class ContrastiveTransfer(kit.Claim[Draws]):
    """Exact contrastive losses of random linear representations of digits."""

    per_class: Annotated[int, kit.Within(4, FEWEST)] = kit.param(
        20,
        "images that make up each class's distribution",
        unit="images",
        scope=kit.between(12, 30, "fewer leave a class without spread of its own"),
    )
    ks: tuple[kit.Count, ...] = kit.param(
        (4, 16, 64),
        "dimensions k of representations; the middle one is used for small ones",
        scope=kit.choices((4, 16, 64), (4, 8, 64)),
    )
    amplitudes: tuple[kit.Positive, ...] = kit.param(
        (0.5, 2.0, 4.5),
        "scales a of f = aWᵀx, W ~ N(0, 1/k)",
        scope=kit.choices((0.5, 2.0, 4.5), (0.4, 1.8, 4.0)),
    )
    small: tuple[kit.Positive, ...] = kit.param(
        (0.05, 0.1, 0.2),
        "scales at which the slack's law is judged",
        scope=kit.choices((0.05, 0.1, 0.2), (0.04, 0.08, 0.16), why="it is an expansion"),
    )
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
    seeds: kit.Seeds = kit.param(4, "choices of images, matrices and triples")

    kind = "theorem"
    says = {
        "A low contrastive loss guarantees a good mean classifier for the average pair of classes": (
            "bound",
            "tight",
        ),
        "holds for every representation": "bound",
        "divide this loss by b": kit.literal("blocks", power={"block": -1}),
    }
    tiny = {"per_class": 6, "seeds": 3, "draws": 4000}
    full = {"per_class": 40, "seeds": 10}
    out_of_scope = {"other_skew": 2.0}
    point = ContrastiveTransferPoint

    @property
    def shares(self) -> Values:
        """Return equal and skewed shares of the classes."""
        return np.stack([zipf(0.0), zipf(self.skew)])

    @property
    def middle(self) -> int:
        """Return the dimension of the small representations."""
        return self.ks[len(self.ks) // 2]

    def axes(self):
        return {"shares": ("equal", "skewed"), "scale": self.small, "block": self.blocks}

    def check_fields(self) -> None:
        if len(self.blocks) < 2:
            raise kit.UserError(
                f"contrastive-transfer: expected two sizes of blocks or more, which are compared, got "
                f"blocks = {self.blocks}; try 1 2 4 8"
            )

    def setting(self, key):
        return drawn(key, self.seeds, self.per_class, max(self.ks))

    def hypotheses(self, setting):
        distance = np.abs(zipf(self.skew + self.other_skew) - zipf(self.skew)).max()
        yield kit.assume(
            "largest difference of class shares between the stages",
            distance,
            "==",
            0,
            "pairs and triples must have the same class shares; let --other-skew be 0",
        )
        yield kit.assume(
            "largest of the small scales", max(self.small), "<=", 0.25, "an expansion in f"
        )

    def predict(self, setting):
        totals = np.array([[slack.total for slack in row] for row in self.slacks(setting)])
        tau = np.array([pair_weights(shares).collision for shares in self.shares])
        return kit.law(
            offset=("shares", tau),
            factor=("shares", 1 / (1 - tau)),
            # of fourth order in f
            slack=("shares seed scale", totals[..., None] * np.array(self.small) ** 4),
            # means of b features have Σ/b for Σ
            blocks=("seed block", totals[0][:, None] * BLOCK_SCALE**4 / np.array(self.blocks)),
        )

    def slacks(self, setting: Draws) -> list[list[Slack]]:
        """Return the leading slack at scale one, by shares and seed."""
        features = setting.features(self.middle)
        return [[leading_slack(f, shares) for f in features] for shares in self.shares]

    def observe(self, setting, key):
        family = [(k, scale) for k in self.ks for scale in self.amplitudes]
        family += [(self.middle, scale) for scale in self.small]
        of_pairs = np.stack([zipf(0.0), zipf(self.skew + self.other_skew)])
        weights = matrices(setting.noise, family)
        measured = losses(setting.images, weights, self.shares, of_pairs)
        dims = "family seed shares"
        rng = kit.numpy_generator(key)
        small = setting.features(self.middle, BLOCK_SCALE)
        blocks = [block_slacks(features, self.blocks, self.draws, rng) for features in small]
        return kit.seen(
            un=(dims, measured.un),
            different=(dims, measured.different),
            supervised=(dims, measured.supervised),
            blocks=("seed block", blocks),
        )

    def derive(self, law, seen):
        """Return what the bound leaves, of all representations and of the small ones."""
        slack = (seen.un - law.offset) * law.factor - seen.supervised
        small = slack.isel(family=slice(-len(self.small), None)).rename(family="scale")
        return {"every_slack": slack, "slack": small.assign_coords(scale=law.scale)}

    def judge(self, law, seen):
        label = "(L_un − τ)/(1 − τ) − L_sup of all representations"
        yield kit.excluded("bound", 0.0, seen.every_slack, label=label)
        yield kit.follows(
            "tight",
            law.slack,
            seen.slack,
            0.03,  # the next order is of the scale's square, 0.01 at 0.2
            over="shares scale",
            each=True,
            label="this slack from the spread, small representations",
        )
        # the interval is 0.03, the next order at this scale 0.02
        yield kit.follows("blocks", law.blocks, seen.blocks, 0.08, label="slack of blocks")

    def rivals(self, setting, law):
        yield kit.rival("L_sup ≤ L_un − τ", "it subtracts what collisions cost", factor=1.0)
        yield kit.rival(
            "τ = 1/C for any shares",
            "so it is for equal classes",
            offset=1 / CLASSES,
            factor=CLASSES / (CLASSES - 1),
        )
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
        yield kit.rival(
            "slack of blocks ∝ b^−½",
            "averages fluctuate like b^−½",
            id="root_blocks",
            blocks=law.blocks * np.sqrt(law.block),
        )

    def controls(self, seen):
        yield kit.control(
            "negatives of other classes only",
            "as printed; nothing collides, so that there is no τ to subtract",
            id="negatives_of_other_classes_alone",
            un=seen.different,
        )
        yield kit.control(
            "supervised pairs of skewed classes for pairs of equal ones, and so on",
            "the classes of the pairs are not the classes of the triples",
            id="other_pairs",
            supervised=(seen.supervised.dims, seen.supervised.values[..., ::-1]),
        )
        yield kit.control(
            "blocks of one, whatever their size",
            "one positive and one negative are no block",
            blocks=seen.blocks.isel(block=0, drop=True),
        )

    def figure(self, law, seen, rivals):
        tau = float(law.offset[0])
        un, supervised = (seen[name].isel(shares=0).values.ravel() for name in ("un", "supervised"))
        grid = np.geomspace(0.2, un.max() * 1.1, 200)
        yield kit.panel(
            "No representation is above the bound",
            "contrastive loss L_un [bits]",
            "L_sup [bits]",
            kit.observed_curve(un, supervised, "random", kind="points"),
            kit.predicted_curve(grid, (grid - tau) / (1 - tau), "(L_un − τ)/(1 − τ)"),
            kit.rival_curve(grid, grid - tau, "L_un − τ"),
            log="xy",
            ylim=(0.02, None),
        )
        yield kit.curves(
            "The slack is the spread within classes",
            law.slack,
            seen.slack,
            over="scale",
            by="shares",
            x="scale of f",
            y="(L_un − τ)/(1 − τ) − L_sup",
            name="{} classes",
            rivals={"only the negatives' spread": rivals["negatives_only"].slack.isel(shares=0)}
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
