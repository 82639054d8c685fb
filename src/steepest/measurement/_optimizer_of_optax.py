"""Transformations of optax: what they do to gradients, told by trying them.

States alone do not tell a rule: those of Adam, NAdam, RAdam, Adamax, Yogi and LAMB are of one type. So the
transformation is asked for the response of its updates to an impulse in one step's gradient. All rules that are known
here answer a₀, a₁, βa₁, β²a₁ …, as long as their second moments stay, which they do where gradients have their size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from steepest.core.errors import UserError
from steepest.core.precision import arithmetic
from steepest.measurement._building import first_line
from steepest.measurement._moments import reliable
from steepest.measurement._rules import NO_STEP, Optimizer, Rule
from steepest.measurement.adapters import Subject
from steepest.measurement.adapters._jax_models import plain_arrays

MEMORIES = ("mu", "trace")
"""Averages and sums of gradients in optax's states."""
SECONDS = ("nu", "nu_max", "sum_of_squares")
"""What updates are divided by."""
ALIKE = 2e-3  # relative: numbers that are one, in single precision and at the first steps
SMALL = 1e-3  # of the size of gradients, where second moments are sums that only grow
MOST = 10_000  # gradients that are accumulated before a step
SEED = 20_130_613

ASK = (
    "an optax state does not tell its rule: those of Adam, NAdam, RAdam, Adamax, Yogi and LAMB are of one type; give "
    "the pair (transformation, state)"
)
ANOTHER = "your optax transformation follows no rule whose stable limit is known here"


class UnknownRuleError(Exception):
    """Nothing is known of a transformation; the message says why."""


class Leaves(NamedTuple):
    """What stands in a state of optax.

    Attributes:
        memories: trees of averages or sums of gradients.
        seconds: trees of second moments by the name of their field.
        steps: of the rule with moments; None where it does not count.
        others: how many further arrays there are.
        has_trace: whether a memory is a sum of gradients or of updates, and no average.
    """

    memories: tuple[Any, ...]
    seconds: dict[str, tuple[Any, ...]]
    steps: int | None
    others: int
    has_trace: bool


class Sizes(NamedTuple):
    """Sizes at which the second moments stay, each ``(p,)``.

    Attributes:
        gradient: of gradients.
        divisor: √v̂, or what stands there; None where nothing is divided.
        is_size: whether that is kept as a size and not as a square.
    """

    gradient: NDArray
    divisor: NDArray | None
    is_size: bool


class Response(NamedTuple):
    """How updates answer to an impulse of a gradient.

    Attributes:
        first: a₀, in the step of the impulse, ``(p,)``.
        second: a₁, in the next.
        third: in the one after it.
        beta: with which memories fade.
    """

    first: NDArray
    second: NDArray
    third: NDArray
    beta: float


def of_optax(
    given: Any, subject: Subject, lr: float | None, momentum: float, weight_decay: float | None
) -> Optimizer:
    """Read a pair of a transformation and its state, or a state alone, of which nearly nothing is known."""
    transformation, state = _pair(given)
    settings = hyperparameters(state)
    leaves = _leaves(state)
    stated = settings.get("learning_rate") if lr is None else lr
    stepped = None if leaves.steps is None else leaves.steps > 0
    rule = Rule.ADAM if leaves.seconds and leaves.memories else None
    base = Optimizer(stated, momentum, decay=weight_decay, stepped=stepped, rule=rule)
    if transformation is None and not leaves.memories and not leaves.seconds and momentum:
        return replace(base, rule=None)
    base = replace(base, not_held=_not_held(leaves, subject))
    if transformation is None:
        return replace(base, unknown=NO_STEP if stepped is False and rule else ASK)
    if stepped is False and rule:
        return replace(base, momentum=settings.get("b1", 0.9), unknown=NO_STEP)
    try:
        with arithmetic(double=subject.dtype == np.float64):
            trial = _Trial(transformation, state, subject)
            return _of_response(trial, trial.response(), lr, base)
    except UnknownRuleError as why:
        return replace(base, unknown=str(why))
    except Exception as trouble:  # of the transformation, which may ask for more than a gradient
        why = f"your optax transformation could not be tried: {first_line(trouble)}"
        return replace(base, unknown=why)


def hyperparameters(state: Any) -> dict[str, float]:
    """Return the numbers that ``optax.inject_hyperparams`` keeps in a state; none without it."""
    settings = getattr(state, "hyperparams", None)
    if isinstance(settings, Mapping):
        # through its shortest decimal: the 0.9 of single precision is 0.8999999762 in double
        return {n: float(str(np.asarray(v))) for n, v in settings.items() if np.ndim(v) == 0}
    if isinstance(state, tuple | list):
        parts = [hyperparameters(part) for part in state]
        return next((part for part in parts if part), {})
    return {}


