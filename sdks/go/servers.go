package sluice

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	connectTimeout  = 5 * time.Second
	pingInterval    = 20 * time.Second
	answerBytesMax  = 256 << 20
	streamWindow    = 1 << 20
	reconnectMin    = 50 * time.Millisecond
	reconnectMax    = time.Second
	reconnectGrowth = 1.6
)

// server is one address and the connection to it.
type server struct {
	address string
	conn    *grpc.ClientConn
	// refused is true if TLS has failed for a reason that does not pass.
	refused atomic.Bool
}

// servers are the addresses of a client, and which of them is asked.
type servers struct {
	all     []*server
	current atomic.Int64
}

// errMixed is the error of addresses of which some are of servers with TLS.
var errMixed = errors.New("sluice: all servers are asked with TLS, or none")

func newServers(o *options) (*servers, error) {
	made := &servers{}
	var first bool
	for i, text := range strings.Split(strings.Join(o.servers, ","), ",") {
		address, encrypted, err := parseServer(strings.TrimSpace(text))
		if err != nil {
			return nil, errors.Join(err, made.close())
		}
		if i > 0 && encrypted != first {
			return nil, errors.Join(errMixed, made.close())
		}
		first = encrypted
		one, err := dial(address, encrypted, o)
		if err != nil {
			return nil, errors.Join(err, made.close())
		}
		made.all = append(made.all, one)
	}
	return made, nil
}

// parseServer takes http://HOST:PORT, https://HOST:PORT or HOST:PORT apart.
func parseServer(text string) (address string, encrypted bool, err error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "http://" + text
	}
	u, err := url.Parse(full)
	plain := err == nil && u.Hostname() != "" && (u.Path == "" || u.Path == "/") && u.RawQuery == ""
	if !plain || (u.Scheme != "http" && u.Scheme != "https") {
		err := fmt.Errorf("sluice: server %q: expected http://HOST:PORT or https://HOST:PORT", text)
		return "", false, err
	}
	encrypted = u.Scheme == "https"
	port := u.Port()
	if port == "" && encrypted {
		port = "443"
	} else if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port), encrypted, nil
}

func dial(address string, encrypted bool, o *options) (*server, error) {
	made := &server{address: address}
	transport := insecure.NewCredentials()
	if encrypted {
		config, err := o.tlsConfig()
		if err != nil {
			return nil, err
		}
		transport = watchedTLS{credentials.NewTLS(config), &made.refused}
	}
	dial := append(dialOptions(transport), o.dial...)
	if o.token != "" {
		dial = append(dial, grpc.WithPerRPCCredentials(bearer(o.token)))
	}
	var err error
	made.conn, err = grpc.NewClient("passthrough:///"+address, dial...)
	return made, err
}

func dialOptions(transport credentials.TransportCredentials) []grpc.DialOption {
	pause := backoff.Config{
		BaseDelay: reconnectMin, Multiplier: reconnectGrowth, Jitter: 0.2, MaxDelay: reconnectMax,
	}
	return []grpc.DialOption{
		grpc.WithTransportCredentials(transport),
		grpc.WithUserAgent("sluice-go"),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pause, MinConnectTimeout: connectTimeout}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingInterval, Timeout: pingInterval / 2}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerBytesMax)),
		grpc.WithInitialWindowSize(streamWindow),
		grpc.WithInitialConnWindowSize(streamWindow),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	}
}

// asked is the server to ask.
func (s *servers) asked() *server { return s.all[s.current.Load()] }

// others is the number of servers beside the one that is asked.
func (s *servers) others() int { return len(s.all) - 1 }

// passOn takes another server for later calls, if the error of this one is one after which that may help: the
// leader that it names, else the next. True when another one is asked now.
func (s *servers) passOn(from *server, e *Error) bool {
	if s.others() == 0 || !asksAnother(e.Code) {
		return false
	}
	asked := s.place(from.address)
	next := s.place(e.Details["address"])
	if next < 0 {
		next = (asked + 1) % int64(len(s.all))
	}
	// Another call may have passed on already.
	s.current.CompareAndSwap(asked, next)
	return s.current.Load() != asked
}

func (s *servers) place(address string) int64 {
	for i, one := range s.all {
		if one.address == address {
			return int64(i)
		}
	}
	return -1
}

func (s *servers) close() error {
	var errs []error
	for _, one := range s.all {
		errs = append(errs, one.conn.Close())
	}
	return errors.Join(errs...)
}

// asksAnother is true of errors after which another node of a cluster may do better.
func asksAnother(code string) bool {
	switch code {
	case CodeUnreachable, CodeNotLeader, CodeNoLeader, CodeShuttingDown, CodeOutcomeUnknown:
		return true
	}
	return false
}
