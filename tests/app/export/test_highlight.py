import re
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from app.export.highlight import by_class, by_color, colored, style_rules
from app.theme_colors import load_colors


def test_colours_by_class_and_by_value() -> None:
    assert colored("x = 1", "python", by_class) == 'x = <span class="number">1</span>'
    colors = load_colors("light")
    name = colors.code_number.name()
    assert colored("x = 1", "python", by_color(colors)) == f'x = <span style="color:{name}">1</span>'
    assert f".code .number {{ color: {name}; }}" in style_rules(colors)


def test_characters_outside_of_the_first_plane_are_not_cut() -> None:
    assert colored('"🎻🎻" + 1', "python", by_class).endswith('+ <span class="number">1</span>')


@given(st.text(alphabet="ab1\"'#\n<&>🎻 \tdef:"), st.sampled_from(["python", "c", "html", "no such", ""]))
def test_no_character_is_lost(code: str, language: str) -> None:
    html = colored(code, language, by_class)
    assert unescape(re.sub(r"</?span[^>]*>", "", html)) == code
    assert all(line.count("<span") == line.count("</span") for line in html.split("\n"))
