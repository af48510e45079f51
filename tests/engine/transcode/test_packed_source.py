"""AWQ and GPTQ folders: settings of several tools, act-order, and files that do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import CheckpointError
from engine.transcode.errors import RefusedError
from engine.transcode.experts import inspect_experts, open_experts, transcode_experts
from engine.transcode.source import MATRICES
from kernels.formats import WeightFormat
from tests.engine.transcode.files import awq_tensors, gptq_tensors, meant, random_numbers, write_packed

HIDDEN, INNER, EXPERTS, LAYERS = 256, 384, 2, 2
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": False}
Numbers = tuple[np.ndarray, np.ndarray, np.ndarray]
Pack = Callable[..., dict[str, np.ndarray]]


def names(style: str = "model.layers.{}.block_sparse_moe.experts.{}.{}") -> dict[str, str]:
    """Each matrix's name and its place in the expert."""
    return {
        style.format(layer, expert, place): place
        for layer in range(LAYERS)
        for expert in range(EXPERTS)
        for place in MATRICES
    }


def numbers(group: int = 128, bits: int = 4, zero: int | None = None) -> dict[str, Numbers]:
    """Of all matrices."""
    sizes = {"w1": (HIDDEN, INNER), "w3": (HIDDEN, INNER), "w2": (INNER, HIDDEN)}
    return {
        name: random_numbers(seed, *sizes[place], group or sizes[place][0], bits=bits, zero=zero)
        for seed, (name, place) in enumerate(names().items())
    }


def folder(
    path: Path, settings: dict[str, Any] | None, pack: Pack, chosen: dict[str, Numbers], **more: Any
) -> Path:
    matrices = {name: pack(*item) for name, item in chosen.items()}
    return write_packed(path / "model", settings, matrices, **more)


def check(path: Path, wanted: dict[str, Numbers], form: WeightFormat = WeightFormat.INT4) -> None:
    """All experts are there, within 2^-8 of the block's largest weight, and in the right places."""
    by_name = {}
    for e in transcode_experts(path):
        for place in MATRICES:
            name = f"model.layers.{e.layer}.block_sparse_moe.experts.{e.expert}.{place}"
            by_name[name] = getattr(e, place)
    assert by_name.keys() == wanted.keys()
    for name, matrix in by_name.items():
        weights = meant(*wanted[name])
        assert matrix.format is form
        assert np.abs(matrix.dequantise().numpy() - weights).max() <= np.abs(weights).max() / 256


def test_awq(tmp_path: Path) -> None:
    chosen = numbers()
    path = folder(tmp_path, AWQ, awq_tensors, chosen)
    check(path, chosen)
    report = inspect_experts(path)
    assert report.complete
    assert report.formats == {WeightFormat.INT4}
    assert {t.format_in for t in report.tensors} == {"AWQ 4 bits"}
    assert len(report.tensors) == LAYERS * EXPERTS * 3
    check(path / "model.safetensors", chosen)


@pytest.mark.parametrize("group", [32, 64, -1])
def test_gptq_with_other_groups(tmp_path: Path, group: int) -> None:
    chosen = numbers(max(group, 0))
    path = folder(tmp_path, {**GPTQ, "group_size": group}, gptq_tensors, chosen)
    check(path, chosen)
    if group == -1:
        assert inspect_experts(path).accuracy.exact


def test_gptq_version_2(tmp_path: Path) -> None:
    chosen = numbers()
    settings = {**GPTQ, "checkpoint_format": "gptq_v2"}
    check(folder(tmp_path, settings, lambda *n: gptq_tensors(*n, version=2), chosen), chosen)


@pytest.mark.parametrize("bits", [4, 8])
def test_symmetric_zeros_of_version_2_under_version_1s_name(tmp_path: Path, bits: int) -> None:
    """Some tools write such files; the middle of the range is meant either way."""
    chosen = numbers(bits=bits, zero=2 ** (bits - 1))
    settings = {**GPTQ, "sym": True, "bits": bits, "checkpoint_format": "gptq"}
    form = WeightFormat.INT4 if bits == 4 else WeightFormat.INT8
    for version in (1, 2):
        pack = lambda *n, version=version: gptq_tensors(*n, bits=bits, version=version)  # noqa: E731
        check(folder(tmp_path, settings, pack, chosen), chosen, form)


