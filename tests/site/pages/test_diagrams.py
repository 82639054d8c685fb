"""Pages of sweeps: whole without scripts, safe, and true to the table where a pointer reads them."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.core.panels import Map
from steepest.engine.store import Damaged
from steepest.engine.sweeps import Sweep, plan
from steepest.site.drawing import VERDICTS, named
from steepest.site.pages import _hover
from steepest.site.pages import build as build_atlas
from steepest.site.pages._build import MARKER
from steepest.site.pages._sheets import NONE, sheets
from tests.site.pages.sweeps import HOSTILE, by_claim, made
from tests.site.pages.test_build import files
from tests.site.pages.test_pages import WORKS, Reader

PAGE = "plain-decay/sweep-0123456789abcdef.html"


@pytest.fixture(scope="module")
def pages(swept):
    return {
        path.relative_to(swept).as_posix(): Reader(path) for path in sorted(swept.rglob("*.html"))
    }


@pytest.fixture(scope="module")
def diagrams(pages):
    return {name: page for name, page in pages.items() if "/sweep-" in name}


def build(monkeypatch, results, out, *sweeps):
    monkeypatch.setattr("steepest.site.pages._diagrams.gather", lambda folder: by_claim(sweeps))
    return build_atlas(results, out).parent


def record(folder, name):
    """What the page's script is given."""
    text = (folder / name).read_text("utf-8")
    return json.loads(
        re.search(r'<script type="application/json" id="diagrams">(.*?)</script>', text, re.DOTALL)[
            1
        ]
    )


def models(part, kind):
    """All models of a kind in a document, in its order."""
    if isinstance(part, dict):
        if part.get("name") == kind and "attributes" in part:
            yield part["attributes"]
        for each in part.values():
            yield from models(each, kind)
    elif isinstance(part, list):
        for each in part:
            yield from models(each, kind)


def test_a_page_a_sweep_and_links_to_it_from_claim_and_index(pages, diagrams, sweeps):
    assert len(diagrams) == len(sweeps)
    claim = pages["plain-decay/index.html"]
    index = pages["index.html"]
    assert [link for link in claim.all("href") if "/sweep-" in link] == [
        f"../plain-decay/sweep-{sweep.key}.html" for sweep in sweeps[:2]
    ]
    assert (
        "Phase diagrams" in claim.text and "Phase diagrams" not in pages["growing/index.html"].text
    )
    assert set(diagrams) <= set(index.all("href"))
    assert "phase diagram 1 : 383 points" in index.text


def test_every_figure_is_there_without_scripts(swept, diagrams):
    for name, page in diagrams.items():
        text = (swept / name).read_text("utf-8")
        stills = re.findall(r'<div class="still">(<svg.*?</svg>)</div>', text, re.DOTALL)
        assert len(stills) == 4, name
        assert all("<path" in still for still in stills)
        assert [
            found["id"] for tag, found in page.elements if found.get("id", "").startswith("live-")
        ] == [f"live-{i}" for i in range(4)]
        styles = (swept / "style.css").read_text("utf-8")
        assert (
            ".moving, .help { display: none; }" in styles
        )  # what needs a script is hidden until one says otherwise


def test_cells_are_drawn_without_seams(swept):
    text = (swept / PAGE).read_text("utf-8")
    sheet = (swept / "style.css").read_text("utf-8")
    assert text.count('stroke-width:0.5"') + text.count("stroke-width:0.5;") > 50
    assert re.search(r'path\[style\*="stroke-width:0\.5"\] \{ shape-rendering: crispEdges', sheet)


def test_only_diagrams_have_scripts_and_all_share_one_library(swept, pages, diagrams):
    for name, page in pages.items():
        scripts = [found for tag, found in page.elements if tag == "script"]
        assert len(scripts) == (2 if name in diagrams else 0), name
        assert not [found for found in scripts if "src" in found]  # the page may not name one
        text = (swept / name).read_text("utf-8")
        assert text.count('library.src = "../bokeh.min.js"') == (name in diagrams)
    assert [path.name for path in swept.rglob("*.js")] == ["bokeh.min.js"]
    assert (swept / "bokeh.min.js").read_bytes() == _hover.script()


def test_without_sweeps_there_is_no_library(site):
    assert not list(site.rglob("*.js"))


def test_every_link_leads_somewhere_and_nothing_comes_from_outside(swept, pages):
    for name, page in pages.items():
        for link in page.all("href") + page.all("src"):
            if not link.startswith(("data:,", "#")) and link not in WORKS:
                assert ((swept / name).parent / link.partition("#")[0]).is_file(), (name, link)
        ids = page.all("id")
        assert len(ids) == len(set(ids)), name


