"""Where a claim says that it holds, in one line: what was run, how often it held, and the ranges of its settings."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from steepest.engine.rates import record_behind, spelled_rates, spelled_spans
from steepest.engine.results import Result
from steepest.site.pages import number


class Where(NamedTuple):
    """Where a claim holds.

    Attributes:
        experiment: the sentence of its experiment: which networks, which data.
        rates: how often it held at fresh seeds and at other settings, in words; empty where nobody has counted.
        ranges: from which values these settings were drawn, by field.
    """

    experiment: str
    rates: str
    ranges: dict[str, str]


def where_it_holds(result: Result) -> Where:
    """Return where the claim of a result says that it holds, and how often it did."""
    scope = result.about.get("scope", {})
    ranges = {field: spelled_range(part) for field, part in scope.items()}
    rates = spelled_rates(record_behind(result))
    if rates and (spans := spelled_spans(scope)):
        rates += f"; {spans}"
    return Where(result.about["experiment"], rates, ranges)


def spelled_range(part: Mapping[str, Any]) -> str:
    """Return the range of a field: both ends of its numbers, or its words.

    >>> spelled_range({"low": 0.35, "high": 0.42}), spelled_range({"choices": [[32, 128], [64, 256]]})
    ('0.35 … 0.42', '32 … 256')
    >>> spelled_range({"choices": ["tanh", "erf"]}), spelled_range({"choices": [5]})
    ('tanh, erf', '5')
    """
    values = list(_values(part["choices"])) if "choices" in part else [part["low"], part["high"]]
    if any(isinstance(value, str) for value in values):
        return ", ".join(dict.fromkeys(map(str, values)))
    ends = dict.fromkeys((number(min(values)), number(max(values))))
    return " … ".join(ends)


def _values(choices: list[Any]) -> Iterator[Any]:
    """Yield all values of choices, of which some are lists."""
    for choice in choices:
        if isinstance(choice, list | tuple):
            yield from _values(list(choice))
        else:
            yield choice
