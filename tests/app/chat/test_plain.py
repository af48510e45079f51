import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.chat.plain import plain_text


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("", ""),
        ("# Title\n\nSome **bold** and `code`", "Title\n\nSome bold and code"),
        ("a line\nand another  \nand one more", "a line\nand another\nand one more"),
        ("- one\n- two\n  - three\n\nend", "• one\n• two\n  • three\n\nend"),
        ("3. three\n4. four", "3. three\n4. four"),
        ("1. one\n\n   more of it\n2. two", "1. one\n  more of it\n2. two"),
        ("```py\nx = 1\n\ny = 2\n```", "x = 1\n\ny = 2"),
        ("| a | b |\n|---|---|\n| 1 | *2* |", "a\tb\n1\t2"),
        ("> quoted\n> text", "quoted\ntext"),
        ("[Rome](https://example.org) ![a picture](x.png) <b>raw</b>", "Rome a picture <b>raw</b>"),
        ("~~gone~~ 北京 **서울**", "gone 北京 서울"),
        ("one\n\n---\n\ntwo", "one\n\n—\n\ntwo"),
        ("so $x^*y^*$ and \\(\\{a_1\\}\\), *then*", "so $x^*y^*$ and \\(\\{a_1\\}\\), then"),
        ("sum:\n\n$$\n\\{a*b*c\n$$\n\nend", "sum:\n\n$$\\{a*b*c$$\n\nend"),
        ("$$\na_b and _c_", "$$a_b and _c_"),
        ("| a |\n|---|\n| $x_1$ |", "a\n$x_1$"),
    ],
)
def test_marks_go_and_words_stay(source: str, plain: str) -> None:
    assert plain_text(source).rstrip() == plain


@given(st.text("ab *_`#->|[]()!\n1.", max_size=80))
def test_any_text_has_a_plain_form(source: str) -> None:
    letters = [letter for letter in plain_text(source) if letter in "ab"]
    assert len(letters) <= sum(letter in "ab" for letter in source)


@given(st.lists(st.sampled_from(["Rome", "北京", "x1"]), min_size=1, max_size=8))
def test_plain_words_stay_as_they_are(words: list[str]) -> None:
    assert plain_text(" ".join(words)) == " ".join(words)
