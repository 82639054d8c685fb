"""The catalogue: what is broken takes nothing else down, and each trouble is one sentence that names the file."""

import os
import subprocess
import sys
import warnings
from importlib.metadata import EntryPoint

import pytest

from steepest import catalogue, files
from steepest.catalogue import Broken, entry, load
from steepest.core.errors import UserError
from steepest.engine.fingerprint import entry_of, staleness
from steepest.engine.run import run
from steepest.engine.store import Damaged, Store
from steepest.engine.sweeps import plan, work
from steepest.engine.sweeps._sweep import keep, stored_plans
from tests.small import SOURCE, small_catalogue

REGISTERED = catalogue.registered
GOOD = SOURCE.format(says="A claim of a package.")


@pytest.fixture
def small(tmp_path):
    root = tmp_path / "claims"
    root.mkdir()
    with small_catalogue(root):
        yield root


# ------------------------------------------------------------------------------------------------ built in


def test_the_claims_of_this_package_are_in_the_order_of_the_book():
    lines = list(catalogue.catalogue().values())
    chapters = list(dict.fromkeys(line.chapter for line in lines))
    assert chapters == [name for name in catalogue.CHAPTERS if name in chapters]
    assert len(lines) >= 30
    for line in lines:
        assert line.origin == "steepest"
        assert line.path.is_file()
        assert line.says.endswith("."), line.name
        assert line.target == line.name


def test_every_claim_of_this_package_is_a_folder_of_its_chapter():
    for name, line in catalogue.built_in().items():
        home = catalogue.ROOT / line.chapter / name.replace("-", "_")
        assert line.path == home / "claim.py"


def test_a_reader_s_claim_of_several_files_is_called_like_its_folder(tmp_path, monkeypatch):
    home = tmp_path / "my_claim"
    home.mkdir()
    (home / "claim.py").write_text(SOURCE.format(says="A claim of a folder."), "utf-8")
    assert entry(home / "claim.py").name == "my-claim"
    monkeypatch.chdir(home)
    assert entry("claim.py").name == "my-claim"


def test_every_name_finds_its_line():
    for name, line in catalogue.catalogue().items():
        assert entry(name) == line


def test_a_broken_file_of_this_package_takes_nothing_else_down(small):
    (small / "first_steps" / "broken.py").write_text("def f(:\n", "utf-8")
    (small / "first_steps" / "bytes.py").write_bytes(b'"""\xff."""\n')
    catalogue.built_in.cache_clear()
    with pytest.warns(Broken) as said:
        names = set(catalogue.catalogue())
    assert "plain-decay" in names
    assert not names & {"broken", "bytes"}
    texts = sorted(str(warning.message) for warning in said)
    assert texts[0].startswith("the claim 'broken' is left out: invalid syntax in line 1")
    assert texts[1].startswith("the claim 'bytes' is left out: ")
    assert all("\n" not in text for text in texts)


# --------------------------------------------------------------------------------------------- entry points


HOSTILE = (
    "../escaped",
    "/absolute",
    "..",
    "javascript:alert(1)",
    "a/b",
    "Upper",
    "\x1b[31mred",
    "a" * 101,
    "x.py",
    "a\n",
)
"""Names under which a claim would be run, or kept, or shown somewhere else."""


@pytest.fixture
def packages(small, tmp_path, monkeypatch):
    """Installed packages with entry points: sound ones, and all kinds of broken ones."""
    root = tmp_path / "installed"
    (root / "paper_claims" / "inner").mkdir(parents=True)
    (root / "paper_claims" / "__init__.py").write_text("raise RuntimeError('imported')\n", "utf-8")
    (root / "paper_claims" / "sound.py").write_text(GOOD, "utf-8")
    (root / "paper_claims" / "wrong.py").write_text("def f(:\n", "utf-8")
    (root / "paper_claims" / "binary.py").write_bytes(b"\xff\xfe\x00")
    (root / "paper_claims" / "inner" / "__init__.py").write_text(GOOD, "utf-8")
    (root / "single_claim.py").write_text(GOOD, "utf-8")
    monkeypatch.syspath_prepend(root)
    points = {
        "sound": "paper_claims.sound",
        "folder": "paper_claims.inner",
        "single": "single_claim:Trial",
        "gone": "nowhere_to_be_found.claim",
        "inner-gone": "paper_claims.nowhere",
        "plain-decay": "single_claim",
        "wrong": "paper_claims.wrong",
        "binary": "paper_claims.binary",
        "empty": "",
        **dict.fromkeys(HOSTILE, "paper_claims.sound"),
    }
    listed = [EntryPoint(name, value, catalogue.GROUP) for name, value in points.items()]
    monkeypatch.setattr(catalogue, "entry_points", lambda group: listed)
    monkeypatch.setattr(catalogue, "registered", REGISTERED)
    REGISTERED.cache_clear()
    yield root
    REGISTERED.cache_clear()
    for name in [name for name in sys.modules if name.startswith(("paper_claims", "single_claim"))]:
        del sys.modules[name]


