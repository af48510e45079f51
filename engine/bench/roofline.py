"""The least time that a machine's bandwidths allow: bytes that must move over the measured rates.

Bytes are those of weights that one step really used. Arithmetic, launches and synchronisation take none here.
"""

from __future__ import annotations

from engine.bench.rates import Rates


def decode_seconds(rates: Rates, missing: float, resident: float, dense: float) -> float:
    """Seconds of a token.

    Args:
        rates: of this machine.
        missing: bytes of the token's experts that are not on the GPU: read by the CPU and copied at once.
        resident: bytes of its experts on the GPU, which reads them meanwhile.
        dense: bytes of the weights beside the experts, read before and after.
    """
    if rates.gpu is None:
        return (missing + resident + dense) / max(rates.read, rates.cpu)
    return max(missing / rates.together, resident / rates.gpu) + dense / rates.gpu


def prefill_seconds(rates: Rates, missing: float) -> float:
    """Seconds to copy once what a prompt needs and the GPU lacks; without a GPU, for the CPU to read it.

    A yardstick rather than a bound: what the CPU computes itself need not be copied.
    """
    return missing / (max(rates.read, rates.cpu) if rates.copy is None else rates.copy)