def _pair(given: Any) -> tuple[Any, Any]:
    """Return transformation and state, the first None where there is but a state."""
    if hasattr(given, "tx"):
        return given.tx, plain_arrays(given.opt_state)
    is_pair = isinstance(given, tuple | list) and len(given) == 2 and hasattr(given[0], "update")
    if is_pair and hasattr(given[0], "init"):
        return given[0], given[1]
    if hasattr(given, "update") and hasattr(given, "init"):
        raise UserError(
            "an optax transformation without its state; give the pair (transformation, state)"
        )
    return None, given


def _leaves(state: Any) -> Leaves:
    memories: list[Any] = []
    seconds: dict[str, tuple[Any, ...]] = {}
    steps: list[int] = []
    traces: list[Any] = []
    others = 0

    def walk(node: Any) -> None:
        nonlocal others
        fields = getattr(node, "_fields", None)
        if fields is None:
            if isinstance(node, Mapping | tuple | list):
                for part in node.values() if isinstance(node, Mapping) else node:
                    walk(part)
            else:
                others += sum(np.size(leaf) > 1 for leaf in jax.tree.leaves(node))
            return
        has_moments = "nu" in fields
        for name in fields:
            value = getattr(node, name)
            if name in MEMORIES:
                memories.append(value)
                traces.extend([value] if name == "trace" else [])
            elif name in SECONDS:
                seconds[name] = (*seconds.get(name, ()), value)
            elif name == "count" and has_moments:
                steps.append(int(value))
            elif name != "acc_grads":
                walk(value)

    walk(state)
    return Leaves(tuple(memories), seconds, max(steps, default=None), others, bool(traces))


def _flat(trees: Sequence[Any], subject: Subject) -> NDArray:
    """Return what several trees have of the weights, of which each has one place; NaN where none has any."""
    total = np.full(subject.size, np.nan)
    for tree in trees:
        if not jax.tree.leaves(tree):
            continue
        try:
            part = subject.flatten(tree, missing=np.nan).astype(float)
        except UserError as trouble:
            raise UnknownRuleError(
                f"the moments of this optax state are those of another model: {trouble}"
            ) from trouble
        if (np.isfinite(total) & np.isfinite(part)).any():
            raise UnknownRuleError(f"{ANOTHER}: it divides some weights twice")
        total = np.where(np.isfinite(total), total, part)
    return total


def _not_held(leaves: Leaves, subject: Subject) -> tuple[str, ...]:
    """Name the arrays of weights that have no second moments where others have some."""
    trees = leaves.seconds.get("nu", ())
    try:
        second = _flat(trees, subject)
    except UnknownRuleError:
        return ()
    if not np.isfinite(second).any():
        return ()
    return tuple(w.name for w in subject.weights if np.isnan(second[w.place]).all())


