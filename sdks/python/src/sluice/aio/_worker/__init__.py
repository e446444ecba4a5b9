"""Workers over the stream ``Sessions``."""
