"""For tests of programs: a server of one's own, and a record of what is sent.

The pytest plugin of this package has the fixtures ``sluice_server`` and ``sluice_client``.
"""

from .outbox import Outbox, SentMessage, outbox
from .server import Cluster, Server, find_binary

__all__ = ["Cluster", "Outbox", "SentMessage", "Server", "find_binary", "outbox"]
