"""The reference of the library: a page for each public package, and one for each of its files."""

import ast
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from numpy.typing import ArrayLike

PACKAGES = (
    "steepest",
    "steepest.kit",
    "steepest.kit.points",
    "steepest.kit.subjects",
    "steepest.statistics",
    "steepest.nn.activations",
    "steepest.nn.networks",
    "steepest.nn.layers",
    "steepest.nn.losses",
    "steepest.nn.data",
    "steepest.linalg",
    "steepest.kernels",
    "steepest.kernels.tiled",
    "steepest.geometry",
    "steepest.graphs",
    "steepest.programs",
    "steepest.landscapes",
    "steepest.optimizers",
    "steepest.dynamics",
    "steepest.noise",
    "steepest.bayes",
    "steepest.measurement",
)
"""What users import from, in the order of the rooms."""
MANY = 8
"""Names above which a package gets a page for each file."""


def write_reference(stage: Path, packages: Iterable[str] = PACKAGES) -> None:
    """Write the sources of the reference: Sphinx fills them from the docstrings."""
    folder = stage / "reference" / "api"
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for package in packages:
        module = importlib.import_module(package)
        names.append(package)
        _write_package(module, folder)
    entries = "\n".join(f"   {name}" for name in names)
    (folder / "index.rst").write_text(
        f"{_title('The library')}\nEach package by what it holds, in the order in which they build on each other.\n\n"
        f".. toctree::\n   :maxdepth: 1\n\n{entries}\n",
        "utf-8",
    )


def _write_package(module: ModuleType, folder: Path) -> None:
    name = module.__name__
    public = public_names(module)
    elsewhere = [
        own for own in public if name == "steepest" and _of_a_package(getattr(module, own))
    ]
    public = {own: file for own, file in public.items() if own not in elsewhere}
    files: dict[str, list[str]] = {}
    for own, file in public.items():
        files.setdefault(file, []).append(own)
    split = len(public) > MANY and len(files) > 1
    text = [_title(name), f".. automodule:: {name}\n   :no-members:\n"]
    listed = [
        own
        for own in public
        if inspect.isroutine(getattr(module, own)) or inspect.isclass(getattr(module, own))
    ]
    text += [".. autosummary::\n", *(f"   {own}" for own in listed), ""]
    if split:
        pages = {file: f"{name}.{file}" for file in files}
        text += [f"* :doc:`{file.replace('_', ' ')} <{page}>`" for file, page in pages.items()]
        for file, page in pages.items():
            # not in the tree of contents, which every page of the book carries
            lines = [
                ":orphan:\n",
                _title(f"{name}: {file.replace('_', ' ')}"),
                *_members(module, files[file]),
            ]
            (folder / f"{page}.rst").write_text("\n".join(lines) + "\n", "utf-8")
    else:
        text += _members(module, public)
    if elsewhere:
        text.append("Also here:\n")
        text += [f"* :py:obj:`{_of_a_package(getattr(module, own))}.{own}`" for own in elsewhere]
    (folder / f"{name}.rst").write_text("\n".join(text) + "\n", "utf-8")


def public_names(module: ModuleType) -> dict[str, str]:
    """Return the public names of a module and the file that defines each, in the order of the alphabet.

    A package's names are those that its ``__init__`` imports as themselves, a file's those that it defines.
    """
    tree = ast.parse(inspect.getsource(module))
    homes: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and _of_steepest(node):
            file = str(node.module).rpartition(".")[2].lstrip("_")
            homes |= {
                alias.name: file
                for alias in node.names
                if alias.asname == alias.name and not alias.name.startswith("_")
            }
    if not homes:
        own = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
        file = module.__name__.rpartition(".")[2]
        homes = {node.name: file for node in own if not node.name.startswith("_")}
    shown = {
        name: file for name, file in homes.items() if not inspect.ismodule(getattr(module, name))
    }
    return dict(sorted(shown.items(), key=lambda pair: pair[0].lower()))


def _of_steepest(node: ast.ImportFrom) -> bool:
    """Tell whether an import is from a file of ours: a neighbour, or one with its full name."""
    return bool(node.module) and (node.level > 0 or str(node.module).startswith("steepest"))