def test_gptq_of_8_bits_is_exact(tmp_path: Path) -> None:
    chosen = numbers(bits=8, zero=128)
    settings = {**GPTQ, "bits": 8, "sym": True}
    path = folder(tmp_path, settings, lambda *n: gptq_tensors(*n, bits=8), chosen)
    check(path, chosen, WeightFormat.INT8)
    assert inspect_experts(path).accuracy.exact


def test_settings_of_older_tools(tmp_path: Path) -> None:
    chosen = numbers()
    older = {"bits": 4, "group_size": 128, "desc_act": False, "sym": True}
    gptq = folder(tmp_path / "g", older, gptq_tensors, chosen, settings_file="quantize_config.json")
    check(gptq, chosen)
    older = {"zero_point": True, "q_group_size": 128, "w_bit": 4, "version": "GEMM"}
    check(folder(tmp_path / "a", older, awq_tensors, chosen, settings_file="quant_config.json"), chosen)


@pytest.fixture(autouse=True)
def parents(tmp_path: Path) -> None:
    for name in ("g", "a"):
        (tmp_path / name).mkdir()


def test_names_of_other_models(tmp_path: Path) -> None:
    chosen = numbers()
    places = {"w1": "gate_proj", "w3": "up_proj", "w2": "down_proj"}
    renamed = {
        name.replace("block_sparse_moe", "mlp").replace(name[-2:], places[name[-2:]]): item
        for name, item in chosen.items()
    }
    check(folder(tmp_path, AWQ, awq_tensors, renamed), chosen)


def shuffled(*item: np.ndarray) -> dict[str, np.ndarray]:
    tensors = gptq_tensors(*item)
    tensors["g_idx"] = np.random.default_rng(0).permutation(tensors["g_idx"])
    return tensors


@pytest.mark.parametrize("said", [True, False])
def test_act_order_is_refused_with_what_it_is(tmp_path: Path, said: bool) -> None:
    path = folder(tmp_path, {**GPTQ, "desc_act": said}, shuffled, numbers())
    report = inspect_experts(path)
    assert len(report.refused) == len(report.tensors)
    with pytest.raises(RefusedError, match=r"act-order \(“desc_act”\).*all over a row.*AWQ version"):
        list(transcode_experts(path))


def test_act_order_in_plain_order_is_taken_over(tmp_path: Path) -> None:
    chosen = numbers()
    check(folder(tmp_path, {**GPTQ, "desc_act": True}, gptq_tensors, chosen), chosen)


def test_act_order_without_the_order_is_refused(tmp_path: Path) -> None:
    def without(*item: np.ndarray) -> dict[str, np.ndarray]:
        return {name: data for name, data in gptq_tensors(*item).items() if name != "g_idx"}

    chosen = numbers()
    check(folder(tmp_path, GPTQ, without, chosen), chosen)
    with pytest.raises(RefusedError, match="act-order"):
        list(transcode_experts(folder(tmp_path, {**GPTQ, "desc_act": True}, without, chosen)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({**AWQ, "quant_method": "bitsandbytes"}, "“bitsandbytes”; AWQ and GPTQ"),
        ({**AWQ, "bits": 8}, "have 8 bits"),
        ({**GPTQ, "bits": 3}, "have 3 bits"),
        ({**AWQ, "version": "gemv"}, "“gemv”"),
        ({**GPTQ, "checkpoint_format": "marlin"}, "“marlin”"),
        ({**GPTQ, "is_marlin_format": True}, "“marlin”"),
        ({**GPTQ, "bits": 4.0}, r"have 4\.0 bits"),
        ({**GPTQ, "bits": None}, "have None bits"),
        ({**GPTQ, "group_size": "all"}, "group size is 'all'"),
        ({**GPTQ, "group_size": 0}, "group size is 0"),
        ({}, "a way that they do not name"),
        (None, "not quantised"),
    ],
)
def test_other_settings_are_refused(tmp_path: Path, settings: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        open_experts(folder(tmp_path, settings, awq_tensors, numbers()))


def test_groups_that_are_no_multiple_of_32_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, {**GPTQ, "group_size": 16}, gptq_tensors, numbers(16))
    with pytest.raises(RefusedError, match=r"groups of 16 weights.*multiple of 32"):
        list(transcode_experts(path))


