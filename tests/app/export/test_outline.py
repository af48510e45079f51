from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from app.export.outline import outline
from app.storage import MessageRow, MessageState

MOMENT = datetime(2026, 1, 2, tzinfo=UTC)


def row(number: int, parent: int | None, *, active: bool = True) -> MessageRow:
    return MessageRow(
        number, 1, "user", str(number), MessageState.COMPLETE, MOMENT, parent=parent, active=active
    )


#   1 ── 2 (off) ── 3 (off)
#     │          └─ 4 (off)
#     └─ 5 ── 6
#          └─ 7 (off)      8 (off) follows 6
TREE = [
    row(1, None),
    row(2, 1, active=False),
    row(3, 2, active=False),
    row(4, 2, active=False),
    row(5, 1),
    row(6, 5),
    row(7, 5, active=False),
    row(8, 6, active=False),
]


def test_what_is_shown() -> None:
    assert [entry.message.id for entry in outline(TREE, branches=False)] == [1, 5, 6]


def test_other_versions_stand_where_they_branch_off() -> None:
    found = [
        (entry.message.id, entry.depth, entry.begins, entry.version, entry.versions)
        for entry in outline(TREE, branches=True)
    ]
    assert found == [
        (1, 0, False, 1, 1),
        (5, 0, False, 2, 2),
        (2, 1, True, 1, 2),
        (3, 1, False, 1, 2),
        (4, 2, True, 2, 2),
        (6, 0, False, 1, 2),
        (7, 1, True, 2, 2),
        (8, 1, True, 1, 1),  # taken back
    ]


@given(st.lists(st.tuples(st.none() | st.integers(0, 20), st.booleans()), max_size=12))
def test_every_message_comes_once_whatever_damage_there_is(shape: list[tuple[int | None, bool]]) -> None:
    rows = [
        row(number, parent if parent is not None and parent < number else None, active=active)
        for number, (parent, active) in enumerate(shape)
    ]
    found = sorted(entry.message.id for entry in outline(rows, branches=True))
    assert found == [message.id for message in rows]
