"""Which changes of code make a stored result old: of the experiment, of its judgement, or of neither."""

import shutil
from pathlib import Path

import pytest

import steepest
from steepest.catalogue import entry
from steepest.engine import fingerprint
from steepest.engine.fingerprint import current, stamp
from steepest.engine.run import run
from steepest.engine.store import Store

CLAIM = '''"""What decays keeps decaying.

More of it.
"""

import judging
from near import grown
from steepest import kit
from steepest.linalg import sharpness

OFFSET = 0.0


def measured(rate):
    """Measure."""
    return grown(rate) + OFFSET


def tolerance():
    return 0.1


@kit.claim
class MyClaim(kit.Claim[None]):
    """A decay."""

    rate: kit.Positive = kit.param(0.5, "what is kept each step", unit="1/step")

    says = {"What decays keeps decaying": "rate"}
    statement = "x"
    source = "a lecture"
    remarks = ("A remark.",)
    out_of_scope = {"rate": 1.5}

    def hypotheses(self, setting):
        """Assume a decay."""
        return [kit.assume("rate", self.rate, "<", 1.0)]

    def predict(self, setting):
        return kit.law(rate=self.theory())

    def theory(self):
        return 1.0 * self.rate

    def observe(self, setting, key):
        with open("calls", "a", encoding="utf-8") as file:
            file.write("x")
        return kit.seen(rate=measured(self.rate))

    def run_conditions(self, observed):
        return [kit.assume("observed", float(observed["rate"]), ">", 0.0)]

    def judge(self, law, seen):
        ratio = judging.ratio(seen.rate, law.rate)
        return [kit.follows("rate", 1.0, ratio, tolerance())]

    def rivals(self, setting, law):
        return [kit.rival("twice", "why not", rate=2 * law.rate)]

    def controls(self, seen):
        return [kit.control("grown", "it grows", rate=seen.rate + 1)]

    def figure(self, law, seen, rivals):
        return (kit.panel("Rate", "step", "rate", kit.observed_curve([0, 1], [1, float(seen.rate)])),)
'''
NEAR = '''"""A neighbour."""

import farther


def grown(rate):
    return farther.FACTOR * rate


def unused():
    return 1
'''
FILES = {
    "my_claim.py": CLAIM,
    "near.py": NEAR,
    "farther.py": "FACTOR = 1.0\n",
    "judging.py": "def ratio(a, b):\n    return a / b\n",
    "stranger.py": "NOTHING = 0\n",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A claim in a file with neighbours, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert text.count(old) == 1, (old, text.count(old))
    path.write_text(text.replace(old, new), "utf-8")


def now():
    return stamp(entry("my_claim.py"))


def differences(before):
    """Which of the three digests are others now."""
    after = now()
    names = ("experiment", "rivals", "judgement")
    return {name for name in names if getattr(before, name) != getattr(after, name)}


EXPERIMENT = {"experiment", "judgement"}
JUDGEMENT = {"judgement"}


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        # what gives the arrays
        ("my_claim.py", "rate=measured(self.rate)", "rate=measured(self.rate) + 1", EXPERIMENT),
        ("my_claim.py", "1.0 * self.rate", "2.0 * self.rate", EXPERIMENT),
        ("my_claim.py", '"<", 1.0', '"<", 2.0', EXPERIMENT),
        ("my_claim.py", "OFFSET = 0.0", "OFFSET = 0.1", EXPERIMENT),
        ("my_claim.py", "grown(rate) + OFFSET", "grown(rate) - OFFSET", EXPERIMENT),
        ("near.py", "farther.FACTOR * rate", "farther.FACTOR * rate**2", EXPERIMENT),
        ("farther.py", "1.0", "1.1", EXPERIMENT),
        # the class's head: fields and attributes
        ("my_claim.py", "kit.param(0.5", "kit.param(0.4", {"rivals", *EXPERIMENT}),
        ("my_claim.py", "    source =", "    version = 2\n    source =", {"rivals", *EXPERIMENT}),
        # what judges them
        ("my_claim.py", "return 0.1", "return 0.2", JUDGEMENT),
        ("my_claim.py", 'follows("rate", 1.0, ratio', 'follows("rate", 1.1, ratio', JUDGEMENT),
        ("my_claim.py", '">", 0.0', '">", 0.1', JUDGEMENT),
        ("judging.py", "a / b", "b / a", JUDGEMENT),
        ("my_claim.py", "2 * law.rate", "3 * law.rate", {"rivals", "judgement"}),
        # what is drawn and said
        ("my_claim.py", 'panel("Rate"', 'panel("The rate"', JUDGEMENT),
        ("my_claim.py", "A remark.", "Another remark.", JUDGEMENT),
        ("my_claim.py", '"a lecture"', '"a book"', JUDGEMENT),
        # layout
        ("my_claim.py", "what is kept each step", "what remains", JUDGEMENT),
        ("my_claim.py", "More of it.", "More of all of it.", set()),
        ("my_claim.py", '"""A decay."""', '"""A slow decay."""', set()),
        ("my_claim.py", '"""Assume a decay."""', '"""Assume that it decays."""', set()),
        ("my_claim.py", '    """Measure."""\n', "", set()),
        (
            "my_claim.py",
            "law, seen):\n        ratio",
            "law, seen):\n\n\n        ratio",
            set(),
        ),
        ("near.py", '"""A neighbour."""', "# a neighbour", set()),
        ("stranger.py", "NOTHING = 0", "NOTHING = 1", set()),
    ],
)
def test_changes_count_where_they_reach(folder, file, old, new, expected):
    before = now()
    assert differences(before) == set()
    edit(folder / file, old, new)
    assert differences(before) == expected


