"""The page of a claim: what it says besides its program, read from a file beside it."""

import pytest

from steepest.core.errors import UserError
from steepest.core.page import Version, page_of

TEXT = """
statement = '''
x_{t+1} = \\tfrac12
  x_t'''
source = "a line of algebra"
remarks = ["One\\n  sentence.", "Another."]

[uses]
catapult = "It decays."

[not_told]
"x.step.flat" = "two steps"

[[history]]
number = 1
changed = "the start"

[[history]]
number = 3
changed = "more steps"
because = "two do not tell"
"""


@pytest.fixture
def program(tmp_path):
    (tmp_path / "page.toml").write_text(TEXT, "utf-8")
    (tmp_path / "claim.py").touch()
    return tmp_path / "claim.py"


def test_texts_are_on_one_line_wherever_the_file_folds_them(program):
    page = page_of(program)
    assert page.statement == r"x_{t+1} = \tfrac12 x_t"
    assert page.remarks == ("One sentence.", "Another.")
    assert page.ties == {"uses": {"catapult": "It decays."}, "extends": {}, "limits": {}}
    assert page.history == (Version(1, "the start"), Version(3, "more steps", "two do not tell"))
    assert page.version == 3


def test_a_judgement_depends_on_the_version_and_on_what_is_accepted_alone(program):
    before = page_of(program).judged
    path = program.with_name("page.toml")
    path.write_text(TEXT.replace("Another.", "A third.").replace("two steps", "too few"), "utf-8")
    assert page_of(program).judged == before
    path.write_text(TEXT.replace("number = 3", "number = 4"), "utf-8")
    assert page_of(program).judged != before
    path.write_text(TEXT.replace("x.step.flat", "x.step.halved"), "utf-8")
    assert page_of(program).judged != before


def test_only_a_program_called_claim_has_a_page(program, tmp_path):
    other = tmp_path / "other.py"
    other.touch()
    assert page_of(other) is None
    program.with_name("page.toml").unlink()
    assert page_of(program) is None


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("source =", "sources =", r"has 'sources'; did you mean 'source'\?"),
        ('source = "a line of algebra"', "", "lacks source"),
        ('source = "a line of algebra"', "source = 7", "source is a text, got 7"),
        ('"Another."]', "7]", "remarks is a list of texts"),
        ('catapult = "It decays."', "catapult = 1", "uses is a table of texts by name"),
        ("number = 3", 'number = "three"', "history is a list of tables with number"),
        ("number = 3", "numbers = 3", "history is a list of tables with number"),
        ("[uses]", "[uses", "cannot read"),
    ],
)
def test_what_no_page_has_is_refused_in_a_sentence(program, old, new, sentence):
    path = program.with_name("page.toml")
    assert old in TEXT
    path.write_text(TEXT.replace(old, new), "utf-8")
    with pytest.raises(UserError, match=sentence) as refusal:
        page_of(program)
    assert "page.toml" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_no_text_is_refused(program):
    program.with_name("page.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="cannot read"):
        page_of(program)
