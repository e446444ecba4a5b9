package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// authority is the CA of a cluster and of its clients. Certificates and keys are PEM files in its folder:
// `ca.pem`, `NAME.pem` and `NAME.key`.
type authority struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(folder string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := template("torture")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign
	bytes, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(bytes)
	if err != nil {
		return nil, err
	}
	authority := &authority{folder, certificate, key}
	return authority, authority.write("ca.pem", "CERTIFICATE", bytes)
}

// template is valid long enough for every clock of a run.
func template(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-24 * time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
	}
}

// issue makes the certificate of a server or client on this machine, with these URIs among its names.
func (authority *authority) issue(name string, uris ...string) error {
	template := template(name)
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, text := range uris {
		uri, err := url.Parse(text)
		if err != nil {
			return err
		}
		template.URIs = append(template.URIs, uri)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := authority.write(name+".key", "PRIVATE KEY", secret); err != nil {
		return err
	}
	bytes, err := x509.CreateCertificate(rand.Reader, template, authority.certificate, key.Public(), authority.key)
	if err != nil {
		return err
	}
	return authority.write(name+".pem", "CERTIFICATE", bytes)
}

func (authority *authority) write(name, kind string, bytes []byte) error {
	return os.WriteFile(authority.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600)
}

func (authority *authority) path(name string) string { return filepath.Join(authority.folder, name) }

// config is for a client with the certificate of this name.
func (authority *authority) config(name string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(authority.path(name+".pem"), authority.path(name+".key"))
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}, err
}