def test_packages_register_claims_and_broken_ones_are_said(packages):
    with pytest.warns(Broken) as said:
        lines = catalogue.catalogue()
    assert list(lines)[-3:] == ["folder", "single", "sound"]
    assert lines["sound"].path == packages / "paper_claims" / "sound.py"
    assert lines["folder"].path == packages / "paper_claims" / "inner" / "__init__.py"
    assert lines["sound"].says == "A claim of a package."
    assert lines["plain-decay"].origin == "steepest"
    assert "paper_claims" not in sys.modules  # nothing of the package was imported
    texts = [str(warning.message) for warning in said if warning.category is Broken]
    assert len(texts) == 6 + len(HOSTILE)
    assert sum("lower-case words joined by hyphens" in text for text in texts) == len(HOSTILE)
    assert not any("\x1b" in text for text in texts)
    assert all("\n" not in text and text.startswith("the claim ") for text in texts)
    for name, reason in (
        ("gone", "there is no module nowhere_to_be_found; install the package again"),
        ("inner-gone", "paper_claims has no module paper_claims.nowhere"),
        ("plain-decay", "the name is taken by steepest"),
        ("wrong", "invalid syntax in line 1"),
        ("binary", ""),
        ("empty", ""),
    ):
        assert any(f"the claim {name!r} of " in text and reason in text for text in texts), name


