"""Drawings of ideas and toys, for chapters: each is calculated here, by the few lines that its caption tells."""

from collections.abc import Callable

from ._descents import edge, nearest, valley
from ._idea import Idea as Idea
from ._shapes import displacement, neuron, tents
from ._spaces import circle, margin
from ._toys import TOYS as TOYS
from ._toys import Toy as Toy

IDEAS: dict[str, Callable[[], Idea]] = {
    "valley": valley,
    "edge": edge,
    "nearest": nearest,
    "margin": margin,
    "circle": circle,
    "tents": tents,
    "neuron": neuron,
    "displacement": displacement,
}
"""The drawings by the names under which chapters ask for them."""
