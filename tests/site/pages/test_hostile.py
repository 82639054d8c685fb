"""Results, logs and reports of somebody else's: nothing in them runs, leads away or looks like a part of the page."""

import json
import re
import shutil
import warnings
from base64 import b64encode
from hashlib import sha256
from xml.etree import ElementTree

import pytest

from steepest.app.referee import show_review, write_review
from steepest.core.panels import Map, Panel, observed_curve
from steepest.core.records import canonical_digest
from steepest.core.words import Verdict
from steepest.engine.referee import Finding, Flaw, Review, SettingRun, Severity
from steepest.engine.results import Result
from steepest.engine.store import Damaged, Store
from steepest.engine.trials import TrialPlan, Trials
from steepest.measurement import Reading, Report, compare, watch
from steepest.site import drawing, pages
from steepest.site.pages import (
    comparison_page,
    formula,
    report_page,
    subject_page,
    training_page,
    trials_page,
)
from steepest.site.pages._drawn import ON_PAGES, TO_TAKE, drawn_files
from steepest.site.pages._figures import harmless, inline
from steepest.site.pages._safe import MATHML, SVG
from tests.site.pages.test_pages import Reader

FORGED = (
    r"\text{<script>alert(1)</script>}",
    r"\text{</math><img src=x onerror=alert(1)>}",
    r"\mathrm{<iframe srcdoc='<script>alert(1)</script>'>}",
    r"\mbox{<svg onload=alert(1)>}",
    r"\textbf{<style>*{display:none}</style>}",
    r"\operatorname{<b onclick=alert(1)>x</b>}",
    r"\href{javascript:alert(1)}{x}",
    r"\href{https://example.org}{x}",
    r"\style{position:fixed;inset:0;background:white}{x}",
    r"\class{badge holds}{x}",
    r"\color{red;background:url(https://example.org/a.png)}{x}",
    r"\hspace{9999em} \rule{9999em}{9999em}",
    r"\text{&#x3c;script&#x3e;alert(1)&#x3c;/script&#x3e;}",
    r"\text{<![CDATA[<script>alert(1)</script>]]>}",
    r"\text{<!--} x \text{--><script>}",
    r"\begin{array}{<script>} a & b \end{array}",
    r"\unicode{x3c}script\unicode{x3e}",
    "\x00\x1b]0;title\x07 \u202e \ud800",
    "{",
    r"\frac{",
    r"\left( x",
    "{" * 3000,
)
NAMES = {"javascript:alert(1)", 'x" onmouseover="alert(1)', "<img src=x onerror=alert(1)>", "..a"}
EVIL = (
    "</title></style></script><script>alert(1)</script><img src=x onerror=alert(1)>"
    "\x1b[2J\x9b2J\x85\x7f\u202e\"' onclick=alert(1) `</code><script>alert(1)</script>` "
)


@pytest.mark.parametrize("latex", FORGED, ids=lambda latex: repr(latex)[:30])
def test_a_statement_is_mathematics_and_nothing_else(latex):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = formula(latex)
    root = ElementTree.fromstring(text)
    for part in root.iter():
        assert part.tag in MATHML.elements
        named = dict(part.attrib) if part is not root else {}
        assert all(MATHML.admits(name, value) for name, value in named.items()), named
    assert set(root.attrib) == {"display", "alttext"}
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ud800]", text)


def test_what_cannot_be_read_is_printed_as_it_is_and_said():
    with pytest.warns(UserWarning, match="cannot be read .* printed as it is"):
        assert r"<mtext>\frac{</mtext>" in formula(r"\frac{")


