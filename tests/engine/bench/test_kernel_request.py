from __future__ import annotations

from typing import Any

import pytest

from engine.bench.errors import BenchError
from engine.bench.kernel_request import KernelRequest, parse_formats, parse_isas, parse_tokens
from engine.errors import HardwareError
from kernels import isa
from kernels.formats import WeightFormat
from kernels.isa import MAX_ISA_VARIABLE, Isa, available_isas


def test_lists_keep_their_order_and_lose_what_is_said_twice() -> None:
    assert parse_isas("portable, PORTABLE") == (Isa.PORTABLE,)
    assert parse_formats("INT4,bf16,int4") == (WeightFormat.INT4, WeightFormat.BF16)
    assert parse_tokens("64, 1,4,,1") == (1, 4, 64)


def test_all_instruction_sets_unless_the_variable_caps_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(MAX_ISA_VARIABLE, raising=False)
    assert parse_isas(None) == available_isas()
    monkeypatch.setenv(MAX_ISA_VARIABLE, "portable")
    assert parse_isas(None) == (Isa.PORTABLE,)


@pytest.mark.parametrize("text", ["q4_k", "bf16,fp8", "", ","])
def test_unknown_formats_are_refused(text: str) -> None:
    with pytest.raises(BenchError, match=r"format"):
        parse_formats(text)


@pytest.mark.parametrize("text", ["sse", "avx2;avx512", ""])
def test_unknown_instruction_sets_are_refused(text: str) -> None:
    with pytest.raises(BenchError, match="instruction set"):
        parse_isas(text)


def test_an_instruction_set_that_this_machine_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isa, "available_isas", lambda: (Isa.PORTABLE,))
    with pytest.raises(HardwareError, match="--isa asks for amx"):
        parse_isas("amx")


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "²", "4097", "9" * 5000, ""])
def test_what_is_no_number_of_tokens_is_refused(text: str) -> None:
    with pytest.raises(BenchError, match="number of tokens"):
        parse_tokens(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"experts": 0},
        {"experts": 1000},
        {"seconds": 0.0},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"threads": 0},
        {"threads": 100_000},
    ],
)
def test_impossible_amounts_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BenchError):
        KernelRequest(**wrong)
