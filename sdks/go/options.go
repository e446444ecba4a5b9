package sluice

import (
	"crypto/tls"
	"time"

	"google.golang.org/grpc"
)

const (
	defaultServer         = "http://127.0.0.1:7070"
	defaultRetryFor       = 30 * time.Second
	defaultRequestTimeout = 30 * time.Second
)

// Option changes how a client is made.
type Option func(*options)

type options struct {
	servers          []string
	context          string
	namespace        string
	token            string
	ca, cert, key    []byte
	tls              *tls.Config
	propagator       Propagator
	retryFor         time.Duration
	requestTimeout   time.Duration
	dial             []grpc.DialOption
	skipsEnvironment bool
}

// WithServers names the servers: one, or nodes of a cluster, of which the next is asked when one fails. Each
// is http://HOST:PORT, https://HOST:PORT or HOST:PORT; several may stand in one text, with commas between
// them. Default: SLUICE_SERVER, else those of the context in use, else http://127.0.0.1:7070.
func WithServers(urls ...string) Option {
	return func(o *options) { o.servers = urls }
}

// WithCLIContext takes server, namespace and credentials from a context of the command line, which `sluice
// context add` has made, as far as other options do not say otherwise. Default: SLUICE_CONTEXT, else the context
// that `sluice context use` has chosen, unless SLUICE_SERVER is set.
func WithCLIContext(name string) Option {
	return func(o *options) { o.context = name }
}

// WithNamespace names the namespace of all calls. Default: SLUICE_NAMESPACE, else "default".
func WithNamespace(name string) Option {
	return func(o *options) { o.namespace = name }
}

// WithToken sets the token of the caller. Default: SLUICE_TOKEN, or what the file SLUICE_TOKEN_FILE has.
func WithToken(token string) Option {
	return func(o *options) { o.token = token }
}

// WithCA sets the CAs, in PEM, that may have signed the certificate of the server. Default: those of the file
// SLUICE_CA, else those that the system trusts.
func WithCA(pem []byte) Option {
	return func(o *options) { o.ca = pem }
}

// WithCertificate sets the certificate of the caller and its key, in PEM. Default: those of the files
// SLUICE_CERT and SLUICE_CERT_KEY.
func WithCertificate(cert, key []byte) Option {
	return func(o *options) { o.cert, o.key = cert, key }
}

// WithTLS sets the whole configuration of TLS for https servers, in the place of CA and certificate.
func WithTLS(config *tls.Config) Option {
	return func(o *options) { o.tls = config }
}

// WithPropagator carries the context of traces over in the headers of messages. These headers are a part of
// the send: who repeats one with an idempotency key of their own repeats it with the same context, or is
// refused with [ErrIdempotencyMismatch].
func WithPropagator(p Propagator) Option {
	return func(o *options) { o.propagator = p }
}

// WithRetryFor sets for how long a call without a deadline is repeated after errors that pass (default 30 s).
// With 0 no call is repeated.
func WithRetryFor(d time.Duration) Option {
	return func(o *options) { o.retryFor = d }
}

// WithRequestTimeout sets how long one try of a call may take, beyond the wait that it asks for (default 30
// s).
func WithRequestTimeout(d time.Duration) Option {
	return func(o *options) { o.requestTimeout = d }
}

// WithDialOptions adds options of gRPC, such as interceptors.
func WithDialOptions(dial ...grpc.DialOption) Option {
	return func(o *options) { o.dial = append(o.dial, dial...) }
}

// WithoutEnvironment leaves the environment variables, and the context in use, out of account.
func WithoutEnvironment() Option {
	return func(o *options) { o.skipsEnvironment = true }
}
