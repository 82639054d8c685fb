import pytest

from steepest.core.errors import UserError, nearest


def test_a_users_mistake_is_a_value_error():
    with pytest.raises(ValueError, match="what to try"):
        raise UserError("what to try")


@pytest.mark.parametrize(
    ("word", "known", "hint"),
    [
        ("widht", ["width", "depth"], "did you mean 'width'?"),
        ("width", ["width", "depth"], "did you mean 'width'?"),
        ("zzz", ["width", "depth"], "known are: depth, width"),
        ("", ["b", "a"], "known are: a, b"),
    ],
)
def test_the_nearest_word_or_all_of_them(word, known, hint):
    assert nearest(word, known) == hint


def test_any_iterable_of_words_will_do():
    words = (name for name in ("learning-rate", "steps"))
    assert nearest("steps?", words) == "did you mean 'steps'?"
    assert nearest("qqq", {"b": 1, "a": 2}) == "known are: a, b"