@dataclass
class _Trial:
    """A transformation that is tried from its state, which stays as it is."""

    transformation: Any
    state: Any
    subject: Any

    def __post_init__(self) -> None:
        self.leaves = _leaves(self.state)
        if self.leaves.others:
            raise UnknownRuleError(f"{ANOTHER}: its state holds more than moments")
        self.signs = np.random.default_rng(SEED).choice([-1.0, 1.0], (2, self.subject.size))
        self.update = jax.jit(self.transformation.update)
        self.form = self._form()

    def _form(self) -> int:
        """Return which form of the parameters the transformation was made for."""
        zeros = np.zeros(self.subject.size)
        trouble: Exception | None = None
        for i in range(len(self.subject.forms(zeros))):
            try:
                self.form = i
                self.step(zeros, self.state)
                return i
            except Exception as error:
                trouble = trouble or error
        assert trouble is not None
        raise trouble

    def step(
        self, gradient: NDArray, state: Any, weights: NDArray | None = None
    ) -> tuple[NDArray, Any]:
        """Return the update ``(p,)`` and the next state; gradients are accumulated until there is one."""
        values = self.subject.values() if weights is None else weights
        params = self.subject.forms(values)[self.form]
        slope = self.subject.forms(gradient)[self.form]
        first = getattr(state, "gradient_step", None)
        if first is None:
            updates, state = self.update(slope, state, params)
        else:
            nothing = jax.tree.map(lambda leaf: leaf * 0, state.acc_grads)
            state = state._replace(mini_step=state.mini_step * 0, acc_grads=nothing)
            for _ in range(MOST):
                updates, state = self.update(slope, state, params)
                if int(state.gradient_step) != int(first):
                    break
        update = self.subject.flatten(updates, missing=0.0).astype(float)
        return update, _with_schedules_of(self.state, state)

    def second(self, state: Any) -> NDArray:
        """Return what a state has of second moments, ``(p,)``; zero for weights without."""
        seconds = _leaves(state).seconds
        trees = seconds["nu"] if "nu" in seconds else next(iter(seconds.values()))
        if any(np.iscomplexobj(leaf) for leaf in jax.tree.leaves(trees)):
            raise UnknownRuleError(
                "of complex weights no limit is known here for rules with second moments"
            )
        return np.nan_to_num(_flat(trees, self.subject))

    @cached_property
    def sizes(self) -> Sizes:
        """Return the sizes to try, small ones for weights without second moments, which another rule may move."""
        sizes = self._sizes()
        if not self.leaves.seconds:
            return sizes
        without = np.isnan(_flat(self.leaves.seconds.get("nu", ()), self.subject))
        if "nu" not in self.leaves.seconds or without.all():
            return sizes
        typical = float(np.sqrt(np.mean(sizes.gradient[~without] ** 2))) or 1.0
        return sizes._replace(gradient=np.where(without, SMALL * typical, sizes.gradient))

    def _sizes(self) -> Sizes:
        """Return sizes of gradients at which the second moments stay, and what updates are divided by.

        Raises:
            UnknownRuleError: there are none.
        """
        if not self.leaves.seconds:
            memory = _flat(self.leaves.memories, self.subject)
            size = np.sqrt(np.nanmean(memory**2)) if np.isfinite(memory).any() else 0.0
            return Sizes(np.full(self.subject.size, 0.1 * size or SMALL), None, False)
        second = self.second(self.state)
        root = np.sqrt(second)
        steps = self.leaves.steps
        _, state = self.step(np.zeros(self.subject.size), self.state)
        shares = self.second(state)[second > 0] / second[second > 0]
        fades = float(np.median(shares)) if len(shares) else 1.0  # β₂, where there is one
        if steps is None or fades >= 1:
            filled = then = 1.0
        else:
            filled, then = 1 - fades**steps, 1 - fades ** (steps + 1)
        corrected = root / np.sqrt(filled)
        tried = (
            (Sizes(corrected, corrected, False), then / filled),
            (Sizes(root, root, False), 1.0),
            (Sizes(second, second, True), 1.0),
            (Sizes(SMALL * root, root, False), 1.0),
        )
        for sizes, growth in tried:
            _, state = self.step(sizes.gradient, self.state)
            if not _agree(self.second(state), growth * second):
                continue
            if "nu_max" in self.leaves.seconds:
                largest = np.nan_to_num(_flat(self.leaves.seconds["nu_max"], self.subject))
                return sizes._replace(divisor=np.sqrt(largest))
            return sizes
        raise UnknownRuleError(
            f"{ANOTHER}: its second moments do not stay where gradients have their size"
        )

    def response(self) -> Response:
        """Return how updates answer to an impulse.

        Raises:
            UnknownRuleError: not as those of any rule that is known here.
        """
        size = self.sizes.gradient
        has_size = size > 0
        signs, others = self.signs
        rows = []
        memories = []
        for sign in (1, -1):
            state = self.state
            updates = []
            marks = []
            for pattern in (sign * signs, others, others):
                update, state = self.step(pattern * size, state)
                updates.append(update)
                marks.append(np.nan_to_num(_flat(_leaves(state).memories, self.subject)))
            rows.append(np.array(updates))
            memories.append(np.array(marks))
        impulse = np.where(has_size, 2 * signs * size, 1.0)
        first, second, third = np.where(has_size, -(rows[0] - rows[1]) / impulse, 0.0)
        slopes = (memories[0] - memories[1]) / impulse
        beta = 0.0
        moves = slopes[0] != 0
        if moves.any():
            ratios = slopes[1][moves] / slopes[0][moves]
            beta = float(np.median(ratios))
            if not _agree(ratios, np.full_like(ratios, beta)):
                raise UnknownRuleError(
                    "the parts of your optax transformation have several momenta"
                )
        self._check_linear(size, others, first)
        return Response(first, second, third, float(f"{beta:.4g}"))

    def _check_linear(self, size: NDArray, signs: NDArray, first: NDArray) -> None:
        """Check that another impulse has the same answer, and without second moments one half as large.

        Raises:
            UnknownRuleError: it has not.
        """
        shrunk = size if self.leaves.seconds else 0.5 * size
        ends = [self.step(sign * signs * shrunk, self.state)[0] for sign in (1, -1)]
        impulse = np.where(size > 0, 2 * signs * shrunk, 1.0)
        if not _agree(np.where(size > 0, -(ends[0] - ends[1]) / impulse, 0.0), first):
            raise UnknownRuleError(f"{ANOTHER}: its updates are no linear function of gradients")

    def decay(self, response: Response) -> tuple[NDArray, bool]:
        """Return by how much a step of the weights shrinks them, ``(p,)``, and whether gradients have no part in it.

        Raises:
            UnknownRuleError: weights change the updates in another way.
        """
        size = self.sizes.gradient
        weights = self.subject.values().astype(float)
        shift = self.signs[1] * (np.sqrt(np.mean(weights**2)) or 1.0)
        ends = [self.step(size, self.state, weights + moved) for moved in (0.0, shift)]
        shrinks = -(ends[1][0] - ends[0][0]) / shift
        averages = [
            np.nan_to_num(_flat(_leaves(state).memories, self.subject)) for _, state in ends
        ]
        return shrinks, _agree(averages[0], averages[1])


