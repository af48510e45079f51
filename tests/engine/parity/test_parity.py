"""Our logits against one full forward of transformers: prefill and decode, every policy and placement."""

import numpy as np
import pytest
import torch

from engine.events import Phase, Place
from engine.latency import Curve, LatencyModel, Together
from engine.models.loader import load_model
from engine.options import POLICIES, LoadOptions
from engine.placement import Placement
from kernels.cpu import Isa, available_isas

pytestmark = pytest.mark.slow
CASES = 40
PLACEMENTS = ["none", "some", "all"]
FLOAT32 = [isa for isa in (Isa.PORTABLE, Isa.AVX2, Isa.AVX512) if isa in available_isas()]
ROUTER_MARGIN = 2**-7  # below it, bf16 rounding may choose another expert, in transformers as in ours


# A machine on which copying an expert pays from three tokens on, and sharing two pays always.
COSTS = LatencyModel(
    Curve.fit([(1, 1.0), (2, 2.0), (4, 4.0)]),
    other_decode=1.0,
    gpu=Curve.fit([(1, 0.5)]),
    transfer=2.0,
    together=Together((1,), (1.2,), (2.2,)),
    copy_start=0.01,
)


def placement(kind, config, seed):
    shape = (config.num_layers, config.num_experts)
    if kind == "some":
        return Placement(np.random.default_rng(seed).random(shape) < 0.5)
    return Placement(np.full(shape, kind == "all"))


def load(case, kind, *, isa=None, device="cpu", gpu_format=None):
    """The case's model with experts placed on a second device, which is the CPU where `device` is."""
    second = torch.device("cpu") if device == "cpu" else None
    options = LoadOptions(threads=1 if isa == Isa.PORTABLE else 2, device=device)
    places = placement(kind, case.config, case.number)
    return load_model(
        case.path, options, places, costs=COSTS, isa=isa, expert_device=second, gpu_format=gpu_format
    )


def run(loaded, case, policy, chunk):
    """Logits of every position: the prompt in chunks, then token by token."""
    loaded.executor.policy = policy
    loaded.counters.reset()
    cache = loaded.model.new_cache(len(case.ids))
    prompt = case.ids[: case.prompt]
    parts = [
        loaded.model.forward(part, cache, logits="all", phase=Phase.PREFILL) for part in prompt.split(chunk)
    ]
    parts += [loaded.model.forward(token[None], cache) for token in case.ids[case.prompt :]]
    return torch.cat(parts)


def check_hits(loaded, case, kind, policy):
    """The plan was carried out where it says, and every token reached its experts."""
    hits = loaded.counters.snapshot()
    decode = hits.counts[Phase.DECODE]
    assert decode.sum() == (len(case.ids) - case.prompt) * case.config.num_layers * case.config.top_k
    places = {place: hits.total(place) for place in Place}
    if policy != "makespan":
        assert places[Place.SPLIT] == 0
    if kind == "all":
        assert places[Place.STREAMED] == places[Place.CPU] == places[Place.SPLIT] == 0
    elif policy == "stream":
        assert places[Place.CPU] == 0
    elif policy == "cpu":
        assert places[Place.STREAMED] == 0
    elif policy == "makespan":
        divisible = case.config.intermediate_size > 3 * 32 and case.config.top_k > 1
        assert places[Place.SPLIT] > 0 or kind == "some" or not divisible
    elif kind == "none":
        assert decode[..., Place.STREAMED].sum() == 0  # one token never pays for a copy here
        assert decode[..., Place.CPU].sum() > 0


@pytest.mark.parametrize("number", range(CASES))
def test_float32(case, row_errors, report, number):
    """Norm of each logit row's error at most 1e-4 of its norm, on every instruction set and placement.

    The instruction sets and the way the prompt is cut take turns over policies and placements.
    """
    case = case(number)
    turn = number
    for kind in PLACEMENTS:
        for isa in FLOAT32:
            with load(case, kind, isa=isa) as loaded:
                for policy in POLICIES if isa != Isa.AVX512 else POLICIES[:1]:
                    turn += 1
                    logits = run(loaded, case, policy, case.chunk if turn % 2 else case.prompt)
                    worst = row_errors(logits, case.reference).max().item()
                    report(f"float32 error, {isa}", worst)
                    assert worst <= 1e-4, (kind, isa, policy)
                    check_hits(loaded, case, kind, policy)


