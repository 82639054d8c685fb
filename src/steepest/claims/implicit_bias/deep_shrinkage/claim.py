"""Weight decay on the layers of a linear network thresholds the singular values of what it learns.

The thresholding is soft with two layers, and has a jump from three layers on. A product of L layers with singular
values z costs at least Σ‖W_i‖² = L Σ z^{2/L}. So each singular value s of the target is shrunk by itself, to the z that
minimizes ½(s − z)² + ½λL z^{2/L}, with λ the weight decay. At two layers the penalty is the nuclear norm, and z is s −
λ or zero. From three layers on the penalty's slope at zero is infinite: zero is always a local minimum, and the best
one up to a threshold s_c. There z jumps to (L − 2)/(L − 1) of s_c; the deeper the network, the nearer to hard
thresholding. Which minimum descent finds depends on its start: from a small start decay wins, however large s is.
"""

from collections.abc import Callable
from typing import Annotated

import numpy as np

from steepest import kit
from steepest.claims.implicit_bias.deep_shrinkage import experiment, theory
from steepest.claims.implicit_bias.deep_shrinkage.experiment import Counts, Spectra
from steepest.nn.types import Values

DISTANT = 0.03  # relative distance of the spectrum from every threshold, where descent is slow and minima tie
ENDED = 1e-6  # largest gradient at the end of a descent
ZERO = 1e-3  # a product whose singular values are all below has died


