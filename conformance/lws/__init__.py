"""LeaderWorkerSet: its controller, against the backend `lws`."""