def test_the_marker_lists_every_file_so_that_the_atlas_can_be_replaced(
    swept, stored, sweeps, tmp_path, monkeypatch
):
    listed = (swept / MARKER).read_text("utf-8").splitlines()
    assert sorted(listed) == sorted(set(files(swept)) - {MARKER})
    assert {"bokeh.min.js", PAGE, PAGE.replace(".html", "/points.csv")} <= set(listed)
    out = tmp_path / "atlas"
    shutil.copytree(swept, out)
    build(monkeypatch, stored, out)
    assert not list(out.rglob("sweep-*")) and not (out / "bokeh.min.js").exists()


def test_the_same_sweeps_give_the_same_bytes(swept, stored, sweeps, tmp_path, monkeypatch):
    assert files(build(monkeypatch, stored, tmp_path / "atlas", *sweeps)) == files(swept)


def test_a_sweep_needs_no_result_and_a_result_no_sweep(tmp_path, catalogue, monkeypatch):
    (tmp_path / "results").mkdir()
    out = build(monkeypatch, tmp_path / "results", tmp_path / "atlas", made("unrun"))
    assert (out / "unrun" / "sweep-0123456789abcdef.html").is_file()
    assert not (out / "unrun" / "index.html").exists()
    index = Reader(out / "index.html")
    assert "steepest run unrun" in index.text and "unrun/sweep-0123456789abcdef.html" in index.all(
        "href"
    )
    page = Reader(out / "unrun" / "sweep-0123456789abcdef.html")
    assert [found["href"] for tag, found in page.elements if tag == "a"] == [
        "../index.html",
        "sweep-0123456789abcdef/points.csv",
        "../index.html",
    ]


def test_a_sweep_of_an_unknown_claim_is_left_out_with_a_warning(catalogue, tmp_path, monkeypatch):
    from steepest import catalogue as module
    from steepest.engine.sweeps._sweep import keep

    keep(plan("growing", {"rate": [0.5, 0.9]}), tmp_path / "results")
    monkeypatch.setattr(module, "built_in", dict)
    with (
        pytest.warns(Damaged, match="is left out: there is no claim 'growing'"),
        pytest.raises(UserError, match="no sound result"),
    ):
        build_atlas(tmp_path / "results", tmp_path / "atlas")


def test_points_of_other_code_are_said_to_be_stale(stored, tmp_path, monkeypatch):
    out = build(monkeypatch, stored, tmp_path / "atlas", made(stale=True))
    assert "Stale. These points were computed by other code" in Reader(out / PAGE).text


def test_a_page_says_all_there_is(diagrams):
    text = diagrams[PAGE].text
    for words in (
        "What is multiplied by ρ decays like ρ",
        "rate: 0.05 to 5, 24 values, log",
        "bias: 0 to 0.9, 16 values, linear",
        "seeds = 8",
        "preset quick",
        "384 points, 1 of them not computed yet",
        "✓ 131 holds",
        "! 52 crashed",
        "Dashed: a boundary that the theory predicts",
        "Grey, struck out",
        "A remark <b> with code .",
        "steepest sweep plain-decay --rate 0.05:5",
        "points.csv",
        "rate, measured",
        "rate, predicted",
    ):
        assert words in text, words


def test_ten_reasons_of_failure_are_told_and_the_others_counted(diagrams):
    text = diagrams[PAGE].text
    assert [f"reason {i}:" in text for i in range(12)] == [True] * 10 + [False] * 2
    assert "and 3 more points for 2 other reasons" in text
    assert "could not be computed" not in diagrams["plain-decay/sweep-aaaaaaaaaaaaaaaa.html"].text


def test_hostile_words_stay_words(swept, diagrams):
    for name, page in diagrams.items():
        text = (swept / name).read_text("utf-8")
        assert "alert(3)" in text and "<script>alert" not in text
        assert len(re.findall("<script", text)) == len(re.findall("</script>", text)) == 2
        # the page's text has it as it was said; a long word may go on in the next line
        assert page.text.replace(" ", "").count("<script>alert(3)</script>") >= 4
        told = json.dumps(record(swept, name), ensure_ascii=False)
        assert f"because {HOSTILE[:20]}" in told or name.startswith("unrun")


