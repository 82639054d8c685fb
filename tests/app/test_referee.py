"""What ``steepest referee`` prints, writes and answers."""

import json
from pathlib import Path

import pytest

from steepest.app.cli import main
from steepest.app.referee_words import EVIDENCE, SENTENCES, said, said_run
from steepest.core.words import Verdict
from steepest.engine.referee import Finding, Flaw, SettingRun, Severity

DECAY = Path(__file__).parent.parent / "kit" / "decay.py"
PLAIN = Path(__file__).parent.parent / "referee" / "plain.py"
ALONE = ["--runs", "0"]
OF_THE_MEAN = 'kit.follows("mean", law.y.mean(), seen.y.mean("width"), 0.1)'


def through_its_mean(folder):
    """A claim whose law is judged through its mean alone."""
    text = PLAIN.read_text("utf-8")
    for old, new in (
        ("at_each_width(law, seen, within=0.05)", f"[{OF_THE_MEAN}]"),
        ('("each_0", "each_1", "each_2", "each_3")', '"mean"'),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    (folder / "through_its_mean.py").write_text(text, "utf-8")
    return "through_its_mean.py"


def test_exit_codes(tmp_path):
    assert main(["referee", str(DECAY), *ALONE]) == 0
    assert main(["referee", through_its_mean(tmp_path), *ALONE]) == 1


def test_json_is_one_object_and_nothing_else(tmp_path, capsys):
    assert main(["referee", through_its_mean(tmp_path), "--json", *ALONE]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["claim"], record["runs"]) == ("through-its-mean", [])
    assert record["verdict"] == "inconclusive"  # the kit's own nulls pass too
    first = record["findings"][0]
    assert (first["id"], first["severity"], first["array"]) == ("law-not-told", "severe", "y")
    assert first["text"]
    assert first["reproduce"].startswith("from steepest.engine.referee import bench\n")


def test_what_reproduces_a_finding_does(tmp_path, capsys):
    main(["referee", through_its_mean(tmp_path), "--json", *ALONE])
    first = json.loads(capsys.readouterr().out)["findings"][0]
    setup, call = first["reproduce"].split("\n")
    names = {}
    exec(setup, names)
    assert eval(call, names) == {"mean": "holds"}


def test_the_terminal_says_each_finding_and_how_to_see_it_again(tmp_path, capsys):
    main(["referee", through_its_mean(tmp_path), *ALONE])
    shown = " ".join(capsys.readouterr().out.split())
    assert "through-its-mean: 1 severe" in shown
    assert 'bench("through_its_mean.py").predict_wrong("y", "flat", "width")' in shown


def test_the_page_opens_from_disk(tmp_path, capsys):
    main(["referee", through_its_mean(tmp_path), "--page", "found.html", *ALONE])
    page = (tmp_path / "found.html").read_text("utf-8")
    assert "predict_wrong(&#34;y&#34;" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http-equiv", "")


def test_the_page_of_a_claim_with_runs(tmp_path):
    assert main(["referee", str(DECAY), "--runs", "1", "--page", "found.html"]) == 0
    assert "--widths 8 16 64" in (tmp_path / "found.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["referee"], "CLAIM"),
        (["referee", "nowhere.py"], "there is no file nowhere.py"),
        (["referee", str(DECAY), "--runs", "-1"], "a whole number from 0"),
        (["referee", str(DECAY), "--page", "found.txt"], "a page is an .html file"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(words, sentence, capsys):
    try:
        code = main(words)
    except SystemExit as stopped:
        code = stopped.code
    assert code == 2
    assert sentence in capsys.readouterr().err


def test_every_flaw_has_a_sentence():
    assert set(SENTENCES) == set(Flaw)
    assert set(EVIDENCE) <= set(Flaw)


@pytest.mark.parametrize("kinds", [["flat"], ["flat", "steeper"], ["x 0.9", "x 1.1"]])
def test_alternatives_are_joined(kinds):
    flaw = Flaw.SIZE_NOT_TOLD if "x 0.9" in kinds else Flaw.LAW_NOT_TOLD
    numbers = {"kinds": kinds, "undecided": {}, "failed_by": {}, "accepted": {}}
    words = said(Finding(flaw, Severity.WEAK, "y", "width", ("mean",), numbers))
    assert words.text.count(" or ") == (len(kinds) > 1)
    assert words.sign == "?"


@pytest.mark.parametrize(
    ("place", "came_to"),
    [("inside", "holds"), ("outside", "holds, which is no fault: the scope may be wider")],
)
def test_what_holds_just_outside_its_scope_is_no_fault(place, came_to):
    run = SettingRun({"width": 7}, place, Verdict.HOLDS, "", "", 0.1)
    assert said_run(run)[1] == came_to
