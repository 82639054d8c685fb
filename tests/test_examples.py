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
