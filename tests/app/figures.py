"""Figures as a small model's answers have them."""

from __future__ import annotations

import numpy as np

from engine.events import ExpertHits, GenerationStats, Phase, Place

LAYERS, EXPERTS = 6, 8


def stats_after(tokens: int, *, gpu: int = 0, streamed: int = 0) -> GenerationStats:
    """Figures as after `tokens` generated tokens: hits spread over the layers, the rest on the CPU."""
    counts = np.zeros((len(Phase), LAYERS, EXPERTS, len(Place)), dtype=np.int64)
    for token in range(tokens):
        for layer in range(LAYERS):
            for expert in ((token + layer) % EXPERTS, (token * 3 + layer + 1) % EXPERTS):
                counts[Phase.DECODE, layer, expert, Place.CPU] += 1
    counts[Phase.PREFILL, :, 0, Place.GPU] = gpu
    counts[Phase.PREFILL, :, 1, Place.STREAMED] = streamed
    return GenerationStats(
        prompt_tokens=12,
        reused_tokens=4,
        generated_tokens=tokens,
        time_to_first_token=0.25,
        prefill_seconds=0.2,
        decode_seconds=tokens / 40,
        tokens_per_second=40.0,
        tokens_per_second_now=42.0,
        prefill_tokens_per_second=60.0,
        context_used=12 + tokens,
        context_length=512,
        seed=7,
        hits=ExpertHits(counts),
    )
