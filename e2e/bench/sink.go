//go:build linux

package main

import (
	"fmt"
	"net"
	"sync/atomic"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip" // what an earlier agent sends
	"google.golang.org/grpc/mem"
)

// rawCodec passes bytes on as they are: the requests are encoded before they
// are measured, and are counted by the sink only.
type rawCodec struct{}

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	raw, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("%T is no bytes", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*raw)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	raw, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%T is no bytes", v)
	}
	*raw = data.Materialize()
	return nil
}

func (rawCodec) Name() string { return "proto" }

// sink takes what the collectors send and counts items and their attributes.
type sink struct {
	load              load
	address           string
	server            *grpc.Server
	taken, attributes atomic.Int64
}

func newSink(of load) (*sink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &sink{load: of, address: listener.Addr().String()}
	s.server = grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.MaxRecvMsgSize(64<<20),
		grpc.UnknownServiceHandler(s.take))
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

func (s *sink) take(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if method == s.load.method {
		items, attributes, err := s.load.count(request)
		if err != nil {
			return err
		}
		s.taken.Add(int64(items))
		s.attributes.Add(int64(attributes))
	}
	var answer []byte
	return stream.SendMsg(&answer)
}

func (s *sink) items() int { return int(s.taken.Load()) }

func (s *sink) stop() { s.server.Stop() }
