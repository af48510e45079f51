"""What is told about weights that cannot be taken over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import CheckpointError
from kernels.errors import WeightError


class RefusedError(CheckpointError):
    """A tensor is sound, but cannot be taken over: `reason` in half a sentence, and what to use instead."""

    def __init__(self, reason: str, action: str, *, tensor: str = "") -> None:
        super().__init__(
            f"{tensor or 'This tensor'} cannot be taken over as it is.",
            why=f"{reason[:1].upper()}{reason[1:]}.",
            action=action,
        )
        self.reason = reason

    def of(self, tensor: str) -> RefusedError:
        """The same about the tensor of this name."""
        return RefusedError(self.reason, self.action, tensor=tensor)


@contextmanager
def sound(tensor: str) -> Iterator[None]:
    """Turn what the kernels say about a weight into a refusal of the tensor of this name; complete others."""
    try:
        yield
    except RefusedError as error:
        raise error.of(tensor) from None
    except WeightError as error:
        raise RefusedError(
            str(error).removesuffix("."),
            "Download the file again; if that does not help, it was made from a damaged model.",
            tensor=tensor,
        ) from error
