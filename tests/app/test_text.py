from hypothesis import given
from hypothesis import strategies as st

from app.text import fold, one_line
from engine.text import clean_text


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_cleaned_text_can_be_encoded_and_keeps_the_rest(text: str) -> None:
    cleaned = clean_text(text)
    cleaned.encode("utf-8")
    assert clean_text(cleaned) == cleaned
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert cleaned == text


def test_folding_ignores_case_and_form() -> None:
    assert fold("STRASSE École") == fold("straße E\u0301COLE")


def test_a_title_is_kept_on_one_line() -> None:
    assert one_line(" two\n\tlines \ud800 ") == "two lines \ufffd"
