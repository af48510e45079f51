import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.text import clean_text, fold, one_line, title_from


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("What is the capital of France?", "What is the capital of France?"),
        ("\n\n# Heading\nbody", "Heading"),
        ("```\nprint(1)\n```", "print(1)"),
        ("word " * 30, "word word word word word word word word word word word…"),
        ("x" * 100, "x" * 59 + "…"),
        ("我" * 100, "我" * 59 + "…"),
        ("?!", "?!"),
        ("", ""),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert title_from(text) == title


@given(st.text(alphabet=st.characters()))
def test_titles_are_short_and_on_one_line(text: str) -> None:
    title = title_from(text)
    assert len(title) <= 60
    assert title == one_line(title)


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_cleaned_text_can_be_encoded_and_keeps_the_rest(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert clean_text(cleaned) == cleaned
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert cleaned == text


def test_folding_ignores_case_and_form() -> None:
    assert fold("STRASSE École") == fold("straße E\u0301COLE")
