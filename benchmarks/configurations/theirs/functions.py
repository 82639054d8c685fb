"""What the peer does with kernels, predictions among others, and kernels of finite networks."""

import jax
import neural_tangents as nt
import numpy as np
from neural_tangents import stax

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

K = given.squared_exponential(given.TRAIN, given.TRAIN)
CROSS = given.squared_exponential(given.TEST, given.TRAIN)
COUPLED = given.spread(K, 2)
COUPLED_CROSS = given.spread(CROSS, 2)
Y = given.LABELS
TIMES = given.TIMES
STARTS = (given.START, given.TEST_START, CROSS)
ZEROS = (0.0, 0.0, CROSS)


def both(outputs):
    train, test = outputs
    return {"train": train, "test": test}


def hot():
    return np.eye(3)[given.CLASSES]


def ended(t=None, **options):
    return both(nt.predict.gradient_descent_mse(K, Y, **options)(t, *STARTS))


def coupled(t):
    predict = nt.predict.gradient_descent_mse(COUPLED, Y, trace_axes=())
    return both(predict(t, given.START, given.TEST_START, COUPLED_CROSS))


def infinite():
    *_, kernel_fn = stax.serial(stax.Dense(1, 1.4), stax.Relu(), stax.Dense(1))
    return kernel_fn


def ensemble(get, t=None, **options):
    predict = nt.predict.gradient_descent_mse_ensemble(infinite(), given.TRAIN, Y, **options)
    mean, covariance = predict(t=t, x_test=given.TEST, get=get, compute_cov=True)
    return {"mean": mean, "covariance": covariance}


def inference(get, **options):
    kernel_fn = infinite()
    k = kernel_fn(given.TRAIN, None, ("nngp", "ntk"))
    cross = kernel_fn(given.TEST, given.TRAIN, ("nngp", "ntk"))
    test = kernel_fn(given.TEST, None, "nngp")
    predict = nt.predict.gp_inference(k, Y, **options)
    mean, covariance = predict(get=get, k_test_train=cross, k_test_test=test)
    return {"mean": mean, "covariance": covariance}


def integrated(loss, targets, start, momentum=None):
    predict = nt.predict.gradient_descent(loss, K, targets, momentum=momentum)
    return both(predict(TIMES, start, np.zeros((4, targets.shape[1])), CROSS))


def resumed():
    """Return states of a descent with momentum, the velocity included, continued from the first."""
    predict = nt.predict.gradient_descent(squared, K, Y, momentum=0.9)
    first = predict(1.0, nt.predict.ODEState(given.START, given.TEST_START), None, CROSS)
    state = predict(2.0, first, None, CROSS)
    return {"train": state.fx_train, "test": state.fx_test}


PREDICTIONS = {
    "predict/squared loss, finite times": lambda: both(
        nt.predict.gradient_descent_mse(K, Y)(TIMES, *STARTS)
    ),
    "predict/squared loss, the end": lambda: ended(),
    "predict/squared loss, another rate": lambda: ended(TIMES, learning_rate=0.3),
    "predict/squared loss, relative regularization": lambda: ended(TIMES, diag_reg=1e-2),
    "predict/squared loss, absolute regularization": lambda: ended(
        None, diag_reg=1e-2, diag_reg_absolute_scale=True
    ),
    "predict/coupled outputs, finite times": lambda: coupled(TIMES),
    "predict/coupled outputs, the end": lambda: coupled(None),
    "predict/any loss, squares": lambda: integrated(squared, Y, given.START),
    "predict/any loss, cross-entropy": lambda: integrated(cross_entropy, hot(), np.zeros((6, 3))),
    "predict/any loss, momentum in continuous time": lambda: integrated(
        squared, Y, given.START, 0.9
    ),
    "predict/momentum, from a state": lambda: resumed(),
    "predict/ensemble, NNGP, the end": lambda: ensemble("nngp"),
    "predict/ensemble, NTK, the end": lambda: ensemble("ntk"),
    "predict/ensemble, NTK, finite times": lambda: ensemble("ntk", TIMES),
    "predict/ensemble, NNGP, finite times": lambda: ensemble("nngp", TIMES),
    "predict/ensemble, regularized": lambda: ensemble("ntk", TIMES, diag_reg=1e-2),
    "predict/Gaussian process": lambda: inference("nngp", diag_reg=1e-3),
    "predict/Gaussian process, absolute noise": lambda: inference(
        "nngp", diag_reg=1e-2, diag_reg_absolute_scale=True
    ),
    "predict/Gaussian process, tangent kernel": lambda: inference("ntk"),
    "predict/largest rate": lambda: {"rate": nt.predict.max_learning_rate(K, 6)},
    "predict/largest rate, momentum": lambda: {"rate": nt.predict.max_learning_rate(K, 6, 0.9)},
    "predict/largest rate, coupled outputs": lambda: {
        "rate": nt.predict.max_learning_rate(COUPLED)
    },
}


def tangent(f=network, params=PARAMS, x=given.VECTORS, other=None, **options):
    return {"ntk": nt.empirical_ntk_fn(f, **options)(x, other, params)}


def leaves(kernels):
    return {f"ntk {name}": kernel for name, kernel in kernels.items()}


def drawn(count, **options):
    init_fn, apply_fn, _ = stax.serial(stax.Dense(256, 1.4), stax.Relu(), stax.Dense(1))
    sample = nt.monte_carlo_kernel_fn(init_fn, apply_fn, jax.random.PRNGKey(0), count, **options)
    return sample(given.VECTORS, None, ("nngp", "ntk"))


