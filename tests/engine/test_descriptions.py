"""What a claim says of itself is the same whether its source is read or its class is imported."""

import pytest

from steepest.app.authoring import write_template
from steepest.catalogue import catalogue, entry
from steepest.engine import descriptions
from steepest.engine.descriptions import description
from tests.small import SOURCE

FEW = (
    "catapult",
    "edge-of-stability",
    "xor-sample-complexity",
    "width-helps",
    "factorization-landscape",
    "sawtooth",
    "mean-field-limit",
    "lqr-rollouts",
    "small-step-bias",
)
"""A point in a file of its own, what is named elsewhere, a diagram, a preset that is no literal, fields of a base."""


@pytest.mark.parametrize("name", FEW)
def test_reading_says_what_the_class_says(name):
    line = catalogue()[name]
    assert description(line) == descriptions._from_class(line)


def test_nearly_all_claims_are_described_without_an_import(monkeypatch):
    imported = []
    monkeypatch.setattr(descriptions, "_from_class", lambda line: imported.append(line.name))
    for line in catalogue().values():
        description(line)
    assert len(imported) <= 0.04 * len(catalogue()), imported


RATE = "rate: kit.Positive = kit.param(0.5,"
SEEDS = '    seeds: kit.Seeds = kit.param(4, "repetitions")'
CHANGES = {
    "as it is": ("", ""),
    "a computed default": (RATE, "rate: kit.Positive = kit.param(1 / 2,"),
    "a whole number where real ones are held": (RATE, "rate: kit.Positive = kit.param(1,"),
    "a type in quotes": ("bias: float = ", "bias: 'float' = "),
    "a meaning that is named": ('"repetitions"', "WORD"),
    "comments, which say nothing": (SEEDS, f"    # how many [s]\n{SEEDS}  # of runs [1]"),
    "a field that says nothing of itself": (SEEDS, "    seeds: kit.Seeds = 4"),
    "a preset of names": ('full = {{"seeds": 8}}', 'full = {{"seeds": MANY}}'),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_ones_own_file_is_described_alike(change, tmp_path):
    path = tmp_path / "my_decay.py"
    named = 'MANY = 9\nWORD = "of runs"\n\n\n@kit.claim'
    source = SOURCE.replace("@kit.claim", named, 1)
    assert change[0] in source
    source = source.replace(*change, 1)
    path.write_text(source.format(says="It decays."), "utf-8")
    line = entry(path)
    assert description(line) == descriptions._from_class(line)


BASE = """
from steepest import kit


@kit.claim
class Base(kit.Claim[None]):
    more: int = kit.param(1, "of mine")
"""


def test_fields_that_are_inherited_are_described_too(tmp_path):
    (tmp_path / "base_of_mine.py").write_text(BASE, "utf-8")
    path = tmp_path / "my_decay.py"
    source = SOURCE.replace("class Trial(kit.Claim[None]):", "class Trial(Base):")
    source = source.replace("import numpy", "from base_of_mine import Base\nimport numpy", 1)
    path.write_text(source.format(says="It decays."), "utf-8")
    inherited = description(entry(path)).fields[0]
    assert (inherited.name, inherited.meaning) == ("more", "of mine [1]")


def test_a_file_without_a_claim_is_refused_as_ever(tmp_path):
    from steepest.core.errors import UserError

    path = tmp_path / "no_claim.py"
    path.write_text('"""Nothing."""\n', "utf-8")
    with pytest.raises(UserError, match="must define exactly one claim"):
        description(entry(path))


def test_a_new_claim_is_described_without_an_import(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = entry(write_template("fresh-claim"))
    imported = descriptions._from_class(line)
    monkeypatch.setattr(descriptions, "_from_class", lambda line: pytest.fail("it was imported"))
    assert description(line) == imported
