"""What the terminal says of a check that is undecided."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray

from steepest import kit
from steepest.app.authoring import check_claim
from steepest.app.details import more_repetitions
from steepest.core.words import Verdict
from steepest.engine.run import execute, ready
from steepest.kit.points import bound, equal

DECAY = Path(__file__).parent.parent / "kit" / "decay.py"
RESULT = execute(ready(DECAY))
SPREAD = np.linspace(-1, 1, 8)
"""Student's interval of its mean is 0 ± 0.585."""


@pytest.mark.parametrize(
    ("mean", "words"),
    [
        (10.0, []),  # holds
        (10.6, ["four times the repetitions would decide it"]),  # for it
        (11.4, ["four times the repetitions would decide it"]),  # against it
        (10.85, ["about 16 times the repetitions would decide it"]),
        (10.99, ["hardly decide it"]),
        (12.0, []),  # fails
    ],
)
def test_how_many_repetitions_would_decide_it(mean, words):
    lines = list(
        more_repetitions(
            replace(RESULT, checks=(equal("x", 10.0, mean + SPREAD, 1.0, absolute=True),))
        )
    )
    assert len(lines) == len(words)
    assert all(word in line for word, line in zip(words, lines, strict=True))


def test_every_point_of_a_law_must_be_decided():
    law = xarray.DataArray(np.full(3, 10.0), dims="width", coords={"width": [1, 2, 3]})

    def lines(*means):
        seen = xarray.DataArray(np.array(means) + 0.5 * SPREAD[:, None], dims=("seed", "width"))
        seen = seen.assign_coords(width=[1, 2, 3])
        check = kit.follows("x", law, seen, 1.0, absolute=True)
        assert check.verdict is Verdict.INCONCLUSIVE
        return list(more_repetitions(replace(RESULT, checks=(check,))))

    assert "would decide it" in lines(10.0, 10.72, 10.0)[0]
    assert "hardly decide it" in lines(10.0, 10.72, 10.99)[0]


def test_a_share_shrinks_too():
    law = xarray.DataArray(0.5)
    happened = xarray.DataArray(np.arange(40) % 2, dims="seed")
    check = kit.share("x", law, happened, 0.1)
    assert check.verdict is Verdict.INCONCLUSIVE
    (line,) = more_repetitions(replace(RESULT, checks=(check,)))
    assert (
        line
        == "undecided: x: four times the repetitions would decide it, if its mean stays where it is"
    )


def test_nothing_is_said_of_what_repetitions_do_not_shrink():
    check = bound("x", 1 + 0.1 * SPREAD, at_most=1.05, aggregate="all")
    assert check.verdict is Verdict.INCONCLUSIVE
    assert list(more_repetitions(replace(RESULT, checks=(check,)))) == []


def test_check_says_it_below_what_is_missing(tmp_path, capsys):
    text = DECAY.read_text("utf-8").replace("kit.param(0.02", "kit.param(0.2")
    text = text.replace("between(0.01, 0.04)", "between(0.01, 0.4)")
    (tmp_path / "loud_decay.py").write_text(text, "utf-8")
    check_claim(str(tmp_path / "loud_decay.py"))
    verdict, *lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("?")]
    assert verdict.startswith("? verdict of the quick preset: inconclusive — ")
    assert lines and all("repetitions" in line for line in lines)
