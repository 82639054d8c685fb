"""What a drawing of an idea says."""

from typing import NamedTuple


class Idea(NamedTuple):
    """A drawing that explains before data are shown.

    Attributes:
        title: what to look at.
        text: what is drawn, in one to three sentences.
        svg: the drawing.
    """

    title: str
    text: str
    svg: str
