"""One Markdown block as rich text in the theme's colours. Raw HTML stays text, images become links."""

from __future__ import annotations

import re

from PySide6.QtGui import (
    QFont,
    QTextBlock,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextDocumentFragment,
    QTextFormat,
    QTextFrameFormat,
    QTextImageFormat,
    QTextLength,
    QTextTable,
)

from app.i18n import tr
from app.theme import monospace
from app.theme_colors import Colors

LINE_HEIGHT = 135  # per cent: easier to read than Qt's 100
_FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML
# A line ends where the model ended it, as in poems and addresses; Markdown alone would join the lines.
_LINE_END = re.compile(r"(?<=\S)\n(?=[ \t]*\S)")
_HEADING_SCALE = {1: 1.45, 2: 1.25, 3: 1.1}


def to_fragment(source: str, font: QFont, colors: Colors) -> QTextDocumentFragment:
    """The rich text of a Markdown block, ready to be inserted into a message's document."""
    document = QTextDocument()
    document.setDefaultFont(font)
    document.setUndoRedoEnabled(False)
    document.setMarkdown(_LINE_END.sub("  \n", source), _FEATURES)
    _replace_images(document)
    spacing = font.pointSizeF() * 0.75
    block = document.begin()
    while block.isValid():
        _style_block(block, font, colors, spacing)
        block = block.next()
    for frame in document.rootFrame().childFrames():
        if isinstance(frame, QTextTable):
            _style_table(frame, colors)
    return QTextDocumentFragment(document)


def plain_format(font: QFont, colors: Colors) -> tuple[QTextBlockFormat, QTextCharFormat]:
    """How text looks that is not rendered (yet): like a paragraph."""
    block = QTextBlockFormat()
    _set_line_height(block)
    block.setBottomMargin(font.pointSizeF() * 0.75)
    characters = QTextCharFormat()
    characters.setForeground(colors.text)
    characters.setFont(font)
    return block, characters


def _style_block(block: QTextBlock, font: QFont, colors: Colors, spacing: float) -> None:
    cursor = QTextCursor(block)
    layout = block.blockFormat()
    level = layout.headingLevel()
    in_list = block.textList() is not None
    is_code = layout.hasProperty(QTextFormat.Property.BlockCodeFence) or layout.hasProperty(
        QTextFormat.Property.BlockCodeLanguage
    )
    _set_line_height(layout)
    layout.setTopMargin(spacing * 0.6 if level else 0)
    layout.setBottomMargin(0 if is_code else spacing * (0.4 if in_list or level else 1))
    quote = layout.intProperty(QTextFormat.Property.BlockQuoteLevel)
    if quote:
        layout.setLeftMargin(18 * quote)
    if is_code:
        layout.setBackground(colors.code)
        layout.setNonBreakableLines(False)
    cursor.setBlockFormat(layout)
    _style_characters(block, font, colors, level, quote > 0)


def _style_characters(block: QTextBlock, font: QFont, colors: Colors, level: int, quoted: bool) -> None:
    spans = []
    iterator = block.begin()
    while not iterator.atEnd():
        fragment = iterator.fragment()
        spans.append((fragment.position(), fragment.length(), fragment.charFormat()))
        iterator += 1
    cursor = QTextCursor(block)
    for position, length, characters in spans:
        changes = QTextCharFormat()
        if characters.isAnchor():
            changes.setForeground(colors.link)
            changes.setFontUnderline(True)
        else:
            changes.setForeground(colors.muted if quoted else colors.text)
        if characters.fontFixedPitch():
            fixed = monospace()
            changes.setFontFamilies(fixed.families())
            changes.setFontPointSize(fixed.pointSizeF())
            changes.setBackground(colors.code)
        elif level:
            changes.setFontPointSize(font.pointSizeF() * _HEADING_SCALE.get(level, 1.0))
            changes.setFontWeight(QFont.Weight.DemiBold)
        cursor.setPosition(position)
        cursor.setPosition(position + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.mergeCharFormat(changes)


def _style_table(table: QTextTable, colors: Colors) -> None:
    layout = table.format().toTableFormat()
    layout.setBorder(1)
    layout.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
    layout.setBorderBrush(colors.border)
    layout.setBorderCollapse(True)
    layout.setCellPadding(6)
    layout.setCellSpacing(0)
    layout.setBottomMargin(10)
    layout.setWidth(QTextLength())
    table.setFormat(layout)
    for row in range(table.rows()):
        for column in range(table.columns()):
            block = table.cellAt(row, column).firstCursorPosition().block()
            cell_layout = block.blockFormat()
            cell_layout.setBottomMargin(0)
            cell_layout.setLineHeight(0, QTextBlockFormat.LineHeightTypes.SingleHeight.value)
            QTextCursor(block).setBlockFormat(cell_layout)


def _replace_images(document: QTextDocument) -> None:
    """Show "[image: its description]" as a link: a message never makes the program fetch something."""
    images: list[tuple[int, QTextImageFormat]] = []
    block = document.begin()
    while block.isValid():
        iterator = block.begin()
        while not iterator.atEnd():
            fragment = iterator.fragment()
            characters = fragment.charFormat()
            if characters.isImageFormat():
                # Equal images side by side are one fragment of several characters.
                image = characters.toImageFormat()
                images += [(fragment.position() + offset, image) for offset in range(fragment.length())]
            iterator += 1
        block = block.next()
    cursor = QTextCursor(document)
    for position, image in reversed(images):
        cursor.setPosition(position)
        cursor.setPosition(position + 1, QTextCursor.MoveMode.KeepAnchor)
        link = QTextCharFormat()
        link.setAnchor(True)
        link.setAnchorHref(image.name())
        label = image.stringProperty(QTextFormat.Property.ImageAltText) or image.name()
        cursor.insertText(tr("[image: {label}]", label=label), link)


def _set_line_height(layout: QTextBlockFormat) -> None:
    layout.setLineHeight(LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
