"""Which code a result came from: digests of a claim's source and of all in steepest that it imports.

A result answers for the code that gave it. Three digests tell what has changed since:

* *experiment*: what ``setting``, ``hypotheses``, ``predict`` and ``observe`` reach, followed through the claim's own
  functions, its neighbours and every module of steepest that they import, and so on;
* *rivals*: what ``rivals`` reaches besides;
* *judgement*: everything, panels included, and of the claim's page the version and what the data do not tell.

Sources are compared as syntax trees: comments, layout and the docstrings of functions do not count. The sources are
read and not imported.
"""

import ast
import hashlib
import inspect
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import steepest
from steepest.cache import Table
from steepest.catalogue import Entry, catalogue
from steepest.core.page import NAME as PAGE
from steepest.core.page import page_of
from steepest.core.reading import read_text

ROOT = Path(steepest.__file__).parent
COMPUTING = ("jax", "jaxlib", "numpy")
"""Packages whose version may change a number."""
OF_THE_EXPERIMENT = ("setting", "hypotheses", "predict", "observe")
OF_THE_JUDGEMENT = ("judge", "rivals", "controls", "figure", "run_conditions")
BASE = ("steepest.core.experiment",)
"""What every experiment depends on, imported by name or not."""
FORM = "steepest.kit._claim"
"""The base class of claims: an experiment depends on what it says of experiments, not on how it judges."""
JUDGING = (
    "steepest.core.checks",
    "steepest.core.panels",
    "steepest.kit._clauses",
    "steepest.kit._literal",
    "steepest.kit._judging",
    "steepest.kit._laws",
)
"""What every judgement depends on."""


@cache
def version(name: str) -> str:
    """Return the installed version of a package, looked up once: it stays that of this process."""
    return metadata.version(name)


@dataclass(frozen=True)
class Stamp:
    """The digests of the code that gives a result.

    Attributes:
        experiment: of what gives the arrays.
        rivals: of what gives the rivals' predictions.
        judgement: of everything.
    """

    experiment: str
    rivals: str
    judgement: str

    def to_json(self) -> dict[str, str]:
        """Return the digests by name."""
        return asdict(self)

    def same_experiment(self, stored: Mapping[str, str], versions: Mapping[str, str]) -> bool:
        """Whether stored arrays came from this experiment, under these versions of what computes."""
        computing = all(versions.get(name) == version(name) for name in COMPUTING)
        return stored["experiment"] == self.experiment and computing


def stamp(entry: Entry, kind: type | None = None, *, sources: str = "") -> Stamp:
    """Return the stamp of a claim's code as it is on disk now.

    Args:
        entry: the claim's line in the catalogue.
        kind: its class, where it has no file: a class typed in a notebook.
        sources: what :func:`sources_now` has just returned, so that many stamps need one look at the disk.
    """
    if not entry.path.is_file():
        return _stamp_of_class(kind)
    if entry.path.is_relative_to(ROOT):  # and so is all of steepest that it may import
        return _stamp_as_long_as(sources or sources_now(), entry.module, entry.path)
    return _stamp_of_file(entry.module, entry.path)


@lru_cache(maxsize=512)
def _stamp_as_long_as(state: str, module: str, path: Path) -> Stamp:
    """Return the stamp of a file of ours, which is kept, on disk too, as long as no file of ours has changed."""
    table = _table(state)
    match table.get(module):
        case {"experiment": str(experiment), "rivals": str(rivals), "judgement": str(judgement)}:
            return Stamp(experiment, rivals, judgement)
    stamp = _stamp_of_file(module, path, _origins(state))
    table.put(module, stamp.to_json())
    return stamp


@lru_cache(maxsize=1)
def _table(state: str) -> Table:
    return Table("stamps", state)


@lru_cache(maxsize=1)
def _origins(state: str) -> "Origins":
    return {}


def sources_now() -> str:
    """Return a digest of when each source or page of ours was last written, of its size, and of Python's version."""
    files = [sys.version]
    for folder, _, names in os.walk(ROOT):
        for name in names:
            if name.endswith(".py") or name == PAGE:
                path = os.path.join(folder, name)
                state = os.stat(path)
                files.append(f"{path} {state.st_mtime_ns} {state.st_size}")
    return _digest(sorted(files))


def _stamp_of_file(module: str, path: Path, origins: "Origins | None" = None) -> Stamp:
    source = read(module, path)
    origins = {} if origins is None else origins
    around = lambda names, also=(): closure(source, names, also, origins)
    reached = source.reached(OF_THE_EXPERIMENT)
    by_rivals = source.reached(("rivals",))
    experiment = _digest([source.text_of(reached), *around(reached, BASE)])
    rivals = _digest([source.text_of(by_rivals), *around(by_rivals)])
    page = page_of(path)
    accepted = page.judged if page else ()
    judgement = _digest([experiment, source.whole, *accepted, *around(None, JUDGING)])
    return Stamp(experiment, rivals, judgement)


