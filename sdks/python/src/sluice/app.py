"""Tasks: functions whose calls are messages."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, cast, overload

from ._blocking.client import Client
from ._blocking.worker import Worker
from ._values import Duration, Json
from .messages import Result, SendOptions, Sent
from .work import Dead, Job, Summary, WorkerOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

P = ParamSpec("P")
R = TypeVar("R")
#: Header that names the task of a message.
TASK = "sluice-task"


class TaskHandle:
    """A call of a task that was sent."""

    def __init__(self, client: Client, sent: Sent) -> None:
        self._client = client
        self.id = sent.id
        #: The message was there already, by its unique key.
        self.duplicate = sent.duplicate

    def result(self, *, timeout: Duration | None = None) -> Any:
        """Waits for what the task returns. The task is sent with a ``result_ttl`` for that."""
        return _value(self._client.result(self.id, timeout=timeout))


class Task(Generic[P, R]):
    """A function whose calls can be sent as messages. Called as such it just runs."""

    def __init__(
        self, client: Client, function: Callable[P, R], queue: str, name: str, options: SendOptions
    ) -> None:
        self._client, self._function, self._options = client, function, options
        self.queue, self.name = queue, name
        self.__doc__ = function.__doc__
        self.is_async = inspect.iscoroutinefunction(function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the function, here and now."""
        return self._function(*args, **kwargs)

    def send(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle:
        """Sends a call."""
        return self.using().send(*args, **kwargs)

    async def send_async(self, *args: P.args, **kwargs: P.kwargs) -> Sent:
        """Sends a call; from any event loop, as that of an asynchronous task."""
        return await self.using().send_async(*args, **kwargs)

    def using(self, **options: Unpack[SendOptions]) -> TaskCall[P]:
        """A call with options of its own: ``send_mail.using(delay=60).send(...)``."""
        merged: SendOptions = {**self._options, **options}
        return TaskCall(self._client, self.queue, self.name, merged)

    async def run(self, job: Job) -> Any:
        """Runs the function with the arguments of a message."""
        args, kwargs = _arguments(job)
        if self.is_async:
            made: Any = self._function(*args, **kwargs)
            return await made
        return await job.in_thread(lambda: self._function(*args, **kwargs))


class TaskCall(Generic[P]):
    """A call of a task with options of its own."""

    def __init__(self, client: Client, queue: str, name: str, options: SendOptions) -> None:
        headers = {**options.get("headers", {}), TASK: name}
        self._client, self._queue = client, queue
        self._options: SendOptions = {**options, "headers": headers}

    def send(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle:
        """Sends the call."""
        payload = {"args": args, "kwargs": kwargs}
        return TaskHandle(self._client, self._client.send(self._queue, payload, **self._options))

    async def send_async(self, *args: P.args, **kwargs: P.kwargs) -> Sent:
        """Sends the call; from any event loop."""
        payload = {"args": args, "kwargs": kwargs}
        return await self._client.portal.run_async(
            lambda client: client.send(self._queue, payload, **self._options)
        )


class App:
    """The tasks of a program, and the worker that runs them."""

    def __init__(self, client: Client | None = None) -> None:
        """Without a client the app has one of its own, with what the environment says."""
        self.client = client or Client()
        self._tasks: dict[tuple[str, str], Task[Any, Any]] = {}

    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...

    @overload
    def task(
        self, *, queue: str | None = None, name: str | None = None, **options: Unpack[SendOptions]
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...

    def task(  # type: ignore[misc]
        self, function: Callable[..., Any] | None = None, /, **options: Any
    ) -> Any:
        """Makes a task of a function: ``@app.task`` or ``@app.task(queue="mail", max_attempts=3)``.

        Its queue has the name of the function unless another one is given. Arguments and results travel as
        JSON. Messages of other programs, without the header ``sluice-task``, go to the only task of their
        queue, with their payload as the argument.
        """

        queue, name = options.pop("queue", None), options.pop("name", None)

        def register(of: Callable[..., Any]) -> Task[Any, Any]:
            called = name or of.__name__
            fields = cast(SendOptions, options)
            made: Task[Any, Any] = Task(self.client, of, queue or called, called, fields)
            self._tasks[made.queue, called] = made
            return made

        return register if function is None else register(function)

    def worker(self, **options: Unpack[WorkerOptions]) -> Worker:
        """A worker of all tasks."""
        queues = sorted({queue for queue, _ in self._tasks})
        return Worker(self.client, queues, self._run, **options)

    def run(self, **options: Unpack[WorkerOptions]) -> Summary:
        """Runs tasks until SIGTERM or SIGINT."""
        return self.worker(**options).run()

    async def _run(self, job: Job) -> Any:
        return _result(await self._task_of(job).run(job))

    def _task_of(self, job: Job) -> Task[Any, Any]:
        queue, name = job.message.queue, job.message.headers.get(TASK)
        if name is not None and (queue, name) in self._tasks:
            return self._tasks[queue, name]
        of_queue = [task for (at, _), task in self._tasks.items() if at == queue]
        if name is None and len(of_queue) == 1:
            return of_queue[0]
        raise Dead(f"there is no task {name!r} in queue {queue!r}")


def _arguments(job: Job) -> tuple[list[Any], dict[str, Any]]:
    value = job.value
    if TASK not in job.message.headers:
        return [value], {}
    return value["args"], value["kwargs"]


def _result(value: Any) -> Any:
    return Json(value) if isinstance(value, str) else value


def _value(result: Result) -> Any:
    return result.value if result.payload else None
