"""LeaderWorkerSet and DisaggregatedSet."""
