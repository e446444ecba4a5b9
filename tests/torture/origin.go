package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// otherEnd is the name, among the files of a process, of the socket at the other end of a connection on this
// machine; empty: it is gone.
func otherEnd(connection net.Conn) string {
	end := func(address net.Addr) string {
		found := address.(*net.TCPAddr)
		four := found.IP.To4()
		return fmt.Sprintf("%02X%02X%02X%02X:%04X", four[3], four[2], four[1], four[0], found.Port)
	}
	from, to := end(connection.RemoteAddr()), end(connection.LocalAddr())
	sockets, _ := os.ReadFile("/proc/net/tcp")
	for line := range strings.Lines(string(sockets)) {
		// sl, local and remote address, st, queues, tr, retrnsmt, uid, timeout, inode
		fields := strings.Fields(line)
		if len(fields) > 9 && fields[1] == from && fields[2] == to {
			return "socket:[" + fields[9] + "]"
		}
	}
	return ""
}

// holds says whether a process has a file of this name.
func holds(process int64, file string) bool {
	places, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", process))
	for _, place := range places {
		if name, err := os.Readlink(place); err == nil && name == file {
			return true
		}
	}
	return false
}
