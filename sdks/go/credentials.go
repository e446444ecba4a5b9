package sluice

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"google.golang.org/grpc/credentials"
)

// bearer adds the token to each call.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is false as for the command line: a server in clear text listens on its own
// machine.
func (b bearer) RequireTransportSecurity() bool { return false }

// tlsConfig is the configuration of TLS that the options describe.
func (o *options) tlsConfig() (*tls.Config, error) {
	if o.tls != nil {
		return o.tls.Clone(), nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(o.ca) {
			return nil, errors.New("sluice: the CA is no PEM of a certificate")
		}
	}
	if (o.cert == nil) != (o.key == nil) {
		return nil, errors.New("sluice: a client's certificate and its key go together")
	}
	if o.cert != nil {
		pair, err := tls.X509KeyPair(o.cert, o.key)
		if err != nil {
			return nil, fmt.Errorf("sluice: the client's certificate cannot be used: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// watchedTLS notes whether a server was refused for its certificate, or speaks no TLS: that does not pass,
// and so no call is repeated for it.
type watchedTLS struct {
	credentials.TransportCredentials
	refused *atomic.Bool
}

func (w watchedTLS) ClientHandshake(
	ctx context.Context, authority string, raw net.Conn,
) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	var certificate *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	w.refused.Store(errors.As(err, &certificate) || errors.As(err, &header))
	return conn, info, err
}

func (w watchedTLS) Clone() credentials.TransportCredentials {
	return watchedTLS{w.TransportCredentials.Clone(), w.refused}
}