def _with_schedules_of(before: Any, after: Any) -> Any:
    """Return a state whose schedules have not moved on, so that all steps have one size."""
    if hasattr(after, "_fields"):
        still = () if "nu" in after._fields else ("count", "hyperparams_states")
        parts = {
            name: (lambda then, now: then) if name in still else _with_schedules_of
            for name in after._fields
        }
        return type(after)(
            *(part(getattr(before, name), getattr(after, name)) for name, part in parts.items())
        )
    if isinstance(after, dict):
        return {key: _with_schedules_of(before[key], part) for key, part in after.items()}
    if isinstance(after, tuple | list):
        parts = zip(before, after, strict=True)
        return type(after)(_with_schedules_of(then, now) for then, now in parts)
    return after


def _agree(values: NDArray, expected: NDArray, size: float = 0.0) -> bool:
    """Tell whether numbers are alike, beside the larger of their own sizes and a given one."""
    scale = np.maximum(np.abs(expected), size)
    return bool((np.abs(values - expected) <= ALIKE * scale + 1e-30).all())


def _of_response(trial: _Trial, response: Response, lr: float | None, base: Optimizer) -> Optimizer:
    """Return what a response says of the rule, its step sizes, and its decay."""
    first = response.first
    beta = response.beta
    moves = first > 0
    if not moves.any() or (first < 0).any():
        raise UnknownRuleError(f"{ANOTHER}: it moves no weight against its gradient")
    rule, factor = _rule(response, trial)
    steps = 0 if trial.leaves.steps is None else trial.leaves.steps
    over = np.full(len(first), np.inf)  # divisor over step size
    over[moves] = factor / first[moves]
    divisor = trial.sizes.divisor
    by_array = _step_sizes(over, divisor, trial.subject)
    largest = float(by_array.max())
    largest = float(f"{largest:.6g}")  # ε and single precision have a part in it
    eta = largest if lr is None else lr
    scale = over * largest
    decay, decoupled = _decay(trial, response, by_array)
    relative = None
    if len(np.unique(np.round(by_array / largest, 3))) > 1:
        with np.errstate(divide="ignore"):
            relative = largest / by_array
    left_out: tuple[str, ...] = ()
    update = None
    if divisor is not None:
        scale, left_out = reliable(scale, trial.subject)
    if rule in (Rule.ADAM, Rule.AMSGRAD):
        mean = _flat(trial.leaves.memories, trial.subject)
        with np.errstate(invalid="ignore"):
            update = mean / (1 - beta**steps) / (over * by_array)
        update[~moves] = np.nan
    is_one = divisor is None and relative is None and moves.all()
    still = tuple(w.name for w in trial.subject.weights if not moves[w.place].any())
    kind = trial.subject.dtype
    return replace(
        base,
        lr=eta,
        momentum=beta,
        rule=rule,
        scale=None if is_one else scale.astype(kind),
        decay=decay if base.decay is None else base.decay,
        decoupled=decoupled,
        left_out=left_out,
        steps=trial.leaves.steps,
        update=None if update is None else update.astype(kind),
        relative=None if relative is None else relative.astype(kind),
        not_held=still if divisor is None else base.not_held,
    )