def test_sources_of_packages_are_parsed_once_for_all_commands(packages, monkeypatch):
    """As those of this package: a second command knows their first sentences, and one that changed is read again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(packages / "cache"))
    monkeypatch.setattr("steepest.cache.TICK", -1)  # files that were written a moment ago count too
    parsed = []
    honest = catalogue.first_sentence
    parse = lambda path: (parsed.append(path.name), honest(path))[1]
    monkeypatch.setattr(catalogue, "first_sentence", parse)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Broken)
        first = catalogue.registered()
        assert "sound.py" in parsed
        parsed.clear()
        REGISTERED.cache_clear()
        assert catalogue.registered() == first
        assert set(parsed) == {"wrong.py", "binary.py"}
        (packages / "paper_claims" / "sound.py").write_text(GOOD.replace("A claim", "Another"))
        REGISTERED.cache_clear()
        assert catalogue.registered()["sound"].says.startswith("Another")


def test_a_claim_of_a_package_is_loaded_when_it_is_asked_for(packages):
    (packages / "paper_claims" / "__init__.py").write_text("", "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kind = load("sound")
        line = entry("sound")
    assert kind.__module__ == "paper_claims.sound"
    assert line.target == "sound"


def test_a_package_that_cannot_be_imported_is_one_sentence(packages):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        line = entry("sound")
    with pytest.raises(UserError, match="cannot import .*sound.*RuntimeError: imported") as caught:
        load(line)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------------------------------------------- files


def write(folder, name, text):
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def test_a_file_is_a_claim(tmp_path):
    path = write(tmp_path, "my_claim.py", GOOD)
    line = entry(path)
    assert (line.name, line.chapter, line.says) == ("my-claim", "files", "A claim of a package.")
    assert line.target == str(path)
    assert load(path).__name__ == "Trial"


def test_a_claim_that_lacks_a_part_is_told_which(tmp_path):
    path = write(tmp_path, "my_claim.py", GOOD.replace("    def judge(", "    def judges("))
    with pytest.raises(UserError, match=r"Trial of .*my_claim.py lacks judge: a claim defines"):
        load(path)


NO_CLAIM = '"""Nothing."""\n\nfrom steepest.kit import Claim, Point\n'
TWO = GOOD + "\n\n@kit.claim\nclass Second(Trial):\n    pass\n"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("missing.py", None, r"there is no file .*missing.py; steepest new missing.py writes one"),
        ("broken.py", "x = 1\ndef f(:\n", r"cannot read .*broken.py: invalid syntax in line 2"),
        ("zero.py", "x = '\0'\n", r"cannot read .*zero.py: "),
        ("nothing.py", NO_CLAIM, r"nothing.py must define exactly one claim, .*; got none"),
        ("two.py", TWO, r"two.py must define exactly one claim, .*; got Trial, Second"),
        (
            "catapult.py",
            GOOD,
            r"the name 'catapult' is taken by steepest; give the file .*catapult.py",
        ),
        ("Bad Name.py", GOOD, r"a claim is called like its file, .* got Bad Name.py"),
        ("_hidden.py", GOOD, r"a claim is called like its file, .* got _hidden.py"),
        (
            "raises.py",
            "x = 1\n\nprint(1 / 0)\n",
            r"raises.py: ZeroDivisionError in line 3: division",
        ),
        ("lines.py", 'raise ValueError("one\\ntwo")\n', r"lines.py: ValueError in line 1: one$"),
        (
            "needs.py",
            "import no_such_module\n",
            r"needs.py: ModuleNotFoundError in line 1: No module",
        ),
        ("exits.py", "import sys\n\nsys.exit(3)\n", r"exits.py: SystemExit in line 3"),
        (
            "field.py",
            GOOD.replace("seeds: kit.Seeds = kit.param(4,", "table: dict = kit.param(None,"),
            r"table of Trial is .*; a field is a number, a word or a tuple of them",
        ),
    ],
)
def test_trouble_with_a_file_is_one_sentence_that_names_it(tmp_path, name, text, sentence):
    path = tmp_path / name
    if text is not None:
        path.write_text(text, "utf-8")
    with pytest.raises(UserError, match=sentence) as caught:
        kind = load(path)
        kind()
    assert "\n" not in str(caught.value)


def test_a_folder_called_like_a_file_is_none(tmp_path):
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(UserError, match="there is no file"):
        entry(tmp_path / "folder.py")


def test_a_name_of_a_file_without_its_ending_gets_a_hint(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "my_claim.py", GOOD)
    with pytest.raises(UserError, match=r"for a claim of your own name its file, my_claim.py"):
        entry("my_claim")


def test_a_changed_file_is_imported_anew(tmp_path):
    path = write(tmp_path, "my_claim.py", GOOD)
    first = load(path)
    assert load(path) is first
    write(tmp_path, "my_claim.py", GOOD.replace("kit.param(0.5,", "kit.param(0.6,"))
    second = load(path)
    assert (first().rate, second().rate) == (0.5, 0.6)
    assert load(path) is second


def test_a_file_that_was_mended_is_imported(tmp_path):
    path = write(tmp_path, "my_claim.py", "1 / 0\n")
    with pytest.raises(UserError, match="ZeroDivisionError"):
        load(path)
    write(tmp_path, "my_claim.py", GOOD)
    assert load(path)().rate == 0.5


def with_neighbour(folder, rate):
    folder.mkdir(exist_ok=True)
    write(folder, "shared_helper.py", f"RATE = {rate}\n")
    text = GOOD.replace("import numpy as np\n", "import numpy as np\nimport shared_helper\n")
    text = text.replace("kit.param(0.5,", "kit.param(shared_helper.RATE,")
    return write(folder, "my_claim.py", text)


def test_a_changed_neighbour_is_imported_anew(tmp_path):
    """At once, with as many characters, in the same second."""
    path = with_neighbour(tmp_path / "a", 0.1)
    assert load(path)().rate == 0.1
    for rate in (0.2, 0.3):
        write(tmp_path / "a", "shared_helper.py", f"RATE = {rate}\n")
        assert load(path)().rate == rate


def test_neighbours_of_one_name_in_two_folders_are_kept_apart(tmp_path):
    one = with_neighbour(tmp_path / "a", 0.1)
    other = with_neighbour(tmp_path / "b", 0.2)
    assert [load(path)().rate for path in (one, other, one, other)] == [0.1, 0.2, 0.1, 0.2]


def test_a_module_of_the_users_own_session_stays_theirs(tmp_path, monkeypatch):
    """A script has imported a helper of its own before; the claim gets its neighbour, the script keeps its helper."""
    mine = tmp_path / "mine"
    mine.mkdir()
    write(mine, "shared_helper.py", "RATE = 7\n")
    monkeypatch.syspath_prepend(mine)
    monkeypatch.delitem(sys.modules, "shared_helper", raising=False)
    files._BROUGHT.discard("shared_helper")
    import shared_helper

    path = with_neighbour(tmp_path / "a", 0.1)
    assert load(path)().rate == 0.1
    assert sys.modules["shared_helper"] is shared_helper
    assert str(tmp_path / "a") not in sys.path
    monkeypatch.delitem(sys.modules, "shared_helper")


def test_a_list_imports_nothing_heavy_and_no_claim():
    code = (
        "import sys, steepest; names = list(steepest.claims())\n"
        "heavy = [name for name in ('jax', 'numpy', 'scipy', 'matplotlib') if name in sys.modules]\n"
        "print(len(names), heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=1)[1].strip() == "[]"


# -------------------------------------------------------------------------------------- somebody else's results


def test_a_file_that_only_a_stored_sweep_names_is_not_imported(tmp_path, monkeypatch):
    """Nor one that the reader has run, once it is another: results and files are copied together."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = write(tmp_path, "my_claim.py", GOOD)
    planned = plan(path, {"rate": [0.1, 0.2]})
    results = tmp_path / "results"
    keep(planned, results)
    assert [stored.key for stored in stored_plans(results)] == [planned.key]  # this reader's own
    mark = tmp_path / "ran"
    write(tmp_path, "my_claim.py", GOOD + f"\nopen({str(mark)!r}, 'w').close()\n")
    with pytest.warns(Damaged, match="runs only where you name it yourself: steepest run"):
        assert not list(stored_plans(results))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of_another_reader"))
    with pytest.warns(Damaged, match="runs only where you name it yourself"):
        assert not list(stored_plans(results))
    assert not mark.exists()


