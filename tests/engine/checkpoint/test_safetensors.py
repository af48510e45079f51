"""The header parser against files by the safetensors library, and against every kind of damage."""

import contextlib
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save

from engine.checkpoint.reader import Checkpoint
from engine.checkpoint.safetensors import read_header
from engine.errors import CheckpointError

DTYPES = {"F32": np.float32, "F16": np.float16, "I64": np.int64, "U8": np.uint8}
SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return tmp_path_factory.mktemp("safetensors")


@given(st.dictionaries(st.text(max_size=8), st.tuples(st.sampled_from(sorted(DTYPES)), SHAPES), max_size=5))
def test_reads_what_the_library_writes(scratch, table):
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.integers(0, 200, shape).astype(DTYPES[dtype])
        for name, (dtype, shape) in table.items()
        if name != "__metadata__"
    }
    file = scratch / "model.safetensors"
    file.write_bytes(save(arrays, metadata={"format": "pt"}))

    header = read_header(file)

    assert set(header) == set(arrays)
    with safe_open(file, "np") as library:
        for name, info in header.items():
            theirs = library.get_slice(name)
            assert list(info.shape) == theirs.get_shape()
            assert info.dtype == theirs.get_dtype()
    with Checkpoint(scratch) as checkpoint:
        for name, array in arrays.items():
            buffer = bytearray(array.nbytes)
            checkpoint.read_into(checkpoint.info(name, array.shape), memoryview(buffer))
            assert bytes(buffer) == array.tobytes()


@pytest.mark.parametrize(("start", "length"), [(0, 3), (5, 4), (20, 100), (0, 24), (24, 5)])
def test_a_part_of_a_tensor_is_read_as_far_as_it_and_the_buffer_go(tmp_path, start, length):
    values = np.arange(24, dtype=np.uint8)
    (tmp_path / "model.safetensors").write_bytes(save({"a": values, "b": values + 100}))
    buffer = bytearray(b"\xff" * length)
    with Checkpoint(tmp_path) as checkpoint:
        checkpoint.read_into(checkpoint.info("a", (24,)), memoryview(buffer), start)
    expected = values.tobytes()[start : start + length]
    assert bytes(buffer) == expected + b"\xff" * (length - len(expected))


def write(file, header, data=b"\0" * 8):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(len(raw).to_bytes(8, "little") + raw + data)


GOOD = {"a": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}


def test_the_undamaged_file_of_the_damage_tests_is_read(tmp_path):
    file = tmp_path / "m.safetensors"
    write(file, GOOD)
    assert read_header(file)["a"].nbytes == 8


@pytest.mark.parametrize(
    ("header", "data", "cause"),
    [
        (GOOD, b"\0" * 7, "ends 1 bytes too early"),
        (GOOD, b"\0" * 9, "belong to no tensor"),
        (b"{not json", b"", "not readable as JSON"),
        (b"\xff\xfe", b"", "not readable as JSON"),
        ([1], b"", "not a table"),
        ({"a": 3}, b"", "not a table"),
        ({"a": GOOD["a"] | {"dtype": "F7"}}, b"\0" * 8, "unknown number format"),
        ({"a": GOOD["a"] | {"shape": [2, -2]}}, b"\0" * 8, "not a list of sizes"),
        ({"a": GOOD["a"] | {"shape": [True, 4]}}, b"\0" * 8, "not a list of sizes"),
        ({"a": GOOD["a"] | {"data_offsets": [0]}}, b"\0" * 8, "not a list of sizes"),
        ({"a": GOOD["a"] | {"data_offsets": [8, 0]}}, b"\0" * 8, "should take 8 bytes"),
        ({"a": GOOD["a"] | {"shape": [2, 3]}}, b"\0" * 8, "should take 12 bytes"),
    ],
)
def test_damage_names_the_file_and_the_cause(tmp_path, header, data, cause):
    file = tmp_path / "model-00002-of-00003.safetensors"
    write(file, header, data)
    with pytest.raises(CheckpointError) as raised:
        read_header(file)
    assert file.name in raised.value.what
    assert cause in raised.value.why
    assert raised.value.action


@given(st.binary(max_size=64))
def test_arbitrary_bytes_are_refused_or_read_but_never_crash(scratch, data):
    file = scratch / "noise.safetensors"
    file.write_bytes(data)
    with contextlib.suppress(CheckpointError):  # any other exception fails the test
        read_header(file)


@given(st.integers(0, 200))
def test_every_truncation_is_noticed(scratch, cut):
    whole = save({"a": np.arange(12, dtype=np.float32), "b": np.zeros((3, 2), np.float16)})
    file = scratch / "cut.safetensors"
    file.write_bytes(whole[: min(cut, len(whole) - 1)])
    with pytest.raises(CheckpointError):
        read_header(file)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError) as raised:
        read_header(tmp_path / "model-00001-of-00002.safetensors")
    assert "model-00001-of-00002.safetensors is missing" in raised.value.what


def test_an_absurd_header_length_is_not_allocated(tmp_path):
    file = tmp_path / "m.safetensors"
    file.write_bytes((1 << 60).to_bytes(8, "little") + b"{}")
    with pytest.raises(CheckpointError, match="too short for its own header"):
        read_header(file)


def test_offsets_count_from_the_end_of_the_header(tmp_path):
    file = tmp_path / "m.safetensors"
    write(file, GOOD, bytes(range(8)))
    info = read_header(file)["a"]
    assert file.read_bytes()[info.offset : info.offset + info.nbytes] == bytes(range(8))
    assert info.nbytes == 2 * math.prod(info.shape)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"GGUF\x03\0\0\0" + b"\0" * 90, "a GGUF file under another name"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "was not downloaded"),
    ],
)
def test_other_files_under_the_name_are_recognised(tmp_path, content, what):
    file = tmp_path / "model.safetensors"
    file.write_bytes(content)
    with pytest.raises(CheckpointError) as raised:
        read_header(file)
    assert what in raised.value.what
    assert raised.value.action
