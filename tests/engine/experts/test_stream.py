"""Bringing experts and parts of them into slots: what arrives, what counts as present, what is counted."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from engine.checkpoint.reader import Checkpoint
from engine.experts.bank import ExpertBank
from engine.experts.register import CudaPinner
from engine.experts.slots import GpuExperts
from engine.experts.stream import CudaStream, DirectStream
from engine.stats import HitCounters
from kernels.cpu import unpack_expert
from kernels.formats import WeightFormat
from kernels.gpu.support import usable
from kernels.shape import PANEL_ROWS
from tests.kernels.experts import unpack_quantised

CPU = torch.device("cpu")
ON_GPU = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.fixture(scope="module")
def model(make_model):
    """Ten panels, the last one with eight neurons, and two blocks of 256 inputs."""
    return make_model(seed=5, hidden_size=264, num_attention_heads=4, intermediate_size=296)


@pytest.fixture(scope="module")
def banks(model):
    made = {}
    with Checkpoint(model.path) as checkpoint:
        for weight_format in WeightFormat:
            made[weight_format] = ExpertBank(model.config, weight_format)
            made[weight_format].fill(checkpoint)
    return made


class Refusing:
    """A system that lets nothing be pinned."""

    def register(self, block):
        return False

    def unregister(self, block):
        raise AssertionError("nothing was pinned")


@pytest.fixture(
    params=[
        "cpu",
        *(pytest.param(name, marks=ON_GPU) for name in ("cuda, pinned", "cuda, refused", "cuda, not tried")),
    ]
)
def make(request, banks):
    """`make(format, slots)`: experts without residents, their stream and counters, in each way of copying."""
    opened = []

    def build(weight_format, slots=2):
        bank = banks[weight_format]
        device = CPU if request.param == "cpu" else torch.device("cuda", torch.cuda.current_device())
        nothing = np.zeros((2, 4), dtype=bool)
        gpu = GpuExperts(
            bank.config,
            device,
            nothing,
            slots=slots,
            packed_format=weight_format,
            number_format=torch.float32,
        )
        counters = HitCounters(2, 4)
        if request.param in ("cuda, pinned", "cuda, refused"):
            pinner = CudaPinner(device) if request.param == "cuda, pinned" else Refusing()
            assert bank.pin(pinner).wait(20)
            opened.append(bank)
            assert bank.pinned(1, 3) == (request.param == "cuda, pinned")
        stream = (DirectStream if device.type == "cpu" else CudaStream)(bank, gpu, counters)
        return bank, gpu, stream, counters

    yield build
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    for bank in opened:
        bank.close()
        bank.registration = None


def share(bank, layer, expert, x, panels, rounded):
    """In float64, what the panels add to the expert's output; `rounded`: of weights as bf16."""
    rows = slice(panels[0] * PANEL_ROWS, panels[1] * PANEL_ROWS)
    block = bank.block(layer, expert)
    if rounded or bank.shape.format is WeightFormat.BF16:
        matrices = unpack_expert(block, bank.shape)
    else:
        matrices = tuple(matrix.dequantise() for matrix in unpack_quantised(block, bank.shape))
    w1, w3, w2 = (matrix.double() for matrix in matrices)
    return (functional.silu(x.double() @ w1[rows].T) * (x.double() @ w3[rows].T)) @ w2[:, rows].T