def _members(module: ModuleType, names: Iterable[str]) -> list[str]:
    lines = []
    for name in names:
        thing = getattr(module, name)
        full = f"{module.__name__}.{name}"
        if inspect.isclass(thing):
            lines.append(f".. autoclass:: {full}\n   :members:\n")
        elif inspect.isroutine(thing):
            lines.append(f".. autofunction:: {full}\n")
        elif text := _text_below(module, name):
            lines.append(f".. data:: {full}\n\n   {_safe(' '.join(text.split()))}\n")
    return lines


def _of_a_package(thing: Any) -> str:
    """The package in which something that the top offers is documented; empty where there is none."""
    home = str(thing.__module__)
    return next((package for package in PACKAGES[1:] if home.startswith(f"{package}.")), "")


def _text_below(module: ModuleType, name: str) -> str:
    """The text below the assignment of a constant, which is its documentation; empty where there is none."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and name in [a.name for a in node.names]
        ):
            home = "." * node.level + node.module
            return _text_below(importlib.import_module(home, module.__package__), name)
    body = ast.parse(inspect.getsource(module)).body
    for node, below in itertools.pairwise(body):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        if not any(isinstance(target, ast.Name) and target.id == name for target in targets):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            return str(below.value.value)
    return ""


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def short_signature(
    app: Any,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    signature: str | None,
    returns: str | None,
) -> tuple[str | None, str | None]:
    """Write ``ArrayLike`` in a signature where it stands for seven types."""
    from sphinx.util.typing import stringify_annotation

    def short(text: str | None) -> str | None:
        for mode in ("smart", "fully-qualified"):
            text = text and text.replace(stringify_annotation(ArrayLike, mode), "ArrayLike")
        return text

    return short(signature), short(returns)


def clean_docstring(
    app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Make a docstring safe for Sphinx: formulas may hold bars, stars and underscores; indices are set as such."""
    inside = False
    for place, line in enumerate(lines):
        if line.lstrip().startswith(">>>"):
            inside = True
        elif not line.strip():
            inside = False
        if inside or line.lstrip().startswith(".."):
            continue
        field = re.match(r"\s*:[^:`]+:", line)
        start = field.end() if field else 0
        lines[place] = line[:start] + _safe(line[start:])


def _safe(line: str) -> str:
    pieces = re.split(r"(:?\w*:?`{1,2}[^`]+`{1,2}_?)", line)
    return "".join(piece if odd % 2 else _escaped(piece) for odd, piece in enumerate(pieces))


def _escaped(text: str) -> str:
    text = re.sub(r"(?<!\\)\|", r"\\|", text)
    text = re.sub(r"(?<![\\\w])\*(\w[^*\n]*\w|\w)\*(?!\w)", "\0\\1\0", text)  # emphasis stays
    text = re.sub(r"(?<!\\)\*(?!\*)(?<!\*\*)", r"\\*", text).replace("\0", "*")
    text = re.sub(r"(?<!\\)_(?=[\s.,;:)=|]|$)", r"\\_", text)
    letter = "[A-Za-z0-9α-ωΑ-Ω∞∥⊥]"
    before = r"((?<![A-Za-z0-9_`])[^\W\d_]|[‖∥|])"
    text = _outside_of_roles(rf"{before}_\{{([^{{}}`]{{1,20}})\}}", r"\1\\ :sub:`\2`\\ ", text)
    text = _outside_of_roles(r"(?<=[\w)|])\^\{([^{}`]{1,24})\}", r"\\ :sup:`\1`\\ ", text)
    lowered = rf"{before}_({letter})(?![A-Za-z0-9_])"
    text = _outside_of_roles(lowered, r"\1\\ :sub:`\2`\\ ", text)
    raised = rf"(?<=[\w)])\^(?:\(([^()\s]{{1,8}})\)|({letter})(?![A-Za-z0-9_]))"
    return _outside_of_roles(raised, _raised, text)


def _outside_of_roles(
    pattern: str, replacement: str | Callable[[re.Match[str]], str], text: str
) -> str:
    """Replace a pattern where no index has been set yet, as roles cannot hold each other."""
    pieces = re.split(r"(:\w+:`[^`]*`)", text)
    return "".join(
        piece if odd % 2 else re.sub(pattern, replacement, piece)
        for odd, piece in enumerate(pieces)
    )


def _raised(match: re.Match[str]) -> str:
    return f"\\ :sup:`{match[1] or match[2]}`\\ "
