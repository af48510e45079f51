"""Download a model's folder from the Hugging Face hub, file by file, resumably. Torch-free.

The list of files with sizes and hashes comes from huggingface_hub; the bytes we write ourselves, because its
client (1.18 and later) throws a partial file away when a download fails.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engine.budget import download_requirements
from engine.checkpoint.reader import CONFIG_FILE, is_file_name, read_json
from engine.download import Patience, RemoteFile, download_file
from engine.download_record import DownloadRecord
from engine.errors import CheckpointError, DownloadError
from engine.hardware.memory import detect_disk
from engine.models.config import MixtralConfig
from engine.partfile import Digest
from engine.progress import CancelToken, Progress, ProgressCallback, ignore_progress
from engine.requirements import Requirements

if TYPE_CHECKING:
    from huggingface_hub.hf_api import HfApi, ModelInfo, RepoSibling

ENDPOINT_VARIABLE = "HF_ENDPOINT"
_TIMEOUT = 30  # seconds
_AT_ONCE = 5.0  # seconds: what fails later has waited long enough


@dataclass(frozen=True)
class HubModel:
    """The files of a repository at one commit that running the model takes, small ones first."""

    repo_id: str
    commit: str
    files: tuple[RemoteFile, ...]
    token: str | None

    @property
    def name(self) -> str:
        """The repository's name without its owner."""
        return self.repo_id.rpartition("/")[2]

    @property
    def nbytes(self) -> int:
        """Bytes in all."""
        return sum(file.size for file in self.files)

    def requirements(self, folder: Path) -> Requirements:
        """The disk space that downloading the rest into `folder` takes, against what is free."""
        here = sum(bytes_here(file, folder) for file in self.files)
        return download_requirements(detect_disk(folder), self.name, self.nbytes, already=here)


