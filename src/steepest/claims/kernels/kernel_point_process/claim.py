"""Interpolants through determinantal samples of a kernel average to kernel ridge regression.

Such a sample picks points by leverage and keeps them apart. A subset S has a probability proportional to det(K_S/λ),
the squared volume of its features; points that are close together make this volume small. With M = K(K + λ)⁻¹, point i
is in S with probability M_ii. M_ii is the point's leverage in ridge regression, and λ M_ii is the variance that a
Gaussian process keeps at this point at noise λ. Two points i and j are both in S with probability M_ii M_jj − M_ij².
The number of points is a sum of independent coins, one for each eigenvalue μ of K, with probability μ/(μ + λ). With L =
K/λ, Σ_S det(L_S)(L_S)⁻¹ is the derivative of Σ_S det(L_S) = det(1 + L). So the least-norm interpolants through samples
have the mean K(K + λ)⁻¹y: sampling regularizes as ridge does.
"""

from typing import Annotated, NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.kernels.kernel_point_process.experiment import (
    Moments,
    Plan,
    interpolated,
    moments,
    over_all_subsets,
    sampled,
)
from steepest.claims.kernels.kernel_point_process.theory import pair_chances, smoother
from steepest.kernels import nngp
from steepest.nn.data import digits
from steepest.nn.networks import mlp
from steepest.nn.types import Values

FEW = 10  # images of which all subsets are tried
EXACT = 1e-9


class Setting(NamedTuple):
    """Kernels of a random network of infinite width, and targets."""

    circle: Values  # on equally spaced directions, (points, points)
    step: Values  # targets there, ±1
    images: Values  # on digits, (images, images)
    labels: Values  # targets of the first ten, ±1


