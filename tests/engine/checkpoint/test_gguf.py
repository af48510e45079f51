"""Our GGUF reader against the `gguf` library: metadata and tensors."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.checkpoint.gguf import GgufFile
from engine.checkpoint.gguf_quants import (
    LAYOUTS,
    UNREAD_TYPES,
    GgmlType,
    block_size,
    dequantize,
    tensor_type,
)
from engine.errors import CheckpointError
from tests.engine.checkpoint.gguf_files import blocks_of, write

SHARED_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
NEVER_IN_FILES = {"Q8_1"}  # ggml's types for activations; the library has another size for this one

keys = st.text("abcdefghijklmnop._0123456789", min_size=1, max_size=20).map("x.".__add__)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
int32s = st.integers(-(2**31), 2**31 - 1)
floats32 = st.floats(width=32, allow_nan=False)
metadata_values = st.one_of(
    texts,
    int32s,
    floats32,
    st.booleans(),
    st.lists(texts, min_size=1, max_size=5),
    st.lists(int32s, min_size=1, max_size=5),
    st.lists(floats32, min_size=1, max_size=5),
    st.lists(st.booleans(), min_size=1, max_size=5),
)


@SHARED_FOLDER
@given(st.dictionaries(keys, metadata_values, max_size=6))
def test_metadata_is_what_the_library_wrote(tmp_path: Path, metadata: dict[str, object]) -> None:
    path = write(tmp_path / "m.gguf", metadata, {})
    with GgufFile(path) as file:
        assert dict(file.metadata) == {"general.architecture": "llama", **metadata}
        assert file.version == 3


@SHARED_FOLDER
@given(
    st.lists(st.tuples(st.sampled_from(GgmlType), st.integers(1, 3), st.integers(1, 3)), max_size=5),
    st.integers(0, 2**32 - 1),
)
def test_tensors_equal_the_librarys(
    tmp_path: Path, specs: list[tuple[GgmlType, int, int]], seed: int
) -> None:
    random = np.random.default_rng(seed)
    tensors = {
        f"t{i}": (random.standard_normal((rows, LAYOUTS[kind].weights * blocks), dtype=np.float32), kind)
        for i, (kind, rows, blocks) in enumerate(specs)
    }
    path = write(tmp_path / "t.gguf", {}, tensors)
    reference = {tensor.name: tensor for tensor in gguf.GGUFReader(path).tensors}
    with GgufFile(path) as file:
        assert file.tensors.keys() == reference.keys()
        for name, tensor in reference.items():
            ours = file.read(name)
            assert ours.shape == tensors[name][0].shape
            assert ours.dtype == np.float32
            np.testing.assert_array_equal(ours, gguf.dequantize(tensor.data, tensor.tensor_type))


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@settings(deadline=None, max_examples=200)
@given(st.sampled_from(GgmlType), st.binary(min_size=4 * 144, max_size=4 * 144))
def test_any_block_restores_as_in_the_library(kind: GgmlType, data: bytes) -> None:
    """To the bit, whatever the bytes: NaN where it has NaN, infinity where it has infinity."""
    size = LAYOUTS[kind].nbytes
    blocks = np.frombuffer(data[: len(data) // size * size], np.uint8).reshape(-1, size)
    expected = gguf.dequantize(blocks, gguf.GGMLQuantizationType(kind)).reshape(-1)
    ours = dequantize(kind, blocks)
    missing = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(ours), missing)
    np.testing.assert_array_equal(ours[~missing].view(np.uint32), expected[~missing].view(np.uint32))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", GgmlType)
def test_extreme_scales_restore_as_in_the_library(kind: GgmlType) -> None:
    """Every pair of NaN, infinity, denormal numbers and zero, of both signs, in a block's first bytes."""
    halves = np.array([0x0000, 0x8000, 0x0001, 0x83FF, 0x7BFF, 0xFC00, 0x7C00, 0x7E00, 0xFE01, 0x3C00], "<u2")
    pairs = np.stack(np.meshgrid(halves, halves), axis=-1).reshape(-1, 2)
    size = max(LAYOUTS[kind].nbytes, 4)
    blocks = np.random.default_rng(1).integers(0, 256, (len(pairs), size), np.uint8)
    blocks[:, :4] = pairs.view(np.uint8)
    blocks = blocks.reshape(-1, LAYOUTS[kind].nbytes)
    expected = gguf.dequantize(blocks, gguf.GGMLQuantizationType(kind)).reshape(-1)
    np.testing.assert_array_equal(dequantize(kind, blocks), expected)


