"""Gram matrices larger than memory, in tiles on disk."""

from steepest.kernels.tiled._compute import DamagedTile as DamagedTile
from steepest.kernels.tiled._compute import tiled_gram as tiled_gram
from steepest.kernels.tiled._matrix import TiledGram as TiledGram
from steepest.kernels.tiled._matrix import TiledMatrix as TiledMatrix
from steepest.kernels.tiled._matrix import open_tiled as open_tiled
