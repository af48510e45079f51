from tests.app.chat.conftest import settings, storage, window

__all__ = ["settings", "storage", "window"]
