"""Results in the host's memory are added to the rows they belong to."""

import pytest
import torch

from kernels.gpu.host import add_from_host


@pytest.mark.parametrize("width", [1, 48, 1024, 2500])
@pytest.mark.parametrize("count", [0, 1, 7])
def test_rows_are_added_where_they_belong(device, width, count):
    generator = torch.Generator().manual_seed(width + count)
    before = torch.randn(9, width, generator=generator)
    values = torch.randn(count, width, generator=generator)
    rows = torch.randperm(9, generator=generator)[:count]
    out = before.to(device, copy=True)
    add_from_host(out, values.pin_memory() if device.type == "cuda" else values, rows.to(device))
    expected = before.clone()
    expected[rows] += values
    assert torch.equal(out.cpu(), expected)


def test_what_does_not_belong_together_is_refused(device):
    out, values = torch.zeros(4, 8, device=device), torch.zeros(2, 8)
    rows = torch.zeros(2, dtype=torch.int64, device=device)
    for wrong in (
        (out.half(), values, rows),
        (out, torch.zeros(2, 7), rows),
        (out, values, rows[:1]),
        (out, values, rows.int()),
        (out.t(), values.t(), rows),
    ):
        with pytest.raises(ValueError, match=r"added|contiguous"):
            add_from_host(*wrong)
