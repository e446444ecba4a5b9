// Checks of Go's net/http: `interop CHECK URL CA`. The first thing that is not as it should be ends it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"sync"
	"time"
)

var (
	url     string
	roots   = x509.NewCertPool()
	pattern = make([]byte, 1<<20)
)

// Windows that open by little.
var small = &http.HTTP2Config{MaxReceiveBufferPerStream: 16 << 10, MaxReceiveBufferPerConnection: 64 << 10}

var checks = map[string]func(*http.Client){
	"requests": requests, "streamed_bodies": streamedBodies, "trailers": trailers, "continued": continued,
	"downloads": downloads, "small_windows": smallWindows, "resets": resets, "early_answers": earlyAnswers,
	"broken_answers": brokenAnswers, "ended_servers": endedServers,
}

func main() {
	if len(os.Args) == 1 {
		for name := range checks {
			fmt.Println(name)
		}
		return
	}
	for at := range pattern {
		pattern[at] = byte(at/251 + at)
	}
	url = os.Args[2]
	ca, err := os.ReadFile(os.Args[3])
	must(err == nil && roots.AppendCertsFromPEM(ca), "no certificates: %v", err)
	checks[os.Args[1]](connect(nil))
}

func must(holds bool, format string, arguments ...any) {
	if !holds {
		fmt.Fprintf(os.Stderr, format+"\n", arguments...)
		os.Exit(1)
	}
}

// A client with one connection of its own.
func connect(config *http.HTTP2Config) *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		TLSClientConfig:       &tls.Config{RootCAs: roots},
		ForceAttemptHTTP2:     true,
		HTTP2:                 config,
		ExpectContinueTimeout: 20 * time.Second,
	}}
}

func request(method, path string, body io.Reader) *http.Request {
	made, err := http.NewRequest(method, url+path, body)
	must(err == nil, "%v", err)
	return made
}

func answer(client *http.Client, request *http.Request) (*http.Response, []byte) {
	response, err := client.Do(request)
	must(err == nil, "%s: %v", request.URL, err)
	must(response.ProtoMajor == 2, "%s", response.Proto)
	body, err := io.ReadAll(response.Body)
	must(err == nil, "%s: %v", request.URL, err)
	response.Body.Close()
	return response, body
}

func download(client *http.Client, size int) {
	response, body := answer(client, request("GET", fmt.Sprintf("/size/%d", size), nil))
	must(response.StatusCode == 200 && bytes.Equal(body, pattern[:size]), "a body of %d bytes has %d", size, len(body))
}

func uploaded(body []byte, size int, trailers string) {
	wanted := fmt.Sprintf("%d bytes of the pattern, trailers: %s", size, trailers)
	must(string(body) == wanted, "%s, not %s", body, wanted)
}

func requests(client *http.Client) {
	for _, size := range []int{0, 1, 16_384, 300_000} {
		download(client, size)
	}
	response, body := answer(client, request("HEAD", "/size/1000", nil))
	must(response.ContentLength == 1000 && len(body) == 0, "%d", response.ContentLength)
	asked := request("PURGE", "/head?a=b", nil)
	asked.Header["X-One"] = []string{"1", "2"}
	_, body = answer(client, asked)
	must(strings.HasPrefix(string(body), "PURGE "+url+"/head?a=b"), "%s", body)
	must(strings.Contains(string(body), `x-one="1" x-one="2"`), "%s", body)
}

func streamedBodies(client *http.Client) {
	reader, writer := io.Pipe()
	response, err := client.Do(request("POST", "/echo", reader))
	must(err == nil, "%v", err)
	for _, size := range []int{1, 100, 40_000} {
		go writer.Write(pattern[:size])
		back := make([]byte, size)
		_, err = io.ReadFull(response.Body, back)
		must(err == nil && bytes.Equal(back, pattern[:size]), "it has to come back before more is sent: %v", err)
	}
	writer.Close()
	rest, err := io.ReadAll(response.Body)
	must(err == nil && len(rest) == 0, "%v", err)

	_, body := answer(client, request("POST", "/sip", bytes.NewReader(pattern)))
	uploaded(body, len(pattern), "")
	_, body = answer(client, request("GET", "/pieces/64", nil))
	for number := range 64 {
		piece := body[number*8192 : (number+1)*8192]
		must(bytes.Equal(piece, bytes.Repeat([]byte{byte(number)}, 8192)), "piece %d", number)
	}
}

func trailers(client *http.Client) {
	response, _ := answer(client, request("GET", "/trailers", nil))
	must(response.Trailer.Get("grpc-status") == "0", "%v", response.Trailer)
	asked := request("POST", "/upload", io.MultiReader(bytes.NewReader(pattern)))
	asked.Trailer = http.Header{"Checksum": {"1"}}
	_, body := answer(client, asked)
	uploaded(body, len(pattern), `checksum="1"`)
}

func continued(client *http.Client) {
	told := false
	trace := &httptrace.ClientTrace{Got100Continue: func() { told = true }}
	asked := request("POST", "/upload", bytes.NewReader(pattern))
	asked = asked.WithContext(httptrace.WithClientTrace(context.Background(), trace))
	asked.Header.Set("Expect", "100-continue")
	_, body := answer(client, asked)
	uploaded(body, len(pattern), "")
	must(told, "nobody said 100 (Continue)")
}

func downloads(_ *http.Client) {
	var group sync.WaitGroup
	for range 4 {
		client := connect(nil)
		download(client, 1) // Opens the connection, which the others share.
		for range 10 {
			group.Add(1)
			go func() { defer group.Done(); download(client, 262_144) }()
		}
	}
	group.Wait()
}

func smallWindows(_ *http.Client) {
	client := connect(small)
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() { defer group.Done(); download(client, 1_000_000) }()
	}
	group.Wait()
}

// Of `sluice serve`: a message that is on its way comes whole, though the server is told to end meanwhile.
func endedServers(_ *http.Client) {
	client := connect(small)
	response, _ := answer(client, request("POST", "/v1/queues/last/messages/raw", bytes.NewReader(pattern)))
	must(response.StatusCode == 201, "%d", response.StatusCode)
	response, err := client.Do(request("POST", "/v1/queues/last/receive/raw", nil))
	must(err == nil, "%v", err)
	fmt.Println("begun")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	body, err := io.ReadAll(response.Body)
	must(err == nil && bytes.Equal(body, pattern), "%d bytes: %v", len(body), err)
	_, err = client.Do(request("GET", "/v1/status", nil))
	must(err != nil, "it has ended, and answers")
}

func resets(client *http.Client) {
	for range 200 {
		leaves, leave := context.WithCancel(context.Background())
		response, err := client.Do(request("GET", "/size/100000", nil).WithContext(leaves))
		must(err == nil, "%v", err)
		leave()
		response.Body.Close()
	}
	download(client, 100_000)
}

func earlyAnswers(client *http.Client) {
	response, _ := answer(client, request("POST", "/status/413", bytes.NewReader(pattern)))
	must(response.StatusCode == 413, "%d", response.StatusCode)
	download(client, 100_000)
}

func brokenAnswers(client *http.Client) {
	response, err := client.Do(request("GET", "/fails", nil))
	if err == nil {
		_, err = io.ReadAll(response.Body)
	}
	must(err != nil && strings.Contains(err.Error(), "INTERNAL_ERROR"), "%v", err)
	download(client, 100_000)
}
