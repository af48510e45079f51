"""How an AWQ or GPTQ model was quantised: the table in its config.json, or the file of older tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.checkpoint.reader import CONFIG_FILE, read_json, read_optional_json
from engine.errors import CheckpointError

GPTQ_FILE = "quantize_config.json"  # AutoGPTQ before quantization_config
AWQ_FILE = "quant_config.json"  # AutoAWQ before quantization_config
_INSTEAD = "Use an AWQ (“gemm”) or GPTQ version in 4 bits, or a GGUF file in Q4_K."


@dataclass(frozen=True)
class Settings:
    """`method` is "awq" or "gptq"; `group` the weights that share a scale, 0 for all of a row."""

    method: str
    bits: int
    group: int
    act_order: bool  # GPTQ's desc_act
    symmetric: bool
    zeros_minus_one: bool  # version 1 of GPTQ's format stores the zero points so

    @property
    def label(self) -> str:
        """As people call it: "GPTQ 4 bits"."""
        return f"{self.method.upper()} {self.bits} bits"


def read_settings(folder: Path) -> Settings:
    """The settings of the model in `folder`.

    Raises:
        CheckpointError: it is not quantised, or in a way that cannot be taken over.
    """
    table = _table(folder)
    method = table.get("quant_method")
    if method not in ("awq", "gptq"):
        how = "in a way that they do not name" if method is None else f"by “{method}”"
        raise _refused(f"it was quantised {how}; AWQ and GPTQ can be taken over")
    bits = _first(table, "bits", "w_bit")
    if type(bits) is not int or bits not in ((4,) if method == "awq" else (4, 8)):
        raise _refused(f"its weights have {bits!r} bits")
    group = _first(table, "group_size", "q_group_size")
    if type(group) is not int or group < -1 or group == 0:
        raise _refused(f"its group size is {group!r}")
    packing = str(table.get("version", "gemm") if method == "awq" else _gptq_packing(table)).lower()
    if packing not in ({"gemm"} if method == "awq" else {"gptq", "gptq_v2"}):
        raise _refused(f"its values are packed for one kernel (“{packing}”)")
    return Settings(
        method=str(method),
        bits=bits,
        group=max(group, 0),
        act_order=table.get("desc_act") is True,
        symmetric=table.get("sym") is True,
        zeros_minus_one=packing == "gptq",
    )


def _table(folder: Path) -> Mapping[str, object]:
    """The settings wherever they are; the older files do not name the method."""
    table = read_json(folder / CONFIG_FILE).get("quantization_config")
    if isinstance(table, Mapping):
        return table
    for name, method in ((GPTQ_FILE, "gptq"), (AWQ_FILE, "awq")):
        table = read_optional_json(folder / name)
        if table:
            return {"quant_method": method, **table}
    raise CheckpointError(
        "This model is not quantised, so there are no values to take over.",
        why=f"The {CONFIG_FILE} in {folder} has no table quantization_config.",
        action="Load it as it is, and choose 8 or 4 bits there; or choose a GGUF, AWQ or GPTQ version here.",
    )


def _gptq_packing(table: Mapping[str, object]) -> object:
    if table.get("is_marlin_format") is True:
        return "marlin"
    return table.get("checkpoint_format") or "gptq"


def _first(table: Mapping[str, object], *keys: str) -> object:
    return next((table[key] for key in keys if key in table), None)


def _refused(why: str) -> CheckpointError:
    return CheckpointError(
        "This model's weights cannot be taken over.", why=f"According to its settings {why}.", action=_INSTEAD
    )
