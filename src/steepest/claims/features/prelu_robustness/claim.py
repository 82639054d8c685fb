"""On k orthogonal clusters ReLU networks flip at distance 1/√k from a centre, p-ReLU networks (p = 3, 4) at 1/√2.

Trained from a small start, the neurons of a ReLU network end at the average of each class, which is closer to the
other class the more clusters there are. With relu(z)^p/‖w‖^{p−1} and p > 2 ties are broken, neurons end at single
centres, and the boundary lies half-way between two centres, however many there are. An attack that sets out from the
example does not see it: its gradient towards other clusters vanishes.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple

import jax
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
    UserError,
    Within,
    assume,
    bound,
    compiled,
    equal,
    exponent,
    numpy_generator,
    observed_curve,
    panel,
    predicted_curve,
    rival_curve,
)
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
    """Clusters, and digits without and with the mean image, one a seed."""

    clusters: Clusters
    images: Images  # (2, seeds, …): centred, raw
    start: Neurons  # of the networks on digits, one a seed


@dataclass(frozen=True)
class PreluRobustness(Claim):
    """Two-layer networks Σ v relu⟨w, x⟩^p/‖w‖^{p−1} on Gaussian clusters around orthonormal centres, and on digits."""

    powers: tuple[Annotated[float, Within(1)], ...] = (1.0, 3.0, 4.0)  # p [1]
    # k, clusters of both classes together, half of them positive [1]
    clusters: tuple[Annotated[int, Within(2)], ...] = (4, 8, 12)
    dimension: Count = 24  # d of the clusters [1]
    each: Count = 10  # examples a cluster [1]
    spread: NonNegative = 0.1  # α, about the distance of an example from its centre [1]
    width: Count = 96  # h on clusters [neurons]
    scale: Positive = 0.03  # ε, norm of the input weights at the start, about [1]
    steps: Count = 120  # of descent on log R, on clusters [steps]
    images: Count = 200  # digits to train on [1]
    tests: Count = 80  # digits that are attacked [1]
    image_width: Count = 40  # h on digits [neurons]
    image_steps: Count = 200  # of descent on log R, on digits [steps]
    seeds: Seeds = 5  # independent data and starts [1]

    kind = "conjecture"
    # 1 took means over infinite radii, where an attack had found no boundary; 3 draws by NumPy
    version = 3
    headline = ("radius_0", "radius_1", "radius_2", "exponent_0", "exponent_1", "exponent_2")
    statement = (
        r"f(x)=\sum_j v_j\frac{\mathrm{relu}\langle w_j,x\rangle^p}{\lVert w_j\rVert^{p-1}},\qquad"
        r"\min\{\lVert\delta\rVert:f(\mu_i)f(\mu_i+\delta)\le0\}\approx"
        r"\begin{cases}1/\sqrt k&p=1\\1/\sqrt2&p\ge3\end{cases}"
    )
    corrections = (
        "The talk gives 1/√k with k “the number of cluster centres” while it counts K₁ and K₂ by class: k is of "
        "both classes together. Counted by class the radius would be 1/√(k/2), which the data reject.",
    )
    remarks = (
        "The talk shows more robustness of p-ReLU on digits. On scikit-learn's images of 8 × 8 pixels, even against "
        "odd, we find it after the mean image is subtracted, and no gain on images as they are.",
        "That training ends at averages or at centres is a conjecture of the talk. The radii follow from it: with "
        "all neurons of a class at its average the boundary is a hyperplane at 1/√k from every centre, for equal "
        "margins; with neurons at the centres, equal weights and K₂ centres of the other class it lies at √(c/(1 + "
        "c)), c = min(1, K₂^(1−2/p)), which is 1/√2 from p = 2 on.",
        "The cosine is that of every neuron with the average of its class, weighted by |v|‖w‖: 1 at the average, "
        "1/√(k/2) at a centre. Finite samples tilt the averages of ReLU networks: with 5 examples a cluster the "
        "cosine was 0.976 (radius 1.5 % too large, exponent −0.479), with 10 it is about 0.99.",
        "In the talk's discussion KKT points of the margin problem are expected to be the centres for higher p. "
        "With examples at the centres both are KKT points for every p > 1, centres and class averages (residuals "
        "below 1e-6 in our tests). Their normalized margins differ: that of the averages is (k/2)^(1 − p/2) times "
        "that of the centres, larger below p = 2 and smaller above it, which is where trained networks change in "
        "the diagram.",
        "Between p = 1.25 and 3 nothing is judged. At p = 2 a gradient turns no direction in the span of its centres, "
        "and ties stay; the diagram shows how the radius changes there. Below 2 neurons end at the average as for p "
        "= 1, but the nearer to 2 the later: at p = 1.8 the radius was still 1.22 times that of the average, with a "
        "cosine of 0.86, and at 1.5 it was 3 % too large. The talk's discussion guesses that ties are broken the other "
        "way.",
        "Projected gradient descent from the example itself finds nothing for p ≥ 3 below a radius near 1: the "
        "gradient towards another centre, p b^(p−1), is zero at b = 0. Our attack sets out from the boundary on the "
        "way to examples of the other class. It gives an upper bound on the distance to the boundary.",
        "On digits (even against odd, unit norm) the judge compares the mean radius over test images, zero where "
        "the network is wrong, after the same steps of descent; repetitions are random subsets of the same 1797 "
        "images. p = 3 fits more slowly. The accuracy under attacks of radius 0.2, as in the talk's figure, gains "
        "0.03 to 0.23 (interval over 5 sets): too noisy to judge, and replaced by the mean radius while the claim "
        "was prepared.",
        "Of the fresh seeds of version 1 seventeen of twenty held. One was inconclusive (the exponent of ReLU), one "
        "out of range (a network of 45 had not learned its clusters), and one failed by our fault: an attack on one "
        "image found no boundary, and the mean radius was no number. Version 2 counts such radii as 1, the norm of "
        "an image.",
        "Version 3 draws clusters by NumPy, for speed; digits are drawn as before. Of its twenty fresh seeds nineteen "
        "held, and one was inconclusive: the judge passed digits with their mean image too.",
    )
    source = "Second part of the talk [@vidal2024]; [@min2024b]; [@frei2023]"
    out_of_scope = {"spread": 1.5}
    point = PreluPoint
    full = {"clusters": (4, 8, 16), "width": 192, "steps": 400, "seeds": 10, "tests": 150}
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

    def check_fields(self) -> None:
        if max(self.clusters) > self.dimension:
            raise UserError(
                f"at most --dimension {self.dimension} centres are orthogonal, got --clusters {max(self.clusters)}"
            )
        if self.images + self.tests > 1797:
            raise UserError(
                f"there are 1797 digits, got --images {self.images} and --tests {self.tests}"
            )
        if self.images < 20:
            raise UserError(f"--images must be at least 20, got {self.images}")

    def setting(self, key: Key) -> Setting:
        rng = numpy_generator(key)
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

    def hypotheses(self, setting: Setting) -> list[Hypothesis]:
        data = setting.clusters
        products = np.einsum("snd,skd->snk", data.x, data.centres)
        at = np.repeat(np.arange(data.centres.shape[1]), self.each)
        own = products[:, np.arange(len(at)), at]
        products[:, np.arange(len(at)), at] = -np.inf
        between = sum(NEAR_ONE < power < 3 for power in self.powers)
        return [
            assume(
                "largest product with another centre over that with the own, of all examples",
                np.where(own > 0, products.max(2) / own, np.inf).max(),
                "<",
                0.5,
                "the clusters overlap; lower --spread",
            ),
            assume(
                f"powers between {NEAR_ONE:g} and 3",
                between,
                "==",
                0,
                "near p = 2 neurons hardly turn, and end between averages and centres; choose other --powers",
            ),
            assume("start ε", self.scale, "<", 0.5, "neurons align only while they are small"),
            assume(
                "centres to which no neuron of their class is nearest at the start",
                sum(_unserved(data, k) for k in self.clusters),
                "==",
                0,
                "raise --width",
            ),
        ]

    def predict(self, setting: Setting) -> Prediction:
        k = np.array(self.clusters)
        low = np.array([power < 2 for power in self.powers])
        return Prediction(
            radius=("power problem", [radius_in_theory(power, k) for power in self.powers]),
            exponent=("power", np.where(low, -0.5, 0.0)),
            cosine=("power problem", np.where(low[:, None], 1.0, _to_average(k))),
            gain=GAIN,
        )

    def observe(self, setting: Setting, key: Key) -> Observation:
        cells = [(power, k) for power in self.powers for k in self.clusters]
        attacked = min(ATTACKED, *self.clusters)

        def on_clusters(data: Clusters, power: jax.Array, k: jax.Array) -> tuple:
            one = lambda power, k: train_and_attack(power, k, data, self.steps, attacked)
            return jax.vmap(one)(power, k)

        every = lambda data, power, k: jax.lax.map(lambda one: on_clusters(one, power, k), data)
        shape = (self.seeds, len(self.powers), len(self.clusters))
        columns = [np.array(column) for column in zip(*cells, strict=True)]
        trained = jax.tree.map(np.asarray, compiled(every)(setting.clusters, *columns))

        # every set with every power as one axis: nested maps take longer to trace than all of this takes to run
        sets = (2, self.seeds, len(IMAGE_POWERS))
        across = lambda leaf: np.repeat(leaf.reshape(-1, *leaf.shape[2:]), sets[2], 0)
        starts = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (2, *leaf.shape)), setting.start)
        images, starts = jax.tree.map(across, (setting.images, starts))
        each_set = jax.vmap(train_and_attack_images, (0, 0, 0, None))
        on_images = lambda p, data, start: each_set(p, data, start, self.image_steps)
        powers = np.tile(np.array(IMAGE_POWERS), 2 * self.seeds)
        ends = compiled(on_images)(powers, images, starts)
        fits, radii = (np.asarray(leaf).reshape(sets + leaf.shape[1:]) for leaf in ends)
        cells_of = lambda values: values.reshape(shape + values.shape[2:])
        return Observation(
            log_risk=("seed power problem", cells_of(trained.log_risk)),
            radius=("seed power problem", cells_of(trained.radius.mean(-1))),
            plain=("seed power problem", cells_of(np.minimum(trained.plain, 1.0).mean(-1))),
            cosine=("seed power problem", cells_of(trained.cosine)),
            digits=("seed p image", radii[0]),
            raw=("seed p image", radii[1]),
            digits_log_risk=("seed p", fits[0]),
        )

    def run_conditions(self, observed: Observation) -> list[Hypothesis]:
        largest = lambda name: float(np.exp(np.nan_to_num(observed[name], nan=np.inf).max()))
        missed = max(np.isinf(observed[name]).mean() for name in ("radius", "digits"))
        return [
            assume(
                "largest risk on clusters at the end",
                largest("log_risk"),
                "<",
                0.1 / max(self.clusters),
                "raise --steps",
            ),
            assume(
                "largest risk on centred digits at the end",
                largest("digits_log_risk"),
                "<",
                0.3,
                "raise --image-steps",
            ),
            assume("share of attacks that found no boundary", missed, "<", 0.02),
        ]

    def judge(self, predicted: Prediction, observed: Observation) -> list[Check]:
        checks: list[Check] = []
        for i, power in enumerate(self.powers):
            ratios = observed["radius"][:, i] / predicted["radius"][i]
            turns = observed["cosine"][:, i] / predicted["cosine"][i]
            at_averages = predicted["exponent"][i] < 0
            checks += [
                equal(
                    f"radius_{i}",
                    np.ones(self.seeds),
                    ratios.mean(1),
                    # of single examples, α off their centres, the averages and boundaries are made
                    0.05 if at_averages else 0.03,
                    label=f"radius at a centre / predicted, p = {power:g}",
                ),
                equal(
                    f"cosine_{i}",
                    np.ones(self.seeds),
                    turns.mean(1),
                    0.05 if at_averages else 0.03,  # as above
                    label=f"cosine of neurons with the average of their class / predicted, p = {power:g}",
                ),
            ]
            if len(set(self.clusters)) > 2:
                checks.append(
                    exponent(
                        f"exponent_{i}",
                        float(predicted["exponent"][i]),
                        self.clusters,
                        observed["radius"][:, i],
                        0.05 if at_averages else 0.03,
                        label=f"radius against k, p = {power:g}",
                    )
                )
        # images have norm one: where no boundary was found, the radius counts as that
        reach = np.minimum(observed["digits"], 1.0).mean(-1)  # (seeds, powers)
        checks.append(
            bound(
                "digits",
                reach[:, 1] / reach[:, 0],
                at_least=float(predicted["gain"]),
                label="mean radius on centred digits, p = 3 over p = 1",
            )
        )
        return checks

    def rivals(self, setting: Setting, predicted: Prediction) -> list[Rival]:
        k = np.array(self.clusters)
        low = np.array(self.powers) < 2
        dims = "power problem"

        def radius(below: np.ndarray, above: np.ndarray) -> np.ndarray:
            return np.where(low[:, None], below, above)

        half = np.full(len(k), 1 / np.sqrt(2))
        others = [
            Rival(
                "half_distance",
                predicted.replace(
                    radius=(dims, radius(half, half)),
                    exponent=("power", 0 * low - 0.0),
                    cosine=(dims, np.tile(_to_average(k), (len(low), 1))),
                ),
                "half the distance of two centres: neurons at centres at every power",
                label="1/√2 for ReLU too",
            ),
            Rival(
                "no_help",
                predicted.replace(
                    radius=(dims, radius(1 / np.sqrt(k), 1 / np.sqrt(k))),
                    exponent=("power", 0 * low - 0.5),
                    cosine=(dims, np.ones_like(predicted["cosine"])),
                ),
                "the average classifies every cluster, whatever the power",
                label="1/√k at every power",
            ),
            Rival(
                "per_class",
                predicted.replace(radius=(dims, radius(1 / np.sqrt(k / 2), half))),
                "the talk says “k is the number of cluster centres” and counts K₁ and K₂ apart",
                label="1/√(k/2) for ReLU: k counted per class",
            ),
            Rival(
                "centres_at_one",
                predicted.replace(radius=(dims, radius(1 / np.sqrt(1 + k / 2), half))),
                "a ReLU network whose neurons are at the centres is less robust than 1/√2 too",
                label="1/√(1 + k/2): ReLU neurons at centres",
            ),
        ]
        # where only powers on one side of two are run, the rivals about the other side say what the claim says
        of_high = ("no_help",)
        runs = {True: (~low).any(), False: low.any()}
        return [rival for rival in others if runs[rival.id in of_high]]

    def controls(self, observed: Observation) -> list[Control]:
        dims = observed.quantity("radius").dims
        return [
            Control(
                "plain_attack",
                observed.replace(radius=(dims, observed["plain"])),
                "gradients towards other clusters vanish at an example",
                "radii that projected gradient descent from the centre finds",
            ),
            Control(
                "raw_digits",
                observed.replace(digits=(observed.quantity("digits").dims, observed["raw"])),
                "images with their mean are no orthogonal clusters",
                "digits without subtracting the mean image",
            ),
        ]

    def panels(self, predicted: Prediction, observed: Observation) -> tuple[Panel, ...]:
        k = np.array(self.clusters, float)
        fine = np.geomspace(min(k), max(k), 40)
        shades = np.linspace(0, 0.8, len(self.powers))
        curves = [
            observed_curve(
                k, observed["radius"][:, i], f"p = {power:g}", kind="points", shade=shade
            )
            for i, (power, shade) in enumerate(zip(self.powers, shades, strict=True))
        ]
        plain = [
            observed_curve(
                k, observed["plain"][:, i].mean(0), f"p = {power:g}", kind="points", shade=shade
            )
            for i, (power, shade) in enumerate(zip(self.powers, shades, strict=True))
        ]
        half = np.full(len(fine), 1 / np.sqrt(2))
        radii = np.linspace(0, 0.5, 60)
        accuracy = lambda name: (observed[name][..., None] > radii).mean(
            -2
        )  # (seeds, powers, radii)
        lines = lambda name: [
            observed_curve(radii, accuracy(name)[:, i], f"p = {power:g}", shade=0.5 * i)
            for i, power in enumerate(IMAGE_POWERS)
        ]
        theory = (
            predicted_curve(fine, 1 / np.sqrt(fine), "1/√k"),
            predicted_curve(fine, half, "1/√2"),
        )
        return (
            panel(
                "ReLU radii shrink with k, p-ReLU radii do not",
                "clusters k",
                "radius",
                *curves,
                *theory,
                rival_curve(fine, 1 / np.sqrt(fine / 2), "1/√(k/2)"),
                log="xy",
                ylim=(0.2, 1.2),
            ),
            panel(
                "Plain PGD is blind for p ≥ 3",
                "clusters k",
                "radius (1: none found)",
                *plain,
                *theory,
                log="xy",
                ylim=(0.2, 1.2),
            ),
            panel(
                "Digits, mean image subtracted",
                "radius of the attack",
                "accuracy",
                *lines("digits"),
                ylim=(0, 1),
            ),
            panel(
                "Digits as they are: no gain",
                "radius of the attack",
                "accuracy",
                *lines("raw"),
                ylim=(0, 1),
            ),
        )


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
