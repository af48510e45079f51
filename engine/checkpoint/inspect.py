"""What a model folder holds and how large it is, from config.json and file headers alone. Torch-free."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.checkpoint.reader import CONFIG_FILE, Checkpoint, read_json
from engine.checkpoint.safetensors import TensorInfo
from engine.errors import CheckpointError
from engine.models import tensors
from engine.models.config import MixtralConfig

STARTER_KEY = "fiddler_starter"  # true in the config.json that the starter model's conversion writes
STARTER_NAME = "Starter model"
_WIDE = ("BF16", "F16", "F32")  # formats that widen to float32 exactly
_BF16_BYTES = 2


@dataclass(frozen=True)
class ModelInfo:
    """A checked model folder. Sizes are bytes in bf16, as the program keeps the weights."""

    path: Path
    name: str
    config: MixtralConfig
    expert_bytes: int  # one expert
    other_bytes: int  # everything that is not an expert
    total_bytes: int
    context_length: int  # the most tokens the model was made for
    is_starter: bool

    def kv_bytes_per_token(self, dtype_bytes: int) -> int:
        """Bytes that one token of context takes in the KV cache at `dtype_bytes` per number."""
        return self.config.kv_bytes_per_token(dtype_bytes)


def inspect_model(path: str | Path) -> ModelInfo:
    """Check the model in a folder and describe it, in well under a second for the largest models.

    Every tensor must be there with the right shape and a number format that can be run, and every file
    must have the length that its header promises.

    Raises:
        CheckpointError: naming the file, the cause, and what to do.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise CheckpointError(
            "The model's folder does not exist.",
            why=f"There is no folder {folder}.",
            action="Choose another folder, or download the model.",
        )
    raw = read_json(folder / CONFIG_FILE)
    config = MixtralConfig.from_dict(raw)
    with Checkpoint(folder) as checkpoint:
        check_tensors(checkpoint, config)
    is_starter = raw.get(STARTER_KEY) is True
    expert = config.expert_parameters * _BF16_BYTES
    other = config.other_parameters * _BF16_BYTES
    return ModelInfo(
        path=folder,
        name=STARTER_NAME if is_starter else _name(folder),
        config=config,
        expert_bytes=expert,
        other_bytes=other,
        total_bytes=other + expert * config.num_layers * config.num_experts,
        context_length=config.max_position_embeddings,
        is_starter=is_starter,
    )


def check_tensors(checkpoint: Checkpoint, config: MixtralConfig) -> None:
    """Check that every tensor of the model is there, with its shape and a usable number format.

    Matrices must be bf16, which is how they are kept and computed with; norms and routers may be in any
    format that widens to float32 exactly.

    Raises:
        CheckpointError: a tensor is missing, or has another shape or number format.
    """
    for name, shape in tensors.expected(config):
        info = checkpoint.info(name, shape)
        small = len(shape) == 1 or name.endswith("block_sparse_moe.gate.weight")
        if info.dtype not in (_WIDE if small else ("BF16",)):
            raise wrong_dtype(info)


def wrong_dtype(info: TensorInfo) -> CheckpointError:
    """The error for a tensor in a number format that this program does not run."""
    return CheckpointError(
        f"The model's weights are stored as {info.dtype}, which is not supported yet.",
        why=f"{info.name} in {info.file.name} is {info.dtype}; this version runs BF16.",
        action="Choose the bf16 version of the model.",
    )


def _name(folder: Path) -> str:
    """A name to show: the folder's, or the repository's where the folder is a hub cache snapshot."""
    resolved = folder.resolve()
    parts = resolved.parts
    if len(parts) > 2 and parts[-2] == "snapshots" and parts[-3].startswith("models--"):
        return parts[-3].removeprefix("models--").rsplit("--", 1)[-1]
    return resolved.name
