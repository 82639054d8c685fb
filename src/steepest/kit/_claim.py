"""The form of a claim: it says its law once, over named axes, and is judged along them."""

import sys
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, dataclass_transform

from steepest.core.errors import UserError
from steepest.core.experiment import Experiment, Point
from steepest.core.page import Version, page_of
from steepest.core.scope import param

if TYPE_CHECKING:  # what an experiment gives does not depend on how it is judged or drawn
    import xarray

    from steepest.core.arrays import Observation, Prediction
    from steepest.core.checks import Check, Control, Rival
    from steepest.core.hypotheses import Hypothesis
    from steepest.core.laws import Clause, Null
    from steepest.core.panels import Panel
    from steepest.kit._judging import Judgement
    from steepest.kit._literal import Literal
    from steepest.nn.types import Key

Setting = TypeVar("Setting")
Made = TypeVar("Made", bound="Claim")
Kind = Literal["theorem", "limit", "empirical law", "conjecture"]
"""What kind of statement a claim makes."""
Judges = "str | Literal | tuple[str | Literal, ...] | None"
"""What a clause names: the id of a check, with the numbers that the clause states or without, several, or none."""


SAID = ("statement", "source", "corrections", "remarks", "not_told", "shared", "history")
"""What a claim says of itself, or its page for it."""


@dataclass_transform(frozen_default=True, field_specifiers=(param,))
def claim(kind: "type[Made]") -> "type[Made]":
    """Make a class a claim: a frozen dataclass whose version is the last of its history, its headline what it says.

    What ``page.toml`` says beside its ``claim.py`` becomes its attributes.

    Raises:
        UserError: a field of several values whose scope is a range; a page that is not as it must be, or says what the
            class says.
    """
    page = page_of(Path(getattr(sys.modules.get(kind.__module__), "__file__", None) or ""))
    for name in SAID if page else ():
        if name in vars(kind):
            raise UserError(f"{kind.__name__} and its page.toml both give {name}; keep one")
        setattr(kind, name, getattr(page, name))
    if kind.history:
        kind.version = kind.history[-1].number
    named = [id for ids in kind.says.values() for id in ids_of(ids)]
    kind.headline = tuple(dict.fromkeys(named))
    made = dataclass(frozen=True)(kind)
    for parameter in fields(made):
        scope = parameter.metadata.get("scope")
        if isinstance(parameter.default, tuple) and scope is not None and scope.low is not None:
            raise UserError(
                f"{parameter.name} has several values, and its scope is a range; list the tuples in which the claim "
                "holds: kit.choices((8, 16), (16, 32))"
            )
    return made


def ids_of(named: "Judges") -> tuple[str, ...]:
    """Return the ids of the checks that a clause names, none, one or several, as a tuple."""
    if named is None:
        return ()
    several = named if isinstance(named, tuple) else (named,)
    return tuple(one if isinstance(one, str) else one.check for one in several)