def test_a_removed_and_a_restored_file_are_seen(folder):
    before = now()
    (folder / "farther.py").unlink()
    assert differences(before) == EXPERIMENT
    (folder / "farther.py").write_text(FILES["farther.py"], "utf-8")
    assert differences(before) == set()


def test_a_neighbour_in_a_package_is_followed(folder):
    parts = folder / "parts"
    parts.mkdir()
    (parts / "__init__.py").write_text("from .inner import grown\n", "utf-8")
    (parts / "inner.py").write_text("def grown(rate):\n    return rate\n", "utf-8")
    (parts / "other.py").write_text("NOTHING = 0\n", "utf-8")
    edit(folder / "my_claim.py", "from near import grown", "from parts import grown")
    before = now()
    edit(parts / "other.py", "0", "1")
    assert differences(before) == set()
    edit(parts / "inner.py", "return rate", "return rate + 1")
    assert differences(before) == EXPERIMENT


def test_what_a_star_brings_is_followed(folder):
    edit(folder / "my_claim.py", "from near import grown", "from near import *")
    before = now()
    edit(folder / "near.py", "farther.FACTOR * rate", "rate")
    assert "experiment" in differences(before)


def test_an_import_inside_a_function_is_followed(folder):
    edit(folder / "my_claim.py", "from near import grown\n", "")
    edit(
        folder / "my_claim.py",
        '    """Measure."""\n',
        "    from near import grown\n\n",
    )
    before = now()
    edit(folder / "farther.py", "1.0", "1.1")
    assert differences(before) == EXPERIMENT


def test_what_statements_between_definitions_use_is_followed(folder):
    edit(
        folder / "my_claim.py",
        "def tolerance():",
        "def shifted(rate):\n    return rate\n\n\nif OFFSET == 0:\n"
        "    chosen = lambda rate: shifted(rate)\n\n\ndef tolerance():",
    )
    edit(folder / "my_claim.py", "rate=measured(self.rate)", "rate=chosen(self.rate)")
    before = now()
    edit(folder / "my_claim.py", "    return rate\n", "    return rate + 1\n")
    assert "experiment" in differences(before)


def test_a_claim_that_inherits_its_methods(folder):
    """The claim's own class has only some of them: a part of its base class counts wherever it is."""
    text = CLAIM.replace("class MyClaim(", "class Shared(")
    (folder / "shared.py").write_text(text, "utf-8")
    (folder / "my_claim.py").write_text(
        '"""A claim that inherits."""\n\nfrom dataclasses import dataclass\n\nimport shared\n\n\n'
        "@dataclass(frozen=True)\nclass Inherits(shared.Shared):\n"
        '    """It inherits."""\n\n    factor = 1.0\n\n'
        "    def theory(self):\n        return self.factor * self.rate\n",
        "utf-8",
    )
    before = now()
    edit(folder / "shared.py", "rate=measured(self.rate)", "rate=measured(self.rate) + 1")
    assert "experiment" in differences(before)
    before = now()
    edit(folder / "my_claim.py", "self.factor * self.rate", "2 * self.factor * self.rate")
    assert "experiment" in differences(before)
    before = now()
    edit(folder / "my_claim.py", "factor = 1.0", "factor = 2.0")
    assert "experiment" in differences(before)


