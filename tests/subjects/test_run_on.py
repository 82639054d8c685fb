"""Running a claim on a reader's network: what is asked of it, what is said of the verdict, what is refused."""

import json
from dataclasses import fields

import numpy as np
import pytest

import steepest
from steepest.app.cli import main
from steepest.catalogue import catalogue, entry
from steepest.core.errors import UserError
from steepest.engine.subjects import available, run_on, version_of
from steepest.kit.subjects import ALONE, OnSubject, claim_of
from tests.subjects import models

FEW = {"seeds": 3, "examples": 6, "halvings": 9, "largest": 10.0, "smallest": 0.1}


def test_the_law_of_a_linear_model_is_that_of_its_inner_products():
    """The largest stable step of least squares is 2/λ_max of X Xᵀ/n, by NumPy alone."""
    offers = []
    result = run_on(
        entry("stable-step"),
        models.linear,
        changes=FEW | {"examples": 12},
        agree=lambda offer: offers.append(offer) or True,
    )
    expected = 2 / np.linalg.eigvalsh(models.X @ models.X.T / 12)[-1]
    np.testing.assert_allclose(result.predicted["step"], expected, rtol=1e-5)
    np.testing.assert_allclose(result.observed["step"], expected, rtol=0.02)
    assert result.reason.startswith("holds here (agrees in 1 challenged check")
    assert {rival.id: rival.rejected for rival in result.rivals} == {
        "half_the_edge": True,
        "mean_eigenvalue": True,
    }
    (offer,) = offers
    assert "on 3 networks: about" in offer.text and offer.seconds > 0
    subject = result.about["subject"]
    assert subject["weights"] == 4 and subject["seeded"] and "deep_step_over_edge" in str(subject)
    assert set(result.params) == set(version_of(entry("stable-step")).settable)
    assert result.command.startswith("steepest run stable-step --subject linear --seeds 3")


def test_one_network_is_said_to_be_one():
    result = run_on(entry("stable-step"), models.alone, changes=FEW)
    assert result.reason.startswith("holds on this network only (")
    assert {check.interval.how for check in result.checks} == {ALONE}
    assert not result.about["subject"]["seeded"]


def test_what_cannot_be_told_apart_has_no_power():
    """With one example of one output the mean eigenvalue is the largest."""
    result = run_on(entry("stable-step"), models.linear, changes=FEW | {"examples": 1})
    assert result.reason.startswith("no power here (the data do not reject 2 over the mean")


def test_a_law_that_is_broken_does_not_hold_here():
    """A network in the NTK parameterization, of which µP is claimed."""
    fields = {"parameterizations": ("mup",), "widths": (1, 2, 4), "target": 0.7, "seeds": 4}
    result = run_on(entry("lazy-or-rich"), models.tanh, changes=fields)
    assert result.reason.startswith("does not hold here (disagrees: mup: change of the")


def test_a_sharpness_that_cannot_rise_is_out_of_range():
    """That of least squares is the same everywhere."""
    result = run_on(
        entry("edge-of-stability"), models.linear, changes={"steps": 50, "seeds": 3, "products": 4}
    )
    assert "assumed but not true here: largest sharpness that small steps reach" in result.reason


def test_what_the_statement_assumes_can_be_out_of_range():
    result = run_on(entry("stable-step"), models.linear, changes=FEW | {"residual": 0.5})
    assert result.reason.startswith("out of range here (assumed but not true here: residual")
    assert not result.checks and not result.panels


def test_nothing_is_run_when_the_cost_is_refused():
    assert run_on(entry("stable-step"), models.linear, agree=lambda offer: False) is None


@pytest.mark.parametrize(
    ("claim", "function", "changes", "sentence"),
    [
        ("catapult", models.linear, {}, "catapult has no version for your network.*stable-step"),
        ("stable-step", models.linear, {"widths": (64,)}, "--widths of stable-step has no meaning"),
        ("stable-step", models.linear, {"sedes": 3}, "sed"),
        ("lazy-or-rich", models.linear, {}, "needs a function with width=…, a factor of its"),
        ("critical-tuning", models.alone, {}, "needs a function with seed=…"),
        ("critical-tuning", models.linear, {}, "not recognized as one"),
        ("stable-step", lambda seed=0: models.linear(0), {}, "same weights for two seeds"),
        ("lazy-or-rich", lambda seed=0, width=1: models.tanh(seed), {}, "let width multiply"),
        ("stable-step", "nothing.py:build", {}, "there is no file nothing.py"),
        ("stable-step", lambda: (1, 2), {}, "must return"),
    ],
)
def test_wrong_subjects_are_refused_in_one_sentence(claim, function, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        run_on(entry(claim), function, changes=changes)


@pytest.mark.parametrize("name", available())
def test_every_version_judges_with_the_checks_of_its_claim(name):
    """It sets fields that the claim has, leaves out what it names, and has a sentence of its own."""
    kind = version_of(catalogue()[name])
    claim = claim_of(kind)
    assert issubclass(kind, OnSubject)
    assert issubclass(kind, claim)
    own, of_claim = ({field.name for field in fields(one)} for one in (kind, claim))
    new = own - of_claim
    assert set(kind.settable) <= own
    assert new <= {*kind.settable}, "a new field that nobody can set"
    assert kind.says.endswith(".") and "our " in kind.says
    kind()


def test_the_command_line_and_python(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text("from tests.subjects.models import linear as build\n", "utf-8")
    words = ["run", "stable-step", "--subject", "net.py:build", "--seeds", "3", "--halvings", "9"]
    assert main([*words, "--page", "page.html"]) == 0
    said = capsys.readouterr()
    assert (
        "takes about" in said.err
        and "holds here" in said.out
        and "left out: deep_step_over_edge" in said.out
    )
    page = (tmp_path / "page.html").read_text("utf-8")
    assert (
        "holds here" in page
        and "stable-step on net.py:build" in page
        and "http:" not in page
        and "https:" not in page
    )
    assert main([*words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["about"]["subject"]["networks"] == 3 and record["verdict"] == "holds"
    for wrong, sentence in (
        (["run", "--subject", "net.py:build"], "--subject takes exactly one claim, got 0"),
        (["run", "catapult", "--yes"], "--page and --yes of run go with --subject"),
        ([*words, "--preset", "full"], "--preset has no meaning on your own network"),
        ([*words, "--seeds", "3"], "given twice"),
    ):
        assert main(wrong) == 2
        assert sentence in capsys.readouterr().err
    shown = steepest.run("stable-step", subject=models.linear, seeds=3, halvings=9)
    assert shown.verdict.value == "holds"
    with pytest.raises(UserError, match="without a preset"):
        steepest.run("stable-step", subject=models.linear, preset="full")
