"""A comparison with round numbers, as a machine might have measured it."""

from __future__ import annotations

from engine.bench.compare_points import Kind, Placing, Point, points
from engine.bench.compare_rows import POLICY_ORDER
from engine.bench.compare_store import Comparison, Record, Setup
from engine.bench.rates import Rates
from engine.units import GIB

RATES = Rates(read=110e9, cpu=100e9, copy=50e9, cpu_together=80e9, copy_together=40e9, gpu=4000e9)
MACHINE = {"cpu": "A CPU", "threads": 15, "isa": "amx", "gpu": "A GPU"}
# Seconds of a token by policy; prompts and beams are multiples.
TOKEN = {"paper": 0.2, "stream": 0.4, "cpu": 0.2, "makespan": 0.16}
FLOOR = 0.15


def setup(gpu: bool = True) -> Setup:
    machine = MACHINE if gpu else MACHINE | {"gpu": None}
    return Setup(dict(machine), "a model (random weights)", "bf16", 24 * GIB if gpu else None, "uniform")


def record(point: Point) -> Record:
    token = TOKEN[point.policy]
    if point.kind is Kind.PROMPT:
        return Record(point.scenario, point.policy, 5 * token, 1.0, 256.0, 1, 0.2, RATES)
    if point.kind is Kind.BEAMS:
        return Record(point.scenario, point.policy, 2 * token, 2 * FLOOR, 160.0, point.steps, 0.2, RATES)
    faster = 0.9 if point.placing is Placing.POPULAR else 1.0
    return Record(point.scenario, point.policy, faster * token, FLOOR, 64.0, point.steps, 0.2, RATES)


def full_comparison() -> Comparison:
    comparison = Comparison(setup())
    for point in points(POLICY_ORDER, full=True, placements=True):
        comparison.add(record(point))
    return comparison
