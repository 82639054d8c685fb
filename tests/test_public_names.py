"""What is public stays, or goes away as ``docs/api_stability.md`` says."""

from operator import attrgetter

import pytest

import steepest
from tests.public_names import offered, written

PROMISED = written()
OFFERED = offered()
PAGE = "docs/api_stability.md"


@pytest.mark.parametrize("place", PROMISED)
def test_no_promised_name_is_gone(place):
    gone = set(PROMISED[place]) - set(OFFERED.get(place, ()))
    assert not gone, (
        f"{place} no longer has {', '.join(sorted(gone))}: keep the old name beside the new one, with a "
        f"DeprecationWarning, for one minor release ({PAGE}); then take it out of tests/public_names.json by hand"
    )


@pytest.mark.parametrize("place", OFFERED)
def test_every_new_name_is_written_down(place):
    new = set(OFFERED[place]) - set(PROMISED.get(place, ()))
    assert not new, (
        f"{place} now has {', '.join(sorted(new))}: if that is to be public, run python -m tests.public_names"
    )


@pytest.mark.parametrize("place", OFFERED)
def test_no_public_place_is_empty(place):
    """The reference of the book lists the same names: a package without any would be an empty page."""
    assert OFFERED[place]


@pytest.mark.parametrize("name", steepest.__all__)
def test_every_name_at_the_top_level_can_be_had(name):
    assert getattr(steepest, name) is not None
    assert name in dir(steepest)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        attrgetter("no_such_name")(steepest)
