"""The fiddler command as a process: Ctrl-C, closed pipes, and the starter model's answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from engine.__main__ import run
from tests.engine.generation.tokenizer_folders import byte_level_folder

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def endless(make_model: Any) -> Path:
    """A random model whose answers end only with the context: its tokenizer names no end token."""
    model = make_model(seed=5, vocab_size=410, max_position_embeddings=100_000)
    byte_level_folder(model.path)
    config = model.path / "tokenizer_config.json"
    kept = {key: value for key, value in json.loads(config.read_text()).items() if key != "eos_token"}
    config.write_text(json.dumps(kept))
    return model.path


def start(data_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "engine", "generate", *arguments],
        cwd=ROOT,
        env={**os.environ, "FIDDLER_DATA_DIR": str(data_dir)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def endlessly(data_dir: Path, folder: Path) -> subprocess.Popen[str]:
    arguments = ["--greedy", "--device", "cpu", "--context", "90000", "--max-tokens", "80000"]
    return start(data_dir, "--model", str(folder), "--prompt", "The fox", *arguments)


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to whole consoles, not to a process")
def test_ctrl_c_stops_with_the_answer_so_far(tmp_path: Path, endless: Path) -> None:
    with endlessly(tmp_path, endless) as process:
        assert process.stdout is not None
        begun = process.stdout.read(5)
        process.send_signal(signal.SIGINT)
        rest, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert begun
    assert rest.endswith("\n")
    assert "Traceback" not in err
    assert "tokens written" in err


def test_a_closed_pipe_ends_the_command_quietly(tmp_path: Path, endless: Path) -> None:
    with endlessly(tmp_path, endless) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(5)
        process.stdout.close()
        err = process.stderr.read()
        process.wait(timeout=60)
    assert process.returncode == 141
    assert "Traceback" not in err
    assert "Exception ignored" not in err


@pytest.mark.skipif(os.name == "nt", reason="needs a Unix shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_no_harm(tmp_path: Path, endless: Path, closed: str) -> None:
    command = f'exec "$0" -m engine generate --model "$1" --device cpu --prompt - --max-tokens 2 {closed}'
    process = subprocess.run(
        ["sh", "-c", command, sys.executable, str(endless)],
        cwd=ROOT,
        env={**os.environ, "FIDDLER_DATA_DIR": str(tmp_path)},
        input=b"The fox",
        capture_output=True,
    )
    assert process.returncode == 0, process.stderr.decode()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no file here is always full")
def test_a_full_disk_below_stdout_is_told(tmp_path: Path, endless: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.run(
            [sys.executable, "-m", "engine", "plan", "--model", str(endless)],
            cwd=ROOT,
            env={**os.environ, "FIDDLER_DATA_DIR": str(tmp_path)},
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
    assert process.returncode == 1
    assert "The result could not be written." in process.stderr
    assert "Traceback" not in process.stderr
    assert "Exception ignored" not in process.stderr


@pytest.mark.starter
def test_the_starter_names_the_capital_of_france(tmp_path: Path, starter_dir: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "starter").symlink_to(starter_dir, target_is_directory=True)
    arguments = ["--model", "starter", "--prompt", "What is the capital of France?", "--greedy"]
    with start(
        tmp_path, *arguments, "--max-tokens", "40", "--policy", "paper", "--vram-budget", "2"
    ) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "Paris" in out
    assert len(out.splitlines()) == 1


def test_ctrl_c_before_the_command_listens_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(ModuleType):
        """A module in whose import the user presses Ctrl-C."""

        def __getattr__(self, name: str) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "engine.cli", Interrupted("engine.cli"))
    assert run() == 130
