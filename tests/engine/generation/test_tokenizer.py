"""Tokens and chats equal those of transformers and sentencepiece; missing and damaged files are explained."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor
from transformers import PreTrainedTokenizerFast

from engine.errors import CheckpointError, GenerationError
from engine.generation.chat_template import ChatTemplate
from engine.generation.tokenizer import Tokenizer
from engine.params import Message
from tests.engine.generation.tokenizer_folders import (
    byte_level_folder,
    mistral_json_folder,
    mistral_model_file,
)

# The template that Mixtral-8x7B-Instruct was published with refuses the system role; this one behaves alike.
REFUSING = (
    "{{ bos_token }}{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant!') }}{% endif %}"
    "{% if m.role == 'user' %}{{ '[INST] ' + m.content + ' [/INST]' }}{% elif m.role == 'assistant' %}"
    "{{ m.content + eos_token }}{% endif %}{% endfor %}"
)
CHAT = [Message("user", "Grüß dich!"), Message("assistant", "Hello 🙂."), Message("user", " Why? ")]
SYSTEM = Message("system", "Be brief.")

texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60)


def turns(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in messages]


@pytest.fixture(scope="module")
def mistral_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mistral_model_file(tmp_path_factory.mktemp("mistral"))


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return byte_level_folder(tmp_path_factory.mktemp("small"))


@pytest.mark.parametrize("messages", [CHAT, [SYSTEM, *CHAT], CHAT[:1]])
def test_a_chat_is_tokenized_as_by_transformers(small_folder: Path, messages: list[Message]) -> None:
    reference = PreTrainedTokenizerFast.from_pretrained(small_folder)
    expected = reference.apply_chat_template(turns(messages), add_generation_prompt=True, return_dict=False)
    tokenizer = Tokenizer.load(small_folder)
    assert tokenizer.encode_chat(messages) == expected
    assert tokenizer.eos_ids == {reference.convert_tokens_to_ids("<|im_end|>")}


@pytest.mark.parametrize("begun", ["Hello 🙂, I", "Why? ", "One:\n\n1. a"])
def test_an_answer_is_gone_on_with_as_by_transformers(small_folder: Path, begun: str) -> None:
    messages = [*CHAT, Message("assistant", begun)]
    reference = PreTrainedTokenizerFast.from_pretrained(small_folder)
    text = reference.apply_chat_template(turns(messages), continue_final_message=True, tokenize=False)
    assert begun in text
    expected = reference.encode(text, add_special_tokens=False)
    assert Tokenizer.load(small_folder).encode_chat(messages) == expected


def test_the_end_of_an_answer_that_a_template_trims_is_kept() -> None:
    source = "{% for m in messages %}{{ m.role }}: {{ m.content | trim }};{% endfor %}"
    chat = [Message("user", " a "), Message("assistant", " b:\n")]
    assert ChatTemplate(source, {}).render(chat) == "user: a;assistant: b:\n"
    shouting = "{% for m in messages %}{{ m.content | upper }}{% endfor %}"
    with pytest.raises(GenerationError, match="changes answers"):
        ChatTemplate(shouting, {}).render(chat)


@pytest.mark.parametrize("begun", ["s", "e", "im_end", "</s>", ">", "\n", "  "])
def test_an_answer_that_looks_like_the_end_of_a_turn_is_gone_on_with(begun: str) -> None:
    source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}</s><|im_end|>\n{% endfor %}<|assistant|>"
    chat = [Message("user", "a"), Message("assistant", begun)]
    expected = f"<|user|>a</s><|im_end|>\n<|assistant|>{begun}"
    assert ChatTemplate(source, {}).render(chat) == expected


def test_an_answer_without_a_word_is_begun_anew(small_folder: Path) -> None:
    tokenizer = Tokenizer.load(small_folder)
    assert tokenizer.encode_chat([*CHAT, Message("assistant", "")]) == tokenizer.encode_chat(CHAT)


def test_templates_see_the_helpers_and_white_space_rules_of_transformers(tmp_path: Path) -> None:
    template = (
        "{%- for m in messages %}\n    {% if loop.last %}\n{{ m | tojson }}{% break %}\n    {% endif %}\n"
        "{{- m.role }}: {{ m['content'].strip() }}{{ eos_token }}\n{%- endfor %}\n{{ strftime_now('%Y') }}"
    )
    folder = byte_level_folder(tmp_path, template=template)
    reference = PreTrainedTokenizerFast.from_pretrained(folder)
    expected = reference.apply_chat_template(turns(CHAT), add_generation_prompt=True, return_dict=False)
    assert Tokenizer.load(folder).encode_chat(CHAT) == expected


def test_a_template_file_wins_over_the_configuration(tmp_path: Path) -> None:
    folder = byte_level_folder(tmp_path)
    (folder / "chat_template.jinja").write_text("only: {{ messages[0].content }}", encoding="utf-8")
    tokenizer = Tokenizer.load(folder)
    assert tokenizer.decode(tokenizer.encode_chat(CHAT)) == "only: Grüß dich!"


def test_the_default_one_of_named_templates_is_used(tmp_path: Path) -> None:
    folder = byte_level_folder(tmp_path, template=None)
    named = [
        {"name": "tool_use", "template": "no"},
        {"name": "default", "template": "{{ messages[0].role }}"},
    ]
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    config["chat_template"] = named
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    tokenizer = Tokenizer.load(folder)
    assert tokenizer.decode(tokenizer.encode_chat(CHAT)) == "user"


@pytest.mark.parametrize("text", ["[]", '"text"', '{"chat_template": 3'])
def test_a_damaged_template_file_is_named(tmp_path: Path, text: str) -> None:
    folder = byte_level_folder(tmp_path, template=None)
    (folder / "chat_template.json").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match="chat template") as caught:
        Tokenizer.load(folder)
    assert caught.value.action


def test_a_refused_system_text_opens_the_first_user_message(tmp_path: Path, mistral_file: Path) -> None:
    folder = mistral_json_folder(tmp_path, mistral_file)
    (folder / "chat_template.jinja").write_text(REFUSING, encoding="utf-8")
    tokenizer = Tokenizer.load(folder)
    merged = [Message("user", "Be brief.\n\nGrüß dich!"), *CHAT[1:]]
    assert tokenizer.encode_chat([SYSTEM, *CHAT]) == tokenizer.encode_chat(merged)


def test_a_conversation_that_the_template_refuses_is_an_error_with_its_reason(
    tmp_path: Path, mistral_file: Path
) -> None:
    folder = mistral_json_folder(tmp_path, mistral_file)
    (folder / "chat_template.jinja").write_text(REFUSING, encoding="utf-8")
    with pytest.raises(GenerationError) as caught:
        Tokenizer.load(folder).encode_chat([*CHAT, Message("user", "twice")])
    assert "must alternate" in caught.value.why


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ messages[0].content + 1 }}", "TypeError"),
        ("{{ none | length }}", "TypeError"),
        ("{{ range(10 ** 9) }}", "OverflowError"),
    ],
)
def test_a_template_that_fails_by_itself_is_an_error_with_its_reason(source: str, fault: str) -> None:
    with pytest.raises(GenerationError, match="cannot be run") as caught:
        ChatTemplate(source, {}).render(CHAT)
    assert fault in caught.value.why
    assert caught.value.action


def test_mistrals_bare_file_gets_the_format_that_mistral_defines(mistral_file: Path) -> None:
    tokenizer = Tokenizer.load(mistral_file.parent)
    processor = SentencePieceProcessor(model_file=str(mistral_file))
    expected = [processor.bos_id()]  # version 1: each turn is encoded by itself, answers end with </s>
    for message in CHAT:
        if message.role == "user":
            expected += processor.encode(f"[INST] {message.content} [/INST]")
        else:
            expected += [*processor.encode(message.content), processor.eos_id()]
    assert tokenizer.encode_chat(CHAT) == expected
    assert tokenizer.eos_ids == {processor.eos_id()}
    assert "Mistral" in tokenizer.notes[0]


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=texts)
def test_mistrals_bare_file_encodes_as_sentencepiece(mistral_file: Path, text: str) -> None:
    if "<s>" in text or "</s>" in text:
        return
    tokenizer = Tokenizer.load(mistral_file.parent)
    processor = SentencePieceProcessor(model_file=str(mistral_file))
    assert tokenizer.encode(text) == [processor.bos_id(), *processor.encode(text)]
    assert tokenizer.count(text) == len(processor.encode(text))
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_spelt_out_control_tokens_become_control_tokens(mistral_file: Path) -> None:
    tokenizer = Tokenizer.load(mistral_file.parent)
    processor = SentencePieceProcessor(model_file=str(mistral_file))
    assert tokenizer.encode("a</s>b") == [1, *processor.encode("a"), 2, *processor.encode("b")]


def test_added_tokens_beside_a_bare_file_are_known(tmp_path: Path) -> None:
    mistral_model_file(tmp_path)
    (tmp_path / "added_tokens.json").write_text('{"<|im_start|>": 32001, "<|im_end|>": 32000}')
    config = {"eos_token": "<|im_end|>", "chat_template": "{{ eos_token }}{{ messages[0].content }}"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.size == 32002
    assert tokenizer.eos_ids == {32000}
    ids = tokenizer.encode_chat([Message("user", "x")])
    assert ids[0] == 32000
    assert tokenizer.decode(ids) == "x"


@pytest.mark.parametrize("number", ["null", '"many"', "-1", "1.5", "true"])
def test_added_tokens_without_a_number_are_named(tmp_path: Path, number: str) -> None:
    mistral_model_file(tmp_path)
    (tmp_path / "added_tokens.json").write_text(f'{{"<|im_start|>": {number}}}')
    with pytest.raises(CheckpointError, match=r"added_tokens\.json"):
        Tokenizer.load(tmp_path)


def test_mistrals_json_file_encodes_as_transformers(tmp_path: Path, mistral_file: Path) -> None:
    folder = mistral_json_folder(tmp_path, mistral_file)
    reference = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
    tokenizer = Tokenizer.load(folder)
    processor = SentencePieceProcessor(model_file=str(mistral_file))
    for text in ("Hello, world!", "  two spaces\n\n🙂 世界", "Ω e\u0301", ""):
        assert tokenizer.encode(text) == reference.encode(text)
        assert tokenizer.encode(text)[1:] == processor.encode(text)
    assert "Mistral" in tokenizer.notes[0]


def test_without_a_template_only_raw_text_can_be_continued(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load(byte_level_folder(tmp_path, template=None))
    assert tokenizer.decode(tokenizer.encode("The capital")) == "The capital"
    with pytest.raises(GenerationError, match="cannot chat") as caught:
        tokenizer.encode_chat(CHAT)
    assert "--raw" in caught.value.action
    with pytest.raises(GenerationError, match="nothing to answer"):
        tokenizer.encode_chat([])


def test_a_missing_tokenizer_names_both_files(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError) as caught:
        Tokenizer.load(tmp_path)
    assert "tokenizer.json" in caught.value.why
    assert "tokenizer.model" in caught.value.why
    assert caught.value.action


BROKEN_STRIP = json.dumps(
    {
        "decoder": {
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "stop": 0},
            ]
        }
    }
).encode()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", b'{"model": '),
        ("tokenizer.json", b"[]"),
        ("tokenizer.json", b'{"decoder": {"type": "ByteLevel"}, "model": {"type": "BPE"}}'),
        ("tokenizer.json", b'{"decoder": {"type": "WordPiece"}}'),
        ("tokenizer.json", b"\xff\xfe"),
        ("tokenizer.json", b"[" * 100_000),
        ("tokenizer.json", b'{"decoder": {"decoders": [1]}}'),
        ("tokenizer.json", b'{"decoder": {"decoders": null}}'),
        ("tokenizer.json", BROKEN_STRIP),
        ("tokenizer_config.json", b"{"),
        ("tokenizer_config.json", b"[1]"),
        ("tokenizer_config.json", b'{"chat_template": "{% for %}"}'),
        ("tokenizer_config.json", b'{"chat_template": [{"name": ["default"]}]}'),
        ("chat_template.json", b"{"),
        ("chat_template.jinja", b"\xff"),
    ],
)
def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path, name: str, content: bytes) -> None:
    folder = byte_level_folder(tmp_path)
    (folder / name).write_bytes(content)
    with pytest.raises(CheckpointError) as caught:
        Tokenizer.load(folder)
    assert caught.value.why
    assert caught.value.action


def test_a_damaged_sentencepiece_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"not a model")
    with pytest.raises(CheckpointError, match=r"tokenizer\.model cannot be read"):
        Tokenizer.load(tmp_path)


def test_loading_a_tokenizer_imports_neither_transformers_nor_torch(small_folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from engine.generation.tokenizer import Tokenizer;"
        f"Tokenizer.load(Path({str(small_folder)!r}));"
        "print([name for name in ('torch', 'transformers', 'PySide6') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
