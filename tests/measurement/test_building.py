"""What a reader's function builds: its forms, its knobs, its training."""

import pytest

from steepest.core.errors import UserError
from steepest.measurement import Builder, Built


def counting(seed=0, *, width=1.0):
    """A model that is a number, trained by adding one."""
    box = [seed]

    def train():
        for _ in range(3):
            box[0] += 1
            yield

    return {"model": box, "loss": None, "data": width, "train": train}


def test_tuples_and_dictionaries_name_their_parts():
    short = Builder.of(lambda: ("model", "loss", "data", "optimizer", "held"))()
    assert (short.model, short.optimizer, short.held_out, short.train) == (
        "model",
        "optimizer",
        "held",
        None,
    )
    named = Builder.of(lambda: {"model": 1, "loss": 2, "data": 3, "lr": 0.1})()
    assert (named.model, named.lr, named.optimizer) == (1, 0.1, None)
    whole = Built(1, 2, 3)
    assert Builder.of(lambda: whole)() is whole


def test_knobs_are_found_by_inspection_and_turned():
    builder = Builder.of(counting)
    assert builder.knobs == ("seed", "width") and builder.where == "counting"
    built = builder(seed=7, width=2.0)
    assert built.model == [7] and built.data == 2.0
    with pytest.raises(UserError, match="no 'depth' to turn; it has seed, width; write def build"):
        builder(depth=3)
    assert Builder.of(lambda *args, **more: None).knobs == ()


def test_training_yields_the_model_before_the_first_step_and_after_each():
    built = Builder.of(counting)()
    assert [model[0] for model in built.steps()] == [0, 1, 2, 3]
    pairs = Built((None, 0), None, None, train=lambda: iter([(None, 1), (None, 2)]))
    assert [model[1] for model in pairs.steps()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        ((1, 2), "must return .* got a tuple of 2"),
        ({"model": 1, "loss": 2}, "returned no data"),
        ({"model": 1, "loss": 2, "data": 3, "trian": 4}, "did you mean 'train'"),
        (None, "got NoneType"),
    ],
)
def test_other_returns_get_one_sentence(made, sentence):
    with pytest.raises(UserError, match=sentence):
        Builder.of(lambda: made)()


def test_training_that_is_none_or_fails_gets_one_sentence():
    def broken():
        yield
        raise ZeroDivisionError("no batches")

    with pytest.raises(UserError, match="nothing trains this model"):
        next(Built(1, 2, 3).steps())
    with pytest.raises(UserError, match="must return an iterator"):
        list(Built(1, 2, 3, train=lambda: [1]).steps())
    with pytest.raises(UserError, match="your 'train' failed: ZeroDivisionError: no batches"):
        list(Built(1, 2, 3, train=broken).steps())
