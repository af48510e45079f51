from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.blocks import Block, BlockKind, BlockSplitter, split

PROSE, CODE = BlockKind.PROSE, BlockKind.CODE

LINES = st.sampled_from(
    [
        "",
        " ",
        "word",
        "two words",
        "- item",
        "12. item",
        "  inner",
        "    deep",
        "```",
        "```python",
        "~~~",
        "````",
        "   ```",
        "`code`\n",
        "# Heading",
        "> quote",
        "日本語",
        "\tx",
        "``",
    ]
)
TEXTS = st.lists(LINES, max_size=25).map("\n".join)


def test_paragraphs_settle_at_the_blank_line() -> None:
    splitter = BlockSplitter()
    assert splitter.feed("One\ntwo") == []
    assert splitter.tail == Block(PROSE, "One\ntwo")
    assert splitter.feed("\n\nThree") == [Block(PROSE, "One\ntwo")]
    assert splitter.tail == Block(PROSE, "Three")
    assert splitter.finish() == [Block(PROSE, "Three")]
    assert splitter.tail is None


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("a\n```py\nx = 1\n\ny\n```\nb", [(PROSE, "a", ""), (CODE, "x = 1\n\ny", "py"), (PROSE, "b", "")]),
        ("````\n```\n````", [(CODE, "```", "")]),
        ("~~~ c++ file.cpp\nint x;\n~~~", [(CODE, "int x;", "c++")]),
        ("```\nnever closed\n", [(CODE, "never closed", "")]),
        ("1. do\n   ```sh\n   ls\n     -l\n   ```\n2. done", [
            (PROSE, "1. do", ""), (CODE, "ls\n  -l", "sh"), (PROSE, "2. done", "")
        ]),
        ("1. do\n\n    ```\n    a\n    ```\n\n    then\n    ```\n     b\n    ```\n2. done\n    - c", [
            (PROSE, "1. do", ""), (CODE, "a", ""), (PROSE, "then", ""), (CODE, " b", ""),
            (PROSE, "2. done\n    - c", ""),
        ]),
        ("- a\n\n- b\n\n  more\n\nend", [
            (PROSE, "- a", ""), (PROSE, "- b\n\n  more", ""), (PROSE, "end", "")
        ]),
        ("- a\n  - b\n  - c\n- d", [(PROSE, "- a\n  - b\n  - c", ""), (PROSE, "- d", "")]),
        ("9. a\n   - b\n10. c", [(PROSE, "9. a\n   - b", ""), (PROSE, "10. c", "")]),
        ("1. a\n1. b\n\n1. c", [(PROSE, "1. a\n1. b\n\n1. c", "")]),
        ("a ``` b", [(PROSE, "a ``` b", "")]),
        ("```a`b```", [(PROSE, "```a`b```", "")]),
        ("a\r\n\r\nb", [(PROSE, "a", ""), (PROSE, "b", "")]),
        ("\n\n  \n", []),
        ("", []),
    ],
)  # fmt: skip
def test_blocks_of_whole_messages(text: str, blocks: list[tuple[BlockKind, str, str]]) -> None:
    assert split(text) == [Block(*block) for block in blocks]


@given(text=TEXTS, cuts=st.lists(st.integers(0, 200), max_size=12))
def test_the_blocks_do_not_depend_on_where_the_text_was_cut(text: str, cuts: list[int]) -> None:
    splitter = BlockSplitter()
    blocks: list[Block] = []
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for start, end in itertools.pairwise(edges):
        blocks += splitter.feed(text[start:end])
    assert blocks + splitter.finish() == split(text)


@given(text=TEXTS)
def test_no_word_is_lost_and_the_order_is_kept(text: str) -> None:
    shown = " ".join(block.text for block in split(text)).split()
    words = [word for word in text.split() if not word.startswith(("```", "~~~"))]
    assert [word for word in shown if not word.startswith(("```", "~~~"))] == words


@given(text=TEXTS)
def test_open_code_only_ever_grows(text: str) -> None:
    splitter = BlockSplitter()
    before: Block | None = None
    for character in text:
        settled = splitter.feed(character)
        tail = splitter.tail
        if before is not None and before.kind is CODE:
            after = settled[0] if settled else tail
            assert after is not None
            assert after.kind is CODE
            assert after.text.startswith(before.text)
        before = tail
