"""Fields of a claim from the words of a command line."""

from collections.abc import Sequence
from typing import Any

from steepest.core.errors import UserError
from steepest.core.fields import field_type, field_types


def read_fields(kind: type, words: Sequence[str]) -> dict[str, Any]:
    """Read the fields of a claim's class from ``--field value`` words.

    Raises:
        UserError: an unknown field, one that is given twice, a value that it does not take, a stray word.
    """
    values: dict[str, list[str]] = {}
    name = ""
    for word in words:
        if word.startswith("--") and len(word) > 2:
            option, sign, value = word[2:].partition("=")
            name = option.replace("-", "_")
            if name in values:
                raise UserError(f"--{option} is given twice; write it once")
            field_type(kind, name)
            values[name] = value.split() if sign else []
        elif not name:
            raise UserError(f"unexpected {word!r}; fields are written as --field value")
        else:
            values[name].append(word)
    return {name: field_types(kind)[name].read(given) for name, given in values.items()}
