"""Do attributions tell how outputs change when networks are trained again on halves of their data?

The linear datamodeling score (LDS) of our two methods, of simpler rivals, of wrong theories, and of traker and dattri,
with the same models, halves and targets. All trainings are from seeds and on halves that the default ridge was not
chosen on, and it was chosen on the first three networks. The ridge of the training, n (1 − β)/(η T) for T steps of size
η with momentum β, has nothing to choose.

    python -m benchmarks.attribution.run [PYTHON] [--only WORD] [--record]

PYTHON is the interpreter of an environment with ``requirements.txt``.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.attribution.trainings import cases, entries, outputs_of, trained
from steepest.measurement import attribute, gradient_features, linear_datamodeling_score
from steepest.statistics import rank_correlation

HERE = Path(__file__).parent
MODELS = 5
SUBSETS = 64
AGAIN = 4  # trainings on each subset
DIMENSION = 512
FIRST = 20_000  # seed


def halves_of(count, rng):
    return np.stack([rng.permutation(count)[: count // 2] for _ in range(SUBSETS)])


def features_of(case, models, data, dimension=DIMENSION):
    return gradient_features(
        (case.apply, models[0]),
        data,
        model_output=case.model_output,
        checkpoints=models,
        dimension=dimension,
    )


def ours_and_rivals(case, models, rng):
    """Scores by name, (targets, training examples)."""
    train, targets = (features_of(case, models, data) for data in (case.train, case.targets))
    exact = [features_of(case, models, data, None) for data in (case.train, case.targets)]
    raw = [jax.tree.map(jnp.asarray, case.draw(jax.random.key(FIRST + i))) for i in range(MODELS)]
    start = [features_of(case, raw, data) for data in (case.train, case.targets)]
    kernel = train.kernel(targets)[0]
    sizes = [
        np.linalg.norm(gradients.features.astype(float), axis=2) for gradients in (train, targets)
    ]
    cosine = kernel / sizes[0][:, :, None] / sizes[1][:, None]
    others = rng.permutation(len(case.train[1]))
    random = [rng.normal(size=gradients.features.shape) for gradients in (train, targets)]
    changed = lambda gradients, **arrays: type(gradients)(**{**vars(gradients), **arrays})
    residuals = train.residuals[:, :, None]
    return {
        "Newton's step (default)": attribute(train, targets).scores,
        "Newton's step, ridge of the training": attribute(
            train, targets, ridge=len(case.train[1]) * (1 - 0.9) / (case.step * case.steps)
        ).scores,
        "Newton's step, not projected": attribute(*exact).scores,
        "TRAK scores": attribute(train, targets, method="trak").scores,
        "TRAK scores, a thousandth of the ridge": attribute(
            train, targets, method="trak", ridge=1e-3 * float(ridge_of(train).mean())
        ).scores,
        "gradient products": (kernel * residuals).mean(0).T,
        "gradient cosine": (cosine * np.sign(residuals)).mean(0).T,
        "features of untrained networks": attribute(
            changed(start[0], residuals=train.residuals, curvatures=train.curvatures), start[1]
        ).scores,
        "random features": attribute(
            changed(train, features=random[0]), changed(targets, features=random[1])
        ).scores,
        "wrong: residuals of other examples": attribute(
            changed(train, residuals=train.residuals[:, others]), targets
        ).scores,
        "wrong: no residuals": attribute(
            changed(train, residuals=np.ones_like(train.residuals)), targets
        ).scores,
    }, float(ridge_of(train).mean())


def ridge_of(train):
    return attribute(train, train, method="trak").ridge


def of_peers(python, case, models, ridge):
    """Scores of traker and dattri, in their own process."""
    arrays = {
        f"{i}.{j}.{name}": np.asarray(leaf)
        for i, layers in enumerate(models)
        for j, layer in enumerate(layers)
        for name, leaf in layer.items()
    }
    with tempfile.TemporaryDirectory() as folder:
        np.savez(
            Path(folder) / "case.npz",
            **arrays,
            models=MODELS,
            layers=len(models[0]),
            dimension=min(DIMENSION, sum(leaf.size for leaf in jax.tree.leaves(models[0]))),
            value=case.model_output == "value",
            conv="convolution" in case.name,
            x=case.train[0],
            y=case.train[1],
            x_targets=case.targets[0],
            y_targets=case.targets[1],
            outputs=case.apply(models[0], case.targets[0]),
            ridge=ridge,
        )
        quiet = {**os.environ, "TQDM_DISABLE": "1"}
        subprocess.run([python, HERE / "peer.py", folder], check=True, env=quiet)
        return dict(np.load(Path(folder) / "scores.npz"))


def compare(case, python):
    """LDS of each contestant, and what trainings say of each other."""
    rng = np.random.default_rng(FIRST)
    count = len(case.train[1])
    whole = np.tile(np.arange(count), (MODELS, 1))
    models = entries(trained(case, FIRST + np.arange(MODELS), whole))
    halves = halves_of(count, rng)
    seeds = FIRST + 1000 + np.arange(SUBSETS * AGAIN)
    again = trained(case, seeds, np.repeat(halves, AGAIN, 0))
    at = tuple(map(jnp.asarray, case.targets))
    outputs = np.asarray(jax.vmap(lambda params: outputs_of(case, params, *at))(again))
    outputs = outputs.reshape(SUBSETS, AGAIN, -1)
    subset_masks = np.zeros((SUBSETS, count), bool)
    np.put_along_axis(subset_masks, halves, True, 1)
    scores, ridge = ours_and_rivals(case, models, rng)
    if python:
        scores |= of_peers(python, case, models, ridge)
    judged = {
        name: linear_datamodeling_score(effects, subset_masks, outputs.mean(1))
        for name, effects in scores.items()
    }
    for peer in ("traker", "dattri"):
        kept = {name: judged.pop(name) for name in list(judged) if name.startswith(f"{peer} @")}
        if kept:
            judged[f"{peer}, no ridge, its best of four dimensions"] = max(
                kept.values(), key=lambda effects: effects.value
            )
    first = outputs[:, ::2].mean(1)
    second = outputs[:, 1::2].mean(1)
    agree = float(rank_correlation(first.T, second.T).mean())
    return judged, (2 * agree / (1 + agree)) ** 0.5


def shown(score):
    half = (score.interval.high - score.interval.low) / 2
    return f"{score.value:.2f} ± {half:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", nargs="?")
    parser.add_argument("--only", default="")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    columns = {}
    for case in cases().values():
        if options.only in case.name:
            judged, most = compare(case, options.python)
            columns[case.name] = {name: shown(score) for name, score in judged.items()}
            columns[case.name]["the most that these trainings allow"] = f"{most:.2f}"
            for name, score in columns[case.name].items():
                print(f"{case.name}: {name}: {score}", flush=True)
    if options.record:
        path = HERE / "record.json"
        record = json.loads(path.read_text("utf-8"))
        names = list(next(iter(columns.values())))
        record["tables"][0] = {
            "columns": ["", *columns],
            "rows": [[name, *(column[name] for column in columns.values())] for name in names],
        }
        path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
