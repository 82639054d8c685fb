"""What we do with kernels, predictions among others, and kernels of finite networks."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.configurations import inputs as given
from benchmarks.configurations.models import (
    MOVED,
    PARAMS,
    cross_entropy,
    lines,
    network,
    of_dict,
    of_two,
    scalar,
    squared,
)
from benchmarks.configurations.ours.networks import kernels
from steepest import kernels as ours
from steepest.nn.layers import dense, identity
from steepest.nn.layers import network as layered
from steepest.nn.networks import mlp

K = given.squared_exponential(given.TRAIN, given.TRAIN)
CROSS = given.squared_exponential(given.TEST, given.TRAIN)
COUPLED = given.spread(K, 2).transpose(0, 2, 1, 3)
COUPLED_CROSS = given.spread(CROSS, 2).transpose(0, 2, 1, 3)
"""Kernels that couple outputs are ``(n, k, n, k)`` here."""
Y = given.LABELS
TIMES = given.TIMES


def dynamics(kernel=K, **options):
    outputs = None if kernel.ndim == 4 else 2
    return ours.kernel_dynamics(kernel, loss="mean over outputs", outputs=outputs, **options)


def followed(times, kernel=K, cross=CROSS, rate=1.0, **options):
    """Return outputs of a flow on both sets, which end at the targets on the training inputs."""
    d = dynamics(kernel, **options)
    progress = d.flow(rate * np.asarray(times))
    single = np.ndim(times) == 0
    arrays = {
        "train": d.train(progress, Y, given.START),
        "test": d.test(progress, cross, Y, given.START, given.TEST_START),
    }
    return {name: array[0] if single else array for name, array in arrays.items()}


def integrated(loss, targets, start, **options):
    training = ours.kernel_training(K, loss, targets, start=start)
    path = training.flow(TIMES, **options)
    return {"train": path.train, "test": path.test(CROSS)}


def resumed():
    """Follow the heavy ball through the time at which theirs begins again."""
    training = ours.kernel_training(K, squared, Y, start=given.START)
    path = training.flow([1.0, 3.0], friction=0.1)
    return {"train": path.train[-1], "test": path.test(CROSS, given.TEST_START)[-1]}


def infinite():
    return mlp((3, 9, 1), "relu", parameterized="ntk", c_w=1.96, bias=False).limit()


def relu_kernels(x, other=None):
    """Return the kernels of a network with C_W of 1.96 and 1."""
    layers = infinite().layers
    limit = replace(infinite(), layers=(layers[0], layers[1]._replace(c_w=1.0, t_w=1.0)))
    return ours.gram(limit, x, other)


def covariance(train, test):
    return relu_kernels(np.concatenate([train, test])).nngp


def ensemble(which, times=np.inf, **options):
    kernel = getattr(relu_kernels(given.TRAIN), which)
    cross = getattr(relu_kernels(given.TEST, given.TRAIN), which)
    d = dynamics(kernel, **options)
    answer = d.ensemble(d.flow(times), Y, covariance(given.TRAIN, given.TEST), cross)
    pick = 0 if np.ndim(times) == 0 else slice(None)
    return {"mean": answer.mean[pick], "covariance": answer.covariance[pick]}


def inference(noise, relative=True):
    train = relu_kernels(given.TRAIN).nngp
    cross = relu_kernels(given.TEST, given.TRAIN).nngp
    noise = noise * np.trace(train) / len(train) if relative else noise
    posterior = ours.gaussian_process(train, Y, noise)
    test = relu_kernels(given.TEST).nngp
    return {"mean": posterior.mean(cross), "covariance": posterior.covariance(cross, test)}


PREDICTIONS = {
    "predict/squared loss, finite times": lambda: followed(TIMES),
    "predict/squared loss, the end": lambda: followed(np.inf),
    "predict/squared loss, another rate": lambda: followed(TIMES, rate=0.3),
    "predict/squared loss, relative regularization": lambda: followed(
        TIMES, regularization=1e-2, relative=True
    ),
    "predict/squared loss, absolute regularization": lambda: followed(np.inf, regularization=1e-2),
    "predict/coupled outputs, finite times": lambda: followed(TIMES, COUPLED, COUPLED_CROSS),
    "predict/coupled outputs, the end": lambda: followed(np.inf, COUPLED, COUPLED_CROSS),
    "predict/any loss, squares": lambda: integrated(squared, Y, given.START),
    "predict/any loss, cross-entropy": lambda: integrated(
        cross_entropy, np.eye(3)[given.CLASSES], np.zeros((6, 3))
    ),
    "predict/any loss, momentum in continuous time": lambda: integrated(
        squared, Y, given.START, friction=0.1
    ),
    "predict/momentum, from a state": resumed,
    "predict/ensemble, NNGP, the end": lambda: ensemble("nngp"),
    "predict/ensemble, NTK, the end": lambda: ensemble("ntk"),
    "predict/ensemble, NTK, finite times": lambda: ensemble("ntk", TIMES),
    "predict/ensemble, NNGP, finite times": lambda: ensemble("nngp", TIMES),
    "predict/ensemble, regularized": lambda: ensemble(
        "ntk", TIMES, regularization=1e-2, relative=True
    ),
    "predict/Gaussian process": lambda: inference(1e-3),
    "predict/Gaussian process, absolute noise": lambda: inference(1e-2, relative=False),
    "predict/Gaussian process, tangent kernel": lambda: ensemble("ntk"),
    "predict/largest rate": lambda: {"rate": ours.kernel_dynamics(K).largest_step()},
    "predict/largest rate, momentum": lambda: {"rate": ours.kernel_dynamics(K).largest_step(0.9)},
    "predict/largest rate, coupled outputs": lambda: {"rate": dynamics(COUPLED).largest_step()},
}


def tangent(f=network, params=PARAMS, x=given.VECTORS, other=None, **options):
    """Return the tangent kernel with its inputs' axes in front."""
    kernel = ours.empirical_ntk(f, params, x, other, **options)
    return np.moveaxis(kernel, 2, 1) if options.get("outputs") == "all" else kernel


