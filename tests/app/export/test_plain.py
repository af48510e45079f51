from datetime import UTC

from app.export import ExportOptions, to_text
from app.storage import Conversation, MessageRow


def test_the_words_are_as_they_were_written(conversation: Conversation, messages: list[MessageRow]) -> None:
    text = to_text(conversation, messages, zone=UTC)
    assert text.startswith("Rome & *Paris*\nWith Starter_1, begun 2026-01-02 03:04.\n\n--- System prompt ---")
    assert "\n\nIn 753 BC:\n\n```python\nprint(-753)\n\n[This answer was interrupted:" in text
    assert "[120 tokens, 45.5 tokens/s" in text
    assert "\n    --- Assistant, 2026-01-02 03:04 (version 1 of 2) --" in text
    assert "\n\n    Not *now*.\n\n    [This answer was stopped.]\n" in text
    assert max(len(line) for line in text.split("\n") if line.strip().startswith("---")) == 78


def test_parts_can_be_left_out(conversation: Conversation, messages: list[MessageRow]) -> None:
    options = ExportOptions(system_prompt=False, settings=False, statistics=False, branches=False)
    text = to_text(conversation, messages, options, zone=UTC)
    for part in ("Be brief", "tokens/s", "temperature", "Not *now*", "version"):
        assert part not in text
