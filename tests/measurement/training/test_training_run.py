"""A monitored training read from its log: findings that are true of it, columns, and logs that are no logs."""

import json

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Monitor, read_log, watch
from steepest.measurement._report import FindingId
from tests.measurement.test_measure import linear, regression, squared

GUESS = 2.3


def entry(value, compared=None, theory="", interval=None, over=None):
    return {
        "value": value,
        "interval": interval,
        "source_of_error": "residual",
        "over_examples": over,
        "compared": compared,
        "theory": theory,
    }


def one(step, risk=None, sharpness=None, lr=0.1, **more):
    quantities = {}
    if risk is not None:
        quantities["risk"] = entry(risk, GUESS, f"{GUESS} for a constant guess")
    if sharpness is not None:
        quantities["sharpness"] = entry(sharpness, 2 / lr, "2/η", [sharpness, sharpness])
    return {"step": step, "seconds": 0.1, "quantities": quantities, "lr": lr, **more}


def written(folder, records):
    file = folder / "run.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def findings(folder, records):
    return {finding.evidence: finding for finding in watch(written(folder, records)).findings}


def test_columns_are_the_numbers_of_the_records(tmp_path):
    run = watch(written(tmp_path, [one(0, 2.3, 3.0), one(5, 1.0), one(10, 0.5, 20.0, lr=0.2)]))
    assert run.steps.tolist() == [0, 5, 10]
    np.testing.assert_array_equal(run.columns["sharpness"], [3.0, np.nan, 20.0])
    np.testing.assert_array_equal(run.columns["sharpness, limit"], [20.0, np.nan, 10.0])
    np.testing.assert_array_equal(run.columns["lr"], [0.1, 0.1, 0.2])
    np.testing.assert_array_equal(run["sharpness"].ratio, [0.15, np.nan, 2.0])
    assert "risk, limit" not in run.columns
    assert json.loads(json.dumps(run.to_json()))["columns"]["sharpness"] == [3.0, None, 20.0]


def test_it_reads_what_a_monitor_writes(tmp_path):
    x, y = regression()
    largest = float(np.linalg.eigvalsh(x.T @ x / len(x))[-1])
    monitor = Monitor(
        tmp_path / "log", squared, (x, y), every=1, budget=None, lr=1.02 * 2 / largest
    )
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    for step in range(4):
        monitor(step, (linear, 0.3 * step * best))
    run = watch(tmp_path / "log")
    assert run.columns["sharpness"] == pytest.approx(4 * [largest])
    assert run.columns["risk"] == pytest.approx(
        [one["quantities"]["risk"]["value"] for one in read_log(tmp_path / "log")]
    )
    step = next(finding for finding in run.findings if finding.evidence == "sharpness")
    assert step.sign == "?" and step.text.startswith(
        "at the edge of stability since step 0: sharpness 1.02 of 2/η"
    )


@pytest.mark.parametrize(
    ("ratios", "sign", "words"),
    [
        ([0.1, 0.9, 1.0, 1.1], "?", "at the edge of stability since step 10: sharpness 1 of 2/η"),
        ([0.1, 2.5, 2.1, 3.0], "!", "above 2 times since step 10"),
        ([0.1, 2.9, 1.0, 0.4], "✓", "the most was 2.9 times, at step 10"),
        ([0.01, 0.02, 0.01, 0.02], "✓", "the step is 0.02 of the largest stable one at step 30"),
        ([0.1, 0.2, 0.3, 0.3], "✓", "the step is 0.3 of the largest stable one at step 30"),
        ([0.1, 0.2, 0.3, -0.3], "✓", "every step is stable to second order"),
    ],
)
def test_the_step_beside_its_limit(tmp_path, ratios, sign, words):
    records = [one(10 * i, 2.0 - 0.1 * i, ratio * 20) for i, ratio in enumerate(ratios)]
    finding = findings(tmp_path, records)["sharpness"]
    assert finding.sign == sign and words in finding.text


