"""Made by scripts/generate: do not change."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable

from .._rpc import Method, Rpc, Service
from . import (
    attachments_pb2,
    bulks_pb2,
    common_pb2,
    consumers_pb2,
    documents_pb2,
    events_pb2,
    limits_pb2,
    locks_pb2,
    messages_pb2,
    namespaces_pb2,
    queues_pb2,
    schedules_pb2,
    session_pb2,
    testing_pb2,
    transactions_pb2,
)

DOCUMENTS_PUT = Method("/sluice.v1.Documents/Put", documents_pb2.PutDocumentRequest, documents_pb2.PutDocumentResponse)
DOCUMENTS_PATCH = Method("/sluice.v1.Documents/Patch", documents_pb2.PatchDocumentRequest, documents_pb2.PutDocumentResponse)
DOCUMENTS_GET = Method("/sluice.v1.Documents/Get", documents_pb2.GetDocumentRequest, documents_pb2.Document)
DOCUMENTS_LIST = Method("/sluice.v1.Documents/List", documents_pb2.ListDocumentsRequest, documents_pb2.ListDocumentsResponse)
DOCUMENTS_QUERY = Method("/sluice.v1.Documents/Query", documents_pb2.QueryDocumentsRequest, documents_pb2.QueryDocumentsResponse)
DOCUMENTS_PUT_INDEX = Method("/sluice.v1.Documents/PutIndex", documents_pb2.PutDocumentIndexRequest, documents_pb2.DocumentIndex)
DOCUMENTS_LIST_INDEXES = Method("/sluice.v1.Documents/ListIndexes", documents_pb2.ListDocumentIndexesRequest, documents_pb2.ListDocumentIndexesResponse)
DOCUMENTS_DELETE_INDEX = Method("/sluice.v1.Documents/DeleteIndex", documents_pb2.DeleteDocumentIndexRequest, documents_pb2.DeleteDocumentIndexResponse)
DOCUMENTS_HISTORY = Method("/sluice.v1.Documents/History", documents_pb2.DocumentHistoryRequest, documents_pb2.DocumentHistoryResponse)
DOCUMENTS_CHANGES = Method("/sluice.v1.Documents/Changes", documents_pb2.DocumentChangesRequest, documents_pb2.DocumentChangesResponse)
DOCUMENTS_WATCH = Method("/sluice.v1.Documents/Watch", documents_pb2.WatchDocumentsRequest, documents_pb2.WatchDocumentsResponse)
DOCUMENTS_DELETE = Method("/sluice.v1.Documents/Delete", documents_pb2.DeleteDocumentRequest, documents_pb2.DeleteDocumentResponse)
ATTACHMENTS_BEGIN = Method("/sluice.v1.Attachments/Begin", attachments_pb2.BeginUploadRequest, attachments_pb2.Upload)
ATTACHMENTS_UPLOADS = Method("/sluice.v1.Attachments/Uploads", attachments_pb2.ListUploadsRequest, attachments_pb2.ListUploadsResponse)
ATTACHMENTS_APPEND = Method("/sluice.v1.Attachments/Append", attachments_pb2.AppendToUploadRequest, attachments_pb2.AppendToUploadResponse)
ATTACHMENTS_COMMIT = Method("/sluice.v1.Attachments/Commit", attachments_pb2.CommitUploadRequest, documents_pb2.PutDocumentResponse)
ATTACHMENTS_END = Method("/sluice.v1.Attachments/End", attachments_pb2.EndUploadRequest, attachments_pb2.EndUploadResponse)
ATTACHMENTS_READ = Method("/sluice.v1.Attachments/Read", attachments_pb2.ReadAttachmentRequest, attachments_pb2.ReadAttachmentResponse)
ATTACHMENTS_UPLOAD = Method("/sluice.v1.Attachments/Upload", attachments_pb2.UploadAttachmentRequest, documents_pb2.PutDocumentResponse)
ATTACHMENTS_DOWNLOAD = Method("/sluice.v1.Attachments/Download", attachments_pb2.DownloadAttachmentRequest, attachments_pb2.ReadAttachmentResponse)
ATTACHMENTS_LIST = Method("/sluice.v1.Attachments/List", attachments_pb2.ListAttachmentsRequest, attachments_pb2.ListAttachmentsResponse)
ATTACHMENTS_DELETE = Method("/sluice.v1.Attachments/Delete", attachments_pb2.DeleteAttachmentRequest, attachments_pb2.DeleteAttachmentResponse)
MESSAGES_SEND = Method("/sluice.v1.Messages/Send", messages_pb2.SendRequest, messages_pb2.SendResponse)
MESSAGES_RECEIVE = Method("/sluice.v1.Messages/Receive", messages_pb2.ReceiveRequest, messages_pb2.ReceiveResponse)
MESSAGES_SETTLE = Method("/sluice.v1.Messages/Settle", messages_pb2.SettleRequest, messages_pb2.ResultsResponse)
MESSAGES_EXTEND = Method("/sluice.v1.Messages/Extend", messages_pb2.ExtendRequest, messages_pb2.ResultsResponse)
MESSAGES_LIST = Method("/sluice.v1.Messages/List", messages_pb2.ListMessagesRequest, messages_pb2.ListMessagesResponse)
MESSAGES_SEARCH = Method("/sluice.v1.Messages/Search", messages_pb2.SearchMessagesRequest, messages_pb2.SearchMessagesResponse)
MESSAGES_PEEK = Method("/sluice.v1.Messages/Peek", messages_pb2.PeekRequest, messages_pb2.PeekResponse)
MESSAGES_GET = Method("/sluice.v1.Messages/Get", messages_pb2.GetMessageRequest, messages_pb2.StoredMessage)
MESSAGES_AWAIT_RESULT = Method("/sluice.v1.Messages/AwaitResult", messages_pb2.AwaitResultRequest, messages_pb2.AwaitResultResponse)
MESSAGES_CANCEL = Method("/sluice.v1.Messages/Cancel", messages_pb2.ChangeRequest, messages_pb2.ChangeResponse)
MESSAGES_HOLD = Method("/sluice.v1.Messages/Hold", messages_pb2.ChangeRequest, messages_pb2.ChangeResponse)
MESSAGES_APPROVE = Method("/sluice.v1.Messages/Approve", messages_pb2.ChangeRequest, messages_pb2.ChangeResponse)
MESSAGES_DENY = Method("/sluice.v1.Messages/Deny", messages_pb2.ChangeRequest, messages_pb2.ChangeResponse)
MESSAGES_RETRY = Method("/sluice.v1.Messages/Retry", messages_pb2.ChangeRequest, messages_pb2.ChangeResponse)
MESSAGES_MOVE = Method("/sluice.v1.Messages/Move", messages_pb2.MoveRequest, messages_pb2.ChangeResponse)
MESSAGES_CHANGE = Method("/sluice.v1.Messages/Change", messages_pb2.ChangeFieldsRequest, messages_pb2.ChangeResponse)
MESSAGES_SEND_GROUP = Method("/sluice.v1.Messages/SendGroup", messages_pb2.SendGroupRequest, messages_pb2.SendGroupResponse)
MESSAGES_GET_GROUP = Method("/sluice.v1.Messages/GetGroup", messages_pb2.GetGroupRequest, messages_pb2.Group)
MESSAGES_GET_FLOW = Method("/sluice.v1.Messages/GetFlow", messages_pb2.GetFlowRequest, messages_pb2.Flow)
BULKS_LIST = Method("/sluice.v1.Bulks/List", bulks_pb2.ListBulksRequest, bulks_pb2.ListBulksResponse)
BULKS_START = Method("/sluice.v1.Bulks/Start", bulks_pb2.StartBulkRequest, bulks_pb2.StartBulkResponse)
BULKS_GET = Method("/sluice.v1.Bulks/Get", bulks_pb2.BulkRequest, bulks_pb2.Bulk)
BULKS_CANCEL = Method("/sluice.v1.Bulks/Cancel", bulks_pb2.BulkRequest, bulks_pb2.Bulk)
CONSUMERS_LIST = Method("/sluice.v1.Consumers/List", consumers_pb2.ListConsumersRequest, consumers_pb2.ListConsumersResponse)
CONSUMERS_GET = Method("/sluice.v1.Consumers/Get", consumers_pb2.GetConsumerRequest, consumers_pb2.Consumer)
CONSUMERS_DETACH = Method("/sluice.v1.Consumers/Detach", consumers_pb2.DetachConsumerRequest, consumers_pb2.DetachConsumerResponse)
EVENTS_WATCH = Method("/sluice.v1.Events/Watch", events_pb2.WatchRequest, events_pb2.WatchResponse)
EVENTS_WATCH_QUEUE = Method("/sluice.v1.Events/WatchQueue", events_pb2.WatchQueueRequest, events_pb2.WatchResponse)
LIMITS_LIST = Method("/sluice.v1.Limits/List", limits_pb2.ListLimitsRequest, limits_pb2.ListLimitsResponse)
LIMITS_GET = Method("/sluice.v1.Limits/Get", limits_pb2.GetLimitRequest, limits_pb2.Limit)
LIMITS_PUT = Method("/sluice.v1.Limits/Put", limits_pb2.PutLimitRequest, limits_pb2.Limit)
LIMITS_DELETE = Method("/sluice.v1.Limits/Delete", limits_pb2.DeleteLimitRequest, limits_pb2.DeleteLimitResponse)
LOCKS_ACQUIRE = Method("/sluice.v1.Locks/Acquire", locks_pb2.AcquireLockRequest, locks_pb2.AcquireLockResponse)
LOCKS_RENEW = Method("/sluice.v1.Locks/Renew", locks_pb2.RenewLockRequest, locks_pb2.LockGrant)
LOCKS_RELEASE = Method("/sluice.v1.Locks/Release", locks_pb2.ReleaseLockRequest, locks_pb2.ReleaseLockResponse)
LOCKS_LIST = Method("/sluice.v1.Locks/List", locks_pb2.ListLocksRequest, locks_pb2.ListLocksResponse)
LOCKS_SHOW = Method("/sluice.v1.Locks/Show", locks_pb2.ShowLockRequest, locks_pb2.Lock)
LOCKS_WATCH = Method("/sluice.v1.Locks/Watch", locks_pb2.WatchLockRequest, locks_pb2.WatchLockResponse)
LOCKS_BREAK = Method("/sluice.v1.Locks/Break", locks_pb2.BreakLockRequest, locks_pb2.BreakLockResponse)
NAMESPACES_LIST = Method("/sluice.v1.Namespaces/List", namespaces_pb2.ListNamespacesRequest, namespaces_pb2.ListNamespacesResponse)
NAMESPACES_GET = Method("/sluice.v1.Namespaces/Get", namespaces_pb2.NamespaceRequest, namespaces_pb2.Namespace)
NAMESPACES_PUT = Method("/sluice.v1.Namespaces/Put", namespaces_pb2.PutNamespaceRequest, namespaces_pb2.Namespace)
NAMESPACES_CHANGE = Method("/sluice.v1.Namespaces/Change", namespaces_pb2.ChangeNamespaceRequest, namespaces_pb2.Namespace)
NAMESPACES_DELETE = Method("/sluice.v1.Namespaces/Delete", namespaces_pb2.DeleteNamespaceRequest, namespaces_pb2.DeleteNamespaceResponse)
QUEUES_LIST = Method("/sluice.v1.Queues/List", queues_pb2.ListQueuesRequest, queues_pb2.ListQueuesResponse)
QUEUES_GET = Method("/sluice.v1.Queues/Get", queues_pb2.GetQueueRequest, queues_pb2.Queue)
QUEUES_PUT = Method("/sluice.v1.Queues/Put", queues_pb2.SetQueueRequest, queues_pb2.Queue)
QUEUES_CHANGE = Method("/sluice.v1.Queues/Change", queues_pb2.SetQueueRequest, queues_pb2.Queue)
QUEUES_DELETE = Method("/sluice.v1.Queues/Delete", queues_pb2.QueueRequest, queues_pb2.DeleteResponse)
QUEUES_PAUSE = Method("/sluice.v1.Queues/Pause", queues_pb2.QueueRequest, queues_pb2.Queue)
QUEUES_RESUME = Method("/sluice.v1.Queues/Resume", queues_pb2.QueueRequest, queues_pb2.Queue)
QUEUES_CLOSE = Method("/sluice.v1.Queues/Close", queues_pb2.QueueRequest, queues_pb2.Queue)
QUEUES_OPEN = Method("/sluice.v1.Queues/Open", queues_pb2.QueueRequest, queues_pb2.Queue)
QUEUES_PURGE = Method("/sluice.v1.Queues/Purge", queues_pb2.QueueRequest, queues_pb2.PurgeResponse)
QUEUES_LIST_PUSHES = Method("/sluice.v1.Queues/ListPushes", queues_pb2.ListPushesRequest, queues_pb2.ListPushesResponse)
QUEUES_LIST_DEAD = Method("/sluice.v1.Queues/ListDead", queues_pb2.ListDeadRequest, messages_pb2.ListMessagesResponse)
QUEUES_COUNT_DEAD_ERRORS = Method("/sluice.v1.Queues/CountDeadErrors", queues_pb2.CountDeadErrorsRequest, queues_pb2.CountDeadErrorsResponse)
QUEUES_REDRIVE = Method("/sluice.v1.Queues/Redrive", queues_pb2.RedriveRequest, queues_pb2.RedriveResponse)
QUEUES_END_REDRIVE = Method("/sluice.v1.Queues/EndRedrive", queues_pb2.QueueRequest, queues_pb2.EndRedriveResponse)
QUEUES_DELETE_DEAD = Method("/sluice.v1.Queues/DeleteDead", queues_pb2.DeleteDeadRequest, queues_pb2.DeleteResponse)
QUEUES_LIST_DEFAULTS = Method("/sluice.v1.Queues/ListDefaults", queues_pb2.ListDefaultsRequest, queues_pb2.ListDefaultsResponse)
QUEUES_GET_DEFAULTS = Method("/sluice.v1.Queues/GetDefaults", queues_pb2.GetDefaultsRequest, queues_pb2.QueueDefaults)
QUEUES_PUT_DEFAULTS = Method("/sluice.v1.Queues/PutDefaults", queues_pb2.PutDefaultsRequest, queues_pb2.QueueDefaults)
QUEUES_DELETE_DEFAULTS = Method("/sluice.v1.Queues/DeleteDefaults", queues_pb2.DefaultsRequest, queues_pb2.DeleteDefaultsResponse)
SCHEDULES_LIST = Method("/sluice.v1.Schedules/List", schedules_pb2.ListSchedulesRequest, schedules_pb2.ListSchedulesResponse)
SCHEDULES_GET = Method("/sluice.v1.Schedules/Get", schedules_pb2.GetScheduleRequest, schedules_pb2.Schedule)
SCHEDULES_PUT = Method("/sluice.v1.Schedules/Put", schedules_pb2.PutScheduleRequest, schedules_pb2.Schedule)
SCHEDULES_DELETE = Method("/sluice.v1.Schedules/Delete", schedules_pb2.ScheduleRequest, schedules_pb2.DeleteScheduleResponse)
SCHEDULES_NEXT = Method("/sluice.v1.Schedules/Next", schedules_pb2.NextRequest, schedules_pb2.NextResponse)
SCHEDULES_PAUSE = Method("/sluice.v1.Schedules/Pause", schedules_pb2.ScheduleRequest, schedules_pb2.Schedule)
SCHEDULES_RESUME = Method("/sluice.v1.Schedules/Resume", schedules_pb2.ScheduleRequest, schedules_pb2.Schedule)
SCHEDULES_TRIGGER = Method("/sluice.v1.Schedules/Trigger", schedules_pb2.ScheduleRequest, schedules_pb2.TriggerResponse)
SESSIONS_SESSION = Method("/sluice.v1.Sessions/Session", session_pb2.ClientFrame, session_pb2.ServerFrame)
TESTING_GET_TIME = Method("/sluice.v1.Testing/GetTime", testing_pb2.GetTestTimeRequest, testing_pb2.TestTime)
TESTING_ADVANCE = Method("/sluice.v1.Testing/Advance", testing_pb2.AdvanceTestTimeRequest, testing_pb2.TestTime)
TRANSACTIONS_COMMIT = Method("/sluice.v1.Transactions/Commit", transactions_pb2.CommitTransactionRequest, transactions_pb2.CommitTransactionResponse)
TRANSACTIONS_BEGIN = Method("/sluice.v1.Transactions/Begin", transactions_pb2.BeginTransactionRequest, transactions_pb2.BeginTransactionResponse)
TRANSACTIONS_STAGE = Method("/sluice.v1.Transactions/Stage", transactions_pb2.StageTransactionRequest, transactions_pb2.StageTransactionResponse)
TRANSACTIONS_CLOSE = Method("/sluice.v1.Transactions/Close", transactions_pb2.CloseTransactionRequest, transactions_pb2.CommitTransactionResponse)
TRANSACTIONS_ROLLBACK = Method("/sluice.v1.Transactions/Rollback", transactions_pb2.RollbackTransactionRequest, transactions_pb2.RollbackTransactionResponse)
TRANSACTIONS_LIST_OPEN = Method("/sluice.v1.Transactions/ListOpen", transactions_pb2.ListOpenTransactionsRequest, transactions_pb2.ListOpenTransactionsResponse)
TRANSACTIONS_SHOW_OPEN = Method("/sluice.v1.Transactions/ShowOpen", transactions_pb2.ShowOpenTransactionRequest, transactions_pb2.OpenTransaction)
TRANSACTIONS_BREAK_OPEN = Method("/sluice.v1.Transactions/BreakOpen", transactions_pb2.BreakOpenTransactionRequest, transactions_pb2.BreakOpenTransactionResponse)
TRANSACTIONS_LIST_IN_DOUBT = Method("/sluice.v1.Transactions/ListInDoubt", transactions_pb2.ListInDoubtTransactionsRequest, transactions_pb2.ListInDoubtTransactionsResponse)
TRANSACTIONS_SHOW_IN_DOUBT = Method("/sluice.v1.Transactions/ShowInDoubt", transactions_pb2.ShowInDoubtTransactionRequest, transactions_pb2.InDoubtTransaction)
TRANSACTIONS_RESOLVE = Method("/sluice.v1.Transactions/Resolve", transactions_pb2.ResolveTransactionRequest, transactions_pb2.ResolveTransactionResponse)


class Documents(Service):
    async def Put(
        self, request: documents_pb2.PutDocumentRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.PutDocumentResponse:
        return await self._rpc.unary(DOCUMENTS_PUT, request, timeout=timeout, safe=safe)

    async def Patch(
        self, request: documents_pb2.PatchDocumentRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.PutDocumentResponse:
        return await self._rpc.unary(DOCUMENTS_PATCH, request, timeout=timeout, safe=safe)

    async def Get(
        self, request: documents_pb2.GetDocumentRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.Document:
        return await self._rpc.unary(DOCUMENTS_GET, request, timeout=timeout, safe=safe)

    async def List(
        self, request: documents_pb2.ListDocumentsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.ListDocumentsResponse:
        return await self._rpc.unary(DOCUMENTS_LIST, request, timeout=timeout, safe=safe)

    async def Query(
        self, request: documents_pb2.QueryDocumentsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.QueryDocumentsResponse:
        return await self._rpc.unary(DOCUMENTS_QUERY, request, timeout=timeout, safe=safe)

    async def PutIndex(
        self, request: documents_pb2.PutDocumentIndexRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.DocumentIndex:
        return await self._rpc.unary(DOCUMENTS_PUT_INDEX, request, timeout=timeout, safe=safe)

    async def ListIndexes(
        self, request: documents_pb2.ListDocumentIndexesRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.ListDocumentIndexesResponse:
        return await self._rpc.unary(DOCUMENTS_LIST_INDEXES, request, timeout=timeout, safe=safe)

    async def DeleteIndex(
        self, request: documents_pb2.DeleteDocumentIndexRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.DeleteDocumentIndexResponse:
        return await self._rpc.unary(DOCUMENTS_DELETE_INDEX, request, timeout=timeout, safe=safe)

    async def History(
        self, request: documents_pb2.DocumentHistoryRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.DocumentHistoryResponse:
        return await self._rpc.unary(DOCUMENTS_HISTORY, request, timeout=timeout, safe=safe)

    async def Changes(
        self, request: documents_pb2.DocumentChangesRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.DocumentChangesResponse:
        return await self._rpc.unary(DOCUMENTS_CHANGES, request, timeout=timeout, safe=safe)

    def Watch(self, request: documents_pb2.WatchDocumentsRequest) -> AsyncGenerator[documents_pb2.WatchDocumentsResponse, None]:
        return self._rpc.stream(DOCUMENTS_WATCH, request)

    async def Delete(
        self, request: documents_pb2.DeleteDocumentRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.DeleteDocumentResponse:
        return await self._rpc.unary(DOCUMENTS_DELETE, request, timeout=timeout, safe=safe)


class Attachments(Service):
    async def Begin(
        self, request: attachments_pb2.BeginUploadRequest, *, timeout: float | None = None, safe: bool = False
    ) -> attachments_pb2.Upload:
        return await self._rpc.unary(ATTACHMENTS_BEGIN, request, timeout=timeout, safe=safe)

    async def Uploads(
        self, request: attachments_pb2.ListUploadsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> attachments_pb2.ListUploadsResponse:
        return await self._rpc.unary(ATTACHMENTS_UPLOADS, request, timeout=timeout, safe=safe)

    async def Append(
        self, request: attachments_pb2.AppendToUploadRequest, *, timeout: float | None = None, safe: bool = False
    ) -> attachments_pb2.AppendToUploadResponse:
        return await self._rpc.unary(ATTACHMENTS_APPEND, request, timeout=timeout, safe=safe)

    async def Commit(
        self, request: attachments_pb2.CommitUploadRequest, *, timeout: float | None = None, safe: bool = False
    ) -> documents_pb2.PutDocumentResponse:
        return await self._rpc.unary(ATTACHMENTS_COMMIT, request, timeout=timeout, safe=safe)

    async def End(
        self, request: attachments_pb2.EndUploadRequest, *, timeout: float | None = None, safe: bool = False
    ) -> attachments_pb2.EndUploadResponse:
        return await self._rpc.unary(ATTACHMENTS_END, request, timeout=timeout, safe=safe)

    async def Read(
        self, request: attachments_pb2.ReadAttachmentRequest, *, timeout: float | None = None, safe: bool = False
    ) -> attachments_pb2.ReadAttachmentResponse:
        return await self._rpc.unary(ATTACHMENTS_READ, request, timeout=timeout, safe=safe)

    async def Upload(self, requests: AsyncIterable[attachments_pb2.UploadAttachmentRequest]) -> documents_pb2.PutDocumentResponse:
        return await self._rpc.upload(ATTACHMENTS_UPLOAD, requests)

    def Download(self, request: attachments_pb2.DownloadAttachmentRequest) -> AsyncGenerator[attachments_pb2.ReadAttachmentResponse, None]:
        return self._rpc.stream(ATTACHMENTS_DOWNLOAD, request)

    async def List(
        self, request: attachments_pb2.ListAttachmentsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> attachments_pb2.ListAttachmentsResponse:
        return await self._rpc.unary(ATTACHMENTS_LIST, request, timeout=timeout, safe=safe)

    async def Delete(
        self, request: attachments_pb2.DeleteAttachmentRequest, *, timeout: float | None = None, safe: bool = False
    ) -> attachments_pb2.DeleteAttachmentResponse:
        return await self._rpc.unary(ATTACHMENTS_DELETE, request, timeout=timeout, safe=safe)


class Messages(Service):
    async def Send(
        self, request: messages_pb2.SendRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.SendResponse:
        return await self._rpc.unary(MESSAGES_SEND, request, timeout=timeout, safe=safe)

    async def Receive(
        self, request: messages_pb2.ReceiveRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ReceiveResponse:
        return await self._rpc.unary(MESSAGES_RECEIVE, request, timeout=timeout, safe=safe)

    async def Settle(
        self, request: messages_pb2.SettleRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ResultsResponse:
        return await self._rpc.unary(MESSAGES_SETTLE, request, timeout=timeout, safe=safe)

    async def Extend(
        self, request: messages_pb2.ExtendRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ResultsResponse:
        return await self._rpc.unary(MESSAGES_EXTEND, request, timeout=timeout, safe=safe)

    async def List(
        self, request: messages_pb2.ListMessagesRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ListMessagesResponse:
        return await self._rpc.unary(MESSAGES_LIST, request, timeout=timeout, safe=safe)

    async def Search(
        self, request: messages_pb2.SearchMessagesRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.SearchMessagesResponse:
        return await self._rpc.unary(MESSAGES_SEARCH, request, timeout=timeout, safe=safe)

    async def Peek(
        self, request: messages_pb2.PeekRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.PeekResponse:
        return await self._rpc.unary(MESSAGES_PEEK, request, timeout=timeout, safe=safe)

    async def Get(
        self, request: messages_pb2.GetMessageRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.StoredMessage:
        return await self._rpc.unary(MESSAGES_GET, request, timeout=timeout, safe=safe)

    async def AwaitResult(
        self, request: messages_pb2.AwaitResultRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.AwaitResultResponse:
        return await self._rpc.unary(MESSAGES_AWAIT_RESULT, request, timeout=timeout, safe=safe)

    async def Cancel(
        self, request: messages_pb2.ChangeRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ChangeResponse:
        return await self._rpc.unary(MESSAGES_CANCEL, request, timeout=timeout, safe=safe)

    async def Hold(
        self, request: messages_pb2.ChangeRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ChangeResponse:
        return await self._rpc.unary(MESSAGES_HOLD, request, timeout=timeout, safe=safe)

    async def Approve(
        self, request: messages_pb2.ChangeRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ChangeResponse:
        return await self._rpc.unary(MESSAGES_APPROVE, request, timeout=timeout, safe=safe)

    async def Deny(
        self, request: messages_pb2.ChangeRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ChangeResponse:
        return await self._rpc.unary(MESSAGES_DENY, request, timeout=timeout, safe=safe)

    async def Retry(
        self, request: messages_pb2.ChangeRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ChangeResponse:
        return await self._rpc.unary(MESSAGES_RETRY, request, timeout=timeout, safe=safe)

    async def Move(
        self, request: messages_pb2.MoveRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ChangeResponse:
        return await self._rpc.unary(MESSAGES_MOVE, request, timeout=timeout, safe=safe)

    async def Change(
        self, request: messages_pb2.ChangeFieldsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ChangeResponse:
        return await self._rpc.unary(MESSAGES_CHANGE, request, timeout=timeout, safe=safe)

    async def SendGroup(
        self, request: messages_pb2.SendGroupRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.SendGroupResponse:
        return await self._rpc.unary(MESSAGES_SEND_GROUP, request, timeout=timeout, safe=safe)

    async def GetGroup(
        self, request: messages_pb2.GetGroupRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.Group:
        return await self._rpc.unary(MESSAGES_GET_GROUP, request, timeout=timeout, safe=safe)

    async def GetFlow(
        self, request: messages_pb2.GetFlowRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.Flow:
        return await self._rpc.unary(MESSAGES_GET_FLOW, request, timeout=timeout, safe=safe)


class Bulks(Service):
    async def List(
        self, request: bulks_pb2.ListBulksRequest, *, timeout: float | None = None, safe: bool = False
    ) -> bulks_pb2.ListBulksResponse:
        return await self._rpc.unary(BULKS_LIST, request, timeout=timeout, safe=safe)

    async def Start(
        self, request: bulks_pb2.StartBulkRequest, *, timeout: float | None = None, safe: bool = False
    ) -> bulks_pb2.StartBulkResponse:
        return await self._rpc.unary(BULKS_START, request, timeout=timeout, safe=safe)

    async def Get(
        self, request: bulks_pb2.BulkRequest, *, timeout: float | None = None, safe: bool = False
    ) -> bulks_pb2.Bulk:
        return await self._rpc.unary(BULKS_GET, request, timeout=timeout, safe=safe)

    async def Cancel(
        self, request: bulks_pb2.BulkRequest, *, timeout: float | None = None, safe: bool = False
    ) -> bulks_pb2.Bulk:
        return await self._rpc.unary(BULKS_CANCEL, request, timeout=timeout, safe=safe)


class Consumers(Service):
    async def List(
        self, request: consumers_pb2.ListConsumersRequest, *, timeout: float | None = None, safe: bool = False
    ) -> consumers_pb2.ListConsumersResponse:
        return await self._rpc.unary(CONSUMERS_LIST, request, timeout=timeout, safe=safe)

    async def Get(
        self, request: consumers_pb2.GetConsumerRequest, *, timeout: float | None = None, safe: bool = False
    ) -> consumers_pb2.Consumer:
        return await self._rpc.unary(CONSUMERS_GET, request, timeout=timeout, safe=safe)

    async def Detach(
        self, request: consumers_pb2.DetachConsumerRequest, *, timeout: float | None = None, safe: bool = False
    ) -> consumers_pb2.DetachConsumerResponse:
        return await self._rpc.unary(CONSUMERS_DETACH, request, timeout=timeout, safe=safe)


class Events(Service):
    def Watch(self, request: events_pb2.WatchRequest) -> AsyncGenerator[events_pb2.WatchResponse, None]:
        return self._rpc.stream(EVENTS_WATCH, request)

    def WatchQueue(self, request: events_pb2.WatchQueueRequest) -> AsyncGenerator[events_pb2.WatchResponse, None]:
        return self._rpc.stream(EVENTS_WATCH_QUEUE, request)


class Limits(Service):
    async def List(
        self, request: limits_pb2.ListLimitsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> limits_pb2.ListLimitsResponse:
        return await self._rpc.unary(LIMITS_LIST, request, timeout=timeout, safe=safe)

    async def Get(
        self, request: limits_pb2.GetLimitRequest, *, timeout: float | None = None, safe: bool = False
    ) -> limits_pb2.Limit:
        return await self._rpc.unary(LIMITS_GET, request, timeout=timeout, safe=safe)

    async def Put(
        self, request: limits_pb2.PutLimitRequest, *, timeout: float | None = None, safe: bool = False
    ) -> limits_pb2.Limit:
        return await self._rpc.unary(LIMITS_PUT, request, timeout=timeout, safe=safe)

    async def Delete(
        self, request: limits_pb2.DeleteLimitRequest, *, timeout: float | None = None, safe: bool = False
    ) -> limits_pb2.DeleteLimitResponse:
        return await self._rpc.unary(LIMITS_DELETE, request, timeout=timeout, safe=safe)


class Locks(Service):
    async def Acquire(
        self, request: locks_pb2.AcquireLockRequest, *, timeout: float | None = None, safe: bool = False
    ) -> locks_pb2.AcquireLockResponse:
        return await self._rpc.unary(LOCKS_ACQUIRE, request, timeout=timeout, safe=safe)

    async def Renew(
        self, request: locks_pb2.RenewLockRequest, *, timeout: float | None = None, safe: bool = False
    ) -> locks_pb2.LockGrant:
        return await self._rpc.unary(LOCKS_RENEW, request, timeout=timeout, safe=safe)

    async def Release(
        self, request: locks_pb2.ReleaseLockRequest, *, timeout: float | None = None, safe: bool = False
    ) -> locks_pb2.ReleaseLockResponse:
        return await self._rpc.unary(LOCKS_RELEASE, request, timeout=timeout, safe=safe)

    async def List(
        self, request: locks_pb2.ListLocksRequest, *, timeout: float | None = None, safe: bool = False
    ) -> locks_pb2.ListLocksResponse:
        return await self._rpc.unary(LOCKS_LIST, request, timeout=timeout, safe=safe)

    async def Show(
        self, request: locks_pb2.ShowLockRequest, *, timeout: float | None = None, safe: bool = False
    ) -> locks_pb2.Lock:
        return await self._rpc.unary(LOCKS_SHOW, request, timeout=timeout, safe=safe)

    def Watch(self, request: locks_pb2.WatchLockRequest) -> AsyncGenerator[locks_pb2.WatchLockResponse, None]:
        return self._rpc.stream(LOCKS_WATCH, request)

    async def Break(
        self, request: locks_pb2.BreakLockRequest, *, timeout: float | None = None, safe: bool = False
    ) -> locks_pb2.BreakLockResponse:
        return await self._rpc.unary(LOCKS_BREAK, request, timeout=timeout, safe=safe)


class Namespaces(Service):
    async def List(
        self, request: namespaces_pb2.ListNamespacesRequest, *, timeout: float | None = None, safe: bool = False
    ) -> namespaces_pb2.ListNamespacesResponse:
        return await self._rpc.unary(NAMESPACES_LIST, request, timeout=timeout, safe=safe)

    async def Get(
        self, request: namespaces_pb2.NamespaceRequest, *, timeout: float | None = None, safe: bool = False
    ) -> namespaces_pb2.Namespace:
        return await self._rpc.unary(NAMESPACES_GET, request, timeout=timeout, safe=safe)

    async def Put(
        self, request: namespaces_pb2.PutNamespaceRequest, *, timeout: float | None = None, safe: bool = False
    ) -> namespaces_pb2.Namespace:
        return await self._rpc.unary(NAMESPACES_PUT, request, timeout=timeout, safe=safe)

    async def Change(
        self, request: namespaces_pb2.ChangeNamespaceRequest, *, timeout: float | None = None, safe: bool = False
    ) -> namespaces_pb2.Namespace:
        return await self._rpc.unary(NAMESPACES_CHANGE, request, timeout=timeout, safe=safe)

    async def Delete(
        self, request: namespaces_pb2.DeleteNamespaceRequest, *, timeout: float | None = None, safe: bool = False
    ) -> namespaces_pb2.DeleteNamespaceResponse:
        return await self._rpc.unary(NAMESPACES_DELETE, request, timeout=timeout, safe=safe)


class Queues(Service):
    async def List(
        self, request: queues_pb2.ListQueuesRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.ListQueuesResponse:
        return await self._rpc.unary(QUEUES_LIST, request, timeout=timeout, safe=safe)

    async def Get(
        self, request: queues_pb2.GetQueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.Queue:
        return await self._rpc.unary(QUEUES_GET, request, timeout=timeout, safe=safe)

    async def Put(
        self, request: queues_pb2.SetQueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.Queue:
        return await self._rpc.unary(QUEUES_PUT, request, timeout=timeout, safe=safe)

    async def Change(
        self, request: queues_pb2.SetQueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.Queue:
        return await self._rpc.unary(QUEUES_CHANGE, request, timeout=timeout, safe=safe)

    async def Delete(
        self, request: queues_pb2.QueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.DeleteResponse:
        return await self._rpc.unary(QUEUES_DELETE, request, timeout=timeout, safe=safe)

    async def Pause(
        self, request: queues_pb2.QueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.Queue:
        return await self._rpc.unary(QUEUES_PAUSE, request, timeout=timeout, safe=safe)

    async def Resume(
        self, request: queues_pb2.QueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.Queue:
        return await self._rpc.unary(QUEUES_RESUME, request, timeout=timeout, safe=safe)

    async def Close(
        self, request: queues_pb2.QueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.Queue:
        return await self._rpc.unary(QUEUES_CLOSE, request, timeout=timeout, safe=safe)

    async def Open(
        self, request: queues_pb2.QueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.Queue:
        return await self._rpc.unary(QUEUES_OPEN, request, timeout=timeout, safe=safe)

    async def Purge(
        self, request: queues_pb2.QueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.PurgeResponse:
        return await self._rpc.unary(QUEUES_PURGE, request, timeout=timeout, safe=safe)

    async def ListPushes(
        self, request: queues_pb2.ListPushesRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.ListPushesResponse:
        return await self._rpc.unary(QUEUES_LIST_PUSHES, request, timeout=timeout, safe=safe)

    async def ListDead(
        self, request: queues_pb2.ListDeadRequest, *, timeout: float | None = None, safe: bool = False
    ) -> messages_pb2.ListMessagesResponse:
        return await self._rpc.unary(QUEUES_LIST_DEAD, request, timeout=timeout, safe=safe)

    async def CountDeadErrors(
        self, request: queues_pb2.CountDeadErrorsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.CountDeadErrorsResponse:
        return await self._rpc.unary(QUEUES_COUNT_DEAD_ERRORS, request, timeout=timeout, safe=safe)

    async def Redrive(
        self, request: queues_pb2.RedriveRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.RedriveResponse:
        return await self._rpc.unary(QUEUES_REDRIVE, request, timeout=timeout, safe=safe)

    async def EndRedrive(
        self, request: queues_pb2.QueueRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.EndRedriveResponse:
        return await self._rpc.unary(QUEUES_END_REDRIVE, request, timeout=timeout, safe=safe)

    async def DeleteDead(
        self, request: queues_pb2.DeleteDeadRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.DeleteResponse:
        return await self._rpc.unary(QUEUES_DELETE_DEAD, request, timeout=timeout, safe=safe)

    async def ListDefaults(
        self, request: queues_pb2.ListDefaultsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.ListDefaultsResponse:
        return await self._rpc.unary(QUEUES_LIST_DEFAULTS, request, timeout=timeout, safe=safe)

    async def GetDefaults(
        self, request: queues_pb2.GetDefaultsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.QueueDefaults:
        return await self._rpc.unary(QUEUES_GET_DEFAULTS, request, timeout=timeout, safe=safe)

    async def PutDefaults(
        self, request: queues_pb2.PutDefaultsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.QueueDefaults:
        return await self._rpc.unary(QUEUES_PUT_DEFAULTS, request, timeout=timeout, safe=safe)

    async def DeleteDefaults(
        self, request: queues_pb2.DefaultsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> queues_pb2.DeleteDefaultsResponse:
        return await self._rpc.unary(QUEUES_DELETE_DEFAULTS, request, timeout=timeout, safe=safe)


class Schedules(Service):
    async def List(
        self, request: schedules_pb2.ListSchedulesRequest, *, timeout: float | None = None, safe: bool = False
    ) -> schedules_pb2.ListSchedulesResponse:
        return await self._rpc.unary(SCHEDULES_LIST, request, timeout=timeout, safe=safe)

    async def Get(
        self, request: schedules_pb2.GetScheduleRequest, *, timeout: float | None = None, safe: bool = False
    ) -> schedules_pb2.Schedule:
        return await self._rpc.unary(SCHEDULES_GET, request, timeout=timeout, safe=safe)

    async def Put(
        self, request: schedules_pb2.PutScheduleRequest, *, timeout: float | None = None, safe: bool = False
    ) -> schedules_pb2.Schedule:
        return await self._rpc.unary(SCHEDULES_PUT, request, timeout=timeout, safe=safe)

    async def Delete(
        self, request: schedules_pb2.ScheduleRequest, *, timeout: float | None = None, safe: bool = False
    ) -> schedules_pb2.DeleteScheduleResponse:
        return await self._rpc.unary(SCHEDULES_DELETE, request, timeout=timeout, safe=safe)

    async def Next(
        self, request: schedules_pb2.NextRequest, *, timeout: float | None = None, safe: bool = False
    ) -> schedules_pb2.NextResponse:
        return await self._rpc.unary(SCHEDULES_NEXT, request, timeout=timeout, safe=safe)

    async def Pause(
        self, request: schedules_pb2.ScheduleRequest, *, timeout: float | None = None, safe: bool = False
    ) -> schedules_pb2.Schedule:
        return await self._rpc.unary(SCHEDULES_PAUSE, request, timeout=timeout, safe=safe)

    async def Resume(
        self, request: schedules_pb2.ScheduleRequest, *, timeout: float | None = None, safe: bool = False
    ) -> schedules_pb2.Schedule:
        return await self._rpc.unary(SCHEDULES_RESUME, request, timeout=timeout, safe=safe)

    async def Trigger(
        self, request: schedules_pb2.ScheduleRequest, *, timeout: float | None = None, safe: bool = False
    ) -> schedules_pb2.TriggerResponse:
        return await self._rpc.unary(SCHEDULES_TRIGGER, request, timeout=timeout, safe=safe)


class Testing(Service):
    async def GetTime(
        self, request: testing_pb2.GetTestTimeRequest, *, timeout: float | None = None, safe: bool = False
    ) -> testing_pb2.TestTime:
        return await self._rpc.unary(TESTING_GET_TIME, request, timeout=timeout, safe=safe)

    async def Advance(
        self, request: testing_pb2.AdvanceTestTimeRequest, *, timeout: float | None = None, safe: bool = False
    ) -> testing_pb2.TestTime:
        return await self._rpc.unary(TESTING_ADVANCE, request, timeout=timeout, safe=safe)


class Transactions(Service):
    async def Commit(
        self, request: transactions_pb2.CommitTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.CommitTransactionResponse:
        return await self._rpc.unary(TRANSACTIONS_COMMIT, request, timeout=timeout, safe=safe)

    async def Begin(
        self, request: transactions_pb2.BeginTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.BeginTransactionResponse:
        return await self._rpc.unary(TRANSACTIONS_BEGIN, request, timeout=timeout, safe=safe)

    async def Stage(
        self, request: transactions_pb2.StageTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.StageTransactionResponse:
        return await self._rpc.unary(TRANSACTIONS_STAGE, request, timeout=timeout, safe=safe)

    async def Close(
        self, request: transactions_pb2.CloseTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.CommitTransactionResponse:
        return await self._rpc.unary(TRANSACTIONS_CLOSE, request, timeout=timeout, safe=safe)

    async def Rollback(
        self, request: transactions_pb2.RollbackTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.RollbackTransactionResponse:
        return await self._rpc.unary(TRANSACTIONS_ROLLBACK, request, timeout=timeout, safe=safe)

    async def ListOpen(
        self, request: transactions_pb2.ListOpenTransactionsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.ListOpenTransactionsResponse:
        return await self._rpc.unary(TRANSACTIONS_LIST_OPEN, request, timeout=timeout, safe=safe)

    async def ShowOpen(
        self, request: transactions_pb2.ShowOpenTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.OpenTransaction:
        return await self._rpc.unary(TRANSACTIONS_SHOW_OPEN, request, timeout=timeout, safe=safe)

    async def BreakOpen(
        self, request: transactions_pb2.BreakOpenTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.BreakOpenTransactionResponse:
        return await self._rpc.unary(TRANSACTIONS_BREAK_OPEN, request, timeout=timeout, safe=safe)

    async def ListInDoubt(
        self, request: transactions_pb2.ListInDoubtTransactionsRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.ListInDoubtTransactionsResponse:
        return await self._rpc.unary(TRANSACTIONS_LIST_IN_DOUBT, request, timeout=timeout, safe=safe)

    async def ShowInDoubt(
        self, request: transactions_pb2.ShowInDoubtTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.InDoubtTransaction:
        return await self._rpc.unary(TRANSACTIONS_SHOW_IN_DOUBT, request, timeout=timeout, safe=safe)

    async def Resolve(
        self, request: transactions_pb2.ResolveTransactionRequest, *, timeout: float | None = None, safe: bool = False
    ) -> transactions_pb2.ResolveTransactionResponse:
        return await self._rpc.unary(TRANSACTIONS_RESOLVE, request, timeout=timeout, safe=safe)


class Stubs:
    """All services, one attribute for each."""

    def __init__(self, rpc: Rpc) -> None:
        self.documents = Documents(rpc)
        self.attachments = Attachments(rpc)
        self.messages = Messages(rpc)
        self.bulks = Bulks(rpc)
        self.consumers = Consumers(rpc)
        self.events = Events(rpc)
        self.limits = Limits(rpc)
        self.locks = Locks(rpc)
        self.namespaces = Namespaces(rpc)
        self.queues = Queues(rpc)
        self.schedules = Schedules(rpc)
        self.testing = Testing(rpc)
        self.transactions = Transactions(rpc)
