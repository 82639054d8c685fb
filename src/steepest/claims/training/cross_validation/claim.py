"""Leave-one-out error predicts the risk of kernel regression, with a ridge and without one.

GCV, generalized cross-validation, predicts ⟨e²/v²⟩/⟨1/v⟩² instead. Here e is the error on a new example, v the variance
that the kernel leaves at this example given the training inputs, and ⟨·⟩ a mean over new examples. So GCV is right
where v is the same at all examples: with a ridge, or on Gaussian inputs. On digits without a ridge it is about a third
too low.
"""

from typing import NamedTuple

import numpy as np
import xarray

from steepest import kit
from steepest.claims.training.cross_validation import experiment, theory
from steepest.claims.training.cross_validation.experiment import World

NEW = 300  # examples that a fit is tested on, at most; all are new to some fit


class Sets(NamedTuple):
    """Partitions of all examples into training sets.

    Attributes: train: places of the examples that are fitted, ``(seeds, sets, n)``. new: places of the examples on
    which the fit is tested, ``(seeds, sets, new)``.
    """

    train: kit.Values
    new: kit.Values


class Setting(NamedTuple):
    """All examples, and which of them train."""

    digits: World
    gaussian: World
    moved: (
        kit.Values
    )  # kernel of images that are moved by a pixel with those that are not, (images, images)
    sets: tuple[Sets, ...]  # for each n


