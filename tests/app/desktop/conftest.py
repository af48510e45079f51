from tests.app.chat.conftest import storage, window

__all__ = ["storage", "window"]
