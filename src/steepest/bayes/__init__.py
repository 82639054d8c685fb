"""Bayes: exact posteriors and evidences, and samplers that check them."""

from ._elliptical_slice import Slices as Slices
from ._elliptical_slice import elliptical_slice as elliptical_slice
from ._scale_mixture import best_variance as best_variance
from ._scale_mixture import limit_scale as limit_scale
from ._scale_mixture import log_evidence as log_evidence
from ._scale_mixture import posterior_scale as posterior_scale
from ._scale_mixture import scale_density as scale_density
from ._scale_mixture import scale_mixture as scale_mixture
