"""Where the experts of an answer ran, as one bar."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt

from app.panel.bars import Ink
from app.panel.figures import Share
from app.panel.legend import Entry, LegendBar

_INKS = {
    "gpu": Ink("gpu"),
    "streamed": Ink("streamed", Qt.BrushStyle.BDiagPattern),
    "split": Ink("split", Qt.BrushStyle.VerPattern),
    "cpu": Ink("cpu", Qt.BrushStyle.Dense4Pattern),
}


class ShareSection(LegendBar):
    """Each place has its pattern; the figures are its share and how often experts ran there."""

    def show_shares(self, shares: Sequence[Share], *, has_gpu: bool) -> None:
        """Show other shares; without a graphics card, only places where something ran."""
        self.set_entries([_entry(share) for share in shares if has_gpu or share.count])


def _entry(share: Share) -> Entry:
    figures = f"{share.percent}  ({share.count:,})"
    return Entry(share.label, share.fraction, share.percent, figures, _INKS[share.color])
