"""The examples run, and what they show is so."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_from_an_activation_to_a_prediction(capsys):
    """A wide network answers what its limit predicted: far nearer than its size, and nearer when it is wider."""
    main = runpy.run_path(str(EXAMPLES / "activation_to_prediction.py"))["main"]
    narrow = main(width=64)
    wide = main(width=1024)
    assert wide["difference"] < 0.15 * wide["size"]
    assert wide["accuracy"] > 0.8
    assert wide["difference"] < narrow["difference"]
    assert "weights from N(0," in capsys.readouterr().out


def test_regions_of_digits(tmp_path, capsys):
    """Cuts where the prediction changes only add pieces, and the picture is written."""
    main = runpy.run_path(str(EXAMPLES / "regions_of_digits.py"))["main"]
    counts = main(str(tmp_path / "regions.png"), steps=20, width=10)
    assert 10 < counts["after"] < counts["decided"]
    assert (tmp_path / "regions.png").stat().st_size > 10_000
    assert "regions at the start" in capsys.readouterr().out
