"""Findings about weights that stay as they are: those without gradients, and those that no optimizer holds.

Both are often meant: a pretrained part, an adapter's base, a second optimizer. So both are something to know, and no
alarm.
"""

from collections.abc import Mapping, Sequence

from steepest.measurement._adapter_rank import adapters
from steepest.measurement._context import Context
from steepest.measurement._report import Finding, FindingId, Reading

NAMED = 3
"""Arrays that a finding names before it counts them."""
EVIDENCE = "gradient norm"


def frozen(context: Context, by_name: Mapping[str, Reading]) -> Finding | None:
    """Say which weights take no gradients; not of a model with adapters, whose base is frozen by design."""
    resting = context.subject.frozen
    if not resting or EVIDENCE not in by_name or adapters(context.subject):
        return None
    count = sum(resting.values())
    share = count / (count + context.subject.size)
    return Finding(
        "?",
        f"{count} weights, {share:.0%} of all, take no gradients and stay as they are ({_names(list(resting))}). Where "
        "that is not meant, set requires_grad to True",
        EVIDENCE,
        FindingId.FROZEN,
    )


def not_held(context: Context, by_name: Mapping[str, Reading]) -> Finding | None:
    """Say which weights take gradients and are in no group of the optimizer."""
    names = context.optimizer.not_held
    if not names or EVIDENCE not in by_name:
        return None
    if len(names) == len(context.subject.weights):
        text = (
            "your optimizer holds none of these weights and moves those of another model. Where that is not meant, "
            "make it anew of this model's parameters"
        )
    else:
        text = (
            f"your optimizer does not hold the weights {_names(names)}, which stay as they are unless something else "
            "moves them. Where that is not meant, add them to its groups"
        )
    return Finding("?", text, EVIDENCE, FindingId.NOT_HELD)


def _names(names: Sequence[str]) -> str:
    """Name some arrays, and count the others.

    >>> _names(["a", "b"]), _names(["a", "b", "c", "d", "e"])
    ('a, b', 'a, b, c and 2 others')
    """
    shown = ", ".join(names[:NAMED])
    more = len(names) - NAMED
    if more <= 0:
        return shown
    return f"{shown} and {more} {'others' if more > 1 else 'other'}"
