import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.storage.search_query import parse, shorten, snippet, spans


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("", ()),
        ("  ", ()),
        ("Rome", ("rome",)),
        ("founded  ROME", ("founded", "rome")),
        ('"All Roads" lead', ("all roads", "lead")),
        ("“der Straße”", ("der strasse",)),
        ("„Rom“", ("rom",)),
        ('an open "quote here', ("an", "open", "quote here")),
        ('""', ()),
        ("rome rome ROME", ("rome",)),
        ("北京 天安門", ("北京", "天安門")),
        ("서울", ("서울",)),
        ("ＡＢＣ", ("abc",)),
        ("100% a_b back\\slash", ("100%", "a_b", "back\\slash")),
    ],
)
def test_what_is_typed_becomes_terms(typed: str, terms: tuple[str, ...]) -> None:
    assert parse(typed).terms == terms


def test_terms_of_one_and_two_characters_are_not_for_the_index() -> None:
    query = parse("北京 ab abc")
    assert query.short == ("北京", "ab")
    assert query.indexed == ("abc",)


def test_signs_have_no_meaning_to_the_index() -> None:
    assert parse("a* NOT (b)c^ -x").match() == '"not" AND "(b)c^"'


@given(st.text(max_size=200), st.text(max_size=30))
def test_whatever_is_typed_can_be_sought_and_shown(text: str, typed: str) -> None:
    query = parse(typed)
    assert all(term and term == term.strip() for term in query.terms)
    passage = snippet(text, query, 40)
    assert len(passage) <= 41
    assert "\n" not in passage
    end = 0
    for start, length in spans(passage, query.terms):
        assert length > 0
        assert start >= end
        end = start + length
    assert end <= len(passage)


def test_a_snippet_holds_the_match_with_something_before_it() -> None:
    text = "before " * 100 + "the NEEDLE is here " + "after " * 100
    passage = snippet(text, parse("needle"))
    assert passage.startswith("…")
    assert passage.endswith("…")
    (start, length) = spans(passage, ("needle",))[0]
    assert passage[start : start + length] == "NEEDLE"
    assert start > 10


def test_matches_are_marked_in_the_text_as_it_is_shown() -> None:
    def marked(text: str, typed: str) -> list[str]:
        return [text[start : start + length] for start, length in spans(text, parse(typed).terms)]

    assert marked("Die STRASSE, die Straße", "straße") == ["STRASSE", "Straße"]
    assert marked("我住在北京市", "北京") == ["北京"]
    assert marked("나는 서울에 산다", "서울") == ["서울"]
    assert marked("ＡＢＣ abc", "abc") == ["ＡＢＣ", "abc"]
    assert marked("abcabc", "abc ca") == ["abcabc"]  # neighbours are one mark
    assert marked("nothing", "x") == []


@given(st.text(max_size=60), st.integers(2, 50))
def test_shortened_texts_fit(text: str, length: int) -> None:
    assert len(shorten(text, length)) <= length
