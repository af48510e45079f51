"""Expert weights on the GPU: residents, which stay, and slots, which streamed experts pass through."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

from engine.budget import STREAM_SLOTS, place_bytes
from engine.experts.panels import Panels
from engine.experts.workspace import ExpertWorkspace
from engine.models.config import MixtralConfig
from kernels.cpu import ExpertShape
from kernels.formats import WeightFormat


class GpuExperts:
    """Packed experts on a device, as they lie on the host, in one preallocated tensor.

    `data` is uint8 [places, stride], stride the packed size rounded up to 512 bytes: a place for each
    resident, then `slots` places for streamed experts, reused in least-recently-used order. `table` is int32
    [layers, experts] on the device, the residents' places, -1 for all others; `resident` is the same as bool
    on the host, and `present` has the whole experts in slots, too. The device is a GPU, or, to try mixed
    placements without one, the CPU. `number_format` is what `run` computes in; None for bf16 on a GPU and
    float32 on the CPU.
    """

    def __init__(
        self,
        config: MixtralConfig,
        device: torch.device,
        resident: npt.NDArray[np.bool_],
        *,
        slots: int = STREAM_SLOTS,
        packed_format: WeightFormat = WeightFormat.BF16,
        number_format: torch.dtype | None = None,
    ) -> None:
        if resident.shape != (config.num_layers, config.num_experts):
            raise ValueError(f"a placement of shape {resident.shape} does not fit the model")
        self.device = device
        self.number_format = number_format or (torch.float32 if device.type == "cpu" else torch.bfloat16)
        self.resident = resident
        self.present = resident.copy()
        self.shape = ExpertShape(config.hidden_size, config.intermediate_size, packed_format)
        count = int(resident.sum())
        stride = place_bytes(config, packed_format)
        self.data = torch.empty(count + slots, stride, dtype=torch.uint8, device=device)
        places = np.full(resident.shape, -1, dtype=np.int32)
        places[resident] = np.arange(count)
        self.table = torch.from_numpy(places).to(device)
        self._workspace = ExpertWorkspace(self.shape, self.number_format, device)
        placed = zip(*np.nonzero(resident), strict=True)
        self._index = {(int(layer), int(expert)): place for place, (layer, expert) in enumerate(placed)}
        self._slots: OrderedDict[int, tuple[int, int] | None] = OrderedDict(
            (count + number, None) for number in range(slots)
        )

    @property
    def nbytes(self) -> int:
        """Bytes of all places on the device, slots included."""
        return self.data.numel()

    @property
    def slots(self) -> int:
        """How many places streamed experts have: so many may be on their way or in use at a time."""
        return len(self._slots)

    def place(self, layer: int, expert: int) -> int | None:
        """Where the whole expert is, as `run` takes it; None if it is not on the device."""
        return self._index.get((layer, expert))

    def block(self, place: int) -> torch.Tensor:
        """What a place holds, a packed expert, uint8 [shape.nbytes] on the device."""
        return self.data[place, : self.shape.nbytes]

    def claim(self, layer: int, expert: int, whole: bool = True) -> int:
        """A slot for a streamed expert, the one unused for longest; what it held is forgotten.

        With `whole` the expert is then `present`, and `place` finds it until its slot is claimed again; with
        a part of one nobody but the caller can begin anything. Raises ValueError if the expert is there.
        """
        if (layer, expert) in self._index:
            raise ValueError(f"expert {expert} of layer {layer} is on the device already")
        slot = next(iter(self._slots))
        self.forget(slot)
        if whole:
            self._slots[slot] = (layer, expert)
            self._index[layer, expert] = slot
            self.present[layer, expert] = True
        self._slots.move_to_end(slot)
        return slot

    @contextlib.contextmanager
    def claimed(self, layer: int, expert: int, whole: bool = True) -> Iterator[int]:
        """`claim` for a copy that is started inside; if that fails, the slot holds nothing."""
        slot = self.claim(layer, expert, whole)
        try:
            yield slot
        except BaseException:
            self.forget(slot)
            raise

    def forget(self, slot: int) -> None:
        """Forget what a slot holds: nobody finds it there again."""
        held = self._slots[slot]
        if held is not None:
            del self._index[held]
            self.present[held] = False
            self._slots[slot] = None

    def empty_slots(self) -> None:
        """Forget the streamed experts: the next use of one is a copy again."""
        for slot in self._slots:
            self.forget(slot)

    def touch(self, place: int) -> bool:
        """Note that a place was used; whether it is a slot (residents need no note)."""
        if place not in self._slots:
            return False
        self._slots.move_to_end(place)
        return True

    def store(self, place: int, block: torch.Tensor) -> None:
        """Copy a packed block, uint8 [shape.nbytes] on any device, into a place, on the current stream."""
        self.block(place).copy_(block)

    def close(self) -> None:
        """Let go of all memory on the device; nothing can be run any more."""
        self.data = torch.empty(0, self.data.shape[1], dtype=torch.uint8)
        self._workspace.close()

    def run(self, place: int, x: torch.Tensor, panels: Panels | None = None) -> torch.Tensor:
        """The expert's FFN, w2 (silu(w1 x) * w3 x), for rows of x [tokens, hidden] in `number_format`.

        float32 [tokens, hidden]. With `panels` only their share of the sum, and only they need be there.
        """
        out: torch.Tensor | None = None
        for gate_up, down in self._workspace.parts(self.block(place), panels):
            gate, up = functional.linear(x, gate_up).chunk(2, dim=-1)
            part = functional.linear(functional.silu(gate) * up, down).float()
            out = part if out is None else out.add_(part)
        assert out is not None
        return out
