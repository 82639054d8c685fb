"""JAX functions as subjects."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.precision import arithmetic
from steepest.measurement.adapters._batches import Batches, as_pair, examples, inputs_of
from steepest.measurement.adapters._dense import Dense
from steepest.measurement.adapters._loss import Loss
from steepest.measurement.adapters._subject import KINDS, Kind, Subject, Vector, places
from steepest.nn.activations import activation
from steepest.nn.networks import Mlp
from steepest.nn.types import Network


class JaxSubject(Subject):
    """A function ``apply(params, x)`` with its parameters; make it with ``subject``.

    Attributes:
        functions: the compiled functions, which copies with other weights share.
        flat: the weights.
    """

    def __init__(self, functions: "_Functions", flat: Array, batches: Batches) -> None:
        self.functions = functions
        self.flat = flat
        self.batches = batches
        self.name = functions.name
        self.weights = functions.weights
        self.dtype = np.dtype(flat.dtype)

    @classmethod
    def of(
        cls, model: Any, loss: Loss, batches: Batches, features: Callable | None = None
    ) -> "JaxSubject":
        """Build it from a network of ours or a function, and parameters: any pytree with floating point arrays.

        Raises:
            UserError: parameters without floating point arrays, of several precisions, or not finite.
        """
        apply, params = model
        leaves, treedef = jax.tree_util.tree_flatten_with_path(params)
        floating = [
            hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
            for _, leaf in leaves
        ]
        kinds = {str(leaf.dtype) for (_, leaf), real in zip(leaves, floating, strict=True) if real}
        if len(kinds) != 1 or not kinds <= {"float32", "float64"}:
            raise UserError(
                f"the weights need one floating point type, float32 or float64, got {sorted(kinds) or 'none'}; "
                "cast the parameters with jax.tree.map"
            )
        _one_place([leaf for (_, leaf), real in zip(leaves, floating, strict=True) if real])
        names = [_name(path) for path, _ in leaves]
        for name, (_, leaf), real in zip(names, leaves, floating, strict=True):
            if real and not bool(jnp.isfinite(leaf).all()):
                raise UserError(
                    f"the weights {name!r} are not finite; take a checkpoint from before the divergence"
                )
        moving = [
            (name, leaf)
            for name, (_, leaf), real in zip(names, leaves, floating, strict=True)
            if real
        ]
        weights = places([(name, leaf.shape) for name, leaf in moving])
        with jax.enable_x64(kinds == {"float64"}):
            flat = jnp.concatenate([jnp.asarray(leaf).ravel() for _, leaf in moving])

        def unflatten(w: Array) -> Any:
            values = iter([w[weight.place].reshape(weight.shape) for weight in weights])
            return treedef.unflatten(
                [
                    next(values) if real else leaf
                    for (_, leaf), real in zip(leaves, floating, strict=True)
                ]
            )

        if features is None and isinstance(apply, Mlp):
            features = apply.features
        return cls(_Functions(apply, unflatten, loss, features, weights), flat, batches)

    def values(self) -> Vector:
        return np.array(self.flat)

    def at(self, values: Vector) -> "JaxSubject":
        if np.shape(values) != (self.size,):
            raise UserError(
                f"{self.name} has {self.size} weights, got a vector of shape {np.shape(values)}"
            )
        with arithmetic(double=self.dtype == np.float64):
            return self._with(jnp.asarray(values, self.dtype))

    def precise(self) -> "JaxSubject":
        with jax.enable_x64(True):
            return self._with(jnp.asarray(self.flat, np.float64))

    def _with(self, flat: Array) -> "JaxSubject":
        """Return a copy with other weights, on the same device."""
        return JaxSubject(self.functions, self._beside(flat), self.batches)

    def _beside(self, array: Array) -> Array:
        """Put an array on the device that the user chose for the weights; JAX refuses to mix devices."""
        devices = self.flat.devices()
        if not self.flat.committed or len(devices) > 1:  # JAX may place it as it likes
            return array
        return jax.device_put(array, *devices)

    def now(self, model: Any) -> "JaxSubject":
        return self.at(self.flatten(model[1]))

    @cached_property
    def classifier(self) -> tuple[str, str | None] | None:
        last = self.weights[-1]
        matrices = [weight for weight in self.weights if len(weight.shape) == 2]
        if not matrices:
            return None
        bias = last.name if len(last.shape) == 1 else None
        if isinstance(self.functions.apply, Mlp):  # sorted by name, b comes before w
            layer = matrices[-1].name.rpartition(".")[0]
            bias = next(
                (weight.name for weight in self.weights if weight.name == f"{layer}.b"), None
            )
        return matrices[-1].name, bias

    def _named(self, params: Any) -> dict[str, Any]:
        return {_name(path): leaf for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]}

    def _call(self, function: Callable, batch: Any, *more: Any) -> Any:
        """Call in this precision, back as NumPy arrays; floating point inputs are cast, whole numbers stay."""
        with arithmetic(double=self.dtype == np.float64):
            cast = lambda leaf: self._beside(
                jnp.asarray(leaf, self.dtype if _floating(leaf) else None)
            )
            return jax.tree.map(
                np.asarray, function(self.flat, jax.tree.map(cast, _numeric(batch)), *more)
            )

    def _risk(self, batch: Any) -> float:
        return float(self._call(self.functions.risk, batch))

    def _gradient(self, batch: Any) -> Vector:
        return self._call(self.functions.gradient, batch)

    def _products(
        self, kind: Kind, batch: Any, vectors: Float[np.ndarray, "k p"]
    ) -> Float[np.ndarray, "k p"]:
        return self._call(self.functions.products[kind], batch, vectors)

    def _outputs(self, batch: Any) -> tuple[NDArray, NDArray]:
        x, y = as_pair(batch)
        return self._call(self.functions.outputs, x), np.asarray(y)

    def slopes(self, outputs: NDArray, targets: Any) -> NDArray:
        self.functions.loss.need_outputs("weighing parts of a batch")
        return self._call(self.functions.slopes, targets, outputs)

    def _features(self, batch: Any) -> Float[np.ndarray, "b q"]:
        if self.functions.features is None:
            raise UserError(
                f"{self.name}: features before the last layer need features=..., a function of (params, x)"
            )
        return self._call(self.functions.features, as_pair(batch)[0])

    def _jvp(self, batch: Any, vector: Vector) -> NDArray:
        return self._call(self.functions.jvp, as_pair(batch)[0], vector)

    def _vjp(self, batch: Any, cotangent: NDArray) -> Vector:
        return self._call(self.functions.vjp, as_pair(batch)[0], cotangent)

    def _inputs(self, batch: Any) -> NDArray:
        return self._call(lambda _, x: x, inputs_of(batch))

    def _evaluate(self, x: NDArray) -> NDArray:
        return self._call(self.functions.outputs, x)

    def _pull(self, x: NDArray, cotangent: NDArray) -> NDArray:
        return self._call(self.functions.pull, x, cotangent)

    def _layers(self, x: NDArray) -> dict[str, NDArray]:
        return self._by_layer(0, x)

    def _errors(self, batch: Any) -> dict[str, NDArray]:
        return self._by_layer(1, batch)

    def _reads(self, x: NDArray) -> dict[str, NDArray]:
        return self._by_layer(2, x)

    def _layer_vjp(self, x: NDArray, cotangent: NDArray) -> dict[str, NDArray]:
        return self._by_layer(3, x, cotangent)

    def _by_layer(self, which: int, batch: Any, *more: Any) -> dict[str, NDArray]:
        if self.functions.of_layers is None:
            raise UserError(
                f"{self.name} is a function of JAX, whose layers cannot be seen; "
                "give a network of steepest.nn.networks.mlp or a torch module"
            )
        return {
            str(i): rows
            for i, rows in enumerate(self._call(self.functions.of_layers[which], batch, *more))
        }

    def dense(self) -> list[Dense] | None:
        network = self.functions.apply
        if not isinstance(network, Mlp):
            return None
        try:
            limit = network.limit()
            activation(limit.activation.name)
        except UserError:  # its multipliers are not known, or the activation is the user's own
            return None
        if limit.skip or limit.normalized:
            return None
        with arithmetic(double=self.dtype == np.float64):
            params = self.functions.unflatten(self.flat)
        chain = []
        last = len(limit.layers) - 1
        for i, (layer, law) in enumerate(zip(params, limit.layers, strict=True)):
            matrix = np.asarray(layer["w"], float)
            # the square root is the multiplier
            matrix = matrix * (law.t_w / matrix.shape[1]) ** 0.5
            bias = np.asarray(layer["b"]) if "b" in layer else None
            chain.append(
                Dense(str(i), matrix, bias, "linear" if i == last else limit.activation.name)
            )
        return chain


class _Functions:
    """The compiled functions of a flat vector of weights and a batch."""

    def __init__(
        self, apply: Any, unflatten: Callable, loss: Loss, features: Callable | None, weights: tuple
    ) -> None:
        self.apply = apply
        self.unflatten = unflatten
        self.weights = weights
        self.name = getattr(apply, "name", getattr(apply, "__name__", "model"))
        run = apply.apply if isinstance(apply, Network) else apply
        forward = lambda w, x: run(unflatten(w), x)

        risk_of = _risk_of(run, loss)
        risk = lambda w, batch: risk_of(unflatten(w), batch)
        self.risk = jax.jit(risk)
        self.gradient = jax.jit(jax.grad(risk))
        self.products = self._products(forward, risk, loss)
        self.outputs = jax.jit(forward)
        self.features = (
            None if features is None else jax.jit(lambda w, x: features(unflatten(w), x))
        )
        at = lambda x: partial(_swapped, forward, x)
        self.loss = loss
        self.slopes = jax.jit(lambda w, y, out: jax.grad(loss.function)(out, y))
        self.jvp = jax.jit(lambda w, x, v: jax.jvp(at(x), (w,), (v,))[1])
        self.vjp = jax.jit(lambda w, x, u: jax.vjp(at(x), w)[1](u)[0])
        self.pull = jax.jit(lambda w, x, u: jax.vjp(partial(forward, w), x)[1](u)[0])
        self.of_layers = _of_layers(apply, unflatten, risk_of) if isinstance(apply, Mlp) else None

    @staticmethod
    def _products(forward: Callable, risk: Callable, loss: Loss) -> dict[str, Callable]:
        """Compile products of each curvature matrix with the rows of a block."""

        def losses(w: Array, batch: Any) -> Array:
            """Return the loss of each example alone, shape (b,)."""
            alone = jax.tree.map(lambda leaf: leaf[:, None], batch)
            return jax.vmap(lambda one: risk(w, one))(alone)

        def hessian(w: Array, batch: Any, v: Array) -> Array:
            return jax.jvp(jax.grad(lambda w: risk(w, batch)), (w,), (v,))[1]

        def gauss_newton(w: Array, batch: Any, v: Array) -> Array:
            loss.need_outputs("the Gauss–Newton matrix")
            x, y = as_pair(batch)
            out, moved = jax.jvp(lambda w: forward(w, x), (w,), (v,))
            bent = jax.jvp(jax.grad(lambda out: loss.function(out, y)), (out,), (moved,))[1]
            return jax.vjp(lambda w: forward(w, x), w)[1](bent)[0]

        def fisher(w: Array, batch: Any, v: Array) -> Array:
            if (
                loss.of_params
            ):  # Σ_i g_i (g_i·v)/b without the g_i: the losses' change along v, sent back
                slopes = jax.jvp(lambda w: losses(w, batch), (w,), (v,))[1]
                return jax.vjp(lambda w: losses(w, batch), w)[1](slopes / len(slopes))[0]
            # example i adds c_i J_i to the gradient of the mean of b, c = ∂L/∂f, so that its own gradient is b c_i J_i,
            # also where examples have weights; then the product is Jᵀ(s ∘ c) with s_i = b c_i·(J v)_i
            x, y = as_pair(batch)
            out, moved = jax.jvp(lambda w: forward(w, x), (w,), (v,))
            slopes = jax.grad(lambda out: loss.function(out, y))(out)
            rows = slopes.reshape(len(slopes), -1)
            along = len(rows) * (rows * moved.reshape(rows.shape)).sum(1, keepdims=True) * rows
            return jax.vjp(lambda w: forward(w, x), w)[1](along.reshape(slopes.shape))[0]

        return dict(zip(KINDS, map(_several, (hessian, gauss_newton, fisher)), strict=True))


def _one_place(leaves: list[Any]) -> None:
    """Refuse weights of which some were put on one device and some on another.

    Raises:
        UserError: they were. Weights that are each spread over the same devices are in one place.
    """
    placed = {frozenset(map(str, leaf.devices())) for leaf in leaves if _committed(leaf)}
    if len(placed) > 1:
        devices = sorted(set().union(*placed))
        raise UserError(
            f"the weights must be on one device, or all spread over the same ones, got {', '.join(devices)}; "
            "gather them with jax.device_put(params, jax.devices()[0])"
        )


def _committed(leaf: Any) -> bool:
    """Tell whether somebody chose a device for an array; NumPy's have none."""
    return isinstance(leaf, Array) and leaf.committed


