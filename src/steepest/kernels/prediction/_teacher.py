"""The population risk of a two-layer ReLU student on the outputs of a teacher, exact for Gaussian inputs."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from steepest.core.errors import UserError


def teacher_risk(
    student: Float[Any, "m d"], teacher: Float[Any, "k d"]
) -> tuple[Float[Array, ""], Float[Array, "m d"]]:
    r"""Compute ``½ E (Σ_i σ(w_i·x) − Σ_j σ(v_j·x))²`` over x ~ N(0, I), σ = relu, and its gradient in the student.

    No inputs are drawn: pairs of neurons have the mean of the arc-cosine kernel,

    .. math:: h(w, v) = E\,σ(w·x)σ(v·x) = \frac{‖w‖‖v‖}{2π}\,(\sin θ + (π - θ)\cos θ), \qquad
              ∇_w h = \frac{‖v‖ \sin θ\, \hat w + (π - θ)\, v}{2π},

    so that value and gradient are sums over pairs. Both are rounded sums of m² + 2mk + k² terms of order one: values
    below about 1e-15 of that are noise. A neuron that is zero gets the gradient zero of its kink. Works under ``jit``,
    ``vmap`` and ``grad``, twice: a neuron's pair with itself is ``‖w‖²/2``, and where two neurons point in the very
    same direction the angle's derivatives, which cancel there, count as zero.

    Args:
        student: w_i, with output weights one.
        teacher: v_j, with output weights one.

    Raises:
        UserError: neurons that are no rows of one dimension.

    Source: Cho and Saul 2009, degree one (the kernel); Safran and Shamir 2018 (the risk).

    >>> value, gradient = teacher_risk(jnp.array([[1.0, 0.0]]), jnp.array([[0.0, 1.0]]))
    >>> round(float(value), 6), round(0.5 - 1 / (2 * jnp.pi), 6)  # ½(½ + ½) − h of a right angle
    (0.340845, 0.340845)
    """
    student = jnp.asarray(student)
    teacher = jnp.asarray(teacher)
    if student.ndim != 2 or teacher.ndim != 2 or student.shape[1] != teacher.shape[1]:
        raise UserError(
            "risk on a teacher: expected neurons of shapes (m, d) and (k, d), got "
            f"{student.shape} and {teacher.shape}"
        )
    among, pull = _pairs(student, student, same=True)
    between, push = _pairs(student, teacher, same=False)
    own, _ = _pairs(teacher, teacher, same=True)
    # both arguments of h(w_i, w_j) depend on the student, which undoes the ½ in the gradient
    return among / 2 - between + own / 2, pull - push


def _pairs(w: Array, v: Array, *, same: bool) -> tuple[Float[Array, ""], Float[Array, "m d"]]:
    """Return Σ_ij h(w_i, v_j), and Σ_j ∇_{w_i} h(w_i, v_j) for each i."""
    long = _norms(w)
    wide = _norms(v)
    unit = w / jnp.where(long > 0, long, 1.0)[:, None]
    cosine = unit @ (v / jnp.where(wide > 0, wide, 1.0)[:, None]).T
    if same:  # the angle of a neuron with itself has no derivative, and is known
        cosine = jnp.where(jnp.eye(len(w), dtype=bool), 0.0, cosine)
    sine = _sine(cosine)  # zero where rounding takes the cosine beyond one
    rest = jnp.pi - jnp.arctan2(sine, cosine)  # unlike arccos, with a derivative at the ends
    # h/‖w‖‖v‖ of every pair, (m, k)
    kernel = (sine + rest * cosine) / (2 * jnp.pi)
    # Σ_j (‖v_j‖ sin θ_ij ŵ_i + (π − θ_ij) v_j)/2π, (m, d)
    slope = ((sine @ wide)[:, None] * unit + rest @ v) / (2 * jnp.pi)
    slope = jnp.where(long[:, None] > 0, slope, 0.0)
    value = (long[:, None] * wide * kernel).sum()
    if same:  # of h(w, w) = ‖w‖²/2 in place of what a right angle gave
        # the cosine 0 on the diagonal gave h = ‖w‖²/2π
        value = value + (long**2).sum() * (1 / 2 - 1 / (2 * jnp.pi))
        # ∇_w h at v = w is w/2; the right angle gave (‖w‖ ŵ + (π/2) w)/2π
        slope = slope + w / 2 - (long[:, None] * unit + jnp.pi / 2 * w) / (2 * jnp.pi)
    return value, slope


def _norms(w: Array) -> Float[Array, " m"]:
    """Return lengths, with the derivative zero where one is zero."""
    squares = (w**2).sum(1)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)


def _sine(cosine: Array) -> Array:
    """Return √(1 − c²), with the derivative zero where it is zero."""
    squares = 1 - cosine**2
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1.0)), 0.0)
