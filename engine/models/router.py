"""The router: which experts a token goes to, and with which weights. Always float32."""

from __future__ import annotations

import torch
from torch.nn import functional


def route(
    x: torch.Tensor, weight: torch.Tensor, top_k: int, forced: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Choose `top_k` experts for each token.

    Logits are accumulated and kept in float32: rounded to bf16, near experts tie and the choice between them
    becomes arbitrary. The softmax over all experts, renormalised over the chosen ones as Mixtral defines it,
    equals the softmax over the chosen logits; choosing by logits cannot tie where only probabilities do.

    Args:
        x: normalised hidden states, float32 [tokens, hidden].
        weight: the router's rows, float32 [experts, hidden].
        top_k: experts per token.
        forced: int64 [tokens, top_k], the experts to take instead of the best ones; their weights are still
            the logits' (benchmarks set the routing).

    Returns:
        Expert ids, int64 [tokens, top_k], best first or as forced, and their weights, float32, each row
        summing to 1.
    """
    logits = functional.linear(x, weight)
    if forced is None:
        values, ids = logits.topk(top_k, dim=-1)
    else:
        values, ids = logits.gather(1, forced), forced
    return ids, torch.softmax(values, dim=-1)