def test_what_a_pointer_shows_is_the_line_of_its_cell(sweeps):
    for sweep in sweeps[:2]:
        table = sweep.table()
        (sheet,) = sheets(sweep.panels, table)
        line = {
            (f"{x:.7g}", f"{y:.7g}"): i
            for i, (x, y) in enumerate(zip(table["rate"], table["bias"], strict=True))
        }
        assert len(sheet.columns["x"]) == len(line) == sweep.total
        for i, (x, y) in enumerate(zip(sheet.columns["x"], sheet.columns["y"], strict=True)):
            row = line[f"{x:.7g}", f"{y:.7g}"]
            assert sheet.columns["verdict"][i] == (table["verdict"][row].replace("-", " ") or NONE)
            assert sheet.columns["value 2"][i] == pytest.approx(
                table["rate_predicted"][row], rel=1e-6
            )
            assert (sheet.columns["rate_interval"][i] == NONE) == np.isnan(table["rate_low"][row])
        names = [[name for _, name in sheet.tips[i]] for i in sheet.maps]
        both = ["verdict", "rate_measured", "rate_predicted", "rate_interval"]
        assert names == [
            ["across", "up", "verdict", "reason", *both[1:]],
            *[["across", "up", *both]] * 2,
        ]


def test_a_table_that_does_not_say_what_the_map_shows_is_not_read(sweeps):
    sweep = sweeps[0]
    wrong = [
        replace(panel, values=np.flip(panel.values))
        for panel in sweep.panels
        if isinstance(panel, Map)
    ]
    for sheet in sheets(wrong, sweep.table()):
        assert "rate_measured" not in sheet.columns and "verdict" not in sheet.columns
        assert all(
            name in ("across", "up", f"own {i}") for i in sheet.tips for _, name in sheet.tips[i]
        )


def test_axes_the_other_way_around_are_found():
    sweep = made("unrun", columns=3, rows=2)
    turned = [
        replace(
            each,
            across=each.up,
            up=each.across,
            values=np.transpose(each.values),
            xscale="linear",
            yscale="log",
        )
        for each in sweep.panels
        if isinstance(each, Map)
    ]
    (sheet,) = sheets(turned, sweep.table())
    assert sheet.columns["value 1"][1] == pytest.approx(sweep.panels[1].values[1, 0], rel=1e-6)
    assert sheet.columns["rate_measured"].count(NONE) == sum(np.isnan(sweep.measured))


def test_two_lines_for_one_cell_are_not_read(sweeps):
    sweep = sweeps[2]
    double = {name: [*column, *column] for name, column in sweep.table().items()}
    (sheet,) = sheets(sweep.panels, double)
    assert "verdict" not in sheet.columns and sheet.tips[1][2] == ("rate", "own 1")


def test_every_cell_of_the_script_lies_around_its_point(sweeps):
    (sheet,) = sheets(sweeps[0].panels, sweeps[0].table())
    column = {
        name: np.array(sheet.columns[name]) for name in ("x", "y", "left", "right", "bottom", "top")
    }
    assert np.all((column["left"] < column["x"]) & (column["x"] < column["right"]))
    assert np.all((column["bottom"] < column["y"]) & (column["y"] < column["top"]))
    assert (
        len(set(zip(sheet.columns["left"], sheet.columns["bottom"], strict=True)))
        == sweeps[0].total
    )
    assert (sheet.across[0], sheet.up[1]) == pytest.approx(
        (column["left"].min(), column["top"].max())
    )


def test_a_third_field_is_held_where_the_title_says_so():
    """Two facets over the same plane: each is told from its own lines, and neither where its title is silent."""
    sweep = made("unrun", columns=3, rows=2)
    table = sweep.table()
    twice = {}
    for name, column in table.items():
        factor = 10 if name.endswith(("measured", "predicted")) else 1
        twice[name] = [*column, *(factor * value for value in column)]
    twice = {
        "rate": twice.pop("rate"),
        "bias": twice.pop("bias"),
        "width": [8] * 6 + [80] * 6,
        **twice,
    }
    first = sweep.panels[1]
    facets = [
        replace(first, title=f"rate, measured, width = {w}", values=f * first.values)
        for w, f in ((8, 1), (80, 10))
    ]
    own, other = sheets(facets, twice)
    assert own.columns["rate_measured"] != other.columns["rate_measured"]
    (silent,) = sheets([first], twice)
    assert "rate_measured" not in silent.columns


def test_all_maps_of_a_sweep_share_one_source_and_move_together(swept):
    document = record(swept, PAGE)["document"]
    sources = [
        each for each in models(document, "ColumnDataSource") if len(each["data"]["entries"]) > 10
    ]
    assert len(sources) == 1
    ranges = list(models(document, "Range1d"))
    assert len(ranges) == 2
    assert ranges[0]["start"] < 0.05 and ranges[0]["end"] > 5


