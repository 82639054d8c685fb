"""The page of a report: whole, escaped, without network."""

import re

import numpy as np
import pytest

from steepest.core.errors import UserError
from steepest.measurement import Reading, Report, measure
from steepest.measurement.adapters import subject
from steepest.site.pages import report_page
from tests.measurement.adapters import models
from tests.measurement.test_measure import linear, regression, squared


def test_everything_measured_is_on_the_page(tmp_path):
    found = measure(
        subject(models.of_jax(), models.cross_entropy, models.data(40)),
        what=["sharpness", "density", "blocks", "collapse", "margins"],
        lr=0.3,
    )
    text = report_page(found, tmp_path / "deep" / "page.html").read_text("utf-8")
    for each in found.quantities:
        assert each.name in text and all(name in text for name in each.parts)
    assert "of the stable limit" in text and "95 % for other examples" in text and "<svg" in text
    assert not re.findall(r"(?:src|href)=\"(?!data:,|#)", text) and "<script" not in text
    assert sorted(path.name for path in (tmp_path / "deep").iterdir()) == ["page.html"]


def test_what_a_model_does_not_have_is_said(tmp_path):
    found = measure((linear, np.zeros(6)), squared, regression())
    text = report_page(found, tmp_path / "page.html").read_text("utf-8")
    assert "What this model does not have" in text and "margins: not measured" in text


def test_names_are_escaped(tmp_path):
    found = Report(
        "<b>Net",
        3,
        5,
        (Reading("a<script>", 0.5, interpretation="x & y", parts={"<i>": 1.0}),),
        1,
        0.1,
    )
    text = report_page(found, tmp_path / "page.html").read_text("utf-8")
    assert (
        "<script>" not in text
        and "<i>" not in text
        and "&lt;b&gt;Net" in text
        and "x &amp; y" in text
    )


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("mine", "utf-8")
    with pytest.raises(UserError, match="choose another place"):
        report_page(Report("Net", 1, 1, (), 0, 0.0), tmp_path / "file" / "page.html")
    assert (tmp_path / "file").read_text("utf-8") == "mine"


def test_the_command_writes_the_page(tmp_path, capsys):
    from steepest.app.cli import main
    from tests.measurement.test_measure import MODEL

    (tmp_path / "model.py").write_text(MODEL, "utf-8")
    where = f"{tmp_path / 'model.py'}:build"
    assert main(["measure", where, "--what", "sharpness", "--page", str(tmp_path / "p.html")]) == 0
    assert "p.html" in capsys.readouterr().out and "sharpness" in (tmp_path / "p.html").read_text(
        "utf-8"
    )
    assert main(["measure", where, "--page", str(tmp_path / "p.txt")]) == 2
    assert "a page is an .html file" in capsys.readouterr().err