@pytest.mark.parametrize(
    "part",
    [
        "<script>alert(1)</script>",
        "<style>@import url(https://example.org/a.css);</style>",
        "<foreignObject><body xmlns='http://www.w3.org/1999/xhtml' onload='alert(1)'/></foreignObject>",
        "<a xlink:href='javascript:alert(1)'><text>x</text></a>",
        "<use xlink:href='data:image/svg+xml;base64,AAAA#a'/>",
        "<use xlink:href='https://example.org/a.svg#a'/>",
        "<image xlink:href='data:image/png;base64,AAAA&quot; onload=&quot;alert(1)'/>",
        "<rect onmouseover='alert(1)' width='1'/>",
        "<rect style='fill:URL(https://example.org/a)'/>",
        "<rect style='fill: image-set(&quot;https://example.org/a&quot; 1x)'/>",
        "<rect style='fill:u\\72l(https://example.org)'/>",
        "<g clip-path='Url( https://example.org/a)'><rect width='1'/></g>",
        "<set attributeName='href' to='javascript:alert(1)'/><animate attributeName='x'/>",
    ],
)
def test_a_stored_drawing_is_a_plot_and_nothing_else(part):
    svg = (
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' "
        f"viewBox='0 0 9 9' onload='alert(1)'>{part}</svg>"
    )
    for text in (inline(svg, "p-", "words"), harmless(svg)):
        root = ElementTree.fromstring(text)
        local = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert local - {"style"} <= SVG.elements
        assert "alert" not in text and "example.org" not in text and "onload" not in text


def test_forged_drawings_beside_a_result_bring_nothing_into_the_pages(tmp_path):
    panels = [Panel("Rate", "width", "rate", (observed_curve([1.0, 2.0], [3.0, 4.0], "seen"),))]
    honest = pages.drawn(panels, tmp_path), drawn_files(panels, tmp_path)
    for name in (ON_PAGES, TO_TAKE):
        record = json.loads((tmp_path / name).read_text("utf-8"))
        record.pop("digest")
        evil = [
            text.replace("</svg>", "<script>alert(1)</script></svg>") for text in record["drawings"]
        ]
        record["drawings"] = evil
        text = json.dumps({**record, "digest": canonical_digest(record)})
        (tmp_path / name).write_text(text, "utf-8")
    assert drawn_files(panels, tmp_path) == honest[1]
    assert "alert" not in inline(pages.drawn(panels, tmp_path).figures[0], "p-", "words")
    for wrong in ([], ["<svg"], [5], None):
        record["drawings"] = wrong
        (tmp_path / ON_PAGES).write_text(json.dumps({**record, "digest": canonical_digest(record)}))
        assert pages.drawn(panels, tmp_path) == honest[0]


def forge(folder, change):
    """Change a stored result as somebody would who knows the checksums."""
    file = folder / "result.json"
    record = json.loads(file.read_text("utf-8"))
    record.pop("digest")
    change(record)
    record["digest"] = canonical_digest(record)
    file.write_text(json.dumps(record), "utf-8")


def words(record, inside=""):
    """Put something evil behind each text of a record that pages print, and before it."""
    kept = {
        "claim",
        "verdict",
        "preset",
        "kind",
        "basis",
        "relation",
        "target",
        "files",
        "stamp",
        "axes",
        "id",
    }
    kept |= {
        "counts",
        "decides",
        "law",
        "axis",
        "by",
        "challenged_by",
        "observed_at",
        "params",
        "source_of_error",
        "check",
    }
    for name, value in (
        list(record.items()) if isinstance(record, dict) else list(enumerate(record))
    ):
        if name in kept or (inside, name) == ("rival_predictions", "label"):
            continue
        if isinstance(value, str):
            record[name] = f"{EVIL}{value}{EVIL}"
        elif isinstance(value, dict | list):
            words(value, name if isinstance(name, str) else inside)


def test_a_forged_result_has_a_page_on_which_nothing_runs(stored, tmp_path, catalogue):
    results = tmp_path / "results"
    shutil.copytree(stored / "powerless", results / "powerless")
    ((folder, _),) = Store(results)
    forge(folder, words)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        atlas = pages.build(results, tmp_path / "atlas").parent
    page = atlas / "powerless" / "index.html"
    assert page.read_text("utf-8").count("alert(1)") > 40
    for path in (page, atlas / "index.html"):
        check_page(path)


