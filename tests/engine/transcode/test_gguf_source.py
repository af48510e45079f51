"""The experts of GGUF files: names old and new, split files, refusals, damage."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import CheckpointError
from engine.transcode.errors import RefusedError
from engine.transcode.experts import inspect_experts, open_experts, transcode_experts
from engine.transcode.gguf_source import GgufExperts
from engine.transcode.source import MATRICES, MatrixKey
from kernels.formats import WeightFormat
from tests.engine.transcode.files import PLACES, Q, expert_tensors, stored, write_gguf

SAME = {kind: dict.fromkeys(MATRICES, kind) for kind in (Q.Q4_0, Q.Q4_1, Q.Q4_K, Q.Q8_0)}


@pytest.mark.parametrize("kind", [Q.Q4_K, Q.Q8_0])
def test_stacked_experts_are_the_librarys_weights(tmp_path: Path, kind: Q) -> None:
    tensors = expert_tensors(SAME[kind], layers=2, experts=3)
    path = write_gguf(tmp_path / "m.gguf", tensors)
    wanted = {t.name: gguf.dequantize(t.data, t.tensor_type) for t in gguf.GGUFReader(path).tensors}
    experts = list(transcode_experts(path))
    assert [(e.layer, e.expert) for e in experts] == [(i, j) for i in range(2) for j in range(3)]
    for e in experts:
        for place in MATRICES:
            weights = wanted[f"blk.{e.layer}.ffn_{PLACES[place]}_exps.weight"][e.expert]
            np.testing.assert_array_equal(getattr(e, place).dequantise().numpy(), weights)
        assert e.accuracy.exact


def test_experts_in_tensors_of_their_own_are_found(tmp_path: Path) -> None:
    """As llama.cpp's first files of Mixtral have them."""
    stacked = expert_tensors(SAME[Q.Q8_0], experts=2)
    single = {
        name.replace("_exps", f".{expert}"): (data[expert], kind)
        for name, (data, kind) in stacked.items()
        if "exps" in name
        for expert in range(2)
    }
    new = transcode_experts(write_gguf(tmp_path / "new.gguf", stacked))
    old = transcode_experts(write_gguf(tmp_path / "old.gguf", single))
    for a, b in zip(new, old, strict=True):
        for place in MATRICES:
            assert getattr(a, place).values.equal(getattr(b, place).values)


def test_a_split_file_is_read_whole_from_any_part(tmp_path: Path) -> None:
    tensors = expert_tensors(SAME[Q.Q8_0], layers=2)
    names = list(tensors)
    for part, some in enumerate((names[:3], names[3:]), 1):
        write_gguf(tmp_path / f"m-{part:05}-of-00002.gguf", {name: tensors[name] for name in some})
    for path in (tmp_path, tmp_path / "m-00001-of-00002.gguf", tmp_path / "m-00002-of-00002.gguf"):
        assert len(list(transcode_experts(path))) == 4
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(CheckpointError, match=r"00002-of-00002\.gguf cannot be read"):
        open_experts(tmp_path)


@pytest.mark.parametrize("kind", [Q.Q4_0, Q.Q4_1])
def test_rounded_files_report_their_errors(tmp_path: Path, kind: Q) -> None:
    report = inspect_experts(write_gguf(tmp_path / "m.gguf", expert_tensors(SAME[kind], layers=2)))
    assert report.complete
    assert report.formats == {WeightFormat.INT4}
    assert not report.accuracy.exact
    assert 0 < report.accuracy.mean < report.accuracy.largest <= 2**-8
    assert len(report.tensors) == 6
    assert report.accuracy.largest == max(t.accuracy.largest for t in report.tensors if t.accuracy)
    experts = list(transcode_experts(tmp_path / "m.gguf"))
    assert report.accuracy.largest == max(e.accuracy.largest for e in experts)


def test_what_is_not_taken_over_is_refused_with_the_reason_and_the_rest_reported(tmp_path: Path) -> None:
    """The mixture of llama.cpp's Q4_K_M: some w2 have 6 bits."""
    path = write_gguf(tmp_path / "m.gguf", expert_tensors({"w1": Q.Q4_K, "w3": Q.Q4_K, "w2": Q.Q6_K}))
    report = inspect_experts(path)
    assert not report.complete
    assert [t.name for t in report.refused] == ["blk.0.ffn_down_exps.weight"]
    refused = report.refused[0]
    assert "type Q6_K has values or groups" in refused.refused
    assert "Q4_K" in refused.instead
    assert refused.format_out is None
    assert all(t.accuracy is not None and t.accuracy.exact for t in report.tensors if not t.refused)
    with pytest.raises(RefusedError, match=r"blk\.0\.ffn_down_exps\.weight cannot be taken over.*Q6_K"):
        list(transcode_experts(path))


def test_experts_that_are_not_quantised_are_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", expert_tensors(dict.fromkeys(MATRICES, Q.BF16)))
    report = inspect_experts(path)
    assert {t.refused for t in report.tensors} == {
        "it is BF16, which is not quantised, so there are no values to keep"
    }


