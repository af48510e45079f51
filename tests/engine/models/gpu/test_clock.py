"""What the host waited for, from the times of events: with events and clocks that are set by hand."""

from types import SimpleNamespace

import pytest
import torch

from engine.accounting import Part, TimeAccount
from engine.models.gpu import clock as module
from engine.models.gpu.clock import DeviceClock


class Event:
    """Happens at the times that `times` tells, one after the other."""

    def __init__(self, times):
        self.times = times
        self.at = None

    def record(self, stream):
        self.at = self.times.pop(0)

    def synchronize(self):
        assert self.at is not None

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1e3 * (other.at - self.at)


@pytest.fixture
def machine(monkeypatch):
    """`machine.times`: when events happen; `machine.now`: the host's time; an account and its clock."""

    machine = SimpleNamespace(now=50.0, times=[])
    monkeypatch.setattr(module, "_event", lambda external=False: Event(machine.times))
    monkeypatch.setattr(module.time, "perf_counter", lambda: machine.now)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    machine.account = TimeAccount(lambda: machine.now)
    machine.clock = DeviceClock(machine.account, torch.device("cuda"))
    machine.account.begin_step()
    machine.times[:] = [1000.0]  # the device's clock, 950 ahead of the host's
    machine.clock.begin()
    return machine


def graph(machine, begin, end, experts=()):
    machine.times += [950 + begin, 950 + end]
    machine.clock.graph_begins()
    machine.clock.graph_ends(experts)


def parts(machine):
    machine.account.end_step()
    return {str(part): value for part, value in machine.account.snapshot().parts.items() if value}


def test_a_wait_is_divided_in_its_order(machine):
    copied = Event([952.0 + 50])
    copied.record(None)
    graph(machine, 55.0, 58.0)
    machine.now = 59.0
    machine.clock.mark(copied, Part.ROUTER_SYNC)
    assert parts(machine) == pytest.approx({"copies": 2, "gpu_experts": 3, "attention": 3, "router_sync": 1})


def test_layers_that_nobody_waited_for_are_told_apart_at_the_end(machine):
    for begin in (50.0, 54.0, 58.0):
        graph(machine, begin, begin + 1)
    machine.now = 60.0
    machine.clock.mark(None, Part.WAITING)
    assert parts(machine) == pytest.approx({"attention": 3, "gpu_experts": 6, "waiting": 1})


def test_what_ended_before_the_wait_began_is_not_part_of_it(machine):
    graph(machine, 50.0, 51.0)
    machine.now = 52.0
    machine.account.mark(Part.LAUNCH)
    graph(machine, 51.5, 53.0)
    machine.now = 53.5
    machine.clock.mark(None, Part.ROUTER_SYNC)
    assert parts(machine) == pytest.approx({"launch": 2, "attention": 1, "router_sync": 0.5})


def test_experts_within_a_graph_are_told_apart_from_the_rest(machine):
    """Also where the wait began in the middle of them."""
    spans = []
    for begin, end in ((51.0, 53.0), (55.0, 56.0)):
        machine.times += [950 + begin, 950 + end]
        span = module.Span.captured()
        span.begin.record(None)
        span.end.record(None)
        spans.append(span)
    machine.now = 52.0
    machine.account.mark(Part.LAUNCH)
    graph(machine, 50.0, 58.0, spans)
    machine.now = 58.5
    machine.clock.mark(None, Part.ROUTER_SYNC)
    assert parts(machine) == pytest.approx(
        {"launch": 2, "gpu_experts": 2, "attention": 4, "router_sync": 0.5}
    )
