"""The examples run, and what they show is so."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from steepest import measure
from steepest.measurement import Builder, FindingId
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
    """Posterior means and likelihoods are ours, nearly all images are told apart, and coefficients are learned."""
    need(home)
    monkeypatch.syspath_prepend(EXAMPLES / "kernels")
    name = "scikit_learn" if home == "sklearn" else home
    numbers = runpy.run_path(str(EXAMPLES / "kernels" / f"in_{name}.py"))["main"]()
    assert numbers.pop("difference of the means") < 1e-6
    right = [value for what, value in numbers.items() if what.startswith("right")]
    assert right and min(right) >= 0.75
    assert numbers["log likelihood"] == pytest.approx(numbers["log likelihood, ours"], abs=1e-4)
    assert numbers["log likelihood"] > numbers["log likelihood at the start"] + 5
    assert numbers.pop("error of the gradient") < 1e-4
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


MEASURED = {
    "vae_torch:build": [("✓", FindingId.STEP_STABLE), ("✓", FindingId.HELD_OUT_RISK)],
    "regression_torch:build": [("!", FindingId.OVERFITS)],
    "deep_torch:build": [("!", FindingId.NOTHING_LEARNED), ("!", FindingId.SIGNALS)],
    "deep_torch:cured": [("✓", FindingId.LEARNED), ("✓", FindingId.STEP_STABLE)],
    "bfloat16_torch:build": [("!", FindingId.ROUNDED_AWAY)],
    "bfloat16_torch:autocast": [("✓", FindingId.LEARNED), ("✓", FindingId.STEP_STABLE)],
    "groups_torch:build": [("?", FindingId.NOT_HELD)],
    "groups_torch:mended": [("✓", FindingId.LEARNED), ("✓", FindingId.STEP_STABLE)],
    "pair_jax:build": [("✓", FindingId.LEARNED), ("✓", FindingId.STEP_STABLE)],
}
"""What must be said of examples of ``measure``, as their files say."""


@pytest.mark.parametrize("name", MEASURED)
def test_networks_are_told_what_they_have(name):
    """Nothing is to be acted on where nothing of the kind must be said; torch's random numbers are left alone."""
    file, function = name.split(":")
    need("torch" if file.endswith("_torch") else "optax")
    torch = need("torch")
    state = torch.get_rng_state()
    build = runpy.run_path(str(EXAMPLES / "measure" / f"{file}.py"))[function]
    model, loss, data, optimizer, held_out = build()
    what = ["risk", "sharpness", "margins", "signal-propagation"]
    if file == "bfloat16_torch":
        what.append("updates")
    noise = "fixed" if file == "vae_torch" else "refused"
    report = measure(
        model, loss, data, optimizer=optimizer, held_out=held_out, noise=noise, what=what
    )
    drawn = {(finding.sign, finding.id) for finding in report.findings}
    expected = MEASURED[name]
    assert drawn.issuperset(expected)
    alarms = {line for line in drawn if line[0] == "!"}
    assert alarms == {line for line in expected if line[0] == "!"}
    assert torch.equal(torch.get_rng_state(), state)
