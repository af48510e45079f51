"""A checkpoint folder as one set of named tensors, whatever the number of files. Torch-free."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from engine.checkpoint.safetensors import TensorInfo, read_header
from engine.errors import CheckpointError

INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
CONFIG_FILE = "config.json"


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object from `file`.

    Raises:
        CheckpointError: the file is missing, unreadable, or not a JSON object.
    """
    try:
        value = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(
            f"The model's {file.name} is missing.",
            why=f"It is not in the folder {file.parent}{_instead(file.parent)}.",
            action="Choose the folder that holds the model's config.json and its .safetensors files.",
        ) from None
    except OSError as error:
        raise CheckpointError(
            f"The model's {file.name} cannot be read.",
            why=f"In {file.parent}, the system says: {error.strerror or error}.",
            action="Check the disk and the file's permissions.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise CheckpointError(
            f"The model's {file.name} is not readable.",
            why=f"The file in {file.parent} is not valid JSON ({error}).",
            action="Download that file again.",
        ) from error
    if not isinstance(value, dict):
        raise CheckpointError(
            f"The model's {file.name} is not readable.",
            why=f"The file in {file.parent} holds no table of settings.",
            action="Download that file again.",
        )
    return value


def read_optional_json(file: Path) -> dict[str, Any]:
    """As `read_json`, of a file that a model may lack: then nothing is in it."""
    return read_json(file) if file.exists() else {}


