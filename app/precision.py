"""The precisions that experts can be held in, in the user's words."""

from __future__ import annotations

from app.i18n import tr


def precision_label(precision: str) -> str:
    """A precision's name: "bf16", "8 bits", "4 bits"."""
    return {"int8": tr("8 bits"), "int4": tr("4 bits")}.get(precision, precision)


def precision_consequence(precision: str) -> str:
    """What holding experts in a precision costs and saves, in one sentence."""
    texts = {
        "bf16": tr("As in the model's files: nothing is lost, and nothing is saved."),
        "int8": tr("About half of the memory of bf16; the answers are practically the same."),
        "int4": tr("Less than a third of the memory of bf16; the answers are somewhat less good."),
    }
    return texts.get(precision, "")


def activations_consequence(precision: str, exact: bool) -> str:
    """What forbidding activations of 8 bits, or not, means for experts in a precision, in one sentence."""
    if precision == "bf16":
        return tr("It makes no difference now: for experts in bf16 activations are never rounded.")
    if exact:
        return tr("The answers are a little more precise, and come more slowly on most computers.")
    return tr("Activations are rounded where calibration finds it faster; the answers are hardly different.")