def download_model(
    repo_id: str,
    folder: Path,
    *,
    revision: str = "main",
    token: str | None = None,
    endpoint: str | None = None,
    progress: ProgressCallback = ignore_progress,
    cancel: CancelToken | None = None,
    force: bool = False,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> Path:
    """Bring the Mixtral model `repo_id` ("owner/name") into `folder`; calling it again goes on.

    `token` and `endpoint` default to what the hub's own tools use (`HF_TOKEN` or their login, `HF_ENDPOINT`).
    Raises `DownloadError`, `CheckpointError` if it is not a Mixtral model (before the weights are fetched),
    `ShortageError` if the disk is too full (not with `force`), `FileError`, `Cancelled`.
    """
    cancel = cancel or CancelToken()
    progress(Progress(f"Asking for the files of {repo_id}"))
    model = list_model(repo_id, revision=revision, token=token, endpoint=endpoint)
    cancel.raise_if_cancelled()
    model.requirements(folder).check(force=force)
    headers = {"Authorization": f"Bearer {model.token}"} if model.token else {}
    record = DownloadRecord(folder)
    done = 0
    for file in model.files:

        def report(here: int, before: int = done) -> None:
            progress(Progress(f"Downloading {model.name}", before + here, model.nbytes, "bytes"))

        if not record.has(file):
            download_file(file, folder, headers=headers, report=report, cancel=cancel, patience=patience)
            record.add(file)
        if file.name == CONFIG_FILE:
            MixtralConfig.from_dict(read_json(folder / file.name))  # before the weights are fetched
        done += file.size
    return folder


def list_model(
    repo_id: str, *, revision: str = "main", token: str | None = None, endpoint: str | None = None
) -> HubModel:
    """Ask the hub for the model's files. Raises `DownloadError`: no such model, no access, no connection."""
    from huggingface_hub import HfApi, constants, errors, get_token, hf_hub_url

    endpoint = (endpoint or os.environ.get(ENDPOINT_VARIABLE) or constants.ENDPOINT).rstrip("/")
    token = token or get_token()
    try:
        info = _ask(HfApi(endpoint=endpoint, token=token or False), repo_id, revision)
    except errors.GatedRepoError as error:
        raise _no_access(repo_id, endpoint, signed_in=token is not None) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as error:
        raise DownloadError(
            f"There is no model “{repo_id}” on the hub.",
            why="Its name or revision is misspelt, or it is private.",
            action="Check the name; for a private model, set HF_TOKEN to a token that may read it.",
        ) from error
    except errors.HfHubHTTPError as error:
        raise DownloadError(
            "The hub could not answer.",
            why=f"It said: {error.server_message or error.response.status_code}.",
            action="Try again later.",
        ) from error
    # HTTPError: what the client's HTTP library, which differs between its versions, raises for connections.
    # OSError: its offline mode.
    except (errors.HTTPError, OSError) as error:  # type: ignore[attr-defined]
        raise _unreachable(str(error) or type(error).__name__) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:  # a sign-in page, say
        raise _unreachable(f"What answered is not a hub ({type(error).__name__}: {error})") from error
    commit = info.sha or revision
    files = []
    for sibling in info.siblings or ():
        if is_needed(sibling.rfilename):
            url = hf_hub_url(repo_id, sibling.rfilename, revision=commit, endpoint=endpoint)
            files.append(_remote_file(sibling, url))
    if not any(file.name.endswith(".safetensors") for file in files):
        raise CheckpointError(
            f"{repo_id} cannot be used.",
            why="It has no weights in the safetensors format.",
            action="Choose a repository that has them.",
        )
    files.sort(key=lambda file: (file.name != CONFIG_FILE, file.name.endswith(".safetensors"), file.name))
    return HubModel(repo_id, commit, tuple(files), token)


def _ask(api: HfApi, repo_id: str, revision: str) -> ModelInfo:
    """The hub's answer about a repository; raises what its client does.

    The client keeps connections, and one that the server has given up meanwhile breaks in use. So what fails
    at once for want of a connection is tried once more.
    """
    from huggingface_hub import errors

    def ask() -> ModelInfo:
        return api.model_info(repo_id, revision=revision, files_metadata=True, timeout=_TIMEOUT)

    begun = time.monotonic()
    try:
        return ask()
    except errors.HfHubHTTPError:  # an answer, if not the one that was hoped for
        raise
    except errors.HTTPError:  # type: ignore[attr-defined]
        if time.monotonic() - begun > _AT_ONCE:
            raise
    return ask()


def is_needed(name: str) -> bool:
    """Whether running the model takes this file: weights, configuration, tokenizer; no second copies.

    Repositories often carry the same weights again, as `consolidated.*` or in folders.
    """
    if not is_file_name(name) or name.startswith((".", "consolidated")):
        return False
    return name.endswith((".safetensors", ".json", ".jinja")) or name.startswith("tokenizer")


def bytes_here(file: RemoteFile, folder: Path) -> int:
    """How many bytes of `file` are in `folder`, complete or in part."""
    for path in (folder / file.name, folder / f"{file.name}.part"):
        if path.is_file():
            return min(path.stat().st_size, file.size)
    return 0


def _remote_file(sibling: RepoSibling, url: str) -> RemoteFile:
    if sibling.lfs is not None:
        return RemoteFile(sibling.rfilename, url, sibling.lfs.size, Digest("sha256", sibling.lfs.sha256))
    if sibling.size is None or sibling.blob_id is None:
        raise DownloadError(
            "The hub's list of files is incomplete.",
            why=f"It gives neither size nor hash of {sibling.rfilename}.",
            action="Try again later, or use another endpoint.",
        )
    return RemoteFile(sibling.rfilename, url, sibling.size, Digest("git-sha1", sibling.blob_id))


def _unreachable(why: str) -> DownloadError:
    return DownloadError(
        "The hub cannot be reached.",
        why=f"{why.rstrip('.')}.",
        action=f"Check the internet connection, the proxy settings and {ENDPOINT_VARIABLE}.",
    )


def _no_access(repo_id: str, endpoint: str, *, signed_in: bool) -> DownloadError:
    why = "The account of your token has not accepted them." if signed_in else "You are not signed in."
    return DownloadError(
        f"{repo_id} is only given to people who have accepted its terms.",
        why=why,
        action=f"Accept them at {endpoint}/{repo_id}, make a token there under Settings, and set HF_TOKEN "
        "to it (or run “hf auth login”).",
    )
