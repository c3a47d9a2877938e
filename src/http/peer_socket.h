// The state of the connection to a peer, from the kernel of this host.
#pragma once

namespace octavo::http {

// Closes the connection about a minute after the host of the peer becomes unreachable (TCP keepalive). This
// does not detect a process that hangs.
void notice_lost_peer(int socket);

// Returns the number of bytes that were written and that the host of the peer has not acknowledged, which it
// does only as its process reads. Returns -1 if the number is unknown.
int unacknowledged_bytes(int socket);

// True if the host of the peer has acknowledged all bytes that were written. If the peer then ends the
// connection without a reset, its process has read these bytes: a kernel resets a connection that is closed
// with unread bytes.
bool has_reached_peer(int socket);

}  // namespace octavo::http