@pytest.mark.parametrize(
    ("risks", "sign", "about"),
    [
        ([2.3, 1.0, 0.1], "✓", FindingId.LEARNED),
        ([2.3, 0.1, 1.0], "?", FindingId.RISK_ABOVE_ITS_LOWEST),
        ([2.3, 2.31, 2.32], "?", FindingId.NOTHING_LEARNED),
        ([2.3, 0.1, 2.4], "!", FindingId.LEAPT),
        ([0.1, 0.2, 0.3], "?", FindingId.RISK_RISEN),
        ([1.0], "✓", FindingId.LEARNED),
    ],
)
def test_the_risk(tmp_path, risks, sign, about):
    finding = findings(tmp_path, [one(10 * i, risk) for i, risk in enumerate(risks)])["risk"]
    assert (finding.sign, finding.id) == (sign, about)


def test_nothing_learned_after_a_while(tmp_path):
    finding = findings(tmp_path, [one(0, 2.3), one(100, 2.29)])["risk"]
    assert finding.sign == "!" and finding.text.startswith(
        "nothing has been learned: the risk is 2.29"
    )


def test_what_was_learned_is_lost_when_it_stays_so(tmp_path):
    risks = [2.3, 0.1, 2.4, 2.31]
    finding = findings(tmp_path, [one(10 * i, risk) for i, risk in enumerate(risks)])["risk"]
    assert finding.sign == "!"
    assert finding.text.startswith(
        "what was learned is lost: the risk was 0.1 at step 10 and is 2.31 at step 30"
    )


def test_a_small_curvature_of_a_lost_network_is_not_praised(tmp_path):
    shown = findings(tmp_path, [one(0, 1.0, 20.0), one(10, 2.4, 0.1)])
    assert "sharpness" not in shown and shown["risk"].sign == "!"


def test_divergence(tmp_path):
    bad = {
        "step": 30,
        "seconds": 0.1,
        "quantities": {},
        "trouble": "the weights 'w' are not finite: …",
        "diverged": True,
    }
    records = [
        one(0, 2.3, 3.0),
        one(10, 1.0, 90.0, warnings=["too large"]),
        one(20, 3.0, 99.0),
        bad,
    ]
    shown = findings(tmp_path, records)
    assert shown["trouble"].text.startswith(
        "diverged by step 30: last good step 20; announced at step 10."
    )
    assert set(shown) == {"trouble"}
    # and back again, from a checkpoint
    assert "trouble" not in findings(tmp_path, [*records, one(40, 1.0, 3.0)])


def test_warnings_that_came_true_or_not(tmp_path):
    shown = findings(
        tmp_path, [one(0, 2.3), one(10, 2.0, warnings=["a"]), one(20, 2.1, warnings=["b"])]
    )
    assert shown["warnings"].sign == "!" and shown["warnings"].text == "warned since step 10: b"
    shown = findings(tmp_path, [one(0, 2.3), one(10, 2.0, warnings=["a"]), one(20, 0.1)])
    assert shown["warnings"].sign == "?" and shown["warnings"].id == FindingId.NO_LONGER_WARNED


def test_failures_movement_and_what_is_absent(tmp_path):
    name = "relative change of the weights"
    moved = one(20, 1.0)
    moved["quantities"][name] = entry(0.3, 0.0)
    moved["not_measured"] = {"margins": "not measured: no classes"}
    failed = {"step": 10, "seconds": 0.1, "quantities": {}, "trouble": "ZeroDivisionError: x"}
    shown = findings(tmp_path, [one(0, 2.0), failed, moved])
    assert (
        "1 of 3 measurements failed, the last at step 10: ZeroDivisionError"
        in shown["trouble"].text
    )
    assert shown[name].text == "weights have moved by 30% of their size since the first record"
    assert shown["not_measured"].text == "margins could not be measured: no classes"


