"""Made by scripts/generate: do not change."""

from __future__ import annotations

from .._blocking.portal import Blocking, Portal, blocking, blocking_iter
from . import services


class Documents(Blocking[services.Documents]):
    Put = blocking(services.Documents.Put)
    Patch = blocking(services.Documents.Patch)
    Get = blocking(services.Documents.Get)
    List = blocking(services.Documents.List)
    Query = blocking(services.Documents.Query)
    PutIndex = blocking(services.Documents.PutIndex)
    ListIndexes = blocking(services.Documents.ListIndexes)
    DeleteIndex = blocking(services.Documents.DeleteIndex)
    History = blocking(services.Documents.History)
    Changes = blocking(services.Documents.Changes)
    Watch = blocking_iter(services.Documents.Watch)
    Delete = blocking(services.Documents.Delete)


class Attachments(Blocking[services.Attachments]):
    Begin = blocking(services.Attachments.Begin)
    Uploads = blocking(services.Attachments.Uploads)
    Append = blocking(services.Attachments.Append)
    Commit = blocking(services.Attachments.Commit)
    End = blocking(services.Attachments.End)
    Read = blocking(services.Attachments.Read)
    Download = blocking_iter(services.Attachments.Download)
    List = blocking(services.Attachments.List)
    Delete = blocking(services.Attachments.Delete)


class Messages(Blocking[services.Messages]):
    Send = blocking(services.Messages.Send)
    Receive = blocking(services.Messages.Receive)
    Settle = blocking(services.Messages.Settle)
    Extend = blocking(services.Messages.Extend)
    List = blocking(services.Messages.List)
    Search = blocking(services.Messages.Search)
    Peek = blocking(services.Messages.Peek)
    Get = blocking(services.Messages.Get)
    AwaitResult = blocking(services.Messages.AwaitResult)
    Cancel = blocking(services.Messages.Cancel)
    Hold = blocking(services.Messages.Hold)
    Approve = blocking(services.Messages.Approve)
    Deny = blocking(services.Messages.Deny)
    Retry = blocking(services.Messages.Retry)
    Move = blocking(services.Messages.Move)
    Change = blocking(services.Messages.Change)
    SendGroup = blocking(services.Messages.SendGroup)
    GetGroup = blocking(services.Messages.GetGroup)
    GetFlow = blocking(services.Messages.GetFlow)


class Bulks(Blocking[services.Bulks]):
    List = blocking(services.Bulks.List)
    Start = blocking(services.Bulks.Start)
    Get = blocking(services.Bulks.Get)
    Cancel = blocking(services.Bulks.Cancel)


class Consumers(Blocking[services.Consumers]):
    List = blocking(services.Consumers.List)
    Get = blocking(services.Consumers.Get)
    Detach = blocking(services.Consumers.Detach)


class Events(Blocking[services.Events]):
    Watch = blocking_iter(services.Events.Watch)
    WatchQueue = blocking_iter(services.Events.WatchQueue)


class Limits(Blocking[services.Limits]):
    List = blocking(services.Limits.List)
    Get = blocking(services.Limits.Get)
    Put = blocking(services.Limits.Put)
    Delete = blocking(services.Limits.Delete)


class Locks(Blocking[services.Locks]):
    Acquire = blocking(services.Locks.Acquire)
    Renew = blocking(services.Locks.Renew)
    Release = blocking(services.Locks.Release)
    List = blocking(services.Locks.List)
    Show = blocking(services.Locks.Show)
    Watch = blocking_iter(services.Locks.Watch)
    Break = blocking(services.Locks.Break)


class Namespaces(Blocking[services.Namespaces]):
    List = blocking(services.Namespaces.List)
    Get = blocking(services.Namespaces.Get)
    Put = blocking(services.Namespaces.Put)
    Change = blocking(services.Namespaces.Change)
    Delete = blocking(services.Namespaces.Delete)


class Queues(Blocking[services.Queues]):
    List = blocking(services.Queues.List)
    Get = blocking(services.Queues.Get)
    Put = blocking(services.Queues.Put)
    Change = blocking(services.Queues.Change)
    Delete = blocking(services.Queues.Delete)
    Pause = blocking(services.Queues.Pause)
    Resume = blocking(services.Queues.Resume)
    Close = blocking(services.Queues.Close)
    Open = blocking(services.Queues.Open)
    Purge = blocking(services.Queues.Purge)
    ListPushes = blocking(services.Queues.ListPushes)
    ListDead = blocking(services.Queues.ListDead)
    CountDeadErrors = blocking(services.Queues.CountDeadErrors)
    Redrive = blocking(services.Queues.Redrive)
    EndRedrive = blocking(services.Queues.EndRedrive)
    DeleteDead = blocking(services.Queues.DeleteDead)
    ListDefaults = blocking(services.Queues.ListDefaults)
    GetDefaults = blocking(services.Queues.GetDefaults)
    PutDefaults = blocking(services.Queues.PutDefaults)
    DeleteDefaults = blocking(services.Queues.DeleteDefaults)


class Schedules(Blocking[services.Schedules]):
    List = blocking(services.Schedules.List)
    Get = blocking(services.Schedules.Get)
    Put = blocking(services.Schedules.Put)
    Delete = blocking(services.Schedules.Delete)
    Next = blocking(services.Schedules.Next)
    Pause = blocking(services.Schedules.Pause)
    Resume = blocking(services.Schedules.Resume)
    Trigger = blocking(services.Schedules.Trigger)


class Testing(Blocking[services.Testing]):
    GetTime = blocking(services.Testing.GetTime)
    Advance = blocking(services.Testing.Advance)


class Transactions(Blocking[services.Transactions]):
    Commit = blocking(services.Transactions.Commit)
    Begin = blocking(services.Transactions.Begin)
    Stage = blocking(services.Transactions.Stage)
    Close = blocking(services.Transactions.Close)
    Rollback = blocking(services.Transactions.Rollback)
    ListOpen = blocking(services.Transactions.ListOpen)
    ShowOpen = blocking(services.Transactions.ShowOpen)
    BreakOpen = blocking(services.Transactions.BreakOpen)
    ListInDoubt = blocking(services.Transactions.ListInDoubt)
    ShowInDoubt = blocking(services.Transactions.ShowInDoubt)
    Resolve = blocking(services.Transactions.Resolve)


class Stubs:
    """All services, one attribute for each."""

    def __init__(self, portal: Portal) -> None:
        self.documents = Documents(portal, lambda aio: aio.stubs.documents)
        self.attachments = Attachments(portal, lambda aio: aio.stubs.attachments)
        self.messages = Messages(portal, lambda aio: aio.stubs.messages)
        self.bulks = Bulks(portal, lambda aio: aio.stubs.bulks)
        self.consumers = Consumers(portal, lambda aio: aio.stubs.consumers)
        self.events = Events(portal, lambda aio: aio.stubs.events)
        self.limits = Limits(portal, lambda aio: aio.stubs.limits)
        self.locks = Locks(portal, lambda aio: aio.stubs.locks)
        self.namespaces = Namespaces(portal, lambda aio: aio.stubs.namespaces)
        self.queues = Queues(portal, lambda aio: aio.stubs.queues)
        self.schedules = Schedules(portal, lambda aio: aio.stubs.schedules)
        self.testing = Testing(portal, lambda aio: aio.stubs.testing)
        self.transactions = Transactions(portal, lambda aio: aio.stubs.transactions)
