"""The tokenizer made from the GGUF file against a plain BPE over the same vocabulary, and transformers'."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

import gguf
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer, PreTrainedTokenizerBase

pytestmark = [pytest.mark.starter, pytest.mark.slow]

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
TEXTS = [
    "",
    "Hello, world! It's 2024, isn't it?",
    "def f(x):\n\treturn x ** 2  # ½ × 3²\n\n\n",
    "naïve café — “quoted” 你好，世界 🙂👩‍👩‍👧 \u200b end",
    "  leading,   inner    and trailing spaces   ",
    "x=1234567.89e-10 0x1F 12 3  45",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "not special: <|im_start |> <im_end> <|endoftext|",
]
GPT2_PATTERN = regex.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+")


@pytest.fixture(scope="module")
def tokenizer(starter_dir: Path) -> PreTrainedTokenizerBase:
    return AutoTokenizer.from_pretrained(starter_dir)


@pytest.fixture(scope="module")
def metadata(gguf_path: Path) -> dict[str, object]:
    fields = gguf.GGUFReader(gguf_path).fields
    keys = ("tokens", "merges", "token_type")
    return {
        **{key: fields[f"tokenizer.ggml.{key}"].contents() for key in keys},
        "chat_template": fields["tokenizer.chat_template"].contents(),
    }


@pytest.fixture(scope="module")
def reference(metadata: dict[str, object]) -> Callable[[str], list[int]]:
    return partial(plain_bpe, Vocabulary(metadata["tokens"], metadata["merges"], metadata["token_type"]))


class Vocabulary:
    """Numbers and merge ranks, straight from the file's lists."""

    def __init__(self, tokens: list[str], merges: list[str], kinds: list[int]) -> None:
        self.numbers = {token: number for number, token in enumerate(tokens)}
        self.ranks = {tuple(merge.split(" ")): rank for rank, merge in enumerate(merges)}
        special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
        self.special = regex.compile("(" + "|".join(map(regex.escape, special)) + ")")
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        self.bytes = {byte: chr(byte) for byte in printable}
        self.bytes |= {byte: chr(256 + place) for place, byte in enumerate(others)}


def plain_bpe(vocabulary: Vocabulary, text: str) -> list[int]:
    """Byte-level BPE as its description has it, slowly: digits one by one, then GPT-2's pattern."""
    numbers = []
    for piece in vocabulary.special.split(text):
        if vocabulary.special.fullmatch(piece):
            numbers.append(vocabulary.numbers[piece])
            continue
        for run in regex.split(r"(\p{N})", piece):
            for word in GPT2_PATTERN.findall(run):
                numbers += merge_word(vocabulary, word)
    return numbers


def merge_word(vocabulary: Vocabulary, word: str) -> list[int]:
    symbols = [vocabulary.bytes[byte] for byte in word.encode("utf-8")]
    symbols = [symbol for symbol in symbols if symbol in vocabulary.numbers]  # a few bytes have no token
    while len(symbols) > 1:
        ranks = [vocabulary.ranks.get(pair, 1 << 30) for pair in pairwise(symbols)]
        best = min(range(len(ranks)), key=ranks.__getitem__)
        if ranks[best] == 1 << 30:
            break
        symbols[best : best + 2] = [symbols[best] + symbols[best + 1]]
    return [vocabulary.numbers[symbol] for symbol in symbols]


def encode(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return tokenizer(text, add_special_tokens=False).input_ids


@pytest.mark.parametrize("text", TEXTS)
def test_numbers_equal_a_plain_bpe(
    tokenizer: PreTrainedTokenizerBase, reference: Callable[[str], list[int]], text: str
) -> None:
    assert encode(tokenizer, text) == reference(text)
    assert tokenizer(text).input_ids == reference(text)  # nothing is put in front


def test_any_text_equals_a_plain_bpe_and_comes_back(
    tokenizer: PreTrainedTokenizerBase, reference: Callable[[str], list[int]]
) -> None:
    @settings(max_examples=300, deadline=None)
    @given(
        st.one_of(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=40),
            st.text("ab 12'sS\n\t<|>_im end.é½", max_size=40),
        )
    )
    def check(text: str) -> None:
        numbers = encode(tokenizer, text)
        assert numbers == reference(text)
        if all(byte in known for byte in text.encode("utf-8")):
            assert tokenizer.decode(numbers) == text

    vocabulary = reference.args[0]  # type: ignore[attr-defined]
    known = {byte for byte, symbol in vocabulary.bytes.items() if symbol in vocabulary.numbers}
    assert len(known) > 200
    check()


def test_prose_equals_transformers_own_reading_of_the_file(
    tokenizer: PreTrainedTokenizerBase, gguf_path: Path
) -> None:
    """transformers leaves the splitting of digits out; prose shows it only in runs of spaces before one."""
    other = AutoTokenizer.from_pretrained(gguf_path.parent, gguf_file=gguf_path.name)
    held_out = Path(__file__).with_name("heldout.txt").read_text("utf-8")
    for text in [*held_out.split("\n=====\n"), TEXTS[1], TEXTS[3]]:
        text = regex.sub(r"\s+(?=\p{N})", " ", text)
        assert encode(tokenizer, text) == encode(other, text)


def test_special_tokens(tokenizer: PreTrainedTokenizerBase, metadata: dict[str, object]) -> None:
    assert (tokenizer.bos_token, tokenizer.bos_token_id) == ("<|im_start|>", 1)
    assert (tokenizer.eos_token, tokenizer.eos_token_id) == ("<|im_end|>", 2)
    assert tokenizer.unk_token_id == 0
    assert len(tokenizer) == len(metadata["tokens"])  # type: ignore[arg-type]
    text = "<|im_start|>user\nHi<|im_end|>"
    assert tokenizer.decode(encode(tokenizer, text), skip_special_tokens=True) == "user\nHi"


def test_the_chat_template_is_the_files_and_gives_chatml(
    tokenizer: PreTrainedTokenizerBase, metadata: dict[str, object]
) -> None:
    assert tokenizer.chat_template == metadata["chat_template"]
    turns = [("user", "Hi!"), ("assistant", "Hello."), ("user", "2 + 2?")]
    messages = [{"role": role, "content": content} for role, content in turns]

    def chatml(turns: list[tuple[str, str]]) -> str:
        return "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)

    plain = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert plain == chatml([("system", SYSTEM), *turns]) + "<|im_start|>assistant\n"
    own = [{"role": "system", "content": "Be brief."}, *messages]
    assert tokenizer.apply_chat_template(own, tokenize=False) == chatml([("system", "Be brief."), *turns])
