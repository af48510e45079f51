"""Operations on the saved chats from another thread than the window's, which may wait for their results."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Concatenate, ParamSpec, TypeVar

from app.i18n import tr
from app.storage.errors import StorageError
from app.storage.store import ChatStore
from app.storage.thread import StorageThread
from engine.progress import CancelToken

P = ParamSpec("P")
T = TypeVar("T")

_LOOK_SECONDS = 0.1


def wait_for(
    storage: StorageThread,
    cancel: CancelToken,
    method: Callable[Concatenate[ChatStore, P], T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """`method(store, …)` in the store's thread, in turn with everything else; never call it in the window's.

    Raises what `method` raises, `Cancelled`, and `StorageError` when the chats are closed before its turn.
    """
    future: Future[T] = Future()

    def job(store: ChatStore) -> None:
        try:
            future.set_result(method(store, *args, **kwargs))
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            future.set_exception(error)

    storage.run(job)
    while True:
        closed = storage.closed  # what was asked for before is still done
        try:
            return future.result(timeout=_LOOK_SECONDS)
        except TimeoutError:
            if future.done():
                raise  # the method's own
        cancel.raise_if_cancelled()
        if closed:
            raise StorageError(tr("The program is closing."), why=tr("The chats are no longer open."))
