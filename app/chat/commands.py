"""What the menu's entries do with the chat that is shown, and where they lead the focus."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt

from app.chat.chats import ChatsController
from app.chat.page import ChatPage
from app.chat.session import ChatSession
from app.chat.sidebar import SideBar


class ChatCommands:
    """Each does nothing where there is no chat to do it with."""

    def __init__(
        self, session: ChatSession, sidebar: SideBar, chats: ChatsController, page: ChatPage
    ) -> None:
        self._session, self._sidebar, self._chats, self._page = session, sidebar, chats, page

    def new_chat(self) -> None:
        """Show an empty chat, ready to be written in."""
        self._session.new_chat()
        self._page.focus_composer()

    def rename(self) -> None:
        """Edit the chat's title in the list."""
        chat = self._session.conversation
        if chat is not None:
            self._sidebar.show()
            self._sidebar.rename(chat.id, archived=chat.archived)

    def pin(self) -> None:
        """Keep the chat at the top of the list, or no longer."""
        chat = self._session.conversation
        if chat is not None:
            self._chats.pin((chat.id,), not chat.pinned)

    def archive(self) -> None:
        """Put the chat away, or back onto the list."""
        chat = self._session.conversation
        if chat is not None:
            self._sidebar.show()  # the offer to undo it is there
            self._chats.archive((chat.id,), not chat.archived)

    def duplicate(self) -> None:
        """Copy the chat and show the copy."""
        if self._session.conversation is not None:
            self._chats.duplicate(self._session.conversation.id)

    def delete(self) -> None:
        """Delete the chat; it can be undone."""
        if self._session.conversation is not None:
            self._sidebar.show()
            self._chats.delete((self._session.conversation.id,))

    def parameters(self) -> None:
        """Change how the chat is answered."""
        self._page.parameters.open_parameters()

    def details(self) -> None:
        """Show how the last answer was written."""
        last = next((row for row in reversed(self._session.messages) if row.role == "assistant"), None)
        if last is not None:
            self._page.show_details(last.id)

    def go_on(self) -> None:
        """Continue the last answer where it ends."""
        last = self._session.messages[-1:]
        if last and last[0].role == "assistant" and last[0].content.strip():
            self._session.go_on(last[0].id)

    def edit_last(self) -> None:
        """Edit the last question at its place."""
        question = next((row for row in reversed(self._session.messages) if row.role == "user"), None)
        if question is not None:
            self._page.view.edit(question.id)

    def find(self) -> None:
        """Go to the search field."""
        self._sidebar.show()
        self._sidebar.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._sidebar.search.selectAll()

    def show_archive(self) -> None:
        """Show the archive in the list, or the chats again."""
        self._sidebar.show()
        self._sidebar.archive_button.toggle()
        self._sidebar.list.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def offer_undo(self, done: str, take_back: Callable[[], object]) -> None:
        """Say what was done, with a button that takes it back."""
        self._sidebar.show()
        self._sidebar.undo.offer(done, take_back)
