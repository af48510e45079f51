"""The diagnostic report tells about the computer and the program, and nothing that the user wrote."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.diagnostics import Facts, gather, neutral, report, settings_lines
from app.logs.lines import Line, last_lines, parse
from app.logs.recent import describe, earlier, recent_faults
from app.paths import database_path
from app.settings import OPTIONS, SettingsStore
from app.storage import open_store
from engine.profile_store import save_profile
from tests.app.wizard_fakes import ScriptedKnowledge, make_profile

SECRET = "zebra-in-the-kitchen"
SECRETS = ("private-title", "private-question", "private-prompt", "private-draft", SECRET)


@pytest.fixture
def full(data_dir: Path) -> SettingsStore:
    """Every place that can hold the user's words holds one of the secrets."""
    store = open_store(database_path()).store
    chat = store.create_conversation("private-title", system_prompt="private-prompt")
    store.add_message(chat.id, "user", "private-question")
    store.save_draft(chat.id, "private-draft")
    store.close()
    save_profile(make_profile())
    settings = SettingsStore(data_dir / "settings.toml")
    for option in OPTIONS:
        if isinstance(option.default, str) and not option.choices:
            settings.update({option.key: SECRET})
    settings.update({"engine.threads": 3, "appearance.theme": "dark"})
    return settings


def fail(words: str) -> None:
    try:
        raise KeyError(words)
    except KeyError:
        logging.getLogger("app.storage.thread").exception("could not read %s", words)


def test_no_word_of_the_user_is_in_it(full: SettingsStore, data_dir: Path) -> None:
    logger = logging.getLogger("app.storage.thread")
    handlers = (last_lines, recent_faults)
    form = logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s")
    last_lines.setFormatter(form)
    for handler in handlers:
        logger.addHandler(handler)
    try:
        fail("private-title")
        logging.getLogger("app.storage.thread").error("about %s in %s", "private-question", data_dir)
    finally:
        for handler in handlers:
            logger.removeHandler(handler)
        last_lines.setFormatter(None)
    text = report(gather(ScriptedKnowledge(), settings_lines(full)))
    for secret in SECRETS:
        assert secret not in text
    assert str(data_dir) not in text
    assert str(Path.home()) not in text
    assert text.count("ERROR app.storage.thread") == 2  # each once
    for told in (
        "engine.threads = 3",
        "appearance.theme = dark",
        "measured 48.8 tokens/s",
        "could not read %s",
        "KeyError",
        "in fail",
        "chats.sqlite3: ",
        "Processor: ",
        "PySide6-Essentials ",
    ):
        assert told in text, told


def test_a_text_that_is_set_is_told_as_set_alone() -> None:
    settings = SettingsStore(None)
    settings.set("export.folder", "/home/ada/Documents")
    assert settings_lines(settings) == ["export.folder = (set)"]


def test_the_log_of_an_earlier_run_tells_when_and_where_but_not_what() -> None:
    text = (
        "2026-03-12 10:00:00,123 INFO MainThread app.main: Fiddler Chat starts\n"
        "2026-03-12 10:00:01,123 ERROR Thread-1 (run) app.faults: lost private-title\n"
        "Traceback (most recent call last):\n"
        '  File "/home/ada/fiddler/app/chat/titles.py", line 12, in rename\n'
        "    raise KeyError(private)\n"
        "KeyError: 'private-title'\n"
    )
    [told] = earlier(parse(text))
    assert told.splitlines() == [
        "2026-03-12 10:00:01,123 ERROR app.faults",
        "    titles.py:12 in rename",
        "  KeyError",
    ]


@given(st.text())
def test_whatever_an_entry_quotes_is_left_out(quoted: str) -> None:
    entry = f"2026-03-12 10:00:01,123 WARNING storage app.faults: about §{quoted}§"
    assert all("§" not in told for told in earlier([Line(logging.WARNING, entry)]))
    record = logging.LogRecord("app.x", logging.ERROR, "x.py", 1, "about %s", (f"§{quoted}§",), None)
    assert "§" not in describe(record)
    other = logging.LogRecord("PIL", logging.ERROR, "x.py", 1, f"about §{quoted}§", (), None)
    assert "§" not in describe(other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in /home/ada/models/x", "in /home/<user>/models/x"),
        ("in /Users/ada/x", "in /Users/<user>/x"),
        (r"in C:\Users\ada\x", r"in C:\Users\<user>\x"),
    ],
)
def test_folders_of_any_system_are_made_neutral(
    text: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "somebody")
    assert neutral(text) == expected


def test_the_users_name_is_left_out_wherever_it_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "lovelace")
    assert neutral("disk of lovelace at /mnt/lovelace") == "disk of <user> at /mnt/<user>"


def test_without_anything_it_is_still_a_report() -> None:
    text = report(Facts((), (), (), ()))
    assert text.count("## ") == 6
    assert "Fiddler Chat" in text
