"""Wrong calls of the functions of ``steepest.kernels``: a right call of each, one argument of which is exchanged."""

import jax
import jax.numpy as jnp
import numpy as np

from steepest import kernels
from steepest.nn.networks import mlp

X = np.array([[1.0, 2.0, 0.5], [0.5, -1.0, 2.0], [0.3, 0.1, -0.7]])
GRAM = X @ X.T + np.eye(3)
LIMIT = mlp((3, 8, 1), "relu", parameterized="ntk", c_w=2.0, c_b=0.1).limit()


def linear(w, x):
    return x @ w


def half_squares(f, y):
    return 0.5 * (f - y) ** 2


def right_calls():
    """Return arguments by name that each function takes."""
    key = jax.random.key(0)
    net = mlp((3, 4, 1), "relu", parameterized="ntk")
    dynamics = kernels.kernel_dynamics(GRAM)
    return {
        "gram": (LIMIT, X),
        "gram_diagonal": (LIMIT, X),
        "gram_layers": (LIMIT, X),
        "gram_positions": (LIMIT, X),
        "gram_over_heads": (LIMIT, X, key),
        "nngp": (LIMIT, X),
        "ntk": (LIMIT, X),
        "kernel_function": (LIMIT, X),
        "pair_kernels": (LIMIT, np.ones(2), np.array([0]), np.array([1]), np.array([0.5])),
        "predict_signal": (LIMIT, np.ones(2)),
        "tabulate": (LIMIT, 0.5, 2.0),
        "empirical_ntk": (linear, jnp.ones(3), X),
        "ntk_top": (linear, jnp.ones(3), X),
        "ntk_eigenpairs": (linear, jnp.ones(3), X, 1, key),
        "sampled_gram": (net, X, key),
        "dual": ("relu",),
        "layer_map": ("relu", 2.0, 0.1),
        "propagate": ("relu", 2.0, 0.1, np.array([1.0, 1.0, 0.5]), 2),
        "first_layer": (X[:2], 2.0, 0.1),
        "chi_parallel": ("relu", 2.0, 1.0),
        "chi_perpendicular": ("relu", 2.0, 1.0),
        "covariance_map": ("relu", np.array([1.0, 1.0, 0.5])),
        "variance_map": ("relu", 1.0),
        "criticality": ("relu",),
        "depth_scales": ("relu", 1.5, 0.1),
        "finite_width": ("relu", 2.0, 0.0, 1.0, [100, 100]),
        "recommended_width": ("relu", 2.0, 0.0, 1.0, 3, 0.1),
        "recommended_initialization": ("relu",),
        "phase_diagram": ("relu", np.array([1.0]), np.array([0.1])),
        "planar_inputs": (2.0, 1.0, 0.5, (1.0, 0.0)),
        "kernel_dynamics": (GRAM,),
        "kernel_training": (GRAM, half_squares, np.ones(3)),
        "laplace": (GRAM, np.array([1.0, -1.0, 1.0])),
        "kernel_ridge": (GRAM, np.ones(3), 0.1),
        "gaussian_process": (GRAM, np.ones(3), 0.1),
        "solve": (GRAM, np.ones(3), 0.1),
        "train": (dynamics.flow([1.0]), np.ones(3)),
        "bernstein_radius": (0.1, 3, 1.0, 1.0),
    }


def wrong_values(rng: np.random.Generator):
    """Return values that no argument means."""
    return [
        None,
        "nonsense",
        "",
        -1.0,
        np.nan,
        np.inf,
        0,
        1j,
        [],
        {},
        [1, [2, 3]],
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.full((3, 3), np.nan),
        np.array([["a", "b", "c"]]),
        np.array([object(), None, 1], dtype=object),
        X * 1j,
        X * 1e300,
        X * 1e-300,
        rng.normal(size=(2, 3, 4)),
        rng.normal(size=(3, 5)),
        rng.normal(size=7),
        -np.eye(3),
        object(),
        lambda: None,
    ]


def function_of(name: str):
    """Return what a name of ``right_calls`` stands for."""
    if name == "train":
        return kernels.kernel_dynamics(GRAM).train
    return getattr(kernels, name)


def wrong_calls(seed: int, count: int):
    """Yield names, places of the wrong argument and arguments."""
    rng = np.random.default_rng(seed)
    calls = right_calls()
    names = sorted(calls)
    for number in range(count):
        name = names[number % len(names)]
        arguments = list(calls[name])
        place = int(rng.integers(len(arguments)))
        values = wrong_values(rng)
        arguments[place] = values[int(rng.integers(len(values)))]
        yield name, place, arguments
