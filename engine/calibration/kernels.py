"""Chooses the kernels of a loaded model's experts: the first thing that a calibration measures."""

from __future__ import annotations

from collections.abc import Callable

from engine.calibration.probes import expert_blocks
from engine.kernel_choice import KernelChoice
from engine.models.loader import LoadedModel
from kernels.tuning_probe import measure_tuning

_SHOWN_STEP = 0.01  # of the whole: rounds of a small model take less than a millisecond


def choose_kernels(
    parts: LoadedModel,
    *,
    exact: bool,
    check: Callable[[], None],
    progress: Callable[[float], None] = lambda _: None,
) -> tuple[KernelChoice, int, float]:
    """The choice, and for how many tokens one expert then takes how many seconds.

    `exact` forbids rounding activations to 8 bits. `check` is called every few milliseconds or between single
    calls, and may raise to leave; `progress` hears the share that is done. The pool is left as it was.
    """
    pool, bank = parts.pool, parts.bank
    shown = 0.0

    def before_round(share: float) -> None:
        nonlocal shown
        check()
        if share >= shown:
            progress(share)
            shown = share + _SHOWN_STEP

    result = measure_tuning(
        pool,
        bank.shape,
        expert_blocks(bank),
        experts=bank.config.top_k,
        eight_bit=not exact,
        before_round=before_round,
    )
    choice = KernelChoice(
        isa=pool.isa,
        format=bank.shape.format,
        tuning=result.chosen,
        panel_tokens=result.tuning.panel_tokens,
        speedup=result.speedup,
        seconds=result.times,
    )
    tokens = min(result.by_panels)
    return choice, tokens, min(result.by_panels[tokens], result.by_rows[tokens])
