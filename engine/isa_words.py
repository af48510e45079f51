"""The kernels' instruction set levels as people write them. Imports nothing, so that a window can use it."""

from __future__ import annotations

_WORDS = {
    "portable": "no vector instructions used",
    "avx2": "AVX2",
    "avx512": "AVX-512",
    "avx512_bf16": "AVX-512 with BF16",
    "amx": "AMX",
}


def isa_words(isa: str) -> str:
    """A level of `kernels.isa.Isa` in words; an unknown one as it is."""
    return _WORDS.get(isa, isa)
