"""On k orthogonal clusters, trained ReLU networks change their sign at distance 1/√k from a centre.

Networks of p-ReLU neurons with p = 3 or 4 change theirs at distance 1/√2, for any number of clusters. Trained from a
small start, the neurons of a ReLU network end at the average of each class. The more clusters there are, the closer
this average is to the other class. With relu(z)^p/‖w‖^{p−1} and p > 2 ties are broken and neurons end at single
centres. Then the boundary lies half-way between two centres, for any number of centres. An attack that starts at the
example does not find this boundary: its gradient towards other clusters vanishes.
"""

from typing import Annotated, Any, NamedTuple

import jax
import numpy as np
import xarray

from steepest import kit
from steepest.claims.features.prelu_robustness.experiment import (
    ATTACKED,
    Clusters,
    Images,
    PreluPoint,
    clusters_from,
    draw_images,
    radius_in_theory,
    starts_from,
    train_and_attack,
    train_and_attack_images,
)
from steepest.nn.networks import Neurons

NEAR_ONE = 1.25
"""The largest power at which training ends at averages in the time there is: at p = 1.8 it does not."""
IMAGE_POWERS = (1.0, 3.0)
GAIN = 1.1  # of the mean radius on digits, p = 3 over p = 1: a tenth is worth the change


class Setting(NamedTuple):
    """Clusters, and digits without and with the mean image, one of each per seed."""

    clusters: Clusters
    images: Images  # (2, seeds, …): centred, raw
    start: Neurons  # of the networks on digits, one per seed


