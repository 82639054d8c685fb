"""The form of a claim: labels first, ids of them, a figure by default, texts from its page."""

import numpy as np
import pytest

from steepest import catalogue, kit
from steepest.engine.run import answer, execute, ready
from steepest.engine.store import Store
from tests.kit.decay import Decay

CLAIM = '''"""A number is one half."""

from steepest import kit


@kit.claim
class Half(kit.Claim[None]):
    """Nothing is random."""

    widths: tuple[kit.Count, ...] = kit.param((1, 2), "widths", scope=kit.choices((1, 2)))

    kind = "theorem"
    says = {"is one half": "half"}
    out_of_scope = {"widths": (1000,)}

    def axes(self):
        return {"width": self.widths}

    def hypotheses(self, setting):
        yield kit.assume("width", max(self.widths), "<", 100)

    def predict(self, setting):
        return kit.law(half=("width", [0.5 for _ in self.widths]))

    def observe(self, setting, key):
        same = [[0.5 for _ in self.widths] for _ in range(3)]
        return kit.seen(half=("seed width", same))

    def judge(self, law, seen):
        yield kit.follows("half", law.half, seen.half, 0.1)

    def rivals(self, setting, law):
        yield kit.rival("one third", "it is near", half=law.half / 1.5)

    def controls(self, seen):
        yield kit.control("twice as much", "it is not there", half=2 * seen.half)
'''
PAGE = """
statement = "x = 1/2"
source = "arithmetic"
remarks = ["A half."]

[not_told]
"half.width.steeper" = "two widths"
"half.width.shallower" = "two widths"
"""


@pytest.fixture
def claim(tmp_path, monkeypatch):
    """A claim in a folder of its own, with its page."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "half"
    folder.mkdir()
    (folder / "claim.py").write_text(CLAIM, "utf-8")
    (folder / "page.toml").write_text(PAGE, "utf-8")
    return folder / "claim.py"


@pytest.mark.parametrize(
    ("label", "id"),
    [
        ("the step is half as large", "the_step_is_half_as_large"),
        ("γ ∝ 1/√r", "gamma_1_r"),
        ("2/η", "of_2_eta"),
        ("Adam's β₂ → 1", "adam_s_beta_2_1"),
    ],
)
def test_the_id_of_a_rival_follows_from_what_it_says(label, id):
    assert kit.rival(label, "why", y=1.0).id == id
    assert kit.control(label, "why", y=1.0).id == id
    assert kit.rival(label, "why", id="short", y=1.0).id == "short"
    assert kit.rival(label, "why", y=1.0).label == label


def test_a_label_without_letters_needs_an_id():
    with pytest.raises(kit.UserError, match="no id can be made; give one"):
        kit.rival("∝", "why", y=1.0)


def test_a_label_that_stands_where_it_stood_before_is_refused():
    with pytest.raises(kit.UserError, match=r"say the label first: kit.control\('a world', why"):
        kit.control("world", "why", label="a world", y=1.0)


def test_an_array_called_id_is_refused():
    with pytest.raises(kit.UserError, match="is a text; call an array otherwise"):
        kit.rival("half", "why", id=np.ones(3))


def test_a_page_gives_the_texts_of_its_claim(claim):
    kind = catalogue.load(claim)
    assert (kind.statement, kind.source, kind.remarks) == ("x = 1/2", "arithmetic", ("A half.",))
    assert kind.not_told["half.width.steeper"] == "two widths"
    result = execute(ready(claim))
    assert result.verdict is kit.Verdict.HOLDS
    assert result.about["remarks"] == ["A half."]


def test_a_text_has_one_home(claim):
    claim.write_text(
        CLAIM.replace('    kind = "theorem"\n', '    kind = "theorem"\n    source = "x"\n')
    )
    with pytest.raises(kit.UserError, match=r"Half and its page.toml both give source; keep one"):
        catalogue.load(claim)


def test_a_new_text_reaches_stored_results_and_makes_none_stale(claim, tmp_path):
    store = Store(tmp_path / "results")
    first = answer(ready(claim), store=store)
    page = claim.with_name("page.toml")
    page.write_text(PAGE.replace("A half.", "One half."), "utf-8")
    again = answer(ready(claim), store=store)
    assert again.how == "stored"
    assert again.stamp == first.stamp
    assert again.about["remarks"] == ["One half."]
    assert store.find(ready(claim).question).about["remarks"] == ["One half."]


def test_a_result_whose_texts_are_the_same_is_not_written_again(claim, tmp_path, monkeypatch):
    store = Store(tmp_path / "results")
    first = answer(ready(claim), store=store)
    assert first.about["scope"]  # which has tuples before it is written
    monkeypatch.setattr(Store, "save", lambda *_: pytest.fail("nothing has changed"))
    assert answer(ready(claim), store=store).how == "stored"


def test_what_is_accepted_and_the_version_are_judged_anew(claim, tmp_path):
    store = Store(tmp_path / "results")
    answer(ready(claim), store=store)
    page = claim.with_name("page.toml")
    page.write_text(PAGE.replace('"half.width.shallower" = "two widths"\n', ""), "utf-8")
    again = answer(ready(claim), store=store)
    assert again.how == "judged anew"
    assert again.verdict is kit.Verdict.HOLDS


def test_a_claim_without_a_figure_shows_each_headline_check(claim):
    (panel,) = execute(ready(claim)).panels
    sides = [curve.role for curve in panel.curves]
    assert (panel.title, panel.x) == ("half", "width")
    assert sides == ["observed", "predicted", "rival"]
    measured, theory, wrong = panel.curves
    np.testing.assert_allclose(measured.x, [1, 2])
    np.testing.assert_allclose(measured.y, [0.5, 0.5])
    np.testing.assert_allclose(theory.y, [0.5, 0.5])
    np.testing.assert_allclose(wrong.y, [1 / 3, 1 / 3])


def test_each_combination_of_other_axes_has_its_curve():
    """The law of a check is drawn over the last axis whose coordinates are numbers."""

    @kit.claim
    class Drawn(Decay):
        figure = kit.Claim.figure

    claim = Drawn()
    result = execute(ready(claim))
    names = {panel.title for panel in result.panels}
    assert {check.name for check in result.checks if check.id == "follows"} <= names
    for panel in result.panels:
        assert {curve.role for curve in panel.curves} >= {"observed", "predicted"}
