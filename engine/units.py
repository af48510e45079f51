"""Amounts as people read them: bytes in GiB, rates, and times."""

from __future__ import annotations

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def format_bytes(amount: float) -> str:
    """`amount` bytes with a binary unit and at most three figures of use: "512 B", "2.5 MiB", "87.1 GiB"."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(amount) >= unit * 0.9995:
            return f"{amount / unit:.1f} {name}"
    return f"{amount:.0f} B"


def format_rate(bytes_per_second: float) -> str:
    """A bandwidth in decimal GB/s, as memory and PCIe are specified: "55.3 GB/s"."""
    return f"{bytes_per_second / 1e9:.1f} GB/s"


def format_seconds(seconds: float) -> str:
    """A duration with a fitting unit: "85 µs", "3.10 ms", "1.2 s"."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.2f} ms"
    return f"{seconds:.1f} s"
