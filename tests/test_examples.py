"""The examples run, and what they show is so."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from steepest import measure
from steepest.measurement import Builder
from steepest.measurement.adapters import in_evaluation, subject
from tests.extras import need

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_regions_of_digits(tmp_path, capsys):
    """Cuts where the prediction changes only add pieces, and the picture is written."""
    main = runpy.run_path(str(EXAMPLES / "regions_of_digits.py"))["main"]
    counts = main(str(tmp_path / "regions.png"), steps=20, width=10)
    assert 10 < counts["after"] < counts["decided"]
    assert (tmp_path / "regions.png").stat().st_size > 10_000
    assert "regions at the start" in capsys.readouterr().out


@pytest.mark.parametrize("home", ["sklearn", "tinygp", "gpjax", "gpytorch"])
def test_kernels_in_their_homes_elsewhere(home, monkeypatch):
    """Posterior means are those of ``gaussian_process``, and nearly all images are told apart."""
    need(home)
    monkeypatch.syspath_prepend(EXAMPLES / "kernels")
    name = "scikit_learn" if home == "sklearn" else home
    numbers = runpy.run_path(str(EXAMPLES / "kernels" / f"in_{name}.py"))["main"]()
    assert numbers.pop("difference of the means") < 1e-6
    right = [value for what, value in numbers.items() if what.startswith("right")]
    assert right and min(right) >= 0.75
    assert all(np.isfinite(value) for value in numbers.values())


@pytest.mark.parametrize("name", ["digits_conv", "sorting_transformer", "digits_equinox"])
def test_trainings_are_built_as_claims_take_them(name):
    """Seeds and widths change the weights, training moves them, and the parts are what is measured."""
    need("torch")
    builder = Builder.of(f"{EXAMPLES / 'training' / name}.py:build")
    assert builder.knobs == ("seed", "width")
    built = builder()
    like = {"features": built.features, "check": False}
    with in_evaluation(built.model):
        start = subject(built.model, built.loss, built.data, **like)
    before = start.values()
    other = builder(seed=1, width=2.0)
    with in_evaluation(other.model):
        assert subject(other.model, other.loss, other.data, **like).size > start.size
    steps = built.steps()
    model = [next(steps) for _ in range(3)][-1]
    assert not np.array_equal(start.now(model).values(), before)
    assert built.length > 100
    with in_evaluation(built.model):
        assert np.isfinite(measure(model, built.loss, built.data, what=["risk"])["risk"].value)
