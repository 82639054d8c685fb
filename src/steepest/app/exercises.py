"""A claim as an exercise: predict first, then let the claim's own judge compare with the observation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from steepest.app.notebook import TITLES, cells, listed, table
from steepest.catalogue import Entry
from steepest.core.arrays import Prediction, Quantities
from steepest.core.checks import Check, Rejection, reject
from steepest.core.errors import UserError, nearest
from steepest.core.experiment import seeded
from steepest.core.hypotheses import Hypothesis
from steepest.core.page import page_of
from steepest.core.precision import arithmetic
from steepest.core.words import LOOKS, Verdict
from steepest.engine.fingerprint import stamp
from steepest.engine.results import Result
from steepest.engine.run import Ready, answer
from steepest.engine.store import Store
from steepest.kit import Claim

Guess = Mapping[str, Any]
"""Numbers for the names of a prediction; ``...`` or None where nothing is predicted yet."""


@dataclass(frozen=True)
class Blank:
    """One quantity of a prediction, or of an observation.

    Attributes:
        name: what the judge calls it.
        dims: one name an axis, such as ``("step_size",)``; empty for a single number.
        shape: how many numbers there are along each axis.
        unit: ``""`` for pure numbers.
        kind: ``"number"``, ``"whole number"`` or ``"truth value"``.
    """

    name: str
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    unit: str
    kind: str

    def __str__(self) -> str:
        axes = " × ".join(
            f"{size} ({dim})" for dim, size in zip(self.dims, self.shape, strict=True)
        )
        unit = f" [{self.unit}]" if self.unit else ""
        return f"{self.kind}{'s' if axes else ''}{f', {axes}' if axes else ''}{unit}"


@dataclass(frozen=True, repr=False)
class Attempt:
    """What the claim's judge says of a reader's prediction.

    Attributes:
        blank: names for which nothing is predicted yet; then nothing was judged.
        given: names for which the claim's own prediction was used.
        checks: the reader's prediction against the observation.
        rivals: the wrong theories against the same observation; ``rejected`` means beaten: a check fails for the rival
            that holds for the reader.
    """

    blank: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    rivals: tuple[Rejection, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether every check holds."""
        return bool(self.checks) and all(check.verdict is Verdict.HOLDS for check in self.checks)

    @property
    def beaten(self) -> tuple[str, ...]:
        """The names of the wrong theories that the prediction beats."""
        return tuple(rival.name for rival in self.rivals if rival.rejected)

    @property
    def sentence(self) -> str:
        """The outcome in a sentence."""
        if self.blank:
            return f"still blank: {', '.join(self.blank)}; put numbers in place of ..."
        held = sum(check.verdict is Verdict.HOLDS for check in self.checks)
        sentence = f"{held} of {len(self.checks)} checks hold"
        if self.rivals:
            sentence += f"; {len(self.beaten)} of {len(self.rivals)} wrong theories are beaten"
        if self.given:
            sentence += f"; taken from the claim: {', '.join(self.given)}"
        return sentence

    def __repr__(self) -> str:
        lines = [self.sentence]
        lines += [
            f"  {LOOKS[c.verdict].sign} {c.name}: predicted {c.predicted:.4g}, measured {c.measured:.4g}"
            for c in self.checks
        ]
        lines += [f"  {rival.name}: {self._fate(rival)}" for rival in self.rivals]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rivals = "".join(
            f"<li>{escape(rival.name)}: {escape(self._fate(rival))}</li>" for rival in self.rivals
        )
        checks = table(("check", *TITLES), [cells(check) for check in self.checks])
        head = f"<p><b>{escape(self.sentence)}</b></p>"
        return head + checks + listed("wrong theories, under the same judge", rivals)

    def _fate(self, rival: Rejection) -> str:
        names = [check.name for check in self.checks if check.id in rival.by]
        return f"beaten by {', '.join(names)}" if rival.rejected else "not beaten"


