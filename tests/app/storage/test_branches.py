from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.storage.branches import Node, Tree


@st.composite
def trees(draw: Callable[..., Any]) -> Tree:
    """Any tree of alternating roles with one way through it that is shown."""
    parents: list[int | None] = []
    for place in range(1, draw(st.integers(1, 12)) + 1):
        parents.append(draw(st.none() | st.integers(1, place - 1)) if place > 1 else None)
    roles: list[str] = []
    for parent in parents:
        roles.append("assistant" if parent is not None and roles[parent - 1] == "user" else "user")
    bare = Tree(Node(place + 1, parent, roles[place]) for place, parent in enumerate(parents))
    shown = bare.path_through(draw(st.sampled_from(list(bare.nodes))))
    return Tree(Node(node.id, node.parent, node.role, node.id in shown) for node in bare.nodes.values())


@given(trees())
def test_each_message_is_among_its_versions_and_they_agree(tree: Tree) -> None:
    for message in tree.nodes:
        versions = tree.versions(message)
        assert message in versions
        assert list(versions) == sorted(versions)
        assert all(tree.versions(other) == versions for other in versions)
        assert sum(tree.nodes[other].active for other in versions) <= 1


@given(trees())
def test_a_way_through_a_message_is_whole(tree: Tree) -> None:
    for message in tree.nodes:
        path = tree.path_through(message)
        assert message in path
        assert list(path) == sorted(path)
        assert tree.nodes[path[0]].parent is None
        assert [tree.nodes[place].parent for place in path[1:]] == list(path[:-1])
        assert tree.children(path[-1]) == ()


@given(trees())
def test_every_message_can_be_reached_by_turning_over_versions(tree: Tree) -> None:
    start = tree.path_through(max(tree.nodes))
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        path = waiting.pop()
        for message in path:
            if message not in seen:
                seen.add(message)
                waiting += [tree.path_through(other) for other in tree.versions(message)]
    assert seen == set(tree.nodes)


@given(trees())
def test_a_turn_is_a_question_with_its_answers(tree: Tree) -> None:
    for message in tree.nodes:
        turn = tree.turn_of(message)
        assert message in turn
        question = tree.nodes[turn[0]]
        assert all(tree.nodes[answer].parent == question.id for answer in turn[1:])
        left_out = set(tree.children(question.id)) - set(turn)
        assert all(tree.nodes[place].role != "assistant" for place in left_out)


def test_where_damage_lost_the_order_shown_messages_are_not_versions_of_each_other() -> None:
    tree = Tree([Node(1, None, "user", True), Node(2, 99, "user", True), Node(3, 99, "user", False)])
    assert tree.versions(1) == (1, 3)
    assert tree.versions(2) == (2, 3)
    assert tree.path_through(2) == (2,)


def test_going_back_to_an_older_version_shows_what_followed_it_last() -> None:
    tree = Tree(
        [
            Node(1, None, "user"),
            Node(2, 1, "assistant"),
            Node(3, 2, "user"),
            Node(4, 2, "user"),
            Node(5, 4, "assistant"),
            Node(6, 1, "assistant", True),
        ]
    )
    assert tree.path_through(2) == (1, 2, 4, 5)
    assert tree.versions(6) == (2, 6)
    assert tree.newest_after(None) == (1, 6)


def test_damage_that_lets_messages_follow_in_a_circle_ends_all_the_same() -> None:
    tree = Tree([Node(1, 1, "user"), Node(2, 3, "assistant"), Node(3, 2, "user")])
    assert [tree.path_through(message) for message in (1, 2, 3)] == [(1,), (2, 3), (2, 3)]
    assert tree.newest_after(None) == (2, 3)
