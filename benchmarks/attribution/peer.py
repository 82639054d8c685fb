"""TRAK scores of traker and dattri on the CPU, for the weights and data that ``run.py`` has written.

Runs with the interpreter of the environment of ``requirements.txt``: ``python peer.py FOLDER``. It writes
``scores.npz`` there, with arrays (targets, training examples).
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

DIMENSIONS = (32, 64, 128, 256)


class Mlp(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*weight.shape) for weight in weights)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 16, 3, padding=1, stride=2)
        self.last = nn.Linear(64, 10)

    def forward(self, x):
        x = torch.relu(self.first(x.reshape(-1, 1, 8, 8)))
        x = nn.functional.avg_pool2d(torch.relu(self.second(x)), 2)
        return self.last(x.permute(0, 2, 3, 1).flatten(1))


def module_of(weights, is_conv):
    return Conv() if is_conv else Mlp(weights)


def state_of(weights, biases, is_conv):
    """The state dict of one training, from matrices (inputs, outputs); inputs of a convolution are taps, channels."""
    if not is_conv:
        named = [
            (f"layers.{i}", w.T, b) for i, (w, b) in enumerate(zip(weights, biases, strict=True))
        ]
    else:
        first, second, last = weights
        kernel = lambda w: w.reshape(3, 3, -1, w.shape[1]).transpose(3, 2, 0, 1)
        arrays = (kernel(first), kernel(second), last.T)
        named = zip(("first", "second", "last"), arrays, biases, strict=True)
    state = {}
    for name, weight, bias in named:
        state[f"{name}.weight"] = torch.tensor(weight.copy())
        state[f"{name}.bias"] = torch.tensor(bias)
    return state


def margin(logits, label):
    others = logits.clone()
    places = torch.arange(len(logits))
    others[places, label] = -torch.inf
    return (logits[places, label] - others.logsumexp(-1)).sum()


def by_traker(model, states, train, targets, is_value, dimension, ridge):
    from trak import TRAKer
    from trak.modelout_functions import AbstractModelOutput

    class Value(AbstractModelOutput):
        def __init__(self):
            super().__init__()

        @staticmethod
        def get_output(model, weights, buffers, x, y):
            return functional_call(model, (weights, buffers), x[None]).sum()

        def get_out_to_loss_grad(self, model, weights, buffers, batch):
            x, y = batch
            return y[:, None] - functional_call(model, (weights, buffers), x).detach()

    with tempfile.TemporaryDirectory() as folder:
        traker = TRAKer(
            model=model,
            task=Value() if is_value else "image_classification",
            train_set_size=len(train[0]),
            save_dir=folder,
            device="cpu",
            proj_dim=dimension,
            use_half_precision=False,
            logging_level=40,
            lambda_reg=ridge,
        )
        for i, state in enumerate(states):
            traker.load_checkpoint(state, model_id=i)
            traker.featurize(batch=list(train), num_samples=len(train[0]))
        traker.finalize_features()
        for i, state in enumerate(states):
            traker.start_scoring_checkpoint("targets", state, i, num_targets=len(targets[0]))
            traker.score(batch=list(targets), num_samples=len(targets[0]))
        return np.asarray(traker.finalize_scores("targets")).T


def by_dattri(model, states, train, targets, is_value, dimension, ridge):
    from dattri.algorithm.trak import TRAKAttributor
    from dattri.task import AttributionTask
    from torch.utils.data import DataLoader, TensorDataset

    def output(params, pair):
        x, y = pair
        out = functional_call(model, params, x[None])
        return out.sum() if is_value else margin(out, y[None])

    def correct(params, pair):
        """The probability of the class; of a regression one less the residual, as Q is one less this."""
        x, y = pair
        out = functional_call(model, params, x[None])
        return 1 - (y - out.sum()) if is_value else out.softmax(-1)[0].gather(0, y[None])[0]

    task = AttributionTask(loss_func=output, model=model, checkpoints=states)
    options = {"proj_dim": dimension, "proj_max_batch_size": 32, "proj_seed": 0, "device": "cpu"}
    attributor = TRAKAttributor(task, correct, options, regularization=ridge)
    loader = lambda pair: DataLoader(TensorDataset(*pair), batch_size=256, shuffle=False)
    attributor.cache(loader(train))
    return attributor.attribute(loader(targets)).detach().numpy().T


def main():
    folder = Path(sys.argv[1])
    held = np.load(folder / "case.npz")
    models = int(held["models"])
    layers = int(held["layers"])
    dimension = int(held["dimension"])
    is_value = bool(held["value"])
    is_conv = bool(held["conv"])
    all_weights = [[held[f"{i}.{j}.w"] for j in range(layers)] for i in range(models)]
    all_biases = [[held[f"{i}.{j}.b"] for j in range(layers)] for i in range(models)]
    model = module_of(all_weights[0], is_conv)
    states = [state_of(w, b, is_conv) for w, b in zip(all_weights, all_biases, strict=True)]
    as_target = lambda y: torch.tensor(y) if is_value else torch.tensor(y).long()
    train = torch.tensor(held["x"]), as_target(held["y"])
    targets = torch.tensor(held["x_targets"]), as_target(held["y_targets"])
    model.load_state_dict(states[0])
    model.eval()
    with torch.no_grad():
        out = model(targets[0]).numpy()
    assert np.abs(out - held["outputs"]).max() < 1e-3, "torch and JAX have other outputs"
    parameters = sum(weight.numel() for weight in model.parameters())
    ridge = float(held["ridge"]) / parameters  # both divide features by the root of this
    given = (model, states, train, targets, is_value)
    scores = {
        "traker, our ridge": by_traker(*given, dimension, ridge * dimension),  # no signs over √k
        "dattri, our ridge": by_dattri(*given, dimension, ridge),
    }
    for k in DIMENSIONS:  # without a ridge, as is their default, the dimension decides
        scores[f"traker @ {k}"] = by_traker(*given, k, 0.0)
        scores[f"dattri @ {k}"] = by_dattri(*given, k, 0.0)
    np.savez(folder / "scores.npz", **scores)


if __name__ == "__main__":
    main()