def test_types_and_their_sizes_are_the_librarys() -> None:
    for number, (weights, nbytes) in gguf.GGML_QUANT_SIZES.items():
        kind = tensor_type(number)
        assert kind is not None, number.name
        assert kind.name == number.name
        if kind.name not in NEVER_IN_FILES:
            assert block_size(kind) == (weights, nbytes)
    assert UNREAD_TYPES.keys() <= set(gguf.GGML_QUANT_SIZES)


@pytest.mark.parametrize("kind", [gguf.GGMLQuantizationType.Q5_0, gguf.GGMLQuantizationType.Q6_K])
def test_a_type_that_is_not_read_leaves_the_files_other_tensors_readable(
    tmp_path: Path, kind: gguf.GGMLQuantizationType
) -> None:
    weights, nbytes = gguf.GGML_QUANT_SIZES[kind]
    array = np.arange(4, dtype=np.float32)
    writer = gguf.GGUFWriter(tmp_path / "mixed.gguf", "llama")
    writer.add_tensor("other", np.zeros((2, nbytes), np.uint8), raw_dtype=kind)
    writer.add_tensor("plain", array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with GgufFile(tmp_path / "mixed.gguf") as file:
        assert file.tensors["other"].shape == (2, weights)
        np.testing.assert_array_equal(file.read("plain"), array)
        with pytest.raises(CheckpointError, match=f"“other” has the type {kind.name}.*Q4_K"):
            file.read("other")


@pytest.mark.parametrize("kind", GgmlType)
def test_one_matrix_of_a_stack_is_read_alone(tmp_path: Path, kind: GgmlType) -> None:
    array = np.random.default_rng(2).standard_normal((3, 2, 512), dtype=np.float32)
    path = write(tmp_path / "e.gguf", {}, {"stack": (array, kind), "flat": (array[1], kind)})
    stored = blocks_of(array, kind).view(np.uint8).reshape(3, 2, -1)
    with GgufFile(path) as file:
        for index in range(3):
            blocks = file.read_blocks("stack", index)
            assert blocks.shape == (2, 512 // LAYOUTS[kind].weights, LAYOUTS[kind].nbytes)
            np.testing.assert_array_equal(blocks.reshape(2, -1), stored[index])
        assert file.read_blocks("flat").shape == file.read_blocks("stack").shape
        for name, index in (("stack", 3), ("stack", -1), ("flat", 1)):
            with pytest.raises(CheckpointError, match="has no matrix"):
                file.read_blocks(name, index)


def test_shapes_are_outermost_first_and_two_dimensions_are_not_required(tmp_path: Path) -> None:
    array = np.arange(2 * 3 * 5, dtype=np.float32).reshape(2, 3, 5)
    path = write(tmp_path / "s.gguf", {}, {"a": (array, GgmlType.F32), "b": (array[0, 0], GgmlType.F16)})
    with GgufFile(path) as file:
        assert file.tensors["a"].shape == (2, 3, 5)
        np.testing.assert_array_equal(file.read("a"), array)
        np.testing.assert_array_equal(file.read("b"), array[0, 0])


def test_a_tensor_stays_valid_after_close(tmp_path: Path) -> None:
    array = np.ones((4, 32), np.float32)
    path = write(tmp_path / "c.gguf", {}, {"a": (array, GgmlType.F32)})
    with GgufFile(path) as file:
        kept = file.read("a")
    np.testing.assert_array_equal(kept, array)


def test_typed_access_names_what_is_missing_or_of_another_type(tmp_path: Path, small_file: bytes) -> None:
    path = tmp_path / "small.gguf"
    path.write_bytes(small_file)
    with GgufFile(path) as file:
        assert file.get("x.number", int) == 7
        assert file.get_list("x.list", str) == ["a", "bc"]
        with pytest.raises(CheckpointError, match=r"x\.number.*is a int; a str"):
            file.get("x.number", str)
        with pytest.raises(CheckpointError, match=r"x\.list.*list of int"):
            file.get_list("x.list", int)
        with pytest.raises(CheckpointError, match=r"x\.none.*missing"):
            file.get("x.none", int)
        with pytest.raises(CheckpointError, match="no tensor “three”"):
            file.read("three")
