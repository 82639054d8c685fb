"""Arguments against the annotations of a function: the one place where these say what a call may give.

:func:`checked` stands above a public function, reads its annotations at the first call, and refuses in one sentence
what they do not allow: another type, shape or word, or lengths of two arrays that differ. An axis with a name is not
empty; one that may be is called ``_``. Of what JAX traces, shape and type are checked and values are not. Arguments go
on as they are, but for lists where an array is meant and for whole numbers that came as floats.
"""

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from steepest.core.errors import UserError, nearest
from steepest.core.fields import Within
from steepest.core.given import KEY, dtype_kind, shape_of, shown, takes, traced

Given = ParamSpec("Given")
Result = TypeVar("Result")
Sizes = dict[str, int]
"""Lengths of axes by name, as the arrays of one call have them."""

REAL = "fiubV"  # the last is the kind of bfloat16 and its like
EXAMPLES = {
    "GradientTransformation": "optax.sgd(0.1)",
    "Generator": "np.random.default_rng(0)",
    "Network": "mlp((2, 8, 1))",
    "Mlp": "mlp((2, 8, 1))",
    "Dataset": "steepest.nn.data.digits()",
    "Potential": "steepest.programs.entropy()",
}
"""What to try where an object of a class is meant."""


@dataclass(frozen=True)
class Kind:
    """What one annotation allows.

    Attributes:
        said: in words.
        accepts: of a value and the lengths known so far, to which it may add.
        example: what to try.
        convert: what the function gets of an accepted value.
        axes: of an array, as its annotation has them.
        words: the allowed words, where they are listed.
    """

    said: str
    accepts: Callable[[Any, Sizes], bool]
    example: str
    convert: Callable[[Any], Any] = lambda value: value
    axes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


