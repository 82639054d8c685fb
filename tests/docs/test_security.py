"""SECURITY.md says what is true: each of its sentences has a test, here or where the code is tested."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src" / "steepest").rglob("*.py"))
HERE = "tests/docs/test_security.py"
PAGES = "tests/site/pages/test_hostile.py"
CATALOGUE = "tests/test_catalogue.py"
TERMINAL = "tests/app/test_terminal.py"
SENTENCES = {
    "JSON; arrays as": f"{HERE}::test_arrays_and_checkpoints_are_read_without_pickle",
    "Each result has checksums": "tests/engine/test_damage.py::",
    "`.npz` without pickle, or": f"{HERE}::test_arrays_and_checkpoints_are_read_without_pickle",
    "Nothing in them is executed": f"{HERE}::test_arrays_and_checkpoints_are_read_without_pickle",
    "One that would unpack": f"{TERMINAL}::test_a_checkpoint_that_unpacks_to_more_than_it_could_hold",
    "those that scikit-learn brings": f"{HERE}::test_no_pickle_and_no_network",
    "executed, with your rights": "tests/test_files.py::test_a_builders_file_runs_anew_each_time",
    "Treat such a file like": "tests/test_files.py::test_a_builders_file_runs_anew_each_time",
    "registered under the entry point": f"{CATALOGUE}::test_packages_register_claims_and_broken_ones_are_said",
    "A name that is not lower-case": f"{CATALOGUE}::test_packages_register_claims_and_broken_ones_are_said",
    "Somebody else's results": f"{PAGES}::test_a_forged_result_has_a_page_on_which_nothing_runs",
    "A folder of results that you copied": f"{PAGES}::test_a_forged_result_has_a_page_on_which_nothing_runs",
    "A file that a stored sweep names": f"{CATALOGUE}::test_a_file_that_only_a_stored_sweep_names_is_not_imported",
    "A claim's name in it": f"{PAGES}::test_a_folder_of_results_called_like_no_claim_is_left_out",
    "Nothing is written or removed": f"{CATALOGUE}::test_nothing_is_written_or_removed_where_a_link_in_results_leads",
    "Names of your files": "tests/test_files.py::test_a_file_shadows_no_module",
    "A file of yours takes": "tests/test_files.py::test_a_file_shadows_no_module",
    "No pickle is ever read": f"{HERE}::test_no_pickle_and_no_network",
    "Nothing is fetched": f"{HERE}::test_no_pickle_and_no_network",
    "Pages and the book open": "tests/site/pages/test_pages.py::test_nothing_comes_from_outside_and_nothing_runs",
    "The exceptions are those": f"{HERE}::test_no_pickle_and_no_network",
    "Processes": "tests/engine/sweeps/test_workers.py::",
    "A local pool": "tests/engine/sweeps/test_workers.py::",
    "A Dask cluster": "tests/engine/sweeps/test_workers.py::",
    "Pages": f"{PAGES}::test_every_kind_of_page_has_a_policy_and_takes_hostile_words",
    "Texts of results": f"{PAGES}::test_every_kind_of_page_has_a_policy_and_takes_hostile_words",
    "Formulas and figures keep": f"{PAGES}::test_a_statement_is_mathematics_and_nothing_else",
    "Every page has": f"{PAGES}::test_pages_without_scripts_allow_none_and_diagrams_allow_their_own",
    "A page made from": f"{PAGES}::test_a_forged_result_has_a_page_on_which_nothing_runs",
    "Terminal": f"{TERMINAL}::test_lines_and_json_of_ours",
    "Characters that control": f"{TERMINAL}::test_all_that_is_printed_goes_through_one_place",
    "What your own program": f"{HERE}::test_what_a_readers_program_prints_is_its_own",
}


def sentences():
    """What the first section says, sentence by sentence."""
    text = (ROOT / "SECURITY.md").read_text("utf-8").split("## ")[1]
    rows = [row.strip("| ").split(" | ")[1] for row in text.splitlines() if row.startswith("| ")][
        1:
    ]
    bullets = re.findall(r"^\* (.*?)(?=^\* |\Z)", text, re.DOTALL | re.MULTILINE)
    for part in (*rows, *bullets):
        plain = " ".join(part.replace("**", "").split())
        yield from re.split(r"(?<=[.:])\s+(?=[A-Z])", plain)


def test_each_sentence_has_a_test():
    said = list(sentences())
    assert len(said) > 20
    for sentence in said:
        starts = [start for start in SENTENCES if sentence.startswith(start)]
        assert starts, sentence
        file, _, name = SENTENCES[max(starts, key=len)].partition("::")
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        tests = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        assert name in tests if name else any(test.startswith("test_") for test in tests), sentence
    for start in SENTENCES:
        assert any(sentence.startswith(start) for sentence in said), (
            f"nothing says {start!r} any more"
        )


def calls():
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                yield path, ast.unparse(node.func), {word.arg: word.value for word in node.keywords}


def test_arrays_and_checkpoints_are_read_without_pickle():
    loads = [
        (path, name, words) for path, name, words in calls() if name in ("np.load", "torch.load")
    ]
    assert len(loads) >= 5
    for path, name, words in loads:
        word = {"np.load": "allow_pickle", "torch.load": "weights_only"}[name]
        assert ast.literal_eval(words[word]) is (name == "torch.load"), path


def test_no_pickle_and_no_network():
    """No module that reads pickles, executes text, or speaks to a network is imported anywhere; sockets stay inside."""
    refused = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "yaml"}
    refused |= {
        "urllib",
        "http",
        "requests",
        "httpx",
        "aiohttp",
        "ftplib",
        "smtplib",
        "webbrowser",
        "ssl",
    }
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & refused, path
    fetching = [name for _, name, _ in calls() if re.search(r"\bfetch_|urlopen|urlretrieve", name)]
    assert not fetching
    sockets = {path.name for path, name, _ in calls() if name.startswith("socket.")}
    assert sockets <= {"stopping.py"}  # a pair inside of one process
    assert not [path for path, name, _ in calls() if name in ("eval", "exec", "os.system")]


@pytest.mark.parametrize("where", ["stdout", "stderr"])
def test_what_a_readers_program_prints_is_its_own(tmp_path, capfd, where):
    from steepest.measurement import Builder

    text = f"import sys\nsys.{where}.write('\\x1b[1mmine\\x1b[0m\\n')\n\ndef build():\n    return 1, 2, 3\n"
    (tmp_path / "net.py").write_text(text, "utf-8")
    Builder.of(f"{tmp_path / 'net.py'}:build")()
    assert "\x1b[1mmine\x1b[0m" in "".join(capfd.readouterr())
