"""A batch computes what its points compute alone; what fails is said and stops nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.core.experiment import seeded
from steepest.engine.fingerprint import everything
from steepest.engine.sweeps import _batch, _cost, compute, estimate, gather, plan, work
from steepest.engine.sweeps._batch import seeded_keys

pytestmark = pytest.mark.usefixtures("toy")


@pytest.fixture(autouse=True)
def forget_programs():
    """Programs are kept by the values of their fields; tests change what the toy's methods do."""
    _batch._program.cache_clear()
    yield
    _batch._program.cache_clear()


def every(found):
    """The records of all points of a plan, by number."""
    records = {}
    for task in found.tasks:
        records |= dict(zip(task.tolist(), compute(found.request(task)), strict=True))
    return [records[i] for i in range(len(found))]


def numbers(record):
    return {check["id"]: (check["measured"], check["predicted"]) for check in record["checks"]}


def test_a_batch_is_its_points_alone():
    over = {"scale": "log:1:8:5", "width": "2,3", "parts": "1,2", "seed": "0:2"}
    together = every(plan("toy", over))
    alone = every(plan("toy", over, batch=1))
    assert len(together) == 40
    for a, b in zip(together, alone, strict=True):
        assert (a["verdict"], a["fields"], a["seed"]) == (b["verdict"], b["fields"], b["seed"])
        np.testing.assert_allclose(numbers(a)["level"], numbers(b)["level"], rtol=1e-12)
    measured = {numbers(record)["level"][0] for record in together}
    assert len(measured) == 40  # every point has its own numbers


def test_a_point_is_given_the_keys_of_a_run():
    with jax.enable_x64(True):
        for_setting, for_observation = seeded_keys([3, 4])
        for i, seed in enumerate((3, 4)):
            for ours, theirs in zip(
                (for_setting[i], for_observation[i]), seeded(seed), strict=True
            ):
                assert jax.random.key_data(ours).tolist() == jax.random.key_data(theirs).tolist()


def test_the_numbers_do_not_depend_on_neighbours_that_are_there_already():
    found = plan("toy", {"scale": "log:1:8:6"}, batch=4)
    assert every(found)[0]["checks"] == every(found)[0]["checks"]
    assert {len(task) for task in found.tasks} == {3}


def test_a_point_that_crashes_is_recorded_and_stops_nothing():
    records = every(plan("toy", {"scale": "12,13,14"}))
    assert [record["verdict"] for record in records] == ["holds", "crashed", "holds"]
    assert records[1]["reason"] == "RuntimeError: thirteen"
    assert records[1]["checks"] == []
    whole = every(plan("toy", {"scale": "12,13,14"}, whole=True))
    # the whole claim has no rival, so that nothing could have failed its check
    assert [record["verdict"] for record in whole] == ["inconclusive", "crashed", "inconclusive"]


def test_a_batch_that_cannot_be_computed_together_is_tried_point_by_point(monkeypatch):
    honest = _batch.Lanes._together

    def together(self, piece):
        if any(self.experiments[i].scale == 2 for i in piece):
            raise MemoryError("too large")
        return honest(self, piece)

    monkeypatch.setattr(_batch.Lanes, "_together", together)
    records = every(plan("toy", {"scale": "1,2,4"}))
    assert [record["verdict"] for record in records] == ["holds", "crashed", "holds"]
    assert records[1]["reason"] == "MemoryError: too large"


def test_an_experiment_that_cannot_be_traced_is_recorded_too(monkeypatch, toy, tmp_path):
    def observe(self, setting, key):
        raise ValueError("no such thing")

    monkeypatch.setattr(toy.point, "observe", observe)
    planned = plan("toy", {"scale": "1,2,4"})
    left = work(planned, tmp_path)
    assert estimate(left).points == 3
    left.run()
    assert gather(planned, tmp_path).crashes == {"ValueError: no such thing": 3}


def test_a_first_point_that_crashes_does_not_stop_the_sweep(tmp_path):
    planned = plan("toy", {"scale": "13,14"})
    left = work(planned, tmp_path)
    estimate(left)
    left.run()
    assert gather(planned, tmp_path).counts == {"crashed": 1, "holds": 1}


