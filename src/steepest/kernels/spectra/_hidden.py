"""Kernels of a network with one hidden layer: their means, their samples, their rank.

The network is ``f(x) = n^{-1/2} Σ_k a_k σ(w_k · x)``, one neuron a row of the weights, without biases. Its tangent
kernel is the sum of two: that of the output weights, the *hidden-feature kernel* ``(1/n) Σ_k σ(w_k·x_i) σ(w_k·x_j)``,
and that of the *first layer*, ``x_i·x_j (1/n) Σ_k a_k² σ'(w_k·x_i) σ'(w_k·x_j)``.
"""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from steepest.core.errors import UserError
from steepest.kernels.duals._pair_mean import pair_mean
from steepest.nn.activations import Activation, Estimate, by_name, closed_form, gaussian_mean

# ---------------------------------------------------------------------------------------------- the two kernels


@by_name
def hidden_kernel(activation: Activation, inputs: Float[Array, "m d"]) -> Estimate:
    """Compute ``E σ(w·x_i) σ(w·x_j)`` for ``w ~ N(0, I)``, the hidden-feature kernel, with a bound on its error.

    In closed form where one is known, else by quadrature. The error of an entry is that of the quadrature, plus the
    rounding of the inner products: ``|∂K_ij/∂(x_i·x_j)| ≤ √(E σ'(w·x_i)² E σ'(w·x_j)²)`` by Cauchy and Schwarz, taken
    twice for the two lengths. Source: ORF 543, lecture 10/10.

    Args:
        activation: σ.
        inputs: one input a row.

    Returns:
        ``Estimate(value, error)``, each of shape ``(m, m)``.

    Raises:
        UserError: if ``inputs`` is not a matrix.

    >>> from steepest.nn.activations import activation
    >>> hidden_kernel(activation("relu"), jnp.eye(2)).value.round(6).tolist()  # 1/2 and 1/(2π)
    [[0.5, 0.159155], [0.159155, 0.5]]
    """
    return _hidden_kernel(activation, _matrix(inputs))


@partial(jax.jit, static_argnums=0)
def _hidden_kernel(activation: Activation, inputs: Float[Array, "m d"]) -> Estimate:
    kernel = _over_pairs(activation, 0, inputs)
    lengths = (inputs**2).sum(1)
    epsilon = jnp.finfo(inputs.dtype).eps
    # slope_i slope_j bounds |∂K_ij/∂(x_i·x_j)| ‖x_i‖ ‖x_j‖, by Cauchy and Schwarz
    slope = jnp.sqrt(
        lengths * gaussian_mean(lambda z: activation.slope(z) ** 2, lengths, activation.kinks).value
    )
    size = jnp.sqrt(jnp.diag(kernel.value))
    # x_i·x_j rounds by d ε ‖x_i‖‖x_j‖, taken twice; the closed form by some ε √(K_ii K_jj)
    rounding = epsilon * (
        2 * inputs.shape[1] * jnp.outer(slope, slope) + 16 * jnp.outer(size, size)
    )
    return Estimate(kernel.value, kernel.error + rounding)


