"""The report of a model as lines for people. Torch-free."""

from __future__ import annotations

import textwrap

from engine.accounting import Part
from engine.bench.model_report import ModelReport
from engine.units import format_bytes, format_seconds

_WIDTH, _INDENT = 108, " " * 8


def table(report: ModelReport) -> tuple[str, ...]:
    """Lines: the model, the machine, its bandwidths, a row for each prompt, decode, memory."""
    lines = [*head(report), ""]
    if report.prompts:
        yardstick = "copying alone" if report.machine["gpu"] else "reading alone"
        lines.append(f"prompt  first token  {yardstick}  ratio")
    for each in report.prompts:
        ratio = f"{each.ratio:.2f}" if each.floor else "-"
        seconds, floor = format_seconds(each.seconds), format_seconds(each.floor)
        lines.append(f"{each.tokens:6}  {seconds:>11}  {floor:>13}  {ratio:>5}")
    lines += _decode(report)
    lines += _accounting(report)
    lines += _soak(report)
    lines += _memory(report)
    if not report.complete:
        lines.append("Interrupted: the rest was not measured.")
    return tuple(lines)


def head(report: ModelReport) -> list[str]:
    """What was measured where, and how fast the machine moves bytes."""
    model, machine = report.model, report.machine
    total = model["layers"] * model["experts"]
    lines = [
        f"{model['name']}: {total} experts in {model['precision']} of {format_bytes(model['expert_bytes'])} "
        f"each, policy “{model['policy']}”, routing: {model['routing']}.",
        f"{machine['cpu']}, {machine['threads']} threads ({machine['isa']}).",
    ]
    if machine["gpu"]:
        lines.append(
            f"{machine['gpu']}, budget {format_bytes(model['vram_budget'])}: {model['resident']} of {total} "
            "experts live there."
        )
    else:
        lines.append("No graphics card: every policy means the same, all experts run on the CPU.")
    if model["kernels_text"]:
        lines.append(model["kernels_text"])
    if report.rates is not None:
        lines.append(f"Measured: {report.rates.text()}")
    return lines


def _decode(report: ModelReport) -> list[str]:
    decode = report.decode
    if decode is None:
        return []
    residents = ""
    if report.machine["gpu"]:
        residents = f" {decode.resident:.0%} of the experts' runs were the GPU's own."
    return [
        f"decode: {decode.tokens_per_second:.2f} tokens/s over {decode.tokens} tokens "
        f"({format_seconds(decode.mean)}, median {format_seconds(decode.median)}).{residents}",
        f"{_INDENT}Bandwidth allows {format_seconds(decode.floor)}: {decode.percent:.0f}% reached, "
        f"{format_seconds(max(0.0, decode.beyond))} beyond it.",
    ]


def _accounting(report: ModelReport) -> list[str]:
    """The parts of a token's time, the largest first, and how true predictions were."""
    account = report.accounting
    if not account or not account["parts_us"]:
        return []
    parts = sorted(account["parts_us"].items(), key=lambda item: -item[1])
    words = [f"{Part(part).text} {format_seconds(micros / 1e6)}" for part, micros in parts if micros > 0]
    lines = textwrap.wrap(
        f"Of it: {', '.join(words)}.", _WIDTH, initial_indent=_INDENT, subsequent_indent=_INDENT
    )
    error = account.get("prediction_error")
    if error is not None:
        lines.append(
            f"{_INDENT}Layers were predicted {abs(error):.0%} too {'slow' if error > 0 else 'fast'}; "
            f"costs were corrected {account['refits']} times."
        )
    return lines


def _soak(report: ModelReport) -> list[str]:
    soak = report.soak
    if soak is None:
        return []
    text = (
        f"{soak['tokens']} tokens in {soak['conversations']} conversations, {soak['full']} of which filled "
        f"the context: RAM grew by {format_bytes(soak['ram_growth'])}, the GPU's memory by "
        f"{format_bytes(soak['gpu_growth'])}; the last tenth took {soak['slowdown']:.2f} × the first's time."
    )
    return textwrap.wrap(text, _WIDTH)


def _memory(report: ModelReport) -> list[str]:
    memory = report.memory
    if not memory:
        return []
    beyond = max(0, memory["ram_peak"] - memory["arena"])
    text = f"RAM: {format_bytes(memory['ram_peak'])} at most, the experts and {format_bytes(beyond)}"
    lines = [f"{text}; now {format_bytes(memory['ram_now'])}."]
    if report.machine["gpu"]:
        verdict = "within the budget" if memory["within_budget"] else "MORE than the budget"
        lines.append(
            f"GPU: {format_bytes(memory['gpu_peak'])} at most (CUDA itself "
            f"{format_bytes(memory['gpu_context'])}), {verdict} of {format_bytes(memory['gpu_budget'])}."
        )
    return lines