# ---------------------------------------------------------------------------------- parts of steepest itself


@pytest.fixture
def copied(folder, monkeypatch):
    """The fingerprint reads a copy of the package, which a test may change."""
    root = folder / "copied"
    shutil.copytree(Path(steepest.__file__).parent, root, ignore=shutil.ignore_patterns("*.pyc"))
    before = now()
    monkeypatch.setattr(fingerprint, "ROOT", root)
    assert now() == before  # where it lies does not count
    return root


@pytest.fixture
def observes_sharpness(folder):
    edit(
        folder / "my_claim.py",
        "grown(rate) + OFFSET",
        "grown(rate) + OFFSET + 0 * len(sharpness.__name__)",
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("linalg/_lanczos.py", EXPERIMENT),  # where sharpness is
        ("nn/types.py", EXPERIMENT),  # what it imports
        ("core/arrays.py", {"rivals", *EXPERIMENT}),
        ("core/experiment.py", {"rivals", *EXPERIMENT}),
        ("kit/_claim.py", {"rivals", *EXPERIMENT}),
        ("kit/_arrays.py", {"rivals", *EXPERIMENT}),
        (
            "kit/_checks.py",
            {"rivals", "judgement"},
        ),  # which rivals() calls for the names of repetitions
        ("kit/_clauses.py", JUDGEMENT),
        ("core/fields.py", {"rivals", *EXPERIMENT}),  # what the base class imports
        ("core/hypotheses.py", {"rivals", *EXPERIMENT}),
        ("core/checks.py", {"rivals", "judgement"}),
        ("core/panels.py", JUDGEMENT),
        ("kit/_judging.py", JUDGEMENT),
        ("engine/run.py", set()),
        ("programs/_kkt.py", set()),
        ("site/pages/_build.py", set()),
        ("app/cli.py", set()),
        ("claims/descent/catapult/claim.py", set()),
    ],
)
def test_a_part_of_steepest_counts_where_it_is_imported(observes_sharpness, copied, path, expected):
    before = now()
    with open(copied / path, "a", encoding="utf-8") as file:
        file.write("\n\ndef another_helper():\n    return 1\n")
    assert differences(before) == expected


def test_what_only_readers_import_does_not_count(folder, copied):
    before = now()
    with open(copied / "core" / "experiment.py", encoding="utf-8") as file:
        assert "if TYPE_CHECKING:" in file.read()
    with open(copied / "core" / "panels.py", "a", encoding="utf-8") as file:
        file.write("\n\nMORE = 1\n")
    assert "experiment" not in differences(before)


def test_a_claim_of_the_catalogue_has_a_stamp_of_its_own():
    stamps = {name: stamp(entry(name)) for name in ("catapult", "edge-of-stability")}
    assert stamps["catapult"] != stamps["edge-of-stability"]
    assert stamp(entry("catapult")) == stamps["catapult"]


# ----------------------------------------------------------------------------------------- runs with a store


def calls(folder):
    path = folder / "calls"
    return len(path.read_text("utf-8")) if path.exists() else 0


@pytest.fixture
def store(folder):
    return Store(folder / "results")


def test_a_changed_judge_judges_stored_arrays_anew(folder, store):
    first = run("my_claim.py", store=store)
    assert (first.how, first.verdict, calls(folder)) == ("computed", "holds", 1)
    assert not first.rejudged
    edit(folder / "my_claim.py", 'follows("rate", 1.0, ratio', 'follows("rate", 1.5, ratio')
    second = run("my_claim.py", store=store)
    assert (second.how, second.verdict, calls(folder)) == ("judged anew", "fails", 1)
    assert second.checks[0].predicted == 1.5
    assert second.observed_at == first.observed_at
    assert second.judged_at >= second.observed_at
    third = run("my_claim.py", store=store)
    assert (third.how, third.verdict, calls(folder)) == ("stored", "fails", 1)


