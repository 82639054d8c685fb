"""Counts, intervals, the map of the scope; the same whoever computes it, and after whatever stops it."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from steepest.core.scope import between, choices
from steepest.engine.sweeps import work
from steepest.engine.trials import RunKind, Tally, TrialPlan, gather
from steepest.engine.trials._regions import where_it_holds
from steepest.statistics import wilson
from tests.engine.trials.falling import write_falling


def planned(falling):
    return TrialPlan(falling, 2, 14)


def tried(plan, out, **options):
    left = work(plan, out, **options)
    if left.missing:
        left.run()
    return gather(plan, out)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The claim's file, and its trials in this process."""
    folder = tmp_path_factory.mktemp("whole")
    falling = str(write_falling(folder))
    return falling, tried(planned(falling), folder / "results")


def without_times(trials):
    return [record and {**record, "seconds": 0} for record in trials.records]


def test_runs_come_to_what_their_settings_say(whole):
    _, trials = whole
    for row in trials.rows:
        gravity = row.run.fields.get("gravity", 9.8)
        drag = row.run.fields.get("drag", 0.0)
        if gravity < 2:
            assert row.verdict == "out-of-range"
        elif gravity > 12:
            assert row.verdict == "crashed"
            assert row.reason == "RuntimeError: the solver gave up"
        elif drag > 0.35:
            assert row.verdict == "fails"
        elif drag < 0.25:
            assert row.verdict == "holds"
    assert {row.verdict for row in trials.rows} >= {"holds", "fails", "out-of-range", "crashed"}


def test_counts_and_intervals(whole):
    _, trials = whole
    verdicts = [row.verdict for row in trials.rows if row.run.kind is RunKind.SETTING]
    settings = trials.settings
    assert trials.seeds == Tally(holds=2)
    assert settings.runs == 14
    assert settings.crashed == verdicts.count("crashed")
    assert settings.decided == verdicts.count("holds") + verdicts.count("fails")
    assert settings.interval == tuple(float(end) for end in wilson(settings.holds, 14))
    assert settings.hold_rate().runs == 14
    assert settings.hold_rate().undecided == settings.undecided + settings.crashed


def test_what_does_not_hold_is_listed_with_its_command(whole):
    falling, trials = whole
    rows = trials.exceptions
    assert len(rows) == 14 - trials.settings.holds
    assert [row.verdict for row in rows][: trials.settings.fails] == [
        "fails"
    ] * trials.settings.fails
    assert all(row.command.startswith(f"steepest run {falling} --gravity ") for row in rows)


def test_nothing_is_run_twice_and_the_answer_is_the_same(whole, tmp_path):
    falling, trials = whole
    again = tried(planned(falling), tmp_path)
    assert without_times(again) == without_times(trials)
    assert not work(planned(falling), tmp_path).missing
    assert json.loads(json.dumps(again.to_json())) == again.to_json() == trials.to_json()


def test_shards_give_the_union(whole, tmp_path):
    falling, trials = whole
    plan = planned(falling)
    parts = [tried(plan, tmp_path / str(i), shard=(i, 3)) for i in (1, 2, 3)]
    computed = [{i for i, record in enumerate(part.records) if record} for part in parts]
    assert sum(map(len, computed)) == len(plan)
    assert set.union(*computed) == set(range(len(plan)))
    assert parts[0].missing == len(plan) - len(computed[0])
    for i in (1, 2, 3):
        shutil.copytree(tmp_path / str(i), tmp_path / "merged", dirs_exist_ok=True)
    assert without_times(gather(plan, tmp_path / "merged")) == without_times(trials)


def test_trials_that_break_off_go_on(whole, tmp_path):
    falling, trials = whole
    plan = planned(falling)

    def stop(done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work(plan, tmp_path).run(watch=stop)
    assert gather(plan, tmp_path).missing == len(plan) - 3
    assert without_times(tried(plan, tmp_path)) == without_times(trials)


def test_trials_that_are_killed_go_on(tmp_path):
    slow = "        import time\n\n        time.sleep(0.2)\n        if self.gravity > 12:\n"
    falling = str(write_falling(tmp_path, observe=slow))
    plan = TrialPlan(falling, 12, 0)
    words = [sys.executable, "-m", "steepest", "trials", falling, "--seeds", "12", "--settings=0"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    process = subprocess.Popen(
        [*words, "--on", "here", "--results", str(tmp_path / "results")],
        stderr=subprocess.PIPE,
        env=environment,
    )
    points = tmp_path / "results" / "falling" / "points"
    patience = time.monotonic() + 120
    while not (points.is_dir() and len(list(points.glob("[0-9a-f]*"))) >= 2):
        assert time.monotonic() < patience
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    left = work(plan, tmp_path / "results")
    assert 0 < len(left.missing) <= 10
    assert tried(plan, tmp_path / "results").seeds == Tally(holds=12)


def test_each_run_that_crashed_can_be_tried_again(whole, tmp_path):
    falling, trials = whole
    plan = planned(falling)
    tried(plan, tmp_path)
    assert len(work(plan, tmp_path, retry=True).missing) == trials.settings.crashed


def test_where_it_holds():
    scope = {"x": between(1.0, 16.0), "n": between(3, 4), "word": choices("a", (1, 2))}
    settings = [
        {"x": 1.0, "n": 3, "word": "a"},
        {"x": 3.9, "n": 4, "word": "a"},
        {"x": 4.1, "n": 4, "word": (1, 2)},
        {"x": 16.0, "n": 4, "word": (1, 2)},
    ]
    x, n, word = where_it_holds(scope, settings, ["holds", "holds", "fails", "crashed"])
    assert x.logarithmic
    assert [str(region) for region in x.regions] == ["1 to 4", "4 to 16"]
    assert [region.tally.holds for region in x.regions] == [2, 0]
    assert [str(region) for region in n.regions] == ["3", "4"]
    assert [(r.tally.holds, r.tally.runs) for r in n.regions] == [(1, 1), (1, 3)]
    assert [str(region) for region in word.regions] == ["a", "1 2"]
    assert word.panel is None
    assert x.panel.xscale == "log"


def test_large_whole_numbers_are_spelled_out():
    (steps,) = where_it_holds({"n": between(900, 1500)}, [{"n": 1300}], ["holds"])
    assert [str(region) for region in steps.regions] == ["900 to 1199", "1200 to 1500"]


def test_a_range_is_cut_into_thirds_where_there_are_settings_enough():
    settings = [{"n": n} for n in range(12)]
    (n,) = where_it_holds({"n": between(0, 11)}, settings, ["holds"] * 12)
    assert [str(region) for region in n.regions] == ["0 to 3", "4 to 7", "8 to 11"]
    assert [region.tally.runs for region in n.regions] == [4, 4, 4]
