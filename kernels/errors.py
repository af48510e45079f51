"""The exceptions of the kernels. Wrong arguments are ValueErrors; these are about the machine."""

from __future__ import annotations


class KernelsError(Exception):
    """The kernels cannot do what was asked: `what` happened, and `action`, what to do about it."""

    def __init__(self, what: str, action: str = "") -> None:
        super().__init__(what, action)
        self.what = what
        self.action = action

    def __str__(self) -> str:
        return " ".join(part for part in (self.what, self.action) if part)


class IsaError(KernelsError):
    """An instruction set level was asked for that does not exist or that this machine does not have."""


class NativeMissingError(KernelsError, ImportError):
    """The native extension is not built, or was built for another Python or machine."""


class PoolError(KernelsError, RuntimeError):
    """A pool was used after it was closed, or in a process forked from its own."""
