"""The claims, one a file, one folder a chapter. Importing this package imports no claim and no JAX.

The package can be called: ``steepest.claims()`` is the catalogue.
"""

import sys
from types import ModuleType

from ._catalogue import Entry as Entry
from ._catalogue import catalogue as catalogue
from ._catalogue import entry as entry
from ._catalogue import load as load
from ._catalogue import write_template as write_template


class _Claims(ModuleType):
    """``steepest.claims`` is both this package and the function of the public interface; a module may have a class."""

    def __call__(self) -> dict[str, Entry]:
        """The catalogue: every claim by name, with its chapter and its statement in one sentence.

        >>> import steepest
        >>> steepest.claims()["catapult"].chapter
        'optimization'
        """
        return dict(catalogue())


sys.modules[__name__].__class__ = _Claims