def mean_over_outputs(outputs=2, **options):
    return {"ntk": tangent(outputs="trace", **options) / outputs}


def between_positions(axes):
    """Return means over channels of the kernel between positions of ``lines``."""
    kernel = tangent(lines, given.FILTERS, given.LINES, outputs="all")
    return {"ntk": np.einsum(axes, kernel.reshape(3, 3, 4, 4, 4, 4)) / 4}


def drawn(count):
    """Return kernels of wide networks, and standard errors of their means."""
    net = mlp((3, 256, 1), "relu", parameterized="ntk", c_w=1.96, bias=False)
    readout = jax.random.key(0)
    k = ours.sampled_gram(net, given.VECTORS, readout, count=count)
    # their last matrix has C_W = 1 and ours 1.96, in both kernels a factor
    return {
        "nngp": k.nngp / 1.96,
        "ntk": k.ntk / 1.96,
        "nngp error": k.nngp_error / 1.96,
        "ntk error": k.ntk_error / 1.96,
    }


def relu_gram():
    k = relu_kernels(given.VECTORS)
    return {"nngp": k.nngp, "ntk": k.ntk}


PAIR = (given.VECTORS, given.VECTORS[:, ::-1])
DICT = dict(zip("ab", PAIR, strict=True))


def own_kernel():
    """Double the signals of a layer: a matrix with a number in its diagonal, or an activation."""
    return kernels(dense(1), lambda x: 2.0 * jax.nn.relu(x), dense(1), x=given.VECTORS)


def continued():
    layers = (dense(1, c_w=1.96), "relu", dense(1, c_w=1.44), "erf", dense(1))
    k = kernels(*layers, x=given.VECTORS)
    return {**k, "cov1": np.diag(k["nngp"])}


