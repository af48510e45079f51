"""Recording a graph, with one that does as it is told: which error is raised when several happen."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest
import torch

# Looked for, not imported: tests of kernels choose how to run them before the first import.
pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")


class Graph:
    """A CUDA graph that tells what is asked of it, and whose end may fail."""

    def __init__(self, told, failure):
        self._told = told
        self._failure = failure

    def capture_begin(self, pool, capture_error_mode):
        self._told.append("begin")

    def capture_end(self):
        self._told.append("end")
        if self._failure:
            raise self._failure


@pytest.fixture
def capture(monkeypatch):
    """`capture(work, failure)`: record `work` with a graph whose end fails so; what was told, in order."""
    from engine.models.gpu import graphs

    monkeypatch.setattr(
        torch.cuda, "current_stream", lambda device: SimpleNamespace(synchronize=lambda: None)
    )
    told = []

    def run(work, failure=None):
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: Graph(told, failure))
        made = SimpleNamespace(buffers=SimpleNamespace(x=torch.zeros(1)), _spans=[], _pool=None)
        graphs.StepGraphs._capture(made, lambda: work(told))
        return told

    return run


def fails_when_recorded(error):
    def work(told):
        told.append("work")
        if "begin" in told:
            raise error

    return work


def test_the_work_runs_once_before_it_is_recorded(capture):
    assert capture(lambda told: told.append("work")) == ["work", "begin", "work", "end"]


def test_an_error_of_the_work_ends_the_recording(capture):
    error = torch.OutOfMemoryError("the first")
    with pytest.raises(torch.OutOfMemoryError) as caught:
        capture(fails_when_recorded(error))
    assert caught.value is error
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("first", [torch.OutOfMemoryError("the first"), KeyboardInterrupt("the first")])
def test_an_error_of_the_work_is_not_hidden_by_one_of_the_end(capture, first):
    """Memory that ran out is answered by taking less, which a capture that became invalid is not."""
    with pytest.raises(type(first)) as caught:
        capture(fails_when_recorded(first), RuntimeError("operation failed due to a previous error"))
    assert caught.value is first
    assert first.__notes__ == ["Ending the capture failed, too: operation failed due to a previous error"]


def test_an_error_of_the_end_alone_is_raised(capture):
    with pytest.raises(RuntimeError, match="invalid"):
        capture(lambda told: None, RuntimeError("the capture is invalid"))