@kit.claim
class DeepShrinkage(kit.Claim[Spectra]):
    """Linear networks of two to five layers on targets of one spectrum; each from leading parts and random starts."""

    spectrum: tuple[kit.Positive, ...] = kit.param(
        (0.4, 0.67, 0.88, 1.17, 1.6, 2.3),
        "singular values of the target",
        scope=kit.choices(
            (0.4, 0.67, 0.88, 1.17, 1.6, 2.3),
            (0.4, 0.56, 0.78, 1.02, 1.35, 2.0),
            (0.56, 0.88, 1.17, 1.5, 2.0),
            why="none is near a threshold, where descent is slow",
        ),
    )
    layers: tuple[Annotated[int, kit.Within(2, 8)], ...] = kit.param(
        (2, 3, 4, 5), "L of each network", scope=kit.choices((2, 3, 4, 5), (2, 4, 5), (2, 3, 5))
    )
    decay: kit.NonNegative = kit.param(
        0.25, "λ on the spectrum", scope=kit.choices(0.2, 0.25, 0.3, why="as for the spectrum")
    )
    decays: tuple[kit.Positive, ...] = kit.param(
        (0.05, 0.1, 0.2),
        "λ where the threshold is searched for",
        scope=kit.choices((0.05, 0.1, 0.2), (0.04, 0.08, 0.16), (0.08, 0.12, 0.16, 0.2)),
    )
    starts: kit.Count = kit.param(6, "random starts of each network")
    small: kit.Count = kit.param(6, "small starts of each network")
    lr: kit.Positive = kit.param(
        0.02, "step size", scope=kit.between(0.01, 0.02, "beyond descent is unstable")
    )
    steps: kit.Count = kit.param(1500, "steps of descent, with momentum 0.9", unit="steps")
    search_steps: kit.Count = kit.param(500, "steps of each descent in the search", unit="steps")
    seeds: kit.Seeds = kit.param(4, "targets")

    kind = "theorem"
    says = {
        "thresholds the singular values": ("shrunk", "least", "ends"),
        "soft with two layers, and has a jump from three layers on": (
            "shrunk",
            "threshold",
            "landing",
        ),
    }
    tiny = {
        "spectrum": (0.4, 1.17, 2.3),
        "layers": (2, 3, 4),
        "starts": 2,
        "small": 1,
        "steps": 400,
        "search_steps": 100,
        "seeds": 3,
    }
    full = {"starts": 40, "small": 40, "seeds": 10, "steps": 3000, "search_steps": 2000}
    out_of_scope = {"spectrum": (0.4, 0.7071, 1.6)}

    @property
    def deep(self) -> tuple[int, ...]:
        """Return the numbers of layers from three on."""
        return tuple(number for number in self.layers if number > 2)

    def axes(self):
        return {"layers": self.layers, "s": self.spectrum, "deep": self.deep, "decay": self.decays}

    def check_fields(self) -> None:
        if not self.deep:
            raise kit.UserError(
                f"layers must have a number above two; got {self.layers}; try 2 3 4"
            )

    def setting(self, key):
        rng = kit.numpy_generator(key)
        return experiment.spectra(rng, np.array(self.spectrum), self.seeds)

    def hypotheses(self, setting):
        critical = [
            s
            for number in self.layers
            for s in (theory.threshold(self.decay, number), theory.turning(self.decay, number)[0])
        ]
        nearest = np.abs(1 - np.divide.outer(critical, self.spectrum)).min()
        last = max(theory.threshold(decay, number) for decay in self.decays for number in self.deep)
        yield kit.assume("λ", self.decay, ">", 0, "without decay nothing is shrunk")
        yield kit.assume("distance of s to the nearest threshold", nearest, ">", DISTANT)
        yield kit.assume("largest threshold searched for", last, "<", experiment.FAR)

    def predict(self, setting):
        shrunk = self._table(theory.shrunk)
        cost = np.array(
            [
                sum(
                    theory.cost(z, s, self.decay, number)
                    for z, s in zip(row, self.spectrum, strict=True)
                )
                for row, number in zip(shrunk, self.layers, strict=True)
            ]
        )
        return kit.law(
            shrunk=("layers s", shrunk),
            least=("layers", cost),
            kept=("layers s", self._table(theory.kept)),
            threshold=("deep decay", self._searched(theory.threshold)),
            landing=("deep decay", self._searched(theory.landing)),
            dies=("layers", [float(number > 2) for number in self.layers]),
        )

    def _table(self, function: Callable[[float, float, int], float]) -> Values:
        return np.array(
            [[function(s, self.decay, number) for s in self.spectrum] for number in self.layers]
        )

    def _searched(self, function: Callable[[float, int], float]) -> Values:
        return np.array(
            [[function(decay, number) for decay in self.decays] for number in self.deep]
        )

    def observe(self, setting, key):
        rng = kit.numpy_generator(key)
        singular = np.array(self.spectrum)
        counts = Counts(self.starts, self.small)
        problems = experiment.networks(rng, setting, singular, self.layers, self.decay, counts)
        ended = experiment.train(experiment.flattened(problems), self.lr, self.steps)
        shape = problems.decay.shape
        value = ended.value.reshape(shape)
        product = ended.product.reshape(problems.target.shape)
        learned = np.linalg.svd(product, compute_uv=False)[..., ::-1]
        place = np.argsort(np.argsort(singular))
        learned = learned[..., place]  # in the order of the spectrum
        searched = value[..., : -1 - self.small]
        best = searched.argmin(-1)
        of_best = np.take_along_axis(learned, best[..., None, None], 2)[:, :, 0]
        turned = np.einsum("sia,slxij,sjb->slxab", setting.left, product, setting.right)
        along = np.diagonal(turned, axis1=-2, axis2=-1)
        across = np.abs(turned - along[..., None] * np.eye(len(singular))).max((-2, -1))
        dead = learned.max(-1) < ZERO
        crossing = self.searched(rng)
        return kit.seen(
            shrunk=("seed layers s", of_best),
            least=("seed layers", searched.min(-1)),
            along=("seed layers start s", along[:, :, :-1]),
            across=("seed layers start", across[:, :, :-1]),
            dies=("seed layers small", dead[..., -1 - self.small : -1]),
            threshold=("seed deep decay", crossing.threshold),
            landing=("seed deep decay", crossing.landing),
            search=("seed deep decay", crossing.moved),
            slope=max(ended.slope.max(), crossing.slope.max()),
            undecayed=("seed layers s", learned[:, :, -1]),
            undecayed_value=("seed layers", value[:, :, -1]),
            undecayed_along=("seed layers s", along[:, :, -1]),
            large_dies=("seed layers", dead[:, :, len(singular)]),
        )

    def searched(self, rng: np.random.Generator) -> experiment.Crossing:
        """Return the crossings of each depth and decay, ``(seeds, deep, decays)``."""
        shape = (self.seeds, len(self.deep), len(self.decays))
        d = len(self.spectrum)
        sides = rng.standard_normal((2, int(np.prod(shape)), d))
        left, right = sides / np.linalg.norm(sides, axis=-1, keepdims=True)
        layers = np.broadcast_to(np.array(self.deep)[:, None], shape).ravel()
        decays = np.broadcast_to(np.array(self.decays), shape).ravel()
        crossings = experiment.crossing(left, right, decays, layers, self.lr, self.search_steps)
        return experiment.Crossing(*(part.reshape(shape) for part in crossings))

    def run_conditions(self, observed):
        yield kit.assume(
            "largest gradient at an end", float(observed["slope"]), "<=", ENDED, "raise --steps"
        )
        yield kit.assume("last step of the search", float(observed["search"].max()), "<=", ENDED)

    def derive(self, law, seen):
        """Return how far ends are from zero and from the kept value, along the target's singular directions."""
        nearest = np.minimum(np.abs(seen.along), np.abs(seen.along - law.kept))
        return {"astray": np.maximum(nearest.max("s"), seen.across)}

    def judge(self, law, seen):
        yield kit.follows(
            "shrunk",
            law.shrunk,
            seen.shrunk,
            1e-5,
            absolute=True,
            each=True,
            label="singular values of the best product",
        )
        yield kit.follows(
            "least", law.least, seen.least, 1e-6, each=True, label="least value found"
        )
        yield kit.agrees(
            "ends",
            seen.astray,
            1e-5,
            label="ends of all starts: distance to zero or the kept value in each direction",
        )
        yield kit.follows(
            "threshold",
            law.threshold,
            seen.threshold,
            1e-5,
            each=True,
            label="s at which zero ceases to be the best",
        )
        yield kit.follows(
            "landing", law.landing, seen.landing, 1e-5, each=True, label="z to which it jumps there"
        )
        yield kit.follows(
            "dies",
            law.dies,
            seen.dies,
            0.0,
            absolute=True,
            each=True,
            label="whether a small start ends at zero",
        )

    def rivals(self, setting, law):
        s = np.array(self.spectrum)
        fewer = [[theory.shrunk(x, self.decay, number - 1) for x in s] for number in self.layers]
        yield kit.rival(
            "soft thresholding at every depth",
            "the notes say it of two layers, and decay is a quadratic penalty at every depth",
            id="nuclear",
            shrunk=("s", np.maximum(s - self.decay, 0)),
            threshold=("decay", self.decays),
            landing=1e-9,
        )
        yield kit.rival(
            "kept as soon as a minimum with z > 0 exists",
            "there descent from a large start keeps the value",
            shrunk=law.kept,
            threshold=("deep decay", self._searched(lambda *at: theory.turning(*at)[0])),
            landing=("deep decay", self._searched(lambda *at: theory.turning(*at)[1])),
        )
        yield kit.rival(
            "above the threshold nothing is shrunk",
            "it is the limit of great depth",
            shrunk=law.s * (law.shrunk > 0),
            landing=law.threshold,
        )
        yield kit.rival(
            "λ/2 in place of λ",
            "λ‖W‖²/2 has the slope λW",
            shrunk=(
                "layers s",
                [[theory.shrunk(x, self.decay / 2, number) for x in s] for number in self.layers],
            ),
            threshold=(
                "deep decay",
                self._searched(lambda decay, number: theory.threshold(decay / 2, number)),
            ),
        )
        yield kit.rival(
            "the law of L − 1 layers",
            "L − 1 layers are hidden",
            shrunk=("layers s", fewer),
            threshold=(
                "deep decay",
                self._searched(lambda decay, number: theory.threshold(decay, number - 1)),
            ),
        )
        yield kit.rival(
            "small starts learn what exceeds the threshold at every depth",
            "small starts leave the saddle at zero",
            id="always_learns",
            dies=0 * law.dies,
        )

    def controls(self, seen):
        next_depth = {
            name: seen[name].roll(layers=1, roll_coords=False)
            for name in ("shrunk", "least", "along", "dies")
        }
        yield kit.control(
            "networks without weight decay",
            "nothing is shrunk",
            shrunk=seen.undecayed,
            least=seen.undecayed_value,
            along=seen.undecayed_along,
        )
        yield kit.control(
            "networks of another depth",
            "depth decides",
            threshold=seen.threshold.roll(deep=1, roll_coords=False),
            landing=seen.landing.roll(deep=1, roll_coords=False),
            **next_depth,
        )
        yield kit.control(
            "starts near the target in place of small ones",
            "it lies beyond the barrier",
            dies=seen.large_dies,
        )

    def figure(self, law, seen, rivals):
        end = 1.1 * max(self.spectrum)
        s = np.linspace(0, end, 400)
        curves = []
        for i, number in enumerate(self.layers):
            shade = 0.8 * i / max(1, len(self.layers) - 1)
            z = np.array([theory.shrunk(x, self.decay, number) for x in s])
            measured = seen.shrunk.isel(layers=i).mean("seed")
            curves.append(
                kit.observed_curve(
                    self.spectrum, measured, f"{number} layers", kind="points", shade=shade
                )
            )
            curves.append(kit.predicted_curve(s, z, "", shade=shade))
        yield kit.panel(
            f"Shrinkage of singular values, λ = {self.decay:g}",
            "singular value s of the target",
            "z of the best product",
            *curves,
            kit.rival_curve(s, s, "not shrunk"),
        )
        yield kit.curves(
            "Zero is the best up to the threshold",
            law.threshold,
            seen.threshold,
            over="decay",
            by="deep",
            x="weight decay λ",
            y="threshold s_c",
            name="{} layers",
            rivals={"soft: s_c = λ": rivals["nuclear"].threshold.isel(deep=0)},
            log="xy",
        )
