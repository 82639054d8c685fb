"""What a release needs says the same everywhere: versions, workflows, forms, the script that tries the wheel."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml

from steepest import __version__

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FORGE = ROOT / ".github"
WORKFLOWS = sorted((FORGE / "workflows").glob("*.yml"))
FORMS = sorted(
    set((FORGE / "ISSUE_TEMPLATE").glob("*.yml")) - {FORGE / "ISSUE_TEMPLATE/config.yml"}
)
FIELDS = {"input", "textarea", "dropdown", "checkboxes", "markdown"}
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))


def workflow(path):
    return yaml.safe_load(path.read_text("utf-8"))


def steps(path):
    """All steps of all jobs."""
    return [step for job in workflow(path)["jobs"].values() for step in job["steps"]]


def commands(path):
    return [step["run"] for step in steps(path) if "run" in step]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_name_what_is_there(path):
    for command in commands(path):
        for word in re.findall(r"\.ci/\w+", command):
            assert (ROOT / word).is_file(), f"{path.name} names {word}"
        for title in re.findall(r'\.ci/readme "(.*)"', command):
            assert f"\n{title}" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_ask_for_no_more_than_they_need(path):
    """They read the repository unless a job says what else it needs, end some time, and name versions of actions."""
    assert workflow(path)["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in workflow(path)["jobs"].values())
    assert all("@" in step["uses"] for step in steps(path) if "uses" in step)


def test_every_version_of_python_that_is_promised_is_tested():
    jobs = workflow(FORGE / "workflows" / "tests.yml")["jobs"]
    assert PYTHONS
    assert all(job["strategy"]["matrix"]["python"] == PYTHONS for job in jobs.values())
    (trial,) = [
        command
        for command in commands(FORGE / "workflows" / "release.yml")
        if command.startswith("bash .ci/release")
    ]
    assert set(re.findall(r" python(3\.\d+)", trial)) == set(PYTHONS)


def test_the_lowest_version_of_python_is_the_one_that_is_required():
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_are_complete(path):
    form = workflow(path)
    assert {"name", "description", "body"} <= set(form)
    names = [field["id"] for field in form["body"]]
    assert len(set(names)) == len(names)
    for field in form["body"]:
        assert field["type"] in FIELDS
        assert field["attributes"]["label"]


def test_the_changelog_has_a_section_for_this_version():
    sections = re.findall(
        r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE
    )
    assert sections[0] == "Unreleased"
    assert __version__ in sections


def test_every_dependency_has_a_lowest_version():
    lowest = runpy.run_path(str(ROOT / ".ci" / "lowest.py"))["constraint"]
    for requirement in PROJECT["dependencies"]:
        assert re.fullmatch(r"[\w.-]+==[\d.]+", lowest(requirement))


def test_a_dependency_without_a_lowest_version_is_refused():
    lowest = runpy.run_path(str(ROOT / ".ci" / "lowest.py"))["constraint"]
    with pytest.raises(SystemExit, match="no lower bound"):
        lowest("numpy")


def test_the_package_says_that_it_has_types():
    assert (ROOT / "src" / "steepest" / "py.typed").is_file()


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"@(\w+)", (ROOT / "paper" / "paper.md").read_text("utf-8")))
    declared = set(
        re.findall(
            r"^@\w+\{(\w+),", (ROOT / "paper" / "paper.bib").read_text("utf-8"), re.MULTILINE
        )
    )
    assert cited == declared


def test_the_paper_has_the_authors_of_the_citation_file():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    head = (ROOT / "paper" / "paper.md").read_text("utf-8").split("---")[1]
    names = [author["name"] for author in yaml.safe_load(head)["authors"]]
    assert names == [author["name"] for author in citation["authors"]]
