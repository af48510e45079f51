"""In which order a GPU may do what a CudaStream enqueues: for all timings, with streams that keep clocks.

Each stream counts its operations. An event carries what its stream had seen, and whoever waits for it has
seen that, too (vector clocks): an operation is certain to come before another if that one's stream has seen
it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.experts.bank import ExpertBank
from engine.experts.slots import GpuExperts
from engine.experts.stream import CudaStream
from engine.stats import HitCounters

LAYERS, EXPERTS = 2, 4


class Streams:
    """The streams of a GPU that is not there, and the operations with its places: (place, write, clock)."""

    def __init__(self):
        self.compute = self.current = Stream()
        self.done = []

    def use(self, place, write):
        stream = self.current
        stream.seen[stream] += 1
        self.done.append((place, write, stream, Counter(stream.seen)))

    @contextmanager
    def entered(self, stream):
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def check(self):
        """Of two operations with a place, one of them a write, the first to be enqueued also comes first."""
        for number, (place, write, stream, seen) in enumerate(self.done):
            for other, other_write, _, later in self.done[number + 1 :]:
                if other == place and (write or other_write):
                    assert later[stream] >= seen[stream]


class Stream:
    def __init__(self, *_):
        self.seen = Counter()

    def wait_event(self, event):
        self.seen |= event.seen  # the greater of each


class Event:
    streams = None

    def __init__(self, enable_timing=False):
        self.seen = Counter()

    def record(self, stream=None):
        self.seen = Counter((stream or self.streams.current).seen)

    def query(self):
        return True

    def elapsed_time(self, other):
        return 1.0


@pytest.fixture
def streams(monkeypatch):
    made = Streams()
    monkeypatch.setattr(Event, "streams", made)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "stream", made.entered)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: made.current)
    return made


@pytest.fixture(scope="module")
def bank(make_model):
    return ExpertBank(make_model().config)


uses = st.tuples(
    st.integers(0, LAYERS - 1),
    st.integers(0, EXPERTS - 1),
    st.sampled_from([None, (0, 1), (1, 2)]),
    st.sampled_from(["used", "used", "begun ahead", "fails"]),
)


@given(st.lists(uses, max_size=25), st.integers(1, 3))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_copy_overtakes_work_with_what_was_there_and_no_work_its_copy(streams, bank, program, slots):
    streams.__init__()
    gpu = GpuExperts(bank.config, torch.device("cpu"), np.zeros((LAYERS, EXPERTS), dtype=bool), slots=slots)
    copies = CudaStream(bank, gpu, HitCounters(LAYERS, EXPERTS))
    failing = False

    def copy(source, target, pinned):
        if failing:
            raise torch.OutOfMemoryError("no pinned memory")
        place = (target.data_ptr() - gpu.data.data_ptr()) // gpu.data.stride(0)
        streams.use(place, write=True)

    copies._copy = copy
    for layer, expert, panels, how in program:
        failing = how == "fails"
        try:
            place = copies.fetch(layer, expert, panels)
        except torch.OutOfMemoryError:
            assert gpu.place(layer, expert) is None
            continue
        if how == "begun ahead":
            continue
        copies.wait(place)
        streams.use(place, write=False)
        copies.release(place)
    streams.check()


def test_the_check_finds_what_is_not_ordered(streams):
    streams.use(0, write=True)
    with streams.entered(Stream()):
        streams.use(0, write=False)
    with pytest.raises(AssertionError):
        streams.check()