def check_page(path, scripts=0):
    """Nothing that runs, loads or leads away stands in a page, and its policy is there before anything else."""
    reader = Reader(path)  # it is well formed: no text has closed an element
    tags = [tag for tag, _ in reader.elements]
    assert tags.count("script") == scripts
    assert not {"iframe", "img", "object", "embed", "base", "form", "foreignobject"} & set(tags)
    for tag, found in reader.elements:
        assert not [name for name in found if name.startswith("on")], tag
        for name in ("href", "src", "xlink:href", "action"):
            assert not re.match(r"\s*(javascript|vbscript|data:text)", found.get(name) or ""), found
    assert tags[3] == "meta" and "charset" in reader.elements[2][1]
    assert reader.elements[3][1]["http-equiv"] == "Content-Security-Policy"
    text = path.read_text("utf-8")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)


def test_every_kind_of_page_has_a_policy_and_takes_hostile_words(tmp_path):
    lines = [
        {
            "step": step,
            "lr": 0.1,
            "title": EVIL,
            "warnings": [EVIL],
            "quantities": {
                name: {"value": 1.0 + step, "compared": 2.0, "theory": EVIL, "interpretation": EVIL}
                for name in (
                    "risk",
                    f"sharpness {EVIL}",
                    r"$\frac$",
                    r"a $\nonsense{x}$ b",
                    "cost in $",
                )
            },
        }
        for step in range(4)
    ]
    log = tmp_path / "run.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    check_page(training_page(watch(log), tmp_path / "run.html"))
    reading = Reading(EVIL, 0.5, interpretation=EVIL, theory=EVIL, parts={EVIL: 1.0, "b": 2.0})
    report = Report(EVIL, 3, 5, (reading,), 1, 0.1)
    check_page(report_page(report, tmp_path / "report.html"))
    check_page(comparison_page(compare(report, report), tmp_path / "compared.html"))


def test_pages_without_scripts_allow_none_and_diagrams_allow_their_own(swept):
    for path in sorted(swept.rglob("*.html")):
        text = path.read_text("utf-8")
        rule = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)[1]
        rules = dict(part.split(" ", 1) for part in rule.replace("&#39;", "'").split("; "))
        assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
        inline_scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
        hashes = [b64encode(sha256(script.encode()).digest()).decode() for script in inline_scripts]
        wanted = " ".join(
            [f"'sha256-{digest}'" for digest in hashes] + ["'strict-dynamic'"] * bool(hashes)
        )
        assert rules.get("script-src", "") == wanted
        assert ("sweep-" in path.name) == bool(hashes)


def test_a_page_of_the_book_runs_its_own_scripts_alone():
    text = '<html><head><title>t</title></head><body><script>one()</script><script src="a.js"></script></body>'
    rule = re.search(r'content="([^"]*)"', pages.guarded(text))[1]
    digest = b64encode(sha256(b"one()").digest()).decode()
    assert f"script-src 'self' file: 'sha256-{digest}'" in rule and rule.count("sha256") == 1
    assert "'unsafe-inline'" not in rule.partition("script-src")[2]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_folder_of_results_called_like_no_claim_is_left_out(stored, tmp_path, catalogue, name):
    """It would be the address of a link: javascript:alert(1)/index.html."""
    results = tmp_path / "results"
    (folder,) = [folder for folder, result in Store(stored) if result.claim == "growing"]
    record = json.loads((folder / "result.json").read_text("utf-8"))
    asked = {"claim": name, "version": record["claim_version"]}
    asked |= {part: record[part] for part in ("params", "preset", "seed")}
    place = results / name / canonical_digest(asked)[:16]
    shutil.copytree(folder, place)
    shutil.copytree(stored / "powerless", results / "powerless")
    forge(place, lambda record: record.update(claim=name))
    with pytest.warns(Damaged, match="no claim is called like its folder"):
        atlas = pages.build(results, tmp_path / "atlas").parent
    assert name not in (atlas / "index.html").read_text("utf-8")