def test_an_expert_in_two_formats_is_refused(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", expert_tensors({"w1": Q.Q4_0, "w3": Q.Q4_0, "w2": Q.Q8_0}))
    report = inspect_experts(path)
    assert not report.complete
    assert not report.refused
    assert report.lines()[-1] == "The experts cannot be taken over together: they would be in int4 and int8."
    with pytest.raises(RefusedError, match="w1 in Q4_0, w3 in Q4_0, w2 in Q8_0"):
        list(transcode_experts(path))


def test_minimums_of_both_signs_are_refused_because_of_their_error(tmp_path: Path) -> None:
    tensors = expert_tensors(SAME[Q.Q4_1])
    weights = np.random.default_rng(0).random((2, 512, 256), dtype=np.float32) + 1
    weights[..., 32:] -= 3
    tensors["blk.0.ffn_up_exps.weight"] = (stored(weights, Q.Q4_1), Q.Q4_1)
    path = write_gguf(tmp_path / "m.gguf", tensors)
    report = inspect_experts(path)
    assert [t.matrix for t in report.refused] == ["w3"]
    assert report.refused[0].accuracy is not None
    assert report.refused[0].accuracy.largest > 2**-8
    assert "more than 0.39%" in report.refused[0].refused
    with pytest.raises(RefusedError, match=r"ffn_up_exps.*0\.39%"):
        list(transcode_experts(path))


def test_a_weight_that_is_no_number_is_refused_with_the_tensors_name(tmp_path: Path) -> None:
    tensors = expert_tensors(SAME[Q.Q8_0])
    tensors["blk.0.ffn_gate_exps.weight"][0][1, 5, 1] = 0x7E  # the scale of expert 1's row 5 becomes NaN
    path = write_gguf(tmp_path / "m.gguf", tensors)
    with pytest.raises(RefusedError, match=r"blk\.0\.ffn_gate_exps.*NaN or infinite at row 5, column 0"):
        list(transcode_experts(path))
    assert [t.matrix for t in inspect_experts(path).refused] == ["w1"]


def test_missing_double_and_misshapen_tensors_are_errors(tmp_path: Path) -> None:
    tensors = expert_tensors(SAME[Q.Q8_0], layers=2)

    def refuse(change: dict[str, tuple[np.ndarray, Q] | None], message: str) -> None:
        kept = {name: item for name, item in {**tensors, **change}.items() if item is not None}
        with pytest.raises(CheckpointError, match=message):
            list(transcode_experts(write_gguf(tmp_path / "bad.gguf", kept)))

    w1, w2 = tensors["blk.1.ffn_gate_exps.weight"], tensors["blk.1.ffn_down_exps.weight"]
    refuse({"blk.1.ffn_gate_exps.weight": None}, "no tensor for w1 of expert 0 in layer 1")
    refuse({"blk.1.ffn_gate.1.weight": (w1[0][1], w1[1])}, "Both .* are w1 of expert 1 in layer 1")
    refuse({"blk.1.ffn_gate_exps.weight": (w1[0][0], w1[1])}, "impossible shape")
    refuse({"blk.1.ffn_gate_exps.weight": w2}, "do not fit together")
    refuse({"blk.9999.ffn_gate_exps.weight": w1}, "speak of 10000 layers")
    refuse({name: None for name in tensors if "exps" in name}, "has no experts")


def test_reading_twice_and_after_closing(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", expert_tensors(SAME[Q.Q8_0]))
    with GgufExperts(path) as source:
        first = source.read(MatrixKey(0, 1, "w2"))
        second = source.read(MatrixKey(0, 1, "w2"))
    assert first.matrix.dequantise().equal(second.matrix.dequantise())


@pytest.fixture(scope="module")
def sound_file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    kinds = {"w1": Q.Q4_0, "w3": Q.Q4_1, "w2": Q.Q4_K}
    tensors = expert_tensors(kinds, experts=1, hidden=256, inner=256)
    small = {name: (data[:, :2] if "exps" in name else data, kind) for name, (data, kind) in tensors.items()}
    return write_gguf(tmp_path_factory.mktemp("gguf") / "m.gguf", small).read_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(st.data())
def test_damage_is_a_checkpoint_error_or_harmless(
    tmp_path: Path, sound_file: bytes, data: st.DataObject
) -> None:
    """Changed bytes anywhere, or a lost end: no other exception, and no warning."""
    damaged = bytearray(sound_file)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        patch = data.draw(st.binary(min_size=1, max_size=9))
        damaged[at : at + len(patch)] = patch[: len(damaged) - at]
    damaged = damaged[: data.draw(st.integers(len(damaged) * 3 // 4, len(damaged)))]
    path = tmp_path / "damaged.gguf"
    path.write_bytes(damaged)
    with suppress(CheckpointError):
        inspect_experts(path)
    with suppress(CheckpointError):
        list(transcode_experts(path))
