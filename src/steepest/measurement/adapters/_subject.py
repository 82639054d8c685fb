"""A model, a loss and data, as functions of one flat vector of weights, whatever framework they come from."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from steepest.core.errors import UserError, nearest
from steepest.measurement.adapters._batches import Batches, by_name, joined
from steepest.measurement.adapters._dense import Dense

Kind = Literal["hessian", "gauss-newton", "fisher"]
KINDS = ("hessian", "gauss-newton", "fisher")
Vector = Float[np.ndarray, " p"]


class Weight(NamedTuple):
    """One named array of weights and its place in the flat vector.

    Attributes:
        name: as the model calls it.
        shape: of the array.
        place: its slice of the flat vector.
    """

    name: str
    shape: tuple[int, ...]
    place: slice


class Subject(ABC):
    """A model as measures use it: the mean loss over the data and its derivatives.

    Vectors over the weights are flat NumPy arrays ``(p,)`` in the order of ``weights``, arrays over examples have them
    first, in the order of the data. Every call is one pass over the data in small batches, whose mean losses are
    averaged with their numbers of examples as weights.

    Attributes:
        name: how reports call the model.
        weights: the named arrays of weights.
        dtype: of the weights and of everything that comes back.
        batches: the data.
        passes: products with vectors and gradients so far, in passes over the data; what measuring costs.
    """

    name: str
    weights: tuple[Weight, ...]
    dtype: np.dtype
    batches: Batches
    passes: int = 0

    # ------------------------------------------------------------------------------ what an adapter brings

    @abstractmethod
    def values(self) -> Vector:
        """Return a copy of the weights, shape ``(p,)``."""

    @abstractmethod
    def at(self, values: Vector) -> "Subject":
        """Return the same model and data with other weights, such as a checkpoint's; the user's model stays."""

    @abstractmethod
    def precise(self) -> "Subject":
        """Return a copy that computes in float64, for checks."""

    @abstractmethod
    def now(self, model: Any) -> "Subject":
        """Return the same subject with the weights that the user's model has now, later in its training."""

    @abstractmethod
    def _risk(self, batch: Any) -> float:
        """Return the mean loss of one batch."""

    @abstractmethod
    def _gradient(self, batch: Any) -> Vector:
        """Return its gradient."""

    @abstractmethod
    def _products(
        self, kind: Kind, batch: Any, vectors: Float[np.ndarray, "k p"]
    ) -> Float[np.ndarray, "k p"]:
        """Multiply vectors by a curvature matrix of this batch."""

    @abstractmethod
    def _outputs(self, batch: Any) -> tuple[NDArray, NDArray]:
        """Return outputs ``(b, …)`` and targets ``(b, …)``."""

    @abstractmethod
    def loss_at(self, outputs: NDArray, targets: Any) -> float:
        """Return the loss of some outputs ``(b, …)``, whatever the weights are.

        Raises:
            UserError: a loss of ``(params, batch)``.
        """

    @abstractmethod
    def slopes(self, outputs: NDArray, targets: Any) -> NDArray:
        """Return the derivative of the loss of some outputs ``(b, …)`` in them, whatever the weights are.

        Raises:
            UserError: a loss of ``(params, batch)``.
        """

    @abstractmethod
    def _features(self, batch: Any) -> Float[np.ndarray, "b q"]:
        """Return what the last layer reads."""

    @abstractmethod
    def _jvp(self, batch: Any, vector: Vector) -> NDArray:
        """Return the change of the outputs ``(b, …)`` along a change of the weights."""

    @abstractmethod
    def _vjp(self, batch: Any, cotangent: NDArray) -> Vector:
        """Return ``Σ_i Σ_a u_ia ∂f_a(x_i)/∂w``."""

    @abstractmethod
    def _inputs(self, batch: Any) -> NDArray:
        """Return inputs ``(b, …)``; real ones in the weights' precision."""

    @abstractmethod
    def _evaluate(self, x: NDArray) -> NDArray:
        """Return outputs ``(b, …)`` at these inputs."""

    @abstractmethod
    def _pull(self, x: NDArray, cotangent: NDArray) -> NDArray:
        """Return ``Σ_a u_ia ∂f_a(x_i)/∂x_i``, of the inputs' shape."""

    @abstractmethod
    def _layers(self, x: NDArray) -> dict[str, NDArray]:
        """Return what each linear layer writes at these inputs, ``(b, …)``."""

    @abstractmethod
    def _errors(self, batch: Any) -> dict[str, NDArray]:
        """Return the derivative of each example's loss in these."""

    @abstractmethod
    def _reads(self, x: NDArray) -> dict[str, NDArray]:
        """Return what each linear layer reads at these inputs, ``(b, …)``."""

    @abstractmethod
    def _layer_vjp(self, x: NDArray, cotangent: NDArray) -> dict[str, NDArray]:
        """Return ``Σ_a u_ia ∂f_a(x_i)/∂z_i`` for what each linear layer writes, z."""

    @abstractmethod
    def example_gradients(
        self, batch: Any, output: Callable[[Any, Any], Any], sketch: Any
    ) -> tuple[NDArray, NDArray, NDArray]:
        """Return one number of each example of a batch, what a sketch keeps of its gradient, and the targets.

        Args:
            batch: a pair of inputs and targets.
            output: of ``(outputs, targets)`` of some examples ``(b, …)``, one number of each, ``(b,)``.
            sketch: linear, with a ``dimension``; ``of_jax`` takes gradients ``(b, p)`` and the random bits ``words()``,
                ``of_torch`` a list of gradients by array of weights, ``(b, …)``; both return ``(b, k)``.

        Returns:
            Shapes ``(b,)``, ``(b, k)`` and ``(b, …)``.
        """

    @abstractmethod
    def dense(self) -> list[Dense] | None:
        """Return the layers, if the model says that it is a chain of dense ones; outputs are not compared."""

    @property
    @abstractmethod
    def classifier(self) -> tuple[str, str | None] | None:
        """Return the names of the last layer's matrix ``(k, q)`` and bias, if they are known."""

    @abstractmethod
    def _named(self, params: Any) -> dict[str, Any]:
        """Return arrays by name of parameters in the framework's own form."""

    # ---------------------------------------------------------------------------------- what measures use

    @property
    def normalizes(self) -> bool:
        """Tell whether examples of a batch are normalized together, so that the loss depends on who is in it."""
        return False

    @property
    def kept_in(self) -> str:
        """Return the type in which the user keeps the weights, such as ``"bfloat16"``, whatever this computes in."""
        return str(self.dtype)

    @property
    def has_normalization(self) -> bool:
        """Tell whether some layer divides by the size of what it reads, so that what stands before may have any."""
        return False

    @property
    def frozen(self) -> dict[str, int]:
        """Return the arrays of weights that take no gradients, which are no weights here, and how many each has."""
        return {}

    @property
    def is_noisy(self) -> bool:
        """Tell whether model or loss draw random numbers, which are the same in every pass."""
        return False

    def redrawn(self, seed: int) -> "Subject":
        """Return a copy whose own random numbers, those of its keys and generators, are others."""
        return self.at(self.values())

    def alone(self) -> "Subject":
        """Return the model as it is used after training: with running statistics in place of the batch's."""
        return self

    @property
    def size(self) -> int:
        """Count the weights, p."""
        return self.weights[-1].place.stop

    def weight(self, name: str) -> NDArray:
        """Return one array of weights in its shape.

        Raises:
            UserError: an unknown name.
        """
        for weight in self.weights:
            if weight.name == name:
                return self.values()[weight.place].reshape(weight.shape)
        raise UserError(
            f"{self.name} has no weights {name!r}; {nearest(name, [w.name for w in self.weights])}"
        )

    def flatten(self, params: Any, missing: float | None = None) -> Vector:
        """Flatten parameters in the framework's own form (a pytree, a state dict) into a vector.

        Args:
            params: in the form of the model's own.
            missing: what stands for weights that are not there, if some are; without it all must be.

        Raises:
            UserError: if weights are missing or have another shape.
        """
        named = self._named(params)
        may_miss = missing is not None and any(weight.name in named for weight in self.weights)
        parts = []
        for weight in self.weights:
            if weight.name not in named and may_miss:
                parts.append(np.full(int(np.prod(weight.shape)), missing, self.dtype))
                continue
            if weight.name not in named:
                raise UserError(
                    f"the checkpoint has no weights {weight.name!r}; {nearest(weight.name, named)}"
                )
            values = np.asarray(named[weight.name], self.dtype)
            if values.shape != weight.shape:
                raise UserError(
                    f"the checkpoint's {weight.name!r} has shape {values.shape}, the model's {weight.shape}"
                )
            parts.append(values.ravel())
        return np.concatenate(parts)

    def risk(self) -> float:
        """Return the mean loss over the examples."""
        return float(self._mean(self._risk))

    def gradient(self) -> Vector:
        """Return the gradient of the mean loss, shape ``(p,)``."""
        self.passes += 1
        return self._mean(self._gradient)

    def products(
        self, vectors: Float[np.ndarray, "*k p"], kind: Kind = "hessian"
    ) -> Float[np.ndarray, "*k p"]:
        """Multiply one vector or several by a curvature matrix of the mean loss.

        Args:
            vectors: shape ``(p,)`` or ``(k, p)``.
            kind: ``"hessian"``; ``"gauss-newton"``, ``Jᵀ H_f J`` with the loss's Hessian H_f in the outputs;
                ``"fisher"``, the empirical one, the mean of ``g_i g_iᵀ`` over the examples' gradients.

        Raises:
            UserError: shape; kind; a kind that the loss does not allow.
        """
        if kind not in KINDS:
            raise UserError(f"there is no curvature {kind!r}; {nearest(str(kind), KINDS)}")
        vectors = np.asarray(vectors, self.dtype)
        if vectors.shape[-1:] != (self.size,) or vectors.ndim not in (1, 2):
            raise UserError(
                f"{self.name} has {self.size} weights, got vectors of shape {vectors.shape}"
            )
        block = np.atleast_2d(vectors)
        self.passes += len(block)
        # where a part counts f times as much, so does each of its gradients, and a product of two f² times
        again = self.batches.factor if kind == "fisher" else lambda: 1.0
        products = self._mean(lambda batch: again() * self._products(kind, batch, block))
        return products.reshape(vectors.shape)

    def outputs(self) -> tuple[NDArray, NDArray]:
        """Return outputs ``(n, …)`` and targets ``(n, …)`` of one pass."""
        outputs: list[NDArray] = []
        targets: list[NDArray] = []
        for batch, _ in self.batches:
            out, y = self._outputs(batch)
            outputs.append(out)
            targets.append(y)
        return joined(outputs), joined(targets)

    def outputs_on(self, batch: Any) -> tuple[NDArray, NDArray]:
        """Return outputs ``(b, …)`` and targets ``(b, …)`` of one batch."""
        return self._outputs(batch)

    def numbers(self) -> int:
        """Count the outputs of one pass, or the logits of its loss where they are more."""
        return sum(self._outputs(batch)[0].size for batch, _ in self.batches)

    def features(self) -> Float[np.ndarray, "n q"]:
        """Return what the last layer reads, shape ``(n, q)``."""
        return joined([self._features(batch) for batch, _ in self.batches])

    def jvp(self, vector: Vector) -> NDArray:
        """Return the change of the outputs, ``(n, …)``, along a change of the weights, ``(p,)``."""
        self.passes += 1
        return joined(
            [self._jvp(batch, np.asarray(vector, self.dtype)) for batch, _ in self.batches]
        )

    def vjp(self, cotangent: NDArray) -> Vector:
        """Return ``Σ_i Σ_a u_ia ∂f_a(x_i)/∂w`` for u of the outputs' shape; the sum, not the mean."""
        self.passes += 1
        total = np.zeros(self.size, self.dtype)
        start = 0
        for batch, count in self.batches:
            total += self._vjp(batch, np.asarray(cotangent[start : start + count], self.dtype))
            start += count
        return total

    def inputs(self) -> NDArray:
        """Return all inputs, shape ``(n, …)``: real ones in the weights' precision, whole numbers as they are.

        Raises:
            UserError: inputs that are no single array, or of different shapes.
        """
        return joined([self._inputs(batch) for batch, _ in self.batches])

    def evaluate(self, x: NDArray) -> NDArray:
        """Return outputs ``(m, …)`` at given inputs ``(m, …)``, each by itself: with running statistics, if any."""
        return joined([self._evaluate(x[rows]) for rows in self._cuts(x)])

    def pull(self, x: NDArray, cotangent: NDArray) -> NDArray:
        """Return derivatives in the inputs, ``Σ_a u_ia ∂f_a(x_i)/∂x_i``, shape ``(m, …)``, for u of the outputs' shape.

        Each by itself, as ``evaluate``.

        Raises:
            UserError: inputs that are whole numbers.
        """
        if not np.issubdtype(x.dtype, np.floating):
            raise UserError(
                f"the derivative of {self.name} in its inputs needs real inputs, these are {x.dtype}"
            )
        u = np.asarray(cotangent, self.dtype)
        return joined([self._pull(x[rows], u[rows]) for rows in self._cuts(x)])

    def gates(self) -> dict[str, float]:
        """Return of recurrent layers which share of a gate's inputs lies beyond 99 % of its range, at all examples.

        Of the gate with the largest share; nothing where the model has no such layers, or hides them.
        """
        totals: dict[str, float] = {}
        examples = 0
        for batch, count in self.batches:
            examples += count
            for name, share in self._gates(self._inputs(batch)).items():
                totals[name] = totals.get(name, 0.0) + count * share
        return {name: total / examples for name, total in totals.items()}

    def _gates(self, x: NDArray) -> dict[str, float]:
        """Return these shares at some inputs ``(b, …)``."""
        return {}

    def layers(self, x: NDArray | None = None) -> dict[str, NDArray]:
        """Return what each linear or convolutional layer writes, ``(n, …)``, in the order of first use.

        A layer that is reached several times keeps its last call; one whose first axis is not that of the examples is
        left out. Without ``x`` at all examples.

        Raises:
            UserError: a function of JAX that is no network of ours.
        """
        if x is None:
            return by_name([self._layers(self._inputs(batch)) for batch, _ in self.batches])
        return by_name([self._layers(x[rows]) for rows in self._cuts(x)])

    def errors(self) -> dict[str, NDArray]:
        """Return the derivative of *each example's* loss in what the layers write, in the shapes of ``layers``.

        It is the derivative of a batch's mean loss times the number of its examples.
        """
        self.passes += 1
        return by_name([self._errors(batch) for batch, _ in self.batches])

    def reads(self) -> dict[str, NDArray]:
        """Return what each layer reads at all examples, ``(n, …)``, by the names and in the order of ``layers``.

        Raises:
            UserError: as ``layers``.
        """
        return by_name([self._reads(self._inputs(batch)) for batch, _ in self.batches])

    def layer_vjp(self, cotangent: NDArray) -> dict[str, NDArray]:
        """Return ``Σ_a u_ia ∂f_a(x_i)/∂z_i`` with what each layer writes, z, for u of the outputs' shape.

        By the names and in the shapes of ``layers``. With the loss's derivative in the outputs these are ``errors``.

        Raises:
            UserError: as ``layers``.
        """
        self.passes += 1
        u = np.asarray(cotangent, self.dtype)
        parts = []
        start = 0
        for batch, count in self.batches:
            parts.append(self._layer_vjp(self._inputs(batch), u[start : start + count]))
            start += count
        return by_name(parts)

    def _cuts(self, x: NDArray) -> list[slice]:
        size = self.batches.size
        return [slice(start, start + size) for start in range(0, len(x), size)]

    def _mean(self, of: Callable[[Any], Any]) -> Any:
        """Average over the examples: the means of batches, weighted."""
        total = 0.0
        count = 0
        for batch, number in self.batches:
            count = count + number
            factor = self.batches.factor()
            if factor:  # what does not count may have no mean loss, as padding alone has none
                total = total + number * factor * of(batch)
        return total / count


def places(named: list[tuple[str, tuple[int, ...]]]) -> tuple[Weight, ...]:
    """Place the weights one after the other in the flat vector.

    >>> places([("w", (2, 3)), ("b", (2,))])[1]
    Weight(name='b', shape=(2,), place=slice(6, 8, None))
    """
    ends = np.cumsum([0, *(int(np.prod(shape)) for _, shape in named)]).tolist()
    return tuple(
        Weight(name, tuple(shape), slice(start, stop))
        for (name, shape), start, stop in zip(named, ends[:-1], ends[1:], strict=True)
    )
