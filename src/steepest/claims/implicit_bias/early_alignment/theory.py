"""How long features of aligned neurons are, and other laws of the window."""

import numpy as np
import xarray

from steepest import kit
from steepest.claims.implicit_bias.early_alignment.experiment import Setting
from steepest.nn.types import Values
from steepest.programs import hard_margin


def relative_lengths(x: Values, y: Values, sums: Values) -> Values:
    """Return ⟨x_±, x_i⟩ over its mean in the class of each example, ``(seeds, n)``.

    Args:
        x: examples, shape ``(seeds, n, d)``.
        y: labels ±1, shape ``(seeds, n)``.
        sums: the sum of each class, the positive one first, shape ``(seeds, 2, d)``.
    """
    products = np.einsum("snd,scd->snc", x, sums)
    positive = y > 0
    of_class = np.where(positive, products[..., 0], products[..., 1])
    means = [
        np.where(mine, of_class, 0.0).sum(1, keepdims=True) / mine.sum(1, keepdims=True)
        for mine in (positive, ~positive)
    ]
    return of_class / np.where(positive, *means)


def rivals_of_window(setting: Setting, law: xarray.Dataset) -> list[kit.Rival]:
    """Return other laws of how neurons turn and grow, and of when and how the loss falls."""
    best = [hard_margin(x, y).direction for x, y in zip(setting.x, setting.y, strict=True)]
    on_example = np.einsum("shd,snd->shn", setting.start.w, setting.x) > 0
    same = setting.y[:, None] * setting.start.v[..., None] > 0
    on_own = (on_example & same).any(-1)
    pure = on_own & ~(on_example & ~same).any(-1)
    longest = xarray.DataArray(np.linalg.norm(setting.x, axis=-1).max(1), dims="seed")
    return [
        kit.rival(
            "log ‖w‖² rises at the rate C",
            "norms, and not their squares, grow like exp(Ct)",
            growing=law.growing / 2,
        ),
        kit.rival(
            "C = max‖x_i‖",
            "it is the constant of the source",
            turning=law.turning * 0 + longest,
            growing=2 * (law.growing * 0 + longest),
            delay=law.delay * law.turning.max("class") / longest,
        ),
        kit.rival(
            "both classes turn at the larger rate",
            "it is the constant of the window",
            turning=law.turning.max("class"),
        ),
        kit.rival(
            "the fall comes at the window's end",
            "norms are then still of order √ε",
            delay=law.delay / 2,
        ),
        kit.rival(
            "neurons turn to the maximal margin",
            "that is where linear classifiers end",
            target=("seed class unknown", [(w, -w) for w in best]),
        ),
        kit.rival(
            "all features of a class become equal",
            "alignment is called a proof of neural collapse",
            length=xarray.ones_like(law.length),
        ),
        kit.rival(
            "neurons that start on both classes die",
            "the other class pulls them off all examples; neurons on only that class die",
            alive=pure.sum() / on_own.sum(),
        ),
        kit.rival("the risk falls like 1/t", "the source says so", late_risk=1 / law.late),
    ]
