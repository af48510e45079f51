"""What a model needs of RAM, VRAM and disk, item by item, against what there is. Pure; torch-free."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from engine.errors import ShortageError
from engine.units import format_bytes


class Resource(StrEnum):
    """What can run short."""

    RAM = "ram"
    VRAM = "vram"
    DISK = "disk"

    @property
    def label(self) -> str:
        """The resource as people call it."""
        return {Resource.RAM: "memory", Resource.VRAM: "graphics memory", Resource.DISK: "disk space"}[self]


class Item(NamedTuple):
    """One line of a need: what for, and how many bytes."""

    label: str
    nbytes: int


@dataclass(frozen=True)
class Need:
    """What is needed of one resource, in bytes, beside what is `available`, and what would help if short."""

    resource: Resource
    items: tuple[Item, ...]
    available: int
    advice: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Bytes needed in all."""
        return sum(item.nbytes for item in self.items)

    @property
    def missing(self) -> int:
        """Bytes that are missing; 0 if it fits."""
        return max(0, self.total - self.available)

    @property
    def fits(self) -> bool:
        """Whether what is available suffices."""
        return self.missing == 0

    def summary(self) -> str:
        """One line: needed, available, missing."""
        label = self.resource.label
        text = f"{format_bytes(self.total)} of {label} needed, {format_bytes(self.available)} available"
        return text if self.fits else f"{text}: {format_bytes(self.missing)} missing"

    def lines(self) -> tuple[str, ...]:
        """The summary and one indented line per item."""
        return (self.summary(), *(f"  {label}: {format_bytes(nbytes)}" for label, nbytes in self.items))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "resource": str(self.resource),
            "items": [item._asdict() for item in self.items],
            "needed": self.total,
            "available": self.available,
            "missing": self.missing,
            "advice": list(self.advice),
        }


@dataclass(frozen=True)
class Requirements:
    """The needs of one step (a download, or loading a model); at most one need per resource."""

    needs: tuple[Need, ...]
    purpose: str  # what it is needed for, e.g. "load Mixtral-8x7B"

    def need(self, resource: Resource) -> Need | None:
        """The need of `resource`, or None if this step does not use it."""
        return next((need for need in self.needs if need.resource is resource), None)

    @property
    def shortages(self) -> tuple[Need, ...]:
        """The needs that what is available does not meet."""
        return tuple(need for need in self.needs if not need.fits)

    @property
    def fits(self) -> bool:
        """Whether every need is met."""
        return not self.shortages

    def error(self) -> ShortageError | None:
        """The refusal with the missing amounts and what would help; None if everything fits."""
        short = self.shortages
        if not short:
            return None
        amounts = _joined([f"{format_bytes(need.missing)} of {need.resource.label}" for need in short])
        advice = list(dict.fromkeys(line for need in short for line in need.advice))
        return ShortageError(
            f"There is not enough room to {self.purpose}: {amounts} missing.",
            why=" ".join(f"{need.summary()}." for need in short),
            action=" ".join([*advice, "Or go on anyway: it may be very slow, or fail."]),
        )

    def check(self, *, force: bool = False) -> None:
        """Raise `ShortageError` if something is missing, unless the user asked to go on anyway (`force`)."""
        error = self.error()
        if error is not None and not force:
            raise error

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"purpose": self.purpose, "fits": self.fits, "needs": [need.to_dict() for need in self.needs]}


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
