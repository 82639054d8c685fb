"""Which runs are asked for: the seeds of the version, and settings that name and version alone decide."""

import pytest

from steepest.core.errors import UserError
from steepest.engine.sweeps import plan as sweep_plan
from steepest.engine.trials import BLOCK, MOST, RunKind, TrialPlan
from tests.engine.trials.falling import write_falling
from tests.small import SOURCE

HISTORY = '    history = (kit.Version(1, "as it was"), kit.Version(2, "something"))\n'


def settings(plan):
    return [dict(run.fields) for run in plan.runs if run.kind is RunKind.SETTING]


def seeds(plan):
    return [run.seed for run in plan.runs]


def test_seeds_are_those_of_the_version(falling):
    plan = TrialPlan(falling, 3, 2)
    assert seeds(plan) == [1000, 1001, 1002, 1500, 1501]
    assert not any(run.fields for run in plan.runs[:3])


def test_no_version_has_a_seed_of_another(tmp_path):
    first = TrialPlan(str(write_falling(tmp_path)), MOST, MOST)
    second = TrialPlan(str(write_falling(tmp_path, "falling_two", version=HISTORY)), MOST, MOST)
    both = [*seeds(first), *seeds(second)]
    assert second.version == 2
    assert len(set(both)) == len(both)
    assert min(both) == BLOCK


def test_every_setting_is_in_the_scope(falling):
    plan = TrialPlan(falling, 0, 60)
    assert set(plan.scope) == {"gravity", "drag", "readings", "medium"}
    for setting in settings(plan):
        assert all(setting[name] in scope for name, scope in plan.scope.items())
    assert {type(setting["readings"]) for setting in settings(plan)} == {int}
    assert len({setting["gravity"] for setting in settings(plan)}) > 50


def test_more_settings_begin_with_the_same_ones(falling):
    assert settings(TrialPlan(falling, 0, 9))[:4] == settings(TrialPlan(falling, 5, 4, "tiny"))


def test_another_name_or_version_draws_others(tmp_path, falling):
    first_four = settings(TrialPlan(falling, 0, 4))
    named = settings(TrialPlan(str(write_falling(tmp_path, "other")), 0, 4))
    (tmp_path / "later").mkdir()
    later = settings(TrialPlan(str(write_falling(tmp_path / "later", version=HISTORY)), 0, 4))
    assert first_four != named
    assert first_four != later


def test_another_scope_of_one_field_leaves_the_others(tmp_path, falling):
    (tmp_path / "narrow").mkdir()
    narrow = 'kit.param(0.0, "what the law leaves out", scope=kit.between(0.0, 0.2))'
    other = TrialPlan(str(write_falling(tmp_path / "narrow", drag=narrow)), 0, 9)
    first_nine = [
        (setting["gravity"], setting["readings"]) for setting in settings(TrialPlan(falling, 0, 9))
    ]
    assert other.draws.refused == 0
    mine = [(setting["gravity"], setting["readings"]) for setting in settings(other)]
    assert len(set(first_nine) & set(mine)) >= 4  # all but those that were drawn again


def test_what_the_claim_refuses_is_drawn_again_and_counted(falling):
    plan = TrialPlan(falling, 0, 30)
    assert len(settings(plan)) == 30
    assert plan.draws.refused > 0
    assert plan.given_up == 0
    assert not [s for s in settings(plan) if s["medium"] == "water" and s["drag"] > 0.3]


def test_a_claim_that_refuses_everything_is_given_up(tmp_path):
    path = write_falling(tmp_path, refusal="if self.gravity != 9.8:")
    plan = TrialPlan(str(path), 1, 2)
    assert len(plan) == 1
    assert plan.given_up == 2
    assert plan.draws.refused == 200


def test_a_claim_without_a_scope_has_seeds_alone(tmp_path):
    path = tmp_path / "plain_decay.py"
    path.write_text(SOURCE.format(says="Slowly."), "utf-8")
    plan = TrialPlan(str(path), 2, 5)
    assert plan.scope == {}
    assert seeds(plan) == [1000, 1001]


def test_a_run_is_the_same_point_as_in_a_sweep_of_whole_claims(falling):
    swept = sweep_plan(falling, {"seed": "1000:1003"}, whole=True)
    assert TrialPlan(falling, 3, 0).keys == swept.keys


def test_the_command_of_a_run_names_every_drawn_field(falling):
    plan = TrialPlan(falling, 0, 1, "tiny")
    (run,) = plan.runs
    words = plan.command_of(run).split()
    assert words[:5] == ["steepest", "run", falling, "--preset", "tiny"]
    assert words[-2:] == ["--seed", "1500"]
    assert [word[2:] for word in words[5:-2:2]] == list(plan.scope)


@pytest.mark.parametrize(
    ("seeds", "settings", "sentence"),
    [
        (MOST + 1, 0, "a version of a claim has 500 seeds for its seeds, got seeds 501"),
        (0, -1, "500 seeds for its settings, got settings -1"),
        (0, 0, "there is nothing to try; ask for some seeds"),
    ],
)
def test_numbers_of_runs_that_are_none(falling, seeds, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        TrialPlan(falling, seeds, settings)


def test_settings_alone_without_a_scope(tmp_path):
    path = tmp_path / "plain_decay.py"
    path.write_text(SOURCE.format(says="Slowly."), "utf-8")
    with pytest.raises(UserError, match="plain-decay states no scope to draw settings from"):
        TrialPlan(str(path), 0, 5)


def test_a_version_without_a_block_of_seeds(tmp_path):
    path = tmp_path / "plain_decay.py"
    text = SOURCE.format(says="Slowly.").replace("    full = ", "    version = 0\n    full = ")
    path.write_text(text, "utf-8")
    with pytest.raises(UserError, match="a claim's version is a whole number from 1"):
        TrialPlan(str(path))
