"""Downloading a model's folder: what is fetched, from a local server through the hub's own client."""

from __future__ import annotations

import json
import shutil
import socket
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.download import Patience
from engine.download_record import RECORD_FILE
from engine.errors import Cancelled, CheckpointError, DownloadError, ShortageError
from engine.hub import download_model, is_needed, list_model
from engine.progress import CancelToken, Progress
from tests.engine.hub_server import COMMIT, REPO, HubServer

CONFIG = {
    "model_type": "mixtral",
    "vocab_size": 32,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "rms_norm_eps": 1e-5,
    "max_position_embeddings": 128,
}
NEEDED = {
    "config.json": json.dumps(CONFIG).encode(),
    "generation_config.json": b"{}",
    "model-00001-of-00002.safetensors": b"first" * 1000,
    "model-00002-of-00002.safetensors": b"second" * 1000,
    "model.safetensors.index.json": b"{}",
    "tokenizer.json": b"{}",
    "tokenizer.model": b"pieces",
    "tokenizer_config.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
}
OTHERS = {
    ".gitattributes": b"x",
    "README.md": b"x",
    "consolidated.00.pt": b"x" * 9000,
    "consolidated.safetensors": b"x" * 9000,
    "pytorch_model.bin": b"x" * 9000,
    "original/model.safetensors": b"x" * 9000,
}
QUICK = Patience(attempts=2, first_wait=0.001, longest_wait=0.01, timeout=5)


@pytest.fixture(autouse=True)
def no_login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody is signed in, whatever the machine's user is."""
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with HubServer({**NEEDED, **OTHERS}) as running:
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        yield running


def content(folder: Path) -> dict[str, bytes]:
    """The model's files in the folder; what is left of a download beside them fails the comparison."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != RECORD_FILE}


def test_only_what_is_needed_is_fetched_and_all_of_it(server: HubServer, tmp_path: Path) -> None:
    steps: list[Progress] = []
    folder = download_model(REPO, tmp_path / "model", progress=steps.append, patience=QUICK)
    assert folder == tmp_path / "model"
    assert content(folder) == NEEDED
    total = sum(map(len, NEEDED.values()))
    assert (steps[-1].done, steps[-1].total, steps[-1].unit) == (total, total, "bytes")
    done = [step.done for step in steps]
    assert done == sorted(done)
    paths = [request.path for request in server.requests]
    assert paths[0] == f"/api/models/{REPO}/revision/main"
    assert paths[1] == f"/{REPO}/resolve/{COMMIT}/config.json"
    assert all(path.endswith(".safetensors") for path in paths[-2:])


def test_a_broken_download_goes_on_without_fetching_anything_twice(server: HubServer, tmp_path: Path) -> None:
    shard = "model-00002-of-00002.safetensors"
    token = CancelToken()

    def cancel_at_the_last_shard(step: Progress) -> None:
        if step.total and step.done >= step.total - 6000:
            server.faults.drop_after = [2500]
            token.cancel()

    with pytest.raises(Cancelled):
        download_model(REPO, tmp_path, progress=cancel_at_the_last_shard, cancel=token, patience=QUICK)
    assert not (tmp_path / shard).exists()
    server.requests.clear()
    server.faults.drop_after = [2500]
    download_model(REPO, tmp_path, patience=QUICK)
    assert content(tmp_path) == NEEDED
    assert [request.range for request in server.file_requests(shard)] == [None, "bytes=2500-"]
    assert len(server.requests) == 3  # the list, and that file


def test_a_file_of_another_revision_is_replaced(server: HubServer, tmp_path: Path) -> None:
    """Weights of another revision are as long; what was recorded tells them apart."""
    shard = "model-00001-of-00002.safetensors"
    download_model(REPO, tmp_path, patience=QUICK)
    server.files[shard] = server.listed[shard] = b"other" * 1000
    server.requests.clear()
    download_model(REPO, tmp_path, patience=QUICK)
    assert content(tmp_path) == {**NEEDED, shard: b"other" * 1000}
    assert len(server.requests) == 2  # the list, and that file


@pytest.mark.parametrize("record", [None, "{", "[]", "{}", '{"config.json": 1}'])
def test_files_without_a_record_are_hashed_and_kept(
    server: HubServer, tmp_path: Path, record: str | None
) -> None:
    """Copied from elsewhere, say: right ones are kept, wrong ones are fetched."""
    for name, data in NEEDED.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "tokenizer.json").write_bytes(b"[]")
    if record is not None:
        (tmp_path / RECORD_FILE).write_text(record)
    download_model(REPO, tmp_path, patience=QUICK)
    assert content(tmp_path) == NEEDED
    assert [request.path.rpartition("/")[2] for request in server.requests] == ["main", "tokenizer.json"]


def test_a_token_is_sent_with_every_request(server: HubServer, tmp_path: Path) -> None:
    download_model(REPO, tmp_path, token="hf_secret", patience=QUICK)
    assert {request.headers.get("authorization") for request in server.requests} == {"Bearer hf_secret"}


def test_without_a_token_none_is_sent(server: HubServer, tmp_path: Path) -> None:
    download_model(REPO, tmp_path, patience=QUICK)
    assert not any("authorization" in request.headers for request in server.requests)


@pytest.mark.parametrize(("token", "why"), [(None, "not signed in"), ("hf_x", "has not accepted")])
def test_a_gated_model_says_what_to_do(
    server: HubServer, tmp_path: Path, token: str | None, why: str
) -> None:
    server.list_status = 403
    server.list_headers = {"X-Error-Code": "GatedRepo"}
    with pytest.raises(DownloadError, match=rf"terms.*{why}.*{server.address}/{REPO}.*HF_TOKEN"):
        download_model(REPO, tmp_path, token=token, patience=QUICK)


def test_files_of_a_gated_model_may_be_refused_one_by_one(server: HubServer, tmp_path: Path) -> None:
    """The hub lists a gated model's files to everybody and then refuses the files."""
    server.faults.status = [401]
    with pytest.raises(DownloadError, match=r"config\.json.*401.*terms"):
        download_model(REPO, tmp_path, patience=QUICK)


