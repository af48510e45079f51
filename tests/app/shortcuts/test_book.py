from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QKeyCombination, Qt
from PySide6.QtGui import QKeySequence

from app.shortcuts.book import (
    Entry,
    Fault,
    arrange,
    is_usable,
    objection,
    portable,
    read_changes,
    write_changes,
)
from app.shortcuts.words import explain, fixed_entries

ENTRIES = [
    Entry("new", "New chat", "Chat", "Ctrl+N"),
    Entry("find", "Search chats", "Edit", "Ctrl+F"),
    Entry("rename", "Rename chat", "Chat"),
    *fixed_entries(send_on_enter=True),
]
KEYS = ["Ctrl+N", "Ctrl+F", "F5", "Ctrl+Alt+X", "Return", ""]


def keys_of(name: str, entries: Sequence[Entry]) -> str:
    return next(entry.keys for entry in entries if entry.name == name)


@given(st.dictionaries(st.sampled_from(["new", "find", "rename", "gone"]), st.sampled_from(KEYS)))
def test_no_keys_belong_to_two(changes: dict[str, str]) -> None:
    arranged = arrange(ENTRIES, changes)
    assert [entry.text for entry in arranged] == [entry.text for entry in ENTRIES]
    used = [entry.keys for entry in arranged if entry.keys]
    assert len(used) == len(set(used))


def test_the_users_choice_goes_before_what_commands_come_with() -> None:
    arranged = arrange(ENTRIES, {"rename": "Ctrl+N"})
    assert keys_of("rename", arranged) == "Ctrl+N"
    assert keys_of("new", arranged) == ""
    assert keys_of("find", arranged) == "Ctrl+F"


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ("Ctrl+F", Fault.TAKEN),
        ("Return", Fault.RESERVED),
        ("F2", Fault.RESERVED),
        ("Ctrl+C", Fault.RESERVED),
        ("A", Fault.TYPED),
        ("Shift+A", Fault.TYPED),
        ("Left", Fault.TYPED),
        ("Alt+C", Fault.MENU),
    ],
)
def test_keys_that_are_needed_elsewhere_are_refused_with_a_reason(keys: str, fault: Fault) -> None:
    against = objection(keys, "new", arrange(ENTRIES, {}), "CE")
    assert against is not None
    assert against.fault is fault
    assert explain(against, keys).endswith(".")


@pytest.mark.parametrize("keys", ["Ctrl+N", "F5", "Ctrl+Alt+X", "Alt+X", "Shift+F3", "Ctrl+Shift+F"])
def test_free_keys_and_the_commands_own_are_taken(keys: str) -> None:
    assert objection(keys, "new", arrange(ENTRIES, {}), "CE") is None


@given(st.dictionaries(st.text(min_size=1), st.sampled_from(KEYS)))
def test_changes_are_read_as_they_were_written(changes: dict[str, str]) -> None:
    assert read_changes(write_changes(changes)) == changes


@given(st.text())
def test_what_somebody_wrote_into_the_settings_does_no_harm(text: str) -> None:
    assert isinstance(read_changes(text), dict)


def test_keys_that_qt_does_not_know_are_not_taken_from_the_settings() -> None:
    assert read_changes('{"new": "Nonsense", "find": 3, "rename": "", "": "F5", "a": "F5, F6"}') == {
        "rename": ""
    }
    assert not is_usable("")


@given(
    st.sampled_from([Qt.Key.Key_N, Qt.Key.Key_F7, Qt.Key.Key_Comma, Qt.Key.Key_Plus, Qt.Key.Key_Space]),
    st.sampled_from([Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.AltModifier]),
)
def test_what_is_pressed_can_be_saved_and_used_again(key: Qt.Key, modifier: Qt.KeyboardModifier) -> None:
    pressed = QKeyCombination(modifier | Qt.KeyboardModifier.KeypadModifier, key)
    keys = portable(pressed)
    assert is_usable(keys)
    assert QKeySequence.fromString(keys)[0] == QKeyCombination(modifier, key)


@pytest.mark.parametrize("key", [Qt.Key.Key_Control, Qt.Key.Key_Shift, Qt.Key.Key_AltGr, Qt.Key.Key_CapsLock])
def test_a_modifier_alone_is_nothing(key: Qt.Key) -> None:
    assert portable(QKeyCombination(Qt.KeyboardModifier.ControlModifier, key)) == ""