def current(entry: Entry, result: Any, *, sources: str = "") -> bool:
    """Whether a stored result, its verdict included, is that of the code that is here now."""
    return not staleness(entry, result, sources=sources)


def staleness(entry: Entry, result: Any, *, sources: str = "") -> str:
    """Return why a stored verdict may not be that of the code that is here now; empty where it is.

    Args:
        entry: the claim's line in the catalogue.
        result: a result, or the record of one.
        sources: as of :func:`stamp`.
    """
    if not entry.path.is_file():
        return "the claim's source is not here any more, so nobody can tell"
    try:
        now = stamp(entry, sources=sources)
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError):
        return "the claim's source cannot be read, so nobody can tell"
    if not now.same_experiment(result.stamp, result.versions):
        return "the claim, a part of it, or JAX or NumPy has changed since"
    if result.stamp["judgement"] != now.judgement:
        return (
            "its judgement or a text of it has changed since; the arrays need only be judged anew"
        )
    return ""


def entry_of(result: Any) -> Entry:
    """Return the catalogue's line for a result, or what the result itself says where there is none."""
    about = result.about
    target = about["target"]
    line = catalogue().get(result.claim)
    if line is not None and target == line.target:
        return line
    return Entry(result.claim, about["chapter"], about["says"], about["origin"], Path(target))


@cache
def everything() -> str:
    """Return the version of steepest with a digest of all its sources, and the versions of what computes.

    Workers of a sweep compare it: numbers of two programs are comparable only if it is the same.

    >>> everything().startswith(f"steepest {steepest.__version__}")
    True
    """
    digest = hashlib.sha256()
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    packages = " ".join(f"{name} {version(name)}" for name in COMPUTING)
    return f"steepest {steepest.__version__} ({digest.hexdigest()[:8]}) {packages}"


