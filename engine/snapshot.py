"""How a loaded engine stands at a moment, gathered from its parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import psutil

from engine import vram
from engine.drift import prediction_of
from engine.status import EngineStatus

if TYPE_CHECKING:
    from engine.runtime import Engine


def status_of(engine: Engine, context_used: int) -> EngineStatus:
    """The engine's status; `context_used` are the tokens in its cache. Raises EngineError if it is closed."""
    parts, config, plan = engine.parts, engine.info.config, engine.plan
    residency = np.zeros((config.num_layers, config.num_experts), dtype=np.bool_)
    if plan.has_gpu and parts.residents is not None:
        residency = parts.residents.resident.copy()
    on_gpu = parts.model.device.type == "cuda"
    prediction = prediction_of(parts.executor.costs)
    return EngineStatus(
        model_name=engine.info.name,
        layers=config.num_layers,
        experts=config.num_experts,
        residency=residency,
        ram_used=psutil.Process().memory_info().rss,
        vram_used=vram.used_bytes(parts.model.device) if on_gpu else 0,
        vram_budget=plan.vram_budget,
        threads=parts.pool.threads,
        isa=parts.pool.isa.value,
        policy=engine.options.policy,
        precision=engine.options.precision,
        device=plan.device_name,
        has_gpu=plan.has_gpu,
        context_length=plan.context_length,
        context_used=context_used,
        is_starter=engine.info.is_starter,
        calibrated=engine.profile is not None,
        stale_calibration="" if engine.profile is not None else engine.stale_calibration,
        notes=(*engine.notes, *parts.notes),
        gpu_index=engine.hardware.gpu.index if plan.has_gpu and engine.hardware.gpu is not None else None,
        prediction_error=prediction.error,
        refits=prediction.refits,
    )
