from app.precision import activations_consequence, precision_consequence, precision_label
from app.settings import SettingsStore, is_as_set, load_options, registry
from engine.options import LoadOptions
from engine.precision import PRECISIONS


def test_untouched_settings_leave_everything_to_the_program() -> None:
    settings = SettingsStore(None)
    assert load_options(settings) == LoadOptions()


def test_load_options_are_in_the_engines_units() -> None:
    settings = SettingsStore(None)
    settings.update(
        {
            "engine.policy": "cpu",
            "engine.vram_budget_gib": 1.5,
            "engine.threads": 3,
            "engine.context_length": 2048,
            "engine.ram_reserve_gib": 2,
            "engine.precision": "int8",
            "engine.exact_activations": True,
        }
    )
    assert load_options(settings, force=True) == LoadOptions(
        policy="cpu",
        vram_budget=3 * 2**29,
        context_length=2048,
        threads=3,
        force=True,
        ram_reserve=2**31,
        precision="int8",
        exact_activations=True,
    )
    settings.set(registry.CONTEXT_LENGTH, 3)
    assert load_options(settings).context_length == 16


def test_every_precision_that_can_be_chosen_can_be_loaded_and_the_other_way_round() -> None:
    assert tuple(choice.value for choice in registry.PRECISION.choices) == PRECISIONS
    assert all(precision_consequence(precision) for precision in PRECISIONS)
    assert len({precision_label(precision) for precision in PRECISIONS}) == len(PRECISIONS)


def test_forbidding_rounded_activations_has_its_consequence_by_precision() -> None:
    texts = {activations_consequence(p, exact) for p in PRECISIONS for exact in (False, True)}
    assert len(texts) == 3
    assert activations_consequence("bf16", False) == activations_consequence("bf16", True)


def test_a_model_is_as_set_until_an_option_changes_that_matters() -> None:
    settings = SettingsStore(None)
    loaded = load_options(settings, force=True)
    assert is_as_set(loaded, settings)
    settings.set(registry.EXACT_ACTIVATIONS, True)
    assert is_as_set(loaded, settings)  # nothing is rounded in bf16
    settings.set(registry.PRECISION, "int8")
    assert not is_as_set(loaded, settings)
    loaded = load_options(settings)
    settings.set(registry.EXACT_ACTIVATIONS, False)
    assert not is_as_set(loaded, settings)