@dataclass(frozen=True)
class Claim(Experiment, Generic[Setting]):
    """One statement of the theory, whose predictions are laws: arrays over named axes.

    Data flow one way::

        setting(key) ──► hypotheses(setting)
                    ├──► predict(setting) ───────► law  ──┐
                    └──► observe(setting, key) ──► seen ──┴──► derive(law, seen) ──► judge(law, seen)
                                                                                └──► figure(law, seen, rivals)

    ``law`` and ``seen`` are ``xarray.Dataset``: the arrays by name, with the coordinates that :meth:`axes` gives, so
    that ``law.step / 2`` keeps its axes and ``seen.step.mean("start")`` says what it averages. Every check is judged at
    every point of its axes; the kit itself tries each law flat, reversed and tilted along each of its axes.

    Attributes:
        kind: what kind of statement it is: ``"theorem"``, ``"limit"`` (a theorem as something tends to a limit),
            ``"empirical law"`` or ``"conjecture"``.
        statement: the statement in LaTeX, for the page.
        source: where it is stated.
        corrections: what the source gets wrong, one sentence each, with what is right.
        remarks: scope and caveats for a reader of the page, one sentence each.
        headline: ids of the checks that state the first sentence, as ``says`` names them.
        full: fields that the full preset changes.
        tiny: fields that make a run of little arithmetic, which tests the pipeline and not the theory.
        out_of_scope: fields that take the claim out of its theorem's range, so that OUT_OF_RANGE can be seen.
        version: the number of the last version of ``history``; each version has its own block of seeds.
        point: what a sweep computes at each point instead of the whole claim; None for the claim itself.
        says: clauses of the file's text, as they stand there, one in its first sentence, each with the id of the check
            that judges it, several ids, or None where nothing tests it. A clause that states a number gives it by
            :func:`literal`.
        history: the versions, oldest first, once settings changed after results were seen.
        not_told: nulls that these data cannot reject, as ``"array.axis.kind"``, or ``"array.larger"`` and
            ``"array.smaller"``, each with the reason.
        ragged: measured arrays with entries that are no numbers on purpose, as rows differ in length. In any other such
            an entry makes every check of the claim fail.
        shared: functions of the library, or of the claim itself, that prediction and observation both call, each with
            the reason why a mistake in it would not cancel.
    """

    kind: ClassVar[Kind | Literal[""]] = ""
    says: ClassVar[Any] = {}
    statement: ClassVar[str]
    source: ClassVar[str]
    corrections: ClassVar[tuple[str, ...]] = ()
    remarks: ClassVar[tuple[str, ...]] = ()
    headline: ClassVar[tuple[str, ...]] = ()
    full: ClassVar[Mapping[str, Any]] = {}
    tiny: ClassVar[Mapping[str, Any]] = {}
    out_of_scope: ClassVar[Mapping[str, Any]] = {}
    version: ClassVar[int] = 1
    point: ClassVar[type[Point] | None] = None
    history: ClassVar[tuple[Version, ...]] = ()
    not_told: ClassVar[Mapping[str, str]] = {}
    ragged: ClassVar[tuple[str, ...]] = ()
    shared: ClassVar[Mapping[str, str]] = {}

    # ------------------------------------------------------------------------------ what an author writes

    def axes(self) -> Mapping[str, Sequence[Any]]:
        """Return the coordinates of the axes that design the experiment, such as widths; repetitions have none."""
        return {}

    def hypotheses(self, setting: Setting) -> "Iterable[Hypothesis]":
        """Yield what the theorem assumes, checked on the actual setting."""
        del setting
        return ()

    @abstractmethod
    def predict(self, setting: Setting) -> "Prediction":
        """Return the laws: ``kit.law(name=("axis axis", values))``."""

    @abstractmethod
    def observe(self, setting: Setting, key: "Key") -> "Observation":
        """Run the experiment and return its arrays: ``kit.seen(name=("seed axis", values))``."""

    def derive(
        self, law: "xarray.Dataset", seen: "xarray.Dataset"
    ) -> "Mapping[str, xarray.DataArray]":
        """Return what checks and figure both need of the arrays; both find it in ``seen`` by its name."""
        del law, seen
        return {}

    @abstractmethod
    def judge(self, law: "xarray.Dataset", seen: "xarray.Dataset") -> "Iterable[Check]":
        """Yield the checks."""

    def rivals(self, setting: Setting, law: "xarray.Dataset") -> "Iterable[Rival]":
        """Yield wrong theories that the same observation must reject."""
        del setting, law
        return ()

    def controls(self, seen: "xarray.Dataset") -> "Iterable[Control]":
        """Yield changed worlds, in which the law must not hold: the judge must fail each."""
        del seen
        return ()

    def figure(
        self, law: "xarray.Dataset", seen: "xarray.Dataset", rivals: "Mapping[str, xarray.Dataset]"
    ) -> "Iterable[Panel]":
        """Yield the panels of the figure; unless a claim draws its own, one of each law of its headline."""
        from steepest.kit._figure import of_headline

        return of_headline(self, law, seen, rivals)

    # --------------------------------------------------------------------------------- what the engine asks

    def checks(self, predicted: "Prediction", observed: "Observation") -> "tuple[Check, ...]":
        """Judge arrays by name and axis; where one has entries that are no numbers, every check fails."""
        from steepest.kit._checks import without_numbers
        from steepest.kit._laws import law_and_seen, not_finite

        checks = tuple(self.judge(*law_and_seen(self, predicted, observed)))
        holes = not_finite(self, observed)
        return tuple(without_numbers(check, holes) for check in checks) if holes else checks

    def wrong_theories(self, setting: Setting, predicted: "Prediction") -> "tuple[Rival, ...]":
        """Return the rivals, each with all arrays of a prediction."""
        from steepest.kit._laws import completed_rival, labelled

        rivals = self.rivals(setting, labelled(self, predicted))
        return tuple(completed_rival(rival, predicted) for rival in rivals)

    def changed_worlds(self, observed: "Observation") -> "tuple[Control, ...]":
        """Return the controls, each with all arrays of an observation."""
        from steepest.kit._laws import completed_control, labelled

        controls = self.controls(labelled(self, observed))
        return tuple(completed_control(control, observed) for control in controls)

    def draw_figure(
        self, predicted: "Prediction", observed: "Observation", rivals: "Sequence[Rival]"
    ) -> "tuple[Panel, ...]":
        """Return the figure."""
        from steepest.kit._laws import labelled, law_and_seen

        wrong = {rival.id: labelled(self, rival.prediction) for rival in rivals}
        return tuple(self.figure(*law_and_seen(self, predicted, observed), wrong))

    def judged(
        self, predicted: "Prediction", observed: "Observation", rivals: "Sequence[Rival]"
    ) -> "Judgement":
        """Judge everything."""
        from steepest.kit._judging import judge_laws

        return judge_laws(self, predicted, observed, rivals)

    def mutants(self, predicted: "Prediction") -> "Iterable[tuple[Null, Prediction]]":
        """Yield the laws flattened, reversed and tilted along each of their axes."""
        from steepest.kit._nulls import mutants

        return mutants(self, predicted)

    def clauses(
        self, checks: "Sequence[Check]", predicted: "Prediction", observed: "Observation"
    ) -> "tuple[Clause, ...]":
        """Return the clauses of the first sentence with their verdicts, their numbers judged as they stand."""
        from steepest.kit._clauses import clauses

        return clauses(self, checks, predicted, observed)
