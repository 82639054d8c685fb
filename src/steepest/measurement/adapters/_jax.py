"""JAX functions as subjects."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.precision import arithmetic
from steepest.measurement.adapters._batches import Batches, as_pair, examples, inputs_of, one_number
from steepest.measurement.adapters._dense import Dense
from steepest.measurement.adapters._generators import states_kept
from steepest.measurement.adapters._jax_models import (
    JaxModel,
    inner_trees,
    is_array,
    is_inexact,
    is_key,
    named_leaves,
    read_model,
    real_parts,
    trained,
    tree_of,
)
from steepest.measurement.adapters._loss import Loss
from steepest.measurement.adapters._subject import KINDS, Kind, Subject, Vector, Weight, places
from steepest.nn.activations import activation
from steepest.nn.networks import Mlp
from steepest.nn.types import Network


class JaxSubject(Subject):
    """A model of JAX with its parameters; make it with ``subject``.

    Attributes:
        functions: the compiled functions, which copies with other weights share.
        flat: the weights.
        constants: arrays that stand beside them and are not trained: running statistics, tables, keys.
    """

    def __init__(
        self, functions: "_Functions", flat: Array, constants: tuple[Any, ...], batches: Batches
    ) -> None:
        self.functions = functions
        self.flat = flat
        self.constants = constants
        self.batches = batches
        self.name = functions.name
        self.weights = functions.weights
        self.dtype = np.dtype(flat.dtype)

    @classmethod
    def of(
        cls,
        model: Any,
        loss: Loss,
        batches: Batches,
        features: Callable | None = None,
        noise: bool = False,
    ) -> "JaxSubject":
        """Build it from a model in one of the forms that ``read_model`` takes.

        Complex weights are pairs of real ones. What is not trained, such as running statistics, is passed along.

        Args:
            model: stays as it is.
            loss: of outputs and targets, or of the parameters in the model's own form and a batch.
            batches: the data.
            features: see ``subject``.
            noise: whether layers may draw random numbers.

        Raises:
            UserError: parameters without floating point arrays, of several precisions, or not finite.
        """
        read = read_model(model, noise)
        leaves, treedef = jax.tree.flatten(read.tree)
        layout = _Layout.of(read.tree, leaves, treedef)
        moving = [leaf for leaf, parts in zip(leaves, layout.parts, strict=True) if parts]
        _one_place(moving)
        for name, leaf in zip(layout.names, moving, strict=True):
            if not bool(jnp.isfinite(leaf).all()):
                raise UserError(
                    f"the weights {name!r} are not finite; take a checkpoint from before the divergence"
                )
        if features is None and isinstance(read.apply, Mlp):
            features = read.apply.features
        functions = _Functions(read, layout, loss, features, noise)
        made = cls(functions, layout.flat(moving), layout.constants(leaves), batches)
        if not loss.of_params:
            try:
                made._try_call(as_pair(batches.first()[0])[0])
            except (
                UserError
            ):  # a model may read batches only as they are given, as the vertices of a graph
                made._try_call(as_pair(batches.first_as_given())[0])
        return made

    def _try_call(self, x: Any) -> None:
        """Try a call without computing anything.

        Raises:
            UserError: the model does not take such inputs alone.
        """
        try:
            self._call(partial(jax.eval_shape, self.functions.outputs), x, back=_same)
        except UserError:
            raise
        except Exception as trouble:
            line = (str(trouble).strip().splitlines() or [""])[0]
            raise UserError(
                f"{self.name} cannot be called with the inputs of the data alone ({type(trouble).__name__}: {line}); "
                "if it draws random numbers, changes its state or needs more arguments, give a pair with a function of "
                "(params, x) that calls it as it is used after training"
            ) from trouble

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

    def forms(self, values: Vector) -> list[Any]:
        """Return a vector over the weights in the forms in which optimizers are given parameters.

        They may be given the whole tree; what of it is trained, without the rest; or its arrays.
        """
        layout = self.functions.layout
        tree = layout.unflatten(jnp.asarray(values, self.dtype), self.constants)
        return [*inner_trees(tree), tree]

    def _with(self, flat: Array) -> "JaxSubject":
        """Return a copy with other weights, on the same device."""
        return JaxSubject(self.functions, self._beside(flat), self.constants, self.batches)

    def _beside(self, array: Array) -> Array:
        """Put an array on the device that the user chose for the weights; JAX refuses to mix devices."""
        devices = self.flat.devices()
        if not self.flat.committed or len(devices) > 1:  # JAX may place it as it likes
            return array
        return jax.device_put(array, *devices)

    def now(self, model: Any) -> "JaxSubject":
        tree = tree_of(model)
        later = self.at(self.flatten(tree))
        later.constants = self.functions.layout.constants(jax.tree.leaves(tree))
        return later

    @property
    def is_noisy(self) -> bool:
        return self.functions.noise and any(map(is_key, self.constants))

    def redrawn(self, seed: int) -> "JaxSubject":
        other = self.at(self.values())
        other.constants = tuple(
            jax.vmap(lambda key: jax.random.fold_in(key, seed))(leaf.ravel()).reshape(leaf.shape)
            if is_key(leaf)
            else leaf
            for leaf in self.constants
        )
        return other

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
        return dict(
            part
            for name, leaf in named_leaves(tree_of(params))
            for part in (real_parts(name, leaf) if is_inexact(leaf) else [(name, leaf)])
        )

    def _call(self, function: Callable, batch: Any, *more: Any, back: Callable = np.asarray) -> Any:
        """Call in this precision, back as NumPy arrays; floating point inputs are cast, whole numbers stay.

        What the reader's functions draw from Python, NumPy or torch while they are traced is put back.
        """
        with arithmetic(double=self.dtype == np.float64), states_kept():
            cast = lambda leaf: self._beside(
                jnp.asarray(leaf, self.dtype if _floating(leaf) else None)
            )
            return jax.tree.map(
                back,
                function((self.flat, self.constants), jax.tree.map(cast, _numeric(batch)), *more),
            )

    def _evaluate_on(self, function: Callable, batch: Any) -> Any:
        """Call a function of model or loss, whose shapes may not fit together.

        Raises:
            UserError: they do not, on this batch.
        """
        try:
            return self._call(function, batch)
        except (TypeError, ValueError) as trouble:
            if isinstance(trouble, UserError):
                raise
            line = (str(trouble).strip().splitlines() or [""])[0]
            raise UserError(
                f"{self.name} cannot be evaluated on {examples(batch)} examples ({type(trouble).__name__}: {line}); "
                "see that model and loss run on one batch (x, y)"
            ) from trouble

    def _risk(self, batch: Any) -> float:
        return float(self._evaluate_on(self.functions.risk, batch))

    def _gradient(self, batch: Any) -> Vector:
        return self._call(self.functions.gradient, batch)

    def _products(
        self, kind: Kind, batch: Any, vectors: Float[np.ndarray, "k p"]
    ) -> Float[np.ndarray, "k p"]:
        return self._call(self.functions.products[kind], batch, vectors)

    def _outputs(self, batch: Any) -> tuple[NDArray, NDArray]:
        x, y = as_pair(batch)
        return self._evaluate_on(self.functions.outputs, x), np.asarray(y)

    def loss_at(self, outputs: NDArray, targets: Any) -> float:
        self.functions.loss.need_outputs("the loss of outputs")
        return float(self._call(self.functions.loss_at, targets, outputs))

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

    def example_gradients(
        self, batch: Any, output: Callable[[Any, Any], Any], sketch: Any
    ) -> tuple[NDArray, NDArray, NDArray]:
        function = self.functions.example_gradients(output, sketch)
        pair = as_pair(batch)
        return *self._call(function, tuple(pair), sketch.words()), np.asarray(pair[1])

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
            params = self.functions.layout.unflatten(self.flat, self.constants)
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


class _Layout(NamedTuple):
    """Where the weights stand in the leaves of a tree, and in the flat vector.

    Attributes:
        treedef: of the tree.
        parts: of how many arrays of real weights each leaf is made: none, one, or two where it is complex.
        passed: whether each leaf is another array, which compiled functions take as an argument.
        fixed: leaves that are neither, in their places.
        names: of the leaves with weights.
        weights: the arrays of real numbers.
        dtype: theirs.
    """

    treedef: Any
    parts: list[int]
    passed: list[bool]
    fixed: list[Any]
    names: list[str]
    weights: tuple[Weight, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, tree: Any, leaves: list[Any], treedef: Any) -> "_Layout":
        """Lay out a tree.

        Raises:
            UserError: no weights, or of several precisions.
        """
        is_trained = trained(tree)
        passed = [
            is_array(leaf) and not moves for leaf, moves in zip(leaves, is_trained, strict=True)
        ]
        moving = [
            entry for entry, moves in zip(named_leaves(tree), is_trained, strict=True) if moves
        ]
        kinds = {str(jnp.finfo(leaf.dtype).dtype) for _, leaf in moving if hasattr(leaf, "dtype")}
        if len(kinds) != 1 or not kinds <= {"float32", "float64"}:
            raise UserError(
                f"the weights need one floating point type, float32 or float64, got {sorted(kinds) or 'none'}; "
                "cast the parameters with jax.tree.map"
            )
        fixed = [
            None if moves or passes else leaf
            for leaf, moves, passes in zip(leaves, is_trained, passed, strict=True)
        ]
        real = [part for name, leaf in moving for part in real_parts(name, leaf)]
        weights = places([(name, np.shape(leaf)) for name, leaf in real])
        counts = [
            len(real_parts("", leaf)) if moves else 0
            for leaf, moves in zip(leaves, is_trained, strict=True)
        ]
        names = [name for name, _ in moving]
        return cls(treedef, counts, passed, fixed, names, weights, np.dtype(next(iter(kinds))))

    def flat(self, moving: list[Any]) -> Array:
        """Return the weights of the leaves that are trained, shape ``(p,)``."""
        with jax.enable_x64(self.dtype == np.float64):
            parts = [part for leaf in moving for _, part in real_parts("", leaf)]
            return jnp.concatenate([jnp.asarray(part, self.dtype).ravel() for part in parts])

    def constants(self, leaves: list[Any]) -> tuple[Any, ...]:
        """Return the arrays that are passed along."""
        return tuple(leaf for leaf, passes in zip(leaves, self.passed, strict=True) if passes)

    def unflatten(self, w: Array, constants: tuple[Any, ...]) -> Any:
        """Return the tree of weights and constants."""
        real = iter([w[weight.place].reshape(weight.shape) for weight in self.weights])
        others = iter(constants)
        leaves = []
        for count, passes, leaf in zip(self.parts, self.passed, self.fixed, strict=True):
            if passes:
                leaves.append(next(others))
            elif count == 2:
                leaves.append(jax.lax.complex(next(real), next(real)))
            else:
                leaves.append(next(real) if count else leaf)
        return self.treedef.unflatten(leaves)


class _Functions:
    """The compiled functions of a flat vector of weights, with the arrays that stand beside them, and a batch."""

    def __init__(
        self,
        model: JaxModel,
        layout: _Layout,
        loss: Loss,
        features: Callable | None,
        noise: bool,
    ) -> None:
        self.noise = noise
        apply = model.apply
        self.apply = apply
        self.layout = layout
        self.weights = layout.weights
        self.name = model.name
        run = apply.apply if isinstance(apply, Network) else apply
        forward = lambda tree: lambda w, x: run(tree(w), x)
        self.forward = forward
        self._of_examples: dict[tuple[Callable, Any], Callable] = {}
        risk_of = _risk_of(run, model.form, loss)
        risk = lambda tree: lambda w, batch: risk_of(tree(w), batch)
        compiled = self._compiled
        self.risk = compiled(risk)
        self.gradient = compiled(lambda tree: jax.grad(risk(tree)))
        products = lambda tree: _products(forward(tree), risk(tree), loss)
        self.products = {
            kind: compiled(lambda tree, kind=kind: jax.vmap(products(tree)[kind], (None, None, 0)))
            for kind in KINDS
        }
        self.outputs = compiled(forward)
        self.features = (
            None
            if features is None
            else compiled(lambda tree: lambda w, x: features(model.form(tree(w)), x))
        )
        at = lambda tree, x: partial(_swapped, forward(tree), x)
        self.loss = loss
        self.loss_at = compiled(lambda tree: lambda w, y, out: loss.function(out, y))
        self.slopes = compiled(lambda tree: lambda w, y, out: jax.grad(loss.function)(out, y))
        self.jvp = compiled(lambda tree: lambda w, x, v: jax.jvp(at(tree, x), (w,), (v,))[1])
        self.vjp = compiled(lambda tree: lambda w, x, u: jax.vjp(at(tree, x), w)[1](u)[0])
        self.pull = compiled(
            lambda tree: lambda w, x, u: jax.vjp(partial(forward(tree), w), x)[1](u)[0]
        )
        self.of_layers = None
        if isinstance(apply, Mlp):
            self.of_layers = [
                compiled(lambda tree, i=i: _of_layers(apply, tree, risk_of)[i]) for i in range(4)
            ]

    def example_gradients(self, output: Callable, sketch: Any) -> Callable:
        """Return the compiled function of inputs with targets and random bits, one for all weights and sketches."""
        if (output, sketch.dimension) not in self._of_examples:

            def of(tree: Callable) -> Callable:
                def one(w: Array, pair: Any) -> Array:
                    x, y = jax.tree.map(lambda leaf: leaf[None], pair)
                    return one_number(output(self.forward(tree)(w, x), y))

                def all_of(w: Array, pair: Any, words: Array) -> tuple[Array, Array]:
                    values, slopes = jax.vmap(jax.value_and_grad(one), (None, 0))(w, pair)
                    return values, sketch.of_jax(slopes, words)

                return all_of

            self._of_examples[output, sketch.dimension] = self._compiled(of)
        return self._of_examples[output, sketch.dimension]

    def _compiled(self, of: Callable[[Callable], Callable]) -> Callable:
        """Compile a function of ``((w, constants), …)`` from one that is made with the tree at w."""

        def call(state: tuple[Array, tuple], *arguments: Any) -> Any:
            w, constants = state
            return of(lambda w: self.layout.unflatten(w, constants))(w, *arguments)

        return jax.jit(call)


def _products(forward: Callable, risk: Callable, loss: Loss) -> dict[str, Callable]:
    """Return products of each curvature matrix with a vector."""

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
        if loss.of_params:
            # Σ_i g_i (g_i·v)/b without the g_i: the losses' change along v, sent back
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

    return dict(zip(KINDS, (hessian, gauss_newton, fisher), strict=True))


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


def _same(value: Any) -> Any:
    return value


def _swapped(forward: Callable, x: Array, w: Array) -> Array:
    return forward(w, x)


def _risk_of(run: Callable, form: Callable, loss: Loss) -> Callable:
    """Return the mean loss of a batch as a function of the tree, which a loss of the user has in their form."""

    def risk(params: Any, batch: Any) -> Array:
        if loss.of_params:
            return loss.checked(loss.function(form(params), batch))
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
    return writes, errors, reads, pulled


def _floating(leaf: Any) -> bool:
    return np.issubdtype(np.asarray(leaf).dtype, np.floating)


def _numeric(batch: Any) -> Any:
    """Turn lists of numbers into tuples of arrays, so that compiled functions see one kind of batch."""
    return tuple(batch) if isinstance(batch, list) else batch