def test_a_judge_that_breaks_off_is_recorded_at_its_points(monkeypatch, toy):
    def judge(self, predicted, observed):
        if self.scale == 2:
            raise RuntimeError("no judgement")
        return honest(self, predicted, observed)

    honest = toy.point.judge
    monkeypatch.setattr(toy.point, "judge", judge)
    records = every(plan("toy", {"scale": "1,2,4"}))
    assert [record["verdict"] for record in records] == ["holds", "crashed", "holds"]
    assert records[1]["reason"] == "RuntimeError: no judgement"


def test_run_conditions_put_a_point_out_of_range():
    records = every(plan("toy", {"shift": "0,200"}))
    assert [record["verdict"] for record in records] == ["holds", "out-of-range"]
    assert records[1]["hypotheses"][0] == {
        "name": "shift",
        "value": 200.0,
        "threshold": 100.0,
        "relation": "<",
        "holds": False,
        "note": "",
        "high": None,
    }


def test_a_worker_with_another_version_says_so():
    found = plan("toy", {"scale": "1,2"})
    request = found.request(found.tasks[0])
    compute(request | {"from": everything()})
    with pytest.raises(
        UserError,
        match=r"a worker runs steepest .* and the sweep was started with steepest 0\.0\.9",
    ):
        compute(request | {"from": "steepest 0.0.9 (00000000)"})


def test_memory_halves_the_lanes_and_changes_no_verdict(monkeypatch):
    over = {"scale": "log:1:8:16"}
    usual = every(plan("toy", over))
    lanes = []
    honest = _batch.Lanes._together

    def together(self, piece):
        lanes.append(len(piece))
        return honest(self, piece)

    monkeypatch.setattr(_batch.Lanes, "_together", together)
    monkeypatch.setattr(_cost, "MEMORY", 1000)
    _batch._program.cache_clear()
    cut = every(plan("toy", over))
    assert 1 < len(lanes) <= 16
    assert len(set(lanes)) == 1  # one compiled program, whatever is left for the last piece
    for a, b in zip(usual, cut, strict=True):
        np.testing.assert_allclose(numbers(a)["level"], numbers(b)["level"], rtol=1e-12)


def test_cost_counts_bytes_and_work():
    from tests.engine.sweeps.toy import Toy, ToyPoint

    class Product(ToyPoint):
        def observe(self, setting, key):
            square = jnp.ones((100, 100)) * self.scale
            body = lambda carry, _: (carry @ square, None)
            return {"level": jax.lax.scan(body, square, None, length=7)[0][0]}

    with jax.enable_x64(True):
        found = _cost.cost(Product.of(Toy()), ("scale",), None, jax.random.key(0))
    assert (
        3 * 8e4 <= found.bytes <= 5 * 8e4
    )  # the product's operands and result, 100 × 100 float64 each
    assert 7e6 <= found.work <= 7.2e6  # 7 products of 100³ multiplications


def test_lanes_are_bounded_by_memory():
    assert _cost.lanes(1, 50) == 50
    assert [_cost.lanes(_cost.MEMORY // 10, most) for most in (8, 16, 50)] == [8, 8, 7]
    assert _cost.lanes(10 * _cost.MEMORY, 64) == 1


def test_a_claim_without_a_point_of_its_own_is_its_own_experiment(tmp_path):
    """A claim in a file with ``batched`` fields is mapped as it is, in one compiled program."""
    from steepest.app.authoring import write_template

    path = write_template(str(tmp_path / "my_claim.py"))
    planned = plan(path, {"lr": "0.1,0.5,1.5"})
    assert planned.experiment is planned.kind
    assert len(planned.tasks) == 1
    records = every(planned)
    assert [record["verdict"] for record in records] == ["holds"] * 3
    assert {check["id"] for record in records for check in record["checks"]} == {"ratio"}
    alone = every(plan(path, {"lr": "0.1,0.5,1.5"}, whole=True))
    for together, apart in zip(records, alone, strict=True):
        assert (together["verdict"], together["fields"]) == (apart["verdict"], apart["fields"])
        for record in (together, apart):  # rounding decides which step is the worst
            measured, predicted = numbers(record)["ratio"]
            assert measured == pytest.approx(predicted, abs=1e-12)