def test_an_expert_that_was_left_unquantised_is_refused(tmp_path: Path) -> None:
    matrices = {name: awq_tensors(*item) for name, item in numbers().items()}
    last = list(matrices)[-1]
    matrices[last] = {"weight": np.zeros((HIDDEN, INNER), np.float16)}
    report = inspect_experts(write_packed(tmp_path / "model", AWQ, matrices))
    assert [(t.name, t.format_in, t.format_out) for t in report.refused] == [(last, "F16", None)]
    assert report.refused[0].refused.startswith("it is not quantised")


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("scales", lambda a: a[:1], r"w1\.scales.*\[1, 384\]"),
        ("scales", lambda a: a.astype(np.int32), "type I32"),
        ("scales", lambda a: a[0], r"\[384\]"),
        ("qzeros", lambda a: a[:, 1:].copy(), r"w1\.qzeros"),
        ("qweight", lambda a: a.astype(np.int64), "type I64"),
        ("g_idx", lambda a: a[:-1], r"g_idx.*\[255\]"),
        ("qzeros", None, "hold no tensor named .*qzeros"),
    ],
)
def test_tensors_that_do_not_fit_are_named(
    tmp_path: Path, part: str, change: Callable[[np.ndarray], np.ndarray] | None, message: str
) -> None:
    matrices = {name: gptq_tensors(*item) for name, item in numbers().items()}
    first = next(iter(matrices.values()))
    changed = None if change is None else change(first[part])
    if changed is None:
        del first[part]
    else:
        first[part] = changed
    with pytest.raises(CheckpointError, match=message):
        list(transcode_experts(write_packed(tmp_path / "model", GPTQ, matrices)))


def test_scales_in_bfloat16_are_read(tmp_path: Path) -> None:
    """The safetensors library for numpy cannot write them: two bytes each are put in their place."""
    chosen = numbers()
    for _, _, scales in chosen.values():
        rounded = scales.astype(np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        scales[:] = rounded.view(np.float32)  # 8 bits of precision, exact in both types
    path = folder(tmp_path, AWQ, awq_tensors, chosen)
    file = path / "model.safetensors"
    data = bytearray(file.read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    for name, entry in header.items():
        if name.endswith("scales"):
            entry["dtype"] = "BF16"
            begin, end = (start + at for at in entry["data_offsets"])
            wide = np.frombuffer(data[begin:end], "<f2").astype("<f4").view(np.uint32)
            data[begin:end] = (wide >> 16).astype("<u2").tobytes()
    text = json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + data[start:])
    check(path, chosen)


@pytest.fixture(scope="module", params=["awq", "gptq", "gptq8"])
def sound_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One small expert, to be damaged."""
    bits = 8 if request.param == "gptq8" else 4
    pack: Pack = awq_tensors if request.param == "awq" else lambda *n: gptq_tensors(*n, bits=bits)
    chosen = {
        f"model.layers.0.block_sparse_moe.experts.0.{place}": random_numbers(
            1, 32, 32, 32, bits=bits, zero=8 if bits == 4 else 128
        )
        for place in MATRICES
    }
    configuration = {**(AWQ if request.param == "awq" else GPTQ), "bits": bits, "group_size": 32}
    return folder(tmp_path_factory.mktemp(request.param), configuration, pack, chosen)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(st.data())
def test_damage_is_a_checkpoint_error_or_harmless(
    sound_folder: Path, tmp_path: Path, data: st.DataObject
) -> None:
    """Changed bytes anywhere, or a lost end: no other exception, and no warning."""
    damaged = tmp_path / "damaged"
    damaged.mkdir(exist_ok=True)
    for name in ("config.json", "model.safetensors"):
        (damaged / name).write_bytes((sound_folder / name).read_bytes())
    file = damaged / data.draw(st.sampled_from(["config.json", *4 * ["model.safetensors"]]))
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        patch = data.draw(st.binary(min_size=1, max_size=9))
        content[at : at + len(patch)] = patch[: len(content) - at]
    file.write_bytes(content[: data.draw(st.integers(len(content) * 3 // 4, len(content)))])
    with suppress(CheckpointError):
        inspect_experts(damaged)
    with suppress(CheckpointError):
        list(transcode_experts(damaged))
