"""Edges of momentum, Nesterov's rule and Adam on a reader's network: step sizes, lengths, what is out of range."""

import numpy as np
import pytest

from steepest.claims._descents_of_subjects import Pilot
from steepest.claims.training.adaptive_edge import on_subject
from steepest.claims.training.adaptive_edge.on_subject import AdaptiveEdgeOnSubject
from steepest.core.words import Verdict
from steepest.kit import Observation
from steepest.kit.subjects import Networks
from steepest.optimizers import Adam
from tests.claims.on_subject import asked, broken, classifier, rejections
from tests.extras import need
from tests.subjects import models

FEW = {"betas": (0.1, 0.5), "adam_betas": (0.0, 0.9), "products": 6, "seeds": 3}


def sharpening():
    """One network whose targets are four times as large, for which its sharpness has to rise."""
    pair, loss, (x, y) = models.standard(0, width=0.2)
    return pair, loss, (x, 4 * y)


def pilot(*curvatures, end=np.inf):
    return Pilot(np.arange(len(curvatures), dtype=float), np.array(curvatures), end)


def facts(flow, adam, start=1.0):
    return Networks([], [], {"start": np.array([start]), "flow": flow, "adam": adam})


def test_edges_lie_between_the_start_and_what_small_steps_reach():
    claim = AdaptiveEdgeOnSubject(steps=100_000)
    seen = facts(pilot(1.0, 2.0, 4.0, 8.0, 16.0), pilot(900.0, 10.0, 1000.0))
    assert claim.read(seen) == {"edge": 4.0, "adam_edge": 100.0}
    assert AdaptiveEdgeOnSubject(edge=7.0).read(seen)["edge"] == 7
    assert claim.read(facts(*[pilot(1.0, 2.0, 16.0)] * 2, start=8.0))["edge"] == 12


def test_few_steps_take_an_edge_that_is_met_early():
    flow = pilot(1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
    edge = AdaptiveEdgeOnSubject(steps=8).read(facts(flow, flow))["edge"]
    assert 1.5 <= edge < 4


def test_every_rule_has_its_edge_at_the_curvature_that_was_chosen():
    claim = AdaptiveEdgeOnSubject(edge=5.0, adam_edge=300.0)
    for place, descent in enumerate(claim.descents):
        edge = 5.0 if place < claim.of_momentum else 300.0
        assert descent.turn / descent.lr == pytest.approx(edge, rel=0.005)
    last = claim.descents[-1]
    assert last.name == "Adam, β₁ = 0.9"
    assert last.turn == pytest.approx(Adam(0.9).turn)


def test_small_steps_that_do_not_pass_the_edge_say_how_far_they_rise():
    starts, passes = on_subject.rises_beyond("sharpness", pilot(4.0, 2.0, 3.0), 3.5, "--edge")
    assert starts.holds
    assert not passes.holds
    assert "from 2 to 3: choose --edge between" in passes.note


def test_descents_that_have_few_steps_until_the_examples_are_fitted_are_out_of_range():
    claim = AdaptiveEdgeOnSubject(edge=2.0, adam_edge=2.0)
    (fewest,) = claim.long_enough(
        facts(pilot(1.0, 9.0, end=200.0), pilot(1.0, 9.0, end=200.0)).facts
    )
    assert fewest.value == 10  # of Adam with β₁ = 0.9, whose η is 19
    assert "Adam, β₁ = 0.9" in fewest.note
    assert claim.long_enough(facts(pilot(1.0), pilot(1.0)).facts) == []


def test_descents_that_end_early_are_told_from_those_whose_examples_are_fitted():
    claim = AdaptiveEdgeOnSubject(steps=100)
    rising = np.tile(np.linspace(0.1, 0.8, 21), (1, 2, 1))
    ended, fitted = claim.had_time_to_come(rising, np.array([[100, 60]]))
    assert not ended.holds
    assert "--steps" in ended.note
    assert not fitted.holds
    assert "--n" in fitted.note
    (alone,) = claim.had_time_to_come(rising, np.array([[100, 100]]))
    assert alone.name == ended.name


def test_a_descent_that_diverged_is_out_of_range():
    claim = AdaptiveEdgeOnSubject(edge=1.0, adam_edge=1.0)
    course = np.ones((2, 7, 21))
    course[0, 1, 5:] = np.nan
    observed = Observation(
        course=("seed descent mark", course),
        risk=("seed descent mark", np.ones_like(course)),
        residual=("seed descent mark", np.zeros_like(course)),
        step=("seed descent mark", np.tile(np.arange(21.0), (2, 7, 1))),
        cross_entropy=0.0,
    )
    diverged, *_ = claim.run_conditions(observed)
    assert diverged.value == pytest.approx(1 / 14)
    assert "larger --edge" in diverged.note


def test_all_rules_descend_a_small_network():
    result = asked("adaptive-edge", sharpening, steps=100, **FEW)
    assert result.observed["momentum"].shape == (2, 2, 2, 6)  # one network, written twice
    assert result.observed["adam"].shape == (2, 2, 6)
    assert set(rejections(result.controls)) == {"other_coordinates", "exchanged"}
    assert result.params["adam_edge"] > 0
    assert len(result.panels) == 3


def test_a_sharpness_that_cannot_rise_is_out_of_range():
    result = asked("adaptive-edge", models.linear, steps=40, products=4, seeds=3)
    assert result.verdict == Verdict.OUT_OF_RANGE
    assert any("largest sharpness that small steps reach" in line for line in broken(result))


def test_a_classifier_of_torch_is_left_as_it_was():
    torch = need("torch")
    made = classifier(hidden=(6,), train=False)(0)
    before = [weight.detach().clone() for weight in made["model"].parameters()]
    result = asked("adaptive-edge", lambda: made, n=20, steps=30, **FEW)
    assert "examples are fitted" in " ".join([*broken(result), *map(str, result.assumptions)])
    after = made["model"].parameters()
    assert all(torch.equal(first, second) for first, second in zip(before, after, strict=True))
