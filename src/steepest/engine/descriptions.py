"""What a claim says of itself, read from its source: no claim is imported for it, and so no JAX.

Nearly every claim writes its texts, presets and defaults as literals. Where one does not, its class is imported.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from steepest import catalogue
from steepest.catalogue import Entry
from steepest.core.page import page_of
from steepest.core.reading import read_text
from steepest.engine.fingerprint import Source, origin, read


@dataclass(frozen=True)
class FieldText:
    """A field of a claim in words.

    Attributes:
        name: of the field.
        quick: its default.
        full: its value at the full preset.
        meaning: what `kit.param` says that it is, with its unit.
    """

    name: str
    quick: str
    full: str
    meaning: str


@dataclass(frozen=True)
class Description:
    """What a claim says of itself; each attribute means what it means in :class:`steepest.kit.Claim`.

    Attributes:
        explanation: the module's docstring after its first paragraph.
        diagram: the fields that span the claim's own phase diagram.
    """

    explanation: str
    kind: str
    statement: str
    source: str
    corrections: tuple[str, ...]
    version: int
    diagram: tuple[str, ...]
    fields: tuple[FieldText, ...]


def description(entry: Entry) -> Description:
    """Return what a claim says of itself.

    Raises:
        UserError: a claim that says something which only its import tells, and that cannot be imported.
    """
    try:
        return _from_source(entry)
    except _NotLiteralError:
        return _from_class(entry)


def _from_class(entry: Entry) -> Description:
    from steepest.engine.run import about, build  # JAX is imported only where a claim is

    kind = catalogue.load(entry)
    text = about(entry, kind)
    full = build(kind, "full", {})
    described = (
        FieldText(
            field.name,
            str(field.default),
            str(getattr(full, field.name)),
            text["meanings"][field.name],
        )
        for field in fields(kind)
    )
    return Description(
        explanation=text["explanation"],
        kind=text["kind"],
        statement=text["statement"],
        source=text["source"],
        corrections=tuple(text["corrections"]),
        version=kind.version,
        diagram=tuple(text["diagram"]),
        fields=tuple(described),
    )


class _NotLiteralError(Exception):
    """A source that says something in a way which only its import tells."""


def _from_source(entry: Entry) -> Description:
    text = read_text(entry.path)
    source = read(entry.module, entry.path)
    lineage = _lineage(_claim(source), source)
    values = _assigned(lineage)
    said = {name: _value(*values[name]) for name in _SAID if name in values}
    page = page_of(entry.path)
    if page is not None:
        said |= {name: getattr(page, name) for name in ("statement", "source", "corrections")}
    if not {"statement", "source"} <= set(said):
        raise _NotLiteralError
    docstring = ast.get_docstring(ast.parse(text)) or ""
    return Description(
        explanation=docstring.partition("\n\n")[2],
        kind=said.get("kind", ""),
        statement=said["statement"],
        source=said["source"],
        corrections=tuple(said.get("corrections", ())),
        version=page.version if page else _version(values),
        diagram=_diagram(values),
        fields=tuple(_fields(lineage, said.get("full", {}))),
    )


_SAID = frozenset({"kind", "statement", "source", "corrections", "full"})
_REAL = frozenset({"float", "Positive", "NonNegative", "Fraction"})
_OTHER = frozenset({"int", "str", "bool", "Count", "Seeds"})
"""Words in the types of fields: of real numbers, and of whole numbers and words."""


Lineage = list[tuple[ast.ClassDef, Source]]
"""A class behind its bases, each with its file."""
Values = dict[str, tuple[ast.expr, Source]]
"""Expressions by the names that they are given, each with its file."""


def _claim(source: Source) -> ast.ClassDef:
    """Return the class of a file that is a claim."""
    claims = [
        node
        for node in source.tree.body
        if isinstance(node, ast.ClassDef)
        if "claim" in [_kit_name(decorator, source) for decorator in node.decorator_list]
    ]
    if len(claims) != 1:
        raise _NotLiteralError
    return claims[0]


def _lineage(node: ast.ClassDef, source: Source) -> Lineage:
    """Return a class behind its bases, from the first one below ``kit.Claim`` on."""
    if [_kit_name(base, source) for base in node.bases] == ["Claim"]:
        return [(node, source)]
    match node.bases:
        case [ast.Name(id=heard)] | [ast.Subscript(value=ast.Name(id=heard))]:
            where, name = _defined(heard, source)
        case _:
            raise _NotLiteralError
    return [*_lineage(_class(name, where), where), (node, source)]


def _class(name: str, source: Source) -> ast.ClassDef:
    """Return a class of a file."""
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return node
    raise _NotLiteralError


def _kit_name(node: ast.expr, source: Source) -> str:
    """Return what a name of the kit is called there, as in ``Claim`` or ``kit.Claim[Setting]``; empty for others."""
    match node:
        case ast.Subscript(value=value):
            return _kit_name(value, source)
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            return name if source.imports.get(module) == ("steepest", "kit") else ""
        case ast.Name(id=name):
            module, original = source.imports.get(name, ("", ""))
            return original if module in ("steepest.kit", "steepest.kit.points") else ""
    return ""


def _assigned(lineage: Lineage) -> Values:
    """Return the expressions that classes assign to names, by name; the last class has the word."""
    values: Values = {}
    for claim, source in lineage:
        for node in claim.body:
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    values[name] = (value, source)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    values[name] = (value, source)
    return values


def _value(node: ast.expr, source: Source) -> Any:
    """Return the value of a literal, or of a constant that a file of ours gives a literal."""
    if isinstance(node, ast.Name):
        return _value(*_constant(node.id, source))
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise _NotLiteralError from None


def _constant(name: str, source: Source) -> tuple[ast.expr, Source]:
    """Return the expression that a name of a file stands for, and the file in which it is written."""
    where, original = _defined(name, source)
    top = ast.ClassDef("", [], [], where.tree.body, [])
    values = _assigned([(top, where)])
    if original not in values:
        raise _NotLiteralError
    return values[original]


def _defined(name: str, source: Source) -> tuple[Source, str]:
    """Return the file in which a name of a file is defined, and its name there."""
    if name in source.own:
        return source, name
    module, original = source.imports.get(name, ("", ""))
    where = origin(module, original, near=source.path.parent) if module else None
    if where is None or original not in where.own:
        raise _NotLiteralError
    return where, original


def _version(values: Values) -> int:
    """Return the version of a claim: as it is set, or the last of its history."""
    if "history" not in values:
        return _value(*values["version"]) if "version" in values else 1
    history, source = values["history"]
    match history:
        case ast.Tuple(elts=[]):
            return _value(*values["version"]) if "version" in values else 1
        case ast.Tuple(elts=[*_, ast.Call(func=called, args=[number, *_])]):
            if _kit_name(called, source) == "Version":
                return _value(number, source)
    raise _NotLiteralError


def _diagram(values: Values) -> tuple[str, ...]:
    """Return the fields of a claim's diagram, or of its point's where it has one."""
    point, source = values.get("point", (None, None))
    if isinstance(point, ast.Name) and source is not None:
        where, name = _defined(point.id, source)
        kind = _class(name, where)
        if [_kit_name(base, where) for base in kind.bases] != ["Point"]:
            raise _NotLiteralError
        return _diagram(_assigned([(kind, where)]))
    return tuple(_value(*values["diagram"])) if "diagram" in values else ()


def _fields(lineage: Lineage, full: Mapping[str, Any]) -> list[FieldText]:
    """Return the fields of all classes, the first class's first; a later class may change a field."""
    described: dict[str, FieldText] = {}
    for claim, source in lineage:
        for node in claim.body:
            if not isinstance(node, ast.AnnAssign) or "ClassVar" in ast.unparse(node.annotation):
                continue
            if node.value is None:
                raise _NotLiteralError
            name = ast.unparse(node.target)
            default, meaning = _default(node.value, source)
            quick = _value(default, source)
            held = _held(full.get(name, quick), _is_real(node.annotation, source))
            described[name] = FieldText(name, str(quick), str(held), meaning)
    return [*described.values()]


