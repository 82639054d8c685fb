"""What a reader's own function builds: model, loss, data, and how it trains."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from steepest.core import given
from steepest.core.errors import UserError, nearest
from steepest.files import import_file

REQUIRED = ("model", "loss", "data")
SHORT = (*REQUIRED, "optimizer", "held_out")
"""What the parts of a tuple are."""


@dataclass(frozen=True)
class Built:
    """What a function such as ``build`` returns: a tuple of the first three to five, or a dictionary of any.

    Attributes:
        model: a ``torch.nn.Module``, or a model of JAX; see ``steepest.measurement.adapters.subject``.
        loss: see ``steepest.measure``.
        data: the same.
        optimizer: with which it is trained, or None; see ``steepest.measure``.
        held_out: examples that it is not trained on, as ``data``, or None.
        train: a function without arguments that returns an iterator, such as a generator function. Each ``next`` is one
            step of the optimizer, and gives the model of now: for JAX the pair ``(apply, params)``; a module of torch,
            which is changed in place, needs no more than a bare ``yield``. None if there is nothing to train.
        lr: the step size η of ``train``, where the optimizer does not say it.
        batch: examples in each of its batches, where the data do not say it.
        features: see ``steepest.measurement.adapters.subject``.
        length: how many steps ``train`` takes until it ends, if that is known: only to say what a claim will cost.
    """

    model: Any
    loss: Any
    data: Any
    optimizer: Any = None
    held_out: Any = None
    train: Callable[[], Iterator[Any]] | None = None
    lr: float | None = None
    batch: int | None = None
    features: Any = None
    length: int | None = None

    def steps(self) -> Iterator[Any]:
        """Yield the model before the first step of training, and after each.

        Raises:
            UserError: nothing trains it; its own code fails, in a sentence.
        """
        if self.train is None:
            raise UserError(
                "nothing trains this model: return a dictionary with 'train', a generator function that takes one "
                "step of the optimizer before each yield"
            )
        model = self.model
        yield model
        run = self.train()
        if not isinstance(run, Iterator):
            raise UserError(
                f"'train' must return an iterator, as a generator function does, got {type(run).__name__}"
            )
        while True:
            try:
                now = next(run)
            except StopIteration:
                return
            except Exception as trouble:
                raise UserError(f"your 'train' failed: {first_line(trouble)}") from trouble
            model = model if now is None else now
            yield model


@dataclass(frozen=True)
class Builder:
    """A reader's function that builds a model, with the knobs that it offers.

    Attributes:
        where: how people call it, such as ``"my_model.py:build"``.
        function: the function itself.
    """

    where: str
    function: Callable[..., Any]

    @classmethod
    def of(cls, source: "str | Builder | Callable[..., Any]") -> Self:
        """Return the builder of ``FILE.py:FUNCTION``, or of a function.

        The file's folder is importable while it runs, as it is when Python runs the file.

        Raises:
            UserError: no such file or function, a file that does not import.
        """
        if isinstance(source, Builder):
            return cls(source.where, source.function)
        if callable(source):
            return cls(getattr(source, "__name__", "build"), source)
        where = str(given.file("a function that builds a model, or FILE.py:FUNCTION,", source))
        return cls(where, _function(where))

    @property
    def knobs(self) -> tuple[str, ...]:
        """Return the names of what can be given: ``seed``, ``width``, ``labels`` and so on."""
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        parameters = inspect.signature(self.function).parameters.values()
        return tuple(parameter.name for parameter in parameters if parameter.kind in kinds)

    def __call__(self, **knobs: Any) -> Built:
        """Build with some knobs turned.

        Raises:
            UserError: a knob that the function does not have; a function that fails, or that returns something else.
        """
        for name in knobs:
            if name not in self.knobs:
                offered = f"; it has {', '.join(self.knobs)}" if self.knobs else ""
                raise UserError(
                    f"{self.where} has no {name!r} to turn{offered}; write def build({name}=…)"
                )
        try:
            built = self.function(**knobs)
        except UserError:
            raise
        except (Exception, SystemExit) as trouble:
            raise UserError(f"{self.where} failed: {first_line(trouble)}") from trouble
        return self._read(built)

    def _read(self, built: Any) -> Built:
        """Return the parts of what the function returned, by name."""
        parts = [field.name for field in fields(Built)]
        if isinstance(built, Built):
            return built
        if isinstance(built, tuple) and len(REQUIRED) <= len(built) <= len(SHORT):
            return Built(**dict(zip(SHORT, built, strict=False)))
        if isinstance(built, dict):
            for name in built:
                if name not in parts:
                    raise UserError(
                        f"{self.where} returned {name!r}, which is no part; {nearest(str(name), parts)}"
                    )
            if missing := [name for name in REQUIRED if name not in built]:
                raise UserError(f"{self.where} returned no {', '.join(missing)}")
            return Built(**built)
        got = f"a tuple of {len(built)}" if isinstance(built, tuple) else type(built).__name__
        raise UserError(
            f"{self.where} must return (model, loss, data), or these, the optimizer and data held out, or a "
            f"dictionary of such parts; got {got}"
        )


def first_line(trouble: BaseException) -> str:
    """Return an exception as one line.

    >>> first_line(ValueError("no such thing"))
    'ValueError: no such thing'
    """
    said = str(trouble).strip().splitlines()
    return f"{type(trouble).__name__}: {said[0]}" if said else type(trouble).__name__


def _function(where: str) -> Callable[..., Any]:
    """Import ``FILE.py:FUNCTION``."""
    path, colon, name = where.rpartition(":")
    file = Path(path)
    if not colon or not name.isidentifier() or file.suffix != ".py":
        raise UserError(f"expected FILE.py:FUNCTION, got {where!r}; for example model.py:build")
    if not file.is_file():
        raise UserError(f"there is no file {path}")
    module = _module(file)
    if not callable(getattr(module, name, None)):
        functions = [
            function
            for function, value in vars(module).items()
            if callable(value) and not function.startswith("_")
        ]
        advice = nearest(name, functions) if functions else f"it has none; write def {name}(): …"
        raise UserError(f"{file.name} has no function {name!r}; {advice}")
    return getattr(module, name)


def _module(file: Path) -> Any:
    try:
        return import_file(file.resolve(), anew=True)
    except UserError as refusal:
        trouble = refusal.__cause__ or refusal
    said = first_line(trouble)
    if isinstance(trouble, ModuleNotFoundError):
        torch = "pip install 'steepest[torch]'"
        said = f"{trouble}; {torch if trouble.name == 'torch' else f'install {trouble.name}'}"
    raise UserError(f"{file.name} does not import: {said}") from trouble
