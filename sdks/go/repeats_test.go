package sluice

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/sluice/sluice-go/sluicepb"
)

func TestTheCallsThatMayBeRepeatedAreThoseOfTheTable(t *testing.T) {
	var table struct {
		Once, Always []string
		WithField    map[string]protoreflect.Name `json:"with_field"`
		WithoutField map[string]string            `json:"without_field"`
	}
	text, err := os.ReadFile("../conformance/repeats.json")
	if err == nil {
		err = json.Unmarshal(text, &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range table.Once {
		if safetyOf(full(name), requestOf(t, name)) != once {
			t.Errorf("%s is repeated", name)
		}
	}
	for _, name := range append(table.Always, "Messages/Extend", "Messages/Receive") {
		if safetyOf(full(name), requestOf(t, name)) != repeatable {
			t.Errorf("%s is not repeated", name)
		}
	}
	for name, field := range table.WithField {
		request := requestOf(t, name)
		if safetyOf(full(name), request) != once {
			t.Errorf("%s is repeated without its key", name)
		}
		message := request.ProtoReflect()
		message.Set(message.Descriptor().Fields().ByName(field), protoreflect.ValueOfString("k"))
		if safetyOf(full(name), request) != repeatable {
			t.Errorf("%s is not repeated with its key", name)
		}
	}
	cost, transaction := uint32(1), "t"
	extend := &sluicepb.ExtendRequest{Items: []*sluicepb.Extension{{AddCost: &cost}}}
	receive := &sluicepb.ReceiveRequest{Transaction: &transaction}
	if safetyOf(full("Messages/Extend"), extend) != once || safetyOf(full("Messages/Receive"), receive) != once {
		t.Error("an extend with a cost, or a receive in a transaction, is repeated")
	}
}

func full(name string) string { return "/sluice.v1." + name }

func requestOf(t *testing.T, name string) proto.Message {
	method := protoreflect.FullName("sluice.v1." + strings.ReplaceAll(name, "/", "."))
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(method)
	if err != nil {
		t.Fatal(err)
	}
	input := found.(protoreflect.MethodDescriptor).Input().FullName()
	made, err := protoregistry.GlobalTypes.FindMessageByName(input)
	if err != nil {
		t.Fatal(err)
	}
	return made.New().Interface()
}