def _rule(response: Response, trial: _Trial) -> tuple[Rule, float]:
    """Return the rule that answers so, and the product of a₀ and divisor over step size.

    Raises:
        UnknownRuleError: none.
    """
    leaves = trial.leaves
    beta = response.beta
    moves = response.first > 0
    answers = np.array([response.second, response.third])[:, moves] / response.first[moves]

    def answers_are(second: float, third: float) -> bool:
        expected = np.array([[second], [third]]) * np.ones_like(answers)
        return _agree(answers, expected, 1.0)

    if leaves.seconds and not leaves.has_trace and leaves.memories:
        steps = 0 if leaves.steps is None else leaves.steps
        filled = [
            1 - beta ** (steps + more) for more in range(5)
        ]  # the averages' start is corrected
        if answers_are(beta * filled[1] / filled[2], beta**2 * filled[1] / filled[3]):
            rule = Rule.AMSGRAD if "nu_max" in leaves.seconds else Rule.ADAM
            return Rule.ADAMAX if trial.sizes.is_size else rule, (1 - beta) / filled[1]
        factor = (1 - beta) * (beta / filled[2] + 1 / filled[1])
        fading = beta**2 * (1 - beta) / factor
        if answers_are(fading / filled[3], beta * fading / filled[4]):
            return Rule.NADAM, factor
        raise UnknownRuleError(ANOTHER)
    if answers_are(beta, beta**2):
        divides = Rule.ADAGRAD if "sum_of_squares" in leaves.seconds else Rule.RMSPROP
        return divides if leaves.seconds else Rule.MOMENTUM, 1.0
    fading = beta**2 / (1 + beta)
    if answers_are(fading, beta * fading) and not leaves.seconds:
        return Rule.NESTEROV, 1 + beta
    raise UnknownRuleError(ANOTHER)


def _step_sizes(over: NDArray, divisor: NDArray | None, subject: Subject) -> NDArray:
    """Return the step size of each array, ``(p,)``, from what its weights' steps are divided by, over it.

    That is (d + ε)/η with the divisor d, a line in d: an array of which d varies tells both.
    """
    etas = np.zeros_like(over)
    inside = {
        w.name: np.flatnonzero(np.isfinite(over[w.place])) + w.place.start for w in subject.weights
    }
    eps = 0.0
    if divisor is not None:
        moving = np.isfinite(over)
        slopes = [
            np.polyfit(divisor[rows], over[rows], 1)
            for rows in inside.values()
            if len(rows) > 1 and np.ptp(divisor[rows]) > 0.1 * divisor[rows].max()
        ]
        # ε from the array that tells it best is that of all
        lines = [(slope, start) for slope, start in slopes if slope > 0]
        eps = (
            max(0.0, float(np.median([start / slope for slope, start in lines]))) if lines else 0.0
        )
        eps = eps if eps > 1e-4 * float(np.median(divisor[moving])) else 0.0
    for rows in inside.values():
        if len(rows):
            above = np.ones(len(rows)) if divisor is None else divisor[rows] + eps
            large = above >= np.median(above)
            etas[rows] = np.median((above / over[rows])[large])
    return etas


def _decay(
    trial: _Trial, response: Response, step_sizes: NDArray
) -> tuple[float | tuple[float, float], bool]:
    """Return the weight decay of all weights, or the smallest and the largest, and whether it is decoupled.

    Raises:
        UnknownRuleError: updates depend on the weights in another way.
    """
    shrinks, is_apart = trial.decay(response)
    moves = response.first > 0
    size = float(np.abs(step_sizes[moves]).max())
    if np.abs(shrinks).max() <= 1e-4 * size:
        return 0.0, bool(trial.leaves.seconds)
    decoupled = is_apart and (bool(trial.leaves.seconds) or bool(trial.leaves.memories))
    divided = step_sizes if decoupled else response.first
    decays = np.where(moves, shrinks / np.where(moves, divided, 1.0), np.nan)
    parts = {}
    for weight in trial.subject.weights:
        if not moves[weight.place].any():
            continue
        parts[weight.name] = float(np.nanmedian(decays[weight.place]))
        apart = np.nanmax(np.abs(decays[weight.place] - parts[weight.name]))
        if apart > 0.02 * np.nanmax(np.abs(decays)):
            raise UnknownRuleError(f"{ANOTHER}: its updates depend on the weights")
    rounded = sorted(
        {float(f"{value:.3g}") if abs(value) > 1e-6 else 0.0 for value in parts.values()}
    )
    if rounded[0] < 0:
        raise UnknownRuleError(f"{ANOTHER}: its updates depend on the weights")
    return (rounded[0] if len(rounded) == 1 else (rounded[0], rounded[-1])), decoupled
