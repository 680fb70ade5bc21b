"""Models of one structure that every function takes together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, final, overload

from lissom.errors import ModelError
from lissom.model.common import common_model, sharing
from lissom.model.model import Model


@final
@dataclass(frozen=True, eq=False, repr=False)
class ModelBatch:
    """Models of one structure, which differ in numbers alone, for every function that takes a Model.

    Args:
        models: one at least, as Robot.build() makes them; or made by `Model.batch`.

    The first of the leading axes of arguments and results is that of the models; arguments without it serve all.
    `batch[k]` is one of the models, a slice another batch, `len(batch)` their number.

    Raises:
        ModelError: the structures of two models differ, and in what.
    """

    models: Sequence[Model]
    common: Model = field(init=False)

    def __post_init__(self) -> None:
        given = tuple(self.models)
        for k, model in enumerate(given):
            if not isinstance(model, Model) or model.models:
                raise ModelError(f"model {k} of a batch: must be a Model (got {model!r})")
        if not given:
            raise ModelError("models: must hold one Model at least (got none)")
        store: dict[Any, Any] = {}
        own = [sharing(model, given[0], store) for model in given]
        object.__setattr__(self, "models", tuple(own))
        object.__setattr__(self, "common", common_model(own))

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[Model]:
        return iter(self.models)

    @overload
    def __getitem__(self, which: int) -> Model: ...

    @overload
    def __getitem__(self, which: slice) -> ModelBatch: ...

    def __getitem__(self, which: Any) -> Any:
        return ModelBatch(self.models[which]) if isinstance(which, slice) else self.models[which]

    def __repr__(self) -> str:
        return f"ModelBatch({len(self)} x {self.models[0]!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ModelBatch, (self.models,)

    @property
    def nq(self) -> int:
        """Size of q, the same in all models."""
        return self.common.nq

    @property
    def nv(self) -> int:
        """Size of v."""
        return self.common.nv

    @property
    def nu(self) -> int:
        """Size of u."""
        return self.common.nu

    def neutral(self) -> Any:
        """The reference configuration of all models, shape (nq,)."""
        return self.models[0].neutral()

    def on(self, device: str) -> ModelBatch:
        """The same models on another Warp device, such as "cuda:0"."""
        return ModelBatch([model.on(device) for model in self.models])

    if not TYPE_CHECKING:  # else every misspelt attribute would pass

        def __getattr__(self, name: str) -> Any:
            """Where one Model is expected, what it has and a batch has not says so."""
            if name.startswith("_") or not (hasattr(Model, name) or name in Model.__dataclass_fields__):
                raise AttributeError(f"'ModelBatch' object has no attribute {name!r}")
            raise ModelError(f"{self!r}: expected one Model, got a batch: take one of them, as batch[0]")
