"""What every kind of quantised file offers: its expert matrices, by layer, expert and place in the expert."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from engine.errors import CheckpointError
from engine.transcode.accuracy import Transcoded
from kernels.formats import WeightFormat

MATRICES = ("w1", "w3", "w2")  # gate, up, down


class MatrixKey(NamedTuple):
    """One matrix of one expert; `matrix` is one of `MATRICES`."""

    layer: int
    expert: int
    matrix: str


class ExpertSource(ABC):
    """An open file or folder. Use it in a `with` block, or call `close`. Several threads may read at a time.

    `names` has the tensor that holds each matrix: all of them, for every expert of every layer. In GGUF files
    several experts share a tensor.
    """

    path: Path
    names: Mapping[MatrixKey, str]

    @abstractmethod
    def format_in(self, key: MatrixKey) -> str:
        """What the matrix is stored as, in the words of its makers: "Q4_K", "AWQ"."""

    @abstractmethod
    def format_out(self, key: MatrixKey) -> WeightFormat | None:
        """What it becomes; None if it cannot be taken over."""

    @abstractmethod
    def read(self, key: MatrixKey) -> Transcoded:
        """Take over one matrix, whatever the error is.

        Raises:
            RefusedError: its kind or its numbers cannot be expressed.
            CheckpointError: the file is damaged or cannot be read.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the files; matrices that were read stay valid."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def complete(names: Iterable[tuple[MatrixKey, str]], path: Path) -> Mapping[MatrixKey, str]:
    """The table of an `ExpertSource`, in the order of layers and experts.

    Raises:
        CheckpointError: there are no experts, a matrix is there twice, or one is missing.
    """
    table: dict[MatrixKey, str] = {}
    for key, name in names:
        if key in table:
            raise _incomplete(path, f"Both {table[key]} and {name} are {_words(key)}.")
        table[key] = name
    if not table:
        raise CheckpointError(
            f"{path.name} has no experts.",
            why="No tensor in it has the name of a Mixture-of-Experts model's expert.",
            action="Choose a Mixtral-style model.",
        )
    layers = 1 + max(key.layer for key in table)
    experts = 1 + max(key.expert for key in table)
    if layers * experts * len(MATRICES) > 4 * len(table) + 64:  # an absurd number in a name
        raise _incomplete(path, f"Its names speak of {layers} layers of {experts} experts.")
    order = [MatrixKey(*key) for key in _product(layers, experts)]
    for key in order:
        if key not in table:
            raise _incomplete(path, f"There is no tensor for {_words(key)}.")
    return {key: table[key] for key in order}


def _product(layers: int, experts: int) -> Iterable[tuple[int, int, str]]:
    return ((i, e, matrix) for i in range(layers) for e in range(experts) for matrix in MATRICES)


def _words(key: MatrixKey) -> str:
    return f"{key.matrix} of expert {key.expert} in layer {key.layer}"


def _incomplete(path: Path, why: str) -> CheckpointError:
    return CheckpointError(
        f"The experts of {path.name} are not complete.", why=why, action="Download the model again."
    )
