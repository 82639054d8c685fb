"""Numbers in the prose: where each comes from, and how it is written.

An author types the number as it was and says where it comes from, in a role of MyST::

    the sharpness settles at {measured}`5.6 <edge-of-stability late_sharpness_middle>`

The book shows what the stored result says, with as many digits as were typed; a test compares what was typed with the
results that were recorded, so that a sentence that has gone stale is noticed.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from steepest.core.checks import Check
from steepest.core.errors import UserError, nearest
from steepest.core.laws import At, LawCheck
from steepest.engine.results import Result

KINDS = (
    "measured",
    "predicted",
    "low",
    "high",
    "ratio",
    "least",
    "most",
    "rival",
    "setting",
    "assumed",
    "array",
)
"""What a number can be of a result; see :func:`value`."""
PATTERN = re.compile(r"(?<!`` )\{(" + "|".join(KINDS) + r")\}`([^`<]+?)\s*<([^`>]+)>`")
_NAME = re.compile(r"([a-z0-9-]+)(?:\(([^()]*)\))?\s+(.+)", re.DOTALL)
_TYPED = re.compile(r"([−-]?)(\d+)(?:\.(\d+))?(×10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?\s?(%?)")
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_INDEXED = re.compile(
    r"(?:(mean|median|min|max|count) )?((?:predicted|observed)/\w+)((?:\[[^\]]*\])?)"
)


@dataclass(frozen=True)
class Asked:
    """A claim at some of its fields: what the book needs a result of.

    Attributes:
        claim: its name.
        fields: those that differ from the quick preset, as ``name=value`` sorted by name.
    """

    claim: str
    fields: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        inside = ", ".join(f"{name}={json.dumps(value)}" for name, value in self.fields)
        return f"{self.claim}({inside})" if inside else self.claim


@dataclass(frozen=True)
class Number:
    """A number that the prose tells.

    Attributes:
        kind: one of :data:`KINDS`.
        typed: as the author typed it, such as ``"0.98"``, ``"31 %"`` or ``"2.1×10⁻³"``.
        target: where it comes from, as the author typed it.
    """

    kind: str
    typed: str
    target: str

    @cached_property
    def _parts(self) -> tuple[Asked, str]:
        match = _NAME.fullmatch(" ".join(self.target.split()))
        if match is None:
            raise UserError(
                f"a number's source is a claim and what of it, such as <catapult loss>, got <{self.target}>"
            )
        return asked(match[1], match[2] or ""), match[3]

    @property
    def of(self) -> Asked:
        """The claim, and fields, whose result has it."""
        return self._parts[0]

    @property
    def what(self) -> str:
        """The id of a check, the name of a field, a rival with a check, or an array's place."""
        return self._parts[1]

    @property
    def of_check(self) -> bool:
        """Whether it is a number of a check, or of one of its points."""
        return self.kind not in ("setting", "assumed", "array")

    @property
    def address(self) -> str:
        """The page of its claim below the book's folder, at its check where it has one."""
        is_of_check = self.of_check and not self.of.fields
        check = self.what.split()[-1].partition("[")[0]  # a point of a law has no row of its own
        anchor = f"#check-{check}" if is_of_check else ""
        return f"claims/{self.of.claim}.html{anchor}"


def asked(claim: str, fields: str = "") -> Asked:
    """Return a claim at fields written ``name=value, name=value``; values are JSON, or words.

    >>> str(asked("catapult", "multiple=4.5, widths=[100, 300]"))
    'catapult(multiple=4.5, widths=[100, 300])'
    """
    pairs = []
    # a comma within brackets belongs to a value
    parts = re.split(r",(?![^\[]*\])", fields)
    for part in filter(None, (part.strip() for part in parts)):
        name, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"fields are written name=value, got {part!r} for {claim}")
        try:
            pairs.append((name.strip(), json.loads(value)))
        except ValueError:
            pairs.append((name.strip(), value.strip()))
    return Asked(claim, tuple(sorted(pairs)))


def numbers(text: str) -> Iterator[Number]:
    """Yield every number of a chapter's source."""
    for match in PATTERN.finditer(text):
        yield Number(match[1], " ".join(match[2].split()), match[3])