def _swapped(forward: Callable, x: Array, w: Array) -> Array:
    return forward(w, x)


def _risk_of(run: Callable, loss: Loss) -> Callable:
    """Return the mean loss of a batch as a function of the parameters in the user's form."""

    def risk(params: Any, batch: Any) -> Array:
        if loss.of_params:
            return loss.checked(loss.function(params, batch))
        x, y = as_pair(batch)
        return loss.checked(loss.function(run(params, x), y))

    return risk


def _of_layers(network: Mlp, unflatten: Callable, risk_of: Callable) -> tuple[Callable, ...]:
    """Return functions for the layers of our network: what they write, losses' errors, what they read, and pullbacks.

    The errors are derivatives of each example's loss, the pullbacks those of the outputs, in what the layers write.
    """

    def shifted(shifts: list[Array], w: Array) -> tuple:
        """Return the parameters when every example has biases of its own, (b, n_l) in layer l."""
        params = zip(unflatten(w), shifts, strict=True)
        return tuple(layer | {"b": layer.get("b", 0.0) + shift} for layer, shift in params)

    def none(count: int, w: Array) -> list[Array]:
        return [jnp.zeros((count, width), w.dtype) for width in network.widths[1:]]

    def errors(w: Array, batch: Any) -> list[Array]:
        count = examples(batch)
        risk = lambda shifts: risk_of(shifted(shifts, w), batch)
        return [count * slope for slope in jax.grad(risk)(none(count, w))]

    def reads(w: Array, x: Array) -> list[Array]:
        params = unflatten(w)
        # the features of the first layers alone are what the last of them reads
        return [x, *(network.features(params[: i + 1], x) for i in range(1, len(params)))]

    def pulled(w: Array, x: Array, u: Array) -> list[Array]:
        outputs = lambda shifts: network.apply(shifted(shifts, w), x)
        return jax.vjp(outputs, none(len(x), w))[1](u)[0]

    writes = lambda w, x: network.preactivations(unflatten(w), x)
    return tuple(map(jax.jit, (writes, errors, reads, pulled)))


def _several(product: Callable) -> Callable:
    """Turn a product with one vector into a compiled product with the rows of a block."""
    return jax.jit(jax.vmap(product, (None, None, 0)))


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _floating(leaf: Any) -> bool:
    return np.issubdtype(np.asarray(leaf).dtype, np.floating)


def _numeric(batch: Any) -> Any:
    """Turn lists of numbers into tuples of arrays, so that compiled functions see one kind of batch."""
    return tuple(batch) if isinstance(batch, list) else batch
