"""Graphs: small ones as data, colour refinement, walks."""

from ._refine import By as By
from ._refine import Refinement as Refinement
from ._refine import check_adjacency as check_adjacency
from ._refine import refine as refine
from ._small import Graphs as Graphs
from ._small import small as small