def value(number: Number, result: Result, arrays: Mapping[str, Any]) -> float:
    """Return what a result says of a number.

    ``measured``, ``predicted``, ``low`` and ``high`` (of the interval), ``least`` and ``most`` (of the margin) and
    ``ratio`` (measured over predicted) are of a check, or of one point of a law, ``CHECK[0]`` and so on;
    ``rival`` is a rival's prediction, of ``RIVAL CHECK``;
    ``setting`` a field of the claim; ``assumed`` the value of a hypothesis or run condition whose name begins so;
    ``array`` an element of an array, such as ``observed/risk[0, -1]``, or ``mean``, ``median``, ``min``, ``max`` or
    ``count`` of such a part.

    Raises:
        UserError: the result has no such thing.
    """
    what = number.what
    if number.kind == "setting":
        name, _, index = what.partition("[")
        if name not in result.params:
            raise UserError(f"{result.claim} has no field {name!r}; {nearest(name, result.params)}")
        setting = result.params[name]
        return float(setting[int(index.rstrip("]"))] if index else setting)
    if number.kind == "assumed":
        for hypothesis in result.assumptions:
            if hypothesis.name.startswith(what):
                return float(hypothesis.value)
        raise UserError(f"{result.claim} assumes nothing that begins with {what!r}")
    if number.kind == "array":
        return _element(what, result.claim, arrays)
    checks = _by_id(result.checks)
    if number.kind == "rival":
        rival, _, what = what.partition(" ")
        rivals = {one.id: one for one in (*result.rivals, *result.controls)}
        if rival not in rivals:
            raise UserError(f"{result.claim} has no rival {rival!r}; {nearest(rival, rivals)}")
        checks = _by_id(rivals[rival].checks)
    if what not in checks:
        raise UserError(f"{result.claim} has no check {what!r}; {nearest(what, checks)}")
    check = checks[what]
    match number.kind:
        case "ratio":
            return check.measured / check.predicted
        case "rival":
            return check.predicted
        case kind:
            return getattr(check, kind)


def _by_id(checks: Sequence[Check]) -> dict[str, At]:
    """Return checks by id, and each point of a law by ``id[place]``, in one form."""
    by_id = {}
    for check in checks:
        ends = (check.interval.low, check.interval.high, check.margin.low, check.margin.high)
        by_id[check.id] = At({}, check.predicted, check.measured, *ends, check.verdict)
        points = check.points if isinstance(check, LawCheck) else ()
        by_id |= {f"{check.id}[{place}]": point for place, point in enumerate(points)}
    return by_id


def _element(what: str, claim: str, arrays: Mapping[str, Any]) -> float:
    match = _INDEXED.fullmatch(what)
    if match is None:
        raise UserError(
            f"an array's place looks like 'observed/risk[0, -1]' or 'mean observed/risk', got {what!r}"
        )
    reduce, name, index = match.groups()
    if name not in arrays:
        raise UserError(f"{claim} has no array {name!r}; {nearest(name, arrays)}")
    part = np.asarray(arrays[name])
    if index:
        part = part[tuple(_place(word.strip()) for word in index[1:-1].split(","))]
    if reduce == "count":
        return float(np.size(part))
    if reduce:
        return float(getattr(np, reduce)(part))
    if np.size(part) != 1:
        raise UserError(f"{what} of {claim} has shape {np.shape(part)}; say which element")
    return float(np.ravel(part)[0])


def _place(word: str) -> int | slice:
    if ":" not in word:
        return int(word)
    return slice(*(int(end) if end else None for end in word.split(":")))


def written(number: float, typed: str) -> str:
    """Return a number as another was typed: as many digits, per cent where it was, a power of ten where it was.

    >>> written(0.98724, "0.98"), written(0.3123, "30 %"), written(2.13e-3, "2.0×10⁻³"), written(-0.5, "−0.49")
    ('0.99', '31 %', '2.1×10⁻³', '−0.50')
    """
    match = _TYPED.fullmatch(typed)
    if match is None:
        raise UserError(f"cannot tell how {typed!r} is written; try 0.98, 31 % or 2.1×10⁻³")
    decimals = len(match[3] or "")
    if not math.isfinite(number):
        return "not finite"
    if match[4]:
        return _scientific(number, decimals)
    shown = f"{100 * number if match[6] else number:.{decimals}f}"
    shown = shown.removeprefix("-") if float(shown) == 0 else shown.replace("-", "−")
    return f"{shown} %" if match[6] else shown


def _scientific(number: float, decimals: int) -> str:
    if number == 0:
        return "0"
    mantissa, _, exponent = f"{number:.{decimals}e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}×10{raised}".replace("-", "−")
