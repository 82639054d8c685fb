"""Coefficients of a kernel, learned by the marginal likelihood of a Gaussian process."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from steepest.core.errors import UserError
from steepest.core.precision import arithmetic
from steepest.core.signatures import checked
from steepest.kernels._arguments import as_floats, as_number
from steepest.kernels._gram import gram
from steepest.kernels.prediction._regression import gaussian_process
from steepest.nn.layers import WideLimit
from steepest.nn.networks import Limit

SPAN = 1e6  # factor by which a number may become larger or smaller than at the start
TOLERANCE = 1e-4  # of the gradient, for each number of the targets
WORST = 1e30  # where a kernel has no root: further away than any likelihood


class Fitted(NamedTuple):
    """Numbers of largest marginal likelihood, as far as the search came.

    Attributes:
        hyperparameters: as ``start`` had them.
        noise: its variance.
        limit: the network of these hyperparameters.
        log_likelihood: log p(y), the sum over columns of targets, by ``gram`` and ``gaussian_process``.
        gradient: largest derivative of log p(y) by the logarithm of a number: zero at a maximum.
        steps: of the search.
        converged: whether the gradient is small, or a number ended at the edge of the search.
    """

    hyperparameters: Any
    noise: float
    limit: Limit | WideLimit
    log_likelihood: float
    gradient: float
    steps: int
    converged: bool


def log_marginal_likelihood(
    gram: Float[Array, "n n"], targets: Float[Array, "n *k"], noise: float | Array
) -> Float[Array, ""]:
    """Compute ``log N(y; 0, K + noise)`` as a function of JAX, the sum over columns of targets.

    It can be differentiated by all three; ``gaussian_process`` has it by column, with a check of its equations.

    Args:
        gram: K of the training inputs.
        targets: y, one column or several.
        noise: variance of the noise, one number or one for each input.

    Returns:
        a number; NaN where K + noise has no root.

    Source: Rasmussen and Williams 2006, equation 2.30.

    >>> round(float(log_marginal_likelihood(jnp.eye(2), jnp.array([1.0, 2.0]), 1.0)), 4)
    -3.781
    """
    n = len(gram)
    root = jnp.linalg.cholesky(gram + noise * jnp.eye(n, dtype=gram.dtype))
    y = jnp.reshape(targets, (n, -1))
    white = jax.scipy.linalg.solve_triangular(root, y, lower=True)
    # −½ yᵀ(K + noise)⁻¹y − ½ log det(K + noise) − (n/2) log 2π, for each column
    log_determinant = 2 * jnp.log(jnp.diagonal(root)).sum()
    return -((white**2).sum() + y.shape[1] * (log_determinant + n * np.log(2 * np.pi))) / 2


@checked
def fit(
    limit: Callable[[Any], Any],
    start: Any,
    x: Float[np.ndarray, "n ..."],
    targets: Float[np.ndarray, "n *k"],
    *,
    noise: float = 0.1,
    learn_noise: bool = True,
    kernel: Literal["nngp", "ntk"] = "nngp",
    steps: int = 100,
) -> Fitted:
    """Learn the numbers of a network's limit, and the noise, by maximizing the marginal likelihood.

    The search is L-BFGS in the logarithms of all numbers, with derivatives through the kernel; it finds a maximum
    near ``start``, which need not be the only one. Time grows with n² for each step, and with n³. Derivatives through
    convolutions compile once, for half a minute with residual blocks.

    Args:
        limit: maps hyperparameters to a network's limit; it is traced by JAX.
        start: hyperparameters to begin at, positive numbers: a number, or a tuple or dictionary of some.
        x: inputs, as for ``gram``.
        targets: y, one column or several, which are independent draws with one kernel.
        noise: variance of the noise to begin at.
        learn_noise: whether it is learned.
        kernel: "nngp" of Bayesian networks, or "ntk" of trained ones.
        steps: of the search at most.

    Raises:
        UserError: numbers that are not positive; inputs and targets that do not fit; a limit that JAX cannot trace.

    Source: Rasmussen and Williams 2006, section 5.4.1.

    >>> from steepest.nn.networks import mlp
    >>> net = lambda c: mlp((1, 9, 1), "erf", parameterized="ntk", c_w=c["c_w"], c_b=c["c_b"]).limit()
    >>> x = np.linspace(-2, 2, 12)[:, None]
    >>> y = np.sin(2 * x[:, 0]) + np.tile([0.1, -0.1], 6)
    >>> fitted = fit(net, {"c_w": 1.0, "c_b": 0.1}, x, y)
    >>> fitted.converged, sorted(fitted.hyperparameters)
    (True, ['c_b', 'c_w'])
    """
    x = as_floats("inputs", x)
    y = as_floats("targets", targets).astype(float)
    if not np.isfinite(y).all():
        raise UserError("fit needs finite targets; drop the rows that are not")
    noise = as_number("noise", noise, 0, above=True)
    numbers = jax.tree.map(lambda value: as_number("a hyperparameter", value, 0, above=True), start)
    with arithmetic(double=True):
        flat, unflatten = ravel_pytree((numbers, noise) if learn_noise else (numbers,))
        first = np.log(np.asarray(flat, float))

        def loss(logs: Array, x: Any) -> Array:
            given, *learned = unflatten(jnp.exp(logs))
            try:
                network = limit(given)
            except jax.errors.JAXTypeError as trouble:
                raise UserError(
                    "fit differentiates limit by its hyperparameters, which JAX traces; take jax.numpy, and no "
                    f"float(), if or NumPy of them: {str(trouble).splitlines()[0]}"
                ) from None
            kernels = gram(network, x)
            level = learned[0] if learn_noise else noise
            return -log_marginal_likelihood(getattr(kernels, kernel), jnp.asarray(y), level)

        program = jax.jit(jax.value_and_grad(loss))
        inputs = jnp.asarray(x, float)

        def at(logs: np.ndarray) -> tuple[float, np.ndarray]:
            value, slope = program(jnp.asarray(logs), inputs)
            if not np.isfinite(value) or not np.isfinite(slope).all():
                return WORST, np.zeros_like(logs)
            return float(value), np.asarray(slope, float)

        edge = np.log(SPAN)
        bounds = [(value - edge, value + edge) for value in first]
        search = minimize(
            at, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps}
        )
        learned = jax.tree.map(float, unflatten(jnp.exp(jnp.asarray(search.x))))
    free = np.array(
        [low < value < high for value, (low, high) in zip(search.x, bounds, strict=True)]
    )
    slope = float(np.abs(np.where(free, search.jac, 0.0)).max())
    hyperparameters = learned[0]
    level = learned[1] if learn_noise else noise
    network = limit(hyperparameters)
    try:
        process = gaussian_process(getattr(gram(network, x), kernel), y, level)
    except LinAlgError:
        raise UserError(
            f"the kernel of {hyperparameters} has no root beside the noise {level:.3g}; begin at a larger noise"
        ) from None
    assert process.log_likelihood is not None
    likelihood = float(np.sum(process.log_likelihood))
    converged = slope <= TOLERANCE * y.size
    return Fitted(hyperparameters, level, network, likelihood, slope, int(search.nit), converged)
