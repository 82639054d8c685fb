"""Several claims at once: the same bits as one after the other, and nothing that crashes costs the others."""

from dataclasses import replace

import numpy as np
import pytest

from steepest.catalogue import entry
from steepest.core.errors import UserError
from steepest.engine import crew
from steepest.engine.crew import Outcome, expected_seconds, run_all, stored, unanswered
from steepest.engine.run import run
from steepest.engine.store import Store
from tests.small import SOURCE, small_catalogue

NAMES = ("plain-decay", "wide-decay", "growing", "powerless")
CRASHES = SOURCE.format(says="It breaks.").replace(
    "        n = np.array([10.0",
    '        raise ArithmeticError("no such\\nnumber")\n        n = np.array([10.0',
)


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture
def files(tmp_path):
    """Claims in files, which any process finds; the second crashes, and the last needs a neighbour."""
    texts = {
        "slow_decay.py": SOURCE.format(says="Slowly.").replace("kit.param(0.5", "kit.param(0.9"),
        "broken_decay.py": CRASHES,
        "near_decay.py": SOURCE.format(says="Near.")
        .replace("import numpy as np", "import numpy as np\nfrom crew_helper import RATE")
        .replace("kit.param(0.5", "kit.param(RATE"),
        "crew_helper.py": "RATE = 0.3\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    return [entry(tmp_path / name) for name in list(texts)[:3]]


def same(result, other):
    """Whether two results agree in every bit, whenever they were obtained."""
    differs = ("seconds", "observed_at", "judged_at", "about", "command")
    one, two = ({k: v for k, v in r.to_json().items() if k not in differs} for r in (result, other))
    assert one == two
    assert set(result.arrays) == set(other.arrays)
    for name, values in result.arrays.items():
        np.testing.assert_array_equal(values, other.arrays[name])


def test_outcomes_are_in_the_order_asked_and_those_of_single_runs(store):
    landed = []
    entries = [entry(name) for name in NAMES]
    outcomes = run_all(entries, store, workers=1, done=landed.append)
    assert [outcome.name for outcome in outcomes] == list(NAMES)
    assert sorted(outcome.name for outcome in landed) == sorted(NAMES)
    for outcome in outcomes:
        same(outcome.result, run(outcome.name))


def test_a_second_call_answers_from_the_store(store, monkeypatch):
    entries = [entry(name) for name in NAMES]
    first = run_all(entries, store, workers=1)
    monkeypatch.setattr(
        crew, "drive", lambda name, requests, *_: requests and pytest.fail("it ran")
    )
    second = run_all(entries, store, workers=1)
    for before, after in zip(first, second, strict=True):
        assert after.result.to_json() == before.result.to_json()
        assert after.result.how == "stored"
        assert not after.result.arrays  # what is shown needs none


@pytest.mark.parametrize("change", [{"seed": 1}, {"preset": "full"}, {"force": True}])
def test_another_question_is_run(store, change):
    entries = [entry("plain-decay")]
    run_all(entries, store, workers=1)
    (outcome,) = run_all(entries, store, workers=1, **change)
    assert outcome.result.seed == change.get("seed", 0)
    assert outcome.result.preset == change.get("preset", "quick")
    assert stored(entry("plain-decay"), store, outcome.result.preset, outcome.result.seed)


def test_what_is_only_judged_anew_is_said(files, store):
    slow = files[0]
    run_all([slow], store, workers=1)
    text = slow.path.read_text("utf-8")
    slow.path.write_text(text.replace('"largest_rate", 1.0', '"largest_rate", 0.5'), "utf-8")
    (outcome,) = run_all([slow], store, workers=1)
    assert (outcome.result.how, outcome.result.verdict) == ("judged anew", "fails")


def test_results_of_other_code_are_no_answer(files, store):
    (slow, _, near) = files
    run_all([slow, near], store, workers=1)
    assert stored(slow, store, "quick", 0)
    slow.path.write_text(
        slow.path.read_text("utf-8").replace("kit.param(0.9", "kit.param(0.8"), "utf-8"
    )
    (near.path.parent / "crew_helper.py").write_text("RATE = 0.4\n", "utf-8")
    assert stored(slow, store, "quick", 0) is None
    assert stored(near, store, "quick", 0) is None
    outcomes = run_all([slow, near], store, workers=1)
    assert [outcome.result.params["rate"] for outcome in outcomes] == [0.8, 0.4]


def test_a_claim_that_crashes_costs_the_others_nothing(files, store):
    outcomes = run_all(files, store, workers=1)
    assert [outcome.result is None for outcome in outcomes] == [False, True, False]
    broken = outcomes[1]
    assert broken.crash == "ArithmeticError: no such"
    assert 'raise ArithmeticError("no such' in broken.trace
    assert not list((store.root / "broken-decay").glob("[0-9a-f]*"))
    again = run_all(files, store, workers=1)
    assert [outcome.result and outcome.result.how for outcome in again] == [
        "stored",
        None,
        "stored",
    ]


def test_nor_does_a_claim_whose_numbers_the_library_refuses(files, store):
    """A sentence about its own numbers is a crash of the claim, and no bad input of the user's."""
    (_, broken, _) = files
    text = broken.path.read_text("utf-8")
    refusal = text.replace("raise ArithmeticError(", "raise UserError(")
    broken.path.write_text(f"from steepest.core.errors import UserError\n{refusal}", "utf-8")
    outcomes = run_all(files, store, workers=1)
    assert [outcome.result is None for outcome in outcomes] == [False, True, False]
    assert outcomes[1].crash == "UserError: no such"


def test_a_folder_that_cannot_be_written_is_refused_first(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write to the folder"):
        run_all([entry("plain-decay")], Store(tmp_path / "file" / "results"), workers=1)


def test_the_most_expensive_claims_start_first(store, monkeypatch):
    started = []
    costs = {"wide-decay": 30.0, "plain-decay": 2.0, "growing": 20.0}  # powerless has none: 15
    monkeypatch.setattr(crew, "recorded_costs", lambda: costs)
    run_all(
        [entry(name) for name in NAMES], store, workers=1, done=lambda o: started.append(o.name)
    )
    assert started == ["wide-decay", "growing", "powerless", "plain-decay"]


def test_some_claims_may_go_before_all_others(store, monkeypatch):
    """A reader has something to look at while the expensive ones run; a name that is not asked for is no matter."""
    started = []
    monkeypatch.setattr(crew, "recorded_costs", lambda: {"wide-decay": 30.0, "plain-decay": 2.0})
    done = lambda outcome: started.append(outcome.name)
    first = ("powerless", "unrun", "plain-decay")
    run_all([entry(name) for name in NAMES], store, workers=1, first=first, done=done)
    assert started == ["powerless", "plain-decay", "wide-decay", "growing"]


def test_what_is_left_is_what_a_run_would_compute(store):
    lines = [entry(name) for name in NAMES]
    assert unanswered(lines, store, "quick", 0) == lines
    run_all(lines[:2], store, workers=1)
    assert unanswered(lines, store, "quick", 0) == lines[2:]
    assert unanswered(lines, store, "quick", 1) == lines
    assert unanswered(lines, store, "tiny", 0) == lines


def test_how_long_claims_take_is_told_by_others(monkeypatch):
    """By hand: 9 s for costs of 6 are a pace of 3/2; the three left cost 4, 18 and 15, which two workers share."""
    costs = {"plain-decay": 2.0, "powerless": 4.0, "wide-decay": 4.0, "growing": 18.0}
    monkeypatch.setattr(crew, "recorded_costs", lambda: costs)
    monkeypatch.setattr(crew, "AROUND", 1.0)
    took = lambda name, seconds: replace(run(name, preset="tiny"), seconds=seconds)
    timed = [took("plain-decay", 6.0), took("powerless", 3.0)]
    missing = [entry("wide-decay"), entry("growing"), replace(entry("growing"), name="unknown")]
    assert expected_seconds(timed, missing, 1) == pytest.approx(1.5 * 37)
    assert expected_seconds(timed, missing, 2) == pytest.approx(1.5 * 37 / 2)
    assert expected_seconds(timed, missing, 64) == pytest.approx(1.5 * 18)  # as long as the longest
    assert expected_seconds(timed, [], 2) == 0
    assert np.isnan(expected_seconds([], missing, 2))
    monkeypatch.setattr(crew, "recorded_costs", dict)
    assert np.isnan(expected_seconds(timed, missing, 2))


def test_no_source_is_read_where_nothing_is_stored(store, monkeypatch):
    """A first run starts at once."""
    monkeypatch.setattr(crew, "current", lambda *_, **__: pytest.fail("it read the sources"))
    assert stored(entry("plain-decay"), store, "quick", 0) is None


def test_a_worker_that_died_is_an_outcome(store, monkeypatch):
    def dies(function, requests, workers, done, died, begun):
        for request in requests:
            done(request, died(request, "its worker died 3 times, perhaps for want of memory"))

    monkeypatch.setattr(crew, "drive", dies)
    (outcome,) = run_all([entry("plain-decay")], store, workers=1)
    assert outcome == Outcome(
        "plain-decay", None, "its worker died 3 times, perhaps for want of memory"
    )


def test_a_result_that_cannot_be_read_back_is_an_outcome(store, monkeypatch):
    monkeypatch.setattr(Store, "save", lambda *_: None)
    (outcome,) = run_all([entry("plain-decay")], store, workers=1)
    assert outcome.crash == "its result could not be read back from the disk"


def test_a_pool_gives_the_same_bits(files, store, tmp_path):
    """Two processes, started by spawn, find the claims through their files."""
    alone = run_all(files, Store(tmp_path / "alone"), workers=1)
    landed = []
    together = run_all(files, store, workers=2, done=landed.append)
    assert [outcome.name for outcome in together] == ["slow-decay", "broken-decay", "near-decay"]
    assert len(landed) == 3
    for one, other in zip(alone, together, strict=True):
        assert one.crash == other.crash
        if one.result is not None:
            same(other.result, one.result)
            assert stored(entry(one.result.about["target"]), store, "quick", 0).how == "stored"


def test_there_is_at_least_one_process(monkeypatch):
    assert crew.processes() >= 1
    monkeypatch.setattr(crew, "ROOM", 2**60)
    assert crew.processes() == 1
