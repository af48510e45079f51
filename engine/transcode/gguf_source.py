"""The experts of a GGUF file, which may be split into several parts, under llama.cpp's names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from engine.checkpoint.gguf import GgufFile, TensorInfo
from engine.checkpoint.gguf_quants import GgmlType
from engine.errors import CheckpointError
from engine.transcode.accuracy import Transcoded
from engine.transcode.errors import RefusedError, sound
from engine.transcode.gguf_blocks import FORMATS, transcode_blocks
from engine.transcode.source import ExpertSource, MatrixKey, complete
from kernels.formats import WeightFormat

_PLACES = {"gate": "w1", "up": "w3", "down": "w2"}
_STACK = re.compile(r"blk\.(\d{1,4})\.ffn_(gate|up|down)_exps\.weight")  # [experts, rows, cols]
_SINGLE = re.compile(r"blk\.(\d{1,4})\.ffn_(gate|up|down)\.(\d{1,4})\.weight")  # older files: [rows, cols]
_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")
_PLAIN = (GgmlType.F32, GgmlType.F16, GgmlType.BF16)


class GgufExperts(ExpertSource):
    """See `ExpertSource`. `path` is the file, or any part of a split one."""

    def __init__(self, path: Path) -> None:
        """Open the file, all parts of it.

        Raises:
            CheckpointError: a part is missing or damaged, or the experts are not complete.
        """
        self.path = path
        self._homes: dict[str, GgufFile] = {}  # the file of each tensor
        with ExitStack() as stack:
            for part in file_parts(path):
                file = stack.enter_context(GgufFile(part))
                self._homes |= dict.fromkeys(file.tensors, file)
            self.names = complete(self._found(), path)
            self._files = stack.pop_all()

    def close(self) -> None:
        """Close all parts."""
        self._files.close()

    def format_in(self, key: MatrixKey) -> str:
        """ggml's name of the tensor's type."""
        return self._info(self.names[key]).kind.name

    def format_out(self, key: MatrixKey) -> WeightFormat | None:
        """int8 for Q8_0, int4 for the types of 4 bits that are read."""
        kind = self._info(self.names[key]).kind
        return FORMATS.get(kind) if isinstance(kind, GgmlType) else None

    def read(self, key: MatrixKey) -> Transcoded:
        """See `ExpertSource.read`."""
        name = self.names[key]
        kind = self._info(name).kind
        if not isinstance(kind, GgmlType) or kind not in FORMATS:
            raise _refused(kind.name, plain=kind in _PLAIN).of(name)
        blocks = self._homes[name].read_blocks(name, key.expert if _STACK.fullmatch(name) else 0)
        with sound(name):
            return transcode_blocks(kind, blocks)

    def _info(self, name: str) -> TensorInfo:
        return self._homes[name].tensors[name]

    def _found(self) -> Iterator[tuple[MatrixKey, str]]:
        for name in self._homes:
            shape = self._info(name).shape
            if match := _STACK.fullmatch(name):
                if len(shape) != 3:
                    raise _misshapen(self.path, name, shape)
                layer, place = int(match[1]), _PLACES[match[2]]
                yield from ((MatrixKey(layer, expert, place), name) for expert in range(shape[0]))
            elif match := _SINGLE.fullmatch(name):
                if len(shape) != 2:
                    raise _misshapen(self.path, name, shape)
                yield MatrixKey(int(match[1]), int(match[3]), _PLACES[match[2]]), name


def file_parts(path: Path) -> list[Path]:
    """The files that belong to `path`: itself, or all parts of a file split by llama.cpp."""
    match = _PART.fullmatch(path.name)
    if match is None:
        return [path]
    count = int(match[3])
    return [path.with_name(f"{match[1]}-{i:05}-of-{match[3]}.gguf") for i in range(1, count + 1)]


def first_parts(folder: Path) -> list[Path]:
    """The GGUF models in a folder, each by its first file."""
    files = sorted(folder.glob("*.gguf"))
    return [file for file in files if (match := _PART.fullmatch(file.name)) is None or int(match[2]) == 1]


def _refused(kind: str, *, plain: bool) -> RefusedError:
    if plain:
        return RefusedError(
            f"it is {kind}, which is not quantised, so there are no values to keep",
            "Use the model in safetensors format, and choose 8 or 4 bits when loading it.",
        )
    return RefusedError(
        f"its type {kind} has values or groups that 8 and 4 bits here cannot hold exactly",
        "Use a version whose experts are all Q4_K, Q4_0 or Q4_1 (4 bits), or all Q8_0 (8 bits).",
    )


def _misshapen(path: Path, name: str, shape: tuple[int, ...]) -> CheckpointError:
    return CheckpointError(
        f"The model file {path.name} is damaged.",
        why=f"The tensor “{name}” has the impossible shape {shape}.",
        action="Download or copy the file again.",
    )
