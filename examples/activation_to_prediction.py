"""From your own activation to a critical initialization and a kernel prediction on digits.

Read ``main`` top-down like a notebook; ``python examples/activation_to_prediction.py`` prints what each cell finds.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest.dynamics import descend
from steepest.kernels import (
    covariance_map,
    gram,
    kernel_dynamics,
    recommended_initialization,
    recommended_width,
)
from steepest.nn.activations import Activation
from steepest.nn.data import digits, signs
from steepest.nn.networks import mlp


def main(width: int = 1024) -> dict[str, float]:
    """Every cell in order; returns the numbers that the last cells compare."""
    # %% An activation of your own: an elementwise JAX function (name its kinks, if it has some).
    swish = Activation("swish(1.5)", lambda z: z * jax.nn.sigmoid(1.5 * z))

    # %% Its dual activation, with a bound of the error.
    jet = covariance_map(swish, np.array([[1.0, 0.6], [0.6, 1.0]]))
    print(
        f"E σ(u)σ(v) = {jet.value.value:.12f} ± {jet.value.error:.0e};  E σ'(u)σ'(v) = {jet.first.value:.12f}"
    )

    # %% Where should its networks start?
    advice = recommended_initialization(swish)
    print(advice)
    start = advice.criticality
    c_w = start.c_w
    c_b = start.c_b
    k = start.k_star
    print(
        "width for a kernel within 5 %, three layers:",
        recommended_width(swish, c_w, c_b, k, 3, 0.05),
    )

    # %% Data: two digits, centred, and scaled so that the first layer has the variance K*.
    data = digits((3, 8), 80)
    x = np.asarray(data.x) - np.mean(data.x, axis=0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = x * np.sqrt(x.shape[1] * (k - c_b) / c_w)
    y = np.asarray(signs(data).y)
    train = slice(0, 60)
    test = slice(60, 80)

    # %% One definition gives the finite network and its limit.
    net = mlp((x.shape[1], width, width, 1), swish, parameterized="ntk", c_w=c_w, c_b=c_b)
    limit = gram(net.limit(), x)
    training = kernel_dynamics(limit.ntk[train, train])
    lr = 0.9 * training.largest_step()
    steps = 300
    print(f"largest stable step {training.largest_step():.3g}; kernel known to {limit.error:.0e}")

    # %% What the theory says a network will answer after these steps, before any is trained.
    progress = training.descent(lr, [steps])
    predicted = training.test(progress, limit.ntk[test, train], y[train])[0]

    # %% What a network answers. Its random start is subtracted: it is no part of what was learned.
    params = net.init(jax.random.key(0))
    start = net.apply(params, x)
    risk = lambda p: 0.5 * jnp.mean((net.apply(p, x[train]) - start[train] - y[train]) ** 2)
    trained = descend(risk, params, optax.sgd(lr), steps, record=steps).params
    answered = np.asarray(net.apply(trained, x[test]) - start[test])
    difference = float(np.sqrt(np.mean((answered - predicted) ** 2)))
    size = float(np.sqrt(np.mean(answered**2)))
    accuracy = float(np.mean(np.sign(answered) == y[test]))
    print(
        f"test outputs of size {size:.2f} differ from the prediction by {difference:.3f}; accuracy {accuracy:.2f}"
    )
    return {"difference": difference, "size": size, "accuracy": accuracy}


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    main()