class Exercise:
    """A claim whose prediction is left to the reader.

    Made by :func:`steepest.exercise`. Nothing is computed until it is needed: :attr:`blank` needs the claim's theory,
    :meth:`judge` its experiment, which is read from the store where it is there.
    """

    def __init__(self, asked: Ready, store: Store | None = None) -> None:
        self._asked = asked
        self._store = store

    @property
    def claim(self) -> str:
        """The claim's name."""
        return self.line.name

    @property
    def line(self) -> Entry:
        """The claim's line in the catalogue."""
        return self._asked.entry

    @property
    def kind(self) -> type[Claim]:
        """The claim's class."""
        return type(self._asked.claim)

    @property
    def question(self) -> str:
        """What the claim answers, as a question; a general one where its page asks none."""
        page = page_of(self.line.path)
        asked = page.question if page else ""
        return asked or f"What does theory predict for {', '.join(self.blank)}?"

    @property
    def settings(self) -> dict[str, Any]:
        """The claim's fields with their values."""
        return asdict(self._asked.claim)

    @cached_property
    def setting(self) -> Any:
        """What theory may see: what the claim's ``setting`` returns, such as the data and the initial network."""
        with self._precision():
            for_setting, _ = seeded(self._asked.seed)
            return self._asked.claim.setting(for_setting)

    @cached_property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """What the theorem assumes, checked on the setting."""
        with self._precision():
            return tuple(self._asked.claim.hypotheses(self.setting))

    @property
    def blank(self) -> dict[str, Blank]:
        """What is to be predicted, by name: dimensions, shapes and units."""
        answer = self.answer
        return {name: _blank(answer, name) for name in answer}

    @property
    def measured(self) -> dict[str, Blank]:
        """What the experiment measured, by name, where its observation is at hand; empty before it is run."""
        stored = self._stored
        return {} if stored is None else {n: _blank(stored.observed, n) for n in stored.observed}

    @cached_property
    def answer(self) -> Prediction:
        """The claim's own prediction. Look at it last.

        Raises:
            UserError: a hypothesis that fails with these fields, so that theory says nothing; a claim that predicts
                nothing.
        """
        stored = self._stored
        prediction = self._predicted() if stored is None else stored.predicted
        if not prediction:
            raise UserError(
                f"{self.claim} predicts no number that could be left blank; steepest list has others"
            )
        return prediction

    def _predicted(self) -> Prediction:
        broken = [hypothesis for hypothesis in self.hypotheses if not hypothesis.holds]
        if broken:
            raise UserError(
                f"{self.claim} is out of range with these fields ({broken[0]}); choose others"
            )
        with self._precision():
            return self._asked.claim.predict(self.setting)

    @cached_property
    def result(self) -> Result:
        """The claim's own result, whose observation judges: read from the store, or run."""
        return answer(self._asked, store=self._store)

    def judge(
        self, prediction: Guess | Callable[[Any], Guess], given: Sequence[str] = ()
    ) -> Attempt:
        """Judge a prediction by the claim's own judge, against its observation, beside its wrong theories.

        Args:
            prediction: numbers for the names of :attr:`blank`, or a function that returns them from :attr:`setting`.
                A single number stands for an array of equal ones.
            given: names for which the claim's own prediction is used, to try the others one at a time.

        Returns:
            The checks, and which rivals are beaten. While something is blank nothing is judged.

        Raises:
            UserError: names that are not asked for, missing ones, numbers of another shape.

        >>> from steepest.app.api import exercise
        >>> task = exercise("perceptron-mistakes", preset="tiny")
        >>> sorted(task.blank)
        ['exact', 'length', 'limit', 'progress']
        >>> attempt = task.judge({"exact": ..., "length": 1, "limit": 1, "progress": 1})
        >>> attempt.sentence
        'still blank: exact; put numbers in place of ...'
        """
        with self._precision():
            guess = prediction(self.setting) if callable(prediction) else prediction
        filled = self._filled(guess, given)
        missing = tuple(name for name, value in filled.items() if value is None or value is ...)
        if missing:
            return Attempt(blank=missing)
        quantities = {
            name: (blank.dims, _fitted(blank, self.answer[name].dtype, filled[name]), blank.unit)
            for name, blank in self.blank.items()
        }
        return self._judged(Prediction(**quantities), tuple(given))

    def _filled(self, guess: Guess, given: Sequence[str]) -> dict[str, Any]:
        """The reader's numbers by name, in the claim's order, with the claim's own where they are given."""
        if not isinstance(guess, Mapping):
            kind = type(guess).__name__
            raise UserError(
                f"a prediction is a dictionary with {', '.join(self.blank)}, got {kind}; return one from predict"
            )
        for name in (*guess, *given):
            if name not in self.blank:
                raise UserError(f"{name!r} is not asked for; {nearest(name, self.blank)}")
        lacking = [name for name in self.blank if name not in guess and name not in given]
        if lacking:
            raise UserError(
                f"the prediction lacks {', '.join(lacking)}; add numbers, or name them in given=[…] to take the claim's"
            )
        answer = self.answer
        return {name: answer[name] if name in given else guess[name] for name in self.blank}

    def _judged(self, prediction: Prediction, given: tuple[str, ...]) -> Attempt:
        judge: Any = self._asked.claim.checks
        result = self.result
        with self._precision(), np.errstate(all="ignore"):
            try:
                checks = tuple(judge(prediction, result.observed))
            except Exception as trouble:
                raise UserError(
                    f"the claim's judge cannot compare these numbers ({trouble}); try others of the usual size"
                ) from trouble
            agreeing = [check for check in checks if check.verdict is Verdict.HOLDS]
            rivals = tuple(
                reject(rival, agreeing, judge(rival.prediction, result.observed))
                for rival in result.rival_predictions
            )
        return Attempt(given=given, checks=checks, rivals=rivals)

    @property
    def _stored(self) -> Result | None:
        """The stored result of the same experiment, or None."""
        if "result" in vars(self):
            return self.result
        if self._store is None:
            return None
        stored = self._store.find(self._asked.question)
        now = stamp(self.line, self.kind)
        same = stored is not None and now.same_experiment(stored.stamp, stored.versions)
        return stored if same else None

    def _precision(self) -> Any:
        return arithmetic(double=self._asked.claim.precision == "float64")

    def __repr__(self) -> str:
        return f"Exercise({self.claim!r}): {self.question}"

    def _repr_html_(self) -> str:
        asked = "".join(
            f"<li><code>{escape(name)}</code>: {escape(str(blank))}</li>"
            for name, blank in self.blank.items()
        )
        return f"<p><b>{escape(self.question)}</b></p>" + listed("to predict", asked)


def _blank(quantities: Quantities, name: str) -> Blank:
    quantity = quantities.quantity(name)
    kinds = {"b": "truth value", "i": "whole number", "u": "whole number"}
    kind = kinds.get(quantity.values.dtype.kind, "number")
    return Blank(name, quantity.dims, quantity.values.shape, quantity.unit, kind)


def _fitted(blank: Blank, dtype: np.dtype, value: Any) -> np.ndarray:
    """A reader's numbers in the shape and of the kind that the judge expects."""
    try:
        array = np.broadcast_to(np.asarray(value), blank.shape)
        fitted = array.astype(dtype)
    except (TypeError, ValueError):
        raise UserError(
            f"{blank.name} is {blank}, of shape {blank.shape}, got {_brief(value)}; one number stands for all of them"
        ) from None
    whole = dtype.kind not in "biu" or np.array_equal(fitted, array)
    if array.dtype.kind not in "biufc" or not whole:
        raise UserError(f"{blank.name} is {blank}, got {_brief(value)}")
    return fitted


def _brief(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return f"an array of shape {tuple(shape)}" if shape else " ".join(repr(value).split())[:60]
