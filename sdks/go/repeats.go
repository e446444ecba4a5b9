package sluice

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluice/sluice-go/sluicepb"
)

// keyed are fields of which one makes a repeat of the call harmless.
var keyed = map[string]protoreflect.Name{
	sluicepb.Documents_Patch_FullMethodName:     "request_id",
	sluicepb.Documents_Put_FullMethodName:       "request_id",
	sluicepb.Locks_Acquire_FullMethodName:       "request_id",
	sluicepb.Messages_Send_FullMethodName:       "idempotency_key",
	sluicepb.Messages_SendGroup_FullMethodName:  "idempotency_key",
	sluicepb.Transactions_Commit_FullMethodName: "idempotency_key",
}

// onceOnly are the calls of which a repeat does more than one, or does it to what has come since under the same
// name. All others read, or state the wanted result and not a difference.
var onceOnly = map[string]bool{
	sluicepb.Attachments_Delete_FullMethodName:     true,
	sluicepb.Attachments_End_FullMethodName:        true,
	sluicepb.Bulks_Start_FullMethodName:            true,
	sluicepb.Consumers_Detach_FullMethodName:       true,
	sluicepb.Documents_Delete_FullMethodName:       true,
	sluicepb.Documents_DeleteIndex_FullMethodName:  true,
	sluicepb.Limits_Delete_FullMethodName:          true,
	sluicepb.Locks_Break_FullMethodName:            true,
	sluicepb.Messages_Approve_FullMethodName:       true,
	sluicepb.Messages_Cancel_FullMethodName:        true,
	sluicepb.Messages_Change_FullMethodName:        true,
	sluicepb.Messages_Deny_FullMethodName:          true,
	sluicepb.Messages_Hold_FullMethodName:          true,
	sluicepb.Messages_Move_FullMethodName:          true,
	sluicepb.Messages_Retry_FullMethodName:         true,
	sluicepb.Namespaces_Delete_FullMethodName:      true,
	sluicepb.Queues_Delete_FullMethodName:          true,
	sluicepb.Queues_DeleteDead_FullMethodName:      true,
	sluicepb.Queues_DeleteDefaults_FullMethodName:  true,
	sluicepb.Queues_EndRedrive_FullMethodName:      true,
	sluicepb.Queues_Purge_FullMethodName:           true,
	sluicepb.Queues_Redrive_FullMethodName:         true,
	sluicepb.Schedules_Delete_FullMethodName:       true,
	sluicepb.Schedules_Trigger_FullMethodName:      true,
	sluicepb.Testing_Advance_FullMethodName:        true,
	sluicepb.Transactions_BreakOpen_FullMethodName: true,
	sluicepb.Transactions_Resolve_FullMethodName:   true,
	sluicepb.Transactions_Rollback_FullMethodName:  true,
	sluicepb.Transactions_Stage_FullMethodName:     true,
}

// safetyOf tells whether a repeat of a call has no further effect.
func safetyOf(method string, request proto.Message) safety {
	if field, ok := keyed[method]; ok {
		message := request.ProtoReflect()
		key := message.Get(message.Descriptor().Fields().ByName(field)).String()
		return safety(key != "")
	}
	switch asked := request.(type) {
	case *sluicepb.ExtendRequest:
		for _, item := range asked.Items {
			if item.GetAddCost() > 0 {
				return once
			}
		}
	case *sluicepb.ReceiveRequest:
		// What a lost answer has taken comes back; but the commit of a transaction would ack it.
		return safety(asked.GetTransaction() == "")
	}
	return safety(!onceOnly[method])
}