def partition(order: kit.Values, n: int) -> Sets:
    """Return sets of n that follow each other in orders of all examples, each tested on those that come next.

    Args:
        order: of all examples, ``(seeds, examples)``.
        n: examples of a set.
    """
    count = order.shape[1]
    starts = n * np.arange(count // n)[:, None]
    following = (starts + n + np.arange(min(NEW, count - n))) % count
    return Sets(order[:, starts + np.arange(n)], order[:, following])


@kit.claim
class CrossValidation(kit.Claim[Setting]):
    """Kernel regression on digits: disjoint training sets, each tested on all other images."""

    sizes: tuple[kit.Count, ...] = kit.param(
        (45, 90, 180),
        "n, examples of a training set",
        unit="examples",
        scope=kit.choices((45, 90, 180), (50, 100), (40, 120)),
    )
    ridges: tuple[kit.Positive, ...] = kit.param(
        (1e-6, 1e-3, 1e-2),
        "δ: the penalty is nδ, with a kernel that is one at equal inputs",
        scope=kit.choices((1e-6, 1e-3, 1e-2), (1e-7, 1e-4, 0.03), (1e-6, 0.003, 0.3)),
    )
    depth: kit.Count = kit.param(
        1, "hidden layers of the tangent kernel", unit="layers", scope=kit.between(1, 3)
    )
    images: kit.Count = kit.param(900, "digits", unit="images", scope=kit.between(800, 1000))
    seeds: kit.Seeds = kit.param(24, "partitions into training sets")

    kind = "theorem"
    says = {
        "Leave-one-out error predicts the risk of kernel regression": "risk",
        "predicts ⟨e²/v²⟩/⟨1/v⟩² instead": "weighed",
    }
    tiny = {"sizes": (25, 50), "ridges": (1e-6, 0.1), "images": 150, "seeds": 3}
    full = {"images": 1797, "seeds": 48}
    out_of_scope = {"sizes": (4, 8), "images": 100, "seeds": 3}

    def axes(self):
        return {"n": self.sizes, "ridge": self.ridges}

    def setting(self, key):
        rng = kit.numpy_generator(key)
        originals, moved, labels = experiment.images(rng, self.images)
        world = World(experiment.tangent(originals, originals, self.depth), labels)
        order = rng.permuted(np.tile(np.arange(self.images), (self.seeds, 1)), axis=1)
        sets = tuple(partition(order, n) for n in self.sizes)
        return Setting(
            world,
            experiment.gaussian(rng, world),
            experiment.tangent(moved, originals, self.depth),
            sets,
        )

    def hypotheses(self, setting):
        yield kit.assume(
            "smallest n", min(self.sizes), ">=", 25, "the law is to first order in 1/n"
        )
        yield kit.assume(
            "digits over the largest n",
            self.images / max(self.sizes),
            ">=",
            3,
            "most images must be new",
        )

    def predict(self, setting):
        of_digits = self.estimates(setting.digits, setting.sets)
        of_gaussian = self.estimates(setting.gaussian, setting.sets)
        return kit.law(
            risk=("seed n ridge", of_digits[..., 0]),
            weighed=("seed n ridge", of_digits[..., 1]),
            gaussian=("seed n ridge", of_gaussian[..., 1]),
        )

    def estimates(self, world: World, sets: tuple[Sets, ...]) -> kit.Values:
        """Return estimates from training sets, in the mean over each partition, ``(seeds, n, ridges, estimates)``."""
        means = np.empty((len(sets[0].train), len(sets), len(self.ridges), 3))
        for row, of_size in enumerate(sets):
            for seed, train in enumerate(of_size.train):
                grams = world.gram[train[:, :, None], train[:, None, :]]
                for column, ridge in enumerate(self.ridges):
                    means[seed, row, column] = theory.estimates(grams, world.labels[train], ridge)
        return means

    def observe(self, setting, key):
        on_digits = self.errors(setting, setting.sets)
        few = tuple(Sets(sets.train[:, :1], sets.new[:, :1]) for sets in setting.sets)
        on_moved = self.errors(setting, few, setting.moved)
        return kit.seen(
            risk=("seed n ridge", on_digits[..., 0]),
            weighed=("seed n ridge", on_digits[..., 1]),
            gaussian=("seed n ridge", self.gaussian_risks(setting)),
            moved_risk=("seed n ridge", on_moved[..., 0]),
            moved_weighed=("seed n ridge", on_moved[..., 1]),
        )

    def errors(
        self, setting: Setting, sets: tuple[Sets, ...], elsewhere: kit.Values | None = None
    ) -> kit.Values:
        """Return errors on new digits, in the mean over training sets, ``(seeds, n, ridges, 2)``."""
        means = np.empty((self.seeds, len(sets), len(self.ridges), 2))
        for row, of_size in enumerate(sets):
            for seed in range(self.seeds):
                of_sets = [
                    experiment.errors(setting.digits, train, new, self.ridges, elsewhere)
                    for train, new in zip(of_size.train[seed], of_size.new[seed], strict=True)
                ]
                means[seed, row] = np.mean(of_sets, axis=0)
        return means

    def gaussian_risks(self, setting: Setting) -> kit.Values:
        """Return risks on Gaussian inputs, in the mean over training sets, ``(seeds, n, ridges)``."""
        means = np.empty((self.seeds, len(self.sizes), len(self.ridges)))
        for row, of_size in enumerate(setting.sets):
            for seed in range(self.seeds):
                of_sets = [
                    experiment.risks(setting.gaussian, train, new, self.ridges)
                    for train, new in zip(of_size.train[seed], of_size.new[seed], strict=True)
                ]
                means[seed, row] = np.mean(of_sets, axis=0)
        return means

    def judge(self, law, seen):
        yield kit.follows(
            "risk",
            law.risk,
            seen.risk,
            0.07,  # exact but for one example of n, 1 % at the fewest; the interval takes up to 4 %
            over="n ridge",
            label="on digits: risk, from leaving one out",
        )
        yield kit.follows(
            "weighed",
            law.weighed,
            seen.weighed,
            0.07,  # the same, and 1/n for the spread of tr A
            over="n ridge",
            label="on digits: weighted risk, from GCV",
        )
        yield kit.follows(
            "gaussian",
            law.gaussian,
            seen.gaussian,
            0.06,  # GCV is low by 1/n here too, 2 % at 50 examples
            over="n ridge",
            label="on Gaussian inputs of the same covariance: risk, from GCV",
        )

    def rivals(self, setting, law):
        first = tuple(Sets(sets.train[:1], sets.new[:1]) for sets in setting.sets)
        of_first = self.estimates(setting.digits, first)[0]
        in_thirds = self.folds(setting.digits, first) / of_first[..., 0]
        expected = of_first[..., 2] / of_first[..., 1]
        on_both = ("n", "ridge")
        yield kit.rival(
            "risk: GCV", "GCV predicts the risk, ridgeless too", id="source", risk=law.weighed
        )
        yield kit.rival(
            "risk: three-fold cross-validation",
            "leaving a third out is as good",
            risk=law.risk * xarray.DataArray(in_thirds, dims=on_both),
        )
        yield kit.rival(
            "GCV's limit: the risk",
            "every new example counts the same",
            id="all_alike",
            weighed=law.risk,
        )
        yield kit.rival(
            "GCV's limit: harmonic over arithmetic mean of v",
            "errors are as large as the kernel expects",
            weighed=law.weighed * xarray.DataArray(expected, dims=on_both),
        )
        yield kit.rival(
            "GCV as low as on digits",
            "GCV is too low whatever the inputs",
            gaussian=law.gaussian * law.risk / law.weighed,
        )

    def folds(self, world: World, sets: tuple[Sets, ...]) -> kit.Values:
        """Return three-fold cross-validation in the mean over the first partition, ``(n, ridges)``."""
        means = np.empty((len(sets), len(self.ridges)))
        for row, of_size in enumerate(sets):
            for column, ridge in enumerate(self.ridges):
                of_sets = [
                    theory.folds(world.gram[np.ix_(train, train)], world.labels[train], ridge, 3)
                    for train in of_size.train[0]
                ]
                means[row, column] = np.mean(of_sets)
        return means

    def controls(self, seen):
        yield kit.control(
            "new images a pixel further to the right",
            "new images are not like the training images",
            risk=seen.moved_risk,
            weighed=seen.moved_weighed,
        )
        yield kit.control(
            "digits for Gaussian inputs",
            "their kernel has the same covariance",
            id="digits",
            gaussian=seen.risk,
        )

    def figure(self, law, seen, rivals):
        ridge = {"ridge": self.ridges[0]}
        without = lambda array: array.sel(ridge, drop=True)
        largest = lambda array: array.isel(n=-1, drop=True)
        wrong = {}
        if rivals:
            wrong = {"GCV": without(rivals["source"].risk).mean("seed")}
        share = law.weighed / law.risk
        yield kit.curves(
            "Without a ridge GCV is too low",
            without(law.risk).mean("seed"),
            without(seen.risk),
            over="n",
            x="examples n",
            y="risk on new digits",
            rivals=wrong,
            log="xy",
        )
        yield kit.curves(
            "A ridge makes all examples count alike",
            largest(share).mean("seed"),
            largest(seen.weighed / seen.risk),
            over="ridge",
            x=f"ridge δ, at {self.sizes[-1]} examples",
            y="weighted risk over risk",
            log="x",
            ylim=(0, 1.1),
        )
