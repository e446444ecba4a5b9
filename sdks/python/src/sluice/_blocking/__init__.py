"""The SDK for threads: the asyncio client on an event loop of its own, in the background."""