def _default(node: ast.expr, source: Source) -> tuple[ast.expr, str]:
    """Return the default of a field and its meaning, which ``kit.param`` says."""
    if not isinstance(node, ast.Call):
        return node, ""
    options = {keyword.arg: keyword.value for keyword in node.keywords}
    if _kit_name(node.func, source) != "param" or len(node.args) != 2 or None in options:
        raise _NotLiteralError
    unit = _value(options.get("unit", ast.Constant("1")), source)
    return node.args[0], f"{_value(node.args[1], source)} [{unit}]"


def _is_real(hint: ast.expr, source: Source) -> bool:
    """Whether the type of a field, or of its elements, is of real numbers."""
    match hint:
        case ast.Name(id=name) if name in _REAL | _OTHER:
            return name in _REAL
        case ast.Attribute(attr=name) if _kit_name(hint, source) in _REAL | _OTHER:
            return name in _REAL
        case ast.Name(id=name):
            return _is_real(*_constant(name, source))
        case ast.Subscript(value=ast.Name(id="Literal")):
            return False
        case ast.Subscript(value=ast.Name(id="Annotated" | "tuple"), slice=ast.Tuple(elts=parts)):
            return _is_real(parts[0], source)
    raise _NotLiteralError


def _held(value: Any, real: bool) -> Any:
    """Return a value as a claim holds it: lists are tuples, and where numbers are real they are floats."""
    if isinstance(value, list | tuple):
        return tuple(_held(element, real) for element in value)
    return float(value) if real and value is not None else value
