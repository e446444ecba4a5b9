package sluice

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Conn is the connection for the generated stubs of the package sluicepb, for calls that this package does
// not wrap:
//
//	queues := sluicepb.NewQueuesClient(client.Conn())
//	queue, err := queues.Get(ctx, &sluicepb.GetQueueRequest{Queue: "emails"})
//
// A request without a namespace is in that of the client. Calls are repeated and passed on to other servers as
// those of the client are: where a repeat could have a further effect, as that of a deletion, only if the first
// try surely had none. Errors are of the type *Error. Options of single calls are left out of account.
func (c *Client) Conn() grpc.ClientConnInterface { return conn{c} }

type conn struct{ client *Client }

func (c conn) Invoke(ctx context.Context, method string, in, out any, _ ...grpc.CallOption) error {
	request := c.inNamespace(in.(proto.Message))
	return c.client.call(ctx, method, request, out.(proto.Message), safetyOf(method, request), 0)
}

func (c conn) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	asked := c.client.servers.asked()
	stream, err := asked.conn.NewStream(ctx, desc, method, opts...)
	if err != nil {
		return nil, toError(ctx, err)
	}
	return &connStream{ClientStream: stream, conn: c}, nil
}

// connStream is a stream whose first message is in the namespace of the client, and whose errors are *Error.
type connStream struct {
	grpc.ClientStream
	conn  conn
	begun bool
}

func (s *connStream) SendMsg(message any) error {
	if !s.begun {
		s.begun = true
		message = s.conn.inNamespace(message.(proto.Message))
	}
	return s.failed(s.ClientStream.SendMsg(message))
}

func (s *connStream) RecvMsg(message any) error { return s.failed(s.ClientStream.RecvMsg(message)) }

func (s *connStream) failed(err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return toError(s.Context(), err)
}

// inNamespace is the request, with the namespace of the client if it has a field for one that is empty.
func (c conn) inNamespace(request proto.Message) proto.Message {
	field := request.ProtoReflect().Descriptor().Fields().ByName("namespace")
	own := c.client.options.namespace
	if own == "" || field == nil || request.ProtoReflect().Get(field).String() != "" {
		return request
	}
	request = proto.Clone(request)
	request.ProtoReflect().Set(field, protoreflect.ValueOfString(own))
	return request
}
