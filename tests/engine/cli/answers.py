"""Answers of a model on disk, by the engine and by the command."""

from __future__ import annotations

from engine.cli import main
from engine.options import LoadOptions
from engine.params import GenerationParams, Message
from engine.runtime import Engine

PROMPT = "What is the capital of France?"


def answer(folder: str, messages: list[Message] | str, params: GenerationParams) -> str:
    with Engine.load(folder, LoadOptions(device="cpu")) as engine:
        run = engine.continue_raw if isinstance(messages, str) else engine.generate
        return "".join(getattr(event, "text", "") for event in run(messages, params))


def generate(folder: str, *arguments: str) -> int:
    return main(["generate", "--model", folder, "--device", "cpu", "--prompt", PROMPT, *arguments])