def test_at_most_five_findings_those_to_act_on_first(tmp_path):
    worst = one(20, 2.4, 90.0, warnings=["too large"], not_measured={"a": "b"})
    worst["quantities"]["error rate"] = entry(0.9)
    worst["quantities"]["relative change of the weights"] = entry(0.3)
    first = one(0, 1.0)
    first["quantities"]["error rate"] = entry(0.5)
    failed = {"step": 10, "seconds": 0.1, "quantities": {}, "trouble": "x"}
    signs = [finding.sign for finding in watch(written(tmp_path, [first, failed, worst])).findings]
    assert signs == ["!", "!", "!", "?", "?"]


def test_several_trainings_in_one_log(tmp_path):
    first = [one(0, 2.3, started="a"), one(10, 1.0)]
    resumed = [one(20, 0.5, started="b")]
    again = [one(0, 2.2, started="c"), one(10, 0.2)]
    file = written(tmp_path, [*first, *resumed, *again])
    assert watch(file).steps.tolist() == [0, 10] and watch(file).columns["risk"][-1] == 0.2
    assert watch(file, 1).steps.tolist() == [0, 10, 20]
    assert "training 2 of 2" in watch(file).title
    with pytest.raises(UserError, match="holds 2 trainings, counted from 1; got training 3"):
        watch(file, 3)
    # the same step twice, by one monitor and by two
    assert watch(written(tmp_path, [one(0, 2.0), one(0, 1.0)])).columns["risk"] == [1.0]
    assert watch(written(tmp_path, [one(0, 2.0), one(0, 1.0, started="b")])).total == 2


def test_torn_lines_cost_only_themselves(tmp_path):
    file = written(tmp_path, [one(0, 2.0), one(10, 1.0)])
    with file.open("ab") as log:
        log.write(b'{"step": 20, "quanti')
    assert watch(file).steps.tolist() == [0, 10]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("hello\nworld\n", "no log of a monitor"),
        ('{"loss": 1.0, "step": 3}\n', "no log of a monitor"),
        ('{"step": "3", "quantities": {}}', "no log of a monitor"),
        ('{"step": 3, "quantities": {"risk": {"value": "high"}}}', "no log of a monitor"),
        (
            '{"step": 3, "quantities": {"risk": {"value": 1, "interval": [1]}}}',
            "no log of a monitor",
        ),
        ("[1, 2]", "no log of a monitor"),
        ("[" * 100_000, "no log of a monitor"),
        ('{"step": 1', "no log of a monitor"),
    ],
)
def test_other_files_get_one_sentence(tmp_path, text, sentence):
    file = tmp_path / "run.jsonl"
    file.write_text(text)
    with pytest.raises(UserError, match=sentence):
        watch(file)


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(UserError, match="there is no log"):
        watch(tmp_path / "none")
    with pytest.raises(UserError, match="cannot read the log"):
        watch(tmp_path)


def test_a_log_of_nothing_but_trouble(tmp_path):
    bad = {"step": 3, "seconds": 0.1, "quantities": {}, "trouble": "x", "diverged": True}
    run = watch(written(tmp_path, [bad]))
    assert [finding.sign for finding in run.findings] == ["!"]
    assert run.panels == () and run.rows == ()


def test_panels_draw_every_quantity_with_its_limit(tmp_path):
    records = [
        one(step, 2.3 / (1 + step), 1.0 + step, lr=0.1 + step)
        for step in (0, 1, 2, 4, 8, 16, 32, 64, 128)
    ]
    for record in records:
        record["quantities"]["sharpness"]["over_examples"] = [0.5, 300.0]
    panels = {panel.title: panel for panel in watch(written(tmp_path, records)).panels}
    assert list(panels) == ["Risk", "Sharpness", "Step size"]
    sharpness = panels["Sharpness"]
    assert [curve.role for curve in sharpness.curves] == ["context", "observed", "predicted"]
    assert sharpness.curves[2].label == "2/η"
    np.testing.assert_allclose(
        sharpness.curves[2].y, [2 / (0.1 + record["step"]) for record in records]
    )
    assert sharpness.xscale == "log" and panels["Risk"].curves[1].label == "constant guess"
