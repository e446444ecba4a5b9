package sluice_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/sluice/sluice-go"
	"github.com/sluice/sluice-go/sluicepb"
)

// fake is a server that answers sends and triggers as it is told, and then with success.
type fake struct {
	sluicepb.UnimplementedMessagesServer
	address string

	mu       sync.Mutex
	errs     []error
	requests []*sluicepb.SendRequest
	// authorization is what the latest call has had in its header.
	authorization string
}

func startFake(t *testing.T, errs ...error) *fake {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	made := &fake{address: listener.Addr().String(), errs: errs}
	server := grpc.NewServer(grpc.UnaryInterceptor(made.authorized))
	sluicepb.RegisterMessagesServer(server, made)
	sluicepb.RegisterSchedulesServer(server, fakeSchedules{fake: made})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return made
}

func (f *fake) Send(_ context.Context, in *sluicepb.SendRequest) (*sluicepb.SendResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, in)
	if err := f.next(); err != nil {
		return nil, err
	}
	return &sluicepb.SendResponse{Ids: make([]string, len(in.Messages))}, nil
}

// fakeSchedules are the schedules of a fake.
type fakeSchedules struct {
	sluicepb.UnimplementedSchedulesServer
	fake *fake
}

func (s fakeSchedules) Trigger(
	context.Context, *sluicepb.ScheduleRequest,
) (*sluicepb.TriggerResponse, error) {
	f := s.fake
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, nil)
	return &sluicepb.TriggerResponse{}, f.next()
}

// next takes the next error. The lock is held.
func (f *fake) next() error {
	if len(f.errs) == 0 {
		return nil
	}
	err := f.errs[0]
	f.errs = f.errs[1:]
	return err
}

func (f *fake) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.requests)
}

// refusal is an error as the server makes it: with its code and details, and the time after which to retry.
func refusal(code codes.Code, text string, retryAfter time.Duration, details ...string) error {
	made := status.New(code, "the server says so").Proto()
	info := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), text)
	for i := 0; i < len(details); i += 2 {
		entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), details[i])
		entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), details[i+1])
		info = protowire.AppendBytes(protowire.AppendTag(info, 3, protowire.BytesType), entry)
	}
	errorInfo := &anypb.Any{TypeUrl: "type.googleapis.com/google.rpc.ErrorInfo", Value: info}
	made.Details = append(made.Details, errorInfo)
	if retryAfter > 0 {
		nanos := protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), uint64(retryAfter))
		retry := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), nanos)
		retryInfo := &anypb.Any{TypeUrl: "type.googleapis.com/google.rpc.RetryInfo", Value: retry}
		made.Details = append(made.Details, retryInfo)
	}
	return status.FromProto(made).Err()
}

// clientOf is a client of these servers.
func clientOf(t *testing.T, urls []string, opts ...sluice.Option) *sluice.Client {
	own := []sluice.Option{sluice.WithoutEnvironment(), sluice.WithServers(urls...)}
	client := must(sluice.New(append(own, opts...)...))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// nowhere is an address at which nobody listens.
func nowhere(t *testing.T) string {
	listener := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}