class Source:
    """One file as definitions and imports.

    Attributes:
        module: its dotted name; empty for a reader's file.
        path: the file.
        tree: its syntax, without docstrings.
    """

    def __init__(self, module: str, path: Path) -> None:
        self.module = module
        self.path = path
        self.tree = _without_docstrings(ast.parse(read_text(path)))
        self._mentions: dict[ast.AST, Mentions] = {}

    @cached_property
    def whole(self) -> str:
        """A digest of all of it."""
        return _digest([ast.dump(self.tree)])

    @cached_property
    def own(self) -> frozenset[str]:
        """The names that it defines."""
        names = {node.name for node in self.tree.body if isinstance(node, _NAMED)}
        return frozenset(names | {name for node in self.tree.body for name in _assigned(node)})

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Where each imported name comes from: module and name."""
        imports: dict[str, tuple[str, str]] = {}
        for node in _executed(self.tree):
            imports |= _imports(node, self.module, self.path)
        return imports

    @cached_property
    def nodes(self) -> dict[str, list[ast.AST]]:
        """Every top-level definition by name, and every method of a claim; two methods of one name are one."""
        nodes: dict[str, list[ast.AST]] = {}
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and _is_experiment(node):
                for name, parts in _parts_of_experiment(node).items():
                    nodes.setdefault(name, []).extend(parts)
            elif isinstance(node, _NAMED):
                nodes.setdefault(node.name, []).append(node)
                if (
                    isinstance(node, ast.ClassDef) and node.bases
                ):  # it may be a claim that inherits all
                    nodes.setdefault(_head(node), []).append(node)
            for name in _assigned(node):
                nodes.setdefault(name, []).append(node)
        return nodes

    @cached_property
    def heads(self) -> frozenset[str]:
        """What stands for the heads of its classes."""
        return frozenset(_head(node) for node in self.tree.body if isinstance(node, ast.ClassDef))

    @cached_property
    def loose(self) -> list[ast.AST]:
        """Statements that are neither definitions nor imports."""
        imports = (ast.Import, ast.ImportFrom)
        return [
            node
            for node in self.tree.body
            if not isinstance(node, (*_NAMED, *imports)) and not _assigned(node)
        ]

    def uses(self, name: str) -> frozenset[str]:
        """Return the names that a definition mentions."""
        return self._names(self.nodes[name])

    def mentions(self, node: ast.AST) -> "Mentions":
        """Return what a piece of the file mentions; a piece is walked once."""
        if node not in self._mentions:
            self._mentions[node] = Mentions(node)
        return self._mentions[node]

    def _names(self, nodes: Iterable[ast.AST]) -> frozenset[str]:
        return frozenset[str]().union(*(self.mentions(node).names for node in nodes))

    def reached(self, methods: Iterable[str]) -> frozenset[str]:
        """Return the definitions that some methods reach: what they mention, what that mentions, and so on."""
        waiting = [name for name in methods if name in self.nodes]
        waiting += [name for name in self.nodes if name in self.heads]
        waiting += [name for name in self._names(self.loose) if name in self.nodes]
        reached: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in reached:
                continue
            reached.add(name)
            waiting += [used for used in self.uses(name) if used in self.nodes]
        return frozenset(reached)

    def text_of(self, names: Iterable[str]) -> str:
        """Return the text of some definitions, and of all loose statements."""
        nodes = [node for name in sorted(names) for node in self.nodes[name]]
        return "\n".join(ast.dump(node) for node in (*nodes, *self.loose))

    @cached_property
    def all_imported(self) -> list[tuple[str, str]]:
        """What the file imports, as modules and names."""
        return sorted(
            {pair for name in self.imports for pair in self._brought_by(name, [self.tree])}
        )

    @cached_property
    def of_the_experiment(self) -> list[tuple[str, str]]:
        """What the methods of an experiment import, as modules and names."""
        return self.imported(self.reached(OF_THE_EXPERIMENT))

    def imported(self, names: Iterable[str] | None) -> list[tuple[str, str]]:
        """Return what some definitions import, as modules and names; everything for None."""
        if names is None:
            return self.all_imported
        nodes = [node for name in names for node in self.nodes[name]] + self.loose
        used = self._names(nodes)
        # a star may bring any name
        brought = [name for name in self.imports if name in used or "*" in name]
        return sorted({pair for name in brought for pair in self._brought_by(name, nodes)})

    def _brought_by(self, name: str, nodes: list[ast.AST]) -> list[tuple[str, str]]:
        """Return what a name brings: of a package of ours, such as ``kit``, only the parts that are mentioned."""
        module, inner = self.imports[name]
        package = _file_of(f"{module}.{inner}", self.path.parent)
        if package is None or package.name != "__init__.py":
            return [(module, inner)]
        parts = {part for node in nodes for part in self.mentions(node).parts_of(name)}
        if not parts:  # it is only passed on
            return [(module, inner)]
        return [(f"{module}.{inner}", part) for part in parts]


def read(module: str, path: Path) -> Source:
    """Return the source of a file, which is kept as long as the file is the same."""
    state = path.stat()
    return _read(module, path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4096)
def _read(module: str, path: Path, changed: int, size: int) -> Source:
    return Source(module, path)


Origins = dict[tuple[str, str], Source | None]
"""The file in which each imported name is defined, by module and name."""


def closure(
    source: Source,
    names: Iterable[str] | None,
    also: Iterable[str] = (),
    origins: Origins | None = None,
) -> Iterator[str]:
    """Yield name and text of every module that some definitions of a file import, directly or not.

    Args:
        source: the file.
        names: of the definitions; None for the whole file.
        also: modules that count besides.
        origins: what is known of names from one folder, or from ours whose files do not change; more is added.
    """
    origins = {} if origins is None else origins
    waiting = [*source.imported(names), *((module, "*") for module in also)]
    modules: dict[str, Source] = {}
    done: set[tuple[str, str]] = set()
    while waiting:
        pair = waiting.pop()
        if pair in done:
            continue
        done.add(pair)
        if pair not in origins:
            origins[pair] = origin(*pair, near=source.path.parent)
        defined = origins[pair]
        if defined is None or defined.path == source.path:
            continue
        if str(defined.path) not in modules:
            modules[str(defined.path)] = defined
            form = defined.module == FORM
            waiting += defined.of_the_experiment if form else defined.all_imported
    # in an order that does not depend on where the files lie
    yield from sorted(
        f"{module.module or module.path.name}\n{module.whole}" for module in modules.values()
    )


def origin(module: str, name: str, near: Path) -> Source | None:
    """Return the file in which an imported name is defined, through packages that pass it on; None outside of ours."""
    path = _file_of(module, near)
    if path is None:
        return None
    inner = _file_of(f"{module}.{name}", near)
    if inner is not None:
        return read(f"{module}.{name}", inner)
    source = read(module, path)
    if name in source.imports and name not in source.own:
        further = source.imports[name]
        if further != (module, name):
            return origin(*further, near) or source
    return source


def _file_of(module: str, near: Path) -> Path | None:
    """The file of a module of steepest, or of a neighbour of the reader's file."""
    parts = module.split(".")
    if parts[0] == "steepest":
        base = ROOT.joinpath(*parts[1:])
    elif (near / parts[0]).is_dir() or (near / f"{parts[0]}.py").is_file():
        base = near.joinpath(*parts)
    elif parts[0] == near.name:  # a plugin that names its own package
        base = near.parent.joinpath(*parts)
    else:
        return None
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _assigned(node: ast.AST) -> list[str]:
    """The names that a statement at the top of a file assigns."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        targets = [inner for target in node.targets for inner in ast.walk(target)]
        return [target.id for target in targets if isinstance(target, ast.Name)]
    return []


_BLOCKS = (ast.stmt, ast.excepthandler, ast.match_case)
"""Nodes in which there are statements."""


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    """Every statement that runs: what is under ``if TYPE_CHECKING`` is for readers only."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting += node.orelse
            continue
        yield node
        waiting += _blocks_of(node)


