"""On a parabola of curvature λ, Langevin steps ε give a variance too large by the factor 1/(1 − ελ/2).

The walk X' = X − ε∇f + √(2ε/β) ξ is descent with noise, and Gibbs's law exp(−βf) has the variance 1/βλ. In several
dimensions the factor holds along eigenvectors of the Hessian, so the steepest direction is the worst.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.noise._extrapolate import check_groups
from steepest.nn.data import breast_cancer
from steepest.noise import langevin

GROUPS = 32  # of walkers, over which means have intervals


class Setting(NamedTuple):
    """The ridge risk of the real data, in numbers, and walkers sampled from its posterior.

    Attributes:
        curvatures: λ, eigenvalues of the Hessian, increasing, shape ``(30,)``.
        directions: its eigenvectors in columns, ``(30, 30)``.
        best: the minimum, ``(30,)``.
        start: walkers from exp(−βf), ``(walkers, 30)``.
    """

    curvatures: kit.Values
    directions: kit.Values
    best: kit.Values
    start: kit.Values


@kit.claim
class LangevinVariance(kit.Claim[Setting]):
    """Walkers on the ridge risk of real data, whose posterior is Gaussian."""

    multiples: tuple[kit.Positive, ...] = kit.param(
        (0.27, 0.67, 1.34),
        "ελ_max",
        scope=kit.choices((0.27, 0.67, 1.34), (0.4, 0.9, 1.5), why="at 2 the walk runs away"),
    )
    ridge: kit.Positive = kit.param(
        0.1, "μ, weight of ‖w‖²/2 in the risk", scope=kit.between(0.05, 0.3)
    )
    beta: kit.Positive = kit.param(
        100.0, "β of the posterior", unit="1/height", scope=kit.between(10.0, 1000.0)
    )
    walkers: kit.Count = kit.param(1024, "walkers, a multiple of 32")
    burn: kit.Count = kit.param(60, "steps before the readings, which are as many", unit="steps")

    kind = "theorem"
    says = {
        "a variance too large by the factor 1/(1 − ελ/2)": "posterior_top",
        "the factor holds along eigenvectors of the Hessian": "posterior_all",
    }
    tiny = {"walkers": 32, "burn": 3}
    full = {"walkers": 4096}
    out_of_scope = {"multiples": (2.5,)}

    def axes(self):
        return {
            "multiple": self.multiples,
            "direction": tuple(range(1, breast_cancer().x.shape[1] + 1)),
        }

    def check_fields(self) -> None:
        check_groups(GROUPS, walkers=self.walkers)

    def setting(self, key):
        data = breast_cancer()
        x = np.asarray(data.x, float)
        y = np.asarray(data.y, float).ravel()
        hessian = self.hessian(x)
        best = np.linalg.solve(hessian, x.T @ y / len(x))
        curvatures, directions = np.linalg.eigh(hessian)
        noise = kit.numpy_generator(key).standard_normal((self.walkers, len(best)))
        start = best + noise / np.sqrt(self.beta * curvatures) @ directions.T
        return Setting(curvatures, directions, best, start)

    def hessian(self, x: kit.Values) -> kit.Values:
        """Return the Hessian of the risk on inputs ``(examples, 30)``."""
        return x.T @ x / len(x) + self.ridge * np.eye(x.shape[1])

    def hypotheses(self, setting):
        yield kit.assume(
            "largest ελ_max",
            max(self.multiples),
            "<",
            2,
            "beyond the walk has no stationary law; choose smaller --multiples",
        )

    def predict(self, setting):
        fractions = self.fractions(setting.curvatures)
        return kit.law(
            # x' = (1 − ελ)x + √(2ε/β)ξ has the variance 1/(1 − ελ/2) at rest, in units of 1/βλ
            variance=("multiple direction", self.over_time(fractions, 1 / (1 - fractions / 2))),
        )

    def fractions(self, curvatures: kit.Values) -> kit.Values:
        """Return ελ, ``(multiples, 30)``."""
        return np.outer(self.multiples, curvatures / curvatures[-1])

    def over_time(self, fractions: kit.Values, end: kit.Values) -> kit.Values:
        """Return the mean over the readings of a variance that starts at one and tends to ``end``."""
        times = np.arange(self.burn + 1, 2 * self.burn + 1)[:, None, None]
        # the distance from the variance at rest falls by (1 − ελ)² a step
        return (end + (1 - end) * (1 - fractions) ** (2 * times)).mean(0)

    def observe(self, setting, key):
        along = ((setting.start - setting.best) @ setting.directions) ** 2
        along *= self.beta * setting.curvatures
        return kit.seen(
            # over the moments of exp(−βf)
            variance=(
                "multiple seed direction",
                kit.compiled(self.posterior)(jax.random.split(key)[0], setting),
            ),
            start_variance=("seed direction", along.reshape(GROUPS, -1, along.shape[1]).mean(1)),
        )

    def posterior(self, key: kit.Key, setting: Setting) -> jax.Array:
        """Return mean squares along eigenvectors over the posterior's, ``(multiples, groups, 30)``."""
        curvatures, directions, best, start = setting
        hessian = (directions * curvatures) @ directions.T

        def risk(w: jax.Array) -> jax.Array:
            return (w - best) @ hessian @ (w - best) / 2

        def squares(w: jax.Array) -> jax.Array:
            along = ((w - best) @ directions) ** 2 * (self.beta * curvatures)
            return along.reshape(GROUPS, -1, len(best)).mean(1)

        def walk(key: kit.Key, multiple: jax.Array) -> jax.Array:
            path = langevin(
                risk,
                start,
                multiple / curvatures[-1],
                self.beta,
                2 * self.burn,
                key,
                record=np.arange(self.burn + 1, 2 * self.burn + 1),
                observe={"squares": squares},
            )
            return path.observed["squares"].mean(0)

        seeds = jax.random.split(key, len(self.multiples))
        return jax.vmap(walk)(seeds, jnp.array(self.multiples))

    def judge(self, law, seen):
        yield kit.follows(
            "posterior_top",
            law.variance.isel(direction=-1),
            seen.variance.isel(direction=-1),
            0.06,  # two intervals
            over="multiple",
            label="variance over Gibbs's in the steepest direction",
        )
        yield kit.follows(
            "posterior_all",
            law.variance.mean("direction"),
            seen.variance.mean("direction"),
            0.04,  # three intervals
            label="variances over Gibbs's, mean over directions",
        )

    def rivals(self, setting, law):
        fractions = self.fractions(setting.curvatures)
        with np.errstate(divide="ignore"):
            doubled = 1 / (1 - fractions)
        yield kit.rival(
            "the walk samples exp(−βf) at any step size",
            "it is the law that the steps were made for",
            id="unbiased",
            variance=1.0,
        )
        yield kit.rival(
            "1/(1 − ελ), twice the bias",
            "1 − ελ is the factor of a step",
            variance=("multiple direction", self.over_time(fractions, doubled)),
        )
        yield kit.rival(
            "noise of variance ε/β samples exp(−βf)",
            "the 2 of √(2ε/β) is easily lost",
            id="half_the_noise",
            variance=law.variance / 2,
        )

    def controls(self, seen):
        yield kit.control(
            "walkers on the real data where they start",
            "they have Gibbs's law",
            variance=seen.start_variance,
        )

    def figure(self, law, seen, rivals):
        curvatures = np.linalg.eigvalsh(self.hessian(np.asarray(breast_cancer().x, float)))
        fractions = self.fractions(curvatures)
        line = np.linspace(0, min(1.05 * max(self.multiples), 1.5), 80)
        printed = line[line < 0.75]
        points = [
            kit.observed_curve(
                fractions[i],
                seen.variance[i].mean("seed"),
                f"ε λ_max = {multiple:g}",
                kind="points",
                shade=i / max(1, len(self.multiples) - 1),
            )
            for i, multiple in enumerate(self.multiples)
        ]
        yield kit.panel(
            "A real posterior: variances too large",
            "ελ",
            "variance over Gibbs's",
            *points,
            kit.predicted_curve(line, 1 / (1 - line / 2), "1/(1 − ελ/2)"),
            kit.rival_curve(printed, 1 / (1 - printed), "1/(1 − ελ)"),
            kit.rival_curve(line, 1 + 0 * line, "unbiased", shade=1.0),
        )
