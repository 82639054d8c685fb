"""What wrong calls of the public functions end in: a sentence, a number, or an error that says nothing.

An answer is right where a library may make sense of what it was given; a ``UserError`` says what is wrong; so does a
documented ``ValueError`` or ``TypeError``. An error that a reader's own function raises comes through from functions of
arrays. Any other exception is a fault.

    python -m benchmarks.wrong_calls.run [--only WORD] [--seed SEED] [--count COUNT] [--all]
"""

import argparse
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import jax
import numpy as np

from benchmarks.wrong_calls.arrays import OWN, Call
from benchmarks.wrong_calls.calls import every_call
from steepest.core.errors import UserError

LONG = 600  # letters of one sentence, beyond which it is none


def outcome(call: Callable[[], Any]) -> tuple[str, str]:
    """Return what a call ends in, and what it says."""
    try:
        with redirect_stderr(StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except UserError as refusal:
        said = str(refusal)
        return (
            "UserError" if said and len(said) < LONG and "\n" not in said else "no sentence"
        ), said
    except (Exception, SystemExit) as trouble:
        if trouble.args == OWN.args and isinstance(trouble, type(OWN)):
            return "the reader's own", ""
        return type(trouble).__name__, str(trouble)
    return "answer", ""


def count(calls: list[Call], show: bool) -> Counter:
    """Count the outcomes, and print the calls that are no refusals in a sentence."""
    kinds: Counter = Counter()
    for name, call in calls:
        kind, said = outcome(call)
        kinds[kind] += 1
        if show or kind not in ("UserError", "answer", "the reader's own"):
            print(f"{kind:20} {name:50} {said.splitlines()[0][:200] if said else ''}", flush=True)
    return kinds


def main() -> None:
    """Run the calls, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a word of their names")
    parser.add_argument("--all", action="store_true", help="print all of them")
    parser.add_argument("--seed", type=int, default=0, help="of what is random about calls")
    parser.add_argument("--count", type=int, help="so many calls, which the seed chooses")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    calls = [call for call in every_call(options.seed) if options.only in call[0]]
    if options.count is not None:
        rng = np.random.default_rng(options.seed)
        chosen = rng.choice(len(calls), min(options.count, len(calls)), replace=False)
        calls = [calls[place] for place in sorted(chosen)]
    kinds = count(calls, options.all)
    print(len(calls), "calls:", dict(kinds.most_common()))


if __name__ == "__main__":
    main()
