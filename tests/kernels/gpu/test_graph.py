"""The dense part of a layer as a captured graph: the same bits as its kernels launched one by one."""

import pytest
import torch

from kernels.gpu.attention import AttentionScratch, attend
from kernels.gpu.linear import embed_rows, linear_small
from kernels.gpu.residual import collect_and_norm, normalise
from kernels.gpu.rope import rope_and_store
from kernels.gpu.router import Routed, route
from kernels.quantised import Int8Matrix
from tests.kernels.gpu.devices import ON_GPU

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, EXPERTS, TOP_K, CAPACITY = 256, 8, 2, 32, 8, 2, 300


class Layer:
    """A layer's weights and the fixed places of a step's values, on the GPU or pinned."""

    def __init__(self, tokens, in_8_bits):
        torch.manual_seed(7)
        self.table = self._matrix(50, HIDDEN, in_8_bits)
        self.qkv_weight = self._matrix((HEADS + 2 * KV_HEADS) * HEAD_DIM, HIDDEN, in_8_bits)
        self.out_weight = self._matrix(HIDDEN, HEADS * HEAD_DIM, in_8_bits)
        self.router = torch.randn(EXPERTS, HIDDEN, device="cuda")
        self.norm = torch.rand(HIDDEN, device="cuda") + 0.5
        self.cos, self.sin = torch.randn(2, CAPACITY, HEAD_DIM, device="cuda").unbind(0)
        self.store = torch.zeros(
            2, KV_HEADS, tokens * CAPACITY, HEAD_DIM, dtype=torch.bfloat16, device="cuda"
        )
        self.rows = torch.arange(tokens * CAPACITY, dtype=torch.int32, device="cuda").view(tokens, -1)
        self.tokens = torch.zeros(tokens, dtype=torch.int64, pin_memory=True)
        self.positions = torch.zeros(tokens, dtype=torch.int32, device="cuda")
        self.x = torch.empty(tokens, HIDDEN, device="cuda")
        self.normed = torch.empty(tokens, HIDDEN, dtype=torch.bfloat16, device="cuda")
        self.qkv = torch.empty(tokens, (HEADS + 2 * KV_HEADS) * HEAD_DIM, device="cuda")
        self.mixed = torch.empty(tokens, HEADS * HEAD_DIM, dtype=torch.bfloat16, device="cuda")
        self.scratch = AttentionScratch.make(
            tokens, HEADS, KV_HEADS, HEAD_DIM, CAPACITY, torch.device("cuda")
        )
        self.parts = torch.randn(2, tokens * TOP_K, 4, HIDDEN, device="cuda")
        self.places = torch.tensor([0, -1] * 4, dtype=torch.int32, device="cuda")
        self.control = torch.tensor([1, *[-1] * 16], dtype=torch.int32).pin_memory()
        self.host_out = torch.randn(tokens, HIDDEN).pin_memory()
        self.routed = Routed(
            self.normed,
            torch.zeros(tokens, TOP_K, dtype=torch.int32, device="cuda"),
            torch.zeros(tokens, TOP_K, device="cuda"),
            torch.zeros(tokens, HIDDEN, pin_memory=True),
            torch.zeros(tokens, TOP_K, dtype=torch.int32, pin_memory=True),
            torch.zeros(tokens, TOP_K, pin_memory=True),
        )

    @staticmethod
    def _matrix(rows, cols, in_8_bits):
        if in_8_bits:
            values = torch.randint(-128, 128, (rows, cols), dtype=torch.int8, device="cuda")
            return Int8Matrix(values, torch.full((rows, cols // 32), 1e-3, device="cuda").half())
        return (torch.randn(rows, cols, device="cuda") / 16).bfloat16()

    def run(self):
        """Embedding, two times the same layer, and what the experts left in between."""
        embed_rows(self.tokens, self.table, self.x)
        normalise(self.x, self.norm, 1e-5, self.normed)
        self._attention()
        residents, streamed = self.parts
        ids, host_out = self.routed.ids, self.host_out
        collect_and_norm(
            self.x,
            residents,
            self.places,
            streamed,
            ids,
            self.control,
            host_out,
            self.norm,
            1e-5,
            self.normed,
        )
        self._attention()

    def _attention(self):
        linear_small(self.normed, self.qkv_weight, self.qkv)
        rope_and_store(self.qkv, self.cos, self.sin, self.positions, self.rows, self.store)
        attend(self.qkv, self.store, self.rows, self.positions, 100, self.scratch, self.mixed)
        linear_small(self.mixed, self.out_weight, self.x, add=True)
        route(self.x, self.norm, self.router, 1e-5, self.routed, positions=self.positions)

    def results(self):
        torch.cuda.synchronize()
        routed = self.routed
        tensors = (
            self.x,
            routed.normed,
            routed.host_ids,
            routed.host_weights,
            routed.host_normed,
            self.store,
        )
        return [tensor.clone() for tensor in tensors]


@pytest.mark.gpu
@pytest.mark.skipif(not ON_GPU, reason="no NVIDIA GPU")
@pytest.mark.parametrize("in_8_bits", [False, True])
@pytest.mark.parametrize("tokens", [1, 5])
def test_a_captured_step_gives_the_same_bits(tokens, in_8_bits):
    """Token ids, positions and what the host says are read anew in each replay."""
    steps = [
        ([3] * tokens, 0, [1, *[-1, 0] * 2, *[-1] * 12]),
        ([7] * tokens, 1, [0, -1, 2, *[-1] * 14]),
        ([49] * tokens, 250, [1, *[-1] * 16]),
    ]
    layer = Layer(tokens, in_8_bits)

    def set_inputs(ids, position, control):
        layer.tokens.copy_(torch.tensor(ids))
        layer.positions.fill_(position)
        if tokens > 1:
            layer.positions[-1] = -1
        layer.control.copy_(torch.tensor(control))
        torch.cuda.synchronize()

    expected = []
    for step in steps:
        set_inputs(*step)
        layer.run()
        expected.append(layer.results())
    layer.store.zero_()
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        layer.run()
    layer.store.zero_()
    for step, wanted in zip(steps, expected, strict=True):
        set_inputs(*step)
        graph.replay()
        for got, other in zip(layer.results(), wanted, strict=True):
            assert torch.equal(got, other)
    assert not all(torch.equal(a, b) for a, b in zip(expected[0], expected[1], strict=True))
