"""Listening to both sides of a claim."""

import cProfile

from steepest.claims.noise._double_well import well
from steepest.engine.shared import Shared
from steepest.files import import_file
from steepest.kernels import bernstein_radius


def shared_by(predict, observe):
    """What two functions both call."""
    shared = Shared()
    with shared.predicting():
        predict()
    with shared.observing():
        observe()
    return shared.functions


def radius():
    """Call one function of the library."""
    bernstein_radius(0.05, 10, 1.0, 1.0)


def test_what_both_sides_call_is_found():
    found = shared_by(radius, radius)
    assert "steepest.kernels.signals._bounds.bernstein_radius" in found


def test_what_one_side_calls_is_not():
    assert shared_by(radius, lambda: None) == []
    assert shared_by(lambda: None, radius) == []


CHEAT = """
def law(x):
    return 2 * x


def _constant():
    return 3.0


class Both:
    @property
    def widths(self):
        return (1, 2, 4)

    def axes(self):
        return {"width": self.widths}

    def predict(self):
        return law(1.0) * _constant() * len(self.widths)

    def observe(self):
        return [law(x) for x in self.widths] + [_constant()]
"""


def test_own_code_of_a_claim_is_found_on_both_sides(tmp_path):
    """A reader's claim whose theory and experiment are one function says so, however short its file."""
    (tmp_path / "my_claim.py").write_text(CHEAT, "utf-8")
    claim = import_file(tmp_path / "my_claim.py").Both()
    shared = Shared(claim)
    with shared.predicting():
        claim.predict()
    with shared.observing():
        claim.observe()
    assert shared.functions == ["my_claim._constant", "my_claim.law"]


def test_packages_below_the_folder_of_a_claim_are_not_its_own(tmp_path):
    below = tmp_path / ".venv" / "lib" / "site-packages"
    below.mkdir(parents=True)
    (below / "other.py").write_text(CHEAT, "utf-8")
    (tmp_path / "my_claim.py").write_text("class Both: ...", "utf-8")
    other = import_file(below / "other.py").Both()
    shared = Shared(import_file(tmp_path / "my_claim.py").Both())
    with shared.predicting():
        other.predict()
    with shared.observing():
        other.observe()
    assert shared.functions == []


def test_what_claims_of_a_chapter_share_is_found():
    shared = Shared(well)
    with shared.predicting():
        well(1.0)
    with shared.observing():
        well(2.0)
    assert shared.functions == ["steepest.claims.noise._double_well.well"]


def test_a_reader_who_profiles_keeps_the_profile():
    profiler = cProfile.Profile()
    profiler.enable()
    found = shared_by(radius, radius)
    after()
    profiler.disable()
    assert found == []
    names = {entry.code.co_name for entry in profiler.getstats() if hasattr(entry.code, "co_name")}
    assert {"bernstein_radius", "after"} <= names


def after():
    """Stands in the profile if it goes on after the two sides."""
