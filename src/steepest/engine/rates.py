"""How often a claim holds, as the package records it; nothing here imports JAX."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from steepest import record
from steepest.catalogue import HERE, Entry
from steepest.engine.results import Result
from steepest.record import HoldRate, Record


def record_of(claim: Entry, version: int) -> Record | None:
    """Return the record of a claim of this package; None of another version, and of claims of others."""
    written = record.records().get(claim.name) if claim.origin == HERE else None
    return written if written is not None and written.version == version else None


def record_behind(result: Result) -> Record | None:
    """Return the record of the claim that gave a result; None of a reader's network, and of another preset."""
    ours = result.about["origin"] == HERE and "subject" not in result.about
    usual = ours and result.preset == record.PRESET
    written = record.records().get(result.claim) if usual else None
    return written if written is not None and written.version == result.claim_version else None


def hold_rates(known: Record | None) -> dict[str, Any] | None:
    """Return the counts over fresh seeds and random settings as a JSON-ready object; None where nobody has counted."""
    if known is None or (known.seeds is None and known.settings is None):
        return None
    return {"seeds": _counts(known.seeds), "settings": _counts(known.settings)}


def spelled_rates(known: Record | None) -> str:
    """Return how often a claim holds, in words; empty where nobody has counted.

    >>> spelled_rates(Record(1, "holds", seeds=HoldRate(20), settings=HoldRate(18, out_of_range=2)))
    'holds at 20 of 20 fresh seeds, 18 of 20 settings (2 out of range)'
    """
    return "" if known is None else spelled_counts(known.seeds, known.settings)


def spelled_counts(seeds: HoldRate | None, settings: HoldRate | None) -> str:
    """Return both counts in words, those that do not hold by their verdict; empty where nothing was run."""
    counted = {"fresh seeds": seeds, "settings": settings}
    shares = [_spelled(rate, what) for what, rate in counted.items() if rate and rate.runs]
    return f"holds at {', '.join(shares)}" if shares else ""


def spelled_spans(scope: Mapping[str, Mapping[str, Any]]) -> str:
    """Return how wide the scope is from which settings are drawn, in words; empty where no field is a number.

    A field spans the ratio of its ends. A field of several values spans the ratio of its choices' geometric means.

    Args:
        scope: by field, as the JSON of a result has it.

    >>> spelled_spans({"lr": {"low": 0.1, "high": 0.2}, "widths": {"choices": [[8, 16], [32, 64]]}})
    'settings span a factor of 2 (lr) to 4 (widths)'
    """
    spans = {field: span for field, part in scope.items() if (span := _span(part)) is not None}
    if not spans:
        return ""
    least = min(spans, key=lambda field: spans[field])
    most = max(spans, key=lambda field: spans[field])
    ends = [f"{spans[field]:.2g} ({field})" for field in dict.fromkeys((least, most))]
    return f"settings span a factor of {' to '.join(ends)}"


def _span(part: Mapping[str, Any]) -> float | None:
    """Return the largest over the smallest of a field's values; None of words, and where one is not positive."""
    ends = part["choices"] if "choices" in part else [part["low"], part["high"]]
    sizes = [_size(end if isinstance(end, (list, tuple)) else [end]) for end in ends]
    if any(size is None for size in sizes):
        return None
    logs = [size for size in sizes if size is not None]
    return math.exp(max(logs) - min(logs))


def _size(values: Iterable[Any]) -> float | None:
    """Return the mean logarithm of positive numbers; None of anything else."""
    numbers = list(values)
    if not numbers or any(isinstance(one, str | bool) or not one > 0 for one in numbers):
        return None
    return sum(map(math.log, numbers)) / len(numbers)


def _spelled(rate: HoldRate, what: str) -> str:
    others = {
        "fails" if rate.fails == 1 else "fail": rate.fails,
        "undecided": rate.undecided,
        "out of range": rate.out_of_range,
    }
    beside = ", ".join(f"{count} {verdict}" for verdict, count in others.items() if count)
    return f"{rate.holds} of {rate.runs} {what}" + (f" ({beside})" if beside else "")


def _counts(rate: HoldRate | None) -> dict[str, int] | None:
    return None if rate is None else rate.to_json()
