"""Exercises: the reader predicts, the claim's own judge answers; the notebook says so and runs."""

import json
from pathlib import Path

import numpy as np
import pytest

import steepest
from steepest import catalogue
from steepest.app.cli import main
from steepest.app.exercise_notebook import notebook
from steepest.app.exercises import Exercise
from steepest.core.arrays import Prediction
from steepest.core.errors import UserError
from steepest.core.page import page_of
from steepest.core.words import Verdict
from steepest.engine.run import ready
from tests.extras import need
from tests.small import small_catalogue

REAL = tuple(catalogue.built_in())
TINY = ("perceptron-mistakes", "hyperplane-cells", "parity-margins")


@pytest.fixture
def small(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


@pytest.fixture
def task(small):
    return steepest.exercise("plain-decay", out="results")


def right(setting):
    return {"rate": 0.5, "path": 0.5 ** np.arange(60)}


def test_the_blank_says_what_to_predict(task):
    assert task.claim == "plain-decay"
    assert {name: blank.shape for name, blank in task.blank.items()} == {"rate": (), "path": (60,)}
    assert str(task.blank["path"]) == "numbers, 60 (step)"
    assert str(task.blank["rate"]) == "number"
    assert task.settings["seeds"] == 4
    assert task.question == "What does theory predict for rate, path?"
    assert not Path("results").exists()


def test_the_right_prediction_agrees_and_beats_the_rival(task):
    attempt = task.judge(right)
    assert attempt.agrees
    assert attempt.beaten == ("a faster decay",)
    assert attempt.sentence == "3 of 3 checks hold; 1 of 1 wrong theories are beaten"
    own = {check.id: check.verdict for check in task.result.checks}
    assert {check.id: check.verdict for check in attempt.checks} == own
    assert "a faster decay: beaten by rate" in str(attempt)
    assert "<table>" in attempt._repr_html_() and "&lt;" not in attempt.sentence
    assert task.measured["path"].shape == (4, 60)


def test_a_rivals_prediction_does_not_beat_it(task):
    attempt = task.judge({"rate": 0.3, "path": 0.0})
    assert not attempt.agrees
    assert attempt.beaten == ()
    assert attempt.checks[0].verdict is Verdict.FAILS
    assert "a faster decay: not beaten" in str(attempt)


def test_an_undecided_check_beats_nothing(small):
    task = steepest.exercise("plain-decay", spread=0.02)
    attempt = task.judge({"rate": 0.45, "path": 0})
    assert attempt.checks[0].verdict is Verdict.INCONCLUSIVE
    assert attempt.beaten == ()


def test_one_number_stands_for_all_and_what_is_blank_is_said(task):
    attempt = task.judge({"rate": ..., "path": None})
    assert attempt.blank == ("rate", "path") and not attempt.agrees
    assert attempt.sentence == "still blank: rate, path; put numbers in place of ..."
    assert not Path("results").exists(), "nothing is run for a blank"
    assert task.judge({"rate": 0.5, "path": 1}).agrees


def test_part_of_the_prediction_may_come_from_the_claim(task):
    attempt = task.judge({"rate": 0.5}, given=["path"])
    assert attempt.agrees and attempt.given == ("path",)
    assert attempt.sentence.endswith("taken from the claim: path")


def test_the_observation_is_read_from_the_store(task):
    steepest.run("plain-decay", out="results")
    task.judge(right)
    assert task.result.how == "stored"


@pytest.mark.parametrize(
    ("guess", "sentence"),
    [
        ({"rate": 0.5}, "lacks path; add numbers, or name them in given"),
        ({"rates": 0.5, "path": 1}, "'rates' is not asked for; did you mean 'rate'"),
        ({"rate": [1, 2], "path": 1}, r"rate is number, of shape \(\), got \[1, 2\]"),
        ({"rate": "much", "path": 1}, "rate is number, of shape"),
        ({"rate": 0.5, "path": np.ones(59)}, r"shape \(60,\), got an array of shape \(59,\)"),
        ({"rate": 0.5, "path": [[1], [1, 2]]}, "path is numbers, 60"),
        (lambda setting: None, "a prediction is a dictionary with rate, path, got NoneType"),
        (0.5, "a prediction is a dictionary"),
    ],
)
def test_predictions_that_cannot_be_judged_are_refused_in_a_sentence(task, guess, sentence):
    with pytest.raises(UserError, match=sentence) as refusal:
        task.judge(guess)
    assert "\n" not in str(refusal.value)


def test_whole_numbers_and_truth_values_must_be_such(small):
    task = steepest.exercise("plain-decay")
    whole = Prediction(rate=np.array(2), path=("step", np.array([True, False])))
    task.__dict__["answer"] = whole
    assert str(task.blank["rate"]) == "whole number"
    assert str(task.blank["path"]) == "truth values, 2 (step)"
    with pytest.raises(UserError, match=r"rate is whole number, got 2\.5"):
        task.judge({"rate": 2.5, "path": True})
    with pytest.raises(UserError, match="path is truth values"):
        task.judge({"rate": 2.0, "path": 3})


def test_a_judge_that_breaks_is_a_sentence(task, monkeypatch):
    def breaks(self, predicted, observed):
        raise ZeroDivisionError("division by zero")

    assert task.judge(right).agrees
    monkeypatch.setattr(task.kind, "judge", breaks)
    with pytest.raises(UserError, match=r"judge cannot compare these numbers \(division by zero\)"):
        task.judge(right)


def test_a_setting_outside_of_the_theorem_is_refused(small):
    with pytest.raises(UserError, match="growing is out of range with these fields"):
        steepest.exercise("growing", rate=1.5).judge(right)


def test_a_claim_without_a_prediction_is_refused(task, monkeypatch):
    monkeypatch.setattr(task.kind, "predict", lambda self, setting: Prediction())
    with pytest.raises(UserError, match="predicts no number that could be left blank"):
        dict(task.blank)
    assert main(["exercise", "plain-decay"]) == 2
    assert not Path("plain-decay.ipynb").exists()


# the notebook


def test_the_command_writes_a_notebook_once(small, capsys):
    assert main(["exercise", "plain-decay"]) == 0
    assert "plain-decay.ipynb: open it with jupyter lab" in capsys.readouterr().out
    before = Path("plain-decay.ipynb").read_bytes()
    assert main(["exercise", "plain-decay"]) == 2
    assert "is there already and was not touched" in capsys.readouterr().err
    assert Path("plain-decay.ipynb").read_bytes() == before
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["plain-deca"], "did you mean 'plain-decay'"),
        (
            ["plain-decay", "notes.md"],
            "a notebook is an .ipynb file, got notes.md; try notes.ipynb",
        ),
        (["plain-decay", "no/where.ipynb"], "there is no folder no"),
        (["plain-decay", "folder.ipynb"], "is there already"),
    ],
)
def test_bad_input_is_one_sentence(small, words, sentence, capsys):
    Path("folder.ipynb").mkdir()
    assert main(["exercise", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def cells(path):
    return json.loads(Path(path).read_text("utf-8"))["cells"]


def test_the_answer_stands_in_the_closed_part_alone(small):
    main(["exercise", "plain-decay"])
    *parts, closing, last = [cell["source"] for cell in cells("plain-decay.ipynb")]
    says = catalogue.entry("plain-decay").says
    assert closing.startswith("<details>") and closing.endswith("</details>")
    assert says in closing and "| `rate` | 0.5 |" in closing
    assert "[Cohen et al. 2021](https://arxiv.org/abs/2103.00065)" in closing
    assert "[@cohen2021]" not in closing
    assert not any(says in part or "rho^t" in part for part in parts)
    assert last.endswith("# task.judge(task.answer)")


def test_a_claim_in_a_file_is_found_again_from_the_notebooks_folder(capsys):
    main(["new", "my_claim.py"])
    Path("notes").mkdir()
    assert main(["exercise", "my_claim.py", "notes/mine.ipynb"]) == 0
    start = cells("notes/mine.ipynb")[2]["source"]
    assert "steepest.exercise('../my_claim.py', out='../results')" in start


@pytest.mark.parametrize("name", REAL)
def test_every_claim_has_a_question_that_is_not_its_answer(name):
    line = catalogue.entry(name)
    question = page_of(line.path).question
    assert question.endswith("?")
    assert question.rstrip("?") not in line.says


@pytest.mark.parametrize("name", REAL)
def test_a_notebook_can_be_written_of_every_claim(name):
    task = Exercise(ready(name))
    task.__dict__["hypotheses"] = ()
    task.__dict__["answer"] = Prediction(number=1.0, array=("a b", np.ones((20, 2), int)))
    written = notebook(task, name, "results")
    parts = [cell["source"] for cell in written["cells"]]
    line = catalogue.entry(name)
    assert parts[0].startswith(f"# {page_of(line.path).question}")
    opening = "".join(parts[:-2])
    assert line.says not in opening
    assert type(task._asked.claim).statement not in opening
    assert "[@" not in "".join(parts)
    for cell in written["cells"]:
        if cell["cell_type"] == "code":
            compile(cell["source"], name, "exec")
    nbformat = need("nbformat")
    nbformat.validate(nbformat.from_dict(written))


@pytest.mark.parametrize("name", TINY)
def test_the_claims_own_prediction_fares_as_in_its_result(name):
    task = steepest.exercise(name, preset="tiny")
    attempt = task.judge(task.answer)
    own = {check.id: check.verdict for check in task.result.checks}
    assert {check.id: check.verdict for check in attempt.checks} == own
    wrong = {blank: 3 * values + 1 for blank, values in task.answer.items()}
    assert not task.judge(wrong).agrees


def test_the_notebook_runs_blank_and_filled_in(tmp_path, monkeypatch):
    nbformat = need("nbformat")
    nbclient = need("nbclient")
    need("ipykernel")
    main(["new", "my_claim.py"])
    assert main(["exercise", "my_claim.py", "task.ipynb"]) == 0
    book = nbformat.read("task.ipynb", as_version=4)
    nbformat.validate(book)
    filled = [cell for cell in book.cells if cell.cell_type == "code"]
    judge = filled[2]
    answer = filled[3]
    answer.source = answer.source.replace("# task", "task")
    environment = {"resources": {"metadata": {"path": str(tmp_path)}}, "kernel_name": "python3"}
    monkeypatch.setenv("PYTHONPATH", str(Path(steepest.__file__).parents[1]))
    nbclient.NotebookClient(book, timeout=300, **environment).execute()
    assert "still blank" in judge.outputs[0].data["text/html"]
    assert "checks hold" in answer.outputs[0].data["text/html"]
