from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexers import get_lexer_by_name

from app.chat import code_lexer
from app.chat.code_lexer import CodeLexer, Role, Span, language_name

SAMPLES = {
    "python": 'import os\n@cache\ndef f(a: int) -> str:\n    """A\n    b."""\n    return f"{a!r}"  # yes\n',
    "cpp": "#include <x>\n/* two\nlines */ int main(){ return 0x1f; } // end\nclass A { };\n",
    "javascript": "const a = `t ${b + 1}`; /* c\n d */ function f() { return /re/g; }\n",
    "bash": "for f in *.txt; do\n  echo \"$f ${g}\" # c\ncat <<E\nx\nE\ndone\n",
    "html": "<!-- c\n d --><p class='a'>t &amp; u</p><script>let a = 'b';\n</script>\n",
    "rust": "fn main() { let s = r#\"a\"#; /* a /* b */ */ println!(\"{}\", 'c'); }\n",
    "json": '{"a": [1, 2.5, true], "b": "c"}\n',
    "yaml": "a:\n  - b: 1 # c\n  - |\n    text\n",
    "sql": "SELECT a, 'b' FROM t -- c\nWHERE x = 1;\n",
    "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n",
}  # fmt: skip


def all_spans(lexer: CodeLexer, code: str) -> list[list[Span]]:
    return [lexer.spans(line) for line in range(code.count("\n") + 1)]


def read_all(language: str, code: str) -> list[list[Span]]:
    lexer = CodeLexer(language)
    while lexer.read(code) is not None:
        pass
    return all_spans(lexer, code)


def expected(language: str, code: str) -> list[list[Span]]:
    """What Pygments itself finds in the whole code."""
    lines: list[list[Span]] = [[] for _ in range(code.count("\n") + 2)]
    for place, kind, text in get_lexer_by_name(language).get_tokens_unprocessed(code + "\n"):
        role = code_lexer._role_of(kind)
        for offset, character in enumerate(text):
            if role is None or character == "\n":
                continue
            start = code.rfind("\n", 0, place + offset) + 1
            line = lines[code.count("\n", 0, place + offset)]
            column = place + offset - start
            if line and line[-1].role is role and line[-1].start + line[-1].length == column:
                line[-1] = Span(line[-1].start, line[-1].length + 1, role)
            else:
                line.append(Span(column, 1, role))
    return lines[:-1]


def joined(lines: list[list[Span]]) -> list[list[Span]]:
    """Neighbours of the same role as one span."""
    result: list[list[Span]] = []
    for spans in lines:
        line: list[Span] = []
        for span in spans:
            if line and line[-1].role is span.role and line[-1].start + line[-1].length == span.start:
                line[-1] = Span(line[-1].start, line[-1].length + span.length, span.role)
            else:
                line.append(span)
        result.append(line)
    return result


@pytest.mark.parametrize("language", SAMPLES)
@pytest.mark.parametrize("times", [1, 8])
def test_code_in_one_piece_is_read_as_by_pygments(language: str, times: int) -> None:
    code = SAMPLES[language] * times
    assert joined(read_all(language, code)) == expected(language, code)
    assert any(expected(language, code))


@given(data=st.data(), language=st.sampled_from(sorted(SAMPLES.keys() - {"bash"})))
def test_code_in_pieces_is_read_as_in_one(data: st.DataObject, language: str) -> None:
    code = SAMPLES[language] * 3
    cuts = data.draw(st.lists(st.integers(1, len(code)), max_size=15))
    lexer = CodeLexer(language)
    known: list[list[Span]] = []
    for end in [*sorted(cuts), len(code)]:
        first = lexer.read(code[:end])
        if first is not None:
            now = all_spans(lexer, code[:end])
            assert now[:first] == known[:first]  # the lines before it have kept their colours
            known = now
    assert joined(known) == expected(language, code)


def test_only_the_end_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[int] = []
    walk = code_lexer._walk

    def counting(lexer: object, code: str, place: int, stack: tuple[str, ...]) -> object:
        places.append(len(code) - place)
        return walk(lexer, code, place, stack)

    monkeypatch.setattr(code_lexer, "_walk", counting)
    code = "value = 'text'  # remark\n" * 400
    lexer = CodeLexer("python")
    for end in range(0, len(code) + 1, 20):
        lexer.read(code[:end])
    assert max(places) < 120


def test_long_code_is_read_in_portions() -> None:
    code = "value = 'text'\n" * 4000
    lexer = CodeLexer("python")
    assert lexer.read(code) == 0
    assert not lexer.has_read(code)
    firsts = list(itertools.takewhile(lambda first: first is not None, iter(lambda: lexer.read(code), -1)))
    assert lexer.has_read(code)
    assert firsts == sorted(firsts)
    assert lexer.spans(3999)


def test_places_count_as_qt_counts() -> None:
    (line,) = joined(read_all("python", "x = '🙂' + '日' # e"))
    assert [(span.start, span.length) for span in line if span.role is Role.STRING] == [(4, 4), (11, 3)]
    assert line[-1] == Span(15, 3, Role.COMMENT)


@pytest.mark.parametrize("language", ["", "no-such-language", "text"])
def test_without_a_known_language_there_are_no_colours(language: str) -> None:
    assert not any(read_all(language, "if x: return 1"))


def test_endless_lines_stay_plain() -> None:
    code = "x = 1\n" + "y" * (code_lexer.LONGEST_LINE + 1)
    lexer = CodeLexer("python")
    assert lexer.read(code) is None
    assert lexer.has_read(code)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("py", "Python"),
        ("C++", "C++"),
        ("js", "JavaScript"),
        ("text", "Text"),
        ("klingon", "klingon"),
        ("", ""),
    ],
)
def test_languages_have_their_proper_names(written: str, shown: str) -> None:
    assert language_name(written) == shown
