"""The Mixtral forward pass (arXiv 2401.04088): attention and routers here, experts through the executor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import torch
from torch.nn import functional

from engine.accounting import Part
from engine.events import Phase
from engine.executor import ExpertExecutor
from engine.kvbatch import SequenceBatch
from engine.kvcache import KVCache
from engine.models.attention import Attention
from engine.models.batch import BatchPass
from engine.models.config import MixtralConfig
from engine.models.linear import CpuLinear
from engine.models.rope import RotaryTable
from engine.models.router import route
from engine.models.routing_source import RoutingSource
from engine.models.step import SingleToken
from engine.models.weights import DenseWeights
from kernels.gpu import support

if TYPE_CHECKING:
    from engine.models.gpu.step import GpuDecoder

# Attention scores per head and layer from which torch's own threads pay. Two AVX2 cores, tokens per second
# without and with them: 390 and 280 for a prompt of 128, 310 and 350 for 2048.
_MANY_SCORES = 1 << 17


class MixtralModel:
    """A loaded model on one compute device. One forward at a time.

    The residual stream, the norms and the router are float32 everywhere. On the CPU everything else is too
    (weights are bf16, exactly widened); on a GPU matrices are multiplied, and the cache is held, in the
    weights' `number_format`: bf16, or float32 for a small model.

    `routing`, where it is set, chooses the experts in the router's place: for benchmarks.
    """

    def __init__(
        self, config: MixtralConfig, weights: DenseWeights, executor: ExpertExecutor, device: torch.device
    ) -> None:
        self.config = config
        self.device = device
        self.executor = executor
        self.weights = weights
        self.routing: RoutingSource | None = None
        self._attention = Attention(config)
        self._rope = RotaryTable(config.head_dim, config.rope_theta, device)
        self._rotated = config.num_heads + config.num_kv_heads
        self._threads = weights.output.pool.threads if isinstance(weights.output, CpuLinear) else 1
        self._batch = BatchPass(config, weights, executor, self._rope)
        self._single = None if device.type != "cpu" else SingleToken(config, weights, executor, self._rope)
        self._decoder = self._make_decoder()

    @property
    def cache_dtype(self) -> torch.dtype:
        """The number format of keys and values on this device."""
        return self.weights.number_format

    def new_cache(self, capacity: int) -> KVCache:
        """An empty cache for `capacity` tokens."""
        return KVCache(self.config, capacity, self.device, self.cache_dtype)

    def prepare(self, cache: KVCache) -> None:
        """Do what the first step with a cache would have to do once: compile kernels, capture graphs.

        Raises torch.OutOfMemoryError where the GPU has no room for it.
        """
        if self._decoder is not None:
            with torch.inference_mode():
                self._decoder.prepare(cache)

    @torch.inference_mode()
    def forward(
        self,
        token_ids: torch.Tensor,
        cache: KVCache,
        *,
        logits: Literal["last", "all", "none"] = "last",
        phase: Phase | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> torch.Tensor | None:
        """Read a chunk of tokens after those in the cache.

        Args:
            token_ids: int64 [tokens] on the CPU, at least one.
            cache: earlier tokens; the new ones are appended.
            logits: for which of the new tokens the next token's logits are wanted.
            phase: under which experts are counted; by default one token after others is decode.
            check: called before each layer of a longer chunk; what it raises leaves the cache as it was.

        Returns:
            float32 [1 or tokens, vocabulary] on the CPU, or None if none were wanted.

        Raises:
            GenerationError: the cache has no room for the chunk; it is unchanged then.
        """
        tokens, start = len(token_ids), cache.length
        cache.check_room(tokens)
        if phase is None:
            phase = Phase.DECODE if tokens == 1 and start > 0 else Phase.PREFILL
        # A prompt of one token is no reason to capture graphs: its cache may live for that token only.
        if (
            tokens == 1
            and self._decoder is not None
            and (phase is Phase.DECODE or self._decoder.is_prepared(cache))
        ):
            one = self._decoder.step_of(cache, int(token_ids[0]), phase, self.routing)
            cache.length = start + 1
            return None if logits == "none" else one
        account = self.executor.account
        account.begin_step()
        x = self.weights.embedding(token_ids)  # [tokens, hidden]
        if self.device.type == "cpu":
            torch.set_num_threads(self._torch_threads(start, tokens))
        if self._single is not None and tokens == 1:
            x = self._single(x, cache, phase, self.routing)
        else:
            self._run_layers(x, cache, phase, check)
        result = None
        if logits != "none":
            wanted = x[-1:] if logits == "last" else x
            result = self.weights.output(self._normalise(wanted, self.weights.final_norm)).float().cpu()
        cache.length = start + tokens  # not before: after an error the chunk is read anew from its start
        account.mark(Part.ATTENTION)
        account.end_step(counted=phase is Phase.DECODE)
        return result

    @torch.inference_mode()
    def forward_batch(self, token_ids: torch.Tensor, batch: SequenceBatch) -> torch.Tensor:
        """Read one token of each live sequence of a batch; every expert runs once for all of them.

        Args:
            token_ids: int64 [sequences] on the CPU.
            batch: the sequences; each becomes one token longer.

        Returns:
            The next tokens' logits, float32 [sequences, vocabulary] on the CPU.

        Raises:
            GenerationError: the batch has too few free rows; it is unchanged then.
        """
        batch.begin_step()
        if self._decoder is not None and len(token_ids) <= self._decoder.most_sequences:
            lengths: list[int] = batch.lengths.tolist()
            logits = self._decoder.step(
                token_ids.tolist(), lengths, batch, batch.pool.data, batch.rows, Phase.DECODE, self.routing
            )
            batch.end_step()
            return logits
        account = self.executor.account
        account.begin_step()
        if self.device.type == "cpu":
            torch.set_num_threads(1)  # its operations are short here: see `_torch_threads`
        x = self.weights.embedding(token_ids)  # [sequences, hidden]
        self._batch(x, batch, self.routing)
        batch.end_step()
        result = self.weights.output(self._normalise(x, self.weights.final_norm)).float().cpu()
        account.mark(Part.ATTENTION)
        account.end_step()
        return result

    def _run_layers(self, x: torch.Tensor, cache: KVCache, phase: Phase, check: Callable[[], None]) -> None:
        """All layers for a chunk: x, float32 [tokens, hidden], becomes the last layer's output."""
        tokens, start = len(x), cache.length
        cos, sin = self._rope.rows(start, tokens)
        mask = self._attention.mask(start, tokens, cache.data)
        for index, layer in enumerate(self.weights.layers):
            check()
            qkv = layer.qkv(self._normalise(x, layer.input_norm)).float()
            qkv = qkv.view(tokens, -1, self.config.head_dim)
            self._rope.rotate_(qkv[:, : self._rotated], cos, sin)
            x += layer.attention_out(self._attention(qkv, cache, index, mask))
            normed = self._normalise(x, layer.post_norm)
            forced = None
            if self.routing is not None:
                forced = self.routing.choose(index, tokens).to(self.device, torch.int64)
            ids, weights = route(normed, layer.router, self.config.top_k, forced)
            self.executor.account.mark(Part.ATTENTION)
            self.executor.run(index, normed, ids, weights, phase, out=x)
            self.executor.account.mark(Part.CPU_EXPERTS)

    def _make_decoder(self) -> GpuDecoder | None:
        """Single tokens by captured graphs, where there is a GPU that kernels can be compiled for."""
        if self.device.type != "cuda" or not support.usable(self.device):
            return None
        from engine.models.gpu.step import GpuDecoder  # needs triton, which CPU builds of torch do not bring

        executor = self.executor
        if executor.gpu is None or executor.gpu.device != self.device:
            return None
        decoder = GpuDecoder(self.config, self.weights, executor, self._rope, self.device)
        # None with very many experts for a token, or heads too wide for the shared memory: torch runs them.
        return decoder if decoder.most_sequences else None

    def _normalise(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """RMSNorm, in float32."""
        return functional.rms_norm(x, (self.config.hidden_size,), weight, self.config.rms_norm_eps)

    def _torch_threads(self, start: int, tokens: int) -> int:
        """How many threads torch itself should use beside the CPU pool for a chunk.

        Only attention over many keys is worth them: after each parallel operation torch's threads spin for a
        moment, and the pool's threads then have to share their cores with them.
        """
        return self._threads if tokens * (start + tokens) >= _MANY_SCORES else 1
