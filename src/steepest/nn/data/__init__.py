"""Distributions of (x, y) with their known theory, and real data."""

from ._dataset import Dataset as Dataset
from ._hypercube import hypercube as hypercube
from ._masked import Masked as Masked
from ._masked import masked as masked
from ._real import balanced as balanced
from ._real import balanced_choices as balanced_choices
from ._real import breast_cancer as breast_cancer
from ._real import cifar10 as cifar10
from ._real import digits as digits
from ._real import labels as labels
from ._real import mnist as mnist
from ._real import on_sphere as on_sphere
from ._real import signs as signs
from ._synthetic import chebyshev as chebyshev
from ._synthetic import clusters as clusters
from ._synthetic import orthogonal_clusters as orthogonal_clusters
from ._synthetic import orthogonal_separability as orthogonal_separability
from ._synthetic import orthogonally_separable as orthogonally_separable
from ._synthetic import parity as parity
from ._synthetic import relabel as relabel
from ._synthetic import separable as separable
from ._synthetic import sparse_regression as sparse_regression