def test_nothing_is_written_or_removed_where_a_link_in_results_leads(tmp_path, small):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in (".bash-profile", ".new-file-1", "own.txt"):
        (elsewhere / name).write_text("mine", "utf-8")
        os.utime(elsewhere / name, (0, 0))
    results = tmp_path / "results"
    results.mkdir()
    (results / "plain-decay").symlink_to(elsewhere)
    with pytest.raises(
        UserError, match="plain-decay is a link, and nothing is written where it leads"
    ):
        run("plain-decay", store=Store(results))
    with pytest.raises(UserError, match="is a link"):
        work(plan("plain-decay", {"rate": [0.1]}), results)
    (results / "plain-decay").unlink()
    (results / "plain-decay").mkdir()
    (results / "plain-decay" / "points").symlink_to(elsewhere)
    with pytest.raises(UserError, match="points is a link"):
        work(plan("plain-decay", {"rate": [0.1]}), results)
    assert {path.name for path in elsewhere.iterdir()} == {
        ".bash-profile",
        ".new-file-1",
        "own.txt",
    }


@pytest.mark.parametrize("name", ["result.json", "arrays.npz", "panels.json"])
def test_files_of_a_result_that_are_links_or_pipes_are_not_waited_for(tmp_path, small, name):
    results = tmp_path / "results"
    run("plain-decay", store=Store(results))
    ((folder, _),) = Store(results)
    (folder / name).rename(folder / "kept")
    os.mkfifo(folder / name)
    for _ in range(2):
        with pytest.warns(Damaged):
            assert not list(Store(results))
        (folder / name).unlink()
        (folder / name).symlink_to(folder / "kept")


def test_a_source_that_a_record_names_is_read_and_not_believed(tmp_path, small):
    results = tmp_path / "results"
    path = write(tmp_path, "my_claim.py", GOOD)
    run(path, store=Store(results))
    path.write_text("no Python at all (", "utf-8")
    ((_, result),) = Store(results)
    reason = "the claim's source cannot be read, so nobody can tell"
    assert staleness(entry_of(result), result) == reason
