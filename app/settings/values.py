"""What the settings mean to the engine."""

from __future__ import annotations

from dataclasses import replace

from app.settings import registry
from app.settings.store import SettingsStore
from engine.options import LoadOptions
from engine.params import GenerationParams, SamplingParams

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


def generation_params(settings: SettingsStore, model_defaults: GenerationParams) -> GenerationParams:
    """How the next answer is to be generated: the model's way, or the user's where they chose one.

    The seed is the user's in both cases. What ends an answer (stop strings, loops) stays the model's.
    """
    seed = settings.get(registry.SEED)
    fixed = seed if seed >= 0 else None
    if settings.get(registry.USE_MODEL_DEFAULTS):
        return replace(model_defaults, sampling=replace(model_defaults.sampling, seed=fixed))
    sampling = SamplingParams(
        temperature=settings.get(registry.TEMPERATURE),
        top_k=settings.get(registry.TOP_K),
        top_p=settings.get(registry.TOP_P),
        min_p=settings.get(registry.MIN_P),
        repetition_penalty=settings.get(registry.REPETITION_PENALTY),
        seed=fixed,
    )
    return replace(model_defaults, sampling=sampling, max_tokens=settings.get(registry.MAX_TOKENS))


def _bytes(gib: float) -> int | None:
    return round(gib * _GIB) or None


def _context(tokens: int) -> int | None:
    return max(tokens, 16) if tokens else None  # fewer than 16 cannot be loaded


def _effect(options: LoadOptions) -> LoadOptions:
    """The options as far as a loaded model depends on them."""
    return replace(options, force=False, exact_activations=options.exact_experts)