def checked(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Refuse arguments that the annotations of a function do not allow, with a ``UserError`` that names the argument.

    >>> @checked
    ... def double(count: int) -> int:
    ...     return 2 * count
    >>> double("three")
    Traceback (most recent call last):
    steepest.core.errors.UserError: double: count must be a whole number, got 'three'; try count=3
    """
    signature = inspect.signature(function)

    @cache
    def kinds() -> dict[str, Kind]:
        read = {name: kind_of(one.annotation) for name, one in signature.parameters.items()}
        return {name: kind for name, kind in read.items() if kind is not None}

    several = {name for name, one in signature.parameters.items() if one.kind is one.VAR_POSITIONAL}

    @wraps(function)
    def call(*args: Given.args, **options: Given.kwargs) -> Result:
        try:
            bound = signature.bind(*args, **options)
        except TypeError:  # Python's own sentence says which argument is missing or unknown
            return function(*args, **options)
        sizes: Sizes = {}
        for name, value in bound.arguments.items():
            kind = kinds().get(name)
            if kind is None:
                continue
            label = f"{function.__name__}: {name}"
            if name in several:
                value = tuple(_accepted(label, name, part, kind, sizes) for part in value)
            else:
                value = _accepted(label, name, value, kind, sizes)
            bound.arguments[name] = value
        return function(*bound.args, **bound.kwargs)

    return call


def _accepted(label: str, name: str, value: Any, kind: Kind, sizes: Sizes) -> Any:
    if kind.accepts(value, sizes):
        return kind.convert(value)
    lengths = ", ".join(f"{axis} = {sizes[axis]}" for axis in kind.axes if axis in sizes)
    wanted = f"{label} must be {kind.said}{f' where {lengths}' * bool(lengths)}, got {shown(value)}"
    if kind.words and isinstance(value, str):
        raise UserError(f"{wanted}; {nearest(value, kind.words)}")
    raise UserError(f"{wanted}; try {name}={_example(kind, sizes)}")


def _example(kind: Kind, sizes: Sizes) -> str:
    """Return what to try: of an array one with the lengths that the others have."""
    if not kind.axes:
        return kind.example
    usual = [axis for axis in kind.axes if axis.isidentifier() or axis.isdigit()]
    lengths = [axis if axis.isdigit() else str(sizes.get(axis, 3)) for axis in usual]
    return f"np.ones({lengths[0]})" if len(lengths) == 1 else f"np.ones(({', '.join(lengths)}))"


def kind_of(annotation: Any) -> Kind | None:
    """Return what an annotation allows, or None where that is anything, or nothing that is known here."""
    for reads in (_of_union, _of_array, _of_number, _of_words, _of_function, _of_several):
        kind = reads(annotation)
        if kind is not None:
            return kind
    return _of_class(annotation)


def _of_union(annotation: Any) -> Kind | None:
    origin = typing.get_origin(annotation)
    if origin not in (typing.Union, UnionType):
        return None
    parts = typing.get_args(annotation)
    if any(getattr(part, "dtypes", None) == ("prng_key",) for part in parts):
        kinds: list[Kind | None] = [_KEY]
    elif set(typing.get_args(ArrayLike)) <= set(parts) or {complex, np.ndarray} <= set(parts):
        kinds = [_array("real numbers", None, REAL)]
    else:
        kinds = [kind_of(part) for part in parts if part is not NoneType]
    distinct = {kind.said: kind for kind in kinds if kind is not None}
    if len(kinds) > sum(kind is not None for kind in kinds):
        return ANYTHING
    first, *others = distinct.values()
    optional = NoneType in parts
    said = " or ".join([*distinct, *["None"] * optional])
    if not others and not optional:
        return first

    def one(value: Any, sizes: Sizes) -> Kind | None:
        return next((kind for kind in distinct.values() if kind.accepts(value, sizes)), None)

    def accepts(value: Any, sizes: Sizes) -> bool:
        return (value is None and optional) or one(value, sizes) is not None

    def convert(value: Any) -> Any:
        kind = one(value, {})
        return value if kind is None else kind.convert(value)

    axes = tuple(axis for kind in distinct.values() for axis in kind.axes)
    words = tuple(word for kind in distinct.values() for word in kind.words)
    return Kind(said, accepts, first.example, convert, axes, words)


def _of_array(annotation: Any) -> Kind | None:
    dims = getattr(annotation, "dim_str", None)
    if isinstance(dims, str):
        types = annotation.dtypes if isinstance(annotation.dtypes, tuple) else ()
        whole = "int32" in types and "float32" not in types
        yes_or_no = "bool" in types and "int32" not in types
        kinds, said = (
            ("iub", "whole numbers")
            if whole
            else ("biuf", "truth values")  # zeros and ones are some
            if yes_or_no
            else (REAL, "real numbers")
        )
        kind = _array(said, tuple(dims.split()), kinds)
        return replace(kind, convert=_maker(annotation.array_type))
    if annotation is np.ndarray or typing.get_origin(annotation) is np.ndarray:
        return _plain_array(REAL + "c", np.ndarray)
    if _is_of_jax(annotation):
        return _plain_array(REAL + "c" + KEY, annotation)
    if getattr(annotation, "__name__", "") == "PyTree":
        return Kind("parameters, arrays of real numbers", _is_tree, "{'w': jnp.ones((4, 2))}")
    return None


def _plain_array(kinds: str, array_type: Any) -> Kind:
    def accepts(value: Any, sizes: Sizes) -> bool:
        is_array = hasattr(value, "shape") or isinstance(value, list | tuple)
        return is_array and dtype_kind(value) in kinds

    return Kind("an array of numbers", accepts, "np.ones(3)", _maker(array_type))


def _is_of_jax(annotation: Any) -> bool:
    module = getattr(annotation, "__module__", "") if isinstance(annotation, type) else ""
    return module.startswith("jax") and annotation.__name__.endswith("Array")


def _maker(array_type: Any) -> Callable[[Any], Any]:
    """Return what makes an array of lists, where the function asks for its shape."""
    if array_type is np.ndarray:
        return lambda value: np.asarray(value) if isinstance(value, list | tuple) else value
    if _is_of_jax(array_type):
        return _of_lists
    return lambda value: value


def _of_lists(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    import jax.numpy as jnp  # the annotation is JAX's, so that this is loaded

    return jnp.asarray(value)


def _array(said: str, dims: tuple[str, ...] | None, kinds: str) -> Kind:
    """Return the kind of arrays whose entries and axes are such."""

    def accepts(value: Any, sizes: Sizes) -> bool:
        if dtype_kind(value) not in kinds:
            return False
        return dims is None or _fits(shape_of(value), dims, sizes)

    if dims is None:
        return Kind(said, accepts, "np.ones(3)")
    if not dims:
        return Kind("a number", accepts, "0.1")
    shape = ", ".join(dims) + "," * (len(dims) == 1)
    named = any(dim.isidentifier() or dim.isdigit() for dim in dims)
    return Kind(f"{said} of shape ({shape})", accepts, "np.ones(3)", axes=dims if named else ())


def _fits(shape: tuple[int, ...], dims: tuple[str, ...], sizes: Sizes) -> bool:
    """Tell whether a shape has the axes, none of them empty, and remember the lengths of those with names."""
    loose = [place for place, dim in enumerate(dims) if dim.startswith(("*", "..."))]
    if loose:
        behind = len(dims) - loose[0] - 1
        if len(shape) < len(dims) - 1:
            return False
        shape = shape[: loose[0]] + shape[len(shape) - behind :]
        dims = dims[: loose[0]] + dims[loose[0] + 1 :]
    if len(shape) != len(dims):
        return False
    lengths: Sizes = {}
    for dim, length in zip(dims, shape, strict=True):
        if dim.isdigit() and int(dim) != length:
            return False
        if dim.isidentifier() and dim != "_":
            if not length or lengths.get(dim, sizes.get(dim, length)) != length:
                return False
            lengths[dim] = length
    sizes |= lengths
    return True


def _is_tree(value: Any, sizes: Sizes) -> bool:
    import jax  # whoever has parameters has loaded it

    leaves = jax.tree.leaves(value)
    real = all(dtype_kind(leaf) in REAL for leaf in leaves)
    return real and any(0 not in shape_of(leaf) for leaf in leaves)


def _is_key(value: Any, sizes: Sizes) -> bool:
    kind = dtype_kind(value)
    if not hasattr(value, "dtype"):
        return False
    old = kind == "u" and shape_of(value) in ((2,), (4,))
    return old or (kind == KEY and shape_of(value) == ())


ANYTHING = Kind("anything", lambda value, sizes: True, "1")
_KEY = Kind("one random key of JAX", _is_key, "jax.random.key(0)")


def _of_number(annotation: Any) -> Kind | None:
    limits: list[Within] = []
    if typing.get_origin(annotation) is Annotated:
        annotation, *marks = typing.get_args(annotation)
        limits = [mark for mark in marks if isinstance(mark, Within)]
    within = "".join(f", {limit}" for limit in limits)

    def inside(value: Any) -> bool:
        if traced(value):
            return True
        finite = bool(np.isfinite(float(value)))
        return not limits or (finite and all(float(value) in limit for limit in limits))

    if annotation is bool:
        return Kind("True or False", _is_truth, "True")
    if annotation is int:
        accepts = lambda value, sizes: _is_whole(value) and inside(value)
        convert = lambda value: int(value) if isinstance(value, float | np.floating) else value
        return Kind(f"a whole number{within}", accepts, "3", convert)
    if annotation is float:
        accepts = lambda value, sizes: _is_real(value) and inside(value)
        return Kind(f"a number{within}", accepts, "0.1")
    return None


def _is_truth(value: Any, sizes: Sizes) -> bool:
    if traced(value) or isinstance(value, int | np.integer):
        return shape_of(value) == () and (traced(value) or value in (0, 1))
    return dtype_kind(value) == "b" and shape_of(value) == ()


def _is_real(value: Any) -> bool:
    if isinstance(value, bool | list | tuple) or dtype_kind(value) not in "fiuV":
        return False
    if shape_of(value) != ():
        return False
    return traced(value) or not np.isnan(float(value))


def _is_whole(value: Any) -> bool:
    if not _is_real(value):
        return False
    if traced(value):
        return dtype_kind(value) in "iu"
    return float(value) % 1 == 0


def _of_words(annotation: Any) -> Kind | None:
    if annotation is str:
        return Kind("a word", lambda value, sizes: isinstance(value, str), "'name'")
    if typing.get_origin(annotation) is not Literal:
        return None
    words = typing.get_args(annotation)
    accepts = lambda value, sizes: isinstance(value, str | int) and value in words
    said = " or ".join(repr(word) for word in words)
    return Kind(said, accepts, repr(words[0]), words=tuple(str(word) for word in words))


def _of_function(annotation: Any) -> Kind | None:
    if annotation is not Callable and typing.get_origin(annotation) is not Callable:
        return None
    asked, result = typing.get_args(annotation) or (..., Any)
    if not isinstance(asked, list):
        return Kind("a function", lambda value, sizes: callable(value), "jnp.tanh")
    number = len(asked)
    names = ", ".join("abcdefgh"[:number])
    of = f"a function of {number} argument{'s' * (number > 1)}"

    def accepts(value: Any, sizes: Sizes) -> bool:
        return callable(value) and not isinstance(value, type) and takes(value, number)

    body = "(a**2).sum()" if getattr(result, "dim_str", None) == "" else "2 * a"
    return Kind(of, accepts, f"lambda {names}: {body}")


def _of_several(annotation: Any) -> Kind | None:
    origin = typing.get_origin(annotation)
    if not isinstance(origin, type):
        return None
    parts = [part for part in typing.get_args(annotation) if part is not Ellipsis]
    if issubclass(origin, Mapping) or origin is dict:
        return _mapping(kind_of(parts[-1]))
    if not issubclass(origin, Sequence):
        return None
    length = None if origin is not tuple or Ellipsis in typing.get_args(annotation) else len(parts)
    elements = [kind_of(part) or ANYTHING for part in parts] or [ANYTHING]

    def accepts(value: Any, sizes: Sizes) -> bool:
        if traced(value):
            return True
        if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__getitem__"):
            return False
        try:
            listed = list(value)
        except TypeError:  # an array without axes
            return False
        kinds = elements * len(listed) if length is None else elements
        pairs = zip(listed, kinds, strict=False)
        return length in (None, len(listed)) and all(kind.accepts(v, {}) for v, kind in pairs)

    said = ", ".join(dict.fromkeys(kind.said for kind in elements))
    number = "a sequence, each" if length is None else f"{length} values,"
    examples = [kind.example for kind in elements] * (2 if length is None else 1)
    return Kind(f"{number} {said}", accepts, f"({', '.join(examples)})")


def _mapping(element: Kind | None) -> Kind:
    def accepts(value: Any, sizes: Sizes) -> bool:
        if not isinstance(value, Mapping):
            return False
        return element is None or all(element.accepts(part, {}) for part in value.values())

    what = "" if element is None else f", each value {element.said}"
    example = "{}" if element is None else f"{{'name': {element.example}}}"
    return Kind(f"a dictionary{what}", accepts, example)


def _of_class(annotation: Any) -> Kind | None:
    origin = typing.get_origin(annotation) or annotation
    if not isinstance(origin, type) or origin in (Any, object):
        return None
    if getattr(origin, "_is_protocol", False):
        return None
    parts = getattr(origin, "_fields", ()) or getattr(origin, "__dataclass_fields__", ())

    def accepts(value: Any, sizes: Sizes) -> bool:
        alike = bool(parts) and all(hasattr(value, part) for part in parts)
        return isinstance(value, origin) or alike

    name = origin.__name__
    example = EXAMPLES.get(name, f"{name}(…)")
    return Kind(f"a {name}", accepts, example)
