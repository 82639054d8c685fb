"""The exact two-number dynamics of a two-layer linear network on one example."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float


def catapult_map(
    output: Float[Array, ""],
    ntk: Float[Array, ""],
    target: float,
    lr: Float[Array, ""],
    curvature: float,
    steps: int,
) -> tuple[Float[Array, " steps+1"], Float[Array, " steps+1"]]:
    """Iterate outputs z_t and tangent kernels λ_t of gradient descent on ½(z − y)² with z = v·(U x)/√(m d).

    With the residual r = z − y and the curvature a = ‖x‖²/(m d) the pair is closed::

        r' = r (1 − γ λ + a γ² z r)
        λ' = λ + γ a r (γ λ r − 4 z)

    Args:
        output: z_0, a scalar.
        ntk: λ_0 = ‖∇z‖², a scalar.
        target: y.
        lr: γ, the step size.
        curvature: a.
        steps: how many.

    Returns:
        z and λ, each of shape ``(steps + 1,)``; values that overflow are infinite or NaN.

    Source: ORF 543, lecture 11/7, with the second equation corrected (the notes print γλ − 4/(z − y)); Lewkowycz et
    al. 2020.

    >>> z, ntk = catapult_map(1.0, 1.0, 0.0, 2.5, 1e-3, 100)
    >>> float(z[-1] ** 2) < 1e-6, float(ntk[-1]) < 2 / 2.5  # it converged, to a flatter point
    (True, True)
    """

    def step(
        state: tuple[Array, Array], _: None
    ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        z, ntk = state
        r = z - target
        # both layers' steps multiplied out; their inner products are z and λ again: a closed pair
        after = (
            target + r * (1 - lr * ntk + curvature * lr**2 * z * r),
            ntk + lr * curvature * r * (lr * ntk * r - 4 * z),
        )
        return after, state

    start = (jnp.asarray(output, float), jnp.asarray(ntk, float))
    last, (z, tangent) = jax.lax.scan(step, start, None, length=steps)
    return jnp.append(z, last[0]), jnp.append(tangent, last[1])