def masked_outputs():
    """Return outputs of a finite network, and which exist: the mask itself of one without weights."""
    net = layered(identity, shape=given.LINES.shape[1:])
    params = net.init(jax.random.key(0))
    outputs = net.apply(params, given.LINES, given.LINE_MASK)
    return {"outputs": outputs, "exists": given.LINE_MASK}


FINITE = {
    "empirical/one output": lambda: {"ntk": tangent(scalar, outputs="all")},
    "empirical/mean over outputs": mean_over_outputs,
    "empirical/all outputs": lambda: {"ntk": tangent(outputs="all")},
    "empirical/equal outputs only": lambda: {"ntk": tangent(outputs="each")},
    "empirical/two sets of inputs": lambda: mean_over_outputs(other=given.OTHERS),
    "empirical/equal inputs only": lambda: {
        "ntk": ours.empirical_ntk_diagonal(network, PARAMS, given.VECTORS, outputs="trace") / 2
    },
    "empirical/Jacobian contraction": lambda: mean_over_outputs(method="jacobian"),
    "empirical/products with vectors": lambda: mean_over_outputs(method="vectors"),
    "empirical/structured derivatives": mean_over_outputs,
    "empirical/vectorized": lambda: mean_over_outputs(method="jacobian"),
    "empirical/positions traced": lambda: mean_over_outputs(
        16, f=lines, params=given.FILTERS, x=given.LINES
    ),
    "empirical/positions, channels traced": lambda: between_positions("nmpcqc->nmpq"),
    "empirical/equal positions, channels traced": lambda: between_positions("nmpcpc->nmp"),
    "empirical/tuple of inputs": lambda: mean_over_outputs(f=of_two, x=PAIR),
    "empirical/dict of inputs and of outputs": lambda: {
        f"ntk {name}": kernel / 2
        for name, kernel in tangent(of_dict, x=DICT, outputs="trace").items()
    },
    "empirical/NNGP, mean over outputs": lambda: {
        "nngp": ours.empirical_nngp(network, PARAMS, given.VECTORS)
    },
    "empirical/NNGP, all outputs": lambda: {
        "nngp": np.moveaxis(
            ours.empirical_nngp(network, PARAMS, given.VECTORS, outputs="all"), 2, 1
        )
    },
    "empirical/NNGP, equal outputs only": lambda: {
        "nngp": ours.empirical_nngp(network, PARAMS, given.VECTORS, outputs="each")
    },
    "empirical/both kernels": lambda: {
        "nngp": ours.empirical_nngp(network, PARAMS, given.VECTORS),
        **mean_over_outputs(),
    },
    "empirical/product with a vector": lambda: {
        "product": ours.ntk_product(network, PARAMS, given.VECTORS)(jnp.asarray(Y[:4]))
    },
    "empirical/linearized": lambda: {"f": ours.linearize(network, PARAMS)(MOVED, given.VECTORS)},
    "empirical/Taylor to second order": lambda: {
        "f": ours.taylor_expand(network, PARAMS, 2)(MOVED, given.VECTORS)
    },
    "empirical/Taylor to fourth order": lambda: {
        "f": ours.taylor_expand(network, PARAMS, 4)(MOVED, given.VECTORS)
    },
    "empirical/linearized, dict of outputs": lambda: ours.linearize(of_dict, PARAMS)(MOVED, DICT),
    "monte carlo/many draws": lambda: drawn(400),
    "monte carlo/growing numbers of draws": lambda: drawn(400),
    "batch/tiles": relu_gram,
    "batch/devices": relu_gram,
}
KERNELS = {
    "kernel object/continued": continued,
    "own layer/kernel by its author": own_kernel,
    "mask/outputs of finite networks": masked_outputs,
}
CONFIGURATIONS = {**PREDICTIONS, **FINITE, **KERNELS}