@kit.claim
class KernelPointProcess(kit.Claim[Setting]):
    """The kernel of a wide ReLU network, on directions in the plane and on digits."""

    ridges: tuple[kit.Positive, ...] = kit.param(
        (0.1, 0.3, 1.0),
        "λ",
        scope=kit.choices(
            (0.1, 0.3, 1.0),
            (0.05, 0.2, 1.0),
            (0.07, 0.25, 1.0),
            why="leverages are alike above one",
        ),
    )
    points: Annotated[int, kit.Within(8, 120)] = kit.param(
        36,
        "directions in the plane, an even number",
        scope=kit.choices(24, 30, 36, why="pairs at one angle are rarer among more"),
    )
    images: Annotated[int, kit.Within(FEW, 200)] = kit.param(
        30, "digits", scope=kit.between(25, 35, "leverages of more images are more alike")
    )
    layers: Annotated[int, kit.Within(1, 5)] = kit.param(
        2,
        "hidden layers of the network",
        unit="layers",
        scope=kit.choices(1, 2, why="leverages are more alike in deeper ones"),
    )
    lowered: kit.NonNegative = kit.param(0.0, "what is taken off the diagonal of the kernels")
    seeds: kit.Seeds = kit.param(20, "groups of chains")
    chains: kit.Count = kit.param(20, "chains of each group")
    samples: kit.Count = kit.param(32, "samples of each chain, a sweep apart")

    kind = "theorem"
    says = {
        "picks points by leverage": ("leverage", "size"),
        "keeps them apart": ("repulsion", "spread"),
        "Interpolants through determinantal samples of a kernel average to kernel ridge regression": (
            "ridge",
            "enumerated",
        ),
    }
    tiny = {"points": 16, "images": 12, "seeds": 4, "chains": 10, "samples": 4}
    full = {"points": 60, "images": 100, "seeds": 40, "samples": 40}
    out_of_scope = {"lowered": 0.5}

    @property
    def ridge(self) -> float:
        """Return the λ of the digits: the largest."""
        return max(self.ridges)

    def axes(self):
        turn = 360 / self.points
        few = tuple(range(1, FEW + 1))
        return {
            "ridge": self.ridges,
            "angle": tuple(turn * gap for gap in range(1, self.points // 2 + 1)),
            "direction": tuple(turn * place for place in range(self.points)),
            "image": tuple(range(1, self.images + 1)),
            "first": few,
            "second": few,
        }

    def setting(self, key):
        data = digits(n=self.images, key=key)
        angles = 2 * np.pi * np.arange(self.points) / self.points
        plane = np.sqrt(2) * np.column_stack([np.cos(angles), np.sin(angles)])
        labels = np.where(np.asarray(data.y).argmax(1) < 5, 1.0, -1.0)
        step = np.where(np.arange(self.points) < self.points // 3, 1.0, -1.0)
        kernels = [self._kernel(np.asarray(x)) for x in (plane, data.x)]
        return Setting(kernels[0], step, kernels[1], labels[:FEW])

    def _kernel(self, x: Values) -> Values:
        """Return the covariance of the outputs of a wide network at some inputs."""
        widths = (x.shape[1], *[64] * self.layers, 1)
        net = mlp(widths, "relu", parameterized="ntk", c_w=2.0, c_b=0.1)
        return np.asarray(nngp(net.limit(), x)) - self.lowered * np.eye(len(x))

    def hypotheses(self, setting):
        least = min(np.linalg.eigvalsh(kernel)[0] for kernel in (setting.circle, setting.images))
        yield kit.assume("smallest eigenvalue", least, ">=", -1e-12, "chances must not be negative")
        yield kit.assume("directions modulo 2", self.points % 2, "==", 0, "choose an even --points")

    def predict(self, setting):
        circle = [smoother(setting.circle, ridge) for ridge in self.ridges]
        few = [smoother(setting.images[:FEW, :FEW], ridge) for ridge in self.ridges]
        half = self.points // 2
        return kit.law(
            size=("ridge", [np.trace(m) for m in circle]),
            # their number is a sum of independent draws with M's eigenvalues: Var = tr M(1 − M)
            spread=("ridge", [np.trace(m - m @ m) for m in circle]),
            # P(i and j)/(M_ii M_jj) = 1 − M_ij²/(M_ii M_jj)
            repulsion=("ridge angle", [1 - (m[0, 1 : half + 1] / m[0, 0]) ** 2 for m in circle]),
            output=("ridge direction", [m @ setting.step for m in circle]),
            leverage=("image", smoother(setting.images, self.ridge).diagonal()),
            pairs=("ridge first second", [pair_chances(m) for m in few]),
            few_output=("ridge first", [m @ setting.labels for m in few]),
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        plan = Plan(self.seeds, self.chains, self.samples)
        kernel = setting.circle
        circles = [sampled(kernel / ridge, plan, rng) for ridge in self.ridges]
        # a control needs a quarter of the draws
        alone = [rng.random(subsets[:, ::4].shape) < subsets.mean() for subsets in circles]
        odds = [kernel.diagonal() / ridge for ridge in self.ridges]
        of_products = [rng.random(circles[0].shape) < chance / (1 + chance) for chance in odds]
        runs = [moments(kernel, setting.step, subsets) for subsets in circles]
        independent = [moments(kernel, setting.step, subsets) for subsets in alone]
        images = sampled(setting.images / self.ridge, plan, rng)
        odds_of_images = setting.images.diagonal() / self.ridge
        few = setting.images[:FEW, :FEW]
        every = [over_all_subsets(few, setting.labels, ridge) for ridge in self.ridges]
        squared = [over_all_subsets(few, setting.labels, ridge, 2.0) for ridge in self.ridges]
        return kit.seen(
            **_by_ridge(runs, ""),
            **_by_ridge(independent, "independent_"),
            products_size=("ridge seed", [subsets.sum(-1).mean(-1) for subsets in of_products]),
            leverage=("seed image", images.mean(1)),
            products_leverage=(
                "seed image",
                (rng.random(images.shape) < odds_of_images / (1 + odds_of_images)).mean(1),
            ),
            pairs=("ridge first second", [sums.pairs for sums in every]),
            few_output=("ridge first", [sums.output for sums in every]),
            squared_pairs=("ridge first second", [sums.pairs for sums in squared]),
            squared_output=("ridge first", [sums.output for sums in squared]),
            examples=("example direction", interpolated(kernel, setting.step, circles[-1][0, :2])),
        )

    def derive(self, law, seen):
        """Return how far the exact means over all subsets are from the law, by λ."""
        pairs = abs(seen.pairs - law.pairs).max(["first", "second"])
        outputs = abs(seen.few_output - law.few_output).max("first")
        return {"away": np.maximum(pairs, outputs)}

    def judge(self, law, seen):
        yield kit.follows("size", law.size, seen.size, 0.03, label="mean number of points")
        yield kit.follows("spread", law.spread, seen.spread, 0.15, label="variance of their number")
        yield kit.follows(
            "leverage",
            law.leverage,
            seen.leverage,
            0.04,  # shares of 12 800 samples, of thirty images at once
            absolute=True,
            label=f"chance of each image, λ = {self.ridge:g}",
        )
        yield kit.follows(
            "repulsion",
            law.repulsion,
            seen.repulsion,
            0.12,  # ratios of shares, where six points of 36 are drawn
            absolute=True,
            label="chance of two directions, over the chance of independent directions",
        )
        yield kit.follows(
            "ridge",
            law.output,
            seen.output,
            0.08,  # of targets ±1
            absolute=True,
            label="mean of the interpolants through samples, in each direction",
        )
        yield kit.agrees(
            "enumerated",
            seen.away,
            EXACT,
            label=f"all subsets of {FEW} images: chances of pairs and mean interpolant, from the law",
        )

    def rivals(self, setting, law):
        circle = [smoother(setting.circle, ridge) for ridge in self.ridges]
        alone = [m.diagonal() for m in circle]
        few = [setting.images[:FEW, :FEW] for _ in self.ridges]
        half = [smoother(m, ridge / 2) for m, ridge in zip(few, self.ridges, strict=True)]
        half_circle = [smoother(setting.circle, ridge / 2) for ridge in self.ridges]
        yield kit.rival(
            "points that are independent of one another",
            "it is so of the mean number",
            spread=("ridge", [(chance * (1 - chance)).sum() for chance in alone]),
            repulsion=xarray.ones_like(law.repulsion),
        )
        yield kit.rival(
            "M_ii M_jj + M_ij²: points attract one another",
            "it is so of permanents",
            repulsion=2 - law.repulsion,
            spread=("ridge", [np.trace(m + m @ m) for m in circle]),
        )
        yield kit.rival(
            "M_ii M_jj − |M_ij| √(M_ii M_jj)",
            "a kernel is a correlation",
            repulsion=1 - (1 - law.repulsion).clip(min=0) ** 0.5,
        )
        yield from self.rivals_of_size(setting, law)
        yield kit.rival(
            "interpolants average to ridge regression with λ/2",
            "an interpolant through a sample has no ridge of its own",
            id="half_the_ridge",
            output=("ridge direction", [m @ setting.step for m in half_circle]),
            few_output=("ridge first", [m @ setting.labels for m in half]),
        )

    def rivals_of_size(self, setting, law):
        """Return other chances of single points, and other numbers of them."""
        values = np.linalg.eigvalsh(setting.circle)
        yield kit.rival(
            "K for M: a point's chance is K_ii/(K_ii + λ)",
            "the weight of a single point is K_ii/λ",
            size=(
                "ridge",
                [
                    (setting.circle.diagonal() / (setting.circle.diagonal() + ridge)).sum()
                    for ridge in self.ridges
                ],
            ),
            leverage=(
                "image",
                setting.images.diagonal() / (setting.images.diagonal() + self.ridge),
            ),
        )
        yield kit.rival(
            "as many points as eigenvalues above λ",
            "an eigenvalue above λ counts, one below does not",
            size=("ridge", [float((values > ridge).sum()) for ridge in self.ridges]),
        )
        yield kit.rival(
            "each image with the mean leverage",
            "images of one norm are alike",
            leverage=law.leverage.mean() + 0 * law.leverage,
        )

    def controls(self, seen):
        yield kit.control(
            "independent points with the same chances",
            "near points are taken together",
            spread=seen.independent_spread,
            repulsion=seen.independent_repulsion,
            output=seen.independent_output,
        )
        yield kit.control(
            "P(S) ∝ Π K_ii/λ in place of the determinant",
            "a product of K_ii is no volume",
            size=seen.products_size,
            leverage=seen.products_leverage,
        )
        yield kit.control(
            "P(S) ∝ det²",
            "only the determinant itself has the sum det(1 + L)",
            pairs=seen.squared_pairs,
            few_output=seen.squared_output,
        )

    def figure(self, law, seen, rivals):
        directions = law.direction.values
        last = {"ridge": -1}
        leverages = np.sort(law.leverage.values)
        yield kit.curves(
            "Near directions are seldom taken together",
            law.repulsion,
            seen.repulsion,
            over="angle",
            by="ridge",
            x="angle between two directions (°)",
            y="chance / independent",
            name="λ = {}",
        )
        yield kit.panel(
            f"Chance of an image, λ = {self.ridge:g}",
            "leverage in ridge regression",
            "share of samples",
            kit.observed_curve(
                law.leverage.values, seen.leverage.mean("seed"), "images", kind="points"
            ),
            kit.predicted_curve(leverages, leverages, "the same"),
        )
        yield kit.panel(
            "Interpolants through samples average to ridge",
            "direction (°)",
            "output",
            *(
                kit.context_curve(directions, example, "of one sample" if place == 0 else "")
                for place, example in enumerate(seen.examples.values)
            ),
            kit.observed_curve(
                directions, seen.output.isel(last).mean("seed"), "mean", kind="points"
            ),
            kit.predicted_curve(directions, law.output.isel(last), "ridge"),
        )


def _by_ridge(runs: list[Moments], prefix: str) -> dict[str, tuple[str, list[Values]]]:
    """Return the moments of each λ as arrays."""
    axes = {"size": "", "spread": "", "repulsion": " angle", "output": " direction"}
    return {
        prefix + name: (f"ridge seed{axis}", [getattr(run, name) for run in runs])
        for name, axis in axes.items()
    }