def _blocks_of(node: ast.AST) -> Iterator[ast.AST]:
    return (inner for inner in ast.iter_child_nodes(node) if isinstance(inner, _BLOCKS))


def _is_experiment(node: ast.ClassDef) -> bool:
    """Whether a class has methods of a claim, which belong to different digests; others may be inherited."""
    methods = {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return bool(methods & {*OF_THE_EXPERIMENT, *OF_THE_JUDGEMENT})


# What a claim says of itself: no number depends on it. Presets are part of the question that was asked.
_PROSE = frozenset(
    {
        "kind",
        "statement",
        "headline",
        "source",
        "corrections",
        "remarks",
        "full",
        "tiny",
        "out_of_scope",
        "diagram",
        "base",
        "labels",
        "contours",
        "diagram_remarks",
        "point",
        "says",
        "history",
        "not_told",
        "shared",
    }
)


def _head(node: ast.ClassDef) -> str:
    """Return what stands for the head of a class among the definitions of a file; no name of its own looks so."""
    return f"class {node.name}"


def _parts_of_experiment(node: ast.ClassDef) -> dict[str, list[ast.AST]]:
    """A claim's class, method by method; ``class NAME`` stands for its head and its fields."""
    head: list[ast.AST] = [*node.bases, *node.decorator_list]
    parts: dict[str, list[ast.AST]] = {_head(node): head}
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            parts.setdefault(inner.name, []).append(inner)
        elif _attribute(inner) not in _PROSE:
            head += _without_words(inner)
    return parts


def _without_words(node: ast.AST) -> list[ast.AST]:
    """Return what an experiment depends on of a field: its type and its default, and not what ``kit.param`` says."""
    match node:
        case ast.AnnAssign(value=ast.Call(func=ast.Attribute(attr="param"), args=[default, *_])):
            return [node.target, node.annotation, default]
    return [node]


def _attribute(node: ast.AST) -> str:
    """The name of the class attribute that a statement sets; empty for fields and for anything else."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id if "ClassVar" in ast.unparse(node.annotation) else ""
    return ""


class Mentions:
    """What a piece of source mentions.

    Attributes:
        names: names and attributes: a method may be reached as ``self.name``, a part as ``part.name``.
    """

    def __init__(self, piece: ast.AST) -> None:
        self._times: Counter[str] = Counter()
        self._parts: dict[str, list[str]] = {}
        attributes = set()
        for node in ast.walk(piece):
            if isinstance(node, ast.Name):
                self._times[node.id] += 1
            elif isinstance(node, ast.Attribute):
                attributes.add(node.attr)
                if isinstance(node.value, ast.Name):
                    self._parts.setdefault(node.value.id, []).append(node.attr)
        self.names = frozenset(self._times) | attributes

    def parts_of(self, package: str) -> set[str]:
        """Return the attributes of a name that are mentioned; a star where the name stands by itself."""
        parts = self._parts.get(package, [])
        return {*parts, *(["*"] if self._times[package] > len(parts) else [])}


def _imports(node: ast.AST, module: str, path: Path) -> dict[str, tuple[str, str]]:
    """The names that an import statement binds, with module and name of each."""
    if isinstance(node, ast.Import):
        return {alias.asname or alias.name.split(".")[0]: (alias.name, "*") for alias in node.names}
    if not isinstance(node, ast.ImportFrom):
        return {}
    source = node.module or ""
    if node.level:
        package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
        parent = package[: len(package) - node.level + 1]
        source = ".".join([*parent, *([source] if source else [])])
    star = f"* of {source}"  # several modules may be imported so
    return {
        alias.asname or (star if alias.name == "*" else alias.name): (source, alias.name)
        for alias in node.names
    }


def _is_prose(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                if node.body and _is_prose(node.body[0]):
                    del node.body[0]
        waiting += _blocks_of(node)
    return tree


def _stamp_of_class(kind: type | None) -> Stamp:
    """The stamp of a class without a file: of its source if it can be had, else one that never matches."""
    try:
        text = textwrap.dedent(inspect.getsource(kind)) if kind else ""
    except (OSError, TypeError):
        text = ""
    digest = _digest([text, everything()]) if text else _digest([repr(object())])
    return Stamp(digest, digest, digest)


def _digest(parts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:16]
