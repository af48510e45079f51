"""Whole sentences out of Markdown that streams in, as they are to be read aloud. Pure."""

from __future__ import annotations

import re

from app.i18n import tr

# A sentence ends with its mark before white space; Chinese and Japanese marks need none.
_END = re.compile(r"[.!?…]+[\"'”’»)\]*_]*(?=\s)|[。！？]+[」』”）]*|\n")
_NO_END = re.compile(r"(?:^|[\s(])(?:\d+|[A-Za-z]|e\.g|i\.e|etc|vs|cf|Dr|Mr|Mrs|Ms|St|No|approx)\.$")
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})\s*([\w+#.-]*)")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_BEGINNING = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s+)?)+")
_EMPHASIS = re.compile(r"(\*{1,3}|_{1,3}|~~|`+)(?=\S)(.+?)(?<=\S)\1")
_RULE = re.compile(r"^[\s|:*_=-]*$")
_LONGEST = 400  # characters: what has no end is read in pieces


class Sentences:
    """Fed with pieces of text; gives back the sentences that have ended."""

    def __init__(self) -> None:
        self._rest = ""
        self._fence = ""  # what ends the block of code that is being written

    def feed(self, text: str) -> list[str]:
        """The sentences that end in `text`."""
        self._rest += text
        found: list[str] = []
        while (end := self._end()) >= 0:
            piece, self._rest = self._rest[:end], self._rest[end:]
            found += self._read(piece)
        return found

    def finish(self) -> list[str]:
        """What is left, as the last sentence."""
        piece, self._rest = self._rest, ""
        return self._read(piece)

    def _end(self) -> int:
        """Where the first sentence in the rest ends; -1 if it does not yet."""
        if self._fence or _FENCE.match(self._rest) or re.match(r"^\s*[`~]{1,2}$", self._rest):
            return self._rest.find("\n") + 1 or -1  # code goes by lines
        for match in _END.finditer(self._rest):
            if not _NO_END.search(self._rest[: match.end()]):
                return match.end()
        if len(self._rest) > _LONGEST:
            space = self._rest.rfind(" ", 0, _LONGEST)
            return space if space > 0 else _LONGEST
        return -1

    def _read(self, piece: str) -> list[str]:
        fence = _FENCE.match(piece)
        if self._fence:
            if fence and fence[1].startswith(self._fence) and not fence[2]:
                self._fence = ""
                return [tr("End of the code.")]
            return []
        if fence:
            self._fence = fence[1]
            return [tr("Code in {language}.", language=fence[2]) if fence[2] else tr("Code.")]
        spoken = plain(piece)
        return [spoken] if spoken else []


def plain(markdown: str) -> str:
    """A sentence without the signs of Markdown, which nobody wants to hear."""
    if _RULE.match(markdown):
        return ""
    text = _LINK.sub(r"\1", _BEGINNING.sub("", markdown))
    while (bare := _EMPHASIS.sub(r"\2", text)) != text:
        text = bare
    return " ".join(text.replace("|", " ").split())
