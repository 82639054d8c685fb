"""Sharpness-aware minimization settles at ηλ(1 + ρλ/‖∇L‖) = 2 and pushes the curvature λ down.

With step size η and radius ρ, it settles there at any λ < 2/η that hardly moves in a step. So this edge is not a
curvature at which sharpening stops. Gradients converge to the size that the edge requires, ηρλ²/(2 − ηλ), and the
curvature goes on falling. The force that pushes the curvature is 2ρ²∇λ/(2 − ηλ)². Where the curvature falls fast,
gradients lag behind.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.training._tanh_network import sharpness
from steepest.claims.training.sam_edge import experiment, theory
from steepest.claims.training.sam_edge.experiment import Rule
from steepest.claims.training.sam_edge.point import SamEdgePoint
from steepest.optimizers import Sam

PARTS = 5  # of a training, at whose ends two successive steps are read
LATE = 3  # of these parts are judged
DOWNHILL = 0.0  # mean cosine of successive gradients, which is one while steps only go downhill
MOMENTUM = 0.5  # of the control
SETTLED = 400  # steps on a parabola, of which each leaves 19/20 of an error at most
EDGE = (
    0.94,
    1.1,
)  # curvature differs along a step, so that it is up to 3 % larger; the rest is for the interval


class Walks(NamedTuple):
    """What walks along the valley meet, ``(seeds, lrs, radii, curvatures)``."""

    steps: kit.Values
    gradients: kit.Values


@kit.claim
class SamEdge(kit.Claim[None]):
    """A small tanh network on a Chebyshev polynomial, on full batches, and a valley with two weights."""

    lrs: tuple[kit.Positive, ...] = kit.param(
        (0.07, 0.12, 0.2), "η", scope=kit.choices((0.07, 0.12, 0.2), (0.08, 0.12, 0.18))
    )
    radii: tuple[kit.Positive, ...] = kit.param(
        (0.02, 0.06), "ρ", scope=kit.choices((0.02, 0.06), (0.03, 0.06))
    )
    steps: kit.Count = kit.param(
        3000, "steps of each training", unit="steps", scope=kit.between(3000, 4000)
    )
    first: kit.Positive = kit.param(
        5.0, "curvature of the valley where steps begin to count", scope=kit.between(4.6, 5.2)
    )
    curvatures: tuple[kit.Positive, ...] = kit.param(
        (3.6, 2.7), "curvatures of the valley, falling", scope=kit.choices((3.6, 2.7), (3.4, 2.8))
    )
    products: tuple[kit.Positive, ...] = kit.param(
        (0.1, 0.4, 1.0, 1.6, 1.9),
        "ηλ of parabolas",
        scope=kit.choices(
            (0.1, 0.4, 1.0, 1.6, 1.9),
            (0.06, 0.7, 1.3, 1.94),
            why="from 2 on steps leave a parabola",
        ),
    )
    seeds: kit.Seeds = kit.param(8, "trainings, and walks along the valley, of each kind")

    kind = "empirical law"
    says = {
        "settles at ηλ(1 + ρλ/‖∇L‖) = 2": kit.literal("edge", "turn", value=2),
        "at any λ < 2/η that hardly moves in a step": ("parabola", "gradient"),
        "pushes the curvature λ down": "fall",
    }
    tiny = {"lrs": (0.1, 0.2), "steps": 600, "seeds": 3, "curvatures": (3.6, 3.0)}
    full = {"steps": 12_000, "seeds": 10}
    out_of_scope = {"lrs": (0.2, 0.4), "steps": 40, "seeds": 3}
    precision = "float32"
    point = SamEdgePoint

    @property
    def grid(self) -> tuple[kit.Values, kit.Values]:
        """Return η and ρ of each kind of training, ``(lrs, radii)`` each."""
        etas, radii = np.meshgrid(self.lrs, self.radii, indexing="ij")
        return etas, radii

    def axes(self):
        return {
            "lr": self.lrs,
            "radius": self.radii,
            "curvature": self.curvatures,
            "product": self.products,
        }

    def setting(self, key):
        return None

    def hypotheses(self, setting):
        curvatures = np.array((self.first, *self.curvatures))[:, None, None]
        yield kit.assume(
            "largest ηλ of parabolas", max(self.products), "<", 2, "from there on steps leave them"
        )
        yield kit.assume(
            "error of a parabola that all steps leave",
            float(np.abs(np.array(self.products) - 1).max() ** SETTLED),
            "<",
            0.005,
            "they come to the edge too slowly: choose --products farther from 0 and 2",
        )
        yield kit.assume(
            "lag of gradients behind the curvature of the valley",
            float(theory.lag(curvatures, *self.grid).max()),
            "<",
            theory.LAG,
            "curvature falls too fast: choose smaller --radii, --lrs or --first",
        )
        yield kit.assume(
            "largest ηλ in the valley",
            max(self.lrs) * self.first * experiment.AHEAD[1],
            "<",
            1.8,
            "plain descent would leave it from 2 on: choose smaller --lrs or --first",
        )
        yield kit.assume(
            "largest part between two curvatures",
            max(np.divide(self.curvatures, (self.first, *self.curvatures[:-1]))),
            "<",
            0.9,
            "they have to fall, far enough for many steps",
        )

    def predict(self, setting):
        etas = np.array(self.lrs)[:, None, None]
        radii = np.array(self.radii)[:, None]
        after = np.array(self.curvatures)
        return kit.law(
            turn=2.0,
            of_gradient=1.0,
            of_ahead=1.0,
            # ‖g‖/ρλ
            parabola=("product", np.array(self.products) / (2 - np.array(self.products))),
            gradient=("lr radius curvature", Sam(radii).gradient(etas, after)),
            fall=("lr radius curvature", theory.steps_to_fall(self.first, after, etas, radii)),
        )

    def observe(self, setting, key):
        of_network, of_valley = jax.random.split(key)
        rng = kit.numpy_generator(of_valley)
        without = self.walks(rng, momentum=0.0)
        carried = self.walks(rng, momentum=MOMENTUM)
        products = np.array(self.products)
        on_parabolas = [
            experiment.settle(rng, products, self.seeds, SETTLED, momentum)
            for momentum in (0.0, MOMENTUM)
        ]
        plain, ahead, cosine = self.trainings(of_network)
        shape = (self.seeds, len(self.lrs), len(self.radii), LATE, 2)
        reading = "seed lr radius look step"
        place = "seed lr radius curvature"

        def everywhere(values: kit.Values) -> kit.Values:
            """Put the training with momentum at each η and ρ."""
            return np.broadcast_to(values[:, -1, None, None], shape)

        return kit.seen(
            plain=(reading, plain[:, :-1].reshape(shape)),
            ahead=(reading, ahead[:, :-1].reshape(shape)),
            plain_with_momentum=(reading, everywhere(plain)),
            ahead_with_momentum=(reading, everywhere(ahead)),
            parabola=("seed product", on_parabolas[0]),
            parabola_with_momentum=("seed product", on_parabolas[1]),
            cosine=("seed lr radius look", cosine[:, :-1].reshape(shape[:-1])),
            gradient=(place, without.gradients),
            fall=(place, without.steps),
            gradient_with_momentum=(place, carried.gradients),
            fall_with_momentum=(place, carried.steps),
        )

    def walks(self, rng: np.random.Generator, momentum: float) -> Walks:
        """Walk along the valley once a seed, for each η and ρ."""
        etas, radii = (np.tile(values.ravel(), self.seeds) for values in self.grid)
        curvatures = np.array((self.first, *self.curvatures))
        met = experiment.fall(rng, etas, radii, curvatures, momentum=momentum)
        shape = (self.seeds, len(self.lrs), len(self.radii), len(self.curvatures))
        return Walks(met.steps.reshape(shape), met.gradients.reshape(shape))

    def trainings(self, key: kit.Key) -> tuple[kit.Values, kit.Values, kit.Values]:
        """Train the network by each η and ρ, then with momentum by the last η and the first ρ.

        Returns:
            ηλ and ηρλ²/‖∇L‖, ``(seeds, rules, looks, 2)``, and the cosine of the two gradients,
            ``(seeds, rules, looks)``.
        """
        etas, radii = (values.ravel() for values in self.grid)
        rules = Rule(
            jnp.asarray([*etas, self.lrs[-1]], jnp.float32),
            jnp.asarray([*radii, self.radii[0]], jnp.float32),
            jnp.asarray([*np.zeros(etas.size), MOMENTUM], jnp.float32),
        )

        def everything(key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            of_training, of_powers = jax.random.split(key)
            train = lambda key, rule: experiment.train(key, rule, PARTS, self.steps // PARTS)
            over_rules = jax.vmap(train, (None, 0))
            over_seeds = jax.vmap(over_rules, (0, None))
            kept = over_seeds(jax.random.split(of_training, self.seeds), rules)
            weights = kept.weights[:, :, -LATE:]
            gradients = kept.gradients[:, :, -LATE:]
            curvature = sharpness(of_powers, weights, jnp.ones_like(weights))
            by_rule = (slice(None), None, None)
            plain = rules.lr[by_rule] * curvature
            size = jnp.linalg.norm(gradients, axis=-1)
            cosine = (gradients[..., 0, :] * gradients[..., 1, :]).sum(-1) / size.prod(-1)
            return plain, plain * rules.radius[by_rule] * curvature / size, cosine

        plain, ahead, cosine = (
            np.asarray(values, float) for values in kit.compiled(everything)(key)
        )
        return plain, ahead, cosine

    def run_conditions(self, observed):
        yield kit.assume(
            "cosine of successive gradients in training, the largest late mean",
            observed["cosine"].mean(-1).max(),
            "<",
            DOWNHILL,
            "steps still go downhill: choose more --steps",
        )

    def derive(self, law, seen):
        terms = law.of_gradient * seen.plain + law.of_ahead * seen.ahead
        return {"terms": terms.mean(["look", "step"])}

    def judge(self, law, seen):
        yield kit.follows(
            "edge",
            law.turn,
            seen.terms,
            EDGE,
            over="lr radius",
            label="ηλ(1 + ρλ/‖∇L‖) in training",
        )
        yield kit.follows(
            "parabola",
            law.parabola,
            seen.parabola,
            0.01,  # exact; what steps leave of an error is half of that at most
            label="size of gradients on parabolas, over ρλ",
        )
        yield kit.follows(
            "gradient",
            law.gradient,
            seen.gradient,
            0.05,  # exact while curvature stands; gradients lag by 1 % as it falls
            label="size of gradients in the valley",
        )
        yield kit.follows(
            "fall",
            law.fall,
            seen.fall,
            0.05,  # fewer by up to 2 %, by the same lag
            label="steps until curvature has fallen in the valley",
        )

    def rivals(self, setting, law):
        etas = np.array(self.lrs)[:, None, None]
        radii = np.array(self.radii)[:, None]
        after = np.array(self.curvatures)
        yield kit.rival("λ = 2/η", "that is where plain descent stops", id="plain", of_ahead=0.0)
        yield kit.rival(
            "λ² = 2‖∇L‖/(ηρ)",
            "gradients are small, so that the second term rules",
            id="small_gradients",
            of_gradient=0.0,
        )
        yield kit.rival(
            "½ρ²∇λ",
            "the published force is for small steps",
            id="small_steps",
            fall=(
                "lr radius curvature",
                theory.steps_of_small_ones(self.first, after, etas, radii),
            ),
        )
        yield kit.rival(
            "‖∇L‖ = ½ηρλ²",
            "a step moves by ηρλ",
            parabola=("product", np.array(self.products) / 2),
            gradient=("lr radius curvature", etas * radii * after**2 / 2),
        )

    def controls(self, seen):
        yield kit.control(
            "momentum of one half",
            "each step keeps half of the one before, of the other sign",
            id="with_momentum",
            plain=seen.plain_with_momentum,
            ahead=seen.ahead_with_momentum,
            parabola=seen.parabola_with_momentum,
            gradient=seen.gradient_with_momentum,
            fall=seen.fall_with_momentum,
        )

    def figure(self, law, seen, rivals):
        # s = ηλ solves s + xs² = 2 with x = ρ/(η‖∇L‖)
        x = (seen.ahead / seen.plain**2).values.ravel()
        s = seen.plain.values.ravel()
        line = np.geomspace(x.min() / 2, x.max() * 2)
        last = {"curvature": self.curvatures[-1]}
        at_last = lambda steps: steps.sel(last, drop=True)
        wrong = {"½ρ²∇λ": at_last(rivals["small_steps"].fall)} if rivals else {}
        yield kit.panel(
            "In training: curvature and gradient meet at the edge",
            "ρ/(η‖∇L‖)",
            "ηλ",
            kit.observed_curve(x, s, "late readings", kind="points"),
            kit.predicted_curve(line, (np.sqrt(1 + 8 * line) - 1) / (2 * line), "edge"),
            kit.rival_curve(line, np.full_like(line, 2.0), "2, plain descent"),
            kit.rival_curve(line, np.sqrt(2 / line), "without the first term"),
            log="xy",
        )
        yield kit.curves(
            f"In a valley: curvature falls from {self.first:g} to {self.curvatures[-1]:g}",
            at_last(law.fall),
            at_last(seen.fall),
            over="lr",
            by="radius",
            x="η",
            y="steps",
            name="ρ = {}",
            rivals=wrong,
            log="xy",
        )