def check_bf16(case, row_errors, report, loaded, title, policy, chunk):
    """Root mean square of the rows' errors at most 1.5 times that of transformers in bf16."""
    kept = case.margin >= ROUTER_MARGIN
    ours = row_errors(run(loaded, case, policy, chunk), case.reference)[kept].square().mean().sqrt()
    theirs = case.bf16_error[kept].square().mean().sqrt()
    report(f"bf16 error over transformers' own, {title}", (ours / theirs).item())
    assert ours <= 1.5 * theirs, (title, policy)


@pytest.mark.parametrize("number", range(CASES))
@pytest.mark.parametrize("isa", [Isa.AVX512_BF16, Isa.AMX])
def test_levels_that_round_to_bf16(case, row_errors, report, isa, number):
    if isa not in available_isas():
        pytest.skip(f"the CPU has no {isa}")
    case = case(number)
    for kind in ("none", "some"):
        with load(case, kind, isa=isa) as loaded:
            chunk = case.chunk if kind == "some" else case.prompt
            check_bf16(case, row_errors, report, loaded, f"{isa}, {kind} placed", "paper", chunk)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("number", range(CASES))
def test_cuda(case, row_errors, report, number):
    case = case(number)
    turn = number
    for kind in PLACEMENTS:
        with load(case, kind, device="cuda", gpu_format=torch.bfloat16) as loaded:
            for policy in POLICIES:
                turn += 1
                chunk = case.chunk if turn % 2 else case.prompt
                check_bf16(case, row_errors, report, loaded, f"CUDA, {kind} placed", policy, chunk)
                check_hits(loaded, case, kind, policy)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("number", range(CASES))
def test_cuda_in_float32(case, row_errors, report, number):
    """What small models compute in on a GPU, with the CPU's share in float32 too."""
    case = case(number)
    for kind in PLACEMENTS:
        with load(case, kind, isa=Isa.AVX2, device="cuda") as loaded:
            policy = POLICIES[number % len(POLICIES)]
            worst = row_errors(run(loaded, case, policy, case.chunk), case.reference).max().item()
            report("float32 error, CUDA", worst)
            assert worst <= 1e-4, kind


def test_few_positions_are_too_close_to_call(case, report):
    margins = torch.cat([case(number).margin for number in range(CASES)])
    share = (margins < ROUTER_MARGIN).double().mean().item()
    report(f"share of {len(margins)} positions left out of the bf16 comparison", share)
    assert share <= 0.05


def test_the_cases_cover_what_they_should(case):
    cases = [case(number) for number in range(CASES)]
    configs = [case.config for case in cases]
    assert {c.top_k for c in configs} == {1, 2, 3, 4}
    assert {min(c.num_experts for c in configs), max(c.num_experts for c in configs)} == {2, 16}
    assert {c.num_heads // c.num_kv_heads for c in configs} >= {1, 2, 3, 8}
    assert {c.tie_word_embeddings for c in configs} == {True, False}
    assert any(c.hidden_size % 32 and c.intermediate_size % 32 for c in configs)
    assert any(c.hidden_size % 2 for c in configs)
    assert {case.prompt for case in cases} >= {1, 300}
    windows = [(c.sliding_window, len(case.ids)) for c, case in zip(configs, cases, strict=True)]
    assert any(window is None for window, _ in windows)
    assert any(window is not None and window < length for window, length in windows)
    assert {"rope_parameters" in case.raw for case in cases} == {True, False}


@pytest.mark.parametrize("kind", ["none", "some"])
def test_later_tokens_change_nothing_before_them(case, kind):
    untied = (case for case in map(case, range(10)) if not case.config.tie_word_embeddings)
    case = max(untied, key=lambda case: case.prompt)  # untied: its logits are of order one
    other = case.ids[: case.prompt].clone()
    other[-1] = (other[-1] + 1) % case.config.vocab_size
    with load(case, kind, isa=Isa.PORTABLE) as loaded:
        for chunk in (case.prompt, 7):
            rows = []
            for ids in (case.ids[: case.prompt], other):
                cache = loaded.model.new_cache(len(ids))
                parts = [loaded.model.forward(part, cache, logits="all") for part in ids.split(chunk)]
                rows.append(torch.cat(parts))
            assert (rows[0][:-1] - rows[1][:-1]).abs().max() <= 1e-5
            assert (rows[0][-1] - rows[1][-1]).abs().max() > 1e-2
