"""What reaches the terminal: nothing of others controls it, and every sentence helps."""

import ast
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import steepest.app
from steepest.app import console as consoles
from steepest.app import streams
from steepest.app.cli import main
from steepest.app.console import _Count
from steepest.app.details import show_details
from steepest.app.plain_formulas import plain_formula
from steepest.app.progress import shown
from steepest.core.text import visible
from steepest.engine.crew import Outcome

APP = Path(steepest.app.__file__).parent
EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b1A\r\x08\u202egpj\x7f"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def test_all_that_is_printed_goes_through_one_place():
    """No other module of the application prints, writes to a stream, or makes a console of its own."""
    allowed = {
        "streams.py": {"print"},
        "console.py": {"_Output"},
        "stopping.py": set(),
        "template.py": set(),
    }
    for path in APP.glob("*.py"):
        calls = [
            node.func
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call)
        ]
        names = {call.id for call in calls if isinstance(call, ast.Name)}
        ends = {ast.unparse(call) for call in calls if isinstance(call, ast.Attribute)}
        assert not (names & {"print", "Console"}) - allowed.get(path.name, set()), path.name
        assert not {end for end in ends if re.fullmatch(r"sys\.(stdout|stderr)\.write", end)}, (
            path.name
        )


@pytest.mark.parametrize("terminal", [True, False])
def test_a_console_shows_text_and_keeps_its_own_colours(terminal):
    file = io.StringIO()
    console = consoles._Output(
        file=file, force_terminal=terminal, width=200, color_system="standard" if terminal else None
    )
    console.print(f"[bold]{EVIL}[/]", highlight=False)
    text = file.getvalue()
    assert "\\u001b]0;owned\\u0007" in text and "\\u202egpj" in text
    assert bool(re.search("\x1b\\[1m", text)) == terminal
    assert not CONTROLS.search(re.sub("\x1b\\[[0-9;]*m", "", text))


def test_lines_and_json_of_ours(capsys):
    streams.say(EVIL)
    streams.tell(f"{EVIL}\nnext")
    streams.tell_json({"a": EVIL})
    said = capsys.readouterr()
    assert not CONTROLS.search(said.err + said.out) and said.out.count("\n") == 5
    assert json.loads(said.out.partition("next\n")[2]) == {"a": EVIL}


def hostile_log(folder):
    quantities = {
        f"sharpness [/bold] {EVIL}": {"value": 1.0, "compared": 2.0, "theory": f"[link=x]2/η{EVIL}"}
    }
    lines = [{"step": step, "quantities": quantities, "warnings": [EVIL]} for step in range(3)]
    file = folder / f"run[red]{EVIL[:3]}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return file


def texts(record):
    """All words of a record."""
    if isinstance(record, str):
        yield record
    elif isinstance(record, list | dict):
        for part in record if isinstance(record, list) else (*record, *record.values()):
            yield from texts(part)


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_log_of_somebody_elses(tmp_path, capsys, words):
    assert main(["watch", str(hostile_log(tmp_path)), *words]) == 0
    said = capsys.readouterr()
    assert not CONTROLS.search(said.out + said.err)
    if words:
        assert any("]0;owned" in text for text in texts(json.loads(said.out)))
    else:
        assert "\\u001b]0;owned" in said.out and "[link=x]" in said.out


@pytest.mark.parametrize(
    "text",
    [
        f"raise RuntimeError({EVIL!r})\n",
        f"import warnings\nwarnings.warn({EVIL!r})\nraise SystemExit({EVIL!r})\n",
        f"def build():\n    raise ValueError({EVIL!r})\n",
        f"def build():\n    return {{{EVIL!r}: 1}}\n",
    ],
)
def test_messages_of_a_readers_file(tmp_path, capsys, text):
    file = tmp_path / f"net{EVIL[:5]}.py".replace("/", "")
    file.write_text(text, "utf-8")
    assert main(["measure", f"{file}:build"]) == 2
    said = capsys.readouterr()
    assert not CONTROLS.search(said.out + said.err) and said.err.count("\n") <= 4


@pytest.mark.parametrize(
    "words",
    [
        ["run", f"x{EVIL}"],
        ["run", f"{EVIL}.py"],
        ["cite", EVIL],
        [EVIL],
        ["list", "--chapter", EVIL],
        ["new", EVIL],
    ],
)
def test_words_of_the_command_line_come_back_harmless(words, capsys):
    try:
        assert main(words) == 2
    except SystemExit as end:
        assert end.code == 2
    assert not CONTROLS.search(capsys.readouterr().err)


def test_what_nobody_caught_is_printed_harmless(capsys):
    try:
        raise KeyError(EVIL)
    except KeyError as trouble:
        streams.say_defect(type(trouble), trouble, trouble.__traceback__)
    text = capsys.readouterr().err
    assert "KeyError" in text and "Traceback" in text and not CONTROLS.search(text)


