"""The experts of an AWQ or GPTQ model folder (safetensors files under Hugging Face's names)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.safetensors import TensorInfo
from engine.errors import CheckpointError
from engine.transcode.accuracy import Transcoded
from engine.transcode.errors import RefusedError, sound
from engine.transcode.packed_int32 import (
    Ints,
    PackedMatrix,
    transcode_awq,
    transcode_gptq4,
    transcode_gptq8,
)
from engine.transcode.settings import Settings, read_settings
from engine.transcode.source import ExpertSource, MatrixKey, complete
from kernels.formats import WeightFormat
from kernels.quantised import GROUP

_PLACES = {"w1": "w1", "w3": "w3", "w2": "w2", "gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
_NAME = re.compile(
    r"(?:model\.)?layers\.(\d{1,4})\.(?:block_sparse_moe|mlp)\.experts\.(\d{1,4})\."
    r"(w[123]|gate_proj|up_proj|down_proj)\.(qweight|weight)"
)


class PackedExperts(ExpertSource):
    """See `ExpertSource`. `names` are the tensors' without what follows the last dot ("… .w1")."""

    def __init__(self, folder: Path) -> None:
        """Open the folder; reads headers only.

        Raises:
            CheckpointError: it is no AWQ or GPTQ model, or its experts are not complete.
        """
        self.path = folder
        self.settings = read_settings(folder)
        self._checkpoint = Checkpoint(folder)
        self._tensors = self._checkpoint.tensors
        self.names = complete(self._found(), folder)

    def close(self) -> None:
        """Close the files."""
        self._checkpoint.close()

    def format_in(self, key: MatrixKey) -> str:
        """The method and the bits, or the number format of a matrix that was left as it was."""
        plain = self._tensors.get(f"{self.names[key]}.weight")
        return self.settings.label if plain is None else plain.dtype

    def format_out(self, key: MatrixKey) -> WeightFormat | None:
        """int4 for 4 bits, int8 for 8."""
        if f"{self.names[key]}.qweight" not in self._tensors:
            return None
        return WeightFormat.INT4 if self.settings.bits == 4 else WeightFormat.INT8

    def read(self, key: MatrixKey) -> Transcoded:
        """See `ExpertSource.read`."""
        name, settings = self.names[key], self.settings
        if f"{name}.qweight" not in self._tensors:
            raise RefusedError(
                "it is not quantised, so there are no values to keep",
                "Use a version in which all experts are quantised.",
                tensor=name,
            )
        with sound(name):
            packed = self._packed(name)
            if settings.method == "awq":
                return transcode_awq(packed)
            self._check_order(name, packed)
            minus_one = settings.zeros_minus_one and not _are_symmetric_zeros(packed.qzeros, settings)
            if settings.bits == 4:
                return transcode_gptq4(packed, stored_minus_one=minus_one)
            return transcode_gptq8(packed, stored_minus_one=minus_one)

    def _found(self) -> Iterator[tuple[MatrixKey, str]]:
        for name in self._tensors:
            if match := _NAME.fullmatch(name):
                yield MatrixKey(int(match[1]), int(match[2]), _PLACES[match[3]]), name.rpartition(".")[0]

    def _packed(self, name: str) -> PackedMatrix:
        """Read the three tensors of a matrix and check their shapes against each other."""
        weight, zeros, scales = (self._info(f"{name}.{part}") for part in ("qweight", "qzeros", "scales"))
        for info in (weight, zeros, scales):
            if len(info.shape) != 2 or 0 in info.shape:
                raise _misfit(info)
        per_word = 32 // self.settings.bits
        inputs, outputs = weight.shape
        if self.settings.method == "awq":
            outputs *= per_word
        else:
            inputs *= per_word
        groups = scales.shape[0]
        group = self.settings.group or inputs
        if scales.shape != (groups, outputs) or groups * group != inputs:
            raise _misfit(scales)
        if zeros.shape != (groups, outputs // per_word) or outputs % per_word:
            raise _misfit(zeros)
        if group % GROUP:
            raise RefusedError(
                f"its scales are shared by groups of {group} weights, and here groups have {GROUP}",
                f"Use a version with a group size that is a multiple of {GROUP}, such as 128.",
            )
        return PackedMatrix(self._ints(weight), self._ints(zeros), self._floats(scales), group)

    def _check_order(self, name: str, packed: PackedMatrix) -> None:
        """Refuse GPTQ's act-order, unless its order happens to be the plain one."""
        inputs = packed.scales.shape[0] * packed.group
        if f"{name}.g_idx" in self._tensors:
            info = self._info(f"{name}.g_idx")
            if info.shape != (inputs,):
                raise _misfit(info)
            ordered = np.array_equal(self._ints(info), np.arange(inputs) // packed.group)
        else:
            ordered = not self.settings.act_order
        if not ordered:
            raise RefusedError(
                "it was quantised with act-order (“desc_act”): the weights that share a scale are picked "
                "from all over a row by their importance, and here they have to be neighbours",
                "Use a version without act-order (“desc_act”: false), an AWQ version, or a GGUF file in "
                "Q4_K.",
            )

    def _info(self, name: str) -> TensorInfo:
        info = self._tensors.get(name)
        if info is None:
            raise CheckpointError(
                "The model is incomplete.",
                why=f"The files in {self.path} hold no tensor named {name}.",
                action="Download the model again.",
            )
        return info

    def _ints(self, info: TensorInfo) -> Ints:
        if info.dtype != "I32":
            raise _misfit(info)
        return self._bytes(info).view("<i4").reshape(info.shape).astype(np.int32, copy=False)

    def _floats(self, info: TensorInfo) -> npt.NDArray[np.float32]:
        data = self._bytes(info)
        if info.dtype == "BF16":
            wide = (data.view("<u2").astype(np.uint32) << 16).view(np.float32)
        elif info.dtype in ("F16", "F32"):
            wide = data.view("<f2" if info.dtype == "F16" else "<f4").astype(np.float32)
        else:
            raise _misfit(info)
        return wide.reshape(info.shape)

    def _bytes(self, info: TensorInfo) -> npt.NDArray[np.uint8]:
        data = np.empty(info.nbytes, np.uint8)
        self._checkpoint.read_into(info, data.data)
        return data


def _are_symmetric_zeros(qzeros: Ints, settings: Settings) -> bool:
    """Whether a symmetric matrix stores the middle of its range, and so has no 1 subtracted.

    Some tools write version 2's zero points and call it version 1; with symmetric quantisation there is only
    one zero point that can be meant.
    """
    middle = 0x88888888 if settings.bits == 4 else 0x80808080
    return settings.symmetric and bool(np.all(qzeros.view(np.uint32) == middle))


def _misfit(info: TensorInfo) -> CheckpointError:
    return CheckpointError(
        "The model's files do not match its settings.",
        why=f"{info.name} in {info.file.name} has the shape {list(info.shape)} and the type {info.dtype}.",
        action="Take config.json and the .safetensors files from the same model.",
    )