def test_control_characters_and_stray_dollars_of_labels_are_drawn_as_they_are():
    label = "a $\\frac$ b \x1b[31m \u202e \ud800"
    curve = observed_curve([0, 1], [0, 1], label)
    for panel in (
        Panel(label, label, label, (curve,)),
        Map(
            label,
            label,
            label,
            [0, 1],
            [0, 1],
            [[0, 1], [1, 0]],
            label,
            words=(label, "b"),
            curves=(curve,),
        ),
    ):
        for draw in (drawing.thumbnail, drawing.page_svg):
            root = ElementTree.fromstring(inline(draw(panel), "p-", label))
            assert "\x1b" not in "".join(root.itertext())
    right = Panel("a", "b", r"the rate $\alpha$", (curve,))
    assert "α" in inline(drawing.thumbnail(right), "p-", "")


def test_forged_points_have_a_page_of_trials_on_which_nothing_runs(tmp_path, catalogue):
    plan = TrialPlan("plain-decay", 6, 0, "tiny")
    verdicts = ("holds", "fails", "inconclusive", "out-of-range", "crashed", "crashed")
    records = tuple({"verdict": verdict, "reason": EVIL} for verdict in verdicts)
    page = trials_page(Trials(plan, records), tmp_path / "trials.html")
    assert page.read_text("utf-8").count("alert(1)") > 10
    check_page(page)


def reviewed(says):
    """A review whose every text is somebody else's."""
    numbers = {
        "kinds": [says, says],
        "undecided": {says: [says]},
        "accepted": {says: says},
        "failed_by": {says: [says]},
        "arrays": [says],
        "observed": [says],
        "nulls": [says, f"-{says}"],
        "room": 0.3,
        "notices": 0.3,
        "functions": [f"a.{says}", says],
        "clause": says,
        "words": [says],
        "value": 0.3,
        "how": says,
        "reason": says,
        "changes": {says: says, "b": (says, 1.0)},
        "place": "inside",
        "verdict": Verdict.FAILS,
    }
    sized = {**numbers, "kinds": ["x 0.9", "x 1.1"]}
    findings = tuple(
        Finding(
            flaw,
            severity,
            says,
            says,
            (says, says),
            sized if flaw is Flaw.SIZE_NOT_TOLD else numbers,
            says,
        )
        for flaw in Flaw
        for severity in Severity
    )
    runs = tuple(
        SettingRun({says: says}, "outside", verdict, says, says, 1.0)
        for verdict in (*Verdict, None)
    )
    return Review("plain-decay", says, Verdict.HOLDS, "quick", 0, findings, 9, runs, 1.0)


def test_a_review_of_hostile_words_has_a_page_on_which_nothing_runs(tmp_path, capsys):
    page = write_review(reviewed(EVIL), tmp_path / "referee.html")
    assert page.read_text("utf-8").count("alert(1)") > 100
    check_page(page)
    show_review(reviewed(EVIL))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", "".join(capsys.readouterr()))


def on_a_subject(result):
    """A record of a result as if it were one on a reader's network."""
    record = result.to_json()
    record["about"]["subject"] = {
        "where": "my_model.py:build",
        "says": "it decays",
        "model": "Sequential",
        "weights": 7,
        "examples": 5,
        "seeded": False,
        "networks": 1,
        "expected_seconds": 1.0,
        "plainly": [{"check": "rate", "verdict": "holds", "text": "the rate is `x`"}],
        "notes": ["a note"],
        "left_out": {"path": "as it takes too long"},
        "assumed": ["it is trained by plain SGD"],
    }
    return record


def test_a_forged_result_on_a_network_has_a_page_on_which_nothing_runs(stored, tmp_path, catalogue):
    result = next(result for _, result in Store(stored) if result.claim == "powerless")
    record = on_a_subject(result)
    words(record)
    record["about"]["subject"]["left_out"] = {EVIL: EVIL}
    page = subject_page(Result.from_json(record, panels=result.panels), tmp_path / "subject.html")
    assert page.read_text("utf-8").count("alert(1)") > 40
    check_page(page)
