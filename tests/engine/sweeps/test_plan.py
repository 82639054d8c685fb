"""Plans: which points, what they are called, which are computed together."""

import json

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.engine.sweeps import Plan, plan

pytestmark = pytest.mark.usefixtures("toy")


def test_points_that_differ_in_batched_fields_and_seeds_share_a_program():
    found = plan("toy", {"scale": "log:1:8:4", "width": "2,3,4", "seed": "0:2", "parts": "1,2"})
    assert len(found) == 48
    assert len(set(found.groups)) == 3  # one a width
    for task in found.tasks:
        assert len({found.at(i)[0]["width"] for i in task}) == 1
    assert sorted(int(i) for task in found.tasks for i in task) == list(range(48))


@pytest.mark.parametrize("batch", [1, 3, 16, 64])
def test_tasks_are_nearly_equal_and_never_larger_than_the_batch(batch):
    found = plan("toy", {"scale": "log:1:8:17", "width": "2,3"}, batch=batch)
    sizes = [len(task) for task in found.tasks]
    assert max(sizes) <= batch
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == 34
    assert {found.request(task)["size"] for task in found.tasks} == {max(sizes)}


def test_a_whole_claim_is_a_task_a_point():
    found = plan("toy", {"scale": "1,2", "seed": "0:2"}, whole=True)
    assert [len(task) for task in found.tasks] == [1, 1, 1, 1]
    assert found.experiment is None


def test_names_tell_points_apart_and_overlapping_sweeps_share_them():
    small = plan("toy", {"scale": "1,2"})
    large = plan("toy", {"scale": "1,2,3"})
    assert len(set(large.keys)) == 3
    assert small.keys == large.keys[:2]
    others = [
        plan("toy", {"scale": "1,2"}, **more).keys
        for more in ({"seed": 1}, {"preset": "full"}, {"whole": True})
    ]
    assert len({small.keys[0], *(keys[0] for keys in others)}) == 4
    assert plan("toy", {"scale": "1,2"}, changes={"shift": 1.0}).keys[0] != small.keys[0]
    assert plan("toy", {"seed": "0:2"}).keys[1] == plan("toy", {"scale": "1"}, seed=1).keys[0]


def test_the_points_base_is_for_quick_sweeps_and_gives_way():
    assert plan("toy", {"scale": "1,2"}).fixed == {"seeds": 5}
    assert plan("toy", {"scale": "1,2"}, preset="full").fixed == {}
    assert plan("toy", {"scale": "1,2"}, changes={"seeds": 7}).fixed == {"seeds": 7}
    assert plan("toy", {"seeds": "3,4"}).fixed == {}


def test_tuples_get_one_element():
    assert plan("toy", {"parts": "1,2"}).at(1) == ({"parts": (2.0,)}, 0)


def test_without_words_a_claim_has_its_own_diagram():
    assert plan("toy").axes == plan("toy", {"scale": "log:1:8:4", "width": "2,3"}).axes


def test_a_plan_is_the_same_after_the_disk():
    for more in ({}, {"changes": {"parts": (1.0, 3.0)}}):
        found = plan(
            "toy", {"scale": "log:1:8", "shift": "linear:0:1", "seed": "0:2"}, sobol=4, **more
        )
        again = Plan.from_json(json.loads(json.dumps(found.to_json())))
        assert again.keys == found.keys
        assert again.key == found.key
        assert again.command == found.command
        np.testing.assert_array_equal(again.rows, found.rows)


def test_the_command_gives_the_same_plan():
    found = plan(
        "toy", {"scale": "log:1:8", "seed": [0, 3]}, sobol=4, changes={"shift": 2.0}, batch=8
    )
    assert (
        found.command
        == "steepest sweep toy --over scale=log:1:8 --over seed=0,3 --sobol 4 --batch 8 --shift 2.0"
    )


@pytest.mark.parametrize(
    ("over", "options", "sentence"),
    [
        ({"scale": "linear:-1:1:3"}, {}, "scale must be above 0, got -1"),
        ({"width": "0,1"}, {}, "width must be at least 1, got 0"),
        (
            {"scale": "1,2"},
            {"changes": {"scale": 3.0}},
            "scale is swept and set to one value at once",
        ),
        ({"seed": "0:2"}, {"seed": 3}, "the seed is swept and set"),
        ({"scale": "1,2"}, {"changes": {"widht": 3}}, "did you mean 'width'"),
        ({"scale": "1,2"}, {"preset": "slow"}, "quick, full or tiny"),
        ({"flag": "true,false"}, {}, "flag cannot be swept: a point of toy's diagram does not"),
        ({"scale": "1,2"}, {"batch": 2**21}, "a batch holds 1 to 1048576 points"),
        ({"scale": "1,2"}, {"seed": -1}, "a seed is a whole number from 0 to 2147483647, got -1"),
        ({"scale": "1,2"}, {"batch": 0}, "a batch holds 1 to 1048576 points, got 0; try 64"),
    ],
)
def test_bad_input_gets_one_sentence(over, options, sentence):
    with pytest.raises(UserError, match=sentence):
        plan("toy", over, **options)


def test_a_whole_claim_may_sweep_any_of_its_fields():
    assert len(plan("toy", {"flag": "true,false", "word": "a,b"}, whole=True)) == 4


def test_points_of_other_code_have_other_names(monkeypatch):
    usual = plan("toy", {"scale": "1,2"})
    same = plan("toy", {"scale": "1,2"})
    assert usual.keys == same.keys
    assert not usual.stale
    monkeypatch.setattr("steepest.engine.sweeps._pieces.version", lambda package: "0.0")
    other = plan("toy", {"scale": "1,2"})
    assert set(other.keys).isdisjoint(usual.keys)
    assert other.key == usual.key  # the same question, asked of other code
    again = Plan.from_json(json.loads(json.dumps(usual.to_json())))
    assert again.keys == usual.keys
    assert again.stale
