"""Where a text document goes on: some blocks at its end belong to no text yet."""

from __future__ import annotations

from PySide6.QtGui import QTextBlockFormat, QTextCharFormat, QTextCursor, QTextFormat

_STARTED = QTextFormat.Property.UserProperty.value + 20  # marks the blocks of the text, empty ones too


def is_started(layout: QTextFormat) -> bool:
    """Whether a block belongs to the text. The first one, and one behind a table, may not yet."""
    return layout.hasProperty(_STARTED)


def start_block(cursor: QTextCursor, layout: QTextBlockFormat, characters: QTextCharFormat) -> None:
    """Begin a block with this format: in the unused one at the end if there is one."""
    layout.setProperty(_STARTED, True)
    if is_started(cursor.blockFormat()):
        cursor.insertBlock(layout, characters)
    else:
        cursor.setBlockFormat(layout)
        cursor.setBlockCharFormat(characters)


def start_table(cursor: QTextCursor) -> None:
    """Prepare the empty block that Qt wants before a table; it takes no room."""
    if is_started(cursor.blockFormat()):
        cursor.insertBlock(thin_block())
    else:
        cursor.setBlockFormat(thin_block())


def leave_table(cursor: QTextCursor) -> None:
    """Count the unused block behind a table as text: Qt shows an empty block there beside the table."""
    if cursor.block().previous().isValid() and not is_started(cursor.blockFormat()):
        start_block(cursor, thin_block(), QTextCharFormat())


def thin_block() -> QTextBlockFormat:
    """The format of the unused blocks before and after a table."""
    layout = QTextBlockFormat()
    layout.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
    return layout
