"""Expert weights on the GPU: residents, which stay, and slots, which streamed experts pass through."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from engine.models.config import MixtralConfig
from kernels.cpu import ExpertShape, unpack_expert
from kernels.formats import WeightFormat

STREAM_SLOTS = 2  # one is computed with while the next is copied


class GpuExperts:
    """Plain bf16 matrices of the experts on a device, in two preallocated tensors.

    `resident` is bool [layers, experts]. Behind the residents come `slots` places for streamed experts,
    reused in least-recently-used order. The device is a GPU, or, to try mixed placements without one, the
    CPU. `number_format` is what `run` computes in; None for bf16 on a GPU and float32 on the CPU.
    `packed_format` is what the blocks for `store` are packed in; quantised ones are dequantised there.
    """

    def __init__(
        self,
        config: MixtralConfig,
        device: torch.device,
        resident: npt.NDArray[np.bool_],
        slots: int = STREAM_SLOTS,
        number_format: torch.dtype | None = None,
        packed_format: WeightFormat = WeightFormat.BF16,
    ) -> None:
        if resident.shape != (config.num_layers, config.num_experts):
            raise ValueError(f"a placement of shape {resident.shape} does not fit the model")
        self.device = device
        self.number_format = number_format or (torch.float32 if device.type == "cpu" else torch.bfloat16)
        self.resident = resident
        self.present = resident.copy()  # residents, and what the slots hold at the moment
        self.shape = ExpertShape(config.hidden_size, config.intermediate_size, packed_format)
        count = int(resident.sum())
        hidden, inner = config.hidden_size, config.intermediate_size
        self._gate_up = torch.empty(count + slots, 2 * inner, hidden, dtype=torch.bfloat16, device=device)
        self._down = torch.empty(count + slots, hidden, inner, dtype=torch.bfloat16, device=device)
        placed = zip(*np.nonzero(resident), strict=True)
        self._index = {(int(layer), int(expert)): place for place, (layer, expert) in enumerate(placed)}
        self._slots: OrderedDict[int, tuple[int, int] | None] = OrderedDict(
            (count + number, None) for number in range(slots)
        )

    @property
    def nbytes(self) -> int:
        """Bytes on the device, slots included."""
        return 2 * (self._gate_up.numel() + self._down.numel())

    def place(self, layer: int, expert: int) -> int | None:
        """Where the expert's matrices are, as `run` takes it; None if they are not on the device."""
        return self._index.get((layer, expert))

    def claim(self, layer: int, expert: int) -> int:
        """A slot for a streamed expert, the one unused for longest; what it held is forgotten."""
        slot, held = next(iter(self._slots.items()))
        if held is not None:
            del self._index[held]
            self.present[held] = False
        self._slots[slot] = (layer, expert)
        self._index[layer, expert] = slot
        self.present[layer, expert] = True
        self._slots.move_to_end(slot)
        return slot

    def empty_slots(self) -> None:
        """Forget the streamed experts: the next use of one is a copy again."""
        for slot, held in self._slots.items():
            if held is not None:
                del self._index[held]
                self.present[held] = False
                self._slots[slot] = None

    def touch(self, place: int) -> bool:
        """Note that a place was used; whether it is a slot (residents need no note)."""
        if place not in self._slots:
            return False
        self._slots.move_to_end(place)
        return True

    def store(self, place: int, block: torch.Tensor) -> None:
        """Unpack a block that lies on the device into a place, on the current stream."""
        gate, up, down = unpack_expert(block, self.shape)
        inner = self.shape.intermediate
        self._gate_up[place, :inner] = gate
        self._gate_up[place, inner:] = up
        self._down[place] = down

    def run(self, place: int, x: torch.Tensor) -> torch.Tensor:
        """The expert's FFN, w2 (silu(w1 x) * w3 x), for rows of x in `number_format`: [tokens, hidden]."""
        gate_up = functional.linear(x, self._gate_up[place].to(x.dtype))
        gate, up = gate_up.chunk(2, dim=-1)
        return functional.linear(functional.silu(gate) * up, self._down[place].to(x.dtype))
