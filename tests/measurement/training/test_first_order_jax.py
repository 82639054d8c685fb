"""First-order numbers of a JAX function: without data or torch, and where the step donates its weights."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from steepest.measurement import Monitor, read_log
from steepest.measurement.training._first_order import FirstOrder
from steepest.measurement.training._names import GRADIENT, LARGEST, LOSS, UPDATE, WEIGHTS

RNG = np.random.default_rng(0)
X = RNG.normal(size=(32, 4)).astype(np.float32)
Y = np.sin(X.sum(1))


def apply(params, x):
    return jnp.tanh(x @ params["w"]) @ params["layers"][0] + params["b"]


def start():
    key = jax.random.key(0)
    w = jax.random.normal(key, (4, 8))
    return {"w": w, "layers": [jnp.ones(8) / 8], "b": jnp.zeros(()), "steps": jnp.zeros((), int)}


def risk(params):
    return ((apply(params, X) - Y) ** 2).mean()


def descend(params):
    slopes = jax.grad(risk, allow_int=True)(params)
    return {
        "w": params["w"] - 0.1 * slopes["w"],
        "layers": [params["layers"][0] - 0.1 * slopes["layers"][0]],
        "b": params["b"] - 0.1 * slopes["b"],
        "steps": params["steps"] + 1,
    }


def train(monitor, steps, step_of, each=lambda params, step: params):
    params = start()
    for step in range(steps + 1):
        params = each(params, step)
        monitor(step, (apply, params), loss=risk(params))
        params = step_of(params)
    return params


def test_without_data_a_step_that_donates_its_weights_has_a_score_of_records(tmp_path):
    monitor = Monitor(tmp_path / "log")
    train(monitor, 200, jax.jit(descend, donate_argnums=0))
    records = read_log(tmp_path / "log")
    assert len(records) >= 20
    assert records[-1]["updates"].keys() == {"w", "layers.0", "b"}
    assert {UPDATE, LARGEST, LOSS, WEIGHTS} == records[-1]["quantities"].keys()
    assert GRADIENT not in records[-1]["quantities"]


def test_numbers_are_those_of_the_arrays(tmp_path):
    kept = []

    def keep(params, step):
        kept.append({name: np.array(params[name]) for name in ("w", "b")})
        kept[-1]["layers.0"] = np.array(params["layers"][0])
        return params

    train(Monitor(tmp_path / "log", every=1), 3, jax.jit(descend), keep)
    last = read_log(tmp_path / "log")[-1]
    norm = lambda arrays: np.sqrt(sum((a**2).sum() for a in arrays))
    moved = {name: kept[3][name] - kept[2][name] for name in kept[3]}
    overall = norm(moved.values()) / norm(kept[3].values())
    assert last["quantities"][UPDATE]["value"] == pytest.approx(overall, rel=1e-5)
    of_w = norm([moved["w"]]) / norm([kept[3]["w"]])
    assert last["updates"]["w"] == pytest.approx(of_w, rel=1e-5)


def test_weights_that_are_not_finite_are_said_once(tmp_path):
    def spoil(params, step):
        return params | {"b": params["b"] * jnp.nan} if step == 24 else params

    train(Monitor(tmp_path / "log", every=1000), 100, jax.jit(descend), spoil)
    said = [r["trouble"] for r in read_log(tmp_path / "log") if "trouble" in r]
    # the loss of that step has seen them
    assert said == ["the weights are not finite at step 24: the training has diverged"]


@pytest.mark.parametrize("kind", [jnp.bfloat16, np.float32])
def test_half_precision_and_arrays_of_numpy(tmp_path, kind):
    monitor = Monitor(tmp_path / "log", every=1)
    w = np.full(4000, 3.0)
    cast = lambda values: jnp.asarray(values, kind) if kind is jnp.bfloat16 else values.astype(kind)
    for step in range(3):
        monitor(step, (lambda w, x: x @ w, cast(w * 1.5**step)))
    last = read_log(tmp_path / "log")[-1]
    assert last["updates"]["params"] == pytest.approx(1 / 3, rel=1e-2)


def test_weights_of_another_structure_begin_anew(tmp_path, capsys):
    monitor = Monitor(tmp_path / "log", every=1)
    monitor(0, (apply, {"a": jnp.ones(3)}))
    monitor(1, (apply, {"a": jnp.ones(3), "b": jnp.ones(2)}))
    assert monitor(2, (apply, {"a": jnp.ones(3), "b": 2 * jnp.ones(2)}))["updates"]["b"] == 0.5
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("method", ["look", "readings"])
def test_what_goes_wrong_is_said_once_and_the_training_goes_on(
    tmp_path, capsys, monkeypatch, method
):
    def fail(*arguments, **named):
        raise RuntimeError("device lost")

    monkeypatch.setattr(FirstOrder, method, fail)
    train(Monitor(tmp_path / "log", every=1), 5, jax.jit(descend))
    assert (
        capsys.readouterr().err == "steepest: no first-order numbers: RuntimeError: device lost\n"
    )
