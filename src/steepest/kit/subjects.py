"""The form of a claim on a reader's own network, where the same judge decides."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import jax
import numpy as np

from steepest.core.checks import Check, Rival
from steepest.core.errors import UserError
from steepest.core.intervals import Interval
from steepest.core.panels import Panel
from steepest.kit._claim import Claim
from steepest.measurement import Builder, Built, Context, sample
from steepest.measurement.adapters import Subject, in_evaluation
from steepest.measurement.adapters import subject as attach
from steepest.nn.types import Key

ALONE = "this network alone"
"""What an interval of one network stands for."""
SPACING = 1000
"""Between the seeds of two runs: run k builds its networks with seeds 1000 k, 1000 k + 1, …"""


class Plainly(NamedTuple):
    """How a check's number is said in plain words.

    Attributes:
        what: was measured, in words that need no paper: ``"the largest curvature at the end"``.
        shown: the number that people know, of the one that is judged; it must increase with it.
    """

    what: str
    shown: Callable[[float], float] = float


class Cost(NamedTuple):
    """What a run will take of the reader's network, so that it can be said before it starts.

    Attributes:
        gradients: of the mean loss over the examples.
        products: of its Hessian, or of the outputs' Jacobian, with vectors.
        passes: evaluations of the outputs at all examples.
        steps: of the reader's own training.
        builds: calls of the reader's function.
        batches: gradients of random batches; a product with a batch's Hessian counts as two.
        batch: examples in each of them.
        shapes: networks, or sets of examples, of other sizes than the first, for which JAX compiles anew.
    """

    gradients: float = 0
    products: float = 0
    passes: float = 0
    steps: float = 0
    builds: float = 0
    batches: float = 0
    batch: int = 1
    shapes: float = 0


@dataclass(frozen=True)
class Networks:
    """What theory and experiment may both see: the reader's networks as they were built, one a seed.

    Attributes:
        built: what the reader's function returned.
        subjects: the same as functions of flat weights, at the start.
        facts: whatever else a claim has found about them before it predicts.
    """

    built: Sequence[Built]
    subjects: Sequence[Subject]
    facts: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.subjects)


class _Asked(NamedTuple):
    """What a claim is asked about: whose function, which seed, and whether the reader works in double precision."""

    builder: Builder
    seed: int
    double: bool


@dataclass(frozen=True)
class OnSubject(Claim):
    """A claim's statement put to a reader's own network.

    A subclass names the claim as its second base and inherits judge, rivals, margins and fields::

        class EdgeOnSubject(OnSubject, EdgeOfStability): ...

    It lives beside its claim, in ``on_subject.py`` of the claim's folder, or in ``NAME_on_subject.py`` beside a file
    ``NAME.py``; the claim itself knows nothing of it.

    Attributes:
        says: the part of the statement that is tested here, in one sentence about "your network".
        settable: fields of the claim that a reader may set here; the others have no meaning, or are read.
        needs: parts and knobs that the reader's function must offer, each with the reason.
        left_out: ids of the claim's checks that have no meaning here, each with the reason.
        unchecked: what the statement assumes of the network and no program can check, one clause each.
        notes: what a reader of the page should know about the protocol here, one sentence each.
        plainly: how the number of a check is said in plain words, by its id; of others the check's own name is.
    """

    says: ClassVar[str]
    settable: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[Mapping[str, str]] = {}
    left_out: ClassVar[Mapping[str, str]] = {}
    unchecked: ClassVar[tuple[str, ...]] = ()
    notes: ClassVar[tuple[str, ...]] = ()
    plainly: ClassVar[Mapping[str, Plainly]] = {}

    # ------------------------------------------------------------------------- what a subclass says

    def setting(self, key: Key) -> Networks:
        """Build the networks and attach to them, no more: what takes time is for ``prepare``."""
        del key
        return self.build_all()

    def prepare(self, networks: Networks, key: Key) -> Networks:
        """Return the networks with what theory and experiment may both know of them, once the cost was agreed to."""
        del key
        return networks

    def read(self, networks: Networks) -> Mapping[str, Any]:
        """Return fields of the claim that the networks decide, such as the number of classes.

        It is asked before the cost, when ``facts`` is empty, and again after ``prepare``.
        """
        del networks
        return {}

    @abstractmethod
    def cost(self, networks: Networks) -> Cost:
        """Return what preparation, prediction and observation will take together."""

    def assumed(self, networks: Networks) -> tuple[str, ...]:
        """Return what cannot be checked of these networks; a clause that can be for some is left out for them."""
        del networks
        return self.unchecked

    # --------------------------------------------------------------------------- what the engine gives

    def on(self, builder: Builder, seed: int = 0) -> Self:
        """Return the claim for one builder, whose numbers have the precision that they have now."""
        return self._with(_Asked(builder, seed, bool(jax.config.read("jax_enable_x64"))))

    def fitted(self, networks: Networks) -> Self:
        """Return the claim with the fields that the networks decide."""
        return replace(self, **self.read(networks))._with(self._asked)

    def _with(self, asked: "_Asked") -> Self:
        """Return a twin that knows what it was asked about; that is no field, as it is no parameter."""
        twin = replace(self)
        object.__setattr__(twin, "_on", asked)
        return twin

    @property
    def _asked(self) -> "_Asked":
        return vars(self)["_on"]

    # ------------------------------------------------------------------------------ what subclasses use

    @property
    def builder(self) -> Builder:
        """Return the reader's function."""
        return self._asked.builder

    @property
    def several(self) -> bool:
        """Whether the function takes a seed, so that there can be more than one network."""
        return "seed" in self.builder.knobs

    @property
    def count(self) -> int:
        """Return the number of networks: one a seed, or the only one that there is."""
        return int(getattr(self, "seeds", 1)) if self.several else 1

    @contextmanager
    def theirs(self) -> Iterator[None]:
        """Run the reader's own code, in the reader's precision."""
        with jax.enable_x64(self._asked.double):
            yield

    def build(self, place: int = 0, **knobs: Any) -> Built:
        """Build the network of one seed."""
        if self.several:
            knobs["seed"] = SPACING * self._asked.seed + place
        with self.theirs():
            return self.builder(**knobs)

    def build_all(
        self, *, places: Sequence[int] | None = None, most: int | None = None, **knobs: Any
    ) -> Networks:
        """Build the networks of all seeds and attach to them; the first is checked, and so is the seed.

        Args:
            places: which of them, from 0 on; None for all.
            most: of the examples, drawn by class; None for all.
            **knobs: of the reader's function, besides the seed.

        Raises:
            UserError: what ``steepest.measure`` refuses; a seed that changes nothing.
        """
        places = range(self.count) if places is None else places
        built = [self.build(place, **knobs) for place in places]
        first = self.attached(built[0], check=True)
        subjects = [first, *(self.attached(one, like=first) for one in built[1:])]
        if len(subjects) > 1 and np.array_equal(subjects[0].values(), subjects[1].values()):
            raise UserError(
                f"{self.builder.where} builds the same weights for two seeds: give its seed to the initialization, or "
                "take the argument away, and one network is asked"
            )
        if most is not None:
            subjects = [self.drawn(subject, most) for subject in subjects]
        return Networks(built, subjects, {})

    def drawn(self, subject: Subject, most: int) -> Subject:
        """Return the subject on at most so many of its examples, drawn by class, in one source."""
        rng = np.random.default_rng(0)
        return sample(Context(subject, rng, seed=self._asked.seed), most).subject

    def attached(
        self, built: Built, *, like: Subject | None = None, check: bool = False
    ) -> Subject:
        """Attach to a network; one like another shares its compiled functions, if they give the risk that it has."""
        with self.theirs(), in_evaluation(built.model):
            own = attach(built.model, built.loss, built.data, features=built.features, check=check)
            compiles = isinstance(built.model, tuple | list)  # a pair of JAX
            if like is None or not compiles or own.weights != like.weights:
                return own
            shared = like.now(built.model)
            shared.batches = own.batches
            same = np.isclose(shared.risk(), own.risk(), rtol=1e-4)
            return shared if same else own

    def stacked(self, of_each: Sequence[Any]) -> np.ndarray:
        """Stack what each network gave, ``(seeds, …)``; of a single one twice, as intervals need two."""
        return np.stack([np.asarray(one, float) for one in of_each] * (2 if self.count == 1 else 1))

    def path(self, built: Built, most: int) -> Iterator[tuple[int, Any]]:
        """Train a network by the reader's own ``train``: yield the steps taken and the model after each, from 0 on.

        Args:
            built: the network.
            most: steps that are taken at most.
        """
        steps = built.steps()
        for taken in range(most + 1):
            with self.theirs():
                model = next(steps, None)
            if model is None:
                return
            yield taken, model


def kept_rivals(rivals: Iterable[Rival], *ids: str) -> list[Rival]:
    """Return the rivals with these ids: those that say something about the checks that are left."""
    return [rival for rival in rivals if rival.id in ids]


def alone(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Return checks of one network that was written twice, whose intervals have no width, with what these are."""
    return tuple(
        replace(check, interval=Interval(check.interval.low, check.interval.high, ALONE))
        for check in checks
    )


def claim_of(kind: type[OnSubject]) -> type[Claim]:
    """Return the claim that a version for subjects belongs to: its other base."""
    (claim,) = (base for base in kind.__bases__ if base is not OnSubject)
    return claim


def retitled(panels: Iterable[Panel], *titles: str) -> tuple[Panel, ...]:
    """Return panels under titles that say what is drawn, and not what the claim says of it: it may not be so here."""
    return tuple(replace(panel, title=title) for panel, title in zip(panels, titles, strict=True))