@kit.claim
class PreluRobustness(kit.Claim[Setting]):
    """Two-layer networks Σ v relu⟨w, x⟩^p/‖w‖^{p−1} on Gaussian clusters around orthonormal centres, and on digits."""

    powers: tuple[Annotated[float, kit.Within(1)], ...] = kit.param(
        (1.0, 3.0, 4.0),
        "p",
        scope=kit.choices(
            (1.0, 3.0, 4.0), (1.0, 3.5), (1.0, 3.0, 5.0), why="near p = 2 neurons hardly turn"
        ),
    )
    clusters: tuple[Annotated[int, kit.Within(2)], ...] = kit.param(
        (4, 8, 12),
        "k, of both classes together, half of them positive",
        scope=kit.choices(
            (4, 8, 12), (4, 6, 10), (6, 12), why="of an odd number the classes are no longer alike"
        ),
    )
    dimension: kit.Count = kit.param(24, "d of the clusters", scope=kit.between(16, 32))
    each: kit.Count = kit.param(
        10,
        "examples a cluster",
        scope=kit.between(10, 15, "fewer tilt the averages of ReLU networks"),
    )
    spread: kit.NonNegative = kit.param(
        0.1,
        "α, about the distance of an example from its centre",
        scope=kit.between(0.05, 0.1, "wider clusters tilt the averages too"),
    )
    width: kit.Count = kit.param(
        128,
        "h on clusters",
        unit="neurons",
        scope=kit.between(128, 160, "narrow networks leave centres without a neuron"),
    )
    scale: kit.Positive = kit.param(
        0.01,
        "ε, norm of the input weights at the start, about",
        scope=kit.between(0.003, 0.02, "neurons align only while they are small"),
    )
    steps: kit.Count = kit.param(120, "steps of descent on log R, on clusters", unit="steps")
    images: kit.Count = kit.param(200, "digits to train on", scope=kit.between(150, 250))
    tests: kit.Count = kit.param(50, "digits that are attacked")
    image_width: kit.Count = kit.param(40, "h on digits", unit="neurons", scope=kit.between(32, 64))
    image_steps: kit.Count = kit.param(200, "steps of descent on log R, on digits", unit="steps")
    seeds: kit.Seeds = kit.param(8, "independent data and starts")

    kind = "conjecture"
    says = {
        "ReLU networks change their sign at distance 1/√k from a centre": kit.literal(
            "radius", value=1, power={"problem": -0.5}, at={"power": 1.0}
        ),
        "p-ReLU neurons with p = 3 or 4 change theirs at distance 1/√2": kit.literal(
            "radius", value=0.5**0.5, at={"power": [3.0, 4.0]}
        ),
    }
    ragged = ("digits", "raw")
    tiny = {
        "clusters": (2, 3, 4),
        "dimension": 6,
        "width": 24,
        "steps": 100,
        "images": 40,
        "tests": 5,
        "image_width": 8,
        "image_steps": 20,
        "seeds": 3,
    }
    full = {"clusters": (4, 8, 16), "width": 192, "steps": 400, "seeds": 10, "tests": 150}
    out_of_scope = {"spread": 1.5}
    point = PreluPoint

    def axes(self):
        return {"power": self.powers, "problem": self.clusters, "p": IMAGE_POWERS}

    def check_fields(self) -> None:
        if max(self.clusters) > self.dimension:
            raise kit.UserError(
                f"at most --dimension {self.dimension} centres are orthogonal, got --clusters {max(self.clusters)}"
            )
        if self.images + self.tests > 1797:
            raise kit.UserError(
                f"there are 1797 digits, got --images {self.images} and --tests {self.tests}"
            )
        if self.images < 20:
            raise kit.UserError(f"--images must be at least 20, got {self.images}")

    def setting(self, key):
        rng = kit.numpy_generator(key)
        start = starts_from(rng, self.seeds, self.image_width, 64, self.scale)
        drawn = [
            [draw_images(rng, self.images, self.tests, centred) for _ in range(self.seeds)]
            for centred in (True, False)
        ]
        sets = [jax.tree.map(lambda *leaves: np.stack(leaves), *images) for images in drawn]
        images = jax.tree.map(lambda *leaves: np.stack(leaves), *sets)
        problems = [
            clusters_from(rng, max(self.clusters), self.dimension, self.each, self.spread)
            for _ in range(self.seeds)
        ]
        x, y, centres = (np.stack(arrays) for arrays in zip(*problems, strict=True))
        wide = starts_from(rng, self.seeds, self.width, self.dimension, self.scale)
        return Setting(Clusters(x, y, centres, wide), images, start)

    def hypotheses(self, setting):
        data = setting.clusters
        products = np.einsum("snd,skd->snk", data.x, data.centres)
        at = np.repeat(np.arange(data.centres.shape[1]), self.each)
        own = products[:, np.arange(len(at)), at]
        products[:, np.arange(len(at)), at] = -np.inf
        between = sum(NEAR_ONE < power < 3 for power in self.powers)
        yield kit.assume(
            "largest product with another centre over that with the own, of all examples",
            np.where(own > 0, products.max(2) / own, np.inf).max(),
            "<",
            0.5,
            "the clusters overlap; lower --spread",
        )
        yield kit.assume(
            f"powers between {NEAR_ONE:g} and 3",
            between,
            "==",
            0,
            "near p = 2 neurons hardly turn, and end between averages and centres; choose other --powers",
        )
        yield kit.assume("start ε", self.scale, "<", 0.5, "neurons align only while they are small")
        yield kit.assume(
            "centres to which no neuron of their class is nearest at the start",
            sum(_unserved(data, k) for k in self.clusters),
            "==",
            0,
            "raise --width",
        )

    def predict(self, setting):
        k = np.array(self.clusters)
        low = np.array([power < 2 for power in self.powers])
        dims = "power problem"
        return kit.law(
            radius=(dims, [radius_in_theory(power, k) for power in self.powers]),
            cosine=(dims, np.where(low[:, None], 1.0, _to_average(k))),
            gain=GAIN,
        )

    def observe(self, setting, key):
        cells = [(power, k) for power in self.powers for k in self.clusters]
        attacked = min(ATTACKED, *self.clusters)

        def on_clusters(data: Clusters, power: jax.Array, k: jax.Array) -> tuple:
            one = lambda power, k: train_and_attack(power, k, data, self.steps, attacked)
            return jax.vmap(one)(power, k)

        every = lambda data, power, k: jax.lax.map(lambda one: on_clusters(one, power, k), data)
        shape = (self.seeds, len(self.powers), len(self.clusters))
        columns = [np.array(column) for column in zip(*cells, strict=True)]
        trained = jax.tree.map(np.asarray, kit.compiled(every)(setting.clusters, *columns))

        # every set with every power as one axis: nested maps take longer to trace than all of this takes to run
        sets = (2, self.seeds, len(IMAGE_POWERS))
        across = lambda leaf: np.repeat(leaf.reshape(-1, *leaf.shape[2:]), sets[2], 0)
        starts = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (2, *leaf.shape)), setting.start)
        images, starts = jax.tree.map(across, (setting.images, starts))
        each_set = jax.vmap(train_and_attack_images, (0, 0, 0, None))
        on_images = lambda p, data, start: each_set(p, data, start, self.image_steps)
        powers = np.tile(np.array(IMAGE_POWERS), 2 * self.seeds)
        ends = kit.compiled(on_images)(powers, images, starts)
        fits, radii = (np.asarray(leaf).reshape(sets + leaf.shape[1:]) for leaf in ends)
        cells_of = lambda values: values.reshape(shape + values.shape[2:])
        return kit.seen(
            log_risk=("seed power problem", cells_of(trained.log_risk)),
            radius=("seed power problem", cells_of(trained.radius.mean(-1))),
            plain=("seed power problem", cells_of(np.minimum(trained.plain, 1.0).mean(-1))),
            cosine=("seed power problem", cells_of(trained.cosine)),
            start_cosine=("seed power problem", cells_of(trained.start_cosine)),
            digits=("seed p image", radii[0]),
            raw=("seed p image", radii[1]),
            digits_log_risk=("seed p", fits[0]),
        )

    def run_conditions(self, observed):
        largest = lambda name: float(np.exp(np.nan_to_num(observed[name], nan=np.inf).max()))
        missed = max(np.isinf(observed[name]).mean() for name in ("radius", "digits"))
        yield kit.assume(
            "largest risk on clusters at the end",
            largest("log_risk"),
            "<",
            0.1 / max(self.clusters),
            "raise --steps",
        )
        yield kit.assume(
            "largest risk on centred digits at the end",
            largest("digits_log_risk"),
            "<",
            0.3,
            "raise --image-steps",
        )
        yield kit.assume("share of attacks that found no boundary", missed, "<", 0.02)

    def derive(self, law, seen):
        """Return by how much the mean radius on digits grows with the power."""
        # images have norm one: where no boundary was found, the radius counts as that
        reach = np.minimum(seen.digits, 1.0).mean("image")
        return {"gained": reach.isel(p=1, drop=True) / reach.isel(p=0, drop=True)}

    def judge(self, law, seen):
        yield kit.follows(
            "radius",
            law.radius,
            seen.radius,
            0.05,  # of single examples, α off their centres, averages and boundaries are made
            label="radius at a centre",
        )
        yield kit.follows(
            "cosine",
            law.cosine,
            seen.cosine,
            0.05,  # as above
            label="cosine of neurons with the average of their class",
        )
        yield kit.at_least(
            "digits", law.gain, seen.gained, label="mean radius on centred digits, p = 3 over p = 1"
        )

    def rivals(self, setting, law):
        k = law.problem
        low = law.power < 2
        centres = xarray.DataArray(_to_average(np.array(self.clusters)), dims="problem")
        below = lambda radius: xarray.where(low, radius, law.radius)
        others = [
            kit.rival(
                "1/√2 for ReLU too",
                "half the distance of two centres: neurons at centres at every power",
                radius=0.5**0.5,
                cosine=centres,
            ),
            kit.rival(
                "1/√k at every power",
                "the average classifies every cluster, whatever the power",
                id="no_help",
                radius=k**-0.5,
                cosine=1.0,
            ),
            kit.rival(
                "1/√(k/2) for ReLU: k counted per class",
                "the talk says “k is the number of cluster centres” and counts K₁ and K₂ apart",
                id="per_class",
                radius=below((k / 2) ** -0.5),
            ),
            kit.rival(
                "1/√(1 + k/2): ReLU neurons at centres",
                "a ReLU network whose neurons are at the centres is less robust than 1/√2 too",
                radius=below((1 + k / 2) ** -0.5),
            ),
        ]
        # where only powers on one side of two are run, the rivals about the other side say what the claim says
        runs = {True: bool((~low).any()), False: bool(low.any())}
        return [rival for rival in others if runs[rival.id == "no_help"]]

    def controls(self, seen):
        yield kit.control(
            "radii that projected gradient descent from the centre finds",
            "gradients towards other clusters vanish at an example",
            id="plain_attack",
            radius=seen.plain,
        )
        yield kit.control(
            "networks at their start",
            "neurons turn to averages or centres while they train",
            cosine=seen.start_cosine,
        )
        yield kit.control(
            "digits without subtracting the mean image",
            "images with their mean are no orthogonal clusters",
            digits=seen.raw,
        )

    def figure(self, law, seen, rivals):
        look: dict[str, Any] = {
            "over": "problem",
            "by": "power",
            "x": "clusters k",
            "name": "p = {}",
            "log": "xy",
            "ylim": (0.2, 1.2),
        }
        wrong = (
            {"1/√(k/2)": rivals["per_class"].radius.isel(power=0)} if "per_class" in rivals else {}
        )
        radii = np.linspace(0, 0.5, 60)

        def accuracy(title: str, array: xarray.DataArray) -> kit.Panel:
            """Draw the share of images whose radius is larger, over the radius."""
            shares = (array.transpose("seed", "p", "image").values[..., None] > radii).mean(2)
            lines = [
                kit.observed_curve(radii, shares[:, i], f"p = {power:g}", shade=0.5 * i)
                for i, power in enumerate(IMAGE_POWERS)
            ]
            return kit.panel(title, "radius of the attack", "accuracy", *lines, ylim=(0, 1))

        yield kit.curves(
            "ReLU radii shrink with k, p-ReLU radii do not",
            law.radius,
            seen.radius,
            y="radius",
            rivals=wrong,
            **look,
        )
        yield kit.curves(
            "Plain PGD is blind for p ≥ 3",
            law.radius,
            seen.plain,
            y="radius (1: none found)",
            **look,
        )
        yield accuracy("Digits, mean image subtracted", seen.digits)
        yield accuracy("Digits as they are: no gain", seen.raw)


def _to_average(k: np.ndarray) -> np.ndarray:
    """Return the mean cosine of centres with the average of their class: 1/√(k/2) for even k."""
    return (np.sqrt(np.ceil(k / 2)) + np.sqrt(k // 2)) / k


def _unserved(data: Clusters, k: int) -> int:
    """Count centres of the first k, over all starts, to which no neuron of their class is nearest of that class."""
    count = 0
    signs = np.where(np.arange(k) % 2 == 0, 1.0, -1.0)
    for centres, w, v in zip(data.centres, data.start.w, data.start.v, strict=True):
        products = w @ centres[:k].T  # (h, k)
        mine = signs * v[:, None] > 0
        products = np.where(mine, products, -np.inf)
        nearest = products.argmax(1)[products.max(1) > 0]
        count += k - len(np.unique(nearest))
    return count