def test_colours_of_the_script_are_names_of_the_theme(swept):
    text = json.dumps(record(swept, PAGE))
    assert not [colour for colour, _ in VERDICTS.values() if colour in text]
    assert "var(--cell-holds)" in text and "var(--ink)" in text and "var(--predicted)" in text
    sheet = (swept / "style.css").read_text("utf-8")
    assert all(
        sheet.count(f"{name}: #") >= 2 for name in set(re.findall(r"var\((--[\w-]+)\)", text))
    )


def test_the_style_sheet_has_the_colours_of_figures(swept):
    """Outside of the atlas a figure has the colours that it has on a light page."""
    sheet = (swept / "style.css").read_text("utf-8")
    for word, (colour, _) in VERDICTS.items():
        assert re.search(rf"--cell-{word}: (#\w+)", sheet)[1] == colour


def test_labels_are_never_tex_and_never_columns(catalogue):
    panel = replace(made("unrun").panels[0], x="$$x$$ @c0 <b>", label="$x")
    document = json.loads(str(_hover.live([panel], made("unrun").table())))["document"]
    assert "$$x$$ @c0 <b>" in [each["text"] for each in models(document, "PlainText")]
    (hover,) = models(document, "HoverTool")
    assert "&#36;&#36;x&#36;&#36; &#64;c0 &lt;b&gt;" in hover["tooltips"]


def test_signs_and_strokes_stand_where_they_belong(swept):
    source = next(each for each in models(record(swept, PAGE)["document"], "ColumnDataSource"))[
        "data"
    ]["entries"]
    columns = dict(source)
    (signs,) = [columns[name] for name in columns if name.startswith("sign")]
    assert set(signs) == {"", *(sign for _, sign in named(list(VERDICTS)))}
    hatched = [
        sum(v == "right_diagonal_line" for v in columns[name])
        for name in columns
        if name.startswith("hatch")
    ]
    assert hatched == [1, int(np.isnan(made().measured).sum())]


def test_a_sweep_with_nothing_to_draw_has_a_page(stored, tmp_path, monkeypatch):
    bare = made("growing")
    monkeypatch.setattr(type(bare), "panels", ())
    out = build(monkeypatch, stored, tmp_path / "atlas", bare)
    page = Reader(out / "growing" / "sweep-0123456789abcdef.html")
    assert "nothing to draw" in page.text
    assert not [tag for tag, _ in page.elements if tag == "script"]


def test_a_real_sweep_has_what_a_page_needs(catalogue, stored, tmp_path, monkeypatch):
    planned = plan("growing", {"rate": [0.5, 0.9], "bias": [0.0, 0.1, 0.2]})
    check = {
        "id": "final_rate",
        "name": "rate at the end",
        "measured": 0.5,
        "predicted": 0.5,
        "interval": {"low": 0.4, "high": 0.6},
        "margin": {"low": 0.3, "high": 0.7},
    }
    point = {
        "verdict": "holds",
        "reason": "agrees",
        "checks": [check],
        "quantities": {"largest": 1.5},
    }
    broken = {"verdict": "crashed", "reason": "it broke <off>", "checks": [], "quantities": {}}
    sweep = Sweep(planned, (point, point, broken, None, point, point))
    out = build(monkeypatch, stored, tmp_path / "atlas", sweep)
    page = Reader(out / "growing" / f"sweep-{planned.key}.html")
    for words in (
        "✓ 4 holds",
        "! 1 crashed",
        "6 points, 1 of them not computed yet",
        "it broke <off>",
        planned.command,
    ):
        assert words in page.text
    (sheet,) = sheets(sweep.panels, sweep.table(), sweep.labels)
    assert sheet.columns["verdict"].count("holds") == 4
    shown = [panel for panel in sweep.panels if isinstance(panel, Map)]
    assert shown[1].title == "rate at the end, measured (predicted: 0.5)"
    assert [column for _, column in sheet.tips[1]] == [
        "across",
        "up",
        "verdict",
        "final_rate_measured",
        "final_rate_predicted",
        "final_rate_interval",
    ]
    assert sheet.columns["final_rate_interval"][0] == "[0.4, 0.6]"
    assert (out / "growing" / f"sweep-{planned.key}" / "points.csv").read_text("utf-8").count(
        "\n"
    ) == 7


def test_bokeh_is_imported_only_for_a_page_with_a_sweep():
    code = "import sys, steepest.site.pages, steepest.site.pages._diagrams; print('bokeh' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
