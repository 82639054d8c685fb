"""Measuring changes nothing of a reader's: bit for bit, whatever the model keeps and whichever way it is measured."""

import random
from contextlib import nullcontext, suppress

import numpy as np
import pytest
import torch

from steepest.core.errors import UserError
from steepest.measurement import Monitor, measure
from steepest.measurement.adapters import subject
from tests.measurement import readers, state


def prepared(name):
    """A case in the middle of its training: with gradients, and moments of its optimizer."""
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)
    case = readers.CASES[name]()
    case = case if case.data is not None else case._replace(data=readers.examples())
    optimizer = torch.optim.AdamW(case.model.parameters(), lr=1e-3)
    for weight in case.model.parameters():
        weight.grad = torch.full_like(weight, 0.01) if weight.requires_grad else None
    optimizer.step()
    return case, optimizer


def by_measure(case, optimizer, folder):
    quantities = ("risk", "sharpness", "descents")
    measure(
        *case[:3],
        what=quantities,
        optimizer=optimizer,
        since=case.model,
        descents=2,
        **case.options,
    )


def by_monitor(case, optimizer, folder):
    options = {"every": 1, "budget": None, "optimizer": optimizer, **case.options}
    monitor = Monitor(folder / "run.jsonl", *case[1:3], **options)
    for step in range(2):
        record = monitor(step, case.model, loss=torch.tensor(1.0))
        if "trouble" in record:
            raise UserError(record["trouble"])


def by_thorough(case, optimizer, folder):
    measure(*case[:3], optimizer=optimizer, thorough=True, held_out=case.data, **case.options)


def by_running(case, optimizer, folder):
    measure(*case[:3], optimizer=optimizer, statistics="running", **case.options)


def changes_by(way, name, folder):
    case, optimizer = prepared(name)
    held = [case, optimizer]
    seen = {}  # keeps what is taken down alive, so that identities stay theirs
    before = state.of(held, seen=seen), state.around()
    refused = name in readers.REFUSED
    with suppress(UserError) if refused else nullcontext():
        way(case, optimizer, folder)
    after = state.of(held), state.around()
    return [*state.changes(before[0], after[0]), *state.changes(before[1], after[1])]


@pytest.fixture(scope="module", autouse=True)
def everything_loaded(tmp_path_factory):
    """What is imported when it is first needed has set its defaults before."""
    folder = tmp_path_factory.mktemp("loaded")
    for way in (by_measure, by_monitor):
        way(*prepared("tied"), folder)


@pytest.mark.parametrize("name", readers.CASES)
@pytest.mark.parametrize("way", [by_measure, by_monitor])
def test_nothing_changes(way, name, tmp_path):
    assert changes_by(way, name, tmp_path) == []


@pytest.mark.parametrize("name", readers.CASES)
@pytest.mark.parametrize("way", [by_thorough, by_running])
def test_nothing_changes_by_all_quantities(way, name, tmp_path):
    assert changes_by(way, name, tmp_path) == []


def test_the_state_sees_a_change_in_each_of_its_places():
    model = readers.Busy()
    before = state.of(model)
    model(readers.examples()[0])
    changed = " ".join(state.changes(before, state.of(model)))
    for name in (
        "calls",
        "rebound",
        "written",
        "array",
        "history",
        "counter",
        "recent",
        "seen",
        "nested",
        "meter",
    ):
        assert f".{name}" in changed


def test_a_hook_that_returns_something_is_measured_and_one_that_records_leaves_no_entry():
    case = readers.hooked()
    doubled = readers.network()
    doubled.load_state_dict(case.model.state_dict())
    with torch.no_grad():
        doubled[2].weight *= 2
        doubled[2].bias *= 2
    data = readers.examples()
    risks = [subject(model, case.loss, data).risk() for model in (case.model, doubled)]
    assert risks[0] == pytest.approx(risks[1], rel=1e-6)
    assert case.others[:2] == ({"forward": 0}, [])


def test_fixed_noise_of_a_generator_of_the_models_own_is_the_same_in_every_pass():
    model = readers.OwnGenerators(0.1)
    attached = subject(model, readers.cross_entropy, readers.examples(), noise="fixed")
    assert attached.risk() == attached.at(attached.values()).risk()


def test_noise_of_a_generator_of_the_models_own_is_refused_unless_it_is_fixed():
    """Also where two losses of sixty are near each other by chance."""
    for seed in range(60):
        torch.manual_seed(seed)
        model = readers.OwnGenerators(0.1)
        with pytest.raises(UserError, match="random"):
            subject(model, readers.cross_entropy, readers.examples())


def test_a_model_that_returns_hidden_states_is_measured_by_its_loss():
    case = readers.CASES["recurrent"]()
    x, y = case.data
    weights = [*case.model.parameters()]
    outputs = case.model(x)[0]
    loss = readers.cross_entropy(outputs, y)
    slopes = torch.autograd.grad(loss, weights)
    attached = subject(*case[:3])
    assert attached.risk() == pytest.approx(float(loss), rel=1e-6)
    gradient = torch.cat([slope.flatten() for slope in slopes]).numpy()
    np.testing.assert_allclose(attached.gradient(), gradient, atol=1e-6)
    with pytest.raises(UserError, match="tuple"):
        attached.outputs()
    report = measure(*case[:3], what=["risk", "sharpness", "margins"], lr=0.1)
    assert np.isfinite(report["sharpness"].value) and np.isnan(report["margins"].value)


def test_outputs_and_targets_in_dictionaries_are_measured_by_their_loss():
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = readers.network()

        def forward(self, x):
            return {"logits": self.net(x)}

    x, y = readers.examples()
    model = Named()
    loss = lambda returned, targets: readers.cross_entropy(returned["logits"], targets["class"])
    attached = subject(model, loss, [(x, {"class": y})])
    plain = subject(model.net, readers.cross_entropy, (x, y))
    np.testing.assert_array_equal(attached.gradient(), plain.gradient())
    np.testing.assert_allclose(
        attached.products(np.ones(attached.size)), plain.products(np.ones(plain.size)), atol=1e-6
    )
    several = subject(
        model.net, lambda f, t: readers.cross_entropy(f, t["class"]), [(x, {"class": y})]
    )
    with pytest.raises(UserError, match="targets in one array"):
        several.outputs()


def test_the_fast_path_of_attention_is_off_while_measuring_and_on_after_it():
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1).eval()

    class Padded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(7, 8)
            self.encoder = encoder

        def forward(self, x):
            return self.encoder(self.embedding(x), src_key_padding_mask=x == 0).mean((1, 2))

    x = readers.words()[0]
    x[:, 4] = 0
    model = Padded()
    loss = lambda outputs, targets: (outputs * targets).mean()
    attached = subject(model, loss, (x, torch.ones(len(x))))
    np.testing.assert_allclose(attached.outputs()[0], model(x).detach().numpy(), atol=1e-6)
    assert torch.backends.mha.get_fastpath_enabled()
