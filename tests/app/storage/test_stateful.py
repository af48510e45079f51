"""Any sequence of operations, compared with a model of lists and dicts, restarts included."""

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from app.storage import MessageState, StorageError, open_store
from app.storage.branches import Node, Tree
from tests.app.storage.model import ModelChat, ModelMessage, take_back

TEXT = st.text(max_size=20)
WORDS = st.text("abAB%_ é", max_size=6)  # small, so that searches find something


class Chats(RuleBasedStateMachine):
    chats = Bundle("chats")
    answers = Bundle("answers")

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.path = Path(self.folder.name) / "chats.sqlite3"
        self.model: dict[int, ModelChat] = {}
        self.order: list[int] = []  # the latest change first
        self.store = open_store(self.path, self.clock).store
        self.store._db.execute("PRAGMA synchronous = OFF")  # durability is test_killed's matter

    def clock(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    def touch(self, chat: int) -> None:
        self.order.remove(chat)
        self.order.insert(0, chat)

    def owner(self, message_id: int) -> tuple[int, ModelMessage] | None:
        found = (
            (chat, message)
            for chat, model in self.model.items()
            for message in model.messages
            if message.id == message_id
        )
        return next(found, None)

    @rule(target=chats, title=WORDS, system_prompt=TEXT)
    def create(self, title: str, system_prompt: str) -> int:
        chat = self.store.create_conversation(title, system_prompt=system_prompt)
        self.model[chat.id] = ModelChat(" ".join(title.split()) or "New chat", system_prompt)
        self.order.insert(0, chat.id)
        return chat.id

    @rule(chat=chats, title=WORDS)
    def rename(self, chat: int, title: str) -> None:
        if chat not in self.model or not title.split():
            with pytest.raises(StorageError):
                self.store.rename(chat, title)
        else:
            self.store.rename(chat, title)
            self.model[chat].title = " ".join(title.split())

    @rule(chat=chats)
    def delete(self, chat: int) -> None:
        if chat in self.model:
            self.model[chat].deleted = self.store.delete(chat).deleted
            assert self.model[chat].deleted is not None

    @rule(chat=chats)
    def undelete(self, chat: int) -> None:
        if chat in self.model:
            self.store.undelete(chat)
            self.model[chat].deleted = None

    @rule(days=st.integers(0, 9))
    def purge(self, days: int) -> None:
        self.now += timedelta(days=days)
        self.forget(self.now + timedelta(seconds=1))
        self.store.purge()

    def forget(self, now: datetime) -> None:
        limit = now - timedelta(days=7)
        old = [chat for chat, model in self.model.items() if model.deleted and model.deleted <= limit]
        for chat in old:
            del self.model[chat]
            self.order.remove(chat)

    @rule(chat=chats, content=WORDS, role=st.sampled_from(["user", "assistant", "system"]))
    def add(self, chat: int, content: str, role: str) -> None:
        if chat in self.model:
            row = self.store.add_message(chat, role, content)  # type: ignore[arg-type]
            self.model[chat].put(ModelMessage(row.id, role, content))
            self.touch(chat)

    @rule(target=answers, chat=chats, question=TEXT)
    def ask(self, chat: int, question: str) -> object:
        if chat not in self.model:
            return multiple()
        exchange = self.store.begin_exchange(chat, question)
        model = self.model[chat]
        model.put(ModelMessage(exchange.history[-1].id, "user", question))
        assert [row.id for row in exchange.history] == [row.id for row in self.model[chat].active()]
        model.put(ModelMessage(exchange.answer.id, "assistant", "", "streaming"))
        self.touch(chat)
        return exchange.answer.id

    def choose(self, chat: int, number: int, *, shown: bool = True) -> ModelMessage | None:
        model = self.model.get(chat)
        rows = [] if model is None else model.active() if shown else model.messages
        return rows[number % len(rows)] if rows else None

    @rule(target=answers, chat=chats, number=st.integers(0, 9), text=WORDS)
    def edit(self, chat: int, number: int, text: str) -> object:
        row = self.choose(chat, number)
        if row is None or row.role != "user":
            return multiple()
        exchange = self.store.begin_edited(row.id, text)
        model = self.model[chat]
        model.edits.pop(row.id, None)
        for later in model.active():
            later.active = later.id < row.id
        model.put(ModelMessage(exchange.history[-1].id, "user", text))
        model.put(ModelMessage(exchange.answer.id, "assistant", "", "streaming"))
        self.touch(chat)
        return exchange.answer.id

    @rule(chat=chats, number=st.integers(0, 9), text=WORDS)
    def put_right(self, chat: int, number: int, text: str) -> None:
        row = self.choose(chat, number)
        if row is not None and row.role == "assistant":
            rows = self.store.edit_answer(row.id, text)
            self.model[chat].edits.pop(row.id, None)
            for later in self.model[chat].active():
                later.active = later.id < row.id
            self.model[chat].put(ModelMessage(rows[-1].id, "assistant", text))
            self.touch(chat)

    @rule(chat=chats, number=st.integers(0, 9))
    def turn_over(self, chat: int, number: int) -> None:
        row = self.choose(chat, number, shown=False)
        if row is not None:
            path = self.model[chat].tree().path_through(row.id)
            assert [shown.id for shown in self.store.show_version(row.id)] == list(path)
            self.model[chat].show(path)

    @rule(chat=chats, number=st.integers(0, 9))
    def delete_turn_and_undo(self, chat: int, number: int) -> None:
        row = self.choose(chat, number)
        if row is None:
            return
        model = self.model[chat]
        turn = model.tree().turn_of(row.id)
        above = model.tree().nodes[turn[0]].parent
        rest = Tree(
            Node(node.id, above if node.parent in turn else node.parent, node.role)
            for node in model.tree().nodes.values()
            if node.id not in turn
        )
        kept = [shown.id for shown in model.active() if shown.id not in turn]
        deleted, left = self.store.delete_turn(row.id)
        assert [shown.id for shown in left] == [*kept, *rest.newest_after(kept[-1] if kept else None)]
        shown = [again.id for again in self.store.restore_turn(deleted.id)[1]]
        assert turn[0] in shown
        model.show(tuple(shown))
        self.touch(chat)

    @rule(chat=chats, number=st.integers(0, 9), text=TEXT)
    def begin_to_edit(self, chat: int, number: int, text: str) -> None:
        row = self.choose(chat, number)
        if row is not None:
            self.store.save_edit(row.id, text)
            self.model[chat].edits.pop(row.id, None)
            if text:
                self.model[chat].edits[row.id] = text

    @rule(chat=chats, pinned=st.booleans())
    def pin(self, chat: int, pinned: bool) -> None:
        if chat in self.model:
            assert self.store.pin(chat, pinned).pinned is pinned
            self.model[chat].pinned = pinned

    @rule(chat=chats, archived=st.booleans())
    def archive(self, chat: int, archived: bool) -> None:
        if chat in self.model:
            assert self.store.archive(chat, archived).archived is archived
            self.model[chat].archived = archived

    @rule(target=chats, chat=chats)
    def duplicate(self, chat: int) -> object:
        if chat not in self.model:
            return multiple()
        copy = self.store.duplicate(chat)
        model = self.model[chat]
        rows = self.store.messages(copy.id, all_versions=True)
        ids = {old.id: new.id for old, new in zip(model.messages, rows, strict=True)}
        self.model[copy.id] = ModelChat(f"{model.title} (copy)", model.system_prompt)
        for old in model.messages:
            state = "interrupted" if old.state == "streaming" else old.state
            parent = None if old.parent is None else ids[old.parent]
            self.model[copy.id].messages.append(
                ModelMessage(ids[old.id], old.role, old.content, state, old.active, parent)
            )
        self.order.insert(0, copy.id)
        return copy.id

    @rule()
    def index(self) -> None:
        self.store.index_some()

    @rule(target=answers, chat=chats)
    def regenerate(self, chat: int) -> object:
        active = self.model[chat].active() if chat in self.model else []
        users = [index for index, message in enumerate(active) if message.role == "user"]
        if not users:
            with pytest.raises(StorageError):
                self.store.begin_regeneration(chat)
            return multiple()
        exchange = self.store.begin_regeneration(chat)
        assert [row.id for row in exchange.history] == [row.id for row in active[: users[-1] + 1]]
        for message in active[users[-1] + 1 :]:
            message.active = False
        self.model[chat].put(ModelMessage(exchange.answer.id, "assistant", "", "streaming"))
        self.touch(chat)
        return exchange.answer.id

    @rule(chat=chats)
    def take_back(self, chat: int) -> None:
        active = self.model[chat].active() if chat in self.model else []
        users = [index for index, message in enumerate(active) if message.role == "user"]
        if take_back(self.store, chat):
            for message in active[users[-1] :]:
                message.active = False

    @rule(answer=answers, content=WORDS)
    def partial(self, answer: int, content: str) -> None:
        found = self.owner(answer)
        if found is None:
            with pytest.raises(StorageError):
                self.store.update_partial(answer, content)
        else:
            self.store.update_partial(answer, content)
            found[1].content = content

    @rule(
        answer=consumes(answers),
        content=WORDS,
        state=st.sampled_from([MessageState.COMPLETE, MessageState.STOPPED, MessageState.ERROR]),
    )
    def finish(self, answer: int, content: str, state: MessageState) -> None:
        found = self.owner(answer)
        if found is None:
            with pytest.raises(StorageError):
                self.store.finish_message(answer, content, state)
        else:
            self.store.finish_message(answer, content, state)
            found[1].content, found[1].state = content, state.value
            self.touch(found[0])

    @rule(chat=chats, text=TEXT)
    def draft(self, chat: int, text: str) -> None:
        if chat in self.model:
            self.store.save_draft(chat, text)
            self.model[chat].draft = text

    @rule(chat=chats, text=TEXT)
    def let_wait(self, chat: int, text: str) -> None:
        if chat in self.model:
            self.store.save_next(chat, text)
            self.model[chat].waiting = text

    @rule(chat=chats)
    def take_back_waiting(self, chat: int) -> None:
        if chat in self.model:
            model = self.model[chat]
            model.draft = "\n".join(text for text in (model.waiting, model.draft) if text)
            model.waiting = ""
            assert self.store.take_back_next(chat) == model.draft

    @rule(sought=WORDS)
    def search(self, sought: str) -> None:
        if not sought.split():
            return  # that is the list
        expected = [
            chat for chat in self.order if not self.model[chat].deleted and self.model[chat].contains(sought)
        ]
        assert [line.conversation.id for line in self.store.conversations(sought)] == expected

    @precondition(lambda self: self.model)
    @rule()
    def restart(self) -> None:
        streaming = {
            message.id
            for model in self.model.values()
            for message in model.messages
            if message.state == "streaming"
        }
        self.store.close()
        opened = open_store(self.path, self.clock)
        dropped: set[int] = set()
        for model in self.model.values():
            dropped |= model.drop_wordless()
        assert {row.id for row in opened.interrupted} == streaming - dropped
        self.store = opened.store
        self.store._db.execute("PRAGMA synchronous = OFF")
        self.forget(self.now)  # opening purges
        for model in self.model.values():
            for message in model.messages:
                if message.id in streaming:
                    message.state = "interrupted"

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "store"):
            return
        lines = self.store.conversations()
        alive = [chat for chat in self.order if not self.model[chat].deleted]
        listed = [chat for chat in alive if not self.model[chat].archived]
        assert [line.conversation.id for line in lines] == [
            chat for pinned in (True, False) for chat in listed if self.model[chat].pinned is pinned
        ]
        assert self.store.archived_count() == len(alive) - len(listed)
        for line in lines:
            assert line.messages == len(self.model[line.conversation.id].active())
        for chat, model in self.model.items():
            conversation = self.store.conversation(chat)
            assert (conversation.title, conversation.system_prompt) == (model.title, model.system_prompt)
            assert conversation.deleted == model.deleted
            assert self.store.draft(chat) == model.draft
            assert self.store.next_message(chat) == model.waiting
            assert self.store.edits(chat) == model.edits
            rows = self.store.messages(chat, all_versions=True)
            assert [
                (row.id, row.role, row.content, row.state.value, row.active, row.parent) for row in rows
            ] == [
                (row.id, row.role, row.content, row.state, row.active, row.parent) for row in model.messages
            ]
            tree = model.tree()
            assert [row.versions for row in rows] == [tree.versions(row.id) for row in rows]
            assert [row.id for row in self.store.messages(chat)] == [row.id for row in model.active()]

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()


TestChats = Chats.TestCase
TestChats.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
