"""Documents, attachments, schedules and locks, for threads."""

from __future__ import annotations

from ..aio import _attachments, _documents, _locks, _schedules
from .portal import Blocking, blocking, blocking_iter


class Documents(Blocking[_documents.Documents]):
    """The documents of a namespace: keys with a content of any type, which has a version."""

    put = blocking(_documents.Documents.put)
    get = blocking(_documents.Documents.get)
    find = blocking(_documents.Documents.find)
    patch = blocking(_documents.Documents.patch)
    json_patch = blocking(_documents.Documents.json_patch)
    increment = blocking(_documents.Documents.increment)
    delete = blocking(_documents.Documents.delete)
    list = blocking_iter(_documents.Documents.list)
    query = blocking_iter(_documents.Documents.query)
    history = blocking(_documents.Documents.history)
    watch = blocking_iter(_documents.Documents.watch)


class Attachments(Blocking[_attachments.Attachments]):
    """Named bytes of a document, of up to 5 GiB."""

    upload = blocking(_attachments.Attachments.upload)
    download = blocking_iter(_attachments.Attachments.download)
    list = blocking_iter(_attachments.Attachments.list)
    delete = blocking(_attachments.Attachments.delete)


class Schedules(Blocking[_schedules.Schedules]):
    """Messages that are sent at set times."""

    put = blocking(_schedules.Schedules.put)
    get = blocking(_schedules.Schedules.get)
    list = blocking_iter(_schedules.Schedules.list)
    next = blocking(_schedules.Schedules.next)
    pause = blocking(_schedules.Schedules.pause)
    resume = blocking(_schedules.Schedules.resume)
    trigger = blocking(_schedules.Schedules.trigger)
    delete = blocking(_schedules.Schedules.delete)


class Locks(Blocking[_locks.Locks]):
    """Locks without the comfort of ``client.lock``, and looks at them."""

    acquire = blocking(_locks.Locks.acquire)
    renew = blocking(_locks.Locks.renew)
    release = blocking(_locks.Locks.release)
    show = blocking(_locks.Locks.show)
    break_ = blocking(_locks.Locks.break_)
    watch = blocking_iter(_locks.Locks.watch)