@by_name
def first_layer_kernel(activation: Activation, inputs: Float[Array, "m d"]) -> Float[Array, "m m"]:
    """Compute ``x_i·x_j E σ'(w·x_i) σ'(w·x_j)``, ``w ~ N(0, I)``, the first layer's kernel with ``E a² = 1``.

    Raises:
        UserError: if ``inputs`` is not a matrix.

    >>> from steepest.nn.activations import activation
    >>> first_layer_kernel(activation("relu"), jnp.eye(2)).round(6).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    return _first_layer_kernel(activation, _matrix(inputs))


@partial(jax.jit, static_argnums=0)
def _first_layer_kernel(activation: Activation, inputs: Float[Array, "m d"]) -> Float[Array, "m m"]:
    return inputs @ inputs.T * _over_pairs(activation, 1, inputs).value


def _over_pairs(activation: Activation, order: int, inputs: Float[Array, "m d"]) -> Estimate:
    """Compute ``E σ(u)σ(v)``, or ``E σ'(u)σ'(v)`` for order one, at every pair of inputs."""
    gram = inputs @ inputs.T
    (i, j) = np.triu_indices(inputs.shape[0])
    # pairs i ≤ j alone, (m (m + 1)/2,): the kernel is symmetric
    form = closed_form(activation)
    f = (activation.function, activation.slope)[order]
    if form is not None:
        value = form(gram[i, i], gram[j, j], gram[i, j])[order]
        estimates = Estimate(value, 64 * jnp.finfo(value.dtype).eps * jnp.abs(value))
    else:  # a few pairs at a time, so that memory stays small
        entry = lambda triple: pair_mean(f, f, triple, activation.kinks)
        estimates = jax.lax.map(
            entry, jnp.stack([gram[i, i], gram[j, j], gram[i, j]], 1), batch_size=32
        )
    return Estimate(
        *(jnp.zeros_like(gram).at[i, j].set(part).at[j, i].set(part) for part in estimates)
    )


@by_name
def sampled_hidden_kernel(
    activation: Activation, inputs: Float[Array, "m d"], weights: Float[Array, "n d"]
) -> Float[Array, "m m"]:
    """Compute the hidden-feature kernel of one network, ``(1/n) Σ_k σ(w_k·x_i) σ(w_k·x_j)``.

    >>> from steepest.nn.activations import activation
    >>> sampled_hidden_kernel(activation("linear"), jnp.eye(2), jnp.array([[1.0, 2.0]])).tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """
    features = activation(weights @ inputs.T)
    return features.T @ features / weights.shape[0]


@by_name
def sampled_first_layer_kernel(
    activation: Activation,
    inputs: Float[Array, "m d"],
    weights: Float[Array, "n d"],
    outer: Float[Array, " n"],
) -> Float[Array, "m m"]:
    """Compute one network's ``x_i·x_j (1/n) Σ_k a_k² σ'(w_k·x_i) σ'(w_k·x_j)``; ``outer`` holds a.

    >>> from steepest.nn.activations import activation
    >>> x, w, a = jnp.ones((1, 2)), jnp.ones((3, 2)), jnp.full(3, 2.0)
    >>> sampled_first_layer_kernel(activation("linear"), x, w, a).tolist()
    [[8.0]]
    """
    slopes = outer[:, None] * activation.slope(weights @ inputs.T)
    return inputs @ inputs.T * (slopes.T @ slopes) / weights.shape[0]


def _matrix(inputs: ArrayLike) -> Float[Array, "m d"]:
    inputs = jnp.asarray(inputs, dtype=float)
    if inputs.ndim != 2:
        raise UserError(f"Inputs are rows of a matrix of shape (m, d), got shape {inputs.shape}.")
    return inputs


# --------------------------------------------------------------------------------------------------------- rank


# Largest even and largest odd degree with a nonzero Hermite coefficient: −1 for none, infinity for infinitely many.
_DEGREES = {
    **dict.fromkeys(("linear",), (-1.0, 1.0)),
    **dict.fromkeys(("quadratic",), (2.0, -1.0)),
    **dict.fromkeys(("tanh", "erf", "sin", "hard_tanh"), (-1.0, math.inf)),  # odd
    **dict.fromkeys(("sigmoid", "step"), (0.0, math.inf)),  # a constant plus an odd function
    **dict.fromkeys(("abs", "cos", "gaussian"), (math.inf, -1.0)),  # even
    **dict.fromkeys(
        ("relu", "gelu", "silu", "softplus"), (math.inf, 1.0)
    ),  # z/2 plus an even function
    **dict.fromkeys(("exp", "elu"), (math.inf, math.inf)),
}


@by_name
def hermite_degrees(activation: Activation) -> tuple[float, float]:
    """Return the largest even and odd j for which the Hermite coefficient ``σ_j = E σ(z) h_j(z)`` is not zero.

    They are −1 for none, infinity for infinitely many; for a polynomial they are those of its own powers, since Hermite
    polynomials have a parity. σ is no polynomial exactly if one of them is infinite; never need all σ_j differ from
    zero, as ReLU (no odd ones but the first) and tanh (no even ones) show.

    Raises:
        UserError: for an activation whose parity is not known here.

    >>> from steepest.nn.activations import activation
    >>> hermite_degrees(activation("relu")), hermite_degrees(activation("polynomial(0,1,0,2)"))
    ((inf, 1.0), (-1.0, 3.0))
    """
    if activation.name in _DEGREES:
        return _DEGREES[activation.name]
    family, _, arguments = activation.name.partition("(")
    if family != "polynomial":
        raise UserError(
            f"The Hermite coefficients of {activation.name} are not known; known are {', '.join(_DEGREES)} and "
            "polynomial(c_0,c_1,...)."
        )
    present = [j for j, c in enumerate(arguments.rstrip(")").split(",")) if float(c) != 0]
    even, odd = (
        max((float(j) for j in present if j % 2 == parity), default=-1.0) for parity in (0, 1)
    )
    return even, odd


def sphere_dimension(dimension: int, degree: float) -> float:
    """Return the dimension ``C(d+p−1, p)`` of the polynomials on the sphere S^{d−1} of degree ≤ p and of p's parity.

    They are the harmonics of degrees p, p−2, …; infinite for an infinite degree, zero for a negative one.

    >>> sphere_dimension(3, 2)  # one constant and five harmonics of degree two
    6.0
    """
    if dimension < 1:
        raise UserError(f"a sphere lies in a space of at least one dimension, got {dimension}")
    if degree < 0:
        return 0.0
    if dimension == 1:  # two points: one even and one odd function
        return 1.0
    return (
        math.inf
        if math.isinf(degree)
        else float(math.comb(dimension - 1 + int(degree), dimension - 1))
    )


def generic_rank(
    degrees: tuple[float, float], dimension: int, inputs: int, antipodal: bool = False
) -> int:
    """Return the rank of the expected hidden-feature kernel on generic unit inputs, from σ's largest degrees.

    With Hermite coefficients σ_j, ``E σ(w·x)σ(w·y) = Σ_j σ_j² (x·y)^j``, and ``(x·y)^j`` is a positive sum of the
    harmonics of degrees j, j−2, …: the rank is the dimension of the polynomials on the sphere of these degrees and
    parities, or the number of inputs if that is smaller. On antipodal pairs ±x the even and the odd functions are
    separate, each on half as many inputs.

    Args:
        degrees: largest even and largest odd j with σ_j ≠ 0: −1 for none, infinity for infinitely many.
        dimension: d, where the inputs lie on S^{d−1}.
        inputs: m, antipodes counted.
        antipodal: whether the inputs are m/2 pairs ±x.

    >>> generic_rank((2, 1), 3, 20), generic_rank((-1, math.inf), 3, 20, antipodal=True)
    (9, 10)
    """
    even, odd = (sphere_dimension(dimension, degree) for degree in degrees)
    if antipodal:
        return int(min(inputs // 2, even) + min(inputs // 2, odd))
    return int(min(inputs, even + odd))


class Spectrum(NamedTuple):
    """Eigenvalues known up to an error.

    Attributes:
        values: eigenvalues in increasing order, shape ``(m,)``.
        level: how far each may be from the exact one.
    """

    values: np.ndarray
    level: float

    @property
    def rank(self) -> int:
        """Count the eigenvalues that are certainly positive."""
        return int(np.count_nonzero(self.values > self.level))


def resolved_spectrum(kernel: Estimate) -> Spectrum:
    """Return eigenvalues of a symmetric matrix whose entries carry errors, and what rounding can do to them.

    By Weyl's inequality an eigenvalue moves by at most the norm of the error, here the Frobenius norm of the bounds
    on the entries; the eigenvalue solver adds ``m ε ‖K‖``.

    >>> ones = Estimate(jnp.ones((3, 3)), jnp.full((3, 3), 1e-12))
    >>> resolved_spectrum(ones).rank
    1
    """
    value = np.asarray(kernel.value)
    values = np.linalg.eigvalsh(value)
    # backward error of the solver, m ε ‖K‖; Weyl adds ‖ΔK‖ ≤ ‖ΔK‖_F
    solver = len(value) * np.finfo(value.dtype).eps * np.abs(values).max()
    return Spectrum(values, float(np.linalg.norm(np.asarray(kernel.error)) + solver))
