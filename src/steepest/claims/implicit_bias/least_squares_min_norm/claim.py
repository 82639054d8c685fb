"""On least squares, mirror descent ends at the interpolant nearest its start in Bregman divergence.

So the potential ψ of the mirror descent and its start w₀ decide which of all interpolants it finds: argmin D_ψ(w, w₀),
whatever the steps. Gradient descent ends at the interpolant nearest to w₀ in ℓ2, and so does stochastic gradient
descent with one example a step, in whatever order. Exponentiated gradient from the uniform distribution ends at the
interpolant of maximum entropy. Steepest descent in other norms has no such law: where it ends depends on its steps.
"""

from functools import cached_property
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kit
from steepest.claims.implicit_bias.least_squares_min_norm.experiment import NORMS, Setting, ends
from steepest.nn.types import Values
from steepest.programs import (
    Potential,
    bregman_interpolation,
    hyperbolic_entropy,
    min_norm_interpolation,
    simplex_entropy,
    squared_norm,
)

LAWS = ("gradient", "p-norm", "hypentropy", "exponentiated")
RESOLVED = 1e-6  # relative distance of a descent from its program that counts as none


@kit.claim
class LeastSquaresMinNorm(kit.Claim[Setting]):
    """Gaussian inputs, more unknowns than equations; each descent at two step sizes."""

    n: kit.Count = kit.param(10, "examples", scope=kit.between(4, 10, "more are slow to fit"))
    dimension: kit.Count = kit.param(
        20, "unknowns d", scope=kit.between(20, 40, "near n descent is slow")
    )
    order: Annotated[float, kit.Within(1, 2, open=True)] = kit.param(
        1.5, "p of the potential ½‖w‖_p²", scope=kit.between(1.3, 1.8, "near one it is slow")
    )
    scale: kit.Positive = kit.param(
        0.1, "s of the hypentropy", scope=kit.between(0.05, 0.5, "smaller ones are slow")
    )
    spread: kit.Positive = kit.param(
        0.5, "standard deviation of the entries of w₀", scope=kit.between(0.3, 0.8)
    )
    shorter: kit.Fraction = kit.param(
        0.25, "second step size over the first", scope=kit.between(0.1, 0.5)
    )
    steps: kit.Count = kit.param(60_000, "steps of every descent", unit="steps")
    seeds: kit.Seeds = kit.param(6, "regression problems")

    kind = "theorem"
    says = {
        "mirror descent ends at the interpolant nearest its start in Bregman divergence": (
            "nearest",
            "sgd_distance",
        )
    }
    tiny = {"n": 2, "dimension": 5, "steps": 5000, "seeds": 3}
    full = {"n": 20, "dimension": 40, "seeds": 20, "steps": 200_000}
    out_of_scope = {"n": 25}

    def axes(self):
        return {
            "law": LAWS,
            "norm": NORMS,
            "step": (1.0, self.shorter),
            "unknown": tuple(range(self.dimension)),
        }

    def setting(self, key):
        return Setting(*(np.asarray(part) for part in kit.compiled(self.draw)(key)))

    def draw(self, key: kit.Key) -> Setting:
        """Draw inputs, targets and starts."""
        n = self.n
        d = self.dimension
        normal = jax.random.normal
        for_x, for_y, for_start, for_logits = jax.vmap(lambda k: kit.keys(k, 4))(
            kit.keys(key, self.seeds)
        ).T
        x = jax.vmap(lambda k: normal(k, (n, d)))(for_x)
        y = jax.vmap(lambda k: normal(k, (n,)))(for_y)
        start, logits = (jax.vmap(lambda k: normal(k, (d,)))(k) for k in (for_start, for_logits))
        center = jnp.full_like(start, 1 / d)
        # targets that a distribution can fit
        on_simplex = jnp.einsum("snd,sd->sn", x, jax.nn.softmax(logits))
        starts = [self.spread * start] * 3 + [center]
        return Setting(x, jnp.stack([y, y, y, on_simplex], 1), jnp.stack(starts, 1))

    def hypotheses(self, setting):
        least = np.linalg.matrix_rank(setting.x).min()
        freedom = self.dimension - self.n
        yield kit.assume(
            "smallest rank of X", least, ">=", self.n, "choose --n at most --dimension"
        )
        yield kit.assume("unknowns − equations", freedom, ">", 0, "choose --dimension above --n")

    @cached_property
    def potentials(self) -> tuple[Potential, ...]:
        """Return ψ of each law."""
        return (
            squared_norm(2.0),
            squared_norm(self.order),
            hyperbolic_entropy(self.scale),
            simplex_entropy(),
        )

    def predict(self, setting):
        programs = [
            [
                bregman_interpolation(x, y, psi, w)
                for psi, y, w in zip(self.potentials, targets, starts, strict=True)
            ]
            for x, targets, starts in zip(*setting, strict=True)
        ]
        return kit.law(
            limit=("seed law unknown", [[program.beta for program in row] for row in programs]),
            residual=("seed law", [[program.residual for program in row] for row in programs]),
            apart=("norm", np.full(len(NORMS), 1e-2)),
        )

    def observe(self, setting, key):
        multiples = np.array([1.0, self.shorter])
        smooth = np.array(
            [self._smoothness(x, y, start) for x, y, start in zip(*setting, strict=True)]
        )
        trained = ends(setting, self.potentials, smooth, multiples, self.steps, key)
        every = np.concatenate([trained.limit, trained.steepest, trained.examples[:, :, None]], 2)
        # all but the four laws have the targets of gradient descent
        extra = np.repeat(setting.y[:, :1], every.shape[2] - len(LAWS), 1)
        targets = np.concatenate([setting.y, extra], 1)[:, None]
        fits = np.einsum("snd,stld->stln", setting.x, every)
        left = np.linalg.norm(fits - targets, axis=-1) / np.linalg.norm(targets, axis=-1)
        return kit.seen(
            limit=("seed step law unknown", trained.limit),
            steepest=("seed step norm unknown", trained.steepest),
            examples=("seed step unknown", trained.examples),
            residual=("seed step rule", left),
        )

    def _smoothness(self, x: Values, y: Values, start: Values) -> list[float]:
        """Return bounds on the smoothness of one problem's risk relative to each ψ, and in each of the norms."""
        hessian = x.T @ x / self.n
        top = np.linalg.eigvalsh(hessian)[-1]
        bent = np.abs(hessian)
        reach = np.linalg.norm(start[2]) + np.linalg.norm(np.linalg.pinv(x) @ y[2])
        hypentropy = top * np.hypot(reach, 2 * self.scale)
        return [top, top / (self.order - 1), hypentropy, bent.max(), bent.max(), bent.sum()]

    def run_conditions(self, observed):
        largest = observed["residual"].max()
        yield kit.assume(
            "largest relative residual at the end", largest, "<=", 1e-8, "raise --steps"
        )

    def derive(self, law, seen):
        """Return distances to the programs, and between the limits of steepest descent at both steps."""
        size = lambda array: np.sqrt((array**2).sum("unknown"))
        gradient = law.limit.sel(law="gradient", drop=True)
        longer = seen.steepest.isel(step=0, drop=True)
        shorter = seen.steepest.isel(step=1, drop=True)
        return {
            "away": size(seen.limit - law.limit) / size(law.limit),
            "drawn": size(seen.examples - gradient) / size(gradient),
            "apart": size(shorter - longer) / size(longer),
        }

    def judge(self, law, seen):
        yield kit.agrees(
            "nearest",
            seen.away,
            RESOLVED,
            label="mirror descent, four potentials and two steps: distance to the program",
        )
        yield kit.agrees(
            "sgd_distance",
            seen.drawn,
            RESOLVED,
            label="SGD, one example a step: distance to the program of gradient descent",
        )
        yield kit.at_least(
            "steepest",
            np.log10(law.apart),
            np.log10(np.maximum(seen.apart, 1e-16)),
            label="steepest descent: log₁₀ of the distance between two steps' limits",
        )
        yield kit.idle(
            kit.agrees("solved", law.residual, 1e-9, label="residual of the programs"),
            "it is the solver's own",
        )

    def rivals(self, setting, law):
        ones = np.ones((1, self.dimension))
        nearest: dict[str, list[list[Values]]] = {"l1": [], "l2": []}
        least = []
        for x, ys, starts in zip(*setting, strict=True):
            systems = [(x, y) for y in ys[:3]] + [(np.vstack([x, ones]), np.append(ys[3], 1))]
            for norm, solutions in nearest.items():
                solutions.append(
                    [_nearest(*s, w, norm) for s, w in zip(systems, starts, strict=True)]
                )
            least.append(
                [
                    bregman_interpolation(x, y, psi).beta
                    for psi, y in zip(self.potentials, ys, strict=True)
                ]
            )
        dims = law.limit.dims
        yield kit.rival(
            "ℓ1-nearest, whatever the potential",
            "sparsity is what exponentiated gradient is praised for",
            limit=(dims, nearest["l1"]),
        )
        yield kit.rival(
            "ℓ2-nearest, whatever the potential",
            "it is the law of gradient descent",
            limit=(dims, nearest["l2"]),
        )
        yield kit.rival(
            "least potential, whatever the start",
            "the notes say so",
            id="least_potential",
            limit=(dims, least),
        )

    def controls(self, seen):
        lawful = seen.limit.isel(law=slice(len(NORMS))).values
        coordinates = seen.steepest.sel(norm="l1", drop=True)
        yield kit.control(
            "where descent in another potential ends",
            "the potential decides",
            limit=seen.limit.roll(law=1, roll_coords=False),
        )
        yield kit.control(
            "single coordinates in place of single examples",
            "its steps leave the row space of X",
            examples=coordinates,
        )
        yield kit.control(
            "gradient descent and the p-norm's mirror descent in place of steepest descent",
            "their limit does not depend on the step",
            id="mirror_descents",
            steepest=(seen.steepest.dims, lawful),
        )

    def figure(self, law, seen, rivals):
        unknowns = np.arange(self.dimension)
        seeds = np.arange(self.seeds)
        away = seen.away.max("step")
        of_laws = [
            kit.observed_curve(seeds, away.sel(law=name).values, name, kind="points", shade=i / 4)
            for i, name in enumerate(LAWS)
        ]
        of_norms = [
            kit.rival_curve(
                seeds, seen.apart.sel(norm=norm).values, f"steepest, {norm}", kind="points"
            )
            for norm in NORMS
        ]
        limits = [
            kit.panel(
                f"{name.capitalize()}: limit and program",
                "unknown",
                "w",
                kit.predicted_curve(unknowns, law.limit.sel(law=name)[0], "program"),
                kit.observed_curve(
                    unknowns, seen.limit.sel(law=name)[0, 0], "descent", kind="points"
                ),
            )
            for name in LAWS
        ]
        yield kit.panel(
            "Two steps: mirror descent has one limit, steepest descent two",
            "problem",
            "relative distance",
            *of_laws,
            *of_norms,
            kit.predicted_curve(seeds, 0 * seeds + RESOLVED, "margin"),
            log="y",
        )
        yield from limits


def _nearest(x: Values, y: Values, start: Values, norm: str) -> Values:
    """Return the interpolant nearest to the start in ℓ1 or ℓ2."""
    return start + min_norm_interpolation(x, y - x @ start, "l1" if norm == "l1" else "l2").beta
