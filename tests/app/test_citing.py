"""How to cite a verdict: what the store knows, and BibTeX."""

import json
import re
from pathlib import Path

import pytest

from steepest import __version__
from steepest.app.citing import bibtex_of_steepest, citation_file
from steepest.app.cli import main
from steepest.app.contract import is_described
from steepest.catalogue import load
from tests.small import small_catalogue

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", autouse=True)
def _claims(tmp_path_factory):
    with small_catalogue(tmp_path_factory.mktemp("claims")):
        yield


def test_a_stored_verdict_is_cited_with_its_code_and_versions(capsys):
    assert main(["run", "plain-decay", "--seed", "3", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert main(["cite", "plain-decay", "--seed", "3"]) == 0
    text = capsys.readouterr().out
    for words in (
        "version   1 of the claim; its own block of seeds is 1000, 1001, …",
        "preset quick, seed 3",
        f"holds ({result['reason']})",
        result["observed_at"],
        *result["stamp"].values(),
        f"NumPy {result['versions']['numpy']}",
        f"JAX {result['versions']['jax']}",
        f"Steepest {__version__}, claim plain-decay, version 1: holds at preset quick, seed 3; observed on ",
        "@software{steepest,",
        "@article{cohen2021,",
        "@article{zinkevich2003,",
    ):
        assert words in text, words
    assert "stale" not in text and "nobody1999" not in text


def test_the_same_as_json(capsys):
    main(["run", "plain-decay", "--json"])
    result = json.loads(capsys.readouterr().out)
    assert main(["cite", "plain-decay", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    for name in ("claim", "verdict", "reason", "observed_at", "judged_at", "stamp", "versions"):
        assert record[name] == result[name], name
    assert record["first_seed_of_version"] == 1000
    assert record["works"] == ["cohen2021", "zinkevich2003"]
    assert [entry.partition("{")[2].partition(",")[0] for entry in record["bibtex"]] == [
        "steepest",
        "cohen2021",
        "zinkevich2003",
    ]


@pytest.mark.parametrize("words", [[], ["--preset", "full"], ["--seed", "7"]])
def test_without_a_result_it_says_so_and_gives_the_works(words, capsys, tmp_path):
    assert main(["cite", "plain-decay", *words]) == 0
    text = capsys.readouterr().out
    command = " ".join(["steepest run plain-decay", *words])
    assert f"is stored in results; {command} --out results computes it" in text
    assert "@software{steepest," in text and "@article{cohen2021," in text
    assert not (tmp_path / "results").exists()
    assert main(["cite", "plain-decay", *words, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] is None and record["stamp"] is None
    assert command in record["missing"]


def test_a_stale_verdict_is_said_to_be_one(capsys, monkeypatch):
    main(["run", "plain-decay"])
    capsys.readouterr()
    monkeypatch.setattr("steepest.app.citing.staleness", lambda line, result: "its code changed")
    main(["cite", "plain-decay"])
    assert "stale     its code changed" in capsys.readouterr().out


def test_a_file_of_ones_own_is_cited_too(capsys, tmp_path):
    main(["new", "my_claim.py"])
    main(["run", "my_claim.py"])
    capsys.readouterr()
    assert main(["cite", "my_claim.py"]) == 0
    text = capsys.readouterr().out
    assert "claim my-claim from my_claim.py, version 1" in text
    assert "The claim cites no work of the bibliography" in text


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["cite", "plain-deca"], "did you mean 'plain-decay'"),
        (["cite", "nothing.py"], "there is no file nothing.py"),
        (["cite"], "CLAIM"),
        (["cit", "plain-decay"], "did you mean 'cite'"),
        (["cite", "plain-decay", "--seed", "-1"], "a whole number"),
    ],
)
def test_bad_input_is_one_sentence(words, sentence, capsys):
    try:
        code = main(words)
    except SystemExit as end:
        code = end.code
    assert code == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1


def test_the_citation_file_is_what_the_package_says():
    assert (ROOT / "CITATION.cff").read_text("utf-8") == citation_file()


def test_the_package_says_what_the_project_says():
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    described = re.search(r'description = "(.*)"', project)
    assert described and described[1] in citation_file()
    assert f'version: "{__version__}"' in citation_file()
    assert 'license = "MIT"' in project and "license: MIT" in citation_file()
    assert f"version = {{{__version__}}}" in bibtex_of_steepest()


def test_check_says_which_citation_is_of_no_work():
    main(["new", "my_claim.py"])
    path = Path("my_claim.py")
    text = path.read_text("utf-8")
    path.write_text(
        re.sub(r'source = ".*"', 'source = "[@cohen2021], [@lewkowitz2020]"', text), "utf-8"
    )
    (missing,) = is_described(load(path))
    assert missing.startswith("source: there is no work 'lewkowitz2020'")
    assert missing.endswith("did you mean 'lewkowycz2020'?")
