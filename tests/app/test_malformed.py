"""Generated command lines: each is a good one that was spoiled, and none may end in a traceback.

Nothing expensive starts here: where a command would begin to compute, the functions that do the work are replaced
by one that stops. So only the reading of a line and its refusal are tested.
"""

import ast
import contextlib
import io
import os
import shutil
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steepest.app.cli import main
from tests.engine.sweeps import toy
from tests.small import small_catalogue

EXAMPLES = int(os.environ.get("STEEPEST_EXAMPLES", "150"))
"""Lines of one run of the tests; more of them, and random ones, look for new faults by hand."""

SAMPLE = settings(
    max_examples=EXAMPLES, deadline=None, derandomize="STEEPEST_EXAMPLES" not in os.environ
)

WELL_FORMED = [
    line.split()
    for line in (
        "run",
        "run plain-decay",
        "run plain-decay --rate 0.25 --seeds 5 --seed 3",
        "run plain-decay wide-decay --workers 2 --out results --atlas atlas",
        "run my_toy.py --parts 1 2.5 --word relu --flag true --preset tiny --json",
        "run plain-decay --rate=0.25 --force --out=elsewhere",
        "run --all --table --strict --results results --atlas atlas --json",
        "run --tour --table --strict --results results --atlas atlas --json",
        "list",
        "list --chapter first_steps --results results --json",
        "show plain-decay",
        "show my_toy.py",
        "atlas --results results --out atlas",
        "sweep my_toy.py",
        "sweep my_toy.py --over scale=log:1:8:4 --over width=2,3 --seed 2 --batch 8",
        "sweep my_toy.py --over scale=log:1:8 --over shift=linear:-1:1 --sobol 16 --on here",
        "sweep my_toy.py --over parts=1,2 --whole --flag false --plan --yes",
        "sweep plain-decay --over rate=linear:0.1:0.9:5 --shard 1/2 --export table.csv --workers 1",
        "sweep plain-decay --over seed=0:4 --over seeds=3:9:2 --bias 0.1 --retry --json",
        "new fresh-claim",
        "new folder/fresh_claim.py",
        "check my_toy.py",
        "measure model.py:build --lr 0.1 --momentum 0.9 --curvature fisher --micro-batch 8",
        "measure model.py:build --what sharpness,trace --since weights.npz --page page.html --json",
        "watch run.jsonl --training 1 --page page.html --json",
    )
]

NUMBERS = [
    *("0", "-1", "1", "3", "0.5", "-0.0", "1e-320", "5e-324", "1e308", "1e999", "-1e999", "nan"),
    *("inf", "-inf", "1.0", "0x10", "1_0", "²", "٣", "1e", "", " ", "+1", "--1", "9" * 30),
    *(str(2**31), str(2**63), str(2**64), "9" * 5000, "1,2", "1j", "true", "None"),
]

ODD_WORDS = [
    *("--", "-", "-h", "--version", "--nonsense", "-x", "--=", "--=1", "--rate", "--rate=", "---"),
    *("--over", "--sobol", "--out", "--out=", "--seed", "--json=1", "--json", "--force", "--plan"),
    *("--export", "--shard", "--workers", "--preset", "--what=", "--page", "--on", "--parts="),
    *("rate", "rate=", "=1", "rate=,", "rate=1,,2", "rate=1;2", "scale=13", "word=tanh,relu"),
    *("flag=true,false", "seed=0:3", "seed=-1", "seed=1.5", "parts=1", "parts=log:1:2:3"),
    *("linear:1:5", "log:0:1:3", "0:", ":", "::", "0:8:0", "0:8:-1", "8:0", "1/0", "0/1", "2/1"),
    *("1/", "/", "²/3", "dask:", "dask:garbage", "dask:tcp://", "local", "slurm", "here"),
    *("file", "folder", "folder.csv", "folder.py", "dangling", "loop", "file/inside", "no/where"),
    *("empty.py", "broken.py", "binary.py", "no_claim.py", "exits.py", "my_toy.py", "my_toy.pyc"),
    *("binary.npz", "results", "results/plain-decay", ".", "..", "./", "", " ", "\t", "\n", "~"),
    *("plane-decay", "Plain-Decay", "none", "true", "claim", "class", "plain_decay.py", "a.py"),
    *("x" * 300, "x" * 300 + ".py", "x" * 5000, "x" * 300 + ".py:build", "x/" * 3000 + "y.csv"),
    *("x" * 300 + ".csv", "x" * 300 + ".html", "x" * 300 + ".npz", "table.parquet", "t.xlsx"),
    *("model.py", "model.py:", ":build", "model.py:missing", "model.py:wrong", "model.py:raises"),
    *("[bold]", "[/]", "[/red]", "%s", "{}", "{0.__class__}", "$(id)", "`id`", "; ls", "a|b"),
    *("*", "?", "[0-9]", "\\", '"', "'", "<b>", "漢字", "λ", "🙂", "\u202e", "e\u0301", "\udcff"),
    *("\udcff.py", "\udcff.csv", "d\udcff/my_toy.py", "quick", "full", "tiny", "sharpness", ","),
]

TEXT = st.text(
    st.characters(exclude_characters="\0/", exclude_categories=["Cs"]) | st.just("\udcfe"),
    max_size=12,
)
"""What a shell can hand over: no NUL; bytes that are no text arrive as lone surrogates."""


