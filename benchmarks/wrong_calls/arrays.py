"""Wrong calls of functions of arrays: a right call of each, one argument of which is exchanged."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from steepest import bayes, dynamics, geometry, graphs, landscapes, linalg, noise, programs
from steepest import optimizers as rules
from steepest import statistics as stats
from steepest.nn import activations, data, draws, layers, losses, networks

Call = tuple[str, Callable[[], Any]]
OWN = KeyError("of the reader")
RIGHT = dict[str, Any]


def raises(trouble: BaseException) -> Callable[..., Any]:
    """Return a function that raises this."""

    def fail(*_, **__):
        raise trouble

    return fail


RNG = np.random.default_rng(0)
X = RNG.standard_normal((6, 3))
Y = np.sign(X[:, 0])
W = RNG.standard_normal(3)
MATRIX = X.T @ X
GRAM = X @ X.T + np.eye(6)
PLANE = RNG.standard_normal((6, 2))
KEY = jax.random.key(0)
ONES = jnp.ones(3)
RING = graphs.ring(5)


def risk(w: Any) -> Any:
    """Return half a square."""
    return 0.5 * (w**2).sum()


def product(v: Any) -> Any:
    """Return the products of a matrix with vectors."""
    return v @ MATRIX


def linear(w: Any, x: Any) -> Any:
    """Return a linear model."""
    return x @ w


def valley(x: Any) -> Any:
    """Return a quartic of one variable with two minima."""
    return (x**2 - 1) ** 2


def example_losses(w: Any, x: Any, y: Any) -> Any:
    """Return a loss for each example."""
    return (x @ w - y) ** 2


def of_algebra() -> list[tuple[Callable[..., Any], RIGHT]]:
    """Functions of operators and risks."""
    probing = {"operator": product, "size": 3, "rng": RNG, "probes": 4}
    return [
        (
            linalg.top_eigenpairs,
            {"operator": product, "start": W, "count": 1, "which": "largest", "tolerance": 1e-3},
        ),
        (linalg.trace, probing),
        (linalg.squared_frobenius, probing),
        (linalg.spectral_density, {**probing, "steps": 3}),
        (linalg.row_by_row, {"product": product}),
        (linalg.sharpness, {"risk": risk, "params": ONES, "key": KEY, "products": 3}),
        (linalg.hessian_product, {"risk": risk, "params": ONES}),
        (linalg.top_eigenpair, {"operator": product, "start": ONES, "products": 3}),
        (linalg.parity_spectrum, {"values": np.ones(8)}),
    ]


def of_programs() -> list[tuple[Callable[..., Any], RIGHT]]:
    """Functions of margins and interpolation."""
    few = {"x": X[:2], "y": Y[:2]}
    pairs = {"x": X, "y": Y}
    return [
        (programs.hard_margin, {**pairs, "norm": "l2", "bias": False}),
        (programs.separable, pairs),
        (programs.min_norm_interpolation, {**few, "norm": "l2"}),
        (programs.kernel_margin, {"gram": GRAM, "y": Y}),
        (programs.fourier_margin, pairs),
        (programs.group_margin, {**pairs, "groups": ((0, 1), (2,))}),
        (programs.linear_margin, {"weights": W, **pairs, "norm": 2}),
        (programs.network_margins, {"outputs": jnp.ones((4, 3)), "labels": jnp.zeros(4, int)}),
        (programs.logistic_split, pairs),
        (programs.hypentropy, {"beta": W, "scale": 0.1}),
        (programs.hypentropy_interpolation, {**few, "scale": 0.1}),
        (programs.frobenius_norm, {"matrix": jnp.asarray(X)}),
        (programs.spectral_norm, {"matrix": jnp.asarray(X)}),
        (programs.stable_rank, {"matrix": jnp.asarray(X)}),
        (programs.path_norm, {"weights": (jnp.ones((4, 3)), jnp.ones((1, 4))), "order": 1}),
        (programs.polar, {"residual": Y, "x": PLANE}),
        (programs.matrix_polar, {"residual": X}),
        (programs.relu_cost, {"knots": np.arange(3.0), "slopes": np.arange(4.0)}),
        (programs.power, {"p": 1.5}),
        (programs.squared_norm, {"p": 1.5}),
        (programs.hyperbolic_entropy, {"scale": 0.1}),
        (programs.statistical_dimension_l1, {"sparsity": 0.2}),
        (programs.l1_intrinsic_volumes, {"n": 6, "nonzero": 2}),
        (
            programs.weak_guarantee,
            {"log_strength": -9.0, "n": 6, "margin": 1.0, "degree": 1.0, "loss": "exponential"},
        ),
        (programs.decision_stumps, {"x": X}),
        (
            programs.spectral_complexity,
            {"weights": (jnp.ones((4, 3)),), "reference": (jnp.zeros((4, 3)),)},
        ),
        (
            programs.normalized_margins,
            {"margins": jnp.ones(6), "complexity": 2.0, "x": jnp.asarray(X)},
        ),
        (programs.penalized_minimum, {**pairs, "log_strength": -2.0, "penalty": "l2"}),
        (programs.l1_vertex, few),
        (programs.least_cost_function, {"x": np.arange(4.0), "y": np.arange(4.0) ** 2}),
        (programs.kkt_residuals, {"margins": lambda w: Y * (X @ w), "params": ONES, "degree": 1}),
    ]


def of_networks() -> list[tuple[Callable[..., Any], RIGHT]]:
    """Functions that make networks, losses and examples."""
    widths = (3, 4, 1)
    pairs = {"n": 6, "d": 3}
    walk = {"key": KEY, "networks": 3, "widths": (3, 4, 1), "x": ONES}
    classes = {"logits": jnp.ones((4, 3)), "labels": jnp.zeros(4, int)}
    named = {"widths": widths, "activation": "tanh", "c_w": 1.0, "parameterized": "ntk"}
    return [
        (networks.mlp, named),
        (networks.deep_linear, {"widths": widths, "c_w": 1.0}),
        (networks.two_layer, {"dimension": 3, "width": 4, "scale": 1.0}),
        (networks.diagonal, {"dimension": 3, "scale": 0.1, "depth": 2}),
        (networks.convolutional, {"dimension": 3, "depth": 2}),
        (networks.residual, {"d": 3, "blocks": 2, "hidden": 1}),
        (networks.normalized_two_layer, {"dimension": 3, "width": 4}),
        (networks.message_passing, {"dimension": 3, "width": 4, "depth": 2, "aggregate": "mean"}),
        (networks.graph_convolution, {"walk": RING / 2, "dimension": 3, "width": 4, "depth": 2}),
        (networks.unconstrained, {"classes": 3, "dimension": 4, "examples": 6}),
        (networks.barron, {"dimension": 3, "scale": 0.5}),
        (networks.parameterization, {"name": "mup"}),
        (networks.sample_ntk, walk),
        (networks.expected_ntk, {"inputs": jnp.asarray(X), "depth": 2}),
        (networks.semidefinite_root, {"covariance": jnp.asarray(GRAM)}),
        (layers.dense, {"width": 4, "c_w": 1.0}),
        (layers.conv, {"width": 4, "window": 3, "stride": 1, "padding": "zero"}),
        (layers.pool, {"window": 2, "stride": 2, "padding": "zero"}),
        (layers.sum_pool, {"window": 2, "stride": 2, "padding": "zero"}),
        (layers.resize, {"space": 4, "method": "linear"}),
        (layers.layer_norm, {"space": "all"}),
        (layers.dropout, {"rate": 0.1}),
        (layers.positional_embedding, {"c": 1.0, "joined": "sum"}),
        (layers.attention, {"width": 4, "heads": 2, "key": 3, "scale": "1/d"}),
        (layers.aggregate, {"matrix": RING / 2}),
        (activations.activation, {"name_or_callable": "relu"}),
        (activations.leaky_relu, {"slope": 0.1}),
        (activations.relu_power, {"p": 2.0}),
        (activations.gaussian_mean, {"f": jnp.tanh, "variance": 1.0}),
        (losses.cross_entropy, classes),
        (losses.own_logit, classes),
        (losses.squared, {"outputs": jnp.ones(4), "targets": jnp.ones(4)}),
        (losses.exponential, {"margins": jnp.ones(4)}),
        (losses.logistic, {"margins": jnp.ones(4)}),
        (losses.log_mean_loss, {"loss": losses.logistic, "margins": jnp.ones(4)}),
        (losses.check_labels, {"y": Y}),
        (losses.mean_risk, {"loss": losses.squared, "apply": linear, "x": X, "y": Y}),
        (losses.margin_risk, {"loss": losses.logistic, "apply": linear, "x": X, "y": Y}),
        (data.hypercube, {"n": 3}),
        (data.clusters, {"key": KEY, **pairs, "classes": 2, "spread": 0.3}),
        (data.separable, {"key": KEY, **pairs, "margin": 0.5}),
        (data.orthogonal_clusters, {"key": KEY, "k": 2, "d": 3, "each": 2}),
        (data.parity, {"key": KEY, "n": 4, "bits": 2, "flip": 0.0}),
        (data.sparse_regression, {"key": KEY, "n": 6, "d": 4, "nonzero": 2, "noise": 0.1}),
        (data.chebyshev, {"n": 6, "degree": 2}),
        (data.masked, {"key": KEY, "matrix": GRAM, "observed": 9}),
        (draws.keys, {"key": KEY, "seeds": 3}),
        (draws.numpy_generator, {"key": KEY}),
    ]


def of_descents() -> list[tuple[Callable[..., Any], RIGHT]]:
    """Functions that follow a risk."""
    descent = {"risk": risk, "params": ONES, "optimizer": optax.sgd(0.1), "steps": 3, "record": 1}
    batch = {"loss": example_losses, "x": jnp.asarray(X), "y": jnp.asarray(Y), "size": 2}
    steps = np.linspace(0.1, 1, 4)
    lost = np.array([[False, False, True, True]] * 3)
    flow = {"risk": risk, "params": ONES, "times": jnp.linspace(0, 1, 3), "clock": "plain"}
    slope = lambda f, y: f - y
    return [
        (dynamics.descend, descent),
        (dynamics.descend, {**descent, "stochastic": lambda w, key: risk(w), "key": KEY}),
        (dynamics.descend, {**descent, "observe": {"size": risk}, "ceiling": 1e30}),
        (dynamics.flow, {**flow, "solver": "explicit", "rtol": 1e-4, "max_steps": 1000}),
        (dynamics.schedule, {"steps": 10, "record": 2}),
        (dynamics.logarithmic, {"steps": 10, "records": 3}),
        (dynamics.minibatch, {**batch, "independent": False}),
        (dynamics.steepest_direction, {"gradient": ONES, "p": 2.0}),
        (dynamics.steepest_descent, {"norm": "l2", "lr": 0.1, "size": "unit"}),
        (dynamics.quadratic_rates, {"eigenvalues": np.ones(3)}),
        (dynamics.momentum_factor, {"eigenvalues": np.ones(3), "step": 0.1, "momentum": 0.9}),
        (dynamics.mean_square, {"eigenvalues": np.ones(3), "steps": np.ones(4), "noise": 0.1}),
        (dynamics.mirror_descent, {"potential": programs.entropy(), "lr": 0.1}),
        (dynamics.path_sgd, {"lr": 0.1}),
        (dynamics.log_risk_steps, {"lr": 0.1, "radius": 2.0}),
        (dynamics.adaboost, {"dictionary": np.sign(X), "y": Y, "steps": 3}),
        (dynamics.stability_bracket, {"step_sizes": steps, "diverged": lost}),
        (dynamics.stability_threshold, {"step_sizes": steps, "diverged": lost}),
        (
            dynamics.kernel_flow,
            {"ntk": GRAM, "loss_slope": slope, "targets": Y, "times": np.array([0.5, 1.0])},
        ),
        (dynamics.telescope, {"risk": risk, "points": jnp.ones((2, 3)), "reference": ONES}),
    ]


def of_spaces() -> list[tuple[Callable[..., Any], RIGHT]]:
    """Functions of cells, graphs, landscapes and random walks."""
    walkers = jnp.zeros(4)
    walk = {"f": valley, "x": walkers, "step": 0.01, "beta": 2.0, "steps": 3, "key": KEY}
    chain = np.full((3, 3), 1 / 3)
    grid = np.linspace(-3, 3, 13)
    mixture = {"widths": (3, 4), "points": 2.0, "size": 1.0}
    network = geometry.relu_layers([np.ones((3, 2)), np.ones((1, 3))])
    return [
        (geometry.cells, {"normals": PLANE[:3], "offsets": np.arange(3.0)}),
        (geometry.cell_count, {"planes": 3, "dimension": 2}),
        (geometry.general_position, {"normals": PLANE[:3], "offsets": np.arange(3.0)}),
        (geometry.best_pieces, {"y": np.arange(6.0) ** 2, "pieces": 2}),
        (geometry.zigzag, {"depth": 2, "width": 2}),
        (geometry.farthest_points, {"x": X, "k": 2}),
        (geometry.preactivations, {"layers": network, "x": PLANE}),
        (geometry.relu_layers, {"weights": [np.ones((3, 2)), np.ones((1, 3))]}),
        (geometry.ellipsoid_entropy, {"axes": np.ones(3), "bits": 2.0}),
        (graphs.connected, {"graph": RING > 0}),
        (graphs.nearest_neighbours, {"x": X, "neighbours": 2}),
        (graphs.random_regular, {"nodes": 6, "degree": 3, "rng": RNG}),
        (graphs.ring, {"nodes": 5}),
        (graphs.lazy_walk, {"adjacency": RING}),
        (graphs.check_adjacency, {"adjacency": RING}),
        (
            graphs.refine,
            {"adjacency": RING, "colours": np.zeros(5, int), "rounds": 2, "by": "multiset"},
        ),
        (landscapes.factorization_point, {"eigenvalues": np.ones(3), "chosen": (0,), "rank": 2}),
        (landscapes.factorization_risk, {"matrix": GRAM}),
        (landscapes.linear_network_risk, {"target": X}),
        (landscapes.mode_time, {"scale": 0.1, "level": 1.0, "depth": 2}),
        (landscapes.strict_saddle, {"risk": risk, "params": ONES}),
        (landscapes.pair_angle, {"overlap": np.ones(3) / 2}),
        (
            landscapes.lqr,
            {
                "A": np.eye(2) / 2,
                "B": np.eye(2),
                "Q": np.eye(2),
                "R": np.eye(2),
                "start": np.eye(2),
            },
        ),
        (landscapes.nearest_root, {"x": X, "root": X}),
        (noise.exit_moments, {"transitions": chain / 2}),
        (noise.stationary, {"transitions": chain}),
        (noise.gibbs, {"f": valley, "beta": 1.0, "grid": grid}),
        (noise.spectral_gap, {"f": valley, "beta": 1.0, "grid": grid}),
        (noise.kramers, {"f": valley, "minimum": 1.0, "saddle": 0.0, "beta": 3.0}),
        (noise.langevin, walk),
        (noise.batch_factor, {"examples": 6, "batch": 2, "sampling": "fixed"}),
        (noise.gradient_moments, {"gradients": X, "batch": 2.0, "sampling": "fixed"}),
        (noise.steady_state, {"x": X, "y": Y, "lr": 0.01, "batch": 2.0}),
        (noise.baoab_rate, {"eigenvalues": np.ones(3), "step": 0.1, "friction": 1.0}),
        (bayes.log_evidence, mixture),
        (bayes.best_variance, mixture),
        (bayes.scale_mixture, {"widths": (3.0, 4.0), "power": 1.0, "rate": 1.0}),
    ]


def of_repetitions() -> list[tuple[Callable[..., Any], RIGHT]]:
    """Functions of repetitions."""
    samples = np.arange(12.0).reshape(6, 2)
    return [
        (stats.wilson, {"successes": 3, "trials": 5, "level": 0.9}),
        (stats.clustered_share, {"successes": np.arange(5), "trials": 5}),
        (stats.fit_power, {"x": np.arange(1.0, 6), "y": np.arange(1.0, 6) ** 2}),
        (
            stats.rank_correlation,
            {"x": np.arange(5.0), "y": np.arange(5.0) ** 2, "kind": "kendall"},
        ),
        (stats.jackknife, {"estimator": lambda s: s.mean(0), "samples": samples}),
        (stats.pseudo_values, {"estimator": lambda s: s.mean(0), "samples": samples}),
        (stats.group_means, {"values": samples, "groups": 3}),
        (stats.simultaneous_intervals, {"samples": samples, "level": 0.9}),
        (
            stats.extrapolate,
            {"values": np.ones((3, 5)), "steps": np.array([1.0, 0.5, 0.25]), "orders": (1.0, 2.0)},
        ),
        (rules.gaussian_moments, {"mean": 0.5}),
        (rules.spread_of_second_moment, {"beta2": 0.9, "step": 3}),
    ]


def functions() -> list[tuple[Callable[..., Any], RIGHT]]:
    """Functions, each with arguments that are right."""
    parts = (of_algebra, of_programs, of_networks, of_descents, of_spaces, of_repetitions)
    return [pair for part in parts for pair in part()]


def of_arrays(seed: int) -> Iterator[Call]:
    """Calls of functions of arrays and numbers, with one argument wrong; what is random about it a seed chooses."""
    rng = np.random.default_rng(seed)
    for function, right in functions():
        for name, value in right.items():
            for kind, wrong in wrong_values(value, rng):
                given = {**right, name: wrong}
                label = f"arrays {function.__name__} {name}: {kind}"
                yield label, lambda f=function, g=given: bound(f, g)


def bound(function: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Call by name, or by place where a function takes no names."""
    kinds = {parameter.kind for parameter in inspect.signature(function).parameters.values()}
    if inspect.Parameter.POSITIONAL_ONLY in kinds:
        return function(*given.values())
    return function(**given)