class Checkpoint:
    """The tensors of a model folder by name. Opening reads headers only; data is read on demand.

    `read_into` and `read_by` may be called from several threads. Use as a context manager, or call `close`.

    Raises:
        CheckpointError: no checkpoint in the folder, a missing or damaged shard, or an index that names
            tensors which its shards do not hold.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._handles: dict[Path, int] = {}
        self._lock = threading.Lock()
        self.tensors: Mapping[str, TensorInfo] = _read_headers(folder)

    def info(self, name: str, shape: tuple[int, ...]) -> TensorInfo:
        """The entry of `name`, which must exist with this `shape`.

        Raises:
            CheckpointError: the tensor is missing or has another shape.
        """
        found = self.tensors.get(name)
        if found is None:
            raise CheckpointError(
                "The model is incomplete.",
                why=f"The files in {self.folder} hold no tensor named {name}.",
                action="Download the model again; if it is a conversion, convert it again.",
            )
        if found.shape != shape:
            raise CheckpointError(
                "The model's files do not match its config.json.",
                why=f"{name} in {found.file.name} has the shape {list(found.shape)}, "
                f"but config.json asks for {list(shape)}.",
                action="Take config.json and the .safetensors files from the same model.",
            )
        return found

    def read_into(self, info: TensorInfo, buffer: memoryview, start: int = 0) -> None:
        """Fill `buffer` (writable) with the tensor's bytes from byte `start` on, as far as either goes.

        Raises:
            CheckpointError: the file ends early or the disk fails.
        """
        target = buffer.cast("B")[: info.nbytes - start]

        def read(handle: int, position: int) -> int:
            done = 0
            while done < len(target):
                count = _read_at(handle, target[done:], position + done, self._lock)
                if count == 0:
                    break
                done += count
            return done

        self.read_by(read, info, start, len(target))

    def read_by(self, read: Callable[[int, int], int], info: TensorInfo, start: int, nbytes: int) -> None:
        """Let `read` read `nbytes` of a tensor, from its byte `start` on, in a way of its own.

        It is called with an open file and the position in it, and returns how many bytes it could read. It
        may raise OSError, and must leave the file's own position alone.

        Raises:
            CheckpointError: the file ends early or the disk fails.
        """
        try:
            done = read(self._handle(info.file), info.offset + start)
        except OSError as error:
            raise CheckpointError(
                f"The model file {info.file.name} cannot be read.",
                why=f"In {info.file.parent}, the system says: {error.strerror or error}.",
                action="Check the disk; copy or download the model again if it has errors.",
            ) from error
        if done < nbytes:
            raise CheckpointError(
                f"The model file {info.file.name} changed while it was being read.",
                why=f"It ended {info.nbytes - start - done:,} bytes before the end of {info.name}.",
                action="Wait until nothing else writes to the model's folder, then load it again.",
            )

    def close(self) -> None:
        """Close the files. The checkpoint cannot be read afterwards."""
        with self._lock:
            for handle in self._handles.values():
                os.close(handle)
            self._handles.clear()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _handle(self, file: Path) -> int:
        with self._lock:
            if file not in self._handles:
                self._handles[file] = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            return self._handles[file]


def _read_at(handle: int, target: memoryview, offset: int, lock: threading.Lock) -> int:
    """Read into `target` at a file position; returns the bytes read, 0 at the end of the file."""
    if hasattr(os, "preadv"):
        return os.preadv(handle, [target], offset)
    if hasattr(os, "pread"):  # macOS before preadv: one more copy
        data = os.pread(handle, min(len(target), 1 << 26), offset)
    else:  # Windows has one file position per handle, so seeking and reading belong together
        with lock:
            os.lseek(handle, offset, os.SEEK_SET)
            data = os.read(handle, min(len(target), 1 << 26))
    target[: len(data)] = data
    return len(data)


def _read_headers(folder: Path) -> dict[str, TensorInfo]:
    if not folder.is_dir():
        raise CheckpointError(
            "The model's folder does not exist.",
            why=f"There is no folder {folder}.",
            action="Choose another folder, or download the model.",
        )
    if not (folder / INDEX_FILE).exists():
        if not (folder / SINGLE_FILE).exists():
            raise CheckpointError(
                f"There is no {SINGLE_FILE} and no {INDEX_FILE} in the folder.",
                why=f"{folder} {_what_else(folder)}.",
                action="Choose a folder with a Mixtral model in safetensors format.",
            )
        return read_header(folder / SINGLE_FILE)
    weight_map = read_json(folder / INDEX_FILE).get("weight_map")
    if not isinstance(weight_map, dict) or not all(is_file_name(name) for name in weight_map.values()):
        raise CheckpointError(
            f"The model's {INDEX_FILE} is not readable.",
            why=f"The file in {folder} has no table weight_map of tensor names and file names.",
            action="Download that file again.",
        )
    shards = {name: read_header(folder / name) for name in sorted(set(weight_map.values()))}
    for tensor, shard in weight_map.items():
        if tensor not in shards[shard]:
            raise CheckpointError(
                f"The model file {shard} does not match the model's index.",
                why=f"{INDEX_FILE} says that it holds {tensor}, but it does not.",
                action="Download the model again: its files come from different versions.",
            )
    return {tensor: shards[shard][tensor] for tensor, shard in weight_map.items()}


def is_file_name(value: object) -> bool:
    """Whether `value` is a plain file name: an index, or a hub's list, must not lead out of its folder."""
    return isinstance(value, str) and value not in ("", ".", "..") and not set(value) & set("/\\:\0")


def _instead(folder: Path) -> str:
    """A hint for a folder of another program's model, such as llama.cpp's; else ""."""
    gguf = next(folder.glob("*.gguf"), None)
    return "" if gguf is None else f"; {gguf.name} there is a GGUF file, which this version does not run"


def _what_else(folder: Path) -> str:
    """What the folder seems to hold instead of safetensors files, for the message."""
    for pattern, text in (
        ("*.gguf", "holds a GGUF file, which this version does not run"),
        ("*.bin", "holds weights in PyTorch's pickle format, which is not read because it can run code"),
        ("*.pt", "holds weights in PyTorch's pickle format, which is not read because it can run code"),
        ("*.safetensors", "holds safetensors files under other names"),
    ):
        if next(folder.glob(pattern), None) is not None:
            return text
    return "holds no model weights"