def ranges():
    number = st.sampled_from(NUMBERS)
    parts = st.lists(number, min_size=1, max_size=4).map(":".join)
    scale = st.sampled_from(["log:", "linear:", "", "cubic:", "LOG:"])
    field = st.sampled_from(["scale=", "rate=", "width=", "seed=", "parts=", "word=", "none=", ""])
    return st.builds("{}{}{}".format, field, scale, parts)


def odd_words():
    options = st.sampled_from([word for line in WELL_FORMED for word in line])
    return st.one_of(st.sampled_from(ODD_WORDS), st.sampled_from(NUMBERS), ranges(), options, TEXT)


WAYS = ("option", "replace", "insert", "value", "append", "drop", "twice", "swap")
"""What may be done to a line; the first spoils the value of an option."""


@st.composite
def spoiled_lines(draw):
    """A good command line with one to three things wrong with it, or not."""
    line = list(draw(st.sampled_from(WELL_FORMED)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(line)))
        how = draw(st.sampled_from(WAYS))
        if how == "insert" or place == len(line):
            line.insert(place, draw(odd_words()))
        elif how == "option":
            options = [i for i, word in enumerate(line) if word.startswith("--")]
            behind = draw(st.sampled_from(options)) + 1 if options else len(line)
            line[behind : behind + 1] = [draw(odd_words())]
        elif how == "replace":
            line[place] = draw(odd_words())
        elif how == "value":
            name, _, _ = line[place].partition("=")
            line[place] = f"{name}={draw(odd_words())}"
        elif how == "append":
            line[place] += draw(odd_words())
        elif how == "drop":
            del line[place]
        elif how == "twice":
            line.insert(place, line[place])
        else:
            other = draw(st.integers(0, len(line) - 1))
            line[place], line[other] = line[other], line[place]
    return line


# ------------------------------------------------------------------------------- where lines are typed


class Started(BaseException):
    """The line was accepted and the work would begin; no ``except Exception`` takes it for a crash."""


def start(*_, **__):
    raise Started


MODEL = """
def build():
    return (lambda w, x: x @ w, 1.0), None, None


def wrong():
    return 1


def raises():
    raise RuntimeError("two\\nlines")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a sound result, claims and models in files, and things that are not what they seem."""
    work = tmp_path_factory.mktemp("malformed") / "work"
    work.mkdir()
    (work / "my_toy.py").write_text(Path(toy.__file__).read_text("utf-8"), "utf-8")
    (work / "model.py").write_text(MODEL)
    (work / "empty.py").write_text("")
    (work / "broken.py").write_text("class (:")
    (work / "binary.py").write_bytes(b"\xff\xfe\x80")
    (work / "binary.npz").write_bytes(b"\xff\xfe\x80")
    (work / "no_claim.py").write_text("x = 1\n")
    (work / "exits.py").write_text("raise SystemExit(5)\n")
    (work / "file").write_text("")
    np.savez(work / "weights.npz", w=np.ones(2))
    for name in ("folder", "folder.csv", "folder.py"):
        (work / name).mkdir()
    (work / "dangling").symlink_to("nowhere")
    (work / "loop").symlink_to("loop")
    strange = work / "d\udcff"
    strange.mkdir()
    (strange / "my_toy.py").write_text((work / "my_toy.py").read_text("utf-8"), "utf-8")
    with pytest.MonkeyPatch.context() as patch, small_catalogue(tmp_path_factory.mktemp("claims")):
        patch.chdir(work)
        patch.setenv("XDG_CACHE_HOME", str(work.parent / "cache"))
        assert quietly(["run", "plain-decay"])[0] == 0
        patch.setattr("steepest.engine.run.execute", start)
        patch.setattr("steepest.engine.crew.drive", start)
        patch.setattr("steepest.engine.sweeps.estimate", start)
        patch.setattr("steepest.site.pages._build._write", start)
        patch.setattr("steepest.app.contract.problems", start)
        subject = SimpleNamespace(passes=0, size=2, name="model", dtype=float, flatten=start)
        patch.setattr("steepest.measurement._measure.make_subject", lambda *_, **__: subject)
        patch.setattr("steepest.measurement._measure.Context", start)
        yield work


def quietly(line):
    """Run a command line here; return its exit code, or None where work began, and what it printed."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace", write_through=True)
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),  # main puts its own way of showing them into effect
    ):
        try:
            code = main(line)
        except SystemExit as stop:
            code = stop.code
        except Started:
            code = None
    return code, *(stream.buffer.getvalue().decode() for stream in (out, err))


def contents(folder):
    """Everything below a folder, with what is in it."""
    return {
        path: path.read_bytes() if path.is_file() else path.is_dir()
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    }


def put_back(folder, before):
    """Undo what an accepted line wrote, so that the next line finds the same place."""
    for path in sorted(contents(folder).keys() - before.keys(), reverse=True):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for path, content in before.items():
        if isinstance(content, bytes) and path.read_bytes() != content:
            path.write_bytes(content)


@SAMPLE
@given(line=spoiled_lines())
def test_no_spoiled_line_ends_in_a_traceback_or_leaves_anything_behind(place, line):
    before = contents(place)
    try:
        code, out, err = quietly(line)
        assert "Traceback" not in err
        if code is None:
            return
        assert code in (0, 2), err  # the one stored result holds
        if code == 2 and line:  # without any words the help is printed
            assert out == ""
            assert err.startswith("steepest")
            assert err.count("\n") == 1
            assert len(err) < 1500
            assert contents(place) == before
        elif line[:1] == ["new"]:
            for path in contents(place).keys() - before.keys():
                ast.parse(path.read_text("utf-8"))
    finally:
        put_back(place, before)
