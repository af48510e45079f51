"""From messages to the one text the model was trained on: the chat template of a model's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.sandbox

from engine.errors import DAMAGED, CheckpointError, GenerationError
from engine.params import Message

# Mistral's first instruction format, for folders of the Mistral family that come without a template. Spaces
# beside [INST] are not written where the tokenizer itself puts one at the start of a text.
MISTRAL_INSTRUCT = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'user' %}[INST] {{ message.content }} [/INST]"
    "{% elif message.role == 'assistant' %} {{ message.content }}{{ eos_token }}"
    "{% else %}{{ raise_exception('There is no system role.') }}{% endif %}{% endfor %}"
)
# What a template may raise, as any program, beside jinja2's own errors.
_FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Set behind an answer that is gone on with, to find its end whatever its words are. No text has it: it is a
# noncharacter of Unicode's.
_END_MARK = "\ufdd0"


class ChatTemplate:
    """A compiled Jinja template, run in a sandbox with what transformers' templates may use.

    `special_tokens` are the names a template sees, such as {"bos_token": "<s>"}.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _strftime_now
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise CheckpointError(
                "The model's chat template cannot be read.",
                why=f"Line {error.lineno}: {error.message}.",
                action="Get the model's tokenizer_config.json (or chat_template.jinja) again.",
            ) from error
        self._special_tokens = dict(special_tokens)

    def render(self, messages: Sequence[Message]) -> str:
        """The text of `messages`, ready for the model's answer; an answer at their end is to be gone on with.

        Some templates (Mixtral's first one among them) refuse the system role. The system text is then put
        at the start of the first user message, separated by an empty line. Raises GenerationError if the
        template refuses the messages for another reason.
        """
        try:
            return self._render(messages)
        except jinja2.TemplateError as error:
            merged = merge_system(messages)
            if merged == list(messages):
                raise _refused(error) from error
        try:
            return self._render(merged)
        except jinja2.TemplateError as error:
            raise _refused(error) from error

    def _render(self, messages: Sequence[Message]) -> str:
        turns = [{"role": message.role, "content": message.content} for message in messages]
        begun = ""
        if messages and is_begun(messages[-1]):
            begun = messages[-1].content
            turns[-1]["content"] += _END_MARK
        elif messages and messages[-1].role == "assistant":
            del turns[-1]  # an answer that never got a word
        try:
            text = self._template.render(
                messages=turns,
                tools=None,
                documents=None,
                add_generation_prompt=not begun,
                **self._special_tokens,
            )
        except _FAULTS as error:
            raise GenerationError(
                "The model's chat template cannot be run.",
                why=f"It ends with a fault ({type(error).__name__}: {error}).",
                action="Get the model's tokenizer files again, or choose another model.",
            ) from error
        return _cut_at_mark(text, begun) if begun else text


def is_begun(last: Message) -> bool:
    """Whether a conversation's last message is an answer to be gone on with; one without a word is not."""
    return last.role == "assistant" and bool(last.content)


def _cut_at_mark(text: str, begun: str) -> str:
    """`text` up to the end of the answer that it holds last: without what closes a turn.

    Some templates trim messages; behind the mark they find nothing of the answer to take away.
    """
    before, mark, _ = text.rpartition(_END_MARK)
    if not mark or not before.endswith(begun.lstrip()):
        raise jinja2.TemplateError("the template changes answers")
    return before


def merge_system(messages: Sequence[Message]) -> list[Message]:
    """`messages` without the system role: its text at the start of the first user message, if any."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    turns = [message for message in messages if message.role != "system"]
    place = next((place for place, message in enumerate(turns) if message.role == "user"), None)
    if place is None:
        return list(messages)
    if system:
        turns[place] = replace(turns[place], content=f"{system}\n\n{turns[place].content}")
    return turns


def find_template(folder: Path, tokenizer_config: Mapping[str, Any]) -> str | None:
    """The default chat template's source in a model's folder, or None.

    Looks where transformers does: `chat_template.jinja`, then `chat_template.json`, then "chat_template" in
    `tokenizer_config.json`, which is a text or a list of named ones. Raises CheckpointError for a file that
    cannot be read.
    """
    jinja_file, json_file = folder / "chat_template.jinja", folder / "chat_template.json"
    try:
        if jinja_file.is_file():
            return jinja_file.read_text(encoding="utf-8")
        found: Any = tokenizer_config.get("chat_template")
        if json_file.is_file():
            found = json.loads(json_file.read_text(encoding="utf-8")).get("chat_template")
        if isinstance(found, list):
            named = {entry.get("name"): entry.get("template") for entry in found if isinstance(entry, dict)}
            found = named.get("default")
    except (OSError, *DAMAGED) as error:
        raise CheckpointError(
            f"The chat template in {folder} cannot be read.",
            why=str(error),
            action="Get the model's files again.",
        ) from error
    return found if isinstance(found, str) else None


def _refused(error: jinja2.TemplateError) -> GenerationError:
    return GenerationError(
        "The model's chat template does not accept this conversation.",
        why=str(error),
        action="User and assistant must take turns, the user first. A new chat always works.",
    )


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> NoReturn:
    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)