def wrong_values(value: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield what an argument like this one does not mean."""
    yield from {"None": None, "text": "text", "an object": object(), "a set": {1, "a"}}.items()
    yield from {"ragged": [1, [2, 3]], "a class": dict, "a dictionary": {"a": None}}.items()
    if hasattr(value, "dtype") and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        yield from {"a number": int(rng.integers(99)), "two keys": jax.random.split(value)}.items()
    elif hasattr(value, "shape"):
        yield from _wrong_arrays(np.asarray(value), rng)
    elif isinstance(value, bool):
        yield from {"two": 2, "an array": np.ones(2)}.items()
    elif isinstance(value, int | float):
        yield from _wrong_numbers(value, rng)
    elif isinstance(value, str):
        yield from {"a number": 3, "bytes": value.encode(), "a list": [value]}.items()
        yield "misspelt", misspelt(value, rng)
    elif callable(value):
        yield from {"raises": raises(OWN), "returns None": lambda *_: None}.items()
        yield from {
            "no arguments": lambda: 1.0,
            "nine": lambda a, b, c, d, e, f, g, h, i: a,
        }.items()
        yield from {"returns text": lambda *_: "a", "returns more": lambda a, *_: [a, a]}.items()
    elif isinstance(value, tuple | list):
        yield from {"empty": (), "negative": (-1, 2), "texts": ("a", "b"), "one": (3,)}.items()
        yield from {"fractions": (2.5, 3.5), "NaN": (np.nan, 2), "a number": 7}.items()
        yield "others", tuple(rng.integers(-3, 9, len(value) + 1))


def _wrong_arrays(array: np.ndarray, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    yield "complex", array + 1j
    yield "NaN", array * np.nan
    yield "infinite", array * np.inf
    yield "empty", array[:0]
    yield "one more axis", array[None]
    yield "too short", array[:-1]
    yield "a generator", (part for part in array)
    yield "a number", float(rng.normal())
    yield "texts", np.full(array.shape, "a")
    yield "objects", np.full(array.shape, None)
    yield "turned", array.T if array.ndim > 1 else array[:, None]
    yield "another shape", rng.normal(size=rng.integers(0, 5, rng.integers(0, 4)))
    yield "whole", array.astype(int)
    yield "huge", array * 1e300


def _wrong_numbers(value: float, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    yield from {"negative": -value, "zero": 0, "NaN": np.nan, "a list": [value]}.items()
    yield from {"2.5": 2.5, "infinite": np.inf, "complex": 1j, "words": "3"}.items()
    yield "an array", rng.normal(size=3)
    yield "another fraction", -float(rng.exponential(3))


def misspelt(word: str, rng: np.random.Generator) -> str:
    """Return a word with a letter more."""
    place = int(rng.integers(len(word) + 1))
    return word[:place] + "q" + word[place:]