@pytest.mark.parametrize("weight_format", WeightFormat)
@pytest.mark.parametrize("panels", [(0, 1), (3, 10), (8, 9), (7, 8), None])
def test_what_is_fetched_computes_its_share(make, weight_format, panels):
    bank, gpu, stream, counters = make(weight_format)
    gpu.data.fill_(0xFF)  # NaN as bf16 and as float16
    if gpu.device.type == "cuda":
        torch.cuda.synchronize()  # copies have a stream of their own, which does not wait for this one
    x = torch.randn(3, bank.config.hidden_size)
    place = stream.fetch(1, 2, panels)
    stream.wait(place)
    ours = gpu.run(place, x.to(gpu.device), panels)
    stream.release(place)
    # Triton's kernel unpacks to float32 as asked, torch's operations to bf16.
    expected = share(bank, 1, 2, x, panels or (0, 10), rounded=not usable(gpu.device))
    torch.testing.assert_close(ours.cpu().double(), expected, atol=1e-4, rtol=1e-4)
    assert gpu.present[1, 2] == (panels is None)
    assert (gpu.place(1, 2) == place) == (panels is None)
    nbytes = counters.streamed_bytes
    assert nbytes == bank.shape.nbytes if panels is None else nbytes < bank.shape.nbytes
    if gpu.device.type == "cuda":
        torch.cuda.synchronize()
    assert stream.take_copy_seconds() > 0
    assert stream.take_copy_seconds() == 0


@pytest.mark.parametrize("weight_format", WeightFormat)
def test_many_copies_through_few_slots_never_overtake_what_runs(make, weight_format):
    """Copies wait for the work with what a slot held, and work waits for its copy, without the host."""
    bank, gpu, stream, _ = make(weight_format)
    x = torch.randn(5, bank.config.hidden_size)
    moved = x.to(gpu.device)
    generator = np.random.default_rng(0)
    wanted, results = [], []
    for _ in range(60):
        layer, expert = int(generator.integers(2)), int(generator.integers(4))
        if gpu.present[layer, expert]:
            place, panels = gpu.place(layer, expert), None
        else:
            first, end = sorted(generator.choice(11, 2, replace=False).tolist())
            panels = (first, end) if generator.random() < 0.6 else None
            place = stream.fetch(layer, expert, panels)
        stream.wait(place)
        results.append(gpu.run(place, moved, panels))
        stream.release(place)
        wanted.append((layer, expert, panels or (0, 10)))
    for ours, (layer, expert, panels) in zip(results, wanted, strict=True):
        expected = share(bank, layer, expert, x, panels, rounded=not usable(gpu.device))
        torch.testing.assert_close(ours.cpu().double(), expected, atol=1e-4, rtol=1e-4)


def test_a_part_takes_the_slot_of_a_whole_and_is_found_by_nobody(make):
    _, gpu, stream, _ = make(WeightFormat.BF16, slots=1)
    place = stream.fetch(0, 1)
    stream.release(place)
    assert gpu.place(0, 1) == place
    assert stream.fetch(0, 2, (0, 3)) == place
    assert gpu.place(0, 1) is None
    assert gpu.place(0, 2) is None
    assert not gpu.present.any()


def test_what_is_there_is_not_copied_again_but_counts_as_used(make):
    bank, gpu, stream, counters = make(WeightFormat.BF16)
    first, second = stream.fetch(0, 1), stream.fetch(0, 2)
    stream.release(first)
    stream.release(second)
    assert counters.streamed_bytes == 2 * bank.shape.nbytes
    assert stream.fetch(0, 1) == stream.fetch(0, 1, (2, 5)) == first
    assert counters.streamed_bytes == 2 * bank.shape.nbytes
    assert stream.fetch(1, 3) == second  # not the one that was used since
    with pytest.raises(ValueError, match="already"):
        gpu.claim(0, 1)
    gpu.empty_slots()
    stream.fetch(0, 1)
    assert counters.streamed_bytes == 4 * bank.shape.nbytes


def test_a_copy_that_fails_leaves_nothing_present(make, monkeypatch):
    _, gpu, stream, _ = make(WeightFormat.BF16)

    def fail(*_):
        raise torch.OutOfMemoryError("no pinned memory left")

    monkeypatch.setattr(type(gpu), "block", fail)
    with pytest.raises(torch.OutOfMemoryError):
        stream.fetch(0, 1)
    assert not gpu.present.any()
    assert gpu.place(0, 1) is None
    monkeypatch.undo()
    stream.release(stream.fetch(0, 1))
    assert gpu.present[0, 1]
