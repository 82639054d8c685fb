"""Graphs: small ones as data, colour refinement, walks."""

from ._families import connected as connected
from ._families import karate_club as karate_club
from ._families import nearest_neighbours as nearest_neighbours
from ._families import random_regular as random_regular
from ._families import ring as ring
from ._influence import influence as influence
from ._influence import lazy_walk as lazy_walk
from ._refine import By as By
from ._refine import Refinement as Refinement
from ._refine import check_adjacency as check_adjacency
from ._refine import refine as refine
from ._small import Graphs as Graphs
from ._small import small as small
