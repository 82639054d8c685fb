"""A system's own matrices give the error of a policy gradient that costs of rollouts estimate.

In linear quadratic control, the difference of two rollouts' costs, from one Gaussian start at feedbacks K ± U,
estimates the gradient ∇C along U. With m pairs of rollouts the relative error is √((D E‖G‖²/‖∇C‖² − 1)/m). Here G is
the gradient of a single rollout's cost, and D is the number of entries of K. With one state the error is √(2/m). At the
optimum G vanishes and so does the noise, so that descent arrives with a fixed number of rollouts in each step.
"""

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import solve_discrete_lyapunov

from steepest import kit
from steepest.claims.descent._lqr import RandomSystems, drawn
from steepest.claims.descent.lqr_rollouts.experiment import rollout_descent, rollout_gradients
from steepest.landscapes import Lqr
from steepest.nn.types import Values

STABLE = (0.2, 0.4, 0.7)
"""Factors a of systems x' = ax + u whose gradient rollouts estimate at K = 0."""
LOST = 1e9
"""Stands for the excess of a system that is not stable any more."""


@kit.claim
class LqrRollouts(RandomSystems[Lqr]):
    """Random systems with two inputs and systems of one state, and the costs of Gaussian rollouts."""

    narrow: kit.Positive = kit.param(
        0.8,
        "standard deviation of the first state's narrowest coordinate; the widest has 1",
        unit="length",
        scope=kit.between(0.75, 0.9, "narrower ones take more steps"),
    )
    pairs: kit.Count = kit.param(4000, "pairs of rollouts in all, of an estimated gradient")
    groups: tuple[kit.Count, ...] = kit.param(
        (64, 16, 4), "independent estimates into which the rollouts are divided"
    )
    length: kit.Count = kit.param(30, "states of a rollout")
    radius: Annotated[float, kit.Within(1e-4, 1)] = kit.param(
        0.02,
        "r, size of the perturbation of K",
        scope=kit.between(0.01, 0.03, "the law is for small ones"),
    )
    steps: kit.Count = kit.param(120, "steps of each descent", unit="steps")
    fresh: kit.Count = kit.param(50, "pairs of rollouts that each step draws")

    kind = "theorem"
    says = {
        "give the error of a policy gradient that costs of rollouts estimate": "rollout_error",
        "With one state the error is √(2/m)": "one_state_error",
    }
    tiny = {"seeds": 3, "states": 3, "pairs": 64, "length": 8, "steps": 3, "fresh": 4}
    full = {"seeds": 40, "states": 6, "inputs": 3, "pairs": 16000}
    out_of_scope = {"norm": 3.0}

    def axes(self):
        return {"stable": STABLE, "size": tuple(self.pairs // groups for groups in self.groups)}

    def setting(self, key):
        deviations = np.geomspace(1, self.narrow, self.states)

        draw = lambda key: drawn(jax.random.split(key)[0], self.inputs, self.norm, deviations)
        return kit.compiled(jax.vmap(draw))(kit.keys(key, self.seeds))

    def hypotheses(self, setting):
        radius = np.abs(np.linalg.eigvals(np.asarray(setting.A))).max()
        yield kit.assume(
            "largest spectral radius of A", radius, "<", 0.98, "K = 0 must be stable; lower --norm"
        )

    def predict(self, setting):
        systems = [Lqr(*row) for row in zip(*map(np.asarray, setting), strict=True)]
        return kit.law(
            error=("seed", [_rollout_error(system) for system in systems]),
            error_decay=("size", (self.pairs / np.array(self.groups)) ** -0.5),
            one_state=("stable", np.full(len(STABLE), 2**0.5)),
            rollout_end=-5.0,  # log₁₀ of (C − C*)/C* at most
        )

    def observe(self, setting, key):
        def of_system(system: Lqr, key: kit.Key) -> tuple[jax.Array, ...]:
            for_estimates, for_descents = jax.random.split(key)
            for_system, for_one_state = jax.random.split(for_estimates)
            zero = jnp.zeros((self.inputs, self.states))
            both, single = self.estimates(system, zero, for_system)
            sizes = (self.steps, self.fresh, self.length, self.radius)
            by_rollouts = lambda sided: rollout_descent(system, for_descents, sided, *sizes)
            of_one_state = lambda a: self.one_state(a, for_one_state)
            return (
                both,
                single,
                system.gradient(zero),
                jax.vmap(of_one_state)(np.array(STABLE)),
                jax.vmap(by_rollouts)(np.arange(2)),
            )

        run = kit.compiled(jax.vmap(of_system))
        measured = run(setting, kit.keys(key, self.seeds))
        both, single, gradients, one_state, excess = map(np.asarray, measured)
        errors = lambda estimates: list(map(self.errors, estimates, gradients))
        excess = np.where(np.isfinite(excess), excess, LOST)
        return kit.seen(
            errors=("seed size", errors(both)),
            errors_single=("seed size", errors(single)),
            one_state=("seed stable", one_state[..., 0]),
            one_state_single=("seed stable", one_state[..., 1]),
            rollout_excess=("sided seed late", np.swapaxes(excess, 0, 1)),
        )

    def estimates(self, system: Lqr, K: jax.Array, key: kit.Key) -> tuple[jax.Array, jax.Array]:
        """Return gradients at K by each pair of rollouts, and by each first one of them."""
        return rollout_gradients(system, K, key, self.pairs, self.length, self.radius)

    def one_state(self, a: jax.Array, key: kit.Key) -> jax.Array:
        """Return the relative error of ∇C(0) of x' = ax + u by one pair of rollouts, and by one rollout."""
        unit = jnp.ones((1, 1))
        system = Lqr(a * unit, unit, unit, unit, unit)
        gradient = system.gradient(0 * unit)
        estimates = self.estimates(system, 0 * unit, key)
        return jnp.array([jnp.sqrt(jnp.mean((e / gradient - 1) ** 2)) for e in estimates])

    def errors(self, estimates: Values, gradient: Values) -> list[float]:
        """Return the relative error of the mean of each size of group, a root mean square over groups."""
        errors = []
        for groups in self.groups:
            size = len(estimates) // groups
            means = estimates[: groups * size].reshape(groups, size, -1).mean(1)
            squares = ((means - gradient.ravel()) ** 2).sum(-1)
            errors.append(float(np.sqrt(squares.mean() / (gradient**2).sum())))
        return errors

    def derive(self, law, seen):
        return {
            "pooled": np.sqrt((seen.errors**2 * seen["size"]).mean("size")),
            "rollout_end": np.log10(seen.rollout_excess.isel(sided=0, late=-1)),
        }

    def judge(self, law, seen):
        yield kit.follows(
            "rollout_error",
            law.error,
            seen.pooled,
            0.12,  # the interval over systems takes 0.05, their number moves the mean by as much
            label="error of the gradient by m pairs of rollouts, times √m",
        )
        yield kit.power(
            "rollout_exponent",
            law.error_decay,
            seen.errors,
            0.08,
            over="size",
            label="the same error against m",
        )
        yield kit.follows(
            "one_state_error",
            law.one_state,
            seen.one_state,
            0.08,  # of 4000 squares of Gaussians a system, 0.03 in the interval; r = 0.02 makes 0.01
            label="one state: error of the gradient by a pair of rollouts",
        )
        yield kit.at_most(
            "rollout_arrival",
            law.rollout_end,
            seen.rollout_end,
            label=f"by {self.fresh} pairs of rollouts a step: log₁₀ (C − C*)/C* at the end",
        )

    def rivals(self, setting, law):
        count = self.states * self.inputs
        yield kit.rival(
            "error of exact costs, √((kn − 1)/m)",
            "exact costs in random directions",
            error=0 * law.error + (count - 1) ** 0.5,
            one_state=0 * law.one_state + 1e-3,  # none at all; a law of zero has no ratio
        )
        yield kit.rival(
            "error of rollouts √(D E‖G‖²/(m‖∇C‖²)), without − 1",
            "what is drawn has this square",
            error=np.sqrt(law.error**2 + 1),
            one_state=0 * law.one_state + 3**0.5,
        )
        yield kit.rival(
            "error of rollouts ∝ m^−¼",
            "r must shrink with the number of rollouts, were they single",
            error_decay=law.error_decay**0.5,
        )

    def controls(self, seen):
        yield kit.control(
            "single rollouts in place of differences",
            "the cost itself, not its change, is in the noise",
            errors=seen.errors_single,
            one_state=seen.one_state_single,
            rollout_excess=(seen.rollout_excess.dims, seen.rollout_excess.values[::-1]),
        )

    def figure(self, law, seen, rivals):
        yield kit.curves(
            "Gradients by rollouts: error as predicted",
            law.error_decay,
            seen.errors / law.error,
            over="size",
            x="pairs of rollouts m",
            y="relative error / constant",
            rivals={"m^−¼": rivals["error_of_rollouts_m_1_4"].error_decay},
            log="xy",
        )
        t = np.arange(self.steps + 1)
        excess = seen.rollout_excess.values
        yield kit.panel(
            f"Descent by {self.fresh} pairs of rollouts a step",
            "step",
            "(C − C*)/C*",
            kit.observed_curve(t, excess[0], "differences"),
            kit.observed_curve(t, excess[1], "single rollouts", shade=1.0),
            log="y",
            ylim=(1e-10, 1e3),
        )


def _rollout_error(system: Lqr) -> float:
    """Return √m times the relative error of ∇C(0) from m differences of rollouts, for r → 0 and long rollouts.

    A rollout's cost has the gradient G with entries x_0ᵀN x_0, N = Σ_t (Aᵗ)ᵀ X Aᵗ, X the symmetric part of 2Eᵢᵀeⱼᵀ.
    With x_0 ~ N(0, Σ_0) is E G² = (tr NΣ_0)² + 2 tr(NΣ_0)², and the estimate (D/r²)⟨G, U⟩U, U uniform on the sphere of
    radius r, has the variance D E‖G‖² − ‖∇C‖².
    """
    A, B, Q, _, root = system
    value = solve_discrete_lyapunov(A.T, Q)
    residual = -B.T @ value @ A  # E = (R + BᵀPB)K − BᵀPA at K = 0
    squares = 0.0
    true = 0.0
    for row in residual:
        for unit in np.eye(len(A)):
            outer = np.outer(2 * row, unit)
            weights = solve_discrete_lyapunov(A.T, (outer + outer.T) / 2) @ root @ root.T
            squares += np.trace(weights) ** 2 + 2 * np.trace(weights @ weights)
            true += np.trace(weights) ** 2
    return float(np.sqrt(residual.size * squares / true - 1))
