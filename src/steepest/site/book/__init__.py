"""The book: chapters, tutorials, guides, claims and reference as one site that opens from disk, built by Sphinx."""

from ._build import Book as Book
from ._build import build as build
from ._build import check as check
from ._build import docs_folder as docs_folder
from ._chapters import chapters as chapters
from ._chapters import needs as needs
from ._numbers import Asked as Asked
from ._numbers import Number as Number
from ._numbers import numbers as numbers
from ._numbers import written as written
from ._shelf import Shelf as Shelf
from ._statements import State as State
from ._statements import counts as counts
from ._statements import read_statements as read_statements
from ._theory import Theory as Theory
from ._theory import theory_of_catalogue as theory_of_catalogue