@pytest.mark.parametrize("code", ["RepoNotFound", "RevisionNotFound"])
def test_a_missing_model_is_named(server: HubServer, tmp_path: Path, code: str) -> None:
    server.list_status = 404
    server.list_headers = {"X-Error-Code": code}
    with pytest.raises(DownloadError, match=f"no model “{REPO}”"):
        download_model(REPO, tmp_path, patience=QUICK)


def test_an_impossible_name_is_no_model(server: HubServer, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="no model “a/b/c d”"):
        download_model("a/b/c d", tmp_path, patience=QUICK)


def test_a_broken_hub_and_a_sign_in_page_are_errors(server: HubServer, tmp_path: Path) -> None:
    server.list_body = b"<html>Welcome to the hotel's network</html>"
    with pytest.raises(DownloadError, match="cannot be reached"):
        list_model(REPO)
    server.list_body = b"{}"
    with pytest.raises(DownloadError, match="cannot be reached"):
        list_model(REPO)
    server.list_status, server.list_body = 500, b""
    with pytest.raises(DownloadError, match="could not answer"):
        list_model(REPO)


def test_a_connection_that_ends_without_an_answer_is_made_once_more(server: HubServer) -> None:
    """A client keeps connections, and hears only in using one that the server has given it up."""
    server.lists_dropped = 1
    assert len(list_model(REPO).files) == len(NEEDED)
    server.lists_dropped = 2
    with pytest.raises(DownloadError, match=r"cannot be reached.*HF_ENDPOINT"):
        list_model(REPO)
    assert len(server.requests) == 4


def test_a_slow_failure_is_not_waited_for_twice(server: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.hub._AT_ONCE", 0.0)
    server.lists_dropped = 1
    with pytest.raises(DownloadError, match="cannot be reached"):
        list_model(REPO)
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'{"id": "a/b", "siblings": [1]}'])
def test_an_answer_of_something_else_is_said(server: HubServer, body: bytes) -> None:
    server.list_body = body
    with pytest.raises(DownloadError) as caught:
        list_model(REPO)
    assert caught.value.why.startswith("What answered is not a hub (")


def test_no_connection_is_an_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(DownloadError, match=r"cannot be reached.*HF_ENDPOINT"):
        download_model(REPO, tmp_path, endpoint=f"http://127.0.0.1:{port}", patience=QUICK)


def test_another_kind_of_model_is_refused_before_its_weights(server: HubServer, tmp_path: Path) -> None:
    server.files["config.json"] = server.listed["config.json"] = b'{"model_type": "llama"}'
    with pytest.raises(CheckpointError, match="not a Mixtral model"):
        download_model(REPO, tmp_path, patience=QUICK)
    assert server.file_requests("model-00001-of-00002.safetensors") == []


def test_an_unreadable_configuration_is_refused(server: HubServer, tmp_path: Path) -> None:
    server.files["config.json"] = server.listed["config.json"] = b"{"
    with pytest.raises(CheckpointError, match=r"config\.json is not readable"):
        download_model(REPO, tmp_path, patience=QUICK)


def test_a_repository_without_safetensors_is_refused(server: HubServer, tmp_path: Path) -> None:
    server.listed = {"config.json": NEEDED["config.json"], "consolidated.00.pt": b"x"}
    with pytest.raises(CheckpointError, match="safetensors format"):
        download_model(REPO, tmp_path, patience=QUICK)


@pytest.mark.parametrize("name", ["config.json", "model-00001-of-00002.safetensors"])
def test_content_that_differs_from_the_list_is_refused(server: HubServer, tmp_path: Path, name: str) -> None:
    """Weights are checked by SHA-256, small files by git's SHA-1."""
    server.files[name] = NEEDED[name][:-1] + b"?"
    with pytest.raises(DownloadError, match="checksum"):
        download_model(REPO, tmp_path, patience=QUICK)
    assert not (tmp_path / name).exists()


def test_a_full_disk_is_noticed_first_and_counts_what_is_there(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    gib = 1 << 30
    total = sum(map(len, NEEDED.values()))
    assert total > 10_000
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10 * gib, 9 * gib, gib + 10_000))
    with pytest.raises(ShortageError, match=r"disk space missing.*Free some space"):
        download_model(REPO, tmp_path, patience=QUICK)
    assert len(server.requests) == 1
    assert list(tmp_path.iterdir()) == []
    # With the first shard here and part of the second, the rest fits.
    first, second = sorted(name for name in NEEDED if name.endswith(".safetensors"))
    (tmp_path / first).write_bytes(NEEDED[first])
    (tmp_path / f"{second}.part").write_bytes(NEEDED[second][:100])
    need = list_model(REPO).requirements(tmp_path).needs[0]
    assert need.items[0].nbytes == total - len(NEEDED[first]) - 100
    download_model(REPO, tmp_path, patience=QUICK)
    assert content(tmp_path) == NEEDED


def test_going_on_anyway_is_possible(
    server: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 0))
    download_model(REPO, tmp_path, force=True, patience=QUICK)
    assert content(tmp_path) == NEEDED


@pytest.mark.parametrize(
    "name", [*OTHERS, "..\\config.json", "../config.json", "a/config.json", "D:config.json", "a.json:b.json"]
)
def test_other_files_and_other_folders_are_left_out(name: str) -> None:
    assert not is_needed(name)
