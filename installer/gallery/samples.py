"""What stands in the pictures: chats with everything that has to be drawn, and figures as a large model's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from app.attachments.form import Attachment, compose
from app.storage.figures import params_to_json, stats_to_json
from app.storage.incoming import IncomingChat, IncomingMessage
from app.storage.rows import MessageState
from engine.accounting import Part, TimeSplit
from engine.events import ExpertHits, GenerationStats, Phase, Place
from engine.pace import Pace
from engine.params import GenerationParams
from engine.status import EngineStatus
from tests.app.fakes import make_status

LAYERS, EXPERTS = 32, 8
MODEL = "Mixtral-8x7B-Instruct-v0.1"
WHEN = datetime(2026, 3, 12, 9, 30, tzinfo=UTC)


def _text(name: str) -> str:
    return (Path(__file__).parent / "texts" / f"{name}.md").read_text(encoding="utf-8")


CODE = _text("code")
TABLE = _text("table")
MATHS = _text("maths")
EAST_ASIAN = _text("east-asian")
ARABIC = _text("arabic")
NOTES = Attachment("measurements-of-all-machines.csv", "machine,tokens\n" + "laptop,1.9\n" * 40)
SCRIPT = Attachment("placement.py", "def place(experts):\n    return sorted(experts)\n")


def figures(tokens: int = 412, *, rate: float = 12.4, gpu: bool = True) -> GenerationStats:
    """Figures of an answer by a model whose popular experts are on the graphics card."""
    dice = np.random.default_rng(tokens)
    popularity = dice.dirichlet(np.full(EXPERTS, 1.4), LAYERS)
    uses = dice.multinomial(2 * tokens, popularity)
    counts = np.zeros((len(Phase), LAYERS, EXPERTS, len(Place)), dtype=np.int64)
    counts[Phase.DECODE, ..., Place.CPU] = uses
    if gpu:
        here = residency()
        counts[Phase.DECODE, ..., Place.GPU] = np.where(here, uses, 0)
        counts[Phase.DECODE, ..., Place.CPU] = np.where(here, 0, uses * 3 // 4)
        counts[Phase.DECODE, ..., Place.STREAMED] = np.where(here, 0, uses - uses * 3 // 4)
    seconds = tokens / rate
    shares = {
        Part.CPU_EXPERTS: 0.58,
        Part.COPIES: 0.17,
        Part.ATTENTION: 0.12,
        Part.GPU_EXPERTS: 0.07,
        Part.LAUNCH: 0.03,
        Part.PYTHON: 0.03,
    }
    if not gpu:
        shares = {Part.CPU_EXPERTS: 0.71, Part.ATTENTION: 0.25, Part.PYTHON: 0.04}
    parts = dict.fromkeys(Part, 0.0) | {part: share * seconds for part, share in shares.items()}
    steps = np.cumsum(dice.normal(1 / rate, 0.06 / rate, tokens // 4) * 4)
    return GenerationStats(
        prompt_tokens=1834,
        reused_tokens=1210,
        generated_tokens=tokens,
        time_to_first_token=1.42,
        prefill_seconds=1.36,
        decode_seconds=seconds,
        tokens_per_second=rate,
        tokens_per_second_now=rate + 0.7,
        prefill_tokens_per_second=458.0,
        context_used=1834 + tokens,
        context_length=8192,
        seed=271828,
        hits=ExpertHits(counts),
        time=TimeSplit(tokens, seconds, parts),
        prediction_error=0.06,
        pace=Pace(4, tuple(float(step) for step in steps)),
    )


def residency() -> Any:
    """Which experts are on the graphics card."""
    return np.random.default_rng(5).random((LAYERS, EXPERTS)) < 0.22


def workstation() -> EngineStatus:
    """A large model on a computer with a graphics card."""
    return make_status(
        model_name=MODEL,
        layers=LAYERS,
        experts=EXPERTS,
        residency=residency(),
        ram_used=87 * 2**30,
        vram_used=21 * 2**30,
        vram_budget=22 * 2**30,
        threads=16,
        isa="avx512_bf16",
        device="NVIDIA GeForce RTX 4090",
        has_gpu=True,
        context_length=8192,
        is_starter=False,
        gpu_index=0,
        calibrated=True,
        prediction_error=0.06,
    )


def asked(text: str, parent: int | None = None, **more: Any) -> IncomingMessage:
    """A question."""
    return IncomingMessage("user", text, WHEN, parent, **more)


def answered(text: str, parent: int, **more: Any) -> IncomingMessage:
    """An answer with figures."""
    stats = more.pop("stats", None) or figures(300 + len(text) % 200)
    return IncomingMessage(
        "assistant",
        text,
        WHEN,
        parent,
        finished=WHEN + timedelta(seconds=40),
        model=MODEL,
        reason=more.pop("reason", "eos"),
        params=params_to_json(GenerationParams()),
        stats=stats_to_json(stats),
        **more,
    )


def chat(title: str, *messages: IncomingMessage, **more: Any) -> IncomingChat:
    """A chat."""
    return IncomingChat(title, WHEN, WHEN, MODEL, messages=messages, **more)


def talk(title: str, question: str, answer: str, **more: Any) -> IncomingChat:
    """A chat of one question and its answer."""
    return chat(title, asked(question), answered(answer, 0), **more)


CODE_CHAT = talk("A cache in Python", "Write a small LRU cache.", CODE)
TABLE_CHAT = talk("Methods compared", "Compare the ways to offload experts, as a table.", TABLE)
MATHS_CHAT = talk("The formula", "What does the policy minimise?", MATHS)
EAST_ASIAN_CHAT = talk("为什么天空是蓝色的？", "为什么天空是蓝色的？하늘은 왜 파란가요?", EAST_ASIAN)
ARABIC_CHAT = talk("لماذا السماء زرقاء؟", "لماذا السماء زرقاء؟", ARABIC, pinned=True)
BRANCHES_CHAT = chat(
    "Three answers",
    asked("Name a good book."),
    answered("*Middlemarch*, by George Eliot.", 0, active=False),
    answered("*The Left Hand of Darkness*, by Ursula K. Le Guin.", 0),
    answered("*Invisible Cities*, by Italo Calvino.", 0, active=False),
    asked("Why that one?", 2),
    asked("And a short one?", 2, active=False),
    answered("Because it asks what is left of us", 4, state=MessageState.STOPPED, reason="cancelled"),
)
FILES_CHAT = chat(
    "Two files",
    asked(compose([NOTES, SCRIPT], "Which machine is fastest, and does the program agree?")),
    answered("The workstation is: **12.4** tokens per second. The program agrees.", 0),
)
CHATS = (
    talk("Old and archived", "Hello?", "Hello.", archived=True),
    talk(
        "A recipe for bread with a title that is much longer than the list beside it is wide",
        "Bread?",
        "Flour.",
    ),
    TABLE_CHAT,
    MATHS_CHAT,
    EAST_ASIAN_CHAT,
    ARABIC_CHAT,
    CODE_CHAT,
    FILES_CHAT,
    BRANCHES_CHAT,
)