def batched(**options):
    kernel_fn = nt.batch(infinite(), **options)
    return dict(kernel_fn(given.VECTORS, given.VECTORS, ("nngp", "ntk"))._asdict())


PAIR = (given.VECTORS, given.VECTORS[:, ::-1])
FINITE = {
    "empirical/one output": lambda: tangent(scalar, trace_axes=()),
    "empirical/mean over outputs": lambda: tangent(),
    "empirical/all outputs": lambda: tangent(trace_axes=()),
    "empirical/equal outputs only": lambda: tangent(trace_axes=(), diagonal_axes=(-1,)),
    "empirical/two sets of inputs": lambda: tangent(other=given.OTHERS),
    "empirical/equal inputs only": lambda: tangent(diagonal_axes=(0,)),
    "empirical/Jacobian contraction": lambda: tangent(implementation=1),
    "empirical/products with vectors": lambda: tangent(implementation=2),
    "empirical/structured derivatives": lambda: tangent(implementation=3),
    "empirical/vectorized": lambda: tangent(vmap_axes=0),
    "empirical/positions traced": lambda: tangent(
        lines, given.FILTERS, given.LINES, trace_axes=(1, 2)
    ),
    "empirical/positions, channels traced": lambda: tangent(lines, given.FILTERS, given.LINES),
    "empirical/equal positions, channels traced": lambda: tangent(
        lines, given.FILTERS, given.LINES, diagonal_axes=(1,)
    ),
    "empirical/tuple of inputs": lambda: tangent(of_two, x=PAIR),
    "empirical/dict of inputs and of outputs": lambda: leaves(
        tangent(of_dict, x=dict(zip("ab", PAIR, strict=True)))["ntk"]
    ),
    "empirical/NNGP, mean over outputs": lambda: {
        "nngp": nt.empirical_nngp_fn(network)(given.VECTORS, None, PARAMS)
    },
    "empirical/NNGP, all outputs": lambda: {
        "nngp": nt.empirical_nngp_fn(network, trace_axes=())(given.VECTORS, None, PARAMS)
    },
    "empirical/NNGP, equal outputs only": lambda: {
        "nngp": nt.empirical_nngp_fn(network, trace_axes=(), diagonal_axes=(-1,))(
            given.VECTORS, None, PARAMS
        )
    },
    "empirical/both kernels": lambda: dict(
        nt.empirical_kernel_fn(network)(given.VECTORS, None, ("nngp", "ntk"), PARAMS)._asdict()
    ),
    "empirical/product with a vector": lambda: {
        "product": nt.empirical_ntk_vp_fn(network, given.VECTORS, None, PARAMS)(Y[:4])
    },
    "empirical/linearized": lambda: {"f": nt.linearize(network, PARAMS)(MOVED, given.VECTORS)},
    "empirical/Taylor to second order": lambda: {
        "f": nt.taylor_expand(network, PARAMS, 2)(MOVED, given.VECTORS)
    },
    "empirical/Taylor to fourth order": lambda: {
        "f": nt.taylor_expand(network, PARAMS, 4)(MOVED, given.VECTORS)
    },
    "empirical/linearized, dict of outputs": lambda: dict(
        nt.linearize(of_dict, PARAMS)(MOVED, dict(zip("ab", PAIR, strict=True)))
    ),
    "monte carlo/many draws": lambda: dict(drawn(400)._asdict()),
    "monte carlo/growing numbers of draws": lambda: [dict(k._asdict()) for k in drawn([200, 400])][
        -1
    ],
    "batch/tiles": lambda: batched(batch_size=2),
    "batch/devices": lambda: batched(batch_size=2, device_count=1),
}


def own_layer():
    """Return the kernels of a layer with a rule of one's own: signals doubled."""

    @stax.layer
    @stax.supports_masking(remask_kernel=False)
    def doubled():
        def init_fn(rng, input_shape):
            return input_shape, ()

        def apply_fn(params, inputs, **kwargs):
            return 2 * inputs

        @stax.requires(diagonal_spatial=stax.Diagonal(stax.Bool.YES, stax.Bool.YES))
        def kernel_fn(k, **kwargs):
            return k * 2

        return init_fn, apply_fn, kernel_fn

    *_, kernel_fn = stax.serial(stax.Dense(1), stax.Relu(), doubled(), stax.Dense(1))
    return dict(kernel_fn(given.VECTORS, None, ("nngp", "ntk"))._asdict())


def continued():
    """Return the kernels of a second network behind the kernel object of a first."""
    *_, first = stax.serial(stax.Dense(1, 1.4), stax.Relu())
    *_, second = stax.serial(stax.Dense(1, 1.2), stax.Erf(), stax.Dense(1))
    k: nt.Kernel = second(first(given.VECTORS))
    return {"nngp": k.nngp, "ntk": k.ntk, "cov1": k.cov1}


def masked_outputs():
    """Return outputs of a finite network without mask, zeros where it says that there is nothing."""
    init_fn, apply_fn, _ = stax.serial(stax.Identity())
    _, params = init_fn(jax.random.PRNGKey(0), given.LINES.shape)
    x = np.where(given.LINE_MASK[..., None], given.LINES, 100.0)
    masked: stax.MaskedArray = apply_fn(params, x, mask_constant=100.0)
    outputs = stax.unmask_fn(lambda p, x: apply_fn(p, x, mask_constant=100.0))(params, x)
    return {"outputs": outputs, "exists": ~np.asarray(masked.mask)[..., 0]}


KERNELS = {
    "kernel object/continued": continued,
    "own layer/kernel by its author": own_layer,
    "mask/outputs of finite networks": masked_outputs,
}
CONFIGURATIONS = {**PREDICTIONS, **FINITE, **KERNELS}