def test_docstrings_of_a_readers_claim(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "my-claim"]) == 0
    file = tmp_path / "my_claim.py"
    text = file.read_text("utf-8").replace(
        "Gradient descent on", f"A {EVIL!r:.14} [/b] on".replace("'", ""), 1
    )
    file.write_text(text.replace("η, step size", r"\x1b[31m[/] η"), "utf-8")
    capsys.readouterr()
    assert main(["show", "my_claim.py"]) == 0
    assert not CONTROLS.search(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("run --multiple 3", "if it is the value of --multiple, name the claim before it"),
        ("run --multiple=3", "need exactly one claim, got none"),
        (
            "sweep --multiple 3",
            "name the claim before it, as in steepest run catapult --multiple 3",
        ),
        ("run 3", "there is no claim '3'; steepest list shows all of them"),
        ("cite nothing", "there is no claim 'nothing'; steepest list shows all of them"),
        ("show edge", "did you mean 'edge-of-stability', "),
        ("run descent", "'double-descent'?"),
        ("run catapullt --multiple 3", "did you mean 'catapult'?"),
        ("sweep catapult --over multiple=1:5:9", "one value. Write linear:1:5:9"),
        ("sweep catapult --over width=64:8:-99", "one value. Write linear:64:8:99"),
    ],
)
def test_near_names_and_fields_without_a_claim(words, sentence, capsys):
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert sentence in said and len(said) < 250


def test_a_file_without_a_function(tmp_path, capsys):
    (tmp_path / "noclaim.py").write_text("X = 1\n", "utf-8")
    assert main(["measure", f"{tmp_path / 'noclaim.py'}:build"]) == 2
    assert "has no function 'build'; it has none; write def build(): …" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"\lambda_{\max} \to \frac{2}{\eta}", "λ_max → 2/η"),
        (r"\frac1n \mathrm{Var}\,\varphi", "(1/n)Varφ"),
        (r"a = -\tfrac12 \lambda", "a = −(1/2)λ"),
        (r"\frac{1}{2\sqrt{8d}}", "1/(2√(8d))"),
        (r"\arg\min_{Xw=y} \|w\|_1 \ge \hat{f}'", "arg min_(Xw=y) ‖w‖₁ ≥ f̂′"),
        (r"x \sim \{0, 1\}^{n-1}", "x ∼ {0, 1}ⁿ⁻¹"),
        (r"\frac{a+b}{c} d, \qquad \log\frac1\varepsilon", "((a + b)/c)d,  log(1/ε)"),
        (r"\text{<b>} \left( x", r"\text{<b>} \left( x"),
    ],
)
def test_statements_are_read_without_latex(latex, plain):
    assert plain_formula(latex) == plain


def test_every_statement_is_readable():
    from steepest import catalogue
    from steepest.engine.descriptions import description

    for line in catalogue.built_in().values():
        text = plain_formula(description(line).statement)
        assert "\\" not in text and "{}" not in text and visible(text) == text, line.name


def test_a_bar_counts_where_there_is_something_to_count():
    class Task:
        completed = 3.0

        def __init__(self, total):
            self.total = total

    shows = [str(_Count().render(Task(total))) for total in (None, 1, 40)]
    assert shows == ["", "", "3/40"]


def test_a_live_display_names_what_runs():
    file = io.StringIO()
    console = consoles._Output(file=file, force_terminal=True, width=70)
    with shown(console, ["one", "two", "three"]) as display:
        for name in ("one", "two"):
            display.begun(name)
        display.landed(Outcome("one", None, "broke"))
        display.begun("three")
    text = re.sub("\x1b\\[[0-9;?]*[a-zA-Z]", "", file.getvalue())
    assert "running two, three" in text and "1 of 3 claims" in text


def test_a_narrow_terminal_has_a_check_below_its_name():
    from steepest.engine.run import run

    result = run("sawtooth", preset="tiny")
    lines = {}
    for width in (80, 200):
        console = Console(file=io.StringIO(), width=width)
        show_details(console, result)
        lines[width] = console.file.getvalue().splitlines()
    assert max(map(len, lines[80])) <= 80 or all(
        " " not in line for line in lines[80] if len(line) > 80
    )
    name = max((check.name for check in result.checks), key=len)
    place = next(i for i, line in enumerate(lines[80]) if name[:40] in line)
    assert "predicted" in "".join(lines[80][place : place + 3])


@pytest.mark.parametrize("platform", ["cuda", "nonsense"])
def test_a_device_that_is_not_there_is_one_sentence(tmp_path, platform):
    environment = os.environ | {"JAX_PLATFORMS": platform}
    command = [
        sys.executable,
        "-m",
        "steepest",
        "run",
        "sawtooth",
        "--preset",
        "tiny",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"JAX cannot start JAX_PLATFORMS={platform} (" in done.stderr


def test_a_checkpoint_that_unpacks_to_more_than_it_could_hold(tmp_path):
    from steepest.core.errors import UserError
    from steepest.measurement import load_checkpoint

    np.savez_compressed(tmp_path / "small.npz", w=np.zeros(10**5))
    assert load_checkpoint(tmp_path / "small.npz")["w"].shape == (10**5,)
    np.savez_compressed(
        tmp_path / "bomb.npz", w=np.zeros(2**25, np.int8), v=np.zeros(2**27, np.int8)
    )
    with pytest.raises(
        UserError, match=r"bomb.npz would unpack from .* MB to 168 MB, and no more than 20 times"
    ):
        load_checkpoint(tmp_path / "bomb.npz")