def test_a_changed_experiment_runs_again(folder, store):
    run("my_claim.py", store=store)
    edit(folder / "my_claim.py", "OFFSET = 0.0", "OFFSET = 0.5")
    second = run("my_claim.py", store=store)
    assert (second.how, second.verdict, calls(folder)) == ("computed", "fails", 2)
    edit(folder / "farther.py", "1.0", "0.0")  # a neighbour's neighbour
    third = run("my_claim.py", store=store)
    assert (third.how, third.verdict, calls(folder)) == ("computed", "holds", 3)
    assert len(list((store.root / "my-claim").glob("[0-9a-f]*"))) == 1  # the same question


def test_comments_and_docstrings_run_nothing(folder, store):
    run("my_claim.py", store=store)
    edit(folder / "my_claim.py", '"""A decay."""', '"""A slow decay."""')
    assert run("my_claim.py", store=store).how == "stored"
    assert calls(folder) == 1


@pytest.mark.parametrize("package", ["jax", "jaxlib", "numpy"])
def test_another_version_of_what_computes_runs_again(folder, store, monkeypatch, package):
    first = run("my_claim.py", store=store)
    honest = fingerprint.version
    other = lambda name: "0.0.1" if name == package else honest(name)
    monkeypatch.setattr(fingerprint, "version", other)
    assert not current(entry("my_claim.py"), first)
    assert run("my_claim.py", store=store).how == "computed"
    assert calls(folder) == 2


def test_changed_rivals_are_asked_again_without_the_experiment(folder, store):
    first = run("my_claim.py", store=store)
    assert [rival.rejected for rival in first.rivals] == [True]
    edit(
        folder / "my_claim.py",
        'kit.rival("twice", "why not", rate=2 *',
        'kit.rival("once", "why not", rate=1 *',
    )
    second = run("my_claim.py", store=store)
    assert (second.how, calls(folder)) == ("judged anew", 1)
    assert [(rival.id, rival.rejected) for rival in second.rivals] == [("once", False)]
    assert second.verdict == "inconclusive"
    again = run("my_claim.py", store=store)
    assert again.how == "stored"
    assert again.rival_predictions[0].prediction["rate"] == second.predicted["rate"]


def test_new_panels_are_drawn_from_stored_arrays(folder, store):
    run("my_claim.py", store=store)
    edit(folder / "my_claim.py", 'panel("Rate"', 'panel("The rate"')
    second = run("my_claim.py", store=store)
    assert (second.how, second.panels[0].title, calls(folder)) == ("judged anew", "The rate", 1)


def test_new_remarks_reach_the_record(folder, store):
    run("my_claim.py", store=store)
    edit(folder / "my_claim.py", "A remark.", "Another remark.")
    second = run("my_claim.py", store=store)
    assert (second.how, second.about["remarks"]) == ("judged anew", ["Another remark."])
    assert calls(folder) == 1


def test_conditions_of_the_run_are_judged_anew(folder, store):
    run("my_claim.py", store=store)
    edit(folder / "my_claim.py", '">", 0.0', '">", 0.9')
    second = run("my_claim.py", store=store)
    assert (second.how, second.verdict, calls(folder)) == ("judged anew", "out-of-range", 1)


def test_what_was_out_of_range_stays_so_until_the_hypotheses_change(folder, store):
    first = run("my_claim.py", store=store, rate=1.5)
    assert (first.verdict, calls(folder)) == ("out-of-range", 0)
    edit(folder / "my_claim.py", "return 0.1", "return 0.2")
    assert run("my_claim.py", store=store, rate=1.5).how == "judged anew"
    edit(folder / "my_claim.py", '"<", 1.0', '"<", 2.0')
    second = run("my_claim.py", store=store, rate=1.5)
    assert (second.how, second.verdict, calls(folder)) == ("computed", "holds", 1)


def test_a_class_without_a_file_is_never_answered_from_the_store(folder, store):
    """Typed at a prompt: nobody can tell whether its code has changed."""
    text = CLAIM.replace("class MyClaim", "class Typed")
    import sys
    import types

    module = types.ModuleType("__prompt__")
    sys.modules["__prompt__"] = module
    sys.path.insert(0, str(folder))
    try:
        exec(compile(text, "<prompt>", "exec"), vars(module))
        claim = module.Typed()
        assert run(claim, store=store).how == "computed"
        assert run(claim, store=store).how == "computed"
    finally:
        sys.path.remove(str(folder))
        del sys.modules["__prompt__"]
    assert calls(folder) == 2
