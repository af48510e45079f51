"""What the settings mean to the engine."""

from __future__ import annotations

from dataclasses import replace

from app.settings import registry
from app.settings.store import SettingsStore
from engine.options import LoadOptions

_GIB = 2**30


def load_options(settings: SettingsStore, *, force: bool = False) -> LoadOptions:
    """How the settings want a model to be loaded; 0 is left to the program."""
    return LoadOptions(
        policy=settings.get(registry.POLICY),
        vram_budget=_bytes(settings.get(registry.VRAM_BUDGET)),
        context_length=_context(settings.get(registry.CONTEXT_LENGTH)),
        threads=settings.get(registry.THREADS) or None,
        force=force,
        ram_reserve=_bytes(settings.get(registry.RAM_RESERVE)),
        precision=settings.get(registry.PRECISION),
        exact_activations=settings.get(registry.EXACT_ACTIVATIONS),
    )


def is_as_set(loaded: LoadOptions, settings: SettingsStore) -> bool:
    """Whether a model that was loaded with these options is as the settings want it."""
    return _effect(loaded) == _effect(load_options(settings))


def _bytes(gib: float) -> int | None:
    return round(gib * _GIB) or None


def _context(tokens: int) -> int | None:
    return max(tokens, 16) if tokens else None  # fewer than 16 cannot be loaded


def _effect(options: LoadOptions) -> LoadOptions:
    """The options as far as a loaded model depends on them."""
    return replace(options, force=False, exact_activations=options.exact_experts)
