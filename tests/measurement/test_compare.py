"""Comparing two reports: what is said follows from what each error is about; files come back as they went."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import steepest
from steepest.app.cli import main
from steepest.core.errors import UserError
from steepest.measurement import Finding, Reading, Report, compare, measure, read_report
from steepest.measurement._fingerprint import digest_of
from steepest.measurement.adapters import Batches
from steepest.site.pages import comparison_page
from tests.extras import need
from tests.measurement.adapters import models
from tests.measurement.test_measure import linear, regression, squared


def report(*readings, findings=(), data="a", examples=5, model="Net", weights=3):
    return Report(model, weights, examples, readings, 1, 0.1, tuple(findings), data)


def reading(value, interval=None, source="rounding", name="risk", **more):
    return Reading(name, value, interval, source, **more)


def both(old, new, **options):
    return compare(report(old, **options), report(new, **options)).changes[0]


# --------------------------------------------------------------------------------------------- in JSON


def test_a_report_comes_back_from_json():
    found = measure(
        models.of_jax(),
        models.cross_entropy,
        models.data(40),
        what=["risk", "density", "collapse"],
        lr=0.3,
        held_out=models.data(20, seed=1),
    )
    record = json.loads(json.dumps(found.to_json()))
    again = Report.from_json(record)
    assert again.to_json() == found.to_json()
    finite = [q for q in found.quantities if np.isfinite(q.value) and q.panel is None]
    assert finite and all(q in again.quantities for q in finite)
    assert (again.findings, again.data, again.held_out) == (
        found.findings,
        found.data,
        found.held_out,
    )
    drawn = [q for q in found.quantities if q.panel is not None]
    for old in drawn:
        for one, two in zip(old.panel.curves, again[old.name].panel.curves, strict=True):
            np.testing.assert_array_equal(np.asarray(one.y, float), two.y)
    assert {len(found.data), len(found.held_out)} == {32} and found.data != found.held_out


def test_numbers_that_are_not_finite_come_back_as_far_as_json_holds_them():
    given = report(
        reading(math.nan, parts={"a": math.nan}),
        reading(1.0, (-math.inf, 2.0), "probes", name="b", over_examples=(-math.inf, math.inf)),
    )
    again = Report.from_json(given.to_json())
    assert np.isnan(again["risk"].value) and np.isnan(again["risk"].parts["a"])
    assert again["b"].interval == (-math.inf, 2.0)
    assert again["b"].over_examples == (-math.inf, math.inf)


def test_a_report_of_an_earlier_version_has_no_digest():
    record = report(reading(1.0)).to_json()
    del record["data"], record["held_out"], record["findings"]
    assert Report.from_json(record).data == ""


BAD = {
    "": "holds no JSON",
    "not json": "holds no JSON",
    "[1, 2]": "is no report",
    "{}": "it has no 'model'",
    '{"model": 3}': "'3' is of type int",
    json.dumps(report(reading(1.0)).to_json() | {"quantities": 5}): "is no report",
    json.dumps(report(reading(1.0)).to_json() | {"quantities": [{"name": "a"}]}): "it has no",
    json.dumps(report(reading(1.0)).to_json()).replace('"rounding"', '"moon"'): "'moon'",
    json.dumps(report(reading(1.0)).to_json()).replace("1.0", '"1"'): "'1' is of type str",
    json.dumps(report(reading(1.0)).to_json()).replace("1.0", "1" + 400 * "0"): "is no report",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_files_have_one_sentence(text, tmp_path, capsys):
    good = tmp_path / "good.json"
    good.write_text(json.dumps(report(reading(1.0)).to_json()), "utf-8")
    bad = tmp_path / "bad.json"
    bad.write_text(text, "utf-8")
    with pytest.raises(UserError, match=BAD[text]) as raised:
        compare(good, bad)
    assert "bad.json" in str(raised.value)
    assert main(["measure", "--compare", str(good), str(bad)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("steepest: ") and error.count("\n") == 1


def test_other_things_than_reports(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="holds no JSON"):
        read_report(tmp_path / "binary.json")
    with pytest.raises(UserError, match=r"there is no report .*none\.json"):
        compare(tmp_path / "none.json", report(reading(1.0)))
    with pytest.raises(UserError, match="got int"):
        compare(3, report(reading(1.0)))  # pyright: ignore[reportArgumentType]


# ---------------------------------------------------------------------------------------- one reading


def test_a_number_without_an_error_is_exact_for_its_examples():
    change = both(reading(0.5), reading(0.4999))
    assert change.beyond is True and change.over_examples is None
    assert change.ratio == pytest.approx(0.9998)
    same = both(reading(0.5), reading(0.5 * (1 + 1e-7)))
    assert same.beyond is False and same.interpretation == "the same, to rounding"
    assert both(reading(0.0), reading(0.0)).beyond is False


@pytest.mark.parametrize("source", ["residual", "probes", "batches"])
def test_errors_on_the_same_examples_count(source):
    apart = both(reading(1.0, (0.9, 1.1), source), reading(1.4, (1.2, 1.6), source))
    assert apart.beyond is True
    near = both(reading(1.0, (0.9, 1.1), source), reading(1.15, (1.05, 1.25), source))
    assert near.beyond is False and "within the errors of both" in near.interpretation


def test_an_interval_over_examples_is_no_error_on_them():
    change = both(reading(0.10, (0.05, 0.15), "examples"), reading(0.12, (0.07, 0.17), "examples"))
    assert change.beyond is True and change.over_examples is False
    assert "decides nothing" in change.interpretation
    change = both(
        reading(1.0, (0.99, 1.01), "residual", over_examples=(0.5, 1.5)),
        reading(2.0, (1.99, 2.01), "residual", over_examples=(1.6, 2.4)),
    )
    assert change.beyond is True and change.over_examples is True


def test_intervals_that_share_no_point_are_a_difference_whatever_the_dependence():
    """Two normal estimates of one number with correlation ρ: at most one pair of 95 % intervals in twenty is apart."""
    rng = np.random.default_rng(0)
    tries = 20_000
    for rho in (-1.0, -0.5, 0.0, 0.9):
        first = rng.standard_normal(tries)
        second = rho * first + (1 - rho**2) ** 0.5 * rng.standard_normal(tries)
        for wide in (1.0, 3.0):
            apart = np.abs(first - wide * second) > 1.96 * (1 + wide)
            assert apart.mean() <= 0.05 + 4 * (0.05 * 0.95 / tries) ** 0.5


def test_a_change_of_sign_is_a_difference():
    change = both(reading(-1.0), reading(2.0))
    assert change.ratio is None and change.size == "+3"


def test_other_examples():
    old = report(reading(0.5, name="risk"), reading(2.0, name="norm of the weights"), data="a")
    new = report(reading(0.1, name="risk"), reading(3.0, name="norm of the weights"), data="b")
    found = compare(old, new)
    assert found["risk"].beyond is None and "nothing follows" in found["risk"].interpretation
    assert found["norm of the weights"].beyond is True
    assert any("examples are not the same" in note for note in found.notes)
    assert all(finding.evidence != "risk" for finding in found.findings)
    over = [
        report(
            reading(value, (value - 0.01, value + 0.01), "examples", name="error rate"), data=data
        )
        for value, data in ((0.5, "a"), (0.1, "b"))
    ]
    (finding,) = compare(*over).findings
    assert finding.sign == "✓" and "beyond both intervals" in finding.text
    other_count = compare(old, replace(old, examples=6))
    assert other_count["risk"].beyond is None
    unknown = compare(replace(old, data=""), new)
    assert unknown["risk"].beyond is True
    assert any("is not known" in note for note in unknown.notes)


def test_held_out_examples_have_their_own_digest():
    name = "risk on held-out examples"
    old = replace(report(reading(0.5, name=name)), held_out="x")
    new = replace(report(reading(0.1, name=name)), held_out="y")
    found = compare(old, new)
    assert found[name].beyond is None
    assert "the held-out examples are not the same" in found.notes
    assert compare(old, replace(new, held_out="x"))[name].beyond is True


def test_digests_are_of_the_examples_alone():
    torch = need("torch")
    x, y = models.data(40)
    whole = digest_of(Batches((x, y)))
    rows = np.random.default_rng(0).permutation(40)
    shuffled = [(x[rows[:7]], y[rows[:7]]), (x[rows[7:]], y[rows[7:]])]
    tensors = torch.as_tensor(x, dtype=torch.float32), torch.as_tensor(y, dtype=torch.int32)
    assert whole == digest_of(Batches(shuffled, 5)) == digest_of(Batches(tensors))
    assert whole != digest_of(Batches((x[rows], y)))
    assert digest_of(Batches([(np.array(["a"]), np.array([1]))])) == ""


# --------------------------------------------------------------------------------------- several of them


def finding(sign, evidence="risk", text="so it is"):
    return Finding(sign, text, evidence)


def test_new_and_gone_findings():
    old = report(reading(1.0), reading(2.0, name="sharpness"), findings=[finding("!", text="bad")])
    new = report(
        reading(1.0),
        reading(2.0, name="sharpness"),
        findings=[finding("!", "sharpness", "steep"), finding("✓", text="good")],
    )
    found = compare(old, new)
    assert [each.text for each in found.new] == ["steep", "good"]
    assert [each.text for each in found.gone] == ["bad"]
    assert [(each.sign, each.text) for each in found.findings] == [
        ("!", "new: steep"),
        ("✓", "no longer so: bad; now: good"),
    ]
    assert found.others() == []


def test_a_finding_that_found_no_room_is_not_gone():
    names = [f"q{i}" for i in range(6)]
    readings = [reading(1.0, name=name) for name in names]
    full = [finding("!", name) for name in names[:5]]
    old = report(*readings, findings=[finding("?", "q5")])
    assert compare(old, report(*readings, findings=full)).gone == ()
    assert len(compare(old, report(*readings, findings=full[:4])).gone) == 1
    unmeasured = report(*readings[:5], findings=[])
    assert compare(old, unmeasured).gone == ()
    crowded = compare(
        report(*readings, findings=full), report(*readings, findings=[finding("!", "q5")])
    )
    assert any("left out before" in each.text for each in crowded.findings)
    assert any(
        "not measured before" in each.text
        for each in compare(unmeasured, report(*readings, findings=[finding("!", "q5")])).findings
    )


def test_the_five_changes_that_matter():
    names = ["risk", "error rate", "error rate on held-out examples", *"abcdefg"]
    old = report(*[reading(1.0, name=name, id=name) for name in names])
    new = report(*[reading(2.0 + i, name=name, id=name) for i, name in enumerate(names)], data="a")
    found = compare(old, replace(new, held_out="")).findings
    assert len(found) == 5
    assert [each.sign for each in found] == ["!", "!", "!", "?", "?"]
    assert found[0].evidence == "error rate on held-out examples"
    assert [each.evidence for each in found[3:]] == ["g", "f"]  # the largest factors
    still = compare(old, report(*[reading(1.1, name=name) for name in names[3:]]))
    (nothing,) = still.findings
    assert nothing.sign == "?" and nothing.text.startswith("nothing")


def test_held_out_errors_whose_intervals_overlap_are_not_decided():
    name = "error rate on held-out examples"
    change = [
        report(reading(value, (value - 0.1, value + 0.1), "examples", name=name), data="a")
        for value in (0.2, 0.25)
    ]
    (found,) = compare(*change).findings
    assert found.sign == "?"


def test_a_risk_that_hardly_moves_is_no_line():
    found = compare(report(reading(0.5)), report(reading(0.504)))
    assert found["risk"].beyond is True
    assert [each.sign for each in found.findings] == ["?"]
    assert compare(report(reading(0.5)), report(reading(0.506))).findings[0].sign == "!"


def test_different_models_and_nothing_in_common():
    found = compare(report(reading(1.0)), report(reading(2.0), model="Other", weights=9))
    assert "different models: Net of 3 weights before, Other of 9 after" in found.notes[0]
    with pytest.raises(UserError, match=r"no reading in common: risk before, b after"):
        compare(report(reading(1.0)), report(reading(1.0, name="b")))
    with pytest.raises(UserError, match="none before"):
        compare(report(reading(math.nan)), report(reading(1.0)))
    partly = compare(report(reading(1.0), reading(1.0, name="b")), report(reading(1.0)))
    assert "only measured before: b" in partly.notes
    with pytest.raises(KeyError, match="in both are: risk"):
        partly["b"]


def test_two_checkpoints_of_linear_regression():
    """The Hessian stays and the risk moves, as its closed form does."""
    x, y = regression()
    weights = (np.zeros(6), np.linalg.lstsq(x, y, rcond=None)[0])
    before, after = (
        measure((linear, w), squared, (x, y), what=["risk", "sharpness"]) for w in weights
    )
    found = before.compare(after)
    assert found["sharpness"].beyond is False
    risks = [((x @ w - y) ** 2).mean() / 2 for w in weights]
    assert found["risk"].ratio == pytest.approx(risks[1] / risks[0])
    assert any((each.sign, each.evidence) == ("✓", "risk") for each in found.findings)
    assert steepest.compare(before, before)["risk"].beyond is False


def test_a_limit_that_differs_is_said():
    old = reading(1.0, name="sharpness", theory="2/η", compared=20.0)
    found = compare(report(old), report(replace(old, compared=10.0)))
    assert found.notes == ("the limit that your step sets differs: sharpness 20 before, 10 after",)
    assert found["sharpness"].limits == (20.0, 10.0)


# ------------------------------------------------------------------------------------ how it is shown


def test_the_command_compares(tmp_path, capsys):
    files = []
    for name, value in (("a", 0.5), ("b", 0.1)):
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(report(reading(value, id="risk")).to_json()), "utf-8")
        files.append(str(file))
    page = tmp_path / "page.html"
    assert main(["measure", "--compare", *files, "--page", str(page)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "risk fell from 0.5 to 0.1" in shown and "page.html" in shown
    assert "risk fell from 0.5 to 0.1" in page.read_text("utf-8")
    assert main(["measure", "--compare", *files, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["changes"][0]["ratio"] == pytest.approx(0.2)
    assert record["findings"][0]["sign"] == "✓"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["measure"], "needs FILE.py:FUNCTION"),
        (["measure", "m.py:build", "--compare", "a", "b"], "leave FILE.py:FUNCTION"),
        (["measure", "--compare", "a", "b", "--widths", "1"], "leave FILE.py:FUNCTION"),
        (["measure", "m.py:build", "--seeds", "2"], "--seeds goes with --widths"),
        (["measure", "m.py:build", "--widths", "1", "2", "--lr", "1"], "--lr does not go with"),
        (
            ["measure", "m.py:build", "--widths", "1", "--not-stationary"],
            "--not-stationary does not",
        ),
    ],
)
def test_options_that_do_not_go_together(words, said, capsys):
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_names_are_escaped_in_notebook_and_page(tmp_path):
    one = report(
        reading(1.0, name="a<script>"), model="<b>Net", findings=[finding("!", text="<i>")]
    )
    two = report(reading(3.0, name="a<script>"), model="<b>Net")
    found = compare(two, replace(one, quantities=two.quantities))
    for text in (
        found._repr_html_(),
        comparison_page(found, tmp_path / "p.html").read_text("utf-8"),
    ):
        assert "<script>" not in text and "<b>Net" not in text and "<i>" not in text
        assert "a&lt;script&gt;" in text
