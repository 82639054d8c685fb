"""Kernels of infinitely wide networks: dual activations, the layerwise recursion and its criticality."""

from steepest.kernels._check_layer import LayerCheck as LayerCheck
from steepest.kernels._check_layer import LayerLaw as LayerLaw
from steepest.kernels._check_layer import LayerTrial as LayerTrial
from steepest.kernels._check_layer import check_layer as check_layer
from steepest.kernels._gram import Gram as Gram
from steepest.kernels._gram import GramDiagonal as GramDiagonal
from steepest.kernels._gram import LayerGram as LayerGram
from steepest.kernels._gram import gram as gram
from steepest.kernels._gram import gram_diagonal as gram_diagonal
from steepest.kernels._gram import gram_layers as gram_layers
from steepest.kernels._gram import gram_positions as gram_positions
from steepest.kernels._gram import nngp as nngp
from steepest.kernels._gram import ntk as ntk
from steepest.kernels._heads import gram_over_heads as gram_over_heads
from steepest.kernels.connected._layers import Kernels as Kernels
from steepest.kernels.connected._layers import PairKernels as PairKernels
from steepest.kernels.connected._layers import SignalPrediction as SignalPrediction
from steepest.kernels.connected._layers import pair_kernels as pair_kernels
from steepest.kernels.connected._layers import predict_signal as predict_signal
from steepest.kernels.connected._recursion import chi_parallel as chi_parallel
from steepest.kernels.connected._recursion import chi_perpendicular as chi_perpendicular
from steepest.kernels.connected._recursion import dual as dual
from steepest.kernels.connected._recursion import first_layer as first_layer
from steepest.kernels.connected._recursion import layer_map as layer_map
from steepest.kernels.connected._recursion import propagate as propagate
from steepest.kernels.connected._table import Table as Table
from steepest.kernels.connected._table import tabulate as tabulate
from steepest.kernels.duals._arc_cosine import ArcCosine as ArcCosine
from steepest.kernels.duals._arc_cosine import arc_cosine as arc_cosine
from steepest.kernels.duals._moments import Bounded as Bounded
from steepest.kernels.duals._moments import MapJet as MapJet
from steepest.kernels.duals._moments import covariance_map as covariance_map
from steepest.kernels.duals._moments import variance_map as variance_map
from steepest.kernels.duals._pair_mean import pair_mean as pair_mean
from steepest.kernels.finite._empirical import empirical_nngp as empirical_nngp
from steepest.kernels.finite._empirical import empirical_ntk as empirical_ntk
from steepest.kernels.finite._empirical import empirical_ntk_diagonal as empirical_ntk_diagonal
from steepest.kernels.finite._empirical import ntk_top as ntk_top
from steepest.kernels.finite._expansion import linearize as linearize
from steepest.kernels.finite._expansion import quadratize as quadratize
from steepest.kernels.finite._expansion import taylor_expand as taylor_expand
from steepest.kernels.finite._finite_width import FiniteWidth as FiniteWidth
from steepest.kernels.finite._finite_width import finite_width as finite_width
from steepest.kernels.finite._finite_width import homogeneous_kurtosis as homogeneous_kurtosis
from steepest.kernels.finite._finite_width import recommended_width as recommended_width
from steepest.kernels.finite._finite_width import variance_curvature as variance_curvature
from steepest.kernels.finite._products import ntk_eigenpairs as ntk_eigenpairs
from steepest.kernels.finite._products import ntk_product as ntk_product
from steepest.kernels.finite._sampled import SampledGram as SampledGram
from steepest.kernels.finite._sampled import sampled_gram as sampled_gram
from steepest.kernels.prediction._catapult import catapult_map as catapult_map
from steepest.kernels.prediction._class_probabilities import (
    ClassProbabilities as ClassProbabilities,
)
from steepest.kernels.prediction._diagnosis import Diagnosis as Diagnosis
from steepest.kernels.prediction._diagnosis import diagnose as diagnose
from steepest.kernels.prediction._dynamics import Ensemble as Ensemble
from steepest.kernels.prediction._dynamics import KernelDynamics as KernelDynamics
from steepest.kernels.prediction._dynamics import Progress as Progress
from steepest.kernels.prediction._dynamics import kernel_dynamics as kernel_dynamics
from steepest.kernels.prediction._first_order import FirstOrder as FirstOrder
from steepest.kernels.prediction._first_order import first_order_flow as first_order_flow
from steepest.kernels.prediction._fit import Fitted as Fitted
from steepest.kernels.prediction._fit import fit as fit
from steepest.kernels.prediction._fit import log_marginal_likelihood as log_marginal_likelihood
from steepest.kernels.prediction._laplace import Laplace as Laplace
from steepest.kernels.prediction._laplace import laplace as laplace
from steepest.kernels.prediction._regression import GaussianProcess as GaussianProcess
from steepest.kernels.prediction._regression import Ridge as Ridge
from steepest.kernels.prediction._regression import gaussian_process as gaussian_process
from steepest.kernels.prediction._regression import kernel_ridge as kernel_ridge
from steepest.kernels.prediction._solve import Solution as Solution
from steepest.kernels.prediction._solve import solve as solve
from steepest.kernels.prediction._teacher import teacher_risk as teacher_risk
from steepest.kernels.prediction._training import KernelPath as KernelPath
from steepest.kernels.prediction._training import KernelTraining as KernelTraining
from steepest.kernels.prediction._training import kernel_training as kernel_training
from steepest.kernels.regions._graph_influence import graph_influence as graph_influence
from steepest.kernels.regions._random_arrangements import MeanRegions as MeanRegions
from steepest.kernels.regions._random_arrangements import coin_forms as coin_forms
from steepest.kernels.regions._random_arrangements import disc_regions as disc_regions
from steepest.kernels.regions._random_arrangements import (
    origin_cell_vertices as origin_cell_vertices,
)
from steepest.kernels.regions._random_arrangements import plane_regions as plane_regions
from steepest.kernels.regions._random_arrangements import triangle_regions as triangle_regions
from steepest.kernels.regions._random_arrangements import wide_disc_regions as wide_disc_regions
from steepest.kernels.regions._random_hyperplanes import Crossings as Crossings
from steepest.kernels.regions._random_hyperplanes import finite_crossings as finite_crossings
from steepest.kernels.regions._random_hyperplanes import line_crossings as line_crossings
from steepest.kernels.regions._random_hyperplanes import (
    random_hyperplane_scales as random_hyperplane_scales,
)
from steepest.kernels.regions._random_hyperplanes import wide_crossings as wide_crossings
from steepest.kernels.signals._bounds import StayPut as StayPut
from steepest.kernels.signals._bounds import bernstein_radius as bernstein_radius
from steepest.kernels.signals._bounds import bernstein_tail as bernstein_tail
from steepest.kernels.signals._bounds import stay_put as stay_put
from steepest.kernels.signals._criticality import Criticality as Criticality
from steepest.kernels.signals._criticality import criticality as criticality
from steepest.kernels.signals._depth_scales import DepthScales as DepthScales
from steepest.kernels.signals._depth_scales import depth_scales as depth_scales
from steepest.kernels.signals._initialization import Initialization as Initialization
from steepest.kernels.signals._initialization import PhaseDiagram as PhaseDiagram
from steepest.kernels.signals._initialization import phase_diagram as phase_diagram
from steepest.kernels.signals._initialization import (
    recommended_initialization as recommended_initialization,
)
from steepest.kernels.signals._inputs import planar_inputs as planar_inputs
from steepest.kernels.spectra._funk_hecke import funk_hecke as funk_hecke
from steepest.kernels.spectra._funk_hecke import harmonic_count as harmonic_count
from steepest.kernels.spectra._funk_hecke import relu_multipliers as relu_multipliers
from steepest.kernels.spectra._funk_hecke import zonal as zonal
from steepest.kernels.spectra._hidden import Spectrum as Spectrum
from steepest.kernels.spectra._hidden import first_layer_kernel as first_layer_kernel
from steepest.kernels.spectra._hidden import generic_rank as generic_rank
from steepest.kernels.spectra._hidden import hermite_degrees as hermite_degrees
from steepest.kernels.spectra._hidden import hidden_kernel as hidden_kernel
from steepest.kernels.spectra._hidden import resolved_spectrum as resolved_spectrum
from steepest.kernels.spectra._hidden import (
    sampled_first_layer_kernel as sampled_first_layer_kernel,
)
from steepest.kernels.spectra._hidden import sampled_hidden_kernel as sampled_hidden_kernel
from steepest.kernels.spectra._hidden import sphere_dimension as sphere_dimension
from steepest.kernels.spectra._hypercube import HypercubeSpectrum as HypercubeSpectrum
from steepest.kernels.spectra._hypercube import LearningCurve as LearningCurve
from steepest.kernels.spectra._hypercube import hypercube_spectrum as hypercube_spectrum
from steepest.kernels.spectra._hypercube import learning_curve as learning_curve
from steepest.kernels.spectra._marchenko_pastur import marchenko_pastur_cdf as marchenko_pastur_cdf
from steepest.kernels.spectra._marchenko_pastur import (
    marchenko_pastur_density as marchenko_pastur_density,
)
from steepest.kernels.spectra._marchenko_pastur import (
    marchenko_pastur_edges as marchenko_pastur_edges,
)
from steepest.kernels.spectra._walsh import walsh_eigenvalues as walsh_eigenvalues
from steepest.kernels.tiled import DamagedTile as DamagedTile
from steepest.kernels.tiled import TiledGram as TiledGram
from steepest.kernels.tiled import TiledMatrix as TiledMatrix
from steepest.kernels.tiled import open_tiled as open_tiled
from steepest.kernels.tiled import tiled_gram as tiled_gram
from steepest.kernels.wide import kernel_function as kernel_function
