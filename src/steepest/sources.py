"""The one bibliography: the works that claims cite, and the citations in a text.

A text cites a work as ``[@cohen2021]``. The works are in ``sources.toml`` beside this file.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources
from types import MappingProxyType

from steepest.core.errors import UserError

CITATION = re.compile(r"\[@([^\]\s]+)\]")
"""A citation in a text; its group is the key."""
ENTRIES = {
    "article": ("article", "journal"),
    "book": ("book", "publisher"),
    "lecture": ("misc", "howpublished"),
    "talk": ("misc", "howpublished"),
    "notes": ("misc", "howpublished"),
}
"""Of each kind of work the type of its BibTeX entry, and the field of the venue there."""


@dataclass(frozen=True)
class Source:
    """One work.

    Attributes:
        key: what texts call it, such as ``cohen2021``.
        kind: ``"article"``, ``"book"``, ``"lecture"``, ``"talk"`` or ``"notes"``.
        authors: their names, given name first; braces hold a family name of several words together.
        year: of the publication.
        title: as it is printed; of a talk whose title is not known, what it is on.
        venue: journal, conference, publisher, or where the talk was given.
        doi: empty where it is not known for certain.
        arxiv: the number, empty where it is not known for certain.
        url: a page of the work, where there is neither of the two.
        letter: tells two works apart that would be cited alike, else empty.
    """

    key: str
    kind: str
    authors: tuple[str, ...]
    year: int
    title: str
    venue: str
    doi: str = ""
    arxiv: str = ""
    url: str = ""
    letter: str = ""

    @property
    def short(self) -> str:
        """The work in a sentence: family names and year.

        >>> sources()["cohen2021"].short, sources()["lyu2020"].short, sources()["ji2020b"].short
        ('Cohen et al. 2021', 'Lyu and Li 2020', 'Ji and Telgarsky 2020b')
        """
        return _names_and_year(self.authors, self.year) + self.letter

    @property
    def people(self) -> str:
        """All authors, as a list of works names them."""
        return ", ".join(author.replace("{", "").replace("}", "") for author in self.authors)

    @property
    def link(self) -> str:
        """Where to find it: by DOI, else on arXiv, else its page; empty where none is known for certain.

        >>> sources()["barron1993"].link, sources()["cohen2021"].link
        ('https://doi.org/10.1109/18.256500', 'https://arxiv.org/abs/2103.00065')
        """
        if self.doi:
            return f"https://doi.org/{self.doi}"
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else self.url

    @property
    def link_text(self) -> str:
        """The link as a list of works names it, such as ``doi:10.1109/18.256500``; empty where there is none."""
        if self.doi:
            return f"doi:{self.doi}"
        return f"arXiv:{self.arxiv}" if self.arxiv else self.url.removeprefix("https://")

    @property
    def sentence(self) -> str:
        """The title with a full stop, where it has no mark of its own."""
        return self.title if self.title[-1] in "?!" else f"{self.title}."

    @property
    def reference(self) -> str:
        """The work in a list of works, without markup.

        >>> sources()["lyu2020"].reference
        'Kaifeng Lyu, Jian Li: Gradient Descent Maximizes the Margin of Homogeneous Neural Networks. ICLR, 2020'
        """
        return f"{self.people}: {self.sentence} {self.venue}, {self.year}"

    def bibtex(self) -> str:
        """Return its BibTeX entry, in UTF-8.

        >>> print(sources()["lyu2020"].bibtex())
        @article{lyu2020,
          author = {Kaifeng Lyu and Jian Li},
          title = {{Gradient Descent Maximizes the Margin of Homogeneous Neural Networks}},
          journal = {ICLR},
          year = {2020},
          eprint = {1906.05890},
          archiveprefix = {arXiv},
        }
        """
        kind, venue = ENTRIES[self.kind]
        fields = {
            "author": " and ".join(self.authors),
            "title": f"{{{_escaped(self.title)}}}",
            venue: _escaped(self.venue),
            "year": str(self.year),
            "doi": self.doi,
            "eprint": self.arxiv,
            "archiveprefix": "arXiv" if self.arxiv else "",
            "url": self.url,
        }
        return entry(kind, self.key, fields)


@cache
def sources() -> Mapping[str, Source]:
    """Return every work by its key, in alphabetical order.

    >>> sources()["cohen2021"].title
    'Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability'
    """
    text = (resources.files("steepest") / "sources.toml").read_text("utf-8")
    tables = tomllib.loads(text)
    alike = Counter(_names_and_year(work["authors"], work["year"]) for work in tables.values())
    works = {}
    for key in sorted(tables):
        work = tables[key]
        authors = tuple(work.pop("authors"))
        ambiguous = alike[_names_and_year(authors, work["year"])] > 1
        letter = key[-1] if ambiguous and key[-1].isalpha() else ""
        works[key] = Source(key, authors=authors, letter=letter, **work)
    return MappingProxyType(works)


def source(key: str) -> Source:
    """Return one work.

    Raises:
        UserError: for an unknown key, with the nearest.
    """
    works = sources()
    if key not in works:
        close = get_close_matches(key, works, n=1)
        hint = f"did you mean {close[0]!r}?" if close else "steepest/sources.toml has all keys"
        raise UserError(f"there is no work {key!r} in the bibliography; {hint}")
    return works[key]


def expand(text: str, known_only: bool = True) -> tuple[str | Source, ...]:
    """Split a text at its citations.

    Args:
        text: such as ``"Theorem 3 of [@cohen2021]"``.
        known_only: refuse unknown keys; otherwise they are left in the text as they are.

    Returns:
        the pieces in order: text, or the work that is cited there.

    Raises:
        UserError: for an unknown key, with the nearest.

    >>> [piece if isinstance(piece, str) else piece.key for piece in expand("Theorem 3 of [@lyu2020].")]
    ['Theorem 3 of ', 'lyu2020', '.']
    """
    pieces: list[str | Source] = []
    for place, piece in enumerate(CITATION.split(text)):
        if place % 2 == 0:
            pieces.append(piece)
        elif known_only or piece in sources():
            pieces.append(source(piece))
        else:
            pieces.append(f"[@{piece}]")
    return tuple(piece for piece in pieces if piece)


def cited(text: str, known_only: bool = True) -> tuple[Source, ...]:
    """Return the works that a text cites, each once, in order; arguments and errors as of :func:`expand`."""
    pieces = expand(text, known_only)
    return tuple(dict.fromkeys(piece for piece in pieces if isinstance(piece, Source)))


def spelled(text: str, known_only: bool = True) -> str:
    """Return a text with its citations in words; arguments and errors as of :func:`expand`.

    >>> spelled("Lecture of 5 October in [@hanin2022]; [@cohen2021]")
    'Lecture of 5 October in Hanin 2022; Cohen et al. 2021'
    """
    pieces = expand(text, known_only)
    return "".join(piece if isinstance(piece, str) else piece.short for piece in pieces)


def entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    """Return a BibTeX entry; fields without a value are left out."""
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


def _names_and_year(authors: tuple[str, ...] | list[str], year: int) -> str:
    families = [_family(author) for author in authors]
    if len(families) > 2:
        return f"{families[0]} et al. {year}"
    return f"{' and '.join(families)} {year}"


def _family(author: str) -> str:
    braced = re.search(r"\{(.*)\}", author)
    return braced[1] if braced else author.split()[-1]


def _escaped(text: str) -> str:
    return re.sub(r"([&%#_$])", r"\\\1", text)
