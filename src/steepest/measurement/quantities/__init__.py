"""Quantities of one network at one moment."""

from ._alignment import alignment as alignment
from ._alignment import settled as settled
from ._alignment import upper_pairs as upper_pairs
from ._attack_radius import AttackRadius as AttackRadius
from ._attack_radius import attack_radius as attack_radius
from ._class_decomposition import Levels as Levels
from ._class_decomposition import Parts as Parts
from ._class_decomposition import level_forms as level_forms
from ._class_decomposition import level_products as level_products
from ._class_decomposition import own_cotangents as own_cotangents
from ._class_decomposition import pairs as pairs
from ._class_decomposition import softmax as softmax
from ._class_decomposition import three_levels as three_levels
from ._class_structure import ErrorParts as ErrorParts
from ._class_structure import FeatureParts as FeatureParts
from ._class_structure import error_parts as error_parts
from ._class_structure import explained as explained
from ._class_structure import feature_parts as feature_parts
from ._collapse import Collapse as Collapse
from ._collapse import class_means as class_means
from ._collapse import collapse as collapse
from ._collapse import cosines as cosines
from ._contrastive import LOG_TWO as LOG_TWO
from ._contrastive import SPREAD_CONSTANT as SPREAD_CONSTANT
from ._contrastive import Contrastive as Contrastive
from ._contrastive import Pairs as Pairs
from ._contrastive import contrastive as contrastive
from ._contrastive import pair_weights as pair_weights
from ._distance import relative_distance as relative_distance
from ._outliers import orthonormal as orthonormal
from ._outliers import outlier_count as outlier_count
from ._outliers import subspace_overlap as subspace_overlap
<<<<<<< HEAD
from ._rotation import rotation as rotation
=======
from ._signed_alignment import SignedAlignment as SignedAlignment
from ._signed_alignment import signed_alignment as signed_alignment
>>>>>>> w1
